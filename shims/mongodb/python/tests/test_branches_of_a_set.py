"""Branches whose rows are in a replica set, by a scripted server: what is asked of it (spec BRANCH-24, BRANCH-25)."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import antipode
import antipode_mongodb
import pytest
from antipode import Lineage
from antipode.administration import Level
from antipode.branch_ids import BRANCHES, BranchId
from antipode.branch_table import CLOSED
from antipode.errors import ConfigurationError, UnfitStoreError
from antipode.settings import configure
from antipode.testing import isolated
from antipode_mongodb import MongoShim
from bson.timestamp import Timestamp
from fake_mongod import FakeMongod
from pymongo.errors import NotPrimaryError, WriteConcernError

STORE = "blog-posts"
INDEXES = [
    {"v": 2, "key": {"_id": 1}, "name": "_id_"},
    {"v": 2, "key": {"x": 1}, "name": "x_1", "expireAfterSeconds": 0},
]
REFUSED = {"ok": 0.0, "code": 10107, "codeName": "NotWritablePrimary", "errmsg": "not primary"}
DENIED = {"ok": 0.0, "code": 13, "codeName": "Unauthorized", "errmsg": "not authorized on antipode"}


@pytest.fixture(autouse=True)
def alone() -> Iterator[None]:
    with isolated():
        configure(replica_out_after=20.0)
        yield


class Rows:
    """The collection of a scripted server: rows, of which a majority has got those that `committed` names."""

    def __init__(self, server: FakeMongod) -> None:
        self.server = server
        self.all: dict[str, dict[str, Any]] = {}
        self.committed: set[str] = set()
        self.majority = True
        self.refuse = 0
        self.raced = 0
        """So many closes find that another one of the same branch has come first, in the same moment."""
        server.more = {"listIndexes": self._indexes, "find": self._find, "insert": self._insert, "update": self._update}

    def _indexes(self, command: dict[str, Any]) -> dict[str, Any]:
        return {"ok": 1.0, "cursor": {"id": 0, "ns": "antipode.branches", "firstBatch": INDEXES}}

    def _find(self, command: dict[str, Any]) -> dict[str, Any]:
        if command["find"] != "branches":
            return self.server._find(command)
        wanted = command["filter"].get("_id", {}).get("$in", [])
        level = command.get("readConcern", {}).get("level")
        seen = [self.all[each] for each in wanted if each in self.all]
        if level == "majority":
            seen = [row for row in seen if row["_id"] in self.committed]
        return {"ok": 1.0, "cursor": {"id": 0, "ns": "antipode.branches", "firstBatch": seen}}

    def _insert(self, command: dict[str, Any]) -> dict[str, Any]:
        if self.refuse:
            self.refuse -= 1
            return REFUSED
        [row] = command["documents"]
        if self.raced:
            self.raced -= 1
            self.all.setdefault(row["_id"], {"_id": row["_id"], "l": "1"})
        if row["_id"] in self.all:
            return {"ok": 1.0, "n": 0, "writeErrors": [{"index": 0, "code": 11000, "errmsg": "duplicate key"}]}
        self.all[row["_id"]] = row
        return self._written(command, row["_id"], {"ok": 1.0, "n": 1})

    def _update(self, command: dict[str, Any]) -> dict[str, Any]:
        [update] = command["updates"]
        name = update["q"]["_id"]
        if name in self.all:
            return self._written(command, name, {"ok": 1.0, "n": 1, "nModified": 0})
        return {"ok": 1.0, "n": 0, "nModified": 0}

    def _written(self, command: dict[str, Any], name: str, reply: dict[str, Any]) -> dict[str, Any]:
        if self.majority:
            self.committed.add(name)
        elif command["writeConcern"].get("w") == "majority":
            reply["writeConcernError"] = {"code": 64, "codeName": "WriteConcernFailed", "errmsg": "timed out"}
        return reply


@pytest.fixture
def rows() -> Iterator[Rows]:
    with FakeMongod() as server:
        yield Rows(server)


def hand_over() -> tuple[str, Lineage]:
    with antipode.scope() as scope:
        with antipode.branch(within=30.0):
            task = antipode.serialize()
        return task, scope.lineage


def verdict(lineage: Lineage, timeout: float = 0.2) -> str:
    CLOSED._held.clear()
    result = antipode.barrier(lineage, timeout=timeout, on_timeout="proceed", on_unproven="proceed")
    return str(result.stores[BRANCHES].verdict) if BRANCHES in result.stores else "resolved"


def test_a_row_counts_when_a_majority_has_it(rows: Rows) -> None:
    """BRANCH-25: a close that an election may take back is told, may be called again, and passes nowhere before."""
    client = antipode_mongodb.wrap(rows.server.client(whole=True, w=1, readConcernLevel="local"), store=STORE)
    antipode.configure(branches=client)
    task, lineage = hand_over()
    rows.majority = False
    with antipode.message_scope(task):
        for _ in range(2):
            with pytest.raises(WriteConcernError):
                antipode.close()
    assert verdict(lineage) == "timed_out"
    rows.majority = True
    with antipode.message_scope(task):
        antipode.close()
    assert verdict(lineage, 10.0) == "resolved"
    closes = [each for each in rows.server.named("insert", "update") if "check" not in str(each)]
    assert all(each["writeConcern"]["w"] == "majority" for each in closes)
    assert all(each["writeConcern"]["j"] is True for each in closes)  # whatever the set's configuration says
    assert all(0 < each["writeConcern"]["wtimeout"] < 3000 for each in closes)


def test_closes_side_by_side_each_wait_for_a_majority(rows: Rows) -> None:
    """BRANCH-25: the client drops the concern's error where a key is there already; the row may be taken back."""
    client = antipode_mongodb.wrap(rows.server.client(whole=True), store=STORE)
    antipode.configure(branches=client)
    task, lineage = hand_over()
    rows.majority, rows.raced = False, 1
    with antipode.message_scope(task), pytest.raises(WriteConcernError):
        antipode.close()
    assert verdict(lineage) == "timed_out"
    rows.majority, rows.raced = True, 1
    with antipode.message_scope(task):
        antipode.close()
    assert verdict(lineage, 10.0) == "resolved"


