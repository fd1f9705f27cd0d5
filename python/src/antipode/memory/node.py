"""One server of the embedded store: its log, its data, the marks in it."""

from __future__ import annotations

from collections.abc import Callable
from typing import Literal, NamedTuple, Protocol, TypeAlias
from uuid import uuid4

from antipode._model.wire import hashed_key
from antipode._model.write_id import Version

Versions: TypeAlias = Literal["position", "object", "opaque"]


class Watcher(Protocol):
    """Who is told when something was applied at a server, and when it starts anew."""

    on_change: Callable[[], None]

    def replaced(self) -> None:
        """Note that the server has started again, perhaps with less than it had."""


class Cell(NamedTuple):
    """An object at a server: its value (None: deleted, and this is its tombstone), its lineage and version."""

    value: bytes | None
    lineage: str
    version: Version


class Entry(NamedTuple):
    """One record of the log: a write (value None deletes), or a mark `epoch -> counter` of what lies before it."""

    due: float
    epoch: str
    counter: int
    key: bytes
    value: bytes | None
    lineage: str
    version: Version
    """What the write is called: its own place in the log, or its object's version."""
    mark: tuple[str, int] | None


class Node:
    """One server: its data, the log that it has applied, and the marks in it."""

    def __init__(self, region: str, lag: float, versions: Versions) -> None:
        self.versions = versions
        self.region = region
        self.lag = lag
        self.frozen = False
        self.down = False
        self.source: Node | None = None
        self.log: list[Entry] = []
        self.applied_from_source = 0
        self.watchers: list[Watcher] = []
        self.boot()

    def boot(self) -> None:
        """The server's process starts: another instance, with what its log holds."""
        for watch in self.watchers:
            watch.replaced()
        self.instance = uuid4().hex[:16]
        self.data: dict[bytes, Cell] = {}
        self.hashed: dict[bytes, bytes] = {}
        self.marks: dict[str, int] = {}
        self.ends: dict[str, int] = {}
        self.epoch = ""
        self.counter = 0
        for entry in self.log:
            self.apply(entry)

    def append(self, entry: Entry) -> None:
        """A record joins the log."""
        self.log.append(entry)
        self.apply(entry)

    def apply(self, entry: Entry) -> None:
        """A record of the log takes effect."""
        if entry.epoch != self.epoch and self.epoch:
            self.ends[self.epoch] = self.counter
        self.epoch, self.counter = entry.epoch, entry.counter
        if entry.mark is not None:
            epoch, counter = entry.mark
            self.marks[epoch] = max(counter, self.marks.get(epoch, -1))
        elif entry.value is None and self.versions != "object":
            self.data.pop(entry.key, None)
        else:
            if self.versions != "position" and entry.key not in self.data:
                self.hashed[hashed_key(entry.key)] = entry.key
            self.data[entry.key] = Cell(entry.value, entry.lineage, entry.version)

    def fetch(self, now: float) -> float | None:
        """Applies what has arrived from its source by now: `now` where that was anything, else when the next arrives.

        None where nothing is on its way.
        """
        source, began = self.source, self.applied_from_source
        if source is None:
            return None
        while self.applied_from_source < len(source.log):
            entry = source.log[self.applied_from_source]
            due = entry.due + self.lag
            if due > now:
                break
            self.append(entry if source.source is None else entry._replace(due=due))
            self.applied_from_source += 1
        if self.applied_from_source != began:
            for watch in list(self.watchers):
                watch.on_change()
            return now
        return due if self.applied_from_source < len(source.log) else None

    def coming(self) -> list[Entry]:
        """The records that can reach it and that it has not applied, its source's own to come among them."""
        if self.source is None or self.frozen or self.down:
            return []
        return self.source.log[self.applied_from_source :] + self.source.coming()

    def take(self, count: int) -> None:
        """Applies the next so many of what is coming, and at its source what that has not got itself."""
        source = self.source
        if source is None or count == 0:
            return
        end = self.applied_from_source + count
        source.take(max(end - len(source.log), 0))
        for entry in source.log[self.applied_from_source : end]:
            self.append(entry)
        self.applied_from_source = end
        for watch in list(self.watchers):
            watch.on_change()

    def follow(self, source: Node) -> None:
        """It fetches its log from this server from now on; what that has not got is cut off."""
        kept = 0
        for mine, theirs in zip(self.log, source.log, strict=False):
            if (mine.epoch, mine.counter) != (theirs.epoch, theirs.counter):
                break
            kept += 1
        self.source, self.log, self.applied_from_source = source, self.log[:kept], kept
        self.boot()

    def cell(self, key: bytes) -> Cell | None:
        """What the server has of an object, also by the hashed form of its key."""
        return self.data.get(key) or self.data.get(self.hashed.get(key, b""))
