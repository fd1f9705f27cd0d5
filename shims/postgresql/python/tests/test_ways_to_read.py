"""Every way of psycopg's to get data waits, or is refused; inside `reading()` it covers, or marks (SHIM-44)."""

from __future__ import annotations

import asyncio
from collections.abc import Callable
from typing import Any

import antipode
import antipode_postgresql
import psycopg
import pytest
from antipode._model.errors import ConfigurationError
from antipode_lab.stores.postgresql import PostgresqlStore
from pg_regions import INSERT, STORE, Posts

SELECT = "SELECT value FROM posts WHERE key = %s"
ONE = "SELECT value FROM posts WHERE key = '1'"
COPY = f"COPY ({ONE}) TO STDOUT"


def execute(connection: Any) -> Any:
    return connection.execute(SELECT, ("1",)).fetchall()


def by_cursor(connection: Any) -> Any:
    with connection.cursor() as cursor:
        return list(cursor.execute(SELECT, ("1",)))


def stream(connection: Any) -> Any:
    return list(connection.cursor().stream(SELECT, ("1",)))


def copy(connection: Any) -> Any:
    with connection.cursor().copy(COPY) as copied:
        return list(copied.rows())


def many(connection: Any) -> Any:
    cursor = connection.cursor()
    cursor.executemany(SELECT, [("1",)], returning=True)
    return cursor.fetchall()


def server_side(connection: Any) -> Any:
    with connection.transaction(), connection.cursor("named") as cursor:
        return cursor.execute(ONE).fetchall()


def by_hand(connection: Any) -> Any:
    return psycopg.ClientCursor(connection).execute(SELECT, ("1",)).fetchall()


def stream_by_hand(connection: Any) -> Any:
    return list(psycopg.Cursor(connection).stream(SELECT, ("1",)))


def pipeline(connection: Any) -> Any:
    with connection.pipeline():
        connection.execute("SELECT 1")
        cursor = connection.execute(SELECT, ("1",))
    return cursor.fetchall()


def transaction_in_pipeline(connection: Any) -> Any:
    with connection.pipeline(), connection.transaction():
        cursor = connection.execute(SELECT, ("1",))
    return cursor.fetchall()


WAYS: list[Callable[[Any], Any]] = [execute, by_cursor, stream, copy, many, server_side, by_hand]
WAYS += [stream_by_hand, pipeline, transaction_in_pipeline]


@pytest.mark.parametrize("way", WAYS, ids=lambda way: way.__name__)
def test_it_waits(quiet_posts: Posts, quiet_lab: PostgresqlStore, way: Callable[[Any], Any]) -> None:
    reader, writer = quiet_posts.wrap("b1", wait_on_read=True, timeout=20), quiet_posts.wrap("a")
    quiet_lab.lag("b1", "100ms")
    try:
        with antipode.scope():
            writer.execute(INSERT, ("1",))
            assert [tuple(row) for row in way(reader)] == [("v",)]
    finally:
        quiet_lab.lag("b1", "3ms")


@pytest.mark.parametrize("way", WAYS, ids=lambda way: way.__name__)
def test_it_covers_or_marks(quiet_posts: Posts, way: Callable[[Any], Any]) -> None:
    quiet_posts.write("1")
    with antipode.scope(), antipode.reading() as seen:
        way(quiet_posts.wrap("a"))
    assert seen.lineage.of_store(STORE) or seen.lineage.incomplete == {STORE}


def test_a_write_that_returns_data_waits(quiet_posts: Posts) -> None:
    """SHIM-43: whether it writes and whether it reads are two questions. A primary has what it itself was given."""
    connection = quiet_posts.wrap("a", wait_on_read=True, timeout=5, replicas=None)
    lost = antipode.Lineage([antipode.WriteId(STORE, b"", antipode.Ordered("7-1-aaaaaa", 5))])
    with antipode.scope(lost):
        for text in (
            "UPDATE posts SET value = 'w' RETURNING value",
            "WITH x AS (DELETE FROM posts RETURNING key) TABLE x",
        ):
            with pytest.raises(antipode.BarrierError, match="wait on read"):
                connection.execute(text)
        connection.execute("UPDATE posts SET value = 'w'")


