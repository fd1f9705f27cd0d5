"""An in-process replicated store of positions with epochs and marks: the embedded default, and a test double.

It replicates a log from a primary to the other regions with a lag, and can freeze, heal, fail over with lost writes
and restart, as a real store does. Every wait goes through the same engine as for a real store.
"""

from __future__ import annotations

import itertools
import threading
import time
from collections.abc import Callable, Mapping, Sequence
from datetime import timedelta
from typing import Any, ClassVar, Final, NamedTuple
from uuid import uuid4

from antipode.epochs import judge_position
from antipode.errors import BarrierTimeout, BarrierUnproven, ConfigurationError
from antipode.lineage import EMPTY, Lineage
from antipode.reading import current_reading
from antipode.scope import current_scope
from antipode.settings import settings
from antipode.shim import (
    Capabilities,
    Server,
    Shim,
    StoreOptions,
    Visibility,
    join_store,
    unproven,
)
from antipode.shim import Store as RegisteredStore
from antipode.verdict import Verdict
from antipode.waiting import wait_for_server
from antipode.writeid import Ordered, WriteId

__all__ = ["Client", "MemoryShim", "Store"]

MARK_PERIOD_S: Final = 1.0
"""A mark is written when an epoch is first met, and at most so often while the primary writes."""


class _Entry(NamedTuple):
    """One record of the log: a write (value None deletes), or a mark `epoch -> counter` of what lies before it."""

    due: float
    epoch: str
    counter: int
    key: bytes
    value: bytes | None
    lineage: str
    mark: tuple[str, int] | None


class _Node:
    """One server: its data, the log that it has applied, and the marks in it."""

    def __init__(self, region: str, lag: float) -> None:
        self.region = region
        self.lag = lag
        self.frozen = False
        self.down = False
        self.source: _Node | None = None
        self.log: list[_Entry] = []
        self.applied_from_source = 0
        self.watchers: list[_MemoryWatch] = []
        self.boot()

    def boot(self) -> None:
        """The server's process starts: another instance, with what its log holds."""
        for watch in self.watchers:
            watch.replaced()
        self.instance = uuid4().hex[:16]
        self.data: dict[bytes, tuple[bytes, str]] = {}
        self.marks: dict[str, int] = {}
        self.ends: dict[str, int] = {}
        self.epoch = ""
        self.counter = 0
        for entry in self.log:
            self._apply(entry)

    def append(self, entry: _Entry) -> None:
        self.log.append(entry)
        self._apply(entry)

    def _apply(self, entry: _Entry) -> None:
        if entry.epoch != self.epoch and self.epoch:
            self.ends[self.epoch] = self.counter
        self.epoch, self.counter = entry.epoch, entry.counter
        if entry.mark is not None:
            epoch, counter = entry.mark
            self.marks[epoch] = max(counter, self.marks.get(epoch, -1))
        elif entry.value is None:
            self.data.pop(entry.key, None)
        else:
            self.data[entry.key] = (entry.value, entry.lineage)


