"""What an application has of the embedded store: the store by its name, and clients of its servers."""

from __future__ import annotations

from collections.abc import Sequence

from antipode.at_rest import lineage_at_rest, lineage_unscoped, text_at_rest
from antipode.followed_reads import FollowedRead, followed_read
from antipode.lineage import Lineage
from antipode.memory.log import ReplicatedLog, octets
from antipode.memory.node import Cell, Node
from antipode.memory.shim import MONKEY_SHIMS, SHIMS, Target
from antipode.reading import Reading, current_reading
from antipode.recorder import GONE, Changed, NotedRead, Seen, note_read, value_digest
from antipode.scope import Scope, current_scope
from antipode.settings import settings
from antipode.shim import Server, Shim, StoreOptions, join_store
from antipode.shim import Store as RegisteredStore
from antipode.wait_on_read import wait_first
from antipode.writeid import Ordered, WriteId

__all__ = ["Client", "Store"]


class Store(ReplicatedLog):
    """A replicated store in this process. The first region's server is the primary.

    `lag`: seconds from the primary's write until another region has it, for all of them or by region. `versions`:
    `position` (writes are places in a log, with epochs and marks), `object` (each object has a version that compares,
    and deletes leave tombstones) or `opaque` (versions are equal or not). `monkey`: there is no clock, and each read at
    a replica returns any version that it may (spec MONKEY): by `seed` (0 to 2^64-1), or, where a function is given, as
    many versions behind the newest as that says of a `StaleRead`. Raises ConfigurationError for what is none of these.
    """

    def client(
        self, region: str, *, wait_on_read: bool = False, rest: str = "field", replicas: Sequence[str] | None = None
    ) -> Client:
        """Return a client of one region's server, recorded and waited for under the store's name in this process.

        `replicas`: the regions whose servers readers here may use, in place of the client's own (BAR-22).
        """
        node = self._node(region)
        listed = None if replicas is None else [Target(self, self._node(each)) for each in replicas]
        options = StoreOptions(wait_on_read=wait_on_read, rest=rest, replicas=listed)
        joined = join_store(self.name, self._shim, options)
        server = joined.use_server(Target(self, node), listed=replicas is not None)
        return Client(self, node, joined, server)

    def register(self, *regions: str) -> None:
        """This process waits for the servers of these regions, and never reads."""
        targets = [Target(self, self._node(region)) for region in regions]
        join_store(self.name, self._shim, StoreOptions(replicas=targets))

    @property
    def _shim(self) -> type[Shim]:
        return (MONKEY_SHIMS if self.is_monkey else SHIMS)[self.versions]


class Client:
    """A client of one server: `set`, `get`, `delete`. What it writes joins the current scope's lineage."""

    def __init__(self, store: Store, node: Node, joined: RegisteredStore, server: Server) -> None:
        self._store = store
        self._node = node
        self._joined = joined
        self._server = server

    def set(self, key: str | bytes, value: str | bytes) -> None:
        """Writes a value; raises PermissionError at a replica."""
        self._write(octets(key), octets(value))

    def delete(self, key: str | bytes) -> None:
        """Deletes a key: a write like others."""
        self._write(octets(key), None)

    def get(self, key: str | bytes) -> bytes | None:
        """Reads a value at this server. Inside `reading()` its lineage is collected, with `auto_merge` transferred."""
        reading = current_reading()
        scope = current_scope()
        noted = note_read(self._joined, scope) if settings().history else None
        try:
            return self._get(octets(key), reading, scope, noted)
        finally:
            if noted is not None:  # where it was not over before
                noted.failed()

    def _get(self, key: bytes, reading: Reading | None, scope: Scope | None, noted: NotedRead | None) -> bytes | None:
        waits = self._joined.options.wait_on_read
        wait_first(self._server, self._joined.timeout, reading, scope, waits=waits)
        followed = followed_read(self._joined, reading, self._keys(key)) if self._joined.dry_run else None
        found, position = self._store.read(self._node, key)
        if followed is not None:
            self._follow(followed, key, found)
        merges = scope is not None and settings().auto_merge and self._joined.records
        if noted is not None:
            self._tell(noted, key, found, position if reading is not None or merges else None)
        if reading is not None or merges:
            depends = self._depends(found, key, position)
            if reading is not None:
                reading.saw(lineage=depends)
            if scope is not None and merges:
                scope.transfer_read(depends)
        return _value(found)

    def _keys(self, key: bytes) -> list[bytes] | None:
        """What is read, where writes are known by their objects."""
        return None if self._store.versions == "position" else [key]

    def _tell(self, noted: NotedRead, key: bytes, found: Cell | None, position: Ordered | None) -> None:
        """A recorded history is told what was read: each value says which write it is."""
        positions = self._store.versions == "position"
        version = None
        if found is not None:
            version = self._joined.write_id(b"" if positions else key, found.version)
        covers = self._joined.write_id(b"", position) if positions and position is not None else None
        noted.over([Seen(key, self._digest(key, _value(found)), version)], covers)

    def _digest(self, key: bytes, value: bytes | None) -> str:
        return GONE if value is None else value_digest(self._store.name, key, value)

    def _follow(self, followed: FollowedRead, key: bytes, found: Cell | None) -> None:
        """In dry-run the read has come; the version that an object has is exact."""
        exact = {} if found is None or self._store.versions == "position" else {key: found.version}
        followed.over(self._server, lambda: _value(found), repeat=lambda: self._read_again(key), versions=exact)

    def _read_again(self, key: bytes) -> bytes | None:
        """What the server shows by now; in monkey mode that is no read, which would choose (MONKEY-6)."""
        with self._store.looking(self._node) as node:
            return _value(node.data.get(key))

    def _depends(self, found: Cell | None, key: bytes, position: Ordered) -> Lineage:
        """The lineage beside a value, with an identifier that covers the value itself (SHIM-13)."""
        text = None if found is None else found.lineage
        rest = lineage_at_rest(text or None, self._store.name, self._joined.options.lineage_in)
        if self._store.versions == "position":
            return rest.including(WriteId(self._store.name, b"", position))
        return rest if found is None else rest.including(self._joined.write_id(key, found.version))

    def _text_beside(self) -> str:
        scope, lineage_out = current_scope(), self._joined.options.lineage_out
        return text_at_rest(lineage_unscoped(lineage_out) if scope is None else scope.outgoing(), lineage_out)

    def _write(self, key: bytes, value: bytes | None) -> None:
        if not self._joined.records:
            self._store.write(self._node, key, value, "")
            return
        beside = self._text_beside() if self._joined.options.rest == "field" else ""
        with self._joined.writing(key) as write:
            if write.noted is not None:
                write.noted.changes([Changed(key, self._digest(key, value))])
            try:
                version = self._store.write(self._node, key, value, beside)
            except PermissionError:
                write.abandon()
                raise
            if version is None:
                write.abandon()
            else:
                write.record(version)


def _value(found: Cell | None) -> bytes | None:
    return None if found is None else found.value
