"""The free path: a barrier that repeats what was just proved, without I/O or instrument (spec BAR-33 to BAR-36)."""

from __future__ import annotations

import time
from typing import Final, NamedTuple

from antipode import telemetry
from antipode.barrier_log import BarrierLog
from antipode.lineage import Lineage
from antipode.plan import DEFAULT, Plan, Timeout, _Default
from antipode.result import BarrierResult
from antipode.scope import current_scope
from antipode.server import Server
from antipode.settings import settings_generation
from antipode.store import Store, registry
from antipode.verdict import Reach
from antipode.writeid import Ordered

_PLAIN: Final = frozenset({None, "raise", "proceed", "as_timeout"})
_LONG_S: Final = 60.0


class _Proof(NamedTuple):
    """What the last barrier of a scope proved, for repeating it in O(1)."""

    lineage: Lineage
    registry_generation: int
    settings_generation: int
    stores: list[tuple[Store, int]]
    needs: list[tuple[Server, str, int]]
    result: BarrierResult


def free(timeout: Timeout | _Default, *policies: str | None) -> BarrierResult | None:
    """The result of repeating the current scope's barrier while its proofs are fresh; None where it has to be asked.

    Options out of the ordinary are left to the long way, which refuses mistakes.
    """
    scope = current_scope()
    proof: _Proof | None = None if scope is None else scope.proof
    if (
        proof is None
        or scope is None
        or proof.lineage is not scope.recorded_lineage
        or scope.has_pending
        or proof.registry_generation != registry().generation
        or proof.settings_generation != settings_generation()
        or not (timeout is DEFAULT or (type(timeout) is float and 0 <= timeout < _LONG_S))
        or not _PLAIN.issuperset(policies)
    ):
        return None
    now = time.monotonic()
    for server, epoch, counter in proof.needs:
        if not server.holds(epoch, counter, now):
            return None
    for store, generation in proof.stores:
        # The clients first: what they were led to before that look shows in the generation behind it.
        if store.discovery_due(now) or store.generation != generation:
            return None
    telemetry.barriers["free"] += 1
    if BarrierLog.active:
        BarrierLog.note(store.name for store, _ in proof.stores)
    return proof.result


def remember(plan: Plan, result: BarrierResult) -> None:
    """Keeps the proof of a whole pass over positions in the scope, where the next barrier finds it."""
    scope = plan.scope
    if (
        scope is None
        or plan.names is not None
        or plan.reach is not Reach.REGION
        or plan.lineage is not scope.recorded_lineage
    ):
        return
    needs: list[tuple[Server, str, int]] = []
    for asked in plan.asked:
        if asked.gone:
            return
        for write_id in asked.ids:
            version = write_id.version
            if not write_id.is_position or not isinstance(version, Ordered):
                return
            needs += [(server, version.epoch, version.counter) for server in asked.servers]
    if result.vacuous or plan.recorded or plan.in_doubt:
        return
    still = BarrierResult(
        satisfied=True,
        waited=0.0,
        vacuous=result.vacuous,
        _judge=lambda: result.stores,
        _left_unjudged=result._left_unjudged,
        _off=result._off,
        gaps=result.gaps,
    )
    scope.proof = _Proof(
        plan.lineage,
        registry().generation,
        settings_generation(),
        [(asked.store, asked.generation) for asked in plan.asked],
        needs,
        still,
    )
