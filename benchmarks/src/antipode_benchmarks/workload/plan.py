"""What a random workload's requests do: a tree of visits, each a worker's steps, in all languages."""

from __future__ import annotations

import random
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, field, replace
from itertools import count
from typing import Any

Step = dict[str, Any]
"""`do`, and what that needs: `write`, `read`, `barrier`, `call` and `send` (benchmarks/services.md)."""

KEYS = ("1", "2", "3", "4")
READS = 3
"""Of a request that only reads."""
DEEPEST = 3
"""Hops from the first worker of a request to its last."""


@dataclass(frozen=True, slots=True)
class Visit:
    """What one worker is to do in one request."""

    worker: str
    name: str
    steps: list[Step]
    after: str = ""
    """The request, by its first visit, whose lineage this one comes with; empty: none."""

    def to_json(self) -> dict[str, Any]:
        """As the worker is told it: visits to others are inside of it."""
        return {"visit": self.name, "steps": [_told(step) for step in self.steps]}

    def all(self) -> Iterator[Visit]:
        """This visit and those that come of it."""
        yield self
        for step in self.steps:
            if "visit" in step:
                yield from step["visit"].all()

    def writes(self, store: str) -> Iterator[int]:
        """The numbers of its writes to a store."""
        for visit in self.all():
            for step in visit.steps:
                if step["do"] == "write" and step["store"] == store:
                    yield int(step["value"])


def _told(step: Step) -> Step:
    return {**step, "visit": step["visit"].to_json()} if "visit" in step else step


@dataclass(slots=True)
class Plans:
    """Makes requests. Values are the numbers of their writes, unique in a run."""

    workers: Sequence[str]
    primary: Callable[[str], str]
    """The server at which a store is written."""
    stores: Sequence[str]
    run: str
    """Names the run in keys and visits."""
    barriers: bool
    """Whether each read comes after a barrier."""
    shared: bool
    """Whether all requests touch the same keys. Otherwise nobody reads what was written outside of its own past."""
    patience: float | None = None
    """Deadline of barriers that go on whatever they find, in seconds; None: they have to pass, in the run's time."""
    _numbers: Iterator[int] = field(default_factory=lambda: count(1))
    _visits: Iterator[int] = field(default_factory=lambda: count(1))
    _pasts: Iterator[int] = field(default_factory=lambda: count(1))
    _prefixes: dict[str, list[str]] = field(default_factory=dict)
    """Of each request, by its first visit: those of the keys in its past."""
    _reads: float = 0.5
    """The share of reads among what is done."""

    def request(self, own: random.Random, after: Visit | None = None) -> Visit:
        """A request's first visit; it goes on to every other worker, and to some of them again.

        `after`: it comes with the lineage of this one, which is over, and touches its keys.
        """
        first = own.choice(self.workers)
        unseen = {worker for worker in self.workers if worker != first}
        past = [self.run if self.shared else self._prefix()] if after is None else self._prefixes[after.name]
        visit = self._visit(own, first, unseen, past, 0)
        self._prefixes[visit.name] = past
        return visit if after is None else replace(visit, after=after.name)

    def writing(self, own: random.Random) -> Visit:
        """A request that writes and reads nothing: it waits for no replica, be it cut off."""
        share, self._reads = self._reads, 0.0
        try:
            return self.request(own)
        finally:
            self._reads = share

    def reading(self, own: random.Random, worker: str, after: Visit) -> Visit:
        """A request that only reads, at one worker; it comes with the lineage of another, and touches its keys."""
        share, self._reads = self._reads, 1.0
        try:
            steps = [step for _ in range(READS) for step in self._operation(own, self._prefixes[after.name])]
        finally:
            self._reads = share
        return Visit(worker, f"{self.run}-{next(self._visits)}", steps, after.name)

    def _prefix(self) -> str:
        return f"{self.run}-{next(self._pasts)}"

    def _visit(self, own: random.Random, worker: str, unseen: set[str], past: list[str], depth: int) -> Visit:
        """`past`: prefixes of keys; what is written has the last of them."""
        name = f"{self.run}-{next(self._visits)}"
        steps: list[Step] = []
        for _ in range(own.randint(1, 3)):
            steps += self._operation(own, past)
        others = [other for other in self.workers if other != worker]
        while unseen or (depth < DEEPEST and own.random() < 0.4):
            to = own.choice(sorted(unseen) or others)
            unseen.discard(to)
            do = own.choice(("call", "send"))
            theirs = past
            if do == "send" and not self.shared:  # both go on at the same time, each with keys of its own
                theirs = [*past, self._prefix()]
                past.append(self._prefix())
            steps.append({"do": do, "to": to, "visit": self._visit(own, to, unseen, theirs, depth + 1)})
            steps += self._operation(own, past)
        return Visit(worker, name, steps)

    def _operation(self, own: random.Random, past: Sequence[str]) -> list[Step]:
        store, key = own.choice(self.stores), own.choice(KEYS if self.shared else KEYS[:2])
        if own.random() >= self._reads:
            item = {"store": store, "server": self.primary(store), "key": f"{past[-1]}-{key}"}
            return [{"do": "write", **item, "value": str(next(self._numbers))}]
        read = {"do": "read", "store": store, "key": f"{own.choice(past[-2:])}-{key}"}
        barrier = {"do": "barrier"} if self.patience is None else {"do": "barrier", "timeout": self.patience}
        return [barrier, read] if self.barriers else [read]
