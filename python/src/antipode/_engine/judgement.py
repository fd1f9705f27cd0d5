"""From the needs of a barrier to the verdict of each store, and to the error that says so (spec BAR)."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from typing import Final

from antipode._base.settings import settings
from antipode._engine.pending_wait import JudgedServer, PendingWait
from antipode._engine.plan import Plan, StoreRequest
from antipode._model.branch_ids import BRANCHES
from antipode._model.result import (
    BarrierError,
    BarrierIncomplete,
    BarrierResult,
    BarrierTimeout,
    BarrierUnproven,
    Redeliver,
    ServerResult,
    StoreResult,
)
from antipode._model.verdict import UnprovenKind, Verdict, unproven
from antipode._model.write_id import Ordered

_GONE: Final = "is not listed any more, and a connection may still lead there"
_WHOLE: Final = 0.9
"""A barrier that was over before this share of its deadline was given up early: timers end a little early, too."""
_CURES: Final[Mapping[UnprovenKind, str]] = {
    UnprovenKind.HISTORY: "The write may be lost. After a restore or failover, check it and run: antipode epoch settle "
    "{store} EPOCH --position N --at URL",
    UnprovenKind.RIGHT: "Give the login of {store} the right, as an administrator: antipode init prints how.",
    UnprovenKind.CONNECTION: "See that a server of {store} runs and lets this process in: antipode doctor URL.",
    UnprovenKind.NOT_OPENED: "No server of {store} is known yet: wrap its client, or name its servers with replicas=.",
    UnprovenKind.MISSPELT: "A store has one name in every service.",
    UnprovenKind.DISCOVERY: "What lists the servers of {store} (replicas=, a Sentinel, a name service) must name one.",
    UnprovenKind.UNFIT: "Change that setting or topology of {store}; antipode doctor URL says how.",
    UnprovenKind.OWN_FAULT: "This process is in trouble: look at its descriptors, threads and memory, and at its log.",
    UnprovenKind.OTHER: "antipode doctor URL says what is unproven at a server, and what cures it.",
}


def judge(plan: Plan, needs: Sequence[PendingWait], waited: float, *, looked: bool) -> Mapping[str, StoreResult]:
    """The verdict of each store. `looked`: nobody waited, so what is not visible is `not_yet`."""
    verdicts: dict[str, StoreResult] = {}
    for asked in plan.asked:
        own = [need for need in needs if need.server.store is asked.store]
        verdicts[asked.store.name] = _judge_store(asked, own, waited, looked=looked)
    for asked in plan.recorded:
        verdicts[asked.store.name] = StoreResult(Verdict.NOT_YET, "in dry-run: recorded, not waited for")
    for name, answer in plan.unregistered.items():
        verdicts[name] = StoreResult(Verdict.UNPROVEN, answer.reason, kind=answer.kind)
    for name in plan.elsewhere:
        verdicts[name] = StoreResult(Verdict.ELSEWHERE, "not registered in this process")
    return verdicts


def _judge_store(asked: StoreRequest, needs: list[PendingWait], waited: float, *, looked: bool) -> StoreResult:
    known: dict[JudgedServer, list[PendingWait]] = {server: [] for server in asked.servers}
    for need in needs:
        known.setdefault(need.server, [])
        if not need.divided:
            known[need.server].append(need)
    divided = {need.server for need in needs if need.divided}
    servers = [
        _judge_whole(server, own, asked, looked=looked) for server, own in known.items() if own or server not in divided
    ]
    servers += [ServerResult(address, Verdict.UNPROVEN, _GONE, left_out=True) for address in asked.gone]
    judged = [server for server in servers if not server.left_out]
    left = [server for server in servers if server.left_out]
    if not judged or (left and asked.store.fails_without_replica):
        reason = "; ".join(server.told for server in left) or "no server is registered"
        kind = UnprovenKind.CONNECTION if left else UnprovenKind.NOT_OPENED
        return StoreResult(Verdict.UNPROVEN, reason, waited, tuple(servers), kind)
    late = max((need.seen - need.since for need in needs if need.seen), default=0.0)
    for verdict in (Verdict.UNPROVEN, Verdict.TIMED_OUT, Verdict.NOT_YET):
        bad = [server for server in judged if server.verdict is verdict]
        if bad:
            there = [server.address for server in judged if server.verdict is Verdict.VISIBLE]
            reason = "; ".join(server.reason for server in bad)
            if there:
                reason += f" ({', '.join(there)} {'is' if len(there) == 1 else 'are'} there)"
            overloaded = any(server.overloaded for server in bad)
            worst = _first(server.kind for server in bad)
            return StoreResult(verdict, reason, waited, tuple(servers), worst, overloaded)
    reason = f"{len(judged)} of {len(servers)} {'replica' if len(servers) == 1 else 'replicas'} at {_wanted(asked)}"
    if left:
        reason += f"; left out: {', '.join(f'{server.address} ({server.reason})' for server in left)}"
    return StoreResult(Verdict.VISIBLE, reason, min(late, waited) if waited else 0.0, tuple(servers))


def _judge_whole(
    server: JudgedServer, needs: Sequence[PendingWait], asked: StoreRequest, *, looked: bool
) -> ServerResult:
    """Return what a server's needs say of it: nothing is visible at one that was not asked for all (BAR-65)."""
    result = judge_server(server.address, needs, looked=looked)
    if result.verdict is not Verdict.VISIBLE or {need.write_id for need in needs}.issuperset(asked.ids):
        return result
    verdict = Verdict.NOT_YET if looked else Verdict.TIMED_OUT
    return ServerResult(server.address, verdict, f"replica {server.address} was not asked for all of it")


