"""The `antipode` logger: each kind of line at most once a minute, with how often it happened meanwhile."""

from __future__ import annotations

import logging
import threading
import time
from typing import Final

from antipode._model.display import escaped
from antipode._model.errors import with_code

logger: Final = logging.getLogger("antipode")
PERIOD_S: Final = 60.0
MOST_KINDS: Final = 1000


class _Throttle:
    def __init__(self) -> None:
        self._lock = threading.Lock()
        self._kinds: dict[str, tuple[float, int]] = {}
        """When a line of each kind was last said, and how many were held back since; the one said longest ago first."""

    def admit(self, kind: str) -> int | None:
        """How many lines of this kind were held back since the last one; None where this one is held too."""
        now = time.monotonic()
        with self._lock:
            last, held = self._kinds.get(kind, (-PERIOD_S, 0))
            if now - last < PERIOD_S:
                self._kinds[kind] = last, held + 1
                return None
            self._kinds.pop(kind, None)
            if len(self._kinds) >= MOST_KINDS:  # kinds may name call sites
                del self._kinds[next(iter(self._kinds))]
            self._kinds[kind] = now, 0
            return held

    def reset(self) -> None:
        with self._lock:
            self._kinds.clear()


_throttle = _Throttle()


def warn(kind: str, message: str, *, code: str = "", count_as: str | None = None) -> None:
    """Logs a warning unless one of this kind came within the minute; `count_as` names the running count."""
    _say(logging.WARNING, kind, with_code(message, code), count_as)


def info(kind: str, message: str, *, code: str = "", count_as: str | None = None) -> None:
    """Logs a piece of information at most once a minute a kind."""
    _say(logging.INFO, kind, with_code(message, code), count_as)


def _say(level: int, kind: str, message: str, count_as: str | None) -> None:
    held = _throttle.admit(kind)
    if held is None:
        return
    if count_as is not None:
        message = f"{message} {count_as}={held + 1}"
    elif held:
        message = f"{message} (and {held} more like it)"
    logger.log(level, "%s", "\n".join(map(escaped, message.split("\n"))))


def reset() -> None:
    """Forgets what was logged (tests)."""
    _throttle.reset()


def after_fork() -> None:
    """In the child of a fork: another thread of the parent may have held the lock."""
    global _throttle
    _throttle = _Throttle()
