"""What the shims of stores of objects share: versions by a hybrid clock, and the lineage that rests beside a value.

Nothing here knows a store.
"""

from __future__ import annotations

import hashlib
from collections.abc import Sequence
from typing import Final

from antipode._model.lineage import EMPTY, Lineage
from antipode._model.write_id import Opaque, Ordered
from antipode._propagation.at_rest import lineage_at_rest, lineage_unscoped, text_at_rest
from antipode._scope.scope import current_scope
from antipode._store.hybrid_clock import HybridClock
from antipode._store.read import WrappedClient
from antipode._store.store import Store, StoreOptions

_DELETED: Final = "d"
_CONTENT: Final = "h"
_DIGITS: Final = 32


class ObjectClient(WrappedClient):
    """A wrapped client that gives each object that it writes a version, and a text that rests beside it."""

    def __init__(self, store: Store, options: StoreOptions, clock: HybridClock) -> None:
        super().__init__(store, options)
        self.clock = clock

    def observe_scope(self) -> None:
        """Let the clock pass every version of this store that the scope depends on (SHIM-26)."""
        scope = current_scope()
        if scope is None or scope.recorded_lineage is EMPTY:
            return
        for write_id in scope.recorded_lineage.of_store(self.store.name):
            if isinstance(write_id.version, Ordered) and not write_id.is_position:
                self.clock.observe(write_id.version.counter)

    def text_at_rest(self) -> str:
        """Return the text that rests beside what the current scope writes; empty where none does."""
        if self.options.rest == "none":
            return ""
        scope = current_scope()
        return self.text_of(lineage_unscoped(self.store.options.lineage_out) if scope is None else scope.outgoing())

    def text_of(self, lineage: Lineage) -> str:
        """Return a lineage's text as it may rest in the store."""
        return text_at_rest(lineage, self.store.options.lineage_out)

    def lineage_of(self, texts: Sequence[str]) -> Lineage:
        """Return the lineage that rests in texts; what cannot be read is incomplete for the store (SHIM-14)."""
        return lineage_at_rest(list(texts), self.store.name, self.store.options.lineage_in)


# Versions without order


def deleted_version(counter: int) -> Opaque:
    """Return the version of a deletion that left no tombstone.

    It is unproven until something later is seen (SHIM-16).
    """
    return Opaque(f"{_DELETED}{counter}")


def deletion_of(version: Opaque) -> int | None:
    """Return the counter of a deletion that left no tombstone; None for another version."""
    text = version.mark.removeprefix(_DELETED)
    return int(text) if version.mark.startswith(_DELETED) and text.isdecimal() else None


def content_mark(octets: bytes) -> Opaque:
    """Return the version of a whole object that has none: a digest of its octets, which covers that value (SHIM-13)."""
    return Opaque(_CONTENT + hashlib.sha256(octets).hexdigest()[:_DIGITS])


def is_content(version: Opaque) -> bool:
    """Return whether a version is a digest of what an object holds."""
    return len(version.mark) == 1 + _DIGITS and version.mark.startswith(_CONTENT)
