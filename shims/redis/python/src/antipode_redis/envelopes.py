"""Rest mode `envelope`: string values of chosen keys hold their lineage (spec SHIM-34 to SHIM-37).

A value is written whole by these commands, so what rests with it is the lineage of that one write.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Iterator, Sequence
from typing import Any, Final

from antipode import EMPTY, ConfigurationError, Lineage
from antipode.shim import (
    Direction,
    OpenedEnvelope,
    StoreOptions,
    close_envelope,
    events,
    lineage_at_rest,
    logs,
    open_envelope,
)
from redis.exceptions import DataError

from antipode_redis.commands import command_name

_VALUES: Final = {"SET": 2, "SETNX": 2, "GETSET": 2, "SETEX": 3, "PSETEX": 3}
"""Commands that write one whole value, and where it stands."""
_MANY: Final = frozenset({"MSET", "MSETNX"})
_ANSWERS: Final = frozenset({"GET", "GETDEL", "GETEX", "GETSET"})
"""Commands that answer with one whole value; `MGET` answers with many, and `SET` with one where it says GET."""
_REFUSED: Final = frozenset(
    {
        *["APPEND", "BITCOUNT", "BITFIELD", "BITFIELD_RO", "BITPOS", "DECR", "DECRBY", "DELEX", "DIGEST", "GETBIT"],
        *["GETRANGE", "INCR", "INCRBY", "INCRBYFLOAT", "INCREX", "SETBIT", "SETRANGE", "STRLEN", "SUBSTR"],
    }
)
"""Commands of one key that see or change the octets inside a value."""
_COMPARING: Final = frozenset({"IFEQ", "IFNE", "IFDEQ", "IFDNE"})
_MOVING: Final = frozenset({"RENAME", "RENAMENX", "COPY"})


class Envelopes:
    """The keys of one wrapped client whose values are in envelopes."""

    def __init__(self, store: str, options: StoreOptions, encoder: Any) -> None:
        self.store = store
        self._pattern = options.envelope_keys or ""
        self._matches = glob(self._pattern.encode())
        self._lineage_in = options.lineage_in
        self._encoder = encoder

    def matches(self, key: Any) -> bool:
        """Whether a key, as given to redis-py, is one of them."""
        try:
            return self._matches(bytes(self._encoder.encode(key)))
        except DataError:  # redis-py will say so
            return False

    def check(self, args: Sequence[Any]) -> None:
        """Refuses what cannot be done with such keys. Raises ConfigurationError; nothing has been sent (SHIM-36)."""
        args = _words(args)
        for key in self._refused(command_name(args), args):
            raise ConfigurationError(
                f"{command_name(args)} cannot be used with {key!r}: keys that match {self._pattern!r} hold the value "
                "and its lineage in an envelope (rest='envelope'). Read the value and SET it, or leave the key out of "
                "envelope_keys=",
                code="AP505",
            )

    def _refused(self, name: str, args: Sequence[Any]) -> Iterator[Any]:
        keys: Sequence[Any] = ()
        if name in _REFUSED or (name == "SET" and not _COMPARING.isdisjoint(_spelled(args[3:]))):
            keys = args[1:2]
        elif name == "BITOP":
            keys = args[2:]
        elif name == "LCS":
            keys = args[1:3]
        elif name == "MSETEX":
            keys = args[2::2]
        elif name in _MOVING and len(args) > 2 and not self.matches(args[2]):
            keys = args[1:2]
        return (key for key in keys if self.matches(key))

    def concerns(self, args: Sequence[Any]) -> bool:
        """Whether a command writes such a value or answers with one."""
        return self.writes(args) or self.answers(args)

    def writes(self, args: Sequence[Any]) -> bool:
        """Whether a command writes such a value."""
        name, args = command_name(args), _words(args)
        if name in _VALUES:
            return len(args) > _VALUES[name] and self.matches(args[1])
        return name in _MANY and any(self.matches(key) for key in args[1::2])

    def answers(self, args: Sequence[Any]) -> bool:
        """Whether a command's reply has such a value in it."""
        name, args = command_name(args), _words(args)
        if name in _ANSWERS or (name == "SET" and "GET" in _spelled(args[3:])):
            return len(args) > 1 and self.matches(args[1])
        return name == "MGET" and any(self.matches(key) for key in args[1:])

    def closed(self, args: Sequence[Any], text: str) -> Sequence[Any]:
        """The command that is sent for a write: the same one, with the lineage in its values. Raises DataError."""
        name, words = command_name(args), list(_words(args))
        if name in _MANY:
            for place in range(1, len(words) - 1, 2):
                if self.matches(words[place]):
                    words[place + 1] = self._closed(words[place + 1], text)
        else:
            words[_VALUES[name]] = self._closed(words[_VALUES[name]], text)
        return words

    def _closed(self, value: Any, text: str) -> bytes:
        return close_envelope(bytes(self._encoder.encode(value)), text)

    def opened(self, args: Sequence[Any], raw: Any, *, decode: bool) -> tuple[Any, list[OpenedEnvelope]]:
        """A reply, read without decoding, as redis-py would give it without us; and what its envelopes held."""
        found: list[OpenedEnvelope] = []
        if command_name(args) == "MGET" and isinstance(raw, list):
            keys = _words(args)[1:]
            return [
                self._open(each, found, decode) if self.matches(key) else self.decoded(each, decode)
                for key, each in zip(keys, raw, strict=True)
            ], found
        return self._open(raw, found, decode), found

    def _open(self, raw: Any, found: list[OpenedEnvelope], decode: bool) -> Any:
        if not isinstance(raw, bytes):
            return raw
        opened = open_envelope(raw)
        found.append(opened)
        if opened.fault:
            events.on_lineage_dropped("malformed", Direction.MESSAGE_IN.value)
            events.on_lineage_incomplete("malformed", self.store)
            logs.warn(
                f"envelope {self.store}",
                f"a value of {self.store} is {opened.fault}: the application gets it as it stands, and what it depends "
                "on is missing.",
                count_as="dropped",
                code="AP405",
            )
        return self.decoded(opened.value, decode)

    def decoded(self, value: Any, decode: bool) -> Any:
        """A reply that was read without decoding, decoded as redis-py decodes it."""
        if not decode:
            return value
        if isinstance(value, bytes):
            return self._encoder.decode(value)
        if isinstance(value, list):
            return [self.decoded(each, True) for each in value]
        if isinstance(value, dict):
            return {self.decoded(name, True): self.decoded(each, True) for name, each in value.items()}
        return value

    def lineage(self, found: Sequence[OpenedEnvelope]) -> Lineage:
        """What the values of these envelopes depend on (SHIM-14, SHIM-35)."""
        result = EMPTY
        for opened in found if self._lineage_in else ():
            if opened.fault:
                result = result.marked_incomplete(self.store)
            elif opened.text:
                result |= lineage_at_rest(opened.text, self.store, True)
        return result


