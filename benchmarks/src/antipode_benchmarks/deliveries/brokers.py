"""The brokers of a run: queues of its own, and what comes out of them, read by a plain client."""

from __future__ import annotations

import queue
import uuid
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from typing import Any, Final, Protocol

import stomp
from antipode._propagation.carriers import LINEAGE_HEADER
from antipode_lab import Lab
from antipode_lab.stores.activemq import USER, ActiveMqStore
from antipode_lab.stores.rabbitmq import RabbitStore
from antipode_lab.stores.sns import SnsStore

Message = tuple[int, str]
"""Its number, and the text of its lineage; empty where it has none."""


class Broker(Protocol):
    """A broker with two queues."""

    url: str
    queues: tuple[str, str]

    def collect(self) -> list[Message]:
        """Return what came to the second queue, at most half a second later."""


class RabbitBroker:
    """RabbitMQ."""

    def __init__(self, lab: Lab) -> None:
        store = lab.get(RabbitStore)
        self.url = store.url("a")
        self._channel = store.connection("a").channel()
        self.queues = new_names()
        for name in self.queues:
            self._channel.queue_declare(name, durable=True)

    def collect(self) -> list[Message]:
        """Return what came."""
        found = []
        for method, properties, body in self._channel.consume(self.queues[1], auto_ack=True, inactivity_timeout=0.5):
            if method is None:
                break
            found.append((int(body), (properties.headers or {}).get(LINEAGE_HEADER, "")))
            if len(found) == _MOST:
                break
        return found


class SqsBroker:
    """SQS by moto."""

    def __init__(self, lab: Lab) -> None:
        store = lab.get(SnsStore)
        self.url = store.url("a")
        self._client = store.client("a", "sqs")
        patience = {"VisibilityTimeout": "5"}
        first, second = (
            self._client.create_queue(QueueName=name, Attributes=patience)["QueueUrl"] for name in new_names()
        )
        self.queues = first, second

    def collect(self) -> list[Message]:
        """Return what came."""
        url = self.queues[1]
        found: list[Message] = []
        while len(found) < _MOST:
            messages = self._client.receive_message(
                QueueUrl=url, MaxNumberOfMessages=10, MessageAttributeNames=["All"]
            ).get("Messages", [])
            if not messages:
                break
            for message in messages:
                attribute = message.get("MessageAttributes", {}).get(LINEAGE_HEADER, {})
                found.append((int(message["Body"]), attribute.get("StringValue", "")))
            entries = [{"Id": str(at), "ReceiptHandle": each["ReceiptHandle"]} for at, each in enumerate(messages)]
            self._client.delete_message_batch(QueueUrl=url, Entries=entries)
        return found


class StompBroker(stomp.ConnectionListener):  # type: ignore[misc]
    """ActiveMQ."""

    def __init__(self, lab: Lab) -> None:
        store = lab.get(ActiveMqStore)
        self.url = store.url("a")
        first, second = new_names()
        self.queues = f"/queue/{first}", f"/queue/{second}"
        self._found: queue.Queue[Message] = queue.Queue()
        self._connection = store.plain_connection("a")
        self._connection.set_listener("collector", self)
        self._connection.connect(USER, USER, wait=True)
        self._connection.subscribe(self.queues[1], id="1", ack="auto")

    def on_message(self, frame: Any) -> None:
        """Keep a message."""
        self._found.put((int(frame.body), frame.headers.get(LINEAGE_HEADER.replace("-", "_"), "")))

    def collect(self) -> list[Message]:
        """Return what came."""
        found: list[Message] = []
        try:
            while len(found) < _MOST:
                found.append(self._found.get(timeout=0.5))
        except queue.Empty:
            pass
        return found


_MOST: Final = 100
_BROKERS: Final[dict[str, Callable[[Lab], Broker]]] = {
    "rabbitmq": RabbitBroker,
    "sns": SqsBroker,
    "activemq": StompBroker,
}


def new_names() -> tuple[str, str]:
    """Return names for two queues."""
    word = uuid.uuid4().hex[:8]
    return f"parcels-{word}", f"arrived-{word}"


@contextmanager
def broker(kind: str) -> Iterator[Broker]:
    """Start a broker for a run."""
    with Lab(kind) as lab:
        yield _BROKERS[kind](lab)
