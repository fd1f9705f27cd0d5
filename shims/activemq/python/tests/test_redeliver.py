"""`redeliver`: the message stays unacknowledged for the delay, and then goes to the end of its queue (BAR-45)."""

from __future__ import annotations

import threading
import time
from itertools import pairwise
from typing import Any

import antipode
import antipode_activemq
import pytest
import stomp
from activemq_regions import Blog, Link, Region, wait_for
from antipode import ConfigurationError, configure
from antipode.messages import JMS_HEADER
from antipode_activemq.returns import COUNT_HEADER


def publish(a: Region, queue: str, blog: Blog, body: Any = "42", **headers: str) -> None:
    """A message that depends on a write which does not come to B."""
    blog.store.freeze("b")
    connection = antipode_activemq.wrap(a.own, store="notifications")
    with antipode.scope():
        blog.posts_a.set("post:42", "hi")
        connection.send(queue, body, headers=headers)


@pytest.mark.parametrize("version", ["10", "11", "12"])
def test_a_message_goes_back_and_comes_again(a: Region, blog: Blog, version: str) -> None:
    queue, tries, done = a.queue(), list[tuple[float, Any]](), list[Any]()
    publish(a, queue, blog, mine="1", priority="7", persistent="true", **{"correlation-id": "c"})
    plain = getattr(stomp, f"StompConnection{version}")([("127.0.0.1", a.lab.server("a").port)])
    connection = a.wrapped(plain=plain, redeliver_delay=0.2)

    def callback(frame: Any) -> None:
        tries.append((time.monotonic(), frame))
        antipode.barrier(timeout=0.05, on_timeout="redeliver")
        done.append(blog.posts_b.get("post:42"))
        acknowledge(connection, frame)

    box = a.inbox(queue, callback, connection=connection, ack="client-individual")
    wait_for("the third try", lambda: len(tries) >= 3)
    blog.store.heal("b")
    wait_for("success", lambda: done)
    assert done == [b"hi"]
    counts = [frame.headers.get(COUNT_HEADER) for _, frame in tries[:3]]
    assert counts == [None, "1", "2"]
    assert min(later[0] - earlier[0] for earlier, later in pairwise(tries)) >= 0.19, "each waits its delay"
    last, first = tries[-1][1], tries[0][1]
    for name in ("mine", "priority", "persistent", "correlation-id", JMS_HEADER, "content-length", "destination"):
        assert last.headers[name] == first.headers[name], name
    assert last.body == "42"
    assert not [error for error in box.failures if not isinstance(error, antipode.Redeliver)]
    connection.disconnect()
    assert a.count(queue) == 0, "each copy has taken the place of the one before"


def acknowledge(connection: Any, frame: Any) -> None:
    headers = frame.headers
    if connection.version == "1.2":
        connection.ack(headers["ack"])
    elif connection.version == "1.1":
        connection.ack(headers["message-id"], headers["subscription"])
    else:
        connection.ack(headers["message-id"])


def test_past_the_limit_the_brokers_own_policy_holds(a: Region, blog: Blog) -> None:
    """NACK: ActiveMQ dead-letters it, with its lineage."""
    queue = a.queue()
    dead = a.inbox("/queue/ActiveMQ.DLQ")
    publish(a, queue, blog, persistent="true")
    connection = a.wrapped(redeliver_delay=0.05, max_redeliveries=2)
    tries: list[Any] = []

    def callback(frame: Any) -> None:
        tries.append(frame.headers.get(COUNT_HEADER))
        antipode.barrier(timeout=0.02, on_timeout="redeliver")

    a.inbox(queue, callback, connection=connection, ack="client-individual")
    received = dead.next()
    assert tries == [None, "1", "2"]
    assert received.body == "42"
    assert received.headers[JMS_HEADER].startswith("1~blog.")


def test_acknowledging_behind_the_scope_is_refused(a: Region, blog: Blog) -> None:
    """PROP-36."""
    queue, frames = a.queue(), list[Any]()
    publish(a, queue, blog)
    connection = a.wrapped(redeliver_delay=3)

    def callback(frame: Any) -> None:
        frames.append(frame)
        antipode.barrier(timeout=0.02, on_timeout="redeliver")
        connection.ack(frame.headers["ack"])

    a.inbox(queue, callback, connection=connection, ack="client-individual")
    wait_for("it waits to go back", lambda: connection._antipode.returns.waiting)
    with pytest.raises(ConfigurationError, match="would be lost"):
        connection.ack(frames[0].headers["ack"])
    blog.store.heal("b")
    wait_for("it comes again", lambda: len(frames) == 2, timeout=60)


