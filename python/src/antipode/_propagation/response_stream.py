"""Calls whose lineage comes at their end, messages of the answer long before (spec PROP-28)."""

from __future__ import annotations

import threading
from collections.abc import Iterable
from contextlib import nullcontext
from typing import Final

from antipode._scope.context import activate
from antipode._scope.scope import Scope, current_scope
from antipode.propagation import is_expected, mark_unanswered, merge_response

_DETAIL: Final = "a response stream of {} is open: its lineage comes at its end"


class ResponseStream:
    """One call to `host`, for the scope that is current where it is made.

    A hook says `message()` of each message before the application has it, and at the end `end(...)`, or `lost(...)`
    where the end did not come. Where the application drops a stream that is open, `drop()` may be said in a finalizer:
    it takes no lock.
    """

    __slots__ = ("_ended", "_expected", "_lock", "detail", "dropped", "holds", "host", "scope")
    reason: Final = "streaming"

    def __init__(self, host: str) -> None:
        self.host = host
        self.detail = _DETAIL.format(host)
        self.scope: Scope | None = current_scope()
        self.holds = False
        """Whether a message is in hand, or may be missing for ever: the scope is incomplete."""
        self.dropped = False
        self._ended = False
        self._lock = threading.RLock()
        self._expected = is_expected(self.scope, host)
        """Judged once: a setting that changes meanwhile must not hide what is lost."""
        if self._expected and self.scope is not None:
            self.scope.streams.expect(self)

    def message(self) -> None:
        """A message came; after the end's lineage it adds nothing that is missing."""
        if not self._ended:
            self.holds = True

    def end(self, values: Iterable[str], lost: str = "") -> None:
        """The end came with these lineages: first they join, then the scope may be complete, if nothing was lost."""
        self._finish(lost, list(values))

    def lost(self, why: str) -> None:
        """It ended without the server's word (PROP-27)."""
        self._finish(why, [])

    def _finish(self, why: str, texts: list[str]) -> None:
        with self._lock:  # whoever comes second waits for the join
            if self._ended:
                return
            # It may be heard of in a thread of the transport's.
            with nullcontext() if self.scope is None else activate(self.scope):
                if texts:
                    merge_response(texts, self.host)
                if texts and not is_expected(self.scope, self.host):
                    why = "its trailer is not taken, by settings that came while it was open"
                if why and self._expected and self.scope is not None:
                    mark_unanswered(self.scope, self.host, why)
            if self.scope is not None:
                self.scope.streams.forget(self)
            self._ended = True

    def drop(self) -> None:
        """Nobody reads it any more: what it would have brought stays missing."""
        if not self._ended:
            self.dropped = self.holds = True
