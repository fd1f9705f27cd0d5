"""Scopes: what a request depends on, shared by its threads and tasks (spec SCOPE, LIN-21 to LIN-29)."""

from __future__ import annotations

import asyncio
import itertools
import logging
import threading
from concurrent.futures import ThreadPoolExecutor
from typing import Any

import antipode
import pytest
from antipode import Lineage, PendingWriteError, WriteId, telemetry
from antipode.errors import ConfigurationError
from antipode.pending import PendingWrite
from antipode.scope import Scope, activate, open_scope
from antipode.shim import Capabilities
from antipode.store import Store, StoreOptions
from antipode.verdict import VISIBLE
from antipode.writeid import Opaque, Ordered
from fakes import FakeShim, Target, always, fake_store
from hypothesis import given
from hypothesis import strategies as st
from opentelemetry import context as otel
from opentelemetry.sdk.metrics import MeterProvider
from opentelemetry.sdk.metrics.export import InMemoryMetricReader, NumberDataPoint


class PositionsShim(FakeShim):
    kind = "positions"
    capabilities = Capabilities(versions="position")


def positions(name: str = "posts") -> Store:
    return fake_store(name, Target("b", always(VISIBLE)), shim=PositionsShim)


def at(counter: int, store: str = "posts", epoch: str = "e") -> WriteId:
    return WriteId.position(store, epoch, counter)


def text() -> str:
    scope = antipode.current_scope()
    assert scope is not None
    return scope.lineage.serialize()


@pytest.fixture
def counts(monkeypatch: pytest.MonkeyPatch) -> Counts:
    return Counts(monkeypatch)


class Counts:
    """The counters of this test, by instrument and one attribute."""

    def __init__(self, monkeypatch: pytest.MonkeyPatch) -> None:
        self.reader = InMemoryMetricReader()
        provider = MeterProvider([self.reader])
        monkeypatch.setattr("antipode.telemetry.metrics.get_meter", provider.get_meter)
        telemetry.reset()

    def of(self, instrument: str, **attributes: str) -> int:
        data = self.reader.get_metrics_data()
        if data is None:
            return 0
        wanted = {f"antipode.{name}": value for name, value in attributes.items()}
        return sum(
            int(point.value)
            for resource in data.resource_metrics
            for scope in resource.scope_metrics
            for metric in scope.metrics
            if metric.name == instrument
            for point in metric.data.data_points
            if isinstance(point, NumberDataPoint) and wanted.items() <= dict(point.attributes or {}).items()
        )


# Life


def test_a_scope_begins_empty_and_gathers() -> None:
    """SCOPE-1, SCOPE-21."""
    with antipode.scope() as scope:
        antipode.append(at(1))
        antipode.append(at(3), at(2, "acl"))
        antipode.transfer(Lineage([at(2), at(9, "users")]))
        assert text() == "1~acl..e.2~posts..e.3~users..e.9"
        assert antipode.serialize() == text()
        assert antipode.current_scope() is scope
    assert antipode.current_scope() is None
    assert scope.closed


def test_a_scope_may_start_from_a_lineage_and_leaves_it_as_it_was() -> None:
    start = Lineage([at(1)])
    with antipode.scope(start):
        antipode.append(at(2))
        assert text() == "1~posts..e.2"
    assert start.serialize() == "1~posts..e.1"


def test_root_opens_a_new_scope_and_stop_gives_the_outer_back() -> None:
    """SCOPE-5, SCOPE-10: root never clears a scope that others share."""
    with antipode.scope() as outer:
        antipode.append(at(1))
        inner = antipode.root()
        assert antipode.current_scope() is inner
        antipode.append(at(7, "acl"))
        assert text() == "1~acl..e.7"
        antipode.stop()
        assert inner.closed
        assert not outer.closed
        assert antipode.current_scope() is outer
        assert text() == "1~posts..e.1"


def test_stop_closes_and_stopping_twice_is_harmless() -> None:
    """SCOPE-3."""
    scope = antipode.root()
    antipode.stop()
    antipode.stop()
    scope.stop()
    assert scope.closed
    assert antipode.current_scope() is None


