"""Dry-run records: JSON lines of what barriers would have waited for, and of findings (spec REC, draft)."""

from __future__ import annotations

import atexit
import os
import random
import socket
import threading
import time
from collections.abc import Sequence
from typing import Any, Final

from opentelemetry import trace

from antipode._base.call_site import call_site
from antipode._base.observers import Observer, Write
from antipode._base.settings import Mode, is_said, settings
from antipode._diagnostics import telemetry
from antipode._diagnostics.dryrun import counts, following, repeats
from antipode._diagnostics.dryrun.following import FollowedWrite
from antipode._diagnostics.dryrun.held_records import HeldRecords
from antipode._diagnostics.dryrun.record_writer import RecordWriter
from antipode._engine.pending_wait import PendingWait
from antipode._engine.plan import Plan
from antipode._model.branch_ids import BRANCHES
from antipode._model.scope_values import BarrierObservation
from antipode._model.verdict import Verdict
from antipode._scope.scope import Scope, current_scope
from antipode._store.store import Store, registry

Record = dict[str, Any]

_EXIT_S: Final = 1.0
_TOLD: Final = (
    *("kind", "site", "region", "process", "store", "server", "confirmed", "visible_after", "written_at", "target"),
    *("barrier", "reason", "reach", "lineage_stores", "registered"),
)
"""Fields that a span's event has under their own names; those of a barrier's stores are known later than that."""
_RANDOM_BITS: Final = 56
"""W3C's trace context has these, the last ones of a trace id, random."""
_STARTED: Final = int(time.time())


def _process() -> str:
    return f"{socket.gethostname()}:{os.getpid()}:{_STARTED}"


def head(kind: str, at: float) -> Record:
    """What every record has (REC-3), and the trace that is current."""
    record = _head(kind, at)
    context = trace.get_current_span().get_span_context()
    if context.is_valid:
        record["trace_id"] = f"{context.trace_id:032x}"
        record["span_id"] = f"{context.span_id:016x}"
    return record


def _head(kind: str, at: float) -> Record:
    return {
        "record": 1,
        "kind": kind,
        "time": at,
        "service": os.environ.get("OTEL_SERVICE_NAME", ""),
        "region": settings().region,
        "process": _process(),
    }


def event(record: Record, span: trace.Span | None = None) -> None:
    """The record is an event of the span, too, where that has not ended: with what is known by now (REC-9, OBS-11)."""
    span = trace.get_current_span() if span is None else span
    if not span.is_recording():
        return
    told = {f"antipode.{name}": record[name] for name in _TOLD if record.get(name) not in (None, "", [], ())}
    told |= {f"antipode.origin.{name}": word for name, word in record.get("origin", {}).items()}
    if "store_kind" in record:
        told["antipode.store.kind"] = record["store_kind"]
    span.add_event("antipode.finding", told)


def put(record: Record) -> None:
    """Writes a record, in the background; never raises, never waits."""
    _writer.put(record)


def start() -> None:
    """The process is in dry-run: from now on there are summaries."""
    _writer.start()


def count_enforced() -> None:
    """Count a barrier that waited for all it was asked for, and passed (REC-26)."""
    counts.add(counts.ENFORCED)
    if not _writer.used and is_said("records"):
        start()


def published_before_commit(site: str, store: str, written_at: str) -> None:
    """A lineage left before the commit of this task's own write."""
    record = head("published_before_commit", time.time()) | {"site": site, "store": store, "target": ""}
    record |= {"written_at": written_at} if written_at else {}
    event(record)
    put(record)


def orphan(site: str, store: str) -> None:
    """A write was made outside any scope."""
    record = head("orphan", time.time()) | {"site": site, "store": store}
    event(record)
    put(record)


def late_write(site: str, store: str, reason: str) -> None:
    """A write was made in a scope that had ended (`closed`), or after the response's header had left (`sent`)."""
    _often("late_write", {"site": site, "store": store, "reason": reason})


def concurrent_write(site: str, store: str, written_at: str) -> None:
    """A lineage left while a write of another task was in flight: no violation (SCOPE-18)."""
    where = {"written_at": written_at} if written_at else {}
    _often("concurrent_write", {"site": site, "store": store, "target": ""} | where)


def incomplete(reason: str, store: str = "", site: str = "", scope: Scope | None = None) -> None:
    """A lineage became incomplete at this site (`reason`), or came in so (`received`). `scope`: not the current one."""
    where = {"site": site, "store": store, "reason": reason}
    more = {"origin": origin(scope or current_scope())}
    _often("incomplete", {name: word for name, word in where.items() if word}, more)


