"""The deadline of a decision (spec HIST-20)."""

from __future__ import annotations

import time


class OutOfTimeError(Exception):
    """The deadline passed before there was an answer."""


class Deadline:
    """Asked often, looks at the clock seldom."""

    def __init__(self, seconds: float | None) -> None:
        self._end = None if seconds is None else time.monotonic() + seconds
        self._asked = 0

    def check(self, often: int = 64) -> None:
        """Raises `OutOfTimeError` where the time is over; looks at the clock at every `often`th call."""
        if self._end is None:
            return
        self._asked += 1
        if self._asked % often == 0 and time.monotonic() > self._end:
            raise OutOfTimeError
