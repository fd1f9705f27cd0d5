"""Writes in flight: what leaves meanwhile is marked, and nothing is lost (SCOPE-14 to SCOPE-23)."""

from __future__ import annotations

import asyncio
import itertools
import logging
import threading
from concurrent.futures import ThreadPoolExecutor
from typing import Any

import antipode
import pytest
from antipode import Lineage, PendingWriteError, WriteId
from antipode._engine.store_servers import RegionStore
from antipode._model.write_id import Ordered
from antipode._scope.context import activate
from antipode._scope.pending_write import PendingWrite
from antipode._scope.scope import Scope, open_scope
from antipode._store.store import StoreOptions
from fakes import FakeShim
from hypothesis import given
from hypothesis import strategies as st
from scopes import Counts, at, positions, text


@pytest.fixture
def counts(monkeypatch: pytest.MonkeyPatch) -> Counts:
    return Counts(monkeypatch)


def test_a_write_in_flight_marks_what_leaves_and_not_the_scope() -> None:
    """SCOPE-14, SCOPE-16, SCOPE-20."""
    store = positions()
    with antipode.scope(Lineage([at(1, "acl")])) as scope:
        with store.writing() as write:
            assert antipode.serialize() == "1~acl..e.1~_.i.posts"
            assert scope.additions().serialize() == "1~_.i.posts"
            assert text() == "1~acl..e.1~_.i.posts"
            assert not antipode.barrier(scope.lineage, timeout=0, on_timeout="proceed", on_unproven="proceed").complete
            assert scope.recorded_lineage.serialize() == "1~acl..e.1"
            write.record(Ordered("e", 7))
        assert antipode.serialize() == "1~acl..e.1~posts..e.7"


def test_a_write_is_pending_until_its_identifier_is_in_the_scope(monkeypatch: pytest.MonkeyPatch) -> None:
    """SCOPE-14: no copy that leaves meanwhile lacks the write and looks complete."""
    store = positions()
    left: list[Lineage] = []
    including, end = Lineage.including, Scope.end

    def slow_including(self: Lineage, *ids: WriteId) -> Lineage:
        left.append(scope.outgoing())
        result = including(self, *ids)
        left.append(scope.outgoing())
        return result

    def slow_end(self: Scope, write: PendingWrite) -> None:
        left.append(self.outgoing())
        end(self, write)

    monkeypatch.setattr(Lineage, "including", slow_including)
    monkeypatch.setattr(Scope, "end", slow_end)
    with antipode.scope() as scope:
        with store.writing() as write:
            write.record(Ordered("e", 7))
        with store.writing() as write:
            write.record_upper_bound(Ordered("e", 8))
    assert len(left) >= 4
    assert all("posts" in copy.incomplete for copy in left)


def test_whoever_commits_waits_for_it_too(counts: Counts) -> None:
    """SCOPE-24: once a scope; outside any scope nobody loses anything by it."""
    store = positions()
    with antipode.scope() as scope:
        write = store.begin()
        write.join_committer()
        assert len(scope.pending) == 1
    write.join_committer()
    with antipode.scope() as committing:
        write.join_committer()
        write.join_committer()
        assert len(committing.pending) == 1
        write.record_position(("e", 7))
        assert committing.lineage == Lineage([at(7)])
    assert counts.of("antipode.write.lost", reason="orphan", store="posts") == 0


@given(
    st.lists(
        st.tuples(st.sampled_from(["record", "merge"]), st.sampled_from("ef"), st.integers(0, 9), st.booleans()),
        max_size=12,
    )
)
def test_the_cheap_way_to_record_a_position_is_the_same(steps: list[tuple[str, str, int, bool]]) -> None:
    """LIN-28 too: what is implausible for one is so for the other."""
    results = []
    for cheap in (False, True):
        store = positions()
        with antipode.scope() as scope:
            for what, epoch, counter, interrupted in steps:
                if what == "merge":
                    scope.merge(Lineage([WriteId.position("posts", epoch, counter)]))
                    continue
                with store.writing() as write:
                    if interrupted:
                        scope.merge(Lineage([WriteId.position("other", epoch, counter)]))
                    (write.record_position if cheap else write.record)(Ordered(epoch, counter))
            results.append((scope.lineage.serialize(), scope.gaps, scope.pending))
    assert results[0] == results[1]


