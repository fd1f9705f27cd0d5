"""Scopes: what a request depends on, shared by its threads and tasks (spec SCOPE, LIN-21 to LIN-29)."""

from __future__ import annotations

import asyncio
import contextvars
import logging
import threading
from collections.abc import Callable, Generator
from concurrent.futures import ThreadPoolExecutor
from functools import partial

import antipode
import pytest
from antipode import Lineage, WriteId
from antipode._model.errors import ConfigurationError
from antipode._model.lineage import EMPTY
from antipode._model.verdict import VISIBLE
from antipode._model.write_id import Opaque, Ordered
from antipode._propagation.propagator import approved
from antipode._scope.pending_write import PendingWrite
from antipode._scope.reading import current_reading
from antipode._scope.scope import Scope
from antipode.messages import outgoing_message
from fakes import Target, always, fake_store
from opentelemetry import context as otel
from opentelemetry import trace
from scopes import Counts, at, positions, text


@pytest.fixture
def counts(monkeypatch: pytest.MonkeyPatch) -> Counts:
    return Counts(monkeypatch)


# Life


def _messages(opened: list[Scope]) -> Generator[Scope, None, None]:
    """A pull loop, as frameworks write it."""
    while True:
        with antipode.message_scope("1") as scope:
            opened.append(scope)
            yield scope


def test_a_generator_that_ends_late_leaves_another_requests_scope_in_force() -> None:
    """SCOPE-33: Python ends it whenever it collects it."""
    with antipode.scope():
        pull = _messages([])
        next(pull)
    with antipode.scope() as scope:
        antipode.append(at(1))
        pull.close()
        assert antipode.current_scope() is scope
        antipode.append(at(2))
        assert text() == "1~posts..e.2"
    assert antipode.current_scope() is None


def test_a_generator_that_another_thread_ends_changes_nothing_there() -> None:
    """SCOPE-33."""
    pull = _messages([])

    def work() -> Scope | None:
        with antipode.scope() as own:
            pull.close()
            assert antipode.current_scope() is own
        return antipode.current_scope()

    def here() -> None:
        next(pull)
        with antipode.scope() as scope, ThreadPoolExecutor(1) as pool:
            assert pool.submit(work).result(60) is None
            assert antipode.current_scope() is scope

    contextvars.copy_context().run(here)


def test_a_scope_whose_outer_one_ends_first_is_incomplete() -> None:
    """SCOPE-33: what it writes from then on is not in it."""
    opened: list[Scope] = []
    with antipode.scope() as outer:
        pull = _messages(opened)
        next(pull)
        with antipode.scope() as within:
            pull.close()
            assert antipode.current_scope() is outer
            assert not within.lineage.is_complete()
        assert antipode.current_scope() is outer
        suspended = _messages(opened)
        next(suspended)
    assert antipode.current_scope() is None
    assert not opened[1].lineage.is_complete()
    suspended.close()


def test_a_block_that_ends_late_takes_back_its_own_alone() -> None:
    """SCOPE-33: the Context holds other things, too."""

    def reads() -> Generator[None, None, None]:
        with antipode.reading(), approved("1"):
            yield

    pull = reads()
    with antipode.scope():
        next(pull)
        with antipode.scope() as scope:
            pull.close()
            assert antipode.current_scope() is scope
            assert current_reading() is None


def _spans() -> Generator[None, None, None]:
    """A generator with a tracing span alone, as an instrumented driver writes it."""
    with trace.NoOpTracer().start_as_current_span("pull"):
        yield


def test_an_ended_scope_that_a_span_brings_back_is_incomplete() -> None:
    """SCOPE-34: OpenTelemetry puts back the Context in which the span began."""
    with antipode.scope(Lineage([at(1)])) as ended:
        pull = _spans()
        next(pull)
    assert ended.lineage.is_complete()  # its own end is not meant: a response's header may leave behind it
    fake_store("posts", Target("p", always(VISIBLE)))
    with antipode.scope() as scope:
        antipode.append(at(2))
        pull.close()
        assert antipode.current_scope() is ended
        assert antipode.serialize() == text() == "1~posts..e.1~_.i"
        assert outgoing_message() == "1~posts..e.1~_.i"
        result = antipode.barrier()
        assert (result.satisfied, result.complete) == (True, False)
        assert [gap.reason for gap in result.gaps] == ["unscoped"]
        with antipode.detached_scope() as detached:
            assert not detached.lineage.is_complete()
        assert scope.lineage.is_complete()
        antipode.append(at(3))
        assert scope.lineage.serialize() == "1~posts..e.2~_.i"
    assert ended.lineage.serialize() == "1~posts..e.1~_.i.posts"


def test_what_goes_by_a_scope_for_a_span_from_outside_any_marks_it() -> None:
    """SCOPE-34."""
    pull = _spans()
    next(pull)
    with antipode.scope() as scope:
        pull.close()
        assert antipode.current_scope() is None
        antipode.append(at(2))
        assert scope.lineage.serialize() == "1~_.i"


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
        assert scope.lineage.serialize() == "1~posts..e.1~_.i.posts"
        scope.transfer(Lineage([at(3)]))
        scope.merge(Lineage([WriteId("likes", b"", Ordered("e", 4))]))
    assert scope.lineage.serialize() == "1~posts..e.1~_.i.likes.posts"
    assert counts.of("antipode.write.lost", reason="closed", store="other") == 3
    assert "test_scope.py:" in caplog.text
    assert "detached_scope" in caplog.text


def test_whatever_a_closed_scope_drops_marks_it(counts: Counts) -> None:
    """SCOPE-4: each way by which something comes to a scope."""

    def written(scope: Scope) -> None:
        scope.written(write, at(1))

    def raised(scope: Scope) -> None:
        if not scope.raised(write, "e", 1):
            scope.written(write, at(1))

    own: list[Callable[[Scope], None]] = [lambda scope: scope.append(at(1)), written, raised]
    ways: list[tuple[Callable[[Scope], None], str]] = [(way, "1~_.i.posts") for way in own]
    for came, left in (
        (Lineage([at(1)]), "1~_.i.posts"),
        (Lineage([at(1)]).marked_incomplete("users"), "1~_.i"),
        (EMPTY.marked_incomplete("users"), "1~_.i"),
        (Lineage([at(1)]).marked_incomplete(), "1~_.i"),
    ):
        ways += [
            (partial(way, lineage=came), left)
            for way in (Scope.transfer, Scope.transfer_read, Scope.bring, Scope.merge, Scope.receive)
        ]
    for number, (way, left) in enumerate(ways, 1):
        with antipode.scope() as scope:
            write = PendingWrite("posts")
            scope.enter(write)
        way(scope)
        scope.end(write)
        assert scope.lineage.serialize() == left
        assert counts.of("antipode.write.lost", reason="closed") == number


def test_an_append_outside_any_scope_is_an_orphan(counts: Counts, caplog: pytest.LogCaptureFixture) -> None:
    """SCOPE-9."""
    with caplog.at_level(logging.WARNING, "antipode"):
        antipode.append(at(1))
        antipode.transfer(Lineage([at(1)]))
        with positions().writing() as write:
            write.record(Ordered("e", 4))
    assert counts.of("antipode.write.lost", reason="orphan", store="other") == 2
    assert counts.of("antipode.write.lost", reason="orphan", store="posts") == 1  # which is registered by then (OBS-13)
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
