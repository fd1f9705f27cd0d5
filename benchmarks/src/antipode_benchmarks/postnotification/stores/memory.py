"""Posts in Antipode's embedded replicated store, shared by the services of one process."""

from __future__ import annotations

import asyncio
from itertools import cycle

import antipode.memory

from antipode_benchmarks.postnotification.options import STORE, Options, Setup


def create(options: Options) -> antipode.memory.Store:
    """The store: a primary in region A and the replicas of region B with their lags."""
    lags = {name: lag / 1000 for name, lag in options.replicas.items()}
    return antipode.memory.Store(STORE, regions=["a", *lags], lag=lags)


class MemoryPosts:
    """Reads go to the replicas in turn."""

    def __init__(self, setup: Setup, region: str, store: antipode.memory.Store) -> None:
        self._waits = setup.wait_on_read
        names = ["a"] if region == "a" else list(setup.options.replicas)
        clients = [(name, store.client(name, wait_on_read=setup.wait_on_read)) for name in names]
        self._primary = clients[0][1]
        self._turns = cycle(clients)

    async def write(self, key: str, body: bytes) -> None:
        """Writes at the primary."""
        self._primary.set(key, body)

    async def read(self, key: str) -> tuple[bytes | None, str]:
        """Reads at the next replica; in a thread where the read may wait."""
        name, client = next(self._turns)
        if self._waits:
            return await asyncio.to_thread(client.get, key), name
        return client.get(key), name
