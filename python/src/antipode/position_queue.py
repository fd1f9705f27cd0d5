"""The needs for positions of one epoch at one server, least first."""

from __future__ import annotations

import heapq
from collections.abc import Iterator
from itertools import count
from typing import Final

from antipode.need import Need

_SWEEP: Final = 64
"""So many needs that were given up are kept at most, or as many as there are live ones."""


class PositionQueue:
    """A heap by counter. Needs that were given up meanwhile are passed over, and swept out from time to time."""

    __slots__ = ("_given_up", "_heap", "_numbers")

    def __init__(self) -> None:
        self._given_up = 0
        self._heap: list[tuple[int, int, Need]] = []  # the number keeps equal counters in the order of arrival
        self._numbers = count()

    def push(self, need: Need) -> None:
        """One more need."""
        heapq.heappush(self._heap, (need.counter, next(self._numbers), need))

    def given_up(self) -> None:
        """One of its needs was given up: behind one that waits on for long, it would stay as long."""
        self._given_up += 1
        if self._given_up > max(_SWEEP, len(self._heap) // 2):
            self._heap = [entry for entry in self._heap if not entry[2].done]
            heapq.heapify(self._heap)
            self._given_up = 0

    def first(self) -> Need | None:
        """The need for the least position, or None."""
        heap = self._heap
        while heap and heap[0][2].done:
            heapq.heappop(heap)
        return heap[0][2] if heap else None

    def reached(self, counter: int) -> Iterator[Need]:
        """Takes out, in order, the needs for positions up to `counter`."""
        heap = self._heap
        while heap and heap[0][0] <= counter:
            need = heapq.heappop(heap)[2]
            if not need.done:
                yield need

    def from_counter(self, counter: int) -> list[Need]:
        """Takes out the needs for positions from `counter` on."""
        taken = [entry[2] for entry in self._heap if entry[0] >= counter and not entry[2].done]
        self._heap = [entry for entry in self._heap if entry[0] < counter]
        heapq.heapify(self._heap)
        return taken

    def __iter__(self) -> Iterator[Need]:
        """The needs, in no particular order."""
        return (entry[2] for entry in self._heap if not entry[2].done)
