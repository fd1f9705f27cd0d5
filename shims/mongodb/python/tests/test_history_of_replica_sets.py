"""Recorded histories of a MongoDB replica set: by positions, and the digests of whole documents (HIST-23 …)."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import antipode
import antipode_mongodb
import pytest
from antipode.messages import outgoing_message
from antipode.testing import isolated
from antipode.testing.histories import judged, lines
from fake_mongod import FakeMongod
from mongodb_regions import DATABASE, STORE
from pymongo import InsertOne, ReplaceOne
from pymongo.errors import BulkWriteError
from recorded_operations import CHANGES, digest, key


@pytest.fixture
def member(tmp_path: Path) -> Iterator[FakeMongod]:
    with isolated(), FakeMongod() as server:
        antipode.configure(history=tmp_path / "history")
        yield server


UPDATE = {"$set": {"v": 2}}
POSITIONED: dict[str, tuple[Callable[[Any], Any], dict[str, Any], list[dict[str, Any]]]] = {
    "insert_one": (
        lambda c: c.insert_one({"_id": "k", "v": 1}),
        {"insert": {"n": 1}},
        [{"key": key("k"), "value": digest("k", v=1)}],
    ),
    "insert_many": (
        lambda c: c.insert_many([{"_id": "k", "v": 1}, {"_id": "l"}]),
        {"insert": {"n": 2}},
        [{"key": key("k"), "value": digest("k", v=1)}, {"key": key("l"), "value": digest("l")}],
    ),
    "replace_one": (
        lambda c: c.replace_one({"_id": "k"}, {"v": 1}),
        {"update": {"n": 1, "nModified": 1}},
        [{"key": key("k"), "value": digest("k", v=1)}],
    ),
    "replace_one of nothing": (
        lambda c: c.replace_one({"_id": "k"}, {"v": 1}),
        {"update": {"n": 0, "nModified": 0}},
        [{"key": "", "nothing": True}],
    ),
    "update_one": (
        lambda c: c.update_one({"_id": "k"}, UPDATE),
        {"update": {"n": 1, "nModified": 1}},
        [{"key": key("k"), "there": True}],
    ),
    "update_one by a field": (
        lambda c: c.update_one({"v": 1}, UPDATE),
        {"update": {"n": 1, "nModified": 1}},
        [{"key": "", "any_key": True}],
    ),
    "delete_one": (lambda c: c.delete_one({"_id": "k"}), {"delete": {"n": 1}}, [{"key": key("k"), "value": None}]),
    "delete_one of nothing": (
        lambda c: c.delete_one({"_id": "k"}),
        {"delete": {"n": 0}},
        [{"key": "", "nothing": True}],
    ),
    "find_one_and_update of nothing": (
        lambda c: c.find_one_and_update({"_id": "k"}, UPDATE),
        {"findAndModify": {"value": None}},
        [{"key": "", "nothing": True}],
    ),
    "find_one_and_replace that inserts": (
        lambda c: c.find_one_and_replace({"_id": "k"}, {"v": 1}, upsert=True),
        {"findAndModify": {"value": None}},
        [{"key": key("k"), "value": digest("k", v=1)}],
    ),
    "bulk_write": (
        lambda c: c.bulk_write([InsertOne({"_id": "k", "v": 1}), ReplaceOne({"_id": "l"}, {})]),
        {"insert": {"n": 1}, "update": {"n": 1, "nModified": 1}},
        [{"key": key("k"), "value": digest("k", v=1)}, {"key": key("l"), "value": digest("l")}],
    ),
    "bulk_write that did less": (
        lambda c: c.bulk_write([InsertOne({"_id": "k", "v": 1}), ReplaceOne({"_id": "l"}, {})]),
        {"insert": {"n": 1}, "update": {"n": 0, "nModified": 0}},
        [{"key": "", "any_key": True}],
    ),
    "drop": (lambda c: c.drop(), {}, [{"key": "", "any_key": True}] * 2),
}


@pytest.mark.parametrize("write", POSITIONED)
def test_what_a_write_to_a_replica_set_changed(member: FakeMongod, tmp_path: Path, write: str) -> None:
    run, answers, wanted = POSITIONED[write]
    for command, answer in answers.items():
        member.more[command] = _moving(member, answer)
    collection = antipode_mongodb.wrap(member.client(), store=STORE)[DATABASE]["posts"]
    with antipode.scope() as scope:
        run(collection)
        text = scope.lineage.serialize()
    found = lines(tmp_path / "history", "write")
    assert [{name: line[name] for name in CHANGES if name in line} for line in found] == wanted
    assert {line["identifier"] for line in found} == {text}


def _moving(member: FakeMongod, answer: dict[str, Any]) -> Callable[[dict[str, Any]], dict[str, Any]]:
    return lambda _: {**answer, "ok": 1.0}


def test_a_part_of_an_operation_that_failed_may_have_been_of_any_key(member: FakeMongod, tmp_path: Path) -> None:
    """HIST-27: which insertions happened is not said of a position."""
    error = {"index": 1, "code": 11000, "errmsg": "duplicate", "keyPattern": {"_id": 1}, "keyValue": {"_id": "l"}}
    member.more["insert"] = lambda _: {"n": 1, "ok": 1.0, "writeErrors": [error]}
    collection = antipode_mongodb.wrap(member.client(), store=STORE)[DATABASE]["posts"]
    with antipode.scope(), pytest.raises(BulkWriteError):
        collection.insert_many([{"_id": "k"}, {"_id": "l"}])
    [line] = lines(tmp_path / "history", "write")
    assert line["any_key"]
    assert "identifier" not in line


def test_a_replica_sets_documents_are_attributed_by_their_values(member: FakeMongod, tmp_path: Path) -> None:
    """HIST-28, HIST-29: with the position that a merged read covers, and null only where nothing was deleted."""
    antipode.configure(auto_merge=True)
    client = antipode_mongodb.wrap(member.client(readConcernLevel="majority"), store=STORE)
    posts, answer = client[DATABASE]["posts"], [{"_id": "k", "v": 1}]
    others = member._answer

    def found(name: str, command: dict[str, Any]) -> dict[str, Any]:
        if command.get("find") != "posts":
            return others(name, command)
        batch = answer if command["filter"] == {"_id": "k"} else []
        return {"cursor": {"id": 0, "ns": f"{DATABASE}.posts", "firstBatch": batch}, "ok": 1.0}

    member._answer = found  # type: ignore[method-assign]
    with antipode.scope():
        posts.insert_one({"_id": "k", "v": 1})
        text = outgoing_message()
    with antipode.message_scope(text):
        assert posts.find_one({"_id": "k"}) == answer[0]
        assert posts.find_one({"_id": "l"}) is None
        assert posts.find_one({"_id": "k"}, {"v": 1})
    read, none, part = lines(tmp_path / "history", "read")
    assert "covers" in read
    assert (read["value"], none["value"], part["reads_from"]) == (digest("k", v=1), None, "unattributed")
    _, history = judged(tmp_path / "history")
    [write] = [each.id for each in history.operations if each.kind == "write"]
    assert [each.reads_from for each in history.operations if each.kind == "read"] == [write, None, "unattributed"]


def test_a_transaction_is_written_when_it_has_committed(member: FakeMongod, tmp_path: Path) -> None:
    client = antipode_mongodb.wrap(member.client(), store=STORE)
    with antipode.scope(), client.start_session() as session:
        with session.start_transaction():
            client[DATABASE]["posts"].insert_one({"_id": "k", "v": 1}, session=session)
        session.start_transaction()
        client[DATABASE]["posts"].insert_one({"_id": "l"}, session=session)
        session.abort_transaction()
    [line] = lines(tmp_path / "history", "write")
    assert (line["key"], line["value"], "identifier" in line) == (key("k"), digest("k", v=1), True)
