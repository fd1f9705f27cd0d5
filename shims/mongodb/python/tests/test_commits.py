"""What becomes of a transaction's writes when its commit fails (spec SCOPE-17, SHIM-11), by a scripted server."""

from __future__ import annotations

import asyncio
from collections.abc import Iterator
from contextlib import nullcontext
from typing import Any

import antipode
import antipode_mongodb
import pymongo
import pytest
from antipode.testing import isolated
from fake_mongod import FakeMongod, done
from pymongo.errors import InvalidOperation, PyMongoError

STORE = "blog-posts"
TRANSIENT = ["TransientTransactionError"]
UNKNOWN = ["UnknownTransactionCommitResult"]


@pytest.fixture(autouse=True)
def alone() -> Iterator[None]:
    with isolated():
        yield


@pytest.fixture
def member() -> Iterator[FakeMongod]:
    with FakeMongod() as server:
        yield server


def failing(member: FakeMongod, *replies: dict[str, Any]) -> None:
    """The next commits fail so; those after them do what they should."""
    left = list(replies)

    def commit(command: dict[str, Any]) -> dict[str, Any]:
        return {"ok": 0.0, "errmsg": "scripted", **left.pop(0)} if left else member.written(command)

    member.more["commitTransaction"] = commit


def refused(*labels: str, code: int = 251) -> dict[str, Any]:
    return {"code": code, "codeName": "Some", "errorLabels": list(labels)}


def test_a_commit_that_is_certain_not_to_have_happened_leaves_nothing(member: FakeMongod) -> None:
    """SCOPE-17: the client begins such a transaction again."""
    client = antipode_mongodb.wrap(member.client(), store=STORE)
    failing(member, refused(*TRANSIENT))
    with antipode.scope() as scope, client.start_session() as session:
        session.start_transaction()
        client["blog"]["posts"].insert_one({"v": 1}, session=session)
        with pytest.raises(PyMongoError):
            session.commit_transaction()
        assert not scope.lineage
        assert scope.outgoing().is_complete()


@pytest.mark.parametrize("is_async", [False, True], ids=["sync", "async"])
def test_a_transaction_that_was_begun_again_has_the_position_of_its_commit(member: FakeMongod, is_async: bool) -> None:
    """SCOPE-17, SHIM-11: by `with_transaction`; nothing of the first try remains."""
    failing(member, refused(*TRANSIENT))

    def in_turn() -> antipode.Lineage:
        client = antipode_mongodb.wrap(member.client(), store=STORE)
        posts = client["blog"]["posts"]
        with antipode.scope() as scope, client.start_session() as session:
            session.with_transaction(lambda used: posts.insert_one({"v": 1}, session=used))
            return scope.outgoing()

    async def in_a_loop() -> antipode.Lineage:
        async with pymongo.AsyncMongoClient[Any](member.url) as plain:
            client = antipode_mongodb.wrap(plain, store=STORE)
            posts = client["blog"]["posts"]

            async def insert(used: Any) -> None:
                await posts.insert_one({"v": 1}, session=used)

            with antipode.scope() as scope:
                async with client.start_session() as session:
                    await session.with_transaction(insert)
                return scope.outgoing()

    leaving = asyncio.run(in_a_loop()) if is_async else in_turn()
    assert len(member.named("commitTransaction")) == 2
    [entry] = leaving.of_store(STORE)
    assert entry.is_position
    assert leaving.is_complete()


@pytest.mark.parametrize(
    "reply",
    [
        refused(*UNKNOWN),
        refused(*TRANSIENT, *UNKNOWN),
        refused(code=13),
        refused(*TRANSIENT, code=50),  # to which the client adds that the outcome is unknown
        {"writeConcernError": {"code": 79, "errmsg": "no such mode"}, "errorLabels": TRANSIENT, "ok": 1.0},
    ],
    ids=["unknown", "both", "neither", "time limit", "concern"],
)
def test_any_other_failure_leaves_the_writes_pending(member: FakeMongod, reply: dict[str, Any]) -> None:
    """SCOPE-17: also when the session goes on to another transaction."""
    client = antipode_mongodb.wrap(member.client(), store=STORE)
    failing(member, reply)
    with antipode.scope() as scope, client.start_session() as session:
        session.start_transaction()
        client["blog"]["posts"].insert_one({"v": 1}, session=session)
        with pytest.raises(PyMongoError):
            session.commit_transaction()
        assert not scope.outgoing().is_complete([STORE])
        session.start_transaction()
        session.abort_transaction()
        assert not scope.outgoing().is_complete([STORE])


