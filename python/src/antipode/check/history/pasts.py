"""What lies before each operation, kept while somebody behind it is still to be judged (HIST-20: bounded memory)."""

from __future__ import annotations

from collections.abc import Collection, Sequence

from antipode.check.history.clock import Deadline


class Pasts:
    """Two sets of writes for each place of an order, as bits of whole numbers: the past, and what is replaced in it."""

    def __init__(self, before: Sequence[Collection[int]], deadline: Deadline) -> None:
        """before: for each place those directly before it."""
        self._before = before
        self._deadline = deadline
        self._kept: dict[int, tuple[int, int]] = {}
        self._waiting = [0] * len(before)
        for others in before:
            for other in others:
                self._waiting[other] += 1

    def gather(self, place: int) -> tuple[int, int]:
        """Both sets of all that is before a place; those are dropped that nobody else waits for."""
        self._deadline.check()
        past = replaced = 0
        kept, waiting = self._kept, self._waiting
        for other in self._before[place]:
            its_past, its_replaced = kept[other]
            past |= its_past
            replaced |= its_replaced
            waiting[other] -= 1
            if not waiting[other]:
                del kept[other]
                self._deadline.release(its_past, its_replaced)
        return past, replaced

    def keep(self, place: int, past: int, replaced: int) -> None:
        """For those behind it, where there are any."""
        if self._waiting[place]:
            self._deadline.hold(past, replaced)
            self._kept[place] = past, replaced
