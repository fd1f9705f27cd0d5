"""Shims with one defect each, for `test_conformance_fails`: the kit has to catch every one by the case named there."""

from __future__ import annotations

import time
from collections.abc import Callable, Iterable, Sequence
from typing import ClassVar

import antipode
import antipode.memory
import pytest
from antipode._engine.pending_wait import PendingWait, Proof, Settled, release_all
from antipode._engine.server import ServerPoller
from antipode._engine.store_servers import RegionStore
from antipode._model.write_id import Ordered, WriteId
from antipode._scope.scope import Scope
from antipode._store.read import Read, ReadValue
from antipode._store.store import Write
from antipode.memory.node import Node
from antipode.shim import NOT_YET, VISIBLE, Server, Shim, Visibility, not_yet, stores
from antipode.testing.conformance import ShimConformance, StoreUnderTest
from memory_under_test import MemoryUnderTest, ObjectsUnderTest


def with_judge(kind: type[Shim], judge: Callable[[Node, WriteId], bool]) -> type[Shim]:
    """A shim of this kind that judges writes in its own way, and takes no account of anything else."""

    class Broken(kind):  # type: ignore[valid-type, misc]
        def visible(self, ids: Sequence[WriteId], server: Server) -> Sequence[Visibility]:
            with server.target.store.looking(server.target.node) as node:
                return [VISIBLE if judge(node, write_id) else NOT_YET for write_id in ids]

    return Broken


def counter_of(write_id: WriteId) -> int:
    assert isinstance(write_id.version, Ordered)
    return write_id.version.counter


class BrokenUnderTest(MemoryUnderTest):
    """Swaps the embedded store's shim for the broken one while clients are wrapped."""

    broken: ClassVar[type[Shim]]

    def begin(self) -> None:
        with pytest.MonkeyPatch.context() as patch:
            patch.setitem(antipode.memory.shim.SHIMS, self.capabilities.versions, self.broken)
            super().begin()


class PassesAlways(BrokenUnderTest):
    broken = with_judge(antipode.memory.MemoryShim, lambda node, write_id: True)


class ComparesKeysOnly(BrokenUnderTest, ObjectsUnderTest):
    broken = with_judge(antipode.memory.MemoryObjectShim, lambda node, write_id: node.cell(write_id.key) is not None)


class IgnoresEpochs(BrokenUnderTest):
    broken = with_judge(antipode.memory.MemoryShim, lambda node, write_id: counter_of(write_id) <= node.counter)


class ForgetsPending(MemoryUnderTest):
    """An error from the client is taken for a write that did not happen."""

    def write(self, key: str, value: str) -> None:
        with pytest.MonkeyPatch.context() as patch:
            patch.setattr(Write, "outcome_unknown", Write.abandon)
            super().write(key, value)


class RepeatsVersions(ObjectsUnderTest):
    """Each object counts from 1, and from 1 again when it has been deleted."""

    def write(self, key: str, value: str) -> None:
        cell, _ = self.memory.read(self.memory._primary, key.encode())
        assert cell is None or isinstance(cell.version, Ordered)
        fresh = cell is None or cell.value is None
        counter = 1 if fresh else cell.version.counter + 1  # type: ignore[union-attr]
        with pytest.MonkeyPatch.context() as patch:
            patch.setattr(self.memory, "_object_version", lambda value: Ordered("", counter))
            super().write(key, value)


class CoversNothingRead(MemoryUnderTest):
    """A read tells what rests beside the value, and forgets the value itself."""

    def read(self, key: str, at: str) -> str | None:
        whole = Read.returned

        def returned(read: Read, values: Callable[[], Iterable[ReadValue]], **_: object) -> None:
            whole(read, lambda: [each._replace(covers=None) for each in values()])

        with pytest.MonkeyPatch.context() as patch:
            patch.setattr(Read, "returned", returned)
            return super().read(key, at)


class PatchedUnderTest(MemoryUnderTest):
    """Changes something of Antipode itself for the length of a case."""

    def patch(self, patch: pytest.MonkeyPatch) -> None:
        raise NotImplementedError

    def begin(self) -> None:
        super().begin()
        self._patch = pytest.MonkeyPatch()
        self.patch(self._patch)

    def recover(self, *, spoiled: bool) -> None:
        self._patch.undo()
        super().recover(spoiled=spoiled)


