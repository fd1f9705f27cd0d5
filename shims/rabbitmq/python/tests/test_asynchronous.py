"""pika's asynchronous channels: SelectConnection, and AsyncioConnection on an event loop."""

from __future__ import annotations

import asyncio
from typing import Any

import antipode
import antipode_rabbitmq
import pika
import pytest
from antipode.messages import HEADER
from pika.adapters.asyncio_connection import AsyncioConnection
from rabbit_regions import Blog, Region, properties, select_channel, wait_for


def test_a_select_channel_carries_lineages_both_ways(a: Region) -> None:
    queue, onward, pulled = a.queue(), a.queue(), a.queue()
    seen: list[Any] = []
    for name in (queue, pulled):
        a.own.basic_publish("", name, name.encode(), properties(headers={HEADER: "1~acl..0-1.7"}))
    wait_for("the message to be pulled", lambda: a.count(pulled) == 1)

    def on_message(channel: Any, method: Any, received: Any, body: bytes) -> None:
        seen.append((channel, body.decode(), antipode.serialize()))
        channel.basic_publish("", onward, body)
        channel.basic_ack(method.delivery_tag)

    channels: list[Any] = []

    def on_channel(channel: Any) -> None:
        channels.append(channel)
        channel.basic_qos(prefetch_count=5)
        channel.basic_consume(queue, on_message, callback=lambda _: channel.basic_get(pulled, on_message))

    with select_channel(a, on_channel) as errors:
        wait_for("both messages", lambda: len(seen) == 2)
        for _ in range(2):
            assert a.get(onward)[1].headers == {HEADER: "1~acl..0-1.7"}
    assert not errors
    assert {name: text for _, name, text in seen} == dict.fromkeys((queue, pulled), "1~acl..0-1.7")
    assert all(channel is channels[0] for channel, *_ in seen)
    assert a.count(queue) == a.count(pulled) == 0


def test_callbacks_of_a_select_channel_are_called_with_the_wrapped_one(a: Region) -> None:
    """pika compares channels by identity; a wrapped one must not lose its callbacks."""
    told: dict[str, Any] = {}
    channels: list[Any] = []

    def on_channel(channel: Any) -> None:
        channels.append(channel)
        channel.add_on_close_callback(lambda closed, reason: told.update(closed=closed, reason=reason))
        channel.add_on_return_callback(lambda of, method, received, body: told.update(returned=of, body=body))
        channel.confirm_delivery(lambda frame: told.update(confirmed=frame.method.delivery_tag))
        with antipode.scope():
            channel.basic_publish("", "no-such-queue", b"back", mandatory=True)

    with select_channel(a, on_channel) as errors:
        wait_for("the confirmation", lambda: "confirmed" in told)
        connection = channels[0].connection
        connection.ioloop.add_callback_threadsafe(channels[0].close)
        wait_for("the close", lambda: "closed" in told)
    assert not errors
    assert told["body"] == b"back"
    assert told["returned"] is told["closed"] is channels[0]
    assert type(told["reason"]).__name__ == "ChannelClosedByClient"
    assert channels[0].is_closed


def test_redeliver_by_a_select_channel(a: Region, blog: Blog) -> None:
    queue = a.queue()
    blog.store.freeze("b")
    with antipode.scope():
        blog.posts_a.set("post:42", "hi")
        antipode_rabbitmq.wrap(a.own, store="notifications").basic_publish("", queue, b"42")
    tries: list[bool] = []
    done: list[Any] = []

    def on_message(channel: Any, method: Any, received: Any, body: bytes) -> None:
        tries.append(method.redelivered)
        antipode.barrier(timeout=0.05, on_timeout="redeliver")
        done.append(blog.posts_b.get("post:42"))
        channel.basic_ack(method.delivery_tag)

    with select_channel(a, lambda channel: channel.basic_consume(queue, on_message), redeliver_delay=0.1) as errors:
        wait_for("a second try", lambda: len(tries) >= 2)
        blog.store.heal("b")
        wait_for("success", lambda: done)
    assert not errors
    assert done == [b"hi"]
    assert tries[:2] == [False, True]


async def test_an_asyncio_channel_with_a_task_a_message(a: Region, blog: Blog) -> None:
    """A callback hands over to a task, which waits without blocking the loop, and may give the message back."""
    queue, count = a.queue(), 8
    blog.store.freeze("b")
    publisher = antipode_rabbitmq.wrap(a.own, store="notifications")
    for number in range(count):
        with antipode.scope():
            blog.posts_a.set(f"post:{number}", str(number))
            publisher.basic_publish("", queue, str(number).encode())
    loop = asyncio.get_running_loop()
    opened: asyncio.Future[Any] = loop.create_future()
    closed: asyncio.Future[Any] = loop.create_future()
    tries, done, tasks = list[bytes](), dict[bytes, Any](), set[asyncio.Task[None]]()
    AsyncioConnection(
        pika.URLParameters(a.url),
        on_open_callback=lambda made: made.channel(on_open_callback=opened.set_result),
        on_open_error_callback=lambda _, error: opened.set_exception(error),
        on_close_callback=lambda *_: closed.set_result(None),
    )
    channel = antipode_rabbitmq.wrap(await asyncio.wait_for(opened, 10), store="notifications", redeliver_delay=0.05)

    async def handle(channel: Any, method: Any, received: Any, body: bytes) -> None:
        with antipode_rabbitmq.scope_of(method, received, channel=channel):
            tries.append(body)
            await antipode.barrier_async(timeout=0.1, on_timeout="redeliver")
            done[body] = blog.posts_b.get(f"post:{int(body)}")
            channel.basic_ack(method.delivery_tag)

    def on_message(*message: Any) -> None:
        with pytest.raises(antipode.BlockingCallError):
            antipode.barrier(timeout=0.1)
        task = loop.create_task(handle(*message))
        tasks.add(task)

    channel.basic_consume(queue, on_message)
    async with asyncio.timeout(15):
        while len(tries) <= 2 * count:
            await asyncio.sleep(0.01)
        assert not done
        blog.store.heal("b")
        while len(done) < count:
            await asyncio.sleep(0.01)
        await asyncio.gather(*tasks)
        channel.connection.close()
        await closed
    assert done == {str(number).encode(): str(number).encode() for number in range(count)}
    assert a.count(queue) == 0
