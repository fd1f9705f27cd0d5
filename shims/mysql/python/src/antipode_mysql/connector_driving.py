"""What the blocking and the asyncio connection of mysql-connector-python share. Their own classes send and receive."""

from __future__ import annotations

from abc import abstractmethod
from collections.abc import Callable, Sequence
from typing import Any, Final

from antipode.shim.both_ways import Steps
from mysql.connector.constants import ClientFlag, ServerCmd
from mysql.connector.errors import Error, OperationalError

from antipode_mysql.binding import Binding
from antipode_mysql.driving import Driving, Row
from antipode_mysql.recorder import AUTOCOMMIT, IN_TRANSACTION, Recorder
from antipode_mysql.tracking import STATE_CHANGED, gtids_in, length

_LOST: Final = range(2000, 3000)
"""What a client says by itself, 2013 for instance: the server told nothing."""
_STATEMENT: Final = (ServerCmd.QUERY, ServerCmd.STMT_EXECUTE)
SLOTS: Final = (
    "_antipode",
    "_antipode_call",
    "_antipode_columns",
    "_antipode_due",
    "_antipode_plain",
    "_antipode_prepared",
    "_antipode_warned",
)
POOL_SLOTS: Final = ("_antipode_binding", "_antipode_plain")


class ConnectorDriving(Driving):
    """Mixed into a connection's class; all state but the slots is the plain connection's."""

    _antipode_columns: Sequence[str]
    """Of the last answer with rows."""
    _antipode_due: bool
    """Whether rows of a prepared statement follow, of which the client knows only when its cursor does."""
    _antipode_prepared: dict[int, bytes]
    _antipode_warned: int

    # What the client's class says, as steps

    @abstractmethod
    def _antipode_write(self, payload: bytes, number: int = 0, compressed: int = 0, timeout: int | None = None) -> Any:
        """Sends a packet; `timeout` in seconds, None for the connection's own."""

    @abstractmethod
    def _antipode_packet(self, timeout: int | None = None) -> Any:
        """The next packet, with its header."""

    # What the application and its cursors call

    def cmd_query(self, query: Any, *args: Any, **kwargs: Any) -> Any:
        plain = super().cmd_query  # type: ignore[misc]
        return self._antipode_do(octets(query), lambda: plain(query, *args, **kwargs), self._antipode_several)

    def cmd_stmt_prepare(self, statement: Any, *args: Any, **kwargs: Any) -> Any:
        plain = super().cmd_stmt_prepare  # type: ignore[misc]
        return self._antipode_drive(
            self._antipode_prepare(octets(statement), lambda: plain(statement, *args, **kwargs))
        )

    def _antipode_prepare(self, sql: bytes, plain: Callable[[], Any]) -> Steps[Any]:
        prepared = yield plain()
        self._antipode_prepared[prepared["statement_id"]] = sql
        return prepared

    def cmd_stmt_execute(self, statement_id: int, *args: Any, **kwargs: Any) -> Any:
        sql = self._antipode_prepared.get(statement_id, b"EXECUTE")  # one that was prepared elsewhere may write
        plain = super().cmd_stmt_execute  # type: ignore[misc]
        return self._antipode_do(sql, lambda: plain(statement_id, *args, **kwargs))

    def cmd_stmt_close(self, statement_id: int, *args: Any, **kwargs: Any) -> Any:
        self._antipode_prepared.pop(statement_id, None)
        return super().cmd_stmt_close(statement_id, *args, **kwargs)  # type: ignore[misc]

    def cmd_reset_connection(self) -> Any:
        return self._antipode_drive(self._antipode_reset_with(super().cmd_reset_connection))  # type: ignore[misc]

    def _antipode_reset_with(self, plain: Callable[[], Any]) -> Steps[bool]:
        try:
            yield from self._antipode_reset()
        except OperationalError:  # as the client itself takes the loss that its command meets
            return False
        return bool((yield plain()))

    def cmd_change_user(self, *args: Any, **kwargs: Any) -> Any:
        plain = super().cmd_change_user  # type: ignore[misc]
        return self._antipode_drive(self._antipode_change_with(lambda: plain(*args, **kwargs)))

    def _antipode_change_with(self, plain: Callable[[], Any]) -> Steps[Any]:
        yield from self._antipode_reset()
        return (yield plain())

    def close(self) -> Any:
        return self._antipode_drive(self._antipode_end_with(super().close, leaves=True))  # type: ignore[misc]

    disconnect = close

    def shutdown(self) -> Any:
        return self._antipode_drive(self._antipode_end_with(super().shutdown, leaves=False))  # type: ignore[misc]

    def _antipode_end_with(self, plain: Callable[[], Any], *, leaves: bool) -> Steps[None]:
        if leaves:
            yield from self._antipode_leave()
        try:
            yield plain()
        finally:
            self._antipode_renew()

    def consume_results(self) -> Any:
        return self._antipode_drive(self._antipode_consume_with(super().consume_results))  # type: ignore[misc]

    def _antipode_consume_with(self, plain: Callable[[], Any]) -> Steps[None]:
        connection: Any = self
        if connection.unread_result:
            self._antipode.discards = True
            yield plain()

    def rollback(self) -> Any:
        return self._antipode_drive(self._antipode_rollback_with(super().rollback))  # type: ignore[misc]

    def _antipode_rollback_with(self, plain: Callable[[], Any]) -> Steps[None]:
        yield self.consume_results()
        yield plain()

    # The session's life

    def _antipode_connected(self, flags: int) -> None:
        connection: Any = self
        can_track = bool(connection._client_flags & ClientFlag.SESSION_TRACK)
        greeting = connection._handshake or {}
        version = str(greeting.get("server_version_original") or "")
        self._antipode.connected(int(connection.connection_id or 0), flags, version, can_track=can_track)

    def _antipode_leave(self) -> Steps[Exception | None]:
        connection: Any = self
        return None if connection._socket is None else (yield from super()._antipode_leave())

    def _antipode_reset(self) -> Steps[None]:
        """The session begins anew on the same connection. Raise what shows that this one is lost: the client's own
        command would have met it, and meets nothing any more (SHIM-2)."""
        error = yield from self._antipode_leave()
        self._antipode_renew()
        if isinstance(error, Error) and error.errno in _LOST:
            raise error

    def _antipode_renew(self) -> None:
        self._antipode_over()
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
        send = super()._send_cmd  # type: ignore[misc]
        numbers = (packet_number, packet, expect_response, compressed_packet_number)
        steps = self._antipode_send_cmd(
            lambda: send(command, argument, *numbers, read_timeout, write_timeout),
            command,
            packet or argument,
            packet_number,
            compressed_packet_number,
            read_timeout,
            write_timeout,
        )
        return self._antipode_drive(steps)

    def _antipode_send_cmd(
        self,
        plain: Callable[[], Any],
        command: int,
        payload: Any,
        number: int,
        compressed: int,
        read_timeout: int | None,
        write_timeout: int | None,
    ) -> Steps[Any]:
        """Sends a command of the application's, with what goes round it; the first packet of its answer.

        `plain` is the client's own way, for what is none of ours.
        """
        connection: Any = self
        call = self._antipode_call
        if call is None or call.sent or command not in _STATEMENT:
            return (yield plain())
        if connection._compress:
            call.asks = False  # the packets' numbers would not be those that the server awaits
        yield self._antipode_drain()
        if connection._socket is None:
            return (yield plain())
        call.sent = True
        if call.assigns is None and not call.asks:
            return (yield plain())
        if call.assigns is not None:
            yield self._antipode_send(call.assigns, write_timeout)
            if connection._compress:
                connection._handle_ok((yield self._antipode_packet(read_timeout)))
        made = connection._protocol.make_command(command, payload)
        yield self._antipode_write(made, number, compressed, write_timeout)
        if call.asks:
            yield self._antipode_send(self._antipode.flavour.question, write_timeout)
        if call.assigns is not None and not connection._compress:
            connection._handle_ok((yield self._antipode_packet(read_timeout)))
        return (yield self._antipode_packet(read_timeout))

    def _antipode_send(self, sql: bytes, timeout: int | None = None) -> Any:
        connection: Any = self
        attributes = b"\x00\x01" if connection._client_flags & ClientFlag.CLIENT_QUERY_ATTRIBUTES else b""
        made = connection._protocol.make_command(ServerCmd.QUERY, attributes + sql)
        return self._antipode_write(made, timeout=timeout)

    def _handle_result(self, *args: Any, **kwargs: Any) -> Any:
        plain = super()._handle_result  # type: ignore[misc]
        return self._antipode_drive(self._antipode_result(lambda: plain(*args, **kwargs)))

    def _handle_binary_result(self, *args: Any, **kwargs: Any) -> Any:
        plain = super()._handle_binary_result  # type: ignore[misc]
        return self._antipode_drive(self._antipode_result(lambda: plain(*args, **kwargs)))

    def _antipode_result(self, plain: Callable[[], Any]) -> Steps[Any]:
        """A part of the answer is read: perhaps the last one."""
        try:
            result = yield plain()
        except Error:  # nothing follows an error: the client does not know
            self._antipode_due = False
            self._have_next_result = False
            raise
        if isinstance(result, tuple):
            self._antipode_due = True
            self._antipode_columns = [column[0] for column in result[1]]
        elif "columns" in result:
            self._antipode_columns = [column[0] for column in result["columns"]]
        yield from self._antipode_perhaps_finish()
        return result

    def get_rows(self, *args: Any, **kwargs: Any) -> Any:
        plain = super().get_rows  # type: ignore[misc]
        return self._antipode_drive(self._antipode_rows(lambda: plain(*args, **kwargs)))

    def _antipode_rows(self, plain: Callable[[], Any]) -> Steps[Any]:
        self._antipode.fetches()
        rows, end = yield plain()
        call = self._antipode_call
        if call is not None and call.read is not None and rows:
            call.read.saw_rows(self._antipode_columns, rows)
        if end is not None:
            self._antipode_due = False
            yield from self._antipode_perhaps_finish()
        return rows, end

    def _handle_server_status(self, flags: int) -> None:
        super()._handle_server_status(flags)  # type: ignore[misc]
        self._antipode.flags = flags & (IN_TRANSACTION | AUTOCOMMIT)

    def _handle_ok(self, packet: Any) -> Any:
        answer = super()._handle_ok(packet)  # type: ignore[misc]
        self._antipode_warned = int(answer.get("warning_count") or 0)
        if self._antipode.tracks and int(answer["status_flag"]) & STATE_CHANGED:
            payload = bytes(packet[5:])
            _, at = length(payload, 0)  # how many rows were changed
            _, at = length(payload, at)  # the last number that was given
            self._antipode.heard(gtids_in(payload[at + 4 :]))
        return answer

    def _antipode_run(self, sql: bytes, several: bool, packs_reads: bool, action: Callable[[], Any]) -> Steps[Any]:
        self._antipode_due = False  # what an error left unread is no part of this statement
        return super()._antipode_run(sql, several, packs_reads, action)

    def _antipode_perhaps_finish(self) -> Steps[None]:
        call = self._antipode_call
        if call is not None and call.sent and not self._antipode_left():
            yield from self._antipode_finish(call)

    # What the recorder needs

    @property
    def _antipode_several(self) -> bool:
        connection: Any = self
        return bool(connection._client_flags & ClientFlag.MULTI_STATEMENTS)

    def _antipode_ask(self, question: bytes) -> Any:
        return self._antipode_drive(self._antipode_asked(question))

    def _antipode_asked(self, question: bytes) -> Steps[list[Row]]:
        yield self._antipode_send(question)
        rows: list[Row] = yield self._antipode_answer()
        return rows

    def _antipode_answer(self) -> Any:
        return self._antipode_drive(self._antipode_answered())

    def _antipode_answered(self) -> Steps[list[Row]]:
        columns, _ = length(_payload((yield self._antipode_packet())), 0)
        if not columns:
            return []
        for _ in range(columns + 1):
            _payload((yield self._antipode_packet()))  # what the columns are, and their end
        rows: list[Row] = []
        while True:
            packet = _payload((yield self._antipode_packet()))
            if packet[:1] == b"\xfe" and len(packet) < 9:
                self._antipode.flags = int.from_bytes(packet[3:5], "little") & (IN_TRANSACTION | AUTOCOMMIT)
                return rows
            rows.append(_values(packet, columns))

    def _antipode_open(self, error: BaseException) -> bool:
        if not isinstance(error, Error) or not isinstance(error.errno, int):
            return False
        return 1000 <= error.errno < 2000 or error.errno >= 3000

    def _antipode_left(self) -> bool:
        connection: Any = self
        return self._antipode_due or bool(connection.unread_result) or bool(connection._have_next_result)

    def _antipode_drain(self) -> Any:
        connection: Any = self
        return connection.handle_unread_result()

    def _antipode_warnings(self) -> int:
        return self._antipode_warned


