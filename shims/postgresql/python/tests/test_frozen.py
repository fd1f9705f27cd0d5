"""A wait before a read ends by its deadline also where the server is frozen or cut off (SHIM-47)."""

from __future__ import annotations

import asyncio
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from typing import Any

import antipode
import antipode_postgresql
import psycopg
import pytest
from antipode._model.result import BarrierTimeout
from antipode_lab.stores.postgresql import PostgresqlStore
from pg_regions import SLACK_S, STORE, Posts
from psycopg_pool import AsyncConnectionPool, ConnectionPool
from sqlalchemy import create_engine, text
from sqlalchemy.ext.asyncio import create_async_engine

SELECT = "SELECT value FROM posts"
TIMEOUT_S = 0.5


@contextmanager
def frozen(lab: PostgresqlStore, name: str) -> Iterator[None]:
    lab.freeze(name)
    try:
        yield
    finally:
        lab.thaw(name)


def prove_for_long(posts: Posts, name: str, lineage: antipode.Lineage) -> None:
    """What the server was proved to have counts for a minute: only the question on the connection itself is left."""
    antipode.configure(free_path_ttl=60.0)
    posts.comes(name, lineage)


def ends_in_time(read: Callable[[], Any]) -> None:
    began = time.monotonic()
    with pytest.raises(BarrierTimeout, match="wait on read"):
        read()
    assert time.monotonic() - began < TIMEOUT_S + SLACK_S


def by_execute(connection: Any) -> Any:
    return connection.execute(SELECT)


def by_stream(connection: Any) -> Any:
    return list(connection.cursor().stream(SELECT))


def by_copy(connection: Any) -> Any:
    with connection.cursor().copy(f"COPY ({SELECT}) TO STDOUT") as copy:
        return list(copy)


def by_hand(connection: Any) -> Any:
    return psycopg.ClientCursor(connection).execute(SELECT)


def in_a_pipeline(connection: Any) -> Any:
    with connection.pipeline():
        connection.execute("SELECT 1")
        return connection.execute(SELECT)


def by_a_named_cursor(connection: Any) -> Any:
    with connection.cursor("named", withhold=True) as cursor:
        return cursor.execute(SELECT).fetchall()


@pytest.mark.parametrize(
    "way",
    [by_execute, by_stream, by_copy, by_hand, in_a_pipeline, by_a_named_cursor],
    ids=lambda way: way.__name__,
)
@pytest.mark.parametrize("proved", [True, False])
def test_a_frozen_server(
    quiet_posts: Posts, quiet_lab: PostgresqlStore, way: Callable[[Any], Any], proved: bool
) -> None:
    if way in (in_a_pipeline, by_a_named_cursor) and not proved:
        pytest.skip("their ends are questions of psycopg's own")
    reader = quiet_posts.wrap("b1", wait_on_read=True, timeout=TIMEOUT_S)
    lineage = quiet_posts.write("frozen")
    if proved:
        prove_for_long(quiet_posts, "b1", lineage)
    with frozen(quiet_lab, "b1"), antipode.scope(lineage):
        ends_in_time(lambda: way(reader))
    if proved:
        assert reader.closed, "the question is open on it"
    else:
        assert reader.execute("SELECT 7").fetchone() == (7,), "it was not asked, and no answer is open on it"


@pytest.mark.parametrize("reads_before", [True, False])
def test_inside_a_transaction(quiet_posts: Posts, quiet_lab: PostgresqlStore, reads_before: bool) -> None:
    """Where it has read, the question comes first: the snapshot may be kept."""
    reader = quiet_posts.wrap("b1", timeout=TIMEOUT_S)
    lineage = quiet_posts.write("frozen")
    prove_for_long(quiet_posts, "b1", lineage)
    with reader.transaction(force_rollback=True):
        if reads_before:
            reader.execute(SELECT)
        with frozen(quiet_lab, "b1"), antipode.reading(after=lineage):
            ends_in_time(lambda: reader.execute(SELECT))
        assert reader.closed


def test_pools_and_engines(quiet_posts: Posts, quiet_lab: PostgresqlStore) -> None:
    lineage = quiet_posts.write("frozen")
    prove_for_long(quiet_posts, "b1", lineage)
    url = quiet_lab.url("b1")
    engine = create_engine(url.replace("postgresql://", "postgresql+psycopg://"))
    with ConnectionPool(url, min_size=1, open=True) as pool:
        readers = antipode_postgresql.wrap(pool, STORE, wait_on_read=True, timeout=TIMEOUT_S)
        engines = antipode_postgresql.wrap(engine, STORE, wait_on_read=True, timeout=TIMEOUT_S)
        with readers.connection() as pooled, engines.connect() as connection, antipode.scope(lineage):
            with frozen(quiet_lab, "b1"):
                ends_in_time(lambda: pooled.execute(SELECT))
                ends_in_time(lambda: connection.execute(text(SELECT)))
        with readers.connection() as pooled, engines.connect() as connection, antipode.scope(lineage):
            assert pooled.execute(SELECT).fetchall()
            assert connection.execute(text(SELECT)).fetchall()
    engine.dispose()


async def test_asyncio(quiet_posts: Posts, quiet_lab: PostgresqlStore) -> None:
    lineage = quiet_posts.write("frozen")
    prove_for_long(quiet_posts, "b1", lineage)
    url = quiet_lab.url("b1")
    engine = create_async_engine(url.replace("postgresql://", "postgresql+psycopg://"))
    async with AsyncConnectionPool(url, min_size=1, open=False) as pool:
        await pool.open()
        readers = antipode_postgresql.wrap(pool, STORE, wait_on_read=True, timeout=TIMEOUT_S)
        engines = antipode_postgresql.wrap(engine, STORE, wait_on_read=True, timeout=TIMEOUT_S)
        async with readers.connection() as pooled, engines.connect() as connection:
            with antipode.scope(lineage), frozen(quiet_lab, "b1"):
                for read in (lambda: pooled.execute(SELECT), lambda: connection.execute(text(SELECT))):
                    async with asyncio.timeout(TIMEOUT_S + SLACK_S):
                        with pytest.raises(BarrierTimeout, match="wait on read"):
                            await read()
            assert pooled.closed
        async with readers.connection() as pooled:
            with antipode.scope(lineage):
                async with asyncio.timeout(TIMEOUT_S + SLACK_S):
                    with pytest.raises(BarrierTimeout, match="wait on read"):
                        await ain_a_pipeline(pooled, quiet_lab)
    await engine.dispose()


async def ain_a_pipeline(connection: Any, lab: PostgresqlStore) -> None:
    async with connection.pipeline():
        with frozen(lab, "b1"):
            await connection.execute(SELECT)


async def test_a_task_that_is_cancelled_while_we_ask(quiet_posts: Posts, quiet_lab: PostgresqlStore) -> None:
    """No later query takes the answer to our question for its own."""
    lineage = quiet_posts.write("frozen")
    prove_for_long(quiet_posts, "b1", lineage)
    async with await psycopg.AsyncConnection.connect(quiet_lab.url("b1"), autocommit=True) as plain:
        reader = antipode_postgresql.wrap(plain, STORE, wait_on_read=True, timeout=60)
        with antipode.scope(lineage):
            with frozen(quiet_lab, "b1"):
                task = asyncio.create_task(reader.execute("SELECT 1"))
                await asyncio.sleep(0.2)
                task.cancel()
                with pytest.raises(asyncio.CancelledError):
                    await task
            if not reader.closed:
                cursor = await reader.execute("SELECT 7")
                assert await cursor.fetchall() == [(7,)]
