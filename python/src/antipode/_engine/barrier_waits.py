"""The waits of one barrier for its writes, the last one at the servers that are known when it passes (spec BAR-65)."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Final

from antipode._engine.discovery import Discovery
from antipode._engine.pending_wait import JudgedServer, PendingWait, WaitGroup
from antipode._engine.plan import Plan
from antipode._engine.waiting import seconds_left
from antipode._model.verdict import Reach, Verdict, not_yet, unproven
from antipode._store.store import Store

_CHANGED: Final = "the store's servers changed until the deadline, and this one was not asked any more"


class BarrierWaits:
    """What a barrier has waited for, and the plan by which it goes on."""

    __slots__ = ("_parked", "group", "needs", "plan")

    def __init__(self, plan: Plan) -> None:
        self.plan = plan
        """With the servers known now."""
        self.group: WaitGroup
        """The last wait; it began when the first did."""
        self.needs: Sequence[PendingWait] = ()
        """Those that the verdicts are told by."""
        self._parked: set[Store] = set()
        """The stores at which an earlier wait was parked."""

    def has_lost(self, server: JudgedServer) -> bool:
        """Return whether a server where it waits is none of those that are known by now."""
        own = self.plan.reach is Reach.REPLICA
        changed = [each for each in self.plan.asked if each.store is server.store and each.is_outdated]
        return any(not each.store.is_named(server, own=own) for each in changed)

    def take(self, group: WaitGroup) -> bool:
        """Take what a wait came to; return False where another is to follow, by the new plan, under its deadline."""
        self.group, self.needs = group, group.needs
        if self._parked:
            for need in group.needs:
                need.parked = need.parked or need.server.store in self._parked
        if group.overloaded or not (group.has_waited or self.plan.is_outdated):
            return True
        plan = self.plan.with_servers_named_anew()
        # Where a client was not known, nobody tells by the store's set which servers it was led to meanwhile.
        if plan is self.plan and not any(need.divided for need in group.needs):
            return True
        named = {server for asked in plan.asked for server in asked.servers}
        failed = {need.server for need in group.needs if _fails(need)}
        has_time = seconds_left(group) > 0
        if failed and not (has_time and (group.is_outdated or failed.isdisjoint(named))):
            return True
        judged = [need for need in group.needs if need.server in named and not need.divided]
        have = {(need.server, need.write_id) for need in judged}
        joined = [each for each in plan.wanted() if each not in have]
        self.plan, self.needs = plan, judged
        # Where it ended before its time, or one had failed, nobody has looked whether the others' proofs stand.
        if has_time and (joined or failed or group.is_outdated):
            self._parked.update(need.server.store for need in group.needs if need.parked)
            return False
        self.needs = [*judged, *(_missed(PendingWait(write_id, server, group)) for server, write_id in joined)]
        return True


def _fails(need: PendingWait) -> bool:
    """Return whether the barrier does not pass for this need, whoever else joins."""
    is_visible = need.answer is not None and need.answer.verdict is Verdict.VISIBLE
    return not (is_visible or need.left_out or need.divided)


def _missed(need: PendingWait) -> PendingWait:
    """Return the need of a server that joined too late to be asked."""
    server = need.server
    need.answer = unproven(_CHANGED, server.kind) if isinstance(server, Discovery) else not_yet(_CHANGED)
    return need
