"""A wrapped collection does what a plain one does: the same calls, drawn by chance, made to both (SHIM-1, SHIM-2)."""

from __future__ import annotations

import random
import re
from typing import Any

import antipode
import pymongo
import pytest
from antipode._facade.configuration import configure
from antipode._scope.operations import scope
from mongodb_regions import DATABASE, Posts
from pymongo import DeleteMany, DeleteOne, InsertOne, ReplaceOne, ReturnDocument, UpdateMany, UpdateOne
from pymongo.errors import BulkWriteError, PyMongoError

_CALLS = 250
_ERROR_FIELDS = ("nInserted", "nUpserted", "nMatched", "nRemoved", "upserted")


def _filter(chance: random.Random) -> dict[str, Any]:
    return chance.choice(
        [
            {"_id": chance.randrange(6)},
            {"_id": {"$in": [chance.randrange(6), chance.randrange(6)]}},
            {"n": {"$gt": chance.randrange(4)}},
            {"tag": chance.choice("ab")},
            {"_id": chance.randrange(6), "tag": chance.choice("ab")},
            {},
        ]
    )


def _update(chance: random.Random) -> Any:
    return chance.choice(
        [
            {"$set": {"tag": chance.choice("ab")}},
            {"$inc": {"n": chance.randrange(3)}},
            {"$unset": {"tag": ""}, "$max": {"top": chance.randrange(5)}},
            {"$addToSet": {"list": chance.randrange(3)}},
            {"$setOnInsert": {"born": 1}, "$set": {"n": 2}},
            [{"$set": {"n": {"$add": [{"$ifNull": ["$n", 0]}, 1]}}}],
            {"$inc": {"tag": 1}},  # of a text: an error
            {"tag": "c"},  # no update: an error
        ]
    )


def _document(chance: random.Random) -> dict[str, Any]:
    return {"n": chance.randrange(5), "tag": chance.choice("ab"), "list": [chance.randrange(3)]}


def _by_id(chance: random.Random) -> dict[str, Any]:
    """Upserts of other filters get a name from the server, which differs."""
    return {"_id": chance.randrange(6)}


def _draw(chance: random.Random) -> tuple[str, tuple[Any, ...], dict[str, Any]]:
    upsert = chance.random() < 0.3
    query = _by_id(chance) if upsert else _filter(chance)
    given: dict[str, Any] = {"upsert": upsert}
    projection = chance.choice([None, {"tag": 1}, {"_id": 0}, ["n"], {"list": 0}, {"_id": 0, "n": 1}])
    found: dict[str, Any] = {
        "sort": [("_id", chance.choice([1, -1]))],
        "projection": projection,
        "return_document": chance.choice([ReturnDocument.BEFORE, ReturnDocument.AFTER]),
    }
    single = {"sort": [("_id", 1)]}
    name = chance.choice(
        [
            *("insert_one", "insert_many", "update_one", "update_many", "replace_one", "delete_one", "delete_many"),
            *("find_one_and_update", "find_one_and_replace", "find_one_and_delete", "bulk_write", "find"),
        ]
    )
    if name == "insert_one":
        return name, ({"_id": chance.randrange(6), **_document(chance)},), {}
    if name == "insert_many":
        documents = [{"_id": chance.randrange(6), **_document(chance)} for _ in range(3)]
        return name, (documents,), {"ordered": chance.random() < 0.5}
    if name == "update_one":
        return name, (_by_id(chance), _update(chance)), given
    if name == "update_many":
        return name, (query, _update(chance)), given
    if name == "replace_one":
        return name, (_by_id(chance), _document(chance)), given
    if name == "delete_one":
        return name, (_by_id(chance),), {}
    if name == "delete_many":
        return name, (query,), {}
    if name == "find_one_and_update":
        return name, (query, _update(chance)), {**found, **given}
    if name == "find_one_and_replace":
        return name, (query, _document(chance)), {**found, **given}
    if name == "find_one_and_delete":
        return name, (query,), {word: found[word] for word in ("sort", "projection")}
    if name == "find":
        return name, (query, projection), single
    requests: list[Any] = []
    for _ in range(chance.randrange(1, 5)):
        requests.append(
            chance.choice(
                [
                    InsertOne({"_id": chance.randrange(6), **_document(chance)}),
                    UpdateOne(_by_id(chance), {"$inc": {"n": 1}}, upsert=upsert),
                    UpdateMany(_filter(chance), {"$set": {"tag": "b"}}),
                    ReplaceOne(_by_id(chance), _document(chance), upsert=upsert),
                    DeleteOne(_by_id(chance)),
                    DeleteMany({"tag": "a"}),
                    UpdateOne(_by_id(chance), {"$inc": {"tag": 1}}),
                ]
            )
        )
    return name, (requests,), {"ordered": chance.random() < 0.5}


def _shown(value: Any) -> Any:
    if hasattr(value, "to_list"):
        return value.to_list()
    if hasattr(value, "bulk_api_result"):
        return {word: value.bulk_api_result[word] for word in _ERROR_FIELDS}
    if hasattr(value, "matched_count"):
        return value.matched_count, value.upserted_id
    for word in ("deleted_count", "inserted_ids", "inserted_id"):
        if hasattr(value, word):
            return getattr(value, word)
    return value


