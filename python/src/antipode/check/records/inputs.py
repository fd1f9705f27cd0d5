"""What `antipode check` was given, as streams of octets: files, folders, standard input; nothing that never ends."""

from __future__ import annotations

import os
import select
import stat
import sys
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from pathlib import Path
from typing import IO, Final

STDIN: Final = "-"
_SUFFIXES: Final = (".jsonl", ".json")
_PIPE_S: Final = 10.0
"""So long a named pipe may have nobody who writes into it."""


class InputError(Exception):
    """What was named cannot be read; a sentence."""


def files_of(named: Sequence[str]) -> tuple[list[str], list[str]]:
    """The files to read, in order of name, and sentences on what was passed over in folders.

    Of a folder, and the folders in it, all that ends in .jsonl or .json; links to folders are not followed, so that
    there is no going round, and are told where they lead out of the folder, as are files that others have rotated or
    compressed. A file that is reached twice is read once.

    Raises:
        InputError: something named is not there, or is no file, folder or pipe.
    """
    files: list[str] = []
    passed: list[str] = []
    seen: set[tuple[int, int]] = set()
    roots = tuple(_real(name) for name in named if name != STDIN)
    for name in named:
        if name == STDIN:
            if STDIN not in files:
                files.append(STDIN)
            continue
        try:
            status = os.stat(name)
        except (OSError, ValueError) as error:
            raise InputError(f"{name}: {getattr(error, 'strerror', None) or error}") from None
        if stat.S_ISDIR(status.st_mode):
            _gather(name, files, passed, seen, roots)
        elif stat.S_ISREG(status.st_mode) or stat.S_ISFIFO(status.st_mode):
            _add(name, status, files, seen)
        else:
            raise InputError(f"{name}: neither a file nor a folder")
    return sorted(files), sorted(passed)


def _real(folder: str) -> str:
    """Its path without links, with a separator at the end: what is in it begins so."""
    try:
        return os.path.join(os.path.realpath(folder), "")
    except (OSError, ValueError):
        return folder


def _gather(
    folder: str, files: list[str], passed: list[str], seen: set[tuple[int, int]], roots: tuple[str, ...]
) -> None:
    def failed(error: OSError) -> None:
        passed.append(f"{error.filename}: {error.strerror or error}")

    for place, folders, names in os.walk(folder, onerror=failed):
        folders.sort()
        for name in folders:
            path = os.path.join(place, name)
            if os.path.islink(path) and not _real(path).startswith(roots):
                passed.append(f"{path}: a link to another folder is not followed")
        for name in sorted(names):
            path = os.path.join(place, name)
            if not name.endswith(_SUFFIXES):
                if _SUFFIXES[-1] in name:  # x.jsonl.gz, x.jsonl.1, x.jsonl-20260101
                    passed.append(f"{path}: rotated or compressed by others; give it unpacked, by its name")
                continue
            try:
                status = os.stat(path)
            except OSError as error:
                passed.append(f"{path}: {error.strerror or error}")
                continue
            if stat.S_ISREG(status.st_mode):
                _add(path, status, files, seen)
            else:
                passed.append(f"{path}: not a file")


def _add(path: str, status: os.stat_result, files: list[str], seen: set[tuple[int, int]]) -> None:
    identity = status.st_dev, status.st_ino
    if identity not in seen:
        seen.add(identity)
        files.append(path)


def size_of(files: Sequence[str]) -> int | None:
    """Octets of all files together; None where that cannot be known."""
    total = 0
    for name in files:
        if name == STDIN:
            return None
        try:
            status = os.stat(name)
        except OSError:
            continue
        if not stat.S_ISREG(status.st_mode):
            return None
        total += status.st_size
    return total


@contextmanager
def opened(name: str) -> Iterator[IO[bytes]]:
    """A stream of a file's octets.

    Raises:
        InputError: it cannot be opened, or is a pipe into which nobody writes.
    """
    if name == STDIN:
        yield sys.stdin.buffer
        return
    try:
        descriptor = os.open(name, os.O_RDONLY | getattr(os, "O_NONBLOCK", 0))
    except OSError as error:
        raise InputError(f"{name}: {error.strerror or error}") from None
    with open(descriptor, "rb", buffering=2**20) as stream:
        if stat.S_ISFIFO(os.fstat(descriptor).st_mode):
            poll = select.poll()
            poll.register(descriptor, select.POLLIN)
            if not poll.poll(_PIPE_S * 1000):
                raise InputError(f"{name}: a pipe into which nobody wrote for {_PIPE_S:g} s")
            os.set_blocking(descriptor, True)
        yield stream


def display(name: str) -> str:
    """What messages call it; octets that are no UTF-8 are spelled, as no form of the answer has a place for them."""
    return "standard input" if name == STDIN else spelled(str(Path(name)))


def spelled(name: str) -> str:
    """A file's name as text that can be encoded."""
    return name.encode("utf-8", "surrogateescape").decode("utf-8", "backslashreplace")
