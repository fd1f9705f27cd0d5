"""A violation's witness: the fewest operations that show it (spec HIST-15)."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass, field
from typing import Final, Protocol

from antipode.check.history.clock import Deadline
from antipode.check.history.operations import History
from antipode.check.history.paths import Graph, Search, Step
from antipode.check.history.patterns import FoundViolation, Pattern

_STARTS: Final = 500
"""From so many operations of a cycle the shortest one is looked for."""


class Past(Protocol):
    """What comes before an operation, with the ways there."""

    def way(self, start: int) -> list[Step | Forced]:
        """The steps from `start` to the operation."""


@dataclass(frozen=True, slots=True)
class Forced:
    """A thread has to see one write before another: a read of it returned the other with this one in its past."""

    earlier: int
    later: int
    read: int
    past: Past
    """What was before the read when this was found."""

    @property
    def reason(self) -> list[Step | Forced]:
        """How the earlier write came into the read's past."""
        return self.past.way(self.earlier)


@dataclass(slots=True)
class Witness:
    """The operations of one violation, and what joins them."""

    pattern: Pattern
    read: int
    chain: list[Step] = field(default_factory=list)
    """From the write that was read (or the write that was missed, or the cycle's first operation) on."""
    missed: int | None = None
    """The newer write, that the read should have returned, or a newer one still."""
    forced: list[Forced] = field(default_factory=list)

    @property
    def operations(self) -> list[int]:
        """All operations that show it, in the order of the history."""
        found = {self.read}
        if self.missed is not None:
            found.add(self.missed)
        for step in self.chain:
            found |= {step.earlier, step.later}
        _gather(self.forced, found)
        return sorted(found)


def _gather(parts: Iterable[Step | Forced], found: set[int]) -> None:
    for part in parts:
        found |= {part.earlier, part.later}
        if isinstance(part, Forced):
            found.add(part.read)
            _gather(part.reason, found)


class Witnesses:
    """Makes witnesses of one history."""

    def __init__(self, history: History, deadline: Deadline) -> None:
        self._history = history
        self._deadline = deadline
        self._graph = Graph(history)
        self._writes: dict[int, list[int]] | None = None

    def of(self, found: FoundViolation) -> Witness:
        """The witness of one violation.

        Raises:
            OutOfTimeError: there was no time for it.
        """
        self._deadline.check(often=1)
        match found.pattern:
            case Pattern.CYCLIC_CO:
                return self._ring(found)
            case Pattern.WRITE_CO_INIT_READ:
                return self._missed(found)
            case Pattern.WRITE_CO_READ:
                return self._between(found)
            case Pattern.WRITE_HB_INIT_READ | Pattern.CYCLIC_HB:
                from antipode.check.history.seen_witness import seen_witness

                return seen_witness(self._history, found, self._graph, self._deadline)
        return Witness(found.pattern, found.operation)

    def _written(self, read: int) -> list[int]:
        if self._writes is None:
            self._writes = {}
            for number in range(len(self._history)):
                if self._history.is_write(number):
                    self._writes.setdefault(self._history.item[number], []).append(number)
        return self._writes.get(self._history.item[read], [])

    def _search(self, start: int, *, backward: bool) -> Search:
        return Search(self._history, start, backward=backward, graph=self._graph)

    def _missed(self, found: FoundViolation) -> Witness:
        past = self._search(found.operation, backward=True)
        missed = min((w for w in self._written(found.operation) if w in past.distance), key=lambda w: past.distance[w])
        return Witness(found.pattern, found.operation, past.path(missed), missed)

    def _between(self, found: FoundViolation) -> Witness:
        source = self._history.source[found.operation]
        past = self._search(found.operation, backward=True)
        future = self._search(source, backward=False)
        missed = min(
            (w for w in self._written(found.operation) if w != source and w in past.distance and w in future.distance),
            key=lambda w: past.distance[w] + future.distance[w],
        )
        return Witness(found.pattern, found.operation, future.path(missed) + past.path(missed), missed)

    def _ring(self, found: FoundViolation) -> Witness:
        """The shortest cycle: an edge between threads into a member, closed by the shortest way back."""
        best: list[Step] = []
        members = set(found.members)
        starts = 0
        for member in found.members:
            edges = [edge for edge in self._graph.next_to(member, backward=True) if edge[0] in members]
            if not edges:
                continue
            starts += 1
            if starts > _STARTS or len(best) == 2:
                break
            self._deadline.check(often=1)
            future = self._search(member, backward=False)
            for other, why in edges:
                if other in future.distance and (not best or future.distance[other] + 1 < len(best)):
                    best = [*future.path(other), Step(other, member, why)]
        return Witness(found.pattern, best[0].earlier, best)
