"""Positions of a replica set: by a scripted server, for no mongod is at hand here (spec EPOCH-7, EPOCH-32, SHIM-40).

What a real one answers is MongoDB's documentation; that the shim asks, records and judges by it is what is shown.
"""

from __future__ import annotations

import time
from collections.abc import Iterator
from typing import Any

import antipode
import antipode_mongodb
import pytest
from antipode import Verdict
from antipode._facade.configuration import configure
from antipode._model.errors import UnfitStoreError
from antipode._model.write_id import Ordered
from antipode.testing import isolated
from antipode_mongodb.flavour import counter_of
from bson.objectid import ObjectId
from bson.timestamp import Timestamp
from fake_mongod import SET_ID, FakeMongod
from pymongo import InsertOne, UpdateOne
from pymongo.errors import WriteConcernError
from pymongo.read_concern import ReadConcern
from pymongo.write_concern import WriteConcern

STORE = "blog-posts"


@pytest.fixture(autouse=True)
def alone() -> Iterator[None]:
    with isolated():
        configure(replica_out_after=20.0)
        yield


@pytest.fixture
def member() -> Iterator[FakeMongod]:
    with FakeMongod() as server:
        yield server


def position(lineage: antipode.Lineage) -> Ordered:
    [entry] = lineage.of_store(STORE)
    assert entry.is_position
    assert isinstance(entry.version, Ordered)
    return entry.version


def look(lineage: antipode.Lineage, timeout: float = 5.0) -> Any:
    result = antipode.barrier(lineage, timeout=timeout, stores=[STORE], on_timeout="proceed", on_unproven="proceed")
    return result.stores[STORE]


WRITES: dict[str, Any] = {
    "insert_one": lambda c: c.insert_one({"v": 1}),
    "insert_many": lambda c: c.insert_many([{"v": 1}]),
    "update_one": lambda c: c.update_one({}, {"$set": {"v": 1}}),
    "update_many": lambda c: c.update_many({}, {"$set": {"v": 1}}),
    "replace_one": lambda c: c.replace_one({}, {"v": 1}),
    "delete_one": lambda c: c.delete_one({}),
    "delete_many": lambda c: c.delete_many({}),
    "find_one_and_update": lambda c: c.find_one_and_update({}, {"$set": {"v": 1}}),
    "find_one_and_delete": lambda c: c.find_one_and_delete({}),
    "bulk_write": lambda c: c.bulk_write([InsertOne({}), UpdateOne({}, {"$set": {"v": 1}})]),
}


@pytest.mark.parametrize("what", WRITES)
def test_a_majoritys_write_has_the_position_of_its_reply(member: FakeMongod, what: str) -> None:
    """EPOCH-1, EPOCH-3, EPOCH-32, SHIM-7"""
    posts = antipode_mongodb.wrap(member.client(), store=STORE)["blog"]["posts"]
    with antipode.scope() as scope:
        WRITES[what](posts)
        assert position(scope.lineage) == Ordered(str(SET_ID), counter_of(member.now))
        assert scope.lineage.is_complete()
    sent = member.named("insert", "update", "delete", "findAndModify")
    assert len(sent) == (2 if what == "bulk_write" else 1)
    assert "_apv" not in str(sent).replace("'_apv': 0", "")  # what is hidden is asked not to come


def test_the_servers_own_wait_lets_a_barrier_pass_when_a_majority_has_it(member: FakeMongod) -> None:
    """BAR-38, SHIM-20: not before its time is committed, and at once then."""
    posts = antipode_mongodb.wrap(member.client(), store=STORE)["blog"]["posts"]
    with antipode.scope() as scope:
        posts.insert_one({"v": 1})
    assert look(scope.lineage, 0.3).verdict is Verdict.TIMED_OUT
    member.committed = member.now
    assert look(scope.lineage).verdict is Verdict.VISIBLE
    asked = [each for each in member.named("find") if "afterClusterTime" in each.get("readConcern", {})]
    assert all(each["readConcern"]["level"] == "majority" for each in asked)
    assert all("maxTimeMS" in each for each in asked)


@pytest.mark.parametrize(("default", "given"), [(1, None), ("majority", 1), ("majority", 2)])
def test_a_write_that_may_be_rolled_back_has_no_position(default: Any, given: Any) -> None:
    """EPOCH-32"""
    with FakeMongod(default_w=default) as member:
        posts = antipode_mongodb.wrap(member.client(), store=STORE)["blog"]["posts"]
        if given is not None:
            posts = posts.with_options(write_concern=WriteConcern(w=given))
        with antipode.scope() as scope:
            posts.insert_one({"v": 1})
            assert not scope.lineage.of_store(STORE)
            assert not scope.lineage.is_complete([STORE])


def test_a_majority_that_did_not_acknowledge_in_time_gives_none(member: FakeMongod) -> None:
    """EPOCH-32"""
    posts = antipode_mongodb.wrap(member.client(), store=STORE)["blog"]["posts"]
    member.concern_error = True
    with antipode.scope() as scope:
        with pytest.raises(WriteConcernError):
            posts.insert_one({"v": 1})
        assert not scope.lineage.of_store(STORE)
        assert not scope.lineage.is_complete([STORE])


def test_a_transaction_has_its_position_when_it_has_committed(member: FakeMongod) -> None:
    """SHIM-11, SCOPE-14"""
    client = antipode_mongodb.wrap(member.client(), store=STORE)
    with antipode.scope() as scope, client.start_session() as session:
        with session.start_transaction():
            client["blog"]["posts"].insert_one({"v": 1}, session=session)
            assert not scope.lineage.of_store(STORE)
            assert not scope.outgoing().is_complete([STORE])
        assert position(scope.lineage).counter == counter_of(member.now)
        assert scope.outgoing().is_complete()
    with antipode.scope() as scope, client.start_session() as session:
        session.start_transaction()
        client["blog"]["posts"].insert_one({"v": 1}, session=session)
        session.abort_transaction()
        assert not scope.lineage
        assert scope.outgoing().is_complete()
    with antipode.scope() as scope, client.start_session() as session:
        with session.start_transaction(write_concern=WriteConcern(w=1)):
            client["blog"]["posts"].insert_one({"v": 1}, session=session)
        assert not scope.lineage.is_complete([STORE])


