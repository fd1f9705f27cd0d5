"""PyMySQL: a connection that records its writes. It shares all state with the one that was wrapped."""

from __future__ import annotations

import struct
import warnings
from functools import cache
from typing import Any, Final

import pymysql
from antipode.shim import refuse_making
from antipode.shim.both_ways import run
from pymysql.connections import MySQLResult
from pymysql.constants import CLIENT, COMMAND

from antipode_mysql.binding import Binding
from antipode_mysql.driving import BlockingDriving, Row
from antipode_mysql.recorder import Recorder
from antipode_mysql.tracking import STATE_CHANGED, gtids_in

# Their inner parts have no types: as Any they may be overridden.
_Plain: Any = pymysql.Connection
_PlainResult: Any = MySQLResult
_HELD: Final = 65536
"""Statements up to this size leave in one piece with the question behind them."""


def _command(sql: bytes) -> bytes:
    return struct.pack("<iB", len(sql) + 1, COMMAND.COM_QUERY) + sql


class _Result(_PlainResult):  # type: ignore[misc]
    """A result that says when it has been read, and what the server's status is then."""

    def _check_packet_is_eof(self, packet: Any) -> bool:
        connection = self.connection
        ended: bool = super()._check_packet_is_eof(packet)
        if ended and isinstance(connection, RecordingConnection):
            status = struct.unpack_from("<H", packet.get_all_data(), 3)[0]
            connection._antipode_end_of_rows(self, status)
        return ended

    def _read_rowdata_packet_unbuffered(self) -> Any:
        connection = self.connection
        if self.unbuffered_active and isinstance(connection, RecordingConnection):
            connection._antipode.fetches()
        return super()._read_rowdata_packet_unbuffered()

    def _read_row_from_packet(self, packet: Any) -> tuple[Any, ...]:
        row: tuple[Any, ...] = super()._read_row_from_packet(packet)
        if self.unbuffered_active:
            call = self.connection._antipode_call
            if call is not None and call.read is not None:
                call.read.saw_rows([column[0] for column in self.description or ()], [row])
        return row