class DryRun(Observer):
    """Writes records of what the lower rooms say, where that is the mode."""

    def on_barrier_recorded(self, plan: Plan, site: str) -> Sequence[PendingWait]:
        """Follow its writes, and record what came of them."""
        return follow(plan, site)

    def on_barrier_enforced(self) -> None:
        """Count it for the summaries."""
        count_enforced()

    def on_scope_opened(self, kind: str) -> None:
        """Count requests and messages for the summaries (REC-16)."""
        counted = counts.OF_SCOPES.get(kind)
        if counted is not None:
            counts.add(counted)

    def on_write_begun(self, store: str) -> None:
        """Count it for the summaries."""
        counts.add(counts.CounterKey("writes", "", store))

    def on_write_lost(self, reason: str, store: str, site: str) -> None:
        """Record it (REC-6)."""
        if settings().mode is Mode.DRY_RUN:
            if reason == "orphan":
                orphan(site, store)
            else:
                late_write(site, store, reason)

    def on_write_late(self, store: str, site: str) -> None:
        """Record it."""
        if settings().mode is Mode.DRY_RUN:
            late_write(site, store, "sent")

    def on_write_concurrent(self, site: str, write: Write) -> None:
        """Record it."""
        concurrent_write(site, write.store, write.site)

    def on_lineage_left_early(self, site: str, uncommitted: Sequence[Write]) -> None:
        """Record it, once a write."""
        if settings().mode is Mode.DRY_RUN:
            for write in uncommitted:
                published_before_commit(site, write.store, write.site)

    def on_lineage_incomplete(
        self, reason: str, store: str, scope: Scope | None = None, *, is_recorded: bool = True
    ) -> None:
        """Record it."""
        if is_recorded and settings().mode is Mode.DRY_RUN:
            incomplete(reason, store, call_site(), scope)

    def on_incomplete_lineage_received(self, store: str, scope: Scope) -> None:
        """Record it."""
        incomplete("received", store, scope=scope)

    def on_lineage_passed_on(self, scope: Scope, target: str) -> None:
        """Record it where it had come from elsewhere."""
        passed_on(scope, target)


def _often(kind: str, where: Record, more: Record | None = None) -> None:
    record = head(kind, time.time()) | where | (more or {})
    event(record)
    if _held.admit((kind, where.get("site"), where.get("store"), where.get("reason")), record):
        put(record)


def passed_on(scope: Scope, target: str) -> None:
    """A lineage that a message or request had brought leaves with a call, in a trace that is sampled (REC-18)."""
    context = trace.get_current_span().get_span_context()
    if not (scope.brought and context.is_valid and is_sampled(context)):
        return
    site = call_site()
    if scope.passed_at(site):
        put(head("passed_on", time.time()) | {"site": site, "origin": origin(scope), "target": target})


def is_sampled(context: trace.SpanContext) -> bool:
    """Whether what happens now is in the sample: by the trace where there is one, else by chance (REC-12)."""
    share = settings().sample
    if context.is_valid:
        return (context.trace_id & ((1 << _RANDOM_BITS) - 1)) < share * (1 << _RANDOM_BITS)
    return random.random() < share


# Barriers


def follow(plan: Plan, site: str) -> Sequence[PendingWait]:
    """Follows a barrier's writes with nobody waiting: when all are seen, or after 30 s, one record is written.

    Returns what is looked for; empty where too much is followed already.
    """
    counts.add(counts.CounterKey("barriers", telemetry.bounded(site)))
    about = head("barrier", time.time()) | {"site": site, "origin": origin(plan.scope)}
    event(about | {"reach": plan.reach.value})
    if plan.vacuous:
        lists = {"lineage_stores": plan.elsewhere, "registered": [store.name for store in registry().all()]}
        vacuous = about | {"kind": "vacuous"} | lists
        event(vacuous)
        put(vacuous)

    unjudged = plan.unjudged  # by now: the scope goes on

    def over(writes: Sequence[FollowedWrite]) -> None:
        put(about | _outcome(plan, writes, site, unjudged=unjudged))

    followed = following.follow(plan.wanted(), over)
    if followed is None:  # bounded: its record says that nobody looked (CHECK-4)
        over(())
        return ()
    if plan.scope is not None:
        plan.scope.looks = BarrierObservation(site, frozenset((server.address, each) for server, each in plan.wanted()))
    return [write.need for write in followed.writes]


def origin(scope: Scope | None) -> Record:
    """Where a lineage came from (REC-7); asked while the request runs, which knows its route by now."""
    if scope is None:
        return {"scope": "task"}
    found = {"scope": scope.kind, "opened_by": _opened_by(scope)}
    return found | {"store": scope.queue} if scope.queue else found


