"""Where built tools are kept between runs. Nothing needs the cache: what is not there is built again."""

from __future__ import annotations

import fcntl
import os
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path


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
