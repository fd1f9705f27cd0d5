"""Recorded histories of MongoDB: what operations change and read, and what a lagging server makes of it (HIST-23 …)."""

from __future__ import annotations

import asyncio
import re
from collections.abc import Callable
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

import antipode
import bson
import pytest
from antipode.check.history.deciding import Verdict, decide
from antipode.messages import outgoing_message
from antipode.testing.histories import Hands, judge, judged, lines, play
from antipode_mongodb import noting
from antipode_mongodb.fields import stored
from antipode_mongodb.noting import only_name
from bson.codec_options import CodecOptions
from bson.objectid import ObjectId
from bson.raw_bson import RawBSONDocument
from bson.regex import Regex
from mongodb_regions import DATABASE, NUMBERS, Posts
from pymongo import AsyncMongoClient, DeleteOne, InsertOne, UpdateOne
from pymongo.errors import BulkWriteError, DuplicateKeyError, NetworkTimeout
from recorded_operations import CHANGES, digest, key


@pytest.fixture
def folder(posts: Posts, tmp_path: Path) -> Path:
    posts.posts.find_one({"_id": "the server is known"})
    antipode.configure(history=tmp_path / "history")
    return tmp_path / "history"


# The story


@pytest.mark.parametrize("waits", [False, True])
@pytest.mark.parametrize("part", [None, {"v": 1, "_id": 0}], ids=["whole", "part"])
def test_the_story_with_and_without_a_barrier(posts: Posts, folder: Path, waits: bool, part: Any) -> None:
    """HIST-28, HIST-29: a document says by its version which write it is, also to a read of a part of it."""
    reader = posts.wrapped["b1"][DATABASE]["posts"]
    names = [f"story-{next(NUMBERS)}" for _ in range(3)]
    posts.lab.lag("b1", "200ms" if waits else "5s")
    for name in names:
        with antipode.scope():
            posts.posts.insert_one({"_id": name, "v": name})
            text = outgoing_message()
        with antipode.message_scope(text):
            if waits:
                antipode.barrier(timeout=30)
            found = reader.find_one({"_id": name}, part)
            assert found == (({} if part else {"_id": name}) | {"v": name} if waits else None)
    verdict, history = judged(folder)
    assert not history.gaps
    assert verdict is (Verdict.CONSISTENT if waits else Verdict.VIOLATED)
    found = [history.operations[each.operation].key for each in decide(history).found]
    assert found == ([] if waits else [key(name) for name in names])


@pytest.mark.parametrize("waits", [False, True])
def test_the_same_of_asyncio(posts: Posts, folder: Path, waits: bool) -> None:
    names = [f"async-{next(NUMBERS)}" for _ in range(2)]
    posts.lab.lag("b1", "200ms" if waits else "5s")

    async def run() -> None:
        async with (
            AsyncMongoClient[dict[str, Any]](posts.lab.mongo_url("a")) as plain_a,
            AsyncMongoClient[dict[str, Any]](posts.lab.mongo_url("b1")) as plain_b,
        ):
            writer = posts.wrap(plain_a)[DATABASE]["posts"]
            reader = posts.wrap(plain_b)[DATABASE]["posts"]
            with antipode.scope():
                await asyncio.gather(*(writer.insert_one({"_id": name, "v": name}) for name in names))
                text = outgoing_message()
            with antipode.message_scope(text):
                if waits:
                    await antipode.barrier_async(timeout=30)
                found = await asyncio.gather(*(reader.find_one({"_id": name}) for name in names))
                assert [each and each["v"] for each in found] == (names if waits else [None, None])
                counted = [each async for each in reader.find({"v": {"$in": names}})]
                assert len(counted) == (2 if waits else 0)

    asyncio.run(run())
    verdict, history = judged(folder)
    assert [gap.reason for gap in history.gaps] == ["nobody knows which write this read returned"]
    assert verdict is (Verdict.UNKNOWN if waits else Verdict.VIOLATED)
    assert sorted(history.operations[each.operation].key for each in decide(history).found) == (
        [] if waits else [key(name) for name in names]
    )


