"""What a scope tells and is told: gaps, what `remove` took out, the message it was opened for (spec SCOPE)."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field
from typing import Final, NamedTuple

from antipode._model.lineage import Lineage
from antipode._model.write_id import WriteId


class Gap(NamedTuple):
    """Why a lineage is not complete: what happened in this process, and to which store (empty: not known)."""

    reason: str
    store: str
    detail: str

    @property
    def code(self) -> str:
        """The message code of the reason (OBS-14)."""
        return _CODES.get(self.reason, "AP517")


_CODES: Final[Mapping[str, str]] = {
    "branch": "AP210",
    "budget": "AP510",
    "implausible": "AP407",
    "malformed": "AP405",
    "oversize": "AP408",
    "pending": "AP411",
    "rights": "AP506",
    "seal": "AP403",
    "streaming": "AP416",
    "unanswered": "AP417",
    "unscoped": "AP418",
    "unfit": "AP208",
    "untrusted": "AP403",
}
"""The others are words of a shim: a write whose version it could not tell."""


class Removal(NamedTuple):
    """What `remove` took out, and which of the named writes a position in the scope still covers."""

    lineage: Lineage
    still_covered: tuple[WriteId, ...]


class BarrierObservation(NamedTuple):
    """What a barrier in dry-run has followed: it misses what a read behind it misses there (REC-27)."""

    site: str
    asked: frozenset[tuple[str, WriteId]]
    """Servers' addresses, and the writes that were asked for there."""

    def hold(self, address: str, ids: Iterable[WriteId]) -> bool:
        """Return whether it asked this server for all of these."""
        return all((address, each) in self.asked for each in ids)


@dataclass(slots=True)
class Delivery:
    """The message that a scope was opened for; `redeliver` of a barrier goes back through it."""

    can_redeliver: bool
    detail: str = ""
    goes_back: bool = field(default=False, kw_only=True)
    """Whether the message goes back, or has: who acknowledges behind the block asks it (PROP-36)."""


Change = str | tuple[Lineage, Lineage]
"""What changed a scope: a write to a store, or a join, as the lineage before and after it."""
MOST_CHANGES = 64


def in_order(changes: list[Change]) -> list[Change]:
    """Return the names of the stores whose sections changed, the oldest change first (WIRE-33)."""
    stores: dict[Change, None] = {}
    for change in changes:
        if isinstance(change, str):
            changed = [change]
        else:
            before, after = change
            changed = sorted(s for s in after.stores if after.section_text(s) != before.section_text(s))
        for store in changed:
            stores.pop(store, None)
            stores[store] = None
    return list(stores)
