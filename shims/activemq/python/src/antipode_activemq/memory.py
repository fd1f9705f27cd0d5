"""What this process knows of one tap; it outlives the connections to it."""

from __future__ import annotations

from typing import Final

from antipode_activemq.marks import Marks

_MOST_WANTED: Final = 10_000


class TapMemory:
    """The marks that have arrived, and those that somebody waits for."""

    def __init__(self, remember: int) -> None:
        self._remember = remember
        self.seen = Marks(remember)
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
        self.seen.add(mark)
        if mark not in self.wanted:
            return False
        self.wanted.pop(mark, None)
        return True

    def disbelieve(self) -> None:
        """What was seen did not prove arrival here: all of it is forgotten."""
        self.seen = Marks(self._remember)
