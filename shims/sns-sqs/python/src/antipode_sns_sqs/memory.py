"""What has been seen: marks of messages that have arrived, and where received messages came from."""

from __future__ import annotations

from collections import deque
from typing import Final, Generic, TypeVar

_V = TypeVar("_V")
_MOST_WANTED: Final = 10_000


class Recent(Generic[_V]):
    """The last so many entries.

    Each step is atomic, so threads share it without a lock, and a fork finds no lock held.
    """

    def __init__(self, most: int) -> None:
        self._most = most
        self._held: dict[str, _V] = {}
        self._order: deque[str] = deque()

    def put(self, key: str, value: _V) -> None:
        """Keeps an entry; one that is there already takes the new value."""
        known = key in self._held
        self._held[key] = value
        if known:
            return
        self._order.append(key)
        while len(self._order) > self._most:
            try:
                self._held.pop(self._order.popleft(), None)
            except IndexError:  # another thread was faster
                return

    def get(self, key: str) -> _V | None:
        """An entry; None where it is not there, or no more."""
        return self._held.get(key)

    def __contains__(self, key: str) -> bool:
        return key in self._held

    def __len__(self) -> int:
        return len(self._held)


class TapMemory:
    """The marks that a tap has shown, and those that somebody waits for; it outlives the connections to the tap."""

    def __init__(self, remember: int) -> None:
        self.seen: Recent[bool] = Recent(remember)
        self.wanted: dict[str, None] = {}
        """Marks that somebody waits for: only these are worth a push."""

    def want(self, mark: str) -> bool:
        """Whether a message with this mark has arrived; if not, its arrival will be told.

        First wanted, then looked up; the reader first notes, then looks whether it is wanted. So none is missed.
        """
        if len(self.wanted) >= _MOST_WANTED:
            self.wanted.clear()  # whoever waits asks again within the poll interval
        self.wanted[mark] = None
        if mark in self.seen:
            self.wanted.pop(mark, None)
            return True
        return False

    def note(self, mark: str) -> bool:
        """A message has arrived; True if somebody waits for it, who is to be told now."""
        self.seen.put(mark, True)
        if mark not in self.wanted:
            return False
        self.wanted.pop(mark, None)
        return True
