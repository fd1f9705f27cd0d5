"""Reads that dry-run follows: was the server behind, and was what it returned stale (spec REC-6, REC-12 to REC-15).

A shim asks `followed_read` before it sends a read, and tells what it got by `over`:

    followed = followed_read(store) if store.dry_run else None
    value = …
    if followed is not None:
        followed.over(server, lambda: value, repeat=lambda: …)
"""

from __future__ import annotations

import functools
import time
import traceback
from collections.abc import Callable, Mapping, Sequence
from typing import Any, Final, ParamSpec, TypeVar

from opentelemetry import trace

from antipode._base import logs
from antipode._base.call_site import call_site
from antipode._base.observers import Observer, ReadNote
from antipode._base.otel_context import current_context
from antipode._base.settings import settings
from antipode._diagnostics import telemetry
from antipode._diagnostics.dryrun import counts, following, records, repeats
from antipode._diagnostics.dryrun.following import FollowedWrite
from antipode._diagnostics.history.digests import digest
from antipode._engine.pending_wait import JudgedServer, judged_server
from antipode._model.lineage import Lineage
from antipode._model.scope_values import BarrierObservation
from antipode._model.wire import hashed_key, is_hashed
from antipode._model.write_id import Ordered, Version, WriteId
from antipode._scope.reading import Reading
from antipode._scope.scope import Scope, current_scope
from antipode._store.contract import Server
from antipode._store.read import Keys, ReadValue
from antipode._store.store import Store

__all__ = ["FollowedRead", "followed_read", "quietly"]

_MOST_OBJECTS: Final = 16
"""Entries of objects that one read is followed for, at most, where the shim does not know which keys it reads."""

Value = Callable[[], Any]
_P = ParamSpec("_P")
_R = TypeVar("_R")


def quietly(function: Callable[_P, _R]) -> Callable[_P, _R | None]:
    """What follows a read never raises into the application that reads: it returns None then, and says so in a log."""

    @functools.wraps(function)
    def call(*args: _P.args, **options: _P.kwargs) -> _R | None:
        try:
            return function(*args, **options)
        except Exception:
            logs.warn("followed read", f"a read could not be followed: {traceback.format_exc(limit=-2)}", code="AP603")
            return None

    return call


@quietly
def followed_read(
    store: Store, reading: Reading | None = None, keys: Sequence[bytes] | Callable[[bytes], bool] | None = None
) -> FollowedRead | None:
    """Called before a read of a store in dry-run is sent; None where nothing follows it. Never raises.

    `keys`: of a store of objects, those that are read, as write identifiers name them, or whether one may be among them
    (a list by its prefix); None where nobody knows.
    """
    counts.add(counts.CounterKey("reads", "", store.name))
    records.start()
    span = trace.get_current_span(current_context())
    if not records.is_sampled(span.get_span_context()):
        return None
    scope = current_scope()
    if reading is not None and reading.after is not None:
        lineage: Lineage = reading.after
    elif scope is not None:
        lineage = scope.recorded_lineage
    else:
        return None
    ids = lineage.of_store(store.name)
    if callable(keys):
        ids = [each for each in ids if each.is_position or is_hashed(each.key) or keys(each.key)]
    elif keys is not None:
        named = {*keys, *map(hashed_key, keys)}
        ids = [write_id for write_id in ids if write_id.is_position or write_id.key in named]
    if not ids:
        return None
    site = call_site()
    about = records.head("behind", time.time()) | {"site": site, "origin": records.origin(scope)}
    return FollowedRead(store, ids[:_MOST_OBJECTS], about, span, None if scope is None else scope.looks)


