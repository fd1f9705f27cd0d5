"""Reads that dry-run sends once more, to see whether they would have returned something else (REC-14).

One thread does them, one after the other; what comes while too many wait is not repeated.
"""

from __future__ import annotations

import queue
import threading
from collections.abc import Callable
from typing import Final

from antipode import logs

MOST_WAITING: Final = 100
_jobs: queue.Queue[Callable[[], None]] = queue.Queue(MOST_WAITING)
_thread: threading.Thread | None = None
_start = threading.Lock()


def later(job: Callable[[], None]) -> bool:
    """Has the thread do it; False where too many wait already."""
    global _thread
    try:
        _jobs.put_nowait(job)
    except queue.Full:
        return False
    with _start:
        if _thread is None:
            _thread = threading.Thread(target=_run, name="antipode-repeats", daemon=True)
            _thread.start()
    return True


def _run() -> None:
    jobs = _jobs
    while True:
        job = jobs.get()
        try:
            job()
        except Exception:
            logs.logger.exception("a dry-run record could not be made")


def forget() -> None:
    """What still waits is not done (tests, and at exit)."""
    while True:
        try:
            _jobs.get_nowait()
        except queue.Empty:
            return


def after_fork() -> None:
    """In the child of a fork: the thread and what waited for it stayed with the parent."""
    global _jobs, _thread, _start
    _jobs = queue.Queue(MOST_WAITING)
    _thread, _start = None, threading.Lock()
