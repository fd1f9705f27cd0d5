"""Wrapped pools: psycopg_pool's own, whose connections are handed out as recording ones."""

from __future__ import annotations

import asyncio
import inspect
from typing import Any

from antipode.shim import refuse_making
from psycopg import AsyncConnection, Connection

from antipode_postgresql.connections import record
from antipode_postgresql.recording import recording_class
from antipode_postgresql.targets import Target, environment, reached_by, target_of, targets_of

SLOTS = ("_antipode_join", "_antipode_plain")


class RecordingPool:
    """Beside `psycopg_pool.ConnectionPool` and `NullConnectionPool`."""

    __slots__ = ()
    _antipode_plain: Any
    _antipode_join: Any
    __init__ = refuse_making

    def getconn(self, *args: Any, **options: Any) -> Any:
        """As the pool's."""
        plain = self._antipode_plain.getconn(*args, **options)
        return record(plain, self._antipode_join(plain))

    def putconn(self, conn: Any) -> None:
        """As the pool's."""
        flow = getattr(conn, "_antipode_flow", None)
        if flow is not None:
            flow.closed()
        self._antipode_plain.putconn(getattr(conn, "_antipode_plain", conn))

    def __del__(self, *_: Any) -> None:
        return


class AsyncRecordingPool:
    """Beside `psycopg_pool.AsyncConnectionPool` and `AsyncNullConnectionPool`."""

    __slots__ = ()
    _antipode_plain: Any
    _antipode_join: Any
    __init__ = refuse_making

    async def getconn(self, *args: Any, **options: Any) -> Any:
        """As the pool's."""
        plain = await self._antipode_plain.getconn(*args, **options)
        return record(plain, self._antipode_join(plain))

    async def putconn(self, conn: Any) -> None:
        """As the pool's."""
        flow = getattr(conn, "_antipode_flow", None)
        if flow is not None:
            flow.closed()
        await self._antipode_plain.putconn(getattr(conn, "_antipode_plain", conn))

    def __del__(self, *_: Any) -> None:
        return


def targets_of_pool(pool: Any) -> list[Target] | None:
    """Return the servers that a pool's connections lead to; None where only connecting can tell."""
    if callable(pool.conninfo) or callable(pool.kwargs) or not _connects_plainly(pool):
        return None
    return targets_of(pool.conninfo or "", pool.kwargs or {})


def look_at_pool(pool: Any) -> object:
    """Return what decides where a pool's connections lead; it may be changed while the pool is used (BAR-52)."""
    more = pool.kwargs if callable(pool.kwargs) else dict(pool.kwargs or {})
    opens = getattr(pool.connection_class.connect, "__func__", None)
    return pool.conninfo, more, pool.connection_class, opens, environment()


def ask_pool(pool: Any) -> list[Target]:
    """Return the servers that one more connection tells of, beside the pool. Raises what asking and opening raise."""
    words = (pool._resolve_conninfo(), pool._resolve_kwargs())
    conninfo, more = [asyncio.run(each) if inspect.iscoroutine(each) else each for each in words]
    if not _connects_plainly(pool):
        return [_opened(pool.connection_class, conninfo, more)]
    return targets_of(conninfo, more) or reached_by(conninfo, more)


def idle_of_pool(pool: Any) -> list[Any]:
    """Return the connections that a pool holds, and that nobody uses."""
    return list(pool._pool)


def _connects_plainly(pool: Any) -> bool:
    """Return whether the pool's class of connections opens them as psycopg does: another way may lead elsewhere."""
    opens = getattr(pool.connection_class.connect, "__func__", None)
    return opens in (Connection.connect.__func__, AsyncConnection.connect.__func__)  # type: ignore[attr-defined]


def _opened(kind: Any, conninfo: str, more: Any) -> Target:
    """Return the server that a connection of this class reaches. Raises what its opening raises."""
    if issubclass(kind, AsyncConnection):
        return asyncio.run(_opened_async(kind, conninfo, more))
    with kind.connect(conninfo, **more) as connection:
        return target_of(connection)


async def _opened_async(kind: Any, conninfo: str, more: Any) -> Target:
    async with await kind.connect(conninfo, **more) as connection:
        return target_of(connection)


def record_pool(plain: Any, join: Any, *, is_async: bool) -> Any:
    """A pool that shares everything with a plain one; `join` gives the binding of a connection."""
    mixin = AsyncRecordingPool if is_async else RecordingPool
    wrapped = object.__new__(recording_class(type(plain), mixin, SLOTS))
    wrapped.__dict__ = plain.__dict__
    wrapped._antipode_plain = plain
    wrapped._antipode_join = join
    return wrapped
