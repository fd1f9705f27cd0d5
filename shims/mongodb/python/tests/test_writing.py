"""Every operation that writes: its version, what rests beside the document, and what visible means (spec SHIM)."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import antipode
import gridfs
import pytest
from antipode import Verdict
from antipode._model.write_id import Opaque
from antipode._store.hybrid_clock import tick_of
from antipode_mongodb.fields import CHAIN, LINEAGE, MORE, OURS, VERSION, stored, version_of
from antipode_mongodb.keys import key_octets
from antipode_mongodb.tombstones import COLLECTION
from bson.raw_bson import RawBSONDocument
from mongodb_regions import BARE, DATABASE, NUMBERS, STORE, Posts, until, versions
from pymongo import DeleteMany, DeleteOne, InsertOne, ReplaceOne, ReturnDocument, UpdateMany, UpdateOne
from pymongo.asynchronous.collection import AsyncCollection
from pymongo.asynchronous.cursor import AsyncCursor
from pymongo.asynchronous.database import AsyncDatabase
from pymongo.asynchronous.mongo_client import AsyncMongoClient
from pymongo.collection import Collection
from pymongo.database import Database
from pymongo.errors import BulkWriteError, DuplicateKeyError, OperationFailure, WriteError

Write = Callable[[Any, str], Any]
WRITES: dict[str, Write] = {
    "insert_one": lambda c, n: c.insert_one({"_id": n, "v": 1}),
    "insert_many": lambda c, n: c.insert_many([{"_id": n, "v": 1}, {"_id": f"{n}-2", "v": 1}]),
    "update_one upserts": lambda c, n: c.update_one({"_id": n}, {"$set": {"v": 1}}, upsert=True),
    "update_many upserts": lambda c, n: c.update_many({"_id": n}, {"$set": {"v": 1}}, upsert=True),
    "replace_one upserts": lambda c, n: c.replace_one({"_id": n}, {"v": 1}, upsert=True),
    "find_one_and_update upserts": lambda c, n: c.find_one_and_update({"_id": n}, {"$set": {"v": 1}}, upsert=True),
    "find_one_and_replace upserts": lambda c, n: c.find_one_and_replace({"_id": n}, {"v": 1}, upsert=True),
    "bulk_write": lambda c, n: c.bulk_write([InsertOne({"_id": n, "v": 1})]),
    "a pipeline upserts": lambda c, n: c.update_one({"_id": n}, [{"$set": {"v": 1}}], upsert=True),
}
CHANGES: dict[str, Write] = {
    "update_one": lambda c, n: c.update_one({"_id": n}, {"$set": {"v": 2}}),
    "update_many": lambda c, n: c.update_many({"_id": n}, {"$set": {"v": 2}}),
    "replace_one": lambda c, n: c.replace_one({"_id": n}, {"v": 2}),
    "find_one_and_update": lambda c, n: c.find_one_and_update({"_id": n}, {"$set": {"v": 2}}),
    "find_one_and_update after": lambda c, n: c.find_one_and_update(
        {"_id": n}, {"$set": {"v": 2}}, return_document=ReturnDocument.AFTER
    ),
    "find_one_and_replace": lambda c, n: c.find_one_and_replace({"_id": n}, {"v": 2}),
    "find_one_and_replace after": lambda c, n: c.find_one_and_replace(
        {"_id": n}, {"v": 2}, return_document=ReturnDocument.AFTER
    ),
    "a pipeline": lambda c, n: c.update_one({"_id": n}, [{"$set": {"v": 2}}]),
    "a pipeline that replaces": lambda c, n: c.update_one({"_id": n}, [{"$replaceWith": {"_id": "$_id", "v": 2}}]),
    "bulk update": lambda c, n: c.bulk_write([UpdateOne({"_id": n}, {"$set": {"v": 2}})]),
    "bulk update_many": lambda c, n: c.bulk_write([UpdateMany({"_id": n}, {"$set": {"v": 2}})]),
    "bulk replace": lambda c, n: c.bulk_write([ReplaceOne({"_id": n}, {"v": 2})]),
}
DELETIONS: dict[str, Write] = {
    "delete_one": lambda c, n: c.delete_one({"_id": n}),
    "delete_many": lambda c, n: c.delete_many({"_id": {"$in": [n, f"{n}-2"]}}),
    "find_one_and_delete": lambda c, n: c.find_one_and_delete({"_id": n}),
    "bulk delete": lambda c, n: c.bulk_write([DeleteOne({"_id": n})]),
    "bulk delete_many": lambda c, n: c.bulk_write([DeleteMany({"_id": n})]),
}


@pytest.mark.parametrize("what", WRITES)
def test_a_new_document_has_its_version_and_passes_where_it_has_arrived(posts: Posts, name: str, what: str) -> None:
    """SHIM-6, SHIM-8, SHIM-24, SHIM-31"""
    posts.lab.partition("b1")
    with antipode.scope() as scope:
        WRITES[what](posts.posts, name)
        found = posts.raw(name)
        assert found is not None
        assert versions(scope.lineage)[key_octets(f"{DATABASE}.posts", name)] == version_of(found)
        assert scope.lineage.is_complete()
    assert posts.verdict(scope.lineage, 0.3) is Verdict.TIMED_OUT
    posts.lab.heal("b1")
    assert posts.verdict(scope.lineage) is Verdict.VISIBLE
    for reader in posts.readers:
        assert posts.raw(name, reader) == found


@pytest.mark.parametrize("what", CHANGES)
def test_a_change_has_a_greater_version_and_an_older_one_does_not_pass_for_it(
    posts: Posts, name: str, what: str
) -> None:
    """SHIM-26, SHIM-31, SHIM-39"""
    ahead = posts.wrapped["a"]._antipode.clock.next() + (tick_of(3_000_000_000) << 14)
    # The document is there with a version of a machine whose clock is ahead of ours.
    posts.plain["a"][DATABASE]["posts"].insert_one({"_id": name, "v": 1, VERSION: stored(ahead)})
    posts.lab.wait_links()
    posts.lab.partition("b1")
    with antipode.scope() as scope:
        CHANGES[what](posts.posts, name)
        found = posts.raw(name)
        assert found is not None
        assert found["v"] == 2
        assert versions(scope.lineage)[key_octets(f"{DATABASE}.posts", name)] == version_of(found)
        assert (version_of(found) or 0) > ahead
    assert posts.verdict(scope.lineage, 0.3) is Verdict.TIMED_OUT
    posts.lab.heal("b1")
    assert posts.verdict(scope.lineage) is Verdict.VISIBLE
    assert posts.raw(name, "b1") == found


@pytest.mark.parametrize("what", DELETIONS)
def test_a_deletion_leaves_a_tombstone_behind_it_and_is_waited_for(posts: Posts, name: str, what: str) -> None:
    """SHIM-10, SHIM-16, SHIM-38"""
    with antipode.scope() as first:
        posts.posts.insert_many([{"_id": name, "v": 1}, {"_id": f"{name}-2", "v": 1}])
    assert posts.verdict(first.lineage) is Verdict.VISIBLE
    posts.lab.partition("b1")
    with antipode.scope() as scope:
        DELETIONS[what](posts.posts, name)
    assert posts.raw(name) is None
    assert posts.verdict(scope.lineage, 0.3) is Verdict.TIMED_OUT
    posts.lab.heal("b1")
    assert posts.verdict(scope.lineage) is Verdict.VISIBLE
    assert posts.raw(name, "b1") is None
    assert posts.verdict(first.lineage) is Verdict.VISIBLE  # what was deleted since was there (SHIM-31)
    with antipode.scope() as again:
        posts.posts.insert_one({"_id": name, "v": 3})
    assert versions(again.lineage)[key_octets(f"{DATABASE}.posts", name)] > max(versions(scope.lineage).values())


def test_deletions_pass_versions_of_a_clock_that_is_far_ahead(posts: Posts, name: str) -> None:
    """SHIM-28: each document's tombstone is greater than what it was, or the document itself would prove it gone."""
    ahead = posts.wrapped["a"]._antipode.clock.next() + (tick_of(90_000_000_000) << 14)
    names = [f"{name}-{index}" for index in range(3)]
    raw = posts.plain["a"][DATABASE]["posts"]
    raw.insert_many([{"_id": each, VERSION: stored(ahead)} for each in names[:2]])
    posts.posts.insert_one({"_id": names[2]})
    with antipode.scope() as scope:
        assert posts.posts.delete_many({"_id": {"$in": names}}).deleted_count == 3
        found = versions(scope.lineage)
        assert len(found) == 3
        assert sum(counter > ahead for counter in found.values()) == 2
    assert posts.verdict(scope.lineage) is Verdict.VISIBLE


