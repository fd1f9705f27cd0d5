"""Books of a random run on several stores: what really depends on what, whatever any recorder says."""

from __future__ import annotations

import threading
from dataclasses import dataclass, field

__all__ = ["Item", "Oracle"]

Item = tuple[str, str]
"""A store and a key."""


@dataclass
class Oracle:
    """Every write's number with the writes before it, and every read that returned less than its reader depended on."""

    before: dict[int, frozenset[int]] = field(default_factory=dict)
    item: dict[int, Item] = field(default_factory=dict)
    reads: int = 0
    stale_reads: list[tuple[Item, int | None]] = field(default_factory=list)
    """Of what, and the write that was returned."""
    lock: threading.Lock = field(default_factory=threading.Lock)

    @property
    def stale(self) -> int:
        """How many reads were stale."""
        return len(self.stale_reads)

    def write(self, item: Item, past: set[int], number: int | None = None) -> int:
        """A write happens after those of `past`, and is one of them from now on; without a number it gets the next."""
        with self.lock:
            number = len(self.before) + 1 if number is None else number
            self.before[number] = frozenset(past)
            self.item[number] = item
        past.add(number)
        return number

    def read(self, item: Item, found: int | None, past: set[int]) -> None:
        """It is stale where the reader depended on a write of the key that came after the one it got."""
        newer = (number for number in past if self.item[number] == item and number != found)
        stale = any(found is None or found in self.before[number] for number in newer)
        with self.lock:
            self.reads += 1
            if stale:
                self.stale_reads.append((item, found))
        if found is not None:
            past |= {found} | self.before[found]
