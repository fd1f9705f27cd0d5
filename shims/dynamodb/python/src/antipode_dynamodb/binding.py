"""What a wrapped client knows: its store, its server, the plain client under it, its tables."""

from __future__ import annotations

import secrets
from itertools import count
from typing import Any, Final

from antipode.shim import MAX_COUNTER, NODE_BITS, BoundedMap, HybridClock, Server, Store, StoreOptions, events
from antipode.shim.objects import ObjectClient

from antipode_dynamodb.attributes import place_of
from antipode_dynamodb.plain import Conversion
from antipode_dynamodb.tables import Tables, table_name

_MOST_CHAINS: Final = 10_000
_MOST_STEPS: Final = 1 << 10
_steps: Final = count(secrets.randbits(10))
"""Two writers above one refused version take another step each (SHIM-29)."""


class Binding(ObjectClient):
    """One wrapped client."""

    def __init__(
        self,
        store: Store,
        options: StoreOptions,
        server: Server,
        *,
        low: Any,
        conversion: Conversion | None,
        tables: Tables,
        clock: HybridClock,
        only: frozenset[str] | None,
        consistent: str,
    ) -> None:
        """low: the plain client, with DynamoDB's own types. only: the tables that belong to the store; None: all."""
        super().__init__(store, options, clock)
        self.server = server
        self.low = low
        self.conversion = conversion
        """For the client of a boto3 resource, which has Python's types."""
        self.tables = tables
        self.only = only
        self.consistent = consistent
        self.chains: BoundedMap[bytes, int | None] = BoundedMap(_MOST_CHAINS)
        """The chains of the items that were written or read last: a wrong guess costs one more request."""

    def has(self, table: str) -> bool:
        """Whether a table belongs to the store."""
        return self.only is None or table_name(table) in self.only

    def chain_at(self, key: bytes) -> int | None:
        """The chain that the item with this key is likely to have here; None where nothing is known of it."""
        chain = self.chains.get(key)
        return chain if chain is not None and place_of(chain) == place_of(self.clock.node) else None

    def version_after(self, seen: int | None) -> tuple[int, bool]:
        """A version greater than what was seen at a key; false where none is left above a forged one (SHIM-28)."""
        if seen is not None and not self.clock.observe(seen):
            above = self.clock.above(seen)
            if above is None:
                return self.clock.next(), False
            apart = above + (next(_steps) % _MOST_STEPS << NODE_BITS)
            return apart if apart <= MAX_COUNTER else above, True
        return self.clock.next(), True

    def incomplete(self, reason: str) -> None:
        """Counts a lineage that became incomplete here."""
        events.on_lineage_incomplete(reason, self.store.name)
