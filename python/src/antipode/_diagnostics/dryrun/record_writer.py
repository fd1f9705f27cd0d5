"""Writes dry-run records to a file, from one thread, bounded and rotated; never an exception to the application."""

from __future__ import annotations

import json
import os
import queue
import secrets
import socket
import sys
import threading
import time
from collections.abc import Callable, Iterable
from contextlib import suppress
from pathlib import Path
from typing import Any, Final

from antipode._base import logs
from antipode._base.background import Background
from antipode._base.settings import settings

MOST_QUEUED: Final = 10_000
FILES_KEPT: Final = 4
DUE_S: Final = 60.0
"""How often summaries are written, in seconds."""
_CHILDREN: Final = ("multiprocessing.util", "billiard.util")
"""These end the children that they fork by themselves, without exit hooks, and have hooks of their own."""


class RecordWriter:
    """A bounded queue, and a thread that empties it into `<folder>/<host>-<pid>-<start>.jsonl` (REC-2)."""

    def __init__(
        self, due: Callable[[], list[dict[str, Any]]] | None = None, end: Callable[[], None] | None = None
    ) -> None:
        """`due`: what else is to be written, asked about once a minute. `end`: to be called when the process ends."""
        self._due = due
        self._end = end
        self._queue: queue.SimpleQueue[dict[str, Any] | threading.Event] = queue.SimpleQueue()
        """One that may be entered again: what is finalized while a record is put may put one of its own."""
        self._thread: threading.Thread | None = None
        self._start = threading.Lock()
        self._file = PrivateFile(Path(f"{socket.gethostname()}-{os.getpid()}-{int(time.time())}.jsonl"))
        self.dropped = 0
        """Records that were not written: the queue was full, or the disk failed."""

    @property
    def used(self) -> bool:
        """Whether it has ever got a record."""
        return self._thread is not None

    def start(self) -> None:
        """Begins to ask for what is due, before there is any record."""
        if self._thread is None:
            self._ensure_thread()

    def put(self, record: dict[str, Any]) -> None:
        """Queues a record; past the bound it is dropped and counted."""
        if self._queue.qsize() >= MOST_QUEUED:
            self._drop("the disk is too slow")
            return
        self._queue.put(record)
        self._ensure_thread(waits=False)

    def flush(self, timeout: float) -> bool:
        """Waits until what was put so far is on disk."""
        written = threading.Event()
        self._queue.put(written)
        self._ensure_thread()
        return self.used and written.wait(timeout)

    def _ensure_thread(self, *, waits: bool = True) -> None:
        """Start the thread, unless it runs. waits: also where somebody else just starts it.

        Whoever puts a record does not: it may be a signal's handler, or a finalizer, of the very thread that does.
        """
        if not self._start.acquire(blocking=waits):
            return
        try:
            if self._thread is not None:
                return
            thread = Background(self._run, "antipode-records")
            thread.start()
            self._thread = thread
            for name in _CHILDREN:
                if self._end is not None and name in sys.modules:
                    sys.modules[name].Finalize(None, self._end, exitpriority=0)
        except (RuntimeError, MemoryError):  # too many threads, or the end: the next record tries again
            return
        finally:
            self._start.release()

    def _run(self) -> None:
        asked_at = time.monotonic()
        while True:
            batch: list[dict[str, Any] | threading.Event] = []
            with suppress(queue.Empty):
                batch.append(self._queue.get(timeout=max(asked_at + DUE_S - time.monotonic(), 0.0)))
            if time.monotonic() - asked_at >= DUE_S:
                asked_at = time.monotonic()
                batch += self._what_is_due()
            while not self._queue.empty() and len(batch) < 1000:
                batch.append(self._queue.get_nowait())
            records = [item for item in batch if not isinstance(item, threading.Event)]
            try:
                if records:
                    self._append(records)
            except Exception as error:
                self._drop(repr(error), len(records))
            for item in batch:
                if isinstance(item, threading.Event):
                    item.set()

    def _what_is_due(self) -> list[dict[str, Any]]:
        try:
            return [] if self._due is None else self._due()
        except Exception:  # the thread goes on for the other records
            logs.logger.exception("a dry-run summary could not be made [AP601]")
            return []

    def _append(self, records: list[dict[str, Any]]) -> None:
        file = self._file = self._file.in_folder(Path(settings().records))
        if file.size > settings().records_max_mib * 2**20:
            _rotate(file.path)
        file.write(json.dumps(record, separators=(",", ":")) + "\n" for record in records)

    def _drop(self, why: str, count: int = 1) -> None:
        self.dropped += count
        logs.warn("records", f"dry-run records cannot be written: {why}.", count_as="dropped", code="AP601")


class PrivateFile:
    """A file of this process alone, that nobody else may read (REC-25).

    It is made when it is first written, under another name where there is a file or a link of its own already; never in
    a folder that holds as much as it may.
    """

    def __init__(self, path: Path) -> None:
        self.path = path
        self._made: Path | None = None

    def in_folder(self, folder: Path) -> PrivateFile:
        """Return this one, or one of the same name in another folder."""
        return self if self.path.parent == folder else PrivateFile(folder / self.path.name)

    @property
    def size(self) -> int:
        """Return its size in octets; 0 where it has not been made, or is gone."""
        with suppress(FileNotFoundError):
            return 0 if self._made is None else self._made.lstat().st_size
        return 0

    def write(self, lines: Iterable[str]) -> None:
        """Append the lines; raises OSError."""
        with os.fdopen(self._opened(), "a", encoding="utf-8") as file:
            file.writelines(lines)

    def _opened(self) -> int:
        flags = os.O_WRONLY | os.O_APPEND | getattr(os, "O_NOFOLLOW", 0)
        if self._made == self.path:
            with suppress(FileNotFoundError):  # rotated away, or removed
                return os.open(self.path, flags)
        folder = self.path.parent
        folder.mkdir(mode=0o700, parents=True, exist_ok=True)
        most = settings().records_folder_mib
        if _octets_in(folder) >= most * 2**20:
            raise OSError(f"the folder {folder} holds {most} MiB (ANTIPODE_RECORDS_FOLDER_MIB): no new file is begun")
        try:
            opened = os.open(self.path, flags | os.O_CREAT | os.O_EXCL, 0o600)
        except FileExistsError:
            self.path = self.path.with_name(f"{self.path.stem}-{secrets.token_hex(4)}.jsonl")
            opened = os.open(self.path, flags | os.O_CREAT | os.O_EXCL, 0o600)
        self._made = self.path
        return opened


def _octets_in(folder: Path) -> int:
    """Return the size of all files of a folder, whose other writers may rotate theirs meanwhile."""
    octets = 0
    with os.scandir(folder) as entries:
        for entry in entries:
            with suppress(FileNotFoundError):
                octets += entry.stat(follow_symlinks=False).st_size
    return octets


def _rotate(path: Path) -> None:
    """`x.jsonl` becomes `x.1.jsonl`, and so on; four files are kept."""
    for number in range(FILES_KEPT - 2, 0, -1):
        older = path.with_suffix(f".{number}.jsonl")
        if older.exists():
            older.replace(path.with_suffix(f".{number + 1}.jsonl"))
    path.replace(path.with_suffix(".1.jsonl"))