class Store:
    """A replicated store in this process. The first region's server is the primary.

    `lag`: seconds from the primary's write until another region has it, for all of them or by region.
    """

    def __init__(
        self,
        name: str,
        *,
        regions: Sequence[str] = ("a", "b"),
        lag: float | timedelta | Mapping[str, float] = 0.0,
    ) -> None:
        if len(set(regions)) != len(regions) or not regions:
            raise ConfigurationError(f"regions={regions!r}: want different names, the primary's first")
        self.name = name
        self._lock = threading.RLock()
        self._changed = threading.Condition(self._lock)
        self._ticker: threading.Thread | None = None
        lags = lag if isinstance(lag, Mapping) else dict.fromkeys(regions[1:], _seconds(lag))
        self._nodes = {region: _Node(region, lags.get(region, 0.0)) for region in regions}
        self._primary = self._nodes[regions[0]]
        self._marked_at = -1e9
        self._begin_epoch()
        for node in self._nodes.values():
            if node is not self._primary:  # a replica begins as a copy of its primary
                self._follow(node)

    # What the application does

    def client(self, region: str, *, wait_on_read: bool = False, rest: str = "field") -> Client:
        """A client of one region's server, recorded and waited for under the store's name in this process."""
        node = self._node(region)
        joined = join_store(self.name, MemoryShim, StoreOptions(wait_on_read=wait_on_read, rest=rest))
        server = joined.use_server(_Target(self, node))
        return Client(self, node, joined, server)

    def register(self, *regions: str) -> None:
        """This process waits for the servers of these regions, and never reads."""
        targets = [_Target(self, self._node(region)) for region in regions]
        join_store(self.name, MemoryShim, StoreOptions(replicas=targets))

    # Faults

    def set_lag(self, region: str, lag: float | timedelta) -> None:
        """From now on writes reach this region after `lag` seconds."""
        with self._lock:
            self._node(region).lag = _seconds(lag)

    def freeze(self, region: str) -> None:
        """The link to this region carries nothing until `heal`."""
        with self._lock:
            self._catch_up()
            self._node(region).frozen = True

    def heal(self, region: str) -> None:
        """The link carries again, and what was held back arrives at once."""
        with self._lock:
            self._node(region).frozen = False
            self._changed.notify_all()
        self._tick()

    def promote(self, region: str, *, lose: int = 0) -> None:
        """This region's server becomes the primary, under a new epoch; the other servers follow it.

        The last `lose` writes of the old primary that it has not got yet are lost; with fewer such writes, what
        it has is cut back to lose as many. The old primary comes back as a replica with the new history.
        """
        with self._lock:
            self._catch_up()
            node = self._node(region)
            if node is self._primary:
                raise ConfigurationError(f"{region} is the primary already")
            log = list(self._primary.log)
            kept = len(log)
            if lose:
                writes = [place for place, entry in enumerate(log) if entry.mark is None]
                if len(writes) < lose:
                    raise ConfigurationError(f"lose={lose}: only {len(writes)} writes were made")
                kept = writes[-lose]
            node.log = log[:kept]
            node.frozen = False
            node.boot()
            self._primary, node.source = node, None
            self._begin_epoch()
            for other in self._nodes.values():
                if other is node:
                    continue
                other.log = self._common(other.log, node.log)
                other.source = node
                other.applied_from_source = len(other.log)
                other.boot()
        self._tick()

    def restart(self, region: str) -> None:
        """The server's process ends and starts again, with what it had."""
        with self._lock:
            self._catch_up()
            node = self._node(region)
            node.down = False
            node.boot()
            if node is self._primary:
                self._begin_epoch()
        self._tick()

    def stop(self, region: str) -> None:
        """The server refuses connections until `restart`."""
        with self._lock:
            self._catch_up()
            self._node(region).down = True

    # Inside

    def _follow(self, node: _Node) -> None:
        node.source = self._primary
        node.log = list(self._primary.log)
        node.applied_from_source = len(node.log)
        node.boot()

    @staticmethod
    def _common(log: list[_Entry], new: list[_Entry]) -> list[_Entry]:
        kept = 0
        for mine, theirs in zip(log, new, strict=False):
            if (mine.epoch, mine.counter) != (theirs.epoch, theirs.counter):
                break
            kept += 1
        return log[:kept]

    def _node(self, region: str) -> _Node:
        try:
            return self._nodes[region]
        except KeyError:
            raise ConfigurationError(f"no region {region!r} in {self.name}: {', '.join(self._nodes)}") from None

    def _begin_epoch(self) -> None:
        """A history with one writer begins; the mark of the one before lies behind all that survived of it."""
        node = self._primary
        node.down = False
        ended = (node.epoch, node.counter)
        self._counter = itertools.count(1)
        self._epoch = uuid4().hex[:16]
        if ended[0]:
            self._log(b"", None, "", mark=ended)
        self._mark()

    def _mark(self) -> None:
        self._marked_at = time.monotonic()
        self._log(b"", None, "", mark=(self._epoch, self._primary.counter if self._primary.epoch == self._epoch else 0))

    def _log(self, key: bytes, value: bytes | None, lineage: str, mark: tuple[str, int] | None = None) -> Ordered:
        counter = next(self._counter)
        self._primary.append(_Entry(time.monotonic(), self._epoch, counter, key, value, lineage, mark))
        return Ordered(self._epoch, counter)

    def write(self, node: _Node, key: bytes, value: bytes | None, lineage: str) -> Ordered:
        """Writes at a server, which has to be the primary; returns the position."""
        with self._lock:
            self._need_up(node)
            if node is not self._primary:
                raise PermissionError(f"{self.name}: the server in {node.region} is a read-only replica")
            position = self._log(key, value, lineage)
            if time.monotonic() - self._marked_at > MARK_PERIOD_S:
                self._mark()
            self._changed.notify_all()
        self._tick()
        return position

    def read(self, node: _Node, key: bytes) -> tuple[tuple[bytes, str] | None, Ordered]:
        """Reads at a server: the value with its lineage, and where the server is."""
        with self._lock:
            self._need_up(node)
            self._catch_up()
            return node.data.get(key), Ordered(node.epoch, node.counter)

    def _need_up(self, node: _Node) -> None:
        if node.down:
            raise ConnectionError(f"{self.name}: the server in {node.region} refuses connections")

    def _catch_up(self) -> float | None:
        """Applies at each replica what has arrived by now; the time at which the next record arrives."""
        now = time.monotonic()
        nearest: float | None = None
        for node in self._nodes.values():
            source = node.source
            if source is None or node.frozen or node.down:
                continue
            before = node.applied_from_source
            while node.applied_from_source < len(source.log):
                entry = source.log[node.applied_from_source]
                due = entry.due + node.lag
                if due > now:
                    nearest = due if nearest is None else min(nearest, due)
                    break
                node.append(entry)
                node.applied_from_source += 1
            if node.applied_from_source != before:
                for watch in list(node.watchers):
                    watch.on_change()
        return nearest

    def _tick(self) -> None:
        """Keeps a thread while somebody watches, which applies records when they are due."""
        with self._lock:
            watched = any(node.watchers for node in self._nodes.values())
            if watched and self._ticker is None:
                self._ticker = threading.Thread(target=self._run, name=f"memory-{self.name}", daemon=True)
                self._ticker.start()
            self._changed.notify_all()

    def _run(self) -> None:
        with self._lock:
            while any(node.watchers for node in self._nodes.values()):
                nearest = self._catch_up()
                self._changed.wait(1.0 if nearest is None else max(nearest - time.monotonic(), 0.0))
            self._ticker = None

    def watch(self, target: _Target, server: Server, on_change: Callable[[], None]) -> _MemoryWatch:
        """Calls `on_change` whenever something was applied at the server, and drops its proofs when it restarts."""
        with self._lock:
            self._need_up(target.node)
            watch = _MemoryWatch(target, server, on_change)
            target.node.watchers.append(watch)
        self._tick()
        return watch

    def judge(self, node: _Node, ids: Sequence[WriteId], server: Server) -> list[Visibility]:
        """What this server can prove of each write: by its position in the epoch, and by marks for ended ones."""
        with self._lock:
            self._need_up(node)
            self._catch_up()
            proved = {**node.marks, node.epoch: node.counter}
            for epoch, end in node.ends.items():
                proved[epoch] = max(end, proved.get(epoch, -1))
            server.applied(node.instance, node.epoch, proved)
            return [_judge(node, write_id) for write_id in ids]

    def epochs(self) -> list[tuple[str, int]]:
        """The epochs that the primary's marks speak of, with the greatest position before each mark."""
        with self._lock:
            return sorted(self._primary.marks.items())

    def settle(self, epoch: str, counter: int = 2**64 - 1) -> None:
        """The operator's word that a store holds an ended epoch up to a position: a mark."""
        with self._lock:
            self._log(b"", None, "", mark=(epoch, counter))
        self._tick()


