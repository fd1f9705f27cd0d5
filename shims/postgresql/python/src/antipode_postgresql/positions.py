"""Positions: an epoch names one timeline of one system, its counter is a place in that timeline's log (spec EPOCH)."""

from __future__ import annotations

import re
from typing import Final, NamedTuple

from antipode import Ordered

PAGE: Final = 8192
_DIGITS: Final = "0123456789abcdefghijklmnopqrstuvwxyz"
_EPOCH: Final = re.compile(r"([0-9a-z]{1,13})-([0-9]{1,10})(?:-([0-9a-z]{1,7}))?", re.ASCII)


class Epoch(NamedTuple):
    """A timeline of a system, and the word that tells it from another one of the same number.

    Two standbys that were promoted apart both call their new timeline by the same number; each has a word of its own,
    in the row that the first wrapped writer of the timeline made (EPOCH-6).
    """

    system: int
    timeline: int
    word: str
    """Empty where the store has no table of epochs."""

    def __str__(self) -> str:
        name = f"{_spelled(self.system)}-{self.timeline}"
        return f"{name}-{self.word}" if self.word else name


def epoch_of(name: str) -> Epoch | None:
    """The epoch of this name; None where it is none of PostgreSQL's."""
    match = _EPOCH.fullmatch(name)
    if match is None:
        return None
    return Epoch(int(match[1], 36), int(match[2]), match[3] or "")


def position_in(epoch: str, counter: int) -> Ordered:
    """A place in an epoch's log."""
    return Ordered(epoch, counter)


def number_of(lsn: str | bytes) -> int:
    """`1/2A` as a number."""
    high, low = lsn.split("/") if isinstance(lsn, str) else lsn.split(b"/")
    return (int(high, 16) << 32) + int(low, 16)


def lsn_of(number: int) -> str:
    """A number as `1/2A`."""
    return f"{number >> 32:X}/{number & 0xFFFFFFFF:X}"


def _spelled(number: int) -> str:
    digits = ""
    while number:
        number, last = divmod(number, 36)
        digits = _DIGITS[last] + digits
    return digits or "0"
