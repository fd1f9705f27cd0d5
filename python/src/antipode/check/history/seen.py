"""Whether one thread can have seen all writes in some order (spec HIST-13): WriteHBInitRead and CyclicHB.

A read that returned w, with another write x to the same key in its past, says: for this thread x came before w. So
where an earlier read had w in its past, it had x, too. These are followed to the end; then either some order is left,
or what the thread read contradicts itself. Every set is a whole number of bits, one a write.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import NamedTuple

from antipode.check.history.clock import Deadline
from antipode.check.history.operations import History
from antipode.check.history.patterns import FoundViolation, Pattern


class SeenRead(NamedTuple):
    """One read of the thread: what it returned, as the write's bit (-1: the initial value), and its past."""

    number: int
    item: int
    write: int
    past: int


class Writes:
    """The bit of each write, in a linear order, and what the bits mean."""

    def __init__(self, history: History, order: Sequence[int], items: set[int]) -> None:
        self.rank: dict[int, int] = {}
        self.number: list[int] = []
        self.mask: dict[int, int] = {}
        """The bits of the writes to each key that anybody reads."""
        for number in order:
            if history.is_write(number):
                self.rank[number] = len(self.number)
                self.number.append(number)
        for number, rank in self.rank.items():
            item = history.item[number]
            if item in items:
                self.mask[item] = self.mask.get(item, 0) | (1 << rank)
        self.past: list[int] = [0] * len(self.number)
        self.item = [history.item[number] for number in self.number]


def bits(value: int) -> Iterator[int]:
    """The places of the bits that are set, from the lowest."""
    if value.bit_count() * 40 < value.bit_length():
        place = -1
        while value:
            skipped = (value & -value).bit_length()
            place += skipped
            yield place
            value >>= skipped  # what is left is narrow where the bits are near one another
        return
    for place, digit in enumerate(reversed(bin(value))):
        if digit == "1":
            yield place


def contradiction(writes: Writes, reads: Sequence[SeenRead], deadline: Deadline) -> FoundViolation | None:
    """What is wrong with the reads of a thread, in their order, each right by itself."""
    return _Thread(writes, reads, deadline).judge()


def fewest(writes: Writes, reads: Sequence[SeenRead], found: FoundViolation, deadline: Deadline) -> tuple[int, ...]:
    """Reads that contradict one another and of which none can be left out, from reads that do.

    More reads never contradict less, so the shortest beginning that does ends with a read that is needed.
    """
    kept: list[SeenRead] = []
    left = list(reads)
    place = [read.number for read in reads].index(found.operation)
    candidates = [[read for read in reads if read.number in found.members]]
    for width in (16, 128, 1024):
        candidates.append(list(reads[max(0, place - width) : place + 1]))
    for candidate in candidates:  # most are near one another
        if candidate and contradiction(writes, candidate, deadline) is not None:
            left = candidate
            break
    while not kept or contradiction(writes, kept, deadline) is None:
        low, high = 1, len(left)
        while low < high:
            middle = (low + high) // 2
            # All that was kept stands behind what is left.
            if contradiction(writes, left[:middle] + kept, deadline) is None:
                low = middle + 1
            else:
                high = middle
        kept.insert(0, left[low - 1])
        del left[low - 1 :]
    return tuple(read.number for read in kept)


