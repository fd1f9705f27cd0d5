"""Wrapped pools and SQLAlchemy engines (spec SHIM)."""

from __future__ import annotations

import asyncio
import gc
import itertools
from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any, cast
from uuid import uuid4

import antipode
import antipode_postgresql
import psycopg
import pytest
import sqlalchemy
from antipode._engine import discovery
from antipode._engine.store_servers import RegionStore
from antipode.testing import isolated
from antipode_lab.stores.postgresql import PostgresqlStore
from pg_regions import INSERT, STORE, Posts, proved, until
from psycopg.conninfo import conninfo_to_dict, make_conninfo
from psycopg_pool import AsyncConnectionPool, ConnectionPool, NullConnectionPool
from sqlalchemy.ext.asyncio import create_async_engine


def test_pools(quiet_lab: PostgresqlStore, quiet_posts: Posts) -> None:
    with ConnectionPool(quiet_lab.url("a"), min_size=1, max_size=2, open=True) as plain:
        pool = antipode_postgresql.wrap(plain, STORE, replicas=[quiet_lab.url("b1")])
        assert isinstance(pool, ConnectionPool)
        with antipode.scope() as scope:
            with pool.connection() as connection:
                connection.execute(INSERT, ("1",))
                assert scope.pending
            first = proved(scope)
            with plain.connection() as connection:
                connection.execute(INSERT, ("2",))
            assert proved(scope) == first
            connection = pool.getconn()
            connection.execute(INSERT, ("3",))
            pool.putconn(connection)  # with a transaction open: the pool rolls back
            assert not scope.pending
            with pytest.raises(ZeroDivisionError), pool.connection() as connection:  # noqa: PT012
                connection.execute(INSERT, ("4",))
                raise ZeroDivisionError
            assert proved(scope) == first
            assert antipode.barrier(timeout=10).satisfied


def test_whose_block_of_a_pool_ends(quiet_lab: PostgresqlStore, quiet_posts: Posts) -> None:
    """SCOPE-24: it commits."""
    with ConnectionPool(quiet_lab.url("a"), min_size=1, open=True) as plain:
        block = antipode_postgresql.wrap(plain, STORE, replicas=[quiet_lab.url("b1")]).connection()
        with antipode.scope():
            block.__enter__().execute(INSERT, ("1",))
        with antipode.scope() as committing:
            block.__exit__(None, None, None)
            assert proved(committing)


async def test_async_pools(quiet_lab: PostgresqlStore, quiet_posts: Posts) -> None:
    async with AsyncConnectionPool(quiet_lab.url("a"), min_size=1, open=False) as plain:
        pool = antipode_postgresql.wrap(plain, STORE, replicas=[quiet_lab.url("b1")])
        with antipode.scope() as scope:
            async with pool.connection() as connection:
                await connection.execute(INSERT, ("1",))
            assert proved(scope)


def test_an_engines_pool_records(quiet_lab: PostgresqlStore, quiet_posts: Posts) -> None:
    """SHIM-44: what is derived from a wrapped client is wrapped."""
    engine = antipode_postgresql.wrap(
        sqlalchemy.create_engine(quiet_lab.url("a").replace("postgresql://", "postgresql+psycopg://")), STORE
    )
    assert isinstance(engine.pool, sqlalchemy.Pool)
    with antipode.scope() as scope:
        fairy = engine.pool.connect()
        fairy.cursor().execute(INSERT, ("1",))
        assert scope.pending
        fairy.commit()
        fairy.close()
        assert proved(scope)
    engine.dispose()  # which gives the engine another pool
    with antipode.scope() as scope:
        fairy = engine.pool.connect()
        fairy.cursor().execute(INSERT, ("2",))
        fairy.commit()
        assert proved(scope)
        fairy.close()
    engine.dispose()


def test_sqlalchemy_engines(quiet_lab: PostgresqlStore, quiet_posts: Posts) -> None:
    url = quiet_lab.url("a").replace("postgresql://", "postgresql+psycopg://")
    plain = sqlalchemy.create_engine(url)
    engine = antipode_postgresql.wrap(plain, STORE, replicas=[quiet_lab.url("b1")])
    insert = sqlalchemy.text("INSERT INTO posts (key, value) VALUES (:key, 'v')")
    try:
        with antipode.scope() as scope:
            with engine.begin() as connection:
                connection.execute(insert, [{"key": "1"}, {"key": "2"}])
                assert scope.pending
            first = proved(scope)
            with plain.begin() as connection:
                connection.execute(insert, {"key": "3"})
            with engine.connect() as connection:
                assert connection.execute(sqlalchemy.text("SELECT count(*) FROM posts")).scalar() == 3
                connection.execute(insert, {"key": "4"})
                connection.rollback()
            assert proved(scope) == first
            with engine.connect().execution_options(isolation_level="AUTOCOMMIT") as connection:
                connection.execute(insert, {"key": "5"})
            assert proved(scope) > first
            assert antipode.barrier(timeout=10).satisfied
    finally:
        plain.dispose()


