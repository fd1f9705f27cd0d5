"""Marks: what tells one tracked message from every other, and the memory of those that have arrived."""

from __future__ import annotations

from collections import deque
from collections.abc import Mapping
from typing import Any, Final

MARK_HEADER: Final = "antipode_mark"
"""The tracked message's own mark. A Java identifier, for the broker makes properties of JMS from headers of STOMP."""


def mark_of(headers: Mapping[str, Any]) -> str | None:
    """The mark of a message that was tracked."""
    mark = headers.get(MARK_HEADER)
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
