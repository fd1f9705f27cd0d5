"""Servers that become something else while a client is in use, by a scripted one (spec EPOCH-2, EPOCH-14, EPOCH-32)."""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Iterator
from contextlib import suppress
from typing import Any

import antipode
import antipode_mongodb
import pytest
from antipode import Verdict
from antipode._facade.configuration import configure
from antipode._model.write_id import Ordered
from antipode.shim.administration import Level
from antipode.testing import isolated
from antipode_mongodb import MongoShim
from antipode_mongodb.flavour import counter_of
from bson.objectid import ObjectId
from bson.timestamp import Timestamp
from fake_mongod import SET_ID, FakeMongod, done, with_client
from pymongo.errors import PyMongoError
from pymongo.read_concern import ReadConcern

STORE = "blog-posts"
both = pytest.mark.parametrize("is_async", [False, True], ids=["sync", "async"])


@pytest.fixture(autouse=True)
def alone() -> Iterator[None]:
    with isolated():
        configure(replica_out_after=20.0)
        yield


def look(lineage: antipode.Lineage, timeout: float = 5.0) -> Any:
    result = antipode.barrier(lineage, timeout=timeout, stores=[STORE], on_timeout="proceed", on_unproven="proceed")
    return result.stores[STORE]


# A member that has no configuration yet


@pytest.fixture
def ghost() -> Iterator[FakeMongod]:
    """A member before `rs.initiate()`, as MongoDB's protocol shows it."""
    with FakeMongod() as server:
        server.initiated = False
        yield server


@both
def test_a_set_that_is_initiated_later_gives_positions(ghost: FakeMongod, is_async: bool) -> None:
    """EPOCH-32, SHIM-3: until then what it is is not known, and no document gets a version."""

    async def use(plain: Any) -> None:
        client = antipode_mongodb.wrap(plain, store=STORE)
        posts = client["blog"]["posts"].with_options(read_concern=ReadConcern("majority"))
        with antipode.scope() as scope:
            await done(posts.insert_one({"v": 1}))
            await done(posts.update_many({}, {"$set": {"v": 1}}))
            assert not scope.lineage.of_store(STORE)
            assert not scope.lineage.is_complete([STORE])
        with antipode.reading() as seen:
            await done(posts.find_one({}))
        assert not seen.lineage.is_complete([STORE])
        ghost.initiated = True
        with antipode.scope() as scope:  # by a connection that has no sessions: the client does not ask again
            await done(posts.insert_one({"v": 1}))
            assert not scope.lineage.of_store(STORE)
            assert not scope.lineage.is_complete([STORE])
        ghost.drop()
        deadline = asyncio.get_running_loop().time() + 20
        while True:
            with antipode.scope() as scope, suppress(PyMongoError):
                await done(posts.insert_one({"v": 1}))
                break
            assert asyncio.get_running_loop().time() < deadline, "no new connection"
        [entry] = scope.lineage.of_store(STORE)
        assert entry.version == Ordered(str(SET_ID), counter_of(ghost.now))
        assert scope.lineage.is_complete()

    with_client(ghost, is_async, use)
    assert "_apv" not in str(ghost.named("insert", "update", "findAndModify")).replace("'_apv': 0", "")


@both
def test_a_reader_that_came_too_early_asks_again(ghost: FakeMongod, is_async: bool) -> None:
    """EPOCH-32: a digest of the document would cover what an election takes back."""

    async def use(plain: Any) -> None:
        posts = antipode_mongodb.wrap(plain, store=STORE)["blog"]["posts"]
        ghost.initiated = True
        ghost.more["find"] = lambda command: with_document(ghost, command)
        with antipode.reading() as seen:
            assert await done(posts.find_one({})) == {"_id": 1}
        assert not seen.lineage.is_complete([STORE])
        lasting = posts.with_options(read_concern=ReadConcern("majority"))
        with antipode.reading() as seen:
            await done(lasting.find_one({}))
        [entry] = seen.lineage.of_store(STORE)
        assert entry.version == Ordered(str(SET_ID), counter_of(ghost.committed))

    with_client(ghost, is_async, use)


def with_document(server: FakeMongod, command: dict[str, Any]) -> dict[str, Any]:
    reply = server._find(command)
    if command["find"] == "posts":
        reply["cursor"]["firstBatch"] = [{"_id": 1}]
    return reply