def _opened_by(scope: Scope) -> str:
    try:
        return scope.site if scope.endpoint is None else scope.endpoint()
    except Exception:  # the framework's own
        return scope.site


def _outcome(plan: Plan, writes: Sequence[FollowedWrite], site: str, *, unjudged: bool) -> Record:
    """What a barrier would have said without waiting (REC-5)."""
    stores = []
    for asked in plan.asked:
        own = [write for write in writes if write.server.store is asked.store]
        verdict = _verdict(asked.store, own)
        late = verdict is Verdict.NOT_YET
        if late:
            telemetry.finding("behind", site)
        record: Record = {
            "store": asked.store.name,
            "store_kind": asked.store.kind,
            "verdict": verdict.value,
            "servers": sorted({write.server.address for write in own}),
        }
        if late:
            record["visible_after"] = visible_after([write for write in own if not write.need.left_out])
        stores.append(record)
    unknown = [*plan.unregistered, *([BRANCHES] if plan.branches_unknown else [])]
    stores += [{"store": name, "verdict": Verdict.UNPROVEN.value} for name in unknown]
    stores += [{"store": name, "verdict": Verdict.ELSEWHERE.value} for name in plan.elsewhere]
    seen = all(store["verdict"] in {Verdict.VISIBLE, Verdict.ELSEWHERE} for store in stores)
    left_out = any(write.need.left_out for write in writes)
    return {
        "reach": plan.reach.value,
        "satisfied": seen,
        "complete": seen and not unjudged and not left_out,
        "stores": stores,
    }


def _verdict(store: Store, writes: Sequence[FollowedWrite]) -> Verdict:
    """What a barrier would have found of one store; a server that does not answer is left out, as by a barrier."""
    judged = [write for write in writes if not write.need.left_out]
    if any(write.late for write in judged):
        return Verdict.NOT_YET
    if len(judged) < len(writes) and store.fails_without_replica:
        return Verdict.UNPROVEN
    seen = bool(judged) and all(write.there_at_once for write in judged)
    return Verdict.VISIBLE if seen else Verdict.UNPROVEN


def visible_after(writes: Sequence[FollowedWrite]) -> float | None:
    """Seconds until the last of these was seen; None where one was not."""
    seen = [write.visible_after for write in writes]
    last = max((each for each in seen if each is not None), default=None)
    return None if last is None or None in seen else round(last, 6)


# Summaries


def _due() -> list[Record]:
    """What is written once a minute."""
    return [*_held.due(), *_summary()]


def _summary() -> list[Record]:
    """What was counted since the last one; nothing where nothing was."""
    global _counted
    with _summing:
        before, began = _counted
        now = counts.snapshot()
        counted = list(counts.between(before, now))
        if not counted:
            return []
        _counted = (now, time.time())
    # Of no trace, whichever is current where the process ends.
    return [_head("summary", _counted[1]) | {"since": began, "sample": settings().sample, "counts": counted}]


# The end


@atexit.register
def end() -> None:
    """The process ends: what it still followed is recorded, too, as not seen (REC-5), and all is flushed (REC-2).

    Takes a second at most. The ASGI middleware calls it, too: a server that ends itself by the signal that it got, as
    uvicorn does by SIGTERM, runs no exit hook.
    """
    until = time.monotonic() + _EXIT_S
    following.give_up_all()
    repeats.give_up_all()
    if not _writer.used:
        return
    for record in [*_held.due(all_of_them=True), *_summary()]:
        put(record)
    flush(max(until - time.monotonic(), _EXIT_S / 2))


def forget() -> None:
    """Follows nothing any more, and records nothing of it (tests: what one left is no record of the next)."""
    global _held, _counted
    following.forget()
    repeats.forget()
    counts.reset()
    _held, _counted = HeldRecords(), ({}, time.time())


def flush(timeout: float = 5.0) -> bool:
    """Waits until every record put so far is on disk; False where that took too long."""
    return _writer.flush(timeout)


_writer = RecordWriter(_due, end)
_held = HeldRecords()
_summing = threading.Lock()
_counted: tuple[dict[counts.CounterKey, int], float] = ({}, time.time())
"""What the last summary had counted, and when it was written."""


def after_fork() -> None:
    """In the child of a fork: the writer's thread stayed with the parent, and what that had counted."""
    global _writer, _summing
    _writer, _summing = RecordWriter(_due, end), threading.Lock()
    following.after_fork()
    repeats.after_fork()
    forget()
