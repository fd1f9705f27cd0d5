"""What a violation is called, and what was found of each (spec HIST-14)."""

from __future__ import annotations

from dataclasses import dataclass, field
from enum import StrEnum
from typing import Final

SHOWN: Final = 20
"""Violations that get a witness; all are counted and named."""


class Pattern(StrEnum):
    """The bad patterns of causal memory: a history is consistent exactly where none of them occurs."""

    CYCLIC_CO = "CyclicCO"
    THIN_AIR_READ = "ThinAirRead"
    WRITE_CO_INIT_READ = "WriteCOInitRead"
    WRITE_CO_READ = "WriteCORead"
    WRITE_HB_INIT_READ = "WriteHBInitRead"
    CYCLIC_HB = "CyclicHB"


@dataclass(frozen=True, slots=True)
class FoundViolation:
    """One violation: the pattern, the read that shows it, and what a witness is made from."""

    pattern: Pattern
    operation: int
    """The read, or for a cycle of the causal order its first operation."""
    members: tuple[int, ...] = ()
    """CyclicCO: the operations on cycles with one another. Of what a thread saw: its contradicting reads."""


@dataclass(slots=True)
class Causality:
    """What the causal order of a history gives."""

    found: list[FoundViolation] = field(default_factory=list)
    unfinished: str = ""
    """Why not everything was looked at, where it was not."""
    judged: int = 0
    """Reads that were judged."""
