"""The observer port: whoever is added takes the events that it overrides, and no others."""

from __future__ import annotations

from collections.abc import Iterator

import antipode
import pytest
from antipode._base import observers
from antipode._base.observers import Observer, events
from antipode._diagnostics import telemetry


class Listener(Observer):
    """Keeps two kinds of events."""

    def __init__(self) -> None:
        self.seen: list[tuple[str, ...]] = []

    def on_write_lost(self, reason: str, store: str, site: str) -> None:
        self.seen.append((reason, store))

    def on_lineage_incomplete(self, reason: str, store: str, scope: object = None, *, is_recorded: bool = True) -> None:
        self.seen.append((reason, store))


@pytest.fixture
def listener() -> Iterator[Listener]:
    added, before = Listener(), dict(vars(events))
    observers.add(added)
    yield added
    observers._observers.remove(added)
    vars(events).clear()
    vars(events).update(before)


def test_an_observer_takes_what_it_overrides(listener: Listener) -> None:
    antipode.append(antipode.WriteId("posts", b"k", antipode.Ordered("e", 1)))
    with antipode.scope() as scope:
        scope.mark_incomplete("stream", "posts")
    assert listener.seen == [("orphan", "posts"), ("stream", "posts")]


def test_who_does_not_override_an_event_is_not_called(listener: Listener) -> None:
    assert vars(events)["on_fallback"] == telemetry.Telemetry.on_fallback
    events.on_fallback("run")
    assert not listener.seen


def test_an_event_of_nobody_does_nothing() -> None:
    Observer().on_server_asked("posts", "wait")
    Observer().on_barrier_waited(None, None, (), "satisfied")
