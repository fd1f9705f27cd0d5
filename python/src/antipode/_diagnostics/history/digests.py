"""Digests of what a read returned, to compare two reads without keeping a value (REC-14)."""

from __future__ import annotations

import datetime
import decimal
import hashlib
import uuid
from collections.abc import Mapping, Sequence, Set, Sized
from typing import Any, Final

MOST_OCTETS: Final = 2**20
"""A longer result is not compared: the digest is made in the application's thread."""
_OF_A_PART: Final = 256
"""What each part of a result counts beside its octets, by the time that it takes."""
_DEEPEST: Final = 32
_OCTETS: Final = (str, bytes, bytearray, memoryview)
_PLAIN: Final = (bool, int, float, decimal.Decimal, datetime.date, datetime.time, datetime.timedelta, uuid.UUID)


class NotComparable(Exception):
    """The value is of a type that has no octets of its own here, too large, or too deep."""


def digest(value: Any) -> bytes | None:
    """A digest of plain data, the same for equal data; None for what cannot be compared."""
    try:
        return _Digest().of(value)
    except NotComparable:
        return None


class _Digest:
    def __init__(self) -> None:
        self._left = MOST_OCTETS

    def of(self, value: Any, depth: int = 0) -> bytes:
        """The digest of one value; that of a collection is made of those of its parts."""
        if depth > _DEEPEST:
            raise NotComparable
        if isinstance(value, Sized) and not isinstance(value, _OCTETS) and len(value) * _OF_A_PART > self._left:
            raise NotComparable  # before any of it is looked at
        if value is None:
            return self._leaf("none", b"")
        if isinstance(value, str):
            return self._leaf("text", value.encode("utf-8", "surrogatepass"))
        if isinstance(value, bytes | bytearray | memoryview):
            return self._leaf("octets", bytes(value))
        if isinstance(value, _PLAIN):
            return self._leaf(type(value).__name__, repr(value).encode())
        if isinstance(value, Mapping):
            return self._joined("map", sorted(self.of([*pair], depth + 1) for pair in value.items()))
        if isinstance(value, Set):
            return self._joined("set", sorted(self.of(part, depth + 1) for part in value))
        if isinstance(value, Sequence):
            return self._joined("list", [self.of(part, depth + 1) for part in value])
        raise NotComparable

    def _leaf(self, kind: str, octets: bytes) -> bytes:
        self._left -= len(octets) + _OF_A_PART
        if self._left < 0:
            raise NotComparable
        return hashlib.blake2b(octets, digest_size=16, person=kind.encode()[:16]).digest()

    def _joined(self, kind: str, parts: list[bytes]) -> bytes:
        return self._leaf(kind, b"".join(parts))
