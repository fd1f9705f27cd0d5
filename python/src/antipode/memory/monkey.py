"""Monkey mode: which of the versions that a replica may show a read returns (spec MONKEY)."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Final, TypeAlias

from antipode._model.errors import ConfigurationError

_MASK: Final = 2**64 - 1


@dataclass(frozen=True, slots=True)
class StaleRead:
    """A read at a replica that may return more than one version: the newest, or one that is up to `most` behind it."""

    store: str
    region: str
    key: bytes
    most: int

    def __str__(self) -> str:
        return f"{self.store} in {self.region}, {self.key.decode(errors='replace')}: versions behind the newest"


Choose: TypeAlias = Callable[[StaleRead], int]
"""Says how many versions behind the newest a read is: from 0, the newest, to `most`."""


class SplitMix64:
    """A generator of 64 bits, the same in every language (Steele, Lea, Flood: Fast Splittable Pseudorandom Number
    Generators, OOPSLA 2014)."""

    def __init__(self, state: int) -> None:
        self._state = state

    def next(self) -> int:
        """The next number, from 0 to 2^64-1."""
        self._state = (self._state + 0x9E3779B97F4A7C15) & _MASK
        mixed = self._state
        mixed = ((mixed ^ (mixed >> 30)) * 0xBF58476D1CE4E5B9) & _MASK
        mixed = ((mixed ^ (mixed >> 27)) * 0x94D049BB133111EB) & _MASK
        return mixed ^ (mixed >> 31)


class SeededChoice:
    """Chooses by a seed: the same calls have the same answers, whatever is read in other regions (MONKEY-8)."""

    def __init__(self, seed: int, regions: Sequence[str]) -> None:
        if not 0 <= seed <= _MASK:
            raise ConfigurationError(f"seed={seed}: want 0 to 2^64-1", code="AP501")
        root = SplitMix64(seed)
        self._generators = {region: SplitMix64(root.next()) for region in regions}

    def __call__(self, read: StaleRead) -> int:
        return self._generators[read.region].next() % (read.most + 1)


class Monkey:
    """Asks whoever chooses, and refuses what is no answer (MONKEY-7)."""

    def __init__(self, choose: Choose) -> None:
        self._choose = choose

    def behind(self, read: StaleRead) -> int:
        """How many versions behind the newest this read is. Raises ConfigurationError for an answer out of range."""
        if read.most == 0:
            return 0
        behind = self._choose(read)
        if not isinstance(behind, int) or not 0 <= behind <= read.most:
            raise ConfigurationError(
                f"monkey: {read}: got {behind!r}, want 0 (the newest) to {read.most}", code="AP501"
            )
        return behind
