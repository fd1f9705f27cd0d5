"""Where built tools are kept between runs. Nothing needs the cache: what is not there is built again."""

from __future__ import annotations

import fcntl
import os
import shutil
import tempfile
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path

from antipode_lab.errors import InstallError


def cache_folder() -> Path:
    """``ANTIPODE_CACHE``, else ``~/.cache/antipode`` (or its place under ``XDG_CACHE_HOME``)."""
    if named := os.environ.get("ANTIPODE_CACHE"):
        return Path(named)
    return Path(os.environ.get("XDG_CACHE_HOME") or Path.home() / ".cache") / "antipode"


@contextmanager
def locked(path: Path) -> Iterator[None]:
    """Holds an exclusive lock on ``path`` (created if need be); it ends with the process at the latest."""
    with path.open("ab") as handle:
        fcntl.flock(handle, fcntl.LOCK_EX)
        yield


def made_once(target: Path, make: Callable[[Path], Path], ready: Callable[[], bool] | None = None) -> Path:
    """``target``, a file or folder of the cache. Where it is not there, or not ``ready``, it is made.

    ``make`` gets an empty folder beside it, and returns what it has made there; other processes wait meanwhile. What is
    in the cache is whole, therefore.

    Raises:
        InstallError: without a folder to write to.
    """
    is_ready = ready or target.exists
    try:
        target.parent.mkdir(parents=True, exist_ok=True)
        target.with_name(target.name + ".lock").touch()
    except OSError as error:
        raise InstallError(
            f"cannot write to {target.parent} ({error}); name another folder in ANTIPODE_CACHE"
        ) from error
    with locked(target.with_name(target.name + ".lock")):
        if not is_ready():  # or another process made it meanwhile
            with tempfile.TemporaryDirectory(prefix="build-", dir=target.parent) as build:
                made = make(Path(build))
                if target.is_dir():
                    shutil.rmtree(target)
                os.replace(made, target)
    return target
