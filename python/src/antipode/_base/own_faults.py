"""Tell a fault of this process from a server's silence (spec BAR-61)."""

from __future__ import annotations

import errno
import os
from typing import Final

_NUMBERS: Final = frozenset({errno.EMFILE, errno.ENFILE, errno.ENOMEM, errno.ENOBUFS})
_WORDS: Final = (*(os.strerror(number) for number in _NUMBERS), "can't start new thread", "can't allocate")
_MOST_CAUSES: Final = 20


def is_own_fault(error: BaseException) -> bool:
    """Return whether this process lacked a descriptor, a thread or memory, by an error of a client or of Python.

    Clients put the system's error into an error of their own, as its cause or by its words alone. A server that lacks
    one itself may use the same words: it counts as unproven then, and is not left out. A client that names no cause
    (libpq without a descriptor: "no error details available") is checked by taking a descriptor here.
    """
    found: BaseException | None = error
    for _ in range(_MOST_CAUSES):
        if found is None:
            break
        if isinstance(found, MemoryError) or (isinstance(found, OSError) and found.errno in _NUMBERS):
            return True
        text = str(found)
        if any(words in text for words in _WORDS):
            return True
        found = found.__cause__ or found.__context__
    try:
        os.close(os.open(os.devnull, os.O_RDONLY | os.O_CLOEXEC))
    except OSError:
        return True
    return False