def test_a_late_append_is_dropped_counted_and_warned_about(counts: Counts, caplog: pytest.LogCaptureFixture) -> None:
    """SCOPE-4."""
    with antipode.scope() as scope:
        scope.append(at(1))
    with caplog.at_level(logging.WARNING, "antipode"):
        scope.append(at(2))
        scope.transfer(Lineage([at(3)]))
        scope.merge(Lineage([at(4)]))
    assert scope.lineage.serialize() == "1~posts..e.1"
    assert counts.of("antipode.write.lost", reason="closed", store="posts") == 3
    assert "test_scope.py:" in caplog.text
    assert "detached_scope" in caplog.text


def test_an_append_outside_any_scope_is_an_orphan(counts: Counts, caplog: pytest.LogCaptureFixture) -> None:
    """SCOPE-9."""
    with caplog.at_level(logging.WARNING, "antipode"):
        antipode.append(at(1))
        antipode.transfer(Lineage([at(1)]))
        with positions().writing() as write:
            write.record(Ordered("e", 4))
    assert counts.of("antipode.write.lost", reason="orphan", store="posts") == 3
    assert "outside any scope" in caplog.text


def test_verbs_outside_any_scope() -> None:
    """SCOPE-22: no scope is not the empty lineage."""
    with pytest.raises(ConfigurationError, match=r"outside any scope.*test_scope\.py"):
        antipode.serialize()
    assert not antipode.remove("posts").lineage
    antipode.stop()
    antipode.append()
    antipode.transfer(antipode.EMPTY)


def test_nested_scopes_do_not_mix() -> None:
    with antipode.scope():
        antipode.append(at(1))
        with antipode.scope():
            antipode.append(at(5))
            assert text() == "1~posts..e.5"
        assert text() == "1~posts..e.1"


# Sharing


def test_appends_from_many_threads_are_all_there() -> None:
    """SCOPE-2: joins are atomic."""
    scope = Scope()
    begin = threading.Barrier(8)

    def work(worker: int) -> None:
        begin.wait(10)
        for n in range(200):
            scope.append(WriteId("posts", f"{worker}-{n}".encode(), Opaque("m")), at(n, f"s{worker}"))
            scope.transfer(Lineage([at(worker * 1000 + n, "shared")]))
            scope.merge(Lineage([at(n, f"t{worker}")]))

    with ThreadPoolExecutor(8) as pool:
        for done in [pool.submit(work, worker) for worker in range(8)]:
            done.result(60)
    lineage = scope.lineage
    assert len(lineage.of_store("posts")) == 1600
    assert at(7199, "shared") in lineage
    assert all(at(199, f"s{worker}") in lineage and at(199, f"t{worker}") in lineage for worker in range(8))


async def test_tasks_share_the_scope_that_they_inherit() -> None:
    """SCOPE-11; and a scope that a task opens stays its own."""

    async def write(counter: int) -> None:
        await asyncio.sleep(0)
        antipode.append(at(counter, f"s{counter}"))

    async def alone() -> str:
        with antipode.scope():
            antipode.append(at(1, "alone"))
            await asyncio.sleep(0)
            return text()

    with antipode.scope() as scope:
        own, *_ = await asyncio.gather(alone(), *(write(n) for n in range(5)))
        await asyncio.to_thread(antipode.append, at(1, "thread"))
    assert own == "1~alone..e.1"
    assert sorted(scope.lineage.stores) == ["s0", "s1", "s2", "s3", "s4", "thread"]


async def test_stop_in_one_task_leaves_the_scopes_of_others() -> None:
    """SCOPE-10."""
    inside, leave = asyncio.Event(), asyncio.Event()

    async def other() -> str:
        with antipode.scope():
            inside.set()
            await leave.wait()
            antipode.append(at(1))
            return text()

    waiting = asyncio.create_task(other())
    await inside.wait()
    antipode.root()
    antipode.stop()
    leave.set()
    assert await waiting == "1~posts..e.1"


