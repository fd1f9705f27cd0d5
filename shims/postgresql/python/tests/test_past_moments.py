"""Data of a moment that is past: waiting cannot make it newer, so fetching it raises (SHIM-48)."""

from __future__ import annotations

from collections.abc import Callable, Generator
from typing import Any

import antipode
import antipode_postgresql
import psycopg
import pytest
from antipode._model.result import BarrierTimeout, BarrierUnproven
from antipode_lab.stores.postgresql import PostgresqlStore
from antipode_postgresql.moments import Moments
from pg_regions import INSERT, STORE, Posts
from psycopg_pool import AsyncConnectionPool, ConnectionPool
from sqlalchemy import create_engine, text
from sqlalchemy.ext.asyncio import create_async_engine

ROWS = 300
SELECT = "SELECT key FROM posts ORDER BY key"


@pytest.fixture
def many(quiet_posts: Posts) -> Posts:
    """The store of posts, with more rows than any client fetches at once."""
    quiet_posts.wrap("a").execute(
        "INSERT INTO posts (key, value) SELECT to_char(n, 'FM0000'), 'v' FROM generate_series(1, %s) AS n", (ROWS,)
    )
    with antipode.scope(quiet_posts.write("0000")):
        assert antipode.barrier(timeout=30, stores=[STORE]).satisfied
    return quiet_posts


def named(connection: Any) -> Generator[Any, None, None]:
    with connection.transaction(), connection.cursor("named") as cursor:
        yield cursor.execute(SELECT).fetchmany(2)
        yield cursor.fetchmany(2)


def held(connection: Any) -> Generator[Any, None, None]:
    with connection.cursor("held", withhold=True) as cursor:
        yield cursor.execute(SELECT).fetchone()
        yield cursor.fetchall()


def iterated(connection: Any) -> Generator[Any, None, None]:
    with connection.transaction(), connection.cursor("iterated") as cursor:
        cursor.itersize = 2
        yield from cursor.execute(SELECT)


def by_text(connection: Any) -> Generator[Any, None, None]:
    with connection.transaction():
        connection.execute(f'DECLARE "My cursor" CURSOR FOR {SELECT}')
        yield connection.execute('FETCH 2 FROM "My cursor"').fetchall()
        yield connection.execute('FETCH FORWARD 2 IN "My cursor";').fetchall()


def commented(connection: Any) -> Generator[Any, None, None]:
    with connection.transaction():
        connection.execute(f"/* route=/posts */ DECLARE c CURSOR FOR {SELECT}")
        yield connection.execute("-- first\nFETCH 2 c").fetchall()
        yield connection.execute("/* route=/posts */ FETCH 2 FROM c -- last").fetchall()


def among_others(connection: Any) -> Generator[Any, None, None]:
    with connection.transaction():
        connection.execute(f"DECLARE c CURSOR FOR {SELECT}")
        yield connection.execute("FETCH c").fetchall()
        yield connection.execute("SELECT 1; FETCH C").fetchall()


def streamed(connection: Any) -> Generator[Any, None, None]:
    yield from connection.cursor().stream(SELECT)


def copied(connection: Any) -> Generator[Any, None, None]:
    with connection.cursor().copy(f"COPY ({SELECT}) TO STDOUT") as copy:
        yield from copy


def rows_copied(connection: Any) -> Generator[Any, None, None]:
    with connection.cursor().copy(f"COPY ({SELECT}) TO STDOUT") as copy:
        yield from copy.rows()


def snapshot(connection: Any) -> Generator[Any, None, None]:
    with connection.transaction():
        connection.execute("SET TRANSACTION ISOLATION LEVEL REPEATABLE READ")
        yield connection.execute(SELECT).fetchall()
        yield connection.execute(SELECT).fetchall()


def snapshot_by_text(connection: Any) -> Generator[Any, None, None]:
    connection.execute("BEGIN ISOLATION LEVEL REPEATABLE READ")
    try:
        yield connection.execute(SELECT).fetchall()
        yield connection.execute(SELECT).fetchall()
    finally:
        connection.rollback()


