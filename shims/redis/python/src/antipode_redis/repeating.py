"""Reads in dry-run: what follows them, and how one is sent once more on a connection of our own (REC-12, REC-14)."""

from __future__ import annotations

import time
from collections.abc import Callable, Mapping, Sequence
from typing import Any, Final

import redis
from antipode.followed_reads import FollowedRead, followed_read, quietly
from antipode.reading import current_reading
from antipode.shim import Server
from redis.client import NEVER_DECODE

from antipode_redis.binding import Binding
from antipode_redis.commands import Kind, classify, command_name
from antipode_redis.serving import Given, Hidden, server_of, shown, wire_read
from antipode_redis.targets import target_of

_REPEATED: Final = """
    BITCOUNT BITFIELD_RO BITPOS EXISTS GEODIST GEOHASH GEOPOS GET GETBIT GETRANGE HEXISTS HGET HGETALL HLEN HMGET
    HSTRLEN LCS LINDEX LLEN LPOS LRANGE MGET SCARD SDIFF SINTER SINTERCARD SISMEMBER SMEMBERS SMISMEMBER STRLEN
    SUBSTR SUNION TYPE XLEN XRANGE XREVRANGE ZCARD ZCOUNT ZLEXCOUNT ZMSCORE ZRANGE ZRANGEBYLEX ZRANGEBYSCORE ZRANK
    ZREVRANGE ZREVRANGEBYLEX ZREVRANGEBYSCORE ZREVRANK ZSCORE
"""
"""Reads without side effects that say the same of the same data: no random ones, none of times, none whose order is
that of a table (HKEYS), and no scripts."""
_NAMES: Final = frozenset(_REPEATED.split())
_DECODING: Final = ("encoding", "encoding_errors", "decode_responses", "legacy_responses")

Command = tuple[Sequence[Any], Mapping[str, Any]]


class Noticed(Hidden):
    """A followed read of a client with several servers: which one answered."""

    __slots__ = ("server",)

    def __init__(self, binding: Binding) -> None:
        super().__init__(binding)
        self.server: Server | None = None


class FollowedCommands:
    """One read, or the reads of one pipeline, that dry-run follows."""

    def __init__(self, followed: FollowedRead, client: Any, binding: Binding, commands: Sequence[Command]) -> None:
        """`commands`: one, or all of a pipeline, whose value is the list of theirs."""
        self._followed = followed
        self._client = client
        self._binding = binding
        self._commands = commands
        self.noticed = Noticed(binding) if binding.server is None else None

    @quietly
    def over(self, values: Sequence[Any]) -> None:
        """The client returns these to the application, a value a command. Never raises."""
        binding = self._binding
        server = binding.server or (None if self.noticed is None else self.noticed.server)
        if server is None or binding.open:  # inside a MULTI sent by hand, the value comes with EXEC
            return
        repeats = all(command_name(args) in _NAMES for args, _ in self._commands)
        self._followed.over(server, lambda: values, repeat=self._repeat(server) if repeats else None)

    def _repeat(self, server: Server) -> Callable[[], Any] | None:
        target = target_of(server.target)
        if target.discover is not None:  # a role, whose server may be another one then
            return None
        kwargs = self._client.connection_pool.connection_kwargs
        decoding = {name: kwargs[name] for name in _DECODING if name in kwargs}
        callbacks = self._client.response_callbacks
        binding, commands, timeout = self._binding, self._commands, server.ask_timeout

        def again() -> Any:
            parser = redis.Redis(connection_pool=redis.ConnectionPool())  # never connects
            parser.response_callbacks = callbacks
            until = time.monotonic() + timeout
            connection = target.connect(timeout, kwargs.get("protocol"), **decoding)
            try:
                found = []
                for command in commands:
                    if time.monotonic() > until:
                        raise TimeoutError
                    found.append(_once_more(connection, parser, binding, *command))
            finally:
                connection.disconnect()
            return found

        return again


def _once_more(connection: Any, parser: redis.Redis, binding: Binding, args: Sequence[Any], options: Any) -> Any:
    connection.send_command(*wire_read(binding, args))
    value = connection.read_response(disable_decoding=NEVER_DECODE in options or binding.opens(args))
    value = shown(binding, args, value, options, None)
    return parser.parse_response(Given(value), args[0], **options)  # type: ignore[no-untyped-call]


@quietly
def follow(client: Any, binding: Binding, args: Sequence[Any], options: dict[str, Any]) -> FollowedCommands | None:
    """A read is about to be sent, in dry-run; None where nothing follows it."""
    return _follow(client, binding, [(args, options)])


@quietly
def follow_all(client: Any, binding: Binding, commands: Sequence[Command]) -> FollowedCommands | None:
    """The same for a pipeline, of whose commands some read."""
    if not any(classify(args) is Kind.READ for args, _ in commands):
        return None
    return _follow(client, binding, commands)


def _follow(client: Any, binding: Binding, commands: Sequence[Command]) -> FollowedCommands | None:
    followed = followed_read(binding.store, current_reading())
    if followed is None:
        return None
    kept = [(tuple(args), dict(options)) for args, options in commands]
    return FollowedCommands(followed, client, binding, kept)


def notice(call: Any, connection: Any) -> None:
    """A read meets its connection."""
    if type(call) is Noticed:
        call.server = server_of(call.binding, connection)
