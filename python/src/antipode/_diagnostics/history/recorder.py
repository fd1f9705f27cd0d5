"""Records a history: what this process's scopes write, read, send and receive (spec HIST-23 to HIST-33).

It is an observer: `Read` tells it of reads, `Write` of writes, the propagation of what is sent and received.
"""

from __future__ import annotations

import atexit
import functools
import hashlib
import hmac
import os
import secrets
import socket
import threading
import time
import traceback
from collections.abc import Callable, Iterable, Sequence
from typing import TYPE_CHECKING, Any, Concatenate, Final, NamedTuple, ParamSpec, TypeVar

from opentelemetry import trace

from antipode._base import logs
from antipode._base.observers import Observer, ReadNote
from antipode._base.settings import settings
from antipode._diagnostics.history.order import Line, Order, Step, Strand
from antipode._diagnostics.history.writer import HistoryWriter
from antipode._model.lineage import EMPTY, Lineage
from antipode._model.wire import hashed_key
from antipode._model.write_id import WriteId
from antipode._store.read import Keys, ReadValue

if TYPE_CHECKING:
    from antipode._scope.reading import Reading
    from antipode._scope.scope import Scope
    from antipode._store.store import Store

__all__ = [
    "GONE",
    "THERE",
    "History",
    "KeyChange",
    "ReadEvent",
    "Recorder",
    "WriteEvent",
    "note_read",
    "note_write",
    "noting",
    "recorder",
    "value_digest",
]

GONE: Final = "gone"
"""In place of a value's digest: nothing is there."""
THERE: Final = "there"
"""In place of a value's digest: something is there, and its version says what."""
_LONGEST_KEY: Final = 1024
_EXIT_S: Final = 5.0
_P = ParamSpec("_P")
_R = TypeVar("_R")


class KeyChange(NamedTuple):
    """What a write did to one key."""

    key: bytes
    value: str | None = None
    """The digest of the value that the key has from now on, `GONE`, `THERE`, or None where nobody knows."""
    expires: bool = False
    """Whether it may go by itself."""
    late_version: bool = False
    """Whether the value may have stood there for a time under the version of another write (HIST-35)."""


def value_digest(store: str, key: bytes, value: bytes) -> str:
    """Names a value within one key of a store: two keys with one value cannot be told by it (HIST-29)."""
    return hmac.new(store.encode() + b"\0" + key, value, hashlib.sha256).hexdigest()[:32]


def _safely(function: Callable[Concatenate[Recorder, _P], _R]) -> Callable[Concatenate[Recorder, _P], _R | None]:
    """Recording never raises into the application; what went wrong is a gap of the history (HIST-24)."""

    @functools.wraps(function)
    def call(self: Recorder, /, *args: _P.args, **options: _P.kwargs) -> _R | None:
        try:
            with self._lock:
                return function(self, *args, **options)
        except Exception:
            self.failed(traceback.format_exc(limit=-2))
            return None

    return call


