"""The traps of MySQL's positions, each on real servers (spec EPOCH-6, EPOCH-7, EPOCH-30)."""

from __future__ import annotations

from typing import Any

import antipode
import antipode_mysql
import pytest
from antipode import UnfitStoreError, Verdict
from antipode.shim.administration import InitRequest, Level
from antipode_lab.stores.mysql import MySQLStore
from antipode_mysql.shim import MySQLShim
from sql_regions import STORE, Posts, lose, never, position, until

pytestmark = pytest.mark.stores


def test_a_lost_tail_never_passes_and_a_switch_back_under_the_same_uuid_does(fresh_mysql: Posts) -> None:
    posts = fresh_mysql
    kept, lost = lose(posts, 5)
    new = [posts.write(f"new-{number}") for number in range(8)]
    assert posts.verdict(new[-1] | kept, 20) is Verdict.VISIBLE
    for lineage in lost:
        never(posts, lineage)
    epoch = position(new[0]).epoch
    posts.lab.heal(wait=False)
    posts.lab.promote("b2", lose=0)
    posts.lab.repoint("b1", "b2")
    assert posts.verdict(posts.write("middle"), 20) is Verdict.VISIBLE
    posts.lab.promote("b1", lose=0)  # it had lost nothing: its uuid goes on
    posts.lab.repoint("b2", "b1")
    again = posts.write("again")
    assert position(again).epoch == epoch
    assert posts.verdict(again, 20) is Verdict.VISIBLE
    for lineage in lost:
        never(posts, lineage)


@pytest.mark.parametrize("fresh_mysql", [{"fresh_server_ids": False}], indirect=True)
def test_a_uuid_that_is_used_again_proves_nothing(fresh_mysql: Posts) -> None:
    posts = fresh_mysql
    kept, lost = lose(posts, 4)
    posts.lab.heal(wait=False)
    posts.lab.repoint("a", "b1")  # built anew under its old uuid, as a clone is
    posts.lab.promote("a", lose=0)
    posts.lab.repoint("b1", "a")
    again = [posts.write(f"again-{number}") for number in range(6)]
    assert position(lost[0]) in [position(lineage) for lineage in again], "two writes have one name"
    until(lambda: posts.shows("b2", "again-5"))
    assert posts.shows("b2", "lost-0") is None
    assert posts.verdict(lost[0], 20) is Verdict.VISIBLE, "the false statement passes what was lost"
    with antipode.testing.isolated():
        posts = Posts(posts.lab, fresh_server_ids=False)
        posts.at("b2")
        for lineage in (kept, lost[0], again[-1]):
            result = posts.look(lineage, 20).stores[STORE]
            assert result.verdict is Verdict.UNPROVEN
            assert "new auto.cnf" in result.reason


def test_what_an_errant_server_has_is_visible_there_alone(fresh_mysql: Posts) -> None:
    """The old primary comes back with its lost writes: the server has them, so its own barrier says so, no other's."""
    posts = fresh_mysql
    _, lost = lose(posts, 2)
    posts.lab.heal(wait=False)
    posts.lab.repoint("a", "b1", rebuild=False)
    after = posts.write("after")
    assert posts.verdict(after, 20) is Verdict.VISIBLE
    never(posts, lost[0])
    with antipode.testing.isolated():
        antipode_mysql.register(STORE, replicas=[posts.lab.url("a")], fresh_server_ids=True)
        assert posts.verdict(lost[0] | after, 20) is Verdict.VISIBLE
        assert posts.shows("a", "lost-0") == "v"


@pytest.mark.servers("mysql")
@pytest.mark.parametrize(
    ("config", "words"),
    [
        ({"sync-binlog": "0"}, "SET PERSIST sync_binlog=1"),
        ({"gtid-mode": "OFF", "enforce-gtid-consistency": "OFF"}, "gtid_mode=OFF"),
        ({"replicate-ignore-db": "other"}, "replicate_ignore_db=other"),
        ({"binlog-ignore-db": "other"}, "binlog_ignore_db=other"),
        ({"replica-skip-errors": "1062"}, "replica_skip_errors=1062"),
        ({"replica-preserve-commit-order": "OFF", "replica-parallel-workers": "4"}, "preserve_commit_order=ON"),
        ({"loose-group-replication-group-name": "x", "skip-log-bin": "1", "log-replica-updates": "OFF"}, "log_bin=OFF"),
    ],
)
def test_settings_that_make_positions_lie_are_refused(lab_factory: Any, config: dict[str, str], words: str) -> None:
    lab = lab_factory("mysql", replicas=1, lag="2ms").get(MySQLStore)
    lab.context.supervisor.stop(lab.process("b1"))
    lab.options.server_config["b1"] = config
    lab._spawn("b1")
    lab._wait_answers("b1")
    with pytest.raises(UnfitStoreError, match=words):
        antipode_mysql.wrap(lab.client("a"), store="s", replicas=[lab.url("b1")], fresh_server_ids=True)
    assert any(words in f"{finding.what} {finding.cure}" for finding in MySQLShim.diagnose(lab.url("b1")))


def test_a_hole_that_stays_is_never_passed(fresh_mysql: Posts) -> None:
    """A number behind a hole proves itself alone: what the position stands for may be in the hole."""
    posts = fresh_mysql
    assert posts.verdict(posts.write("before"), 20) is Verdict.VISIBLE
    uuid, number = posts.lab.run("a", "SELECT @@server_uuid")[0][0], posts.last().counter
    with posts.lab.client("a") as client, client.cursor() as cursor:
        cursor.execute(f"SET gtid_next='{uuid}:{number + 3}'")
        cursor.execute("REPLACE INTO posts VALUES ('far', 'v')")
    until(lambda: posts.shows("b1", "far") and posts.shows("b2", "far"))
    never(posts, antipode.Lineage([antipode.WriteId.position(STORE, posts.last().epoch, number + 3)]))
    filled = [posts.write(f"fills-{each}") for each in range(3)]  # the smallest free numbers are given next
    assert posts.verdict(filled[-1], 20) is Verdict.VISIBLE
    found = antipode.Lineage([antipode.WriteId.position(STORE, posts.last().epoch, number + 3)])
    assert posts.verdict(found, 20) is Verdict.VISIBLE


def test_init_doctor_and_an_epoch_that_is_settled(fresh_mysql: Posts) -> None:
    """SHIM-3, EPOCH-24."""
    lab = fresh_mysql.lab
    lab.create_user("reader", "")
    for _ in range(2):
        for step in MySQLShim.preparations(lab.url("a"), InitRequest("p", "reader", {"table": "lab.posts"})):
            assert step.run is not None
            assert step.run() == "done"
    lab.wait_links()
    assert {finding.level for finding in MySQLShim.diagnose(lab.url("b1"))} == {Level.OK}
    [old] = MySQLShim.epochs(lab.url("a"))
    lab.promote("b1", lose=1)
    lab.run("b1", "INSERT INTO posts (id, body) VALUES ('new', 'v')")
    current = next(record for record in MySQLShim.epochs(lab.url("b1")) if record.current)
    for wrong, words in (("0-1", "no MySQL epoch"), (current.epoch, "written in")):
        with pytest.raises(antipode.ConfigurationError, match=words):
            MySQLShim.settle(lab.url("b1"), wrong, 9)
    MySQLShim.settle(lab.url("b1"), old.epoch, old.counter + 1)
    found = next(record for record in MySQLShim.epochs(lab.url("b1")) if record.epoch == old.epoch)
    assert (found.counter, found.detail) == (old.counter + 1, "settled by hand")
