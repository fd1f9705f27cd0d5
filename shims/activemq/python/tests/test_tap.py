"""`track` and taps: a message can be waited for where somebody reads the region's tap."""

from __future__ import annotations

import threading
import time
import uuid
from typing import Any, cast

import antipode
import antipode_activemq
import pytest
from activemq_regions import QUEUE, TAP, Link, Region, tap_of, wait_for
from antipode import ConfigurationError, Opaque, UnfitStoreError, Verdict, WriteId
from antipode._engine.server import ServerPoller
from antipode._store.store import registry
from antipode.messages import JMS_HEADER
from antipode.shim.tap import Marks, TapMemory
from antipode.testing import isolated
from antipode_activemq import MARK_HEADER, Tap
from antipode_activemq.reader import PROBE_HEADER


def message(mark: str, store: str = "notifications") -> antipode.Lineage:
    return antipode.EMPTY.including(WriteId(store, b"x", Opaque(mark)))


def judge(lineage: antipode.Lineage, timeout: float = 5.0) -> antipode.BarrierResult:
    return antipode.barrier(lineage, timeout=timeout, on_timeout="proceed", on_unproven="proceed")


def verdict(lineage: antipode.Lineage, timeout: float = 5.0) -> Verdict:
    return judge(lineage, timeout).stores["notifications"].verdict


def test_a_tracked_message_joins_the_lineage_and_is_waited_for_in_the_other_region(a: Region, b: Region) -> None:
    """SHIM-17."""
    tap = tap_of(b)
    box = b.inbox(QUEUE)
    connection = a.wrapped(track=True, tap=tap)
    assert registry().need("notifications").replicas == (tap.address,)
    with antipode.scope() as scope:
        connection.send(QUEUE, mine := uuid.uuid4().hex, mine="1")
        (write_id,) = scope.lineage
        assert (write_id.store, write_id.key) == ("notifications", QUEUE.encode())
        result = antipode.barrier(timeout=5)
    assert result.satisfied
    assert result.complete
    received = wait_for("it", lambda: [frame for frame in box.frames if frame.body == mine])[0]
    assert write_id.version == Opaque(received.headers[MARK_HEADER])
    assert received.headers["mine"] == "1"
    assert antipode.deserialize(received.headers[JMS_HEADER]) == scope.lineage, "the message depends on itself"


def test_a_message_that_has_not_arrived_is_waited_for_until_it_has(a: Region, b: Region) -> None:
    antipode_activemq.register("notifications", tap=tap_of(b))
    mark = uuid.uuid4().hex
    begun = time.monotonic()
    late = judge(message(mark), timeout=0.3)
    assert late.stores["notifications"].verdict is Verdict.TIMED_OUT
    assert 0.3 <= time.monotonic() - begun < 1.5, "bounded by the deadline"
    assert TAP in late.stores["notifications"].reason
    results: list[antipode.BarrierResult] = []
    thread = threading.Thread(target=lambda: results.append(judge(message(mark), 10)))
    thread.start()
    server = cast("ServerPoller", registry().need("notifications").servers()[0])
    wait_for("the barrier to be parked", lambda: server.waiters.live > 0)
    a.own.send(QUEUE, "", headers={MARK_HEADER: mark})
    thread.join(10)
    assert results[0].satisfied


def test_arrival_is_pushed(b: Region) -> None:
    """Not found by polling, whose interval here is longer than the test (SHIM-18)."""
    antipode.configure(poll=5)
    antipode_activemq.register("notifications", tap=tap_of(b))
    server = cast("ServerPoller", registry().need("notifications").servers()[0])

    def wake_up() -> float:
        mark, results = uuid.uuid4().hex, list[antipode.BarrierResult]()
        thread = threading.Thread(target=lambda: results.append(judge(message(mark), 20)))
        thread.start()
        wait_for("the reader to know", lambda: server.session and mark in server.session.memory.wanted, 20)
        begun = time.monotonic()
        b.own.send(f"/topic/{TAP}", "", headers={MARK_HEADER: mark})
        thread.join(20)
        assert results[0].satisfied
        return time.monotonic() - begun

    waits = [wake_up() for _ in range(3)]
    assert min(waits) < 1, waits


def test_what_arrived_before_anybody_waited_is_found(b: Region) -> None:
    """The first barrier reads the past that the broker has kept, and a later one what came while nobody read."""
    marks = [uuid.uuid4().hex for _ in range(300)]
    for mark in marks[:200]:
        b.own.send(f"/topic/{TAP}", "", headers={MARK_HEADER: mark})
    b.send(b.own, f"/topic/{TAP}", "")  # its receipt comes behind them
    store = antipode_activemq.register("notifications", tap=tap_of(b))
    server = cast("ServerPoller", store.servers()[0])
    for mark in (marks[0], marks[199]):
        assert verdict(message(mark)) is Verdict.VISIBLE
    server.retire()
    assert server.session.reader is None
    for mark in marks[200:]:
        b.own.send(f"/topic/{TAP}", "", headers={MARK_HEADER: mark})
    for mark in (marks[299], marks[200], marks[5]):
        assert verdict(message(mark)) is Verdict.VISIBLE