class _Thread:
    def __init__(self, writes: Writes, reads: Sequence[SeenRead], deadline: Deadline) -> None:
        self._writes = writes
        self._reads = reads
        self._deadline = deadline
        self._past = [read.past for read in reads]
        self._last: dict[int, int] = {}
        """For each write that was read, the last read that returned it."""
        for place, read in enumerate(reads):
            if read.write >= 0:
                self._last[read.write] = place
        self._values: dict[int, list[int]] = {}
        """The writes that were read of each key, the last read first."""
        for write in sorted(self._last, key=lambda each: -self._last[each]):
            self._values.setdefault(writes.item[write], []).append(write)

    def judge(self) -> FoundViolation | None:
        first = {write: self._first(write) for write in self._last}
        more = any(self._others(write) & ~self._past[place] for write, place in first.items())
        if more:
            self._saturate()
            first = {write: self._first(write) for write in self._last}
        for place, read in enumerate(self._reads):
            if read.write < 0 and self._past[place] & self._writes.mask.get(read.item, 0):
                return FoundViolation(Pattern.WRITE_HB_INIT_READ, read.number)
        return self._cycle(first, more)

    def _first(self, write: int) -> int:
        """The first read that has the write in its past; pasts only grow."""
        low, high = 0, self._last[write]
        while low < high:
            middle = (low + high) // 2
            if (self._past[middle] >> write) & 1:
                high = middle
            else:
                low = middle + 1
        return low

    def _others(self, write: int) -> int:
        """The writes to the same key that the thread must have seen before this one."""
        return self._past[self._last[write]] & self._writes.mask[self._writes.item[write]] & ~(1 << write)

    def _saturate(self) -> None:
        """From the last read to the first: what a later read says of the order, earlier pasts keep.

        Pasts only grow from read to read: what this one can lack is what the next one has and this one has not.
        """
        writes = self._writes
        read_items = 0
        for item in self._values:
            read_items |= writes.mask[item]
        active: dict[int, list[int]] = {}
        """By key the writes that a later read returned, the last read first, but those that no past holds any more."""
        for place in range(len(self._reads) - 2, -1, -1):
            self._deadline.check()
            after = self._reads[place + 1]
            if after.write >= 0 and self._last[after.write] == place + 1:
                active.setdefault(after.item, []).append(after.write)
            left = self._past[place + 1] & ~self._past[place] & read_items
            items = {writes.item[bit] for bit in bits(left)}
            for item in items:
                kept = [write for write in active.get(item, ()) if (self._past[place + 1] >> write) & 1]
                active[item] = kept
            grown = True
            while grown:
                grown = False
                for item in items:
                    grown = self._keep(place, active[item], left) or grown
                left &= ~self._past[place]

    def _keep(self, place: int, active: list[int], left: int) -> bool:
        """Takes in what has to come before a write that the past holds; whether it grew. The last read says most."""
        past = self._past[place]
        write = next((write for write in active if (past >> write) & 1), -1)
        if write < 0:
            return False
        needed = self._others(write) & left & ~past
        for other in bits(needed):
            past |= self._writes.past[other] | (1 << other)
        self._past[place] = past
        return bool(needed)

    def _cycle(self, first: dict[int, int], more: bool) -> FoundViolation | None:
        """Writes that each have to come before the other. They have the same first read: pasts hold what comes before.

        Where no past has grown (`more`), a write alone is right: its own read was.
        """
        groups: dict[int, list[int]] = {}
        for write, place in first.items():
            groups.setdefault(place, []).append(write)
        before: dict[int, int] = {}
        for values in self._values.values():
            if not more and all(len(groups[first[write]]) == 1 for write in values):
                continue
            gathered = known = 0
            for write in reversed(values):
                self._deadline.check()
                here = self._others(write) | (1 << write)
                for other in bits(here & ~known):
                    gathered |= self._writes.past[other]
                known |= here
                if (gathered >> write) & 1:
                    return self._found((write,))
                if len(groups[first[write]]) > 1:
                    before[write] = (gathered | known) & ~(1 << write)
        for group in groups.values():
            left = set(group) if len(group) > 1 else set()
            mask = sum(1 << write for write in left)
            while left:
                self._deadline.check()
                free = [write for write in left if not before[write] & mask]
                if not free:
                    return self._found(tuple(sorted(left)))
                left.difference_update(free)
                mask &= ~sum(1 << write for write in free)
        return None

    def _found(self, members: tuple[int, ...]) -> FoundViolation:
        place = max(self._last[write] for write in members)
        reads = tuple(self._reads[self._last[write]].number for write in members)
        return FoundViolation(Pattern.CYCLIC_HB, self._reads[place].number, reads)