def glob(pattern: bytes) -> Callable[[bytes], bool]:
    """Whether a key matches a pattern as `KEYS` takes it: `*`, `?`, `[abc]`, `[^a]`, `[a-z]`, and `\\` before any."""
    parts, place = [], 0
    while place < len(pattern):
        octet = pattern[place : place + 1]
        place += 1
        if octet == b"*":
            parts.append(b".*")
        elif octet == b"?":
            parts.append(b".")
        elif octet == b"[" and (end := _end_of_set(pattern, place)) > 0:
            inside = pattern[place:end]
            negated = inside.startswith(b"^")
            parts.append(b"[" + b"^" * negated + _set(inside[negated:]) + b"]")
            place = end + 1
        else:
            if octet == b"\\" and place < len(pattern):
                octet = pattern[place : place + 1]
                place += 1
            parts.append(re.escape(octet))
    matches = re.compile(b"".join(parts), re.DOTALL).fullmatch
    return lambda key: matches(key) is not None


def _end_of_set(pattern: bytes, place: int) -> int:
    """Where a set that begins here ends; -1 where it does not, or is empty."""
    first = place + pattern.startswith(b"^", place)
    while place < len(pattern):
        if pattern[place : place + 1] == b"\\":
            place += 1
        elif pattern[place : place + 1] == b"]":
            return place if place > first else -1
        place += 1
    return -1


def _set(inside: bytes) -> bytes:
    result, place = [], 0
    while place < len(inside):
        if inside[place : place + 1] == b"\\" and place + 1 < len(inside):
            place += 1
        octet = inside[place : place + 1]
        if inside[place + 1 : place + 2] == b"-" and place + 2 < len(inside):
            low, high = sorted((octet, inside[place + 2 : place + 3]))
            result.append(re.escape(low) + b"-" + re.escape(high))
            place += 3
        else:
            result.append(re.escape(octet))
            place += 1
    return b"".join(result)


def _words(args: Sequence[Any]) -> Sequence[Any]:
    """A command's words one by one: redis-py takes several in the first argument."""
    first = args[0]
    if isinstance(first, str | bytes) and len(words := first.split()) > 1:
        return (*words, *args[1:])
    return args


def _spelled(words: Sequence[Any]) -> set[str]:
    return {
        word.decode("latin-1").upper() if isinstance(word, bytes) else word.upper()
        for word in words
        if isinstance(word, str | bytes)
    }
