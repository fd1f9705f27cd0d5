"""Reads that dry-run sends once more, to see whether they would have returned something else (REC-14).

One thread does them, one after the other; what comes while too many wait is not repeated.
"""

from __future__ import annotations

import queue
import threading
from collections.abc import Callable
from contextlib import suppress
from typing import Final

from antipode._base import logs
from antipode._base.background import Background

MOST_WAITING: Final = 100
_LAST_S: Final = 0.25
"""How long the end of the process waits for the one that is being read again."""


class _Repeat:
    """One read that is sent once more. `over` is called once: with what was found, or with False where nobody asks."""

    __slots__ = ("_differs", "_lock", "_over", "ended")

    def __init__(self, differs: Callable[[], bool], over: Callable[[bool], None]) -> None:
        self._differs = differs
        self._over = over
        self._lock = threading.Lock()
        self.ended = threading.Event()

    def run(self) -> None:
        try:
            found = self._differs()
        except Exception as error:  # the store's own: nothing is confirmed
            logs.logger.debug("a read could not be repeated: %s", type(error).__name__)
            found = False
        self.end(found)

    def end(self, found: bool) -> None:
        with self._lock:
            if self.ended.is_set():
                return
            self.ended.set()
        try:
            self._over(found)
        except Exception:
            logs.logger.exception("a dry-run record could not be made [AP601]")


_waiting: queue.Queue[_Repeat] = queue.Queue(MOST_WAITING)
_running: _Repeat | None = None
_thread: threading.Thread | None = None
_start = threading.Lock()


def later(differs: Callable[[], bool], over: Callable[[bool], None]) -> bool:
    """Has the thread read again, and calls `over` once, with whether the result was another one.

    False where too many wait already, or where the system has no thread left for it: then nothing is called.
    """
    global _thread
    with _start:
        if _thread is None:
            try:
                thread = Background(_run, "antipode-repeats")
                thread.start()
            except (RuntimeError, MemoryError):
                return False
            _thread = thread
    try:
        _waiting.put_nowait(_Repeat(differs, over))
    except queue.Full:
        return False
    return True


def _run() -> None:
    global _running
    waiting = _waiting
    while True:
        _running = None
        _running = waiting.get()
        _running.run()
        waiting.task_done()


def _take_all() -> list[_Repeat]:
    taken: list[_Repeat] = []
    with suppress(queue.Empty):
        while True:
            taken.append(_waiting.get_nowait())
            _waiting.task_done()
    return taken


def nothing_waits() -> bool:
    """Whether nothing is to be read again, or is just now."""
    return _waiting.unfinished_tasks == 0


def give_up_all() -> None:
    """The process ends: nothing is confirmed of what still waits. The one that is under way gets a moment."""
    for each in _take_all():
        each.end(False)
    running = _running
    if running is not None and not running.ended.wait(_LAST_S):
        running.end(False)


def forget() -> None:
    """What still waits is not done, and nobody is told of it (tests)."""
    _take_all()


def after_fork() -> None:
    """In the child of a fork: the thread and what waited for it stayed with the parent."""
    global _waiting, _running, _thread, _start
    _waiting = queue.Queue(MOST_WAITING)
    _running, _thread, _start = None, None, threading.Lock()
