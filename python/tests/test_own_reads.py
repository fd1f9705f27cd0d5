"""Stale reads that reads of the shim's own confirm, where what came to the application is not known (spec REC-22)."""

from __future__ import annotations

import json
import threading
import time
from collections.abc import Callable, Generator, Iterator
from pathlib import Path
from typing import Any

import antipode
import pytest
from antipode import Lineage, WriteId, digests, following, records, repeats
from antipode.followed_reads import Again, FollowedRead, followed_read
from antipode.testing import isolated
from antipode.testing.recorded import Recorded
from antipode.verdict import NOT_YET, VISIBLE, not_yet, unproven
from fakes import Answer, Target, always, down, fake_store

OLD, NEW = [("a", 1)], [("a", 1), ("b", 2)]


@pytest.fixture
def recorded(tmp_path: Path) -> Iterator[Recorded]:
    with isolated():
        yield Recorded(tmp_path / "records")


class Server:
    """A server that has not got the write until `apply`, and what own reads of it return, one after the other."""

    def __init__(self, *results: Any, name: str = "posts") -> None:
        self.results = list(results)
        self.reads: list[int] = []
        self.closed = 0
        self._applied = threading.Event()
        self.may_read = threading.Event()
        self.may_read.set()
        self.store = fake_store(name, Target(name, self._answer))

    def _answer(self, ids: Any, server: Any) -> Any:
        return [VISIBLE if self._applied.is_set() else NOT_YET for _ in ids]

    def again(self, times: int) -> Generator[Any, None, None]:
        self.reads.append(times)
        try:
            for _ in range(times):
                assert self.may_read.wait(20)
                if not self.results:
                    return
                result = self.results.pop(0)
                if isinstance(result, Exception):
                    raise result
                yield iter(result)
        finally:
            self.closed += 1

    def apply(self) -> None:
        self._applied.set()


def read(server: Server, again: Again | None = None) -> FollowedRead:
    with antipode.scope(Lineage([WriteId.position(server.store.name, "e", 1)])):
        followed = followed_read(server.store)
        assert followed is not None
        followed.over(server.store.servers()[0], again=again or server.again)
        return followed


def until(holds: Callable[[], Any], seconds: float = 10) -> None:
    deadline = time.monotonic() + seconds
    while not holds():
        assert time.monotonic() < deadline
        time.sleep(0.002)


def kinds(recorded: Recorded) -> list[str]:
    recorded.ended()
    return [line["kind"] for line in recorded.lines("behind", "stale")]


def test_what_changed_when_the_write_came_is_stale(recorded: Recorded) -> None:
    """REC-22: one read as soon as something is missing, two when it is there; rows in any order."""
    server = Server(OLD, NEW, NEW[::-1])
    followed = read(server)
    until(lambda: followed._first is not None)
    server.apply()
    [record] = recorded.findings()
    assert (record["kind"], record["confirmed"]) == ("stale", "repeat")
    assert server.reads == [1, 2]
    assert server.closed == 2
    assert followed._first is None
    assert followed._again is None
    assert "'b'" not in json.dumps(recorded.lines())


@pytest.mark.parametrize(
    "results",
    [
        [OLD, OLD, OLD],
        [NEW, NEW[::-1], NEW],
        [OLD, NEW, OLD],
        [OLD, NEW, [("a", 1), ("b", 3)]],
        [OLD, OLD + OLD, OLD],
        [OSError("refused")],
        [OLD, OSError("refused")],
        [OLD, NEW, OSError("refused")],
        [OLD, NEW],
        [[object()]],
        [OLD, [object()], [object()]],
        [[("x" * (digests.MOST_OCTETS + 1),)], OLD, OLD],
        [],
    ],
    ids=[
        "the same",
        "another order",
        "back again",
        "differs by itself",
        "twice",
        "refused at first",
        "refused then",
        "refused at last",
        "once too few",
        "not comparable",
        "not comparable then",
        "too large",
        "nothing",
    ],
)
def test_all_else_is_behind(recorded: Recorded, results: list[Any]) -> None:
    """REC-22, REC-14: an error, a result that changes by itself, one that cannot be compared."""
    server = Server(*results)
    read(server)
    until(lambda: server.closed and repeats.nothing_waits())
    server.apply()
    assert kinds(recorded) == ["behind"]


def test_where_the_first_read_was_not_done_in_time_it_is_behind(recorded: Recorded) -> None:
    """REC-22: it could have come after the write as well."""
    server = Server(OLD, NEW, NEW)
    server.may_read.clear()
    read(server)
    until(lambda: server.reads)
    server.apply()
    [record] = recorded.findings()
    server.may_read.set()
    assert record["kind"] == "behind"
    recorded.ended()
    assert server.reads == [1]


