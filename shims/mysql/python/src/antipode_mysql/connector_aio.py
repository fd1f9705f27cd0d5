"""mysql-connector-python's asyncio connections and pools that record their writes, as connector_client's do."""

from __future__ import annotations

import asyncio
import time
from collections.abc import AsyncGenerator
from contextlib import suppress
from functools import cache
from typing import Any, Final

from antipode.shim import refuse_making
from mysql.connector.aio.connection import MySQLConnection
from mysql.connector.aio.pooling import MySQLConnectionPool, PooledMySQLConnection
from mysql.connector.errors import OperationalError

from antipode_mysql.binding import Binding
from antipode_mysql.connector_driving import POOL_SLOTS, SLOTS, ConnectorDriving, octets, share
from antipode_mysql.driving import Row
from antipode_mysql.recorder import Call
from antipode_mysql.waiting import Late

_Plain: Any = MySQLConnection  # its inner parts may be overridden
_Pooled: Any = PooledMySQLConnection
_Pool: Any = MySQLConnectionPool
_NOTHING: Final = object()
_CLOSE_S: Final = 1.0
"""How long a cancelled task waits for its connection to be closed, in seconds."""


class RecordingConnection(ConnectorDriving, _Plain):  # type: ignore[misc]
    """An asyncio `MySQLConnection` whose writes join the scope."""

    __init__ = refuse_making

    # What the application and its cursors call

    async def cmd_query(self, query: Any, *args: Any, **kwargs: Any) -> Any:
        plain = super().cmd_query
        return await self._antipode_run(
            octets(query), self._antipode_several, False, lambda: plain(query, *args, **kwargs)
        )

    async def cmd_query_iter(self, statements: Any, **kwargs: Any) -> AsyncGenerator[Any, None]:
        results = super().cmd_query_iter(statements, **kwargs)
        first = await self._antipode_run(
            octets(statements), self._antipode_several, False, lambda: anext(results, _NOTHING)
        )
        if first is not _NOTHING:
            yield first
            async for result in results:
                yield result

    async def cmd_stmt_prepare(self, statement: Any, *args: Any, **kwargs: Any) -> Any:
        prepared = await super().cmd_stmt_prepare(statement, *args, **kwargs)
        self._antipode_prepared[prepared["statement_id"]] = octets(statement)
        return prepared

    async def cmd_stmt_execute(self, statement_id: int, *args: Any, **kwargs: Any) -> Any:
        sql = self._antipode_prepared.get(statement_id, b"EXECUTE")  # one that was prepared elsewhere may write
        plain = super().cmd_stmt_execute
        return await self._antipode_run(sql, False, False, lambda: plain(statement_id, *args, **kwargs))

    async def cmd_stmt_close(self, statement_id: int, *args: Any, **kwargs: Any) -> Any:
        self._antipode_prepared.pop(statement_id, None)
        return await super().cmd_stmt_close(statement_id, *args, **kwargs)

    # The session's life

    async def connect(self) -> None:
        self._antipode.unknown()
        self._antipode_renew()
        await super().connect()

    async def _do_auth(self) -> None:
        await super()._do_auth()
        self._antipode_connected(self._antipode.flags)  # before the first statement of the session, which comes next
        await asyncio.to_thread(self._antipode.opened, self._antipode_plain)  # it may ask a server that is new

    async def cmd_reset_connection(self) -> bool:
        try:
            await self._antipode_reset()
        except OperationalError:  # as the client itself takes the loss that its command meets
            return False
        return bool(await super().cmd_reset_connection())

    async def cmd_change_user(self, *args: Any, **kwargs: Any) -> Any:
        await self._antipode_reset()
        return await super().cmd_change_user(*args, **kwargs)

    async def close(self) -> None:
        await self._antipode_leave()
        try:
            await super().close()
        finally:
            self._antipode_renew()

    disconnect = close

    async def shutdown(self) -> None:
        try:
            await super().shutdown()
        finally:
            self._antipode_renew()

    # On the wire

    async def _send_cmd(
        self,
        command: int,
        argument: Any = None,
        packet_number: int = 0,
        packet: Any = None,
        expect_response: bool = True,
        compressed_packet_number: int = 0,
        read_timeout: int | None = None,
        write_timeout: int | None = None,
    ) -> Any:
        send = super()._send_cmd
        timeouts = (read_timeout, write_timeout)

        async def plain() -> Any:
            numbers = (packet_number, packet, expect_response, compressed_packet_number)
            return await send(command, argument, *numbers, *timeouts)

        payload = packet or argument
        return await self._antipode_send_cmd(
            plain, command, payload, packet_number, compressed_packet_number, *timeouts
        )

    async def _handle_result(self, *args: Any, **kwargs: Any) -> Any:
        with self._antipode_reading():
            result = await super()._handle_result(*args, **kwargs)
        await self._antipode_progress(result)
        return result

    async def _handle_binary_result(self, *args: Any, **kwargs: Any) -> Any:
        with self._antipode_reading():
            result = await super()._handle_binary_result(*args, **kwargs)
        await self._antipode_progress(result)
        return result

    async def consume_results(self) -> None:
        if self.unread_result:
            self._antipode.discards = True
            await super().consume_results()

    async def rollback(self) -> None:
        await self.consume_results()
        await super().rollback()

    async def get_rows(self, *args: Any, **kwargs: Any) -> Any:
        self._antipode.fetches()
        rows, end = await super().get_rows(*args, **kwargs)
        await self._antipode_saw(rows, end)
        return rows, end

    async def _antipode_write(
        self, payload: bytes, number: int = 0, compressed: int = 0, timeout: int | None = None
    ) -> None:
        await self._socket.write(payload, number, compressed, timeout or self._write_timeout)

    async def _antipode_packet(self, timeout: int | None = None) -> Any:
        return await self._socket.read(timeout or self._read_timeout)

    async def _antipode_consume(self) -> None:
        await self.handle_unread_result()

    async def _antipode_pause(self, seconds: float) -> None:
        await asyncio.sleep(seconds)

    # A cancelled task leaves an answer unread, which the next statement would take for its own: it ends the connection

    async def _antipode_failed(self, call: Call, error: BaseException) -> None:
        await super()._antipode_failed(call, error)
        if call.sent and isinstance(error, asyncio.CancelledError):
            await self._antipode_give_up()

    async def _antipode_ask(self, question: bytes) -> list[Row]:
        try:
            return await super()._antipode_ask(question)
        except asyncio.CancelledError:
            await self._antipode_give_up()
            raise

    async def _antipode_answer(self) -> list[Row]:
        try:
            return await super()._antipode_answer()
        except asyncio.CancelledError:
            await self._antipode_give_up()
            raise

    async def _antipode_ask_until(self, question: bytes, until: float) -> list[Row]:
        try:
            async with asyncio.timeout(max(until - time.monotonic(), 0.001)):
                return await self._antipode_ask(question)
        except TimeoutError as error:  # its cancellation has closed the connection
            raise Late from error

    async def _antipode_give_up(self) -> None:
        """Closes the socket; a server that does not take the close in time does not hold the cancelled task."""
        with suppress(TimeoutError):
            async with asyncio.timeout(_CLOSE_S):
                await super().shutdown()


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
