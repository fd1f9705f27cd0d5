"""What a scope tells and is told: gaps, what `remove` took out, the message it was opened for (spec SCOPE)."""

from __future__ import annotations

from dataclasses import dataclass
from typing import NamedTuple

from antipode.lineage import Lineage
from antipode.writeid import WriteId


class Gap(NamedTuple):
    """Why a lineage is not complete: what happened in this process, and to which store (empty: not known)."""

    reason: str
    store: str
    detail: str


class Removed(NamedTuple):
    """What `remove` took out, and which of the named writes a position in the scope still covers."""

    lineage: Lineage
    still_covered: tuple[WriteId, ...]


@dataclass(slots=True)
class Delivery:
    """The message that a scope was opened for; `redeliver` of a barrier goes back through it."""

    can_redeliver: bool
    detail: str = ""


class Changes:
    """Which stores' sections changed in a scope, for when the budget leaves some out (WIRE-33).

    Kept as it came, and put in order when somebody asks, which is rare, or when there is much of it.
    """

    __slots__ = ("_events", "_order")

    def __init__(self) -> None:
        self._order: dict[str, None] = {}
        self._events: list[str | tuple[Lineage, Lineage]] = []

    def note(self, event: str | tuple[Lineage, Lineage]) -> None:
        """Note a write to a store, or a lineage before and after a join."""
        self._events.append(event)
        if len(self._events) > 64:
            self.in_order()

    def in_order(self) -> tuple[str, ...]:
        """Return the names of the stores, the oldest change first."""
        events, self._events = self._events, []
        for event in events:
            if isinstance(event, str):
                self._touch(event)
                continue
            before, after = event
            for store in sorted(after.stores):
                if after.section_text(store) != before.section_text(store):
                    self._touch(store)
        return tuple(self._order)

    def _touch(self, store: str) -> None:
        self._order.pop(store, None)
        self._order[store] = None
