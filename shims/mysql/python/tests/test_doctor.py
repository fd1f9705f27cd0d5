"""What `doctor` finds of a server, and why a store is unproven there (spec SHIM-3, BAR-59)."""

from __future__ import annotations

from dataclasses import replace

import antipode
import antipode_mysql
from antipode import Verdict
from antipode.shim import UnprovenKind
from antipode.shim.administration import Level
from antipode_mysql.shim import MySQLShim
from antipode_mysql.targets import target_of
from sql_regions import STORE, Posts, until


def found(posts: Posts, name: str) -> dict[str, Level]:
    return {finding.what: finding.level for finding in MySQLShim.diagnose(posts.lab.url(name))}


def test_the_lag_of_a_replica_and_one_that_is_cut_off(any_posts: Posts) -> None:
    lab = any_posts.lab
    lab.wait_links()
    assert [level for what, level in found(any_posts, "b1").items() if what.startswith("lag: ")] == [Level.OK]
    assert not [what for what in found(any_posts, "a") if "lag" in what or "cut off" in what]
    for stop, start, words in (
        (lab.stop_receiver, lab.start_receiver, "it is cut off from its primary 127.0.0.1:"),
        (lab.stop_replica, lab.start_replica, "it is cut off from its primary 127.0.0.1:"),
    ):
        lab.run("b1", stop)
        try:
            assert [level for what, level in found(any_posts, "b1").items() if what.startswith(words)] == [
                Level.WARNING
            ]
        finally:
            lab.run("b1", start)
        until(lambda: any(what.startswith("lag: ") for what in found(any_posts, "b1")), 60)


def test_a_view_that_may_write_is_named(any_posts: Posts) -> None:
    """SHIM-43: no text shows it."""
    any_posts.lab.run(
        "a",
        "CREATE FUNCTION IF NOT EXISTS note() RETURNS INT MODIFIES SQL DATA RETURN 1",
        "CREATE OR REPLACE VIEW noting AS SELECT note() AS n",
    )
    try:
        assert found(any_posts, "a")["views call functions that may write: lab.noting"] is Level.WARNING
    finally:
        any_posts.lab.run("a", "DROP VIEW noting", "DROP FUNCTION note")


def test_a_login_that_is_refused_is_no_lost_write(any_posts: Posts) -> None:
    """BAR-59: at once, with the server's words, and no advice to settle or to wait."""
    lab = any_posts.lab
    refused = replace(target_of(lab.url("b1")), user="nobody", password="wrong")
    lineage = any_posts.write("refused")
    with antipode.testing.isolated():
        antipode_mysql.register(STORE, replicas=[{"host": refused.host, "port": refused.port, "user": "nobody"}])
        result = any_posts.look(lineage, 60).stores[STORE]
        assert (result.verdict, result.kind) == (Verdict.UNPROVEN, UnprovenKind.CONNECTION)
        assert "does not let this login in" in result.reason
        assert "settle" not in result.reason
    [finding] = MySQLShim.diagnose(refused)
    assert "does not let this login in" in finding.what
