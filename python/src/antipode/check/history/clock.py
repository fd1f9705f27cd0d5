"""The bounds of a decision: its deadline, and the memory that its sets may take (spec HIST-20)."""

from __future__ import annotations

import time
from typing import Final

MEMORY: Final = 2**30
"""Octets that the sets of one decision may take, where nothing else is said."""


class OutOfTimeError(Exception):
    """The deadline passed, or the sets grew too large, before there was an answer; says which."""


class Deadline:
    """Asked often, looks at the clock seldom."""

    def __init__(self, seconds: float | None, memory: int = MEMORY) -> None:
        self._seconds = seconds
        self._end = None if seconds is None else time.monotonic() + seconds
        self._asked = 0
        self._left = memory
        self._memory = memory

    def check(self, often: int = 64) -> None:
        """Raises `OutOfTimeError` where the time is over; looks at the clock at every `often`th call."""
        if self._end is None:
            return
        self._asked += 1
        if self._asked % often == 0 and time.monotonic() > self._end:
            raise OutOfTimeError(f"it was not decided within {self._seconds:g} s")

    def hold(self, *sets: int) -> None:
        """Counts sets that are kept. Raises `OutOfTimeError` where they would not fit."""
        self._left -= sum(each.bit_length() for each in sets) // 8
        if self._left < 0:
            raise OutOfTimeError(f"it takes more than {self._memory / 2**20:g} MiB of memory")

    def release(self, *sets: int) -> None:
        """They are kept no longer."""
        self._left += sum(each.bit_length() for each in sets) // 8

    def again(self) -> Deadline:
        """The same end, with all of the memory: for a part that begins when another's sets are gone."""
        left = None if self._end is None else max(self._end - time.monotonic(), 0.0)
        made = Deadline(left, self._memory)
        made._seconds = self._seconds
        return made