class StaysConnected(MemoryUnderTest):
    """What it asks by, it never gives up."""

    def list_moving(self, server: str) -> Callable[[str], None]:
        lead = super().list_moving(server)
        next(one for one in stores() if one.name == self.name).shim.close = lambda server: None  # type: ignore[method-assign]
        return lead


class JudgesWhatIsListed(PatchedUnderTest):
    """Where a wrap has a list, a client without one is not judged."""

    def patch(self, patch: pytest.MonkeyPatch) -> None:
        patch.setattr(RegionStore, "_is_listed", lambda self, listed: True)


class ReadsAtOnce(PatchedUnderTest):
    """A read waits for nothing."""

    def patch(self, patch: pytest.MonkeyPatch) -> None:
        patch.setattr(Read, "wait", lambda _: None)


class ReadsForever(PatchedUnderTest):
    """A read waits for a server that does not answer for as long as that takes."""

    def patch(self, patch: pytest.MonkeyPatch) -> None:
        patch.setattr(Read, "wait", lambda _: time.sleep(self.slack + 1))


class HidesItsDoubts(PatchedUnderTest):
    """A scope's own barrier says nothing of writes that the scope does not know."""

    def patch(self, patch: pytest.MonkeyPatch) -> None:
        patch.setattr(Scope, "pending", property(lambda self: ()))


class RefusesUnasked(PatchedUnderTest):
    """Behind waits in vain nobody is asked for."""

    def patch(self, patch: pytest.MonkeyPatch) -> None:
        plain = ServerPoller.park

        def park(self: ServerPoller, need: PendingWait) -> bool:
            why = self.waiters._overload(need, 0.0, time.monotonic())
            return need.group.settle(need, not_yet(why, overloaded=True)) if why else plain(self, need)

        patch.setattr(ServerPoller, "park", park)


class LeavesOutForItsOwnFaults(PatchedUnderTest):
    """An exception of its own counts as a server's silence."""

    def patch(self, patch: pytest.MonkeyPatch) -> None:
        patch.setattr(ServerPoller, "_refused", lambda self, error, kind=None: self._failed(error, time.monotonic()))


class PassesInTrouble(PatchedUnderTest):
    """What could not be asked for passes."""

    def patch(self, patch: pytest.MonkeyPatch) -> None:
        def answered(self: ServerPoller, *_: object) -> None:
            released: Settled = {}
            for need in self.waiters._take_all():
                self.waiters._settle(need, VISIBLE, released, Proof(time.monotonic(), self.generation))
            release_all(released)

        patch.setattr(ServerPoller, "_refused", answered)
        patch.setattr(ServerPoller, "_failed", answered)


class HasStaleExceptions(MemoryUnderTest):
    """A case is listed that passes, and one that there is not."""

    exceptions: ClassVar[dict[str, str]] = {"write": "it cannot", "no_such_case": "it cannot"}


class _Conformance(ShimConformance):
    kind: ClassVar[type[StoreUnderTest]] = MemoryUnderTest

    @pytest.fixture
    def under_test(self) -> StoreUnderTest:
        return self.kind()


class TestSound(_Conformance):
    """Nothing is broken."""


class TestPassesAlways(_Conformance):
    kind = PassesAlways


class TestComparesKeysOnly(_Conformance):
    kind = ComparesKeysOnly


class TestIgnoresEpochs(_Conformance):
    kind = IgnoresEpochs


class TestForgetsPending(_Conformance):
    kind = ForgetsPending


class TestRepeatsVersions(_Conformance):
    kind = RepeatsVersions


class TestCoversNothingRead(_Conformance):
    kind = CoversNothingRead


class TestStaysConnected(_Conformance):
    kind = StaysConnected


class TestJudgesWhatIsListed(_Conformance):
    kind = JudgesWhatIsListed


class TestReadsAtOnce(_Conformance):
    kind = ReadsAtOnce


class TestReadsForever(_Conformance):
    kind = ReadsForever


class TestHidesItsDoubts(_Conformance):
    kind = HidesItsDoubts


class TestRefusesUnasked(_Conformance):
    kind = RefusesUnasked


class TestLeavesOutForItsOwnFaults(_Conformance):
    kind = LeavesOutForItsOwnFaults


class TestPassesInTrouble(_Conformance):
    kind = PassesInTrouble


class TestHasStaleExceptions(_Conformance):
    kind = HasStaleExceptions
