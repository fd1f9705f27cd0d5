"""Records that a request each could make: one at once, then one a minute with how many there were (REC-17)."""

from __future__ import annotations

import threading
import time
from collections.abc import Hashable
from typing import Any, Final

PERIOD_S: Final = 60.0
_MOST: Final = 1000

Record = dict[str, Any]


class HeldRecords:
    """What was written last of each key, and what has been held back since."""

    def __init__(self) -> None:
        self._lock = threading.RLock()  # what is finalized here may have a record of its own
        self._written: dict[Hashable, float] = {}
        self._held: dict[Hashable, Record] = {}

    def admit(self, key: Hashable, record: Record) -> bool:
        """Whether the record is to be written now; if not, it counts for the next of its key."""
        now = time.monotonic()
        with self._lock:
            if now - self._written.get(key, -PERIOD_S) >= PERIOD_S and key not in self._held:
                if len(self._written) >= _MOST:
                    self._written = {known: at for known, at in self._written.items() if now - at < PERIOD_S}
                if len(self._written) < _MOST:
                    self._written[key] = now
                    return True
                key = None  # so many different ones within a minute: the others stand together
            held = self._held.get(key)
            self._held[key] = record | {"count": 1 if held is None else held["count"] + 1}
            return False

    def due(self, *, all_of_them: bool = False) -> list[Record]:
        """Those of the keys whose minute is over: the last of each, with the number of them."""
        now = time.monotonic()
        with self._lock:
            keys = [key for key in self._held if all_of_them or now - self._written.get(key, -PERIOD_S) >= PERIOD_S]
            self._written.update(dict.fromkeys(keys, now))
            return [self._held.pop(key) for key in keys]
