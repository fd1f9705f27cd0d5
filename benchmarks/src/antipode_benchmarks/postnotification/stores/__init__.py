"""The posts' stores: each opens itself for one service, plain or wrapped by Antipode's shim."""

from __future__ import annotations

from typing import Protocol

import antipode.memory

from antipode_benchmarks.postnotification.options import Setup


class Posts(Protocol):
    """The posts as post-storage sees them in one region."""

    async def write(self, key: str, body: bytes) -> None:
        """Writes a post at the primary; returns when the store has acknowledged it."""

    async def read(self, key: str) -> tuple[bytes | None, str]:
        """Reads a post at one of the region's replicas; the post or None, and the replica's name."""


def open_posts(setup: Setup, region: str, embedded: antipode.memory.Store | None) -> Posts:
    """The posts for post-storage in a region."""
    if embedded is not None:
        from antipode_benchmarks.postnotification.stores.memory import MemoryPosts

        return MemoryPosts(setup, region, embedded)
    from antipode_benchmarks.postnotification.stores.redis import RedisPosts

    return RedisPosts(setup, region)


def register_posts(setup: Setup, embedded: antipode.memory.Store | None) -> None:
    """Tells Antipode where a service that never reads posts shall wait for them."""
    if embedded is not None:
        embedded.register(*setup.options.replicas)
        return
    from antipode_benchmarks.postnotification.stores.redis import register

    register(setup)
