"""Positions that no server can have given, and barriers beside them (spec EPOCH-12, BAR-33)."""

from __future__ import annotations

import threading

import antipode
import pytest
from antipode import Verdict
from sql_regions import STORE, Posts, position


def forged(posts: Posts, counter: int) -> antipode.Lineage:
    """A position of the epoch that is written now."""
    return antipode.Lineage([antipode.WriteId.position(STORE, position(posts.write("known")).epoch, counter)])


@pytest.mark.parametrize("counter", [2**63 - 2, 2**63 - 1, 2**64 - 1])
def test_a_number_beyond_any_holds_nobody_else_up(any_posts: Posts, counter: int) -> None:
    """Who waits for it waits alone: the server's own wait refuses what is no number of its own."""
    lineage = forged(any_posts, counter)
    found: list[Verdict] = []
    waits = threading.Thread(target=lambda: found.append(any_posts.verdict(lineage, 3)))
    waits.start()
    while waits.is_alive():
        result = any_posts.look(any_posts.write("beside"), 20)
        assert result.satisfied, result.explain()
        assert result.complete, result.explain()
    assert found[0] in (Verdict.UNPROVEN, Verdict.TIMED_OUT)


@pytest.mark.parametrize("counter", [2**63 - 1, 2**64 - 1])
def test_a_read_that_waits_for_a_number_beyond_any_is_told_so(any_posts: Posts, counter: int) -> None:
    lineage = forged(any_posts, counter)
    reader = any_posts.wrap(any_posts.pymysql("b1", autocommit=True), wait_on_read=True, timeout=0.5)
    with (
        antipode.scope(lineage),
        pytest.raises((antipode.BarrierTimeout, antipode.BarrierUnproven)),
        reader.cursor() as cursor,
    ):
        cursor.execute("SELECT body FROM posts WHERE id = 'known'")


def test_an_epoch_beyond_any_of_mariadb_s_is_not_waited_for(posts: Posts) -> None:
    lineage = antipode.Lineage([antipode.WriteId.position(STORE, f"{2**32}-1", 5)])
    reader = posts.wrap(posts.pymysql("b1", autocommit=True), wait_on_read=True, timeout=0.5)
    with antipode.scope(lineage), pytest.raises(antipode.BarrierUnproven, match="no epoch"), reader.cursor() as cursor:
        cursor.execute("SELECT body FROM posts WHERE id = 'known'")
