"""The observer port: the lower rooms say what happens, and none of them knows who listens.

Telemetry, dry-run and history are observers; `antipode` adds them when it is imported. An event that no observer takes
is one call that does nothing, and one that a single observer takes is that observer's own method. The free path of a
barrier calls nobody: it adds to `barriers`.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Sequence
from typing import Any, Final, NamedTuple, Protocol

barriers: Final[Counter[str]] = Counter()
"""Barriers by outcome, the free ones included: plain integers, so that counting one costs a look-up."""


class Write(NamedTuple):
    """A write as observers have it: its store, and where it was begun as far as that is known."""

    store: str
    site: str


class WriteNote(Protocol):
    """What a recorded history is told of one write, from before it is sent; nothing here raises."""

    def changes(self, changed: Any) -> None:
        """Note what it does to which keys, in their order; none where it changed none. None: nobody knows."""

    def done(self, write_id: Any, key: bytes | str = b"") -> None:
        """Note that it has happened, with this identifier where there is one. key: the object's, where it is one's."""

    def unknown(self, key: bytes | str = b"") -> None:
        """Note that nobody knows whether it happened."""

    def not_done(self) -> None:
        """Note that it did not happen."""


class ReadNote(Protocol):
    """What an observer is told of one read, once, when it ends; nothing here raises, waits or asks a server."""

    def returned(
        self,
        server: Any,
        values: Sequence[Any],
        covers: Sequence[Any],
        shown: Callable[[], Any] | None,
        repeat: Callable[[], Any] | None,
    ) -> None:
        """Note what it returned, as `Read.returned` has it, from this server; None where nobody knows which."""

    def fail(self, words: str = "") -> None:
        """Note that it returned nothing. words: why nobody can tell, where that is a fault of ours."""


class Observer:
    """A listener to what the lower rooms say: it overrides the events that it wants; the others do nothing.

    Any thread may call it, also one that holds a scope's lock: it neither waits nor raises, and asks no scope for its
    lineage. Where an event gives something back, the first answer counts that says anything.
    """

    def on_request_begun(self) -> None:
        """Note that a request comes in or a barrier begins; the first of a process says what is in force (OBS-8)."""

    def on_scope_opened(self, kind: str) -> None:
        """Note that a scope of this kind was opened: `root`, `request`, `message`, `detached` …"""

    def on_write_begun(self, store: str) -> None:
        """Note that a write to this store begins; told where writes note their sites (dry-run)."""

    def on_lineage_dropped(self, reason: str, direction: str) -> None:
        """Note that a lineage was not believed or not understood (OBS-2)."""

    def on_lineage_incomplete(self, reason: str, store: str, scope: Any = None, *, is_recorded: bool = True) -> None:
        """Note that a lineage became incomplete in this process.

        Args:
            reason: one of OBS-2.
            store: what it is incomplete in; empty for anywhere.
            scope: whose lineage it is, where that is not the current one.
            is_recorded: whether dry-run makes a record of it (REC-17); it does not where another record says so.
        """

    def on_incomplete_lineage_received(self, store: str, scope: Any) -> None:
        """Note that a lineage which came in was incomplete in this store already (REC-17)."""

    def on_lineage_sized(self, direction: str, length: int) -> None:
        """Note that a lineage of so many bytes went in this direction."""

    def on_lineage_passed_on(self, scope: Any, target: str) -> None:
        """Note that a scope's lineage leaves with a call to this host (REC-18); told in dry-run alone."""

    def on_lineage_left_early(self, site: str, uncommitted: Sequence[Write]) -> None:
        """Note that a lineage left at this site before the commit of its own task's writes (SCOPE-18)."""

    def on_write_concurrent(self, site: str, write: Write) -> None:
        """Note that a lineage left while another task's write was in flight (SCOPE-18); told in dry-run alone."""

    def on_write_lost(self, reason: str, store: str, site: str) -> None:
        """Note that no scope has a write: made outside any (`orphan`), or after its scope had ended (`closed`)."""

    def on_write_late(self, store: str, site: str) -> None:
        """Note that a write was made after the response's header had left (PROP-16)."""

    def on_fallback(self, outcome: str) -> None:
        """Note that a fallback read was `run` or `refused`."""

    def on_server_asked(self, store: str, purpose: str) -> None:
        """Note that a server was asked because somebody waits: `wait`, `probe` or `mark`."""

    def on_marks_missing(self, store: str, reason: str | None) -> None:
        """Note why this process may not mark a store's epochs; None: it may."""

    def on_lineage_arrived(self, scope: Any, lineage: Any) -> None:
        """Note that a lineage came by another way than a message, a value or a copy of a scope (HIST-33)."""

    def on_lineage_received(self, scope: Any, messages: Sequence[str], lineage: Any) -> None:
        """Note that these messages came, with a lineage that names them; or one of somebody who records nothing."""

    def on_message_named(self) -> str:
        """Return the name of a message that leaves, for its lineage to bear (HIST-30); empty: it has none."""
        return ""

    def on_lineage_sent(self, scope: Any, message: str, lineage: Any) -> None:
        """Note that a message leaves with this lineage, which names it."""

    def on_scopes_joined(self, ended: Any, scope: Any) -> None:
        """Note that what one scope depends on goes into another of this process."""

    def on_store_joined(self, store: Any) -> None:
        """Note that the process has one store more."""

    def on_settings_changed(self) -> None:
        """Note that code has changed the settings; told where a history is recorded."""

    def on_write_sent(self, scope: Any, store: Any, lineage: Any) -> WriteNote | None:
        """Return what is told of a write that is about to be sent; told where a history is recorded."""
        return None

    def on_read_sent(self, scope: Any, store: Any, reading: Any, keys: Any) -> Sequence[ReadNote]:
        """Return those who are told what a read returns that is about to be sent; told in dry-run and histories."""
        return ()

    def on_barrier_recorded(self, plan: Any, site: str) -> Sequence[Any]:
        """Follow a barrier's writes with nobody waiting (dry-run); return the needs that are looked for."""
        return ()

    def on_barrier_enforced(self) -> None:
        """Note that a barrier waited for all that it was asked for, and passed (REC-26)."""

    def on_barrier_waited(self, plan: Any, result: Any, needs: Sequence[Any], outcome: str) -> None:
        """Note what came of a barrier that had to wait (OBS-1)."""

    def on_throttle_made(self, throttle: Any) -> None:
        """Note that the process has one throttle more (chapter THR)."""

    def on_request_throttled(self, throttle: str, outcome: str, waited: float) -> None:
        """Note what became of a request that asked for a permit, and how long it waited for it, in seconds."""


_EVENTS: Final = tuple(name for name in vars(Observer) if name.startswith("on_"))
_observers: list[Observer] = []
events: Final = Observer()
"""What is called: each event goes to those who take it."""


def add(observer: Observer) -> None:
    """Have an observer take its events from now on."""
    _observers.append(observer)
    for name in _EVENTS:
        own = [getattr(each, name) for each in _observers if getattr(type(each), name) is not getattr(Observer, name)]
        if own:
            setattr(events, name, own[0] if len(own) == 1 else _notes(own) if name == "on_read_sent" else _all(own))


def _all(own: Sequence[Callable[..., Any]]) -> Callable[..., Any]:
    def tell(*args: Any, **options: Any) -> Any:
        answers = [each(*args, **options) for each in own]
        return next(filter(None, answers), answers[0])

    return tell


def _notes(own: Sequence[Callable[..., Sequence[ReadNote]]]) -> Callable[..., Sequence[ReadNote]]:
    return lambda *args: [note for each in own for note in each(*args)]
