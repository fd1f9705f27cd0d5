"""Pools of mysql-connector-python: what they give out records its writes; what comes back is the plain connection."""

from __future__ import annotations

from functools import cache
from typing import Any

from antipode.shim import refuse_making
from mysql.connector.pooling import MySQLConnectionPool, PooledMySQLConnection

from antipode_mysql.binding import Binding
from antipode_mysql.connector_client import wrap_connection
from antipode_mysql.connector_driving import POOL_SLOTS

_Pooled: Any = PooledMySQLConnection
_Pool: Any = MySQLConnectionPool


class RecordingPooled(_Pooled):  # type: ignore[misc]
    """A connection of a pool, recording."""

    _cnx: Any
    _cnx_pool: Any
    __init__ = refuse_making

    def close(self) -> None:
        recording = self._cnx
        try:
            if recording is not None and self._cnx_pool.reset_session:
                recording.reset_session()  # by the recording one: its open transaction ends here
        finally:
            self._cnx = getattr(recording, "_antipode_plain", recording)
            pool, self._cnx_pool = self._cnx_pool, _ResetPool(self._cnx_pool)
            try:
                super().close()
            finally:
                self._cnx_pool = pool
                if recording is not None:
                    recording._antipode.unknown()  # no reset has ended it: the next user of the connection may commit


class _ResetPool:
    """A pool whose connection has been reset already."""

    reset_session = False

    def __init__(self, pool: MySQLConnectionPool) -> None:
        self._pool = pool

    def __getattr__(self, name: str) -> Any:
        return getattr(self._pool, name)


class RecordingPool(_Pool):  # type: ignore[misc]
    """A pool that shares all state with the one that was wrapped."""

    _antipode_binding: Binding
    _antipode_plain: Any
    __init__ = refuse_making

    def get_connection(self) -> Any:
        return wrap_pooled(super().get_connection(), self._antipode_binding)


def wrap_pooled(pooled: Any, binding: Binding) -> Any:
    """A connection that a pool has given out."""
    wrapped = object.__new__(RecordingPooled)  # copy.copy would ask it for attributes before it has any
    wrapped._cnx_pool = pooled._cnx_pool
    wrapped._cnx = wrap_connection(pooled._cnx, binding)
    return wrapped


@cache
def recording_pool_class(plain: Any) -> Any:
    """A class of the application's own pool's class, whose state is elsewhere."""
    bases = (RecordingPool,) if plain is MySQLConnectionPool else (RecordingPool, plain)
    return type(f"Recording{plain.__name__}", bases, {"__slots__": POOL_SLOTS, "__module__": __name__})