def _first(kinds: Iterable[UnprovenKind | None]) -> UnprovenKind | None:
    """Return the kind that counts where several servers are unproven (BAR-59)."""
    return min((kind for kind in kinds if kind is not None), key=lambda kind: kind.rank, default=None)


def _wanted(asked: StoreRequest) -> str:
    version = asked.ids[0].version
    if len(asked.ids) == 1 and isinstance(version, Ordered) and asked.ids[0].is_position:
        return f"{version.epoch[:4]}….{version.counter} or later"
    return f"{len(asked.ids)} writes or later"


def judge_server(address: str, needs: Sequence[PendingWait], *, looked: bool) -> ServerResult:
    """Return what the needs parked at one server say of it. `looked`: nobody waited, as `judge` has it."""
    if any(need.left_out for need in needs):
        words = needs[0].server.down or "does not answer"
        kind = UnprovenKind.CONNECTION
        return ServerResult(address, Verdict.UNPROVEN, f"does not answer: {words}", left_out=True, kind=kind)
    answers = [need.answer for need in needs if need.answer is not None]
    lost = [answer for answer in answers if answer.verdict is Verdict.UNPROVEN]
    if not looked:
        lost += [
            unproven(f"unknown epoch: {answer.reason}", UnprovenKind.HISTORY)
            for answer in answers
            if answer.verdict is Verdict.NOT_YET and answer.unknown_epoch
        ]
    if lost:
        worst = min(lost, key=lambda answer: answer.kind.rank)
        return ServerResult(address, Verdict.UNPROVEN, f"{address}: {worst.reason}", kind=worst.kind)
    for need in needs:
        if need.answer is not None and need.answer.verdict is Verdict.VISIBLE:
            continue
        overloaded = need.answer is not None and need.answer.overloaded
        verdict = Verdict.NOT_YET if looked else Verdict.TIMED_OUT
        return ServerResult(address, verdict, _missing(need), overloaded=overloaded)
    return ServerResult(address, Verdict.VISIBLE)


def _missing(need: PendingWait) -> str:
    server = need.server
    if server.down:
        return f"replica {server.address} does not answer: {server.down}"
    if need.answer is not None and need.answer.reason:
        return f"replica {server.address}: {need.answer.reason}"
    if need.counter >= 0:
        place = server.tell_position(need.epoch)
        return f"replica {server.address} is at {place}, wanted {need.epoch[:4]}….{need.counter}"
    return f"replica {server.address} has not got {need.write_id}"


