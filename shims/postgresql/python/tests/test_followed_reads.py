"""Dry-run's records of reads of a standby that lags, by both kinds of connections (REC)."""

from __future__ import annotations

import asyncio
from collections.abc import Iterator
from pathlib import Path

import antipode
import antipode_postgresql
import psycopg
import pytest
from antipode.testing.recorded import Recorded
from antipode_lab.stores.postgresql import PostgresqlStore
from pg_regions import INSERT, STORE, Posts

SELECT = "SELECT value FROM posts WHERE key = %s"


@pytest.fixture
def recorded(quiet_lab: PostgresqlStore, tmp_path: Path) -> Iterator[Recorded]:
    quiet_lab.lag("b1", "400ms")
    yield Recorded(tmp_path)
    quiet_lab.lag("b1", "3ms")


def test_reads_of_a_standby_that_lags_are_found(quiet_posts: Posts, recorded: Recorded) -> None:
    """REC-6, REC-12, REC-13: also where a read would wait, which none does here."""
    reader = quiet_posts.wrap("b1", wait_on_read=True, timeout=30)
    with antipode.scope():
        quiet_posts.wrap("a").execute(INSERT, ("private-key",))
        assert reader.execute(SELECT, ("private-key",)).fetchone() is None
        reader.execute("SHOW server_version")
    [record] = recorded.findings()
    assert (record["store"], record["store_kind"]) == (STORE, "postgresql")
    assert record["site"].startswith("tests/test_followed_reads.py:")
    assert int(record["wanted"]["counter"]) > 0
    assert 0.05 < record["visible_after"] < 10
    assert "private-key" not in str(recorded.lines())


def test_rows_that_come_one_by_one(quiet_posts: Posts, recorded: Recorded) -> None:
    """REC-12: `stream` has its own way to the server."""
    reader = quiet_posts.wrap("b1")
    with antipode.scope():
        quiet_posts.wrap("a").execute(INSERT, ("stream",))
        assert list(reader.cursor().stream(query=SELECT, params=("stream",))) == []
    recorded.findings()


def test_what_is_there_is_no_finding(quiet_posts: Posts, recorded: Recorded) -> None:
    writer = quiet_posts.wrap("a")
    with antipode.scope():
        writer.execute(INSERT, ("there",))
        assert writer.execute(SELECT, ("there",)).fetchone() == ("v",)
        recorded.ended()
    assert recorded.count("followed_reads") == 1
    assert recorded.lines("behind", "stale") == []


def test_the_asyncio_connection(quiet_posts: Posts, quiet_lab: PostgresqlStore, recorded: Recorded) -> None:
    async def run() -> None:
        plain = await psycopg.AsyncConnection.connect(quiet_lab.url("b1"), autocommit=True)
        reader = antipode_postgresql.wrap(plain, store=STORE)
        with antipode.scope():
            quiet_posts.wrap("a").execute(INSERT, ("async",))
            assert await (await reader.execute(SELECT, ("async",))).fetchone() is None
            assert [row async for row in reader.cursor().stream(SELECT, ("async",))] == []
        await plain.close()

    asyncio.run(run())
    recorded.findings(2)