class Recorder:
    """The recording of this process: its name, its file, and the scopes that are in it."""

    def __init__(self, folder: str) -> None:
        self.folder = folder
        self._pid = os.getpid()
        self._lock = threading.RLock()
        self._scopes = 0
        self._unread: set[str] = set()
        tag = secrets.token_hex(4)
        host = socket.gethostname()
        service = os.environ.get("OTEL_SERVICE_NAME", "") or host
        file = f"{host}-{self._pid}-{int(time.time())}-{tag}.jsonl"
        self._writer = HistoryWriter(folder, file, self._gap)
        self._order = Order(f"{service}:{self._pid}:{tag}", f"{tag}z", self._writer.put)
        self._writer.put(self._order.line("begin", "recording"))
        atexit.register(self.end)

    # What shims and the core tell

    def write(self, scope: Scope | None, store: Store, lineage: Lineage) -> WriteEvent | None:
        """A write is about to be sent."""
        self.not_read(store)
        step = self._begin(scope, lineage)
        return None if step is None else WriteEvent(self, store, step)

    def read(self, scope: Scope, store: Store) -> ReadEvent | None:
        """A read is about to be sent."""
        step = self._begin(scope, scope.recorded_lineage)
        return None if step is None else ReadEvent(self, store, step)

    @_safely
    def sent(self, scope: Scope, message: str, lineage: Lineage) -> None:
        """A message leaves with this lineage, which names it."""
        self._order.instant(self._strand(scope), "send", lineage, message=message)

    @_safely
    def received(self, scope: Scope, messages: Sequence[str], lineage: Lineage) -> None:
        """A message came, with a lineage that names it; or with one of somebody who records nothing."""
        strand = self._strand(scope)
        for message in messages:
            self._order.instant(strand, "receive", None, message=message)
        if not messages:
            self._order.instant(strand, "receive", lineage, message=f"stranger-{self._order.new_id()}")

    @_safely
    def joined(self, ended: Scope, scope: Scope) -> None:
        """What one scope depends on goes into another of this process."""
        self._order.joined(self._strand(ended), self._strand(scope))

    @_safely
    def not_read(self, store: Store) -> None:
        """Says once of a store that its reads are not recorded, which may hide violations (HIST-31)."""
        shim = store.shim
        if store.name in self._unread or shim.capabilities.tap or (shim.notes_reads and store.records):
            return
        self._unread.add(store.name)
        why = store.kind if store.records else "its mode is off"
        self._writer.put(self._gap(f"reads of {store.name} are not recorded ({why})", 0))

    def look_at_stores(self) -> None:
        """Says of each store that its reads are not recorded, where that is so now."""
        from antipode._store.store import registry

        for store in registry().all():
            self.not_read(store)

    def new_message(self) -> str:
        """A name for a message."""
        with self._lock:
            return self._order.new_id()

    # Within

    @_safely
    def _begin(self, scope: Scope | None, lineage: Lineage) -> Step:
        strand = self._new_strand("no scope") if scope is None else self._strand(scope)
        return self._order.begin(strand, lineage)

    @_safely
    def finish(self, step: Step, lines: Iterable[tuple[str, Line]], certain: bool = True) -> None:
        """An operation has ended."""
        self._order.end(step, lines, certain=certain)

    def _strand(self, scope: Scope) -> Strand:
        found = scope.strand
        if not isinstance(found, tuple) or found[0] is not self:
            found = scope.strand = (self, self._new_strand(scope.kind))
        strand: Strand = found[1]
        return strand

    def _new_strand(self, kind: str) -> Strand:
        self._scopes += 1
        context = trace.get_current_span().get_span_context()
        return Strand(f"{kind} {self._scopes}", f"{context.trace_id:032x}" if context.is_valid else "")

    def _gap(self, reason: str, count: int) -> Line:
        line = self._order.line("gap", "recording", reason=reason)
        return line | {"count": count} if count else line

    def failed(self, words: str) -> None:
        """An operation is missing; `words` say to a log what went wrong. Never raises."""
        logs.warn("history recorder", f"an operation could not be recorded: {words}", code="AP602")
        try:
            self._writer.put(self._gap("an operation could not be recorded", 1))
        except Exception:
            logs.logger.debug("nor could that be said")

    def end(self) -> None:
        """The process ends: its file says that it is whole (HIST-25). Takes some seconds at most, and comes again."""
        if os.getpid() == self._pid:
            self._writer.put(self._order.line("end", "recording"))
            self._writer.flush(_EXIT_S)

    def flush(self, timeout: float = _EXIT_S) -> bool:
        """Waits until what was recorded so far is on disk."""
        return self._writer.flush(timeout)


