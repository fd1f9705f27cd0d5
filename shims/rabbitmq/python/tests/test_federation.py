"""Two regions: headers over a federation link, duplicates after a partition, tracking across it."""

from __future__ import annotations

import time
from collections import Counter
from typing import Any

import antipode
import antipode_rabbitmq
from antipode.messages import HEADER
from antipode_lab.stores.rabbitmq import RabbitStore
from antipode_rabbitmq import Tap, declare_tap
from rabbit_regions import Blog, Consumer, Region, properties, wait_for

EXCHANGE = "notifications"


def test_post_notification_over_a_federation_link(a: Region, b: Region, blog: Blog, rabbitmq_lab: RabbitStore) -> None:
    """The story of the paper: the message is faster than the write that it speaks of."""
    blog.store.set_lag("b", 0.15)
    queue = b.queue()
    b.own.queue_bind(queue, EXCHANGE)
    rabbitmq_lab.wait_probe(EXCHANGE)
    b.own.queue_purge(queue)
    channel, count = a.wrapped(), 20
    plain_reads, reads = list[Any](), list[Any]()

    def callback(channel: Any, method: Any, received: Any, body: bytes) -> None:
        plain_reads.append(blog.posts_b.get(body))
        antipode.barrier(timeout=5)
        reads.append(blog.posts_b.get(body))
        channel.basic_ack(method.delivery_tag)

    with Consumer(b, queue, callback) as consumer:
        for number in range(count):
            with antipode.scope():
                blog.posts_a.set(f"post:{number}", "hi")
                channel.basic_publish(EXCHANGE, "", f"post:{number}".encode())
        wait_for("all messages", lambda: len(reads) >= count, 20)
    assert not consumer.errors
    assert plain_reads.count(None) > 0, "without a barrier some are not there yet"
    assert reads.count(b"hi") == len(reads)


def test_headers_of_all_kinds_and_ours_survive_federation(a: Region, b: Region, rabbitmq_lab: RabbitStore) -> None:
    queue = b.queue()
    b.own.queue_bind(queue, EXCHANGE)
    rabbitmq_lab.wait_probe(EXCHANGE)
    b.own.queue_purge(queue)
    mine = {"bytes": b"\xff\x00", "int": 2**40, "list": [1, "x", {"y": b"z"}], "table": {"k": [True, None]}}
    with antipode.scope():
        antipode.append(antipode.WriteId.position("blog", "8371ab90c2d4e6f1", 2**63))
        antipode.append(antipode.WriteId("img", "cat.jpg ü~".encode(), antipode.Opaque("m")))
        text = antipode.serialize()
        a.wrapped().basic_publish(EXCHANGE, "k", b"\x00body", properties(headers=mine, priority=2, message_id="m"))
    _, received, body = b.get(queue, 20)
    assert body == b"\x00body"
    assert received.headers[HEADER] == text
    assert {name: received.headers[name] for name in mine} == mine
    assert (received.priority, received.message_id) == (2, "m")
    assert "x-received-from" in received.headers, "it did come over the link"


def test_duplicates_and_tracking_through_a_partition(a: Region, b: Region, rabbitmq_lab: RabbitStore) -> None:
    """Nothing passes while the link is cut, everything after; each copy of a message has a scope of its own."""
    tap = Tap(b.url, declare_tap(b.own, EXCHANGE, "test.partition.tap"))
    b.queues.append(tap.queue)
    queue = b.queue()
    b.own.queue_bind(queue, EXCHANGE)
    rabbitmq_lab.wait_probe(EXCHANGE)
    b.own.queue_purge(queue)
    antipode_rabbitmq.register("notifications", tap=tap)
    publisher = antipode_rabbitmq.wrap(a.own, store="notifications", track=True)
    before, held = list[antipode.Lineage](), list[antipode.Lineage]()

    def publish(into: list[antipode.Lineage], count: int) -> None:
        for _ in range(count):
            with antipode.scope() as scope:
                publisher.basic_publish(EXCHANGE, "", b"", properties(delivery_mode=2))
                into.append(scope.lineage)

    def passed(lineage: antipode.Lineage, timeout: float) -> bool:
        result = antipode.barrier(lineage, timeout=timeout, on_timeout="proceed", on_unproven="proceed")
        judged = result.stores["notifications"]
        at_tap = [server for server in judged.servers if server.address == tap.address]
        return len(at_tap) == 1 and at_tap[0].verdict is antipode.Verdict.VISIBLE

    publish(before, 100)
    assert passed(before[-1], 10)
    rabbitmq_lab.partition("b")
    try:
        publish(held, 100)
        begun = time.monotonic()
        assert not passed(held[0], 0.5)
        assert time.monotonic() - begun < 2, "bounded by the deadline"
        assert passed(before[0], 1), "what had arrived stays arrived"
    finally:
        rabbitmq_lab.heal()
    assert all(passed(lineage, 20) for lineage in (*before, *held))
    texts = Counter[str]()

    def callback(channel: Any, method: Any, received: Any, body: bytes) -> None:
        if body == b"":
            texts[antipode.serialize()] += 1
        channel.basic_ack(method.delivery_tag)

    wanted = {lineage.serialize() for lineage in (*before, *held)}
    with Consumer(b, queue, callback, prefetch=50) as consumer:
        wait_for("every message", lambda: len(texts) >= len(wanted), 20)
    assert not consumer.errors
    assert set(texts) == wanted, "a copy has its message's lineage and nothing of another's"
