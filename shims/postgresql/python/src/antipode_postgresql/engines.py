"""Wrapped SQLAlchemy engines, sync and asyncio: each connection that they check out records."""

from __future__ import annotations

import asyncio
import copy
import inspect
from typing import Any

from antipode.shim import refuse_making, sqlalchemy_sessions
from sqlalchemy.engine import Engine, create_engine

from antipode_postgresql.connections import record
from antipode_postgresql.recording import recording_class
from antipode_postgresql.targets import Target, environment, target_of, targets_of

_SLOTS = ("_antipode_join", "_antipode_plain")


class RecordingEngine:
    """Beside `sqlalchemy.Engine`: pool, dialect and events are the plain engine's."""

    __slots__ = ()
    _antipode_plain: Any
    _antipode_join: Any
    __init__ = refuse_making

    def execution_options(self, **options: Any) -> Any:
        """As the engine's; an engine that records."""
        return _recording(self._antipode_plain.execution_options(**options), self._antipode_join)

    @property
    def pool(self) -> Any:
        """As the engine's; what it hands out records."""
        return _recording_pool(self._antipode_plain.pool, self._antipode_join)

    @pool.setter
    def pool(self, pool: Any) -> None:
        self._antipode_plain.pool = getattr(pool, "_antipode_plain", pool)

    def raw_connection(self) -> Any:
        """As the engine's; the connection inside records."""
        return _record_inside(self._antipode_plain.raw_connection(), self._antipode_join)


class RecordingPool:
    """Beside `sqlalchemy.Pool`: all but the connections are the plain pool's."""

    __slots__ = ()
    _antipode_plain: Any
    _antipode_join: Any
    __init__ = refuse_making

    def connect(self) -> Any:
        """As the pool's; the connection inside records."""
        return _record_inside(self._antipode_plain.connect(), self._antipode_join)

    def recreate(self) -> Any:
        """As the pool's; what the new one hands out records, too."""
        return _recording_pool(self._antipode_plain.recreate(), self._antipode_join)


class RecordingFairy:
    """Beside the proxy in which SQLAlchemy hands a connection out."""

    __slots__ = ()
    _connection_record: Any
    _pool: Any
    dbapi_connection: Any

    @property
    def driver_connection(self) -> Any:
        """As the proxy's; it records."""
        if self._connection_record is None:
            return None
        return self._pool._dialect.get_driver_connection(self.dbapi_connection)


def _recording_pool(plain: Any, join: Any) -> Any:
    return _share(plain, recording_class(type(plain), RecordingPool, _SLOTS), join)


def _record_inside(fairy: Any, join: Any) -> Any:
    inner = fairy.dbapi_connection
    own = getattr(inner, "_connection", None)
    if own is None:
        fairy.dbapi_connection = record(inner, join(inner))
    else:  # asyncio: an adapter around psycopg's connection
        adapter = copy.copy(inner)
        adapter._connection = record(own, join(own))
        fairy.dbapi_connection = adapter
    if not isinstance(fairy, RecordingFairy):
        fairy.__class__ = recording_class(type(fairy), RecordingFairy)
    return fairy


def is_engine(client: Any) -> bool:
    """Whether this is an engine over psycopg 3. Raises TypeError for one over another driver."""
    inner = getattr(client, "sync_engine", client)
    if not isinstance(inner, Engine):
        return False
    if inner.dialect.driver not in ("psycopg", "psycopg_async"):
        driver = f"{inner.dialect.name}+{inner.dialect.driver}"
        raise TypeError(f"wrap() takes engines of postgresql+psycopg://, not of {driver}")
    return True


def targets_of_engine(engine: Any) -> list[Target] | None:
    """Return the servers that an engine's connections lead to; None where the application's own code opens them."""
    inner = getattr(engine, "sync_engine", engine)
    creator = inner.pool._creator
    if getattr(creator, "__module__", "") != create_engine.__module__ or list(inner.dialect.dispatch.do_connect):
        return None
    words = inspect.getclosurevars(creator).nonlocals.get("cparams")  # the URL's and those of connect_args
    return None if words is None else targets_of("", words)


def look_at_engine(engine: Any) -> object:
    """Return what decides where an engine's connections lead; a listener may be added while it is used (BAR-52)."""
    inner = getattr(engine, "sync_engine", engine)
    creator = inner.pool._creator
    words = inspect.getclosurevars(creator).nonlocals.get("cparams") if inspect.isfunction(creator) else None
    return creator, list(inner.dialect.dispatch.do_connect), dict(words or {}), environment()


def ask_engine(engine: Any) -> list[Target]:
    """Return the server to which one more connection leads, beside the engine's pool. Raises what opening it raises."""
    inner = getattr(engine, "sync_engine", engine)
    if not inner.dialect.is_async:
        return _opened(inner.pool._creator())
    return asyncio.run(_greenlet(inner.pool._creator))


async def _greenlet(creator: Any) -> list[Target]:
    from sqlalchemy.util.concurrency import greenlet_spawn

    return await greenlet_spawn(lambda: _opened(creator()))


def idle_of_engine(engine: Any) -> list[Any]:
    """Return the connections that the engine's pool holds, of SQLAlchemy's own kinds of pools."""
    pool = getattr(engine, "sync_engine", engine).pool
    kept = getattr(getattr(pool, "_pool", None), "__dict__", {})  # its queue; an asyncio pool's is around asyncio's own
    records = [*(kept.get("queue") or getattr(kept.get("_queue"), "_queue", None) or ())]
    # A pool of one connection a thread, of one for all, and of one at a time.
    records += [*getattr(pool, "_all_conns", ()), vars(pool).get("connection"), getattr(pool, "_conn", None)]
    found = [getattr(record, "dbapi_connection", None) for record in records]
    return [getattr(connection, "_connection", connection) for connection in found if connection is not None]


def _opened(connection: Any) -> list[Target]:
    try:
        return [target_of(getattr(connection, "_connection", connection))]
    finally:
        connection.close()


def record_engine(plain: Any, join: Any, store: str) -> Any:
    """An engine that shares everything with a plain one; `join` gives the binding of a connection."""
    sqlalchemy_sessions.follow(join, store)
    inner = getattr(plain, "sync_engine", None)
    if inner is None:
        return _recording(plain, join)
    from sqlalchemy.ext.asyncio import AsyncEngine

    return AsyncEngine(_recording(inner, join))


def _recording(plain: Any, join: Any) -> Any:
    return _share(plain, recording_class(type(plain), RecordingEngine, _SLOTS), join)


def _share(plain: Any, kind: type, join: Any) -> Any:
    wrapped: Any = object.__new__(kind)
    wrapped.__dict__ = plain.__dict__
    wrapped._antipode_plain = plain
    wrapped._antipode_join = join
    return wrapped
