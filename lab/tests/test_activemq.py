"""The lab's ActiveMQ, on real brokers."""

from __future__ import annotations

import threading
import time
from collections.abc import Callable
from typing import Any

import pytest
import stomp
from antipode_lab import LabError
from antipode_lab.stores.activemq import ActiveMqStore


class Inbox(stomp.ConnectionListener):  # type: ignore[misc]
    """What has come by a connection."""

    def __init__(self) -> None:
        self.bodies: list[str] = []
        self.arrived_at: dict[str, float] = {}
        self._came = threading.Condition()

    def on_message(self, frame: Any) -> None:
        with self._came:
            self.bodies.append(frame.body)
            self.arrived_at[frame.body] = time.monotonic()
            self._came.notify_all()

    def wait_for(self, condition: Callable[[], bool], timeout: float = 20.0) -> None:
        with self._came:
            assert self._came.wait_for(condition, timeout), self.bodies


@pytest.fixture(scope="module")
def lab(module_lab_factory: Any) -> ActiveMqStore:
    store = module_lab_factory("activemq", queue_lag="10ms")["activemq"]
    assert isinstance(store, ActiveMqStore)
    return store


def inbox(connection: Any, *destinations: str) -> Inbox:
    made = Inbox()
    connection.set_listener("inbox", made)
    for number, destination in enumerate(destinations):
        connection.subscribe(destination, f"s{number}", headers={"receipt": f"r{number}"})
    return made


def test_lag_partition_and_what_a_partition_loses(lab: ActiveMqStore) -> None:
    with lab.connection("a") as up, lab.connection("b") as down:
        box = inbox(down, "/queue/notifications", "/topic/news", "/topic/plain", "/topic/antipode.tap.news")
        lab.wait_probe()  # on this very broker, behind the subscriptions

        def send(body: str, destination: str = "/queue/notifications") -> float:
            begun = time.monotonic()
            up.send(destination, body)
            return begun

        delays = []
        for number in range(5):
            begun = send(f"m{number}")
            box.wait_for(lambda: f"m{number}" in box.bodies)  # noqa: B023
            delays.append(box.arrived_at[f"m{number}"] - begun)
        assert 0.009 < min(delays) < 0.2
        lab.lag("b", "100ms")
        begun = send("slow")
        box.wait_for(lambda: "slow" in box.bodies)
        assert box.arrived_at["slow"] - begun > 0.099
        lab.lag("b", "10ms")
        lab.partition("b")
        assert {status.name: status.link for status in lab.status()} == {"a": None, "b": "cut"}
        send("queue")
        send("topic", "/topic/news")
        send("lost", "/topic/plain")
        time.sleep(0.3)  # thirty times the lag: a partition that parts nothing would show
        assert not {"queue", "topic", "lost"} & set(box.bodies)
        lab.heal()
        send("later", "/topic/plain")
        box.wait_for(lambda: {"queue", "later"} <= set(box.bodies) and box.bodies.count("topic") == 2)
        assert "lost" not in box.bodies


def test_a_tap_keeps_the_past_for_those_who_subscribe_later(lab: ActiveMqStore) -> None:
    with lab.connection("a") as up, lab.connection("b") as down, lab.connection("b") as late:
        box = inbox(down, "/queue/notifications")
        up.send("/queue/notifications", "before")
        box.wait_for(lambda: "before" in box.bodies)
        tap = Inbox()
        late.set_listener("inbox", tap)
        late.subscribe("/topic/antipode.tap.notifications", "t", headers={"activemq.retroactive": "true"})
        tap.wait_for(lambda: "before" in tap.bodies)


def test_restarts_keep_what_is_persistent(lab: ActiveMqStore) -> None:
    lab.partition("b")
    with lab.connection("a") as up:
        receipts = Receipts()
        up.set_listener("receipts", receipts)
        up.send("/queue/notifications", "kept", persistent="true", receipt="r")
        assert receipts.came.wait(10)
    lab.restart("a", crash=True)
    lab.restart("b", wait=False)
    lab.heal()
    with lab.connection("b") as down:
        box = inbox(down, "/queue/notifications")
        box.wait_for(lambda: "kept" in box.bodies)
    lab.restart("b", "nothing")
    with pytest.raises(LabError, match="promote"):
        lab.promote("b")
    with pytest.raises(LabError, match="disk"):
        lab.restart("a", "rdb")


class Receipts(stomp.ConnectionListener):  # type: ignore[misc]
    """Tells when a receipt has come."""

    def __init__(self) -> None:
        self.came = threading.Event()

    def on_receipt(self, frame: Any) -> None:
        self.came.set()
