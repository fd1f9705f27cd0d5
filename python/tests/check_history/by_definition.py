"""XCY decided by its definition (paper 4.2, as propagated: HIST-9 to HIST-13), by search: for small histories.

Nothing here is the checker's: the order is closed rule by rule, and for each thread all orders of writes are tried.
"""

from __future__ import annotations

from functools import cache

from antipode.check.history.operations import THIN_AIR, UNKNOWN_SOURCE, History, Kind


def is_consistent(history: History) -> bool:
    """Whether for every thread there is an order of all writes and its reads that keeps the causal order."""
    if THIN_AIR in history.source:
        return False
    order = closed(history)
    if any(order[each][each] for each in range(len(history))):
        return False
    return all(_serial(history, order, thread) for thread in range(len(history.threads)))


def closed(history: History) -> list[list[bool]]:
    """The causal order, all pairs: rules 1 and 2, then rule 3 until nothing is new."""
    count = len(history)
    before = [[False] * count for _ in range(count)]
    for members in history.threads:
        for place, later in enumerate(members):
            for earlier in members[:place]:
                before[earlier][later] = True
    for number in range(count):
        if history.source[number] >= 0:
            before[history.source[number]][number] = True
        if number in history.sent:
            before[history.sent[number]][number] = True
        for write in history.carried.get(number, ()):
            before[write][number] = True
    for middle in range(count):
        for one in range(count):
            if before[one][middle]:
                row, through = before[one], before[middle]
                for other in range(count):
                    if through[other]:
                        row[other] = True
    return before


def _serial(history: History, before: list[list[bool]], thread: int) -> bool:
    def taken(each: int) -> bool:
        kind = history.operations[each].kind
        own_read = kind is Kind.READ and history.thread[each] == thread and history.source[each] != UNKNOWN_SOURCE
        return kind is Kind.WRITE or own_read

    events = [each for each in range(len(history)) if taken(each)]
    need = {each: frozenset(other for other in events if before[other][each]) for each in events}
    everything = frozenset(events)

    @cache
    def possible(done: frozenset[int], newest: tuple[tuple[int, int], ...]) -> bool:
        if done == everything:
            return True
        state = dict(newest)
        for each in events:
            if each in done or not need[each] <= done:
                continue
            item = history.item[each]
            if history.is_write(each):
                after = tuple(sorted({**state, item: each}.items()))
                if possible(done | {each}, after):
                    return True
            elif state.get(item, -1) == history.source[each] and possible(done | {each}, newest):
                return True
        return False

    return possible(frozenset(), ())
