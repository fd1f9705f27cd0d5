"""Marks: what tells one tracked message from every other, and the memory of those that have arrived."""

from __future__ import annotations

from collections import deque
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


class Marks:
    """The last so many marks that were seen.

    Each step is atomic, so threads share it without a lock, and a fork finds no lock held.
    """

    def __init__(self, most: int) -> None:
        self._most = most
        self._seen: dict[str, None] = {}
        self._order: deque[str] = deque()

    def add(self, mark: str) -> None:
        """A message with this mark has arrived; once more is the same."""
        if mark in self._seen:
            return
        self._seen[mark] = None
        self._order.append(mark)
        while len(self._order) > self._most:
            try:
                self._seen.pop(self._order.popleft(), None)
            except IndexError:  # another thread was faster
                return

    def __contains__(self, mark: str) -> bool:
        return mark in self._seen

    def __len__(self) -> int:
        return len(self._seen)
