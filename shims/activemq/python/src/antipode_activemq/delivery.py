"""One delivered message, as the barriers of its scope see it."""

from __future__ import annotations

from dataclasses import dataclass

from antipode.shim.queue_messages import MessageDelivery


@dataclass(slots=True)
class BrokerDelivery(MessageDelivery):
    """A message of ActiveMQ, which goes back as a copy."""

    body: str | bytes = b""
