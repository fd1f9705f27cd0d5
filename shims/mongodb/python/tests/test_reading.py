"""Reads: what their values depend on, waits before them, and what a replica that is behind shows (spec SHIM, BAR)."""

from __future__ import annotations

from typing import Any

import antipode
import gridfs
import pytest
from antipode import BarrierTimeout, Verdict
from antipode._facade.configuration import configure
from antipode_mongodb.keys import key_octets
from bson.raw_bson import RawBSONDocument
from mongodb_regions import DATABASE, STORE, Posts, versions
from pymongo import AsyncMongoClient
from pymongo.synchronous.cursor import Cursor, RawBatchCursor


def test_a_value_brings_its_version_and_what_its_writer_depended_on(posts: Posts, name: str) -> None:
    """SHIM-13"""
    with antipode.scope() as writer:
        posts.posts.insert_one({"_id": f"{name}-cause"})
        posts.posts.insert_one({"_id": name, "v": {"w": 1}})
    assert posts.verdict(writer.lineage) is Verdict.VISIBLE
    there = posts.wrapped["b1"][DATABASE]["posts"]
    for ask in (
        lambda: there.find_one({"_id": name}),
        lambda: there.find_one({"_id": name}, {"v": 1}),
        lambda: there.find_one({"_id": name}, {"v": 0}),
        lambda: there.find_one({"_id": name}, {"_id": 0}),
        lambda: there.find_one({"_id": name}, ["v"]),
        lambda: list(there.find({"_id": {"$in": [name]}}).batch_size(1)),
    ):
        with antipode.reading() as seen:
            ask()
        assert versions(seen.lineage) == versions(writer.lineage)
        assert seen.lineage.is_complete()
    with antipode.reading() as seen:
        assert there.find_one({"_id": name}, {"_id": 0}) == {"v": {"w": 1}}
        assert there.find_one({"_id": "never there"}) is None
    with antipode.scope() as reader:
        with antipode.reading(merge=True):
            there.find_one({"_id": name})
        assert versions(reader.lineage) == versions(writer.lineage)


def test_what_cannot_be_told_is_incomplete(posts: Posts, name: str) -> None:
    """SHIM-13, SHIM-14"""
    posts.posts.insert_one({"_id": name})
    raw = posts.posts.with_options(codec_options=posts.posts.codec_options.with_options(document_class=RawBSONDocument))
    for ask in (
        lambda: list(posts.posts.aggregate([{"$match": {"_id": name}}])),
        lambda: posts.posts.count_documents({"_id": name}),
        lambda: posts.posts.distinct("_id"),
        lambda: raw.find_one({"_id": name}),
        lambda: list(posts.posts.find_raw_batches({"_id": name})),
        lambda: posts.posts.database.command("count", "posts"),
        lambda: posts.posts.database.command("find", "posts", filter={"_id": name}),
        lambda: posts.posts.database.command("distinct", "posts", key="_id"),
        lambda: list(posts.posts.database.cursor_command("find", "posts", filter={"_id": name})),
    ):
        with antipode.reading() as seen:
            ask()
        assert not seen.lineage.is_complete([STORE])


def test_a_document_of_a_plain_writer_is_covered_by_what_it_holds(posts: Posts, name: str) -> None:
    """SHIM-13, SHIM-14, SHIM-32"""
    posts.plain["a"][DATABASE]["posts"].insert_one({"_id": name, "v": 1})
    with antipode.reading() as seen:
        posts.posts.find_one({"_id": name})
    assert seen.lineage.is_complete()
    assert posts.verdict(seen.lineage) is Verdict.VISIBLE
    posts.plain["a"][DATABASE]["posts"].update_one({"_id": name}, {"$set": {"v": 2}})
    posts.lab.wait_links()
    assert posts.verdict(seen.lineage, 0.3) is Verdict.TIMED_OUT
    with antipode.reading() as part:
        posts.posts.find_one({"_id": name}, {"v": 1})
    assert not part.lineage.is_complete([STORE])


def test_a_malformed_lineage_at_rest_is_incomplete(posts: Posts, name: str) -> None:
    """SHIM-14"""
    posts.plain["a"][DATABASE]["posts"].insert_one({"_id": name, "_apl": "1~broken..x"})
    with antipode.reading() as seen:
        assert posts.posts.find_one({"_id": name}) == {"_id": name}
    assert not seen.lineage.is_complete([STORE])


