"""Marks: what tells one tracked message from every other."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, Final

MARK_HEADER: Final = "antipode_mark"
"""The tracked message's own mark. A Java identifier, for the broker makes properties of JMS from headers of STOMP."""


def mark_of(headers: Mapping[str, Any]) -> str | None:
    """The mark of a message that was tracked."""
    mark = headers.get(MARK_HEADER)
    return mark if isinstance(mark, str) else None
