"""`track` and taps: a message can be waited for where somebody reads the region's stream."""

from __future__ import annotations

import gc
import os
import threading
import time
import uuid
from typing import Any, cast

import antipode
import antipode_rabbitmq
import psutil
import pytest
from antipode import ConfigurationError, Opaque, UnfitStoreError, Verdict, WriteId
from antipode._engine.server import ServerPoller
from antipode._store.store import registry
from antipode.messages import HEADER
from antipode.shim.tap import Marks, TapRefusedError
from antipode.testing import isolated
from antipode_rabbitmq import MARK_HEADER, Tap, declare_tap
from antipode_rabbitmq.memory import StreamMemory
from antipode_rabbitmq.reader import TapReader
from rabbit_regions import Consumer, Link, Region, properties, wait_for


def tapped(region: Region, exchange: str) -> Tap:
    """A new tap at an exchange of the region, which ends with the test."""
    queue = declare_tap(region.own, exchange, f"tap-{uuid.uuid4().hex[:12]}")
    region.queues.append(queue)
    return Tap(region.url, queue)


def message(mark: str, store: str = "notifications") -> antipode.Lineage:
    return antipode.EMPTY.including(WriteId(store, b"x", Opaque(mark)))


def judge(lineage: antipode.Lineage, timeout: float = 5.0) -> antipode.BarrierResult:
    return antipode.barrier(lineage, timeout=timeout, on_timeout="proceed", on_unproven="proceed")


def verdict(lineage: antipode.Lineage, timeout: float = 5.0) -> Verdict:
    return judge(lineage, timeout).stores["notifications"].verdict


def came(region: Region, queue: str, count: int) -> bool:
    """Whether the broker says soon that a stream has so many messages."""
    try:
        return bool(wait_for("all of them", lambda: region.count(queue) == count))
    except AssertionError:
        return False


def test_a_tracked_message_joins_the_lineage_and_is_waited_for(b: Region) -> None:
    """SHIM-17."""
    exchange = b.exchange()
    tap, queue = tapped(b, exchange), b.queue()
    b.own.queue_bind(queue, exchange)
    channel = b.wrapped(track=True, tap=tap)
    assert registry().need("notifications").replicas == (tap.address,)
    with antipode.scope() as scope:
        channel.basic_publish(exchange, "", b"body", properties(headers={"mine": 1}))
        (write_id,) = scope.lineage
        assert write_id.store == "notifications"
        assert write_id.key == exchange.encode()
        result = antipode.barrier(timeout=5)
    assert result.satisfied
    assert result.complete
    _, received, _ = b.get(queue)
    assert write_id.version == Opaque(received.message_id)
    assert received.headers["mine"] == 1
    assert antipode.deserialize(received.headers[HEADER]) == scope.lineage, "the message depends on itself"


def test_a_message_that_has_not_arrived_is_waited_for_until_it_has(b: Region) -> None:
    exchange = b.exchange()
    tap = tapped(b, exchange)
    antipode_rabbitmq.register("notifications", tap=tap)
    mark = uuid.uuid4().hex
    begun = time.monotonic()
    late = judge(message(mark), timeout=0.3)
    assert late.stores["notifications"].verdict is Verdict.TIMED_OUT
    assert 0.3 <= time.monotonic() - begun < 1.5, "bounded by the deadline"
    assert tap.queue in late.stores["notifications"].reason
    results: list[antipode.BarrierResult] = []
    thread = threading.Thread(target=lambda: results.append(judge(message(mark), 10)))
    thread.start()
    server = cast("ServerPoller", registry().need("notifications").servers()[0])
    wait_for("the barrier to be parked", lambda: server.waiters.live > 0)
    b.own.basic_publish(exchange, "", b"", properties(message_id=mark))
    thread.join(10)
    assert results[0].satisfied