async def test_async_sqlalchemy_engines(quiet_lab: PostgresqlStore, quiet_posts: Posts) -> None:
    plain = create_async_engine(quiet_lab.url("a").replace("postgresql://", "postgresql+psycopg_async://"))
    engine = antipode_postgresql.wrap(plain, STORE, replicas=[quiet_lab.url("b1")])
    try:
        with antipode.scope() as scope:
            async with engine.begin() as connection:
                await connection.execute(sqlalchemy.text("INSERT INTO posts (key, value) VALUES ('1', 'v')"))
            assert proved(scope)
    finally:
        await plain.dispose()


@contextmanager
def unused(kind: str, url: str) -> Iterator[Any]:
    """A wrapped client that has handed out no connection yet."""
    driver = url.replace("postgresql://", "postgresql+psycopg://")
    match kind:
        case "pool":
            client: Any = ConnectionPool(url, min_size=1, open=True)
        case "pool, not open":
            client = ConnectionPool(url.replace("app@", ""), kwargs={"user": "app"}, open=False)
        case "asyncio's pool":
            client = AsyncConnectionPool(url, open=False)
        case "engine":
            client = sqlalchemy.create_engine(driver)
        case "engine, connect_args":
            client = sqlalchemy.create_engine("postgresql+psycopg://", connect_args=conninfo_to_dict(url))
        case _:
            client = create_async_engine(driver)
    yield antipode_postgresql.wrap(client, STORE)
    if isinstance(client, ConnectionPool):
        client.close()


KINDS = ["pool", "pool, not open", "asyncio's pool", "engine", "engine, connect_args", "asyncio's engine"]


@pytest.mark.parametrize("kind", KINDS)
def test_a_barrier_before_a_client_is_used(quiet_lab: PostgresqlStore, kind: str) -> None:
    """BAR-52: the reader's server is known from what the client is; it is never left out for it was not used yet."""
    with isolated(), unused(kind, quiet_lab.url("b1")), quiet_lab.connect("b1") as operator:
        assert antipode.stores()[0].replicas == (quiet_lab.url("b1").replace("app@", ""),)
        with unused("pool", quiet_lab.url("a")) as writer, antipode.scope():
            with quiet_lab.connect("a", user="app") as plain:
                plain.execute("DELETE FROM posts")
            quiet_lab.wait_caught_up("b1")
            operator.execute("SELECT pg_wal_replay_pause()")
            try:
                with writer.connection() as connection:
                    connection.execute(INSERT, ("1",))
                result = antipode.barrier(timeout=0.3, on_timeout="proceed")
                assert not result.satisfied
            finally:
                operator.execute("SELECT pg_wal_replay_resume()")
            result = antipode.barrier(timeout=30)
            assert result.complete
            assert len(antipode.stores()[0].replicas) == 2
            with quiet_lab.connect("b1", user="app") as plain:
                assert plain.execute("SELECT count(*) FROM posts").fetchone() == (1,)


def told_when_asked(url: str) -> Any:
    """Clients of which only connecting tells where they lead."""
    words = conninfo_to_dict(url)
    several = {**words, "host": f"{words['host']},127.0.0.1", "port": f"{words['port']},1"}
    conninfo = make_conninfo("", **several, target_session_attrs="read-write")

    class Elsewhere(psycopg.Connection[Any]):
        @classmethod
        def connect(cls, conninfo: str = "", **options: Any) -> Any:
            return super().connect(url, **options)

    class ElsewhereToo(psycopg.AsyncConnection[Any]):
        @classmethod
        async def connect(cls, conninfo: str = "", **options: Any) -> Any:
            return await super().connect(url, **options)

    nowhere = "postgresql://nowhere.invalid/app"
    return {
        "class": lambda: ConnectionPool(nowhere, connection_class=Elsewhere, open=False),
        "asyncio's class": lambda: AsyncConnectionPool(nowhere, connection_class=ElsewhereToo, open=False),
        "callable": lambda: ConnectionPool(lambda: url, open=False),
        "asyncio's callable": lambda: AsyncConnectionPool(lambda: asyncio.sleep(0, url), open=False),
        "several hosts": lambda: ConnectionPool(conninfo, open=False),
        "creator": lambda: sqlalchemy.create_engine("postgresql+psycopg://", creator=lambda: psycopg.connect(url)),
        "asyncio's hook": lambda: hooked(create_async_engine("postgresql+psycopg_async://nowhere.invalid"), url),
        "hook": lambda: hooked(sqlalchemy.create_engine("postgresql+psycopg://nowhere.invalid"), url),
    }


