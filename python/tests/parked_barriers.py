"""Barriers that wait while the servers of their store change."""

from __future__ import annotations

import asyncio
import threading
from typing import Any

import antipode
from antipode import Lineage, WriteId
from antipode.shim import Store
from fakes import Target

WRITE = Lineage([WriteId("posts", "k", antipode.Ordered("", 1))])


class Waiting:
    """A barrier in a thread of its own, blocking or of an event loop, and what came of it."""

    def __init__(
        self, lineage: Lineage = WRITE, *, by_task: bool = False, timeout: float = 60.0, **options: Any
    ) -> None:
        self._lineage = lineage
        self._options = {"timeout": timeout, "on_timeout": "proceed", "on_unproven": "proceed", **options}
        self.result: antipode.BarrierResult | None = None
        self._thread = threading.Thread(target=self._run_task if by_task else self._run, daemon=True)
        self._thread.start()

    def _run(self) -> None:
        try:
            self.result = antipode.barrier(self._lineage, **self._options)
        except antipode.BarrierIncomplete as error:
            self.result = error.result

    def _run_task(self) -> None:
        async def run() -> antipode.BarrierResult:
            return await antipode.barrier_async(self._lineage, **self._options)

        self.result = asyncio.run(run())

    def end(self) -> antipode.BarrierResult:
        self._thread.join(70)
        assert self.result is not None
        return self.result


class Client:
    """What leads to a server, as its settings say."""

    def __init__(self, leads_to: Target) -> None:
        self.leads_to = leads_to


def follow(store: Store, client: Client, *, listed: bool = False) -> None:
    store.follow_client(client, lambda it: it.leads_to, lambda it: [it.leads_to], "a client", listed=listed)


def judged(result: antipode.BarrierResult) -> list[str]:
    return [server.address for server in result.stores["posts"].servers if not server.left_out]


def is_parked(store: Store) -> bool:
    return store.parked_threads + store.parked_tasks == 1
