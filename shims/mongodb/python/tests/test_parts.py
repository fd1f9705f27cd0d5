"""Operations of several documents that fail half way: what was changed before the error stays (SCOPE-14, SCOPE-17).

A scripted server: what PyMongo raises of the answer is its own.
"""

from __future__ import annotations

import asyncio
import inspect
from collections.abc import Callable, Iterator
from typing import Any

import antipode
import antipode_mongodb
import pymongo
import pytest
from antipode.testing import isolated
from fake_mongod import FakeMongod
from pymongo import InsertOne
from pymongo.errors import PyMongoError

STORE = "blog-posts"
MERGE = [{"$match": {}}, {"$merge": "others"}]
MULTI: dict[str, Any] = {"update": "posts", "updates": [{"q": {}, "u": {"$inc": {"v": 1}}, "multi": True}]}
HALF_WAY: dict[str, Callable[[Any], Any]] = {
    "update_many": lambda c: c["blog"]["posts"].update_many({}, {"$inc": {"v": 1}}),
    "delete_many": lambda c: c["blog"]["posts"].delete_many({}),
    "merge": lambda c: c["blog"]["posts"].aggregate(MERGE),
    "merge of a database": lambda c: c["blog"].aggregate([{"$documents": []}, {"$merge": "others"}]),
    "command": lambda c: c["blog"].command(dict(MULTI)),
    "cursor_command": lambda c: c["blog"].cursor_command({"aggregate": "posts", "pipeline": MERGE, "cursor": {}}),
    "drop_database": lambda c: c.drop_database("blog"),
}
WHOLE: dict[str, Callable[[Any], Any]] = {
    "insert_one": lambda c: c["blog"]["posts"].insert_one({"v": 1}),
    "update_one": lambda c: c["blog"]["posts"].update_one({}, {"$inc": {"v": 1}}),
    "delete_one": lambda c: c["blog"]["posts"].delete_one({}),
    "find_one_and_delete": lambda c: c["blog"]["posts"].find_one_and_delete({}),
    "drop": lambda c: c["blog"].drop_collection("posts"),
    "insert": lambda c: c["blog"].command({"insert": "posts", "documents": [{"_id": 1}]}),
    "update": lambda c: c["blog"].command({"update": "posts", "updates": [{"q": {}, "u": {"$inc": {"v": 1}}}]}),
    "delete": lambda c: c["blog"].command({"delete": "posts", "deletes": [{"q": {}, "limit": 1}]}),
}
COMMANDS = ("insert", "update", "delete", "findAndModify", "aggregate", "drop", "dropDatabase")
both = pytest.mark.parametrize("is_async", [False, True], ids=["sync", "async"])
kinds = pytest.mark.parametrize("honours", [True, False], ids=["positions", "versions"])


@pytest.fixture(autouse=True)
def alone() -> Iterator[None]:
    with isolated():
        yield


async def made(call: Callable[[Any], Any], client: Any) -> None:
    answer = call(client)
    if inspect.isawaitable(answer):
        await answer


def left_by(member: FakeMongod, call: Callable[[Any], Any], is_async: bool = False) -> antipode.Lineage:
    """What leaves a scope in which this call failed."""

    async def calling(client: Any) -> antipode.Lineage:
        with antipode.scope() as scope:
            wrapped = antipode_mongodb.wrap(client, store=STORE)
            with pytest.raises((PyMongoError, OverflowError)):
                await made(call, wrapped)
            assert not scope.lineage.of_store(STORE)
            return scope.outgoing()

    async def with_async() -> antipode.Lineage:
        async with pymongo.AsyncMongoClient[Any](member.url, retryWrites=False) as client:
            return await calling(client)

    return asyncio.run(with_async() if is_async else calling(member.client(retryWrites=False)))


def failing(member: FakeMongod, code: int) -> None:
    """Each write changes something, and ends with an error."""

    def answer(command: dict[str, Any]) -> dict[str, Any]:
        name = next(iter(command))
        error = {"code": code, "codeName": "Some", "errmsg": "scripted"}
        if name in ("update", "delete"):
            return {**member.written(command), "n": 2, "writeErrors": [{"index": 0, **error}]}
        return {**member.written(command), "ok": 0.0, **error}

    member.more.update(dict.fromkeys(COMMANDS, answer))


