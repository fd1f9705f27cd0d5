"""`reading()`: what the values that are read inside a block depend on (DESIGN 6, spec SHIM)."""

from __future__ import annotations

import threading
from collections.abc import Iterator
from contextlib import contextmanager
from typing import Final

from opentelemetry import context as otel

from antipode._base.otel_context import current_context, hold
from antipode._model.lineage import EMPTY, Lineage, check_lineage
from antipode._model.write_id import WriteId
from antipode._scope.scope import current_scope

_READING: Final = otel.create_key("antipode-reading")


class Reading:
    """Collects the lineages at rest beside the values that were read, and identifiers of those values."""

    def __init__(self, after: Lineage | None = None) -> None:
        self.after = after
        """Each read waits for this first, on its own connection (reach `session`); None where it does not wait."""
        self._lock = threading.Lock()
        self._lineage = EMPTY

    @property
    def lineage(self) -> Lineage:
        """What a reader of these values depends on."""
        return self._lineage

    def saw(self, *ids: WriteId, lineage: Lineage = EMPTY) -> None:
        """A shim has read a value: its lineage at rest, and an identifier that covers the value itself."""
        with self._lock:
            self._lineage = (self._lineage | lineage).including(*ids) if ids else self._lineage | lineage

    def marked(self, store: str) -> None:
        """A shim has read a value of which it cannot tell what it depends on."""
        with self._lock:
            self._lineage = self._lineage.marked_incomplete(store)


def current_reading() -> Reading | None:
    """The innermost `reading()` block that the caller is in; what shims ask before they read."""
    return reading_in(current_context())


def reading_in(context: otel.Context) -> Reading | None:
    """The innermost `reading()` block that a Context holds, for who has it at hand."""
    return context.get(_READING)  # type: ignore[return-value]


@contextmanager
def reading(after: Lineage | None = None, *, merge: bool = False) -> Iterator[Reading]:
    """Collects what the reads inside the block depend on.

    `after`: each read first waits until this lineage's writes to its own store are visible on its own connection.
    `merge`: at the end the current scope is made to depend on what was read.
    """
    if after is not None:
        check_lineage(after, "antipode.reading(after=)")
    seen = Reading(after)
    try:
        with hold(_READING, seen):
            yield seen
    finally:
        scope = current_scope()
        if merge and scope is not None:
            scope.transfer_read(seen.lineage)
