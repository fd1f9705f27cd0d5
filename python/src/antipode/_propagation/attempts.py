"""What comes of each attempt of a call that the client's library may repeat by itself (spec PROP-30, PROP-31)."""

from __future__ import annotations

import threading
from collections.abc import Sequence
from contextlib import AbstractContextManager, nullcontext

from antipode._scope.context import activate
from antipode._scope.scope import Scope, current_scope
from antipode.propagation import GATEWAYS, merge_response, unanswered


class Attempts:
    """The attempts of one call to `host`, for the scope that is current where the call is made.

    An adapter or transport may run them in threads of its own, which know no scope.
    """

    __slots__ = ("_last", "_lock", "_scope", "host", "open", "seen")

    def __init__(self, host: str) -> None:
        self.host = host
        self.seen = False
        """Whether the transport shows each attempt, so that nothing need be read off the call's own end."""
        self.open = 0
        """How many have left and brought nothing yet."""
        self._lock = threading.Lock()
        self._scope = current_scope()
        self._last: tuple[int, tuple[str, ...]] | None = None

    def begin(self) -> None:
        """Count an attempt that leaves."""
        self.seen = True
        with self._lock:
            self.open += 1

    def settle(self) -> None:
        """Count an attempt of which the scope has what there is to have."""
        with self._lock:
            self.open -= 1

    def answer(self, status: int, values: Sequence[str]) -> None:
        """Join what an answer brought; a gateway's own stands for a callee whose answer never came (PROP-31)."""
        answer = status, tuple(values)
        if answer == self._last:
            return  # the call's own end is its last attempt's
        with self._in_scope():
            if values:
                merge_response(values, self.host)
            elif status in GATEWAYS:
                unanswered(self.host, f"status {status} without a lineage")
        self._last = answer

    def fail(self, error: BaseException | str) -> None:
        """Mark the scope: an attempt may have reached the host, and its answer never came (PROP-27)."""
        with self._in_scope():
            unanswered(self.host, error)

    def is_under_way(self, error: BaseException) -> bool:
        """Whether an attempt may go on when the call ends so: one is open, or whoever waited for them gave up."""
        return self.open > 0 or isinstance(error, TimeoutError)

    def end(self, status: int, values: Sequence[str]) -> None:
        """Join what the call itself gave; of an attempt before it no answer may have come."""
        if self.open:
            self.fail("an attempt before the last")
        self.answer(status, values)

    def _in_scope(self) -> AbstractContextManager[Scope | None]:
        return nullcontext() if self._scope is None else activate(self._scope)