def _judge(node: _Node, write_id: WriteId) -> Visibility:
    version = write_id.version
    if not isinstance(version, Ordered) or not write_id.is_position:
        return unproven("the memory store gives positions only")
    return judge_position(
        version.epoch, version.counter, current=node.epoch, applied=node.counter, marks=node.marks, known=node.ends
    )


class _Target(NamedTuple):
    """How the shim reaches a server: the store and the node."""

    store: Store
    node: _Node


class _MemoryWatch:
    def __init__(self, target: _Target, server: Server, on_change: Callable[[], None]) -> None:
        self._target, self._server, self.on_change = target, server, on_change

    def replaced(self) -> None:
        """The server has started again, perhaps with less than it had: what it proved before holds no more."""
        self._server.reset()
        self.on_change()

    def fileno(self) -> int | None:
        return None

    def pump(self) -> None:
        """Nothing to read: the store's own thread calls back."""

    def close(self) -> None:
        store, node = self._target
        with store._lock:
            if self in node.watchers:
                node.watchers.remove(self)
            store._changed.notify_all()


class MemoryShim(Shim):
    """The shim of `antipode.memory`."""

    kind: ClassVar[str] = "memory"
    capabilities: ClassVar[Capabilities] = Capabilities(
        versions="position", push=True, tombstones=True, rest=("field",), marks="in_band"
    )

    def visible(self, ids: Sequence[WriteId], server: Server) -> Sequence[Visibility]:
        target: _Target = server.target
        return target.store.judge(target.node, ids, server)

    def watch(self, server: Server, on_change: Callable[[], None]) -> _MemoryWatch:
        target: _Target = server.target
        return target.store.watch(target, server, on_change)

    def address(self, target: Any) -> str:
        return f"memory://{target.store.name}/{target.node.region}"