def test_other_messages_are_consumed_during_the_delay(a: Region, blog: Blog) -> None:
    queue, seen = a.queue(), list[str]()
    publish(a, queue, blog, "waits")
    a.own.send(queue, "passes")
    connection = a.wrapped(redeliver_delay=0.5)

    def callback(frame: Any) -> None:
        seen.append(frame.body)
        antipode.barrier(timeout=0.02, on_timeout="redeliver")
        connection.ack(frame.headers["ack"])

    a.inbox(queue, callback, connection=connection, ack="client-individual")
    wait_for("both", lambda: "passes" in seen)
    assert seen == ["waits", "passes"]
    blog.store.heal("b")
    wait_for("the first again", lambda: len(seen) == 3)


def barrier_error(a: Region, blog: Blog, act: Any, *, destination: str = "", ack: str = "client-individual") -> str:
    """What barrier(redeliver) says in a listener after `act(connection, frame)`."""
    queue = destination or a.queue()
    connection = a.wrapped()
    said: list[str] = []

    def callback(frame: Any) -> None:
        act(connection, frame)
        try:
            antipode.barrier(timeout=0.02, on_timeout="redeliver")
        except ConfigurationError as error:
            said.append(str(error))

    a.inbox(queue, callback, connection=connection, ack=ack)
    publish(a, queue, blog)
    wait_for("the error", lambda: said)
    return said[0]


def test_where_a_message_cannot_go_back_the_barrier_says_so(a: Region, blog: Blog) -> None:
    assert "ack='auto'" in barrier_error(a, blog, lambda *_: None, ack="auto")
    assert "client-individual" in barrier_error(a, blog, lambda *_: None, ack="client")
    assert "topic" in barrier_error(a, blog, lambda *_: None, destination="/topic/here")
    acked = barrier_error(a, blog, lambda connection, frame: connection.ack(frame.headers["ack"]))
    assert "acknowledged" in acked
    assert "rejected" in barrier_error(a, blog, lambda connection, frame: connection.nack(frame.headers["ack"]))
    with antipode.scope(), pytest.raises(ConfigurationError, match="message"):
        antipode.barrier(on_timeout="redeliver")


def test_a_body_that_stomp_has_broken_is_not_sent_on(a: Region, blog: Blog) -> None:
    queue, said = a.queue(), list[str]()
    publish(a, queue, blog, b"\xff\x00\xfe")
    connection = a.wrapped()

    def callback(frame: Any) -> None:
        try:
            antipode.barrier(timeout=0.02, on_timeout="redeliver")
        except ConfigurationError as error:
            said.append(str(error))

    a.inbox(queue, callback, connection=connection, ack="client-individual")
    wait_for("the error", lambda: said)
    assert "auto_decode=False" in said[0]
    connection.disconnect()
    seen: list[bytes] = []
    octets = a.wrapped(plain=a.lab.plain_connection("a", auto_decode=False), redeliver_delay=0.05)

    def take(frame: Any) -> None:
        seen.append(frame.body)
        antipode.barrier(timeout=0.02, on_timeout="redeliver")

    a.inbox(queue, take, connection=octets, ack="client-individual")
    wait_for("the copy", lambda: len(seen) >= 2)
    assert set(seen) == {b"\xff\x00\xfe"}


def test_a_text_message_stays_one(a: Region, blog: Blog) -> None:
    """In JMS a frame with a content-length is a message of octets, one without is a text."""
    queue = a.queue()
    frames: list[Any] = []
    blog.store.freeze("b")
    plain = a.lab.plain_connection("a", auto_content_length=False)
    connection = a.wrapped(plain=plain, redeliver_delay=0.05)

    def callback(frame: Any) -> None:
        frames.append(frame)
        antipode.barrier(timeout=0.02, on_timeout="redeliver")

    a.inbox(queue, callback, connection=connection, ack="client-individual")
    with antipode.scope():
        blog.posts_a.set("post:42", "hi")
        connection.send(queue, "grüße")
    wait_for("the copy", lambda: len(frames) >= 2)
    assert [("content-length" in frame.headers, frame.body) for frame in frames[:2]] == [(False, "grüße")] * 2