def test_the_context_is_opentelemetrys() -> None:
    """A scope lives in the OpenTelemetry Context, so what carries that carries it."""
    with antipode.scope() as scope:
        context = otel.get_current()
    token = otel.attach(context)
    assert antipode.current_scope() is scope
    otel.detach(token)
    assert antipode.current_scope() is None


# Removing


def test_remove_says_what_it_took_and_what_is_still_covered() -> None:
    """LIN-21: a position still covers an older write."""
    with antipode.scope(Lineage([at(9), WriteId("img", b"cat", Opaque("m"))])):
        taken = antipode.remove(WriteId("img", b"cat", Opaque("m")))
        assert list(taken.lineage) == [WriteId("img", b"cat", Opaque("m"))]
        assert taken.still_covered == ()
        covered = antipode.remove(at(4))
        assert not covered.lineage
        assert covered.still_covered == (at(4),)
        assert text() == "1~posts..e.9"


def test_what_was_removed_does_not_come_back_with_a_response() -> None:
    """LIN-24, LIN-25: but what the scope itself writes, reads or transfers shows."""
    with antipode.scope(Lineage([at(5), at(1, "acl")])) as scope:
        antipode.remove("posts")
        scope.merge(Lineage([at(9), at(2, "acl")]).marked_incomplete("posts", "acl"))
        assert text() == "1~acl..e.2~_.i.acl"
        antipode.append(at(6))
        assert text() == "1~acl..e.2~posts..e.6~_.i.acl"
        scope.merge(Lineage([at(9)]))
        assert text() == "1~acl..e.2~posts..e.6~_.i.acl"
        antipode.transfer(Lineage([at(9)]))
        assert text() == "1~acl..e.2~posts..e.9~_.i.acl"
        antipode.remove(incomplete=True)
        assert text() == "1~acl..e.2~posts..e.9"


def test_removing_a_lineage_filters_what_it_covers() -> None:
    with antipode.scope(Lineage([at(5), at(3, "acl")])) as scope:
        taken = antipode.remove(Lineage([at(7), at(1, "acl")]))
        assert taken.lineage == Lineage([at(5)])
        assert taken.still_covered == (at(1, "acl"),)
        scope.merge(Lineage([at(6)]))
        assert text() == "1~acl..e.3"
        scope.merge(Lineage([at(8)]))
        assert text() == "1~acl..e.3~posts..e.8"


def test_response_carries_additions_alone() -> None:
    """LIN-27, PROP-13."""
    scope = Scope(Lineage([at(5), at(1, "acl")]).marked_incomplete("acl"), kind="request")
    assert scope.additions() is antipode.EMPTY
    scope.append(at(5))
    assert not scope.additions()
    scope.append(at(6), at(1, "users"))
    assert scope.additions().serialize() == "1~posts..e.6~users..e.1"
    scope.mark_incomplete("rights", "users")
    assert scope.additions().serialize() == "1~posts..e.6~users..e.1~_.i.users"
    assert scope.gaps[0].reason == "rights"


def test_what_a_message_brings_is_not_sent_back() -> None:
    scope = Scope(kind="message")
    scope.receive(Lineage([at(5)]))
    assert not scope.additions()
    scope.append(at(6))
    assert scope.additions().serialize() == "1~posts..e.6"


# Pending writes


def test_a_write_in_flight_marks_what_leaves_and_not_the_scope() -> None:
    """SCOPE-14, SCOPE-16, SCOPE-20."""
    store = positions()
    with antipode.scope(Lineage([at(1, "acl")])) as scope:
        with store.writing() as write:
            assert antipode.serialize() == "1~acl..e.1~_.i.posts"
            assert scope.additions().serialize() == "1~_.i.posts"
            assert text() == "1~acl..e.1"
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
            assert "test_scope.py:" in caplog.text
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
    assert counts.of("antipode.write.late", store="posts") == 1


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
    store = Store("kv", FakeShim, StoreOptions())
    with activate(Scope()) as scope:
        store.begin(b"k").record(Ordered("", 7))
    assert scope.lineage.serialize() == "1~kv.k..7"
