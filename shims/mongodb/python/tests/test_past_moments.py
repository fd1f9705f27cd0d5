"""What comes after a first batch, or from a snapshot, is of a moment that is past (SHIM-44, SHIM-48)."""

from __future__ import annotations

import inspect
from collections.abc import Callable, Iterator
from typing import Any

import antipode
import antipode_mongodb
import bson
import pymongo
import pytest
from antipode import BarrierTimeout, BarrierUnproven
from antipode.testing import isolated
from antipode_mongodb.operations import COUNTS, INQUIRIES, WRITES
from antipode_mongodb.recording import _OF_CLIENTS, _OF_DATABASES, RecordingClient, RecordingCollection
from fake_mongod import FakeMongod, done, with_client
from mongodb_regions import DATABASE, Posts
from mongodb_regions import STORE as POSTS
from pymongo.collection import Collection
from pymongo.database import Database

STORE = "blog-posts"
CURSOR_ID = 7
both = pytest.mark.parametrize("is_async", [False, True], ids=["sync", "async"])
NO_DATA = {
    *("next", "with_options", "get_collection", "get_database", "get_default_database", "start_session", "close"),
    *("server_info", "append_metadata", "eq_props", "create_collection"),
    *("create_index", "create_indexes", "drop_index", "drop_indexes"),
    *("create_search_index", "create_search_indexes", "drop_search_index", "update_search_index"),
    *("find_one", "dereference"),  # by find() of a wrapped collection
}
"""Public methods that return nothing that was written, or by others that wait."""


def first(command: dict[str, Any]) -> dict[str, Any]:
    is_raw = command.get("cursor") == {"batchSize": 0}  # as PyMongo asks for raw batches
    batch: list[Any] = [] if is_raw else [{"_id": 1}, {"_id": 2}]
    return {"cursor": {"id": CURSOR_ID, "ns": "blog.posts", "firstBatch": batch}, "ok": 1.0}


def later(command: dict[str, Any]) -> dict[str, Any]:
    return {"cursor": {"id": CURSOR_ID, "ns": "blog.posts", "nextBatch": [{"_id": 3}]}, "ok": 1.0}


@pytest.fixture(autouse=True)
def alone() -> Iterator[None]:
    with isolated():
        yield


@pytest.fixture
def member() -> Iterator[FakeMongod]:
    with FakeMongod() as server:
        for name in ("aggregate", "listIndexes", "listCollections", "listDatabases", "count", "distinct", "validate"):
            server.more[name] = first
        server.more["getMore"] = later
        plain = server._find

        def find(command: dict[str, Any]) -> dict[str, Any]:
            return first(command) if command["find"] == "posts" else plain(command)

        server.more["find"] = find
        yield server


Way = Callable[[Any], Any]
CURSORS: dict[str, Way] = {
    "find": lambda c: c["blog"]["posts"].find({}),
    "find_raw_batches": lambda c: c["blog"]["posts"].find_raw_batches({}),
    "aggregate": lambda c: c["blog"]["posts"].aggregate([]),
    "aggregate_raw_batches": lambda c: c["blog"]["posts"].aggregate_raw_batches([]),
    "aggregate of a database": lambda c: c["blog"].aggregate([{"$documents": []}]),
    "cursor_command": lambda c: c["blog"].cursor_command("find", "posts"),
    "list_indexes": lambda c: c["blog"]["posts"].list_indexes(),
    "list_search_indexes": lambda c: c["blog"]["posts"].list_search_indexes(),
    "list_collections": lambda c: c["blog"].list_collections(),
}
STREAMS: dict[str, Way] = {
    "of a collection": lambda c: c["blog"]["posts"].watch(),
    "of a database": lambda c: c["blog"].watch(),
    "of a client": lambda c: c.watch(),
}
OTHERS: dict[str, Way] = {
    "index_information": lambda c: c["blog"]["posts"].index_information(),
    "options": lambda c: c["blog"]["posts"].options(),
    "list_collection_names": lambda c: c["blog"].list_collection_names(),
    "list_databases": lambda c: c.list_databases(),
    "list_database_names": lambda c: c.list_database_names(),
    "validate_collection": lambda c: c["blog"].validate_collection("posts"),
}


async def some(cursor: Any, number: int = 2) -> list[Any]:
    return [await done(cursor.next()) for _ in range(number)]


def test_every_method_that_returns_data_is_known() -> None:
    """SHIM-44: by inventory, so that a later PyMongo's is not forgotten."""
    known = {
        Collection: {*WRITES, *COUNTS, *INQUIRIES, "aggregate", "aggregate_raw_batches", *vars(RecordingCollection)},
        Database: set(_OF_DATABASES),
        pymongo.MongoClient: {*_OF_CLIENTS, *vars(RecordingClient)},
    }
    for kind, wrapped in known.items():
        public = {name for name, _ in inspect.getmembers(kind, inspect.isfunction) if not name.startswith("_")}
        assert public - wrapped - NO_DATA == set()