@pytest.mark.parametrize("again", [True, False], ids=["the commit works later", "it never does"])
@pytest.mark.parametrize("is_async", [False, True], ids=["sync", "async"])
def test_an_abort_after_a_commit_takes_nothing_back(member: FakeMongod, is_async: bool, again: bool) -> None:
    """SCOPE-17: the client refuses it without asking the server, where the commit may have happened."""

    async def left(plain: Any) -> antipode.Lineage:
        client = antipode_mongodb.wrap(plain, store=STORE)
        failing(member, refused(*UNKNOWN))

        with antipode.scope() as scope:
            session = client.start_session()
            await done(session.start_transaction())
            await done(client["blog"]["posts"].insert_one({"v": 1}, session=session))
            with pytest.raises(PyMongoError):
                await done(session.commit_transaction())
            for _ in range(2):
                with pytest.raises(InvalidOperation):
                    await done(session.abort_transaction())
            assert not scope.outgoing().is_complete([STORE])
            if again:
                await done(session.commit_transaction())
            await done(session.end_session())
            return scope.outgoing()

    async def with_async() -> antipode.Lineage:
        async with pymongo.AsyncMongoClient[Any](member.url) as plain:
            return await left(plain)

    leaving = asyncio.run(with_async() if is_async else left(member.client()))
    assert leaving.is_complete([STORE]) == again
    assert len(list(leaving.of_store(STORE))) == again
    assert not member.named("abortTransaction")


def test_a_commit_that_is_tried_again_has_its_position(member: FakeMongod) -> None:
    """SHIM-11"""
    client = antipode_mongodb.wrap(member.client(), store=STORE)
    failing(member, refused(*UNKNOWN))
    with antipode.scope() as scope, client.start_session() as session:
        session.start_transaction()
        client["blog"]["posts"].insert_one({"v": 1}, session=session)
        with pytest.raises(PyMongoError):
            session.commit_transaction()
        session.commit_transaction()
        assert len(list(scope.lineage.of_store(STORE))) == 1
        assert scope.outgoing().is_complete()


@pytest.mark.parametrize("is_async", [False, True], ids=["sync", "async"])
@pytest.mark.parametrize("label", ["", UNKNOWN, TRANSIENT], ids=["done", "unknown", "undone"])
def test_who_commits_what_others_wrote(member: FakeMongod, is_async: bool, label: str | list[str]) -> None:
    """SCOPE-24: as those have it who wrote, once a scope; also where those have ended."""

    async def committed(plain: Any) -> antipode.Lineage:
        client = antipode_mongodb.wrap(plain, store=STORE)
        if label:
            failing(member, refused(*label))
        session = client.start_session()
        with antipode.scope():
            await done(session.start_transaction())
            for number in range(2):
                await done(client["blog"]["posts"].insert_one({"v": number}, session=session))
        with antipode.scope() as committing:
            assert not committing.pending
            with pytest.raises(PyMongoError) if label else nullcontext():
                await done(session.commit_transaction())
            assert len(committing.pending) == (label == UNKNOWN)
            return committing.outgoing()

    async def with_async() -> antipode.Lineage:
        async with pymongo.AsyncMongoClient[Any](member.url) as plain:
            return await committed(plain)

    leaving = asyncio.run(with_async() if is_async else committed(member.client()))
    assert leaving.is_complete() is (label != UNKNOWN)
    assert len(list(leaving.of_store(STORE))) == (not label)


def test_a_label_of_the_clients_own_says_nothing_of_an_earlier_try(member: FakeMongod) -> None:
    """SCOPE-17: it labels whatever keeps it from finding a server, and the first try may have got there."""
    plain = member.client()
    client = antipode_mongodb.wrap(plain, store=STORE)
    failing(member, refused(*UNKNOWN))
    with antipode.scope() as scope:
        session = client.start_session()
        session.start_transaction()
        client["blog"]["posts"].insert_one({"v": 1}, session=session)
        with pytest.raises(PyMongoError):
            session.commit_transaction()
        plain.close()
        with pytest.raises(InvalidOperation) as caught:
            session.commit_transaction()
        assert caught.value.has_error_label(*TRANSIENT)
        assert not caught.value.has_error_label(*UNKNOWN)
        assert not scope.outgoing().is_complete([STORE])
