"""What a read of a wrapped client waits for, and what becomes of one that waited in vain (spec BAR-51, SHIM)."""

from __future__ import annotations

import time

from antipode.errors import BarrierError, BarrierTimeout, BarrierUnproven, Redeliver
from antipode.lineage import Lineage
from antipode.reading import Reading
from antipode.result import BarrierResult, StoreResult
from antipode.scope import Scope
from antipode.server import Server
from antipode.settings import Mode, settings
from antipode.verdict import Verdict
from antipode.waiting import wait_for_server


def wait_first(server: Server, timeout: float, reading: Reading | None, scope: Scope | None, *, waits: bool) -> None:
    """Waits at the read's own server for what `reading(after=…)`, or with `waits` the scope, wants to see of its store.

    `timeout`: seconds; the request's own deadline tightens it. In dry-run nothing waits: such reads are followed like
    others (REC-12). Raises what a barrier raises that waited in vain, by the policies.
    """
    if reading is not None and reading.after is not None:
        lineage = reading.after
    elif waits and scope is not None:
        lineage = scope.recorded_lineage
    else:
        return
    store = server.store
    ids = lineage.of_store(store.name)
    if not ids or store.mode is not Mode.ENFORCE:
        return
    began = time.monotonic()
    if scope is not None and scope.deadline is not None:
        timeout = min(timeout, max(scope.deadline - began, 0.0))
    verdict = wait_for_server(server, Lineage(ids), timeout)
    if verdict is Verdict.VISIBLE:
        return
    words = f"{store.name} at {server.address}: {verdict}. The read waited for it {timeout * 1000:.0f} ms"
    waited_in_vain(store.name, words, time.monotonic() - began, scope, unproven=verdict is Verdict.UNPROVEN)


def waited_in_vain(
    store: str, words: str, waited: float, scope: Scope | None, *, unproven: bool, is_past: bool = False
) -> None:
    """Raises what the policies say of a read that waited `waited` seconds in vain; returns where it goes on.

    `words`: the store and server, where it is, and how long the read waited. `is_past`: what is to be read is of a
    moment that is past, so that no wait could help (SHIM-48). Raises BarrierTimeout, BarrierUnproven,
    or Redeliver in the scope of a message.
    """
    now = settings()
    policy = now.on_unproven if unproven and now.on_unproven != "as_timeout" else now.on_timeout
    words = f"{words} (wait on read)"
    answer = StoreResult(Verdict.UNPROVEN if unproven else Verdict.TIMED_OUT, words, waited)
    result = BarrierResult(satisfied=False, waited=waited, _judge=lambda: {store: answer})
    code = "AP514" if is_past else answer.code
    error: BarrierError = (BarrierUnproven if unproven else BarrierTimeout)(words, result, code=code)
    if policy == "redeliver" and scope is not None and scope.delivery is not None:
        raise Redeliver(f"give the message back: {words}", result, code=error.code) from error
    if policy != "proceed":
        raise error