class FollowedRead:
    """One read that is followed: what its lineage wants to see of the store."""

    def __init__(
        self,
        store: Store,
        ids: Sequence[WriteId],
        about: records.Record,
        span: trace.Span,
        looks: BarrierObservation | None = None,
    ) -> None:
        """`looks`: those of the last barrier of its scope."""
        self._looks = looks
        self._store = store
        self._ids = ids
        self._about = about
        self._span = span
        self._site: str = about["site"]
        self._digest: bytes | None = None
        self._repeat: Value | None = None
        self._seen: tuple[WriteId, Version] | None = None
        """The entry that the value itself is older than, and the value's version (confirmed: version)."""

    @quietly
    def over(
        self,
        server: Server,
        value: Value | None = None,
        *,
        repeat: Value | None = None,
        versions: Mapping[bytes, Version] | None = None,
    ) -> None:
        """The reply has come from this server. Never raises, never waits.

        `value`: what it was, to be compared with what `repeat` returns, which a thread of Antipode's may call later.
        `versions`: the exact versions of the values that came, by the keys of their write identifiers.
        """
        named = {name: version for key, version in (versions or {}).items() for name in (key, hashed_key(key))}
        wanted = [write_id for write_id in self._ids if not self._shown(write_id, named.get(write_id.key))]
        now = time.monotonic()
        judged = judged_server(server)
        if all(_held(judged, write_id, now) for write_id in wanted):
            self._count("followed_reads")
            return
        if self._looks is not None and self._looks.hold(server.address, wanted):
            self._about["barrier"] = self._looks.site
        if self._seen is None and value is not None and repeat is not None and settings().repeat_reads:
            self._digest = digest(value())
            self._repeat = None if self._digest is None else repeat
        if following.follow([(judged, write_id) for write_id in wanted], self._followed) is not None:
            self._count("followed_reads")

    def returned(
        self,
        server: Server | None,
        values: Sequence[ReadValue],
        covers: Sequence[WriteId],
        shown: Value | None,
        repeat: Value | None,
    ) -> None:
        """Go on with what `Read.returned` tells; a read of a server that nobody knows is followed no more."""
        exact = {each.key: each.version.version for each in values if each.version is not None}
        if server is not None:
            self.over(server, shown, repeat=repeat, versions=exact)

    def fail(self, words: str = "") -> None:
        """Give it up: nothing came that could be stale."""

    def _shown(self, write_id: WriteId, version: Version | None) -> bool:
        """Whether the value that was read is itself this write, or a later one of its object."""
        wanted = write_id.version
        if version is None or write_id.is_position:
            return False
        if wanted == version:
            return True
        if not isinstance(wanted, Ordered) or not isinstance(version, Ordered) or wanted.epoch != version.epoch:
            return False
        if version.counter < wanted.counter:
            self._seen = (write_id, version)
        return version.counter > wanted.counter

    def _count(self, what: str) -> None:
        counts.add(counts.CounterKey(what, telemetry.bounded(self._site), self._store.name))

    def _followed(self, writes: Sequence[FollowedWrite]) -> None:
        """Everything is seen, or given up; called by the engine's thread, which must not wait for a repeat."""
        late = [write for write in writes if write.late]
        if self._seen is not None:
            self._record("stale", writes, "version")
        elif late:
            again = self._repeat
            seen = all(write.visible_after is not None for write in writes)
            if (
                again is None
                or not seen
                or not repeats.later(lambda: self._differs(again), functools.partial(self._compared, late))
            ):
                self._record("behind", late)
        elif not all(write.there_at_once for write in writes):
            self._count("unjudged_reads")

    def _differs(self, again: Value) -> bool:
        """Reads again, and says whether the result is another one now."""
        now = digest(again())
        return now is not None and now != self._digest

    def _compared(self, late: Sequence[FollowedWrite], differs: bool) -> None:
        if differs:
            self._record("stale", late, "repeat")
        else:
            self._record("behind", late)

    def _record(self, kind: str, writes: Sequence[FollowedWrite], confirmed: str = "") -> None:
        self._count(kind)
        telemetry.finding(kind, self._site)
        about = self._about | {
            "kind": kind,
            "store": self._store.name,
            "store_kind": self._store.kind,
            "server": writes[0].server.address,
            "visible_after": records.visible_after(writes),
        }
        about |= {"confirmed": confirmed} if confirmed else {}
        records.event(about, self._span)
        records.put(about | self._positions(writes))

    def _positions(self, writes: Sequence[FollowedWrite]) -> records.Record:
        """What was wanted and what was there, of the entry that was seen last."""
        if self._seen is not None:
            wanted, seen = self._seen[0].version, self._seen[1]
            return _position("wanted", wanted) | _position("seen", seen)
        last = max(writes, key=lambda write: float("inf") if write.visible_after is None else write.visible_after)
        version = last.write_id.version
        if not isinstance(version, Ordered):
            return {}
        seen_at = {} if last.at is None else _position("seen", Ordered(version.epoch, last.at))
        return _position("wanted", version) | seen_at


class FollowedReads(Observer):
    """Follows the reads of stores in dry-run."""

    def on_read_sent(
        self, scope: Scope | None, store: Store, reading: Reading | None, keys: Keys
    ) -> Sequence[ReadNote]:
        """Follow it, where it is in the sample (REC-12)."""
        followed = followed_read(store, reading, keys) if store.dry_run and keys != () else None
        return () if followed is None else (followed,)


def _held(server: JudgedServer, write_id: WriteId, now: float) -> bool:
    version = write_id.version
    return write_id.is_position and isinstance(version, Ordered) and server.holds(version.epoch, version.counter, now)


def _position(name: str, version: Version) -> records.Record:
    """A position or version as records have it; a mark is none of theirs (REC-8)."""
    if not isinstance(version, Ordered):
        return {}
    return {name: {"epoch": version.epoch, "counter": str(version.counter)}}
