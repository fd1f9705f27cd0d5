"""What a read of a wrapped client waits for, and what becomes of one that waited in vain (spec BAR-51, SHIM)."""

from __future__ import annotations

from antipode import telemetry
from antipode.errors import BarrierError, BarrierTimeout, BarrierUnproven, Redeliver
from antipode.result import BarrierResult, StoreResult
from antipode.scope import Scope
from antipode.settings import settings
from antipode.site import call_site
from antipode.verdict import Verdict


def behind() -> None:
    """In dry-run a read that would have had to wait is a finding, and goes on."""
    telemetry.finding("behind", call_site())


def waited_in_vain(store: str, words: str, waited: float, scope: Scope | None, *, unproven: bool) -> None:
    """Raises what the policies say of a read that waited `waited` seconds in vain; returns where it goes on.

    `words`: the store and server, where it is, and how long the read waited. Raises BarrierTimeout, BarrierUnproven,
    or Redeliver in the scope of a message.
    """
    now = settings()
    policy = now.on_unproven if unproven and now.on_unproven != "as_timeout" else now.on_timeout
    words = f"{words} (wait on read)"
    answer = StoreResult(Verdict.UNPROVEN if unproven else Verdict.TIMED_OUT, words, waited)
    result = BarrierResult(satisfied=False, waited=waited, _judge=lambda: {store: answer})
    error: BarrierError = BarrierUnproven(words, result) if unproven else BarrierTimeout(words, result)
    if policy == "redeliver" and scope is not None and scope.delivery is not None:
        raise Redeliver(f"give the message back: {error}", result) from error
    if policy != "proceed":
        raise error
