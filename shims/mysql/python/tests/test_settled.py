"""Epochs settled by hand on MySQL, whose epochs may be written again, and who is taken for the writer (EPOCH-24)."""

from __future__ import annotations

import antipode
import pytest
from antipode import Verdict
from antipode.shim.administration import SETTLED, InitRequest
from antipode_mysql.shim import MySQLShim
from sql_regions import STORE, Posts, lose, never, position, until

pytestmark = pytest.mark.stores


def prepared(posts: Posts) -> None:
    posts.lab.create_user("reader", "")
    for step in MySQLShim.preparations(posts.lab.url("a"), InitRequest("p", "reader", {})):
        assert step.run is not None
        step.run()
    posts.lab.wait_links()


@pytest.mark.parametrize("by_hand", [False, True])
def test_a_settled_epoch_that_is_written_again_is_waited_for(fresh_mysql: Posts, by_hand: bool) -> None:
    """The server whose lost tail was settled comes back with it, and is the primary again. `by_hand`: by a row that
    somebody wrote without an end."""
    posts = fresh_mysql
    prepared(posts)
    _, lost = lose(posts, 3)
    after = posts.write("after")
    assert posts.verdict(after, 20) is Verdict.VISIBLE
    never(posts, lost[-1])
    url, old = posts.lab.url("b1"), position(lost[-1])
    with pytest.raises(antipode.ConfigurationError, match="--position"):
        MySQLShim.settle(url, old.epoch)
    if by_hand:
        posts.lab.run("b1", f"INSERT INTO antipode.epochs VALUES ('{old.epoch}', {SETTLED})")
        posts.lab.wait_links()
        never(posts, lost[-1])
        assert "without an end" in next(one for one in MySQLShim.epochs(url) if one.epoch == old.epoch).detail
    else:
        MySQLShim.settle(url, old.epoch, old.counter)
        until(lambda: posts.verdict(lost[-1], 5) is Verdict.VISIBLE)
    posts.lab.heal(wait=False)
    posts.lab.repoint("a", "b1", rebuild=False)
    posts.lab.partition("b2")
    posts.lab.promote("a", lose=0, wait=False)
    posts.lab.repoint("b1", "a")
    again = posts.write("again")
    assert position(again).epoch == old.epoch
    assert position(again).counter > old.counter
    never(posts, again)
    assert posts.shows("b2", "again") is None
    posts.lab.heal()
    result = posts.look(again, 20)
    assert result.satisfied, result.explain()
    assert posts.shows("b2", "again") == "v"


def test_a_replica_that_may_be_written_is_not_taken_for_the_writer(fresh_mysql: Posts) -> None:
    """MySQL's own default is read_only=OFF. Such a replica, once a primary, is still behind, and cannot settle."""
    posts = fresh_mysql
    prepared(posts)
    posts.lab.promote("b1", lose=0)
    posts.write("from-b1")
    posts.lab.repoint("a", "b1")
    posts.lab.promote("a", lose=0)
    posts.lab.repoint("b1", "a")
    posts.lab.config("b1", "read_only", "OFF")
    current = posts.write("from-a")
    assert posts.verdict(current, 20) is Verdict.VISIBLE
    assert posts.verdict(posts.write("more"), 20) is Verdict.VISIBLE  # its numbers are seen to grow at b1
    posts.lab.partition("b1")
    later = posts.write("later")
    assert posts.verdict(later, 1.5) is Verdict.TIMED_OUT, "what is merely behind was called lost"
    assert posts.verdict(later, 0.5) is Verdict.TIMED_OUT
    with pytest.raises(antipode.ConfigurationError, match="is a replica"):
        MySQLShim.settle(posts.lab.url("b1"), position(later).epoch, position(later).counter)
    posts.lab.create_user("clerk", "", "ALL PRIVILEGES ON antipode.*")
    url = posts.lab.url("b1").replace("root@", "clerk@")
    with pytest.raises(antipode.ConfigurationError, match=r"GRANT REPLICATION CLIENT ON \*\.\* TO"):
        MySQLShim.settle(url, position(later).epoch, position(later).counter)
    posts.lab.heal()
    assert posts.verdict(later, 20) is Verdict.VISIBLE
    assert posts.look(later).stores[STORE].verdict is Verdict.VISIBLE
