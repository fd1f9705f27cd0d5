"""The lab as the failover fuzzer drives it: links and servers by the lab's verbs; a store's driver adds its data."""

from __future__ import annotations

import random
from collections.abc import Callable, Sequence
from typing import Any

from antipode.testing.failover import FailoverDriver

__all__ = ["LabDriver"]


class LabDriver(FailoverDriver):
    """A primary "a" and two replicas of a store of a lab, which is in `lab`; readers may use all three."""

    lab: Any
    """The lab's store."""

    @property
    def servers(self) -> Sequence[str]:
        return ("a", "b1", "b2")

    @property
    def primary(self) -> str:
        return str(self.lab.primary)

    @property
    def replicas(self) -> Sequence[str]:
        found: list[str] = self.lab.replicas
        return found

    def address(self, server: str) -> str:
        return f":{self.lab.server(server).port}"

    def lag(self, replica: str, milliseconds: int) -> None:
        self.lab.lag(replica, f"{milliseconds}ms")

    def cut(self, replica: str, chance: random.Random) -> None:
        self.lab.partition(replica, mode=chance.choice(["cut", "silent"]))

    def heal(self, replica: str, *, wait: bool) -> None:
        self.lab.heal(replica, wait=wait)

    def promote(self, replica: str, lost: Callable[[], None] | None) -> None:
        self.lab.promote(replica, lose=0 if lost is None else lambda _: lost(), wait=False)

    def rejoin(self, server: str, *, wait: bool) -> None:
        self.lab.heal(wait=False)
        self.lab.repoint(server, self.lab.primary, wait=wait)

    def calm(self) -> None:
        self.lab.heal()
        for name in self.servers:
            if name != self.lab.primary:
                self.lab.lag(name, "0ms")
                if name not in self.lab.replicas:
                    self.lab.repoint(name, self.lab.primary)

    def wait_caught_up(self) -> None:
        for name in self.lab.replicas:
            self.lab.wait_caught_up(name)
