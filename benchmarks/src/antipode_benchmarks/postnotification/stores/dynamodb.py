"""Posts in DynamoDB: a table in each region, every write replicated to the others; boto3's client."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, ClassVar, Final

from antipode_lab.model import StoreState

from antipode_benchmarks.postnotification._dynamodb import client_of, urls_of
from antipode_benchmarks.postnotification.options import STORE, Setup
from antipode_benchmarks.postnotification.stores import Place
from antipode_benchmarks.postnotification.stores._blocking import THREADS, BlockingPosts

TABLE: Final = "posts"
LAB: Final[Mapping[str, Any]] = {"tables": [TABLE]}


class DynamoDbPosts(BlockingPosts[Any]):
    """An item a post."""

    shared: ClassVar[bool] = True

    def connect(self, url: str) -> Any:
        """A client of one region."""
        client = client_of(url, THREADS)
        if not self.setup.antipode:
            return client
        import antipode_dynamodb  # the baseline does without it

        return antipode_dynamodb.wrap(
            client,
            store=STORE,
            tables=[TABLE],
            wait_on_read=self.setup.wait_on_read,
            timeout=self.setup.options.timeout,
        )

    def put(self, client: Any, key: str, body: bytes) -> None:
        """PutItem in region A."""
        client.put_item(TableName=TABLE, Item={"id": {"S": key}, "body": {"B": body}})

    def get(self, client: Any, key: str) -> bytes | None:
        """GetItem in a region of the readers."""
        item = client.get_item(TableName=TABLE, Key={"id": {"S": key}}).get("Item")
        return None if item is None else bytes(item["body"]["B"])


open_posts = DynamoDbPosts


def prepare(lab: StoreState) -> Place:
    """The lab has made the table in every region."""
    return Place(urls_of(lab), options={"table": TABLE})


def register(setup: Setup) -> None:
    """follower-notify waits for all of the readers' regions, and has no client of its own."""
    import antipode_dynamodb

    antipode_dynamodb.register(STORE, replicas=[setup.posts[name] for name in setup.options.replicas])