def enforce(plan: Plan, result: BarrierResult) -> None:
    """Raises what the policies say of a result; returns where the application goes on."""
    if not result.satisfied:
        _enforce_satisfied(plan, result)
    if result.vacuous and plan.on_vacuous == "raise":
        raise BarrierIncomplete(
            f"a barrier judged nothing: {', '.join(plan.elsewhere)} not registered in this process",
            result,
            code="AP604",
        )
    if plan.require_complete and not result.complete:
        raise BarrierIncomplete(f"require_complete: something was left unjudged\n{result.explain()}", result)


def _enforce_satisfied(plan: Plan, result: BarrierResult) -> None:
    recorded = {asked.store.name for asked in plan.recorded}
    verdicts = sorted((name, store.verdict) for name, store in result.stores.items())  # the first's code (OBS-15)
    kinds_of_late = {Verdict.TIMED_OUT, Verdict.NOT_YET}
    late = [name for name, verdict in verdicts if verdict in kinds_of_late and name not in recorded]
    lost = [name for name, verdict in verdicts if verdict is Verdict.UNPROVEN]
    if lost and plan.on_unproven != "as_timeout":
        _apply(plan.on_unproven, unproven_error(result, lost), result)
        lost = []
    if late:
        _apply(plan.on_timeout, _timeout_error(plan, result, late, lost), result)
    elif lost:
        _apply(plan.on_timeout, unproven_error(result, lost), result)


def _apply(policy: str, error: BarrierError, result: BarrierResult) -> None:
    if policy == "raise":
        raise error
    if policy == "redeliver":
        raise Redeliver(f"give the message back: {error.args[0]}", result, code=error.code) from error


def _timeout_error(plan: Plan, result: BarrierResult, names: list[str], lost: list[str]) -> BarrierTimeout:
    """Return the error for these stores that are late, and those unproven ones that count as such."""
    region = f" in region {settings().region}" if settings().region else ""
    told = "; ".join(
        f"{name} is not visible{region} after {result.waited * 1000:.0f} ms: {result.stores[name].reason}"
        for name in names
    )
    server_is_down = any(server.down for asked in plan.asked if asked.store.name in names for server in asked.servers)
    if server_is_down:
        cure = "See that its server runs and lets this process in: antipode doctor URL."
    elif result.waited >= _WHOLE * plan.timeout:
        cure = f"Raise timeout= (it was {plan.timeout * 1000:.0f} ms), or read the primary with read_or_fallback()."
    else:
        cure = "It was given up early, so a longer timeout= does not help: read_or_fallback() can read the primary."
    words, cures = _told_unproven(result, lost) if lost else ("", [])
    text = "\n  ".join([f"{'; '.join(filter(None, (words, told)))}.", *cures, cure])
    return BarrierTimeout(text, result, code=result.stores[(lost or names)[0]].code)


def unproven_error(result: BarrierResult, names: list[str]) -> BarrierUnproven:
    """Return the error that says why these stores are unproven, and what cures that."""
    words, cures = _told_unproven(result, names)
    return BarrierUnproven("\n  ".join([f"{words}.", *cures]), result, code=result.stores[names[0]].code)


def _told_unproven(result: BarrierResult, names: list[str]) -> tuple[str, list[str]]:
    """Return why these stores are unproven, and what cures that."""
    told = "; ".join(f"{name}: {result.stores[name].reason}" for name in names)
    if names == [BRANCHES]:
        return told, ["What that task was to write may be missing: run it again, or remove(antipode-branches)."]
    kinds = {name: result.stores[name].kind or UnprovenKind.OTHER for name in names}
    cures = [
        _CURES[kind].format(store=next(name for name in names if kinds[name] is kind))
        for kind in UnprovenKind
        if kind in kinds.values()
    ]
    return told, cures
