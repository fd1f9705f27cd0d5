"""The shims of the embedded store, one for each kind of version."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import replace
from typing import Any, ClassVar, Final, NamedTuple

from antipode._model.branch_ids import BRANCHES, BranchId
from antipode._model.errors import ConfigurationError
from antipode._model.verdict import Verdict
from antipode._model.write_id import Opaque, Ordered, WriteId
from antipode._store.branch_table import BranchTable
from antipode._store.epochs import judge_position
from antipode.memory.log import DELETED, ReplicatedLog
from antipode.memory.node import Node
from antipode.shim import VISIBLE, Capabilities, Server, Shim, Visibility, not_yet, unproven

_ROW: Final = b"antipode:branch:"
"""What the keys of the rows of branches begin with."""


def _epoch_of(position: WriteId) -> str:
    return position.version.epoch if isinstance(position.version, Ordered) else ""


class Target(NamedTuple):
    """How the shim reaches a server: the store and the node."""

    store: ReplicatedLog
    node: Node


class MemoryWatch:
    """A live push channel to one server."""

    def __init__(self, target: Target, server: Server, on_change: Callable[[], None]) -> None:
        self._target, self._server, self.on_change = target, server, on_change
        target.store.watch(target.node, self)

    def replaced(self) -> None:
        """The server has started again, perhaps with less than it had: what it proved before holds no more."""
        self._server.reset()
        self.on_change()

    def fileno(self) -> int | None:
        return None

    def pump(self) -> None:
        """Nothing to read: the store's own thread calls back."""

    def close(self) -> None:
        self._target.store.unwatch(self._target.node, self)


class _AnyMemoryShim(Shim, BranchTable):
    """What the three have in common: one question is a look at the server under its lock."""

    kind: ClassVar[str] = "memory"
    notes_reads: ClassVar[bool] = True

    def check_branches(self) -> None:
        """As the base says: every embedded store has the table."""

    def find_branches(self, ids: Sequence[str], server: Server) -> Mapping[str, str]:
        target: Target = server.target
        with target.store.looking(target.node) as node:
            if target.store.is_monkey:
                awaited = [BranchId.of(each) for each in server.awaited if each.store == BRANCHES]
                keys = {_ROW + branch.id.encode() for branch in awaited if branch is not None and branch.id in ids}
                places = [place for place, entry in enumerate(node.coming(), 1) if entry.key in keys]
                node.take(places[-1] if places else 0)
            cells = {name: node.data.get(_ROW + name.encode()) for name in ids}
            return {name: cell.value.decode() for name, cell in cells.items() if cell is not None and cell.value}

    def close_branch(self, branch: str, text: str, life: float) -> bool:
        for server in self.store.servers(own=True):
            target: Target = server.target
            return target.store.close_row(_ROW + branch.encode(), text.encode(), life)
        raise ConfigurationError(f"no server of {self.store.name} is known here: make a client of it", code="AP512")

    def visible(self, ids: Sequence[WriteId], server: Server) -> Sequence[Visibility]:
        target: Target = server.target
        with target.store.looking(target.node) as node:
            self._proved(node, server)
            return [self._judge(node, write_id) for write_id in ids]

    def wait(self, ids: Sequence[WriteId], server: Server, timeout: float) -> Sequence[Visibility]:
        """In monkey mode: applies what these writes need to be visible, where a barrier waits for them (MONKEY-5)."""
        target: Target = server.target
        awaited = server.awaited
        epochs = {_epoch_of(write_id) for write_id in awaited if write_id.is_position}
        with target.store.looking(target.node) as node:
            for write_id in ids:  # of the positions of an epoch the least, and so one before what is awaited
                if write_id in awaited or (write_id.is_position and _epoch_of(write_id) in epochs):
                    while self._judge(node, write_id).verdict is Verdict.NOT_YET and node.coming():
                        node.take(1)
        return self.visible(ids, server)

    def _proved(self, node: Node, server: Server) -> None:
        """What this look proves beside what was asked."""

    def _judge(self, node: Node, write_id: WriteId) -> Visibility:
        raise NotImplementedError

    def watch(self, server: Server, on_change: Callable[[], None]) -> MemoryWatch:
        return MemoryWatch(server.target, server, on_change)

    def address(self, target: Any) -> str:
        return f"memory://{target.store.name}/{target.node.region}"