class WriteEvent:
    """One write, from before it is sent until it is known what became of it."""

    __slots__ = ("_changed", "_recorder", "_step", "_store")

    def __init__(self, recorder: Recorder, store: Store, step: Step) -> None:
        self._recorder = recorder
        self._store = store
        self._step = step
        self._changed: Sequence[KeyChange] | None = None

    def changes(self, changed: Sequence[KeyChange] | None) -> None:
        """What it does to which keys, in their order; nothing where it changed none. None: nobody knows."""
        self._changed = changed

    def done(self, write_id: WriteId | None, key: bytes | str = b"") -> None:
        """It has happened, with this identifier where there is one. key: the object's, where it is one's."""
        self._finish(write_id, key, {})

    def unknown(self, key: bytes | str = b"") -> None:
        """Nobody knows whether it happened."""
        if self._changed != ():
            self._finish(None, key, {"outcome": "unknown"})
        else:
            self.not_done()

    def not_done(self) -> None:
        """It did not happen."""
        self._recorder.finish(self._step, ())

    def _finish(self, write_id: WriteId | None, key: bytes | str, fields: Line) -> None:
        store, changed = self._store, self._changed
        octets = key.encode("utf-8", "surrogateescape") if isinstance(key, str) else key
        if changed is None and octets and not store.gives_positions:
            changed = (KeyChange(octets),)
        fields = fields | {"store": store.name}
        if write_id is not None:
            fields["identifier"] = Lineage((write_id,)).serialize()
        if changed is None:
            told = [{"key": "", "any_key": True}]
        else:
            told = [_changed(each) for each in changed] or [{"key": "", "nothing": True}]
        self._recorder.finish(self._step, [("write", fields | each) for each in told], "outcome" not in fields)


class ReadEvent:
    """One read, from before it is sent until its reply is there."""

    __slots__ = ("_recorder", "_step", "_store")

    def __init__(self, recorder: Recorder, store: Store, step: Step) -> None:
        self._recorder = recorder
        self._store = store
        self._step = step

    def returned(
        self, server: Any, values: Sequence[ReadValue], covers: Sequence[WriteId], shown: Any, repeat: Any
    ) -> None:
        """Record what `Read.returned` tells."""
        try:
            self.over(values, covers)
        except Exception:
            self.fail(traceback.format_exc(limit=-2))

    def fail(self, words: str = "") -> None:
        """Record nothing of it; where that is a fault of ours, that an operation is missing."""
        self.failed()
        if words:
            self._recorder.failed(words)

    def over(self, seen: Sequence[ReadValue], covers: WriteId | Sequence[WriteId] | None = None) -> None:
        """The reply has come. covers: the positions that go into the lineage of whoever depends on it (SHIM-13)."""
        fields: Line = {"store": self._store.name}
        if covers:
            fields["covers"] = Lineage((covers,) if isinstance(covers, WriteId) else covers).serialize()
        self._recorder.finish(self._step, [("read", fields | _seen(each)) for each in seen])

    def failed(self) -> None:
        """There is no reply."""
        self._recorder.finish(self._step, ())


def _changed(each: KeyChange) -> Line:
    fields: Line = {"key": spelled_key(each.key)}
    if each.value == THERE:
        fields["there"] = True
    elif each.value is not None:
        fields["value"] = None if each.value == GONE else each.value
    if each.expires:
        fields["expires"] = True
    if each.late_version:
        fields["late_version"] = True
    return fields


def _seen(each: ReadValue) -> Line:
    fields: Line = {"key": spelled_key(each.key)}
    if each.version is not None:
        fields["version"] = Lineage((each.version,)).serialize()
    if each.value is not None:
        fields["value"] = None if each.value == GONE else each.value
    elif each.version is None:
        fields["reads_from"] = "unattributed"
    return fields


def spelled_key(key: bytes) -> str:
    """A key as histories have it; the hashed form of one that is too long, or under `hash_keys` (HIST-34)."""
    if settings().hash_keys:
        return hashed_key(key).decode()
    text = key.decode("utf-8", "backslashreplace")
    return text if len(text) <= _LONGEST_KEY else hashed_key(key).decode()


# For shims and the core


