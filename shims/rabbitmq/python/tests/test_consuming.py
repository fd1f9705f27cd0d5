"""What arrives: one scope a message, from the message's own header, in callbacks and by hand."""

from __future__ import annotations

import threading
from concurrent.futures import ThreadPoolExecutor
from typing import Any

import antipode
import antipode_rabbitmq
import pytest
from antipode import EMPTY, ConfigurationError, Lineage, Mode, Trust, configure, current_scope
from antipode.messages import HEADER
from pika.adapters.blocking_connection import BlockingChannel
from rabbit_regions import Blog, Consumer, Region, delivered, properties, wait_for

ONE, TWO = "1~acl..0-1.7", "1~blog..0-1.42"


def stamped(text: Any) -> Any:
    return properties(headers={HEADER: text})


def test_each_message_has_a_scope_of_its_own(a: Region) -> None:
    """SCOPE-6."""
    queue, seen, scopes, channels = a.queue(), [], [], []
    for text in (ONE, TWO):
        a.own.basic_publish("", queue, b"", stamped(text))
    a.own.basic_publish("", queue, b"")

    def callback(channel: Any, method: Any, received: Any, body: bytes) -> None:
        scope = current_scope()
        assert scope is not None
        assert scope.kind == "message"
        seen.append(antipode.serialize())
        antipode.append(antipode.WriteId.position("late", "e", len(seen)))
        scopes.append(scope)
        channels.append(channel)
        channel.basic_ack(method.delivery_tag)

    with Consumer(a, queue, callback) as consumer:
        wait_for("three messages", lambda: len(seen) == 3)
        assert seen == [ONE, TWO, "1"], "nothing of one message reaches the next"
        assert wait_for("their end", lambda: all(scope.closed for scope in scopes))
        assert all(channel is consumer.channel for channel in channels)
        assert isinstance(consumer.channel, BlockingChannel)
    assert not consumer.errors
    assert a.count(queue) == 0
    assert current_scope() is None


def test_what_a_callback_publishes_carries_its_messages_lineage(a: Region) -> None:
    queue, answers = a.queue(), a.queue()
    a.own.basic_publish("", queue, b"", stamped(TWO))

    def callback(channel: Any, method: Any, received: Any, body: bytes) -> None:
        channel.basic_publish("", answers, b"answer")
        channel.basic_ack(method.delivery_tag)

    with Consumer(a, queue, callback):
        assert a.get(answers)[1].headers == {HEADER: TWO}


def test_scopes_of_concurrent_consumers_do_not_meet(a: Region) -> None:
    """Several connections, each in a thread, each message with a lineage of its own."""
    queue, count = a.queue(), 200
    seen: dict[bytes, str] = {}
    for number in range(count):
        a.own.basic_publish("", queue, str(number).encode(), stamped(f"1~blog..0-1.{number}"))

    def callback(channel: Any, method: Any, received: Any, body: bytes) -> None:
        before = antipode.serialize()
        antipode.append(antipode.WriteId.position("seen", "e", int(body)))
        assert antipode.serialize() == f"1~blog..0-1.{int(body)}~seen..e.{int(body)}"
        seen[body] = before
        channel.basic_ack(method.delivery_tag)

    consumers = [Consumer(a, queue, callback) for _ in range(3)]
    for consumer in consumers:
        consumer.__enter__()
    try:
        wait_for("all messages", lambda: len(seen) == count)
    finally:
        for consumer in consumers:
            consumer.stop()
    assert not [error for consumer in consumers for error in consumer.errors]
    assert seen == {str(number).encode(): f"1~blog..0-1.{number}" for number in range(count)}


def test_a_callbacks_exception_passes_unchanged(a: Region) -> None:
    queue = a.queue()
    a.own.basic_publish("", queue, b"", stamped(ONE))
    error = RuntimeError("the application's own")

    def callback(*_: Any) -> None:
        raise error

    with Consumer(a, queue, callback) as consumer:
        wait_for("the error", lambda: consumer.errors)
    assert consumer.errors == [error]
    assert current_scope() is None
    assert wait_for("the message again", lambda: a.count(queue) == 1), "it was not acknowledged"


def test_pulled_messages_are_taken_by_hand(a: Region) -> None:
    queue = a.queue()
    channel = a.wrapped()
    for text in (ONE, TWO):
        a.own.basic_publish("", queue, b"", stamped(text))
    wait_for("both messages", lambda: a.count(queue) == 2)
    method, received, _ = channel.basic_get(queue)
    assert current_scope() is None
    with antipode_rabbitmq.scope_of(method, received) as scope:
        assert scope.lineage == Lineage.deserialize(ONE)
        assert current_scope() is scope
        with pytest.raises(ConfigurationError, match="channel="):
            antipode.barrier(on_timeout="redeliver", stores=["notifications"])
    assert scope.closed
    channel.basic_ack(method.delivery_tag)
    for method, received, _ in channel.consume(queue, inactivity_timeout=5):
        with antipode_rabbitmq.scope_of(method, received, channel=channel) as scope:
            assert scope.lineage == Lineage.deserialize(TWO)
        channel.basic_ack(method.delivery_tag)
        break
    channel.cancel()
    assert a.count(queue) == 0
    with pytest.raises(ConfigurationError, match="wrap"):
        antipode_rabbitmq.scope_of(method, received, channel=a.own)


