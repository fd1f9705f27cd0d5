"""Strict XCY, as a number: rule 2 over all of a request's writes, also later ones (spec HIST-17; paper 4.2).

A read of another request's write then comes behind every write of that request. No barrier can reach that, and the
order may even run in circles (two requests that read one another); so this judges single reads against the order's
components: in how many more of them something newer should have been seen.
"""

from __future__ import annotations

from collections import deque
from dataclasses import dataclass, field
from typing import Final

from antipode.check.history.clock import Deadline
from antipode.check.history.operations import INITIAL, History, Kind
from antipode.check.history.order import components, predecessors
from antipode.check.history.pasts import Pasts

_EXAMPLES: Final = 20
_LOOKED_AT: Final = 64
"""So many writes, from the newest, are asked whether they replace what was read."""


@dataclass(frozen=True, slots=True)
class Later:
    """One read that strict XCY forbids and XCY as propagated does not."""

    read: int
    missed: int
    """A write that strict XCY wants seen."""
    later: int | None
    """The write that its request made later, or that was dropped on the way; None where no path was looked for."""


@dataclass(slots=True)
class Strict:
    """What strict XCY says beyond the verdict."""

    reads: list[Later] = field(default_factory=list)
    circles: int = 0
    """Groups of operations that come before one another."""
    later_writes: list[int] = field(default_factory=list)
    """The writes that make the difference."""


def judge_strictly(history: History, wrong: set[int], deadline: Deadline) -> Strict:
    """What is forbidden only strictly; `wrong` are the reads that are violations as propagated.

    Raises:
        OutOfTimeError: there was no time for it.
    """
    return _Strictly(history, wrong, deadline).run()


class _Strictly:
    def __init__(self, history: History, wrong: set[int], deadline: Deadline) -> None:
        self._history = history
        self._wrong = wrong
        self._deadline = deadline
        self._count = len(history)
        self._written: dict[int, list[int]] = {}
        self._direct = self._edges()

    def _edges(self) -> list[list[int]]:
        """The order's edges, every message's too, and one more vertex a request, behind all of its writes."""
        history = self._history
        direct = predecessors(history)
        hubs: dict[int, int] = {}
        writes: dict[int, list[int]] = {}
        for number in range(self._count):
            if history.is_write(number):
                writes.setdefault(history.request[number], []).append(number)
                self._written.setdefault(history.item[number], []).append(number)
        for receipt, sending in history.sending.items():
            direct[receipt].append(sending)
        for number in range(self._count):
            source = history.source[number]
            if source >= 0 and history.request[source] != history.request[number]:
                request = history.request[source]
                if request not in hubs:
                    hubs[request] = len(direct)
                    direct.append(writes[request])
                direct[number].append(hubs[request])
        return direct

    def run(self) -> Strict:
        history = self._history
        told = Strict()
        order = components(self._direct)
        place = [0] * len(self._direct)
        for at, members in enumerate(order):
            for member in members:
                place[member] = at
        rank: dict[int, int] = {}
        for members in order:
            for member in members:
                if member < self._count and history.is_write(member):
                    rank[member] = len(rank)
        ranked = list(rank)
        read_items = {history.item[number] for number in history.reads()}
        mask: dict[int, int] = {}
        for item in read_items:
            for write in self._written.get(item, ()):
                mask[item] = mask.get(item, 0) | (1 << rank[write])
        outside = [
            {place[other] for member in members for other in self._direct[member]} - {at}
            for at, members in enumerate(order)
        ]
        pasts = Pasts(outside, self._deadline)
        write_past: dict[int, int] = {}
        found: list[tuple[int, int]] = []
        for at, members in enumerate(order):
            mine, old = pasts.gather(at)
            told.circles += len(members) > 1
            own = [member for member in members if member in rank]
            if len(members) > 1:
                for write in own:
                    mine |= 1 << rank[write]
            for write in own:
                if history.item[write] in read_items:
                    write_past[write] = mine & ~(1 << rank[write])
                    self._deadline.hold(mine)
                    old |= mine & mask[history.item[write]] & ~(1 << rank[write])
                mine |= 1 << rank[write]
            for member in members:
                if member < self._count and history.operations[member].kind is Kind.READ and member not in self._wrong:
                    self._read(member, mine, old, mask, ranked, rank, write_past, found)
            pasts.keep(at, mine, old)
        made = {missed for _, missed in found}
        for read, missed in sorted(found):
            later = None
            if len(told.reads) < _EXAMPLES:
                self._deadline.check(often=1)
                later = self._difference(read, missed)
                made.add(missed if later is None else later)
            told.reads.append(Later(read, missed, later))
        told.later_writes = sorted(made)
        return told

    def _read(
        self,
        read: int,
        mine: int,
        old: int,
        mask: dict[int, int],
        ranked: list[int],
        rank: dict[int, int],
        write_past: dict[int, int],
        found: list[tuple[int, int]],
    ) -> None:
        source, item = self._history.source[read], self._history.item[read]
        if source == INITIAL:
            newer = mine & mask.get(item, 0)
            if newer:
                found.append((read, ranked[newer.bit_length() - 1]))
        elif source >= 0 and (old >> rank[source]) & 1:
            newer = mine & mask[item] & ~(1 << rank[source])
            newest = missed = ranked[newer.bit_length() - 1]
            for _ in range(_LOOKED_AT):
                if not newer or (write_past[missed] >> rank[source]) & 1:
                    break
                newer ^= 1 << rank[missed]
                missed = ranked[newer.bit_length() - 1] if newer else newest
            found.append((read, missed))

    def _difference(self, read: int, missed: int) -> int | None:
        """The first write on a shortest way to the read that only the strict order has there."""
        came: dict[int, int] = {read: -1}
        todo = deque([read])
        while todo and missed not in came:
            here = todo.popleft()
            for other in self._direct[here]:
                if other not in came:
                    came[other] = here
                    todo.append(other)
        at = missed
        while at in came and came[at] >= 0:
            if came[at] >= self._count:  # into a request's vertex
                return at
            at = came[at]
        return None