def hooked(engine: Any, url: str) -> Any:
    """An engine whose connections go where a listener of the application's says."""

    def connect(dialect: Any, record: Any, arguments: Any, options: Any) -> None:
        options.update(conninfo_to_dict(url))

    sqlalchemy.event.listen(getattr(engine, "sync_engine", engine), "do_connect", connect)
    return engine


@pytest.mark.parametrize(
    "kind",
    [
        "callable",
        "asyncio's callable",
        "class",
        "asyncio's class",
        "several hosts",
        "creator",
        "hook",
        "asyncio's hook",
    ],
)
def test_a_client_of_which_only_connecting_tells(quiet_lab: PostgresqlStore, kind: str) -> None:
    """BAR-52: it is asked for by whoever waits, on a connection of its own."""
    with isolated():
        client = told_when_asked(quiet_lab.url("a"))[kind]()
        wrapped = antipode_postgresql.wrap(client, STORE)
        writer = antipode_postgresql.wrap(quiet_lab.connect("a", user="app"), "other")
        with antipode.scope():
            writer.execute("DELETE FROM posts")
            position = antipode.current_scope().lineage.of_store("other")[0].version  # type: ignore[union-attr]
        lineage = antipode.Lineage([antipode.WriteId(STORE, b"", position)])
        assert antipode.barrier(lineage, timeout=30).complete
        assert antipode.stores()[0].replicas == (quiet_lab.url("a").replace("app@", ""),)
        del wrapped


def test_a_client_that_leads_nowhere_is_not_left_out(quiet_lab: PostgresqlStore) -> None:
    """BAR-52: the servers that are known are never judged alone."""
    with isolated():
        pool = antipode_postgresql.wrap(ConnectionPool(lambda: "host=127.0.0.1 port=1", open=False), STORE)
        writer = antipode_postgresql.wrap(quiet_lab.connect("a", user="app"), STORE)
        with antipode.scope():
            writer.execute("DELETE FROM posts")
            result = antipode.barrier(timeout=0.5, on_timeout="proceed", on_unproven="proceed")
        assert not result.satisfied
        del pool


def listens(client: Any, url: str) -> None:
    hooked(client, url)


def has_kwargs(client: Any, url: str) -> None:
    client.kwargs = dict(conninfo_to_dict(url))


def has_another_class(client: Any, url: str) -> None:
    client.connection_class = told_when_asked(url)["class"]().connection_class


def has_another_class_of_asyncio(client: Any, url: str) -> None:
    client.connection_class = told_when_asked(url)["asyncio's class"]().connection_class


CHANGES: dict[str, tuple[Any, Any]] = {
    "engine": (lambda url: sqlalchemy.create_engine(url.replace("postgresql:", "postgresql+psycopg:")), listens),
    "asyncio's engine": (lambda url: create_async_engine(url.replace("postgresql:", "postgresql+psycopg:")), listens),
    "pool's words": (lambda url: ConnectionPool(url, min_size=0, max_size=2, open=False), has_kwargs),
    "pool's class": (lambda url: NullConnectionPool(url, open=False), has_another_class),
    "asyncio's pool": (
        lambda url: AsyncConnectionPool(url, min_size=0, max_size=2, open=False),
        has_another_class_of_asyncio,
    ),
}


