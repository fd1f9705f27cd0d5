"""How many requests run at once: the limit, and the one that explores and optimizes (Kanaloa; spec THR-7, THR-8).

No input or output: times and draws are given, and the vectors `throttle-limit` hold every language to the same numbers.
"""

from __future__ import annotations

import math
from collections import deque
from collections.abc import Callable
from dataclasses import dataclass
from typing import NamedTuple, Protocol


class Limit(Protocol):
    """A number of requests that may run at once; the throttle calls it under its lock (THR-9)."""

    @property
    def limit(self) -> int:
        """Return the number, 1 at least."""

    def tick(self, queued: bool, done: int, mean: float, seconds: float, now: float) -> None:
        """Take in one interval.

        Args:
            queued: whether a request waits for a permit now.
            done: how many requests ended in the interval.
            mean: how long they ran, without their waits in barriers, seconds.
            seconds: how long the interval really was.
            now: a monotonic time.
        """


class _Speed(NamedTuple):
    """A measurement at one size."""

    at: float
    speed: float
    mean: float


@dataclass(frozen=True, slots=True)
class ExploringOptions:
    """Bounds of the limit, and of the search for it.

    Attributes:
        initial: the size that it begins with.
        least: the least that it may be.
        most: the greatest that it may be.
        memory: how long a measurement counts, seconds; None: for ever (as published).
        weight: of the newest measurement at a size, 0 to 1.
        published: whether it explores as Kanaloa does: experiments compare with it (THR-8).
    """

    initial: int = 20
    least: int = 5
    most: int = 400
    memory: float | None = 60.0
    weight: float = 0.2
    published: bool = False

    def __post_init__(self) -> None:
        if not 1 <= self.least <= self.initial <= self.most:
            raise ValueError(f"want 1 <= least <= initial <= most, not {self.least}, {self.initial}, {self.most}")


class ExploringLimit:
    """A limit that tries sizes near its own, and goes half the way to the best of those that it knows."""

    def __init__(self, draw: Callable[[], float], options: ExploringOptions | None = None) -> None:
        """`draw` gives numbers that are uniform in [0, 1)."""
        self._draw = draw
        self._options = options or ExploringOptions()
        self._log: dict[int, _Speed] = {}
        self._baseline: deque[tuple[float, float]] = deque()
        self.limit = self._options.initial

    @property
    def most(self) -> int:
        """Return the greatest number that it may become."""
        return self._options.most

    def tick(self, queued: bool, done: int, mean: float, seconds: float, now: float) -> None:
        """Take in one interval; see `Limit.tick`."""
        self._forget(now)
        if done > 0:
            self._baseline.append((now, mean))  # also where nothing waits: only then the service shows its own speed
        if not queued:
            return
        if done > 0:
            self._measure(done / seconds, mean, now)
        explores = self._draw() < 0.3 or len(self._log) < 2
        size = self._explore() if explores else self._optimize()
        self.limit = min(max(size, self._options.least), self._options.most)

    def _forget(self, now: float) -> None:
        memory = self._options.memory
        if memory is None:
            self._baseline.clear()
            return
        self._log = {size: known for size, known in self._log.items() if now - known.at <= memory}
        while self._baseline and now - self._baseline[0][0] > memory:
            self._baseline.popleft()

    def _measure(self, speed: float, mean: float, now: float) -> None:
        known, new = self._log.get(self.limit), self._options.weight
        if known is not None:
            speed, mean = new * speed + (1 - new) * known.speed, new * mean + (1 - new) * known.mean
        self._log[self.limit] = _Speed(now, speed, mean)

    def _explore(self) -> int:
        published, known = self._options.published, self._log.get(self.limit)
        step = 5 if published else max(5, math.floor(0.2 * self.limit) + 1)
        change = max(1, math.floor(self._draw() * step))
        fastest = min((mean for _, mean in self._baseline), default=math.inf)
        is_inflated = known is not None and known.mean > 1.2 * fastest
        shrinks = self._draw() < (0.7 if published or is_inflated else 0.3)
        return self.limit - change if shrinks else self.limit + change

    def _optimize(self) -> int:
        number = max(10, math.floor(0.4 * self.limit))
        sizes = sorted(self._log)
        near = [size for size in sizes if size < self.limit][-number:]
        near += [size for size in sizes if size >= self.limit][: number + 1]
        current = self._log.get(self.limit) or self._log[near[0]]

        def gain(size: int) -> float:
            other = self._log[size]
            faster = (other.speed - current.speed) / current.speed if current.speed else 0.0
            shorter = (current.mean - other.mean) / current.mean if current.mean else 0.0
            return 0.8 * faster + 0.2 * shorter

        best = max(near, key=gain)  # the first, which is the least, of those that are as good
        return self.limit + math.ceil((best - self.limit) / 2)


class FixedLimit:
    """A limit that somebody has chosen."""

    def __init__(self, limit: int) -> None:
        if limit < 1:
            raise ValueError(f"want a limit of 1 at least, not {limit}")
        self.limit = limit

    def tick(self, queued: bool, done: int, mean: float, seconds: float, now: float) -> None:
        """Stay as it is."""