@both
@pytest.mark.parametrize("way", CURSORS)
@pytest.mark.parametrize("waits", ["wait_on_read", "after"])
def test_later_batches_are_refused_behind_a_write(member: FakeMongod, way: str, waits: str, is_async: bool) -> None:
    """SHIM-48: also where it is proved by then: waiting does not make them newer."""

    async def use(plain: Any) -> None:
        client = antipode_mongodb.wrap(plain, store=STORE, wait_on_read=waits == "wait_on_read", timeout=20.0)
        with antipode.scope() as scope:
            before = await done(client["blog"]["others"].insert_one({"v": 0}))
            member.committed = member.now
            with antipode.reading(after=scope.lineage if waits == "after" else None):
                cursor = await done(CURSORS[way](client))
                await some(cursor, 1 if "raw" in way else 2)
                await some(cursor, 1)  # it was waited for when the cursor was opened
            await done(client["blog"]["others"].insert_one({"v": 1}))
            member.committed = member.now
            with (
                antipode.reading(after=scope.lineage if waits == "after" else None),
                pytest.raises(BarrierUnproven, match="open the cursor anew") as raised,
            ):
                await some(cursor, 3)
            assert raised.value.code == "AP514"
            assert before

    with_client(member, is_async, use)


@both
@pytest.mark.parametrize("way", [*CURSORS, *OTHERS])
def test_they_wait_first(member: FakeMongod, way: str, is_async: bool) -> None:
    """SHIM-44."""

    async def use(plain: Any) -> None:
        client = antipode_mongodb.wrap(plain, store=STORE, wait_on_read=True, timeout=0.1)
        with antipode.scope():
            await done(client["blog"]["others"].insert_one({"v": 1}))
            with pytest.raises(BarrierTimeout):
                await some(await done({**CURSORS, **OTHERS}[way](client)), 1)

    with_client(member, is_async, use)


@both
@pytest.mark.parametrize("way", STREAMS)
def test_a_change_stream_waits_for_each_batch(member: FakeMongod, way: str, is_async: bool) -> None:
    """SHIM-44: its later batches are new ones."""
    member.more["aggregate"] = lambda _: {
        "cursor": {"id": CURSOR_ID, "ns": "blog.posts", "firstBatch": []},
        "ok": 1.0,
    }
    token = {"_data": "00"}
    member.more["getMore"] = lambda _: {
        "cursor": {"id": CURSOR_ID, "ns": "blog.posts", "nextBatch": [{"_id": token}], "postBatchResumeToken": token},
        "ok": 1.0,
    }

    async def use(plain: Any) -> None:
        client = antipode_mongodb.wrap(plain, store=STORE, wait_on_read=True, timeout=0.2)
        stream = await done(STREAMS[way](client))
        with antipode.scope():
            assert await done(stream.try_next())
            await done(client["blog"]["others"].insert_one({"v": 1}))
            with pytest.raises(BarrierTimeout):
                await done(stream.try_next())
            member.committed = member.now
            antipode.configure(timeout=20.0)
        stream = await done(STREAMS[way](antipode_mongodb.wrap(plain, store=STORE, wait_on_read=True, timeout=20.0)))
        with antipode.scope():
            await done(client["blog"]["others"].insert_one({"v": 2}))
            member.committed = member.now
            assert await done(stream.try_next())

    with_client(member, is_async, use)


@both
def test_batches_fetched_by_hand(member: FakeMongod, is_async: bool) -> None:
    """SHIM-48: by a getMore of `command`; of a cursor that nobody saw being opened nothing was proved."""

    async def use(plain: Any) -> None:
        client = antipode_mongodb.wrap(plain, store=STORE, wait_on_read=True, timeout=20.0)
        database = client["blog"]
        with antipode.scope():
            await done(database["others"].insert_one({"v": 1}))
            member.committed = member.now
            opened = await done(database.command("find", "posts"))
            more = {"getMore": bson.Int64(opened["cursor"]["id"]), "collection": "posts"}
            assert (await done(database.command(more)))["cursor"]["nextBatch"]
            with pytest.raises(BarrierUnproven, match="AP514"):
                await done(database.command({**more, "getMore": bson.Int64(8)}))
            await done(database["others"].insert_one({"v": 2}))
            member.committed = member.now
            with pytest.raises(BarrierUnproven, match="AP514"):
                await done(database.command(more))

    with_client(member, is_async, use)


