"""`barrier()`: waits until the writes of a lineage are visible here, or says why not (paper section 5.2, spec BAR)."""

from __future__ import annotations

import asyncio
import os
import threading
import time
from collections.abc import Awaitable, Callable, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import replace
from typing import TYPE_CHECKING, Any, Final, NamedTuple, TypeVar

from antipode import announcement, logs, records, telemetry
from antipode.barrier_log import BarrierLog
from antipode.errors import BlockingCallError
from antipode.judgement import enforce, judge
from antipode.lineage import Lineage
from antipode.need import Group, Need
from antipode.plan import DEFAULT, OnTimeout, OnUnproven, OnVacuous, Plan, Timeout, _Default, make_plan, warn_vacuous
from antipode.result import BarrierResult, ServerResult, StoreResult
from antipode.scope import Scope, current_scope
from antipode.server import Server
from antipode.settings import Mode, settings, settings_generation
from antipode.site import call_site
from antipode.store import Store, registry
from antipode.verdict import Reach, Verdict, not_yet
from antipode.writeid import Ordered

if TYPE_CHECKING:
    from collections.abc import Iterator

__all__ = [
    "BarrierResult",
    "Reach",
    "ServerResult",
    "StoreResult",
    "Verdict",
    "barrier",
    "barrier_async",
    "read_or_fallback",
    "read_or_fallback_async",
    "wait_for_server",
    "wait_for_server_async",
]

_T = TypeVar("_T")
LOOK_S = 0.1
"""How long a look without waiting (`timeout=0`) may take to ask the servers, in seconds."""
_PLAIN: Final = frozenset({None, "raise", "proceed", "as_timeout"})
_LONG_S: Final = 1e6
_running_loop: Callable[[], asyncio.AbstractEventLoop | None] = asyncio._get_running_loop


