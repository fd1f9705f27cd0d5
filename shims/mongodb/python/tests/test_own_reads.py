"""Stale reads of a server that lags, confirmed by reads of the shim's own (REC-22), and which are sent (REC-24)."""

from __future__ import annotations

import asyncio
import datetime
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import antipode
import antipode_mongodb
import bson
import pymongo
import pytest
from antipode import records
from antipode.testing import isolated
from antipode.testing.recorded import Recorded
from antipode_mongodb import repeating
from antipode_mongodb.flavour import counter_of
from antipode_mongodb.repeating import may_be_repeated
from antipode_mongodb.targets import Target
from bson.code import Code
from bson.regex import Regex
from bson.timestamp import Timestamp
from fake_mongod import SET_ID, FakeMongod
from mongodb_regions import DATABASE, STORE, Posts
from pymongo import AsyncMongoClient

STALE, BEHIND = ("stale", "repeat"), ("behind", None)
WHEN = datetime.datetime(2026, 1, 1, tzinfo=datetime.UTC)


@pytest.mark.parametrize(
    "command",
    [
        {"find": "posts", "filter": {}},
        {"find": "posts", "filter": {"_id": 1}, "limit": 1, "singleBatch": True},
        {"find": "posts", "filter": {"_id": bson.ObjectId("656565656565656565656565"), "a": {"$gt": 1}}, "limit": 1},
        {"find": "posts", "filter": {"a": {"$in": [1, 2]}}, "sort": {"a": 1}, "limit": 3, "skip": 2},
        {"find": "posts", "filter": {"$or": [{"a": Regex("^x")}, {"b": {"$exists": True}}]}, "projection": {"a": 1}},
        {"find": "posts", "filter": {"$expr": {"$eq": ["$a", "$b"]}, "at": WHEN, "text": "$"}},
        {"distinct": "posts", "key": "a", "query": {"b": b"$$NOW"}},
        {"count": "posts"},
        {"aggregate": "posts", "pipeline": [{"$match": {"a": 1}}, {"$group": {"_id": "$b", "n": {"$sum": 1}}}]},
        {"aggregate": "posts", "pipeline": [{"$sort": {"a": 1}}, {"$match": {}}, {"$limit": 2}]},
        {"aggregate": "posts", "pipeline": [{"$replaceRoot": {"newRoot": {"$mergeObjects": ["$a", "$$ROOT"]}}}]},
        {
            "aggregate": "posts",
            "pipeline": [
                {
                    "$lookup": {
                        "from": "users",
                        "let": {"id": "$user"},
                        "pipeline": [
                            {"$match": {"$expr": {"$eq": ["$_id", "$$id"]}}},
                            {"$sort": {"a": 1}},
                            {"$limit": 1},
                        ],
                        "as": "user",
                    }
                }
            ],
        },
    ],
    ids=str,
)
def test_what_may_be_repeated(command: dict[str, Any]) -> None:
    """REC-24."""
    assert may_be_repeated(command)
    assert may_be_repeated(bson.decode(bson.encode(command)))


@pytest.mark.parametrize(
    "command",
    [
        {"find": "posts", "filter": {}, "limit": 1},
        {"find": "posts", "filter": {"_id": {"$gt": 1}}, "limit": 1},
        {"find": "posts", "filter": {"_id": Regex("a")}, "limit": 1},
        {"find": "posts", "filter": {"_id": 1}, "skip": 1},
        {"find": "posts", "filter": {}, "limit": 1, "sort": {"$natural": 1}},
        {"find": "posts", "filter": {}, "limit": 1, "sort": {}},
        {"find": "posts", "filter": {"$where": "sleep(1)"}},
        {"find": "posts", "filter": {"a": Code("1")}},
        {"find": "posts", "filter": {"$expr": {"$lt": ["$at", "$$NOW"]}}},
        {"find": "posts", "filter": {"$expr": {"$lt": ["$at", "$$NOW.x"]}}},
        {"find": "posts", "filter": {"$expr": {"$in": ["a", "$$USER_ROLES.role"]}}},
        {"find": "posts", "filter": {"$expr": {"$lt": [{"$rand": {}}, 0.5]}}},
        {"find": "posts", "filter": {"$sampleRate": 0.5}},
        {"find": "posts", "filter": {"$text": {"$search": "a"}}},
        {"find": "posts", "filter": {"a": {"$new": 1}}},
        {"aggregate": "posts", "pipeline": [{"$match": {}}, {"$out": "others"}]},
        {"aggregate": "posts", "pipeline": [{"$merge": {"into": "others"}}]},
        {"aggregate": "posts", "pipeline": [{"$sample": {"size": 1}}]},
        {"aggregate": "posts", "pipeline": [{"$limit": 1}]},
        {"aggregate": "posts", "pipeline": [{"$sort": {"a": 1}}, {"$group": {"_id": "$b"}}, {"$limit": 1}]},
        {"aggregate": "posts", "pipeline": [{"$set": {"a": {"$function": {"body": "x", "args": [], "lang": "js"}}}}]},
        {"aggregate": "posts", "pipeline": [{"$group": {"_id": 1, "a": {"$first": "$a"}}}]},
        {"aggregate": "posts", "pipeline": [{"$group": {"_id": 1, "a": {"$accumulator": {}}}}]},
        {"aggregate": "posts", "pipeline": [{"$lookup": {"from": "a", "pipeline": [{"$limit": 1}], "as": "b"}}]},
        {"aggregate": "posts", "pipeline": [{"$collStats": {}}]},
        {"aggregate": "posts", "pipeline": [{"$indexStats": {}}]},
        {"aggregate": "posts", "pipeline": [{"$changeStream": {}}]},
        {"aggregate": "posts", "pipeline": [{"$facet": {"a": [{"$match": {}}]}}]},
    ],
    ids=str,
)
def test_what_may_not(command: dict[str, Any]) -> None:
    """REC-24."""
    assert not may_be_repeated(command)