def test_a_barrier_waits_until_a_member_has_its_configuration(ghost: FakeMongod) -> None:
    """BAR-26: it has not answered; `unproven` would stay as long as the connection."""
    antipode_mongodb.register(STORE, replicas=[ghost.url])
    lineage = antipode.Lineage([antipode.WriteId.position(STORE, str(SET_ID), counter_of(ghost.committed))])
    assert look(lineage, 0.3).verdict is Verdict.TIMED_OUT
    ghost.initiated = True
    assert look(lineage).verdict is Verdict.VISIBLE


NO_MAJORITY = {"ok": 0.0, "code": 134, "codeName": "ReadConcernMajorityNotAvailableYet", "errmsg": "not now"}


@pytest.mark.parametrize("how", ["syncing", "without a majority read", "without its configuration"])
def test_a_barrier_waits_for_a_member_that_has_just_started(how: str) -> None:
    """BAR-26: what it cannot do yet says nothing of what it is."""
    with FakeMongod() as member:
        now = member.now

        def probe(command: dict[str, Any]) -> dict[str, Any]:
            member.now = now
            return NO_MAJORITY if "readConcern" in command else member._find(command)

        if how == "syncing":
            member.syncing = True
            member._find = lambda command: {"ok": 1.0, "cursor": {}}  # type: ignore[method-assign]
        elif how == "without a majority read":
            member.more["find"] = probe
        else:
            error = {"ok": 0.0, "code": 94, "codeName": "NotYetInitialized", "errmsg": "no replset config"}
            member.more["replSetGetConfig"] = lambda _: error
        antipode_mongodb.register(STORE, replicas=[member.url])
        lineage = antipode.Lineage([antipode.WriteId.position(STORE, str(SET_ID), counter_of(member.committed))])
        assert look(lineage, 0.3).verdict is Verdict.TIMED_OUT
        member.syncing = False
        member.more.clear()
        member.__dict__.pop("_find", None)
        assert look(lineage).verdict is Verdict.VISIBLE


def test_a_barrier_waits_for_a_member_that_does_not_know_its_majority_any_more() -> None:
    """BAR-26: the connection stays, so it is not asked again what it is (a rollback)."""
    with FakeMongod() as member:
        antipode_mongodb.register(STORE, replicas=[member.url])
        seen = antipode.WriteId.position(STORE, str(SET_ID), counter_of(member.committed))
        assert look(antipode.Lineage([seen])).verdict is Verdict.VISIBLE
        later = antipode.WriteId.position(STORE, str(SET_ID), counter_of(member.committed) + 1)
        member.more["find"] = lambda _: NO_MAJORITY
        assert look(antipode.Lineage([later]), 0.3).verdict is Verdict.TIMED_OUT


def test_doctor_says_of_a_member_without_a_configuration_what_is_to_be_done(ghost: FakeMongod) -> None:
    """SHIM-3"""
    [found] = MongoShim.diagnose(ghost.url)
    assert found.level is Level.UNKNOWN
    assert "rs.initiate()" in found.what


@both
def test_a_single_server_that_becomes_a_member_gives_positions(is_async: bool) -> None:
    """EPOCH-32: it had none when the client was wrapped."""

    async def use(plain: Any) -> None:
        posts = antipode_mongodb.wrap(plain, store=STORE, tombstones=False)["blog"]["posts"]
        with antipode.scope() as scope:
            await done(posts.insert_one({"v": 1}))
            [entry] = scope.lineage.of_store(STORE)
            assert not entry.is_position
        server.in_set = True
        server.drop()
        await until_seen(plain)
        with antipode.scope() as scope:
            await done(posts.insert_one({"v": 1}))
            [entry] = scope.lineage.of_store(STORE)
            assert entry.version == Ordered(str(SET_ID), counter_of(server.now))

    with FakeMongod() as server:
        server.in_set = False
        with_client(server, is_async, use)


async def until_seen(client: Any) -> None:
    """The client's own view of the server has the set's name."""
    deadline = asyncio.get_running_loop().time() + 20
    while all(each.replica_set_name is None for each in client.topology_description.server_descriptions().values()):
        assert asyncio.get_running_loop().time() < deadline, "the client does not see the set"
        await asyncio.sleep(0.01)
        try:
            await done(client.admin.command("ping"))
        except PyMongoError:
            continue


# Another replica set at the same address: a virtual address after a restore


OTHER = ObjectId("0123456789abcdef01234567")


def moved(member: FakeMongod, *clients: Any) -> None:
    """The address leads to another set, whose times are greater; idle connections are dead, and are replaced unseen."""
    for client in clients:
        for server in client._topology._servers.values():
            server.pool._check_interval_seconds = 0  # the client looks at a connection that was idle for a second
    member.set_id = OTHER
    member.now = member.committed = Timestamp(1_900_000_000, 1)
    member.drop()


