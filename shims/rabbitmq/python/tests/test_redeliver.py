"""`redeliver`: the message goes back after a delay, as a failed delivery, while the connection does its work."""

from __future__ import annotations

import sys
import time
from concurrent.futures import ThreadPoolExecutor
from itertools import pairwise
from types import SimpleNamespace
from typing import Any

import aio_pika
import antipode
import antipode_rabbitmq
import pytest
from antipode import ConfigurationError, Redeliver, configure
from antipode.messages import HEADER
from antipode_rabbitmq.returns import Returns
from rabbit_regions import Blog, Consumer, Region, properties, wait_for
from test_aio import channel_of


def publish(a: Region, queue: str, blog: Blog, body: bytes = b"42") -> None:
    """A message that depends on a write which does not come to B."""
    blog.store.freeze("b")
    channel = antipode_rabbitmq.wrap(a.own, store="notifications")
    with antipode.scope():
        blog.posts_a.set("post:42", "hi")
        channel.basic_publish("", queue, body)


def test_a_message_goes_back_and_comes_again(a: Region, blog: Blog) -> None:
    """BAR-45."""
    queue = a.queue()
    publish(a, queue, blog)
    tries: list[tuple[float, bool]] = []
    done: list[Any] = []

    def callback(channel: Any, method: Any, received: Any, body: bytes) -> None:
        tries.append((time.monotonic(), method.redelivered))
        antipode.barrier(timeout=0.05, on_timeout="redeliver")
        done.append(blog.posts_b.get("post:42"))
        channel.basic_ack(method.delivery_tag)

    with Consumer(a, queue, callback, redeliver_delay=0.2) as consumer:
        wait_for("the third try", lambda: len(tries) >= 3)
        blog.store.heal("b")
        wait_for("success", lambda: done)
    assert not consumer.errors
    assert done == [b"hi"]
    assert [again for _, again in tries[:3]] == [False, True, True]
    pauses = [later[0] - earlier[0] for earlier, later in pairwise(tries)]
    assert min(pauses) >= 0.19, "each waits its delay"
    assert a.count(queue) == 0


def test_poison_limits_hold(a: Region, blog: Blog) -> None:
    """A quorum queue counts each message that goes back, and dead-letters it past its limit."""
    dead = a.queue()
    queue = a.queue(
        x_queue_type="quorum",
        x_delivery_limit=2,
        x_dead_letter_exchange="",
        x_dead_letter_routing_key=dead,
    )
    publish(a, queue, blog)
    counts: list[int] = []

    def callback(channel: Any, method: Any, received: Any, body: bytes) -> None:
        counts.append(int(received.headers.get("x-delivery-count", 0)))
        antipode.barrier(timeout=0.02, on_timeout="redeliver")

    with Consumer(a, queue, callback, redeliver_delay=0.05) as consumer:
        _, received, body = a.get(dead)
        assert not consumer.errors
    assert counts == [0, 1, 2]
    assert body == b"42"
    assert received.headers["x-death"][0]["reason"] == "delivery_limit"
    assert received.headers[HEADER].startswith("1~blog.."), "the lineage goes to the dead-letter queue as well"


def test_the_connections_heartbeat_goes_on_during_the_delay(a: Region, blog: Blog) -> None:
    """With a heartbeat of 1 s the broker would close a connection that is silent for 3 s."""
    queue = a.queue()
    publish(a, queue, blog)
    tries: list[bool] = []

    def callback(channel: Any, method: Any, received: Any, body: bytes) -> None:
        try:
            antipode.barrier(timeout=0.05, on_timeout="redeliver")
        finally:
            tries.append(method.redelivered)
        channel.basic_ack(method.delivery_tag)

    with Consumer(a, queue, callback, redeliver_delay=3.5, connection={"heartbeat": 1}) as consumer:
        wait_for("the first try", lambda: tries)
        blog.store.heal("b")
        wait_for("the second try", lambda: len(tries) == 2)
        assert consumer.channel.is_open
    assert not consumer.errors
    assert tries == [False, True]


