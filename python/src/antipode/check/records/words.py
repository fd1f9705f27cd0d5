"""What is said of findings and suggestions: phrases that all outputs share (no control character is in them)."""

from __future__ import annotations

from antipode.check.records.findings import Finding, Kind, Lag, Report, Verdict, counted
from antipode.check.records.intervals import Rate
from antipode.check.records.suggesting import Move, Suggestion, is_site

TITLES = {
    Kind.STALE: "stale reads",
    Kind.LATE: "barriers that would have waited",
    Kind.PUBLISHED_BEFORE_COMMIT: "published before commit",
    Kind.BEHIND: "reads of servers that were behind",
    Kind.UNJUDGED: "barriers that could not judge",
    Kind.UNJUDGED_READ: "reads that could not be judged",
    Kind.VACUOUS: "vacuous barriers",
    Kind.ORPHAN: "orphan writes",
    Kind.LATE_WRITE: "late writes",
    Kind.INCOMPLETE: "incomplete lineages",
    Kind.CONCURRENT_WRITE: "messages beside another task's pending write",
}
"""Each kind, in the plural."""

EXPLAINED = {
    Kind.STALE: "A read returned an older value than the one that its request depends on.",
    Kind.LATE: "A barrier in dry-run found that what the request depends on was not visible yet; the code went on.",
    Kind.PUBLISHED_BEFORE_COMMIT: "A lineage left before its own write was committed; who gets it cannot wait for it.",
    Kind.BEHIND: "A read of a server that had not reached the lineage's position; whether it was stale nobody knows.",
    Kind.UNJUDGED: "A barrier looked at no server of the store, or could prove nothing.",
    Kind.UNJUDGED_READ: "A read of a server that could not prove whether it had what the request depends on.",
    Kind.VACUOUS: "A barrier whose lineage has stores, none of which this process has registered.",
    Kind.ORPHAN: "A write outside any scope: it is in no lineage, so that nobody can wait for it.",
    Kind.LATE_WRITE: "A write after its scope had ended, or its response had left: the caller cannot wait for it.",
    Kind.INCOMPLETE: "A lineage from which something is missing.",
    Kind.CONCURRENT_WRITE: "A lineage left while another task's write was pending; that is no violation.",
}
"""Each kind in a sentence."""


def duration(seconds: float | None) -> str:
    """Seconds for people: three digits and a unit."""
    if seconds is None:
        return "?"
    for unit, size in (("s", 1.0), ("ms", 1e-3), ("µs", 1e-6)):
        if seconds >= size:
            return f"{_digits(seconds / size)} {unit}"
    return "0 ms" if seconds < 1e-9 else f"{_digits(seconds / 1e-6)} µs"


def _digits(value: float) -> str:
    return f"{value:,.0f}" if value >= 100 else f"{value:.3g}"


def percent(share: float) -> str:
    """A share for people."""
    value = 100 * share
    return f"{value:.3f}" if 0 < value < 0.1 else f"{value:.1f}"


def rate(found: Rate) -> str:
    """A rate with its interval."""
    return f"{percent(found.value)} % ({percent(found.low)}–{percent(found.high)})"


def lag(found: Lag) -> str:
    """Percentiles, and what they do not know."""
    if not found.seen:
        return "lag not known: none was followed to its end"
    text = f"lag p50 {duration(found.p50)}, p99 {duration(found.p99)}"
    return text + f" ({found.unseen:,} not followed to the end)" * bool(found.unseen)


def what(finding: Finding) -> str:
    """What happens at the site."""
    after = f" after {finding.origin}" if finding.origin else ""
    match finding.kind:
        case Kind.STALE | Kind.BEHIND | Kind.UNJUDGED_READ:
            return f"reads {finding.store}{after}"
        case Kind.LATE | Kind.UNJUDGED:
            return f"barrier for {finding.store}{after}"
        case Kind.PUBLISHED_BEFORE_COMMIT:
            to = f" to {finding.target}" if finding.target else ""
            return f"publishes{to} before the commit of {finding.store}"
        case Kind.CONCURRENT_WRITE:
            to = f" to {finding.target}" if finding.target else ""
            return f"publishes{to} while another task writes to {finding.store}"
        case Kind.ORPHAN:
            return f"writes to {finding.store} outside any scope"
        case Kind.LATE_WRITE:
            return f"writes to {finding.store} too late"
        case Kind.VACUOUS:
            return f"barrier{after} with a lineage of {', '.join(finding.lineage_stores)}"
        case Kind.INCOMPLETE:
            return f"lineage{after} is incomplete" + f" in {finding.store}" * bool(finding.store)


