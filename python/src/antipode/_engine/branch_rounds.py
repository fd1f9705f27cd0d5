"""What a barrier does before it waits for writes: open branches become the lineages of their tasks (spec BRANCH)."""

from __future__ import annotations

import time
from collections.abc import Generator, Iterable
from dataclasses import dataclass
from typing import Final

from antipode._base.settings import Mode
from antipode._engine.pending_wait import JudgedServer, PendingWait, WaitGroup, judged_store
from antipode._engine.plan import Plan, planned_anew
from antipode._engine.waiting import LOOK_S
from antipode._model.branch_ids import BranchId, branches_of, without_branches
from antipode._model.lineage import EMPTY, Lineage
from antipode._model.result import StoreResult
from antipode._model.verdict import UnprovenKind, Verdict
from antipode._model.write_id import WriteId
from antipode._store.branch_table import CLOSED, Row, table_of
from antipode._store.store import Store, registry

Wanted = list[tuple[JudgedServer, WriteId]]
Steps = Generator[tuple[Wanted, float], WaitGroup, "Resolution"]
"""Yields what to wait for and how long, in seconds; is sent the group when that is over."""
_LONGEST_LOOK_S: Final = 10 * LOOK_S
_LEAST_S: Final = 0.001
_WORST_FIRST: Final = (Verdict.UNPROVEN, Verdict.TIMED_OUT, Verdict.NOT_YET)
_MOST_TOLD: Final = 3
_OVERLOADED: Final = "; as many barriers wait for it as this process allows"


@dataclass(frozen=True, slots=True)
class Resolution:
    """What came of the open branches of a lineage."""

    plan: Plan
    """The barrier's plan for the writes that are known now."""
    closed: Lineage
    """The branches that were closed, and what they stand for."""
    found: Lineage
    verdict: StoreResult | None
    """Of those that were not resolved; None where none is left."""
    unjudged: str
    """Why something was left unjudged; empty where nothing was."""
    since: float
    parked: bool

    @property
    def remaining(self) -> float:
        """Seconds that are left for the writes; 0 where nobody waits."""
        if self.plan.timeout == 0:
            return 0.0
        return max(self.since + self.plan.timeout - time.monotonic(), _LEAST_S)


def rounds(plan: Plan) -> Steps:
    """Resolves the branches of a plan, under its deadline (BRANCH-12)."""
    return _Rounds(plan).run()


