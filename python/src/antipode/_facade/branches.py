"""`branch()` and `close()`: writes that a task has still to make (spec BRANCH; the paper's TrainTicket, section 7).

with antipode.branch(within=30):       # in the request; antipode.configure(branches=orders) once
    queue.send(job)

antipode.close()                       # at the end of the task, in the scope of its message
"""

from __future__ import annotations

import asyncio
import threading
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from datetime import timedelta
from typing import Any

from antipode._base import logs
from antipode._base.call_site import call_site
from antipode._base.otel_context import hold
from antipode._base.settings import Mode, settings
from antipode._model import display
from antipode._model.branch_ids import LONGEST_LEASE_S, TASK, BranchId, without_branches
from antipode._model.errors import BlockingCallError, ConfigurationError
from antipode._model.lineage import EMPTY, Lineage
from antipode._scope.context import BLOCK
from antipode._scope.scope import Scope, current_scope
from antipode._store.branch_table import BranchTable, row_life, row_text, table_of
from antipode._store.store import Store, registry

_running_loop: Callable[[], asyncio.AbstractEventLoop | None] = asyncio._get_running_loop


class Branch:
    """The block of a `branch()`: each text that leaves in it, and each function carried from it, is a task's."""

    def __init__(self, scope: Scope, store: str, within: float, site: str, *, single_taker: bool = False) -> None:
        self.scope = scope
        self.site = site
        self._store = store
        self._within = within
        self._single_taker = single_taker
        self._announced: list[BranchId] = []
        self._ended = False
        self._lock = threading.Lock()

    @property
    def announced(self) -> tuple[BranchId, ...]:
        """The branches that were handed over in this block, one a task."""
        return tuple(self._announced)

    def hand_over(self, lineage: Lineage) -> Lineage:
        """Announces a branch in the scope; the lineage for its task's text (BRANCH-3, BRANCH-4)."""
        taken = self.take(lineage)
        if taken is None:
            return lineage
        branch, rest = taken
        return rest.with_extensions([*rest.extensions, branch.extension(TASK)])

    def take(self, lineage: Lineage) -> tuple[BranchId, Lineage] | None:
        """A new branch, announced in the scope, and the lineage that its task begins with; None after the block."""
        with self._lock:
            if self._ended or not self._store or self.scope.closed:
                return None
            branch = BranchId.new(self._store, self._within)
            beside = without_branches(lineage, [other.key for other in self._announced])
            self._announced.append(branch)
            self.scope.append(branch.write_id)
        return branch, beside

    def check_place(self, place: str) -> None:
        """Refuse a place that may give one text to several takers: the first close would speak for all (BRANCH-28)."""
        if self._store and not self._single_taker and not self._ended:
            raise ConfigurationError(
                f"a task was handed to {place}, which may give its message to several takers: the branch would be "
                "closed by the first. Send each taker a message of its own by a queue; where one alone takes it, say "
                f"branch(within=…, single_taker=True). (site: {self.site})",
                code="AP119",
            )

    def close_carried(self, scope: Scope) -> None:
        """Close the branches of a carried scope; to the caller a store's refusal says nothing (BRANCH-10)."""
        try:
            close_scope(scope)
        except Exception as error:
            logs.warn(
                f"branch {scope.site}",
                "a carried function ended, and its branch could not be closed: barriers will find it abandoned. "
                f"{error}",
                code="AP210",
            )

    def end(self) -> None:
        """What leaves from now on is no task's."""
        with self._lock:
            self._ended = True

    def withdraw(self) -> None:
        """Closes what was announced in this block, and takes it out: the tasks are known not to come (BRANCH-5).

        One that its task has closed meanwhile stays: it came after all (BRANCH-27). Raises as `close` does.
        """
        _check_may_block("branch.withdraw")
        withdrawn = [branch for branch in self._announced if _write(branch, EMPTY)]
        self.scope.drop_branches([branch.key for branch in withdrawn])

    async def withdraw_async(self) -> None:
        """`withdraw` without blocking the event loop."""
        await asyncio.to_thread(self.withdraw)


