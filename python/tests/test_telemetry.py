"""Metrics and spans, by name, kind, unit and attributes, through OpenTelemetry's own SDK (spec OBS, API section 6)."""

from __future__ import annotations

import asyncio
import logging
import threading
from collections.abc import Iterator
from datetime import timedelta
from typing import Any

import antipode
import antipode.memory
import pytest
from antipode import Lineage, Ordered, Scope, WriteId
from antipode._base import logs, observers
from antipode._diagnostics import telemetry
from antipode._model.verdict import NOT_YET, VISIBLE, unproven
from antipode._propagation.carriers import InboundHeaders
from antipode._scope.context import activate
from antipode._store.store import note_marks
from antipode.propagation import Inbound, inject_request
from collected import KINDS, Collected, Point, installed_sdk
from fakes import Target, always, down, fake_store
from opentelemetry import metrics, trace
from opentelemetry.sdk.metrics import MeterProvider
from opentelemetry.sdk.metrics.export import InMemoryMetricReader

TEXT = "1~blog-posts..e.7"


@pytest.fixture
def otel(monkeypatch: pytest.MonkeyPatch) -> Iterator[Collected]:
    with installed_sdk(monkeypatch) as collected:
        yield collected


def posts(lag: float = 0.05) -> tuple[antipode.memory.Store, antipode.memory.Client, antipode.memory.Client]:
    store = antipode.memory.Store("blog-posts", regions=["a", "b"], lag=lag)
    return store, store.client("a"), store.client("b")


# Barriers and waits


def test_a_barrier_that_waited_has_a_span_with_one_child_a_store(otel: Collected) -> None:
    """OBS-1."""
    antipode.configure(region="b")
    _, writer, _ = posts()
    seen = antipode.memory.Store("seen", regions=["a"]).client("a")
    with trace.get_tracer("app").start_as_current_span("request"), antipode.scope():
        writer.set("post:42", "hi")
        antipode.append(WriteId.position("user-acl", "e", 1))
        antipode.barrier(timeout=5)
        assert seen is not None
    [span] = otel.spans("antipode.barrier")
    [child] = otel.spans("antipode.wait")
    [request] = otel.spans("request")
    site = (span.attributes or {})["antipode.site"]
    assert str(site).startswith("tests/test_telemetry.py:")
    assert span.attributes == {
        "antipode.satisfied": True,
        "antipode.complete": False,  # user-acl is elsewhere
        "antipode.reach": "region",
        "antipode.region": "b",
        "antipode.dry_run": False,
        "antipode.policy": "raise",
        "antipode.site": site,
    }
    assert child.attributes == {
        "antipode.store": "blog-posts",
        "antipode.store.kind": "memory",
        "antipode.verdict": "visible",
        "antipode.reach": "region",
        "antipode.region": "b",
    }
    assert span.parent is not None
    assert span.parent.span_id == request.context.span_id
    assert child.parent is not None
    assert child.parent.span_id == span.context.span_id
    for each in (span, child):
        assert each.start_time is not None
        assert each.end_time is not None
        assert 0.02e9 < each.end_time - each.start_time < 5e9
        assert each.status.is_unset


def test_a_barrier_that_waited_is_measured(otel: Collected) -> None:
    antipode.configure(region="b")
    _, writer, _ = posts()
    with antipode.scope():
        writer.set("post:42", "hi")
        antipode.barrier(timeout=5)
    [duration] = otel.points("antipode.barrier.duration")
    assert duration.attributes["outcome"] == "satisfied"
    assert duration.attributes["dry_run"] is False
    assert duration.value == 1
    assert 0.02 < duration.total < 5
    [wait] = otel.points("antipode.wait.duration")
    assert wait.attributes == {
        "store": "blog-posts",
        "store.kind": "memory",
        "verdict": "visible",
        "reach": "region",
    }
    [lag] = otel.points("antipode.replica.lag")
    assert lag.attributes == {"store": "blog-posts", "region": "b"}
    assert 0.02 < lag.total < 5
    assert otel.counts("antipode.barrier.count", "outcome") == {"satisfied": 1}
    assert otel.counts("antipode.barrier.waiting", "store") == {"blog-posts": 0}
    asked = otel.counts("antipode.wait.requests", "store", "purpose")
    assert asked["blog-posts", "wait"] >= 1
    assert {purpose for _, purpose in asked} <= {"wait", "probe", "mark"}