def test_a_read_is_covered_by_the_committed_time_and_by_nothing_else(member: FakeMongod) -> None:
    """SHIM-13, EPOCH-32: what is read below a majority may be taken back."""
    posts = antipode_mongodb.wrap(member.client(), store=STORE)["blog"]["posts"]
    with antipode.reading() as seen:
        list(posts.with_options(read_concern=ReadConcern("majority")).find())
    assert position(seen.lineage) == Ordered(str(SET_ID), counter_of(member.committed))
    assert seen.lineage.is_complete()
    with antipode.reading() as seen:
        list(posts.find())
    assert not seen.lineage.is_complete([STORE])


def test_another_replica_sets_times_say_nothing(member: FakeMongod) -> None:
    """EPOCH-14"""
    with FakeMongod(set_id=ObjectId("0123456789abcdef01234567")) as other:
        other.now = other.committed = Timestamp(1_900_000_000, 1)
        antipode_mongodb.register(STORE, replicas=[other.url])
        posts = antipode_mongodb.wrap(member.client(), store=STORE, replicas=[other.url])["blog"]["posts"]
        with antipode.scope() as scope:
            posts.insert_one({"v": 1})
        assert look(scope.lineage, 0.5).verdict is Verdict.UNPROVEN


def test_a_server_that_ignores_cluster_times_is_believed_in_none() -> None:
    """SHIM-40: it has sessions, a replica set's name and an operationTime, and answers without waiting."""
    with FakeMongod(honours=False) as pretender, FakeMongod() as real:
        client = antipode_mongodb.wrap(pretender.client(), store=STORE, tombstones=False)
        posts = client["blog"]["posts"]
        with antipode.scope() as scope:
            posts.insert_one({"v": 1})
            [entry] = scope.lineage.of_store(STORE)
            assert not entry.is_position
        real_posts = antipode_mongodb.wrap(real.client(), store="real")["blog"]["posts"]
        with antipode.scope() as scope:
            real_posts.insert_one({"v": 1})
            [real_entry] = scope.lineage.of_store("real")
        assert isinstance(real_entry.version, Ordered)
        moved = antipode.Lineage([antipode.WriteId.position(STORE, str(SET_ID), real_entry.version.counter)])
        answer = look(moved, 0.5)
        assert answer.verdict is Verdict.UNPROVEN
        assert "afterClusterTime" in answer.reason


@pytest.mark.parametrize(
    ("options", "words"),
    [({"sharded": True}, "sharded cluster"), ({"journal": False}, "writeConcernMajorityJournalDefault: true")],
)
def test_a_topology_in_which_times_lie_is_refused(options: Any, words: str) -> None:
    """EPOCH-7, SHIM-3"""
    with FakeMongod(**options) as server:
        with pytest.raises(UnfitStoreError, match=words):
            antipode_mongodb.wrap(server.client(), store=STORE)
        client = antipode_mongodb.wrap(server.client(), store=STORE, on_unfit="unproven")
        with antipode.scope() as scope:
            client["blog"]["posts"].insert_one({"v": 1})
            assert not scope.lineage.is_complete([STORE])


def test_a_missing_right_is_named_with_its_grant(member: FakeMongod) -> None:
    """SHIM-3"""
    denied = {"ok": 0.0, "code": 13, "codeName": "Unauthorized", "errmsg": "not authorized on admin"}
    member.more["replSetGetConfig"] = lambda _: denied
    with pytest.raises(UnfitStoreError, match=r"grantRolesToUser.*clusterMonitor"):
        antipode_mongodb.wrap(member.client(), store=STORE)


def test_a_client_of_the_whole_set_waits_for_the_members_that_it_reads_from(member: FakeMongod) -> None:
    """BAR-22, BAR-25: the members that its read preference may choose, asked again and again."""
    plain = member.client(whole=True)
    posts = antipode_mongodb.wrap(plain, store=STORE)["blog"]["posts"]
    with antipode.scope() as scope:
        posts.insert_one({"v": 1})
        assert position(scope.lineage).counter == counter_of(member.now)
    assert look(scope.lineage, 0.3).verdict is Verdict.TIMED_OUT
    member.committed = member.now
    answer = look(scope.lineage)
    assert answer.verdict is Verdict.VISIBLE
    assert [each.address for each in answer.servers] == [f"mongodb://127.0.0.1:{member.port}"]


def test_the_sets_id_is_asked_again_when_another_primary_was_elected(member: FakeMongod) -> None:
    """EPOCH-2, EPOCH-14"""
    plain = member.client(whole=True, heartbeatFrequencyMS=500)
    posts = antipode_mongodb.wrap(plain, store=STORE)["blog"]["posts"]
    with antipode.scope() as scope:
        posts.insert_one({"v": 1})
        assert position(scope.lineage).epoch == str(SET_ID)
    member.set_id, member.election = ObjectId("0123456789abcdef01234567"), ObjectId("7fffffff0000000000000002")
    deadline = time.monotonic() + 20
    while plain.topology_description.max_election_id != member.election:
        assert time.monotonic() < deadline, "the client does not see the election"
        time.sleep(0.01)
    with antipode.scope() as scope:
        posts.insert_one({"v": 1})
        assert position(scope.lineage).epoch == "0123456789abcdef01234567"
