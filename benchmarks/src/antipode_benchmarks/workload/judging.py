"""Holds what `antipode check` says of a recorded run against the driver's books."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path

from antipode.check.history.deciding import Decision, Verdict, decide
from antipode.check.history.operations import History, Kind
from antipode.check.history.reading import read_history
from antipode.recorder import value_digest

from antipode_benchmarks.workload.books import Found, Reads


@dataclass(frozen=True)
class Judged:
    """A run, and the answer about its history."""

    barriers: bool
    found: Found
    history: History
    decision: Decision

    @classmethod
    def of(cls, folder: Path, found: Found, *, barriers: bool) -> Judged:
        """The answer about what was recorded in a folder."""
        history = read_history(folder)
        return cls(barriers, found, history, decide(history))

    @property
    def direct(self) -> Reads:
        """The violations that one read shows by itself, as the books name reads."""
        numbers = {
            value_digest(store, key.encode(), str(number).encode()): number
            for number, (store, key) in self.found.books.item.items()
        }
        reads: Reads = Counter()
        for each in self.decision.found:
            read = self.history.operations[each.operation]
            if each.pattern.startswith("WriteCO"):
                value = None if read.recorded is None else read.recorded.value
                reads[(read.store, read.key), numbers[value] if isinstance(value, str) else None] += 1
        return reads

    def disagreements(self) -> Iterator[str]:
        """Sentences about what is not as it has to be; none where history and books say the same.

        With barriers nothing is stale, and the history consistent. Without, each stale read is a violation (positions
        stand for more writes than their own, so there may be more), and each violation a read that was overtaken.
        """
        history, decision, books = self.history, self.decision, self.found.books
        for gap in history.gaps:
            yield f"{history.operations[gap.operation].place}: {gap.reason}"
        writes = sum(each.kind is Kind.WRITE for each in history.operations)
        if writes != len(books.before):
            yield f"{writes} writes were recorded of {len(books.before)}"
        if decision.judged != books.reads:
            yield f"{decision.judged} reads were judged of {books.reads}"
        if self.found.incomplete:
            yield f"{self.found.incomplete} barriers were incomplete"
        if self.barriers and books.stale:
            yield f"{books.stale} reads behind a barrier were stale: {self.found.stale}"
        missed, wrong = self.found.stale - self.direct, self.direct - self.found.overtaken
        if missed:
            yield f"stale reads that are no violation: {missed}"
        if wrong:
            yield f"violations that are none: {wrong}"
        wanted = Verdict.CONSISTENT if self.barriers else Verdict.VIOLATED if decision.found else Verdict.CONSISTENT
        if decision.verdict is not wanted:
            yield f"the history is {decision.verdict}: {decision.unfinished or decision.found}"
