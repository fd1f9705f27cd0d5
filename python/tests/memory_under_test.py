"""The embedded store as the conformance kit drives it: the model for a shim's own."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from typing import Any, ClassVar

import antipode.memory
from antipode._model.lineage import Lineage
from antipode.memory.node import Node
from antipode.shim import Server, Shim, StoreOptions, join_store
from antipode.testing.under_test import StoreUnderTest

LAGS = {"b": 0.005, "c": 0.02}


class MemoryUnderTest(StoreUnderTest):
    """Three regions in this process, made anew for each case."""

    shim: ClassVar[type[Shim]] = antipode.memory.MemoryShim
    exceptions: ClassVar[Mapping[str, str]] = {
        "count_marks": "the embedded store counts nothing",
        "open_transaction": "the embedded store has no transactions",
        "transaction_over_two_scopes": "the embedded store has no transactions",
        "transaction_only_read_so_far": "the embedded store has no transactions",
        "rolled_back_transaction": "the embedded store has no transactions",
        "barrier_in_a_transaction": "the embedded store has no transactions",
        "commit_inside_a_transaction": "the embedded store has no transactions",
        "past_moment": "the embedded store has no cursors: each read shows what is there now",
        "missing_rights": "the embedded store has no users",
        "unfit_topology": "the embedded store has one topology",
    }
    patience = 10.0
    brief = 0.1

    def begin(self) -> None:
        versions = self.capabilities.versions
        self.memory = antipode.memory.Store(self.name, regions=["a", "b", "c"], lag=LAGS, versions=versions)
        self._primary = "a"
        self._writes: list[str] = []
        self._clients = {region: self.memory.client(region, replicas=["b", "c"]) for region in "bca"}
        antipode.configure(replica_out_after=0.2)

    def recover(self, *, spoiled: bool) -> None:
        pass  # the next case makes a store of its own

    @property
    def primary(self) -> str:
        return self._primary

    @property
    def replicas(self) -> Sequence[str]:
        return ["b", "c"]

    def write(self, key: str, value: str) -> None:
        self._writes.append(key)
        self._clients[self._primary].set(key, value)

    def look(self, key: str, at: str) -> str | None:
        return self._text(self.memory.look(at, key))

    def read(self, key: str, at: str) -> str | None:
        return self._text(self._clients[at].get(key))

    @staticmethod
    def _text(value: bytes | None) -> str | None:
        return None if value is None else value.decode()

    def delete(self, key: str) -> None:
        self._clients[self._primary].delete(key)

    def raw_write(self, key: str, value: str) -> None:
        self.memory.put(key, value)

    def write_nothing(self) -> None:
        self.delete(self.new_key("never there"))

    # More clients

    def wrap_client(self, server: str, *, replicas: Sequence[str] | None = None, wait_on_read: bool = False) -> Any:
        if replicas is not None:
            return self.memory.client(server, replicas=replicas)
        return self.memory.client(server, wait_on_read=wait_on_read)

    def reads(self, client: Any) -> Mapping[str, Callable[[str], object]]:
        return {"get": lambda key: self._text(client.get(key))}

    def list_moving(self, server: str) -> Callable[[str], None]:
        target = _Moving(self.memory, server)
        shim = join_store(self.name, self.shim, StoreOptions(replicas=[target])).shim
        close = shim.close

        def closed(server: Server) -> None:
            target.connected = ""
            close(server)

        shim.close = closed  # type: ignore[method-assign]
        return target.lead

    # Links and servers

    def set_lag(self, replica: str, seconds: float) -> None:
        self.memory.set_lag(replica, seconds)

    def partition(self, replica: str) -> None:
        self.memory.freeze(replica)

    def heal(self, replica: str) -> None:
        self.memory.heal(replica)

    def freeze(self, server: str) -> None:
        self.memory.stop(server)

    def thaw(self, server: str) -> None:
        self.memory.restart(server)

    def restart(self, server: str) -> None:
        self.memory.restart(server)

    def repoint(self, replica: str, source: str) -> None:
        self.memory.repoint(replica, source)

    def promote(self, replica: str, lost: Callable[[], None] | None = None) -> None:
        before = len(self._writes)
        if lost is not None:
            for region in "abc":
                self.memory.freeze(region)
            lost()
        self.memory.promote(replica, lose=len(self._writes) - before)
        self._primary = replica
        for region in "abc":
            self.memory.heal(region)

    def wait_marked(self, lineage: Lineage) -> None:
        pass  # the new primary marks the end of the epoch before it by itself

    # Troubles

    def write_with_unknown_outcome(self, key: str, value: str) -> None:
        self.memory.lose_next_answer()
        self.write(key, value)

    def write_refused(self, key: str) -> None:
        self._clients[self.near].set(key, "v")


class _Moving:
    """An address of the embedded store; a connection stays at the server to which it led when that was made."""

    def __init__(self, store: antipode.memory.Store, region: str) -> None:
        self.store = store
        self.connected = self._leads_to = region

    def lead(self, region: str) -> None:
        self._leads_to = region

    @property
    def node(self) -> Node:
        self.connected = self.connected or self._leads_to
        return self.store._node(self.connected)


class ObjectsUnderTest(MemoryUnderTest):
    """The same, with versions of objects."""

    shim: ClassVar[type[Shim]] = antipode.memory.MemoryObjectShim


class OpaqueUnderTest(MemoryUnderTest):
    """The same, with versions without order."""

    shim: ClassVar[type[Shim]] = antipode.memory.MemoryOpaqueShim