def test_who_may_not_write_to_the_queue_loses_nothing(a: Region, blog: Blog, caplog: pytest.LogCaptureFixture) -> None:
    """SHIM-42: the copy is refused, so the message must not be acknowledged away."""
    queue, tries = "/queue/readers.only", list[Any]()
    publish(a, queue, blog)
    connection = a.wrapped(redeliver_delay=0.05, user="reader")

    def callback(frame: Any) -> None:
        tries.append(frame)
        antipode.barrier(timeout=0.02, on_timeout="redeliver")

    box = a.inbox(queue, callback, connection=connection, ack="client-individual")
    wait_for("the refusal", lambda: "must be allowed to write to the queue" in caplog.text, 15)
    assert not box.errors, "the answer to our own frame is not the application's"
    connection.disconnect()
    again = a.inbox(queue, ack="client-individual")
    assert again.next().headers["message-id"] == tries[0].headers["message-id"], "the broker gives it back by itself"


def test_workers_in_threads_give_back_too(a: Region, blog: Blog) -> None:
    queue, seen, done = a.queue(), list[Any](), list[Any]()
    publish(a, queue, blog)
    connection = a.wrapped(redeliver_delay=0.1)

    def work(frame: Any) -> None:
        seen.append(frame)
        with antipode_activemq.scope_of(frame, connection=connection):
            antipode.barrier(timeout=0.05, on_timeout="redeliver")
            connection.ack(frame.headers["ack"])
            done.append(frame)

    a.inbox(queue, lambda frame: threading.Thread(target=work, args=[frame]).start(), connection=connection,
            ack="client-individual")  # fmt: skip
    wait_for("a third try", lambda: len(seen) >= 3)
    blog.store.heal("b")  # perhaps within that try, which is the last one then
    wait_for("an end", lambda: done and not connection._antipode.returns.waiting)
    with pytest.raises(ConfigurationError, match="wrap"):
        antipode_activemq.scope_of(seen[0], connection=a.own)
    with antipode_activemq.scope_of(seen[0]), pytest.raises(ConfigurationError, match="not given the connection"):
        antipode.barrier(timeout=0.01, on_timeout="redeliver")


def test_what_is_refused_during_the_delay_does_not_come_again(a: Region, blog: Blog) -> None:
    queue, seen = a.queue(), list[Any]()
    publish(a, queue, blog)
    connection = a.wrapped(redeliver_delay=0.3)

    def callback(frame: Any) -> None:
        seen.append(frame)
        antipode.barrier(timeout=0.02, on_timeout="redeliver")

    a.inbox(queue, callback, connection=connection, ack="client-individual")
    wait_for("it to wait", lambda: connection._antipode.returns.waiting)
    connection.nack(seen[0].headers["ack"])
    assert connection._antipode.returns.waiting == 0
    connection.disconnect()
    assert a.count(queue) == 0


def test_a_connection_that_ends_meanwhile_gives_the_message_back_itself(a: Region, blog: Blog) -> None:
    queue, seen = a.queue(), list[Any]()
    publish(a, queue, blog)
    link = Link(a)
    connection = antipode_activemq.wrap(link.connection(), store="notifications", redeliver_delay=0.3)
    a.connected(connection)

    def callback(frame: Any) -> None:
        seen.append(frame)
        antipode.barrier(timeout=0.02, on_timeout="redeliver")

    a.inbox(queue, callback, connection=connection, ack="client-individual")
    wait_for("it to wait", lambda: connection._antipode.returns.waiting)
    link.cut()
    wait_for("the end", lambda: not connection._antipode.returns.waiting)
    assert a.inbox(queue).next().body == "42"


def test_options(a: Region) -> None:
    assert a.wrapped()._antipode.options.redeliver_delay == 1.0
    configure(redeliver_delay=0.25)
    assert a.wrapped()._antipode.options.redeliver_delay == 0.25
    assert a.wrapped(redeliver_delay=0)._antipode.options.redeliver_delay == 0
    for bad in ({"redeliver_delay": -1}, {"redeliver_delay": 100_000}, {"max_redeliveries": -1}):
        with pytest.raises(ConfigurationError, match=next(iter(bad))):
            a.wrapped(**bad)  # type: ignore[arg-type]
    with pytest.raises(ConfigurationError, match="NACK"):
        a.wrapped(plain=stomp.StompConnection10([("127.0.0.1", a.lab.server("a").port)]), max_redeliveries=1)
