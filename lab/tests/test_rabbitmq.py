"""The lab's RabbitMQ, on real brokers."""

from __future__ import annotations

import time
from typing import Any

import pytest
from antipode_lab import Lab, LabError
from antipode_lab.fixtures import LabFactory
from antipode_lab.stores.rabbitmq import RabbitOptions, RabbitStore


def receive(channel: Any, queue: str, wanted: bytes, timeout: float = 20.0) -> None:
    """Takes messages until ``wanted`` comes. Others may be duplicates
    after a cut.
    """
    begun = time.monotonic()
    while True:
        _, _, body = channel.basic_get(queue, auto_ack=True)
        if body == wanted:
            return
        assert time.monotonic() - begun < timeout, f"{wanted!r} did not come"
        time.sleep(0.0005)


def publish_and_receive(lab: RabbitStore, count: int, exchange: str = "notifications") -> list[float]:
    """Publishes in A, receives in B; returns the delays."""
    with lab.connection("a") as up, lab.connection("b") as down:
        sender, receiver = up.channel(), down.channel()
        sender.confirm_delivery()
        delays = []
        for index in range(count):
            body = f"{time.time_ns()}-{index}".encode()
            begun = time.monotonic()  # before it is sent: the delay is never less than the link's lag
            sender.basic_publish(exchange, "", body)
            receive(receiver, "notifications", body)
            delays.append(time.monotonic() - begun)
        return delays


def check_lag_partition_and_heal(lab: RabbitStore) -> None:
    """The verbs, as any RabbitMQ of the lab has them."""
    with lab.connection("b") as down:
        assert down.channel().queue_declare("notifications", passive=True).method.message_count == 0, (
            "the lab's own probes must not be left in the application's queue"
        )
    assert 0.009 < min(publish_and_receive(lab, 10)) < 0.09
    lab.lag("b", "100ms")
    assert 0.099 < min(publish_and_receive(lab, 5)) < 0.5
    lab.lag("b", "10ms")
    lab.partition("b")
    with lab.connection("a") as up, lab.connection("b") as down:
        sender, receiver = up.channel(), down.channel()
        sender.confirm_delivery()
        sender.basic_publish("notifications", "", b"held")
        time.sleep(0.3)  # thirty times the lag: a partition that parts nothing would show
        waiting = []
        while (body := receiver.basic_get("notifications", auto_ack=True)[2]) is not None:
            waiting.append(body)
        assert b"held" not in waiting
        assert {status.name: status.link for status in lab.status()} == {"a": None, "b": "cut"}
        lab.heal()
        receive(receiver, "notifications", b"held")


def test_two_regions_in_one_broker(lab_factory: LabFactory) -> None:
    check_lag_partition_and_heal(lab_factory("rabbitmq", options={"rabbitmq": {"one_broker": True}}).rabbitmq)


def test_declare_waits_until_the_link_carries(rabbitmq_lab: RabbitStore) -> None:
    for kind, key, name in (("fanout", "", "f"), ("topic", "posts.new", "t"), ("direct", "q-d", "d")):
        rabbitmq_lab.declare(f"other-{name}", kind, f"q-{name}")
        with rabbitmq_lab.connection("a") as up, rabbitmq_lab.connection("b") as down:
            up.channel().basic_publish(f"other-{name}", key, b"first")
            receive(down.channel(), f"q-{name}", b"first", 5)


@pytest.mark.stores
def test_two_brokers_restart_and_lose_nothing() -> None:
    options = RabbitOptions(exchanges={"notifications": "topic"})
    with Lab("rabbitmq", queue_lag="10ms", options={"rabbitmq": options}) as lab:
        store = lab.rabbitmq
        assert len({server.port for server in store.servers.values()}) == 2
        check_lag_partition_and_heal(store)
        store.partition("b")
        with store.connection("a") as up:
            channel = up.channel()
            channel.confirm_delivery()
            channel.basic_publish("notifications", "k", b"kept", _persistent())
        store.restart("a", crash=True)
        store.heal()
        with store.connection("b") as down:
            receive(down.channel(), "notifications", b"kept")
        store.restart("b")
        assert min(publish_and_receive(store, 10)) < 0.099
        with pytest.raises(LabError, match="promote"):
            store.promote("b")


def _persistent() -> Any:
    import pika

    return pika.BasicProperties(delivery_mode=2)