def test_a_first_read_that_nobody_waits_for_is_not_sent(recorded: Recorded) -> None:
    """REC-22: behind one that takes long."""
    slow, server = Server(OLD, name="slow"), Server(OLD, NEW, NEW)
    slow.may_read.clear()
    read(slow)
    until(lambda: slow.reads)
    read(server)
    until(following.all_looked_at)
    server.apply()
    recorded.findings()
    slow.may_read.set()
    slow.apply()
    assert kinds(recorded) == ["behind", "behind"]
    assert server.reads == []


def test_the_engine_does_not_wait_for_it(recorded: Recorded) -> None:
    """REC-22, REC-13: while a read of our own hangs, servers are asked on."""
    server = Server(OLD)
    server.may_read.clear()
    read(server)
    until(lambda: server.reads)
    another = Server(OLD, name="another")
    another.apply()
    read(another)
    until(lambda: recorded.count("followed_reads") == 2 and len(following._followed) == 1)
    server.apply()
    recorded.findings()
    server.may_read.set()


def test_where_too_many_wait_it_is_behind(recorded: Recorded, monkeypatch: pytest.MonkeyPatch) -> None:
    """REC-14, REC-22: others are dropped."""
    monkeypatch.setattr(repeats, "later", lambda differs, over: False)
    server = Server(OLD, NEW, NEW)
    read(server)
    until(following.all_looked_at)
    server.apply()
    assert kinds(recorded) == ["behind"]
    assert server.reads == []


def test_without_repeat_reads_nothing_is_sent(recorded: Recorded) -> None:
    """REC-14."""
    antipode.configure(repeat_reads=False)
    server = Server(OLD, NEW, NEW)
    read(server)
    until(following.all_looked_at)
    server.apply()
    assert kinds(recorded) == ["behind"]
    assert server.reads == []


@pytest.mark.parametrize(
    "answer",
    [
        always(VISIBLE),
        always(unproven("ended")),
        always(not_yet("?", unknown_epoch=True)),
        always(not_yet("recovering", unanswered=True)),
        down,
    ],
    ids=["visible", "unproven", "unknown epoch", "put off", "down"],
)
def test_nothing_is_read_where_no_server_said_not_yet(
    recorded: Recorded, answer: Answer, monkeypatch: pytest.MonkeyPatch
) -> None:
    """REC-22, REC-13."""
    monkeypatch.setattr(following, "FOLLOW_S", 0.2)
    server = Server(OLD, NEW, NEW)
    server.store.servers()[0].target.answer = answer
    read(server)
    assert kinds(recorded) == []
    assert server.reads == []


@pytest.mark.parametrize("when", ["before the write", "at the first read", "at the last reads"])
def test_at_the_end_of_the_process_it_is_behind(recorded: Recorded, when: str) -> None:
    """REC-15, REC-22: what was not confirmed by then; and the end does not wait for it."""
    server = Server(OLD, NEW, NEW)
    if when == "at the first read":
        server.may_read.clear()
    followed = read(server)
    until(lambda: server.reads if when == "at the first read" else followed._first is not None)
    if when == "at the last reads":
        server.may_read.clear()
        server.apply()
        until(lambda: len(server.reads) == 2)
    began = time.monotonic()
    records.end()
    assert time.monotonic() - began < 1.5
    [record] = recorded.findings()
    server.may_read.set()
    assert record["kind"] == "behind"


def test_what_the_shim_gives_never_raises(recorded: Recorded) -> None:
    """REC-13, REC-22: not even where it is no generator."""
    server = Server(OLD)

    def broken(times: int) -> Any:
        server.reads.append(times)
        raise RuntimeError("broken")

    read(server, broken)
    until(lambda: server.reads and repeats.nothing_waits())
    server.apply()
    assert kinds(recorded) == ["behind"]


def test_rows_are_a_multiset() -> None:
    """REC-23."""
    assert digests.digest_of_rows(OLD + NEW) == digests.digest_of_rows(NEW + OLD)
    assert digests.digest_of_rows(OLD) != digests.digest_of_rows(OLD + OLD)
    assert digests.digest_of_rows([("a", None)]) != digests.digest_of_rows([(None, "a")])
    assert digests.digest_of_rows([]) != digests.digest_of_rows([()])
    assert digests.digest_of_rows([object()]) is None


def test_what_has_begun_is_ended_however_many_others_would_begin(recorded: Recorded) -> None:
    begun = [Server(OLD, NEW, NEW, name=f"posts{number}") for number in range(10)]
    for server in begun:
        read(server)
    until(lambda: all(server.closed for server in begun))
    until(repeats.nothing_waits)
    busy = Server()
    busy.may_read.clear()
    read(busy)
    until(lambda: busy.reads)
    others = [Server(OLD, name=f"others{number}") for number in range(repeats.MOST_WAITING + 20)]
    for server in others:
        read(server)
    until(following.all_looked_at)
    for server in begun:
        server.apply()
    until(lambda: len(following._followed) == 1 + len(others))
    busy.may_read.set()
    until(lambda: len(recorded.lines("stale")) == len(begun))
    assert not recorded.lines("behind")
