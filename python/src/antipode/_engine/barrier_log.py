"""What barriers judged, kept while a test asks for it."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Iterator
from contextlib import contextmanager
from typing import ClassVar


class BarrierLog:
    """Counts, by store, the barriers that judged it."""

    _current: ClassVar[BarrierLog | None] = None
    active: ClassVar[bool] = False

    def __init__(self) -> None:
        self._counts: Counter[str] = Counter()

    @classmethod
    def current(cls) -> BarrierLog:
        """The log of the running test; raises outside `antipode_isolated`."""
        if cls._current is None:
            raise RuntimeError("assert_barriers needs the fixture antipode_isolated")
        return cls._current

    @classmethod
    def note(cls, stores: Iterable[str]) -> None:
        """A barrier has judged these stores."""
        if cls._current is not None:
            cls._current._counts.update(stores)

    def count(self, store: str) -> int:
        """How many barriers judged this store."""
        return self._counts[store]


@contextmanager
def barrier_log() -> Iterator[BarrierLog]:
    """Keeps a log for the block."""
    before = BarrierLog._current
    log = BarrierLog._current = BarrierLog()
    BarrierLog.active = True
    try:
        yield log
    finally:
        BarrierLog._current = before
        BarrierLog.active = before is not None
