"""What one wrapped connection was told: its store, and how its messages are stamped and taken."""

from __future__ import annotations

from dataclasses import dataclass

from antipode.shim.queue_messages import QueueOptions


@dataclass(frozen=True, slots=True)
class ConnectionOptions(QueueOptions):
    """The options of one `wrap`; several connections of one store may differ in them."""

    stored_topics: bool
    max_redeliveries: int | None
