"""Threads of Antipode's own, of which none is waited for that never begins (spec BAR-61)."""

from __future__ import annotations

import threading
from collections.abc import Callable
from typing import Any, Final

_BEGIN_S: Final = 1.0
_TRIES: Final = 3
"""A process that stood still once, or a machine that is busy, is no want of memory."""


class _Unawaited(threading.Event):
    """What `threading.Thread.start` waits for without an end."""

    def wait(self, timeout: float | None = None) -> bool:
        return self.is_set()


class Background(threading.Thread):
    """A daemon thread whose start fails where it does not begin.

    CPython's own waits for ever there: a thread that finds no memory ends before it says that it has begun
    (python/cpython#140746), and a barrier that starts one would hang.
    """

    def __init__(self, target: Callable[[], object], name: str) -> None:
        super().__init__(target=target, name=name, daemon=True)
        self._started: Any = _Unawaited()
        self._has_begun = threading.Lock()
        self._has_begun.acquire()
        self._goes = threading.Lock()
        """Whoever takes it first decides whether it goes on: the thread, or who waited for it in vain."""

    def start(self) -> None:
        """Start it; raise RuntimeError where it has not begun within some seconds, and then it does nothing."""
        super().start()
        if any(self._has_begun.acquire(timeout=_BEGIN_S) for _ in range(_TRIES)) or not self._goes.acquire(False):
            return
        getattr(threading, "_limbo", {}).pop(self, None)  # it would count as a thread as long as the process lives
        raise RuntimeError(f"the thread {self.name} did not begin: there is no memory, perhaps")

    def run(self) -> None:
        """Do its work, unless nobody counts on it any more."""
        if self._goes.acquire(False):
            self._has_begun.release()
            super().run()