class Behind:
    """A server that is cut off, a document that it has not got, and a scope that wants to see it."""

    def __init__(self, posts: Posts, name: str, folder: Path) -> None:
        self.posts, self.name = posts, name
        self.recorded = Recorded(folder)
        posts.lab.partition("b1")
        self.plain = posts.lab.client("b1")
        self.reader = posts.wrap(self.plain)[DATABASE]["posts"]
        with antipode.scope() as scope:
            posts.posts.insert_one({"_id": name, "v": 1})
            self.lineage = scope.lineage

    def found(self, reads: int = 1) -> list[tuple[str, str | None]]:
        self.recorded.looked()
        self.posts.lab.heal("b1")
        found = self.recorded.findings(reads, timeout=30)
        self.recorded.ended()
        assert self.name not in str(self.recorded.lines())
        return [(record["kind"], record.get("confirmed")) for record in found]


@pytest.fixture
def behind(posts: Posts, name: str, tmp_path: Path) -> Iterator[Behind]:
    made = Behind(posts, name, tmp_path)
    yield made
    made.plain.close()


def test_reads_that_miss_a_document_are_stale(behind: Behind) -> None:
    """REC-6, REC-22, REC-24."""
    posts, wanted = behind.reader, {"_id": behind.name}
    with antipode.scope(behind.lineage):
        assert posts.find_one(wanted) is None
        assert list(posts.find({**wanted, "v": {"$gte": 1}}, sort=[("v", 1)], limit=5)) == []
        assert posts.count_documents(wanted) == 0
        assert posts.distinct("v", wanted) == []
        assert list(posts.aggregate([{"$match": wanted}])) == []
        assert list(posts.find_raw_batches(wanted)) == []
    assert behind.found(6) == [STALE] * 6


def test_all_else_is_behind(behind: Behind) -> None:
    """REC-22, REC-24: what did not change, and what is not sent again."""
    posts, wanted = behind.reader, {"_id": behind.name}
    with antipode.scope(behind.lineage):
        assert posts.find_one({"_id": "another"}) is None
        assert posts.find_one({"v": {"$lt": 0}}) is None
        assert posts.count_documents(wanted, limit=1) == 0
        assert posts.distinct("v", {"_id": "another"}) == []
        assert list(posts.aggregate([{"$limit": 1}, {"$match": wanted}])) == []
    assert behind.found(5) == [BEHIND] * 5


def test_a_write_that_leaves_what_was_read_is_not_stale(behind: Behind) -> None:
    """REC-24: our own fields beside the document are not compared."""
    behind.posts.lab.heal("b1")
    wanted = {"_id": behind.name}
    behind.posts.lab.wait_links()
    behind.posts.lab.partition("b1")
    with antipode.scope():
        behind.posts.posts.update_one(wanted, {"$set": {"v": 1}})
        assert behind.reader.find_one(wanted) == {"_id": behind.name, "v": 1}
        with antipode.reading():
            assert behind.reader.find_one(wanted) == {"_id": behind.name, "v": 1}
    assert behind.found(2) == [BEHIND] * 2