def test_an_insertion_passes_a_tombstone_of_a_clock_that_is_ahead(posts: Posts, name: str) -> None:
    """SHIM-38: the tombstone is at the replica, and must not pass for an insertion that is not."""
    key = key_octets(f"{DATABASE}.posts", name).decode()
    ahead = posts.wrapped["a"]._antipode.clock.next() + (tick_of(5_000_000_000) << 14)
    posts.plain["a"][DATABASE][COLLECTION].insert_one({"_id": key, "v": stored(ahead)})
    posts.lab.wait_links()
    attempts: list[Callable[[], Any]] = [
        lambda: posts.posts.insert_one({"_id": name}),
        lambda: posts.posts.insert_many([{"_id": name}]),
        lambda: posts.posts.update_one({"_id": name}, {"$set": {"v": 1}}, upsert=True),
        lambda: posts.posts.update_many({"_id": name}, {"$set": {"v": 1}}, upsert=True),
    ]
    for write in attempts:
        posts.lab.partition("b1")
        with antipode.scope() as scope:
            write()
        assert versions(scope.lineage)[key.encode()] > ahead
        assert posts.verdict(scope.lineage, 0.2) is Verdict.TIMED_OUT
        posts.lab.heal("b1")
        assert posts.verdict(scope.lineage) is Verdict.VISIBLE
        posts.plain["a"][DATABASE]["posts"].delete_one({"_id": name})


