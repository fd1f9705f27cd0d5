"""What the engine made of a store, its servers and their sources, for tests of the engine itself."""

from __future__ import annotations

from typing import cast

from antipode._engine.discovery import Discovery
from antipode._engine.server import ServerPoller
from antipode._engine.store_servers import RegionStore
from antipode.shim import Server, ServerSource, Store


def region_store(store: Store) -> RegionStore:
    """Return a registered store as the engine made it."""
    return cast("RegionStore", store)


def poller(server: Server) -> ServerPoller:
    """Return a server as the engine made it."""
    return cast("ServerPoller", server)


def discovery_of(source: ServerSource) -> Discovery:
    """Return a source of servers as the engine made it."""
    return cast("Discovery", source)
