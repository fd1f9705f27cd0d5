"""Couriers with a fault, for the test that the driver finds it: `broken_courier.py plain|hasty produce|relay …`."""

from __future__ import annotations

import sys
import time
from typing import Any

import antipode_rabbitmq
import pika
from antipode_benchmarks.deliveries import couriers


class Hasty(couriers.Pika):
    """Acknowledges a message before it is sent on."""

    def relay(self, queue: str, out: str) -> None:
        """Send each message on, until this process ends."""

        def on_message(channel: Any, method: Any, properties: Any, body: bytes) -> None:
            channel.basic_ack(method.delivery_tag)
            couriers.append_relay(body)
            channel.connection.process_data_events(0)
            time.sleep(0.02)
            self._publish(out, body)

        self._channel.basic_qos(prefetch_count=1)
        self._channel.basic_consume(queue, on_message)
        self._channel.start_consuming()


class Plain(couriers.Pika):
    """Does not know Antipode."""

    def __init__(self, url: str) -> None:
        self._channel = pika.BlockingConnection(pika.URLParameters(url)).channel()
        self._channel.confirm_delivery()
        antipode_rabbitmq.register(couriers.STORE)


couriers.FAILURES.pop(5)  # outside a scope no barrier gives a message back
couriers.CLIENTS = {"plain": Plain, "hasty": Hasty}  # type: ignore[misc]
couriers.main(*sys.argv[1:])