@pytest.fixture
def member(honours: bool) -> Iterator[FakeMongod]:
    with FakeMongod(honours=honours) as server:
        server.more["find"] = lambda command: found(server, command)
        yield server


def found(server: FakeMongod, command: dict[str, Any]) -> dict[str, Any]:
    reply = server._find(command)
    if command["find"] == "posts":
        reply["cursor"]["firstBatch"] = [{"_id": 1}, {"_id": 2}]
    return reply


@both
@kinds
@pytest.mark.parametrize("code", [11000, 14, 50, 11601])
@pytest.mark.parametrize("what", HALF_WAY)
def test_what_failed_half_way_is_incomplete(member: FakeMongod, what: str, code: int, is_async: bool) -> None:
    """SCOPE-14: an index that refuses, a type, a time limit, killOp."""
    if what in ("command", "cursor_command"):
        member.more["update"] = member.more["aggregate"] = lambda command: {
            **member.written(command),
            "ok": 0.0,
            "code": code,
            "codeName": "Some",
            "errmsg": "scripted",
        }
    else:
        failing(member, code)
    assert not left_by(member, HALF_WAY[what], is_async).is_complete([STORE])


def test_so_it_is_where_nothing_can_be_proved() -> None:
    """SCOPE-14, SHIM-3"""
    with FakeMongod(sharded=True) as router, antipode.scope() as scope:
        error = {"index": 1, "code": 11000, "errmsg": "scripted"}
        router.more["insert"] = lambda command: {**router.written(command), "writeErrors": [error]}
        client = antipode_mongodb.wrap(router.client(), store=STORE, on_unfit="unproven")
        with pytest.raises(PyMongoError):
            client["blog"]["posts"].insert_many([{"_id": 1}, {"_id": 1}])
        assert not scope.outgoing().is_complete([STORE])


@kinds
@pytest.mark.parametrize("what", WHOLE)
def test_what_is_done_as_a_whole_or_not_at_all_leaves_nothing(member: FakeMongod, what: str) -> None:
    """SCOPE-17: the server refused it."""
    error = {"ok": 0.0, "code": 11000, "codeName": "DuplicateKey", "errmsg": "scripted"}
    member.more.update(dict.fromkeys(COMMANDS, lambda _: error))
    left = left_by(member, WHOLE[what])
    assert not left
    assert left.is_complete()


@both
@kinds
@pytest.mark.parametrize("how", ["refused", "cannot be sent"])
@pytest.mark.parametrize("what", ["insert_many", "bulk_write", "bulk_write of the client"])
def test_a_second_message_that_fails_takes_nothing_of_the_first_back(
    member: FakeMongod, what: str, how: str, is_async: bool
) -> None:
    """SCOPE-14: many documents are sent in several messages, and each is made when its turn comes."""
    hello = member._hello
    member._hello = lambda: {**hello(), "maxWriteBatchSize": 2}  # type: ignore[method-assign]
    sent = 0

    def insert(command: dict[str, Any]) -> dict[str, Any]:
        nonlocal sent
        sent += 1
        if sent == 2:
            return {"ok": 0.0, "code": 13, "codeName": "Unauthorized", "errmsg": "scripted"}
        reply = {**member.written(command), "n": 2, "nInserted": 2}
        numbers = dict.fromkeys(("nErrors", "nMatched", "nModified", "nUpserted", "nDeleted"), 0)
        cursor = {"id": 0, "ns": "admin.$cmd.bulkWrite", "firstBatch": []}
        return {**reply, **numbers, "cursor": cursor} if "bulkWrite" in command else reply

    member.more["insert"] = member.more["bulkWrite"] = insert
    documents: list[Any] = [{"v": 1} for _ in range(3)]
    if how == "cannot be sent":
        documents[2]["v"] = 2**70
    calls: dict[str, Callable[[Any], Any]] = {
        "insert_many": lambda c: c["blog"]["posts"].insert_many(documents),
        "bulk_write": lambda c: c["blog"]["posts"].bulk_write([InsertOne(each) for each in documents]),
        "bulk_write of the client": lambda c: c.bulk_write(
            [InsertOne(each, namespace="blog.posts") for each in documents]
        ),
    }
    assert not left_by(member, calls[what], is_async).is_complete([STORE])
    assert sent == (2 if how == "refused" else 1)
