"""Metrics and spans by OpenTelemetry (spec OBS). Nothing here is called on the barrier's free path.

Names, units and attributes are those of the specification; without an OpenTelemetry SDK all of it does nothing.
"""

from __future__ import annotations

import time
from collections.abc import Iterable, Sequence
from functools import cache, partial
from typing import TYPE_CHECKING, Any, Final, NamedTuple
from weakref import WeakSet

from opentelemetry import metrics, trace
from opentelemetry.metrics import CallbackOptions, Observation

from antipode._base.call_site import call_site
from antipode._base.observers import Observer, Write, barriers
from antipode._base.settings import settings
from antipode._model.verdict import Verdict

if TYPE_CHECKING:
    from antipode._engine.pending_wait import PendingWait
    from antipode._engine.plan import Plan, StoreRequest
    from antipode._model.result import BarrierResult
    from antipode._store.store import Store

INSTRUMENTATION: Final = "antipode"
MOST_SITES: Final = 1000
_sites: set[str] = set()

marks_missing: dict[str, str] = {}
"""Stores whose epochs this process may not mark, with the reason."""


def tracer() -> trace.Tracer:
    """The tracer of the `antipode.barrier` and `antipode.wait` spans."""
    return trace.get_tracer(INSTRUMENTATION)


def _observe_barriers(_: CallbackOptions) -> Iterable[Observation]:
    return [Observation(count, {"antipode.outcome": outcome}) for outcome, count in barriers.items()]


def _observe_parked(_: CallbackOptions) -> Iterable[Observation]:
    from antipode._store.store import stores

    return [
        Observation(store.parked_threads + store.parked_tasks, {"antipode.store": store.name}) for store in stores()
    ]


def _observe_marks(_: CallbackOptions) -> Iterable[Observation]:
    return [
        Observation(1, {"antipode.store": store, "antipode.reason": reason})
        for store, reason in list(marks_missing.items())
    ]


_GAUGES: Final = ("limit", "inflight", "queued", "parked", "shedding")
_throttles: WeakSet[Any] = WeakSet()


def _observe_throttles(name: str, _: CallbackOptions) -> Iterable[Observation]:
    return [Observation(getattr(each, name), {"antipode.throttle": each.name}) for each in list(_throttles)]


class _Instruments:
    def __init__(self) -> None:
        meter = metrics.get_meter(INSTRUMENTATION)
        self.barrier_duration = meter.create_histogram("antipode.barrier.duration", "s", "Barriers that waited")
        self.wait_duration = meter.create_histogram("antipode.wait.duration", "s", "Waits for one store")
        meter.create_observable_up_down_counter(
            "antipode.barrier.waiting", [_observe_parked], "{barrier}", "Parked barriers"
        )
        self.replica_lag = meter.create_histogram("antipode.replica.lag", "s", "Lag as seen by waits")
        self.wait_requests = meter.create_counter(
            "antipode.wait.requests", "{request}", "Requests to servers for waiting"
        )
        self.lineage_size = meter.create_histogram("antipode.lineage.size", "By", "Size of lineages")
        self.lineage_dropped = meter.create_counter("antipode.lineage.dropped", "{lineage}", "Dropped lineages")
        self.lineage_incomplete = meter.create_counter(
            "antipode.lineage.incomplete", "{lineage}", "Lineages that became incomplete here"
        )
        self.write_lost = meter.create_counter("antipode.write.lost", "{write}", "Writes that no scope records")
        self.write_late = meter.create_counter("antipode.write.late", "{write}", "Writes after the header left")
        self.fallback_count = meter.create_counter("antipode.fallback.count", "{read}", "Fallback reads")
        self.finding_count = meter.create_counter("antipode.finding.count", "{finding}", "Findings of dry-run")
        meter.create_observable_counter("antipode.barrier.count", [_observe_barriers], "{barrier}", "Barriers")
        meter.create_observable_gauge(
            "antipode.marks.missing", [_observe_marks], "{store}", "Stores that may not be marked"
        )
        for name in _GAUGES:
            meter.create_observable_gauge(
                f"antipode.throttle.{name}",
                [partial(_observe_throttles, name)],
                "1" if name == "shedding" else "{request}",
                f"Of a throttle: {name}",
            )
        self.throttle_requests = meter.create_counter("antipode.throttle.requests", "{request}", "Throttled requests")
        self.throttle_wait = meter.create_histogram("antipode.throttle.wait.duration", "s", "Waits for a permit")