def test_an_older_version_is_found_by_itself(posts: Posts, folder: Path) -> None:
    """HIST-29: of a document that was updated meanwhile, whose values nobody knows."""
    name = f"older-{next(NUMBERS)}"
    with antipode.scope() as scope:
        posts.posts.insert_one({"_id": name, "v": 0})
        posts.posts.update_one({"_id": name}, {"$inc": {"v": 1}})
        before = scope.lineage
    assert antipode.barrier(before, timeout=30).satisfied
    posts.lab.partition("b1")
    with antipode.scope(before):
        posts.posts.update_one({"_id": name}, {"$inc": {"v": 1}})
        [found] = posts.wrapped["b1"][DATABASE]["posts"].find({"_id": name})
        assert found == {"_id": name, "v": 1}
    posts.lab.heal("b1")
    _, history = judged(folder)
    [violation] = decide(history).found
    assert (violation.pattern, history.operations[violation.operation].key) == ("WriteCORead", key(name))
    writes = [each.id for each in history.operations if each.kind == "write"]
    assert history.operations[violation.operation].reads_from == writes[1]


# A random run


def _hands(posts: Posts, run: str, *, deletes: bool = False) -> Hands:
    a, b = posts.posts, posts.wrapped["b1"][DATABASE]["posts"]

    def write(name: str, text: str) -> None:
        if int(text.rpartition(" ")[2]) % 2:
            a.update_one({"_id": run + name}, {"$set": {"v": text}}, upsert=True)
        else:
            a.replace_one({"_id": run + name}, {"v": text}, upsert=True)

    def value(collection: Any, name: str) -> str | None:
        found = collection.find_one({"_id": run + name})
        return None if found is None else str(found["v"])

    return Hands(
        write=write,
        read=lambda name: value(a, name),
        read_there=lambda name: value(b, name),
        delete=(lambda name: a.delete_one({"_id": run + name})) if deletes else None,
        lag=lambda on: posts.lab.lag("b1", "5s" if on else "0ms"),
    )


@pytest.mark.parametrize("seed", range(3))
@pytest.mark.parametrize("barriers", [False, True])
def test_a_random_run_has_each_stale_read_and_no_other(posts: Posts, folder: Path, seed: int, barriers: bool) -> None:
    """HIST-29: with barriers it is consistent, without them violated where a read was stale."""
    books = play(seed, _hands(posts, f"{seed}-{barriers}-{next(NUMBERS)}-"), barriers=barriers)
    history, decision, attributed = judge(books, folder)
    assert not history.gaps
    assert attributed == len(books.reads)
    direct = [found for found in decision.found if found.pattern.startswith("WriteCO")]
    assert len(direct) == books.stale
    assert decision.verdict is (Verdict.VIOLATED if decision.found else Verdict.CONSISTENT)
    assert bool(books.stale) is not barriers


@pytest.mark.parametrize("seed", range(2))
def test_a_random_run_with_deletions_attributes_no_read_wrongly(posts: Posts, folder: Path, seed: int) -> None:
    books = play(seed, _hands(posts, f"deleting-{next(NUMBERS)}-", deletes=True), barriers=False)
    _, _, attributed = judge(books, folder)
    assert 0 < attributed < len(books.reads), "of what is deleted nothing says which write it is"


# What operations change