async def test_it_waits_by_asyncio(quiet_posts: Posts, quiet_lab: PostgresqlStore) -> None:
    quiet_lab.lag("b1", "100ms")
    writer = quiet_posts.wrap("a")
    try:
        async with await psycopg.AsyncConnection.connect(quiet_lab.url("b1"), autocommit=True) as plain:
            reader = antipode_postgresql.wrap(plain, STORE, wait_on_read=True, timeout=20)
            with antipode.scope():
                for number, way in enumerate([astream, acopy, amany, apipeline]):
                    await asyncio.to_thread(writer.execute, INSERT, (str(number),))
                    assert await way(reader, str(number)) == [("v",)], way
                with pytest.raises(ConfigurationError, match="made by hand"):
                    await psycopg.AsyncCursor(reader).execute(ONE)
    finally:
        quiet_lab.lag("b1", "3ms")


async def astream(connection: Any, key: str) -> Any:
    return [row async for row in connection.cursor().stream(SELECT, (key,))]


async def acopy(connection: Any, key: str) -> Any:
    async with connection.cursor().copy(COPY.replace("'1'", f"'{key}'")) as copied:
        return [row async for row in copied.rows()]


async def amany(connection: Any, key: str) -> Any:
    cursor = connection.cursor()
    await cursor.executemany(SELECT, [(key,)], returning=True)
    return await cursor.fetchall()


async def apipeline(connection: Any, key: str) -> Any:
    async with connection.pipeline():
        cursor = await connection.execute(SELECT, (key,))
    return await cursor.fetchall()


NEITHER = "neither reads nor writes data"
ENDS = "ends or begins a transaction"
READS = "waits, and writes are recorded"
FETCHES = "gives what another call has read"
CONNECTION: dict[str, str] = {
    **dict.fromkeys(["cursor", "execute"], READS),
    **dict.fromkeys(["commit", "rollback", "transaction", "pipeline", "close"], ENDS),
    **dict.fromkeys([name for name in dir(psycopg.Connection) if name.startswith("tpc_")], ENDS),
    **dict.fromkeys(
        ["adapters", "add_notice_handler", "add_notify_handler", "autocommit", "broken", "cancel", "connection"],
        NEITHER,
    ),
    **dict.fromkeys(["cancel_safe", "closed", "connect", "cursor_factory", "deferrable", "fileno", "info"], NEITHER),
    **dict.fromkeys(["isolation_level", "lock", "notifies", "pgconn", "prepare_threshold", "prepared_max"], NEITHER),
    **dict.fromkeys(["read_only", "remove_notice_handler", "remove_notify_handler", "row_factory"], NEITHER),
    **dict.fromkeys(["server_cursor_factory", "set_autocommit", "set_deferrable", "set_isolation_level"], NEITHER),
    **dict.fromkeys(["set_read_only", "wait", "xid"], NEITHER),
    **{name: NEITHER for name in dir(psycopg.Connection) if name.endswith(("Error", "Warning"))},
}
CURSOR: dict[str, str] = {
    **dict.fromkeys(["execute", "executemany", "stream", "copy"], READS),
    **dict.fromkeys(["fetchone", "fetchmany", "fetchall", "results", "nextset", "set_result", "scroll"], FETCHES),
    **dict.fromkeys(["adapters", "arraysize", "close", "closed", "connection", "description", "format"], NEITHER),
    **dict.fromkeys(["pgresult", "row_factory", "rowcount", "rownumber", "setinputsizes", "setoutputsize"], NEITHER),
    **dict.fromkeys(["statusmessage", "mogrify", "itersize", "name", "scrollable", "withhold"], NEITHER),
}


@pytest.mark.parametrize(
    ("classes", "named"),
    [
        ((psycopg.Connection, psycopg.AsyncConnection), CONNECTION),
        ((psycopg.Cursor, psycopg.ServerCursor, psycopg.ClientCursor, psycopg.RawCursor), CURSOR),
        ((psycopg.AsyncCursor, psycopg.AsyncServerCursor, psycopg.AsyncClientCursor), CURSOR),
    ],
)
def test_no_method_is_unknown(classes: tuple[type, ...], named: dict[str, str]) -> None:
    """A release of psycopg's that brings a method has it looked at here first."""
    public = {name for each in classes for name in dir(each) if not name.startswith("_")}
    assert public <= set(named), f"nobody has said what these do: {sorted(public - set(named))}"
