"""Where barriers belong, ranked by what they would prevent and cost (CHECK-9, CHECK-10)."""

from __future__ import annotations

import re
from collections.abc import Sequence
from dataclasses import dataclass
from enum import StrEnum
from typing import Final

from antipode.check.records.findings import Finding, Kind

_SHORTEST: Final = 1e-3
"""A rate a second of less time than this says nothing."""
_SITE: Final = re.compile(r".+:[1-9][0-9]*")


class Move(StrEnum):
    """What to do."""

    PLACE = "place_barrier"
    ENFORCE = "enforce_barrier"
    PUBLISH_AFTER_COMMIT = "publish_after_commit"


@dataclass(frozen=True)
class Suggestion:
    """One place in the code."""

    move: Move
    service: str
    at: str
    """A site, or the route or consumer whose scope it is."""
    after: str
    """What brings the lineage there: a queue, or empty."""
    before: tuple[str, ...]
    """The sites that it would make wait."""
    stores: tuple[str, ...]
    prevents: float
    """So many violations, in the time that the records cover; an estimate where they are a sample."""
    all_of_them: bool
    """Whether that is a count of them all, not of a sample and no estimate."""
    found: int
    """So many of them are in the records."""
    behind: int
    """So many reads of servers that were behind it would make wait, too: nobody knows which of them were violations."""
    per_second: float | None
    share: float | None
    """Of the barriers or reads there: so many would wait."""
    median: float | None
    p99: float | None
    added: float | None
    """Seconds that a barrier or read there would take longer on average, at most: waits for several stores overlap."""
    findings: tuple[int, ...]
    """Their places in the report."""


def suggest(findings: Sequence[Finding], seconds: float) -> list[Suggestion]:
    """One suggestion a place, the one that prevents most first; of equal ones that of most reads behind, then the
    cheaper."""
    groups: dict[tuple[Move, str, str, str], list[int]] = {}
    for number, finding in enumerate(findings):
        if finding.confirmed or (finding.kind is Kind.BEHIND and finding.late is None):
            groups.setdefault(_place(finding), []).append(number)
    found = [
        _suggestion(place, [(number, findings[number]) for number in group], seconds) for place, group in groups.items()
    ]
    return sorted(found, key=lambda each: (-each.prevents, -each.behind, each.added or 0.0, each.service, each.at))


def _place(finding: Finding) -> tuple[Move, str, str, str]:
    if finding.kind is Kind.PUBLISHED_BEFORE_COMMIT:
        return Move.PUBLISH_AFTER_COMMIT, finding.service, finding.site, ""
    if finding.kind is Kind.LATE or finding.barrier:  # behind a barrier no second one is placed
        return Move.ENFORCE, finding.service, finding.barrier or finding.site, finding.queue
    if finding.entry is not None:
        return Move.PLACE, finding.entry.service, finding.entry.opened_by or finding.entry.site, finding.entry.queue
    if finding.scope in {"message", "request"} and finding.opened_by:
        return Move.PLACE, finding.service, finding.opened_by, finding.queue
    return Move.PLACE, finding.service, finding.site, finding.queue


def _suggestion(place: tuple[Move, str, str, str], group: Sequence[tuple[int, Finding]], seconds: float) -> Suggestion:
    move, service, at, after = place
    members = [finding for _, finding in group]
    violations = [finding for finding in members if finding.confirmed]
    prevents = sum(finding.estimated for finding in violations)
    lags = [finding.lag for finding in members if finding.lag is not None]
    largest = max(members, key=lambda finding: finding.estimated).lag
    rates = [finding.rate.value for finding in members if finding.rate is not None]
    known = len(rates) == len(members)
    means = [lag.mean for lag in lags if lag.mean is not None]
    costs_known = known and len(means) == len(members)
    longest = [lag.p99 for lag in lags if lag.p99 is not None]
    return Suggestion(
        move,
        service,
        at,
        after,
        tuple(sorted({finding.entry.site if finding.entry else finding.site for finding in members})),
        tuple(sorted({finding.store for finding in members})),
        prevents,
        all(finding.estimated == finding.count and not finding.sampled for finding in violations),
        sum(finding.count for finding in violations),
        sum(finding.count for finding in members if not finding.confirmed),
        prevents / seconds if seconds >= _SHORTEST else None,
        min(sum(rates), 1.0) if known and rates else None,
        None if largest is None else largest.p50,
        max(longest, default=None),
        sum(rate * mean for rate, mean in zip(rates, means, strict=True)) if costs_known and rates else None,
        tuple(number for number, _ in group),
    )


def is_site(text: str) -> bool:
    """Whether it is `file:line`."""
    return _SITE.fullmatch(text) is not None
