"""Scopes: the lineage of one request, message or task, held by the OpenTelemetry Context (spec SCOPE)."""

from __future__ import annotations

import threading
import weakref
from collections.abc import Callable, Collection, Iterator
from contextlib import contextmanager
from typing import Any, Final

from antipode._base.call_site import call_site
from antipode._base.observers import events
from antipode._model.branch_ids import WITHIN, BranchId, taken_out, without_branches
from antipode._model.lineage import EMPTY, Lineage
from antipode._model.scope_values import MOST_CHANGES, BarrierObservation, Change, Delivery, Gap, Removal, in_order
from antipode._model.write_id import WriteId
from antipode._scope import lost_writes, unflushed_changes
from antipode._scope.context import activate, held_scope, this_process
from antipode._scope.open_streams import ExpectedStreams
from antipode._scope.pending_write import PendingWrite, PositionCache, apply_on_pending, current_task

__all__ = ["Scope", "current_scope", "open_scope"]
_ENDED: Final = Gap("unscoped", "", "this scope has ended, and what goes on in it may depend on another's writes")


class Scope:
    """What one request, message or task depends on. Joins are atomic: its threads and tasks share it.

    It closes when the middleware or callback that opened it ends, or by `stop`; what is appended later is dropped
    and counted, with a warning that names the site.
    """

    def __init__(self, lineage: Lineage = EMPTY, *, kind: str = "root", delivery: Delivery | None = None) -> None:
        """`kind` says what opened it (root, request, message, detached), for findings."""
        self.kind = kind
        events.on_scope_opened(kind)
        self.delivery = delivery
        self.deadline: float | None = None
        """`time.monotonic()` at which the request itself gives up; tightens every barrier in it."""
        self.sent = False
        """Whether the response's header has left: what is written now comes too late for the caller."""
        self.session_came = EMPTY
        """What `session.join_from` has joined (SESS-14)."""
        self.proof: Any = None
        """What the last barrier proved, kept by the barrier for its free path."""
        self.looks: BarrierObservation | None = None
        """Of the last barrier in dry-run (REC-27)."""
        self.site = kind if kind == "request" else call_site()
        self.endpoint: Callable[[], str] | None = None
        """Of a request: its route as the framework knows it by now, `GET /posts/{post}`; never the path (REC-8)."""
        self.queue = ""
        """Of a message: the logical name of the store that it came from, where a shim knows it."""
        self.strand: Any = None
        """What a recorded history keeps of it."""
        self._lock = threading.RLock()
        self._own: dict[bytes, BranchId] = {}
        """The branches that this scope is in: it never holds one of them (BRANCH-7)."""
        self._tasks: list[BranchId] = []
        """Those of them that `close` closes: this is their task."""
        lineage = self._entered(lineage)
        if lineage:
            lost_writes.know_lineage()
        self._held = lineage
        self._top: PositionCache | None = None
        """What the last write of a position put on top of it, if nothing has come since."""
        self._inbound = lineage
        self._changes: list[Change] = []
        self._most_changes = MOST_CHANGES
        self._removed = EMPTY
        self._removed_stores: set[str] = set()
        self._pending: dict[int, PendingWrite] = {}
        self.streams = ExpectedStreams()
        """Those whose lineage comes at their end."""
        self._gaps: list[Gap] = []
        self._passed_at: tuple[str, ...] = ()
        self._closed = False
        self._stopped = False
        self._holds = 0
        self._outer: Scope | None = None
        self._within: weakref.ref[Scope] | None = None
        self.process = this_process()
        """The process that it was opened in."""

    # Reading it

    @property
    def lineage(self) -> Lineage:
        """Return the lineage to hand on or to store: a store with a write in flight is marked (SCOPE-20)."""
        unflushed_changes.look(self)
        if not self._pending:
            return self.recorded_lineage
        with self._lock:
            stores = sorted({write.store for write in self._pending.values()})
            return self.recorded_lineage.marked_incomplete(*stores) if stores else self.recorded_lineage

    @property
    def recorded_lineage(self) -> Lineage:
        """Return the recorded writes, for Antipode itself: nothing says here that others are in flight.

        It is incomplete anywhere while a response stream brings messages before it (PROP-28), and where it is that of
        a scope which is current though it has ended (SCOPE-34).
        """
        # Asked before: a stream's lineage is joined before the stream goes.
        if (self._closed or self.streams.open) and self.passing_gaps:
            with self._lock:
                return self._lineage.marked_incomplete()
        top = self._top
        if top is None or top.counter == top.base:
            return self._held
        with self._lock:
            return self._lineage

    @property
    def _lineage(self) -> Lineage:
        """The same, under the lock."""
        top = self._top
        if top is not None and top.counter != top.base:
            self._held = held = top.at(top.counter)
            self._top = PositionCache(held, top.store, top.epoch, top.counter)
        return self._held

    @_lineage.setter
    def _lineage(self, lineage: Lineage) -> None:
        self._held = lineage
        self._top = None
        if lineage:
            lost_writes.know_lineage()

    @property
    def closed(self) -> bool:
        """Whether it has ended."""
        return self._closed

    @property
    def gaps(self) -> tuple[Gap, ...]:
        """Why its lineage is not complete, as far as this process knows."""
        return (*self._gaps, *self.passing_gaps)

    @property
    def passing_gaps(self) -> tuple[Gap, ...]:
        """What it lacks as things are now: of messages in hand the lineage has not come, or it ended and is current."""
        gaps = tuple(Gap(stream.reason, "", stream.detail) for stream in self.streams.in_hand)
        return (*gaps, _ENDED) if self._closed and current_scope() is self else gaps

    def outgoing(self) -> Lineage:
        """The lineage as it may leave with a request, message or response: marked, and `on_pending` applied.

        Raises PendingWriteError with `on_pending=raise` where a write of this very task has not been committed.
        """
        if not self.has_pending:
            return self.recorded_lineage
        uncommitted = self.published_before_commit()
        if uncommitted:
            apply_on_pending(uncommitted)
        lost_writes.in_flight(write for write in self.pending if write not in uncommitted)
        return self.lineage

    def changed_stores(self) -> tuple[str, ...]:
        """Return the stores whose sections changed here, the oldest change first (WIRE-33)."""
        with self._lock:
            self._changes = in_order(self._changes)
            return tuple(store for store in self._changes if isinstance(store, str))

    def _changed(self, change: Change) -> None:
        changes = self._changes
        changes.append(change)
        if len(changes) > self._most_changes:
            self._changes = in_order(changes)
            self._most_changes = MOST_CHANGES + 2 * len(self._changes)

    def additions(self) -> Lineage:
        """What this scope has beyond what it was opened with: what a response carries back (PROP)."""
        lineage = self.lineage
        return EMPTY if lineage is self._inbound else lineage.added_to(self._inbound)

    # Changing it

    def append(self, *ids: WriteId) -> None:
        """Add writes to the lineage (paper table 2); a closed scope drops and counts them, and is marked (SCOPE-4)."""
        if self._own:
            ids = tuple(write_id for write_id in ids if write_id.key not in self._own)
        if not ids:
            return
        with self._lock:
            closed = self._closed
            if closed:
                self._lineage = self._lineage.marked_incomplete(*(write_id.store for write_id in ids))
            else:
                self._lineage = self._lineage.including(*ids)
                for write_id in ids:
                    self._changed(write_id.store)
        if closed:
            lost_writes.of_closed_scope(ids[0].store, self.site)
        elif self.sent:
            lost_writes.after_header(ids[0].store)

    def transfer(self, lineage: Lineage) -> None:
        """Makes this scope depend on a lineage (paper table 2): of an earlier request, a session, carried by hand."""
        self._join(lineage, filtered=False)
        events.on_lineage_arrived(self, lineage)

    def bring(self, lineage: Lineage) -> None:
        """Join what a session brought at the scope's beginning: it only passes through (WIRE-33)."""
        self._join(lineage, filtered=False, passing=True)
        events.on_lineage_arrived(self, lineage)

    def transfer_read(self, lineage: Lineage) -> None:
        """Makes this scope depend on what was read: a recorded history has that by the read itself (HIST-33)."""
        self._join(lineage, filtered=False)

    def merge(self, lineage: Lineage) -> None:
        """Joins what came in by a response: without what was removed from this scope before (SCOPE)."""
        self._join(lineage, filtered=True)

    @property
    def brought(self) -> bool:
        """Whether the request or message itself brought a lineage."""
        return bool(self._inbound) and self.kind in ("request", "message")

    def passed_at(self, site: str) -> bool:
        """Notes that the lineage left at this site; whether that is the first time (REC-18)."""
        first = site not in self._passed_at
        if first:
            self._passed_at += (site,)
        return first

    def receive(self, lineage: Lineage) -> None:
        """Joins what the request or message itself brought: it is not sent back with the response."""
        with self._lock:
            lineage = self._entered(lineage)
            if self._own:
                self._lineage = without_branches(self._lineage, self._own)
            closed = self._closed
            if not closed:
                self._lineage |= self._filtered(lineage)
                self._inbound |= lineage
            elif lineage:
                self._lineage = self._lineage.marked_incomplete(*(lineage.stores if lineage.is_complete() else ()))
        if closed and lineage:
            lost_writes.of_closed_scope(next(iter(lineage.stores), ""), self.site)

    def _join(self, lineage: Lineage, *, filtered: bool, passing: bool = False) -> None:
        if not lineage:
            return
        if lineage.extensions:
            lineage = taken_out(lineage)[0]  # a response or value makes nobody a task
        if self._own:
            lineage = without_branches(lineage, self._own)
        with self._lock:
            closed = self._closed
            if closed:
                self._lineage = self._lineage.marked_incomplete(*(lineage.stores if lineage.is_complete() else ()))
            else:
                before = self._lineage
                self._lineage |= self._filtered(lineage) if filtered else lineage
                if not passing and self._held is not before:
                    self._changed((before, self._held))
        if closed:
            lost_writes.of_closed_scope(next(iter(lineage.stores), ""), self.site)

    def _filtered(self, lineage: Lineage) -> Lineage:
        """What comes in by itself, without what was removed from this scope (LIN-24)."""
        for store in self._removed_stores:
            lineage = lineage.without(store)
        return lineage.without(self._removed) if self._removed else lineage

    def remove(self, what: WriteId | str | Lineage | None = None, *, incomplete: bool = False) -> Removal:
        """Takes out a write, a whole store with its mark of incompleteness, or what a lineage covers.

        It holds for the scope: a response does not bring it back. With `incomplete=True` the application vouches
        that nothing is missing, and every mark goes. Returns what was taken out, and which writes a position in
        the scope still covers (they cannot be taken out alone).
        """
        with self._lock:
            before = self._lineage
            after = before if what is None else before.without(what)
            if incomplete:
                after = after.vouched()
                self.streams.vouch()
            taken = before.beyond(after)
            self._lineage = after
            self._removed |= taken
            if isinstance(what, str):
                self._removed_stores.add(what)
            elif isinstance(what, Lineage):
                self._removed |= what.vouched()
            elif what is not None:
                self._removed = self._removed.including(what)
        wanted = [what] if isinstance(what, WriteId) else list(what) if isinstance(what, Lineage) else []
        return Removal(taken, tuple(write_id for write_id in wanted if write_id in after))

    def mark_incomplete(self, reason: str, *stores: str, detail: str = "") -> None:
        """Records that something which belonged here is missing, in these stores or anywhere (LIN, SCOPE)."""
        with self._lock:
            self._lineage = self._lineage.marked_incomplete(*stores)
        for store in stores or ("",):
            self.note_gap(reason, store, detail)
            events.on_lineage_incomplete(reason, store)

    def note_gap(self, reason: str, store: str = "", detail: str = "") -> None:
        """Keeps a reason for the barrier's `gaps` without marking the lineage (an untrusted one was dropped)."""
        with self._lock:
            if len(self._gaps) < 100:
                self._gaps.append(Gap(reason, store, detail))

    # Branches (spec BRANCH)

    def _entered(self, lineage: Lineage) -> Lineage:
        """What a text brought, as this scope may hold it: it names the branches that the scope is in."""
        if lineage.extensions:
            lineage, tasks, within = taken_out(lineage)
            for branch in tasks:
                self.be_task_of(branch)
            self._own.update((branch.key, branch) for branch in within)
        return without_branches(lineage, self._own) if self._own else lineage

    def be_task_of(self, branch: BranchId) -> None:
        """This scope is the task of a branch: it never holds it, and closes it."""
        self._own[branch.key] = branch
        self._tasks.append(branch)

    @property
    def tasks(self) -> tuple[BranchId, ...]:
        """The branches whose task this is, and that it has not closed."""
        return tuple(self._tasks)

    @property
    def own_branches(self) -> frozenset[bytes]:
        """The keys of the branches that this scope is in."""
        return frozenset(self._own)

    def within(self, lineage: Lineage) -> Lineage:
        """A lineage as it goes to whom the task calls: in the same branches (BRANCH-6)."""
        if not self._own:
            return lineage
        return lineage.with_extensions([*lineage.extensions, *(b.extension(WITHIN) for b in self._own.values())])

    def has_closed(self, branch: BranchId) -> None:
        """The row of a branch is written: what this scope writes now comes too late for it, and is counted."""
        with self._lock:
            if branch in self._tasks:
                self._tasks.remove(branch)
            self.sent = True

    def resolve(self, closed: Lineage, found: Lineage) -> None:
        """Puts the lineages of closed branches in the place of the branches (BRANCH-12)."""
        with self._lock:
            if self._closed:
                return
            found = without_branches(taken_out(found)[0], self._own)
            before = self._lineage
            self._lineage = before.without(closed) | self._filtered(found)
            self._changed((before, self._held))

    def drop_branches(self, keys: Collection[bytes]) -> None:
        """Takes branches out: they were withdrawn (BRANCH-5)."""
        with self._lock:
            self._lineage = without_branches(self._lineage, keys)

    # Writes in flight

    def begin(self, write: PendingWrite) -> None:
        """Notes a write that is in flight; until it ends, copies that leave are marked incomplete."""
        lost_writes.know_lineage()
        with self._lock:
            self._pending[id(write)] = write

    def enter(self, write: PendingWrite) -> None:
        """`begin`, for a write that is to remember the lineage as it is now."""
        lost_writes.know_lineage()
        with self._lock:
            top = write._top = self._top
            if top is None:
                write._lineage = self._held
            else:
                write._at = top.counter
            self._pending[id(write)] = write

    def end(self, write: PendingWrite) -> None:
        """The write has its identifier, or is known not to have happened."""
        with self._lock:
            self._pending.pop(id(write), None)

    def raised(self, write: PendingWrite, epoch: str, counter: int) -> bool:
        """The common write: its position goes onto that of the write before, and nothing else came between.

        False where it is another case, and nothing was done.
        """
        with self._lock:
            top = self._top
            if (
                top is None
                or write._top is not top
                or top.store != write.store
                or top.epoch != epoch
                or top.counter > counter
                or self._closed
                or self.sent
            ):
                return False
            top.counter = counter
            self._pending.pop(id(write), None)
        return True

    def written(self, write: PendingWrite, write_id: WriteId) -> None:
        """The write has this identifier: `append` and `end` in one step."""
        with self._lock:
            closed = self._closed
            store, key, version = write_id
            if closed:
                self._lineage = self._lineage.marked_incomplete(store)
            else:
                lineage = self._lineage = self._lineage.including(write_id)
                self._changed(store)
                if not key:
                    epoch, counter = version  # type: ignore[misc]  # a position's version is Ordered
                    if lineage.only_position(store, epoch) == counter:
                        self._top = PositionCache(lineage, store, epoch, counter)
            self._pending.pop(id(write), None)
        if closed:
            lost_writes.of_closed_scope(write_id.store, self.site)
        elif self.sent:
            lost_writes.after_header(write_id.store)

    @property
    def pending(self) -> tuple[PendingWrite, ...]:
        """The writes that are in flight now, those of unknown outcome included."""
        unflushed_changes.look(self)
        with self._lock:
            return tuple(self._pending.values())

    @property
    def has_pending(self) -> bool:
        """Return whether a write is in flight, or of unknown outcome; without the lock, for who looks often."""
        unflushed_changes.look(self)
        return bool(self._pending)

    def published_before_commit(self) -> tuple[PendingWrite, ...]:
        """The pending writes of the calling task itself: what leaves now leaves before their commit (SCOPE)."""
        task = current_task()
        return tuple(write for write in self.pending if write.task == task and not write.unknown)

    def open_within(self, outer: Scope | None) -> None:
        """Note the scope that is current where this one begins; not kept alive: a chain of tasks has no end."""
        if outer is not None:
            self._within = weakref.ref(outer)

    def is_within(self, other: Scope) -> bool:
        """Return whether it was opened while the other one was current, or while one within that was."""
        each: Scope | None = self
        while each is not None and each is not other:
            each = None if each._within is None else each._within()
        return each is not None

    # Ending it

    def stop(self) -> None:
        """Ends the scope (paper table 2); a detached one lives on until the work that carries it has ended."""
        if self.process is not this_process():
            return  # the parent's: another of its threads may hold the lock for ever here
        self.streams.give_up_dropped()
        with self._lock:
            self._stopped = True
            self._closed = self._holds == 0

    def hold(self) -> None:
        """Keeps a detached scope open for work that carries it."""
        with self._lock:
            self._holds += 1

    def release(self) -> None:
        """The work that carried the scope has ended; the last one closes a scope that was stopped meanwhile."""
        if self.process is not this_process():
            return
        with self._lock:
            self._holds -= 1
            self._closed = self._stopped and self._holds == 0

    def discard_implausible(self, write_id: WriteId, detail: str) -> None:
        """Drops an entry that cannot be true, and marks its store: what it absorbed is lost (LIN)."""
        with self._lock:
            self._lineage = self._lineage.without(write_id)
        events.on_lineage_dropped("implausible", "write")
        self.mark_incomplete("implausible", write_id.store, detail=detail)

    def __repr__(self) -> str:
        state = "closed" if self._closed else "open"
        return f"<Scope {self.kind} {state} {self.lineage.serialize()}>"


current_scope: Final[Callable[[], Scope | None]] = held_scope
"""Return the scope of the running request, message or task; None outside any."""


@contextmanager
def open_scope(lineage: Lineage = EMPTY, *, kind: str = "root", delivery: Delivery | None = None) -> Iterator[Scope]:
    """Opens a scope for the block and closes it at its end: what middlewares and consumers use."""
    scope = Scope(lineage, kind=kind, delivery=delivery)
    scope.open_within(current_scope())
    with activate(scope):
        try:
            yield scope
        finally:
            scope.stop()