def _made(collection: Any, call: tuple[str, tuple[Any, ...], dict[str, Any]]) -> Any:
    name, args, kwargs = call
    try:
        return _shown(getattr(collection, name)(*args, **kwargs))
    except BulkWriteError as error:
        failed = [(each["index"], each["code"], each["op"]) for each in error.details["writeErrors"]]
        return type(error), failed, {word: error.details[word] for word in _ERROR_FIELDS}
    except (PyMongoError, ValueError, TypeError) as error:
        words = re.sub(
            r"_id: \d+", "_id: N", str(error).partition(", full error")[0]
        )  # of several, any may be the first
        return type(error), getattr(error, "code", None), words


@pytest.mark.parametrize("seed", [1, 2])
def test_the_same_calls_do_the_same(posts: Posts, seed: int) -> None:
    """SHIM-1, SHIM-2"""
    plain = posts.plain["a"][DATABASE]["native"]
    mirror = posts.wrapped["a"][DATABASE]["mirror"]
    plain.delete_many({})
    posts.plain["a"][DATABASE]["mirror"].delete_many({})
    chance = random.Random(seed)
    again = random.Random(seed)
    with scope():
        for number in range(_CALLS):
            expected, found = _made(plain, _draw(chance)), _made(mirror, _draw(again))
            if isinstance(expected, tuple) and expected and isinstance(expected[-1], str):
                found = (*found[:-1], found[-1].replace("mirror", "native"))
            assert found == expected, f"seed {seed}, call {number}"
            there = [{**each} for each in mirror.find({}, sort=[("_id", 1)])]
            assert there == list(plain.find({}, sort=[("_id", 1)])), f"seed {seed}, call {number}"


def test_a_wrapped_client_is_one_and_the_plain_one_stays_plain(posts: Posts) -> None:
    """SHIM-1, SHIM-2"""
    client, plain = posts.wrapped["a"], posts.plain["a"]
    assert isinstance(client, pymongo.MongoClient)
    assert type(client).__name__ == "MongoClient"
    assert client == plain
    collection = client[DATABASE]["posts"]
    assert isinstance(collection, pymongo.collection.Collection)
    assert collection == plain[DATABASE]["posts"]
    assert client[DATABASE].posts == client.get_database(DATABASE).get_collection("posts") == client.blog.posts
    for each in (
        client[DATABASE].posts.with_options(),
        client[DATABASE].with_options().posts,
        client.get_database(DATABASE).posts,
        client[DATABASE]["posts"]["sub"].database["posts"],
        posts.wrap(plain[DATABASE]).posts,
        posts.wrap(plain[DATABASE].posts),
        posts.wrap(posts.wrap(plain)[DATABASE].posts),
        posts.wrap(posts.wrap(posts.wrap(plain)))[DATABASE].posts,
    ):
        with antipode.scope() as opened:
            each.insert_one({})
            assert opened.lineage
    with antipode.scope() as opened:
        plain[DATABASE]["posts"].insert_one({})
        assert not opened.lineage
    document: dict[str, Any] = {"v": 1}
    result = collection.insert_one(document)
    assert document == {"v": 1, "_id": result.inserted_id}


def test_queries_counts_and_pipelines_show_nothing_of_ours(posts: Posts) -> None:
    """SHIM-2, SHIM-12"""
    collection = posts.wrapped["a"][DATABASE]["shown"]
    posts.plain["a"][DATABASE]["shown"].delete_many({})
    with antipode.scope() as opened:
        collection.insert_many([{"_id": index, "n": index} for index in range(5)])
        collection.update_many({}, {"$set": {"m": 1}})
        collection.delete_one({"_id": 4})
        before = opened.lineage
        assert list(collection.find({}, sort=[("_id", 1)])) == [{"_id": i, "n": i, "m": 1} for i in range(4)]
        assert collection.count_documents({}) == 4
        assert collection.distinct("n") == [0, 1, 2, 3]
        assert list(collection.aggregate([{"$sort": {"_id": 1}}, {"$limit": 1}])) == [{"_id": 0, "n": 0, "m": 1}]
        assert collection.find().sort("_id", 1)[1] == {"_id": 1, "n": 1, "m": 1}
        assert collection.find({}, {"n": 1}).sort("_id", -1).limit(1).to_list() == [{"_id": 3, "n": 3}]
        cursor = collection.find({"_id": 1})
        assert list(cursor.clone()) == list(cursor) == [{"_id": 1, "n": 1, "m": 1}]
        [batch] = collection.find_raw_batches({"_id": 1})
        assert b"_apv" not in batch
        assert opened.lineage == before


def test_switched_off_it_is_the_plain_client_and_still_shows_nothing_of_ours(posts: Posts, name: str) -> None:
    """BAR-49, SHIM-36: what was written while it was on stays readable."""
    collection = posts.wrapped["a"][DATABASE]["posts"]
    with antipode.scope():
        collection.insert_one({"_id": name, "v": 1})
        collection.insert_one({"_id": f"{name}-2", "v": 1})
        collection.update_one({"_id": name}, {"$set": {"v": 2}})
    configure(mode="off")
    with antipode.scope() as opened:
        assert collection.find_one({"_id": name}) == {"_id": name, "v": 2}
        assert collection.find_one_and_update({"_id": name}, {"$inc": {"v": 1}}) == {"_id": name, "v": 2}
        assert collection.find_one_and_delete({"_id": name}, {"_id": 0}) == {"v": 3}
        assert list(collection.aggregate([{"$match": {"_id": f"{name}-2"}}])) == [{"_id": f"{name}-2", "v": 1}]
        collection.insert_one({"_id": f"{name}-3"})
        assert posts.raw(f"{name}-3") == {"_id": f"{name}-3"}
        assert not opened.lineage