def test_deletions_without_tombstones_are_unproven(posts: Posts, name: str) -> None:
    """SHIM-16, SHIM-52: another document of that name may be an earlier one, whatever its version."""
    bare = posts.wrapped["a"][BARE]["posts"]
    bare.insert_one({"_id": name})
    with antipode.scope() as scope:
        bare.delete_one({"_id": name})
        [entry] = scope.lineage.of_store(STORE)
        assert isinstance(entry.version, Opaque)
    answer = posts.look(scope.lineage).stores[STORE]
    assert answer.verdict is Verdict.UNPROVEN
    assert "createIndex" in answer.reason
    bare.insert_one({"_id": name})
    posts.lab.wait_links()
    assert posts.verdict(scope.lineage) is Verdict.UNPROVEN
    assert COLLECTION not in posts.plain["a"][BARE].list_collection_names()  # SHIM-4


@pytest.mark.parametrize("what", ["update_one", "update_many", "replace_one", "delete_one", "delete_many"])
def test_what_matches_nothing_changes_nothing_and_leaves_nothing(posts: Posts, name: str, what: str) -> None:
    """SHIM-2"""
    with antipode.scope() as scope:
        result = {**CHANGES, **DELETIONS}[what](posts.posts, name)
        assert getattr(result, "matched_count", 0) == 0
        assert not scope.lineage
        assert scope.lineage.is_complete()
        assert posts.raw(name) is None


@pytest.mark.parametrize("what", [*WRITES, *CHANGES])
def test_the_lineage_rests_beside_what_is_written(posts: Posts, name: str, what: str) -> None:
    """SHIM-9, SHIM-12, SHIM-13, SHIM-14"""
    with antipode.scope() as scope:
        posts.posts.insert_one({"_id": f"{name}-cause"})
        if what in CHANGES:
            with antipode.scope():
                posts.posts.insert_one({"_id": name, "v": 1})
        {**WRITES, **CHANGES}[what](posts.posts, name)
        cause = versions(scope.lineage)[key_octets(f"{DATABASE}.posts", f"{name}-cause")]
    with antipode.scope() as reader, antipode.reading() as seen:
        found = posts.posts.find_one({"_id": name})
        assert found is not None
        assert not set(OURS) & set(found)
        assert not reader.lineage
    assert versions(seen.lineage)[key_octets(f"{DATABASE}.posts", f"{name}-cause")] == cause
    assert key_octets(f"{DATABASE}.posts", name) in versions(seen.lineage)
    assert seen.lineage.is_complete()


