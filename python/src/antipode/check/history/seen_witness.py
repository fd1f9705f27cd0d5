"""The witness of a thread that cannot have seen all writes in any order (spec HIST-15): which read forces which order.

The thread's reads are followed again, this time with the reason of everything that comes into a read's past. The graph is
that of the causal order and of the forced orders found so far, so each reason rests on earlier ones only.
"""

from __future__ import annotations

from collections import deque

from antipode.check.history.clock import Deadline
from antipode.check.history.operations import INITIAL, THIN_AIR, UNKNOWN_SOURCE, History, Kind
from antipode.check.history.order import Why
from antipode.check.history.paths import Graph, Search, Step
from antipode.check.history.patterns import Found, Pattern
from antipode.check.history.witness import Forced, Witness

Part = Step | Forced


def seen_witness(history: History, found: Found, graph: Graph, deadline: Deadline) -> Witness:
    """The forced orders that contradict each other, or the initial value, with the reads that force them."""
    return _Seen(history, found, graph, deadline).witness()


class _Seen:
    def __init__(self, history: History, found: Found, graph: Graph, deadline: Deadline) -> None:
        self._history = history
        self._found = found
        self._graph = graph
        self._deadline = deadline
        thread = history.threads[history.thread[found.operation]]
        unjudged = (UNKNOWN_SOURCE, THIN_AIR)
        self._reads = [n for n in thread if history.operations[n].kind is Kind.READ and history.source[n] not in unjudged]
        past = Search(history, thread[-1], backward=True, graph=graph).distance
        items = {history.item[read] for read in self._reads}
        self._writes = [n for n in [*past, thread[-1]] if history.is_write(n) and history.item[n] in items]
        self._forced: dict[int, list[Forced]] = {}
        """By the later write."""
        self._into: dict[tuple[int, int], Forced] = {}

    def witness(self) -> Witness:
        while True:
            self._deadline.check(often=1)
            fresh: list[Forced] = []
            for read in self._reads:
                reached = self._before(read)
                source = self._history.source[read]
                for write in self._writes:
                    if self._history.item[write] != self._history.item[read] or write == source or write not in reached:
                        continue
                    if source == INITIAL:
                        return self._made(Pattern.WRITE_HB_INIT_READ, read, self._way(reached, write), write)
                    if (write, source) in self._into:
                        continue
                    forced = Forced(write, source, read, self._way(reached, write))
                    self._into[write, source] = forced
                    fresh.append(forced)
            for forced in fresh:
                self._forced.setdefault(forced.later, []).append(forced)
            ring = self._ring(fresh)
            if ring:
                return ring
            if not fresh:  # the decider found what this cannot: say the read alone
                return Witness(self._found.pattern, self._found.operation)

    def _ring(self, fresh: list[Forced]) -> Witness | None:
        best: list[Part] = []
        for forced in fresh:
            self._deadline.check(often=1)
            reached = self._before(forced.earlier)
            if forced.later in reached:
                way: list[Part] = [*self._way(reached, forced.later), forced]
                if not best or _size(way) < _size(best):
                    best = way
        if not best:
            return None
        return self._made(Pattern.CYCLIC_HB, max(_reads(best), default=self._found.operation), best, None)

    def _made(self, pattern: Pattern, read: int, way: list[Part], missed: int | None) -> Witness:
        made = Witness(pattern, read, [part for part in way if isinstance(part, Step)], missed)
        made.forced = _flat(way)
        return made

    def _before(self, number: int) -> dict[int, Part | None]:
        """What comes before an operation by the causal order and by what is forced, each with its next step towards it."""
        history = self._history
        came: dict[int, Part | None] = {number: None}
        reached: dict[int, int] = {}
        todo = deque([number])
        while todo:
            here = todo.popleft()
            steps: list[Part] = [Step(other, here, why) for other, why in self._graph.next_to(here, backward=True)]
            steps += self._forced.get(here, [])
            thread = history.thread[here]
            place = history.place[here]
            fresh = range(reached.get(thread, 0), place)
            reached[thread] = max(reached.get(thread, 0), place)
            steps += [Step(history.threads[thread][earlier], here, Why.SCOPE) for earlier in fresh]
            for step in steps:
                if step.earlier not in came:
                    came[step.earlier] = step
                    todo.append(step.earlier)
        return came

    def _way(self, came: dict[int, Part | None], start: int) -> list[Part]:
        way: list[Part] = []
        step = came[start]
        while step is not None:
            way.append(step)
            step = came[step.later]
        return way


def _flat(way: list[Part]) -> list[Forced]:
    """Every forced order that is used, those that others rest on first."""
    found: dict[tuple[int, int], Forced] = {}

    def add(parts: list[Part]) -> None:
        for part in parts:
            if isinstance(part, Forced) and (part.earlier, part.later) not in found:
                add(part.reason)
                found[part.earlier, part.later] = part

    add(way)
    return list(found.values())


def _reads(way: list[Part]) -> list[int]:
    return [forced.read for forced in _flat(way)]


def _size(way: list[Part]) -> int:
    found: set[int] = set()

    def visit(parts: list[Part]) -> None:
        for part in parts:
            found.update((part.earlier, part.later))
            if isinstance(part, Forced):
                found.add(part.read)
                visit(part.reason)

    visit(way)
    return len(found)
