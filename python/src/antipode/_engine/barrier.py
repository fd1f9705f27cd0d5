"""`barrier()`: waits until the writes of a lineage are visible here, or says why not (paper section 5.2, spec BAR)."""

from __future__ import annotations

import asyncio
import time
from collections.abc import Callable, Mapping, Sequence
from typing import cast

from antipode._base.call_site import call_site
from antipode._base.observers import barriers, events
from antipode._base.settings import Mode, settings
from antipode._engine.barrier_log import BarrierLog
from antipode._engine.barrier_waits import BarrierWaits
from antipode._engine.branch_rounds import Resolution, rounds
from antipode._engine.free_path import free, proved, remember
from antipode._engine.judgement import enforce, judge
from antipode._engine.pending_wait import shown
from antipode._engine.plan import (
    DEFAULT,
    OnTimeout,
    OnUnproven,
    OnVacuous,
    Plan,
    Timeout,
    _Default,
    make_plan,
    warn_vacuous,
)
from antipode._engine.waiting import wait, wait_async
from antipode._model.branch_ids import BRANCHES
from antipode._model.errors import BlockingCallError
from antipode._model.lineage import Lineage
from antipode._model.result import BarrierResult, StoreResult
from antipode._model.scope_values import Gap
from antipode._model.verdict import Reach, Verdict
from antipode._scope.scope import current_scope

_running_loop: Callable[[], asyncio.AbstractEventLoop | None] = asyncio._get_running_loop
_PASSED_THROUGH = BarrierResult(satisfied=True, waited=0.0, _left_unjudged=True, _off=None)


def barrier(
    lineage: Lineage | None = None,
    *,
    timeout: Timeout | _Default = DEFAULT,
    stores: Sequence[str] | None = None,
    reach: Reach | str | None = None,
    require_complete: bool = False,
    dry_run: bool | None = None,
    on_timeout: OnTimeout | None = None,
    on_unproven: OnUnproven | None = None,
    on_vacuous: OnVacuous | None = None,
) -> BarrierResult:
    """Blocks until the writes of the lineage are visible here, under one deadline, in all stores at once.

    lineage: the scope's, as it is at the call, unless one is given. timeout: seconds or timedelta; default 1 s, and
    never longer than the request's own deadline; 0 looks without waiting. stores: those alone; by default all that
    this process has registered, and others are carried on as `elsewhere`. reach: `region` (every server that readers
    here may use, the default) or `replica` (the wrapped client's). require_complete: fail also where something was
    left unjudged. dry_run: only record. on_timeout, on_unproven, on_vacuous: what happens otherwise.

    Raises BarrierTimeout, BarrierUnproven, BarrierIncomplete or Redeliver as these policies say; ConfigurationError
    outside any scope or without any store; BlockingCallError on a running event loop.
    """
    if _running_loop() is not None:
        raise BlockingCallError(
            "antipode.barrier() was called on a running event loop and would stop every request on it.\n"
            f"  Use: await antipode.barrier_async(…). (site: {call_site()})"
        )
    if lineage is None and stores is None and reach is None and not (require_complete or dry_run):
        passed = free(timeout, on_timeout, on_unproven, on_vacuous)
        if passed is not None:
            return passed
    begun = _begin(lineage, timeout, stores, reach, require_complete, dry_run, on_timeout, on_unproven, on_vacuous)
    if isinstance(begun, BarrierResult):
        return begun
    plan, seconds, found = begun, begun.timeout, None
    if begun.branches:
        steps = rounds(begun)
        try:
            wanted, seconds = next(steps)
            while True:
                wanted, seconds = steps.send(wait(wanted, seconds))
        except StopIteration as over:
            found = cast(Resolution, over.value)
        plan, seconds = found.plan, found.remaining
    waits = BarrierWaits(plan)
    twice, lost = plan.looks_twice, waits.has_lost
    group = wait(plan.wanted(), seconds, looks_twice=twice, has_lost=lost)
    while not waits.take(group):
        group = wait(waits.plan.wanted(), seconds, looks_twice=twice, since=group.since, has_lost=lost)
    return _finish(waits, found, given=lineage is not None)


