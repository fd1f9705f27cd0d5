"""Shortest chains of causes between two operations: what a witness is made of (spec HIST-15)."""

from __future__ import annotations

from collections import deque
from dataclasses import dataclass

from antipode.check.history.operations import History
from antipode.check.history.order import Why, edges_to


@dataclass(frozen=True, slots=True)
class Step:
    """One operation comes before another, and why."""

    earlier: int
    later: int
    why: Why


class Search:
    """Breadth-first from an operation, against or along the causal order; a step in a thread may pass over others."""

    def __init__(self, history: History, start: int, *, backward: bool, graph: Graph) -> None:
        self._history = history
        self._start = start
        self._backward = backward
        self._graph = graph
        self.distance = {start: 0}
        self._came: dict[int, Step] = {}
        self._run()

    def _run(self) -> None:
        history = self._history
        reached: dict[int, int] = {}
        todo = deque([self._start])
        while todo:
            number = todo.popleft()
            for other, why in self._graph.next_to(number, backward=self._backward):
                self._reach(number, other, why, todo)
            thread = history.thread[number]
            members = history.threads[thread]
            here = history.place[number]
            if self._backward:
                fresh = range(reached.get(thread, 0), here)
                reached[thread] = max(reached.get(thread, 0), here)
            else:
                fresh = range(here + 1, reached.get(thread, len(members)))
                reached[thread] = min(reached.get(thread, len(members)), here + 1)
            for place in fresh:
                self._reach(number, members[place], Why.SCOPE, todo)

    def _reach(self, number: int, other: int, why: Why, todo: deque[int]) -> None:
        if other in self.distance:
            return
        self.distance[other] = self.distance[number] + 1
        earlier, later = (other, number) if self._backward else (number, other)
        self._came[other] = Step(earlier, later, why)
        todo.append(other)

    def path(self, other: int) -> list[Step]:
        """The steps between the start and `other`, in the causal order's direction."""
        steps = []
        while other != self._start:
            step = self._came[other]
            steps.append(step)
            other = step.later if self._backward else step.earlier
        return steps if self._backward else steps[::-1]


class Graph:
    """The direct edges in both directions, but those of threads."""

    def __init__(self, history: History) -> None:
        self._history = history
        self._after: list[list[tuple[int, Why]]] | None = None

    def next_to(self, number: int, *, backward: bool) -> list[tuple[int, Why]]:
        """Operations one edge away."""
        if backward:
            return list(edges_to(self._history, number))
        if self._after is None:
            self._after = [[] for _ in range(len(self._history))]
            for later in range(len(self._history)):
                for earlier, why in edges_to(self._history, later):
                    self._after[earlier].append((later, why))
        return self._after[number]