def test_work_that_is_handed_to_threads_has_its_messages_scope(a: Region, blog: Blog) -> None:
    """The usual form: the callback hands over, a pool works, and the acknowledgement goes back to the connection."""
    queue, count = a.queue(), 20
    done: dict[bytes, Any] = {}
    for number in range(count):
        with antipode.scope():
            blog.posts_a.set(f"post:{number}", str(number))
            a.own.basic_publish("", queue, str(number).encode(), stamped(antipode.serialize()))

    with ThreadPoolExecutor(4) as pool:

        def work(channel: Any, method: Any, received: Any, body: bytes) -> None:
            with antipode_rabbitmq.scope_of(method, received, channel=channel):
                antipode.barrier(timeout=5)
                done[body] = blog.posts_b.get(f"post:{int(body)}")
            channel.connection.add_callback_threadsafe(lambda: channel.basic_ack(method.delivery_tag))

        with Consumer(a, queue, lambda *message: pool.submit(work, *message), prefetch=5) as consumer:
            wait_for("all messages", lambda: len(done) == count)
            wait_for("all acknowledgements", lambda: a.count(queue) == 0)
        assert not consumer.errors
    assert done == {str(number).encode(): str(number).encode() for number in range(count)}


def test_a_barrier_in_a_callback_waits_for_the_messages_writes(a: Region, blog: Blog) -> None:
    queue, bodies = a.queue(), []
    blog.store.freeze("b")
    channel = a.wrapped()
    with antipode.scope():
        blog.posts_a.set("post:42", "hi")
        channel.basic_publish("", queue, b"42")
    begun = threading.Event()

    def callback(channel: Any, method: Any, received: Any, body: bytes) -> None:
        begun.set()
        antipode.barrier(timeout=10)
        bodies.append(blog.posts_b.get("post:42"))
        channel.basic_ack(method.delivery_tag)

    with Consumer(a, queue, callback):
        assert begun.wait(10)
        assert bodies == []
        blog.store.heal("b")
        wait_for("the callback", lambda: bodies)
    assert bodies == [b"hi"]


def test_trust_decides_what_is_taken(a: Region) -> None:
    def taken(text: str, **options: Any) -> Lineage:
        channel = a.wrapped(**options)
        queue = a.queue()
        a.own.basic_publish("", queue, b"", stamped(text))
        method, received, _ = wait_for("it", lambda: (got := channel.basic_get(queue, auto_ack=True))[0] and got)
        with antipode_rabbitmq.scope_of(method, received, channel=channel) as scope:
            return scope.lineage

    known = Lineage.deserialize(ONE)
    assert taken(ONE) == known
    assert taken(ONE, lineage_in=False) == EMPTY
    configure(edge=True)
    assert taken(ONE) == EMPTY
    assert taken(ONE, lineage_in=True) == known
    configure(edge=False, trust=Trust.NONE)
    assert taken(ONE) == EMPTY
    configure(trust=Trust.KEY, keys={"k": b"0123456789abcdef"})
    assert taken(ONE) == EMPTY
    with antipode.scope(known):
        text = antipode.messages.outgoing_message()
    assert text is not None
    assert taken(text) == known


def test_mode_off_passes_on_what_came_in_and_adds_nothing(a: Region, blog: Blog) -> None:
    configure(mode=Mode.OFF)
    queue, onward = a.queue(), a.queue()
    a.own.basic_publish("", queue, b"", stamped(ONE))

    def callback(channel: Any, method: Any, received: Any, body: bytes) -> None:
        blog.posts_a.set("post:42", "hi")
        channel.basic_publish("", onward, b"")
        channel.basic_ack(method.delivery_tag)

    with Consumer(a, queue, callback, track=True, stamped=True) as consumer:
        _, received, _ = a.get(onward)
    assert not consumer.errors
    assert received.headers == {HEADER: ONE}
    assert received.message_id is None


def test_a_message_of_a_stamped_queue_without_a_lineage_is_incomplete(a: Region) -> None:
    channel = a.wrapped(stamped=True)
    method = delivered()
    with antipode_rabbitmq.scope_of(method, properties(), channel=channel, auto_ack=True) as scope:
        assert not scope.lineage.is_complete()
        assert [gap.reason for gap in scope.gaps] == ["malformed"]
    with antipode_rabbitmq.scope_of(method, stamped("1"), channel=channel, auto_ack=True) as scope:
        assert scope.lineage == EMPTY
        assert scope.lineage.is_complete()
    with antipode_rabbitmq.scope_of(method, properties(), channel=a.wrapped(), auto_ack=True) as scope:
        assert scope.lineage.is_complete(), "without the option, no header is no lineage"
    configure(edge=True)
    with antipode_rabbitmq.scope_of(method, properties(), channel=channel, auto_ack=True) as scope:
        assert scope.lineage.is_complete(), "where none would be taken, none is missing"


def test_the_clients_own_mistakes_stay_its_own(a: Region) -> None:
    channel = a.wrapped()
    with pytest.raises(TypeError, match="callable"):
        channel.basic_consume(a.queue(), "no function")
    with pytest.raises(TypeError):
        channel.basic_consume()
    tag = channel.basic_consume(a.queue(), lambda *_: None, consumer_tag="mine", exclusive=True)
    assert tag == "mine"
    assert channel.consumer_tags == ["mine"]