@given(
    st.lists(
        st.tuples(
            st.sampled_from(["begin", "record", "record", "abandon", "look", "merge", "mark", "remove"]),
            st.sampled_from("ef"),
            st.integers(0, 9),
        ),
        max_size=25,
    )
)
def test_the_cheap_way_is_the_same_with_writes_in_parallel_and_whoever_looks(
    steps: list[tuple[str, str, int]],
) -> None:
    """SCOPE-14, LIN-28: several writes of one scope are in flight, and what it holds is looked at in between."""
    results: list[Any] = []
    for cheap in (False, True):
        store, open_writes = positions(), []
        seen: list[Any] = []
        with antipode.scope() as scope:
            for what, epoch, counter in steps:
                if what == "begin":
                    open_writes.append(store.begin())
                elif what in {"record", "abandon"} and open_writes:
                    write = open_writes.pop(counter % len(open_writes))
                    if what == "abandon":
                        write.abandon()
                    else:
                        (write.record_position if cheap else write.record)(Ordered(epoch, counter))
                elif what == "look":
                    seen.append((scope.lineage.serialize(), scope.additions().serialize(), len(scope.pending)))
                elif what == "merge":
                    scope.merge(Lineage([WriteId.position("other", epoch, counter)]))
                elif what == "mark":
                    scope.mark_incomplete("rights", "posts")
                elif what == "remove":
                    seen.append(scope.remove(WriteId.position("posts", epoch, counter)))
            results.append((seen, scope.lineage.serialize(), scope.gaps, len(scope.pending)))
    assert results[0] == results[1]


def test_threads_of_one_scope_lose_nothing() -> None:
    """SCOPE-14: whoever looks while no write is in flight sees every write that has ended."""
    store, counters = positions(), itertools.count(1)
    with antipode.scope() as scope:

        def work() -> None:
            for _ in range(300):
                write = store.begin()
                mine = next(counters)
                write.record_position(Ordered("e", mine))
                assert at(mine) in scope.lineage

        with ThreadPoolExecutor(4) as pool:
            for future in [pool.submit(antipode.carry(work)) for _ in range(4)]:
                future.result(60)
        assert not scope.pending


def test_a_rollback_leaves_nothing() -> None:
    """SCOPE-17."""
    with antipode.scope():
        with positions().writing() as write:
            write.abandon()
        assert antipode.serialize() == "1"


def test_an_unknown_outcome_stays_pending_for_the_life_of_the_scope() -> None:
    """SCOPE-17: nobody knows whether a write happened that ended in an error."""
    store = positions()
    with antipode.scope() as scope:
        with pytest.raises(TimeoutError):
            with store.writing():
                raise TimeoutError("no answer")
        assert antipode.serialize() == "1~_.i.posts"
        with store.writing() as write:
            write.record(Ordered("e", 9))
        assert antipode.serialize() == "1~posts..e.9~_.i.posts"
        assert len(scope.pending) == 1
        assert scope.published_before_commit() == ()
        with antipode.detached_scope():
            assert text() == "1~posts..e.9~_.i.posts"


def test_a_write_without_a_version_is_incomplete() -> None:
    """LIN-17."""
    store = positions()
    with antipode.scope() as scope:
        with store.writing():
            pass
        with store.writing() as write:
            write.record_incomplete("rights", "GRANT …")
        assert text() == "1~_.i.posts"
        assert [gap.reason for gap in scope.gaps] == ["pending", "rights"]


def test_published_before_commit(counts: Counts, caplog: pytest.LogCaptureFixture) -> None:
    """SCOPE-18, SCOPE-19: the same task's open write is the finding; `on_pending` decides."""
    store = positions()
    with antipode.scope():
        with store.writing() as write:
            with caplog.at_level(logging.WARNING, "antipode"):
                assert antipode.serialize() == "1~_.i.posts"
                assert not caplog.records
                antipode.configure(on_pending="warn")
                assert antipode.serialize() == "1~_.i.posts"
            assert "before the commit of posts" in caplog.text
            assert "test_pending.py:" in caplog.text
            antipode.configure(on_pending="raise")
            with pytest.raises(PendingWriteError, match=r"before the commit of posts"):
                antipode.serialize()
            write.record(Ordered("e", 1))
        assert antipode.serialize() == "1~posts..e.1"
    assert counts.of("antipode.finding.count", kind="published_before_commit") == 3