class RecordingConnection(BlockingDriving, _Plain):  # type: ignore[misc]
    """A `pymysql.Connection` whose writes join the scope."""

    _antipode_held: bytearray | None
    _antipode_warned: int
    __init__ = refuse_making

    def __del__(self) -> None:
        """The connection that was wrapped closes itself."""

    # What the application calls

    def query(self, sql: Any, unbuffered: bool = False) -> Any:
        if isinstance(sql, str):
            sql = sql.encode(self.encoding)
        plain = super().query
        several = bool(self.client_flag & CLIENT.MULTI_STATEMENTS)
        return self._antipode_do(bytes(sql), lambda: plain(sql, unbuffered=unbuffered), several, not unbuffered)

    def begin(self) -> None:
        self._antipode_do(b"BEGIN", super().begin)

    def commit(self) -> None:
        self._antipode_do(b"COMMIT", super().commit)

    def rollback(self) -> None:
        self._antipode_do(b"ROLLBACK", super().rollback)

    def _send_autocommit_mode(self) -> None:
        self._antipode_do(b"SET AUTOCOMMIT", super()._send_autocommit_mode)

    def close(self) -> None:
        if self._sock is not None:
            run(self._antipode_leave())
        try:
            super().close()
        finally:
            self._antipode_over()
            self._antipode.over()

    def connect(self, sock: Any = None) -> None:
        self._antipode.unknown()
        self._antipode_over()
        self._antipode.renewed()
        super().connect(sock)
        self._antipode_connected()
        self._antipode.opened(self._antipode_plain)

    def _antipode_connected(self) -> None:
        can_track = bool(self.client_flag & self.server_capabilities & CLIENT.SESSION_TRACK)
        version = str(self.get_server_info())
        self._antipode.connected(self.thread_id(), self.server_status, version, can_track=can_track)

    # On the wire

    def _execute_command(self, command: int, sql: Any) -> None:
        call = self._antipode_call
        if call is None or call.sent:
            super()._execute_command(command, sql)
            return
        self._antipode_held = bytearray()
        try:
            if call.assigns is not None:
                self._antipode_held += _command(call.assigns)
            super()._execute_command(command, sql)
            held = bytes(self._antipode_held)
        finally:
            self._antipode_held = None
        if call.asks:
            held += _command(self._antipode.flavour.question)
        call.sent = True
        if held:
            self._write_bytes(held)
        if call.assigns is not None:
            super()._read_ok_packet()
            self._next_seq_id = 1

    def _write_bytes(self, data: Any) -> None:
        held = self._antipode_held
        if held is None:
            super()._write_bytes(data)
        elif len(held) + len(data) <= _HELD:
            held += data
        else:
            call = self._antipode_call
            if call is not None:
                call.sent = True
            out = bytes(held) + data
            held.clear()
            super()._write_bytes(out)

    def _read_query_result(self, unbuffered: bool = False) -> Any:
        self._result = None
        result = _Result(self)
        if unbuffered:
            result.init_unbuffered_query()
        else:
            result.read()
        self._result = result
        call = self._antipode_call
        if call is not None and call.read is not None and result.rows:
            call.read.saw_rows([column[0] for column in result.description or ()], result.rows)
        self._antipode_warned = int(result.warning_count or 0)
        if result.server_status is not None:
            self.server_status = result.server_status
            self._antipode.flags = result.server_status & 3
            self._antipode_heard(result.server_status, result.message)
        return result.affected_rows

    def _read_ok_packet(self) -> Any:
        packet = super()._read_ok_packet()
        self._antipode.flags = self.server_status & 3
        self._antipode_warned = packet.warning_count
        self._antipode_heard(packet.server_status, packet.message)
        return packet

    def _antipode_heard(self, status: int, message: Any) -> None:
        if self._antipode.tracks and status & STATE_CHANGED and isinstance(message, bytes):
            self._antipode.heard(gtids_in(message))

    def next_result(self, unbuffered: bool = False) -> Any:
        count = super().next_result(unbuffered)
        call = self._antipode_call
        if call is not None and call.sent and not self._antipode_left():
            run(self._antipode_finish(call))
        return count

    def _antipode_end_of_rows(self, result: Any, status: int) -> None:
        """The last row of a result has been read."""
        self._antipode.flags = status & 3
        call = self._antipode_call
        if call is not None and call.sent and result.unbuffered_active and not result.has_next:
            result.unbuffered_active = False
            run(self._antipode_finish(call))

    # What the recorder needs

    def _antipode_ask(self, question: bytes) -> list[Row]:
        if self._sock is None:
            raise pymysql.err.InterfaceError(0, "")  # as PyMySQL says that it is closed
        self._write_bytes(_command(question))
        return self._antipode_answer()

    def _antipode_answer(self) -> list[Row]:
        self._next_seq_id = 1
        first = self._read_packet()
        if first.is_ok_packet():
            return []
        columns = first.read_length_encoded_integer()
        for _ in range(columns + 1):
            self._read_packet()  # what the columns are, and their end
        rows: list[Row] = []
        while True:
            packet = self._read_packet()
            if packet.is_eof_packet():
                self._antipode.flags = struct.unpack_from("<H", packet.get_all_data(), 3)[0] & 3
                return rows
            rows.append([packet.read_length_coded_string() for _ in range(columns)])

    def _antipode_cut(self) -> None:
        self._force_close()

    def _antipode_open(self, error: BaseException) -> bool:
        return isinstance(error, pymysql.err.MySQLError) and self._sock is not None

    def _antipode_left(self) -> bool:
        result = self._result
        return result is not None and (bool(result.unbuffered_active) or bool(result.has_next))

    def _antipode_drain(self) -> None:
        connection: Any = self  # whose result changes with each step
        if connection._result.unbuffered_active:
            warnings.warn("Previous unbuffered result was left incomplete", stacklevel=6)
            connection._result._finish_unbuffered_query()
        while connection._result.has_next:
            self.next_result()

    def _antipode_warnings(self) -> int:
        return self._antipode_warned


@cache
def recording_class(plain: Any) -> Any:
    """A class of the application's own connection's class, whose state is elsewhere."""
    if issubclass(plain, RecordingConnection):
        return plain
    slots = ("_antipode", "_antipode_call", "_antipode_held", "_antipode_plain", "_antipode_warned")
    bases = (RecordingConnection,) if plain is pymysql.Connection else (RecordingConnection, plain)
    return type(f"Recording{plain.__name__}", bases, {"__slots__": slots, "__module__": __name__})


def wrap_connection(plain: Any, binding: Binding) -> Any:
    """A connection that shares its state with the plain one."""
    kind: Any = type(plain)
    wrapped = object.__new__(recording_class(kind))
    wrapped.__dict__ = plain.__dict__
    wrapped._antipode_held = None
    wrapped._antipode_warned = 0
    wrapped._antipode_call = None
    wrapped._antipode_plain = plain
    wrapped._antipode = Recorder(binding.opened(plain))
    if plain._sock is not None:
        wrapped._antipode_connected()
    return wrapped
