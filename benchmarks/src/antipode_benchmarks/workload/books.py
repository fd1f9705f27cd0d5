"""What was stale in a run: the workers' own results, put into the driver's books."""

from __future__ import annotations

from collections import Counter
from collections.abc import Generator, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

from antipode.testing.books import Item, Oracle

from antipode_benchmarks.postnotification.hosts import RunFailed
from antipode_benchmarks.workload.plan import Visit

Results = Mapping[str, Sequence[Mapping[str, Any]]]
"""Of each visit, by its name: what came of its steps, in their order."""
Reads = Counter[tuple[Item, int | None]]
"""How often a write (None: nothing) was returned by reads of this store and key."""
Turn = Generator["Turn | None", None, None]
"""A visit that is put into the books: stops where it has to wait for another, or with one that goes on beside it."""


@dataclass(slots=True)
class Found:
    """The books of a run, and when its reads and writes were sent (`CLOCK_MONOTONIC`, in ns)."""

    books: Oracle = field(default_factory=Oracle)
    incomplete: int = 0
    """Barriers that passed and said that they left something unjudged."""
    lost: frozenset[int] = frozenset()
    """Writes that a promotion has lost."""
    barriers: Counter[tuple[bool, bool]] = field(default_factory=Counter)
    """How many there were, by whether a lost write was in the past, and whether they were satisfied."""
    untrusted: Reads = field(default_factory=Counter)
    """Reads behind a barrier that was not satisfied, or behind none."""
    trusted_stale: Reads = field(default_factory=Counter)
    """Stale reads behind a barrier that was."""
    _pasts: dict[str, set[int]] = field(default_factory=dict)
    """Of each request that is over, by its first visit."""
    _sent: dict[int, int] = field(default_factory=dict)
    """When each write was sent."""
    _reads: list[tuple[Item, int | None, int]] = field(default_factory=list)
    """What, the write that was returned, and when the read was sent."""

    @property
    def stale(self) -> Reads:
        """The reads that returned less than their reader depended on."""
        return Counter(self.books.stale_reads)

    @property
    def overtaken(self) -> Reads:
        """The reads before which a write had been sent that was sent after the one which they returned.

        No other read can be a violation, whatever anybody depends on.
        """
        return Counter((item, found) for item, found, sent in self._reads if self._overtaken(item, found, sent))

    def _overtaken(self, item: Item, found: int | None, read: int) -> bool:
        returned = 0 if found is None else self._sent[found]
        return any(returned < sent < read for number, sent in self._sent.items() if self.books.item[number] == item)

    def enter(self, requests: Sequence[Visit], results: Results) -> None:
        """Puts all requests into the books: a read after the write that it returned, whoever made that.

        Raises:
            RunFailed: a read returned what nobody wrote.
        """
        running = [self._request(visit, results) for visit in requests]
        before: tuple[int, ...] = ()
        while running:
            running = [turn for one in running for turn in _next(one)]
            now = len(running), self.books.reads, len(self.books.before)
            if now == before:
                raise RunFailed("a read returned a value that no request wrote before it")
            before = now

    def _request(self, visit: Visit, results: Results) -> Turn:
        while visit.after and visit.after not in self._pasts:
            yield None
        past = set(self._pasts.get(visit.after, ()))
        yield from self._visit(visit, results, past)
        self._pasts[visit.name] = past

    def _visit(self, visit: Visit, results: Results, past: set[int]) -> Turn:
        satisfied = False
        for step, result in zip(visit.steps, results[visit.name], strict=True):
            match step["do"]:
                case "write":
                    number = self.books.write((step["store"], step["key"]), past, int(step["value"]))
                    self._sent[number] = result["sent_ns"]
                case "read":
                    found = None if result["value"] is None else int(result["value"])
                    while found is not None and found not in self.books.before:
                        yield None
                    item = step["store"], step["key"]
                    stale = self.books.stale
                    self.books.read(item, found, past)
                    if not satisfied:
                        self.untrusted[item, found] += 1
                    elif self.books.stale > stale:
                        self.trusted_stale[item, found] += 1
                    self._reads.append((item, found, result["sent_ns"]))
                case "barrier":
                    satisfied = result["satisfied"]
                    self.incomplete += satisfied and not result["complete"]
                    self.barriers[bool(past & self.lost), satisfied] += 1
                case "call":
                    theirs = set(past)
                    yield from self._visit(step["visit"], results, theirs)
                    past |= theirs
                case "send":
                    yield self._visit(step["visit"], results, set(past))


def _next(one: Turn) -> list[Turn]:
    """The visit where it is not over yet, and one that it has begun."""
    try:
        more = next(one)
    except StopIteration:
        return []
    return [one] if more is None else [one, more]
