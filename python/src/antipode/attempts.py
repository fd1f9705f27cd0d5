"""What comes of each attempt of a call that the client's library may repeat by itself (spec PROP-30, PROP-31)."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Final

from antipode.propagation import merge_response, unanswered

_GATEWAY: Final = frozenset({502, 503, 504})
"""Statuses that a gateway gives by itself, of a call that may have reached the callee."""


class Attempts:
    """The attempts of one call to `host`, for the scope that is current when each of them ends."""

    __slots__ = ("_last", "host", "seen")

    def __init__(self, host: str) -> None:
        self.host = host
        self.seen = False
        """Whether the transport shows each attempt, so that nothing need be read off the call's own end."""
        self._last: tuple[int, tuple[str, ...]] | None = None

    def answer(self, status: int, values: Sequence[str]) -> None:
        """Join what an answer brought; a gateway's own stands for a callee whose answer never came (PROP-31)."""
        answer = status, tuple(values)
        if answer == self._last:
            return  # the call's own end is its last attempt's
        self._last = answer
        if values:
            merge_response(values, self.host)
        elif status in _GATEWAY:
            unanswered(self.host, f"status {status} without a lineage")

    def fail(self, error: BaseException | str) -> None:
        """Mark the scope: an attempt may have reached the host, and its answer never came (PROP-27)."""
        unanswered(self.host, error)
