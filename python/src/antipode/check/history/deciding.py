"""The answer about a history: verdict, violations with witnesses, and strict XCY as a number (HIST-13 to HIST-20)."""

from __future__ import annotations

from dataclasses import dataclass, field
from enum import StrEnum

from antipode.check.history.clock import MEMORY, Deadline, OutOfTimeError
from antipode.check.history.judging import judge
from antipode.check.history.operations import History
from antipode.check.history.patterns import SHOWN, FoundViolation, Pattern
from antipode.check.history.strict import Strict, judge_strictly
from antipode.check.history.witness import Witness, Witnesses


class Verdict(StrEnum):
    """Whether a history is XCY as propagated."""

    CONSISTENT = "consistent"
    VIOLATED = "violated"
    UNKNOWN = "unknown"


@dataclass(slots=True)
class Decision:
    """What is known about a history."""

    verdict: Verdict
    found: list[FoundViolation]
    """All violations that were found."""
    judged: int
    """How many reads were judged."""
    unfinished: str = ""
    """Why not everything was looked at, where it was not."""
    witnesses: list[Witness] = field(default_factory=list)
    """Of the first violations, in the same order."""
    strict: Strict | None = None
    """None where there was no time or memory for it, or where the order as propagated is a cycle by itself."""
    unexplained: str = ""
    """Why there are fewer witnesses, or no strict number."""


def decide(history: History, seconds: float | None = None, *, memory: int = MEMORY, shown: int = SHOWN) -> Decision:
    """Judges a history within so many seconds (None: however long it takes) and octets of sets.

    A violation that was found stands, whatever was not looked at; without one, what is not known makes it unknown
    (HIST-18, HIST-20).
    """
    deadline = Deadline(seconds, memory)
    told = judge(history, deadline)
    verdict = Verdict.CONSISTENT
    if told.found:
        verdict = Verdict.VIOLATED
    elif history.gaps or told.unfinished:
        verdict = Verdict.UNKNOWN
    told.found.sort(key=lambda found: (found.operation, found.pattern))
    made = Decision(verdict, told.found, told.judged, told.unfinished)
    try:
        witnesses = Witnesses(history, deadline)
        for found in told.found[:shown]:
            made.witnesses.append(witnesses.of(found))
        if not told.unfinished and not any(found.pattern is Pattern.CYCLIC_CO for found in told.found):
            deadline = deadline.again()
            made.strict = judge_strictly(history, {found.operation for found in told.found}, deadline)
    except OutOfTimeError as error:
        made.unexplained = str(error)
    return made