def test_an_election_in_between_is_the_clients_to_find_out(rows: Rows) -> None:
    """BRANCH-10"""
    antipode.configure(branches=antipode_mongodb.wrap(rows.server.client(whole=True), store=STORE))
    task, lineage = hand_over()
    rows.refuse = 1
    with antipode.message_scope(task):
        antipode.close()
    assert verdict(lineage, 10.0) == "resolved"
    task, lineage = hand_over()
    rows.refuse = 100
    with antipode.message_scope(task), pytest.raises(NotPrimaryError):
        antipode.close()
    assert verdict(lineage) == "timed_out"


def test_a_member_that_is_no_primary_closes_nothing(rows: Rows) -> None:
    """BRANCH-10, BRANCH-24"""
    rows.refuse = 100
    client = antipode_mongodb.wrap(rows.server.client(), store=STORE)
    antipode.configure(branches=client)  # at a secondary only the primary knows
    task, _ = hand_over()
    with antipode.message_scope(task), pytest.raises(ConfigurationError, match="wrap a client of that"):
        antipode.close()


def test_a_missing_right_is_told_at_once_with_what_gives_it(rows: Rows) -> None:
    """BRANCH-24, BRANCH-18; and doctor says so, too."""
    client = antipode_mongodb.wrap(rows.server.client(whole=True), store=STORE)
    rows.server.more["update"] = lambda _: DENIED
    with pytest.raises(UnfitStoreError, match=r"antipode init blog-posts .* --user USER --set branches=yes"):
        antipode.configure(branches=client)
    rows.server.more["listIndexes"] = lambda _: DENIED
    result = antipode.barrier(
        Lineage([BranchId.new(STORE, 30).write_id]), timeout=10.0, on_timeout="proceed", on_unproven="proceed"
    )
    assert str(result.stores[BRANCHES].verdict) == "unproven"
    assert "--set branches=yes" in result.stores[BRANCHES].reason
    [found] = [each for each in MongoShim.diagnose(rows.server.url) if "antipode.branches" in each.what]
    assert found.level is Level.OK  # most logins of most stores have no need of it
    assert "--set branches=yes" in found.cure


