"""What a read of a wrapped client waits for, and what becomes of one that waited in vain (spec BAR-51, SHIM)."""

from __future__ import annotations

import time

from antipode._base.settings import Mode, settings
from antipode._model.lineage import EMPTY, Lineage
from antipode._model.result import BarrierResult, BarrierTimeout, BarrierUnproven, StoreResult
from antipode._model.verdict import UnprovenKind, Verdict, Visibility, unproven
from antipode._model.write_id import WriteId
from antipode._scope.reading import Reading
from antipode._scope.scope import Scope
from antipode._store.contract import Server, Store
from antipode._store.store import misspelt_in


def wait_first(server: Server, timeout: float, reading: Reading | None, scope: Scope | None, *, waits: bool) -> None:
    """Waits at the read's own server for what `reading(after=…)`, or with `waits` the scope, wants to see of its store.

    `timeout`: seconds; the request's own deadline tightens it. In dry-run nothing waits: such reads are followed like
    others (REC-12). Raises what a barrier raises that waited in vain, by the policies.
    """
    store = server.store
    lineage = lineage_before(reading, scope, waits=waits)
    if not _requires(store, lineage):
        return
    began = time.monotonic()
    if scope is not None and scope.deadline is not None:
        timeout = min(timeout, max(scope.deadline - began, 0.0))
    answer = server.wait_for(lineage, timeout)
    if answer.verdict is not Verdict.VISIBLE:
        words = f"{store.name}: {answer.reason}. The read waited for it {timeout * 1000:.0f} ms"
        waited_in_vain(store.name, words, time.monotonic() - began, answer)


def lineage_before(reading: Reading | None, scope: Scope | None, *, waits: bool) -> Lineage:
    """Return what a read has to come after: what `reading(after=…)` says, or with `waits` what the scope has."""
    if reading is not None and reading.after is not None:
        return reading.after
    return scope.recorded_lineage if waits and scope is not None else EMPTY


def required_ids(store: Store, lineage: Lineage) -> list[WriteId]:
    """Return what a read of this store has to see first of the lineage that it comes after; nothing but in `enforce`.

    Writes to this store under a misspelt name can never be seen, and are not passed over either (BAR-51). Raises
    BarrierTimeout or BarrierUnproven for them, by the policies.
    """
    return lineage.of_store(store.name) if _requires(store, lineage) else []


def _requires(store: Store, lineage: Lineage) -> bool:
    if lineage is EMPTY or store.mode is not Mode.ENFORCE:
        return False
    answer = misspelt_in(lineage, store.name)
    if answer is not None:
        waited_in_vain(store.name, f"{store.name}: {answer.reason}. The read waited for nothing", 0.0, answer)
    return lineage.section_text(store.name) is not None


def waited_in_vain(store: str, words: str, waited: float, answer: Visibility, *, is_past: bool = False) -> None:
    """Raise what the policies say of a read that waited `waited` seconds in vain; return where it goes on.

    `words`: the store and server, where it is, and how long the read waited. `answer`: the server's last one; what is
    unproven, and of which kind, is told from it (OBS-15). `is_past`: what is to be read is of a moment that is past,
    whatever the answer: no wait could help, and that proves nothing (SHIM-48). Raises BarrierTimeout or
    BarrierUnproven.
    """
    words = f"{words} (wait on read)"
    result = _judged(store, words, waited, unproven(answer.reason) if is_past else answer)
    judged = result.stores[store]
    lost = judged.verdict is Verdict.UNPROVEN
    now = settings()
    policy = now.on_unproven if lost and now.on_unproven != "as_timeout" else now.on_timeout
    if policy != "proceed":
        raise (BarrierUnproven if lost else BarrierTimeout)(words, result, code="AP514" if is_past else judged.code)


def _judged(store: str, words: str, waited: float, answer: Visibility) -> BarrierResult:
    if answer.unknown_epoch:
        found = StoreResult(Verdict.UNPROVEN, words, waited, kind=UnprovenKind.HISTORY)
    elif answer.verdict is Verdict.UNPROVEN:
        found = StoreResult(Verdict.UNPROVEN, words, waited, kind=answer.kind)
    else:
        found = StoreResult(Verdict.TIMED_OUT, words, waited, overloaded=answer.overloaded)
    return BarrierResult(satisfied=False, waited=waited, _judge=lambda: {store: found})
