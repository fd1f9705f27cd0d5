"""Deciding whether a history is causally consistent over its enlarged order (spec HIST-13, HIST-14).

One walk in a linear order keeps, for each operation, two sets as bits of a whole number: the writes in
its past, and those of them that another write in its past has replaced. Then a read of the initial value is wrong
where a write to its key is in its past, and a read of a write where that write is replaced. What a thread saw of
writes that no order joins is judged thread by thread (`seen.py`), and only where a thread read again what an earlier
read of it depended on: nothing else can contradict itself (a cycle of forced orders needs one). Sets are dropped once
everything behind them is done.
"""

from __future__ import annotations

from antipode.check.history.clock import Deadline, OutOfTimeError
from antipode.check.history.operations import INITIAL, THIN_AIR, UNKNOWN_SOURCE, History, Kind
from antipode.check.history.order import components, linear_order, predecessors
from antipode.check.history.pasts import Pasts
from antipode.check.history.patterns import SHOWN, Causality, FoundViolation, Pattern
from antipode.check.history.seen import SeenRead, Writes, contradiction, fewest


def judge(history: History, deadline: Deadline) -> Causality:
    """All violations of the order as propagated; what the deadline allowed, where it passed."""
    told = Causality()
    try:
        _Walk(history, told, deadline).run()
    except OutOfTimeError as error:
        told.unfinished = str(error)
    return told


class _Walk:
    def __init__(self, history: History, told: Causality, deadline: Deadline) -> None:
        self._history = history
        self._told = told
        self._deadline = deadline
        self._read_items = {
            history.item[number] for number in history.reads() if history.source[number] != UNKNOWN_SOURCE
        }

    def run(self) -> None:
        history = self._history
        for number in history.reads():
            if history.source[number] == THIN_AIR:
                self._told.found.append(FoundViolation(Pattern.THIN_AIR_READ, number))
        direct = predecessors(history)
        order = linear_order(direct)
        if len(order) < len(history):
            self._cycles(direct)
            return
        self._walk(direct, order)

    def _cycles(self, direct: list[list[int]]) -> None:
        for component in components(direct):
            if len(component) > 1:
                members = tuple(sorted(component))
                self._told.found.append(FoundViolation(Pattern.CYCLIC_CO, members[0], members))

    def _walk(self, direct: list[list[int]], order: list[int]) -> None:
        history = self._history
        writes = Writes(history, order, self._read_items)
        rank = writes.rank
        pasts = Pasts(direct, self._deadline)
        seen: dict[int, list[SeenRead]] = {}
        read_past: dict[int, int] = {}
        again: set[int] = set()
        wrong: set[int] = set()
        for number in order:
            mine, old = pasts.gather(number)
            kind = history.operations[number].kind
            thread = history.thread[number]
            if kind is Kind.READ and history.source[number] not in (UNKNOWN_SOURCE, THIN_AIR):
                self._told.judged += 1
                source = history.source[number]
                item = history.item[number]
                if source == INITIAL:
                    if mine & writes.mask.get(item, 0):
                        self._told.found.append(FoundViolation(Pattern.WRITE_CO_INIT_READ, number))
                        wrong.add(thread)
                else:
                    if (old >> rank[source]) & 1:
                        self._told.found.append(FoundViolation(Pattern.WRITE_CO_READ, number))
                        wrong.add(thread)
                    if (read_past.get(thread, 0) >> rank[source]) & 1:
                        again.add(thread)
                read_past[thread] = mine
                self._deadline.hold(mine)
                seen.setdefault(thread, []).append(
                    SeenRead(number, item, -1 if source == INITIAL else rank[source], mine)
                )
            elif kind is Kind.WRITE:
                own = rank[number]
                if history.item[number] in self._read_items:
                    self._deadline.hold(mine)
                    writes.past[own] = mine
                    old |= mine & writes.mask[history.item[number]]
                mine |= 1 << own
            pasts.keep(number, mine, old)
            if number == history.threads[thread][-1]:
                reads = seen.pop(thread, [])
                self._deadline.release(*[read.past for read in reads])
                if thread in again and thread not in wrong:
                    found = contradiction(writes, reads, self._deadline)
                    if found is not None:
                        self._told.found.append(found)
                        if len(self._told.found) <= SHOWN:
                            reads_needed = fewest(writes, reads, found, self._deadline)
                            self._told.found[-1] = FoundViolation(found.pattern, reads_needed[-1], reads_needed)
                read_past.pop(thread, None)