def _payload(packet: Any) -> bytes:
    payload = bytes(packet[4:])
    if payload[:1] == b"\xff":
        raise Error(payload[3:].decode("utf-8", "replace"), errno=int.from_bytes(payload[1:3], "little"))
    return payload


def _values(packet: bytes, columns: int) -> Row:
    values: list[bytes | None] = []
    at = 0
    for _ in range(columns):
        size, at = length(packet, at)
        values.append(None if size is None else packet[at : at + size])
        at += size or 0
    return values


def octets(sql: Any) -> bytes:
    """A statement as it is sent."""
    return sql.encode("utf-8", "surrogateescape") if isinstance(sql, str) else bytes(sql)


def share(plain: Any, recording: Any, binding: Binding) -> Any:
    """A connection of the class `recording` that shares its state with the plain one."""
    wrapped = object.__new__(recording)
    wrapped.__dict__ = plain.__dict__
    wrapped._antipode_call = None
    wrapped._antipode_columns = ()
    wrapped._antipode_due = False
    wrapped._antipode_plain = plain
    wrapped._antipode_prepared = {}
    wrapped._antipode_warned = 0
    wrapped._antipode = Recorder(binding.opened(plain))
    flags = (IN_TRANSACTION if plain._in_transaction else 0) | (AUTOCOMMIT if plain._autocommit else 0)
    wrapped._antipode_connected(flags)
    return wrapped


def share_pool(plain: Any, recording: Any, binding: Binding) -> Any:
    """Return a pool of the class `recording` that shares its state, its words included, with the plain one."""
    wrapped = object.__new__(recording)
    wrapped.__dict__ = plain.__dict__
    wrapped._antipode_binding = binding
    wrapped._antipode_plain = plain
    return wrapped
