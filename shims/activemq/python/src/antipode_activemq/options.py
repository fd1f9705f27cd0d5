"""What one wrapped connection was told: its store, and how its messages are stamped and taken."""

from __future__ import annotations

from dataclasses import dataclass

from antipode.settings import settings
from antipode.store import Store


@dataclass(frozen=True, slots=True)
class ConnectionOptions:
    """The options of one `wrap`; several connections of one store may differ in them."""

    store: Store
    track: bool
    stamped: bool
    stored_topics: bool
    lineage_in: bool | None
    """None where nothing was said: at a declared edge nothing is taken then (TRUST-4)."""
    lineage_out: bool | None
    own_redeliver_delay: float | None
    max_redeliveries: int | None

    @property
    def redeliver_delay(self) -> float:
        """How long a message waits before it goes back, in seconds."""
        own = self.own_redeliver_delay
        return settings().redeliver_delay if own is None else own
