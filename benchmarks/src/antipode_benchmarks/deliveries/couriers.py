"""Python's couriers (benchmarks/deliveries.md): `python -m antipode_benchmarks.deliveries.couriers CLIENT ROLE …`."""

from __future__ import annotations

import asyncio
import os
import sys
import time
import traceback
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager, suppress
from typing import Any, Final

import aio_pika
import antipode
import antipode_activemq
import antipode_rabbitmq
import antipode_sns_sqs
import boto3
import pika
import stomp
from antipode import WriteId, memory

STORE: Final = "parcels"
ORIGIN, RELAY = "origin", "relay"
DELAY_S: Final = 0.05
PREFETCH: Final = 5
PASSED: Final = 3
"""The exit code of a courier whose barrier passed for a write that nobody has."""
FAILURES: Final = {3: "before", 5: "redeliver", 7: "behind"}
"""By the last digit of a message's number: how its first delivery fails, before or behind what it sends on."""
BACK: Final[dict[str, Any]] = {"timeout": 0, "on_timeout": "redeliver", "on_unproven": "redeliver"}
"""A barrier that gives the message back."""
memory.Store(ORIGIN, regions=["here"]).client("here")  # has none of the writes that the messages depend on


@contextmanager
def producing(number: int) -> Iterator[bytes]:
    """Open the scope of a message's origin, and give its body."""
    with antipode.scope():
        antipode.append(WriteId.position(ORIGIN, "e", number))
        yield str(number).encode()


def fails(body: bytes, again: bool) -> str:
    """Return how this delivery fails; empty where it does not."""
    return "" if again else FAILURES.get(int(body) % 10, "")


def begin_relay(body: bytes, failure: str) -> None:
    """Do what a relay does to the scope of a delivery; raise Redeliver where this delivery fails so."""
    if failure == "redeliver":
        antipode.barrier(**BACK)
        os._exit(PASSED)
    append_relay(body)


def append_relay(body: bytes) -> None:
    """Write what a relay writes."""
    antipode.append(WriteId.position(RELAY, "e", int(body)))


def confirmed(number: int) -> None:
    """Tell the driver that the broker has a message."""
    print(number, flush=True)


class Pika:
    """RabbitMQ by pika's blocking connection."""

    def __init__(self, url: str) -> None:
        plain = pika.BlockingConnection(pika.URLParameters(url)).channel()
        self._channel = antipode_rabbitmq.wrap(plain, store=STORE, redeliver_delay=DELAY_S)
        self._channel.confirm_delivery()

    def _publish(self, queue: str, body: bytes) -> None:
        self._channel.basic_publish("", queue, body, pika.BasicProperties(delivery_mode=2), mandatory=True)

    def produce(self, queue: str, numbers: range) -> None:
        """Send messages; tell of each that is confirmed."""
        for number in numbers:
            with producing(number) as body:
                self._publish(queue, body)
            confirmed(number)

    def relay(self, queue: str, out: str) -> None:
        """Send each message on, until this process ends."""

        def on_message(channel: Any, method: Any, properties: Any, body: bytes) -> None:
            failure = fails(body, method.redelivered)
            if failure != "before":
                begin_relay(body, failure)
                self._publish(out, body)
            if failure:
                channel.basic_nack(method.delivery_tag, requeue=True)
            else:
                channel.basic_ack(method.delivery_tag)

        self._channel.basic_qos(prefetch_count=PREFETCH)
        self._channel.basic_consume(queue, on_message)
        self._channel.start_consuming()


class AioPika:
    """RabbitMQ by aio-pika, several messages at once."""

    def __init__(self, url: str) -> None:
        self._url = url

    async def _channel(self) -> Any:
        connection = await aio_pika.connect_robust(self._url)
        return antipode_rabbitmq.wrap(await connection.channel(), store=STORE, redeliver_delay=DELAY_S)

    @staticmethod
    async def _publish(channel: Any, queue: str, body: bytes) -> None:
        message = aio_pika.Message(body, delivery_mode=aio_pika.DeliveryMode.PERSISTENT)
        await channel.default_exchange.publish(message, routing_key=queue)

    def produce(self, queue: str, numbers: range) -> None:
        """Send messages, ten at once; tell of each that is confirmed."""

        async def send() -> None:
            channel = await self._channel()

            async def each(number: int) -> None:
                with producing(number) as body:
                    await self._publish(channel, queue, body)
                confirmed(number)

            for first in range(numbers.start, numbers.stop, 10):
                await asyncio.gather(*(each(number) for number in range(first, min(first + 10, numbers.stop))))

        asyncio.run(send())

    def relay(self, queue: str, out: str) -> None:
        """Send each message on, until this process ends."""

        async def run() -> None:
            channel = await self._channel()
            await channel.set_qos(PREFETCH)

            async def on_message(message: Any) -> None:
                failure = fails(message.body, message.redelivered)
                async with message.process(ignore_processed=True):
                    if failure != "before":
                        if failure == "redeliver":
                            await antipode.barrier_async(**BACK)
                            os._exit(PASSED)
                        append_relay(message.body)
                        await self._publish(channel, out, message.body)
                    if failure:
                        await message.nack(requeue=True)

            await (await channel.get_queue(queue)).consume(on_message)
            await asyncio.Event().wait()

        asyncio.run(run())


