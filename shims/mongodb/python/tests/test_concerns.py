"""Which acknowledgement a write has got, whatever it was made by: below a durable majority there is no position.

A scripted server: what PyMongo sends, and what it raises of the answer, is its own.
"""

from __future__ import annotations

import asyncio
import inspect
from collections.abc import Callable, Iterator
from typing import Any

import antipode
import antipode_mongodb
import bson
import pymongo
import pytest
from antipode.testing import isolated
from bson.raw_bson import RawBSONDocument
from bson.son import SON
from fake_mongod import FakeMongod
from pymongo import InsertOne
from pymongo.errors import OperationFailure, PyMongoError
from pymongo.write_concern import WriteConcern

STORE = "blog-posts"
INSERT: dict[str, Any] = {"insert": "posts", "documents": [{"_id": 1}]}
FIND_AND_MODIFY: dict[str, Any] = {"findAndModify": "posts", "query": {}, "update": {"$set": {"v": 1}}}
MAJORITY: dict[str, Any] = {"w": "majority"}
ONE: dict[str, Any] = {"w": 1}

Call = Callable[[Any], Any]


@pytest.fixture(autouse=True)
def alone() -> Iterator[None]:
    with isolated():
        yield


@pytest.fixture
def member() -> Iterator[FakeMongod]:
    with FakeMongod() as server:
        server.more["bulkWrite"] = lambda command: bulk_reply(server, command)
        yield server


def bulk_reply(server: FakeMongod, command: dict[str, Any]) -> dict[str, Any]:
    reply = server.written(command)
    results = [{"ok": 1.0, "idx": 0, "n": 1}]
    numbers = dict.fromkeys(("nErrors", "nMatched", "nModified", "nUpserted", "nDeleted"), 0)
    return {
        **reply,
        **numbers,
        "nInserted": 1,
        "cursor": {"id": 0, "ns": "admin.$cmd.bulkWrite", "firstBatch": results},
    }


def written(
    member: FakeMongod, call: Call, *, is_async: bool = False, fails: bool = False, **options: Any
) -> tuple[antipode.Lineage, antipode.Lineage]:
    """The lineage of a scope in which the call has written, and what leaves with it."""

    async def calling(client: Any) -> tuple[antipode.Lineage, antipode.Lineage]:
        with antipode.scope() as scope:
            try:
                answer = call(antipode_mongodb.wrap(client, store=STORE))
                if inspect.isawaitable(answer):
                    await answer
            except PyMongoError:
                assert fails
            else:
                assert not fails
            return scope.lineage, scope.outgoing()

    async def with_async() -> tuple[antipode.Lineage, antipode.Lineage]:
        async with pymongo.AsyncMongoClient[Any](member.url, **options) as client:
            return await calling(client)

    return asyncio.run(with_async() if is_async else calling(member.client(**options)))


def has_position(member: FakeMongod, call: Call, **more: Any) -> bool:
    """Whether the write has a position; one without is incomplete."""
    lineage, leaving = written(member, call, **more)
    entries = list(lineage.of_store(STORE))
    assert all(entry.is_position for entry in entries)
    assert leaving.is_complete([STORE]) == bool(entries)
    return bool(entries)


both = pytest.mark.parametrize("is_async", [False, True], ids=["sync", "async"])


# Commands: they have the server's default, and none of the client's, the database's or the collection's


@both
@pytest.mark.parametrize("command", [INSERT, FIND_AND_MODIFY], ids=["insert", "findAndModify"])
@pytest.mark.parametrize(("default", "client"), [("majority", 1), (1, "majority")])
def test_a_command_has_the_servers_default(is_async: bool, command: Any, default: Any, client: Any) -> None:
    """EPOCH-32: PyMongo sends none of its own with it."""
    with FakeMongod(default_w=default) as member:
        got = has_position(member, lambda c: c["blog"].command(dict(command)), is_async=is_async, w=client)
        assert got == (default == "majority")
        [sent] = member.named(*command)
        assert "writeConcern" not in sent


@pytest.mark.parametrize(
    "call",
    [
        lambda c, w: c["blog"].command({**INSERT, "writeConcern": w}),
        lambda c, w: c["blog"].command(SON({**INSERT, "writeConcern": w})),
        lambda c, w: c["blog"].command({**INSERT, "writeConcern": RawBSONDocument(bson.encode(w))}),
        lambda c, w: c["blog"].command({**INSERT}, writeConcern=w),
        lambda c, w: c["blog"].command({**INSERT, "writeConcern": {"w": 1}}, writeConcern=w),
        lambda c, w: c["blog"].command("insert", "posts", documents=[{"_id": 1}], writeConcern=w),
    ],
    ids=["dict", "SON", "raw", "argument", "both", "name"],
)
@pytest.mark.parametrize("default", ["majority", 1])
def test_a_commands_own_concern_counts(call: Any, default: Any) -> None:
    """EPOCH-32"""
    with FakeMongod(default_w=default) as member:
        assert has_position(member, lambda c: call(c, MAJORITY))
        assert not has_position(member, lambda c: call(c, ONE))