class _Rounds:
    def __init__(self, plan: Plan) -> None:
        self._plan = plan
        self._since = time.monotonic()
        self._own = frozenset[bytes]() if plan.scope is None else plan.scope.own_branches
        self._met: set[bytes] = set()
        self._open: dict[bytes, BranchId] = {}
        self._out: dict[bytes, set[str]] = {}
        """By branch: the servers that do not answer."""
        self._silent: set[bytes] = set()
        """Those of the last question that had no answer in its time."""
        self._closed: list[WriteId] = []
        self._found = EMPTY
        self._left: list[tuple[Verdict, str]] = []
        self._unjudged = ""
        self._parked = False
        self._overloaded = False

    def run(self) -> Steps:
        self._meet(branches_of(self._plan.lineage))
        while self._open:
            now = time.time()
            overdue = [branch for branch in self._open.values() if branch.left(now) <= 0]
            if overdue:
                group = yield self._wanted(overdue), 0.0
                self._take(group, overdue)
                if group.overloaded:
                    self._overloaded = True
                    self._give_up_all(_OVERLOADED)
                    break
                for branch in self._still(overdue):
                    self._give_up(branch, Verdict.UNPROVEN, _abandoned(branch, now))
                continue
            live = list(self._open.values())
            passed = time.monotonic() - self._since
            looks = self._plan.timeout == 0
            if (passed >= _LONGEST_LOOK_S) if looks else (passed >= self._plan.timeout):
                self._give_up_all("")
                break
            wait = 0.0 if looks else min(self._plan.timeout - passed, *(branch.left(now) for branch in live))
            group = yield self._wanted(live), max(wait, 0.0 if looks else _LEAST_S)
            self._take(group, live)
            if looks or group.overloaded:
                self._overloaded = group.overloaded
                self._give_up_all(_OVERLOADED if group.overloaded else "")
        return self._resolution()

    # Meeting branches

    def _meet(self, entries: Iterable[WriteId]) -> None:
        entries = list(entries)
        while entries:
            write_id = entries.pop()
            if write_id.key in self._met:
                continue
            self._met.add(write_id.key)
            if write_id.key not in self._own:  # nobody waits for himself (BRANCH-7)
                entries += self._judged(write_id)

    def _judged(self, write_id: WriteId) -> list[WriteId]:
        """Takes one in; the branches that it is known to have brought."""
        branch = BranchId.of(write_id)
        if branch is None:
            self._left.append((Verdict.UNPROVEN, f"{write_id} is no branch that is known here"))
            return []
        if branch.is_expired(time.time()):
            self._unjudged = f"{branch}: nobody knows any more what became of it, {_ago(branch)} after its lease"
            return []
        store = registry().get(branch.store)
        if store is None or table_of(store) is None:
            why = (
                f"this process has not registered {branch.store}"
                if store is None
                else f"{branch.store} is a store of the kind {store.kind} here, without branches"
            )
            self._left.append((Verdict.UNPROVEN, f"{branch} cannot be looked up: {why}"))
            return []
        if store.mode is not Mode.ENFORCE:
            self._unjudged = f"{branch}: {branch.store} is in mode {store.mode}"
            return []
        text = CLOSED.get(branch.key)
        if text is not None:
            return self._close(branch, text, store)
        self._open[branch.key] = branch
        return []

    # What servers say

    def _wanted(self, branches: list[BranchId]) -> Wanted:
        """One server a store, one that answers where there is one: any copy of a row is as good as another."""
        wanted: Wanted = []
        for branch in branches:
            store = registry().get(branch.store)
            out = self._out.get(branch.key, set())
            known = [] if store is None else judged_store(store).servers()
            servers = [each for each in known if each.address not in out]
            if not servers:
                words = "no server of it answers" if out else "it has no server"
                self._give_up(branch, Verdict.UNPROVEN, f"{branch} cannot be looked up: {words}")
                continue
            server = next((each for each in servers if not each.down), servers[0])
            wanted.append((server, branch.write_id))
        return wanted

    def _take(self, group: WaitGroup, asked: list[BranchId]) -> None:
        """What the group found out about these branches."""
        self._parked = self._parked or any(need.parked for need in group.needs)
        by_key = {need.write_id.key: need for need in group.needs}
        self._silent = {need.write_id.key for need in group.needs if need.answer is None and not need.left_out}
        for branch in asked:
            need = by_key.get(branch.key)
            if need is not None:
                self._answered(branch, need)

    def _answered(self, branch: BranchId, need: PendingWait) -> None:
        answer = need.answer
        if need.left_out:
            self._out.setdefault(branch.key, set()).add(need.server.address)
        elif answer is not None and answer.verdict is Verdict.VISIBLE:
            self._open.pop(branch.key, None)
            self._meet(self._close(branch, answer.told, need.server.store))
        elif answer is not None and answer.verdict is Verdict.UNPROVEN:
            self._give_up(branch, Verdict.UNPROVEN, f"{branch}: {need.server.address}: {answer.reason}")

    def _close(self, branch: BranchId, text: str, store: Store) -> list[WriteId]:
        row = Row(branch, text, store.options.lineage_in)
        if row.lineage is None:
            self._left.append((Verdict.UNPROVEN, f"{branch}: {row.reason}"))
            return []
        self._closed.append(branch.write_id)
        self._found |= row.lineage
        return branches_of(row.lineage)

    def _still(self, branches: list[BranchId]) -> list[BranchId]:
        """Those that are open as far as a server has said; the others are asked for again while there is time."""
        late = time.monotonic() - self._since >= max(self._plan.timeout, LOOK_S)
        asked = [each for each in branches if each.key in self._open]
        return [each for each in asked if late or not (each.key in self._out or each.key in self._silent)]

    def _give_up(self, branch: BranchId, verdict: Verdict, reason: str) -> None:
        if self._open.pop(branch.key, None) is not None:
            self._left.append((verdict, reason))

    def _give_up_all(self, words: str) -> None:
        now = time.time()
        verdict = Verdict.NOT_YET if self._plan.timeout == 0 else Verdict.TIMED_OUT
        for branch in list(self._open.values()):
            left = branch.left(now)
            state = f"is still open, its task has {left:.1f} s left" if left > 0 else "is not known to be closed"
            self._give_up(branch, verdict, f"{branch} {state}{words}")

    # The outcome

    def _resolution(self) -> Resolution:
        found = without_branches(self._found, self._met)
        return Resolution(
            plan=planned_anew(self._plan, without_branches(self._plan.lineage, self._met) | found),
            closed=Lineage(self._closed),
            found=without_branches(self._found, [each.key for each in self._closed]),
            verdict=self._verdict(),
            unjudged=self._unjudged,
            since=self._since,
            parked=self._parked,
        )

    def _verdict(self) -> StoreResult | None:
        for verdict in _WORST_FIRST:
            reasons = [reason for worst, reason in self._left if worst is verdict]
            if reasons:
                more = len(self._left) - min(len(reasons), _MOST_TOLD)
                told = "; ".join(reasons[:_MOST_TOLD]) + (f"; and {more} more" if more else "")
                kind = UnprovenKind.OTHER if verdict is Verdict.UNPROVEN else None
                waited = time.monotonic() - self._since
                return StoreResult(
                    verdict, told, waited, kind=kind, overloaded=self._overloaded, has_open_branch=kind is None
                )
        return None


def _abandoned(branch: BranchId, now: float) -> str:
    if branch.lease_ms / 1000 > now:
        return f"{branch} has a lease that nobody may give: it ends in more than 24 hours. It counts as abandoned"
    return (
        f"{branch} was abandoned: its lease ended {_ago(branch)} ago, and it was not closed. Its task may have died, "
        "or its close is not to be seen here yet"
    )


def _ago(branch: BranchId) -> str:
    seconds = time.time() - branch.lease_ms / 1000
    return f"{seconds:.0f} s" if seconds < 3600 else f"{seconds / 3600:.0f} h"
