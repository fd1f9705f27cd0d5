"""A write in flight: an unanswered command, an open transaction, an unknown outcome (spec SCOPE)."""

from __future__ import annotations

import asyncio
import threading
from collections.abc import Callable

from antipode._base import logs
from antipode._base.call_site import call_site
from antipode._base.observers import Write, events
from antipode._base.settings import Mode, settings
from antipode._model.errors import PendingWriteError
from antipode._model.lineage import EMPTY, Lineage, spelled_position

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


def noted_site(store: str) -> str:
    """Where a write in flight is begun, for those who note it; it is counted for dry-run's summaries, too."""
    events.on_write_begun(store)
    return call_site()


class PositionCache:
    """The last position that a scope's writes got in one store, where it stands alone in that store's section.

    Of all that a scope holds only this changes from write to write; it goes into the lineage when somebody looks.
    """

    __slots__ = ("base", "counter", "epoch", "lineage", "spelled", "store")

    def __init__(self, lineage: Lineage, store: str, epoch: str, counter: int) -> None:
        self.lineage = lineage
        """What it came on top of: there the store's section has the counter `base`."""
        self.store = store
        self.epoch = epoch
        self.base = self.counter = counter
        self.spelled = spelled_position(store, epoch)

    def at(self, counter: int) -> Lineage:
        """The lineage with this counter."""
        return self.lineage if counter == self.base else self.lineage.raised(self.spelled, counter)


class PendingWrite:
    """One write in flight to a store, as it was when it was sent."""

    __slots__ = ("_at", "_lineage", "_top", "site", "store", "task", "unknown")

    def __init__(self, store: str, lineage: Lineage = EMPTY) -> None:
        self.store = store
        self._lineage = lineage
        self._top: PositionCache | None = None
        self._at = 0
        self.task = threading.get_ident() if _running_loop() is None else current_task()
        self.site = noted_site(store) if notes_sites() else ""
        """Where it was begun; only known in dry-run or with another `on_pending` than `mark`, because it costs."""
        self.unknown = False
        """Whether its outcome stays unknown: the mark then stays, too."""

    @property
    def lineage(self) -> Lineage:
        """The scope's lineage when the write was sent: what the write's own position must not be below (LIN)."""
        top = self._top
        return self._lineage if top is None else top.at(self._at)


def apply_on_pending(uncommitted: tuple[PendingWrite, ...]) -> None:
    """A lineage leaves before the commit of this task's own writes: the commonest form of the bug (SCOPE-18)."""
    site = call_site()
    names = ", ".join(sorted({write.store for write in uncommitted}))
    now = settings()
    events.on_lineage_left_early(site, [Write(write.store, write.site) for write in uncommitted])
    if now.on_pending == "raise":
        raise PendingWriteError(
            f"a lineage leaves before the commit of {names}: readers cannot wait for it. Publish after commit. "
            f"(site: {site})"
        )
    if now.on_pending == "warn" or now.mode is Mode.DRY_RUN:
        logs.warn(
            f"pending {site}",
            f"sent a lineage before the commit of {names}: readers cannot wait for it. Publish after commit. "
            f"site={site}",
            code="AP115",
        )
