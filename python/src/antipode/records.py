"""Dry-run: what a barrier would have waited for, followed in the background and written as JSON lines (spec REC, draft)."""

from __future__ import annotations

import json
import os
import queue
import threading
import time
from datetime import UTC, datetime
from pathlib import Path
from typing import Any, Final

from opentelemetry import trace

from antipode import logs, telemetry
from antipode.need import Group, Need
from antipode.plan import Plan
from antipode.settings import settings
from antipode.verdict import Verdict

FOLLOW_S: Final = 30.0
"""How long a write that was not visible is followed, in seconds."""
MOST_FOLLOWED: Final = 1000
MOST_QUEUED: Final = 10_000
_FILES_KEPT: Final = 4
_followed: set[Group] = set()
_lock = threading.Lock()


def follow(plan: Plan, site: str) -> Group:
    """Parks a barrier's writes with nobody waiting: when they are all seen, or after 30 s, one record is written."""
    began = datetime.now(UTC)
    span = trace.get_current_span().get_span_context()
    trace_id = f"{span.trace_id:032x}" if span.is_valid else ""
    group: Group

    def finished() -> None:
        with _lock:
            _followed.discard(group)
        _writer.put(_record(plan, group, site, began, trace_id))

    group = Group(FOLLOW_S, finished, None)
    with _lock:
        crowded = len(_followed) >= MOST_FOLLOWED
        if not crowded:
            _followed.add(group)
    for asked in plan.asked:
        for server in asked.servers:
            for write_id in asked.ids:
                need = group.add(write_id, server)
                if not crowded:
                    server.park(need)
    if crowded or not group.parked():
        with _lock:
            _followed.discard(group)
        if not crowded:
            finished()
    else:
        _writer.expire(group)
    return group


def _record(plan: Plan, group: Group, site: str, began: datetime, trace_id: str) -> dict[str, Any]:
    stores = []
    for asked in plan.asked:
        own = [need for need in group.needs if need.server.store is asked.store]
        visible_after = max((need.seen - need.since for need in own if need.seen), default=0.0)
        behind = [need for need in own if not _was_visible(need)]
        if behind:
            telemetry.finding("behind", site)
        stores.append(
            {
                "store": asked.store.name,
                "kind": asked.store.kind,
                "verdict": _final(own),
                "behind": bool(behind),
                "visible_after_s": round(visible_after, 6) if not _final(own) == Verdict.TIMED_OUT else None,
                "servers": sorted({need.server.address for need in behind}),
            }
        )
    return {
        "schema": 1,
        "kind": "barrier",
        "time": began.isoformat(timespec="microseconds"),
        "site": site,
        "region": settings().region,
        "trace_id": trace_id,
        "scope": plan.scope.kind if plan.scope is not None else "",
        "stores": stores,
        "elsewhere": list(plan.elsewhere),
        "incomplete": sorted(plan.lineage.incomplete),
        "vacuous": plan.vacuous,
    }


def _was_visible(need: Need) -> bool:
    """Whether the first look showed the write: the time of one question, not of a wait."""
    visible = need.answer is not None and need.answer.verdict is Verdict.VISIBLE
    return visible and need.seen - need.since < 0.005


def _final(needs: list[Need]) -> Verdict:
    verdicts = {need.answer.verdict if need.answer is not None else Verdict.TIMED_OUT for need in needs}
    for verdict in (Verdict.UNPROVEN, Verdict.TIMED_OUT, Verdict.NOT_YET):
        if verdict in verdicts:
            return Verdict.TIMED_OUT if verdict is Verdict.NOT_YET else verdict
    return Verdict.VISIBLE


class _Writer:
    """One thread that writes records and expires what is followed; the queue is bounded, overflow is counted."""

    def __init__(self) -> None:
        self._queue: queue.Queue[dict[str, Any] | threading.Event] = queue.Queue(MOST_QUEUED)
        self._expiring: queue.SimpleQueue[Group] = queue.SimpleQueue()
        self._thread: threading.Thread | None = None
        self._start = threading.Lock()
        self.dropped = 0

    def put(self, record: dict[str, Any] | threading.Event) -> None:
        try:
            self._queue.put_nowait(record)
        except queue.Full:
            self.dropped += 1
            logs.warn("records", "dry-run records are dropped: the disk is too slow.", count_as="dropped")
        self._run()

    def expire(self, group: Group) -> None:
        self._expiring.put(group)
        self._run()

    def _run(self) -> None:
        with self._start:
            if self._thread is None or not self._thread.is_alive():
                self._thread = threading.Thread(target=self._loop, name="antipode-records", daemon=True)
                self._thread.start()

    def _loop(self) -> None:
        following: list[Group] = []
        while True:
            try:
                item = self._queue.get(timeout=1.0)
            except queue.Empty:
                item = None
            while not self._expiring.empty():
                following.append(self._expiring.get())
            now = time.monotonic()
            for group in [group for group in following if now - group.since > FOLLOW_S]:
                for need in group.needs:
                    if not need.done:
                        need.server.give_up(need)
                group.release()
            following = [group for group in following if now - group.since <= FOLLOW_S and group in _followed]
            if isinstance(item, threading.Event):
                item.set()
            elif item is not None:
                try:
                    _append(item)
                except OSError as error:
                    self.dropped += 1
                    logs.warn("records", f"dry-run records cannot be written: {error}", count_as="dropped")


def _append(record: dict[str, Any]) -> None:
    folder = Path(settings().records)
    folder.mkdir(parents=True, exist_ok=True)
    path = folder / f"records-{os.getpid()}.jsonl"
    if path.exists() and path.stat().st_size > settings().records_max_mib * 2**20:
        for number in range(_FILES_KEPT - 1, 0, -1):
            older = path.with_suffix(f".{number}.jsonl")
            if older.exists():
                older.replace(path.with_suffix(f".{number + 1}.jsonl"))
        path.replace(path.with_suffix(".1.jsonl"))
    with path.open("a", encoding="utf-8") as file:
        file.write(json.dumps(record, separators=(",", ":")) + "\n")


def flush(timeout: float = 5.0) -> bool:
    """Waits until every record put so far is on disk; False where that took too long."""
    written = threading.Event()
    _writer.put(written)
    return written.wait(timeout)


_writer = _Writer()


def after_fork() -> None:
    """In the child of a fork: the writer's thread stayed with the parent."""
    global _writer, _lock
    _writer, _lock = _Writer(), threading.Lock()
    _followed.clear()
