"""A DynamoDB table as the queue (as in the paper): an item a notification, found in region B's stream, read there.

The lineage rests beside the item. Whoever reads it inside `reading()` depends on it.
"""

from __future__ import annotations

import json
import threading
import time
from collections.abc import Callable, Iterator, Mapping
from queue import SimpleQueue
from typing import Any, Final
from uuid import uuid4

import antipode
from antipode.messages import HEADER
from antipode_lab.model import StoreState

from antipode_benchmarks.postnotification._dynamodb import client_of, urls_of
from antipode_benchmarks.postnotification.options import QUEUE, Setup

LAB: Final[Mapping[str, Any]] = {"tables": [QUEUE]}
_CONNECTIONS: Final = 40
_POLL_S: Final = 0.005
_SHARDS_S: Final = 1.0
"""A stream gets another shard after hours."""


class TableNotifications:
    """The table as one service sees it; its region is chosen when it is first used."""

    def __init__(self, setup: Setup) -> None:
        self._antipode = setup.antipode
        self._urls = setup.queues
        self._lock = threading.Lock()
        self._publisher: Any = None

    def _client(self, region: str) -> Any:
        client = client_of(self._urls[region], _CONNECTIONS)
        if not self._antipode:
            return client
        import antipode_dynamodb  # the baseline does without it

        return antipode_dynamodb.wrap(client, store=QUEUE, tables=[QUEUE])

    def publish(self, headers: dict[str, str], body: bytes) -> None:
        """Writes an item in region A."""
        with self._lock:
            if self._publisher is None:
                self._publisher = self._client("a")
        item = {"id": {"S": uuid4().hex}, "headers": {"S": json.dumps(headers)}, "body": {"B": body}}
        self._publisher.put_item(TableName=QUEUE, Item=item)

    def consume(
        self,
        handler: Callable[[Mapping[str, Any], bytes], None],
        consumers: int,
        failed: Callable[[BaseException], None],
    ) -> None:
        """Starts a thread that follows region B's stream, and those that read and handle the items."""
        arrived: SimpleQueue[str] = SimpleQueue()
        client = self._client("b1")
        stream = client.describe_table(TableName=QUEUE)["Table"]["LatestStreamArn"]
        follower = _Stream(client_of(self._urls["b1"], 1, "dynamodbstreams"), stream)
        follower.skip()  # what the phase before has left

        def follow() -> None:
            for key in follower.follow():
                arrived.put(key)

        def read(key: str) -> tuple[dict[str, Any], bytes]:
            item = client.get_item(TableName=QUEUE, Key={"id": {"S": key}})["Item"]
            return json.loads(item["headers"]["S"]), bytes(item["body"]["B"])

        def take() -> None:
            while True:
                key = arrived.get()
                if not self._antipode:
                    handler(*read(key))
                    continue
                with antipode.scope():
                    with antipode.reading() as seen:
                        headers, body = read(key)
                    antipode.transfer(seen.lineage)
                    handler({**headers, HEADER: seen.lineage.serialize()}, body)

        def run(work: Callable[[], None]) -> None:
            try:
                work()
            except BaseException as error:
                failed(error)

        for name, work in [("stream", follow), *((f"consumer-{number}", take) for number in range(consumers))]:
            threading.Thread(target=run, args=(work,), name=name, daemon=True).start()


class _Stream:
    """The keys of the items that are written to a table in one region, in the stream's order."""

    def __init__(self, client: Any, arn: str) -> None:
        self._client = client
        self._arn = arn
        self._iterators: dict[str, str | None] = {}

    def skip(self) -> None:
        """Begins with what is written from now on."""
        self._look_for_shards("LATEST")

    def follow(self) -> Iterator[str]:
        """The keys, for ever."""
        looked = time.monotonic()
        while True:
            if time.monotonic() - looked > _SHARDS_S:
                self._look_for_shards("TRIM_HORIZON")
                looked = time.monotonic()
            for shard, iterator in self._iterators.items():
                if iterator is None:
                    continue
                answer = self._client.get_records(ShardIterator=iterator)
                self._iterators[shard] = answer.get("NextShardIterator")
                for record in answer["Records"]:
                    if record["eventName"] != "REMOVE":
                        yield record["dynamodb"]["Keys"]["id"]["S"]
            time.sleep(_POLL_S)

    def _look_for_shards(self, begin: str) -> None:
        for shard in self._client.describe_stream(StreamArn=self._arn)["StreamDescription"]["Shards"]:
            name = shard["ShardId"]
            if name not in self._iterators:
                found = self._client.get_shard_iterator(StreamArn=self._arn, ShardId=name, ShardIteratorType=begin)
                self._iterators[name] = found["ShardIterator"]


open_notifications = TableNotifications


def prepare(lab: StoreState) -> dict[str, str]:
    """The lab has made the table in both regions."""
    return urls_of(lab)
