"""What operators are told of a server, `antipode init`, and epochs settled by hand (SHIM-3, EPOCH-22 to EPOCH-24)."""

from __future__ import annotations

import pytest
from antipode import ConfigurationError, Lineage, Verdict
from antipode.shim.administration import Administration, InitRequest, Level, StorePreparer, administration_of
from antipode_lab.stores._sql_store import SqlStore
from antipode_mysql.shim import MySQLShim
from sql_regions import Posts, position, until

ALL = 2**64 - 1


def levels(url: str) -> dict[str, Level]:
    return {finding.what: finding.level for finding in MySQLShim.diagnose(url)}


def initialise(lab: SqlStore, **options: str) -> None:
    """What an operator does by `antipode init … --run`, twice."""
    lab.create_user("reader", "")
    for _ in range(2):
        for step in MySQLShim.preparations(lab.url("a"), InitRequest("blog-posts", "reader", options)):
            assert step.run is not None
            assert step.run() == "done"


def test_init_and_doctor(fresh_posts: Posts) -> None:
    lab = fresh_posts.lab
    assert isinstance(MySQLShim, Administration)
    assert isinstance(MySQLShim, StorePreparer)
    assert administration_of(lab.url("a")) is MySQLShim
    initialise(lab, table="lab.posts")
    refused = MySQLShim.preparations(lab.url("b1"), InitRequest("blog-posts", "reader"))[0].run
    assert refused is not None
    with pytest.raises(ConfigurationError, match="read-only"):
        refused()
    for name in ("a", "b1"):
        assert set(levels(lab.url(name)).values()) == {Level.OK}, levels(lab.url(name))
    lab.config("b1", "sync_binlog", "0")
    [bad] = [what for what, level in levels(lab.url("b1")).items() if level is Level.UNPROVEN]
    assert "sync_binlog" in bad
    lab.config("b1", "sync_binlog", "1")
    lab.config("a", "gtid_strict_mode", "OFF")
    assert levels(lab.url("a"))["gtid_strict_mode=OFF"] is Level.WARNING


def lost_tail(posts: Posts) -> Lineage:
    """What the first primary wrote and nobody else has; the promoted one has written behind it."""
    lost: list[Lineage] = []
    posts.lab.promote("b1", lose=lambda _: lost.append(posts.write("lost", at="a")))
    assert posts.verdict(posts.write("after"), 20) is Verdict.VISIBLE
    assert posts.look(lost[0], 20).stores["blog-posts"].verdict is Verdict.UNPROVEN
    return lost[0]


def test_an_operator_settles_an_epoch(fresh_posts: Posts) -> None:
    """EPOCH-24; and where nobody has settled anything, nothing of ours is written (EPOCH-23)."""
    lab = fresh_posts.lab
    initialise(lab)
    before = lab.run("a", "SELECT @@GLOBAL.gtid_binlog_pos")[0][0].rpartition("-")[2]
    kept = [fresh_posts.write(f"kept-{number}") for number in range(20)]
    assert fresh_posts.verdict(kept[-1], 20) is Verdict.VISIBLE
    assert position(kept[-1]).counter == int(before) + len(kept), "its own writes alone are in the log"
    lost = lost_tail(fresh_posts)
    epoch, current = position(lost).epoch, position(fresh_posts.write("now")).epoch
    url = lab.url("b1")
    for wrong, at, words in (
        (current, url, "written in"),
        ("nonsense", url, "no MariaDB epoch"),
        (epoch, lab.url("b2"), "replica"),
    ):
        with pytest.raises(ConfigurationError, match=words):
            MySQLShim.settle(at, wrong)
    MySQLShim.settle(url, epoch)
    records = {record.epoch: record for record in MySQLShim.epochs(url)}
    assert records[epoch].settled
    assert records[current].current
    until(lambda: fresh_posts.verdict(lost, 5) is Verdict.VISIBLE)


def test_a_table_that_came_with_a_dump_does_not_settle_what_is_written_here(fresh_posts: Posts) -> None:
    """EPOCH-22: in another system the same number is another server, which writes now."""
    lab = fresh_posts.lab
    initialise(lab)
    written = position(fresh_posts.write("here"))
    lab.run("a", f"INSERT INTO antipode.epochs VALUES ('{written.epoch}', {ALL})")  # as a restored dump does
    lab.partition("b1")
    later = fresh_posts.write("later")
    assert fresh_posts.verdict(later, 1.5) is not Verdict.VISIBLE, "it passed by a mark of another system"
    assert fresh_posts.shows("b1", "later") is None
    lab.heal()
    assert fresh_posts.verdict(later, 20) is Verdict.VISIBLE
