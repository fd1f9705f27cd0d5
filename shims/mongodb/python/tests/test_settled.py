"""What an operator settles of another replica set's history, by a scripted server (spec EPOCH-24)."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import antipode
import antipode_mongodb
import pytest
from antipode import ConfigurationError, Lineage, Verdict
from antipode._facade.configuration import configure
from antipode._model.write_id import Ordered, WriteId
from antipode.shim.administration import Administration, EpochRecord
from antipode.testing import isolated
from antipode_mongodb import MongoShim
from antipode_mongodb.flavour import counter_of
from bson.timestamp import Timestamp
from fake_mongod import SET_ID, FakeMongod
from typer.testing import CliRunner

STORE = "blog-posts"
OLD = "0123456789abcdef01234567"
END = counter_of(Timestamp(1_790_000_000, 7))


@pytest.fixture(autouse=True)
def alone() -> Iterator[None]:
    with isolated():
        configure(replica_out_after=20.0)
        yield


class Marks:
    """The collection of marks of a scripted server; `committed` is what a majority has got."""

    def __init__(self, server: FakeMongod) -> None:
        self.server = server
        self.all: dict[str, dict[str, Any]] = {}
        self.committed: dict[str, dict[str, Any]] = {}
        self.concerns: list[dict[str, Any]] = []
        server.more = {"find": self._find, "update": self._update}

    def _find(self, command: dict[str, Any]) -> dict[str, Any]:
        if command["find"] != "epochs":
            return self.server._find(command)
        marks = self.committed if command.get("readConcern", {}).get("level") == "majority" else self.all
        wanted = command["filter"].get("_id", {}).get("$in", list(marks))
        found = [dict(marks[each]) for each in wanted if each in marks]
        return {"ok": 1.0, "cursor": {"id": 0, "ns": "antipode.epochs", "firstBatch": found}}

    def _update(self, command: dict[str, Any]) -> dict[str, Any]:
        if not self.server.primary:
            return {"ok": 0.0, "code": 10107, "codeName": "NotWritablePrimary", "errmsg": "not primary"}
        assert (command["$db"], command["update"]) == ("antipode", "epochs")
        [update] = command["updates"]
        assert update["upsert"]
        name, number = update["q"]["_id"], update["u"]["$max"]["n"]
        mark = self.all.setdefault(name, {"_id": name, "n": number})
        mark["n"] = max(mark["n"], number)
        self.concerns.append(command["writeConcern"])
        return {"ok": 1.0, "n": 1, "nModified": 1}


@pytest.fixture
def marks() -> Iterator[Marks]:
    with FakeMongod() as server:
        yield Marks(server)


def entry(counter: int, epoch: str = OLD) -> Lineage:
    return Lineage([WriteId(STORE, b"", Ordered(epoch, counter))])


def look(lineage: Lineage) -> Any:
    result = antipode.barrier(lineage, timeout=5.0, stores=[STORE], on_timeout="proceed", on_unproven="proceed")
    return result.stores[STORE]


def test_an_epoch_is_settled_up_to_a_position(marks: Marks) -> None:
    """EPOCH-24: what lies beyond it is judged as if there were no mark, and so is one that may be taken back."""
    assert isinstance(MongoShim, Administration)
    antipode_mongodb.wrap(marks.server.client(), store=STORE)
    assert look(entry(END)).verdict is Verdict.UNPROVEN
    MongoShim.settle(marks.server.url, OLD, END)
    assert look(entry(END)).verdict is Verdict.UNPROVEN  # a majority has not got it
    marks.committed = marks.all
    assert look(entry(END)).verdict is Verdict.VISIBLE
    assert look(entry(END - 1)).verdict is Verdict.VISIBLE
    beyond = look(entry(END + 1))
    assert beyond.verdict is Verdict.UNPROVEN
    assert f"of which {END} is settled and {END + 1} wanted" in beyond.reason
    assert look(entry(END, "f" * 24)).verdict is Verdict.UNPROVEN
    MongoShim.settle(marks.server.url, OLD, END - 5)  # a mark only ever grows
    assert look(entry(END)).verdict is Verdict.VISIBLE
    assert {each["w"] for each in marks.concerns} == {"majority"}


def test_both_histories_in_one_lineage(marks: Marks) -> None:
    """EPOCH-9, EPOCH-14: the settled one releases nothing of the set's own."""
    antipode_mongodb.wrap(marks.server.client(), store=STORE)
    MongoShim.settle(marks.server.url, OLD, END)
    marks.committed = marks.all
    ahead = counter_of(marks.server.now) + 1
    marks.server.now = Timestamp(marks.server.now.time, marks.server.now.inc + 1)
    both = entry(END) | entry(ahead, str(SET_ID))
    result = antipode.barrier(both, timeout=0.3, stores=[STORE], on_timeout="proceed", on_unproven="proceed")
    assert result.stores[STORE].verdict is Verdict.TIMED_OUT
    marks.server.committed = marks.server.now
    assert look(both).verdict is Verdict.VISIBLE


@pytest.mark.parametrize(
    ("epoch", "position", "words"),
    [
        (OLD, None, "--position N"),
        (OLD, 2**64 - 1, "--position N"),
        ("1", 5, "24 hexadecimal digits"),
        (str(SET_ID), 5, "is written in this epoch now"),
    ],
)
def test_what_cannot_be_settled(marks: Marks, epoch: str, position: int | None, words: str) -> None:
    """EPOCH-24: without an end a set that is written on would pass unseen."""
    with pytest.raises(ConfigurationError, match=words):
        MongoShim.settle(marks.server.url, epoch, position)
    assert not marks.all


def test_at_a_secondary_nothing_is_settled(marks: Marks) -> None:
    """EPOCH-24"""
    marks.server.primary = False
    with pytest.raises(ConfigurationError, match="settle an epoch at the primary"):
        MongoShim.settle(marks.server.url, OLD, END)


def test_a_login_that_may_not_read_marks_is_told_so(marks: Marks) -> None:
    """SHIM-3"""
    antipode_mongodb.wrap(marks.server.client(), store=STORE)
    denied = {"ok": 0.0, "code": 13, "codeName": "Unauthorized", "errmsg": "not authorized on antipode"}
    plain = marks._find
    marks.server.more["find"] = lambda command: denied if command["find"] == "epochs" else plain(command)
    answer = look(entry(END))
    assert answer.verdict is Verdict.UNPROVEN
    assert 'role: "read", db: "antipode"' in answer.reason


def test_the_command_settles_and_lists(marks: Marks) -> None:
    """EPOCH-24"""
    from antipode.cli.app import app

    words = ["epoch", "settle", STORE, OLD, "--at", marks.server.url, "--yes"]
    refused = CliRunner().invoke(app, [*words, "--fenced"])
    assert refused.exit_code != 0
    assert "--position N" in refused.output
    done = CliRunner().invoke(app, [*words, "--position", str(END)])
    assert done.exit_code == 0, done.output
    marks.committed = marks.all
    assert EpochRecord(OLD, END, detail="settled by hand") in MongoShim.epochs(marks.server.url)
    listed = CliRunner().invoke(app, ["epoch", "list", STORE, "--at", marks.server.url])
    assert f"up to {END}" in listed.output
    assert "settled by hand" in listed.output
