"""The services' processes: started together, watched while they run, ended with the run."""

from __future__ import annotations

import asyncio
from collections.abc import Collection, Mapping
from contextlib import AsyncExitStack
from itertools import groupby
from types import TracebackType
from typing import Self
from uuid import uuid4

from psutil import Process

from antipode_benchmarks.postnotification.hosts import Hosts
from antipode_benchmarks.postnotification.options import QUEUE, REGIONS, SERVICES, Language, Options, Setup


class Fleet:
    """All services, for one phase of a run (`async with`)."""

    def __init__(
        self,
        options: Options,
        *,
        antipode: bool,
        posts: dict[str, str] | None = None,
        queues: dict[str, str] | None = None,
        enforcing: Collection[str] = (),
        environment: Mapping[str, str] | None = None,
        place: str = QUEUE,
    ) -> None:
        """`enforcing`: services that wait at their barriers, whatever ANTIPODE_MODE has the others do.

        `environment`: variables of all processes beside the command's own; `place`: the exchange and the queue.
        """
        self._options = options
        self._enforcing = enforcing
        self._environment = environment or {}
        self._place = place
        self._antipode = antipode
        self._posts = posts or {}
        self._queues = queues or {}
        self._ends = AsyncExitStack()
        self._hosts = Hosts()
        self.addresses: dict[str, str] = {}

    async def __aenter__(self) -> Self:
        async with AsyncExitStack() as started:
            await started.enter_async_context(self._hosts)
            await self._start()
            self._ends = started.pop_all()
        return self

    async def __aexit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        await self._ends.aclose()

    async def _start(self) -> None:
        for language, services in self._processes():
            waits = not set(services).isdisjoint(self._enforcing)
            mode = {"ANTIPODE_MODE": "enforce"} if waits else {}
            await self._hosts.start(language, services, {**self._environment, **mode})
        for host in self._hosts:
            self.addresses |= await host.bound()
        servers = self.addresses, self._posts, self._queues
        setup = Setup(self._options, self._antipode, *servers, self._place, self._place, run=uuid4().hex)
        await asyncio.gather(*(host.told(setup) for host in self._hosts))

    def _processes(self) -> list[tuple[Language, tuple[str, ...]]]:
        """A process a service; for other languages than Python, whose start costs more, one for those of a region.

        Which waits, whatever the others do, has one of its own: the mode is a process's.
        """
        if self._options.embedded:
            return [("python", SERVICES)]
        processes: list[tuple[Language, tuple[str, ...]]] = []
        for services in REGIONS.values():
            for language, group in groupby(sorted(services, key=self._options.language), self._options.language):
                own = tuple(group)
                alone = own if language == "python" else tuple(service for service in own if service in self._enforcing)
                rest = tuple(service for service in own if service not in alone)
                processes += [(language, (service,)) for service in alone] + [(language, rest)] * bool(rest)
        return processes

    @property
    def processor_seconds(self) -> float:
        """The time that its processes have spent on processors since they began."""
        return sum(sum(Process(host.process.pid).cpu_times()[:2]) for host in self._hosts)

    def check(self) -> None:
        """Raises RunFailed where a process has ended."""
        self._hosts.check()

    def words(self) -> str:
        """What the services wrote to standard error, for the message of a failure."""
        return self._hosts.words()