@pytest.mark.parametrize("how", ["no connection", "another server", "a router", "too many documents", "broken"])
def test_what_fails_of_ours_is_behind(behind: Behind, how: str, monkeypatch: pytest.MonkeyPatch) -> None:
    """REC-13, REC-22: and the application sees nothing of it."""
    lives = iter([("a",), ("b",)])
    if how == "no connection":
        monkeypatch.setattr("antipode_mongodb.reading.own_reads", lambda *given: own_reads(nowhere(), *given[1:]))
    elif how == "another server":
        monkeypatch.setattr(repeating, "_life", lambda hello: next(lives))
    elif how == "a router":
        life = repeating._life
        monkeypatch.setattr(repeating, "_life", lambda hello: life({**hello, "msg": "isdbgrid"}))
    elif how == "too many documents":
        monkeypatch.setattr(repeating, "_MOST_DOCUMENTS", -1)
    else:
        monkeypatch.setattr("antipode_mongodb.reading.own_reads", lambda *given: 1 / 0)
    with antipode.scope(behind.lineage):
        assert behind.reader.find_one({"_id": behind.name}) is None
    assert behind.found() == [BEHIND]


own_reads = repeating.own_reads


def nowhere() -> Any:
    return Target("mongodb://nowhere", {"host": "127.0.0.1", "port": 1, "directConnection": True})


def test_at_the_end_of_the_process_it_is_behind(behind: Behind) -> None:
    """REC-15."""
    with antipode.scope(behind.lineage):
        assert behind.reader.find_one({"_id": behind.name}) is None
    behind.recorded.looked()
    records.end()
    [record] = behind.recorded.findings()
    assert record["kind"] == "behind"


def test_the_asyncio_client(behind: Behind) -> None:
    """REC-22."""

    async def read() -> None:
        plain: AsyncMongoClient[Any] = AsyncMongoClient(behind.posts.lab.mongo_url("b1"))
        posts = antipode_mongodb.wrap(plain, store=STORE)[DATABASE]["posts"]
        with antipode.scope(behind.lineage):
            assert await posts.find_one({"_id": behind.name}) is None
            assert await posts.count_documents({"_id": behind.name}) == 0
        await plain.close()

    asyncio.run(read())
    assert behind.found(2) == [STALE, STALE]


def test_of_a_replica_set_it_is_the_member_that_answered(tmp_path: Path) -> None:
    """REC-22: what is sent again goes there, with the levels of the read, and to nobody else."""
    with isolated(), FakeMongod() as primary, FakeMongod(primary=False) as secondary:
        members = [primary, secondary]
        hosts = [f"127.0.0.1:{each.port}" for each in members]
        for each in members:
            join(each, hosts)
        primary.now = primary.committed = Timestamp(1_800_000_000, 9)
        sent: dict[int, list[dict[str, Any]]] = {each.port: [] for each in members}

        def answering(member: FakeMongod) -> Any:
            def find(command: Any) -> Any:
                if command["find"] != "posts":
                    return member._find(command)
                sent[member.port].append(dict(command))
                documents = [{"_id": 1}] if member.committed == primary.committed else []
                return {"cursor": {"id": 0, "ns": "blog.posts", "firstBatch": documents}, "ok": 1.0}

            return find

        for each in members:
            each.more["find"] = answering(each)
        recorded = Recorded(tmp_path)
        url = f"mongodb://{','.join(hosts)}/?replicaSet=rs0&readPreference=secondary&readConcernLevel=majority"
        wanted = antipode.WriteId.position(STORE, str(SET_ID), counter_of(primary.committed))
        with pymongo.MongoClient[Any](url) as plain, antipode.scope(antipode.Lineage([wanted])):
            posts = antipode_mongodb.wrap(plain, store=STORE, replicas=[each.url for each in members])["blog"]["posts"]
            assert posts.find_one({"_id": 1}) is None
        recorded.looked()
        secondary.committed = primary.committed
        [found] = recorded.findings()
        recorded.ended()
        assert (found["kind"], found["server"]) == ("stale", f"mongodb://127.0.0.1:{secondary.port}")
        assert sent[primary.port] == []
        assert len(sent[secondary.port]) == 4
        assert all(command["readConcern"] == {"level": "majority"} for command in sent[secondary.port])
        assert all(command["maxTimeMS"] > 0 for command in sent[secondary.port][1:])


def join(member: FakeMongod, hosts: list[str]) -> None:
    """It says that these are one replica set, the first one its primary."""
    own = member._hello
    member._hello = lambda: {**own(), "hosts": hosts, "primary": hosts[0]}  # type: ignore[method-assign]
