"""What one wrapped client was told: its store, and how its messages are stamped and taken."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Literal

from antipode.settings import settings
from antipode.store import Store

OnNoRoom = Literal["send", "raise"]


@dataclass(frozen=True, slots=True)
class Binding:
    """The options of one `wrap`; several clients of one store may differ in them."""

    store: Store
    track: bool
    stamped: bool
    on_no_room: OnNoRoom
    lineage_in: bool | None
    """None where nothing was said: at a declared edge nothing is taken then (TRUST-4)."""
    lineage_out: bool | None
    own_redeliver_delay: float | None
    arrived: Callable[[str], None]
    """Takes the mark of a tracked message of this store that this client's region has."""

    @property
    def redeliver_delay(self) -> float:
        """How long a message waits before it goes back, in seconds."""
        own = self.own_redeliver_delay
        return settings().redeliver_delay if own is None else own
