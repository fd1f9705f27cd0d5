"""What one barrier asks for: its options made whole, and the lineage taken apart by store (spec BAR)."""

from __future__ import annotations

import time
from collections.abc import Collection, Iterator, Mapping, Sequence
from dataclasses import dataclass
from datetime import timedelta
from typing import Final, Literal, NamedTuple, TypeAlias, get_args

from antipode._base import logs
from antipode._base.call_site import call_site
from antipode._base.observers import events
from antipode._base.setting_fields import did_you_mean
from antipode._base.settings import Mode, settings, timeout_of
from antipode._engine.pending_wait import JudgedServer, JudgedStore, judged_store
from antipode._model import display
from antipode._model.branch_ids import BRANCHES, BranchId
from antipode._model.errors import ConfigurationError
from antipode._model.lineage import Lineage, check_lineage
from antipode._model.verdict import Reach, UnprovenKind, Visibility, unproven
from antipode._model.write_id import WriteId
from antipode._scope.pending_write import PendingWrite
from antipode._scope.scope import Scope
from antipode._store.branch_table import table_of
from antipode._store.store import misspelt, registry, twins_of

OnTimeout: TypeAlias = Literal["raise", "proceed", "redeliver"]
OnUnproven: TypeAlias = Literal["raise", "proceed", "redeliver", "as_timeout"]
OnVacuous: TypeAlias = Literal["raise", "proceed"]
Timeout: TypeAlias = float | timedelta
_POLICIES: Final[Mapping[str, tuple[str, ...]]] = {
    "on_timeout": get_args(OnTimeout),
    "on_unproven": get_args(OnUnproven),
    "on_vacuous": get_args(OnVacuous),
}
"""The words of a call; those of a setting are checked where it is set."""


class _Default:
    """Stands for "not given": `timeout=None` is a mistake, because there is no infinite wait to ask for."""

    def __repr__(self) -> str:
        return "the default"


DEFAULT: Final = _Default()
_MOST_TRIES: Final = 100
_LONG_S: Final = 60.0
"""A longer deadline is probably one in milliseconds (BAR-58)."""
_EXPECTED: Final = unproven("listed in ANTIPODE_STORES, and not registered yet", UnprovenKind.NOT_OPENED)


class StoreRequest(NamedTuple):
    """One store that a barrier asks for: the writes to it, and the servers that a pass has to speak of."""

    store: JudgedStore
    ids: list[WriteId]
    servers: Sequence[JudgedServer]
    generation: int
    """Of the store's set of servers, before these were named."""
    gone: Sequence[str] = ()
    """The addresses of those that discovery took away lately, of which a pass does not speak (BAR-54)."""

    @property
    def is_outdated(self) -> bool:
        """Return whether the store's set of servers has changed since these were named."""
        return self.store.generation != self.generation

    @staticmethod
    def of(store: JudgedStore, ids: list[WriteId], *, own: bool, waits: bool = True) -> StoreRequest:
        """Return a store with the servers that are known now; `waits`: a barrier is to rely on them."""
        for _ in range(_MOST_TRIES):
            generation = store.generation  # first: what changes meanwhile shows
            servers = store.servers(own=own, stale=not waits)
            gone = store.gone(own=own) if waits else ()
            with store.lock:  # who takes an answer names servers, and then the generation grows
                if store.generation == generation:  # else who joined is in neither, and who left may be in both
                    break
        return StoreRequest(store, ids, servers, generation, gone)


