"""`barrier()` on the embedded store: what it proves, refuses and raises (spec BAR)."""

from __future__ import annotations

import asyncio
import time
from collections.abc import Sequence
from datetime import timedelta
from typing import Any

import antipode
import antipode.memory
import pytest
from antipode import Lineage, Verdict, WriteId
from antipode._model.scope_values import Delivery
from antipode._model.verdict import NOT_YET, VISIBLE, UnprovenKind, Visibility, not_yet, unproven
from antipode._scope.scope import open_scope
from antipode._store.store import registry
from antipode.shim import Server
from fakes import Answer, FakeShim, Target, always, down, fake_store


def posts(lag: float = 0.05, **options: Any) -> antipode.memory.Store:
    return antipode.memory.Store("blog-posts", regions=["a", "b"], lag=lag, **options)


def test_it_waits_until_the_write_is_visible_in_the_region() -> None:
    store = posts(lag=0.08)
    writer, reader = store.client("a"), store.client("b")
    with antipode.scope():
        writer.set("post:42", b"hi")
        assert reader.get("post:42") is None
        result = antipode.barrier()
        assert reader.get("post:42") == b"hi"
    assert result.satisfied
    assert result.complete
    assert 0.03 < result.waited < 0.5
    verdict = result.stores["blog-posts"]
    assert verdict.verdict is Verdict.VISIBLE
    assert "2 of 2 replicas" in verdict.reason
    assert "blog-posts visible" in str(result)


def test_a_replica_that_is_nearer_does_not_let_the_region_pass() -> None:
    """BAR-21: with two replicas of different lag the pass speaks of both."""
    store = antipode.memory.Store("p", regions=["a", "b1", "b2"], lag={"b1": 0.01, "b2": 0.12})
    writer, near, far = store.client("a"), store.client("b1"), store.client("b2")
    with antipode.scope():
        writer.set("k", "v")
        result = antipode.barrier()
        assert (near.get("k"), far.get("k")) == (b"v", b"v")
    assert [server.address for server in result.stores["p"].servers] == [
        "memory://p/a",
        "memory://p/b1",
        "memory://p/b2",
    ]


def test_a_store_without_any_server_never_passes() -> None:
    """BAR-13: nobody can be asked, so nothing is proved."""
    fake_store("nowhere")
    with antipode.scope():
        antipode.append(WriteId.position("nowhere", "e", 1))
        result = antipode.barrier(on_timeout="proceed", on_unproven="proceed")
        assert not result.satisfied
        assert not result.complete
        with pytest.raises(antipode.BarrierUnproven, match="no server"):
            antipode.barrier()


def test_reach_replica_speaks_of_the_wrapped_clients_alone() -> None:
    store = antipode.memory.Store("p", regions=["a", "b1", "b2"], lag=0.0)
    writer = store.client("a")
    store.register("b1", "b2")
    store.freeze("b2")
    with antipode.scope():
        writer.set("k", "v")
        assert antipode.barrier(reach="replica", timeout=0.5).satisfied
        with pytest.raises(antipode.BarrierTimeout, match="memory://p/b2"):
            antipode.barrier(timeout=0.1)


def test_the_deadline_holds_and_the_error_says_where_the_replica_is() -> None:
    store = posts()
    writer, _ = store.client("a"), store.client("b")
    store.freeze("b")
    with antipode.scope():
        writer.set("k", "v")
        began = time.monotonic()
        with pytest.raises(
            antipode.BarrierTimeout, match=r"blog-posts is not visible after .* ms: replica memory://"
        ) as raised:
            antipode.barrier(timeout=timedelta(milliseconds=150))
        assert 0.14 < time.monotonic() - began < 1.0
    assert isinstance(raised.value, TimeoutError)
    assert raised.value.result.stores["blog-posts"].verdict is Verdict.TIMED_OUT
    assert "memory://blog-posts/a is there" in str(raised.value)


def test_the_requests_own_deadline_tightens_it() -> None:
    """BAR-28."""
    store = posts()
    writer, _ = store.client("a"), store.client("b")
    store.freeze("b")
    with antipode.scope() as scope:
        writer.set("k", "v")
        scope.deadline = time.monotonic() + 0.05
        began = time.monotonic()
        assert not antipode.barrier(timeout=30, on_timeout="proceed").satisfied
        assert time.monotonic() - began < 5


