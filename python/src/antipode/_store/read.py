"""One read of a wrapped client: what it waits for, and who is told what it returned (spec SHIM-54).

A shim tells the core of each read once, before it is sent, and once what it returned:

    with client.read(server, keys=[key]) as read:
        read.wait()
        reply = native.get(key)
        read.returned(lambda: [ReadValue(key, version=reply.version, covers=reply.version, lineage=reply.lineage)])

The core decides from that what the read waits for, what `reading()` and automatic merging take, and what dry-run and a
recorded history are told. A read that waits for nothing and that nobody observes is `PLAIN`, one object for all.
"""

from __future__ import annotations

import time
import traceback
from collections.abc import Callable, Iterable, Sequence
from types import TracebackType
from typing import Any, Final, NamedTuple, Self

from antipode._base import logs
from antipode._base.observers import ReadNote, events
from antipode._base.otel_context import current_context
from antipode._base.settings import Mode, settings, settings_generation, timeout_of
from antipode._model.lineage import EMPTY, Lineage
from antipode._model.verdict import VISIBLE, Visibility
from antipode._model.write_id import WriteId
from antipode._scope.reading import Reading, reading_in
from antipode._scope.scope import Scope, current_scope
from antipode._store.contract import Server, Store
from antipode._store.store_options import StoreOptions
from antipode._store.wait_on_read import lineage_before, required_ids, wait_first, waited_in_vain

__all__ = ["PLAIN", "Keys", "Read", "ReadValue", "WrappedClient"]

Keys = Sequence[bytes] | Callable[[bytes], bool] | None
"""The keys that a read asks for, of a store of objects, or whether one may be among them; None where nobody knows.

Empty where dry-run has nothing to follow: what is read is no value, or a certain version, whatever the server has."""


class ReadValue(NamedTuple):
    """A value that a read found under one key, or that nothing is there."""

    key: bytes
    value: str | None = None
    """The value's digest, `GONE`, `THERE` (`antipode.shim`), or None where nobody knows."""
    version: WriteId | None = None
    """The write that the value itself is, exactly, where the value says so."""
    covers: WriteId | None = None
    """What covers the value in the lineage of whoever depends on it (SHIM-13)."""
    lineage: Lineage = EMPTY
    """What rests beside the value."""
    is_known: bool = True
    """Whether it is known what the value depends on; else such a lineage is incomplete in this store."""


class WrappedClient:
    """The store and options of one wrapped client and its copies, with the settings in force for them."""

    def __init__(self, store: Store, options: StoreOptions) -> None:
        self.store = store
        self.options = options
        """What this client was wrapped with; other clients of the store may differ."""
        self.generation = -1
        self.records = True
        """Whether anything is recorded at all: the mode is another one than off."""
        self.merges = False
        """Whether each read makes the scope depend on what was read."""
        self.waits = False
        """Whether each read first waits for the scope's writes."""
        self.follows = False
        """Whether the mode is dry-run."""
        self.notes = False
        """Whether a history is recorded."""
        self._is_plain = False

    def refresh(self) -> None:
        """Take the settings in force, if they have changed; a shim calls it before each call."""
        generation = settings_generation()
        if generation == self.generation:
            return
        mode, now = self.store.mode, settings()
        records = mode is not Mode.OFF
        merges = now.auto_merge and records
        waits = self.options.wait_on_read and mode is Mode.ENFORCE
        follows = mode is Mode.DRY_RUN
        notes = bool(now.history) and records
        if now.history and not records:
            events.on_store_joined(self.store)  # its reads are not recorded (HIST-31)
        # At once: two threads may be here, and what the one has seen must not stand under the other's number.
        self.__dict__.update(
            records=records,
            merges=merges,
            waits=waits,
            follows=follows,
            notes=notes,
            _is_plain=not (merges or waits or follows or notes),
            generation=generation,
        )

    def collects(self) -> bool:
        """Return whether somebody would want to know what a read depends on that is made here and now."""
        self.refresh()
        if not self.records:
            return False
        return reading_in(current_context()) is not None or (self.merges and current_scope() is not None)

    def reads_plainly(self) -> bool:
        """Return whether a read has nothing to do but to read: it waits for nothing, and nobody observes it."""
        if settings_generation() != self.generation:
            self.refresh()
        return (self._is_plain or not self.records) and reading_in(current_context()) is None

    @property
    def timeout(self) -> float:
        """How long a read of this client waits, in seconds."""
        return timeout_of(self.store.name, self.options.timeout)

    def read(self, server: Server | None = None, keys: Keys = None) -> Read:
        """Return a read that is about to be sent to this server (None: which one its reply will show)."""
        return PLAIN if self.reads_plainly() else Read(self, server, keys)


