"""What records come to: findings with rates and lags, the answer, and what it rests on (CHECK-3 to CHECK-8)."""

from __future__ import annotations

import json
from collections import Counter
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field, replace
from enum import StrEnum
from typing import Any, Final

from ibis.expr.types import Table

from antipode.check.records import analysis
from antipode.check.records.analysis import Row
from antipode.check.records.intervals import Rate, wilson
from antipode.check.records.reading import ReadLines
from antipode.check.records.rows import ESTIMATED


class Kind(StrEnum):
    """What was found; the first three are confirmed violations (CHECK-3)."""

    STALE = "stale"
    LATE = "late"
    """A barrier in dry-run that would have had to wait."""
    PUBLISHED_BEFORE_COMMIT = "published_before_commit"
    BEHIND = "behind"
    UNJUDGED = "unjudged"
    """A barrier that looked at no server, or could prove nothing."""
    UNJUDGED_READ = "unjudged_read"
    """A followed read whose server could not prove what it had."""
    VACUOUS = "vacuous"
    ORPHAN = "orphan"
    LATE_WRITE = "late_write"
    INCOMPLETE = "incomplete"
    CONCURRENT_WRITE = "concurrent_write"
    """Told, and neither a violation nor a doubt (SCOPE)."""


CONFIRMED = frozenset({Kind.STALE, Kind.LATE, Kind.PUBLISHED_BEFORE_COMMIT})
_DOUBTED: Final = {
    Kind.BEHIND: (
        "read was of a server that was behind, and nothing says whether it was stale",
        "reads were of servers that were behind, and nothing says whether they were stale",
    ),
    Kind.UNJUDGED: ("look of a barrier could not judge", "looks of barriers could not judge"),
    Kind.UNJUDGED_READ: ("followed read could not be judged", "followed reads could not be judged"),
    Kind.VACUOUS: ("barrier knew none of its lineage's stores", "barriers knew none of their lineage's stores"),
    Kind.ORPHAN: ("write was in no lineage", "writes were in no lineage"),
    Kind.LATE_WRITE: ("write came after its lineage had left", "writes came after their lineage had left"),
    Kind.INCOMPLETE: ("lineage was not whole", "lineages were not whole"),
}
"""Where a violation could hide: with one of them and no violation the answer is that nobody can tell (CHECK-7)."""


@dataclass(frozen=True)
class Lag:
    """How long it took until it was visible, in seconds; of those that were seen to the end."""

    seen: int
    unseen: int
    """Given up before it was visible: the percentiles know nothing of them."""
    p50: float | None
    p90: float | None
    p99: float | None
    mean: float | None
    longest: float | None


@dataclass(frozen=True)
class Entry:
    """Where a message's lineage entered a process that passed it on with a call."""

    service: str
    site: str
    """Of the call."""
    opened_by: str
    queue: str


@dataclass
class Finding:
    """One kind of finding at one place."""

    kind: Kind
    service: str
    region: str
    site: str
    store: str
    count: int
    store_kind: str = ""
    scope: str = ""
    opened_by: str = ""
    queue: str = ""
    of: int | None = None
    """Of so many barriers or followed reads; None where no summary says so."""
    rate: Rate | None = None
    estimated: float = 0.0
    """So many in all, where the records are a sample."""
    sampled: bool = False
    """Whether there were more reads than were followed, nobody knows how many at this site: `estimated` is too low."""
    lag: Lag | None = None
    trace: str = ""
    """One trace in which it happened."""
    written_at: str = ""
    target: str = ""
    reason: str = ""
    lineage_stores: list[str] = field(default_factory=list)
    registered: list[str] = field(default_factory=list)
    entry: Entry | None = None
    """Where a message brought the lineage into another process, from which this one was called."""
    barrier: str = ""
    """Of a read: where the barrier in dry-run before it was called, if that asked its server for the same (REC-27)."""
    late: Finding | None = None
    """What that barrier found: the same violation."""
    new: bool = True
    """Not in the baseline."""

    @property
    def confirmed(self) -> bool:
        """Whether it is a violation of its own (CHECK-3)."""
        return self.kind in CONFIRMED and (self.late is None or (self.new and not self.late.new))

    @property
    def rate_unknown(self) -> bool:
        """Whether it is of reads, and no summary says of how many."""
        return self.of is None and self.kind in {Kind.STALE, Kind.BEHIND}

    @property
    def place(self) -> tuple[str, ...]:
        """What tells it apart from others of its kind, as `analysis.PLACE` has it."""
        names = (self.service, self.region, self.site, self.scope, self.opened_by, self.queue)
        return (*names, self.store, self.store_kind)

    @property
    def origin(self) -> str:
        """Where the lineage came from, in a word or two; empty where nobody knows."""
        return self.queue or (self.entry.queue if self.entry else "") or self.opened_by


