"""Holds what `antipode check` says of a recorded run against the driver's books."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path

from antipode._diagnostics.history.recorder import value_digest
from antipode.check.history.deciding import Decision, Verdict, decide
from antipode.check.history.operations import UNATTRIBUTED, History, Kind
from antipode.check.history.reading import read_history

from antipode_benchmarks.workload.books import Found, Reads


@dataclass(frozen=True)
class Judged:
    """A run, and the answer about its history."""

    barriers: bool
    shares: bool
    found: Found
    history: History
    decision: Decision

    @classmethod
    def of(cls, folder: Path, found: Found, *, barriers: bool, shares: bool) -> Judged:
        """The answer about what was recorded in a folder. `shares`: requests read what others wrote."""
        history = read_history(folder)
        return cls(barriers, shares, found, history, decide(history))

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

    @property
    def losses(self) -> str:
        """What was lost, and what barriers said of it, as the beginning of a sentence; empty where nothing was."""
        if not self.found.lost:
            return ""
        over, others = self.found.barriers[True, False], self.found.barriers[False, False]
        told = f", {over} barriers over them and {others} others not satisfied" if self.barriers else ""
        return f"{len(self.found.lost)} writes lost{told}; "

    def disagreements(self) -> Iterator[str]:
        """Sentences about what is not as it has to be; none where history and books say the same.

        With barriers nothing is stale, and the history consistent. Without, each stale read is a violation (positions
        stand for more writes than their own, so there may be more), and each violation a read that was overtaken.
        Where a shim makes no digests (HIST-37), nobody knows of a read that found something: each stale read that found
        nothing is a violation there, unless its reader may depend on the missed write by what another read found.
        Where writes were lost, the barriers over them are not satisfied; behind these it is as without.
        """
        history, decision, books = self.history, self.decision, self.found.books
        blind = any(each.recorded is not None and each.recorded.there for each in history.operations)
        unattributed = 0
        for gap in history.gaps:
            each = history.operations[gap.operation]
            if blind and each.kind is Kind.READ and each.reads_from == UNATTRIBUTED:
                unattributed += 1
            else:
                yield f"{each.place}: {gap.reason}"
        writes = sum(each.kind is Kind.WRITE for each in history.operations)
        if writes != len(books.before):
            yield f"{writes} writes were recorded of {len(books.before)}"
        if decision.judged + unattributed != books.reads:
            yield f"{decision.judged} reads were judged of {books.reads}, and {unattributed} are unattributed"
        if self.found.incomplete:
            yield f"{self.found.incomplete} barriers were incomplete"
        if self.found.trusted_stale:
            yield f"reads behind a barrier that was satisfied were stale: {self.found.trusted_stale}"
        if self.found.barriers[True, True]:
            yield f"{self.found.barriers[True, True]} barriers over a lost write were satisfied"
        if not self.found.lost and self.found.barriers[False, False]:
            yield f"{self.found.barriers[False, False]} barriers were not satisfied"
        missed, wrong = self.found.stale - self.direct, self.direct - self.found.overtaken
        if blind:
            missed = Counter({} if self.shares else {read: count for read, count in missed.items() if read[1] is None})
        if missed:
            yield f"stale reads that are no violation: {missed}"
        if wrong:
            yield f"violations that are none: {wrong}"
        if behind := self.direct - self.found.untrusted:
            yield f"violations behind a barrier that was satisfied: {behind}"
        held = self.barriers and not self.found.lost
        wanted = Verdict.UNKNOWN if unattributed else Verdict.CONSISTENT
        if decision.found and not held:
            wanted = Verdict.VIOLATED
        if decision.verdict is not wanted:
            yield f"the history is {decision.verdict}: {decision.unfinished or decision.found}"
