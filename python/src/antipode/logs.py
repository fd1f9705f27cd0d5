"""The `antipode` logger: each kind of line at most once a minute, with how often it happened meanwhile."""

from __future__ import annotations

import logging
import threading
import time
from collections.abc import Collection
from typing import Final

from antipode.errors import with_code

logger: Final = logging.getLogger("antipode")
PERIOD_S: Final = 60.0


MOST_SHOWN: Final = 64
MOST_LISTED: Final = 5


def shown(text: str) -> str:
    """A text from outside as it may stand in a line, an error or a result's words (OBS-12)."""
    plain = text.isascii() and text.isprintable()
    return text if plain and len(text) <= MOST_SHOWN else ascii(text[:MOST_SHOWN])


def listed(names: Collection[str]) -> str:
    """Names from outside as they may stand there: five at most, and how many more (OBS-12)."""
    words = ", ".join(shown(name) or "some stores" for name in list(names)[:MOST_LISTED])
    return f"{words} and {len(names) - MOST_LISTED} more" if len(names) > MOST_LISTED else words


class _Throttle:
    def __init__(self) -> None:
        self._lock = threading.Lock()
        self._last: dict[str, float] = {}
        self._held: dict[str, int] = {}

    def admit(self, kind: str) -> int | None:
        """How many lines of this kind were held back since the last one; None where this one is held too."""
        now = time.monotonic()
        with self._lock:
            if now - self._last.get(kind, -PERIOD_S) < PERIOD_S:
                self._held[kind] = self._held.get(kind, 0) + 1
                return None
            if len(self._last) > 1000:  # kinds may name call sites
                self._last.clear()
            self._last[kind] = now
            return self._held.pop(kind, 0)

    def reset(self) -> None:
        with self._lock:
            self._last.clear()
            self._held.clear()


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
    logger.log(level, "%s", message)


def reset() -> None:
    """Forgets what was logged (tests)."""
    _throttle.reset()


def after_fork() -> None:
    """In the child of a fork: another thread of the parent may have held the lock."""
    global _throttle
    _throttle = _Throttle()
