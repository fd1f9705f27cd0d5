"""What a wrapped client knows: its store, its server, what kind of server that is."""

from __future__ import annotations

import threading
from typing import Any, Final

from antipode import Lineage, UnfitStoreError
from antipode.shim import BoundedMap, HybridClock, Server, Store, StoreOptions, logs
from antipode.shim.objects import ObjectClient
from pymongo.errors import PyMongoError

from antipode_mongodb.flavour import Flavour, examine
from antipode_mongodb.targets import Target, connections_of, is_of_one, url_of, view_of
from antipode_mongodb.tombstones import Switches, are_on

_ASK_S: Final = 5.0
_MOST_CURSORS: Final = 256
UNKNOWN: Final = Flavour("MongoDB", why_none="it has not answered yet")


class Binding(ObjectClient):
    """One wrapped client. Safe among threads."""

    def __init__(
        self,
        store: Store,
        options: StoreOptions,
        server: Server,
        target: Target,
        clock: HybridClock,
        *,
        tombstones: bool | None,
    ) -> None:
        super().__init__(store, options, clock)
        self.server = server
        self.target = target
        self.tombstones = tombstones
        self.flavour: Flavour = UNKNOWN
        self.unfit = ""
        """Why nothing that it writes can be proved."""
        self.switches = Switches()
        self.cursors: BoundedMap[Any, Lineage] = BoundedMap(_MOST_CURSORS)
        """By the id of a cursor whose batches are fetched by hand: what was proved when it was opened."""
        self._lock = threading.Lock()
        self._view: Any = None
        """What the client saw of its servers when the flavour was asked for."""
        self._connections: Any = None
        """The connections that it had made."""

    # The server

    def server_at(self, client: Any, address: tuple[str, int | None] | None) -> Server | None:
        """The server that answered a read of this client; None where that cannot be told."""
        if is_of_one(client):
            return self.server
        return None if address is None else self.store.server_at(url_of(*address))

    @property
    def unknown(self) -> bool:
        """Whether the server has not said yet what it is."""
        return self.flavour is UNKNOWN

    def known(self, client: Any) -> bool:
        """Whether it is known what the server is, by what the client sees of it now."""
        if self.flavour is UNKNOWN or view_of(client) != self._view:
            return False
        # An epoch is never a cached one of another connection (EPOCH-2).
        return not self.flavour.positions or not is_of_one(client) or connections_of(client) == self._connections

    def learn(self, plain: Any) -> bool:
        """Asks the server behind a client what it is, where that is not known; False where it cannot be asked.

        Blocks for a few seconds at most. Raises UnfitStoreError.
        """
        with self._lock:
            if self.known(plain):
                return True
            view, connections = view_of(plain), connections_of(plain)  # what changes meanwhile is asked about again
            client = self.target.connect(_ASK_S)
            try:
                self.flavour = examine(client, self.store.name)
                self._view, self._connections = view, connections
            except UnfitStoreError as error:
                if self.options.on_unfit == "raise":
                    raise
                self.unfit = str(error)
                logs.warn(f"unfit {self.store.name}", self.unfit, code="AP208")
                self.flavour = Flavour("MongoDB", why_none=self.unfit)
                self._view = view
            except PyMongoError as error:
                logs.info(
                    f"probe {self.store.name}",
                    f"{self.store.name}: {self.target.address} cannot be examined yet ({type(error).__name__}); it is "
                    "when first used",
                    code="AP507",
                )
                return False
            finally:
                client.close()
            return True

    def has_tombstones(self, database: str) -> bool:
        """Whether deletions in a database leave tombstones; asks the server where that is not known.

        Raises PyMongoError where it cannot be known now: a write may lie below a tombstone then.
        """
        if self.tombstones is False:
            return False
        known = self.switches.known(database)
        if known is not None:
            return known
        client = self.target.connect(_ASK_S)
        try:
            found = are_on(client, database)
        finally:
            client.close()
        self.switches.learn(database, found)
        return found

    # Writing

    def version_after(self, seen: int | None) -> int | None:
        """A version greater than what was seen at a key; None where none is left above a forged one (SHIM-28)."""
        if seen is not None and not self.clock.observe(seen):
            return self.clock.above(seen)
        return self.clock.next()