@pytest.mark.parametrize("write", [WriteId.position("s", "e", 7), WriteId("s", "k", antipode.Ordered("", 7))])
def test_a_look_ends_with_the_servers_answer(write: WriteId, monkeypatch: pytest.MonkeyPatch) -> None:
    """BAR-29: it does not wait for as long as it may."""
    monkeypatch.setattr("antipode._engine.waiting.LOOK_S", 60.0)
    target = Target("s1", always(NOT_YET))
    fake_store("s", target)
    for _ in range(3):
        before = target.asked
        result = antipode.barrier(Lineage([write]), timeout=0, on_timeout="proceed")
        assert result.stores["s"].verdict is Verdict.NOT_YET
        assert target.asked > before, "it looks, and does not guess"


def test_timeout_zero_looks_once() -> None:
    """BAR-29."""
    store = posts(lag=30)
    writer, reader = store.client("a"), store.client("b")
    with antipode.scope():
        writer.set("k", "v")
        result = antipode.barrier(timeout=0, on_timeout="proceed")
        assert result.stores["blog-posts"].verdict is Verdict.NOT_YET
        store.set_lag("b", 0.0)
        while reader.get("k") is None:
            pass
        assert antipode.barrier(timeout=0).satisfied


@pytest.mark.parametrize("timeout", [None, float("inf"), float("nan"), -1.0, "1s", 3600.5, 1e10, timedelta(hours=2)])
def test_there_is_no_infinite_wait_to_ask_for(timeout: object) -> None:
    posts().client("a")
    with antipode.scope(), pytest.raises(antipode.ConfigurationError):
        antipode.barrier(timeout=timeout)  # type: ignore[arg-type]
    with antipode.scope(), pytest.raises(antipode.ConfigurationError):
        asyncio.run(antipode.barrier_async(timeout=timeout))  # type: ignore[arg-type]


def test_mistakes_of_the_programmer_raise_at_once() -> None:
    with antipode.scope(), pytest.raises(antipode.ConfigurationError, match="registered no store"):
        antipode.barrier()
    posts().client("a")
    with pytest.raises(antipode.ConfigurationError, match="outside any scope"):
        antipode.barrier()
    with antipode.scope():
        with pytest.raises(antipode.UnknownStoreError, match="Did you mean blog-posts"):
            antipode.barrier(stores=["blog-post"])
        with pytest.raises(antipode.ConfigurationError, match="list of names"):
            antipode.barrier(stores="blog-posts")
        with pytest.raises(antipode.ConfigurationError, match="wait_on_read"):
            antipode.barrier(reach="session")
        with pytest.raises(antipode.ConfigurationError, match="redeliver"):
            antipode.barrier(on_timeout="redeliver")
        for wrong in ("reach", "on_timeout", "on_unproven", "on_vacuous"):
            with pytest.raises(antipode.ConfigurationError, match=wrong):
                antipode.barrier(**{wrong: "whenever"})  # type: ignore[arg-type]


def test_a_blocking_barrier_on_a_running_loop_raises_also_with_nothing_to_wait_for() -> None:
    """BAR-31."""
    posts().client("a")

    async def handler() -> None:
        with antipode.scope(), pytest.raises(antipode.BlockingCallError, match="barrier_async"):
            antipode.barrier()

    asyncio.run(handler())
    antipode.configure(mode="off")
    asyncio.run(handler())


def test_a_result_has_no_truth_value() -> None:
    """BAR-19."""
    posts().client("a")
    with antipode.scope():
        result = antipode.barrier()
    with pytest.raises(TypeError, match="satisfied"):
        bool(result)


def test_stores_elsewhere_are_carried_on_and_counted(caplog: pytest.LogCaptureFixture) -> None:
    """BAR-3, BAR-17, BAR-20."""
    store = posts()
    store.client("a")
    other = WriteId.position("user-acl", "e", 1)
    with antipode.scope(Lineage([other])):
        result = antipode.barrier()
        assert result.satisfied
        assert result.vacuous
        assert not result.complete
        with pytest.raises(antipode.BarrierIncomplete):
            antipode.barrier(on_vacuous="raise")
        with pytest.raises(antipode.BarrierIncomplete):
            antipode.barrier(require_complete=True)
        assert antipode.serialize() == "1~user-acl..e.1"
    lines = [record.getMessage() for record in caplog.records if "judged nothing" in record.getMessage()]
    assert len(lines) == 3, "one a site"
    assert all("user-acl" in line and "blog-posts" in line for line in lines)