@cache
def _instruments() -> _Instruments:
    return _Instruments()


def start() -> None:
    """Makes the instruments, so that the observable ones are read even where no other is ever called."""
    _instruments()


def bounded(site: str) -> str:
    """A call site as an attribute: past so many different ones, `other` (OBS-6)."""
    if site not in _sites:
        if len(_sites) >= MOST_SITES:
            return "other"
        _sites.add(site)
    return site


def reset() -> None:
    """Forgets instruments and counts (tests, which set a meter provider of their own)."""
    _instruments.cache_clear()
    barriers.clear()
    _sites.clear()
    marks_missing.clear()


def _known(store: str) -> str:
    """A store as an attribute: names come over the wire, so that of one that is unknown here is `other` (OBS-13)."""
    from antipode._store.store import registry

    is_known = not store or registry().get(store) is not None or store in settings().stores
    return store if is_known else "other"


def dropped(reason: str, direction: str) -> None:
    """A lineage was not taken: `untrusted`, `malformed`, `seal`, `implausible` or `oversize`."""
    _instruments().lineage_dropped.add(1, {"antipode.reason": reason, "antipode.direction": direction})


def incomplete(reason: str, store: str, scope: object = None, *, is_recorded: bool = True) -> None:
    """A lineage became incomplete in this process."""
    _instruments().lineage_incomplete.add(1, {"antipode.reason": reason, "antipode.store": _known(store)})


def size(direction: str, length: int) -> None:
    """A lineage of so many bytes went in this direction."""
    _instruments().lineage_size.record(length, {"antipode.direction": direction})


def write_lost(reason: str, store: str, site: str) -> None:
    """A write was appended outside any scope (`orphan`) or after its scope had ended (`closed`)."""
    _instruments().write_lost.add(
        1, {"antipode.reason": reason, "antipode.store": _known(store), "antipode.site": bounded(site)}
    )


def write_late(store: str, site: str) -> None:
    """A write was made after the response's header had left."""
    _instruments().write_late.add(1, {"antipode.store": _known(store), "antipode.site": bounded(site)})


def finding(kind: str, site: str) -> None:
    """Dry-run found something that no other instrument counts: `behind`, `stale`, `concurrent_write` …"""
    _instruments().finding_count.add(1, {"antipode.kind": kind, "antipode.site": bounded(site)})


def fallback(outcome: str) -> None:
    """A fallback read was `run` or `refused`."""
    _instruments().fallback_count.add(1, {"antipode.outcome": outcome})


def waited(store: str, kind: str, verdict: str, reach: str, seconds: float) -> None:
    """A barrier has waited so long for one store."""
    _instruments().wait_duration.record(
        seconds,
        {
            "antipode.store": store,
            "antipode.store.kind": kind,
            "antipode.verdict": verdict,
            "antipode.reach": reach,
        },
    )


def barrier_waited(plan: Plan, result: BarrierResult, needs: Sequence[PendingWait], outcome: str) -> None:
    """A barrier had to wait: its histograms, and where spans are collected one with a child a store (OBS-1).

    Ten thousand may be released at once, so that nothing is made ready where nobody collects (OBS-10).
    """
    traced = not _is_bare(trace.get_tracer_provider())
    if not traced and _is_bare(metrics.get_meter_provider()):
        return
    site = bounded(call_site())
    region = settings().region
    _instruments().barrier_duration.record(
        result.waited, {"antipode.outcome": outcome, "antipode.site": site, "antipode.dry_run": plan.dry_run}
    )
    waits = [wait for wait in (_wait_of(asked, result, needs) for asked in plan.asked) if wait is not None]
    for wait in waits:
        waited(wait.store.name, wait.store.kind, wait.verdict, plan.reach.value, wait.seconds)
        if wait.lag is not None:
            lag(wait.store.name, region, wait.lag)
    if not traced:
        return
    end = time.time_ns()
    start = end - int(result.waited * 1e9)
    common = {"antipode.reach": plan.reach.value, "antipode.region": region}
    span = tracer().start_span(
        "antipode.barrier",
        start_time=start,
        attributes=common
        | {
            "antipode.satisfied": result.satisfied,
            "antipode.complete": result.complete,
            "antipode.site": site,
            "antipode.dry_run": plan.dry_run,
            "antipode.policy": plan.on_timeout,
        },
    )
    inside = trace.set_span_in_context(span)
    for wait in waits:
        child = tracer().start_span(
            "antipode.wait",
            context=inside,
            start_time=start,
            attributes=common
            | {
                "antipode.store": wait.store.name,
                "antipode.store.kind": wait.store.kind,
                "antipode.verdict": wait.verdict,
            },
        )
        if wait.verdict != Verdict.VISIBLE:
            _failed(child, wait.verdict)
        child.end(start + int(wait.seconds * 1e9))
    if outcome != "satisfied":
        _failed(span, outcome)
    span.end(end)