def test_arrival_is_pushed(b: Region) -> None:
    """Not found by polling, whose interval here is longer than the test."""
    antipode.configure(poll=5)
    exchange = b.exchange()
    antipode_rabbitmq.register("notifications", tap=tapped(b, exchange))
    server = cast("ServerPoller", registry().need("notifications").servers()[0])

    def wake_up() -> float:
        mark, results = uuid.uuid4().hex, list[antipode.BarrierResult]()
        thread = threading.Thread(target=lambda: results.append(judge(message(mark), 20)))
        thread.start()
        wait_for("the reader to know", lambda: server.session and mark in server.session.memory.wanted, 20)
        begun = time.monotonic()
        b.own.basic_publish(exchange, "", b"", properties(message_id=mark))
        thread.join(20)
        assert results[0].satisfied
        return time.monotonic() - begun

    waits = [wake_up() for _ in range(3)]
    assert min(waits) < 1, waits


def test_what_arrived_before_anybody_waited_is_found(b: Region) -> None:
    """The first barrier reads the stream's past, and a later one what came while nobody read it."""
    exchange = b.exchange()
    tap = tapped(b, exchange)
    marks = [uuid.uuid4().hex for _ in range(300)]
    b.own.confirm_delivery()
    for mark in marks[:200]:
        b.own.basic_publish(exchange, "", b"", properties(message_id=mark))
    store = antipode_rabbitmq.register("notifications", tap=tap)
    for mark in (marks[0], marks[199]):
        assert verdict(message(mark)) is Verdict.VISIBLE
    server = cast("ServerPoller", store.servers()[0])
    wait_for("the past to be read", lambda: server.session.memory.offset == 199)
    server.retire()
    assert server.session.reader is None
    for mark in marks[200:]:
        b.own.basic_publish(exchange, "", b"", properties(message_id=mark))
    for mark in (marks[299], marks[200], marks[5]):
        assert verdict(message(mark)) is Verdict.VISIBLE
    assert server.session.memory.offset == 299


def test_memory_is_bounded_and_what_was_forgotten_never_passes(b: Region) -> None:
    exchange = b.exchange()
    tap = tapped(b, exchange)
    marks = [uuid.uuid4().hex for _ in range(200)]
    b.own.confirm_delivery()
    for mark in marks:
        b.own.basic_publish(exchange, "", b"", properties(message_id=mark))
    store = antipode_rabbitmq.register("notifications", tap=Tap(tap.url, tap.queue, remember=20))
    assert verdict(message(marks[199])) is Verdict.VISIBLE
    server = cast("ServerPoller", store.servers()[0])
    assert len(server.session.memory.seen) == 20
    assert verdict(message(marks[3]), 0.2) is Verdict.TIMED_OUT
    for number in range(15_000):
        server.session.memory.want(f"never-{number}")
    assert len(server.session.memory.wanted) <= 10_000


def test_without_a_tap_arrival_is_unproven_and_says_what_to_do(b: Region) -> None:
    channel = b.wrapped(track=True)
    queue = b.queue()
    begun = time.monotonic()
    with antipode.scope():
        channel.basic_publish("", queue, b"")
        result = antipode.barrier(timeout=5, on_timeout="proceed")
    assert time.monotonic() - begun < 2, "at once"
    assert not result.satisfied
    judged = result.stores["notifications"]
    assert judged.verdict is Verdict.UNPROVEN
    assert "tap" in judged.reason
    assert "register" in judged.reason


def test_a_consumer_needs_no_tap_for_the_message_that_it_got(b: Region) -> None:
    queue = b.queue()
    results: list[Any] = []
    other = message("another-message")

    def callback(channel: Any, method: Any, received: Any, body: bytes) -> None:
        scope = antipode.current_scope()
        assert scope is not None
        results.append(antipode.barrier(timeout=2))
        results.append(judge(scope.lineage | other, 2))
        channel.basic_ack(method.delivery_tag)

    publisher = b.wrapped(track=True)
    with antipode.scope():
        publisher.basic_publish("", queue, b"")
    with Consumer(b, queue, callback) as consumer:
        wait_for("both barriers", lambda: len(results) == 2)
    assert not consumer.errors
    assert results[0].satisfied
    assert results[1].stores["notifications"].verdict is Verdict.UNPROVEN, "another message is not proved by this one"