def test_the_same_name_but_for_case_and_dashes_is_a_misspelling() -> None:
    """BAR-6."""
    posts().client("a")
    with antipode.scope(Lineage([WriteId.position("Blog_Posts", "e", 1)])):
        with pytest.raises(antipode.BarrierUnproven, match="same name"):
            antipode.barrier()
        assert antipode.barrier(on_unproven="proceed").stores["Blog_Posts"].code == "AP107"
        assert antipode.barrier(dry_run=True).satisfied
    brought = Lineage([WriteId.position("Blog_Posts", "e", 1)])
    with open_scope(brought, kind="message", delivery=Delivery(can_redeliver=True)):
        with pytest.raises(antipode.Redeliver, match="Blog_Posts"):
            antipode.barrier(on_unproven="redeliver")


def test_a_store_that_will_be_registered_is_unproven_until_then() -> None:
    """BAR-7."""
    antipode.configure(stores=["blog-posts"])
    with antipode.scope(Lineage([WriteId.position("blog-posts", "e", 1)])):
        with pytest.raises(antipode.BarrierUnproven, match="ANTIPODE_STORES"):
            antipode.barrier()


def test_overwritten_and_deleted_count_as_visible() -> None:
    """BAR-11."""
    store = posts(lag=0.0)
    writer, reader = store.client("a"), store.client("b")
    with antipode.scope():
        writer.set("k", "1")
        lineage = antipode.deserialize(antipode.serialize())
    writer.set("k", "2")
    writer.delete("k")
    assert antipode.barrier(lineage).satisfied
    assert reader.get("k") is None


def test_entries_stay_after_a_pass() -> None:
    """SCOPE-23: another region has not passed."""
    store = posts(lag=0.0)
    writer, _ = store.client("a"), store.client("b")
    with antipode.scope():
        writer.set("k", "v")
        before = antipode.serialize()
        antipode.barrier()
        assert antipode.serialize() == before


def test_a_store_that_refuses_the_question_is_unproven_with_its_words() -> None:
    """BAR-13: at once, not at the deadline."""

    def refuses(ids: object, server: object) -> list[antipode.shim.Visibility]:
        raise PermissionError13("NOPERM this user has no permissions to run the 'info' command")

    class PermissionError13(Exception):
        pass

    fake_store("s", Target("s1", refuses))
    began = time.monotonic()
    with pytest.raises(antipode.BarrierUnproven, match="NOPERM"):
        antipode.barrier(Lineage([WriteId("s", "k", antipode.Ordered("", 1))]), timeout=10)
    assert time.monotonic() - began < 5


def test_one_replica_that_is_down_is_left_out_and_named() -> None:
    """BAR-26."""
    antipode.configure(replica_out_after=0.3)
    fake_store("s", Target("up", always(VISIBLE)), Target("gone", down))
    lineage = Lineage([WriteId("s", "k", antipode.Ordered("", 1))])
    result = antipode.barrier(lineage, timeout=5)
    assert result.satisfied
    assert not result.complete
    assert result.stores["s"].left_out == ("gone",)
    assert "connection refused" in result.explain()
    began = time.monotonic()
    assert antipode.barrier(lineage, timeout=5).stores["s"].left_out == ("gone",)
    assert time.monotonic() - began < 0.2, "what is known to be out is left out at once"
    antipode.configure(on_replica_out="fail")
    with pytest.raises(antipode.BarrierUnproven, match="gone"):
        antipode.barrier(lineage, timeout=1)


@pytest.mark.parametrize("leaps", [[600.0], [0.0, 600.0]], ids=["first silence", "later one"])
def test_how_long_this_process_stood_still_is_no_silence_of_a_server(
    monkeypatch: pytest.MonkeyPatch, leaps: list[float]
) -> None:
    """BAR-26, BAR-61: its machine was paused while a question was under way."""
    clock, slept = time.monotonic, 0.0
    monkeypatch.setattr(time, "monotonic", lambda: clock() + slept)

    def breaks(ids: Sequence[WriteId], server: Server) -> Sequence[Visibility]:
        nonlocal slept
        if not leaps:
            return [VISIBLE] * len(ids)
        slept += leaps.pop(0)
        raise ConnectionResetError("connection reset")

    antipode.configure(replica_out_after=10, on_replica_out="fail")
    fake_store("s", Target("healthy", breaks))
    # Longer than the machine is paused: that may be before the barrier has looked how much of its time is left.
    assert antipode.barrier(Lineage([WriteId("s", "k", antipode.Ordered("", 1))]), timeout=1800).complete