OLD = {"$set": {"v": 2}}
WRITES: dict[str, tuple[Callable[[Any], Any], list[dict[str, Any]]]] = {
    "insert_one": (lambda c: c.insert_one({"v": 1, "_id": "k"}), [{"key": key("k"), "value": digest("k", v=1)}]),
    "insert_one raw": (
        lambda c: c.insert_one(RawBSONDocument(bson.encode({"_id": "k", "v": 1}))),
        [{"key": key("k"), "value": digest("k", v=1)}],
    ),
    "insert_many": (
        lambda c: c.insert_many([{"_id": "k", "v": 1}, {"_id": "l", "v": datetime(2026, 1, 1, tzinfo=UTC)}]),
        [
            {"key": key("k"), "value": digest("k", v=1)},
            {"key": key("l"), "value": digest("l", v=datetime(2026, 1, 1, tzinfo=UTC)), "expires": True},
        ],
    ),
    "replace_one": (
        lambda c: c.replace_one({"_id": "old"}, {"v": 1}),
        [{"key": key("old"), "value": digest("old", v=1)}],
    ),
    "replace_one by a field": (
        lambda c: c.replace_one({"v": "old"}, {"v": 1}),
        [{"key": key("old"), "value": digest("old", v=1)}],
    ),
    "replace_one that inserts": (
        lambda c: c.replace_one({"_id": "k"}, {"v": 1}, upsert=True),
        [{"key": key("k"), "value": digest("k", v=1)}],
    ),
    "replace_one of nothing": (lambda c: c.replace_one({"_id": "k"}, {"v": 1}), []),
    "update_one": (lambda c: c.update_one({"_id": "old"}, OLD), [{"key": key("old"), "there": True}]),
    "update_one by a field": (lambda c: c.update_one({"v": "old"}, OLD), [{"key": key("old"), "there": True}]),
    "update_one by a date": (
        lambda c: c.update_one({"_id": "old"}, {"$currentDate": {"at": True}}),
        [{"key": key("old"), "there": True, "expires": True}],
    ),
    "update_one that inserts": (
        lambda c: c.update_one({"_id": "k"}, OLD, upsert=True),
        [{"key": key("k"), "there": True}],
    ),
    "update_many": (lambda c: c.update_many({"v": "old"}, OLD), [{"key": key("old"), "there": True}]),
    "find_one_and_update": (
        lambda c: c.find_one_and_update({"v": "old"}, OLD, return_document=True),
        [{"key": key("old"), "there": True}],
    ),
    "a pipeline that drops": (
        lambda c: c.find_one_and_update({"_id": "old"}, [{"$unset": "v"}], return_document=True),
        [{"key": key("old"), "there": True, "expires": True, "late_version": True}],
    ),
    "delete_one": (lambda c: c.delete_one({"_id": "old"}), [{"key": key("old"), "value": None}]),
    "delete_one of nothing": (lambda c: c.delete_one({"_id": "k"}), []),
    "delete_many": (lambda c: c.delete_many({"v": "old"}), [{"key": key("old"), "value": None}]),
    "find_one_and_delete": (lambda c: c.find_one_and_delete({}), [{"key": key("old"), "value": None}]),
    "bulk_write": (
        lambda c: c.bulk_write(
            [InsertOne({"_id": "k", "v": 1}), UpdateOne({"v": "old"}, OLD), DeleteOne({"_id": "k"})]
        ),
        [
            {"key": key("k"), "value": digest("k", v=1)},
            {"key": key("old"), "there": True},
            {"key": key("k"), "value": None},
        ],
    ),
    "a command": (
        lambda c: c.database.command("insert", c.name, documents=[{"_id": "k"}]),
        [{"key": "", "any_key": True}],
    ),
    "drop": (lambda c: c.drop(), [{"key": "", "any_key": True}] * 2),  # by way of the database's
    "$out": (
        lambda c: list(c.aggregate([{"$match": {}}, {"$out": "elsewhere"}])),
        [{"key": "", "any_key": True}],
    ),
}


@pytest.mark.parametrize("write", WRITES)
def test_what_a_write_changed(posts: Posts, folder: Path, write: str) -> None:
    """HIST-28: whole documents by their digests, every line with the version that the document has."""
    run, wanted = WRITES[write]
    plain = posts.plain["a"][DATABASE]["posts"]
    plain.delete_many({})
    plain.insert_one({"_id": "old", "v": "old"})
    with antipode.scope() as scope:
        run(posts.posts)
        entries = {each.key for each in scope.lineage}
    found = lines(folder, "write")
    assert [{name: line[name] for name in CHANGES if name in line} for line in found] == wanted
    versioned = [line for line in found if "identifier" in line]
    assert {line["key"].encode() for line in versioned} == entries
    assert len(versioned) == (0 if "any_key" in str(wanted) or "late" in str(wanted) else len(wanted))


