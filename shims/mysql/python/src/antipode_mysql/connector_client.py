"""mysql-connector-python: a connection that records its writes. It shares all state with the one that was wrapped."""

from __future__ import annotations

from collections.abc import Generator, Sequence
from functools import cache
from typing import Any

from mysql.connector.connection import MySQLConnection
from mysql.connector.constants import ClientFlag, ServerCmd
from mysql.connector.errors import Error

from antipode_mysql.binding import Binding
from antipode_mysql.driving import Driving, Row
from antipode_mysql.recorder import AUTOCOMMIT, IN_TRANSACTION, Recorder
from antipode_mysql.tracking import STATE_CHANGED, gtids_in, length

_Plain: Any = MySQLConnection  # its inner parts may be overridden
_STATEMENT = (ServerCmd.QUERY, ServerCmd.STMT_EXECUTE)


class RecordingConnection(Driving, _Plain):  # type: ignore[misc]
    """A `MySQLConnection` whose writes join the scope."""

    _antipode_prepared: dict[int, bytes]
    _antipode_warned: int

    # What the application and its cursors call

    def cmd_query(self, query: Any, *args: Any, **kwargs: Any) -> Any:
        sql = query.encode("utf-8", "surrogateescape") if isinstance(query, str) else bytes(query)
        plain = super().cmd_query
        return self._antipode_run(sql, self._antipode_several, False, lambda: plain(query, *args, **kwargs))

    def cmd_query_iter(self, statements: Any, **kwargs: Any) -> Generator[Any, None, None]:
        sql = statements.encode("utf-8", "surrogateescape") if isinstance(statements, str) else bytes(statements)
        results = super().cmd_query_iter(statements, **kwargs)
        try:
            first = self._antipode_run(sql, self._antipode_several, False, lambda: next(results))
        except StopIteration:
            return
        yield first
        yield from results

    def cmd_stmt_prepare(self, statement: Any, *args: Any, **kwargs: Any) -> Any:
        prepared = super().cmd_stmt_prepare(statement, *args, **kwargs)
        sql = statement.encode("utf-8", "surrogateescape") if isinstance(statement, str) else bytes(statement)
        self._antipode_prepared[prepared["statement_id"]] = sql
        return prepared

    def cmd_stmt_execute(self, statement_id: int, *args: Any, **kwargs: Any) -> Any:
        sql = self._antipode_prepared.get(statement_id, b"EXECUTE")  # one that was prepared elsewhere may write
        plain = super().cmd_stmt_execute
        return self._antipode_run(sql, False, False, lambda: plain(statement_id, *args, **kwargs))

    def cmd_stmt_close(self, statement_id: int, *args: Any, **kwargs: Any) -> Any:
        self._antipode_prepared.pop(statement_id, None)
        return super().cmd_stmt_close(statement_id, *args, **kwargs)

    # The session's life

    def _open_connection(self) -> None:
        self._antipode.unknown()
        self._antipode_renew()
        super()._open_connection()
        self._antipode_connected(self._antipode.flags)

    def _antipode_connected(self, flags: int) -> None:
        can_track = bool(self._client_flags & ClientFlag.SESSION_TRACK)
        version = str(self._handshake.get("server_version_original") or "") if self._handshake else ""
        self._antipode.connected(_session(self), flags, version, can_track=can_track)

    def cmd_reset_connection(self) -> bool:
        self._antipode_renew()
        return bool(super().cmd_reset_connection())

    def cmd_change_user(self, *args: Any, **kwargs: Any) -> Any:
        self._antipode_renew()
        return super().cmd_change_user(*args, **kwargs)

    def close(self) -> None:
        try:
            super().close()
        finally:
            self._antipode_renew()

    def shutdown(self) -> None:
        try:
            super().shutdown()
        finally:
            self._antipode_renew()

    def _antipode_renew(self) -> None:
        self._antipode_call = None
        self._antipode_prepared.clear()
        self._antipode.renewed()

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
        call = self._antipode_call
        times = {"read_timeout": read_timeout, "write_timeout": write_timeout}
        if call is None or call.sent or command not in _STATEMENT:
            return super()._send_cmd(
                command, argument, packet_number, packet, expect_response, compressed_packet_number, **times
            )
        if self._compress:
            call.asks = False  # the packets' numbers would not be those that the server awaits
        if call.assigns is None and not call.asks:
            self.handle_unread_result()
            call.sent = True
            return super()._send_cmd(
                command, argument, packet_number, packet, expect_response, compressed_packet_number, **times
            )
        self.handle_unread_result()
        if self._socket is None:
            return super()._send_cmd(command, argument, packet_number, packet, expect_response)
        call.sent = True
        if call.assigns is not None:
            self._antipode_send(call.assigns, write_timeout)
            if self._compress:
                self._handle_ok(self._socket.recv(read_timeout or self._read_timeout))
        payload = self._protocol.make_command(command, packet or argument)
        self._socket.send(payload, packet_number, compressed_packet_number, write_timeout or self._write_timeout)
        if call.asks:
            self._antipode_send(self._antipode.flavour.question, write_timeout)
        if call.assigns is not None and not self._compress:
            self._handle_ok(self._socket.recv(read_timeout or self._read_timeout))
        return self._socket.recv(read_timeout or self._read_timeout)

    def _antipode_send(self, sql: bytes, timeout: int | None = None) -> None:
        attributes = b"\x00\x01" if self._client_flags & ClientFlag.CLIENT_QUERY_ATTRIBUTES else b""
        payload = self._protocol.make_command(ServerCmd.QUERY, attributes + sql)
        self._socket.send(payload, 0, 0, timeout or self._write_timeout)

    def _handle_server_status(self, flags: int) -> None:
        super()._handle_server_status(flags)
        self._antipode.flags = flags & (IN_TRANSACTION | AUTOCOMMIT)

    def _handle_ok(self, packet: Any) -> Any:
        answer = super()._handle_ok(packet)
        self._antipode_warned = int(answer.get("warning_count") or 0)
        if self._antipode.tracks and int(answer["status_flag"]) & STATE_CHANGED:
            payload = bytes(packet[5:])
            _, at = length(payload, 0)  # how many rows were changed
            _, at = length(payload, at)  # the last number that was given
            self._antipode.heard(gtids_in(payload[at + 4 :]))
        return answer

    def _handle_result(self, *args: Any, **kwargs: Any) -> Any:
        result = super()._handle_result(*args, **kwargs)
        self._antipode_progress()
        return result

    def get_rows(self, *args: Any, **kwargs: Any) -> Any:
        rows, end = super().get_rows(*args, **kwargs)
        call = self._antipode_call
        if call is not None and call.read is not None and rows:
            call.read.saw_rows([column[0] for column in self._columns_desc or ()], rows)
        if end is not None:
            self._antipode_progress()
        return rows, end

    def _antipode_progress(self) -> None:
        """A part of the answer has been read: perhaps the last one."""
        call = self._antipode_call
        if call is not None and call.sent and not self._antipode_left():
            self._antipode_finish(call)

    # What the recorder needs

    @property
    def _antipode_several(self) -> bool:
        return bool(self._client_flags & ClientFlag.MULTI_STATEMENTS)

    def _antipode_ask(self, question: bytes) -> list[Row]:
        self._antipode_send(question)
        return self._antipode_answer()

    def _antipode_answer(self) -> list[Row]:
        first = self._antipode_packet()
        columns, _ = length(first, 0)
        if not columns:
            return []
        for _ in range(columns + 1):
            self._antipode_packet()  # what the columns are, and their end
        rows: list[Row] = []
        while True:
            packet = self._antipode_packet()
            if packet[:1] == b"\xfe" and len(packet) < 9:
                return rows
            rows.append(_values(packet, columns))

    def _antipode_packet(self) -> bytes:
        packet = bytes(self._socket.recv(self._read_timeout)[4:])
        if packet[:1] == b"\xff":
            raise Error(packet[3:].decode("utf-8", "replace"), errno=int.from_bytes(packet[1:3], "little"))
        return packet

    def _antipode_open(self, error: BaseException) -> bool:
        if not isinstance(error, Error) or not isinstance(error.errno, int):
            return False
        return 1000 <= error.errno < 2000 or error.errno >= 3000

    def _antipode_left(self) -> bool:
        return bool(self.unread_result) or bool(self._have_next_result)

    def _antipode_warnings(self) -> int:
        return self._antipode_warned

    def _antipode_rows(self) -> tuple[Sequence[str], Sequence[Any]]:
        return (), ()  # they were seen as they were read