def test_what_a_task_wrote_is_waited_for_behind_its_close(rows: Rows) -> None:
    """BRANCH-12: the row is there, and the position of the write is not."""
    client = antipode_mongodb.wrap(rows.server.client(whole=True, w="majority"), store=STORE)
    antipode.configure(branches=client)
    task, lineage = hand_over()
    with antipode.message_scope(task):
        client["blog"]["posts"].insert_one({"v": 1})
        antipode.close()
    CLOSED._held.clear()
    result = antipode.barrier(lineage, timeout=0.3, on_timeout="proceed", on_unproven="proceed")
    assert BRANCHES not in result.stores
    assert str(result.stores[STORE].verdict) == "timed_out"
    rows.server.committed = Timestamp(rows.server.now.time, rows.server.now.inc)
    assert antipode.barrier(lineage, timeout=10.0).complete


AWAY = {"ok": 0.0, "code": 1, "codeName": "InternalError", "errmsg": "failed to connect to `host=127.0.0.1`: refused"}
STARTING = {"ok": 0.0, "code": 1, "codeName": "InternalError", "errmsg": "FATAL: the database system is starting up"}
BUSY = {"ok": 0.0, "code": 1, "codeName": "InternalError", "errmsg": "canceling statement"}
MISSING = {"ok": 0.0, "code": 26, "codeName": "NamespaceNotFound", "errmsg": "ns does not exist"}


@pytest.mark.parametrize("answer", [AWAY, STARTING, BUSY], ids=["away", "starting", "busy"])
@pytest.mark.parametrize("command", ["listIndexes", "find", "update", "delete"])
def test_a_server_that_does_not_answer_now_is_no_error(rows: Rows, command: str, answer: dict[str, Any]) -> None:
    """BRANCH-24: FerretDB answers in words while its PostgreSQL starts anew."""
    client = antipode_mongodb.wrap(rows.server.client(), store=STORE)
    asked = rows.server.more.get(command, rows.server.written)
    rows.server.more[command] = lambda sent: answer if sent["$db"] == "antipode" else asked(sent)
    rows.server.more["listDatabases"] = lambda _: {"ok": 1.0, "databases": []}
    antipode.configure(branches=client)
    found = [each for each in MongoShim.diagnose(rows.server.url) if "no collection" in each.what]
    assert not found  # nobody can tell


def test_what_could_not_be_asked_is_asked_again(rows: Rows) -> None:
    """BRANCH-18, BRANCH-24: a collection that is missing is told at once, whatever was answered before."""
    antipode_mongodb.wrap(rows.server.client(), store=STORE)
    lineage = Lineage([BranchId.new(STORE, 30).write_id])
    indexes = rows.server.more["listIndexes"]
    rows.server.more["listIndexes"] = lambda _: AWAY
    assert verdict(lineage) == "timed_out"
    rows.server.more["listIndexes"] = lambda _: BUSY
    assert verdict(lineage) == "timed_out"
    rows.server.more["listIndexes"] = lambda _: {"ok": 0.0, "code": 8, "codeName": "UnknownError", "errmsg": "some"}
    assert verdict(lineage, 10.0) == "unproven"
    rows.server.more["listIndexes"] = lambda _: MISSING
    assert verdict(lineage, 10.0) == "unproven"
    rows.server.more["listIndexes"] = indexes
    assert verdict(lineage) == "timed_out"
