"""What one wrapped client was told: its store, and how its messages are stamped and taken."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Literal

from antipode.shim.queue_messages import QueueOptions

OnNoRoom = Literal["send", "raise"]


@dataclass(frozen=True, slots=True)
class Binding(QueueOptions):
    """The options of one `wrap`; several clients of one store may differ in them."""

    on_no_room: OnNoRoom
    arrived: Callable[[str], None]
    """Takes the mark of a tracked message of this store that this client's region has."""
