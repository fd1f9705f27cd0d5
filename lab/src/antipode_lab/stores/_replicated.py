"""What stores of one primary and its replicas do alike: who follows whom, and which links can carry data."""

from __future__ import annotations

from abc import abstractmethod
from itertools import pairwise
from typing import TypeVar

from antipode_lab.errors import LabError
from antipode_lab.store import BaseStore

O = TypeVar("O")  # noqa: E741


class ReplicatedStore(BaseStore[O]):
    """Each replica has a source, which may be a replica itself; how it is promoted or re-pointed is the store's."""

    @abstractmethod
    def wait_caught_up(self, name: str, timeout: float = 60.0) -> None:
        """Waits until ``name`` has applied all that its primary has written by now.

        Raises:
            LabError: after ``timeout`` seconds.
        """

    @property
    def primary(self) -> str:
        """The server that was last made the primary."""
        return str(next(s.name for s in self.state.servers.values() if s.role == "primary"))

    @property
    def replicas(self) -> list[str]:
        """The servers that are replicas, directly or not, of the primary."""
        return [server.name for server in self.state.servers.values() if server.role == "replica"]

    def root_of(self, name: str) -> str:
        """The server at the head of the chain that ``name`` replicates from."""
        seen = {name}
        while (source := self.server(name).source) is not None:
            if source in seen:
                raise LabError(f"{self.kind} {name} replicates from itself, over {source}")
            seen.add(source)
            name = source
        return name

    def wait_links(self, timeout: float = 60.0) -> None:
        """Waits until data flow over every link that is not parted, to every server that runs."""
        for name in [name for name in self.replicas if self._can_flow(name)]:
            self.wait_caught_up(name, timeout)

    def _chain(self, name: str) -> list[str]:
        """``name`` and every server that its data come through."""
        chain = [name]
        while (source := self.server(chain[-1]).source) is not None and source not in chain:
            chain.append(source)
        return chain

    def _can_flow(self, name: str) -> bool:
        """Whether nothing that the lab did keeps data from ``name``."""
        chain = self._chain(name)
        links = pairwise(chain)
        return all(map(self.running, chain)) and all(self.link(*link).state == "up" for link in links)