def test_memory_is_bounded_and_what_was_forgotten_never_passes(b: Region) -> None:
    marks = [uuid.uuid4().hex for _ in range(200)]
    for mark in marks:
        b.own.send(f"/topic/{TAP}", "", headers={MARK_HEADER: mark})
    store = antipode_activemq.register("notifications", tap=Tap(b.url, TAP, remember=20))
    assert verdict(message(marks[199])) is Verdict.VISIBLE
    server = cast("ServerPoller", store.servers()[0])
    assert len(server.session.memory.seen) == 20
    assert verdict(message(marks[3]), 0.2) is Verdict.TIMED_OUT
    for number in range(15_000):
        server.session.memory.want(f"never-{number}")
    assert len(server.session.memory.wanted) <= 10_000


def test_without_a_tap_arrival_is_unproven_and_says_what_to_do(b: Region) -> None:
    connection = b.wrapped(track=True)
    begun = time.monotonic()
    with antipode.scope():
        connection.send(b.queue(), "")
        result = antipode.barrier(timeout=5, on_timeout="proceed")
    assert time.monotonic() - begun < 2, "at once"
    judged = result.stores["notifications"]
    assert judged.verdict is Verdict.UNPROVEN
    assert "tap" in judged.reason
    assert "register" in judged.reason


def test_a_consumer_needs_no_tap_for_the_message_that_it_got(b: Region) -> None:
    queue, results, other = b.queue(), list[Any](), message("another-message")
    connection = b.wrapped(track=True)

    def callback(frame: Any) -> None:
        scope = antipode.current_scope()
        assert scope is not None
        results.append(antipode.barrier(timeout=2))
        results.append(judge(scope.lineage | other, 2))

    b.inbox(queue, callback, connection=connection)
    with antipode.scope():
        connection.send(queue, "")
    wait_for("both barriers", lambda: len(results) == 2)
    assert results[0].satisfied
    assert results[1].stores["notifications"].verdict is Verdict.UNPROVEN, "another message is not proved by this one"


def test_headers_of_a_tracked_message_get_a_new_mark(b: Region) -> None:
    queue = b.queue()
    box, connection = b.inbox(queue), b.wrapped(track=True)
    with antipode.scope():
        connection.send(queue, "")
        first = box.next().headers
        connection.send(queue, "", headers={MARK_HEADER: first[MARK_HEADER]})
    assert first[MARK_HEADER] != box.next().headers[MARK_HEADER]


def test_a_tracked_message_to_a_plain_topic_is_refused_before_it_is_sent(a: Region) -> None:
    """What is published to it while no link carries it is lost, and nobody could wait for it."""
    connection = a.wrapped(track=True)
    with antipode.scope() as scope:
        with pytest.raises(ConfigurationError, match="stored_topics"):
            connection.send("/topic/plain", "")
        assert not scope.lineage
        assert not scope.pending
    a.wrapped(track=False).send("/topic/plain", "a lineage alone is nothing to wait for")


def test_a_topic_that_crosses_in_a_queue_is_waited_for_across_a_partition(a: Region, b: Region) -> None:
    connection = a.wrapped(track=True, stored_topics=True, tap=tap_of(b, "antipode.tap.news"))
    a.lab.partition("b")
    with antipode.scope() as scope:
        connection.send("/topic/news", "held")
    assert verdict(scope.lineage, 0.2) is Verdict.TIMED_OUT
    a.lab.heal()
    assert verdict(scope.lineage, 20) is Verdict.VISIBLE


def test_what_a_plain_topic_lost_never_passes(a: Region, b: Region) -> None:
    """The operator's word was wrong: the message is lost for good, and the barrier says so at its deadline."""
    connection = a.wrapped(track=True, stored_topics=True, tap=tap_of(b, "antipode.tap.plain"))
    a.lab.partition("b")
    with antipode.scope() as scope:
        connection.send("/topic/plain", "lost")
    a.lab.heal()
    assert verdict(scope.lineage, 0.5) is Verdict.TIMED_OUT


def test_a_tap_that_proves_nothing_is_refused_at_once(b: Region) -> None:
    """SHIM-3, SHIM-41."""
    for tap, words in (
        (tap_of(b, "antipode.tap.without-past"), "fixedCountSubscriptionRecoveryPolicy"),
        (Tap(b.url.replace("app:app", "publisher:publisher"), TAP), "authorizationEntry"),
        (Tap(b.url.replace("app:app", "app:wrong"), TAP), "may not log in"),
    ):
        with pytest.raises(UnfitStoreError, match=words) as raised:
            antipode_activemq.register("notifications", tap=tap)
        assert "app:" not in str(raised.value)
        assert "wrong" not in str(raised.value)
    antipode_activemq.register("notifications", tap=tap_of(b, "antipode.tap.without-past"), on_unfit="unproven")
    assert verdict(message("m"), 8) is Verdict.UNPROVEN


