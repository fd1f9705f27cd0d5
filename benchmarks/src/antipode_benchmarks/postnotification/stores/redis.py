"""Posts in Redis: a primary in region A, replicas in region B, redis-py's asyncio client."""

from __future__ import annotations

from collections.abc import Mapping
from itertools import cycle
from typing import Any, Final

import redis.asyncio
from antipode_lab.model import StoreState

from antipode_benchmarks.postnotification.options import STORE, Setup
from antipode_benchmarks.postnotification.stores import Place

LAB: Final[Mapping[str, Any]] = {}


class RedisPosts:
    """Reads go to the replicas in turn."""

    def __init__(self, setup: Setup, region: str) -> None:
        names = ["a"] if region == "a" else list(setup.options.replicas)
        clients = [(name, _client(setup, name)) for name in names]
        self._primary = clients[0][1]
        self._turns = cycle(clients)

    async def write(self, key: str, body: bytes) -> None:
        """SET at the primary."""
        await self._primary.set(key, body)

    async def read(self, key: str) -> tuple[bytes | None, str]:
        """GET at the next replica."""
        name, client = next(self._turns)
        found = await client.get(key)
        return (found if found is None or isinstance(found, bytes) else found.encode()), name


def _client(setup: Setup, name: str) -> redis.asyncio.Redis:
    client = redis.asyncio.Redis.from_url(setup.posts[name])
    if not setup.antipode:
        return client
    import antipode_redis  # the baseline does without it

    return antipode_redis.wrap(client, store=STORE, wait_on_read=setup.wait_on_read, timeout=setup.options.timeout)


open_posts = RedisPosts


def prepare(lab: StoreState) -> Place:
    """Keys need no schema."""
    return Place({name: server.url for name, server in lab.servers.items()})


def register(setup: Setup) -> None:
    """follower-notify waits for all of the region's replicas, and has no client of its own."""
    import antipode_redis

    antipode_redis.register(STORE, replicas=[setup.posts[name] for name in setup.options.replicas])