class Read:
    """One read, from before it is sent until its reply is there; as a block it ends with it."""

    __slots__ = ("_client", "_merged", "_notes", "_readings", "_since", "_timeout", "reading", "scope", "server")

    def __init__(
        self, client: WrappedClient, server: Server | None, keys: Keys = None, *, is_told: bool = True
    ) -> None:
        """is_told: whether dry-run and histories are told of it; not where a write reads."""
        self._client = client
        self.server = server
        self.reading: Reading | None = reading_in(current_context())
        self.scope: Scope | None = current_scope() if client.records else None
        self._merged = Reading() if client.merges and self.scope is not None else None
        self._readings = [each for each in (self.reading, self._merged) if each is not None]
        self._notes: Sequence[ReadNote] = ()
        if is_told and (client.notes or client.follows):
            self._notes = events.on_read_sent(self.scope, client.store, self.reading, keys)
        self._since = time.monotonic()
        self._timeout = -1.0

    @property
    def is_observed(self) -> bool:
        """Return whether anybody wants to know what it returns."""
        return bool(self._readings or self._notes)

    @property
    def collects(self) -> bool:
        """Return whether somebody wants to know what the values depend on: their versions and lineages at rest."""
        return bool(self._readings)

    @property
    def is_noted(self) -> bool:
        """Return whether dry-run or a history wants to know which values they are."""
        return bool(self._notes)

    # What it waits for

    @property
    def after(self) -> Lineage:
        """Return the lineage that the read has to come after; it has other stores' writes, too."""
        return lineage_before(self.reading, self.scope, waits=self._client.waits)

    def required(self) -> list[WriteId]:
        """Return what the read has to see first, of its own store: for shims that ask on its own connection.

        Raises BarrierTimeout or BarrierUnproven, by the policies, where the lineage spells the store otherwise
        (BAR-51).
        """
        return required_ids(self._client.store, self.after)

    def wait(self) -> None:
        """Block until the read's server shows what is required. Raise as a barrier does that waits in vain."""
        server = self.server
        assert server is not None
        wait_first(server, self._client.timeout, self.reading, self.scope, waits=self._client.waits)

    @property
    def timeout(self) -> float:
        """Return how long it may wait, from its beginning on and in seconds: the request's own deadline tightens it."""
        if self._timeout < 0:
            self._timeout = self._client.timeout
            if self.scope is not None and self.scope.deadline is not None:
                self._timeout = max(min(self._timeout, self.scope.deadline - self._since), 0.0)
        return self._timeout

    @property
    def deadline(self) -> float:
        """Return when its wait ends, by `time.monotonic`."""
        return self._since + self.timeout

    def refuse(self, answer: Visibility, where: str = "", *, is_past: bool = False) -> None:
        """Raise what the policies say of a read that waited in vain; return where it goes on.

        Args:
            answer: the last one of its server, and why.
            where: the server's address.
            is_past: what is to be read is of a moment that is past (SHIM-48).
        """
        name = self._client.store.name
        words = (
            f"{name}{f' at {where}' if where else ''}: {answer.reason}. The read waited for it "
            f"{self.timeout * 1000:.0f} ms at most"
        )
        waited_in_vain(name, words, time.monotonic() - self._since, answer, is_past=is_past)

    # What it returned

    def saw(self, *ids: WriteId, lineage: Lineage = EMPTY) -> None:
        """Add to the lineages that are collected: what covers a value, and what rests beside it."""
        for each in self._readings:
            each.saw(*ids, lineage=lineage)

    def mark(self) -> None:
        """Mark the lineages that are collected: a value was read, and nobody can tell what it depends on."""
        for each in self._readings:
            each.marked(self._client.store.name)

    def returned(
        self,
        values: Callable[[], Iterable[ReadValue]],
        *,
        covers: Sequence[WriteId] = (),
        shown: Callable[[], Any] | None = None,
        repeat: Callable[[], Any] | None = None,
    ) -> None:
        """Tell everybody what the read returned; never raise.

        Args:
            values: gives what it found, by key; called where anybody wants to know.
            covers: positions that cover all of it, where the store has positions (SHIM-13).
            shown: gives what is compared with what `repeat` gives (REC-13); neither where it is not read again.
            repeat: reads once more, on a connection of its own; called later by a thread of Antipode's.
        """
        if not self.is_observed:
            return
        try:
            found = list(values())
        except Exception:
            self._fail_telling(traceback.format_exc(limit=-2))
            return
        store = self._client.store.name
        for reading in self._readings:
            ids = [*covers, *(each.covers for each in found if each.covers is not None)]
            reading.saw(*ids, lineage=EMPTY)
            for each in found:
                if each.lineage is not EMPTY:
                    reading.saw(lineage=each.lineage)
                if not each.is_known:
                    reading.marked(store)
        notes, self._notes = self._notes, ()
        for note in notes:
            note.returned(self.server, found, covers if self._readings else (), shown, repeat)

    def _fail_telling(self, words: str) -> None:
        logs.warn("read", f"what a read of {self._client.store.name} returned could not be told: {words}", code="AP603")
        self.mark()
        self.fail(words)

    def fail(self, words: str = "") -> None:
        """Tell everybody that the read returned nothing; `words`: why that is a fault of ours. Never raise."""
        notes, self._notes = self._notes, ()
        for note in notes:
            note.fail(words)

    def end(self) -> None:
        """End the read: the scope depends on what it returned, where that is merged."""
        merged, self._merged = self._merged, None
        if merged is not None and self.scope is not None:
            self.scope.transfer_read(merged.lineage)
        self.fail()

    def __enter__(self) -> Self:
        return self

    def __exit__(self, kind: type[BaseException] | None, error: BaseException | None, at: TracebackType | None) -> None:
        self.end()


class _PlainRead(Read):
    """A read with nothing to do but to read."""

    __slots__ = ()
    is_observed = False
    collects = False
    is_noted = False
    after = EMPTY

    def __init__(self) -> None:
        self.server = None

    def required(self) -> list[WriteId]:
        return []

    def wait(self) -> None:
        pass

    def refuse(self, answer: Visibility = VISIBLE, where: str = "", *, is_past: bool = False) -> None:
        pass

    def saw(self, *ids: WriteId, lineage: Lineage = EMPTY) -> None:
        pass

    def mark(self) -> None:
        pass

    def returned(self, values: Callable[[], Iterable[ReadValue]], **_: Any) -> None:
        pass

    def fail(self, words: str = "") -> None:
        pass

    def end(self) -> None:
        pass

    def __exit__(self, *_: object) -> None:
        pass


PLAIN: Final = _PlainRead()
"""A read that waits for nothing, and that nobody observes."""