def test_a_replica_that_is_back_is_judged_by_what_it_answers() -> None:
    """BAR-27."""
    antipode.configure(replica_out_after=0.2)
    gone = Target("gone", down)
    fake_store("s", Target("up", always(VISIBLE)), gone)
    lineage = Lineage([WriteId("s", "k", antipode.Ordered("", 1))])
    assert antipode.barrier(lineage, timeout=5).stores["s"].left_out
    gone.answer = always(NOT_YET)
    deadline = time.monotonic() + 10
    while antipode.barrier(lineage, timeout=0.05, on_timeout="proceed").satisfied:
        assert time.monotonic() < deadline
    gone.answer = always(VISIBLE)
    while not (result := antipode.barrier(lineage, timeout=0.5, on_timeout="proceed")).complete:
        assert time.monotonic() < deadline, result.explain()


def test_where_no_server_answers_nothing_passes() -> None:
    antipode.configure(replica_out_after=0.1)
    fake_store("s", Target("one", down), Target("two", down))
    with pytest.raises(antipode.BarrierUnproven, match="does not answer"):
        antipode.barrier(Lineage([WriteId("s", "k", antipode.Ordered("", 1))]), timeout=3)


def test_several_stores_are_waited_for_together_under_one_deadline() -> None:
    """BAR-2."""
    clients = []
    for name in ("one", "two", "three"):
        store = antipode.memory.Store(name, regions=["a", "b"], lag=0.15)
        clients.append((store.client("a"), store.client("b")))
    with antipode.scope():
        for writer, _ in clients:
            writer.set("k", "v")
        result = antipode.barrier(timeout=2)
    assert result.satisfied
    assert result.waited < 0.4, "in parallel, not one after the other"


def test_a_callable_lists_the_replicas() -> None:
    """BAR-22."""
    up = Target("up", always(VISIBLE))
    antipode.shim.join_store("s", FakeShim, antipode.shim.StoreOptions(replicas=lambda: [up]))
    result = antipode.barrier(Lineage([WriteId("s", "k", antipode.Ordered("", 1))]))
    assert [server.address for server in result.stores["s"].servers] == ["up"]


def test_one_text_is_no_list_of_servers() -> None:
    with pytest.raises(antipode.ConfigurationError, match="list"):
        antipode.shim.join_store("s", FakeShim, antipode.shim.StoreOptions(replicas="redis://b1"))


def test_incomplete_lineages_are_satisfied_without_being_complete() -> None:
    """BAR-15, BAR-18."""
    posts().client("a")
    with antipode.scope(antipode.EMPTY.marked_incomplete("blog-posts")) as scope:
        result = antipode.barrier()
        assert result.satisfied
        assert not result.complete
        scope.remove("blog-posts")
        assert antipode.barrier().complete
    with antipode.scope(antipode.EMPTY.marked_incomplete("other")):
        assert antipode.barrier().complete


def test_a_custom_unproven_answer_obeys_on_unproven() -> None:
    fake_store("s", Target("s1", always(unproven("cannot tell"))))
    lineage = Lineage([WriteId("s", "k", antipode.Ordered("", 1))])
    with pytest.raises(antipode.BarrierUnproven, match="cannot tell"):
        antipode.barrier(lineage)
    assert not antipode.barrier(lineage, on_unproven="proceed").satisfied
    assert not antipode.barrier(lineage, on_timeout="proceed").satisfied


@pytest.mark.parametrize("kind", UnprovenKind)
def test_only_a_history_is_told_as_lost_and_each_kind_names_its_cure(kind: UnprovenKind) -> None:
    """BAR-59: a missing right or a wrong password is no lost write."""
    fake_store("s", Target("s0", always(unproven("the test says so", kind))))
    with pytest.raises(antipode.BarrierUnproven) as raised:
        antipode.barrier(Lineage([WriteId.position("s", "e", 1)]))
    told = f"{raised.value}\n{raised.value.result.explain()}"
    assert f"s: unproven, {kind} (" in told
    assert ("lost" in told, "settle" in told) == ((kind is UnprovenKind.HISTORY,) * 2)
    assert "timeout=" not in told


@pytest.mark.parametrize("answer", [down, always(not_yet("at 0"))])
def test_a_longer_timeout_is_advised_only_where_it_could_help(answer: Answer) -> None:
    """BAR-59: not where the server cannot be reached."""
    antipode.configure(replica_out_after=30)
    fake_store("s", Target("s0", answer))
    with pytest.raises(antipode.BarrierTimeout) as raised:
        antipode.barrier(Lineage([WriteId.position("s", "e", 1)]), timeout=0.3)
    assert ("Raise timeout=" in str(raised.value)) == (answer is not down)


