"""One line a process that says what is in force: mode, region, stores, trust, records (OBS-8)."""

from __future__ import annotations

import threading

from antipode._base.logs import logger
from antipode._base.observers import Observer
from antipode._base.settings import Mode, settings
from antipode._diagnostics import telemetry
from antipode._diagnostics.dryrun import records
from antipode._store.store import Store, registry

_lock = threading.Lock()
_told: bool = False


class Announcement(Observer):
    """Logs the line at the first barrier or request of the process."""

    def on_request_begun(self) -> None:
        """Log it once; later calls cost a look at a flag."""
        if not _told and _tell_once():
            telemetry.start()
            logger.info("%s", in_force())
            if settings().mode is Mode.DRY_RUN:
                records.start()


def _tell_once() -> bool:
    global _told
    with _lock:
        first, _told = not _told, True
    return first


def in_force() -> str:
    """What is in force, as words: `mode=enforce region=b stores=blog-posts(redis, 2 replicas) trust=private`."""
    now = settings()
    stores = ",".join(_words(store) for store in registry().all())
    line = f"mode={now.mode} region={now.region or '-'} stores={stores or '-'} trust={now.trust}"
    if now.edge:
        line += " edge=true"
    return f"{line} records={now.records}/" if now.mode is Mode.DRY_RUN else line


def _words(store: Store) -> str:
    count = len(store.replicas)
    replicas = f", {count} replica{'s' * (count != 1)}" if count else ""
    return f"{store.name}({store.kind}{replicas})"


def after_fork() -> None:
    """In the child of a fork: another thread of the parent may have held the lock."""
    global _lock
    _lock = threading.Lock()


def reset() -> None:
    """Forgets that it was told (tests)."""
    global _told
    _told = False
