"""When the positions of a store were first seen: what a server's lag is told from (spec BAR-57)."""

from __future__ import annotations

from collections import deque
from typing import Final

_AGE_STEP_S: Final = 0.1


class Ages:
    """When a store's positions were first seen at any of its servers: what a server's lag is told from (BAR-57)."""

    def __init__(self) -> None:
        self._seen: tuple[str, deque[tuple[int, float]]] = ("", deque())

    def note(self, epoch: str, counter: int, now: float) -> None:
        """A server was seen to have applied so much of the epoch that it is in (any thread)."""
        known, seen = self._seen
        if epoch != known:
            self._seen = epoch, deque([(counter, now)], maxlen=128)
        elif counter > seen[-1][0] and now - seen[-1][1] >= _AGE_STEP_S:
            seen.append((counter, now))

    def lag(self, epoch: str, counter: int, now: float) -> float:
        """Return for how many seconds a server that is at this position has been behind another; 0 where it is not."""
        known, seen = self._seen
        if epoch != known or not seen or seen[-1][0] <= counter:
            return 0.0
        return next((now - at for other, at in list(seen) if other > counter), 0.0)
