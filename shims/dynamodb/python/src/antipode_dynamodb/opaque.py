"""Versions without order: of deletions that left no tombstone, and of items that were written without Antipode."""

from __future__ import annotations

import hashlib
import json
from collections.abc import Mapping
from typing import Any, Final

from antipode.writeid import Opaque

from antipode_dynamodb.attributes import stripped

_DELETED: Final = "d"
_CONTENT: Final = "h"
_SETS: Final = frozenset({"SS", "NS", "BS"})


def deleted_version(counter: int) -> Opaque:
    """The version of a deletion that left no tombstone: it is unproven until something later is seen (SHIM-16)."""
    return Opaque(f"{_DELETED}{counter}")


def deletion_of(version: Opaque) -> int | None:
    """The counter of a deletion that left no tombstone."""
    text = version.mark.removeprefix(_DELETED)
    return int(text) if version.mark.startswith(_DELETED) and text.isdecimal() else None


def content_version(item: Mapping[str, Any]) -> Opaque:
    """The version of a whole item that has none: a digest of what it holds, which covers that value (SHIM-13)."""
    text = json.dumps(_plain(stripped(dict(item))), sort_keys=True, separators=(",", ":"))
    return Opaque(_CONTENT + hashlib.sha256(text.encode()).hexdigest()[:32])


def is_content(version: Opaque) -> bool:
    """Whether a version is a digest of what an item holds."""
    return len(version.mark) == 33 and version.mark.startswith(_CONTENT)


def _plain(value: Any) -> Any:
    if isinstance(value, Mapping):
        return {name: sorted(map(_plain, inner)) if name in _SETS else _plain(inner) for name, inner in value.items()}
    if isinstance(value, list):
        return [_plain(inner) for inner in value]
    return bytes(value).hex() if isinstance(value, bytes | bytearray) else value
