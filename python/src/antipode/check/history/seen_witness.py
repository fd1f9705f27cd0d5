"""The witness of a thread that cannot have seen all writes in any order (spec HIST-15): which read forces which order.

The reads that contradict one another are known. They are followed again, this time with the reason of everything that
comes into a read's past, in rounds: a forced order rests on the causal order and on those of earlier rounds.
"""

from __future__ import annotations

from collections import deque
from collections.abc import Sequence
from dataclasses import dataclass, field
from typing import Final

from antipode.check.history.clock import Deadline
from antipode.check.history.judging import judge
from antipode.check.history.operations import INITIAL, History
from antipode.check.history.order import Why
from antipode.check.history.part import fewest_operations, part
from antipode.check.history.paths import Graph, Step
from antipode.check.history.patterns import FoundViolation, Pattern
from antipode.check.history.witness import Forced, Past, Witness

Part = Step | Forced


_SEEN: Final = (Pattern.WRITE_HB_INIT_READ, Pattern.CYCLIC_HB)


def seen_witness(history: History, found: FoundViolation, graph: Graph, deadline: Deadline) -> Witness:
    """The forced orders that contradict each other, or the initial value, with the reads that force them."""
    made = _Seen(history, found, graph, deadline).witness()
    first = made.operations
    # Reads on the way may contradict each other with fewer operations than those it was made from.
    kept = fewest_operations(history, first, lambda smaller: _contradicted(smaller, deadline) is not None)
    if kept == first:
        return made
    smaller = part(history, kept)
    smaller_found = _contradicted(smaller, deadline)
    if smaller_found is None:
        return made
    return _renamed(_Seen(smaller, smaller_found, Graph(smaller), deadline).witness(), kept)


def _contradicted(history: History, deadline: Deadline) -> FoundViolation | None:
    return next((found for found in judge(history, deadline.again()).found if found.pattern in _SEEN), None)


@dataclass(frozen=True, slots=True)
class _Renamed:
    """A past whose operations have other numbers elsewhere."""

    past: Past
    numbers: Sequence[int]

    def way(self, start: int) -> list[Part]:
        """The steps from `start`, which is numbered as elsewhere."""
        return [_renamed_part(each, self.numbers) for each in self.past.way(self.numbers.index(start))]


def _renamed_part(each: Part, numbers: Sequence[int]) -> Part:
    if isinstance(each, Step):
        return Step(numbers[each.earlier], numbers[each.later], each.why)
    return Forced(numbers[each.earlier], numbers[each.later], numbers[each.read], _Renamed(each.past, numbers))


def _renamed(witness: Witness, numbers: Sequence[int]) -> Witness:
    missed = None if witness.missed is None else numbers[witness.missed]
    made = Witness(witness.pattern, numbers[witness.read], missed=missed)
    for step in witness.chain:
        made.chain.append(Step(numbers[step.earlier], numbers[step.later], step.why))
    for forced in witness.forced:
        past = _Renamed(forced.past, numbers)
        made.forced.append(Forced(numbers[forced.earlier], numbers[forced.later], numbers[forced.read], past))
    return made


@dataclass(slots=True)
class _Came:
    """What comes before an operation, each with its next step towards it."""

    steps: dict[int, Part | None]
    ring: list[Part] = field(default_factory=list)
    """The shortest way from the operation back to itself."""

    def way(self, start: int) -> list[Part]:
        """The steps from `start` to the operation."""
        found: list[Part] = []
        step = self.steps[start]
        while step is not None:
            found.append(step)
            step = self.steps[step.later]
        return found


class _Seen:
    def __init__(self, history: History, found: FoundViolation, graph: Graph, deadline: Deadline) -> None:
        self._history = history
        self._found = found
        self._graph = graph
        self._deadline = deadline
        self._reads = found.members
        items = {history.item[read] for read in self._reads}
        self._written: dict[int, list[int]] = {item: [] for item in items}
        for number in range(len(history)):
            if history.is_write(number) and history.item[number] in items:
                self._written[history.item[number]].append(number)
        self._known: dict[int, dict[int, _Came]] = {read: {} for read in self._reads}
        """For each read the writes that it forces before its own, with the search that found them in its past."""

    def witness(self) -> Witness:
        while self._reads:
            grown = False
            for read in self._reads:
                self._deadline.check(often=1)
                came = self._before(read)
                source = self._history.source[read]
                fresh = [
                    write
                    for write in self._written[self._history.item[read]]
                    if write != source and write in came.steps and write not in self._known[read]
                ]
                if source == INITIAL and fresh:
                    way = min((came.way(write) for write in fresh), key=len)
                    return self._made(Pattern.WRITE_HB_INIT_READ, read, way, way[0].earlier)
                grown = grown or bool(fresh)
                self._known[read].update((write, came) for write in fresh)
            rings = [self._before(self._history.source[read]).ring for read in self._reads]
            rings = sorted((ring for ring in rings if ring), key=_size)
            if rings:
                return self._made(Pattern.CYCLIC_HB, max(forced.read for forced in _flat(rings[0])), rings[0], None)
            if not grown:
                break
        return Witness(self._found.pattern, self._found.operation)

    def _made(self, pattern: Pattern, read: int, way: list[Part], missed: int | None) -> Witness:
        made = Witness(pattern, read, [each for each in way if isinstance(each, Step)], missed)
        made.forced = _flat(way)
        return made

    def _before(self, number: int) -> _Came:
        """By the causal order and by what is forced so far."""
        found = _Came({number: None})
        if number < 0:
            return found
        came = found.steps
        reached: dict[int, int] = {}
        todo = deque([number])
        while todo:
            here = todo.popleft()
            for step in self._steps(here, reached):
                if step.earlier not in came:
                    came[step.earlier] = step
                    todo.append(step.earlier)
                elif step.earlier == number and not found.ring:
                    found.ring = [step, *found.way(here)]
        return found

    def _steps(self, here: int, reached: dict[int, int]) -> list[Part]:
        history = self._history
        steps: list[Part] = [Step(other, here, why) for other, why in self._graph.next_to(here, backward=True)]
        for read in self._reads:
            if history.source[read] == here:
                steps += [Forced(write, here, read, came) for write, came in self._known[read].items()]
        thread, place = history.thread[here], history.place[here]
        fresh = range(reached.get(thread, 0), place)
        reached[thread] = max(reached.get(thread, 0), place)
        steps += [Step(history.threads[thread][earlier], here, Why.SCOPE) for earlier in fresh]
        return steps


def _flat(way: list[Part]) -> list[Forced]:
    """Every forced order that is used, those that others rest on first."""
    found: dict[tuple[int, int], Forced] = {}

    def add(parts: list[Part]) -> None:
        for each in parts:
            if isinstance(each, Forced) and (each.earlier, each.later) not in found:
                add(each.reason)
                found[each.earlier, each.later] = each

    add(way)
    return list(found.values())


def _size(way: list[Part]) -> int:
    found: set[int] = set()

    def visit(parts: list[Part]) -> None:
        for each in parts:
            found.update((each.earlier, each.later))
            if isinstance(each, Forced):
                found.add(each.read)
                visit(each.reason)

    visit(way)
    return len(found)