@contextmanager
def branch(*, within: float | timedelta, single_taker: bool = False) -> Iterator[Branch]:
    """Announces what is handed to tasks in this block: a barrier that meets it waits for what they write, too.

    within: the lease, in seconds: what has not been closed by then is abandoned. Each message or request that leaves in
    the block, each `serialize()` and each function of `carry` is a task with a branch of its own; hand nothing else
    over in it. `single_taker`: you state that each message has one taker, also where it goes by an exchange or topic;
    without it, sending one there raises ConfigurationError (BRANCH-28). Raises ConfigurationError outside any scope,
    without `configure(branches=…)`, and for a lease that is not more than 0 and at most 24 hours. With `mode=off`
    nothing is announced.
    """
    seconds = within.total_seconds() if isinstance(within, timedelta) else within
    if isinstance(seconds, bool) or not isinstance(seconds, int | float) or not 0 < seconds <= LONGEST_LEASE_S:
        raise ConfigurationError(
            f"branch(within={within!r}): want more than 0 and at most 24 hours, in seconds", code="AP111"
        )
    scope = current_scope()
    if scope is None:
        raise ConfigurationError(f"antipode.branch() was called outside any scope. (site: {call_site()})", code="AP101")
    name = settings().branches
    if settings().mode is Mode.OFF:
        name = ""
    elif not name:
        raise ConfigurationError(
            "antipode.branch() has no store to keep branches in: antipode.configure(branches=orders), a wrapped "
            f"client. (site: {call_site()})",
            code="AP511",
        )
    elif (store := registry().get(name)) is not None and store.mode is Mode.OFF:
        name = ""
    block = Branch(scope, name, float(seconds), call_site(), single_taker=single_taker)
    try:
        with hold(BLOCK, block):
            yield block
    finally:
        block.end()


def close() -> None:
    """Ends a task: what its scope has added becomes the lineage of the branch that it was handed over in (BRANCH-9).

    Where its message came with none, nothing is done. It may be called again: the first close stands. Raises
    ConfigurationError outside any scope and where the branch's store is not wrapped here or takes no writes,
    BlockingCallError on a running event loop, and what the store's client raises.
    """
    _check_may_block("antipode.close")
    close_scope(_needed_scope())


async def close_async() -> None:
    """`close` without blocking the event loop."""
    scope = _needed_scope()
    if scope.tasks:
        await asyncio.to_thread(close_scope, scope)


def close_scope(scope: Scope) -> None:
    """Closes the branches whose task a scope is."""
    for branch in scope.tasks:
        _write(branch, scope.additions())
        scope.has_closed(branch)


def _needed_scope() -> Scope:
    scope = current_scope()
    if scope is None:
        raise ConfigurationError(f"antipode.close() was called outside any scope. (site: {call_site()})", code="AP101")
    return scope


def _check_may_block(name: str) -> None:
    if _running_loop() is not None:
        raise BlockingCallError(
            f"{name}() was called on a running event loop and would stop every request on it.\n"
            f"  Use: await {name}_async(). (site: {call_site()})"
        )


def _write(branch: BranchId, lineage: Lineage) -> bool:
    """Close a branch; return False where it was not: it was closed before, or is switched off."""
    if settings().mode is Mode.OFF:
        return False
    store, table = _table(branch)
    if store.mode is Mode.OFF:
        return False
    life = row_life(branch)
    text = row_text(branch, lineage, store.options.lineage_out, life)
    is_first = table.close_branch(branch.id, text, life)
    if not is_first and lineage:
        logs.warn(
            "branch taken twice",
            f"{display.shown(str(branch))} was closed before, and what this task wrote is in no branch: its message "
            "came twice, or has several takers. Hand each of them a message of its own.",
            count_as="dropped",
            code="AP118",
        )
    elif not is_first:
        logs.info(
            "branch twice", f"{display.shown(str(branch))} was closed before: the first close stands.", code="AP118"
        )
    return is_first


def _table(branch: BranchId) -> tuple[Store, BranchTable]:
    store: Any = registry().get(branch.store)
    if store is None:
        raise ConfigurationError(
            f"{branch} cannot be closed: this process has not wrapped a client of {branch.store}", code="AP106"
        )
    table = table_of(store)
    if table is None:
        raise ConfigurationError(
            f"{branch} cannot be closed: {branch.store} is a store of the kind {store.kind} here, without branches",
            code="AP511",
        )
    return store, table
