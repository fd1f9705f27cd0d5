"""A write in flight: an unanswered command, an open transaction, an unknown outcome (spec SCOPE)."""

from __future__ import annotations

import asyncio
import threading
from collections.abc import Callable

from antipode.lineage import EMPTY, Lineage
from antipode.settings import Mode, settings
from antipode.site import call_site

_running_loop: Callable[[], asyncio.AbstractEventLoop | None] = asyncio._get_running_loop


def current_task() -> int:
    """Names the calling task: the asyncio task where one runs, else the thread."""
    if _running_loop() is None:  # asked first: `current_task` says so by an exception, which costs
        return threading.get_ident()
    task = asyncio.current_task()
    return threading.get_ident() if task is None else id(task)


def notes_sites() -> bool:
    """Whether writes in flight note where they were begun, as the settings in force have it."""
    now = settings()
    return now.on_pending != "mark" or now.mode is Mode.DRY_RUN


class PendingWrite:
    """One write in flight to a store, as it was when it was sent."""

    __slots__ = ("lineage", "site", "store", "task", "unknown")

    def __init__(self, store: str, lineage: Lineage = EMPTY) -> None:
        self.store = store
        self.lineage = lineage
        """The scope's lineage when the write was sent: what the write's own position must not be below (LIN)."""
        self.task = threading.get_ident() if _running_loop() is None else current_task()
        self.site = call_site() if notes_sites() else ""
        """Where it was begun; only known in dry-run or with another `on_pending` than `mark`, because it costs."""
        self.unknown = False
        """Whether its outcome stays unknown: the mark then stays, too."""
