"""Wrapped SQLAlchemy engines, sync and asyncio: each connection that they check out records."""

from __future__ import annotations

import copy
from typing import Any

from sqlalchemy.engine import Engine

from antipode_postgresql.connections import record
from antipode_postgresql.recording import recording_class

_SLOTS = ("_antipode_join", "_antipode_plain")


class RecordingEngine:
    """Beside `sqlalchemy.Engine`: pool, dialect and events are the plain engine's."""

    __slots__ = ()
    _antipode_plain: Any
    _antipode_join: Any

    def raw_connection(self) -> Any:
        """As the engine's; the connection inside records."""
        fairy = self._antipode_plain.raw_connection()
        inner = fairy.dbapi_connection
        own = getattr(inner, "_connection", None)
        if own is None:
            fairy.dbapi_connection = record(inner, self._antipode_join(inner))
        else:  # asyncio: an adapter around psycopg's connection
            adapter = copy.copy(inner)
            adapter._connection = record(own, self._antipode_join(own))
            fairy.dbapi_connection = adapter
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


def record_engine(plain: Any, join: Any) -> Any:
    """An engine that shares everything with a plain one; `join` gives the binding of a connection."""
    inner = getattr(plain, "sync_engine", None)
    if inner is None:
        return _recording(plain, join)
    from sqlalchemy.ext.asyncio import AsyncEngine

    return AsyncEngine(_recording(inner, join))


def _recording(plain: Any, join: Any) -> Any:
    wrapped = object.__new__(recording_class(type(plain), RecordingEngine, _SLOTS))
    wrapped.__dict__ = plain.__dict__
    wrapped._antipode_plain = plain
    wrapped._antipode_join = join
    return wrapped
