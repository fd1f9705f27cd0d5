"""The failover fuzzer on the embedded store, with a sound shim and with ones that it has to catch (spec EPOCH-27)."""

from __future__ import annotations

import random
from collections.abc import Callable, Sequence
from typing import ClassVar

import antipode.memory
import pytest
from antipode._model.write_id import Ordered, Version, WriteId
from antipode.memory.node import Node
from antipode.shim import NOT_YET, VISIBLE, Server, Visibility, unproven
from antipode.testing import failover
from antipode.testing.failover import FailoverDriver


class MemoryDriver(FailoverDriver):
    """Three servers in this process."""

    shim: ClassVar[type[antipode.memory.MemoryShim]] = antipode.memory.MemoryShim

    def __enter__(self) -> MemoryDriver:
        self.memory = antipode.memory.Store(self.name, regions=self.servers, lag={"b": 0.002, "c": 0.01})
        with pytest.MonkeyPatch.context() as patch:
            patch.setitem(antipode.memory.shim.SHIMS, "position", self.shim)
            self._clients = {region: self.memory.client(region) for region in self.servers}
        self._primary = "a"
        self._lost: list[str] | None = None
        return self

    def __exit__(self, *_: object) -> None:
        pass

    @property
    def servers(self) -> Sequence[str]:
        return ("a", "b", "c")

    @property
    def primary(self) -> str:
        return self._primary

    @property
    def replicas(self) -> Sequence[str]:
        return [region for region in self.servers if region != self._primary]

    def address(self, server: str) -> str:
        return f"/{server}"

    def write(self, server: str, key: str, value: str) -> None:
        if self._lost is not None:
            self._lost.append(key)
        self._clients[server].set(key, value)

    def shows(self, server: str, key: str, value: str) -> bool:
        return self.memory.look(server, key) == value.encode()

    def history(self, server: str) -> str:
        return self.memory._nodes[server].instance

    def settle_marks(self) -> None:
        pass  # a new primary marks the end of the epoch before it by itself

    def lag(self, replica: str, milliseconds: int) -> None:
        self.memory.set_lag(replica, milliseconds / 1000)

    def cut(self, replica: str, chance: random.Random) -> None:
        self.memory.freeze(replica)

    def heal(self, replica: str, *, wait: bool) -> None:
        self.memory.heal(replica)

    def restart_replica(self, replica: str, write: Callable[[], None], *, wait: bool) -> None:
        self.memory.stop(replica)
        write()
        self.memory.restart(replica)

    def promote(self, replica: str, lost: Callable[[], None] | None) -> None:
        self._lost = []
        if lost is not None:
            for region in self.servers:
                self.memory.freeze(region)
            lost()
        self.memory.promote(replica, lose=len(self._lost))
        self._primary, self._lost = replica, None
        for region in self.servers:
            self.memory.heal(region)

    def rejoin(self, server: str, *, wait: bool) -> None:
        raise AssertionError("every server follows the new primary by itself")

    def calm(self) -> None:
        for region in self.servers:
            self.memory.heal(region)
            self.memory.set_lag(region, 0.0)

    def wait_caught_up(self) -> None:
        pass  # without a lag they always are


class TrustsEndedEpochs(antipode.memory.MemoryShim):
    """Takes the whole of an epoch that has ended for arrived."""

    def visible(self, ids: Sequence[WriteId], server: Server) -> Sequence[Visibility]:
        with server.target.store.looking(server.target.node) as node:
            return [VISIBLE if self._arrived(node, write_id.version) else NOT_YET for write_id in ids]

    @staticmethod
    def _arrived(node: Node, version: Version) -> bool:
        assert isinstance(version, Ordered)
        return version.epoch != node.epoch or version.counter <= node.counter


class GivesUpEarly(antipode.memory.MemoryShim):
    """Takes what is not there yet for lost."""

    def visible(self, ids: Sequence[WriteId], server: Server) -> Sequence[Visibility]:
        answers = super().visible(ids, server)
        return [answer if answer is VISIBLE else unproven("it may be lost") for answer in answers]


def test_random_failovers_show_no_false_pass() -> None:
    tally = failover.run(lambda _: MemoryDriver(), 30, seed=1)
    failover.check(tally, most_unproven=0.0)


@pytest.mark.parametrize(("broken", "found"), [(TrustsEndedEpochs, "lost_passed"), (GivesUpEarly, "rash")])
def test_a_broken_shim_is_caught(
    broken: type[antipode.memory.MemoryShim], found: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(MemoryDriver, "shim", broken)
    for seed in range(20):
        tally = failover.run(lambda _: MemoryDriver(), 1, seed=seed)
        if getattr(tally, found):
            break
    assert getattr(tally, found)
    with pytest.raises(AssertionError):
        failover.check(tally)