def test_an_update_keeps_what_earlier_writers_depended_on_and_texts_stay_few(posts: Posts, name: str) -> None:
    """LIN-17, SHIM-9"""
    causes = []
    posts.posts.insert_one({"_id": name})
    for index in range(12):
        with antipode.scope():
            posts.posts.insert_one({"_id": f"{name}-{index}"})
            posts.posts.update_one({"_id": name}, {"$set": {f"f{index}": 1}})
            causes.append(key_octets(f"{DATABASE}.posts", f"{name}-{index}"))
        document = posts.raw(name)
        assert document is not None
        assert len(document.get(MORE, [])) <= 5
    with antipode.reading() as seen:
        posts.posts.find_one({"_id": name})
    assert set(causes) <= set(versions(seen.lineage))
    assert seen.lineage.is_complete()


def test_an_object_grows_by_few_octets(posts: Posts, name: str) -> None:
    """At most 78 for a lineage of one store."""
    import bson
    from antipode._model.lineage import Lineage
    from antipode._model.write_id import WriteId

    with antipode.scope() as scope:
        scope.transfer(Lineage([WriteId.position("blog-acl", "8371ab90c2d4e6f1", 1042)]))
        posts.posts.insert_one({"_id": name})
    found = posts.raw(name)
    assert found is not None
    grown = len(bson.encode(found)) - len(bson.encode({"_id": name}))
    print("a document grows by", grown)
    assert grown <= 78
    with antipode.scope():
        posts.posts.insert_one({"_id": f"{name}-alone"})
    alone = posts.raw(f"{name}-alone")
    assert alone is not None
    assert set(alone) == {"_id", VERSION, CHAIN}


def test_nothing_rests_where_none_is_wanted(posts: Posts, name: str) -> None:
    """SHIM-9"""
    bare = posts.wrap(posts.plain["a"], rest="none")
    with antipode.scope():
        bare[DATABASE]["posts"].insert_one({"_id": f"{name}-cause"})
        bare[DATABASE]["posts"].insert_one({"_id": name})
    found = posts.raw(name)
    assert found is not None
    assert LINEAGE not in found


def test_refused_writes_leave_nothing_and_partial_ones_what_was_done(posts: Posts, name: str) -> None:
    """SHIM-2, SHIM-6"""
    posts.posts.insert_one({"_id": name, "v": "text"})
    with antipode.scope() as scope:
        with pytest.raises(DuplicateKeyError):
            posts.posts.insert_one({"_id": name})
        with pytest.raises(WriteError):
            posts.posts.update_one({"_id": name}, {"$inc": {"v": 1}})
        with pytest.raises(OperationFailure):
            posts.posts.find_one_and_update({"_id": name}, {"$inc": {"v": 1}})
        with pytest.raises(ValueError, match="update only works with"):
            posts.posts.update_one({"_id": name}, {"v": 1})
        with pytest.raises(TypeError):
            posts.posts.insert_one(17)
        assert not scope.lineage
        assert scope.outgoing().is_complete()
        with pytest.raises(BulkWriteError) as failed:
            posts.posts.insert_many([{"_id": f"{name}-1"}, {"_id": name}, {"_id": f"{name}-2"}])
        assert failed.value.details["nInserted"] == 1
        assert failed.value.details["writeErrors"][0]["op"] == {"_id": name}
        assert list(versions(scope.lineage)) == [key_octets(f"{DATABASE}.posts", f"{name}-1")]


def test_what_no_version_can_be_had_of_is_incomplete(posts: Posts, name: str) -> None:
    """SHIM-6, SHIM-8, SHIM-39"""
    collection = posts.posts
    raw = RawBSONDocument(__import__("bson").encode({"v": 1}))
    collection.insert_one({"_id": name})
    for write in (
        lambda: collection.insert_one(raw),
        lambda: list(collection.aggregate([{"$match": {"_id": name}}, {"$out": "copied"}])),
        lambda: collection.database.command("insert", "posts", documents=[{"_id": f"{name}-command"}]),
        collection.database["copied"].drop,
        lambda: collection.update_many({"_id": name}, [{"$replaceWith": {"_id": "$_id", "v": 3}}]),
        lambda: collection.find_one_and_update({"_id": name}, [{"$unset": "v"}], return_document=True),
        lambda: collection.database.drop_collection("copied"),
    ):
        with antipode.scope() as scope:
            write()
            assert not scope.lineage.is_complete([STORE])
    with antipode.scope() as scope:
        collection.database.command("ping")
        list(collection.aggregate([{"$match": {"_id": name}}]))
        assert scope.lineage.is_complete()


