"""What a recorded history is told of commands: which keys they changed or read, and the digests of whole values.

Whole values are those of SET, GET and their like, and counters. Of other commands a history has which key they changed,
and of other reads that nobody knows which write they saw (spec HIST-28).
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import Any, Final

from antipode.shim import GONE, KeyChange, ReadValue, noting, value_digest

from antipode_redis.binding import Binding
from antipode_redis.calls import WriteCall
from antipode_redis.commands import Kind, classify, command_name

_UNANSWERED: Final = object()
"""In place of a reply: none has come, or none of that command alone."""
_ONE_KEY_WORDS: Final = """
    APPEND BITFIELD EXPIRE EXPIREAT GEOADD GETEX HDEL HINCRBY HINCRBYFLOAT HMSET HSET HSETNX INCRBYFLOAT LINSERT LPOP
    LPUSH LPUSHX LREM LSET LTRIM PEXPIRE PEXPIREAT PFADD RPOP RPUSH RPUSHX SADD SDIFFSTORE SETBIT SETRANGE SINTERSTORE
    SPOP SREM SUNIONSTORE XACK XADD XDEL XSETID XTRIM ZADD ZDIFFSTORE ZINCRBY ZINTERSTORE ZPOPMAX ZPOPMIN ZREM
    ZREMRANGEBYLEX ZREMRANGEBYRANK ZREMRANGEBYSCORE ZUNIONSTORE