def test_other_messages_are_consumed_during_the_delay(a: Region, blog: Blog) -> None:
    queue, seen = a.queue(), []
    publish(a, queue, blog, b"waits")
    a.own.basic_publish("", queue, b"passes")

    def callback(channel: Any, method: Any, received: Any, body: bytes) -> None:
        seen.append(body)
        antipode.barrier(timeout=0.02, on_timeout="redeliver")
        channel.basic_ack(method.delivery_tag)

    with Consumer(a, queue, callback, redeliver_delay=0.5):
        wait_for("both", lambda: b"passes" in seen)
        assert seen == [b"waits", b"passes"]
        blog.store.heal("b")
        wait_for("the first again", lambda: len(seen) == 3)


@pytest.mark.parametrize("delay", [0, 1])
def test_acknowledging_behind_the_block_is_refused(a: Region, blog: Blog, delay: float) -> None:
    """PROP-36: before the message has gone back, and when it has."""
    queue = a.queue()
    publish(a, queue, blog)
    channel = antipode_rabbitmq.wrap(a.connection().channel(), store="notifications", redeliver_delay=delay)
    for method, received, _ in channel.consume(queue, inactivity_timeout=20):
        with antipode_rabbitmq.scope_of(method, received, channel=channel) as scope:
            antipode.barrier(timeout=0.05, on_timeout="redeliver")
        assert scope.delivery is not None
        assert scope.delivery.goes_back
        with pytest.raises(ConfigurationError, match="would be lost"):
            channel.basic_ack(method.delivery_tag)
        break
    channel.connection.close()
    assert a.get(queue)[2] == b"42"


def barrier_error(a: Region, blog: Blog, act: Any, **options: Any) -> str:
    """What barrier(redeliver) says in a callback after `act(channel, method)`."""
    queue = a.queue()
    publish(a, queue, blog)
    said: list[str] = []

    def callback(channel: Any, method: Any, received: Any, body: bytes) -> None:
        act(channel, method)
        try:
            antipode.barrier(timeout=0.02, on_timeout="redeliver")
        except ConfigurationError as error:
            said.append(str(error))

    with Consumer(a, queue, callback, **options) as consumer:
        wait_for("the error", lambda: said)
    assert not consumer.errors
    return said[0]


def test_where_a_message_cannot_go_back_the_barrier_says_so(a: Region, blog: Blog) -> None:
    """BAR-45."""
    assert "auto_ack" in barrier_error(a, blog, lambda *_: None, auto_ack=True)
    acked = barrier_error(a, blog, lambda channel, method: channel.basic_ack(method.delivery_tag))
    assert "acknowledged" in acked
    every = barrier_error(a, blog, lambda channel, _: channel.basic_ack(0, multiple=True))
    assert "acknowledged" in every
    rejected = barrier_error(a, blog, lambda channel, method: channel.basic_reject(method.delivery_tag, requeue=False))
    assert "rejected" in rejected
    with antipode.scope(), pytest.raises(ConfigurationError, match="message"):
        antipode.barrier(on_timeout="redeliver")


def test_after_the_callback_nothing_can_go_back(a: Region, blog: Blog) -> None:
    queue = a.queue()
    publish(a, queue, blog)
    scopes: list[Any] = []

    def callback(channel: Any, method: Any, received: Any, body: bytes) -> None:
        scopes.append(antipode.current_scope())
        channel.basic_ack(method.delivery_tag)

    with Consumer(a, queue, callback):
        wait_for("its end", lambda: scopes and scopes[0].closed)
    assert not scopes[0].delivery.can_redeliver


def test_an_acknowledgement_of_several_gives_back_what_waits_among_them(a: Region, blog: Blog) -> None:
    """`multiple=True` would acknowledge the message that is to come again."""
    queue, seen = a.queue(), []
    publish(a, queue, blog, b"first")
    a.own.basic_publish("", queue, b"second")

    def callback(channel: Any, method: Any, received: Any, body: bytes) -> None:
        seen.append(body)
        if body == b"first" and not method.redelivered:
            antipode.barrier(timeout=0.02, on_timeout="redeliver")
        channel.basic_ack(method.delivery_tag, multiple=True)

    with Consumer(a, queue, callback, redeliver_delay=30) as consumer:
        wait_for("all three", lambda: len(seen) == 3)
    assert not consumer.errors
    assert seen == [b"first", b"second", b"first"]
    assert a.count(queue) == 0


