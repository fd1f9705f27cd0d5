"""A server that may lose what it acknowledged or applied is unfit (spec SHIM-45)."""

from __future__ import annotations

import antipode
import antipode_mysql
import pytest
from antipode import UnfitStoreError, Verdict
from antipode.shim import UnprovenKind
from antipode.shim.administration import Level
from antipode_mysql.shim import MySQLShim
from sql_regions import STORE, Posts


@pytest.mark.parametrize("name", ["a", "b1"])
@pytest.mark.parametrize("setting", ["sync_binlog", "innodb_flush_log_at_trx_commit"])
@pytest.mark.parametrize("value", ["0", "2"])
def test_a_server_that_may_lose_what_it_has_is_unfit(any_posts: Posts, name: str, setting: str, value: str) -> None:
    if any_posts.tracked:
        pytest.skip("it is the server's setting")
    lab, words = any_posts.lab, f"{setting}={value}, so behind a crash"
    everywhere = [lab.url(each) for each in ("a", "b1", "b2")]
    lab.config(name, setting, value)
    try:
        with pytest.raises(UnfitStoreError, match=f"{words}.*relaxed_durability=True"):
            antipode_mysql.wrap(lab.client("a"), store="refused", replicas=everywhere, fresh_server_ids=True)
        with pytest.raises(UnfitStoreError, match=words):
            antipode_mysql.register("read", replicas=everywhere, fresh_server_ids=True)
        found = [one for one in MySQLShim.diagnose(lab.url(name)) if one.level is Level.UNPROVEN]
        assert [words in one.what for one in found] == [True]
        assert "relaxed_durability=True" in found[0].cure
        with antipode.testing.isolated():
            unproven = Posts(lab, on_unfit="unproven")
            lineage = unproven.write("durable")
            assert not lineage.is_complete() if name == "a" else lineage.is_complete()
            if name != "a":
                result = unproven.look(lineage, 60).stores[STORE]
                assert (result.verdict, result.kind) == (Verdict.UNPROVEN, UnprovenKind.UNFIT)
        with antipode.testing.isolated():
            accepted = Posts(lab, relaxed_durability=True)
            assert accepted.verdict(accepted.write("accepted"), 60) is Verdict.VISIBLE
    finally:
        lab.config(name, setting, "1")


def test_a_stricter_flush_is_no_weaker_one(any_posts: Posts) -> None:
    """MariaDB's 3 flushes twice."""
    if any_posts.lab.kind == "mysql":
        pytest.skip("MySQL has no such value")
    any_posts.lab.config("b1", "innodb_flush_log_at_trx_commit", "3")
    try:
        assert any_posts.verdict(any_posts.write("twice"), 60) is Verdict.VISIBLE
    finally:
        any_posts.lab.config("b1", "innodb_flush_log_at_trx_commit", "1")