def test_a_refusal_of_the_stores_own_has_the_kind_that_the_shim_says() -> None:
    """BAR-13, BAR-59."""

    class Guarded(FakeShim):
        def kind_of(self, error: Exception) -> UnprovenKind:
            return UnprovenKind.RIGHT

    def refuse(ids: Sequence[WriteId], server: Server) -> Sequence[Visibility]:
        raise ValueError("permission denied")

    fake_store("s", Target("s0", refuse), shim=Guarded)
    result = antipode.barrier(Lineage([WriteId.position("s", "e", 1)]), on_timeout="proceed")
    assert result.stores["s"].kind is UnprovenKind.RIGHT


def test_nothing_asked_for_is_a_mistake() -> None:
    """BAR-58."""
    posts().client("a")
    with antipode.scope():
        for more in ({}, {"require_complete": True}, {"on_vacuous": "raise"}):
            with pytest.raises(antipode.ConfigurationError, match=r"stores=\[\]"):
                antipode.barrier(stores=[], **more)


def test_a_timeout_that_was_meant_in_milliseconds_is_warned_about(caplog: pytest.LogCaptureFixture) -> None:
    """BAR-58: once a site, also where nothing is waited for."""
    posts().client("a")
    with antipode.scope():
        for _ in range(3):
            antipode.barrier(timeout=500)
        antipode.barrier(timeout=60)
    assert [line.getMessage() for line in caplog.records if "500 s" in line.getMessage()] == [
        line.getMessage() for line in caplog.records
    ]
    assert len(caplog.records) == 1


def test_a_write_in_doubt_shows_in_the_scopes_own_barrier_also_on_the_free_path() -> None:
    """BAR-56: the second barrier would pass for free."""
    writer = posts().client("a")
    with antipode.scope():
        writer.set("k", "v")
        assert antipode.barrier(require_complete=True).complete
        write = registry().need("blog-posts").begin(b"k")
        with pytest.raises(antipode.BarrierIncomplete, match="has not been answered"):
            antipode.barrier(require_complete=True)
        result = antipode.barrier()
        assert (result.satisfied, result.complete) == (True, False)
        assert [(gap.reason, gap.store) for gap in result.gaps] == [("pending", "blog-posts")]
        write.abandon()
        assert antipode.barrier(require_complete=True).complete
        write = registry().need("blog-posts").begin(b"k")
        write.outcome_unknown()
        with pytest.raises(antipode.BarrierIncomplete, match="outcome is not known"):
            antipode.barrier(require_complete=True)


def test_where_servers_are_unproven_for_several_reasons_the_first_kind_counts() -> None:
    """BAR-59: and only a history that the server does not know speaks of lost writes and of `settle`."""
    lineage = Lineage([WriteId("posts", "k", antipode.Ordered("", 1))])
    right = unproven("it may not be asked", UnprovenKind.RIGHT)
    fake_store("posts", Target("b1", always(right)), Target("b2", always(unproven("odd"))))
    with pytest.raises(antipode.BarrierUnproven) as raised:
        antipode.barrier(lineage)
    assert raised.value.result.stores["posts"].kind is UnprovenKind.RIGHT
    assert "lost" not in str(raised.value)
    assert "settle" not in str(raised.value)
    ended = unproven("it has ended there", UnprovenKind.HISTORY)
    fake_store("posts", Target("b3", always(ended)))
    with pytest.raises(antipode.BarrierUnproven, match="antipode epoch settle posts") as raised:
        antipode.barrier(lineage)
    assert raised.value.result.stores["posts"].kind is UnprovenKind.HISTORY


def test_a_text_is_no_lineage() -> None:
    """What the programmer got wrong raises at once, with the cure."""
    posts().client("a")
    with antipode.scope(), pytest.raises(TypeError, match=r"antipode\.deserialize"):
        antipode.barrier("1~blog-posts..e.1")  # type: ignore[arg-type]
    with antipode.scope(), pytest.raises(TypeError, match=r"antipode\.deserialize"):
        antipode.transfer("1")  # type: ignore[arg-type]
    with pytest.raises(TypeError, match=r"antipode\.deserialize"), antipode.reading(after="1"):  # type: ignore[arg-type]
        pass
