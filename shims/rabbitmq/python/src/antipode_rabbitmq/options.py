"""What one wrapped channel was told: its store, and how its messages are stamped and taken."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any, Literal

from antipode.settings import settings
from antipode.store import Store

OnNoRoom = Literal["send", "raise"]


@dataclass(frozen=True, slots=True)
class ChannelOptions:
    """The options of one `wrap`; several channels of one store may differ in them."""

    store: Store
    track: bool
    stamped: bool
    on_no_room: OnNoRoom
    lineage_in: bool | None
    """None where nothing was said: at a declared edge nothing is taken then (TRUST-4)."""
    lineage_out: bool | None
    own_redeliver_delay: float | None

    @property
    def redeliver_delay(self) -> float:
        """How long a message waits before it goes back, in seconds."""
        own = self.own_redeliver_delay
        return settings().redeliver_delay if own is None else own


def headers_of(properties: Any) -> dict[Any, Any]:
    """A message's headers; empty where it has none."""
    headers = getattr(properties, "headers", None)
    return headers if isinstance(headers, dict) else {}