class Verdict(StrEnum):
    """The answer."""

    VIOLATED = "violated"
    CLEAN = "clean"
    UNKNOWN = "unknown"


@dataclass
class Report:
    """All that the command says."""

    taken: ReadLines
    kinds: dict[str, int]
    first: float | None
    last: float | None
    findings: list[Finding]
    judged: int
    """Looks of barriers and followed reads that were judged, and barriers that waited and passed (REC-26)."""
    requests: int
    """Requests and messages, as the summaries count them; 0 where there are none."""
    notes: list[str] = field(default_factory=list)
    span: tuple[float, float] = (0.0, 0.0)
    """From the first violation to the last, which `timeline` is of."""
    timeline: list[Row] = field(default_factory=list)
    histogram: list[Row] = field(default_factory=list)
    baseline: bool = False
    lost: int = 0
    """Barriers and early reads that the summaries count, and that have no record: dropped, rotated away, not given."""

    @property
    def seconds(self) -> float:
        """From the first record to the last."""
        return 0.0 if self.first is None or self.last is None else self.last - self.first

    @property
    def violations(self) -> list[Finding]:
        """The confirmed ones that the baseline has not got."""
        return [finding for finding in self.findings if finding.confirmed and finding.new]

    @property
    def doubts(self) -> list[str]:
        """Why nobody can tell, though no violation was found; sentences (CHECK-7)."""
        why = []
        if not self.taken.records:
            why.append("there are no records")
        elif not self.judged:
            why.append("no barrier and no followed read was judged")
        if self.taken.unread:
            why.append(f"{counted(self.taken.unread, 'line or file', 'lines or files')} could not be read")
        if self.lost:
            words = "barrier or read", "barriers and reads"
            why.append(f"of {counted(self.lost, *words)} that the summaries count there is no record")
        for kind, (one, many) in _DOUBTED.items():
            count = sum(finding.count for finding in self.findings if finding.kind is kind and finding.new)
            if count:
                why.append(counted(count, one, many))
        return why

    @property
    def verdict(self) -> Verdict:
        """The answer (CHECK-6, CHECK-7)."""
        if self.violations:
            return Verdict.VIOLATED
        return Verdict.UNKNOWN if self.doubts else Verdict.CLEAN


def counted(count: int, one: str, many: str) -> str:
    """A number with its noun."""
    return f"{count:,} {one if count == 1 else many}"


BUCKETS: Final = 48
"""Slices of the time, in the page's picture."""


