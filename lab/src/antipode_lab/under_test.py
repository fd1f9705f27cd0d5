"""The lab as the conformance kit drives it: links and servers by the lab's verbs; a store's own tests add its data."""

from __future__ import annotations

from abc import abstractmethod
from collections.abc import Callable, Mapping, Sequence
from functools import cached_property
from typing import Any, ClassVar
from urllib.parse import urlsplit

from antipode.testing.under_test import NotPossible, StoreUnderTest

from antipode_lab.endpoint import Endpoint
from antipode_lab.lab import Lab

__all__ = ["LabLinks", "LabUnderTest"]


class LabLinks(StoreUnderTest):
    """Links and servers of a store of a lab that is there, in `lab`."""

    lags: ClassVar[Mapping[str, int]] = {"b1": 5, "b2": 20}
    """By replica, in milliseconds."""
    lab: Any
    """The lab's store."""

    @property
    def replicas(self) -> Sequence[str]:
        return list(self.lags)

    def set_lag(self, replica: str, seconds: float) -> None:
        self.lab.lag(replica, f"{round(seconds * 1000)}ms")

    def partition(self, replica: str) -> None:
        self.lab.partition(replica)

    def heal(self, replica: str) -> None:
        self.lab.heal(replica, wait=False)

    def freeze(self, server: str) -> None:
        self.lab.freeze(server)

    def thaw(self, server: str) -> None:
        self.lab.thaw(server)

    def restart(self, server: str) -> None:
        self.lab.restart(server)

    # An address that moves

    def list_port(self, port: int) -> None:
        """Register `self.name` with `replicas=` a server at this port of the machine, in the store's own words."""
        raise NotPossible("list_port")

    def list_moving(self, server: str) -> Callable[[str], None]:
        endpoint = Endpoint(self._port(server))
        self._endpoints.append(endpoint)
        self.list_port(endpoint.port)

        def lead(other: str) -> None:
            endpoint.leads_to = self._port(other)

        return lead

    def _port(self, server: str) -> int:
        """Where clients reach a server straight, not through a link."""
        return urlsplit(self.lab.url(server)).port or 0

    @cached_property
    def _endpoints(self) -> list[Endpoint]:
        return []

    def close_endpoints(self) -> None:
        """End the addresses of a case."""
        while self._endpoints:
            self._endpoints.pop().close()


class LabUnderTest(LabLinks):
    """A lab of its own: a primary "a" and two replicas. It is made anew after the cases that spoil it.

    A subclass says which store and what it holds at first (`kind`, `store`, `prepare`), and how it is written and read.
    """

    kind: ClassVar[str]
    """The lab's word for the store."""
    store: ClassVar[type[Any]]
    """Its class in the lab."""

    def __init__(self) -> None:
        self._start()

    def _start(self) -> None:
        self._whole = Lab(self.kind, replicas=len(self.lags), lag=[f"{lag}ms" for lag in self.lags.values()]).start()
        self.lab = self._whole.get(self.store)
        self.prepare()

    def prepare(self) -> None:
        """What the servers hold before the first case: tables, rights."""

    @abstractmethod
    def close_clients(self) -> None:
        """Ends the connections that a case has opened."""

    def close(self) -> None:
        """Ends the servers."""
        self._whole.close()

    def recover(self, *, spoiled: bool) -> None:
        self.close_endpoints()
        self.close_clients()
        if spoiled:
            self.close()
            self._start()
            return
        for name, lag in self.lags.items():
            self.lab.lag(name, f"{lag}ms")
        self.lab.heal()

    @property
    def primary(self) -> str:
        return str(self.lab.primary)

    def repoint(self, replica: str, source: str) -> None:
        self.lab.repoint(replica, source)

    def promote(self, replica: str, lost: Callable[[], None] | None = None) -> None:
        old = self.primary
        self.lab.promote(replica, lose=0 if lost is None else lambda _: lost())
        if old in self.replicas:
            self.lab.heal(wait=False)
            self.lab.repoint(old, replica)
