"""The notifier's queues: a message that is published in region A arrives in region B."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Any, Protocol

from antipode_benchmarks.postnotification.options import Setup
from antipode_benchmarks.postnotification.queues.memory import LaggedQueue, MemoryNotifications

Handler = Callable[[Mapping[str, Any], bytes], None]
"""Takes a message's headers and body; with Antipode it runs in the message's own scope."""
Failed = Callable[[BaseException], None]


class Notifications(Protocol):
    """The queue as one service sees it."""

    def publish(self, headers: dict[str, str], body: bytes) -> None:
        """Publishes in region A; returns when the queue has taken the message. Threads may call it."""

    def consume(self, handler: Handler, consumers: int, failed: Failed) -> None:
        """Starts threads that hand each message of region B to `handler`, and an error of theirs to `failed`."""


def open_notifications(setup: Setup, embedded: LaggedQueue | None) -> Notifications:
    """The queue, plain or with Antipode."""
    if embedded is not None:
        return MemoryNotifications(setup, embedded)
    from antipode_benchmarks.postnotification.queues.rabbitmq import RabbitNotifications

    return RabbitNotifications(setup)