def test_waits_are_measured_without_a_tracer(otel: Collected, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("opentelemetry.trace._TRACER_PROVIDER", None)
    _, writer, _ = posts()
    with antipode.scope():
        writer.set("k", "v")
        antipode.barrier(timeout=5)
    assert [point.value for point in otel.points("antipode.wait.duration")] == [1]


def test_two_stores_have_a_child_a_wait_and_a_lag_each(otel: Collected) -> None:
    """OBS-1."""
    clients = {
        name: antipode.memory.Store(name, regions=["a", "b"], lag=lag) for name, lag in [("one", 0.03), ("two", 0.1)]
    }
    with antipode.scope():
        for store in clients.values():
            store.register("b")
            store.client("a").set("k", "v")
        antipode.barrier(timeout=5)
    assert {(span.attributes or {})["antipode.store"] for span in otel.spans("antipode.wait")} == {"one", "two"}
    lags = {point.attributes["store"]: point.total for point in otel.points("antipode.replica.lag")}
    assert lags["one"] < lags["two"]
    assert len(otel.points("antipode.wait.duration")) == 2


def test_a_barrier_that_fails_sets_error_type(otel: Collected) -> None:
    """OBS-4."""
    store, writer, _ = posts()
    store.freeze("b")
    with antipode.scope():
        writer.set("k", "v")
        with pytest.raises(antipode.BarrierTimeout):
            antipode.barrier(timeout=0.05)
    [span], [child] = otel.spans("antipode.barrier"), otel.spans("antipode.wait")
    assert (span.attributes or {})["error.type"] == "timed_out"
    assert (span.attributes or {})["antipode.satisfied"] is False
    assert (child.attributes or {})["antipode.verdict"] == (child.attributes or {})["error.type"] == "timed_out"
    assert span.status.status_code is child.status.status_code is trace.StatusCode.ERROR
    assert otel.counts("antipode.barrier.count", "outcome") == {"timed_out": 1}
    assert otel.counts("antipode.barrier.duration", "outcome") == {"timed_out": 1}
    assert otel.counts("antipode.wait.duration", "verdict") == {"timed_out": 1}
    assert otel.points("antipode.replica.lag") == []
    assert otel.counts("antipode.barrier.waiting", "store") == {"blog-posts": 0}


def test_asyncio_barriers_are_measured_alike(otel: Collected) -> None:
    _, writer, _ = posts()

    async def follower() -> None:
        with antipode.scope():
            writer.set("k", "v")
            await antipode.barrier_async(timeout=5)

    asyncio.run(follower())
    assert len(otel.spans("antipode.barrier")) == len(otel.spans("antipode.wait")) == 1
    assert otel.counts("antipode.barrier.count", "outcome") == {"satisfied": 1}


def test_barriers_that_wait_are_counted_while_they_do(otel: Collected) -> None:
    store, writer, _ = posts()
    store.freeze("b")
    with antipode.scope():
        writer.set("k", "v")
        waiting = threading.Thread(target=antipode.carry(antipode.barrier), kwargs={"timeout": 30})
        waiting.start()
        deadline = threading.Event()
        for _ in range(1000):
            if otel.counts("antipode.barrier.waiting", "store").get("blog-posts") == 1:
                break
            deadline.wait(0.01)
        else:
            pytest.fail("the barrier was never counted as waiting")
        store.heal("b")
        waiting.join(30)
    assert otel.counts("antipode.barrier.waiting", "store") == {"blog-posts": 0}


def test_free_barriers_are_counted_though_no_other_instrument_is_called(otel: Collected) -> None:
    posts()
    with antipode.scope():
        antipode.barrier()
    assert otel.counts("antipode.barrier.count", "outcome") == {"free": 1}
    assert set(otel.everything()) == {"antipode.barrier.count", "antipode.barrier.waiting"}, "observed, not called"


def test_each_outcome_is_counted_once(otel: Collected) -> None:
    lost = Target("lost", always(unproven("gone")))
    fake_store("lost-store", lost)
    well = Target("well", always(VISIBLE))
    fake_store("well-store", well)
    late = Target("late", always(NOT_YET))
    fake_store("late-store", late)
    object_of = {name: WriteId(name, "k", Ordered("", 1)) for name in ("lost-store", "well-store", "late-store")}
    elsewhere = WriteId("elsewhere", "k", Ordered("", 1))

    def outcome(*ids: WriteId, **options: Any) -> str:
        before = dict(observers.barriers)
        with antipode.scope(Lineage(ids)):
            antipode.barrier(timeout=0.05, on_timeout="proceed", on_unproven="proceed", **options)
        changed = {name: count - before.get(name, 0) for name, count in observers.barriers.items()}
        [(name, count)] = [(name, count) for name, count in changed.items() if count]
        assert count == 1
        return name

    assert outcome(object_of["well-store"]) == "satisfied"
    assert outcome(object_of["lost-store"]) == "unproven"
    assert outcome(object_of["late-store"]) == "timed_out"
    assert outcome(elsewhere) == "vacuous"
    assert outcome() == "free"
    with pytest.raises(antipode.BarrierIncomplete), antipode.scope(Lineage([object_of["well-store"], elsewhere])):
        antipode.barrier(require_complete=True)
    assert observers.barriers["incomplete"] == 1
    antipode.configure(max_waiters=0)
    assert outcome(object_of["late-store"]) == "overloaded"
    assert otel.counts("antipode.barrier.count", "outcome") == observers.barriers
    assert set(observers.barriers) == {
        *("free", "satisfied", "timed_out", "unproven", "vacuous", "incomplete", "overloaded")
    }


def test_the_free_path_starts_no_span_and_calls_no_instrument(otel: Collected, monkeypatch: pytest.MonkeyPatch) -> None:
    """OBS-9."""
    antipode.configure(free_path_ttl=30)
    _, writer, _ = posts(lag=0.01)
    with antipode.scope():
        writer.set("k", "v")
        assert antipode.barrier(timeout=5).satisfied
        lineage = antipode.current_scope().lineage  # type: ignore[union-attr]
        spans, counted = len(otel.exporter.get_finished_spans()), observers.barriers["free"]

        def called(*_: object, **__: object) -> None:
            if threading.current_thread() is threading.main_thread():  # the thread that asks the server may count
                raise AssertionError("called on the free path")

        for name in ("_instruments", "tracer", "barrier_waited", "waited", "lag"):
            monkeypatch.setattr(telemetry, name, called)
        # The same barrier again; another scope with the same writes, by the watermarks; asyncio's form; an empty one.
        assert antipode.barrier().satisfied
        with antipode.scope(lineage):
            assert antipode.barrier().satisfied
            assert asyncio.run(_in_loop()).satisfied
        with antipode.scope():
            assert antipode.barrier().satisfied
    monkeypatch.undo()
    assert observers.barriers["free"] == counted + 4
    assert len(otel.exporter.get_finished_spans()) == spans


async def _in_loop() -> antipode.BarrierResult:
    return await antipode.barrier_async()


# Lineages that come and go


def test_sizes_are_measured_by_direction(otel: Collected) -> None:
    with antipode.message_scope(TEXT):
        from antipode.messages import outgoing_message

        assert outgoing_message() == TEXT
    inbound = Inbound(InboundHeaders((TEXT,)), "127.0.0.1")
    with activate(inbound.scope):
        antipode.append(WriteId.position("s", "e", 1))
        assert inbound.response_text() is not None
    sizes = {point.attributes["direction"]: point.total for point in otel.points("antipode.lineage.size")}
    assert sizes == {
        "message_in": len(TEXT),
        "message_out": len(TEXT),
        "request_in": len(TEXT),
        "response_out": len("1~s..e.1"),
    }


def test_what_is_dropped_is_counted_with_its_reason_and_direction(otel: Collected) -> None:
    """OBS-3."""
    Inbound(InboundHeaders((TEXT,)), "203.0.113.9")
    Inbound(InboundHeaders(("1~",)), "127.0.0.1")
    with antipode.message_scope("nonsense"):
        pass
    antipode.configure(keys={"k1": b"0123456789abcdef"})
    with antipode.message_scope(TEXT):
        pass
    assert otel.counts("antipode.lineage.dropped", "reason", "direction") == {
        ("untrusted", "request_in"): 1,
        ("malformed", "request_in"): 1,
        ("malformed", "message_in"): 1,
        ("seal", "message_in"): 1,
    }
    assert otel.counts("antipode.lineage.incomplete", "reason", "store") == {("malformed", ""): 2, ("seal", ""): 1}


def test_an_implausible_entry_is_counted(otel: Collected) -> None:
    """OBS-3."""
    _, writer, _ = posts()
    with antipode.scope() as opened:
        writer.set("k", "v")
        [real] = opened.lineage
        assert isinstance(real.version, Ordered)
        antipode.append(WriteId.position("blog-posts", real.version.epoch, 10**6))
        writer.set("k", "w")
        assert opened.lineage.incomplete == {"blog-posts"}
    assert otel.counts("antipode.lineage.dropped", "reason", "direction") == {("implausible", "write"): 1}
    assert otel.counts("antipode.lineage.incomplete", "reason", "store") == {("implausible", "blog-posts"): 1}


def test_what_passes_the_budget_and_what_is_pending_make_it_incomplete(otel: Collected) -> None:
    antipode.configure(stores=["large"], budget_bytes=40)
    from antipode.messages import outgoing_message

    store = fake_store("small", Target("t", always(VISIBLE)))
    with antipode.scope():
        antipode.append(WriteId("large", "k" * 40, Ordered("", 1)))
        write = store.begin("k")
        assert outgoing_message() is not None
        write.abandon()
    assert otel.counts("antipode.lineage.incomplete", "reason", "store") == {
        ("budget", "large"): 1,
        ("pending", "small"): 1,
    }


def test_writes_that_no_scope_records_are_counted(otel: Collected) -> None:
    _, writer, _ = posts()
    writer.set("k", "v")  # outside any scope
    with antipode.scope() as opened:
        pass
    with activate(opened):
        writer.set("k", "v")  # after its scope had ended
    assert otel.counts("antipode.write.lost", "store", "reason") == {
        ("blog-posts", "orphan"): 1,
        ("blog-posts", "closed"): 1,
    }
    opened = Scope(kind="request")
    opened.sent = True  # the response's header has left
    with activate(opened):
        writer.set("k", "v")
    [late] = otel.points("antipode.write.late")
    assert (late.attributes["store"], late.value) == ("blog-posts", 1)
    for point in (*otel.points("antipode.write.lost"), late):
        assert str(point.attributes["site"]).startswith("tests/test_telemetry.py:")


def test_stores_that_may_not_be_marked_are_a_gauge(otel: Collected) -> None:
    note_marks("blog-posts", "rights")
    assert otel.points("antipode.marks.missing") == [Point({"store": "blog-posts", "reason": "rights"}, 1, 1)]
    note_marks("blog-posts", None)
    assert otel.points("antipode.marks.missing") == []


def test_fallbacks_are_counted(otel: Collected) -> None:
    store, writer, reader = posts()
    store.freeze("b")
    with antipode.scope():
        writer.set("k", "v")

        def read() -> bytes | None:
            return antipode.read_or_fallback(lambda: reader.get("k"), lambda: writer.get("k"), timeout=0.02)

        assert read() == b"v"
        antipode.configure(max_fallbacks=0)
        with pytest.raises(antipode.BarrierTimeout):
            read()
    assert otel.counts("antipode.fallback.count", "outcome") == {"run": 1, "refused": 1}


def test_findings_are_counted_and_events_of_the_request(otel: Collected, tmp_path: Any) -> None:
    """REC-9."""
    antipode.configure(mode="dry-run", records=tmp_path)
    store, writer, _ = posts(lag=0.05)
    from antipode.messages import outgoing_message

    with trace.get_tracer("app").start_as_current_span("request"), antipode.scope():
        write = store.client("a")._joined.begin("k")
        outgoing_message()
        write.abandon()
        writer.set("k", "v")
        antipode.barrier()
        waiting = threading.Event()
        for _ in range(1000):
            if "behind" in otel.counts("antipode.finding.count", "kind"):
                break
            waiting.wait(0.01)
    assert otel.counts("antipode.finding.count", "kind") == {"published_before_commit": 1, "behind": 1}
    for point in otel.points("antipode.finding.count"):
        assert str(point.attributes["site"]).startswith("tests/test_telemetry.py:")
    [request] = otel.spans("request")
    events = [(event.attributes or {}) for event in request.events if event.name == "antipode.finding"]
    assert [told["antipode.kind"] for told in events] == ["published_before_commit", "barrier"]
    for told in events:
        assert str(told["antipode.site"]).startswith("tests/test_telemetry.py:")
    assert otel.spans("antipode.barrier") == []  # nothing waited


# All of them


def test_a_server_that_does_not_answer_makes_the_wait_unproven(otel: Collected) -> None:
    antipode.configure(replica_out_after=timedelta(milliseconds=20))
    fake_store("gone", Target("t", down))
    with antipode.scope(Lineage([WriteId("gone", "k", Ordered("", 1))])):
        antipode.barrier(timeout=0.5, on_timeout="proceed", on_unproven="proceed")
    [span] = otel.spans("antipode.wait")
    assert (span.attributes or {})["antipode.verdict"] in {"unproven", "timed_out"}
    assert otel.counts("antipode.wait.requests", "store")["gone"] >= 1


def test_the_specification_names_every_instrument() -> None:
    """The instruments made are those of the table, no more and no fewer."""
    reader = InMemoryMetricReader()
    provider = MeterProvider([reader], shutdown_on_exit=False)
    made: dict[str, str] = {}

    class Recorder:
        def __getattr__(self, name: str) -> Any:
            def create(instrument: str, *arguments: Any, **_: Any) -> None:
                made[instrument] = next(word for word in arguments if isinstance(word, str))

            return create

    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(metrics, "get_meter", lambda name: Recorder())
        telemetry._Instruments()
    provider.shutdown()
    assert made == {name: unit for name, (_, unit) in KINDS.items()}


def test_sites_are_bounded(otel: Collected) -> None:
    """OBS-6."""
    for number in range(telemetry.MOST_SITES + 10):
        telemetry.write_late("s", f"app.py:{number}")
    sites = otel.counts("antipode.write.late", "site")
    assert len(sites) == telemetry.MOST_SITES + 1
    assert sites["other"] == 10


def test_nothing_private_is_in_any_attribute(otel: Collected) -> None:
    """OBS-5: no key and no lineage."""
    store, writer, _ = posts()
    store.freeze("b")
    with antipode.scope():
        writer.set("the-private-key", "v")
        with pytest.raises(antipode.BarrierTimeout):
            antipode.barrier(timeout=0.02)
        text = antipode.serialize()
    shown = repr([dict(span.attributes or {}) for span in otel.exporter.get_finished_spans()])
    shown += repr(otel.everything())
    assert "the-private-key" not in shown
    assert text not in shown
    assert text.split(".")[2] not in shown  # the epoch


# Names from the wire


def test_names_from_the_wire_are_bounded_and_escaped(caplog: pytest.LogCaptureFixture, otel: Collected) -> None:
    """OBS-12, OBS-13: no forged lines, no escapes, a handful of lines, and one series for what is not known here."""
    antipode.configure(stores=["expected"])
    with caplog.at_level(logging.WARNING, "antipode"):
        for number in range(30):
            names = [f"s{number}-{other}_0A2026_1B31m" for other in range(38)] + ["expected"]
            text = "1" + "".join(f"~{name}..b.1.{'k' * 60}.b.9" for name in names)
            with Inbound(InboundHeaders((text,)), "10.0.0.1").active():
                inject_request({}, "other-service")
    lines = [record.getMessage() for record in caplog.records]
    assert len(lines) == 1
    assert all("\n" not in line and "\x1b" not in line for line in lines)
    assert "more was left out" in lines[0]
    assert logs._throttle._kinds.keys() == {"budget"}
    assert {point.attributes["store"] for point in otel.points("antipode.lineage.incomplete")} == {"other"}
