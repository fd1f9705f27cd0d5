"""mysql-connector-python: a connection that records its writes. It shares all state with the one that was wrapped."""

from __future__ import annotations

from collections.abc import Generator
from functools import cache
from typing import Any, Final

from antipode.shim import refuse_making
from mysql.connector.connection import MySQLConnection
from mysql.connector.errors import OperationalError

from antipode_mysql.binding import Binding
from antipode_mysql.connector_driving import SLOTS, ConnectorDriving, octets, share
from antipode_mysql.driving import BlockingDriving, at_once

_Plain: Any = MySQLConnection  # its inner parts may be overridden
_NOTHING: Final = object()


class RecordingConnection(ConnectorDriving, BlockingDriving, _Plain):  # type: ignore[misc]
    """A `MySQLConnection` whose writes join the scope."""

    __init__ = refuse_making

    # What the application and its cursors call

    def cmd_query(self, query: Any, *args: Any, **kwargs: Any) -> Any:
        plain = super().cmd_query
        return self._antipode_do(octets(query), lambda: plain(query, *args, **kwargs), self._antipode_several)

    def cmd_query_iter(self, statements: Any, **kwargs: Any) -> Generator[Any, None, None]:
        results = super().cmd_query_iter(statements, **kwargs)
        first = self._antipode_do(octets(statements), lambda: next(results, _NOTHING), self._antipode_several)
        if first is not _NOTHING:
            yield first
            yield from results

    def cmd_stmt_prepare(self, statement: Any, *args: Any, **kwargs: Any) -> Any:
        prepared = super().cmd_stmt_prepare(statement, *args, **kwargs)
        self._antipode_prepared[prepared["statement_id"]] = octets(statement)
        return prepared

    def cmd_stmt_execute(self, statement_id: int, *args: Any, **kwargs: Any) -> Any:
        sql = self._antipode_prepared.get(statement_id, b"EXECUTE")  # one that was prepared elsewhere may write
        plain = super().cmd_stmt_execute
        return self._antipode_do(sql, lambda: plain(statement_id, *args, **kwargs))

    def cmd_stmt_close(self, statement_id: int, *args: Any, **kwargs: Any) -> Any:
        self._antipode_prepared.pop(statement_id, None)
        return super().cmd_stmt_close(statement_id, *args, **kwargs)

    # The session's life

    def _open_connection(self) -> None:
        self._antipode.unknown()
        self._antipode_renew()
        super()._open_connection()
        self._antipode_connected(self._antipode.flags)
        self._antipode.opened(self._antipode_plain)

    def cmd_reset_connection(self) -> bool:
        try:
            at_once(self._antipode_reset())
        except OperationalError:  # as the client itself takes the loss that its command meets
            return False
        return bool(super().cmd_reset_connection())

    def cmd_change_user(self, *args: Any, **kwargs: Any) -> Any:
        at_once(self._antipode_reset())
        return super().cmd_change_user(*args, **kwargs)

    def close(self) -> None:
        at_once(self._antipode_leave())
        try:
            super().close()
        finally:
            self._antipode_renew()

    disconnect = close

    def shutdown(self) -> None:
        try:
            super().shutdown()
        finally:
            self._antipode_renew()

    # On the wire

    def _send_cmd(
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
            return send(command, argument, *numbers, *timeouts)

        payload = packet or argument
        return at_once(
            self._antipode_send_cmd(plain, command, payload, packet_number, compressed_packet_number, *timeouts)
        )

    def _handle_result(self, *args: Any, **kwargs: Any) -> Any:
        with self._antipode_reading():
            result = super()._handle_result(*args, **kwargs)
        at_once(self._antipode_progress(result))
        return result

    def _handle_binary_result(self, *args: Any, **kwargs: Any) -> Any:
        with self._antipode_reading():
            result = super()._handle_binary_result(*args, **kwargs)
        at_once(self._antipode_progress(result))
        return result

    def get_rows(self, *args: Any, **kwargs: Any) -> Any:
        self._antipode.fetches()
        rows, end = super().get_rows(*args, **kwargs)
        at_once(self._antipode_saw(rows, end))
        return rows, end

    async def _antipode_write(
        self, payload: bytes, number: int = 0, compressed: int = 0, timeout: int | None = None
    ) -> None:
        self._socket.send(payload, number, compressed, timeout or self._write_timeout)

    async def _antipode_packet(self, timeout: int | None = None) -> Any:
        return self._socket.recv(timeout or self._read_timeout)

    def consume_results(self) -> None:
        if self.unread_result:
            self._antipode.discards = True
            super().consume_results()

    def rollback(self) -> None:
        self.consume_results()
        super().rollback()

    def _antipode_cut(self) -> None:
        self.shutdown()

    async def _antipode_consume(self) -> None:
        self.handle_unread_result()


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