class Client:
    """A client of one server: `set`, `get`, `delete`. What it writes joins the current scope's lineage."""

    def __init__(self, store: Store, node: _Node, joined: RegisteredStore, server: Server) -> None:
        self._store = store
        self._node = node
        self._joined = joined
        self._server = server

    def set(self, key: str | bytes, value: str | bytes) -> None:
        """Writes a value; raises PermissionError at a replica."""
        self._write(_octets(key), _octets(value))

    def delete(self, key: str | bytes) -> None:
        """Deletes a key: a write like others."""
        self._write(_octets(key), None)

    def get(self, key: str | bytes) -> bytes | None:
        """Reads a value at this server. Inside `reading()` its lineage is collected, with `auto_merge` transferred."""
        reading = current_reading()
        scope = current_scope()
        if reading is not None and reading.after is not None:
            self._wait(reading.after)
        elif self._joined.options.wait_on_read and scope is not None:
            self._wait(scope.lineage)
        found, position = self._store.read(self._node, _octets(key))
        merges = scope is not None and settings().auto_merge and self._joined.records
        if reading is not None or merges:
            rest = EMPTY if found is None or not found[1] else Lineage.deserialize(found[1])
            depends = rest.including(WriteId(self._store.name, b"", position))
            if reading is not None:
                reading.saw(lineage=depends)
            if scope is not None and merges:
                scope.transfer(depends)
        return None if found is None else found[0]

    def _write(self, key: bytes, value: bytes | None) -> None:
        if not self._joined.records:
            self._store.write(self._node, key, value, "")
            return
        scope = current_scope()
        beside = scope.outgoing().serialize() if scope is not None and self._joined.options.rest == "field" else ""
        with self._joined.writing(key) as write:
            try:
                position = self._store.write(self._node, key, value, "" if beside == "1" else beside)
            except PermissionError:
                write.abandon()
                raise
            write.record(position)

    def _wait(self, lineage: Lineage) -> None:
        timeout = self._joined.timeout
        verdict = wait_for_server(self._server, lineage, timeout)
        if verdict is Verdict.VISIBLE:
            return
        words = f"{self._joined.name} at {self._server.address}: {verdict} after {timeout * 1000:.0f} ms (wait on read)"
        raise BarrierUnproven(words) if verdict is Verdict.UNPROVEN else BarrierTimeout(words)


def _octets(text: str | bytes) -> bytes:
    return text.encode() if isinstance(text, str) else bytes(text)


def _seconds(lag: float | timedelta | Mapping[str, float]) -> float:
    if isinstance(lag, timedelta):
        return lag.total_seconds()
    if isinstance(lag, Mapping):
        raise TypeError("want seconds")
    return float(lag)