def test_a_message_id_that_is_used_again_proves_nothing_for_another_message(b: Region) -> None:
    """Applications use `message_id` for their own purposes: the same one twice must not pass for the second."""
    exchange = b.exchange("direct")
    tap = tapped(b, exchange)
    b.own.queue_bind(tap.queue, exchange, "arrives")
    channel = b.wrapped(track=True, tap=tap)
    given = properties(message_id="order-7", headers={"mine": 1})
    with antipode.scope() as first:
        channel.basic_publish(exchange, "arrives", b"1", given)
        assert antipode.barrier(timeout=5).satisfied
    with antipode.scope() as second:
        channel.basic_publish(exchange, "does not arrive", b"2", given)
        assert judge(second.lineage, 0.3).stores["notifications"].verdict is Verdict.TIMED_OUT
    assert first.lineage != second.lineage
    assert given.headers == {"mine": 1}


def test_properties_of_a_tracked_message_get_a_new_mark(b: Region) -> None:
    channel = b.wrapped(track=True)
    first, second, third = b.queue(), b.queue(), b.queue()
    with antipode.scope():
        channel.basic_publish("", first, b"")
        _, received, _ = b.get(first)
        channel.basic_publish("", second, b"", received)
        _, again, _ = b.get(second)
        channel.basic_publish("", third, b"", again)
        _, more, _ = b.get(third)
    assert received.message_id == again.message_id == more.message_id
    assert MARK_HEADER not in received.headers
    assert len({received.message_id, again.headers[MARK_HEADER], more.headers[MARK_HEADER]}) == 3


def test_what_was_not_sent_is_not_waited_for(b: Region) -> None:
    from pika.exceptions import ChannelClosedByBroker, UnroutableError

    channel = b.wrapped(track=True)
    channel.confirm_delivery()
    with antipode.scope() as scope:
        with pytest.raises(UnroutableError):
            channel.basic_publish("", "no-such-queue", b"", mandatory=True)
        assert not scope.lineage
        assert not scope.pending
        with pytest.raises(ChannelClosedByBroker):
            channel.basic_publish("no-such-exchange", "", b"")
        assert not scope.recorded_lineage
        assert scope.pending[0].unknown, "nobody can say what became of it"
        assert not scope.outgoing().is_complete(["notifications"])


def test_a_tap_that_cannot_be_read_is_refused_at_once(b: Region) -> None:
    classic = b.queue()
    for tap, words in (
        (Tap(b.url, "no-such-queue"), "declare_tap"),
        (Tap(b.url, classic), "no stream queue"),
        (Tap(b.url.replace("guest:guest", "guest:wrong"), classic), "may not log in"),
        (Tap(b.url.rpartition("/")[0] + "/no-such-vhost", classic), "virtual host"),
    ):
        with pytest.raises(UnfitStoreError, match=words) as raised:
            antipode_rabbitmq.register("notifications", tap=tap)
        assert "guest:" not in str(raised.value)
        assert "wrong" not in str(raised.value)
    begun = time.monotonic()
    antipode_rabbitmq.register("notifications", tap=Tap(b.url, classic), on_unfit="unproven")
    assert verdict(message("m")) is Verdict.UNPROVEN
    assert time.monotonic() - begun < 4
    b.own.basic_publish("", classic, b"kept")
    assert b.get(classic)[2] == b"kept", "a queue that is no tap is not emptied"


def test_a_broker_out_of_reach_is_no_mistake_and_no_proof() -> None:
    antipode.configure(replica_out_after=0.5)
    antipode_rabbitmq.register("notifications", tap="amqp://guest:guest@127.0.0.1:1/%2F#tap")
    begun = time.monotonic()
    result = judge(message("m"), 3)
    assert time.monotonic() - begun < 4
    assert result.stores["notifications"].verdict in {Verdict.UNPROVEN, Verdict.TIMED_OUT}
    assert "guest" not in result.explain()


