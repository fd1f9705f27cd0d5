"""A server that cannot say now whether deletions leave tombstones, by a scripted one (spec SHIM-24, SHIM-30)."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from typing import Any

import antipode
import antipode_mongodb
import pytest
from antipode.testing import isolated
from fake_mongod import FakeMongod
from pymongo import UpdateOne

STORE = "blog-posts"
AWAY = {"ok": 0.0, "code": 1, "codeName": "InternalError", "errmsg": "failed to connect to `host=127.0.0.1`: refused"}
CALLS: dict[str, Callable[[Any], Any]] = {
    "insert_one": lambda c: c.insert_one({"_id": 1}),
    "insert_many": lambda c: c.insert_many([{"_id": 1}, {"_id": 2}]),
    "delete_one": lambda c: c.delete_one({"_id": 1}),
    "delete_many": lambda c: c.delete_many({}),
    "upsert": lambda c: c.bulk_write([UpdateOne({"_id": 3}, {"$set": {"v": 1}}, upsert=True)]),
}


@pytest.fixture(autouse=True)
def alone() -> Iterator[None]:
    with isolated():
        yield


@pytest.mark.parametrize("what", CALLS)
def test_what_may_lie_below_a_tombstone_is_incomplete(what: str) -> None:
    """SHIM-24: one that is greater would let a barrier pass where the write is not."""
    with FakeMongod(honours=False) as server:
        server.more["listIndexes"] = lambda _: AWAY
        server.more["find"] = lambda command: {
            **server._find(command),
            "cursor": {"id": 0, "ns": "blog.posts", "firstBatch": [{"_id": 1}, {"_id": 2}]},
        }
        server.more["delete"] = lambda _: {"ok": 1.0, "n": 2}
        removed = {"ok": 1.0, "value": {"_id": 1}, "lastErrorObject": {"n": 1}}
        nothing = {"ok": 1.0, "value": None, "lastErrorObject": {"n": 0}}
        server.more["findAndModify"] = lambda command: removed if command.get("remove") else nothing
        server.more["update"] = lambda _: {"ok": 1.0, "n": 1, "upserted": [{"index": 0, "_id": 3}]}
        posts = antipode_mongodb.wrap(server.client(), store=STORE)["blog"]["posts"]
        with antipode.scope() as scope:
            CALLS[what](posts)
            assert not scope.lineage.of_store(STORE)
            assert not scope.lineage.is_complete([STORE])
        server.more.pop("listIndexes")
        with antipode.scope() as scope:  # there is no collection for them, and that is known
            CALLS[what](posts)
            assert scope.lineage.of_store(STORE)
            assert scope.lineage.is_complete()