@both
def test_a_commands_concern_that_was_not_met_gives_no_position(member: FakeMongod, is_async: bool) -> None:
    """EPOCH-32: PyMongo raises nothing of it."""
    member.concern_error = True
    command = {**INSERT, "writeConcern": {"w": "majority", "wtimeout": 1}}
    assert not has_position(member, lambda c: c["blog"].command(command), is_async=is_async)


def test_a_concern_that_only_the_server_knows_is_the_servers_to_judge(member: FakeMongod) -> None:
    """SHIM-1: no error of ours in front of the application's command."""
    command = {**INSERT, "writeConcern": {"w": "majority", "provenance": "clientSupplied"}}
    assert has_position(member, lambda c: c["blog"].command(command))


@pytest.mark.parametrize(("code", "is_pending"), [(11600, True), (91, True), (13, False), (121, False)])
@pytest.mark.parametrize("options", [{"check": False}, {"allowable_errors": [11600, 91, 13, 121]}])
def test_an_error_that_the_application_took_upon_itself_gives_no_position(
    member: FakeMongod, code: int, is_pending: bool, options: dict[str, Any]
) -> None:
    """SCOPE-14, EPOCH-32: an interrupted write may be there, below a majority."""
    member.more["insert"] = lambda _: {"ok": 0.0, "code": code, "codeName": "Some", "errmsg": "some"}
    lineage, leaving = written(member, lambda c: c["blog"].command(dict(INSERT), **options))
    assert not lineage.stores
    assert leaving.is_complete([STORE]) != is_pending


@both
def test_a_command_inside_a_transaction_waits_for_its_commit(member: FakeMongod, is_async: bool) -> None:
    """SHIM-11, EPOCH-32"""

    async def call_async(client: Any, concern: WriteConcern) -> None:
        async with client.start_session() as session:
            async with await session.start_transaction(write_concern=concern):
                await client["blog"].command(dict(INSERT), session=session)
                assert not antipode.current_scope().recorded_lineage  # type: ignore[union-attr]

    def call(client: Any, concern: WriteConcern) -> None:
        with client.start_session() as session, session.start_transaction(write_concern=concern):
            client["blog"].command(dict(INSERT), session=session)
            assert not antipode.current_scope().recorded_lineage  # type: ignore[union-attr]

    made: Any = call_async if is_async else call
    assert has_position(member, lambda c: made(c, WriteConcern("majority")), is_async=is_async)
    assert not has_position(member, lambda c: made(c, WriteConcern(1)), is_async=is_async, w="majority")


# What else takes a write concern of its own


@pytest.mark.parametrize(
    "call",
    [
        lambda c, w: c["blog"]["posts"].find_one_and_update({}, {"$set": {"v": 1}}, writeConcern=w),
        lambda c, w: c["blog"]["posts"].find_one_and_replace({}, {"v": 1}, writeConcern=w),
        lambda c, w: c["blog"]["posts"].find_one_and_delete({}, writeConcern=w),
        lambda c, w: c["blog"]["posts"].rename("others", writeConcern=w),
        lambda c, w: c["blog"]["posts"].aggregate([{"$merge": "others"}], writeConcern=w),
        lambda c, w: c["blog"].aggregate([{"$documents": []}, {"$merge": "others"}], writeConcern=w),
        lambda c, w: c.bulk_write([InsertOne({}, namespace="blog.posts")], write_concern=WriteConcern(**w)),
        lambda c, w: c.bulk_write(
            [InsertOne({}, namespace="blog.posts")], None, True, False, None, None, None, WriteConcern(**w)
        ),
    ],
    ids=["update", "replace", "delete", "rename", "aggregate", "of a database", "bulk", "bulk by position"],
)
@both
@pytest.mark.parametrize("client", ["majority", 1])
def test_an_operations_own_concern_counts(member: FakeMongod, call: Any, is_async: bool, client: Any) -> None:
    """EPOCH-32"""
    member.more["aggregate"] = lambda command: {
        **member.written(command),
        "cursor": {"id": 0, "ns": "blog.posts", "firstBatch": []},
    }
    assert has_position(member, lambda c: call(c, MAJORITY), is_async=is_async, w=client)
    assert not has_position(member, lambda c: call(c, ONE), is_async=is_async, w=client)