def test_one_operation_of_more_documents_than_a_lineage_holds_is_incomplete(posts: Posts) -> None:
    """SHIM-39, WIRE-32"""
    collection = posts.wrapped["a"][DATABASE]["many"]
    posts.plain["a"][DATABASE]["many"].insert_many([{"n": index} for index in range(520)])
    with antipode.scope() as scope:
        assert collection.update_many({}, {"$set": {"v": 1}}).matched_count == 520
        assert not scope.lineage.is_complete([STORE])
    with antipode.scope() as scope:
        assert collection.delete_many({}).deleted_count == 520
        assert not scope.lineage.is_complete([STORE])


def test_gridfs_writes_its_files_through_the_shim(posts: Posts, name: str) -> None:
    """SHIM-6: chunks and files are documents like others."""
    files = gridfs.GridFS(posts.wrapped["a"][DATABASE])
    posts.lab.partition("b1")
    with antipode.scope() as scope:
        written = files.put(b"x" * 300_000, filename=name)
        assert len(versions(scope.lineage)) == 3
        assert scope.lineage.is_complete()
    assert posts.verdict(scope.lineage, 0.2) is Verdict.TIMED_OUT
    posts.lab.heal("b1")
    assert posts.verdict(scope.lineage) is Verdict.VISIBLE
    assert gridfs.GridFS(posts.wrapped["b1"][DATABASE]).get(written).read() == b"x" * 300_000


def test_what_is_made_by_the_clients_classes_records(posts: Posts, name: str) -> None:
    """SHIM-50: of a wrapped client's parts; of a plain client's it stays plain."""
    client = posts.wrapped["a"]
    for part in (
        Collection(client[DATABASE], "posts"),
        Database(client, DATABASE)["posts"],
    ):
        part.delete_many({"_id": name})
        with antipode.scope() as scope:
            part.insert_one({"_id": name})
            assert len(versions(scope.lineage)) == 1
    with antipode.scope() as scope:
        Collection(posts.plain["a"][DATABASE], "posts").delete_one({"_id": name})
        Database(posts.plain["a"], DATABASE)["posts"].insert_one({"_id": name})
        assert not scope.lineage


async def test_what_is_made_by_the_clients_asyncio_classes_records(posts: Posts, name: str) -> None:
    """SHIM-50"""
    plain: AsyncMongoClient[dict[str, Any]]
    async with AsyncMongoClient(posts.lab.mongo_url("a")) as plain:
        client = posts.wrap(plain)
        part = AsyncCollection(AsyncDatabase(client, DATABASE), "posts")
        with antipode.scope() as scope:
            await part.insert_one({"_id": name})
            assert len(versions(scope.lineage)) == 1
        with antipode.reading() as seen:
            assert await AsyncCursor(part, {"_id": name}).to_list() == [{"_id": name}]
        assert versions(seen.lineage) == versions(scope.lineage)


def test_names_of_every_type_are_keys_that_can_be_asked_for(posts: Posts, name: str) -> None:
    """SHIM-21"""
    import datetime
    import uuid

    from bson.binary import Binary, UuidRepresentation
    from bson.codec_options import CodecOptions
    from bson.int64 import Int64
    from bson.objectid import ObjectId

    number = next(NUMBERS)
    names: list[Any] = [
        ObjectId(),
        f"ä/{name}.$",
        number,
        number + 0.5,
        Int64(number + (1 << 40)),
        datetime.datetime(2020, 1, 1) + datetime.timedelta(seconds=number),
        Binary(name.encode(), 0),
        {"a": number, "b": name},
        uuid.uuid4(),
    ]
    codec: CodecOptions[Any] = CodecOptions(uuid_representation=UuidRepresentation.STANDARD)
    collection = posts.posts.with_options(codec_options=codec)
    posts.lab.partition("b1")
    with antipode.scope() as scope:
        for each in names:
            collection.insert_one({"_id": each})
    assert len(versions(scope.lineage)) == len(names)
    assert posts.verdict(scope.lineage, 0.2) is Verdict.TIMED_OUT
    posts.lab.heal("b1")
    # After so many waits in vain barriers are answered at once, until the server has been seen to serve one (BAR-40).
    until(lambda: posts.verdict(scope.lineage) is Verdict.VISIBLE, "all of these names")
    assert key_octets("a.b", 5) == key_octets("a.b", 5.0) == key_octets("a.b", Int64(5)) == b"a.b/n5"
