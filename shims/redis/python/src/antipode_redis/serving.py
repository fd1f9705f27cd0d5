"""Small parts that the sync and the asyncio client share."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING, Any, Final

from antipode import EMPTY, ConfigurationError, current_scope
from antipode.shim import Read, Server, lineage_at_rest, text_at_rest
from redis.client import NEVER_DECODE
from redis.exceptions import ResponseError

from antipode_redis import field
from antipode_redis.binding import Binding
from antipode_redis.calls import WriteCall
from antipode_redis.commands import Kind, answers, classify, command_name
from antipode_redis.info import QUESTION

if TYPE_CHECKING:
    from antipode_redis.reads import ReadCall

CALL: Final = "_antipode_call"
"""The option by which a call's record travels to the place where its connection is known."""
PASSED: Final = object()
"""The record of a call that came by the wrapped client, and of which there is nothing to do."""


class HandTransaction:
    """MULTI, EXEC, DISCARD or RESET, sent by the application itself."""

    __slots__ = ("binding", "name", "wait")

    def __init__(self, binding: Binding, name: str) -> None:
        self.binding = binding
        self.name = name
        self.wait: ReadCall | None = None
        """What a MULTI has waited for, if it was in vain: raised behind redis-py's own attempts."""

    def is_past(self, wait: ReadCall, connection: Any) -> bool:
        """Return whether an EXEC is refused, as it may answer with data that nobody has proved.

        connection: whose MULTI it ends; None where nobody here saw that, nor what was queued since: anything was.
        """
        if connection is None:
            wait.mark()
        if wait.is_past(EMPTY if connection is None else self.binding.waited[connection]):
            self.wait = wait
        return self.wait is not None

    def take(self, connection: Any, *, queued: bool) -> WriteCall | None:
        """Return the write that this ends, if there is one; of EXEC, as the current scope's, too (SCOPE-24).

        queued: a MULTI is known there. Where it is not, nobody here knows what an EXEC does. A MULTI inside another one
        is the server's to refuse: that other one stays as it is.
        """
        held: WriteCall | None = None
        if queued and self.name != "MULTI":
            held = self.binding.open.pop(connection, None)
        elif self.name == "EXEC" and current_scope() is not None:
            held = WriteCall(self.binding, True)
            if held.noted is not None:
                held.noted.changes(None)
        if held is not None and self.name == "EXEC":
            held.join_committer()
        return held

    def check(self) -> None:
        """Raise what the policies say of such a wait."""
        if self.wait is not None:
            self.wait.check()


class HiddenField:
    """A read of a hash, out of whose reply our own field is to be left."""

    __slots__ = ("binding",)

    def __init__(self, binding: Binding) -> None:
        self.binding = binding


class ServedConnection:
    """Stands for a connection whose reply has been read: redis-py's own parsing goes on from there."""

    def __init__(self, value: Any) -> None:
        self._value = value

    def read_response(self, *_: Any, **__: Any) -> Any:
        """The reply; raises it where it is an error."""
        if isinstance(self._value, Exception):
            raise self._value
        return self._value


class AsyncServedConnection(ServedConnection):
    """The same, for asyncio."""

    async def read_response(self, *_: Any, **__: Any) -> Any:
        """The reply; raises it where it is an error."""
        return ServedConnection.read_response(self)


def server_of(binding: Binding, connection: Any) -> Server | None:
    """The server of the store that a connection reaches, if it is known."""
    place = f"redis://{getattr(connection, 'host', '')}:{getattr(connection, 'port', '')}"
    database = getattr(connection, "db", 0)
    return binding.store.server_at(f"{place}/{database}" if database else place) or binding.server


def packed_write(call: WriteCall, connection: Any, args: Sequence[Any], asks: bool) -> Sequence[bytes]:
    """The bytes of a write, with the question behind them."""
    args = with_lineage(call.binding, call, args)
    chunks: Sequence[bytes] = connection.pack_command(*args)
    return [*chunks[:-1], chunks[-1] + QUESTION] if asks else chunks


def with_lineage(binding: Binding, call: WriteCall | None, args: Sequence[Any]) -> Sequence[Any]:
    """A command as it is sent: where a lineage rests beside what it writes, with the scope's."""
    if binding.rests and call is not None and command_name(args) in field.WRITES:
        text = text_beside(call)
        return field.wire_write(args, text) if text or command_name(args) == "HDEL" else args
    if binding.envelopes is not None and binding.envelopes.writes(args):
        return binding.envelopes.closed(args, text_beside(call))
    return args


def text_beside(call: WriteCall | None) -> str:
    """What rests beside a write's value, as text; empty where nothing does."""
    return "" if call is None else text_at_rest(call.lineage_beside(), call.binding.options.lineage_out)


def hidden(binding: Binding, args: Sequence[Any]) -> HiddenField | None:
    """What a plain read needs where its reply is not what the application is to get."""
    return (
        HiddenField(binding) if (binding.rests and command_name(args) in field.READS) or binding.opens(args) else None
    )


def wire_read(binding: Binding, args: Sequence[Any]) -> Sequence[Any]:
    """A read as it is sent."""
    return field.wire_read(args) if binding.rests else args


def shown(binding: Binding, args: Sequence[Any], value: Any, options: Any, call: Any) -> Any:
    """A reply as the application gets it, before redis-py's own parsing. `call`: who wants to know what was beside."""
    envelopes = binding.envelopes
    if binding.rests:
        return field.hide(args, value)[0]
    if envelopes is not None and envelopes.answers(args):
        value, found = envelopes.opened(args, value, decode=NEVER_DECODE not in options)
        if isinstance(call, WriteCall):
            call.beside = found
        elif isinstance(call, Read) and call.collects:
            call.saw(lineage=envelopes.lineage(found))
    return value


