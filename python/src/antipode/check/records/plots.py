"""What the page draws: bars in a box of 100 by 100, whose words stand round it as text, so that they never shrink."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field
from datetime import UTC, datetime
from math import log10
from typing import Final

from antipode.check.records import words
from antipode.check.records.analysis import BUCKETS_A_DECADE, PLACE, Row
from antipode.check.records.findings import BUCKETS, Finding, Kind, Report


@dataclass(frozen=True)
class Bar:
    """A rectangle; `name` is its colour's, `words` what it says when pointed at."""

    x: float
    y: float
    width: float
    height: float
    name: str
    words: str


@dataclass(frozen=True)
class Plot:
    """Bars, vertical lines with their words, and both axes' numbers: where they stand, in hundredths, and what."""

    title: str
    bars: Sequence[Bar]
    across: Sequence[tuple[float, str]]
    upward: Sequence[tuple[float, str]]
    lines: Sequence[tuple[float, str]] = ()


@dataclass(frozen=True)
class Interval:
    """A rate on a scale that all rates share: places in hundredths of its width."""

    low: float
    value: float
    high: float


_FEWEST: Final = 4
_MOST_NUMBERS: Final = 4
"""On the axis of lags, beside the one at its beginning."""
_LOOK: Final = {Kind.LATE: "look"}
_SERIES: Final = (("stale", "stale reads"), ("late", "late barriers"), ("published_before_commit", "before commit"))


@dataclass(frozen=True)
class Timeline:
    """When it happened."""

    plot: Plot
    series: Sequence[tuple[str, str]] = field(default_factory=list)
    """Colour and words of what occurs in it."""


def timeline(found: Report) -> Timeline | None:
    """Confirmed violations over time, one bar a slice of it; None where there are none."""
    counts = {(row["name"], row["bucket"]): row["count"] for row in found.timeline}
    present = [(name, what) for name, what in _SERIES if any(key[0] == name for key in counts)]
    first, last = found.span
    seconds = last - first
    if not present or not seconds:
        return None
    highest = max(sum(counts.get((name, place), 0) for name, _ in present) for place in range(BUCKETS))
    bars = []
    width = 100 / BUCKETS
    for place in range(BUCKETS):
        top = 100.0
        for name, what in present:
            count = counts.get((name, place), 0)
            if count:
                height = 100 * count / highest
                top -= height
                when = _when(first + place * seconds / BUCKETS)
                bars.append(Bar(place * width, top, width * 0.86, height, name, f"{when}: {count:,} {what}"))
    title = f"Violations from the first to the last, a bar every {words.duration(seconds / BUCKETS)}"
    across = [(0.0, _when(first)), (100.0, f"+{words.duration(seconds)}")]
    return Timeline(Plot(title, bars, across, _upward(highest)), present)


def _upward(highest: int) -> list[tuple[float, str]]:
    half = [(50.0, f"{highest // 2:,}")] if highest % 2 == 0 else []
    return [(0.0, "0"), *half, (100.0, f"{highest:,}")]


def lags(found: Report) -> list[Plot | None]:
    """For each finding how many took how long; None where nobody knows."""
    gathered: dict[tuple[str, ...], dict[int, int]] = {}
    for row in found.histogram:
        gathered.setdefault(_key(row), {})[row["bucket"]] = row["count"]
    return [
        _lag(finding, gathered.get((_LOOK.get(finding.kind, finding.kind.value), *finding.place, finding.barrier), {}))
        for finding in found.findings
    ]


def _key(row: Row) -> tuple[str, ...]:
    return (row["kind"], *(row[name] for name in PLACE), row["barrier"])


def _lag(finding: Finding, counts: dict[int, int]) -> Plot | None:
    lag = finding.lag
    if lag is None or not counts:
        return None
    first, last = min(counts), max(counts) + 1
    if last - first < _FEWEST:  # a few buckets at least, so that one bar is no wall
        first, last = first - 1, last + 1
    highest = max(counts.values())
    width = 100 / (last - first)
    bars = [
        Bar(
            (bucket - first) * width,
            100 - 100 * count / highest,
            width * 0.9,
            100 * count / highest,
            finding.kind.value,
            f"{_edge(bucket)} to {_edge(bucket + 1)}: {count:,}",
        )
        for bucket, count in sorted(counts.items())
    ]
    lines = [
        (min(max(100 * (_bucket(value) - first) / (last - first), 0.0), 100.0), f"{name} {words.duration(value)}")
        for value, name in ((lag.p50, "p50"), (lag.p99, "p99"))
        if value
    ]
    step = -(-(last - first) // _MOST_NUMBERS)
    across = [(100 * (bucket - first) / (last - first), _edge(bucket)) for bucket in range(first, last + 1, step)]
    return Plot("How long until it was visible", bars, across, _upward(highest), lines)


def _bucket(seconds: float) -> float:
    return log10(max(seconds, 1e-9)) * BUCKETS_A_DECADE


def _edge(bucket: int) -> str:
    return words.duration(10 ** (bucket / BUCKETS_A_DECADE))


def highest_rate(found: Report) -> float:
    """Return where the scale of all rates ends: at the highest of all."""
    return max((finding.rate.high for finding in found.findings if finding.rate is not None), default=1.0) or 1.0


def intervals(found: Report) -> list[Interval | None]:
    """For each finding its rate on one scale."""
    top = highest_rate(found)
    return [
        None
        if finding.rate is None
        else Interval(100 * finding.rate.low / top, 100 * finding.rate.value / top, 100 * finding.rate.high / top)
        for finding in found.findings
    ]


def _when(seconds: float) -> str:
    try:
        return f"{datetime.fromtimestamp(seconds, UTC):%Y-%m-%d %H:%M:%S} UTC"
    except (ValueError, OverflowError, OSError):  # a year that has no name
        return f"{seconds:.0f} s"
