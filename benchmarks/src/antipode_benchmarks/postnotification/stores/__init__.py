"""The posts' stores: one module each, found by its name, opened for one service plain or wrapped by Antipode's shim.

A new store is a new module here, named like the lab's store, with what `PostsModule` says; nothing else changes.
"""

from __future__ import annotations

from collections.abc import Mapping
from importlib import import_module
from pkgutil import iter_modules
from typing import Any, NamedTuple, Protocol, cast

import antipode.memory
from antipode_lab.model import StoreState

from antipode_benchmarks.postnotification.options import Setup


class Posts(Protocol):
    """The posts as post-storage sees them in one region."""

    async def write(self, key: str, body: bytes) -> None:
        """Writes a post at the primary; returns when the store has acknowledged it."""

    async def read(self, key: str) -> tuple[bytes | None, str]:
        """Reads a post at one of the region's replicas; the post or None, and the replica's name."""


class Place(NamedTuple):
    """Where the posts are."""

    urls: dict[str, str]
    """The servers (`a`, `b1`, …) as Antipode takes them and the services' clients use them."""
    operator: str = ""
    """The primary's URL by which `antipode init` may prepare it; empty: the services' own."""
    user: str | None = None
    """The services' login, where that is another one than the operator's."""
    options: Mapping[str, str] = {}
    """What `antipode init` is told by `--set`."""


class PostsModule(Protocol):
    """What a module of this folder has, but for `memory`. Where `setup.antipode` is off it imports no shim."""

    @property
    def LAB(self) -> Mapping[str, Any]:
        """Options of the lab's store; empty for its defaults."""

    def prepare(self, lab: StoreState, /) -> Place:
        """Once, before the first service: makes the application's own schema, and returns when all servers have it."""

    def open_posts(self, setup: Setup, region: str, /) -> Posts:
        """The posts for post-storage in a region."""

    def register(self, setup: Setup, /) -> None:
        """Where a service that has no client of the store shall wait: at all of region B's replicas."""


def names() -> list[str]:
    """What `--post-storage` can be."""
    return sorted(module.name for module in iter_modules(__path__) if not module.name.startswith("_"))


def module_of(name: str) -> PostsModule:
    """A store's module."""
    return cast("PostsModule", import_module(f"{__name__}.{name}"))


def open_posts(setup: Setup, region: str, embedded: antipode.memory.Store | None) -> Posts:
    """The posts for post-storage in a region."""
    if embedded is not None:
        from antipode_benchmarks.postnotification.stores.memory import MemoryPosts

        return MemoryPosts(setup, region, embedded)
    return module_of(setup.options.post_storage).open_posts(setup, region)


def register_posts(setup: Setup, embedded: antipode.memory.Store | None) -> None:
    """Tells Antipode where a service that never reads posts shall wait for them."""
    if embedded is not None:
        embedded.register(*setup.options.replicas)
        return
    module_of(setup.options.post_storage).register(setup)
