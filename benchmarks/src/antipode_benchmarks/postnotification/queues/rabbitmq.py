"""RabbitMQ: published in region A's broker, federated to region B's, consumed there by pika."""

from __future__ import annotations

import threading
from collections.abc import Callable, Mapping
from typing import Any, Final

import pika
from antipode_lab.model import StoreState
from pika.adapters.blocking_connection import BlockingChannel

from antipode_benchmarks.postnotification.options import QUEUE, Setup

LAB: Final[Mapping[str, Any]] = {"exchanges": {QUEUE: "fanout"}, "queues": {QUEUE: QUEUE}}
_TRANSIENT = 1


class RabbitNotifications:
    """The queue as a service sees it; connections are opened when they are first used."""

    def __init__(self, setup: Setup) -> None:
        self._antipode = setup.antipode
        self._urls = setup.queues
        self._track = setup.options.track
        self._exchange = setup.exchange
        self._queue = setup.queue
        self._lock = threading.Lock()
        self._publisher: BlockingChannel | None = None

    def _channel(self, region: str) -> BlockingChannel:
        parameters = pika.URLParameters(self._urls[region])
        parameters.heartbeat = 0  # a callback may block for as long as a barrier does
        channel = pika.BlockingConnection(parameters).channel()
        if not self._antipode:
            return channel
        import antipode_rabbitmq  # the baseline does without it

        return antipode_rabbitmq.wrap(channel, store=QUEUE, track=self._track)

    def publish(self, headers: dict[str, str], body: bytes) -> None:
        """Publishes, and waits for the broker's confirmation; raises for a message that reaches no queue."""
        properties = pika.BasicProperties(headers=dict(headers), delivery_mode=_TRANSIENT)
        with self._lock:  # pika's connections belong to one thread at a time
            if self._publisher is None:
                self._publisher = self._channel("a")
                self._publisher.confirm_delivery()
            self._publisher.basic_publish(self._exchange, "", body, properties, mandatory=True)

    def consume(
        self,
        handler: Callable[[Mapping[str, Any], bytes], None],
        consumers: int,
        failed: Callable[[BaseException], None],
    ) -> None:
        """Starts the consumers' threads, each with a connection of its own; returns when all of them consume."""
        ready = threading.Barrier(consumers + 1)

        def on_message(channel: Any, method: Any, properties: Any, body: bytes) -> None:
            mark = {"message-id": properties.message_id} if properties.message_id else {}
            handler({**(properties.headers or {}), **mark}, body)
            channel.basic_ack(method.delivery_tag)

        def run() -> None:
            try:
                channel = self._channel("b")
                channel.basic_qos(prefetch_count=1)
                channel.basic_consume(self._queue, on_message)
                ready.wait(30)
                channel.start_consuming()
                raise RuntimeError("the broker ended a consumer")
            except BaseException as error:
                ready.abort()
                failed(error)

        for number in range(consumers):
            threading.Thread(target=run, name=f"consumer-{number}", daemon=True).start()
        ready.wait(30)


open_notifications = RabbitNotifications


def prepare(lab: StoreState) -> dict[str, str]:
    """The lab has declared the exchange, the queue and the federation."""
    return {name: server.url for name, server in lab.servers.items()}