def without_lineage(binding: Binding, args: Sequence[Any], options: Any) -> Sequence[Any]:
    """A command where nothing is recorded: what is in envelopes is opened all the same, and closed where it must be."""
    if binding.envelopes is not None:
        args = with_lineage(binding, None, args)
        if binding.opens(args):
            options[CALL] = HiddenField(binding)
    return args


class Batch:
    """The commands of one pipeline, as they are sent and as their replies are handed on."""

    def __init__(self, binding: Binding, call: WriteCall | None, reading: Any, commands: Sequence[Any]) -> None:
        self.binding = binding
        self.call = call
        self.reading = reading
        self.commands = [args for args, _ in commands]
        self.asks = binding.may_ask and (call is not None or (reading is not None and reading.collects))
        self.reply: Any = None
        self._replies = 0
        self._rests = binding.rests and any(
            command_name(args) in field.WRITES or command_name(args) in field.READS for args in self.commands
        )
        self._opens = [binding.opens(args) for args in self.commands] if binding.envelopes is not None else []
        self._closes = binding.envelopes is not None and any(map(binding.envelopes.writes, self.commands))

    @property
    def plain(self) -> bool:
        """Nothing of ours is to be sent or changed, and nobody asks what became of it."""
        return self.call is None and not (self.asks or self._rests or self._closes or any(self._opens))

    @property
    def apart(self) -> bool:
        """redis-py sends commands of its own before these."""
        found = any(command_name(args) == "HIMPORT" for args in self.commands)
        if found and (self._closes or any(self._opens)):
            raise ConfigurationError("HIMPORT and keys of envelope_keys= cannot be in one pipeline", code="AP505")
        return found

    def wire(self, commands: Sequence[Any]) -> Sequence[Any]:
        """The commands as they are sent."""
        if not (self._rests or self._closes):
            return commands
        return [wire_read(self.binding, with_lineage(self.binding, self.call, args)) for args in commands]

    def raw(self, transaction: bool) -> bool:
        """Whether the next reply holds values out of envelopes, and so is to be read without decoding."""
        if transaction:
            return self._replies == len(self.commands) + 1 and any(self._opens)
        return self._replies < len(self._opens) and self._opens[self._replies]

    def passed(self, value: Any, transaction: bool, *, decode: bool = True) -> Any:
        """A reply as the application gets it, without what rests beside it. `decode`: it was read without decoding."""
        opens = self.raw(transaction)
        place, self._replies = self._replies, self._replies + 1
        if opens:
            return self._opened(place, value, transaction, decode)
        if not self._rests:
            return value
        if not transaction:
            return self._hide(self.commands[place], value) if place < len(self.commands) else value
        if place == len(self.commands) + 1 and isinstance(value, list) and len(value) == len(self.commands):
            return [self._hide(args, each) for args, each in zip(self.commands, value, strict=True)]
        return value

    def _opened(self, place: int, value: Any, transaction: bool, decode: bool) -> Any:
        envelopes = self.binding.envelopes
        if envelopes is None or not transaction:
            return self._open(self.commands[place], value, decode)
        if not isinstance(value, list) or len(value) != len(self.commands):
            return envelopes.decoded(value, decode)
        return [
            self._open(args, each, decode) if opens else envelopes.decoded(each, decode)
            for args, opens, each in zip(self.commands, self._opens, value, strict=True)
        ]

    def _open(self, args: Sequence[Any], value: Any, decode: bool) -> Any:
        envelopes = self.binding.envelopes
        if envelopes is None:
            return value
        value, found = envelopes.opened(args, value, decode=decode)
        if self.reading is not None and self.reading.collects:
            self.reading.saw(lineage=envelopes.lineage(found))
        elif self.call is not None:
            self.call.beside = [*(self.call.beside or ()), *found]
        return value

    def _hide(self, args: Sequence[Any], value: Any) -> Any:
        value, rest = field.hide(args, value)
        name = command_name(args)
        if self.reading is not None and name in field.READS:
            options = self.binding.options
            if name in {"HGETALL", "HVALS"}:
                self.reading.saw(lineage=lineage_at_rest(rest, self.binding.store.name, options.lineage_in))
            elif options.lineage_in:
                self.reading.mark()
        return value


def may_answer(commands: Sequence[Any]) -> bool:
    """Return whether a reply to these queued commands may hold data, so that their pipeline waits (SHIM-44)."""
    kinds = [(args, classify(args)) for args, _ in commands]
    reads = (kind is Kind.READ or (kind in (Kind.WRITE, Kind.MAYBE) and answers(args)) for args, kind in kinds)
    return any(reads) or ends_unseen(commands)


def ends_unseen(commands: Sequence[Any]) -> bool:
    """Return whether an EXEC is among them whose MULTI is not: nobody knows here what was queued before it."""
    begun = False
    for args, _ in commands:
        name = command_name(args) if classify(args) is Kind.TRANSACTION else ""
        if name == "EXEC" and not begun:
            return True
        begun = name == "MULTI" or (begun and not name)
    return False


def may_write(args: Sequence[Any]) -> bool:
    """Whether a queued command makes its pipeline a write; an EXEC may have been queued for before (SCOPE-24)."""
    kind = classify(args)
    return kind in (Kind.WRITE, Kind.MAYBE) or (kind is Kind.TRANSACTION and command_name(args) == "EXEC")


def certain(commands: Sequence[Any]) -> bool:
    """Whether none of these commands may have written where it ended with an error."""
    return all(classify(args) is not Kind.MAYBE for args, _ in commands)


def all_failed(responses: Any) -> bool:
    """Whether every reply of a pipeline is an error."""
    return bool(responses) and all(isinstance(each, ResponseError) for each in responses)