def report(rows: Table, taken: ReadLines, *, pictures: bool = False) -> Report:
    """Asks all questions of the table; `pictures` those too whose answers are drawn."""
    kinds = analysis.kinds(rows)
    first = min((row["first"] for row in kinds), default=None)
    last = max((row["last"] for row in kinds), default=None)
    sums = _Sums(analysis.counts(rows))
    findings, judged = _looks(analysis.looks(rows))
    notes: list[str] = []
    reads = _reads(analysis.reads(rows), sums, notes)
    if any(found.scope != "message" for found in reads):
        _trace_back(reads, analysis.entries(rows))
    unjudged = sums.unjudged_reads()
    _meet(reads, findings)
    findings += reads
    findings += unjudged
    findings += [_other(row) for row in analysis.others(rows)]
    order = list(Kind)
    findings.sort(key=lambda found: (order.index(found.kind), -found.estimated, found.service, found.site, found.store))
    made = Report(
        taken,
        {row["kind"]: row["count"] for row in kinds},
        first,
        last,
        findings,
        judged + sums.total("followed_reads") + sums.total("enforced_barriers") - sum(each.count for each in unjudged),
        sums.total("requests") + sums.total("messages"),
        [*notes, *sums.unfollowed(), *sums.unmet()],
        lost=_lost(sums, analysis.barriers(rows), reads),
    )
    if pictures and first is not None:
        made.span = analysis.span(rows)
        met = {read.barrier for read in reads if read.late is not None and read.kind is Kind.STALE}
        made.timeline = analysis.timeline(rows, made.span[0], made.span[1] - made.span[0], BUCKETS, sorted(met))
        made.histogram = analysis.histogram(rows)
    return made


class _Sums:
    """The summaries' numbers."""

    def __init__(self, rows: Sequence[Row]) -> None:
        self._at: dict[tuple[str, str, str, str, str], int] = {}
        self._total: dict[str, int] = {}
        for row in rows:
            key = row["service"], row["region"], row["site"], row["store"], row["what"]
            self._at[key] = row["count"]
            self._total[row["what"]] = self._total.get(row["what"], 0) + row["count"]

    def total(self, what: str) -> int:
        return self._total.get(what, 0)

    def of_services(self, what: str) -> Counter[tuple[str, ...]]:
        """Of each service, region and store."""
        found: Counter[tuple[str, ...]] = Counter()
        for (service, region, _, store, name), count in self._at.items():
            if name == what:
                found[service, region, store] += count
        return found

    def unfollowed(self) -> Iterator[str]:
        """Sentences on stores whose reads nobody judged, as none of them was in the sample or had what to wait for."""
        followed = self.of_services("followed_reads")
        for (service, region, store), count in sorted(self.of_services("reads").items()):
            if count and not followed[service, region, store]:
                place = f"{service or 'a service'}{f' in {region}' if region else ''}"
                yield f"none of {counted(count, 'read', 'reads')} of {store} by {place} was followed"

    def unmet(self) -> Iterator[str]:
        """Yield sentences on services that enforce, where requests and messages met no barrier (CHECK-9)."""
        handled = self._of_places("requests") + self._of_places("messages")
        for place, count in sorted(self._of_places("enforced_barriers").items()):
            if handled[place] > count:
                words = counted(handled[place] - count, "request or message", "requests and messages")
                service = f"{place[0] or 'a service'}{f' in {place[1]}' if place[1] else ''}"
                yield f"{words} of {service}, which enforces, met no barrier, and nobody followed their reads"

    def _of_places(self, what: str) -> Counter[tuple[str, str]]:
        found: Counter[tuple[str, str]] = Counter()
        for (service, region, _), count in self.of_services(what).items():
            found[service, region] += count
        return found

    def unjudged_reads(self) -> list[Finding]:
        """Followed reads of which nobody could tell what their server had (REC-20)."""
        found = []
        for (service, region, site, store, what), count in sorted(self._at.items()):
            if what == "unjudged_reads" and count:
                each = Finding(Kind.UNJUDGED_READ, service, region, site, store, count, estimated=float(count))
                each.of = self.at(each, "followed_reads")
                found.append(each)
        return found

    def of_store(self, finding: Finding, what: str) -> int:
        """At all sites."""
        names = finding.service, finding.region, finding.store, what
        return sum(count for (*place, _, store, name), count in self._at.items() if (*place, store, name) == names)

    def at(self, finding: Finding, what: str) -> int | None:
        return self._at.get((finding.service, finding.region, finding.site, finding.store, what))


def _lost(sums: _Sums, barriers: Sequence[Row], reads: Sequence[Finding]) -> int:
    """How many more the summaries count than there are records, a service and region."""
    recorded: Counter[tuple[str, ...]] = Counter()
    for row in barriers:
        recorded["barriers", row["service"], row["region"], ""] += row["count"]
    for read in reads:
        recorded[read.kind.value, read.service, read.region, read.store] += read.count
    return sum(
        max(count - recorded[what, *place], 0)
        for what in ("barriers", Kind.STALE.value, Kind.BEHIND.value)
        for place, count in sums.of_services(what).items()
    )


