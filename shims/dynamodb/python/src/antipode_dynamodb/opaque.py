"""The version of an item that was written without Antipode."""

from __future__ import annotations

import json
from collections.abc import Mapping
from typing import Any, Final

from antipode import Opaque
from antipode.shim.objects import content_mark

from antipode_dynamodb.attributes import stripped

_SETS: Final = frozenset({"SS", "NS", "BS"})


def content_version(item: Mapping[str, Any]) -> Opaque:
    """The version of a whole item that has none: a digest of what it holds, which covers that value (SHIM-13)."""
    text = json.dumps(_plain(stripped(dict(item))), sort_keys=True, separators=(",", ":"))
    return content_mark(text.encode())


def _plain(value: Any) -> Any:
    if isinstance(value, Mapping):
        return {name: sorted(map(_plain, inner)) if name in _SETS else _plain(inner) for name, inner in value.items()}
    if isinstance(value, list):
        return [_plain(inner) for inner in value]
    return bytes(value).hex() if isinstance(value, bytes | bytearray) else value
