"""The answer about a history: the verdict, its violations with witnesses, and strict XCY as a number (spec HIST-13 to HIST-20)."""

from __future__ import annotations

from dataclasses import dataclass, field
from enum import StrEnum
from typing import Final

from antipode.check.history.clock import Deadline, OutOfTimeError
from antipode.check.history.judging import judge
from antipode.check.history.operations import History
from antipode.check.history.patterns import Found
from antipode.check.history.strict import Strict, judge_strictly
from antipode.check.history.witness import Witness, Witnesses

SHOWN: Final = 20
"""Violations with a witness; all are counted and named."""


class Verdict(StrEnum):
    """Whether a history is XCY as propagated."""

    CONSISTENT = "consistent"
    VIOLATED = "violated"
    UNKNOWN = "unknown"


@dataclass(slots=True)
class Decision:
    """What is known about a history."""

    verdict: Verdict
    found: list[Found]
    """All violations that were found."""
    judged: int
    """How many reads were judged."""
    in_time: bool
    """Whether everything was looked at."""
    witnesses: list[Witness] = field(default_factory=list)
    """Of the first violations, in the same order."""
    strict: Strict | None = None
    """None where there was no time, or the order itself is a cycle."""


def decide(history: History, seconds: float | None = None, *, shown: int = SHOWN) -> Decision:
    """Judges a history within so many seconds (None: however long it takes).

    A violation that was found stands, whatever was not looked at; without one, what is not known makes it unknown (HIST-18,
    HIST-20).
    """
    deadline = Deadline(seconds)
    told = judge(history, deadline)
    verdict = Verdict.CONSISTENT
    if told.found:
        verdict = Verdict.VIOLATED
    elif history.gaps or not told.complete:
        verdict = Verdict.UNKNOWN
    told.found.sort(key=lambda found: (found.operation, found.pattern))
    made = Decision(verdict, told.found, told.judged, told.complete)
    try:
        witnesses = Witnesses(history, deadline)
        for found in told.found[:shown]:
            made.witnesses.append(witnesses.of(found))
        if told.complete:
            made.strict = judge_strictly(history, {found.operation for found in told.found}, deadline)
    except OutOfTimeError:
        pass
    return made
