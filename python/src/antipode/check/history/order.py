"""The causal order of a history, as edges: who comes directly before whom, and why (spec HIST-9 to HIST-12)."""

from __future__ import annotations

import heapq
from collections.abc import Iterator, Sequence
from enum import StrEnum
from itertools import pairwise

from antipode.check.history.operations import History


class Why(StrEnum):
    """Why one operation comes before another."""

    SCOPE = "scope"
    READ = "read"
    MESSAGE = "message"
    LINEAGE = "lineage"
    LATER = "later"
    """Strict only: the write belongs to the request whose write was read."""


def edges_to(history: History, number: int) -> Iterator[tuple[int, Why]]:
    """The operations directly before this one, but those of its own thread."""
    source = history.source[number]
    if source >= 0:
        yield source, Why.READ
    sent = history.sent.get(number)
    if sent is not None:
        yield sent, Why.MESSAGE
    for write in history.carried.get(number, ()):
        yield write, Why.LINEAGE


def predecessors(history: History) -> list[list[int]]:
    """For each operation those directly before it, the one before it in its thread first."""
    found: list[list[int]] = [[source] if source >= 0 else [] for source in history.source]
    for number, sent in history.sent.items():
        found[number].append(sent)
    for number, writes in history.carried.items():
        found[number] += writes
    for members in history.threads:
        for earlier, later in pairwise(members):
            found[later].insert(0, earlier)
    return found


def linear_order(direct: Sequence[Sequence[int]]) -> list[int]:
    """An order of all operations that keeps theirs, near the file's; those on or behind a cycle are left out."""
    if all(other < number for number, others in enumerate(direct) for other in others):
        return list(range(len(direct)))
    missing = [len(others) for others in direct]
    after: list[list[int]] = [[] for _ in direct]
    for number, others in enumerate(direct):
        for other in others:
            after[other].append(number)
    ready = [number for number, count in enumerate(missing) if not count]
    order = []
    while ready:
        number = heapq.heappop(ready)
        order.append(number)
        for other in after[number]:
            missing[other] -= 1
            if not missing[other]:
                heapq.heappush(ready, other)
    return order


def components(direct: Sequence[Sequence[int]]) -> list[list[int]]:
    """The strongly connected components, each behind those that come before it (Tarjan's, without recursion)."""
    count = len(direct)
    index = [-1] * count
    low = [0] * count
    on_stack = bytearray(count)
    stack: list[int] = []
    found: list[list[int]] = []
    clock = 0
    for root in range(count):
        if index[root] >= 0:
            continue
        index[root] = low[root] = clock
        clock += 1
        stack.append(root)
        on_stack[root] = 1
        work = [(root, iter(direct[root]))]
        while work:
            number, others = work[-1]
            for other in others:
                if index[other] < 0:
                    index[other] = low[other] = clock
                    clock += 1
                    stack.append(other)
                    on_stack[other] = 1
                    work.append((other, iter(direct[other])))
                    break
                if on_stack[other]:
                    low[number] = min(low[number], index[other])
            else:
                work.pop()
                if work:
                    low[work[-1][0]] = min(low[work[-1][0]], low[number])
                if low[number] == index[number]:
                    component = []
                    while True:
                        member = stack.pop()
                        on_stack[member] = 0
                        component.append(member)
                        if member == number:
                            break
                    found.append(component)
    return found