def _is_bare(provider: object) -> bool:
    """Whether it is the API's own, which forgets everything: no SDK has been installed."""
    return type(provider).__module__.startswith(("opentelemetry.trace", "opentelemetry.metrics"))


class _Wait(NamedTuple):
    """What a barrier's wait for one store came to, in seconds."""

    store: Store
    verdict: str
    seconds: float
    lag: float | None
    """How long after the call the last of its servers had everything; None where one never had."""


def _wait_of(asked: StoreRequest, result: BarrierResult, needs: Sequence[PendingWait]) -> _Wait | None:
    """None where every write to the store was seen at once."""
    own = [need for need in needs if need.server.store is asked.store]
    if not any(need.parked for need in own):
        return None
    if result.satisfied and not any(need.left_out for need in own):  # nothing to judge: ten thousand may be released
        late = max(need.seen - need.since for need in own)
        return _Wait(asked.store, Verdict.VISIBLE.value, late, late)
    judged = result.stores[asked.store.name]
    return _Wait(asked.store, judged.verdict.value, judged.waited, None)


def _failed(span: trace.Span, kind: str) -> None:
    span.set_attribute("error.type", kind)
    span.set_status(trace.StatusCode.ERROR)


def request(store: str, purpose: str) -> None:
    """A server was asked because somebody waits: `wait`, `probe` or `mark`."""
    _instruments().wait_requests.add(1, {"antipode.store": store, "antipode.purpose": purpose})


def lag(store: str, region: str, seconds: float) -> None:
    """A wait saw a write become visible so long after it was asked for."""
    _instruments().replica_lag.record(seconds, {"antipode.store": store, "antipode.region": region})


def _marks(store: str, reason: str | None) -> None:
    start()
    if reason is None:
        marks_missing.pop(store, None)
    else:
        marks_missing[store] = reason


class Telemetry(Observer):
    """Counts and measures what the lower rooms say (OBS)."""

    on_lineage_dropped = staticmethod(dropped)
    on_lineage_incomplete = staticmethod(incomplete)
    on_lineage_sized = staticmethod(size)
    on_write_lost = staticmethod(write_lost)
    on_write_late = staticmethod(write_late)
    on_fallback = staticmethod(fallback)
    on_server_asked = staticmethod(request)
    on_marks_missing = staticmethod(_marks)
    on_barrier_waited = staticmethod(barrier_waited)

    def on_throttle_made(self, throttle: Any) -> None:
        """Have the gauges show it for as long as it lives."""
        start()
        _throttles.add(throttle)

    def on_request_throttled(self, throttle: str, outcome: str, waited: float) -> None:
        """Count the request, and measure how long it waited where it did."""
        attributes = {"antipode.throttle": throttle, "antipode.outcome": str(outcome)}
        _instruments().throttle_requests.add(1, attributes)
        if waited:
            _instruments().throttle_wait.record(waited, attributes)

    def on_lineage_left_early(self, site: str, uncommitted: Sequence[Write]) -> None:
        """Count one finding, however many writes there are."""
        finding("published_before_commit", site)

    def on_write_concurrent(self, site: str, write: Write) -> None:
        """Count a finding."""
        finding("concurrent_write", site)