WAYS: list[Callable[[Any], Generator[Any, None, None]]] = [
    named,
    held,
    iterated,
    by_text,
    among_others,
    streamed,
    copied,
]
WAYS += [commented, rows_copied, snapshot, snapshot_by_text]


@pytest.mark.parametrize("way", WAYS, ids=lambda way: way.__name__)
@pytest.mark.parametrize("waits", ["wait_on_read", "after"])
def test_what_was_taken_before_is_not_fetched_behind_it(
    many: Posts, way: Callable[[Any], Generator[Any, None, None]], waits: str
) -> None:
    reader, writer = many.wrap("b1", wait_on_read=waits == "wait_on_read", timeout=20), many.wrap("a")
    with antipode.scope():
        parts = way(reader)
        assert next(parts)
        writer.execute(INSERT, ("behind",))
        lineage = antipode.current_scope().lineage  # type: ignore[union-attr]
        with (
            antipode.reading(after=lineage if waits == "after" else None),
            pytest.raises(BarrierUnproven, match=r"is past.*: (send the query again|begin another one).*AP514"),
        ):
            list(parts)
        parts.close()
        antipode.barrier(timeout=60)  # "after" waits in its block alone
        assert reader.execute("SELECT 1 FROM posts WHERE key = 'behind'").fetchall()


@pytest.mark.parametrize("way", [each for each in WAYS if each is not among_others], ids=lambda way: way.__name__)
def test_what_was_proved_then_is_fetched(many: Posts, way: Callable[[Any], Generator[Any, None, None]]) -> None:
    reader, writer = many.wrap("b1", wait_on_read=True, timeout=20), many.wrap("a")
    with antipode.scope() as scope:
        writer.execute(INSERT, ("before",))
        parts = way(reader)
        first = next(parts)
        before = scope.lineage
        with antipode.reading(after=before):
            rest = list(parts)
        assert first
        assert rest


def test_a_snapshot_is_not_taken_by_our_own_question(many: Posts, quiet_lab: PostgresqlStore) -> None:
    """BAR-50: the first read of a transaction waits before anything fixes what the transaction shows."""
    reader, writer = many.wrap("b1", wait_on_read=True, timeout=20, autocommit=False), many.wrap("a")
    reader.isolation_level = psycopg.IsolationLevel.REPEATABLE_READ
    quiet_lab.lag("b1", "100ms")
    try:
        with antipode.scope():
            writer.execute(INSERT, ("awaited",))
            with reader.transaction():
                assert reader.execute("SELECT 1 FROM posts WHERE key = 'awaited'").fetchall()
    finally:
        quiet_lab.lag("b1", "3ms")


@pytest.mark.parametrize("text", ["{0}; {1}", "{0}|{1}", "{0}|/* imported */ {1}"])
def test_an_imported_snapshot_is_older_than_what_was_waited_for(
    many: Posts, quiet_lab: PostgresqlStore, text: str
) -> None:
    """SHIM-48: it was taken by another transaction."""
    reader, writer = many.wrap("b1", wait_on_read=True, timeout=20), many.wrap("a")
    with quiet_lab.connect("b1", user="app") as older:
        older.autocommit, older.isolation_level = False, psycopg.IsolationLevel.REPEATABLE_READ
        [[name]] = older.execute("SELECT pg_export_snapshot()").fetchall()
        with antipode.scope():
            writer.execute(INSERT, ("behind",))
            assert reader.execute(SELECT).fetchall()  # it is proved on this connection
            begin = "BEGIN ISOLATION LEVEL REPEATABLE READ"
            for statement in text.format(begin, f"SET TRANSACTION SNAPSHOT '{name}'").split("|"):
                reader.execute(statement)
            with pytest.raises(BarrierUnproven, match="moment that is past"):
                reader.execute(SELECT)
            reader.rollback()
            assert reader.execute("SELECT 1 FROM posts WHERE key = 'behind'").fetchall()


