"""What one wrapped channel was told: its store, and how its messages are stamped and taken."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any, Literal

from antipode.shim.queue_messages import QueueOptions

OnNoRoom = Literal["send", "raise"]


@dataclass(frozen=True, slots=True)
class ChannelOptions(QueueOptions):
    """The options of one `wrap`; several channels of one store may differ in them."""

    on_no_room: OnNoRoom


def headers_of(properties: Any) -> dict[Any, Any]:
    """A message's headers; empty where it has none."""
    headers = getattr(properties, "headers", None)
    return headers if isinstance(headers, dict) else {}