def test_taps_as_text_and_from_the_environment(b: Region, monkeypatch: pytest.MonkeyPatch) -> None:
    exchange = b.exchange()
    tap = tapped(b, exchange)
    assert Tap.of(f"{tap.url}#{tap.queue}") == tap
    assert "guest" not in tap.address
    assert tap.address.endswith(f"/b#{tap.queue}")
    assert "guest" not in repr(tap)
    for bad in ("amqp://host/%2F", "http://host#q", ""):
        with pytest.raises(ConfigurationError, match="stream queue"):
            Tap.of(bad)
    monkeypatch.setenv("ANTIPODE_STORE_NOTIFICATIONS_REPLICAS", f"{tap.url}#{tap.queue}")
    with isolated():
        store = antipode_rabbitmq.register("notifications")
        assert store.replicas == (tap.address,)
        b.own.basic_publish(exchange, "", b"", properties(message_id="m"))
        assert verdict(message("m")) is Verdict.VISIBLE
    with isolated():
        store = antipode_rabbitmq.register("others", tap=lambda: [tap])
        assert store.replicas == (tap.address,)


def test_a_tap_whose_stream_goes_away_proves_nothing_more(b: Region) -> None:
    exchange = b.exchange()
    b.own.queue_bind(b.queue(), exchange)
    tap = tapped(b, exchange)
    antipode_rabbitmq.register("notifications", tap=tap)
    b.own.basic_publish(exchange, "", b"", properties(message_id="before"))
    assert verdict(message("before")) is Verdict.VISIBLE
    b.own.queue_delete(tap.queue)
    assert verdict(message("after"), 2) is Verdict.UNPROVEN

    def declared_anew() -> bool:
        """A busy broker gives the first messages to the stream of that name it is just deleting: then once more."""
        b.own.queue_delete(tap.queue)
        declare_tap(b.own, exchange, tap.queue)
        b.own.basic_publish(exchange, "", b"", properties(message_id="again"))
        return came(b, tap.queue, 1)

    wait_for("a stream that has the message", declared_anew, 90)
    wait_for("that stream is read", lambda: verdict(message("again"), 2) is Verdict.VISIBLE, 90)


@pytest.mark.parametrize(("before", "after"), [(50, 20), (20, 50), (30, 30), (0, 10)])
def test_a_stream_declared_anew_while_nobody_reads_is_read_whole(b: Region, before: int, after: int) -> None:
    """Its offsets begin anew: neither a place behind its end nor one in its middle may be read on from."""
    exchange = b.exchange()
    b.own.queue_bind(b.queue(), exchange)
    tap = tapped(b, exchange)
    store = antipode_rabbitmq.register("notifications", tap=tap)
    server = cast("ServerPoller", store.servers()[0])
    b.own.confirm_delivery()
    old, new = [uuid.uuid4().hex for _ in range(before)], [uuid.uuid4().hex for _ in range(after)]
    for mark in old:
        b.own.basic_publish(exchange, "", b"", properties(message_id=mark))
    for mark in old[-1:]:
        assert verdict(message(mark)) is Verdict.VISIBLE
    server.retire()

    def declared_anew() -> bool:
        """A busy broker gives the first messages to the stream of that name that it is deleting: then once more."""
        b.own.queue_delete(tap.queue)
        declare_tap(b.own, exchange, tap.queue)
        for mark in new:
            b.own.basic_publish(exchange, "", b"", properties(message_id=mark))
        return came(b, tap.queue, after)

    wait_for("a stream that has all", declared_anew, 90)
    # A busy broker may take its time for a stream of a name that it has just deleted.
    wait_for("the new stream", lambda: verdict(message(new[-1]), 2) is Verdict.VISIBLE, 90)
    assert [mark for mark in new if verdict(message(mark), 2) is not Verdict.VISIBLE] == []
    assert [mark for mark in old if verdict(message(mark), 2) is not Verdict.VISIBLE] == [], "arrived stays arrived"