@both
def test_a_clients_bulk_without_a_majority_in_time_has_none(member: FakeMongod, is_async: bool) -> None:
    """EPOCH-32"""
    member.concern_error = True
    bulk: list[InsertOne[Any]] = [InsertOne({}, namespace="blog.posts")]
    assert not has_position(member, lambda c: c.bulk_write(bulk), is_async=is_async, fails=True)


@both
def test_what_a_database_does_by_a_cursor_is_incomplete(member: FakeMongod, is_async: bool) -> None:
    """EPOCH-32: nobody sees the answer, nor whether a majority has it."""
    member.more["insert"] = lambda command: {
        **member.written(command),
        "cursor": {"id": 0, "ns": "blog.posts", "firstBatch": []},
    }
    member.more["aggregate"] = member.more["insert"]
    assert not has_position(member, lambda c: c["blog"].cursor_command(dict(INSERT)), is_async=is_async)
    into = {"aggregate": "posts", "pipeline": [{"$out": "others"}], "cursor": {}}
    assert not has_position(member, lambda c: c["blog"].cursor_command(into), is_async=is_async)
    lineage, leaving = written(
        member, lambda c: c["blog"].cursor_command({"aggregate": "posts", "pipeline": []}), is_async=is_async
    )
    assert not lineage.stores
    assert leaving.is_complete()


def test_a_session_may_be_given_by_position(member: FakeMongod) -> None:
    """SHIM-1: where the client takes it so."""

    def call(client: Any, what: str) -> None:
        with client.start_session() as session:
            if what == "command":
                client["blog"].command(dict(INSERT), 1, True, None, None, None, session)
            elif what == "drop_collection":
                client["blog"].drop_collection("posts", session)
            elif what == "drop_database":
                client.drop_database("blog", session)
            elif what == "bulk_write":
                client.bulk_write([InsertOne({}, namespace="blog.posts")], session)

    for what in ("command", "drop_collection", "drop_database", "bulk_write"):
        assert has_position(member, lambda c: call(c, what))  # noqa: B023


@pytest.mark.parametrize("name", ["command", "drop_collection", "aggregate", "cursor_command"])
def test_a_call_without_its_arguments_has_the_clients_own_error(member: FakeMongod, name: str) -> None:
    """SHIM-1"""
    plain = member.client()
    texts = []
    for client in (plain, antipode_mongodb.wrap(plain, store=STORE)):
        with pytest.raises(TypeError) as caught:
            getattr(client["blog"], name)()
        texts.append(str(caught.value))
    assert texts[0] == texts[1]


# What counts as a majority


@pytest.mark.parametrize(
    ("options", "is_one"),
    [
        ({}, True),
        ({"w": "majority", "journal": True}, True),
        ({"w": "majority", "wTimeoutMS": 1000}, True),
        ({"journal": True}, False),
        ({"wTimeoutMS": 1000}, False),
        ({"w": "majority", "journal": False}, False),
    ],
)
def test_only_a_durable_majority_counts(member: FakeMongod, options: dict[str, Any], is_one: bool) -> None:
    """EPOCH-32: without `w` servers up to 6.0 take 1, whatever their default is; `j: false` is in memory only."""
    assert has_position(member, lambda c: c["blog"]["posts"].insert_one({}), **options) == is_one
    assert has_position(member, lambda c: c["blog"]["posts"].insert_one({}), is_async=True, **options) == is_one


def test_a_default_that_is_in_memory_only_is_none(member: FakeMongod) -> None:
    """EPOCH-32"""
    default = {"w": "majority", "j": False, "wtimeout": 0}
    member.more["getDefaultRWConcern"] = lambda _: {"defaultWriteConcern": default, "ok": 1.0}
    assert not has_position(member, lambda c: c["blog"]["posts"].insert_one({}))


def test_a_refused_command_leaves_nothing(member: FakeMongod) -> None:
    """SCOPE-17: as the client raises it."""
    member.more["insert"] = lambda _: {"ok": 0.0, "code": 13, "codeName": "Unauthorized", "errmsg": "no"}
    client = antipode_mongodb.wrap(member.client(), store=STORE)
    with antipode.scope() as scope:
        with pytest.raises(OperationFailure):
            client["blog"].command(dict(INSERT))
        assert scope.outgoing().is_complete()