def _values(packet: bytes, columns: int) -> Row:
    values: list[bytes | None] = []
    at = 0
    for _ in range(columns):
        size, at = length(packet, at)
        values.append(None if size is None else packet[at : at + size])
        at += size or 0
    return values


def _session(connection: Any) -> int:
    return int(connection.connection_id or 0)


@cache
def recording_class(plain: Any) -> Any:
    """A class of the application's own connection's class, whose state is elsewhere."""
    if issubclass(plain, RecordingConnection):
        return plain
    slots = ("_antipode", "_antipode_call", "_antipode_plain", "_antipode_prepared", "_antipode_warned")
    bases = (RecordingConnection,) if plain is MySQLConnection else (RecordingConnection, plain)
    return type(f"Recording{plain.__name__}", bases, {"__slots__": slots, "__module__": __name__})


def wrap_connection(plain: Any, binding: Binding) -> Any:
    """A connection that shares its state with the plain one."""
    kind: Any = type(plain)
    wrapped = object.__new__(recording_class(kind))
    wrapped.__dict__ = plain.__dict__
    wrapped._antipode_call = None
    wrapped._antipode_plain = plain
    wrapped._antipode_prepared = {}
    wrapped._antipode_warned = 0
    wrapped._antipode = Recorder(binding)
    flags = (IN_TRANSACTION if plain._in_transaction else 0) | (AUTOCOMMIT if plain._autocommit else 0)
    wrapped._antipode_connected(flags)
    return wrapped
