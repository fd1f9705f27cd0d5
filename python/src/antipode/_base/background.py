"""Threads of Antipode's own: a want of memory in one of them holds up nobody else (spec BAR-61)."""

from __future__ import annotations

import threading
import time
from collections.abc import Callable
from contextlib import suppress
from typing import Any, ClassVar, Final

_BEGIN_S: Final = 1.0
_TRIES: Final = 3
"""A process that stood still once, or a machine that is busy, is no want of memory."""
_REST_S: Final = 1.0
"""Behind a thread that did not begin no other is started for so long: else each caller would wait for its own. With the
wait it is less than the five seconds in which all is to be whole again."""


class Bell:
    """What wakes one thread of Antipode's from any other.

    It holds no lock: a thread that finds no memory may leave that of a `threading.Event` taken, on the way out of it,
    and whoever rings next, with a write of the application's, would hang.
    """

    def __init__(self) -> None:
        self._silent = threading.Lock()
        self._silent.acquire()

    def ring(self) -> None:
        """End the thread's sleep, or its next one."""
        if self._silent.locked():
            with suppress(RuntimeError):  # another one rang just now
                self._silent.release()

    def wait(self, seconds: float) -> bool:
        """Sleep so long, or until somebody rings; return whether somebody did."""
        return self._silent.acquire(timeout=seconds)


class _StartSignal(threading.Event):
    """What `threading.Thread.start` waits for without an end."""

    def wait(self, timeout: float | None = None) -> bool:
        return self.is_set()


class Background(threading.Thread):
    """A daemon thread whose start fails where it does not begin.

    CPython's own waits for ever there: a thread that finds no memory ends before it says that it has begun
    (python/cpython#140746), and a barrier that starts one would hang.
    """

    rests_until: ClassVar[float] = -1e9
    """Until then no thread is started, `time.monotonic()`."""

    def __init__(self, target: Callable[[], object], name: str) -> None:
        super().__init__(name=name, daemon=True)
        self._act = target
        self._started: Any = _StartSignal()
        self._has_begun = threading.Lock()
        self._has_begun.acquire()
        self._goes = threading.Lock()
        """Whoever takes it first decides whether it goes on: the thread, or who waited for it in vain."""

    def start(self) -> None:
        """Start it; raise RuntimeError where it has not begun within some seconds, and then it does nothing.

        For a while behind that the next ones raise at once.
        """
        if time.monotonic() < Background.rests_until:
            raise RuntimeError(f"the thread {self.name} was not started: another one has just failed to begin")
        super().start()
        if any(self._has_begun.acquire(timeout=_BEGIN_S) for _ in range(_TRIES)) or not self._goes.acquire(False):
            return
        Background.rests_until = time.monotonic() + _REST_S
        getattr(threading, "_limbo", {}).pop(self, None)  # it would count as a thread as long as the process lives
        raise RuntimeError(f"the thread {self.name} did not begin: there is no memory, perhaps")

    def run(self) -> None:
        """Do its work, unless nobody counts on it any more."""
        if self._goes.acquire(False):
            self._has_begun.release()
            self._act()  # the base's `run` takes memory first, and nobody would know that it had none
