"""Posts in MongoDB: a primary in region A, secondaries in region B; PyMongo's client."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, ClassVar, Final

import pymongo
from antipode_lab.model import StoreState

from antipode_benchmarks.postnotification.options import STORE, Setup
from antipode_benchmarks.postnotification.stores import Place
from antipode_benchmarks.postnotification.stores._blocking import THREADS, BlockingPosts

DATABASE: Final = "posts"
LAB: Final[Mapping[str, Any]] = {}


class MongoPosts(BlockingPosts["pymongo.MongoClient[dict[str, Any]]"]):
    """A document a post."""

    shared: ClassVar[bool] = True

    def connect(self, url: str) -> pymongo.MongoClient[dict[str, Any]]:
        """A client of one server."""
        client: pymongo.MongoClient[dict[str, Any]] = pymongo.MongoClient(url, maxPoolSize=THREADS)
        if not self.setup.antipode:
            return client
        import antipode_mongodb  # the baseline does without it

        return antipode_mongodb.wrap(
            client, store=STORE, wait_on_read=self.setup.wait_on_read, timeout=self.setup.options.timeout
        )

    def put(self, client: pymongo.MongoClient[dict[str, Any]], key: str, body: bytes) -> None:
        """Inserts at the primary."""
        client[DATABASE]["posts"].insert_one({"_id": key, "body": body})

    def get(self, client: pymongo.MongoClient[dict[str, Any]], key: str) -> bytes | None:
        """Finds at a secondary."""
        found = client[DATABASE]["posts"].find_one({"_id": key})
        return None if found is None else bytes(found["body"])


open_posts = MongoPosts


def prepare(lab: StoreState) -> Place:
    """Makes the collection, which comes with its first document, at the primary."""
    urls = {name: server.url for name, server in lab.servers.items()}
    with pymongo.MongoClient[dict[str, Any]](urls["a"]) as client:
        client[DATABASE]["posts"].insert_one({"_id": "", "body": b""})
    return Place(urls, options={"database": DATABASE})


def register(setup: Setup) -> None:
    """follower-notify waits for all of the region's secondaries, and has no client of its own."""
    import antipode_mongodb

    antipode_mongodb.register(STORE, replicas=[setup.posts[name] for name in setup.options.replicas])
