"""Dry-run's records of reads of a server that lags, by cursors and by commands (REC)."""

from __future__ import annotations

import asyncio
from pathlib import Path
from typing import Any

import antipode
import antipode_mongodb
import pymongo
import pytest
from antipode._diagnostics.dryrun import records
from antipode.testing import isolated
from antipode.testing.recorded import DryRunRecording
from antipode_mongodb.flavour import counter_of
from bson.timestamp import Timestamp
from fake_mongod import SET_ID, FakeMongod
from mongodb_regions import DATABASE, STORE, Posts
from pymongo import AsyncMongoClient


def test_reads_of_a_server_that_lags_are_found(posts: Posts, name: str, tmp_path: Path) -> None:
    """REC-6, REC-12, REC-13: nothing waits, also where a read would."""
    reader = posts.wrap(posts.lab.client("b1"), wait_on_read=True, timeout=30.0)[DATABASE]["posts"]
    recorded = DryRunRecording(tmp_path)
    posts.lab.partition("b1")
    with antipode.scope():
        posts.posts.insert_one({"_id": name, "v": 1})
        assert reader.find_one({"_id": name}) is None
        assert reader.count_documents({"_id": name}) == 0
        assert reader.distinct("v", {"_id": name}) == []
        assert list(reader.aggregate([{"$match": {"_id": name}}])) == []
        assert list(reader.find_raw_batches({"_id": name})) == []
    recorded.looked()
    assert recorded.count("followed_reads") == 5
    posts.lab.heal("b1")
    for record in recorded.findings(5, timeout=30):
        assert (record["kind"], "confirmed" in record) == ("behind", False)
        assert (record["store"], record["store_kind"]) == (STORE, "mongodb")
        assert record["site"].startswith("tests/test_followed_reads.py:")
        assert record["visible_after"] > 0
    assert name not in str(recorded.lines())


def test_at_the_end_of_the_process_it_is_behind(posts: Posts, name: str, tmp_path: Path) -> None:
    """REC-15."""
    reader = posts.wrap(posts.lab.client("b1"))[DATABASE]["posts"]
    recorded = DryRunRecording(tmp_path)
    posts.lab.partition("b1")
    with antipode.scope():
        posts.posts.insert_one({"_id": name, "v": 1})
        assert reader.find_one({"_id": name}) is None
    recorded.looked()
    records.end()
    [record] = recorded.findings()
    posts.lab.heal("b1")
    assert (record["kind"], record["visible_after"]) == ("behind", None)


@pytest.mark.parametrize("is_async", [False, True], ids=["sync", "asyncio"])
@pytest.mark.parametrize("reads_at", ["primary", "secondary"])
def test_it_is_the_member_that_answered_that_was_behind(reads_at: str, is_async: bool, tmp_path: Path) -> None:
    """REC-13: of a client of a replica set no other one; a command's member is not known, so it is not followed."""
    with isolated(), FakeMongod() as primary, FakeMongod(primary=False) as secondary:
        members = [primary, secondary]
        for each in members:
            join(each, members)
            each.more["count"] = lambda _: {"n": 0, "ok": 1.0}
        primary.now = primary.committed = Timestamp(1_800_000_000, 9)
        other = secondary if reads_at == "primary" else primary
        recorded = DryRunRecording(tmp_path)
        seeds = ",".join(f"127.0.0.1:{each.port}" for each in members)
        url = f"mongodb://{seeds}/?replicaSet=rs0&readPreference={reads_at}"
        wanted = antipode.WriteId.position(STORE, str(SET_ID), counter_of(primary.committed))
        replicas = [other.url, *(each.url for each in members if each is not other)]

        async def read_async() -> None:
            plain: AsyncMongoClient[Any] = AsyncMongoClient(url)
            posts = antipode_mongodb.wrap(plain, store=STORE, replicas=replicas)["blog"]["posts"]
            with antipode.scope(antipode.Lineage([wanted])):
                assert await posts.find_one({"_id": 1}) is None
                await posts.estimated_document_count()
            await plain.close()

        def read() -> None:
            with pymongo.MongoClient[Any](url) as plain, antipode.scope(antipode.Lineage([wanted])):
                posts = antipode_mongodb.wrap(plain, store=STORE, replicas=replicas)["blog"]["posts"]
                assert posts.find_one({"_id": 1}) is None
                posts.estimated_document_count()

        if is_async:
            asyncio.run(read_async())
        else:
            read()
        assert (recorded.count("reads"), recorded.count("followed_reads")) == (2, 1)
        recorded.looked()
        secondary.committed = primary.committed
        if reads_at == "secondary":
            [found] = recorded.findings()
            assert found["kind"] == "behind"
            assert found["server"] == f"mongodb://127.0.0.1:{secondary.port}"
        else:
            recorded.ended()
            assert recorded.lines("behind") == []


def join(member: FakeMongod, members: list[FakeMongod]) -> None:
    """It says that these are one replica set, the first one its primary."""
    own = member._hello
    hosts = [f"127.0.0.1:{each.port}" for each in members]
    member._hello = lambda: {**own(), "hosts": hosts, "primary": hosts[0]}  # type: ignore[method-assign]