class Plan(NamedTuple):
    """One barrier, before anything is waited for."""

    scope: Scope | None
    lineage: Lineage
    asked: list[StoreRequest]
    elsewhere: Sequence[str]
    """Stores of the lineage that this process has not registered."""
    unregistered: Mapping[str, Visibility]
    """Those that are unproven for it: `ANTIPODE_STORES` lists them (BAR-7), or they are misspelt (BAR-6)."""
    recorded: Sequence[StoreRequest]
    """Stores in dry-run while the process enforces: followed and recorded, not waited for (BAR-49)."""
    switched_off: Sequence[str]
    """Stores in mode off: not judged, so that the result is not complete (BAR-49)."""
    branches: Sequence[WriteId]
    """Entries of `antipode-branches`: open branches, to be resolved first (BRANCH-12)."""
    branches_unknown: bool
    """In dry-run: some of them cannot be looked up here (BRANCH-18)."""
    branches_unjudged: bool
    """In dry-run: some of them have no verdict, being long past or of a store in mode off (BRANCH-16, BRANCH-21)."""
    timeout: float
    reach: Reach
    on_timeout: str
    on_unproven: str
    on_vacuous: str
    require_complete: bool
    dry_run: bool
    names: tuple[str, ...] | None
    """The stores named in the call; None where all registered ones are asked for."""
    in_doubt: tuple[PendingWrite, ...] = ()
    """Where the scope's own lineage is judged: its writes to asked stores that are pending or of unknown outcome."""

    def wanted(self) -> Iterator[tuple[JudgedServer, WriteId]]:
        """Every write, at every server where it has to be seen."""
        for asked in self.asked:
            for server in asked.servers:
                for write_id in asked.ids:
                    yield server, write_id

    @property
    def is_outdated(self) -> bool:
        """Return whether a judged store's set of servers has changed since they were named."""
        return any(asked.store.generation != asked.generation for asked in self.asked)

    def with_servers_named_anew(self) -> Plan:
        """Return the same for the servers that are known now (BAR-65): itself, where they are the same."""
        own = self.reach is Reach.REPLICA
        asked = [StoreRequest.of(each.store, each.ids, own=own) for each in self.asked]
        return self if asked == self.asked else self._replace(asked=asked)

    @property
    def looks_twice(self) -> bool:
        """Return whether all servers are to have had the writes at one instant of the call (BAR-64)."""
        return self.require_complete and self.reach is Reach.REGION

    @property
    def vacuous(self) -> bool:
        """The lineage has writes, and none of their stores is registered here."""
        others = self.asked or self.unregistered or self.recorded or self.switched_off or self.branches
        return bool(self.elsewhere) and not others

    @property
    def unjudged(self) -> bool:
        """Something of the lineage is not judged, whatever the servers answer (BAR-15)."""
        branches = self.branches_unknown or self.branches_unjudged
        if self.elsewhere or self.unregistered or self.switched_off or branches or self.in_doubt:
            return True
        if not (self.lineage.is_complete() or self.lineage.is_complete(self.asked_names)):
            return True
        return self.scope is not None and any(gap.reason == "seal" for gap in self.scope.gaps)

    @property
    def asked_names(self) -> Collection[str]:
        """The stores whose marks of incompleteness count for `complete`."""
        known = registry()
        names = self.names if self.names is not None else [store.name for store in known.all()]
        marked = [each for each in self.lineage.incomplete if twins_of(each, known.generation).intersection(names)]
        return (*names, *marked, BRANCHES)  # BAR-6, BRANCH-19