async def barrier_async(
    lineage: Lineage | None = None,
    *,
    timeout: Timeout | _Default = DEFAULT,
    stores: Sequence[str] | None = None,
    reach: Reach | str | None = None,
    require_complete: bool = False,
    dry_run: bool | None = None,
    on_timeout: OnTimeout | None = None,
    on_unproven: OnUnproven | None = None,
    on_vacuous: OnVacuous | None = None,
) -> BarrierResult:
    """`barrier` for asyncio: the same meaning, without blocking the event loop. Cancelling it gives the place up."""
    if lineage is None and stores is None and reach is None and not (require_complete or dry_run):
        passed = free(timeout, on_timeout, on_unproven, on_vacuous)
        if passed is not None:
            return passed
    begun = _begin(lineage, timeout, stores, reach, require_complete, dry_run, on_timeout, on_unproven, on_vacuous)
    if isinstance(begun, BarrierResult):
        return begun
    plan, seconds, found = begun, begun.timeout, None
    if begun.branches:
        steps = rounds(begun)
        try:
            wanted, seconds = next(steps)
            while True:
                wanted, seconds = steps.send(await wait_async(wanted, seconds))
        except StopIteration as over:
            found = cast(Resolution, over.value)
        plan, seconds = found.plan, found.remaining
    waits = BarrierWaits(plan)
    twice, lost = plan.looks_twice, waits.has_lost
    group = await wait_async(plan.wanted(), seconds, looks_twice=twice, has_lost=lost)
    while not waits.take(group):
        group = await wait_async(waits.plan.wanted(), seconds, looks_twice=twice, since=group.since, has_lost=lost)
    return _finish(waits, found, given=lineage is not None)


def _begin(
    lineage: Lineage | None,
    timeout: Timeout | _Default,
    stores: Sequence[str] | None,
    reach: Reach | str | None,
    require_complete: bool,
    dry_run: bool | None,
    on_timeout: OnTimeout | None,
    on_unproven: OnUnproven | None,
    on_vacuous: OnVacuous | None,
) -> BarrierResult | Plan:
    """What both forms do before they wait: the result where nothing is to be waited for, else the plan."""
    if settings().mode is Mode.OFF:
        return _PASSED_THROUGH
    plan = make_plan(
        current_scope(),
        lineage,
        timeout=timeout,
        stores=stores,
        reach=reach,
        require_complete=require_complete,
        dry_run=dry_run,
        on_timeout=on_timeout,
        on_unproven=on_unproven,
        on_vacuous=on_vacuous,
    )
    if BarrierLog.active:
        BarrierLog.note(asked.store.name for asked in plan.asked)
    if plan.dry_run:
        return _record_only(plan)
    if plan.recorded:
        events.on_barrier_recorded(plan._replace(asked=list(plan.recorded)), call_site())
    needs = proved(plan)
    if needs is None:
        return plan
    result = _result(plan, True, 0.0, lambda: judge(plan, shown(plan.wanted()), 0.0, looked=False))
    barriers["free"] += 1
    if plan.asked:
        events.on_barrier_enforced()
    remember(plan, result, needs)
    return result


