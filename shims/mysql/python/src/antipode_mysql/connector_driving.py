"""What the blocking and the asyncio connection of mysql-connector-python share. Their own classes send and receive."""

from __future__ import annotations

from abc import abstractmethod
from collections.abc import Awaitable, Callable, Iterator, Sequence
from contextlib import contextmanager
from typing import Any, Final, TypeVar

from mysql.connector.constants import ClientFlag, ServerCmd
from mysql.connector.errors import Error

from antipode_mysql.binding import Binding
from antipode_mysql.driving import Driving, Row
from antipode_mysql.recorder import AUTOCOMMIT, IN_TRANSACTION, Recorder
from antipode_mysql.tracking import STATE_CHANGED, gtids_in, length

_R = TypeVar("_R")
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

    # What the client's class says

    @abstractmethod
    async def _antipode_write(
        self, payload: bytes, number: int = 0, compressed: int = 0, timeout: int | None = None
    ) -> None:
        """Sends a packet; `timeout` in seconds, None for the connection's own."""

    @abstractmethod
    async def _antipode_packet(self, timeout: int | None = None) -> Any:
        """The next packet, with its header."""

    @abstractmethod
    async def _antipode_consume(self) -> None:
        """Refuses, or reads to its end, what is unread of the statement before."""

    # The session's life

    def _antipode_connected(self, flags: int) -> None:
        connection: Any = self
        can_track = bool(connection._client_flags & ClientFlag.SESSION_TRACK)
        greeting = connection._handshake or {}
        version = str(greeting.get("server_version_original") or "")
        self._antipode.connected(int(connection.connection_id or 0), flags, version, can_track=can_track)

    async def _antipode_leave(self) -> Exception | None:
        connection: Any = self
        return None if connection._socket is None else await super()._antipode_leave()

    async def _antipode_reset(self) -> None:
        """The session begins anew on the same connection. Raise what shows that this one is lost: the client's own
        command would have met it, and meets nothing any more (SHIM-2)."""
        error = await self._antipode_leave()
        self._antipode_renew()
        if isinstance(error, Error) and error.errno in _LOST:
            raise error

    def _antipode_renew(self) -> None:
        self._antipode_over()
        self._antipode_prepared.clear()
        self._antipode.renewed()

    # On the wire

    async def _antipode_send_cmd(
        self,
        plain: Callable[[], Awaitable[Any]],
        command: int,
        payload: Any,
        number: int,
        compressed: int,
        read_timeout: int | None,
        write_timeout: int | None,
    ) -> Any:
        """Sends a command of the application's, with what goes round it; the first packet of its answer.

        `plain` is the client's own way, for what is none of ours.
        """
        connection: Any = self
        call = self._antipode_call
        if call is None or call.sent or command not in _STATEMENT:
            return await plain()
        if connection._compress:
            call.asks = False  # the packets' numbers would not be those that the server awaits
        await self._antipode_consume()
        if connection._socket is None:
            return await plain()
        call.sent = True
        if call.assigns is None and not call.asks:
            return await plain()
        if call.assigns is not None:
            await self._antipode_send(call.assigns, write_timeout)
            if connection._compress:
                connection._handle_ok(await self._antipode_packet(read_timeout))
        made = connection._protocol.make_command(command, payload)
        await self._antipode_write(made, number, compressed, write_timeout)
        if call.asks:
            await self._antipode_send(self._antipode.flavour.question, write_timeout)
        if call.assigns is not None and not connection._compress:
            connection._handle_ok(await self._antipode_packet(read_timeout))
        return await self._antipode_packet(read_timeout)

    async def _antipode_send(self, sql: bytes, timeout: int | None = None) -> None:
        connection: Any = self
        attributes = b"\x00\x01" if connection._client_flags & ClientFlag.CLIENT_QUERY_ATTRIBUTES else b""
        await self._antipode_write(
            connection._protocol.make_command(ServerCmd.QUERY, attributes + sql), timeout=timeout
        )

    @contextmanager
    def _antipode_reading(self) -> Iterator[None]:
        """Know for the block, in which a result is read, that nothing follows an error: the client does not."""
        try:
            yield
        except Error:
            self._antipode_due = False
            self._have_next_result = False
            raise

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

    async def _antipode_run(
        self, sql: bytes, several: bool, packs_reads: bool, action: Callable[[], Awaitable[_R]]
    ) -> _R:
        self._antipode_due = False  # what an error left unread is no part of this statement
        return await super()._antipode_run(sql, several, packs_reads, action)

    async def _antipode_progress(self, result: Any) -> None:
        """A part of the answer has been read: perhaps the last one."""
        if isinstance(result, tuple):
            self._antipode_due = True
            self._antipode_columns = [column[0] for column in result[1]]
        elif "columns" in result:
            self._antipode_columns = [column[0] for column in result["columns"]]
        await self._antipode_perhaps_finish()

    async def _antipode_perhaps_finish(self) -> None:
        call = self._antipode_call
        if call is not None and call.sent and not self._antipode_left():
            await self._antipode_finish(call)

    async def _antipode_saw(self, rows: Sequence[Any], end: Any) -> None:
        """Rows of the answer have been read."""
        call = self._antipode_call
        if call is not None and call.read is not None and rows:
            call.read.saw_rows(self._antipode_columns, rows)
        if end is not None:
            self._antipode_due = False
            await self._antipode_perhaps_finish()

    # What the recorder needs

    @property
    def _antipode_several(self) -> bool:
        connection: Any = self
        return bool(connection._client_flags & ClientFlag.MULTI_STATEMENTS)

    async def _antipode_ask(self, question: bytes) -> list[Row]:
        await self._antipode_send(question)
        return await self._antipode_answer()

    async def _antipode_answer(self) -> list[Row]:
        columns, _ = length(await self._antipode_payload(), 0)
        if not columns:
            return []
        for _ in range(columns + 1):
            await self._antipode_payload()  # what the columns are, and their end
        rows: list[Row] = []
        while True:
            packet = await self._antipode_payload()
            if packet[:1] == b"\xfe" and len(packet) < 9:
                self._antipode.flags = int.from_bytes(packet[3:5], "little") & (IN_TRANSACTION | AUTOCOMMIT)
                return rows
            rows.append(_values(packet, columns))

    async def _antipode_payload(self) -> bytes:
        packet = bytes((await self._antipode_packet())[4:])
        if packet[:1] == b"\xff":
            raise Error(packet[3:].decode("utf-8", "replace"), errno=int.from_bytes(packet[1:3], "little"))
        return packet

    def _antipode_open(self, error: BaseException) -> bool:
        if not isinstance(error, Error) or not isinstance(error.errno, int):
            return False
        return 1000 <= error.errno < 2000 or error.errno >= 3000

    def _antipode_left(self) -> bool:
        connection: Any = self
        return self._antipode_due or bool(connection.unread_result) or bool(connection._have_next_result)

    async def _antipode_drain(self) -> None:
        await self._antipode_consume()

    def _antipode_warnings(self) -> int:
        return self._antipode_warned


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