@pytest.mark.parametrize("settle", ["ack", "nack"])
@pytest.mark.parametrize("stays", [False, True])
def test_all_are_those_that_were_handed_out(a: Region, blog: Blog, settle: str, stays: bool) -> None:
    """PROP-36: tag 0 would be also the copies that the broker has delivered again since the messages went back."""
    queue, sent = a.queue(), list[Any]()
    for body in (b"1", b"stays" if stays else b"2", b"3"):
        publish(a, queue, blog, body)
    channel: Any = a.wrapped(redeliver_delay=30)
    plain = channel._antipode.plain

    def spied(name: str) -> Any:
        theirs = getattr(plain, name)

        def spy(*args: Any, **kw: Any) -> Any:
            sent.append((name, *args))
            return theirs(*args, **kw)

        return spy

    for name in ("basic_ack", "basic_nack"):
        setattr(plain, name, spied(name))
    for method, received, body in channel.consume(queue, inactivity_timeout=20):
        if body != b"stays":
            with antipode_rabbitmq.scope_of(method, received, channel=channel):
                antipode.barrier(timeout=0.01, on_timeout="redeliver")
        if method.delivery_tag == 3:
            break
    with pytest.raises(ConfigurationError, match="would be lost"):
        channel.basic_nack(3, multiple=True, requeue=False)
    with pytest.raises(ConfigurationError, match="would be lost"):
        channel.basic_reject(3, requeue=False)
    assert not sent
    if settle == "ack":
        channel.basic_ack(0, multiple=True)
    else:
        channel.basic_nack(0, multiple=True, requeue=False)
    settled = [("basic_ack", 2, True)] if settle == "ack" else [("basic_nack", 2, True, False)]
    assert [each for each in sent if len(each) > 2] == (settled if stays else [])
    channel.connection.close()
    wait_for("those that went back", lambda: a.count(queue) == (2 if stays else 3))


@pytest.mark.parametrize("several", [False, True])
async def test_a_message_that_goes_back_cannot_be_dropped(a: Region, blog: Blog, several: bool) -> None:
    """PROP-36"""
    name = a.queue()
    async with channel_of(a, redeliver_delay=30) as channel:
        with antipode.scope():
            blog.store.freeze("b")
            blog.posts_a.set("post:42", "hi")
            await channel.default_exchange.publish(aio_pika.Message(b"42"), name)
        message = await (await channel.get_queue(name)).get()
        with antipode_rabbitmq.scope_of(message, channel=channel):
            await antipode.barrier_async(timeout=0.02, on_timeout="redeliver")
        with pytest.raises(ConfigurationError, match="would be lost"):
            await (message.nack(multiple=True, requeue=False) if several else message.reject())
    assert a.get(name)[2] == b"42"


def test_pull_loops_give_back_too(a: Region, blog: Blog) -> None:
    """A loop of `basic_get` never lets pika's timers run: the channel gives back what is due itself."""
    queue = a.queue()
    publish(a, queue, blog)
    channel = a.wrapped(redeliver_delay=0.1)

    def get() -> Any:
        return wait_for("a message", lambda: (got := channel.basic_get(queue))[0] and got)

    reached: list[str] = []
    method, received, _ = get()
    with antipode_rabbitmq.scope_of(method, received, channel=channel):
        antipode.barrier(timeout=0.02, on_timeout="redeliver")
        reached.append("behind the barrier")
    reached.append("behind the block")
    assert reached == ["behind the block"]
    method, received, _ = get()
    assert method.redelivered
    with pytest.raises(ValueError, match="own"), antipode_rabbitmq.scope_of(method, received, channel=channel):
        raise ValueError("own")
    channel.basic_nack(method.delivery_tag, requeue=True)
    for method, received, _ in channel.consume(queue):
        if method.delivery_tag > 3:
            channel.basic_ack(method.delivery_tag)
            break
        with antipode_rabbitmq.scope_of(method, received, channel=channel):
            antipode.barrier(timeout=0.02, on_timeout="redeliver")
    channel.cancel()
    assert a.count(queue) == 0
    a.own.basic_publish("", queue, b"", properties(headers={HEADER: "1~blog..e.1"}))
    auto = wait_for("it", lambda: (got := channel.basic_get(queue, auto_ack=True))[0] and got)
    with (
        pytest.raises(ConfigurationError, match="auto_ack"),
        antipode_rabbitmq.scope_of(auto[0], auto[1], channel=channel, auto_ack=True),
    ):
        antipode.barrier(on_timeout="redeliver")
    with pytest.raises(Redeliver), antipode_rabbitmq.scope_of(auto[0], auto[1], channel=channel, auto_ack=True):
        raise Redeliver("by hand, with nothing to give back")


