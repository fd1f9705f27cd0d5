"""Dry-run's records of reads of a standby that lags, by both kinds of connections (REC)."""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import antipode
import antipode_postgresql
import psycopg
import pytest
import sqlalchemy
from antipode._diagnostics.dryrun import records
from antipode.testing.recorded import DryRunRecording
from antipode_lab.stores.postgresql import PostgresqlStore
from pg_regions import INSERT, STORE, Posts
from psycopg_pool import ConnectionPool

SELECT = "SELECT value FROM posts WHERE key = %s"


@pytest.fixture
def recorded(quiet_lab: PostgresqlStore, tmp_path: Path) -> Iterator[DryRunRecording]:
    quiet_lab.lag("b1", "400ms")
    yield DryRunRecording(tmp_path)
    quiet_lab.lag("b1", "3ms")


def test_reads_of_a_standby_that_lags_are_found(quiet_posts: Posts, recorded: DryRunRecording) -> None:
    """REC-6, REC-12, REC-13: also where a read would wait, which none does here."""
    reader = quiet_posts.wrap("b1", wait_on_read=True, timeout=30)
    with antipode.scope():
        quiet_posts.wrap("a").execute(INSERT, ("private-key",))
        assert reader.execute(SELECT, ("private-key",)).fetchone() is None
        reader.execute("SHOW server_version")
    [record] = recorded.findings()
    assert (record["kind"], record["store"], record["store_kind"]) == ("behind", STORE, "postgresql")
    assert "confirmed" not in record
    assert record["site"].startswith("tests/test_followed_reads.py:")
    assert int(record["wanted"]["counter"]) > 0
    assert 0.05 < record["visible_after"] < 10
    assert "private-key" not in str(recorded.lines())


def test_rows_that_come_one_by_one(quiet_posts: Posts, recorded: DryRunRecording) -> None:
    """REC-12: `stream` has its own way to the server."""
    reader = quiet_posts.wrap("b1")
    with antipode.scope():
        quiet_posts.wrap("a").execute(INSERT, ("stream",))
        assert list(reader.cursor().stream(query=SELECT, params=("stream",))) == []
    recorded.findings()


def by_pool(posts: Posts, url: str) -> Any:
    with ConnectionPool(url, min_size=1, open=True) as plain:
        with antipode_postgresql.wrap(plain, store=STORE).connection() as reader:
            return reader.execute(SELECT, ("private-key",)).fetchall()


def by_engine(posts: Posts, url: str) -> Any:
    engine = sqlalchemy.create_engine(url.replace("postgresql:", "postgresql+psycopg:"))
    try:
        with antipode_postgresql.wrap(engine, store=STORE).connect() as reader:
            return reader.execute(sqlalchemy.text("SELECT value FROM posts")).all()
    finally:
        engine.dispose()


def by_server_cursor(posts: Posts, url: str) -> Any:
    reader: Any = posts.wrap("b1")
    with reader.transaction(), reader.cursor("mine") as cursor:
        return cursor.execute(SELECT, ("private-key",)).fetchall()


def by_client_cursor(posts: Posts, url: str) -> Any:
    reader: Any = posts.wrap("b1")
    reader.cursor_factory = psycopg.ClientCursor
    return reader.cursor().execute(SELECT, ("private-key",)).fetchall()


def prepared(posts: Posts, url: str) -> Any:
    return posts.wrap("b1").execute(SELECT, ("private-key",), prepare=True).fetchall()


@pytest.mark.parametrize(
    "way", [by_pool, by_engine, by_server_cursor, by_client_cursor, prepared], ids=lambda way: str(way.__name__)
)
def test_each_way_to_read_is_behind(
    quiet_posts: Posts, quiet_lab: PostgresqlStore, recorded: DryRunRecording, way: Callable[[Posts, str], Any]
) -> None:
    """REC-6, REC-12: what it read is not asked for; nothing of it is in the record (REC-8)."""
    with antipode.scope():
        quiet_posts.wrap("a").execute(INSERT, ("private-key",))
        assert way(quiet_posts, quiet_lab.url("b1")) == []
    [record] = recorded.findings()
    assert (record["kind"], "confirmed" in record) == ("behind", False)
    assert record["visible_after"] > 0
    assert "private-key" not in str(recorded.lines())


def test_a_pipeline_is_not_followed(quiet_posts: Posts, recorded: DryRunRecording) -> None:
    reader = quiet_posts.wrap("b1")
    with antipode.scope():
        quiet_posts.wrap("a").execute(INSERT, ("pipeline",))
        with reader.pipeline():
            reader.execute(SELECT, ("pipeline",))
    recorded.ended()
    assert recorded.lines("behind", "stale") == []


def test_at_the_end_of_the_process_it_is_behind(quiet_posts: Posts, recorded: DryRunRecording) -> None:
    """REC-15."""
    with antipode.scope():
        quiet_posts.wrap("a").execute(INSERT, ("end",))
        assert quiet_posts.wrap("b1").execute(SELECT, ("end",)).fetchone() is None
    recorded.looked()
    records.end()
    [record] = recorded.findings()
    assert (record["kind"], record["visible_after"]) == ("behind", None)


def test_what_is_there_is_no_finding(quiet_posts: Posts, recorded: DryRunRecording) -> None:
    writer = quiet_posts.wrap("a")
    with antipode.scope():
        writer.execute(INSERT, ("there",))
        assert writer.execute(SELECT, ("there",)).fetchone() == ("v",)
        recorded.ended()
    assert recorded.count("followed_reads") == 1
    assert recorded.lines("behind", "stale") == []


def test_the_asyncio_connection(quiet_posts: Posts, quiet_lab: PostgresqlStore, recorded: DryRunRecording) -> None:
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
