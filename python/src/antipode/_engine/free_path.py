"""The free path: a barrier by what answers to others proved, without I/O or instrument (spec BAR-33 to BAR-36)."""

from __future__ import annotations

import time
from collections.abc import Iterable
from dataclasses import replace
from typing import Final, NamedTuple, TypeAlias

from antipode._base.observers import barriers
from antipode._base.settings import settings, settings_generation
from antipode._engine.barrier_log import BarrierLog
from antipode._engine.pending_wait import JudgedServer, JudgedStore
from antipode._engine.plan import DEFAULT, Plan, StoreRequest, Timeout, _Default
from antipode._model.lineage import Lineage
from antipode._model.result import BarrierResult
from antipode._model.verdict import Reach
from antipode._model.write_id import Ordered
from antipode._scope.scope import current_scope
from antipode._store.store import registry

_PLAIN: Final = frozenset({None, "raise", "proceed", "as_timeout"})
_LONG_S: Final = 60.0
_Positions: TypeAlias = list[tuple[JudgedServer, str, int]]
"""What a barrier asks for where it asks for positions alone: at which server, epoch and counter."""


class _Proof(NamedTuple):
    """What the last barrier of a scope proved, for repeating it in O(1)."""

    lineage: Lineage
    registry_generation: int
    settings_generation: int
    stores: list[tuple[JudgedStore, int]]
    needs: _Positions
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
    if not _stand_together(proof.needs, now):
        return None
    for store, generation in proof.stores:
        # The clients first: what they were led to before that look shows in the generation behind it.
        if store.discovery_due(now) or store.generation != generation:
            return None
    for server, _, _ in proof.needs:
        server.passed_at = now
    barriers["free"] += 1
    if BarrierLog.active:
        BarrierLog.note(store.name for store, _ in proof.stores)
    return proof.result


def proved(plan: Plan) -> _Positions | None:
    """Return what a barrier asks for, where answers to others prove all of it; None where it goes the long way."""
    if plan.branches or plan.unregistered or plan.require_complete or plan.vacuous:
        return None
    needs = _positions(plan.asked)
    now = time.monotonic()
    if needs is None or not _stand_together(needs, now) or plan.is_outdated:
        return None
    for server, _, _ in needs:
        server.passed_at = now
    return needs


def _stand_together(needs: _Positions, now: float) -> bool:
    """Return whether kept answers prove all these positions, and did at one instant (BAR-34, BAR-36, BAR-63)."""
    since = now - settings().free_path_ttl
    grown = 0
    for server, epoch, counter in needs:
        proof = server.kept_proof(epoch, counter, since)
        if proof is None:
            return False
        grown -= proof.generation
    for server, _, _ in needs:
        grown += server.generation
    return not grown  # generations only grow: none has, since the last of these proofs was looked up


def _positions(stores: Iterable[StoreRequest]) -> _Positions | None:
    """Return what is asked for; None where it is not only positions, or a pass could not speak of all servers."""
    needs: _Positions = []
    for asked in stores:
        if asked.gone or not asked.servers:
            return None
        for write_id in asked.ids:
            version = write_id.version
            if write_id.key or not isinstance(version, Ordered):
                return None
            epoch, counter = version
            needs += [(server, epoch, counter) for server in asked.servers]
    return needs


def remember(plan: Plan, result: BarrierResult, needs: _Positions | None = None) -> None:
    """Keep the proof of a whole pass over positions in the scope, where the next barrier finds it."""
    scope = plan.scope
    if (
        scope is None
        or plan.names is not None
        or plan.reach is not Reach.REGION
        or plan.lineage is not scope.recorded_lineage
        or result.vacuous
        or plan.recorded
        or plan.in_doubt
    ):
        return
    needs = _positions(plan.asked) if needs is None else needs
    if needs is None:
        return
    still = replace(result, waited=0.0, _judge=lambda: result.stores) if result.waited else result
    scope.proof = _Proof(
        plan.lineage,
        registry().generation,
        settings_generation(),
        [(asked.store, asked.generation) for asked in plan.asked],
        needs,
        still,
    )
