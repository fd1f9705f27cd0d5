"""The notifier's queues: a message that is published in region A arrives in region B.

A new one is a new module here, named like the lab's store, with what `QueueModule` says; nothing else changes.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from importlib import import_module
from pkgutil import iter_modules
from typing import Any, Protocol, cast

from antipode_lab.model import StoreState

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


class QueueModule(Protocol):
    """What a module of this folder has, but for `memory`. Where `setup.antipode` is off it imports no shim."""

    @property
    def LAB(self) -> Mapping[str, Any] | None:
        """Options of the lab's store; empty for its defaults, None where there is none to start."""

    def prepare(self, lab: StoreState, /) -> dict[str, str]:
        """Once, before the first service: makes the queue where the lab has not; the servers' URLs (`a`, `b`)."""

    def open_notifications(self, setup: Setup, /) -> Notifications:
        """The queue as one service sees it; it connects when it is first used."""


def names() -> list[str]:
    """What `--notifier` can be."""
    return sorted(module.name for module in iter_modules(__path__) if not module.name.startswith("_"))


def module_of(name: str) -> QueueModule:
    """A queue's module."""
    return cast("QueueModule", import_module(f"{__name__}.{name}"))


def open_notifications(setup: Setup, embedded: LaggedQueue | None) -> Notifications:
    """The queue that notifier publishes in, plain or with Antipode."""
    if embedded is not None:
        return MemoryNotifications(setup, embedded)
    return module_of(setup.options.notifier).open_notifications(setup)


def open_incoming(setup: Setup, embedded: LaggedQueue | None) -> Notifications:
    """The queue that follower-notify consumes; where there are brokers, also while notifier sends by HTTP."""
    if setup.options.notifier == "http" and setup.queues:
        return module_of("rabbitmq").open_notifications(setup)
    return open_notifications(setup, embedded)
