"""One write of a connection, from before it is sent until its position is in the scope."""

from __future__ import annotations

from asyncio import _get_running_loop as _running_loop
from threading import get_ident

from antipode.lineage import EMPTY
from antipode.otel_context import current_context
from antipode.pending import current_task
from antipode.scope import scope_in
from antipode.site import call_site
from antipode.store import Write

from antipode_postgresql.binding import Binding


class SentWrite(Write):
    """A statement that may write, or the transaction that it begins."""

    __slots__ = ()

    def __init__(self, binding: Binding) -> None:
        # As the classes above do it, in one step: this is on the path of every write.
        self._store = store = binding.store
        self.store = store.name
        self._key = b""
        self._open = True
        self._lineage = EMPTY
        self._top = None
        self._at = 0
        self.task = get_ident() if _running_loop() is None else current_task()
        self.site = call_site() if binding.sites else ""
        self.unknown = False
        self._scope = scope = scope_in(current_context())
        if scope is not None:
            scope.enter(self)
