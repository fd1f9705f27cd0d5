"""One write that a shim makes to a store, from before it is sent until it is in the scope's lineage (spec SCOPE)."""

from __future__ import annotations

from types import TracebackType
from typing import Protocol

from antipode._base import logs
from antipode._base.observers import WriteNote, events
from antipode._base.settings import settings
from antipode._model.lineage import EMPTY
from antipode._model.write_id import Opaque, Ordered, Version, WriteId
from antipode._scope.lost_writes import begun_outside, orphan
from antipode._scope.pending_write import PendingWrite
from antipode._scope.scope import Scope, current_scope


class WriteStore(Protocol):
    """What a write needs of its store."""

    @property
    def name(self) -> str: ...

    @property
    def gives_positions(self) -> bool: ...

    def write_id(self, key: bytes | str, version: Version) -> WriteId: ...


class Write(PendingWrite):
    """One write to a store, from before it is sent until its version is known."""

    __slots__ = ("_key", "_open", "_others", "_scope", "_store", "noted")

    def __init__(self, store: WriteStore, key: bytes | str) -> None:
        super().__init__(store.name)
        self._store = store
        self._key = key
        self._open = True
        self._others: list[Write] | None = None
        """The same write in other scopes: each has its own pending write, and one end ends all (SCOPE-24)."""
        self._scope: Scope | None = current_scope()
        if self._scope is None:
            begun_outside(self)
        else:
            self._scope.enter(self)
        self.noted: WriteNote | None = None
        if settings().history:
            self.noted = events.on_write_sent(self._scope, store, self.lineage)
        """What a recorded history is told of it."""

    def join_scope(self) -> None:
        """Make the write pending in the current scope, too, unless it is so already (SCOPE-24).

        To be called before each further command of a transaction, pipeline or batch, which several scopes may share.
        """
        scope = current_scope()
        if scope is not self._scope and scope not in [other._scope for other in self._others or ()]:
            self._others = [*(self._others or ()), Write(self._store, self._key)]

    def join_committer(self) -> None:
        """Make the write pending in the current scope, which is about to execute or commit it (SCOPE-24).

        To be called before that is sent: the scopes that queued it may have ended. Outside any scope it says nothing.
        """
        if current_scope() is not None:
            self.join_scope()

    @property
    def scope(self) -> Scope | None:
        """Return the scope that it is pending in; None where it was begun outside any."""
        return self._scope

    @property
    def parts(self) -> tuple[Write, ...]:
        """Return the pending writes of all its scopes, this one among them."""
        return (self, *(self._others or ()))

    def _take_others(self) -> list[Write]:
        others, self._others = self._others or [], None
        return others

    @property
    def is_open(self) -> bool:
        """Whether nothing has been said yet of what became of it."""
        return self._open

    def record(self, version: Version, key: bytes | str | None = None) -> None:
        """The write has this version: an object's with a key, a position where the store's shim gives positions.

        key: of which object, where only the answer said it.
        """
        store = self._store
        if key is not None:
            self._key = key
        if store.gives_positions and isinstance(version, Ordered):
            write_id = WriteId.position(store.name, version.epoch, version.counter)
        else:
            write_id = store.write_id(self._key, version)
        if self._scope is None:
            orphan(store.name)
        else:
            if not write_id.key and self.lineage is not EMPTY:
                self._check_plausible(write_id)
            self._scope.written(self, write_id)
        self._open = False
        if self.noted is not None:
            self.noted.done(write_id, self._key)
        if self._others:
            for other in self._take_others():
                other.record(version, key)

    def record_position(self, position: tuple[str, int]) -> None:
        """`record` for a store that gives positions (epoch, counter); as cheap as can be."""
        scope = self._scope
        if scope is not None and scope.raised(self, position[0], position[1]):
            self._open = False
            if self.noted is not None:
                self.noted.done(WriteId.position(self.store, *position))
            if self._others:
                for other in self._take_others():
                    other.record_position(position)
        else:
            self.record(Ordered(*position))

    def record_upper_bound(self, version: Ordered) -> None:
        """A write that changed nothing takes where the store is now, without the check of plausibility (LIN)."""
        write_id = WriteId.position(self._store.name, version.epoch, version.counter)
        if self._scope is None:
            orphan(self._store.name)
        else:
            self._scope.append(write_id)
        self._end()
        if self.noted is not None:
            self.noted.done(write_id)
        for other in self._take_others():
            other.record_upper_bound(version)

    def record_incomplete(self, reason: str, detail: str = "") -> None:
        """The write happened, and its version cannot be had: the lineage is incomplete for the store."""
        if self._scope is None:
            orphan(self._store.name)
        else:
            self._scope.mark_incomplete(reason, self._store.name, detail=detail)
        self._end()
        if self.noted is not None:
            self.noted.done(None, self._key)
        for other in self._take_others():
            other.record_incomplete(reason, detail)

    def abandon(self) -> None:
        """The write is known not to have happened (a rollback, a refusal by the server)."""
        self._end()
        if self.noted is not None:
            self.noted.not_done()
        for other in self._take_others():
            other.abandon()

    def outcome_unknown(self) -> None:
        """Nobody knows whether the write happened: it stays pending, and what leaves stays marked (SCOPE)."""
        if self._open:
            self._open = False
            self.unknown = True
            if self.noted is not None:
                self.noted.unknown(self._key)
            for other in self._take_others():
                other.outcome_unknown()

    def close(self) -> None:
        """Ends a write that was neither recorded nor abandoned: its version is missing."""
        if self._open:
            self.record_incomplete("pending", "the shim did not say which version the write had")

    def _end(self) -> None:
        """The write is pending no more: last of all, or a copy that left before would lack it unmarked (SCOPE-14)."""
        self._open = False
        if self._scope is not None:
            self._scope.end(self)

    def _check_plausible(self, write_id: WriteId) -> None:
        """A lineage that reached a writer before its write cannot hold a greater position than the write got (LIN)."""
        if self._scope is None or self.lineage is EMPTY:
            return
        version = write_id.version
        if isinstance(version, Opaque):
            return
        only = self.lineage.only_position(self._store.name, version.epoch)
        if only is not None and only <= version.counter:
            return
        if self.lineage.section_text(self._store.name) is None:
            return
        for known in self.lineage.of_store(self._store.name):
            other = known.version
            if (
                known.is_position
                and isinstance(other, Ordered)
                and other.epoch == version.epoch
                and other.counter > version.counter
            ):
                detail = f"position {other} came in before a write that got {version}"
                self._scope.discard_implausible(known, detail)
                logs.warn(
                    f"implausible {self._store.name}",
                    f"dropped an impossible entry of {self._store.name}: {detail}. It is forged, or the store was "
                    "rolled back.",
                    code="AP407",
                )

    def __enter__(self) -> Write:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        if error is not None:
            self.outcome_unknown()
        self.close()
