"""A few operations of a history by themselves, with the direct causes between them: how witnesses are made smaller."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Final

from antipode.check.history.operations import UNKNOWN_SOURCE, History

_MOST: Final = 200
"""Of more operations none is left out."""


def part(history: History, kept: Sequence[int]) -> History:
    """These operations, renumbered in their order. A read whose write is not among them is not judged any more."""
    new = {old: number for number, old in enumerate(kept)}
    made = History(
        [history.operations[old] for old in kept], [], [], [], [], history.items, [], {}, {}, {}, [], history.requests
    )
    threads: dict[int, int] = {}
    for number, old in enumerate(kept):
        thread = threads.setdefault(history.thread[old], len(threads))
        if thread == len(made.threads):
            made.threads.append([])
        made.thread.append(thread)
        made.place.append(len(made.threads[thread]))
        made.threads[thread].append(number)
        made.item.append(history.item[old])
        made.request.append(history.request[old])
        source = history.source[old]
        made.source.append(new.get(source, UNKNOWN_SOURCE) if source >= 0 else source)
        carried = [new[write] for write in history.carried.get(old, ()) if write in new]
        if carried:
            made.carried[number] = carried
        if history.sent.get(old) in new:
            made.sent[number] = new[history.sent[old]]
    return made


def fewest_operations(history: History, kept: Sequence[int], holds: Callable[[History], bool]) -> list[int]:
    """Of these operations as many left out, one after the other, as `holds` allows."""
    needed = list(kept)
    if len(needed) > _MOST:
        return needed
    for number in kept:
        without = [other for other in needed if other != number]
        if holds(part(history, without)):
            needed = without
    return needed
