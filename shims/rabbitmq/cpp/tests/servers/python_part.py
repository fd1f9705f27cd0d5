"""Python's part of the C++ tests that share a broker with it: one action, words as arguments, the answer printed."""

from __future__ import annotations

import sys
import time
from typing import Any

import antipode
import antipode_rabbitmq
import pika
from antipode import WriteId
from antipode_rabbitmq import Tap


def wrapped(url: str, **options: Any) -> Any:
    """A wrapped channel of its own connection."""
    connection = pika.BlockingConnection(pika.URLParameters(url))
    return antipode_rabbitmq.wrap(connection.channel(), store="notifications", **options)


def publish(url: str, exchange: str, key: str, body: str, track: str = "") -> str:
    """Publishes in a scope that depends on one write; the scope's lineage afterwards."""
    channel = wrapped(url, track=track == "track")
    with antipode.scope() as scope:
        antipode.append(WriteId.position("blog", "0-1", 42))
        given = pika.BasicProperties(headers={"mine": "yours"}, content_type="text/plain", delivery_mode=2)
        if track == "own":
            channel = wrapped(url, track=True)
            given.message_id = "order-7"
        channel.basic_publish(exchange, key, body.encode(), given)
        text = scope.lineage.serialize()
    channel.connection.close()
    return text


def consume(url: str, queue: str) -> str:
    """The lineage of the scope of a queue's next message."""
    channel = wrapped(url)
    deadline = time.monotonic() + 10
    while time.monotonic() < deadline:
        method, properties, _ = channel.basic_get(queue, auto_ack=True)
        if method is not None:
            with antipode_rabbitmq.scope_of(method, properties, channel=channel, auto_ack=True) as scope:
                return scope.lineage.serialize()
        channel.connection.sleep(0.01)
    return "nothing came"


def judge(url: str, queue: str, text: str) -> str:
    """What a barrier of a process that reads this tap says of a lineage."""
    antipode_rabbitmq.register("notifications", tap=Tap(url, queue))
    lineage = antipode.deserialize(text)
    result = antipode.barrier(lineage, timeout=10, on_timeout="proceed", on_unproven="proceed")
    return result.stores["notifications"].verdict.value


if __name__ == "__main__":
    action = {"publish": publish, "consume": consume, "judge": judge}[sys.argv[1]]
    print(action(*sys.argv[2:]))
