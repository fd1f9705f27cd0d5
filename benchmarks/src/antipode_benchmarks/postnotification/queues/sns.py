"""SNS and SQS: published to a topic of region A, delivered raw to a queue of region B, received there by boto3."""

from __future__ import annotations

import threading
from collections.abc import Callable, Mapping
from contextlib import nullcontext
from typing import Any, Final
from urllib.parse import urlsplit

import boto3.session
from antipode_lab.model import StoreState
from botocore.config import Config

from antipode_benchmarks.postnotification.options import QUEUE, Setup

LAB: Final[Mapping[str, Any]] = {"topics": [QUEUE], "queues": {QUEUE: QUEUE}}
_CONNECTIONS: Final = 40
_BACK_S: Final = 12
"""So soon comes back what was handed to a consumer that had ended (a phase before): within the load's patience."""


class SnsNotifications:
    """The topic and the queue as one service sees them; clients are made when they are first used."""

    def __init__(self, setup: Setup) -> None:
        self._antipode = setup.antipode
        self._track = setup.options.track
        self._urls = setup.queues
        self._lock = threading.Lock()
        self._publisher: Any = None

    def _client(self, region: str, service: str) -> Any:
        place = urlsplit(self._urls[region])
        name, account = place.path.strip("/").split("/")
        client = boto3.session.Session().client(
            service,
            endpoint_url=f"http://{place.hostname}:{place.port}",
            region_name=name,
            aws_access_key_id=place.username,
            aws_secret_access_key=place.password,
            config=Config(max_pool_connections=_CONNECTIONS, read_timeout=60),
        )
        self._topic = f"arn:aws:sns:{name}:{account}:{QUEUE}"
        self._queue = f"http://{place.hostname}:{place.port}/{account}/{QUEUE}"
        if not self._antipode:
            return client
        import antipode_sns_sqs  # the baseline does without it

        return antipode_sns_sqs.wrap(client, store=QUEUE, track=self._track)

    def publish(self, headers: dict[str, str], body: bytes) -> None:
        """Publishes in region A; returns when SNS has taken it."""
        with self._lock:
            if self._publisher is None:
                self._publisher = self._client("a", "sns")
        attributes = {name: {"DataType": "String", "StringValue": value} for name, value in headers.items() if value}
        self._publisher.publish(TopicArn=self._topic, Message=body.decode(), MessageAttributes=attributes)

    def consume(
        self,
        handler: Callable[[Mapping[str, Any], bytes], None],
        consumers: int,
        failed: Callable[[BaseException], None],
    ) -> None:
        """Starts the consumers' threads, which share a client and wait at SQS for messages."""
        client = self._client("b", "sqs")
        queue, names = self._queue, ["All"]

        def scope_of(message: Any) -> Any:
            if not self._antipode:
                return nullcontext()
            import antipode_sns_sqs

            return antipode_sns_sqs.scope_of(message)

        def run() -> None:
            try:
                while True:
                    answer = client.receive_message(
                        QueueUrl=queue, WaitTimeSeconds=20, VisibilityTimeout=_BACK_S, MessageAttributeNames=names
                    )
                    for message in answer.get("Messages", ()):
                        attributes = message.get("MessageAttributes", {})
                        headers = {name: each.get("StringValue") for name, each in attributes.items()}
                        with scope_of(message):
                            handler(headers, message["Body"].encode())
                            client.delete_message(QueueUrl=queue, ReceiptHandle=message["ReceiptHandle"])
            except BaseException as error:
                failed(error)

        for number in range(consumers):
            threading.Thread(target=run, name=f"consumer-{number}", daemon=True).start()


open_notifications = SnsNotifications


def prepare(lab: StoreState) -> dict[str, str]:
    """The lab has made the topic, the queue and the subscription."""
    key, account = lab.details["access_key"], lab.details["account"]
    return {
        name: f"http://{key}:{key}@{server.host}:{server.port}/{lab.details['regions'][name]}/{account}"
        for name, server in lab.servers.items()
    }