def test_a_write_that_was_refused_is_none(posts: Posts, folder: Path, name: str) -> None:
    """HIST-27; of several the ones that were not."""
    posts.plain["a"][DATABASE]["posts"].insert_one({"_id": name})
    with antipode.scope():
        with pytest.raises(DuplicateKeyError):
            posts.posts.insert_one({"_id": name})
        with pytest.raises(BulkWriteError):
            posts.posts.insert_many([{"_id": name + "-1"}, {"_id": name}, {"_id": name + "-2"}])
    assert [line["key"] for line in lines(folder, "write")] == [key(name + "-1")]


def test_an_insertion_whose_answer_was_lost_counts_where_it_was_read(
    posts: Posts, folder: Path, name: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    """HIST-27, HIST-29: by its value, though nobody knows its version."""
    plain = type(posts.posts._antipode_at.low)
    insert = plain.insert_one

    def lose(self: Any, *args: Any, **options: Any) -> Any:
        insert(self, *args, **options)
        raise NetworkTimeout("lost")

    with antipode.scope():
        with monkeypatch.context() as patched:
            patched.setattr(plain, "insert_one", lose)
            with pytest.raises(NetworkTimeout):
                posts.posts.insert_one({"_id": name, "v": 1})
        assert posts.posts.find_one({"_id": name}) == {"_id": name, "v": 1}
    _, history = judged(folder)
    [unknown] = [each for each in history.operations if each.recorded and not each.recorded.certain]
    assert unknown.key == key(name)
    assert [each.reads_from for each in history.operations if each.kind == "read"] == [unknown.id]


def test_an_update_that_left_anothers_version_makes_its_key_unattributed(posts: Posts, folder: Path, name: str) -> None:
    """HIST-35: another machine's clock was ahead, and for a while the value stood under the version that was there."""
    other = f"{name}-other"
    with antipode.scope():
        for each in (name, other):
            posts.posts.insert_one({"_id": each, "v": 1})
    ahead = stored(posts.posts._antipode.clock.next() + (10_000 << 20))
    posts.plain["a"][DATABASE]["posts"].update_one({"_id": name}, {"$set": {"_apv": ahead}})
    with antipode.scope():
        posts.posts.update_one({"_id": name}, {"$set": {"v": 2}})
        posts.posts.update_one({"_id": other}, {"$set": {"v": 2}})
        for each in (name, other):
            posts.posts.find_one({"_id": each}, {"v": 1})
    _, history = judged(folder)
    reads = {each.key: each.reads_from for each in history.operations if each.kind == "read"}
    assert reads[key(name)] == "unattributed"
    assert reads[key(other)] not in (None, "unattributed")


# What operations read

K = {"key": key("k"), "value": digest("k", v=1), "version": True}
ALL = {"key": f"{DATABASE}.posts", "reads_from": "unattributed"}
PLAIN = {"key": key("plain"), "value": digest("plain", v=1)}
READS: dict[str, tuple[Callable[[Any], Any], list[dict[str, Any]]]] = {
    "find_one": (lambda c: c.find_one({"_id": "k"}), [K]),
    "find_one of nothing": (lambda c: c.find_one({"_id": "no"}), [{"key": key("no"), "value": None}]),
    "find_one of a part": (lambda c: c.find_one({"_id": "k"}, ["v"]), [{"key": key("k"), "version": True}]),
    "find_one of a part without its name": (
        lambda c: c.find_one({"_id": "k"}, {"v": 1, "_id": 0}),
        [{"key": key("k"), "version": True}],
    ),
    "find_one of what others wrote": (lambda c: c.find_one({"_id": "plain"}), [PLAIN]),
    "find_one of a part of it": (
        lambda c: c.find_one({"_id": "plain"}, {"v": 1}),
        [{"key": key("plain"), "reads_from": "unattributed"}],
    ),
    "find": (lambda c: list(c.find({"_id": "k"})), [K]),
    "find that nobody asks": (lambda c: c.find({"_id": "k"}), []),
    "find behind the first": (lambda c: list(c.find({"_id": "k"}).skip(1)), [ALL]),
    "find by a field": (lambda c: list(c.find({"v": 1}, sort=["_id"])), [K, PLAIN, ALL]),
    "find in batches": (lambda c: list(c.find({"v": 1}, sort=["_id"], batch_size=1)), [K, ALL]),
    "find by several names": (lambda c: list(c.find({"_id": {"$in": ["k", "no"]}})), [K, ALL]),
    "raw documents": (
        lambda c: c.with_options(codec_options=CodecOptions(document_class=RawBSONDocument)).find_one({"_id": "k"}),
        [{"key": key("k"), "value": digest("k", v=1)}],
    ),
    "raw batches": (lambda c: list(c.find_raw_batches({"_id": "k"})), [ALL]),
    "count": (lambda c: c.count_documents({"_id": "k"}), [ALL]),
    "distinct": (lambda c: c.distinct("v"), [ALL]),
    "aggregate": (lambda c: list(c.aggregate([{"$match": {"_id": "k"}}])), [ALL]),
    "a command": (
        lambda c: c.database.command("find", c.name, filter={"_id": "k"}),
        [{"key": "", "reads_from": "unattributed"}],
    ),
    "ping": (lambda c: c.database.command("ping"), []),
}


@pytest.mark.parametrize("read", READS)
def test_what_a_read_saw(posts: Posts, folder: Path, read: str) -> None:
    run, wanted = READS[read]
    posts.plain["a"][DATABASE]["posts"].delete_many({})
    posts.posts.insert_one({"_id": "k", "v": 1})
    posts.plain["a"][DATABASE]["posts"].insert_one({"_id": "plain", "v": 1})
    with antipode.scope():
        run(posts.posts)
    found = lines(folder, "read")
    said = [{name: line[name] for name in ("key", "value", "reads_from") if name in line} for line in found]
    versions = [{"version": True} if "version" in line else {} for line in found]
    assert [one | other for one, other in zip(said, versions, strict=True)] == wanted


def test_what_the_application_gets_is_the_same(posts: Posts, folder: Path, name: str) -> None:
    """HIST-24."""
    with antipode.scope():
        posts.posts.insert_one({"_id": name, "v": 1, "w": 2})
        for projection in (None, ["v"], {"v": 1, "_id": 0}, {"v": 0}, {"_id": 0}, {"_id": 1}, {}):
            wanted = posts.plain["a"][DATABASE]["posts"].find_one({"_id": name}, projection) or {}
            wanted = {field: value for field, value in wanted.items() if not field.startswith("_ap")}
            assert posts.posts.find_one({"_id": name}, projection) == wanted


def test_what_goes_wrong_in_telling_is_a_gap(
    posts: Posts, folder: Path, name: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    """HIST-24."""
    monkeypatch.setattr(noting, "_digest", lambda *_: 1 / 0)
    with antipode.scope():
        posts.posts.insert_one({"_id": name})
        assert posts.posts.find_one({"_id": name})
    told = lines(folder, "gap", "write", "read")
    assert [line["kind"] for line in told] == ["gap", "write", "gap"]
    assert (told[1]["key"], "value" in told[1], "there" in told[1]) == (key(name), False, False)


def test_which_filters_ask_for_one_name() -> None:
    some = ObjectId()
    assert [only_name({"_id": each}) for each in ("k", 1, some, {"a": 1}, b"")] == [
        ("k",),
        (1,),
        (some,),
        ({"a": 1},),
        (b"",),
    ]
    none = [{"$in": ["k"]}, {}, None, ["k"], Regex("k"), re.compile("k")]
    assert [only_name({"_id": each}) for each in none] == [None] * len(none)
    assert [only_name(each) for each in ({"_id": "k", "v": 1}, {}, None, "k")] == [None] * 4