@pytest.mark.parametrize("kind", CHANGES)
@pytest.mark.parametrize("asked_before", [True, False])
def test_a_client_that_leads_elsewhere_since_it_was_wrapped(
    quiet_lab: PostgresqlStore, kind: str, asked_before: bool
) -> None:
    """BAR-52: what it is, is looked at while a barrier asks: a listener that was added since counts."""
    make, change = CHANGES[kind]
    with isolated(), quiet_lab.connect("b1") as operator, quiet_lab.connect("a", user="app") as plain:
        client = make(quiet_lab.url("a"))
        kept = antipode_postgresql.wrap(client, STORE)
        plain.execute("DELETE FROM posts")
        plain.commit()
        writer = antipode_postgresql.wrap(plain, STORE)
        if asked_before:
            with antipode.scope():
                writer.execute(INSERT, ("0",))
                writer.commit()
                assert antipode.barrier(timeout=30).complete
        change(client, quiet_lab.url("b1"))
        quiet_lab.wait_caught_up("b1")
        operator.execute("SELECT pg_wal_replay_pause()")
        try:
            with antipode.scope():
                writer.execute(INSERT, ("1",))
                writer.commit()
                assert not antipode.barrier(timeout=1, on_timeout="proceed").satisfied
                operator.execute("SELECT pg_wal_replay_resume()")
                assert antipode.barrier(timeout=30).complete
        finally:
            operator.execute("SELECT pg_wal_replay_resume()")
        assert {quiet_lab.url(each).replace("app@", "") for each in ("a", "b1")} <= set(antipode.stores()[0].replicas)
        del kept


def test_an_asyncio_creator(quiet_lab: PostgresqlStore) -> None:
    """BAR-52: of `async_creator` only connecting tells; nobody holds the engine that was wrapped."""
    url = quiet_lab.url("a")
    with isolated(), quiet_lab.connect("a", user="app") as plain:
        engine = create_async_engine(
            "postgresql+psycopg_async://nowhere.invalid",
            async_creator=lambda: psycopg.AsyncConnection.connect(url),
        )
        kept = antipode_postgresql.wrap(engine, STORE)
        del engine
        gc.collect()
        with antipode.scope():
            writer = antipode_postgresql.wrap(plain, STORE, replicas=[quiet_lab.url("b1")])
            writer.execute("DELETE FROM posts")
            writer.commit()
            assert antipode.barrier(timeout=30).complete
        assert set(antipode.stores()[0].replicas) == {quiet_lab.url(at).replace("app@", "") for at in ("a", "b1")}
        del kept


def in_turn(*urls: str) -> Any:
    """Opens a connection to each of these in turn."""
    turns = itertools.cycle(urls)
    return lambda: psycopg.connect(next(turns))


def calls_in_turn(*urls: str) -> Any:
    turns = itertools.cycle(urls)
    return lambda: next(turns)


ALTERNATE: dict[str, Any] = {
    "creator": lambda *urls: sqlalchemy.create_engine("postgresql+psycopg://", creator=in_turn(*urls)),
    "pool": lambda *urls: ConnectionPool(calls_in_turn(*urls), open=False),
}


@pytest.mark.parametrize("kind", ALTERNATE)
def test_a_client_that_leads_to_several_servers_in_turn(quiet_lab: PostgresqlStore, kind: str) -> None:
    """BAR-52: the application's own code decides; a barrier before the first use waits for each of them."""
    with isolated(), quiet_lab.connect("b1") as operator, quiet_lab.connect("a", user="app") as plain:
        kept = antipode_postgresql.wrap(ALTERNATE[kind](quiet_lab.url("a"), quiet_lab.url("b1")), STORE)
        plain.execute("DELETE FROM posts")
        plain.commit()
        quiet_lab.wait_caught_up("b1")
        operator.execute("SELECT pg_wal_replay_pause()")
        writer = antipode_postgresql.wrap(plain, STORE)
        try:
            with antipode.scope():
                writer.execute(INSERT, ("1",))
                writer.commit()
                assert not antipode.barrier(timeout=1, on_timeout="proceed").satisfied
                operator.execute("SELECT pg_wal_replay_resume()")
                assert antipode.barrier(timeout=30).complete
        finally:
            operator.execute("SELECT pg_wal_replay_resume()")
        assert set(antipode.stores()[0].replicas) == {quiet_lab.url(at).replace("app@", "") for at in ("a", "b1")}
        del kept


WITHOUT_HOST: dict[str, Any] = {
    "pool": lambda words: ConnectionPool(words, open=False),
    "engine": lambda words: sqlalchemy.create_engine(
        "postgresql+psycopg://", connect_args={key: value for key, value in conninfo_to_dict(words).items() if value}
    ),
}