def noting(function: Callable[_P, _R]) -> Callable[_P, _R | None]:
    """What tells a history of an operation never raises into the application: what went wrong is a gap (HIST-24)."""

    @functools.wraps(function)
    def call(*args: _P.args, **options: _P.kwargs) -> _R | None:
        try:
            return function(*args, **options)
        except Exception:
            found = recorder()
            if found is not None:
                found.failed(traceback.format_exc(limit=-2))
            return None

    return call


def note_write(scope: Scope | None, store: Store, lineage: Lineage | None = None) -> WriteEvent | None:
    """A write is about to be sent; None where no history is recorded. Never raises.

    `lineage`: what its scope carries, if not what it has now.
    """
    found = recorder()
    if found is None:
        return None
    if lineage is None:
        lineage = EMPTY if scope is None else scope.recorded_lineage
    return found.write(scope, store, lineage)


def note_read(store: Store, scope: Scope | None) -> ReadEvent | None:
    """A read is about to be sent; None where no history is recorded, or outside of scopes. Never raises."""
    found = recorder()
    return None if found is None or scope is None or not store.records else found.read(scope, store)


class History(Observer):
    """Tells the recording in force of what the lower rooms say."""

    def on_write_sent(self, scope: Scope | None, store: Store, lineage: Lineage) -> WriteEvent | None:
        """Begin it."""
        return note_write(scope, store, lineage)

    def on_read_sent(
        self, scope: Scope | None, store: Store, reading: Reading | None, keys: Keys
    ) -> Sequence[ReadNote]:
        """Begin it."""
        noted = note_read(store, scope)
        return () if noted is None else (noted,)

    def on_lineage_arrived(self, scope: Scope, lineage: Lineage) -> None:
        """Record that a stranger sent it (HIST-33)."""
        found = recorder() if lineage else None
        if found is not None:
            found.received(scope, (), lineage)

    def on_lineage_received(self, scope: Scope, messages: Sequence[str], lineage: Lineage) -> None:
        """Record it."""
        if (found := recorder()) is not None:
            found.received(scope, messages, lineage)

    def on_message_named(self) -> str:
        """Return a name that is new."""
        found = recorder()
        return "" if found is None else found.new_message()

    def on_lineage_sent(self, scope: Scope, message: str, lineage: Lineage) -> None:
        """Record it."""
        if (found := recorder()) is not None:
            found.sent(scope, message, lineage)

    def on_scopes_joined(self, ended: Scope, scope: Scope) -> None:
        """Record it."""
        if (found := recorder()) is not None:
            found.joined(ended, scope)

    def on_store_joined(self, store: Store) -> None:
        """Say of it that its reads are not recorded, where that is so (HIST-31)."""
        if (found := recorder()) is not None:
            found.not_read(store)

    def on_settings_changed(self) -> None:
        """Look at the stores: one may be off from now on, or for a while (HIST-31)."""
        if _current is not None and _current.folder == settings().history:
            _current.look_at_stores()


def recorder() -> Recorder | None:
    """The recording in force; None where there is none."""
    folder = settings().history
    if not folder:
        return None
    found = _current
    return found if found is not None and found.folder == folder else _open(folder)


def end() -> None:
    """The process ends, or soon will: what was recorded is on disk."""
    if _current is not None:
        _current.end()


def flush() -> None:
    """Waits until what was recorded so far is on disk."""
    if _current is not None:
        _current.flush()


def forget() -> None:
    """Ends the recording; the next one is another (tests)."""
    global _current
    with _opening:
        found, _current = _current, None
    if found is not None:
        found.end()
        atexit.unregister(found.end)


def after_fork() -> None:
    """In the child of a fork: the recording stayed with the parent."""
    global _current, _opening
    _current, _opening = None, threading.Lock()


def _open(folder: str) -> Recorder | None:
    global _current
    with _opening:
        if _current is None or _current.folder != folder:
            if _current is not None:
                _current.end()
            try:
                _current = Recorder(folder)
                _current.look_at_stores()
            except Exception:
                logs.warn("history recorder", f"no history is recorded: {traceback.format_exc(limit=-2)}", code="AP602")
                return None
        return _current


_opening = threading.Lock()
_current: Recorder | None = None
