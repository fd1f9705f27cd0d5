"""The response streams of a scope whose lineage comes at their end (spec PROP-28)."""

from __future__ import annotations

import threading
from typing import Protocol


class OpenStream(Protocol):
    """What brings a lineage later: the end of a stream, the answer to a message."""

    holds: bool
    dropped: bool
    detail: str

    @property
    def reason(self) -> str:
        """Of the gap, as long as it has not come."""

    def lost(self, why: str) -> None:
        """It comes no more."""


class ExpectedStreams:
    """The streams of one scope that are open, or were dropped before their end."""

    __slots__ = ("_lock", "open")

    def __init__(self) -> None:
        self._lock = threading.Lock()
        self.open: tuple[OpenStream, ...] = ()

    @property
    def in_hand(self) -> tuple[OpenStream, ...]:
        """Return those of which a message is in hand, whose lineage has not come yet."""
        return tuple(stream for stream in self.open if stream.holds)

    def expect(self, stream: OpenStream) -> None:
        """A call was made whose messages come before their lineage."""
        self.give_up_dropped()
        with self._lock:
            self.open = (*self.open, stream)

    def forget(self, stream: OpenStream) -> None:
        """Its lineage is joined, or known to be missing and marked."""
        with self._lock:
            self.open = tuple(each for each in self.open if each is not stream)

    def give_up_dropped(self) -> None:
        """Mark what those would have brought that nobody reads any more."""
        for stream in self.open:
            if stream.dropped:
                stream.lost("nobody read it to its end")

    def vouch(self) -> None:
        """The application vouches that of what came by now nothing is missing."""
        with self._lock:
            self.open = tuple(stream for stream in self.open if not stream.dropped)
            for stream in self.open:
                stream.holds = False
