"""Small parts that the sync and the asyncio client share."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, Final

from antipode.server import Server
from redis.exceptions import ResponseError

from antipode_redis import field
from antipode_redis.binding import Binding
from antipode_redis.calls import WriteCall
from antipode_redis.commands import Kind, classify, command_name
from antipode_redis.info import QUESTION

CALL: Final = "_antipode_call"
"""The option by which a call's record travels to the place where its connection is known."""


class ByHand:
    """MULTI, EXEC or DISCARD, sent by the application itself."""

    __slots__ = ("binding", "name")

    def __init__(self, binding: Binding, name: str) -> None:
        self.binding = binding
        self.name = name


class Hidden:
    """A read of a hash, out of whose reply our own field is to be left."""

    __slots__ = ("binding",)

    def __init__(self, binding: Binding) -> None:
        self.binding = binding


class Given:
    """Stands for a connection whose reply has been read: redis-py's own parsing goes on from there."""

    def __init__(self, value: Any) -> None:
        self._value = value

    def read_response(self, *_: Any, **__: Any) -> Any:
        """The reply; raises it where it is an error."""
        if isinstance(self._value, Exception):
            raise self._value
        return self._value


class GivenAsync(Given):
    """The same, for asyncio."""

    async def read_response(self, *_: Any, **__: Any) -> Any:
        """The reply; raises it where it is an error."""
        return Given.read_response(self)


def server_of(binding: Binding, connection: Any) -> Server | None:
    """The server of the store that a connection reaches, if it is known."""
    if binding.server is not None:
        return binding.server
    place = f"redis://{getattr(connection, 'host', '')}:{getattr(connection, 'port', '')}"
    database = getattr(connection, "db", 0)
    return binding.store.server_at(f"{place}/{database}" if database else place)


def packed_write(call: WriteCall, connection: Any, args: Sequence[Any], asks: bool) -> Sequence[bytes]:
    """The bytes of a write, with the question behind them."""
    if call.binding.rests and command_name(args) in field.WRITES:
        args = with_lineage(call, args)
    chunks: Sequence[bytes] = connection.pack_command(*args)
    return [*chunks[:-1], chunks[-1] + QUESTION] if asks else chunks


def with_lineage(call: WriteCall, args: Sequence[Any]) -> Sequence[Any]:
    """A hash write with the scope's lineage beside it."""
    text = field.text_of(call.lineage_beside(), call.binding.options.lineage_out)
    if not text and command_name(args) != "HDEL":
        return args
    return field.wire_write(args, text)


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

    @property
    def plain(self) -> bool:
        """Nothing of ours is to be sent or changed."""
        return not self.asks and not self._rests

    @property
    def apart(self) -> bool:
        """redis-py sends commands of its own before these."""
        return any(command_name(args) == "HIMPORT" for args in self.commands)

    def wire(self, commands: Sequence[Any]) -> Sequence[Any]:
        """The commands as they are sent."""
        if not self._rests:
            return commands
        return [self._wire(args) for args in commands]

    def _wire(self, args: Sequence[Any]) -> Sequence[Any]:
        name = command_name(args)
        if name in field.WRITES and self.call is not None:
            return with_lineage(self.call, args)
        return field.wire_read(args) if name in field.READS else args

    def passed(self, value: Any, transaction: bool) -> Any:
        """A reply as the application gets it, without our field."""
        place, self._replies = self._replies, self._replies + 1
        if not self._rests:
            return value
        if not transaction:
            return self._hide(self.commands[place], value) if place < len(self.commands) else value
        if place == len(self.commands) + 1 and isinstance(value, list) and len(value) == len(self.commands):
            return [self._hide(args, each) for args, each in zip(self.commands, value, strict=True)]
        return value

    def _hide(self, args: Sequence[Any], value: Any) -> Any:
        value, rest = field.hide(args, value)
        name = command_name(args)
        if self.reading is not None and name in field.READS:
            options = self.binding.options
            if name in {"HGETALL", "HVALS"}:
                self.reading.saw_beside(field.lineage_of(rest, self.binding.store.name, options.lineage_in))
            elif options.lineage_in:
                self.reading.missed()
        return value


def may_write(args: Sequence[Any]) -> bool:
    """Whether a queued command makes its pipeline a write."""
    return classify(args) in (Kind.WRITE, Kind.MAYBE)


def certain(commands: Sequence[Any]) -> bool:
    """Whether none of these commands may have written where it ended with an error."""
    return all(classify(args) is not Kind.MAYBE for args, _ in commands)


def all_failed(responses: Any) -> bool:
    """Whether every reply of a pipeline is an error."""
    return bool(responses) and all(isinstance(each, ResponseError) for each in responses)