def test_a_tap_that_a_network_connector_carries_proves_nothing(b: Region) -> None:
    """SHIM-41: a probe that was sent at another broker tells so, and what was seen is forgotten."""
    tap = tap_of(b, "antipode.tap.bridged")
    store = antipode_activemq.register("notifications", tap=tap)
    b.send(b.own, "/topic/antipode.tap.bridged", "", **{MARK_HEADER: "before"})
    assert verdict(message("before")) is Verdict.VISIBLE
    reader = store.servers()[0].session.reader
    origin, reader._origin = reader._origin, "ID:another-1-2"  # as the reader sees a probe that was sent elsewhere
    b.send(b.own, "/topic/antipode.tap.bridged", "", **{PROBE_HEADER: "theirs", MARK_HEADER: "after"})
    wait_for("the reader's end", lambda: reader.error)
    assert origin.startswith("ID:")
    assert "network connector" in str(reader.error)
    assert "before" not in store.servers()[0].session.memory.seen


def test_a_broker_out_of_reach_is_no_mistake_and_no_proof() -> None:
    antipode.configure(replica_out_after=0.5)
    antipode_activemq.register("notifications", tap=f"stomp://app:secret@127.0.0.1:1#{TAP}")
    begun = time.monotonic()
    result = judge(message("m"), 3)
    assert time.monotonic() - begun < 4.5
    assert result.stores["notifications"].verdict in {Verdict.UNPROVEN, Verdict.TIMED_OUT}
    assert "secret" not in result.explain()


def test_taps_as_text_and_from_the_environment(b: Region, monkeypatch: pytest.MonkeyPatch) -> None:
    tap = tap_of(b)
    assert Tap.of(f"{tap.url}#{tap.topic}") == tap
    assert "app" not in tap.address
    assert "app" not in repr(tap)
    for bad in ("stomp://host", "http://host#antipode.tap.q", "", "stomp://#antipode.tap.q"):
        with pytest.raises(ConfigurationError, match="STOMP URL"):
            Tap.of(bad)
    with pytest.raises(ConfigurationError, match="no topic of its own"):
        Tap.of("stomp://host#notifications")
    monkeypatch.setenv("ANTIPODE_STORE_NOTIFICATIONS_REPLICAS", f"{tap.url}#{tap.topic}")
    with isolated():
        store = antipode_activemq.register("notifications")
        assert store.replicas == (tap.address,)
        b.own.send(f"/topic/{TAP}", "", headers={MARK_HEADER: "m"})
        assert verdict(message("m")) is Verdict.VISIBLE
    with isolated():
        assert antipode_activemq.register("others", tap=lambda: [tap]).replicas == (tap.address,)


def test_a_tap_may_make_its_own_connection(b: Region) -> None:
    made: list[Any] = []

    def connection() -> Any:
        made.append(b.lab.plain_connection("b"))
        return made[-1]

    antipode_activemq.register("notifications", tap=Tap(b.url, TAP, connection=connection))
    b.own.send(f"/topic/{TAP}", "", headers={MARK_HEADER: "mine"})
    assert verdict(message("mine")) is Verdict.VISIBLE
    assert made


def test_a_connection_that_breaks_is_made_again(b: Region, link: Link) -> None:
    antipode_activemq.register("notifications", tap=Tap(link.url, TAP))
    b.own.send(f"/topic/{TAP}", "", headers={MARK_HEADER: "one"})
    assert verdict(message("one")) is Verdict.VISIBLE
    link.cut()
    b.own.send(f"/topic/{TAP}", "", headers={MARK_HEADER: "two"})
    assert verdict(message("two"), 0.3) is not Verdict.VISIBLE
    link.heal()
    assert verdict(message("two"), 10) is Verdict.VISIBLE


def test_a_silent_broker_is_left_out_and_said_so(b: Region, link: Link) -> None:
    """One of the region's two ways does not answer: the barrier passes for the other, and says so."""
    antipode.configure(replica_out_after=1.0)
    antipode_activemq.register("notifications", tap=[tap_of(b), Tap(link.url, TAP)])
    b.own.send(f"/topic/{TAP}", "", headers={MARK_HEADER: "both"})
    assert judge(message("both")).complete
    link.silence()
    b.own.send(f"/topic/{TAP}", "", headers={MARK_HEADER: "one-way"})
    begun = time.monotonic()
    result = judge(message("one-way"), 10)
    assert time.monotonic() - begun < 9
    assert result.satisfied
    assert not result.complete


def test_marks_are_forgotten_in_the_order_in_which_they_came() -> None:
    marks = Marks(3)
    for mark in ("a", "b", "a", "c", "d"):
        marks.add(mark)
    assert [mark in marks for mark in "abcd"] == [False, True, True, True]
    memory = TapMemory(3)
    assert not memory.want("x")
    assert memory.note("x")
    assert not memory.note("x")
    memory.disbelieve()
    assert not memory.want("x")