class _Proof(NamedTuple):
    """What the last barrier of a scope proved, for repeating it in O(1)."""

    lineage: Lineage
    registry_generation: int
    settings_generation: int
    stores: list[tuple[Store, int]]
    needs: list[tuple[Server, str, int]]
    result: BarrierResult


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
    outside any scope, without any store, for misspelt names; BlockingCallError on a running event loop.
    """
    if _running_loop() is not None:
        raise BlockingCallError(
            "antipode.barrier() was called on a running event loop and would stop every request on it.\n"
            f"  Use: await antipode.barrier_async(…). (site: {call_site()})"
        )
    scope = current_scope()
    if stores is None and lineage is None and reach is None and scope is not None and not require_complete:
        free = _free(scope)
        if free is not None and not dry_run and _is_plain(timeout, on_timeout, on_unproven, on_vacuous):
            return free
    if settings().mode is Mode.OFF:
        return _PASSED_THROUGH
    plan = make_plan(
        scope,
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
    BarrierLog.note(asked.store.name for asked in plan.asked)
    if plan.dry_run:
        return _record_only(plan)
    if plan.recorded:
        records.follow(replace(plan, asked=plan.recorded), call_site())
    done = threading.Lock()
    done.acquire()
    group = Group(plan.timeout, done.release, None)
    try:
        if _park(plan, group):
            with _place(plan, group, tasks=False) as placed:
                if not placed:
                    _overloaded(group)
                else:
                    done.acquire(timeout=_patience(plan, group))
    except BaseException:
        group.cancelled = True
        raise
    finally:
        _leave(group)
    return _finish(plan, group)


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
    scope = current_scope()
    if stores is None and lineage is None and reach is None and scope is not None and not require_complete:
        free = _free(scope)
        if free is not None and not dry_run and _is_plain(timeout, on_timeout, on_unproven, on_vacuous):
            return free
    if settings().mode is Mode.OFF:
        return _PASSED_THROUGH
    plan = make_plan(
        scope,
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
    BarrierLog.note(asked.store.name for asked in plan.asked)
    if plan.dry_run:
        return _record_only(plan)
    if plan.recorded:
        records.follow(replace(plan, asked=plan.recorded), call_site())
    loop = asyncio.get_running_loop()
    done: asyncio.Future[None] = loop.create_future()

    def release() -> None:
        if not done.done():
            done.set_result(None)

    group = Group(plan.timeout, release, loop)
    try:
        if _park(plan, group):
            with _place(plan, group, tasks=True) as placed:
                if not placed:
                    _overloaded(group)
                else:
                    alarm = loop.call_later(_patience(plan, group), release)
                    try:
                        await done
                    finally:
                        alarm.cancel()
    except BaseException:
        group.cancelled = True
        raise
    finally:
        _leave(group)
    return _finish(plan, group)


# The free path

_PASSED_THROUGH = BarrierResult(satisfied=True, waited=0.0, _left_unjudged=True)


def _is_plain(timeout: Timeout | _Default, *policies: str | None) -> bool:
    """Whether these options may be passed over by a free pass; anything else is looked at, and refused if wrong."""
    usual = timeout is DEFAULT or (type(timeout) is float and 0 <= timeout < _LONG_S)
    return usual and _PLAIN.issuperset(policies)


def _free(scope: Scope) -> BarrierResult | None:
    """The result of repeating a barrier whose proofs are fresh: no I/O, no span, no instrument."""
    proof: _Proof | None = scope.proof
    if (
        proof is None
        or proof.lineage is not scope.lineage
        or proof.registry_generation != registry().generation
        or proof.settings_generation != settings_generation()
    ):
        return None
    now = time.monotonic()
    for server, epoch, counter in proof.needs:
        if not server.holds(epoch, counter, now):
            return None
    for store, generation in proof.stores:
        if store.generation != generation:
            return None
    telemetry.barriers["free"] += 1
    if BarrierLog.active:
        BarrierLog.note(store.name for store, _ in proof.stores)
    return proof.result


def _remember(plan: Plan, result: BarrierResult) -> None:
    """Keeps the proof of a whole pass over positions in the scope, where the next barrier finds it."""
    scope = plan.scope
    if scope is None or plan.names is not None or plan.reach is not Reach.REGION or plan.lineage is not scope.lineage:
        return
    needs: list[tuple[Server, str, int]] = []
    for asked in plan.asked:
        for write_id in asked.ids:
            version = write_id.version
            if not write_id.is_position or not isinstance(version, Ordered):
                return
            needs += [(server, version.epoch, version.counter) for server in asked.servers]
    if result.vacuous or plan.recorded:
        return
    still = BarrierResult(
        satisfied=True,
        waited=0.0,
        vacuous=result.vacuous,
        _judge=lambda: result.stores,
        _left_unjudged=result._left_unjudged,
        gaps=result.gaps,
    )
    scope.proof = _Proof(
        plan.lineage,
        registry().generation,
        settings_generation(),
        [(asked.store, asked.store.generation) for asked in plan.asked],
        needs,
        still,
    )


# Waiting


def _park(plan: Plan, group: Group) -> bool:
    """Parks every write at every server it has to be seen at; True where something is to be waited for."""
    for asked in plan.asked:
        for server in asked.servers:
            for write_id in asked.ids:
                server.park(group.add(write_id, server))
    return group.parked()


def _patience(plan: Plan, group: Group) -> float:
    """Seconds until the deadline; a look without waiting still asks each server once."""
    return max(group.since + (plan.timeout or LOOK_S) - time.monotonic(), 0.0)


@contextmanager
def _place(plan: Plan, group: Group, *, tasks: bool) -> Iterator[bool]:
    """A place among those that wait, counted a store and process; False where all are taken (overload)."""
    stores = {need.server.store for need in group.needs if not need.done}
    limit = settings().max_tasks if tasks else settings().max_waiters
    taken: list[Store] = []
    try:
        for store in stores:
            with store.lock:
                if (store.parked_tasks if tasks else store.parked_threads) >= limit:
                    break
                if tasks:
                    store.parked_tasks += 1
                else:
                    store.parked_threads += 1
            taken.append(store)
            telemetry.parked(store.name, 1)
        yield len(taken) == len(stores)
    finally:
        for store in taken:
            with store.lock:
                if tasks:
                    store.parked_tasks -= 1
                else:
                    store.parked_threads -= 1
            telemetry.parked(store.name, -1)


def _overloaded(group: Group) -> None:
    group.overloaded = True
    for need in group.needs:
        if not need.done:
            need.answer = not_yet("overloaded: as many barriers wait for it as this process allows")


def _leave(group: Group) -> None:
    for need in group.needs:
        if not need.done:
            need.server.give_up(need)


def _finish(plan: Plan, group: Group) -> BarrierResult:
    needs = group.needs
    waited = time.monotonic() - group.since
    # A store without a single server has nothing to ask, and no needs: that is no pass.
    all_visible = all(asked.servers for asked in plan.asked) and all(
        need.answer is not None and need.answer.verdict is Verdict.VISIBLE for need in needs
    )
    looked = plan.timeout == 0
    left_out = False
    if all_visible and not plan.expected:
        result = _result(plan, True, waited, lambda: judge(plan, needs, waited, looked=looked))
    else:
        verdicts = judge(plan, needs, waited, looked=looked)
        asked = {each.store.name for each in plan.asked} | set(plan.expected)
        satisfied = all(verdicts[name].verdict is Verdict.VISIBLE for name in asked)
        left_out = _left_out(verdicts)
        result = _result(plan, satisfied, waited, lambda: verdicts, left_out=left_out)
    _tell(plan, result, group)
    if result.satisfied and not left_out:
        _remember(plan, result)
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
) -> BarrierResult:
    lineage = plan.lineage
    unjudged = (
        left_out
        or dry_run
        or bool(plan.elsewhere)
        or bool(plan.expected)
        or bool(plan.recorded)
        or bool(plan.switched_off)
        or not lineage.is_complete(plan.asked_names)
        or any(gap.reason == "seal" for gap in (plan.scope.gaps if plan.scope else ()))
    )
    return BarrierResult(
        satisfied=satisfied,
        waited=waited,
        vacuous=plan.vacuous,
        dry_run=dry_run,
        _judge=verdicts,
        _left_unjudged=unjudged,
        gaps=plan.scope.gaps if plan.scope is not None else (),
    )


def _tell(plan: Plan, result: BarrierResult, group: Group) -> None:
    """Counts a barrier, and makes its spans if something had to be waited for (OBS-1, OBS-9)."""
    waited = any(need.parked for need in group.needs)
    outcome = _outcome(plan, result, group)
    telemetry.barriers[outcome if waited or outcome != "satisfied" else "free"] += 1
    if plan.vacuous:
        warn_vacuous(plan, call_site())
    if waited:
        telemetry.barrier_waited(plan, result, group, outcome)


def _outcome(plan: Plan, result: BarrierResult, group: Group) -> str:
    if result.vacuous:
        return "vacuous"
    if result.satisfied:
        return "incomplete" if plan.require_complete and not result.complete else "satisfied"
    if group.overloaded:
        return "overloaded"
    if any(store.verdict is Verdict.UNPROVEN for store in result.stores.values()):
        return "unproven"
    return "timed_out"


# Dry-run


def _record_only(plan: Plan) -> BarrierResult:
    """Waits for nothing and enforces nothing: what is not visible is followed in the background and recorded."""
    if plan.vacuous:
        warn_vacuous(plan, call_site())
    group = records.follow(plan, call_site())
    verdicts = judge(plan, group.needs, 0.0, looked=True)
    telemetry.barriers["vacuous" if plan.vacuous else "satisfied"] += 1
    return _result(plan, True, 0.0, lambda: verdicts, left_out=_left_out(verdicts), dry_run=True)


# One store, one server: what a shim's wait on read uses


def wait_for_server(server: Server, lineage: Lineage, timeout: float) -> Verdict:
    """Blocks until one server has shown every write of the lineage to its store; the verdict, nothing enforced."""
    done = threading.Lock()
    done.acquire()
    group = Group(timeout, done.release, None)
    try:
        for write_id in lineage.of_store(server.store.name):
            server.park(group.add(write_id, server))
        if group.parked():
            done.acquire(timeout=timeout)
    finally:
        _leave(group)
    return _verdict(group.needs)


async def wait_for_server_async(server: Server, lineage: Lineage, timeout: float) -> Verdict:
    """`wait_for_server` for asyncio."""
    loop = asyncio.get_running_loop()
    done: asyncio.Future[None] = loop.create_future()

    def release() -> None:
        if not done.done():
            done.set_result(None)

    group = Group(timeout, release, loop)
    try:
        for write_id in lineage.of_store(server.store.name):
            server.park(group.add(write_id, server))
        if group.parked():
            alarm = loop.call_later(timeout, release)
            try:
                await done
            finally:
                alarm.cancel()
    finally:
        _leave(group)
    return _verdict(group.needs)


def _verdict(needs: Sequence[Need]) -> Verdict:
    for need in needs:
        if need.left_out or (need.answer is not None and (need.answer.verdict is Verdict.UNPROVEN)):
            return Verdict.UNPROVEN
    if all(need.answer is not None and need.answer.verdict is Verdict.VISIBLE for need in needs):
        return Verdict.VISIBLE
    if any(need.answer is not None and need.answer.unknown_epoch for need in needs):
        return Verdict.UNPROVEN
    return Verdict.TIMED_OUT


# Fallbacks

_fallbacks = 0
_fallbacks_lock = threading.Lock()


@contextmanager
def _fallback_place() -> Iterator[bool]:
    global _fallbacks
    with _fallbacks_lock:
        placed = _fallbacks < settings().max_fallbacks
        _fallbacks += placed
    telemetry.fallback("run" if placed else "refused")
    try:
        yield placed
    finally:
        if placed:
            with _fallbacks_lock:
                _fallbacks -= 1


def read_or_fallback(read: Callable[[], _T], fallback: Callable[[], _T], **options: Any) -> _T:
    """Reads here after a barrier, or elsewhere (the primary) where the barrier does not pass in time.

    At most `max_fallbacks` fallbacks run at once, so that a lagging replica does not become an overloaded primary;
    past that it raises what `on_timeout="raise"` raises. Takes the options of `barrier` but the policies.
    """
    result = barrier(**options, on_timeout="proceed", on_unproven="proceed")
    if result.satisfied:
        return read()
    with _fallback_place() as placed:
        if not placed:
            raise _refused(result)
        return fallback()


async def read_or_fallback_async(
    read: Callable[[], Awaitable[_T]], fallback: Callable[[], Awaitable[_T]], **options: Any
) -> _T:
    """`read_or_fallback` for asyncio."""
    result = await barrier_async(**options, on_timeout="proceed", on_unproven="proceed")
    if result.satisfied:
        return await read()
    with _fallback_place() as placed:
        if not placed:
            raise _refused(result)
        return await fallback()


def _refused(result: BarrierResult) -> Exception:
    from antipode.errors import BarrierTimeout

    return BarrierTimeout(f"no fallback: {settings().max_fallbacks} run already\n{result.explain()}", result)


# Forks: pollers, channels, watermarks and locks stay with the parent


def _after_fork_in_child() -> None:
    global _fallbacks, _fallbacks_lock
    _fallbacks, _fallbacks_lock = 0, threading.Lock()
    announcement.after_fork()
    logs.after_fork()
    records.after_fork()
    for store in registry().all():
        store.after_fork()


if hasattr(os, "register_at_fork"):
    os.register_at_fork(after_in_child=_after_fork_in_child)
