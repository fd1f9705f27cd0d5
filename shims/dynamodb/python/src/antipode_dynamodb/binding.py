"""What a wrapped client knows: its store, its server, the plain client under it, its tables."""

from __future__ import annotations

import secrets
from collections.abc import Sequence
from itertools import count
from typing import Any, Final

from antipode.at_rest import lineage_at_rest, lineage_unscoped, text_at_rest
from antipode.hybrid_clock import NODE_BITS, HybridClock
from antipode.lineage import EMPTY, Lineage
from antipode.observers import events
from antipode.read import WrappedClient
from antipode.recent import Recent
from antipode.scope import current_scope
from antipode.shim import Server, Store, StoreOptions
from antipode.wire import MAX_COUNTER
from antipode.writeid import Ordered

from antipode_dynamodb.attributes import place_of
from antipode_dynamodb.plain import Conversion
from antipode_dynamodb.tables import Tables, table_name

_MOST_CHAINS: Final = 10_000
_MOST_STEPS: Final = 1 << 10
_steps: Final = count(secrets.randbits(10))
"""Two writers above one refused version take another step each (SHIM-29)."""


class Binding(WrappedClient):
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
        super().__init__(store, options)
        self.server = server
        self.low = low
        self.conversion = conversion
        """For the client of a boto3 resource, which has Python's types."""
        self.tables = tables
        self.clock = clock
        self.only = only
        self.consistent = consistent
        self.chains: Recent[bytes, int | None] = Recent(_MOST_CHAINS)
        """The chains of the items that were written or read last: a wrong guess costs one more request."""

    def has(self, table: str) -> bool:
        """Whether a table belongs to the store."""
        return self.only is None or table_name(table) in self.only

    def observe_scope(self) -> None:
        """The clock passes every version of this store that the scope depends on (SHIM-26)."""
        scope = current_scope()
        if scope is None or scope.recorded_lineage is EMPTY:
            return
        for write_id in scope.recorded_lineage.of_store(self.store.name):
            if isinstance(write_id.version, Ordered):
                self.clock.observe(write_id.version.counter)

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

    def text_at_rest(self) -> str:
        """The lineage that rests beside what the current scope writes; empty where none does."""
        if self.options.rest == "none":
            return ""
        scope = current_scope()
        return self.text_of(lineage_unscoped(self.store.options.lineage_out) if scope is None else scope.outgoing())

    def text_of(self, lineage: Lineage) -> str:
        """A lineage's text as it may rest in the store."""
        return text_at_rest(lineage, self.store.options.lineage_out)

    def lineage_of(self, texts: Sequence[str]) -> Lineage:
        """The lineage that rests in these texts; what cannot be read is incomplete for the store (SHIM-14)."""
        return lineage_at_rest(texts, self.store.name, self.store.options.lineage_in)

    def incomplete(self, reason: str) -> None:
        """Counts a lineage that became incomplete here."""
        events.on_lineage_incomplete(reason, self.store.name)
