"""What a read waits for before it is sent: wait on read, and `reading(after=…)` (spec BAR-50, BAR-51)."""

from __future__ import annotations

import time

from antipode import telemetry
from antipode.errors import BarrierError, BarrierTimeout, BarrierUnproven, Redeliver
from antipode.lineage import Lineage
from antipode.reading import Reading
from antipode.result import BarrierResult, StoreResult
from antipode.scope import Scope
from antipode.settings import Mode, settings
from antipode.site import call_site
from antipode.verdict import Verdict
from antipode.waiting import wait_for_server

from antipode_dynamodb.binding import Binding


def wait_first(binding: Binding, reading: Reading | None, scope: Scope | None) -> None:
    """Waits in the client's own region; raises as a barrier does where it waited in vain."""
    after = reading.after if reading is not None else None
    if after is None and binding.waits and scope is not None:
        after = scope.lineage
    ids = [] if after is None else after.of_store(binding.store.name)
    if not ids:
        return
    began = time.monotonic()
    timeout = binding.store.timeout
    if scope is not None and scope.deadline is not None:
        timeout = min(timeout, max(scope.deadline - began, 0.0))
    follows = binding.store.mode is Mode.DRY_RUN
    verdict = wait_for_server(binding.server, Lineage(ids), 0.0 if follows else timeout)
    if verdict is Verdict.VISIBLE:
        return
    if follows:
        telemetry.finding("behind", call_site())
        return
    _enforce(binding, scope, verdict, timeout, time.monotonic() - began)


def _enforce(binding: Binding, scope: Scope | None, verdict: Verdict, timeout: float, waited: float) -> None:
    now = settings()
    unproven = verdict is Verdict.UNPROVEN
    policy = now.on_unproven if unproven and now.on_unproven != "as_timeout" else now.on_timeout
    name = binding.store.name
    words = (
        f"{name} at {binding.server.address}: {'unproven' if unproven else 'not visible'} after "
        f"{timeout * 1000:.0f} ms (wait on read)"
    )
    answer = StoreResult(Verdict.UNPROVEN if unproven else Verdict.TIMED_OUT, words, waited)
    result = BarrierResult(satisfied=False, waited=waited, _judge=lambda: {name: answer})
    error: BarrierError = BarrierUnproven(words, result) if unproven else BarrierTimeout(words, result)
    if policy == "redeliver" and scope is not None and scope.delivery is not None:
        raise Redeliver(f"give the message back: {error}", result) from error
    if policy != "proceed":
        raise error
