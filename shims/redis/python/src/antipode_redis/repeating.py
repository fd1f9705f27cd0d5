"""Reads in dry-run: what follows them, and how one is sent once more on a connection of our own (REC-12, REC-14)."""

from __future__ import annotations

import time
from collections.abc import Callable, Mapping, Sequence
from typing import Any, Final

import redis
from antipode.shim import Server
from redis.client import NEVER_DECODE

from antipode_redis.binding import Binding
from antipode_redis.commands import command_name
from antipode_redis.serving import HiddenField, ServedConnection, server_of, shown, wire_read
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


class AnsweringServer(HiddenField):
    """A followed read of a client with several servers: which one answered."""

    __slots__ = ("server",)

    def __init__(self, binding: Binding) -> None:
        super().__init__(binding)
        self.server: Server | None = None


def repetition(client: Any, binding: Binding, commands: Sequence[Command], server: Server) -> Callable[[], Any] | None:
    """Return what sends these reads once more to this server; None where it would not say the same of the same data."""
    target = target_of(server.target)
    if target.discover is not None:  # a role, whose server may be another one then
        return None
    if not all(command_name(args) in _NAMES for args, _ in commands):
        return None
    kwargs = client.connection_pool.connection_kwargs
    decoding = {name: kwargs[name] for name in _DECODING if name in kwargs}
    callbacks, timeout = client.response_callbacks, server.ask_timeout

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
    return parser.parse_response(ServedConnection(value), args[0], **options)  # type: ignore[no-untyped-call]


def notice(call: Any, connection: Any) -> None:
    """A read meets its connection."""
    if type(call) is AnsweringServer:
        call.server = server_of(call.binding, connection)
