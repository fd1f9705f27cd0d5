"""Connections that a pool holds, and that lead elsewhere than its words: they are judged before their first use."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator, Iterator
from contextlib import asynccontextmanager, contextmanager
from typing import Any

import antipode
import antipode_postgresql
import psycopg
import pytest
import sqlalchemy
from antipode._engine import discovery
from antipode.testing import isolated
from antipode_lab.stores.postgresql import PostgresqlStore
from pg_regions import INSERT, STORE, until
from psycopg.conninfo import conninfo_to_dict
from psycopg_pool import AsyncConnectionPool, ConnectionPool
from sqlalchemy.ext.asyncio import create_async_engine
from sqlalchemy.pool import AssertionPool, SingletonThreadPool, StaticPool

POOLS: dict[str, Any] = {
    "queue": {},
    "thread": {"poolclass": SingletonThreadPool},
    "static": {"poolclass": StaticPool},
    "assertion": {"poolclass": AssertionPool},
}


def address(lab: PostgresqlStore, name: str) -> str:
    return lab.url(name).replace("app@", "")


def assert_judged(lab: PostgresqlStore, name: str) -> None:
    """A barrier is never satisfied while a server lacks a write, and is when it has it."""
    lab.wait_caught_up(name)
    with lab.connect(name) as operator, lab.connect("a", user="app") as plain:
        operator.execute("SELECT pg_wal_replay_pause()")
        try:
            with antipode.scope() as scope:
                writer = antipode_postgresql.wrap(plain, STORE)
                writer.execute(INSERT, ("1",))
                writer.commit()
                assert not antipode.barrier(timeout=1, on_timeout="proceed", on_unproven="proceed").satisfied
                operator.execute("SELECT pg_wal_replay_resume()")
                found = antipode.barrier(scope.lineage, timeout=30).stores[STORE]
        finally:
            operator.execute("SELECT pg_wal_replay_resume()")
            plain.execute("DELETE FROM posts")
            plain.commit()
    assert address(lab, name) in [server.address for server in found.servers]


@contextmanager
def changed_before(lab: PostgresqlStore) -> Iterator[Any]:
    with ConnectionPool(lab.url("b1"), min_size=1, open=True) as pool:
        pool.wait(30)
        pool.conninfo = lab.url("a")
        yield antipode_postgresql.wrap(pool, STORE)


@contextmanager
def changed_and_changed_back(lab: PostgresqlStore) -> Iterator[Any]:
    with ConnectionPool(lab.url("a"), min_size=1, max_size=2, open=True) as pool:
        wrapped = antipode_postgresql.wrap(pool, STORE)
        pool.wait(30)
        pool.kwargs = dict(conninfo_to_dict(lab.url("b1")))
        pool.resize(2, 2)
        until(lambda: len(pool._pool) == 2)
        pool.kwargs = {}
        yield wrapped


@pytest.mark.parametrize("pool", [changed_before, changed_and_changed_back])
def test_a_pool_whose_words_were_changed(quiet_lab: PostgresqlStore, pool: Any) -> None:
    """BAR-68: its idle connections lead where they were opened, whatever its words say by now."""
    with isolated(), pool(quiet_lab):
        assert_judged(quiet_lab, "b1")


async def test_a_pool_of_asyncio(quiet_lab: PostgresqlStore) -> None:
    """BAR-68."""
    with isolated():
        async with AsyncConnectionPool(quiet_lab.url("b1"), min_size=1, open=False) as pool:
            await pool.wait(30)
            pool.conninfo = quiet_lab.url("a")
            kept = antipode_postgresql.wrap(pool, STORE)
            await asyncio.to_thread(assert_judged, quiet_lab, "b1")
            del kept


@pytest.mark.parametrize("kind", POOLS)
@pytest.mark.parametrize("by", ["do_connect", "creator"])
def test_an_engine_whose_connections_led_elsewhere(quiet_lab: PostgresqlStore, kind: str, by: str) -> None:
    """BAR-68: by a listener that is gone, or a creator that decides anew."""
    leads = {"to": "b1"}
    options = dict(POOLS[kind])

    def connect(dialect: Any, record: Any, arguments: Any, words: Any) -> None:
        words.update(conninfo_to_dict(quiet_lab.url(leads["to"])))

    if by == "creator":
        options["creator"] = lambda: psycopg.connect(quiet_lab.url(leads["to"]))
    with isolated():
        engine = sqlalchemy.create_engine(quiet_lab.url("a").replace("postgresql:", "postgresql+psycopg:"), **options)
        if by == "do_connect":
            sqlalchemy.event.listen(engine, "do_connect", connect)
        with engine.connect() as connection:
            connection.execute(sqlalchemy.text("SELECT 1"))
        leads["to"] = "a"
        if by == "do_connect":
            sqlalchemy.event.remove(engine, "do_connect", connect)
        kept = antipode_postgresql.wrap(engine, STORE)
        assert_judged(quiet_lab, "b1")
        engine.dispose()
        del kept


@asynccontextmanager
async def warm(lab: PostgresqlStore) -> AsyncIterator[Any]:
    """An asyncio engine with an idle connection to b1, that leads to a from then on."""
    leads = {"to": "b1"}
    engine = create_async_engine(
        "postgresql+psycopg_async://nowhere.invalid",
        async_creator=lambda: psycopg.AsyncConnection.connect(lab.url(leads["to"])),
    )
    async with engine.connect() as connection:
        await connection.execute(sqlalchemy.text("SELECT 1"))
    leads["to"] = "a"
    yield engine
    await engine.dispose()


async def test_an_asyncio_engine(quiet_lab: PostgresqlStore) -> None:
    """BAR-68."""
    with isolated():
        async with warm(quiet_lab) as engine:
            kept = antipode_postgresql.wrap(engine, STORE)
            await asyncio.to_thread(assert_judged, quiet_lab, "b1")
            del kept


def test_idle_connections_that_are_closed(quiet_lab: PostgresqlStore, monkeypatch: pytest.MonkeyPatch) -> None:
    """BAR-68, BAR-62: their server is judged no more, and one that is closed already fails no barrier."""
    monkeypatch.setattr(discovery, "REFRESH_S", 0.0)
    with isolated(), changed_before(quiet_lab) as pool:
        assert address(quiet_lab, "b1") in antipode.stores()[0].replicas
        for connection in pool._pool:
            connection.close()
        until(lambda: antipode.stores()[0].replicas == (address(quiet_lab, "a"),), 60)
        again = antipode_postgresql.wrap(pool, STORE)
        assert antipode.stores()[0].replicas == (address(quiet_lab, "a"),)
        del again