def test_a_transaction_that_was_open_when_it_was_wrapped(many: Posts, quiet_lab: PostgresqlStore) -> None:
    with psycopg.connect(quiet_lab.url("b1")) as plain:
        plain.isolation_level = psycopg.IsolationLevel.REPEATABLE_READ
        plain.execute(SELECT)
        reader = antipode_postgresql.wrap(plain, STORE, wait_on_read=True, timeout=20)
        with antipode.scope(many.write("behind")), pytest.raises(BarrierUnproven, match="snapshot"):
            reader.execute(SELECT)
        plain.rollback()


def test_a_cursor_made_by_hand_says_the_way_round(many: Posts) -> None:
    """Nobody saw it being opened: what is to be seen by then may not be in it."""
    reader = many.wrap("b1", wait_on_read=True, timeout=20)
    with antipode.scope(many.write("behind")), psycopg.ServerCursor(reader, "named", withhold=True) as cursor:
        cursor.execute(SELECT)
        with pytest.raises(BarrierUnproven, match=r"connection\.cursor\(name\)"):
            cursor.fetchall()
    with psycopg.ServerCursor(reader, "named", withhold=True) as cursor:
        assert cursor.execute(SELECT).fetchall()


LAZY = [streamed, copied, rows_copied]


def made_by(way: Callable[[Any], Any], connection: Any) -> Any:
    """The iterator of a way, made now and begun when it is first asked."""
    if way is streamed:
        return connection.cursor().stream(SELECT)
    copy = connection.cursor().copy(f"COPY ({SELECT}) TO STDOUT")

    def parts() -> Any:
        with copy as rows:
            yield from rows.rows() if way is rows_copied else rows

    return parts()


@pytest.mark.parametrize("way", LAZY, ids=lambda way: way.__name__)
@pytest.mark.parametrize("waits", ["wait_on_read", "after"])
def test_what_is_made_in_a_block_waits_for_it_when_it_is_begun_outside(
    many: Posts, quiet_lab: PostgresqlStore, way: Callable[[Any], Any], waits: str
) -> None:
    """SHIM-44: psycopg sends nothing before the first row is asked for."""
    reader = many.wrap("b1", wait_on_read=waits == "wait_on_read", timeout=0.3)
    with quiet_lab.connect("b1") as operator:
        operator.execute("SELECT pg_wal_replay_pause()")
        try:
            lineage = many.write("behind")
            if waits == "after":
                with antipode.reading(after=lineage) as reading:
                    parts, again = made_by(way, reader), made_by(way, reader)
                assert not reading.lineage.is_complete([STORE])
            else:
                with antipode.scope(lineage):
                    parts, again = made_by(way, reader), made_by(way, reader)
            with pytest.raises(BarrierTimeout):
                next(parts)
        finally:
            operator.execute("SELECT pg_wal_replay_resume()")
    antipode.configure(timeout=20.0)
    quiet_lab.wait_caught_up("b1")
    assert "behind" in str([bytes(each) if isinstance(each, memoryview) else each for each in again])


async def test_what_asyncio_makes_in_a_block(many: Posts, quiet_lab: PostgresqlStore) -> None:
    """SHIM-44."""
    async with await psycopg.AsyncConnection.connect(quiet_lab.url("b1"), autocommit=True) as plain:
        reader = antipode_postgresql.wrap(plain, STORE, timeout=0.3)
        with quiet_lab.connect("b1") as operator:
            operator.execute("SELECT pg_wal_replay_pause()")
            try:
                with antipode.reading(after=many.write("behind")) as reading:
                    rows = reader.cursor().stream(SELECT)
                    copy = reader.cursor().copy(f"COPY ({SELECT}) TO STDOUT")
                assert not reading.lineage.is_complete([STORE])
                with pytest.raises(BarrierTimeout):
                    await anext(rows)
                with pytest.raises(BarrierTimeout):
                    await copy.__aenter__()
            finally:
                operator.execute("SELECT pg_wal_replay_resume()")