def test_workers_in_threads_give_back_too(a: Region, blog: Blog) -> None:
    from concurrent.futures import ThreadPoolExecutor

    queue, seen, done = a.queue(), list[Any](), list[Any]()
    publish(a, queue, blog)

    def work(channel: Any, method: Any, received: Any, body: bytes) -> None:
        seen.append(method.redelivered)
        with antipode_rabbitmq.scope_of(method, received, channel=channel):
            antipode.barrier(timeout=0.05, on_timeout="redeliver")
            channel.connection.add_callback_threadsafe(lambda: channel.basic_ack(method.delivery_tag))
            done.append(method)

    with ThreadPoolExecutor(2) as pool, Consumer(a, queue, lambda *m: pool.submit(work, *m), redeliver_delay=0.1):
        wait_for("a third try", lambda: len(seen) >= 3)
        blog.store.heal("b")  # perhaps within that try, which is the last one then
        wait_for("an end", lambda: done, 60)
        wait_for("the acknowledgement", lambda: a.count(queue) == 0)


def test_a_channel_that_ends_meanwhile_gives_the_message_back_itself(a: Region, blog: Blog) -> None:
    queue, seen = a.queue(), []
    publish(a, queue, blog)

    def callback(*_: Any) -> None:
        seen.append(True)
        antipode.barrier(timeout=0.02, on_timeout="redeliver")

    with Consumer(a, queue, callback, redeliver_delay=0.3) as consumer:
        wait_for("the try", lambda: seen)
    assert not consumer.errors
    wait_for("the message", lambda: a.count(queue) == 1)


def test_the_delay_is_the_settings_unless_the_channel_says_another(a: Region) -> None:
    assert a.wrapped()._antipode.options.redeliver_delay == 1.0
    configure(redeliver_delay=0.25)
    assert a.wrapped()._antipode.options.redeliver_delay == 0.25
    assert a.wrapped(redeliver_delay=0)._antipode.options.redeliver_delay == 0
    for bad in (-1, 100_000):
        with pytest.raises(ConfigurationError, match="redeliver_delay"):
            a.wrapped(redeliver_delay=bad)


def test_threads_that_give_back_more_than_are_remembered_fail_in_nothing() -> None:
    """PROP-36: workers of one channel, past the last thousand messages that go back."""
    timers = SimpleNamespace(call_later=lambda _delay, _call: None)
    returns = Returns(SimpleNamespace(connection=timers))

    def give_back(first: int) -> None:
        for tag in range(first, first + 5000):
            returns.give_back(tag, 60.0, own_thread=True)

    before = sys.getswitchinterval()
    sys.setswitchinterval(1e-6)
    try:
        with ThreadPoolExecutor(4) as pool:
            for done in [pool.submit(give_back, worker * 5000) for worker in range(4)]:
                done.result(60)
    finally:
        sys.setswitchinterval(before)
    returns.give_back(20_000, 60.0, own_thread=True)
    for tag in (0, 20_000):  # those that still wait are all known
        with pytest.raises(ConfigurationError):
            returns.check_acknowledgement(tag)
