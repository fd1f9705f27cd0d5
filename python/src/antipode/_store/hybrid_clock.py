"""A hybrid logical clock in 64 bits: the counters of objects whose store gives no ordered version (spec SHIM-24 to 29).

A counter is unsigned: bits 63 to 14 hold the *tick*, the time in 1/256 ms since 1970 (until the year 2109), bits 13
to 0 the *node* that issued it. Counters of one process grow, and pass every counter that it has observed.
"""

from __future__ import annotations

import hashlib
import os
import secrets
import threading
import time
import weakref
from collections.abc import Callable
from typing import Final

from antipode._base import logs
from antipode._base.observers import events
from antipode._model.wire import MAX_COUNTER

NODE_BITS: Final = 14
PLACE_BITS: Final = 8
"""The upper bits of a node: the number of its region. Below them are bits that tell its processes apart."""
TICKS_PER_MS: Final = 256
MAX_AHEAD_S: Final = 60.0
"""A counter that is further ahead of this machine's time is refused (SHIM-27)."""
_PROCESS_BITS: Final = NODE_BITS - PLACE_BITS
_MAX_TICK: Final = MAX_COUNTER >> NODE_BITS


def place_number(region: str) -> int:
    """The number of a region where none was chosen: the first octet of the SHA-256 of its name (SHIM-29)."""
    return hashlib.sha256(region.encode("utf-8", "surrogateescape")).digest()[0]


def tick_of(nanoseconds: int) -> int:
    """The tick of a time in nanoseconds since 1970."""
    return nanoseconds * TICKS_PER_MS // 1_000_000


def seconds_of(counter: int) -> float:
    """When a counter was issued, in seconds since 1970, by the clock that issued it."""
    return (counter >> NODE_BITS) / (TICKS_PER_MS * 1000)


class HybridClock:
    """Issues counters that grow, and pass all that it has observed. Safe among threads and after a fork.

    place: the region's number, 0 to 255, where counters of several regions meet; without it the whole node is drawn
    by chance. node: the whole node, 0 to 16383, where numbers are assigned to the processes. max_ahead: how far ahead
    of this machine's time an observed counter may be, in seconds.
    """

    def __init__(
        self,
        *,
        place: int | None = None,
        node: int | None = None,
        max_ahead: float = MAX_AHEAD_S,
        time_ns: Callable[[], int] = time.time_ns,
    ) -> None:
        if node is not None and place is not None:
            raise ValueError("give a clock its place or its whole node, not both")
        if place is not None and place >> PLACE_BITS:
            raise ValueError(f"a place is a number from 0 to {(1 << PLACE_BITS) - 1}: {place}")
        if node is not None and node >> NODE_BITS:
            raise ValueError(f"a node is a number from 0 to {(1 << NODE_BITS) - 1}: {node}")
        self._place = place
        self._fixed = node
        self._node = self._draw()
        self._max_ahead = round(max_ahead * 1000 * TICKS_PER_MS)
        self._time_ns = time_ns
        self._last = 0
        self._refused = 0
        self._lock = threading.Lock()
        _clocks.add(self)

    @property
    def node(self) -> int:
        """What ends every counter of this clock."""
        return self._node

    @property
    def refused(self) -> int:
        """How many counters were refused because they are too far ahead."""
        return self._refused

    def next(self) -> int:
        """A counter greater than any that this clock has issued or observed (SHIM-25)."""
        now = tick_of(self._time_ns())
        with self._lock:
            tick = self._last = max(now, self._last + 1)
            return tick << NODE_BITS | self._node

    def observe(self, counter: int) -> bool:
        """Makes every counter to come greater than this one; False where it is too far ahead, and refused (SHIM-27)."""
        if counter < 0 or counter > MAX_COUNTER:
            raise ValueError(f"a counter is an unsigned 64-bit number: {counter}")
        tick = counter >> NODE_BITS
        if tick <= self._last:
            return True
        ahead = tick - tick_of(self._time_ns())
        with self._lock:
            if ahead <= self._max_ahead:
                self._last = max(self._last, tick)
                return True
            self._refused += 1
        events.on_lineage_dropped("implausible", "write")
        logs.warn(
            "clock",
            f"refused a version {ahead / (TICKS_PER_MS * 1000):.0f} s ahead of this machine's time: it is forged, or "
            "the clock of this machine or of the writer's is wrong.",
            code="AP413",
        )
        return False

    def above(self, counter: int) -> int | None:
        """A counter of this node just greater than a refused one, for its key alone; None where none is left (SHIM-28).

        The clock itself stays where it is.
        """
        tick = (counter >> NODE_BITS) + 1
        return None if tick > _MAX_TICK else tick << NODE_BITS | self._node

    def _draw(self) -> int:
        if self._fixed is not None:
            return self._fixed
        if self._place is None:
            return secrets.randbits(NODE_BITS)
        return self._place << _PROCESS_BITS | secrets.randbits(_PROCESS_BITS)

    def _after_fork(self) -> None:
        self._lock = threading.Lock()
        self._node = self._draw()


_clocks: weakref.WeakSet[HybridClock] = weakref.WeakSet()


def _after_fork_in_child() -> None:
    """The child is another writer: a node of its own, and no lock that a thread of the parent held."""
    for clock in list(_clocks):
        clock._after_fork()


if hasattr(os, "register_at_fork"):
    os.register_at_fork(after_in_child=_after_fork_in_child)