def make_plan(
    scope: Scope | None,
    lineage: Lineage | None,
    *,
    timeout: Timeout | _Default,
    stores: Sequence[str] | None,
    reach: Reach | str | None,
    require_complete: bool,
    dry_run: bool | None,
    on_timeout: OnTimeout | None,
    on_unproven: OnUnproven | None,
    on_vacuous: OnVacuous | None,
) -> Plan:
    """Checks a call and takes its lineage apart. The programmer's mistakes raise here, at once."""
    now = settings()
    pending: tuple[PendingWrite, ...] = ()
    if lineage is None:
        if scope is None:
            raise ConfigurationError(
                "antipode.barrier() was called outside any scope, so there is no lineage to wait for. Add a "
                f"middleware, open antipode.scope(), or give it a lineage. (site: {call_site()})",
                code="AP101",
            )
        pending = scope.pending  # before the lineage: what ends in between is in doubt once too often, not once too few
        lineage = scope.recorded_lineage
    else:
        check_lineage(lineage, "antipode.barrier()")
    known = registry()
    if not known.all() and not now.stores:
        raise ConfigurationError(
            "antipode.barrier() was called in a process that has registered no store: wrap a client, or register() "
            f"the store that it should wait for. (site: {call_site()})",
            code="AP108",
        )
    events.on_request_begun()
    names = None if stores is None else _checked_names(stores)
    wanted = Reach.REGION if reach is None else _checked_reach(reach)
    if names is not None:
        pending = tuple(write for write in pending if write.store in names)
    enforcing = now.mode is Mode.ENFORCE and not dry_run
    apart = _taken_apart(lineage, names, own=wanted is Reach.REPLICA, enforcing=enforcing)
    if not enforcing and apart.branches:
        _follow_branches(apart, frozenset() if scope is None else scope.own_branches)
    return Plan(
        scope=scope,
        lineage=lineage,
        asked=apart.asked,
        elsewhere=apart.elsewhere,
        unregistered=apart.unregistered,
        recorded=apart.recorded,
        switched_off=apart.switched_off,
        branches=apart.branches,
        branches_unknown=apart.branches_unknown,
        branches_unjudged=apart.branches_unjudged,
        timeout=_deadline(timeout, scope, apart.asked),
        reach=wanted,
        on_timeout=_policy("on_timeout", on_timeout, scope) if on_timeout else now.on_timeout,
        on_unproven=_policy("on_unproven", on_unproven, scope) if on_unproven else now.on_unproven,
        on_vacuous=_policy("on_vacuous", on_vacuous, scope) if on_vacuous else now.on_vacuous,
        require_complete=require_complete,
        dry_run=bool(dry_run) or now.mode is Mode.DRY_RUN,
        names=names,
        in_doubt=pending,
    )


def planned_anew(plan: Plan, lineage: Lineage) -> Plan:
    """The same call for another lineage: that which closed branches made known."""
    apart = _taken_apart(lineage, plan.names, own=plan.reach is Reach.REPLICA, enforcing=True)
    return plan._replace(
        lineage=lineage,
        asked=apart.asked,
        elsewhere=apart.elsewhere,
        unregistered=apart.unregistered,
        recorded=apart.recorded,
        switched_off=apart.switched_off,
        branches=(),
    )


@dataclass(slots=True)
class _LineageByStore:
    """A lineage by store, as the plan has it."""

    asked: list[StoreRequest]
    elsewhere: list[str]
    unregistered: dict[str, Visibility]
    recorded: list[StoreRequest]
    switched_off: list[str]
    branches: list[WriteId]
    branches_unknown: bool = False
    branches_unjudged: bool = False


def _taken_apart(lineage: Lineage, names: Collection[str] | None, *, own: bool, enforcing: bool) -> _LineageByStore:
    known = registry()
    apart = _LineageByStore([], [], {}, [], [], [])
    for name in lineage.stores:
        if name == BRANCHES:
            apart.branches = lineage.of_store(name)
            continue
        store = known.get(name)
        twins = twins_of(name, known.generation) if store is None else frozenset[str]()
        if names is not None and name not in names and not twins.intersection(names):
            continue
        if twins:
            apart.unregistered[name] = misspelt(name, twins)
        elif store is None and name in settings().stores:
            apart.unregistered[name] = _EXPECTED
        elif store is None:
            apart.elsewhere.append(name)
        elif (mode := store.mode) is Mode.OFF:
            apart.switched_off.append(name)
        else:
            group = apart.recorded if enforcing and mode is Mode.DRY_RUN else apart.asked
            waits = enforcing and group is apart.asked
            group.append(StoreRequest.of(judged_store(store), lineage.of_store(name), own=own, waits=waits))
    return apart