"""
_ONE_KEY: Final = frozenset(_ONE_KEY_WORDS.split())
"""Writes that change their first key, and no other."""
_COUNTERS: Final = frozenset({"INCR", "INCRBY", "DECR", "DECRBY"})
_EXPIRING: Final = frozenset({"EX", "PX", "EXAT", "PXAT", "KEEPTTL"})
_WITH_A_NUMBER: Final = frozenset({"EX", "PX", "EXAT", "PXAT"})
_NO_KEY: Final = frozenset({"DBSIZE", "KEYS", "RANDOMKEY", "SCAN"})

Command = tuple[Sequence[Any], Any]
"""Its arguments, and the reply to it as the application gets it."""


@noting
def sent(client: Any, call: WriteCall, commands: Sequence[Sequence[Any]]) -> None:
    """A write is about to be sent: what it does if it happens and no reply says more."""
    _tell(client, call, [(args, _UNANSWERED) for args in commands])


@noting
def answered(client: Any, call: WriteCall, commands: Sequence[Command]) -> None:
    """The replies have come."""
    if call.deferred:  # in a MULTI sent by hand, whose first write stands for all of them
        if call.noted is not None:
            call.noted.changes(None)
    else:
        _tell(client, call, commands)


def _tell(client: Any, call: WriteCall, commands: Sequence[Command]) -> None:
    noted = call.noted
    if noted is None:
        return
    if len(call.parts) > 1:  # whose command was whose is not known here
        for part in call.parts:
            if part.noted is not None:
                part.noted.changes(None)
        return
    values = _Values(client, call.binding)
    changed: list[KeyChange] = []
    for args, reply in commands:
        kind = classify(args)
        if kind in {Kind.READ, Kind.OTHER}:
            continue
        if kind is Kind.WRITE and isinstance(reply, Exception):
            continue  # of what is flagged as a write an error says that nothing was changed
        own = values.changed(args, reply)
        if own is None:
            noted.changes(None)
            return
        changed += own
    noted.changes(changed)


def values_of(
    client: Any, binding: Binding, commands: Sequence[tuple[Sequence[Any], Any]], replies: Sequence[Any]
) -> list[ReadValue]:
    """Return what the reads among these commands found, a reply a command as the application gets it."""
    values = _Values(client, binding)
    found: list[ReadValue] = []
    for (args, _), reply in zip(commands, replies, strict=True):
        if classify(args) is Kind.READ and not isinstance(reply, Exception):
            own = values.found(args, reply)
            found += (ReadValue(each.key) for each in own) if binding.open else own  # it comes with EXEC
    return found


class _Values:
    """What commands say of keys and values, in the octets that the server gets."""

    def __init__(self, client: Any, binding: Binding) -> None:
        self._store = binding.store.name
        self._encode = client.connection_pool.get_encoder().encode

    def changed(self, args: Sequence[Any], reply: Any) -> Sequence[KeyChange] | None:
        """Which keys a write changed; None where nobody knows."""
        name = command_name(args)
        if isinstance(reply, Exception):
            reply = _UNANSWERED
        match name:
            case "SET":
                return self._set(args, reply)
            case "SETEX" | "PSETEX":
                return [self._to(args[1], args[3], expires=True)]
            case "SETNX":
                return () if reply in (False, 0) else [self._to(args[1], args[2])]
            case "GETSET":
                return [self._to(args[1], args[2])]
            case "MSET":
                return [self._to(key, value) for key, value in _pairs(args)]
            case "MSETNX":
                return () if reply in (False, 0) else [self._to(key, value) for key, value in _pairs(args)]
            case "DEL" | "UNLINK":
                return () if reply == 0 else [KeyChange(self._octets(key), GONE) for key in args[1:]]
            case "GETDEL":
                return () if reply is None else [KeyChange(self._octets(args[1]), GONE)]
            case "PERSIST":
                return ()
        if name in _COUNTERS:
            known = type(reply) is int
            return [self._to(args[1], str(reply))] if known else [KeyChange(self._octets(args[1]))]
        return [KeyChange(self._octets(args[1]))] if name in _ONE_KEY else None

    def _set(self, args: Sequence[Any], reply: Any) -> Sequence[KeyChange]:
        words = iter(_spelled(word) for word in args[3:])
        given = set()
        for word in words:
            given.add(word)
            if word in _WITH_A_NUMBER:
                next(words, None)
        key = self._octets(args[1])
        if given - _EXPIRING - {"NX", "XX", "GET"} or ("GET" in given and given & {"NX", "XX"}):
            return [KeyChange(key)]
        if given & {"NX", "XX"} and reply is None:
            return ()
        return [self._to(args[1], args[2], expires=bool(given & _EXPIRING))]

    def found(self, args: Sequence[Any], reply: Any) -> list[ReadValue]:
        """What a read found under which keys."""
        name = command_name(args)
        if name == "GET":
            return [self._found(args[1], reply)]
        if name == "MGET":
            keys = list(_flat(args[1:]))
            if isinstance(reply, list) and len(reply) == len(keys):
                return [self._found(key, value) for key, value in zip(keys, reply, strict=True)]
            return [ReadValue(self._octets(key)) for key in keys]
        if name == "EXISTS" and reply == 0:
            return [ReadValue(self._octets(key), GONE) for key in args[1:]]
        if name in _NO_KEY or len(args) < 2:
            return [ReadValue(b"")]
        return [ReadValue(self._octets(args[1]))]

    def _found(self, key: Any, value: Any) -> ReadValue:
        octets = self._octets(key)
        if value is None:
            return ReadValue(octets, GONE)
        if not isinstance(value, bytes | str):
            return ReadValue(octets)  # a response callback of the application's own
        return ReadValue(octets, value_digest(self._store, octets, self._octets(value)))

    def _to(self, key: Any, value: Any, *, expires: bool = False) -> KeyChange:
        octets = self._octets(key)
        return KeyChange(octets, value_digest(self._store, octets, self._octets(value)), expires)

    def _octets(self, value: Any) -> bytes:
        return bytes(self._encode(value))


def _pairs(args: Sequence[Any]) -> Iterator[tuple[Any, Any]]:
    return zip(args[1::2], args[2::2], strict=True)


def _flat(keys: Sequence[Any]) -> Iterator[Any]:
    for key in keys:
        if isinstance(key, list | tuple):
            yield from key
        else:
            yield key


def _spelled(word: Any) -> str:
    return (word.decode("latin-1") if isinstance(word, bytes) else str(word)).upper()