def _finding(kind: Kind, row: Row, count: int) -> Finding:
    return Finding(
        kind,
        row["service"],
        row["region"],
        row["site"],
        row["store"],
        count,
        store_kind=row["store_kind"],
        scope=row["scope"],
        opened_by=row["opened_by"],
        queue=row["queue"],
        estimated=float(count),
        trace=row["trace"] or "",
    )


def _lag(row: Row) -> Lag:
    seen = row["seen"]
    p50, p90, p99, longest = (
        None if row[name] is None else round(row[name], 9) for name in ("p50", "p90", "p99", "longest")
    )
    return Lag(seen, row["unseen"], p50, p90, p99, round(row["micros"] / seen / 1e6, 9) if seen else None, longest)


def _looks(rows: Sequence[Row]) -> tuple[list[Finding], int]:
    found = []
    for row in rows:
        if row["late"]:
            late = _finding(Kind.LATE, row, row["late"])
            late.of, late.rate, late.lag = row["judged"], wilson(row["late"], row["judged"]), _lag(row)
            found.append(late)
        if row["unjudged"]:
            unjudged = _finding(Kind.UNJUDGED, row, row["unjudged"])
            unjudged.of = row["judged"] + row["unjudged"]
            found.append(unjudged)
    return found, sum(row["judged"] for row in rows)


def _reads(rows: Sequence[Row], sums: _Sums, notes: list[str]) -> list[Finding]:
    found = []
    together: dict[tuple[Any, ...], int] = {}
    for row in rows:
        each = _finding(Kind(row["kind"]), row, row["count"])
        each.lag, each.barrier = _lag(row), row["barrier"]
        key = each.kind, each.service, each.region, each.site, each.store
        together[key] = together.get(key, 0) + each.count
        found.append(each)
    for each in found:
        followed = sums.at(each, "followed_reads")
        if followed is None:
            continue
        if followed < together[each.kind, each.service, each.region, each.site, each.store]:
            notes.append(f"{each.site}: more reads of {each.store} were found than its summaries count; no rate")
            continue
        each.of, each.rate = followed, wilson(each.count, followed)
        every = sums.at(each, "reads")
        if every is None and sums.of_store(each, "reads") > sums.of_store(each, "followed_reads"):
            every = sums.at(each, ESTIMATED)
        if every is None:
            each.sampled = sums.of_store(each, "reads") > sums.of_store(each, "followed_reads")
        elif every > followed:
            each.estimated = each.count * every / followed
    return found


def _meet(reads: Sequence[Finding], looks: Sequence[Finding]) -> None:
    """Give each read the finding of the barrier before it, where there is one: both are one violation (CHECK-3)."""
    late = {found.place: found for found in looks if found.kind is Kind.LATE}
    for read in reads:
        if read.barrier:
            read.late = late.get(replace(read, site=read.barrier).place)


def _trace_back(found: Sequence[Finding], rows: Sequence[Row]) -> None:
    """Gives each read outside a message the message that most of its traces name."""
    best: dict[tuple[str, ...], Row] = {}
    for row in rows:
        key = tuple(row[name] for name in analysis.PLACE)
        if key not in best or row["count"] > best[key]["count"]:
            best[key] = row
    for each in found:
        nearest = best.get(each.place)
        if nearest is not None and each.scope != "message":
            names = ("entry_service", "entry_site", "entry_opened_by", "entry_queue")
            each.entry = Entry(*(nearest[name] for name in names))


def _other(row: Row) -> Finding:
    made = _finding(Kind(row["kind"]), row, row["count"])
    made.written_at, made.target, made.reason = row["written_at"], row["target"], row["reason"]
    if made.kind is Kind.VACUOUS:
        made.lineage_stores, made.registered = json.loads(row["reason"])
        made.reason = ""
    return made
