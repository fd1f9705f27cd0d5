"""The needs for positions of one epoch at one server, least first."""

from __future__ import annotations

import heapq
from collections import deque
from collections.abc import Iterator
from itertools import chain
from typing import Final

from antipode._engine.pending_wait import PendingWait

_SWEEP: Final = 64
"""So many needs that were given up are kept at most, or as many as there are live ones."""


class PositionQueue:
    """A heap of counters, and who waits for each. Those that were given up are passed over, and at times swept out."""

    __slots__ = ("_counters", "_given_up", "_needs", "_size")

    def __init__(self) -> None:
        self._given_up = 0
        self._size = 0
        self._counters: list[int] = []
        """Each once: that many wait for one position is usual."""
        self._needs: dict[int, deque[PendingWait]] = {}
        """By counter, in the order of arrival."""

    def push(self, need: PendingWait) -> None:
        """One more need."""
        counter = need.counter
        needs = self._needs.get(counter)
        if needs is None:
            needs = self._needs[counter] = deque()
            heapq.heappush(self._counters, counter)
        needs.append(need)
        self._size += 1

    def given_up(self) -> None:
        """One of its needs was given up: behind one that waits on for long, it would stay as long."""
        self._given_up += 1
        if self._given_up > max(_SWEEP, self._size // 2):
            self._fill(list(self))

    def first(self) -> PendingWait | None:
        """The need for the least position, or None."""
        while self._counters:
            needs = self._needs[self._counters[0]]
            while needs:
                if not needs[0].done:
                    return needs[0]
                needs.popleft()
                self._size -= 1
            del self._needs[heapq.heappop(self._counters)]
        return None

    def reached(self, counter: int) -> Iterator[PendingWait]:
        """Takes out, in order, the needs for positions up to `counter`."""
        while self._counters and self._counters[0] <= counter:
            needs = self._needs[self._counters[0]]
            self._size -= len(needs)
            while needs:  # one after the other: who fails on the way leaves the others where they are found
                need = needs.popleft()
                if not need.done:
                    yield need
            del self._needs[heapq.heappop(self._counters)]

    def from_counter(self, counter: int) -> list[PendingWait]:
        """Takes out the needs for positions from `counter` on."""
        needs = list(self)
        self._fill([need for need in needs if need.counter < counter])
        return [need for need in needs if need.counter >= counter]

    def _fill(self, needs: list[PendingWait]) -> None:
        """Have it hold these alone."""
        self._given_up = self._size = 0
        self._counters, self._needs = [], {}
        for need in needs:
            self.push(need)

    def __iter__(self) -> Iterator[PendingWait]:
        """The needs, in no particular order."""
        return (need for need in chain.from_iterable(self._needs.values()) if not need.done)
