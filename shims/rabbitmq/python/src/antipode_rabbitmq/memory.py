"""What this process knows of one tap; it outlives the connections to it."""

from __future__ import annotations

from collections import deque
from typing import Final

from antipode_rabbitmq.marks import Marks

_MOST_WANTED: Final = 10_000
_PLACES: Final = 1024


class TapMemory:
    """The marks that have arrived, those that somebody waits for, and up to where the stream has been read."""

    def __init__(self, remember: int) -> None:
        self.seen = Marks(remember)
        self.wanted: dict[str, None] = {}
        """Marks that somebody waits for: only these are worth a push."""
        self.offset: int | None = None
        """The offset of the last message that was read; None before the first."""
        self._remember = remember
        self._places: deque[tuple[int, int]] = deque(maxlen=_PLACES)

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

    # The place in the stream. Offsets begin anew where a stream is declared anew, so a place is known by its message.

    def read(self, offset: int, looks: int) -> None:
        """The message at this offset, which looks so, has been read."""
        self.offset = offset
        self._places.append((offset, looks))

    def resume(self, chunk: int, looks: int) -> int:
        """From which offset to read on, where the stream's last chunk begins with a message that looks so.

        From the last message that was read, inclusive: `is_elsewhere` then says whether it is the same stream. Within
        the last chunk, from its beginning. In a stream that is not the same, from the last messages that are
        remembered, or its beginning.
        """
        if self.offset is not None and chunk > self.offset:
            return self.offset
        if self.offset is not None and (chunk, looks) in self._places:
            return chunk
        return self.begin_anew(chunk)

    def is_elsewhere(self, offset: int, looks: int) -> bool:
        """Whether a message at the last offset that was read is another one than then: another stream."""
        return bool(self._places) and self._places[-1][0] == offset and self._places[-1][1] != looks

    def begin_anew(self, chunk: int) -> int:
        """Forgets the place; what has arrived is not forgotten. Returns from where to read."""
        self.offset = None
        self._places.clear()
        return max(chunk - self._remember, 0)
