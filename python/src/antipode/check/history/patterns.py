"""What a violation is called, and what was found of each (spec HIST-14)."""

from __future__ import annotations

from dataclasses import dataclass, field
from enum import StrEnum


class Pattern(StrEnum):
    """The bad patterns of causal memory: a history is consistent exactly where none of them occurs."""

    CYCLIC_CO = "CyclicCO"
    THIN_AIR_READ = "ThinAirRead"
    WRITE_CO_INIT_READ = "WriteCOInitRead"
    WRITE_CO_READ = "WriteCORead"
    WRITE_HB_INIT_READ = "WriteHBInitRead"
    CYCLIC_HB = "CyclicHB"


@dataclass(frozen=True, slots=True)
class Found:
    """One violation: the pattern, the read that shows it, and what a witness is made from."""

    pattern: Pattern
    operation: int
    """The read, or for a cycle of the causal order its first operation."""
    members: tuple[int, ...] = ()
    """CyclicCO: the operations that lie on cycles with one another. CyclicHB: the writes whose order contradicts itself."""


@dataclass(slots=True)
class Causality:
    """What the causal order of a history gives."""

    found: list[Found] = field(default_factory=list)
    complete: bool = True
    """Whether everything was looked at before the time was over."""
    judged: int = 0
    """Reads that were judged."""