def _follow_branches(apart: _LineageByStore, own: Collection[bytes]) -> None:
    """In dry-run open branches are followed as writes to the stores that have their rows (BRANCH-21)."""
    now = time.time()
    for write_id in apart.branches:
        if write_id.key in own:  # nobody waits for himself (BRANCH-7)
            continue
        branch = BranchId.of(write_id)
        store = None if branch is None else registry().get(branch.store)
        if branch is not None and branch.is_expired(now):
            apart.branches_unjudged = True
        elif store is None or table_of(store) is None:
            apart.branches_unknown = True
        elif store.mode is Mode.OFF:
            apart.branches_unjudged = True
        else:
            _follow_branch(apart, judged_store(store), write_id)


def _follow_branch(apart: _LineageByStore, store: JudgedStore, write_id: WriteId) -> None:
    there = next((asked for asked in apart.asked if asked.store is store), None)
    if there is None:
        apart.asked.append(StoreRequest(store, [write_id], store.servers(stale=True), store.generation))
    else:
        there.ids.append(write_id)


def _checked_names(stores: Sequence[str]) -> tuple[str, ...]:
    if isinstance(stores, str):
        raise ConfigurationError(f"stores= takes a list of names: stores=[{stores!r}]", code="AP111")
    if not stores:
        raise ConfigurationError(
            "stores=[] asks for nothing, and would always pass: name stores, or leave stores= out", code="AP112"
        )
    for name in stores:
        registry().need(name)
    return tuple(stores)


def _checked_reach(reach: Reach | str) -> Reach:
    if reach not in set(Reach):
        raise ConfigurationError(
            f"reach={reach!r}: want session, replica or region.{did_you_mean(reach, Reach)}", code="AP111"
        )
    wanted = Reach(reach)
    if wanted is Reach.SESSION:
        raise ConfigurationError(
            'reach="session" speaks of one connection, which a barrier does not have: use reading(after=lineage) or '
            "wrap(…, wait_on_read=True)",
            code="AP111",
        )
    return wanted


def _deadline(timeout: Timeout | _Default, scope: Scope | None, asked: list[StoreRequest]) -> float:
    if isinstance(timeout, _Default):
        seconds = max([each.store.timeout for each in asked]) if asked else timeout_of()
    elif timeout is None:
        raise ConfigurationError("timeout=None: there is no infinite wait to ask for; give seconds", code="AP109")
    else:
        seconds = timeout_of(None, timeout)
    if seconds > _LONG_S:
        site = call_site()
        logs.warn(
            f"timeout {site}",
            f"a barrier may wait for {seconds:g} s: timeout= is in seconds, variables are in milliseconds. site={site}",
            code="AP110",
        )
    if scope is not None and scope.deadline is not None:
        seconds = min(seconds, max(scope.deadline - time.monotonic(), 0.0))
    return seconds


def _policy(name: str, word: str, scope: Scope | None) -> str:
    """Return what a call says of a policy; raise ConfigurationError for what it cannot mean here."""
    words = _POLICIES[name]
    if word not in words:
        raise ConfigurationError(f"{name}={word!r}: want {', '.join(words)}.{did_you_mean(word, words)}", code="AP111")
    if word == "redeliver":
        _check_redeliver(scope)
    return word


def _check_redeliver(scope: Scope | None) -> None:
    delivery = None if scope is None else scope.delivery
    if delivery is None:
        raise ConfigurationError(
            'on_timeout="redeliver" needs a message to give back: this is not a consumer\'s scope', code="AP113"
        )
    if not delivery.can_redeliver:
        raise ConfigurationError(f'on_timeout="redeliver": the message cannot go back: {delivery.detail}', code="AP113")


def warn_vacuous(plan: Plan, site: str) -> None:
    """Says once a minute and site that a barrier judged nothing, with both lists of names."""
    here = ", ".join(store.name for store in registry().all())
    logs.warn(
        f"vacuous {site}",
        f"a barrier judged nothing: the lineage has writes to {display.listed(plan.elsewhere)}; registered in this "
        f"process: {here}. If these are one store, give it one name. site={site}",
        code="AP604",
    )