@pytest.mark.parametrize("kind", WITHOUT_HOST)
@pytest.mark.parametrize("asked_before", [True, False])
def test_an_environment_that_changes_after_the_wrap(
    quiet_lab: PostgresqlStore, monkeypatch: pytest.MonkeyPatch, kind: str, asked_before: bool
) -> None:
    """BAR-52: libpq reads it whenever it connects, so the client leads where it says now."""
    places = {at: conninfo_to_dict(quiet_lab.url(at)) for at in ("a", "b1")}
    monkeypatch.setenv("PGHOST", str(places["a"]["host"]))
    monkeypatch.setenv("PGPORT", str(places["a"]["port"]))
    with isolated(), quiet_lab.connect("b1") as operator, quiet_lab.connect("a", user="app") as plain:
        kept = antipode_postgresql.wrap(WITHOUT_HOST[kind](f"user=app dbname={places['a']['dbname']}"), STORE)
        writer = antipode_postgresql.wrap(plain, STORE)
        with antipode.scope():
            writer.execute("DELETE FROM posts")
            writer.commit()
            if asked_before:
                assert antipode.barrier(timeout=30).complete
        monkeypatch.setenv("PGPORT", str(places["b1"]["port"]))
        quiet_lab.wait_caught_up("b1")
        operator.execute("SELECT pg_wal_replay_pause()")
        try:
            with antipode.scope():
                writer.execute(INSERT, ("1",))
                writer.commit()
                assert not antipode.barrier(timeout=1, on_timeout="proceed").satisfied
                operator.execute("SELECT pg_wal_replay_resume()")
                assert antipode.barrier(timeout=30).complete
        finally:
            operator.execute("SELECT pg_wal_replay_resume()")
        assert quiet_lab.url("b1").replace("app@", "") in antipode.stores()[0].replicas
        del kept


@pytest.mark.parametrize("kind", ["sync", "asyncio"])
async def test_a_server_to_which_a_connection_of_a_pool_leads(
    quiet_lab: PostgresqlStore, monkeypatch: pytest.MonkeyPatch, kind: str
) -> None:
    """BAR-62: it is judged until the connection is lost, though the pool's words say otherwise; then it leaves."""
    monkeypatch.setattr(discovery, "REFRESH_S", 0.0)
    make: Any = ConnectionPool if kind == "sync" else AsyncConnectionPool
    with isolated(), quiet_lab.connect("a", user="app") as plain:
        pool = make(quiet_lab.url("b1"), min_size=0, max_size=2, open=False)
        reader = antipode_postgresql.wrap(pool, STORE)
        opened = pool.open()
        if kind == "asyncio":
            await opened
        taken = reader.getconn()
        connection = taken if kind == "sync" else await taken
        pool.conninfo = quiet_lab.url("a")
        writer = antipode_postgresql.wrap(plain, STORE)

        def look() -> antipode.BarrierResult:
            with antipode.scope():
                writer.execute(INSERT, (uuid4().hex,))
                return antipode.barrier(timeout=0.5, on_timeout="proceed", on_unproven="proceed")

        def leaves() -> bool:
            result = look()
            return result.complete and len(result.stores[STORE].servers) == 1

        await asyncio.to_thread(until, lambda: look().complete)
        quiet_lab.partition("b1")
        for _ in range(5):
            assert not (await asyncio.to_thread(look)).satisfied
        quiet_lab.kill("b1")
        try:
            antipode.configure(left_server=0)
            await asyncio.to_thread(until, leaves, 60.0)
        finally:
            quiet_lab.restart("b1")
            quiet_lab.heal()
        given = reader.putconn(connection)
        ended = pool.close()
        if kind == "asyncio":
            await given
            await ended


DERIVED: dict[str, Any] = {
    "itself": lambda wrapped: wrapped,
    "options": lambda wrapped: wrapped.execution_options(isolation_level="AUTOCOMMIT"),
    "connection": lambda wrapped: wrapped.connect(),
}


@pytest.mark.parametrize("kind", [*KINDS, "callable", "asyncio's class", "creator", "asyncio's hook"])
@pytest.mark.parametrize("derived", DERIVED)
def test_a_client_that_its_wrap_alone_holds(quiet_lab: PostgresqlStore, kind: str, derived: str) -> None:
    """BAR-52: it is asked where it leads for as long as connections can be opened by what was made of it."""
    url = quiet_lab.url("b1")
    makers = told_when_asked(url)
    if derived != "itself" and kind not in {"engine", "engine, connect_args", "creator"}:
        pytest.skip("engines have these")
    with isolated():
        if kind in makers:
            kept = DERIVED[derived](antipode_postgresql.wrap(makers[kind](), STORE))
        else:
            with unused(kind, url) as wrapped:
                kept = DERIVED[derived](wrapped)
                del wrapped
        found = cast("RegionStore", antipode.stores()[0])._discoveries.values()
        [source] = [each for each in found if isinstance(each, discovery.ClientServers)]
        gc.collect()
        assert not source.is_over
        del kept
        gc.collect()
        assert source.is_over, "this test itself holds the client"