def test_a_connection_that_breaks_is_made_again(b: Region, link: Link) -> None:
    exchange = b.exchange()
    tap = tapped(b, exchange)
    antipode_rabbitmq.register("notifications", tap=Tap(link.url, tap.queue))
    b.own.basic_publish(exchange, "", b"", properties(message_id="one"))
    assert verdict(message("one")) is Verdict.VISIBLE
    link.cut()
    b.own.basic_publish(exchange, "", b"", properties(message_id="two"))
    assert verdict(message("two"), 0.3) is not Verdict.VISIBLE
    link.heal()
    assert verdict(message("two"), 10) is Verdict.VISIBLE


def test_a_silent_broker_is_left_out_and_said_so(b: Region, link: Link) -> None:
    """One of the region's two brokers does not answer: the barrier passes for the other within 3 s, and says so."""
    antipode.configure(replica_out_after=1.0)
    exchange = b.exchange()
    tap = tapped(b, exchange)
    antipode_rabbitmq.register("notifications", tap=[tap, Tap(link.url, tap.queue)])
    b.own.basic_publish(exchange, "", b"", properties(message_id="one"))
    assert judge(message("one")).complete
    link.silence()
    b.own.basic_publish(exchange, "", b"", properties(message_id="two"))
    begun = time.monotonic()
    result = judge(message("two"), 10)
    assert time.monotonic() - begun < 4
    assert result.satisfied
    assert not result.complete
    assert [server.left_out for server in result.stores["notifications"].servers] == [False, True]
    link.heal()
    wait_for("the broker to be back", lambda: judge(message("two"), 2).complete, 20)


def test_a_forged_or_foreign_identifier_is_unproven(b: Region) -> None:
    exchange = b.exchange()
    antipode_rabbitmq.register("notifications", tap=tapped(b, exchange))
    ordered = antipode.EMPTY.including(WriteId.position("notifications", "e", 5))
    assert verdict(ordered) is Verdict.UNPROVEN


def test_the_child_of_a_fork_reads_the_tap_by_itself(b: Region) -> None:
    exchange = b.exchange()
    store = antipode_rabbitmq.register("notifications", tap=tapped(b, exchange))
    b.own.basic_publish(exchange, "", b"", properties(message_id="one"))
    assert verdict(message("one")) is Verdict.VISIBLE
    session = store.servers()[0].session
    child = os.fork()
    if child == 0:
        outcome = 1
        try:
            passed = verdict(message("one")) is Verdict.VISIBLE and verdict(message("two")) is Verdict.VISIBLE
            outcome = 0 if passed and store.servers()[0].session is not session else 2
        finally:
            os._exit(outcome)
    b.own.basic_publish(exchange, "", b"", properties(message_id="two"))
    assert verdict(message("two")) is Verdict.VISIBLE
    assert os.waitstatus_to_exitcode(os.waitpid(child, 0)[1]) == 0


def test_no_thread_and_no_connection_is_left(b: Region) -> None:
    exchange = b.exchange()
    tap, classic = tapped(b, exchange), b.queue()
    ours = psutil.Process()

    def connections() -> int:
        gc.collect()
        port = b.lab.server("b").port
        return sum(1 for each in ours.net_connections("tcp") if each.raddr and each.raddr.port == port)

    before = connections()
    for _ in range(3):
        reader = TapReader(tap, StreamMemory(10), lambda: None, 2)
        reader.start(2)
        reader.check(1)
        reader.close()
        reader.close()
        assert reader.join(5)
        refused = TapReader(Tap(b.url, classic), StreamMemory(10), lambda: None, 2)
        with pytest.raises(TapRefusedError, match="x-stream-offset"):
            refused.start(2)
        assert refused.join(5)
        wait_for("the connections' end", lambda: connections() == before)
    names = [thread.name for thread in threading.enumerate()]
    assert not [name for name in names if tap.queue in name or classic in name]


def test_marks_are_forgotten_in_the_order_in_which_they_came() -> None:
    marks = Marks(3)
    for mark in ("a", "b", "a", "c", "d"):
        marks.add(mark)
    assert [mark in marks for mark in "abcd"] == [False, True, True, True]
    assert len(marks) == 3
