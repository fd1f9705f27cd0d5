"""Where in the application something happened: `file:line`, for findings, logs and metrics."""

from __future__ import annotations

import os
import sys
from functools import lru_cache
from types import FrameType
from typing import Final

_INNER: set[str] = {"antipode", "contextlib", "threading", "asyncio", "concurrent", "functools"}
_UNKNOWN: Final = "other"
_MOST_FILES: Final = 10_000
_inner_files: dict[str, bool] = {}
"""Of files that were met: whether they are of a package that is no application's. Looked up for each frame."""


def skip_packages(*names: str) -> None:
    """Takes packages out of call sites: a shim names itself and the client that it wraps."""
    _INNER.update(names)
    _inner_files.clear()


def _is_inner(frame: FrameType, path: str) -> bool:
    module: str = frame.f_globals.get("__name__", "")
    inner = module.partition(".")[0] in _INNER
    if not path.startswith("<") and len(_inner_files) < _MOST_FILES:  # `<string>` is of many modules
        _inner_files[path] = inner
    return inner


@lru_cache(maxsize=4096)
def _spelled(path: str, line: int) -> str:
    folder, name = os.path.split(path)
    return f"{os.path.basename(folder)}/{name}:{line}"


def call_site() -> str:
    """`folder/file.py:line` of the innermost frame that is the application's own."""
    frame = sys._getframe(1)
    while frame is not None:
        path = frame.f_code.co_filename
        inner = _inner_files.get(path)
        if not (_is_inner(frame, path) if inner is None else inner):
            return _spelled(path, frame.f_lineno)
        outer = frame.f_back
        if outer is None:
            break
        frame = outer
    return _UNKNOWN
