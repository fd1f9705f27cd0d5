"""Where in the application something happened: `file:line`, for findings, logs and metrics."""

from __future__ import annotations

import os
import sys
from functools import lru_cache
from typing import Final

_INNER: set[str] = {"antipode", "contextlib", "threading", "asyncio", "concurrent", "functools"}
_UNKNOWN: Final = "other"


def skip_packages(*names: str) -> None:
    """Takes packages out of call sites: a shim names itself and the client that it wraps."""
    _INNER.update(names)


@lru_cache(maxsize=4096)
def _spelled(path: str, line: int) -> str:
    folder, name = os.path.split(path)
    return f"{os.path.basename(folder)}/{name}:{line}"


def call_site() -> str:
    """`folder/file.py:line` of the innermost frame that is the application's own."""
    frame = sys._getframe(1)
    while frame is not None:
        module = frame.f_globals.get("__name__", "")
        if module.partition(".")[0] not in _INNER:
            return _spelled(frame.f_code.co_filename, frame.f_lineno)
        outer = frame.f_back
        if outer is None:
            break
        frame = outer
    return _UNKNOWN
