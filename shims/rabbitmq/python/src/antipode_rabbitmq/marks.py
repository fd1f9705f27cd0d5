"""Marks: what tells one tracked message from every other."""

from __future__ import annotations

from typing import Any, Final

from antipode_rabbitmq.options import headers_of

MARK_HEADER: Final = "antipode-mark"
"""The tracked message's own mark, where the application has given it a `message_id`, which it may use again."""


def mark_of(properties: Any) -> str | None:
    """The mark of a message that may have been tracked: its own header, else its `message_id`."""
    mark = headers_of(properties).get(MARK_HEADER)
    if mark is None:
        mark = getattr(properties, "message_id", None)
    if isinstance(mark, bytes):
        return mark.decode("utf-8", "surrogateescape")
    return mark if isinstance(mark, str) else None
