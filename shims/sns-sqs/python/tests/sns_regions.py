"""What the tests share: topics and queues of their own, ways to a region that can be cut, and a store to wait for."""

from __future__ import annotations

import time
import urllib.request
import uuid
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from typing import Any, Final
from urllib.parse import quote

import antipode_sns_sqs
from antipode import memory
from antipode_lab.stores.sns import ACCESS_KEY, SnsStore

LAGS: Final = {"b": 5, "c": 20}
QUEUE: Final = "notifications"


class Link:
    """A way of its own to a region's server, which can be cut, or fall silent."""

    def __init__(self, lab: SnsStore, region: str) -> None:
        self._toxiproxy = lab.context.toxiproxy
        self._name = f"test-{uuid.uuid4().hex[:12]}"
        self.port = self._toxiproxy.create(self._name, lab.server(region).port)

    def cut(self) -> None:
        """Connections are closed, and new ones refused."""
        self._toxiproxy.set_enabled(self._name, False)

    def silence(self) -> None:
        """Connections stay open, and nothing comes through."""
        self._toxiproxy.set_lag(self._name, 3_000_000)


class Regions:
    """A topic in region A of the test's own, and queues in the other regions."""

    def __init__(self, lab: SnsStore) -> None:
        self.lab = lab
        self.word = uuid.uuid4().hex[:8]
        self.topic = self.new_topic()
        self._queues: list[tuple[str, str]] = []

    def new_topic(self, end: str = "") -> str:
        """A new topic's ARN."""
        attributes = {"FifoTopic": "true", "ContentBasedDeduplication": "true"} if end else {}
        made = self.sns().create_topic(Name=f"t-{uuid.uuid4().hex[:8]}{end}", Attributes=attributes)
        return str(made["TopicArn"])

    def sns(self, region: str = "a") -> Any:
        """A plain client."""
        return self.lab.client(region, "sns")

    def sqs(self, region: str = "b") -> Any:
        """A plain client."""
        return self.lab.client(region, "sqs")

    def queue(
        self, region: str = "b", *, topic: str | None = None, raw: bool = True, end: str = "", **more: str
    ) -> str:
        """A new queue's URL; it is subscribed to the test's topic, or to the one given, or (an empty one) to none."""
        name = f"q-{uuid.uuid4().hex[:8]}{end}"
        attributes = {**({"FifoQueue": "true"} if end else {}), **more}
        url = str(self.sqs(region).create_queue(QueueName=name, Attributes=attributes)["QueueUrl"])
        self._queues.append((region, url))
        arn = self.topic if topic is None else topic
        if arn:
            self.sns().subscribe(
                TopicArn=arn,
                Protocol="sqs",
                Endpoint=self.lab.queue_arn(region, name),
                Attributes={"RawMessageDelivery": "true"} if raw else {},
            )
        return url

    def tap(self, region: str = "b", topic: str | None = None) -> str:
        """A new tap beside the topic, as a text that can be read without the application's clients."""
        name = f"tap-{uuid.uuid4().hex[:8]}"
        url = antipode_sns_sqs.declare_tap(self.sns(), self.sqs(region), topic or self.topic, name)
        self._queues.append((region, url))
        return self.text(url, region)

    def text(self, queue_url: str, region: str = "b", port: int | None = None, user: str = ACCESS_KEY) -> str:
        """A queue as a tap's text, with credentials; through a link where its port is given."""
        rest = queue_url.removeprefix("http://")
        if port is not None:
            rest = f"127.0.0.1:{port}/{rest.partition('/')[2]}"
        return f"sqs+http://{user}@{rest}?region={self.lab.region(region)}".replace(
            f"//{ACCESS_KEY}@", f"//{ACCESS_KEY}:{ACCESS_KEY}@"
        )

    @contextmanager
    def denied(self, region: str) -> Iterator[Callable[[str], str]]:
        """While a region's server asks for rights: gives a tap's text to a user who has none."""
        iam = self.lab.client(region, "iam")
        name = f"user-{uuid.uuid4().hex[:8]}"
        iam.create_user(UserName=name)
        key = iam.create_access_key(UserName=name)["AccessKey"]
        login = f"{key['AccessKeyId']}:{quote(key['SecretAccessKey'], safe='')}"
        self._ask_for_rights(region, "0")
        try:
            yield lambda text: text.replace(f"{ACCESS_KEY}:{ACCESS_KEY}@", f"{login}@")
        finally:
            self._ask_for_rights(region, "inf")

    def _ask_for_rights(self, region: str, after: str) -> None:
        """moto asks for rights after so many requests."""
        url = f"{self.lab.url(region)}/moto-api/reset-auth"
        asked = urllib.request.Request(url, after.encode(), {"Content-Type": "text/plain"}, method="POST")
        with urllib.request.urlopen(asked, timeout=10):
            pass

    def take(self, queue: str, region: str = "b", count: int = 1, timeout: float = 20.0) -> list[dict[str, Any]]:
        """Takes so many messages by a plain client, with all of their attributes, and deletes them."""
        taken: list[dict[str, Any]] = []
        deadline = time.monotonic() + timeout
        while len(taken) < count:
            assert time.monotonic() < deadline, f"{len(taken)} of {count} messages came"
            answer = self.sqs(region).receive_message(
                QueueUrl=queue, WaitTimeSeconds=1, MaxNumberOfMessages=10, MessageAttributeNames=["All"]
            )
            for message in answer.get("Messages", []):
                self.sqs(region).delete_message(QueueUrl=queue, ReceiptHandle=message["ReceiptHandle"])
                taken.append(message)
        return taken

    def receive(self, client: Any, queue: str, timeout: float = 20.0, **more: Any) -> dict[str, Any]:
        """Receives one message by a wrapped client."""
        deadline = time.monotonic() + timeout
        while True:
            assert time.monotonic() < deadline, "no message came"
            for message in client.receive_message(QueueUrl=queue, WaitTimeSeconds=1, **more).get("Messages", []):
                return dict(message)

    def close(self) -> None:
        """Deletes what was made."""
        self.sns().delete_topic(TopicArn=self.topic)
        for region, url in self._queues:
            self.sqs(region).delete_queue(QueueUrl=url)


class Blog:
    """A replicated store whose replica in B lags: what messages depend on."""

    def __init__(self) -> None:
        self.store = memory.Store("blog", regions=["a", "b"], lag=0.0)
        self.posts_a, self.posts_b = self.store.client("a"), self.store.client("b")


def attribute(value: str, kind: str = "String") -> dict[str, str]:
    """A message attribute as boto3 takes it."""
    return {"DataType": kind, "StringValue": value}
