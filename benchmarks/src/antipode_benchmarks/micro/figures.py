"""What a figure is, and how two ways of doing one thing are measured beside each other."""

from __future__ import annotations

import math
import time
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from typing import Any

Clock = Callable[[], int]


@dataclass(frozen=True, slots=True)
class Figure:
    """One result. `value` is what the target speaks of; `beside` is what else was measured on the way."""

    name: str
    what: str
    unit: str
    value: float
    spread: dict[str, float] = field(default_factory=dict)
    at_most: float | None = None
    at_least: float | None = None
    beside: dict[str, float] = field(default_factory=dict)

    @property
    def met(self) -> bool | None:
        """Whether the target is met; None where there is none."""
        if self.at_most is None and self.at_least is None:
            return None
        return (self.at_most is None or self.value <= self.at_most) and (
            self.at_least is None or self.value >= self.at_least
        )

    @property
    def target(self) -> str:
        """The target as words."""
        if self.at_least is not None:
            return f"≥ {self.at_least:g} {self.unit}"
        return "" if self.at_most is None else f"≤ {self.at_most:g} {self.unit}"

    def to_json(self) -> dict[str, Any]:
        """The figure as the result's JSON holds it."""
        return {
            "what": self.what,
            "unit": self.unit,
            "value": rounded(self.value),
            "spread": {name: rounded(value) for name, value in self.spread.items()},
            "beside": {name: rounded(value) for name, value in self.beside.items()},
            "at_most": self.at_most,
            "at_least": self.at_least,
            "met": self.met,
        }


def rounded(value: float) -> float:
    """Four significant digits, as much as any of this is worth."""
    return value if value == 0 or not math.isfinite(value) else round(value, 3 - math.floor(math.log10(abs(value))))


def rank(values: Sequence[float], share: float) -> float:
    """The value below which this share of the values is (nearest rank: a value that occurred)."""
    if not values:
        raise ValueError("no values")
    ordered = sorted(values)
    return ordered[max(math.ceil(share * len(ordered)) - 1, 0)]


def spread_of(values: Sequence[float], *shares: int) -> dict[str, float]:
    """Percentiles by name: `p10`, `p50`…"""
    return {f"p{share}": rank(values, share / 100) for share in shares}


def loop_us() -> float:
    """Return what a loop of plain Python takes here, in microseconds: figures of two machines compare by it."""

    def once() -> float:
        start = time.thread_time_ns()
        counts: dict[str, int] = {}
        for number in range(20_000):
            key = f"k{number & 63}"
            counts[key] = counts.get(key, 0) + len(key)
        return (time.thread_time_ns() - start) / 1000

    return rank([once() for _ in range(15)], 0.5)


@dataclass(frozen=True, slots=True)
class Pair:
    """Times of the same work done in two ways, round by round, in microseconds a call."""

    ours: list[float]
    other: list[float]

    @property
    def ratios(self) -> list[float]:
        """How many times longer the other way took, round by round."""
        return [theirs / mine for mine, theirs in zip(self.ours, self.other, strict=True)]

    @property
    def differences(self) -> list[float]:
        """How much longer ours took, round by round, in microseconds."""
        return [mine - theirs for mine, theirs in zip(self.ours, self.other, strict=True)]


def paired(
    ours: Callable[[], object],
    other: Callable[[], object],
    *,
    calls: int,
    rounds: int,
    clock: Clock = time.thread_time_ns,
) -> Pair:
    """Runs both ways in turns, so that whatever else the machine does meets both; the order changes each round.

    Each callable does the work `calls` times. The clock is the thread's own processor time by default: what other
    processes take does not count.
    """
    ours(), other()  # caches of either are warm
    pair = Pair([], [])
    for number in range(rounds):
        turns = [(ours, pair.ours), (other, pair.other)]
        for way, times in turns if number % 2 else reversed(turns):
            start = clock()
            way()
            times.append((clock() - start) / 1000 / calls)
    return pair
