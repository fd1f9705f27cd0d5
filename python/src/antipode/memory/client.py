"""What an application has of the embedded store: the store by its name, and clients of its servers."""

from __future__ import annotations

from collections.abc import Sequence

from antipode._diagnostics.history.recorder import GONE, KeyChange, value_digest
from antipode._propagation.at_rest import lineage_at_rest, lineage_unscoped, text_at_rest
from antipode._scope.scope import current_scope
from antipode._store.read import ReadValue, WrappedClient
from antipode.memory.log import ReplicatedLog, octets
from antipode.memory.node import Cell, Node
from antipode.memory.shim import MONKEY_SHIMS, SHIMS, Target
from antipode.shim import Server, Shim, StoreOptions, join_store

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
        return Client(self, node, WrappedClient(joined, options), server)

    def register(self, *regions: str) -> None:
        """This process waits for the servers of these regions, and never reads."""
        targets = [Target(self, self._node(region)) for region in regions]
        join_store(self.name, self._shim, StoreOptions(replicas=targets))

    @property
    def _shim(self) -> type[Shim]:
        return (MONKEY_SHIMS if self.is_monkey else SHIMS)[self.versions]


class Client:
    """A client of one server: `set`, `get`, `delete`. What it writes joins the current scope's lineage."""

    def __init__(self, store: Store, node: Node, wrapped: WrappedClient, server: Server) -> None:
        self._store = store
        self._node = node
        self._wrapped = wrapped
        self._joined = wrapped.store
        self._server = server
        self._gives_positions = store.versions == "position"

    def set(self, key: str | bytes, value: str | bytes) -> None:
        """Writes a value; raises PermissionError at a replica."""
        self._write(octets(key), octets(value))

    def delete(self, key: str | bytes) -> None:
        """Deletes a key: a write like others."""
        self._write(octets(key), None)

    def get(self, key: str | bytes) -> bytes | None:
        """Reads a value at this server. Inside `reading()` its lineage is collected, with `auto_merge` transferred."""
        name = octets(key)
        with self._wrapped.read(self._server, None if self._gives_positions else (name,)) as read:
            read.wait()
            found, position = self._store.read(self._node, name)
            if read.is_observed:
                positions = (self._joined.write_id(b"", position),) if self._gives_positions else ()
                read.returned(
                    lambda: [self._found(name, found)],
                    covers=positions,
                    shown=lambda: _value(found),
                    repeat=lambda: self._read_again(name),
                )
        return _value(found)

    def _found(self, key: bytes, found: Cell | None) -> ReadValue:
        """Return the value that was read: it says which write it is, and has its lineage beside it (SHIM-13)."""
        digest = self._digest(key, _value(found))
        if found is None:
            return ReadValue(key, digest)
        version = self._joined.write_id(b"" if self._gives_positions else key, found.version)
        rest = lineage_at_rest(found.lineage or None, self._store.name, self._joined.options.lineage_in)
        return ReadValue(key, digest, version, None if self._gives_positions else version, rest)

    def _read_again(self, key: bytes) -> bytes | None:
        """What the server shows by now; in monkey mode that is no read, which would choose (MONKEY-6)."""
        with self._store.looking(self._node) as node:
            return _value(node.data.get(key))

    def _digest(self, key: bytes, value: bytes | None) -> str:
        return GONE if value is None else value_digest(self._store.name, key, value)

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
                write.noted.changes([KeyChange(key, self._digest(key, value))])
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