async def test_a_concurrent_write_is_no_violation(counts: Counts) -> None:
    """SCOPE-18: another task's open write marks the copy, and is no finding."""
    antipode.configure(on_pending="raise")
    store = positions()
    begun, commit = asyncio.Event(), asyncio.Event()

    async def writer() -> None:
        with store.writing() as write:
            begun.set()
            await commit.wait()
            write.record(Ordered("e", 3))

    with antipode.scope():
        writing = asyncio.create_task(writer())
        await begun.wait()
        assert antipode.serialize() == "1~_.i.posts"
        commit.set()
        await writing
        assert antipode.serialize() == "1~posts..e.3"
    assert counts.of("antipode.finding.count", kind="published_before_commit") == 0


def test_a_concurrent_write_of_another_thread_is_no_violation() -> None:
    antipode.configure(on_pending="raise")
    store = positions()
    begun, commit = threading.Event(), threading.Event()

    def writer() -> None:
        with store.writing() as write:
            begun.set()
            assert commit.wait(30)
            write.record(Ordered("e", 3))

    with antipode.scope():
        thread = threading.Thread(target=antipode.carry(writer))
        thread.start()
        assert begun.wait(30)
        assert antipode.serialize() == "1~_.i.posts"
        commit.set()
        thread.join(30)
        assert antipode.serialize() == "1~posts..e.3"


def test_writes_after_the_header_has_left_are_late(counts: Counts) -> None:
    """PROP-16."""
    with open_scope(kind="request") as scope:
        scope.append(at(1))
        scope.sent = True
        scope.append(at(2))
    assert scope.lineage.serialize() == "1~posts..e.2"
    assert counts.of("antipode.write.late", store="other") == 1


# What cannot be true


def test_an_impossible_position_is_dropped_and_its_store_marked(
    counts: Counts, caplog: pytest.LogCaptureFixture
) -> None:
    """LIN-28: the lineage of the time of sending cannot hold more than the write then got."""
    store = positions()
    with antipode.scope(Lineage([at(2**64 - 1), at(5, "acl")])) as scope:
        with caplog.at_level(logging.WARNING, "antipode"), store.writing() as write:
            write.record(Ordered("e", 57))
        assert text() == "1~acl..e.5~posts..e.57~_.i.posts"
        assert [gap.reason for gap in scope.gaps] == ["implausible"]
    assert counts.of("antipode.lineage.dropped", reason="implausible") == 1
    assert "impossible entry of posts" in caplog.text


def test_parallel_writers_of_one_scope_lose_nothing() -> None:
    """LIN-29: replies that overtake each other are no contradiction; only the time of sending is compared."""
    store = positions()
    with antipode.scope() as scope:
        first, second = store.begin(), store.begin()
        second.record(Ordered("e", 58))
        first.record(Ordered("e", 57))
        assert text() == "1~posts..e.58"
        assert scope.gaps == ()
        other_epoch = store.begin()
        other_epoch.record(Ordered("f", 1))
        assert text() == "1~posts..e.58..f.1"


def test_random_parallel_writers_lose_nothing() -> None:
    """LIN-29, with real threads: a counter as a store's log, replies recorded in any order."""
    store = positions()
    log, guard = iter(range(1, 10_000)), threading.Lock()

    def work() -> None:
        for _ in range(150):
            with store.writing() as write:
                with guard:
                    counter = next(log)
                write.record(Ordered("e", counter))

    with antipode.scope() as scope, ThreadPoolExecutor(6) as pool:
        for done in [pool.submit(antipode.carry(work)) for _ in range(6)]:
            done.result(60)
    assert scope.lineage.serialize() == "1~posts..e.900"
    assert scope.gaps == ()


def test_an_upper_bound_is_not_checked() -> None:
    """A write that changed nothing takes where the store is; that says nothing about what came in."""
    with antipode.scope(Lineage([at(60)])):
        positions().begin().record_upper_bound(Ordered("e", 57))
        assert text() == "1~posts..e.60"


def test_an_object_is_recorded_by_its_key() -> None:
    store = RegionStore("kv", FakeShim, StoreOptions())
    with activate(Scope()) as scope:
        store.begin(b"k").record(Ordered("", 7))
    assert scope.lineage.serialize() == "1~kv.k..7"
