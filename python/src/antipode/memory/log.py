"""The embedded store: servers that replicate a log from a primary, and the faults that can be made to happen."""

from __future__ import annotations

import heapq
import itertools
import threading
import time
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from datetime import timedelta
from typing import Final
from uuid import uuid4

from antipode._model.errors import ConfigurationError
from antipode._model.write_id import Opaque, Ordered, Version
from antipode._store.hybrid_clock import HybridClock
from antipode.memory.monkey import Choose, Monkey, SeededChoice, StaleRead
from antipode.memory.node import Cell, Entry, Node, Versions, Watcher

MARK_PERIOD_S: Final = 1.0
"""A mark is written when an epoch is first met, and at most so often while the primary writes."""
DELETED: Final = "deleted-"
"""What an opaque mark of a deletion begins with."""


class ReplicatedLog:
    """Servers of one store in this process, and their faults. The first region's server is the primary."""

    def __init__(
        self,
        name: str,
        *,
        regions: Sequence[str] = ("a", "b"),
        lag: float | timedelta | Mapping[str, float] = 0.0,
        versions: Versions = "position",
        monkey: bool | Choose = False,
        seed: int = 0,
    ) -> None:
        if len(set(regions)) != len(regions) or not regions:
            raise ConfigurationError(f"regions={regions!r}: want different names, the primary's first", code="AP501")
        if versions not in ("position", "object", "opaque"):
            raise ConfigurationError(f"versions={versions!r}: want position, object or opaque", code="AP501")
        if monkey and lag:
            raise ConfigurationError(
                "lag with monkey=True: there is no clock, each read chooses how stale it is", code="AP501"
            )
        if seed and monkey is not True:
            raise ConfigurationError(f"seed={seed}: want monkey=True with it", code="AP501")
        self.name = name
        self.versions = versions
        self._monkey = Monkey(SeededChoice(seed, regions) if monkey is True else monkey) if monkey else None
        self._clock = HybridClock()
        self._answers_lost = False
        self._rows: list[tuple[float, bytes]] = []
        """The rows of branches, and when they may go: the first to go first."""
        self._lock = threading.RLock()
        self._changed = threading.Condition(self._lock)
        self._ticker: threading.Thread | None = None
        lags = lag if isinstance(lag, Mapping) else dict.fromkeys(regions[1:], _seconds(lag))
        self._nodes = {region: Node(region, lags.get(region, 0.0), versions) for region in regions}
        self._primary = self._nodes[regions[0]]
        self._marked_at = -1e9
        self._begin_epoch()
        for node in self._nodes.values():
            if node is not self._primary:  # a replica begins as a copy of its primary
                node.log = list(self._primary.log)
                node.follow(self._primary)

    # Faults

    def set_lag(self, region: str, lag: float | timedelta) -> None:
        """From now on writes reach this region after `lag` seconds."""
        if self._monkey is not None:
            raise ConfigurationError("set_lag with monkey=True: there is no clock", code="AP501")
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
                raise ConfigurationError(f"{region} is the primary already", code="AP501")
            log = list(self._primary.log)
            kept = len(log)
            if lose:
                writes = [place for place, entry in enumerate(log) if entry.mark is None]
                if len(writes) < lose:
                    raise ConfigurationError(f"lose={lose}: only {len(writes)} writes were made", code="AP501")
                kept = writes[-lose]
            node.log = log[:kept]
            node.frozen = False
            node.boot()
            self._primary, node.source = node, None
            self._begin_epoch()
            for other in self._nodes.values():
                if other is not node:
                    other.follow(node)
        self._tick()

    def repoint(self, region: str, source: str) -> None:
        """This region's server follows another replica, or the primary, from now on."""
        with self._lock:
            self._catch_up()
            node, origin = self._node(region), self._node(source)
            upstream: Node | None = origin
            while upstream is not None:
                if upstream is node:
                    raise ConfigurationError(f"{source} replicates from {region}: that would be a circle", code="AP501")
                upstream = upstream.source
            node.follow(origin)
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

    def lose_next_answer(self) -> None:
        """The next write takes effect, and its writer never hears of it: a ConnectionError."""
        self._answers_lost = True

    def put(self, key: str | bytes, value: str | bytes) -> None:
        """Writes at the primary without Antipode, as code that does not know it."""
        self.write(self._primary, octets(key), octets(value), "")

    def look(self, region: str, key: str | bytes) -> bytes | None:
        """What a server has now, without Antipode: for tests of what barriers say."""
        with self.looking(self._node(region)) as node:
            cell = node.data.get(octets(key))
            return None if cell is None else cell.value

    # Inside

    def _node(self, region: str) -> Node:
        try:
            return self._nodes[region]
        except KeyError:
            raise ConfigurationError(
                f"no region {region!r} in {self.name}: {', '.join(self._nodes)}", code="AP501"
            ) from None

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

    def _log(self, key: bytes, value: bytes | None, lineage: str, mark: tuple[str, int] | None = None) -> Version:
        counter = next(self._counter)
        version: Version = Ordered(self._epoch, counter)
        if self.versions != "position":
            version = self._object_version(value)
        self._primary.append(Entry(time.monotonic(), self._epoch, counter, key, value, lineage, version, mark))
        return version

    def _object_version(self, value: bytes | None) -> Version:
        """A version that no object ever had or will have, whatever is deleted, lost or started anew (SHIM-10)."""
        if self.versions == "opaque":
            return Opaque(("" if value is not None else DELETED) + uuid4().hex[:16])
        return Ordered("", self._clock.next())

    def write(self, node: Node, key: bytes, value: bytes | None, lineage: str) -> Version | None:
        """Writes at a server, which has to be the primary; returns the version.

        The deletion of an object that is not there has the version of its tombstone; None where it has none, and in a
        store of positions is a write like others.
        """
        with self._lock:
            self._need_up(node)
            if node is not self._primary:
                raise PermissionError(f"{self.name}: the server in {node.region} is a read-only replica")
            there = node.data.get(key)
            if value is None and self.versions != "position" and (there is None or there.value is None):
                return None if there is None else there.version
            version = self._log(key, value, lineage)
            if time.monotonic() - self._marked_at > MARK_PERIOD_S:
                self._mark()
            self._changed.notify_all()
            lost, self._answers_lost = self._answers_lost, False
        self._tick()
        if lost:
            raise ConnectionError(f"{self.name}: the connection broke before the answer came")
        return version

    def close_row(self, key: bytes, value: bytes, life: float) -> bool:
        """Writes a branch's row at the primary where there is none; those whose time is over go with it (BRANCH-22)."""
        with self._lock:
            node, now = self._primary, time.monotonic()
            while self._rows and self._rows[0][0] < now:
                self.write(node, heapq.heappop(self._rows)[1], None, "")
            there = node.data.get(key)
            if there is not None and there.value is not None:
                return False
            heapq.heappush(self._rows, (now + life, key))
            self.write(node, key, value, "")
            return True

    def read(self, node: Node, key: bytes) -> tuple[Cell | None, Ordered]:
        """Reads at a server: the object with its lineage and version, and where the server is."""
        with self._lock:
            self._need_up(node)
            self._catch_up()
            if self._monkey is not None:
                self._choose(self._monkey, node, key)
            return node.data.get(key), Ordered(node.epoch, node.counter)

    def _need_up(self, node: Node) -> None:
        if node.down:
            raise ConnectionError(f"{self.name}: the server in {node.region} refuses connections")

    def _choose(self, monkey: Monkey, node: Node, key: bytes) -> None:
        """Applies what the version that is chosen for a read needs, and no more (MONKEY-3)."""
        places = [place for place, entry in enumerate(node.coming()) if entry.mark is None and entry.key == key]
        behind = monkey.behind(StaleRead(self.name, node.region, key, len(places)))
        if behind < len(places):
            node.take(places[-1 - behind] + 1)

    def _catch_up(self) -> float | None:
        """Applies at each replica what has arrived by now; the time at which the next record arrives."""
        if self._monkey is not None:
            return None  # each read chooses by itself
        now = time.monotonic()
        moved = True
        nearest: float | None = None
        while moved:  # a replica may be fed by one that has just been fed itself
            moved, nearest = False, None
            for node in self._nodes.values():
                due = None if node.frozen or node.down else node.fetch(now)
                if due is not None:
                    moved = moved or due <= now
                    nearest = due if nearest is None else min(nearest, due)
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

    def watch(self, node: Node, watch: Watcher) -> None:
        """Has the watcher called whenever something was applied at the server, and when it starts anew."""
        with self._lock:
            self._need_up(node)
            node.watchers.append(watch)
        self._tick()

    def unwatch(self, node: Node, watch: Watcher) -> None:
        """Calls it no more."""
        with self._lock:
            if watch in node.watchers:
                node.watchers.remove(watch)
            self._changed.notify_all()

    @contextmanager
    def looking(self, node: Node) -> Iterator[Node]:
        """The server as it is now, standing still for the block; raises ConnectionError where it is down."""
        with self._lock:
            self._need_up(node)
            self._catch_up()
            yield node

    @property
    def is_monkey(self) -> bool:
        """Whether replicas are as stale as each read chooses, and not by a clock."""
        return self._monkey is not None

    def epochs(self) -> list[tuple[str, int]]:
        """The epochs that the primary's marks speak of, with the greatest position before each mark."""
        with self._lock:
            return sorted(self._primary.marks.items())

    def settle(self, epoch: str, counter: int = 2**64 - 1) -> None:
        """The operator's word that a store holds an ended epoch up to a position: a mark."""
        with self._lock:
            self._log(b"", None, "", mark=(epoch, counter))
        self._tick()


def octets(text: str | bytes) -> bytes:
    return text.encode() if isinstance(text, str) else bytes(text)


def _seconds(lag: float | timedelta | Mapping[str, float]) -> float:
    if isinstance(lag, timedelta):
        return lag.total_seconds()
    if isinstance(lag, Mapping):
        raise TypeError("want seconds")
    return float(lag)
