"""What this process knows of one tap; it outlives the connections to it."""

from __future__ import annotations

from collections import deque
from typing import Final

from antipode.shim.tap import TapMemory

_PLACES: Final = 1024


class StreamMemory(TapMemory):
    """The marks that have arrived, those that somebody waits for, and up to where the stream has been read."""

    def __init__(self, remember: int) -> None:
        super().__init__(remember)
        self.offset: int | None = None
        """The offset of the last message that was read; None before the first."""
        self._places: deque[tuple[int, int]] = deque(maxlen=_PLACES)

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
        return max(chunk - self.remember, 0)