def _finish(waits: BarrierWaits, found: Resolution | None, *, given: bool) -> BarrierResult:
    plan, needs = waits.plan, waits.needs
    waited = time.monotonic() - (waits.group.since if found is None else found.since)
    if found is not None and plan.scope is not None and not given:
        plan.scope.resolve(found.closed, found.found)
        events.on_lineage_arrived(plan.scope, found.found)
    unresolved = None if found is None else found.verdict
    # A store without a single server has nothing to ask, and no needs: that is no pass.
    all_visible = all(asked.servers and not asked.gone for asked in plan.asked) and all(
        need.answer is not None and need.answer.verdict is Verdict.VISIBLE for need in needs
    )
    looked = plan.timeout == 0
    left_out = False
    if all_visible and not plan.unregistered and unresolved is None:
        result = _result(plan, True, waited, lambda: judge(plan, needs, waited, looked=looked), found=found)
    else:
        verdicts = dict(judge(plan, needs, waited, looked=looked))
        if unresolved is not None:
            verdicts[BRANCHES] = unresolved
        asked = {each.store.name for each in plan.asked} | set(plan.unregistered)
        satisfied = unresolved is None and all(verdicts[name].verdict is Verdict.VISIBLE for name in asked)
        left_out = _left_out(verdicts)
        result = _result(plan, satisfied, waited, lambda: verdicts, left_out=left_out, found=found)
    _tell(waits, result, parked=found is not None and found.parked)
    if result.satisfied and plan.asked and not left_out:
        events.on_barrier_enforced()
    if result.satisfied and not left_out and found is None:
        remember(plan, result)
    enforce(plan, result)
    return result


def _left_out(verdicts: Mapping[str, StoreResult]) -> bool:
    return any(store.left_out for store in verdicts.values())


def _result(
    plan: Plan,
    satisfied: bool,
    waited: float,
    verdicts: Callable[[], Mapping[str, StoreResult]],
    *,
    left_out: bool = False,
    dry_run: bool = False,
    found: Resolution | None = None,
) -> BarrierResult:
    gaps = plan.scope.gaps if plan.scope is not None else ()
    if plan.in_doubt:  # BAR-56
        for store, unknown in sorted({(write.store, write.unknown) for write in plan.in_doubt}):
            state = "its outcome is not known" if unknown else "it has not been answered, or not been committed"
            gaps = (*gaps, Gap("pending", store, f"a write of this scope: {state}"))
    if found is not None and found.unjudged:
        gaps = (*gaps, Gap("branch", "", found.unjudged))
    unjudged = plan.unjudged or left_out or bool(found is not None and found.unjudged) or dry_run or bool(plan.recorded)
    return BarrierResult(
        satisfied=satisfied,
        waited=waited,
        vacuous=plan.vacuous,
        dry_run=dry_run,
        _judge=verdicts,
        _left_unjudged=unjudged,
        _off=tuple(plan.switched_off),
        gaps=gaps,
    )


def _tell(waits: BarrierWaits, result: BarrierResult, *, parked: bool) -> None:
    """Counts a barrier, and makes its spans if something had to be waited for (OBS-1, OBS-9)."""
    plan = waits.plan
    waited = parked or any(need.parked for need in waits.needs)
    outcome = _outcome(plan, result, overloaded=waits.group.overloaded)
    barriers[outcome if waited or outcome != "satisfied" else "free"] += 1
    if plan.vacuous:
        warn_vacuous(plan, call_site())
    if waited:
        events.on_barrier_waited(plan, result, waits.needs, outcome)


def _outcome(plan: Plan, result: BarrierResult, *, overloaded: bool) -> str:
    if result.vacuous:
        return "vacuous"
    if result.satisfied:
        return "incomplete" if plan.require_complete and not result.complete else "satisfied"
    if overloaded:
        return "overloaded"
    if any(store.verdict is Verdict.UNPROVEN for store in result.stores.values()):
        return "unproven"
    return "timed_out"


# Dry-run


def _record_only(plan: Plan) -> BarrierResult:
    """Waits for nothing and enforces nothing: what is not visible is followed in the background and recorded."""
    if plan.vacuous:
        warn_vacuous(plan, call_site())
    needs = events.on_barrier_recorded(plan, call_site())
    verdicts = judge(plan, needs, 0.0, looked=True)
    barriers["vacuous" if plan.vacuous else "satisfied"] += 1
    return _result(plan, True, 0.0, lambda: verdicts, left_out=_left_out(verdicts), dry_run=True)
