"""One write, from before it is sent until its position is in the scope."""

from __future__ import annotations

from asyncio import _get_running_loop as _running_loop
from threading import get_ident
from typing import TYPE_CHECKING, Any

from antipode import EMPTY, Lineage, Ordered, WriteId, current_scope
from antipode.shim import (
    Write,
    begun_outside,
    current_context,
    current_reading,
    current_task,
    lineage_beside,
    logs,
    note_write,
    noted_site,
    reading_in,
    scope_in,
)
from redis.exceptions import BusyLoadingError, NoPermissionError, NoScriptError, ReadOnlyError, ResponseError

from antipode_redis.binding import Binding
from antipode_redis.info import parse, position_of_primary

if TYPE_CHECKING:
    from antipode_redis.reads import ReadCall


class WriteCall(Write):
    """A command, a pipeline or a transaction that may write: pending in the scope until it ends."""

    __slots__ = ("beside", "binding", "certain", "deferred", "doubtful", "reached", "read", "reply", "wait")

    def __init__(self, binding: Binding, certain: bool) -> None:
        # As the classes above do it, in one step: this is on the path of every write.
        context = current_context()
        self._scope = scope = scope_in(context)
        self._store = store = binding.store
        self._key = b""
        self._open = True
        self._others = None
        self.store = store.name
        self._lineage = EMPTY
        self._top = None
        self.task = get_ident() if _running_loop() is None else current_task()
        self.site = noted_site(store.name) if binding.sites else ""
        self.unknown = False
        self.read = reading_in(context) is not None
        """Whether it was begun where somebody collects what values depend on."""
        self.binding = binding
        self.certain = certain
        """Flagged as a write by the server: an error reply says that nothing was changed."""
        self.deferred = False
        """Part of a MULTI that the application sent by hand: that one's EXEC ends it."""
        self.reached = False
        """Whether anything may have left for the server."""
        self.doubtful = False
        """Whether an attempt ended so that nobody knows what the server did."""
        self.beside: Any = None
        """What the envelopes of the values held that the command answered with (a GETSET, a GETDEL)."""
        self.wait: ReadCall | None = None
        """What the command waits for before it is sent, because its reply may hold data (SHIM-44)."""
        self.reply: Any = None
        """The answer to the question behind the write: bytes, or the error."""
        if scope is None:
            begun_outside(self)
        else:
            scope.enter(self)
        self.noted = note_write(scope, store, self.lineage) if binding.notes else None

    def stand_for(self, other: WriteCall) -> None:
        """Another write of the same MULTI ends as this one does: in a scope of its own it stays pending (SCOPE-24)."""
        if any(part._scope is other._scope for part in self.parts):
            other.abandon()
        else:
            self._others = [*(self._others or ()), other]

    def broke(self, error: BaseException) -> None:
        """An attempt failed; redis-py may make another."""
        refused = isinstance(error, BusyLoadingError) or isinstance(error.__context__, ReadOnlyError)
        if not refused and not isinstance(error, ResponseError):
            self.doubtful = True

    def done(self, response: Any) -> None:
        """The client returns this to the application, which no error of ours takes it from (SHIM-2)."""
        try:
            self._done(response)
        except Exception as error:
            logs.logger.exception("a write to %s was executed, and could not be recorded [AP517]", self.store)
            self.record_incomplete("pending", f"it could not be recorded: {error!r}")

    def _done(self, response: Any) -> None:
        if self.deferred or not self._open:
            return
        if self.beside:
            self._read_beside()
        reply = self.reply
        position = position_of_primary(reply) if type(reply) is bytes else None
        marker = self.binding.marker
        if position is None or (marker.facts is not None and marker.facts.cluster):
            position = self._without_position(reply)
            if position is None:
                return
        marker.position = position
        if not marker.dirty or marker.epoch != position[0]:
            marker.wrote(position)
        if response:
            self.record_position(position)
        else:
            # It may have changed nothing (a DEL of no key): where the store is now covers it all the same.
            self.record_upper_bound(position)
        reading = current_reading()
        if reading is not None:
            reading.saw(WriteId(self.binding.store.name, b"", position))

    def failed(self, error: BaseException) -> None:
        """The client raises this to the application."""
        if self.deferred or not self._open:
            return
        if self.doubtful:
            self.outcome_unknown()
        elif isinstance(error, ResponseError | BusyLoadingError) and self._nothing_happened(error):
            self.abandon()
        elif self.reply is not None:
            self.done(None)
        elif not self.reached or isinstance(error.__context__, ReadOnlyError):
            self.abandon()
        elif isinstance(error, ResponseError):
            self.record_incomplete("pending", "an error came, and no position behind it")
        else:
            self.outcome_unknown()

    def _nothing_happened(self, error: BaseException) -> bool:
        if self.certain:
            return True
        # A script is not rolled back: what it wrote before its error stays.
        return isinstance(error, NoScriptError | NoPermissionError | ReadOnlyError | BusyLoadingError)

    def _read_beside(self) -> None:
        """The command read values, too: what these depend on."""
        binding, reading = self.binding, current_reading()
        if binding.envelopes is None or (reading is None and not binding.merges):
            return
        self._depends_on(binding.envelopes.lineage(self.beside))

    def _depends_on(self, lineage: Lineage) -> None:
        """Give whoever collects what a value depends on that the command read."""
        reading = current_reading()
        if reading is not None:
            reading.saw(lineage=lineage)
        for part in self.parts if self.binding.merges else ():
            if part._scope is not None:
                part._scope.transfer_read(lineage)

    def _without_position(self, reply: Any) -> Ordered | None:
        """Records why the write has no position, if it was one; or finds it after all, by a full look."""
        binding = self.binding
        if binding.unfit:
            self._incomplete("cluster", binding.unfit)
        elif isinstance(reply, ResponseError):
            binding.denied(str(reply))
            self._incomplete("rights", str(reply))
        elif reply is None:
            if not binding.may_ask:
                self._incomplete("rights", binding.why_denied)
            else:
                self._incomplete("pending", "the connection broke before the write's position came")
        else:
            return self._odd(reply)
        return None

    def _odd(self, reply: Any) -> Ordered | None:
        try:
            now = parse(reply)
        except ValueError as error:
            self._incomplete("pending", str(error))
            return None
        if now.primary and now.backlog:
            return now.position
        if not now.primary and now.read_only and not self.certain:
            self._depends_on(_covered(self.binding.store.name, now.position))
            self.abandon()  # a script that only read, at a server that takes no writes
        elif not now.primary and now.read_only:
            self._incomplete("replica", "the server became a replica behind the write")
        elif not now.primary:
            self._incomplete("replica", "a writable replica took it: no replication carries it")
        else:
            name = self.binding.store.name
            self.binding.say(
                "backlog",
                f"writes to {name} get no position and are recorded as incomplete: {self.binding.target.address} has "
                "no replica and no backlog yet. Attach a replica.",
                code="AP516",
            )
            self._incomplete("backlog", "the primary has no replication backlog, so its offset stands still")
        return None

    def _incomplete(self, reason: str, detail: str) -> None:
        self.record_incomplete(reason, detail)
        reading = current_reading()
        if reading is not None:  # what it answered with may be data
            reading.marked(self.binding.store.name)

    def lineage_beside(self) -> Lineage:
        """Return what may rest beside this write's value: its scopes as they are now, other writes in flight marked."""
        parts = self.parts
        current = current_scope()
        scopes = [part._scope for part in parts] if current is None else [current, *(part._scope for part in parts)]
        lineage = EMPTY
        for scope in dict.fromkeys(scopes):
            lineage |= lineage_beside(scope, self, self.binding.options.lineage_out)
        return lineage


def _covered(store: str, position: Ordered | None) -> Lineage:
    return EMPTY.marked_incomplete(store) if position is None else Lineage([WriteId(store, b"", position)])