class MemoryShim(_AnyMemoryShim):
    """Positions: judged by the server's place in its epoch, and by marks for ended ones (EPOCH-9 to EPOCH-12)."""

    capabilities: ClassVar[Capabilities] = Capabilities(
        versions="position", push=True, tombstones=True, rest=("field",), marks="in_band"
    )

    def _proved(self, node: Node, server: Server) -> None:
        proved = {**node.marks, node.epoch: node.counter}
        for epoch, end in node.ends.items():
            proved[epoch] = max(end, proved.get(epoch, -1))
        server.applied(node.instance, node.epoch, proved)

    def _judge(self, node: Node, write_id: WriteId) -> Visibility:
        version = write_id.version
        if not isinstance(version, Ordered) or not write_id.is_position:
            return unproven("this store gives positions only")
        return judge_position(
            version.epoch, version.counter, current=node.epoch, applied=node.counter, marks=node.marks, known=node.ends
        )


class MemoryObjectShim(_AnyMemoryShim):
    """Objects whose versions compare: visible is that version or a later one of the key, deletions too (SHIM-31)."""

    capabilities: ClassVar[Capabilities] = Capabilities(versions="object", push=True, tombstones=True, rest=("field",))

    def _judge(self, node: Node, write_id: WriteId) -> Visibility:
        wanted = write_id.version
        if write_id.is_position or not isinstance(wanted, Ordered) or wanted.epoch:
            return unproven("this store gives versions of objects only")
        cell = node.cell(write_id.key)
        if cell is None:
            return not_yet("there is no such object")
        assert isinstance(cell.version, Ordered)
        if cell.version.counter >= wanted.counter:
            return VISIBLE
        return not_yet(f"it has version {cell.version.counter}, wanted {wanted.counter}")


class MemoryOpaqueShim(_AnyMemoryShim):
    """Objects whose versions are equal or not: another one in its place proves nothing (SHIM-32)."""

    capabilities: ClassVar[Capabilities] = Capabilities(versions="opaque", push=True, rest=("field",))

    def _judge(self, node: Node, write_id: WriteId) -> Visibility:
        wanted = write_id.version
        if not isinstance(wanted, Opaque):
            return unproven("this store gives versions without order only")
        if wanted.mark.startswith(DELETED):
            return unproven("a delete leaves nothing behind there that could be seen")
        cell = node.cell(write_id.key)
        if cell is None:
            return not_yet("there is no such object")
        return VISIBLE if cell.version == wanted else not_yet("it has another version, earlier or later")


class MonkeyShim(MemoryShim):
    """The same where no clock brings writes, so that waiting is what does."""

    capabilities: ClassVar[Capabilities] = replace(MemoryShim.capabilities, blocking_wait=True)


class MonkeyObjectShim(MemoryObjectShim):
    """The same where no clock brings writes, so that waiting is what does."""

    capabilities: ClassVar[Capabilities] = replace(MemoryObjectShim.capabilities, blocking_wait=True)


class MonkeyOpaqueShim(MemoryOpaqueShim):
    """The same where no clock brings writes, so that waiting is what does."""

    capabilities: ClassVar[Capabilities] = replace(MemoryOpaqueShim.capabilities, blocking_wait=True)


SHIMS: Final[Mapping[str, type[Shim]]] = {
    "position": MemoryShim,
    "object": MemoryObjectShim,
    "opaque": MemoryOpaqueShim,
}
MONKEY_SHIMS: Final[Mapping[str, type[Shim]]] = {
    "position": MonkeyShim,
    "object": MonkeyObjectShim,
    "opaque": MonkeyOpaqueShim,
}