@both
def test_a_write_over_a_new_connection_is_not_of_the_set_that_was_there_before(is_async: bool) -> None:
    """EPOCH-2, EPOCH-14: the client replaces a connection that has died without a word."""

    async def use(plain: Any) -> None:
        client = antipode_mongodb.wrap(plain, store=STORE)
        posts = client["blog"]["posts"]
        writes: list[Callable[[], Any]] = [
            lambda: posts.insert_one({"v": 1}),
            lambda: client["blog"].command({"insert": "posts", "documents": [{"_id": 1}]}),
            lambda: in_transaction(client, posts),
        ]
        for write in writes:
            member.set_id = SET_ID
            member.drop()
            await written_to(write, str(SET_ID))
            moved(member, plain)
            await written_to(write, str(OTHER))

    with FakeMongod() as member:
        with_client(member, is_async, use)


async def in_transaction(client: Any, posts: Any) -> None:
    session = client.start_session()
    await done(session.start_transaction())
    await done(posts.insert_one({"v": 1}, session=session))
    await done(session.commit_transaction())
    await done(session.end_session())


async def written_to(write: Callable[[], Any], epoch: str) -> None:
    """Writes until the write has a position; until then it is incomplete, and none is of another set."""
    deadline = asyncio.get_running_loop().time() + 20
    while True:
        with antipode.scope() as scope:
            try:
                await done(write())
            except PyMongoError:
                continue
            finally:
                assert asyncio.get_running_loop().time() < deadline, "no position"
        entries = list(scope.lineage.of_store(STORE))
        assert scope.lineage.is_complete([STORE]) == bool(entries)
        if entries:
            [entry] = entries
            assert isinstance(entry.version, Ordered)
            assert entry.version.epoch == epoch
            return


@both
def test_a_value_over_a_new_connection_is_not_of_the_set_that_was_there_before(is_async: bool) -> None:
    """EPOCH-2, EPOCH-14"""

    async def use(plain: Any) -> None:
        posts = antipode_mongodb.wrap(plain, store=STORE)["blog"]["posts"]
        lasting = posts.with_options(read_concern=ReadConcern("majority"))

        async def read() -> list[Any]:
            with antipode.reading() as seen:
                await done(lasting.find_one({}))
            entries = list(seen.lineage.of_store(STORE))
            assert seen.lineage.is_complete() == bool(entries)
            return [entry.version.epoch for entry in entries if isinstance(entry.version, Ordered)]

        assert await read() == [str(SET_ID)]
        moved(member, plain)
        assert await read() in ([], [str(OTHER)])
        assert await read() == [str(OTHER)]

    with FakeMongod() as member:
        with_client(member, is_async, use)


def test_a_barrier_does_not_judge_by_the_set_that_was_there_before() -> None:
    """EPOCH-2, EPOCH-14: the engine's own connection is replaced unseen, too, and the other set's times are greater."""
    with FakeMongod() as member:
        store = antipode_mongodb.register(STORE, replicas=[member.url])

        def at(counter: int) -> antipode.Lineage:
            return antipode.Lineage([antipode.WriteId.position(STORE, str(SET_ID), counter)])

        assert look(at(counter_of(member.committed))).verdict is Verdict.VISIBLE
        ahead = counter_of(member.committed) + 1
        assert look(at(ahead), 0.1).verdict is Verdict.TIMED_OUT
        [server] = store.servers()
        moved(member, server.session.client)
        answer = look(at(ahead))
        assert answer.verdict is Verdict.UNPROVEN
        assert str(OTHER) in answer.reason
        assert look(antipode.Lineage([antipode.WriteId.position(STORE, str(OTHER), 1)])).verdict is Verdict.VISIBLE


def test_as_long_as_a_connection_lasts_nothing_is_asked_again() -> None:
    """SHIM-20: what it costs is for each new connection."""
    with FakeMongod() as member:
        posts = antipode_mongodb.wrap(member.client(), store=STORE)["blog"]["posts"]
        with antipode.scope() as scope:
            posts.insert_one({"v": 1})
        member.committed = member.now
        assert look(scope.lineage).verdict is Verdict.VISIBLE
        before = len(member.named("replSetGetConfig"))
        for _ in range(10):
            with antipode.scope() as scope:
                posts.insert_one({"v": 1})
            member.committed = member.now
            assert look(scope.lineage).verdict is Verdict.VISIBLE
        assert len(member.named("replSetGetConfig")) == before