def how_much(finding: Finding) -> str:
    """How often, and how long."""
    name = {Kind.LATE: "not visible", Kind.PUBLISHED_BEFORE_COMMIT: "", Kind.CONCURRENT_WRITE: ""}.get(
        finding.kind, finding.kind.value.replace("_", " ")
    )
    if finding.rate is not None:
        text = f"{name} {rate(finding.rate)}"
    elif finding.of is not None:
        text = f"{name} {finding.count:,} of {finding.of:,}"
    else:
        text = f"{name} {finding.count:,} {'time' if finding.count == 1 else 'times'}".strip()
        if finding.rate_unknown:
            text += ", rate not known"
    return text


def more(finding: Finding) -> str:
    """What else is known: lag, place of the write, reason."""
    if finding.lag is not None:
        behind = f", behind the barrier at {finding.barrier}" * bool(finding.barrier)
        return lag(finding.lag) + behind + " and counted there" * (finding.late is not None and not finding.confirmed)
    if finding.written_at:
        return f"written at {finding.written_at}"
    if finding.kind is Kind.VACUOUS:
        return f"registered: {', '.join(finding.registered) or 'none'}"
    return finding.reason


def where(finding: Finding) -> str:
    """The site; where there is none, what opened the scope."""
    return finding.site or finding.opened_by or finding.service or "?"


def suggestion(found: Suggestion) -> str:
    """A suggestion in a sentence."""
    every = f"all {found.found:,}" if found.found != 1 else "the only one"
    if not found.all_of_them:  # a sample: of how many is sometimes known
        every = f"about {found.prevents:,.0f}" if found.prevents > found.found else f"the {found.found:,} in the sample"
    match found.move:
        case Move.PUBLISH_AFTER_COMMIT:
            return f"publish after the commit at {found.at}: would prevent {every}, and waits for nothing"
        case Move.ENFORCE:
            place = f"letting antipode.barrier() at {found.at} wait (ANTIPODE_MODE=enforce)"
        case Move.PLACE if found.at in found.before:
            place = f"antipode.barrier() right before {found.at}"
        case Move.PLACE if is_site(found.at):
            after = f", after the message of {found.after}" * bool(found.after)
            place = f"antipode.barrier() at {found.at}{after}, before {', '.join(found.before)},"
        case _:
            place = f"antipode.barrier() in {found.at}, before {', '.join(found.before)},"
    wait = (
        "; how long it would wait is not known"
        if found.median is None
        else f", at a median wait of {duration(found.median)}"
    )
    reads = counted(found.behind, "read", "reads") + " of servers that were behind"
    if not found.found:
        text = f"{place} would have let wait {reads}{wait}"
    else:
        text = f"{place} would have prevented {every}" + f", and let wait {reads}" * bool(found.behind) + wait
    if found.added is not None and found.share is not None:
        text += f" ({percent(found.share)} % would wait; {duration(found.added)} more on average)"
    return text


def headline(report: Report) -> str:
    """The answer in a line, behind its first word."""
    base = f" that {'is' if len(report.violations) == 1 else 'are'} not in the baseline" * report.baseline
    judged = f"{report.judged:,} barriers and reads" + f" of {report.requests:,} requests" * bool(report.requests)
    match report.verdict:
        case Verdict.VIOLATED:
            sites = len({(found.service, where(found)) for found in report.violations})
            total = sum(found.count for found in report.violations)
            return (
                f"{counted(total, 'violation', 'violations')} at {counted(sites, 'site', 'sites')}{base}, in {judged}"
            )
        case Verdict.UNKNOWN:
            return "no violation was found, but " + "; ".join(report.doubts)
        case Verdict.CLEAN:
            return f"no violation{' that is not in the baseline' * report.baseline} in {judged}"