READS: dict[str, Callable[[Any, Any], Any]] = {
    "find_one": lambda c, session: c["blog"]["posts"].find_one({}, session=session),
    "aggregate": lambda c, session: c["blog"]["posts"].aggregate([], session=session),
    "distinct": lambda c, session: c["blog"]["posts"].distinct("v", session=session),
    "command": lambda c, session: c["blog"].command("distinct", "posts", key="v", session=session),
}


@both
@pytest.mark.parametrize("way", READS)
@pytest.mark.parametrize("snapshot", [False, True], ids=["transaction", "snapshot"])
def test_a_session_shows_the_moment_of_its_first_read(
    member: FakeMongod, way: str, snapshot: bool, is_async: bool
) -> None:
    """SHIM-48."""
    member.more["distinct"] = lambda _: {"values": [1], "atClusterTime": member.now, "ok": 1.0}

    def first_at(command: dict[str, Any]) -> dict[str, Any]:
        found = first(command)
        return {**found, "cursor": {**found["cursor"], "id": 0, "atClusterTime": member.now}}

    plain_find = member.more["find"]
    member.more["find"] = lambda c: first_at(c) if c["find"] == "posts" else plain_find(c)
    member.more["aggregate"] = first_at

    async def use(plain: Any) -> None:
        client = antipode_mongodb.wrap(plain, store=STORE, wait_on_read=True, timeout=20.0)
        with antipode.scope():
            await done(client["blog"]["others"].insert_one({"v": 1}))
            member.committed = member.now
            session = client.start_session(snapshot=snapshot)
            for _ in range(2):
                if not snapshot:
                    await done(session.start_transaction())
                await done(READS[way](client, session))
                await done(READS[way](client, session))
                await done(client["blog"]["others"].insert_one({"v": 2}))
                member.committed = member.now
                with pytest.raises(BarrierUnproven, match="begin another transaction") as raised:
                    await done(READS[way](client, session))
                assert raised.value.code == "AP514"
                if snapshot:
                    return
                await done(session.abort_transaction())

    with_client(member, is_async, use)


@both
def test_a_transaction_whose_moment_a_write_took(member: FakeMongod, is_async: bool) -> None:
    """SHIM-48: nothing was waited for then."""

    async def use(plain: Any) -> None:
        client = antipode_mongodb.wrap(plain, store=STORE, wait_on_read=True, timeout=20.0)
        with antipode.scope():
            await done(client["blog"]["others"].insert_one({"v": 1}))
            member.committed = member.now
            session = client.start_session()
            await done(session.start_transaction())
            await done(client["blog"]["others"].insert_one({"v": 2}, session=session))
            with pytest.raises(BarrierUnproven, match="AP514"):
                await done(client["blog"]["posts"].find_one({}, session=session))

    with_client(member, is_async, use)


@both
def test_a_bound_session_is_that_of_calls_that_name_none(member: FakeMongod, is_async: bool) -> None:
    """SHIM-2, SHIM-11: what is written inside its transaction is sent in it, and committed with it."""

    async def use(plain: Any) -> None:
        client = antipode_mongodb.wrap(plain, store=STORE)
        session = client.start_session()
        if not hasattr(session, "bind"):
            pytest.skip("this PyMongo binds no sessions")
        with antipode.scope() as scope:
            bound = session.bind()
            await done(bound.__aenter__() if is_async else bound.__enter__())
            await done(session.start_transaction())
            await done(client["blog"]["posts"].insert_one({"v": 1}))
            await done(client["blog"].command("insert", "posts", documents=[{"v": 2}]))
            assert scope.pending
            assert [each.get("autocommit") for each in member.named("insert")] == [False, False]
            await done(session.commit_transaction())
            assert not scope.pending
            assert scope.lineage.of_store(STORE)
            await done(bound.__aexit__(None, None, None) if is_async else bound.__exit__(None, None, None))

    with_client(member, is_async, use)


def test_later_documents_of_a_pipeline_at_a_real_server(posts: Posts, name: str) -> None:
    """SHIM-48."""
    posts.posts.insert_many([{"_id": f"{name}-{number}"} for number in range(5)])
    reader = posts.wrap(posts.plain["b1"], wait_on_read=True, timeout=20.0)[DATABASE]["posts"]
    pipeline = [{"$match": {"_id": {"$regex": f"^{name}"}}}, {"$sort": {"_id": 1}}]
    with antipode.scope() as scope:
        posts.posts.insert_one({"_id": f"{name}-5"})
        cursor = reader.aggregate(pipeline, batchSize=1)
        assert next(cursor)["_id"] == f"{name}-0"
        assert next(cursor)["_id"] == f"{name}-1"
        posts.posts.insert_one({"_id": f"{name}-6"})
        with pytest.raises(BarrierUnproven, match="AP514"):
            list(cursor)
        assert len(list(reader.aggregate(pipeline))) == 7
        assert not scope.lineage.incomplete or POSTS not in scope.lineage.incomplete