def test_a_read_waits_first_where_it_is_told_to(posts: Posts, name: str) -> None:
    """BAR-50, BAR-51"""
    near = posts.wrap(posts.plain["b1"], wait_on_read=True)[DATABASE]["posts"]
    plain = posts.wrapped["b1"][DATABASE]["posts"]
    posts.lab.lag("b1", "200ms")
    with antipode.scope() as scope:
        posts.posts.insert_one({"_id": name})
        assert plain.find_one({"_id": name}) is None
        configure(timeout=20.0)
        assert near.find_one({"_id": name}) == {"_id": name}
    with antipode.scope() as scope:
        posts.posts.update_one({"_id": name}, {"$set": {"v": 2}})
        lineage = scope.lineage
    with antipode.reading(after=lineage):
        assert list(plain.find({"_id": name})) == [{"_id": name, "v": 2}]
    posts.lab.partition("b1")
    with antipode.scope(), antipode.reading(after=lineage):
        posts.posts.insert_one({"_id": f"{name}-2"})
    strict = posts.wrap(posts.plain["b1"], wait_on_read=True, timeout=0.2)[DATABASE]["posts"]
    with antipode.scope():
        posts.posts.update_one({"_id": name}, {"$set": {"v": 3}})
        with pytest.raises(BarrierTimeout):
            strict.count_documents({"_id": name})


async def test_the_async_client_does_the_same(posts: Posts, name: str) -> None:
    """SHIM-1, SHIM-6, SHIM-13, BAR-50"""
    plain: AsyncMongoClient[dict[str, object]] = AsyncMongoClient(posts.lab.mongo_url("a"))
    far: AsyncMongoClient[dict[str, object]] = AsyncMongoClient(posts.lab.mongo_url("b2"))
    wrapped = posts.wrap(plain)
    assert isinstance(wrapped, AsyncMongoClient)
    there = posts.wrap(far, wait_on_read=True)[DATABASE]["posts"]
    collection = wrapped[DATABASE]["posts"]
    configure(timeout=20.0)
    with antipode.scope() as scope:
        await collection.insert_one({"_id": name, "v": 1})
        await collection.update_one({"_id": name}, {"$set": {"v": 2}})
        await collection.insert_many([{"_id": f"{name}-2"}, {"_id": f"{name}-3"}])
        assert await collection.find_one_and_update({"_id": name}, {"$inc": {"v": 1}}, {"_id": 0}) == {"v": 2}
        await collection.delete_one({"_id": f"{name}-3"})
        assert set(versions(scope.lineage)) == {
            key_octets(f"{DATABASE}.posts", each) for each in (name, f"{name}-2", f"{name}-3")
        }
        assert scope.lineage.is_complete()
        assert await there.find_one({"_id": name}) == {"_id": name, "v": 3}
        assert await there.count_documents({"_id": f"{name}-3"}) == 0
        with antipode.reading() as seen:
            assert await collection.find({"_id": name}).to_list() == [{"_id": name, "v": 3}]
            assert [each async for each in collection.find({"_id": name})] == [{"_id": name, "v": 3}]
        assert versions(seen.lineage)
        async for each in await collection.aggregate([{"$match": {"_id": name}}]):
            assert each == {"_id": name, "v": 3}
        lineage = scope.lineage
    result = await antipode.barrier_async(lineage, timeout=20.0)
    assert result.satisfied
    await plain.close()
    await far.close()


def test_cursors_of_gridfs_and_by_class(posts: Posts, name: str) -> None:
    """SHIM-44, SHIM-50: they wait, and say what they depend on; what they give is as the plain client gives it."""
    files = gridfs.GridFS(posts.wrapped["a"][DATABASE])
    posts.posts.insert_one({"_id": name, "v": 1})
    with antipode.scope() as scope:
        files.put(b"x", filename=name)
        posts.posts.update_one({"_id": name}, {"$set": {"v": 2}})
    assert posts.verdict(scope.lineage) is Verdict.VISIBLE
    with antipode.reading() as seen:
        [found] = files.find({"filename": name})
        assert set(found._file) == {"_id", "filename", "uploadDate", "length", "chunkSize"}
        assert found.read() == b"x"
        assert list(Cursor(posts.posts, {"_id": name})) == [{"_id": name, "v": 2}]
        assert Cursor(posts.posts, {"_id": name}).clone().to_list() == [{"_id": name, "v": 2}]
    assert versions(seen.lineage) == versions(scope.lineage)
    assert seen.lineage.is_complete()
    with antipode.reading() as seen:
        assert list(Cursor(posts.posts, {"_id": name}, {"_id": 0})) == [{"v": 2}]
        assert len(list(RawBatchCursor(posts.posts, {"_id": name}))) == 1
    assert not seen.lineage.is_complete([STORE])
    reader = posts.wrap(posts.plain["b1"], wait_on_read=True, timeout=0.05)
    posts.lab.partition("b1")
    with antipode.scope():
        files.put(b"x", filename=f"{name}-new")
        cursors: list[Any] = [
            gridfs.GridFS(reader[DATABASE]).find({"filename": f"{name}-new"}),
            gridfs.GridFSBucket(reader[DATABASE]).find({"filename": f"{name}-new"}),
            Cursor(reader[DATABASE]["posts"], {"_id": name}),
        ]
        for cursor in cursors:
            with pytest.raises(BarrierTimeout):
                list(cursor)
    posts.lab.heal("b1")