async def test_by_asyncio(many: Posts, quiet_lab: PostgresqlStore) -> None:
    async with AsyncConnectionPool(quiet_lab.url("b1"), min_size=1, open=False) as pool:
        await pool.open()
        readers = antipode_postgresql.wrap(pool, STORE, wait_on_read=True, timeout=20)
        for number, way in enumerate([anamed, astreamed, acopied]):
            async with readers.connection() as connection:
                with antipode.scope(many.write(f"before-{number}")):
                    parts = way(connection)
                    assert await anext(parts)
                    assert await anext(parts)
                    with antipode.reading(after=many.write(f"behind-{number}")):
                        with pytest.raises(BarrierUnproven, match="moment that is past"):
                            await anext(parts)
                    await parts.aclose()


async def anamed(connection: Any) -> Any:
    async with connection.cursor("named") as cursor:
        await cursor.execute(SELECT)
        for _ in range(3):
            yield await cursor.fetchmany(2)


async def astreamed(connection: Any) -> Any:
    async for row in connection.cursor().stream(SELECT):
        yield row


async def acopied(connection: Any) -> Any:
    async with connection.cursor().copy(f"COPY ({SELECT}) TO STDOUT") as copy:
        async for row in copy:
            yield row


def test_pools_and_engines(many: Posts, quiet_lab: PostgresqlStore) -> None:
    with ConnectionPool(quiet_lab.url("b1"), min_size=1, open=True) as pool:
        readers = antipode_postgresql.wrap(pool, STORE, wait_on_read=True, timeout=20)
        with readers.connection() as connection:
            parts = named(connection)
            assert next(parts)
            with antipode.scope(many.write("pool")), pytest.raises(BarrierUnproven, match="moment that is past"):
                next(parts)
            parts.close()
    engine = create_engine(quiet_lab.url("b1").replace("postgresql://", "postgresql+psycopg://"))
    wrapped = antipode_postgresql.wrap(engine, STORE, wait_on_read=True, timeout=20)
    for options in ({"stream_results": True, "max_row_buffer": 2}, {"yield_per": 2}):
        with wrapped.connect() as connection:
            rows = iter(connection.execution_options(**options).execute(text(SELECT)))
            assert next(rows)
            with antipode.scope(many.write("engine")), pytest.raises(BarrierUnproven, match="moment that is past"):
                list(rows)
    engine.dispose()


async def test_an_asyncio_engine(many: Posts, quiet_lab: PostgresqlStore) -> None:
    engine = create_async_engine(quiet_lab.url("b1").replace("postgresql://", "postgresql+psycopg://"))
    wrapped = antipode_postgresql.wrap(engine, STORE, wait_on_read=True, timeout=20)
    async with wrapped.connect() as connection:
        rows = aiter(await connection.stream(text(SELECT), execution_options={"yield_per": 2}))
        assert await anext(rows)
        with antipode.scope(many.write("engine")), pytest.raises(BarrierUnproven, match="moment that is past"):
            async for _ in rows:
                pass
    await engine.dispose()


def test_a_text_that_limits_its_rows_fetches_nothing() -> None:
    moments = Moments()
    assert moments.of_text(b"SELECT 1; SELECT key FROM posts FETCH FIRST 5 ROWS ONLY") is None
    assert moments.of_text(b"SELECT key FROM posts FETCH NEXT ROW ONLY; SELECT 1") is None
    assert moments.of_text(b"SELECT 1; FETCH FIRST FROM c") == antipode.EMPTY
    moments.proved = antipode.Lineage([antipode.WriteId(STORE, b"", antipode.Ordered("7-1-aaaaaa", 5))])
    moments.executed(b'DECLARE "C" CURSOR FOR SELECT 1')
    assert moments.of_text(b'FETCH 3 "C";') == moments.proved
    assert moments.of_text(b"FETCH c") == antipode.EMPTY