class Sqs:
    """SQS by boto3, in batches of ten; queues are URLs."""

    def __init__(self, url: str) -> None:
        plain = boto3.client(
            "sqs", endpoint_url=url, region_name="eu-central-1", aws_access_key_id=STORE, aws_secret_access_key=STORE
        )
        self._client = antipode_sns_sqs.wrap(plain, store=STORE, redeliver_delay=DELAY_S)

    def produce(self, queue: str, numbers: range) -> None:
        """Send messages; tell of each that is answered."""
        for number in numbers:
            with producing(number) as body:
                self._client.send_message(QueueUrl=queue, MessageBody=body.decode())
            confirmed(number)

    def relay(self, queue: str, out: str) -> None:
        """Send each message on, until this process ends."""
        while True:
            for message in self._receive(queue):
                body, again = message["Body"].encode(), message["Attributes"]["ApproximateReceiveCount"] != "1"
                failure, handle = fails(body, again), message["ReceiptHandle"]
                with antipode_sns_sqs.scope_of(message):
                    if failure != "before":
                        begin_relay(body, failure)
                        self._client.send_message(QueueUrl=out, MessageBody=body.decode())
                    with suppress(self._client.exceptions.ReceiptHandleIsInvalid):  # a slow machine: it came again
                        self._settle(queue, handle, back=bool(failure))

    def _settle(self, queue: str, handle: str, *, back: bool) -> None:
        if back:
            self._client.change_message_visibility(QueueUrl=queue, ReceiptHandle=handle, VisibilityTimeout=0)
        else:
            self._client.delete_message(QueueUrl=queue, ReceiptHandle=handle)

    def _receive(self, queue: str) -> list[Any]:
        count = ["ApproximateReceiveCount"]
        received = self._client.receive_message(
            QueueUrl=queue, MaxNumberOfMessages=10, WaitTimeSeconds=1, AttributeNames=count
        )
        return list(received.get("Messages", []))


def is_again(headers: Mapping[str, str]) -> bool:
    """Return whether the broker, or the wrapper's copy (shims/activemq), says that this is not the first delivery."""
    return headers.get("redelivered") == "true" or "antipode_redeliveries" in headers


class Stomp(stomp.ConnectionListener):  # type: ignore[misc]
    """ActiveMQ by stomp.py."""

    def __init__(self, url: str) -> None:
        host, _, port = url.rpartition("/")[2].rpartition("@")[2].rpartition(":")
        self._connection = antipode_activemq.wrap(
            stomp.Connection12([(host, int(port))]), store=STORE, redeliver_delay=DELAY_S
        )
        self._connection.set_listener("courier", self)
        user, _, password = url.rpartition("/")[2].rpartition("@")[0].partition(":")
        self._connection.connect(user, password, wait=True)
        self._out = ""
        self._receipts: set[str] = set()

    def on_receipt(self, frame: Any) -> None:
        """Note that the broker has a message."""
        self._receipts.add(frame.headers["receipt-id"])

    def produce(self, queue: str, numbers: range) -> None:
        """Send messages; tell of each whose receipt came."""
        for number in numbers:
            with producing(number) as body:
                self._connection.send(queue, body.decode(), receipt=str(number), persistent="true")
            while str(number) not in self._receipts:
                time.sleep(0.0005)
            confirmed(number)

    def on_message(self, frame: Any) -> None:
        """Send a message on; end the process where that fails, for stomp.py would end its own thread alone."""
        try:
            self._take(frame)
        except antipode.Redeliver:
            raise
        except BaseException:
            traceback.print_exc()
            os._exit(1)

    def _take(self, frame: Any) -> None:
        body, again = frame.body.encode(), is_again(frame.headers)
        failure = fails(body, again)
        begin_relay(body, failure)
        self._connection.send(self._out, frame.body, persistent="true")
        if failure:  # a NACK would be its end here (shims/activemq)
            antipode.barrier(**BACK)
            os._exit(PASSED)
        self._connection.ack(frame.headers["ack"])

    def relay(self, queue: str, out: str) -> None:
        """Send each message on, until this process ends."""
        self._out = out
        self._connection.subscribe(
            queue, id="1", ack="client-individual", headers={"activemq.prefetchSize": str(PREFETCH)}
        )
        while True:
            time.sleep(60)


CLIENTS: Final[dict[str, Callable[[str], Any]]] = {"pika": Pika, "aio-pika": AioPika, "sqs": Sqs, "activemq": Stomp}


def main(client: str, role: str, url: str, queue: str, *rest: str) -> None:
    """Run a courier."""
    courier = CLIENTS[client](url)
    if role == "produce":
        courier.produce(queue, range(int(rest[0]), int(rest[1])))
    else:
        courier.relay(queue, rest[0])


if __name__ == "__main__":
    main(*sys.argv[1:])
