"""mysql-connector-python's asyncio connections and pools that record their writes, as connector_client's do."""

from __future__ import annotations

import asyncio
import time
from collections.abc import AsyncGenerator
from contextlib import suppress
from functools import cache
from typing import Any, Final

from antipode.shim import refuse_making
from antipode.shim.both_ways import Steps, awaited, run_async
from mysql.connector.aio.connection import MySQLConnection
from mysql.connector.aio.pooling import MySQLConnectionPool, PooledMySQLConnection

from antipode_mysql.binding import Binding
from antipode_mysql.connector_driving import POOL_SLOTS, SLOTS, ConnectorDriving, octets, share
from antipode_mysql.driving import Driving
from antipode_mysql.recorder import Call
from antipode_mysql.waiting import LateAnswer

_Plain: Any = MySQLConnection  # its inner parts may be overridden
_Pooled: Any = PooledMySQLConnection
_Pool: Any = MySQLConnectionPool
_NOTHING: Final = object()
_CLOSE_S: Final = 1.0
"""How long a cancelled task waits for its connection to be closed, in seconds."""


class RecordingConnection(ConnectorDriving, _Plain):  # type: ignore[misc]
    """An asyncio `MySQLConnection` whose writes join the scope."""

    __init__ = refuse_making
    _antipode_drive = staticmethod(run_async)
    cmd_query = awaited(ConnectorDriving.cmd_query)
    cmd_stmt_prepare = awaited(ConnectorDriving.cmd_stmt_prepare)
    cmd_stmt_execute = awaited(ConnectorDriving.cmd_stmt_execute)
    cmd_stmt_close = awaited(ConnectorDriving.cmd_stmt_close)
    cmd_reset_connection = awaited(ConnectorDriving.cmd_reset_connection)
    cmd_change_user = awaited(ConnectorDriving.cmd_change_user)
    close = disconnect = awaited(ConnectorDriving.close)
    shutdown = awaited(ConnectorDriving.shutdown)
    consume_results = awaited(ConnectorDriving.consume_results)
    rollback = awaited(ConnectorDriving.rollback)
    get_rows = awaited(ConnectorDriving.get_rows)

    async def cmd_query_iter(self, statements: Any, **kwargs: Any) -> AsyncGenerator[Any, None]:
        results = super().cmd_query_iter(statements, **kwargs)
        first = await self._antipode_do(octets(statements), lambda: anext(results, _NOTHING), self._antipode_several)
        if first is not _NOTHING:
            yield first
            async for result in results:
                yield result

    async def connect(self) -> None:
        self._antipode.unknown()
        self._antipode_renew()
        await super().connect()

    async def _do_auth(self) -> None:
        await super()._do_auth()
        self._antipode_connected(self._antipode.flags)  # before the first statement of the session, which comes next
        await asyncio.to_thread(self._antipode.opened, self._antipode_plain)  # it may ask a server that is new

    def _antipode_write(self, payload: bytes, number: int = 0, compressed: int = 0, timeout: int | None = None) -> Any:
        return self._socket.write(payload, number, compressed, timeout or self._write_timeout)

    def _antipode_packet(self, timeout: int | None = None) -> Any:
        return self._socket.read(timeout or self._read_timeout)

    def _antipode_pause(self, seconds: float) -> Any:
        return asyncio.sleep(seconds)

    # A cancelled task leaves an answer unread, which the next statement would take for its own: it ends the connection

    def _antipode_failed(self, call: Call, error: BaseException) -> Steps[None]:
        yield from super()._antipode_failed(call, error)
        if call.sent and isinstance(error, asyncio.CancelledError):
            yield self._antipode_give_up()

    async def _antipode_ask(self, question: bytes) -> Any:
        try:
            return await super()._antipode_ask(question)
        except asyncio.CancelledError:
            await self._antipode_give_up()
            raise

    async def _antipode_answer(self) -> Any:
        try:
            return await super()._antipode_answer()
        except asyncio.CancelledError:
            await self._antipode_give_up()
            raise

    async def _antipode_ask_until(self, question: bytes, until: float) -> Any:
        try:
            async with asyncio.timeout(max(until - time.monotonic(), 0.001)):
                return await self._antipode_ask(question)
        except TimeoutError as error:  # its cancellation has closed the connection
            raise LateAnswer from error

    async def _antipode_give_up(self) -> None:
        """Closes the socket; a server that does not take the close in time does not hold the cancelled task."""
        with suppress(TimeoutError):
            async with asyncio.timeout(_CLOSE_S):
                await super(Driving, self).shutdown()


class RecordingPooled(_Pooled):  # type: ignore[misc]
    """A connection of a pool, recording; the pool keeps the plain one."""

    _cnx: Any
    _cnx_pool: Any
    __init__ = refuse_making

    async def close(self) -> None:
        recording, self._cnx = self._cnx, None
        if recording is None:
            return
        try:
            if self._cnx_pool.can_reset_session and await recording.is_connected():
                await recording.reset_session()  # by the recording one: its open transaction ends here
        finally:
            recording._antipode.unknown()  # what no reset has ended, the next user of the connection may commit
            await self._cnx_pool.add_connection(recording._antipode_plain)


class RecordingPool(_Pool):  # type: ignore[misc]
    """A pool that shares all state with the one that was wrapped."""

    _antipode_binding: Binding
    _antipode_plain: Any
    __init__ = refuse_making

    async def get_connection(self) -> Any:
        pooled = await super().get_connection()
        binding = await asyncio.to_thread(self._antipode_binding.opened, pooled._cnx)  # it may ask a server that is new
        return wrap_pooled(pooled._cnx_pool, pooled._cnx, binding)


@cache
def recording_class(plain: Any) -> Any:
    """A class of the application's own connection's class, whose state is elsewhere."""
    if issubclass(plain, RecordingConnection):
        return plain
    bases = (RecordingConnection,) if plain is MySQLConnection else (RecordingConnection, plain)
    return type(f"Recording{plain.__name__}", bases, {"__slots__": SLOTS, "__module__": __name__})


def wrap_connection(plain: Any, binding: Binding) -> Any:
    """A connection that shares its state with the plain one."""
    kind: Any = type(plain)
    return share(plain, recording_class(kind), binding)


def wrap_pooled(pool: Any, plain: Any, binding: Binding) -> Any:
    """A connection that a pool has given out."""
    wrapped = object.__new__(RecordingPooled)
    wrapped._cnx_pool = pool
    wrapped._cnx = wrap_connection(plain, binding)
    return wrapped


@cache
def recording_pool_class(plain: Any) -> Any:
    """A class of the application's own pool's class, whose state is elsewhere."""
    bases = (RecordingPool,) if plain is MySQLConnectionPool else (RecordingPool, plain)
    return type(f"Recording{plain.__name__}", bases, {"__slots__": POOL_SLOTS, "__module__": __name__})
