"""Dry-run records: JSON lines of what barriers would have waited for, and of findings (spec REC, draft)."""

from __future__ import annotations

import atexit
import os
import socket
import threading
import time
from typing import Any, Final

from opentelemetry import trace

from antipode import telemetry
from antipode.need import Group, Need
from antipode.plan import Plan
from antipode.record_writer import RecordWriter
from antipode.scope import Scope
from antipode.settings import settings
from antipode.store import registry
from antipode.verdict import Verdict

FOLLOW_S: Final = 30.0
"""How long a write that was not visible is followed, in seconds."""
MOST_FOLLOWED: Final = 1000
_EXIT_S: Final = 1.0
_STARTED: Final = int(time.time())
_followed: set[Group] = set()
_lock = threading.Lock()


def _process() -> str:
    return f"{socket.gethostname()}:{os.getpid()}:{_STARTED}"


def _head(kind: str, at: float) -> dict[str, Any]:
    record: dict[str, Any] = {
        "record": 1,
        "kind": kind,
        "time": at,
        "service": os.environ.get("OTEL_SERVICE_NAME", ""),
        "region": settings().region,
        "process": _process(),
    }
    span = trace.get_current_span()
    context = span.get_span_context()
    if context.is_valid:
        record["trace_id"] = f"{context.trace_id:032x}"
        record["span_id"] = f"{context.span_id:016x}"
        span.add_event("antipode.finding", {"antipode.kind": kind})
    return record


def published_before_commit(site: str, store: str, written_at: str) -> None:
    """A lineage left before the commit of this task's own write."""
    record = _head("published_before_commit", time.time()) | {"site": site, "store": store, "target": ""}
    _writer.put(record | ({"written_at": written_at} if written_at else {}))


def orphan(site: str, store: str) -> None:
    """A write was made outside any scope."""
    _writer.put(_head("orphan", time.time()) | {"site": site, "store": store})


def follow(plan: Plan, site: str) -> Group:
    """Parks a barrier's writes with nobody waiting: when all are seen, or after 30 s, one record is written."""
    head = _head("barrier", time.time()) | {"site": site, "origin": _origin(plan.scope)}
    if plan.vacuous:
        lists = {"lineage_stores": plan.elsewhere, "registered": [store.name for store in registry().all()]}
        _writer.put(head | {"kind": "vacuous"} | lists)
    group: Group

    def finished() -> None:
        with _lock:
            _followed.discard(group)
        _writer.put(head | _outcome(plan, group, site))

    group = Group(FOLLOW_S, finished, None)
    with _lock:
        crowded = len(_followed) >= MOST_FOLLOWED
        if not crowded:
            _followed.add(group)
    if crowded:  # bounded: this one is not followed, and its record says that nobody knows
        _writer.put(head | _outcome(plan, group, site))
        return group
    for asked in plan.asked:
        for server in asked.servers:
            for write_id in asked.ids:
                server.park(group.add(write_id, server))
    if group.parked():
        alarm = threading.Timer(FOLLOW_S, _give_up, (group,))
        alarm.daemon = True
        alarm.start()
    else:
        finished()
    return group


def _give_up(group: Group) -> None:
    with _lock:
        if group not in _followed:
            return
    for need in group.needs:
        if not need.done:
            need.server.give_up(need)
    group.release()


@atexit.register
def end() -> None:
    """The process ends: what it still followed is recorded, too, as not seen (REC-5), and all is flushed (REC-2).

    Takes a second at most. The ASGI middleware calls it, too: a server that ends itself by the signal that it got, as
    uvicorn does by SIGTERM, runs no exit hook.
    """
    with _lock:
        followed = list(_followed)
    for group in followed:
        _give_up(group)
    if followed or _writer.used:
        flush(_EXIT_S)


def forget() -> None:
    """Follows nothing any more, and records nothing of it (tests: what one left is no record of the next)."""
    with _lock:
        followed = list(_followed)
        _followed.clear()
    for group in followed:
        for need in group.needs:
            if not need.done:
                need.server.give_up(need)


def _origin(scope: Scope | None) -> dict[str, Any]:
    """Where a lineage came from (REC-7); asked while the request runs, which knows its route by now."""
    if scope is None:
        return {"scope": "task"}
    opened_by = scope.site if scope.endpoint is None else scope.endpoint()
    found = {"scope": scope.kind, "opened_by": opened_by}
    return found | {"store": scope.queue} if scope.queue else found


def _outcome(plan: Plan, group: Group, site: str) -> dict[str, Any]:
    stores = []
    for asked in plan.asked:
        own = [need for need in group.needs if need.server.store is asked.store]
        late = [need for need in own if need.late or not _visible(need)]
        if late:
            telemetry.finding("behind", site)
        followed = bool(own) and all(need.seen and _visible(need) for need in own)
        record: dict[str, Any] = {
            "store": asked.store.name,
            "store_kind": asked.store.kind,
            "verdict": (Verdict.NOT_YET if late else Verdict.VISIBLE if own else Verdict.NOT_YET).value,
            "servers": sorted({need.server.address for need in own}),
        }
        if late or not own:
            record["visible_after"] = round(max(need.seen - need.since for need in own), 6) if followed else None
        stores.append(record)
    stores += [{"store": name, "verdict": Verdict.ELSEWHERE.value} for name in plan.elsewhere]
    seen = all(store["verdict"] in {Verdict.VISIBLE, Verdict.ELSEWHERE} for store in stores)
    return {
        "reach": plan.reach.value,
        "satisfied": seen,
        "complete": seen and not plan.elsewhere and plan.lineage.is_complete(plan.asked_names),
        "stores": stores,
    }


def _visible(need: Need) -> bool:
    return need.answer is not None and need.answer.verdict is Verdict.VISIBLE


def flush(timeout: float = 5.0) -> bool:
    """Waits until every record put so far is on disk; False where that took too long."""
    return _writer.flush(timeout)


_writer = RecordWriter()


def after_fork() -> None:
    """In the child of a fork: the writer's thread stayed with the parent."""
    global _writer, _lock
    _writer, _lock = RecordWriter(), threading.Lock()
    _followed.clear()
