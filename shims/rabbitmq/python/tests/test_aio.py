"""Channels of aio-pika: what they publish carries the lineage, and each message is handled in its own scope."""

from __future__ import annotations

import asyncio
import time
from collections.abc import AsyncIterator, Awaitable, Callable
from contextlib import asynccontextmanager
from typing import Any

import aio_pika
import antipode
import antipode_rabbitmq
import pika
import pytest
from aio_pika.exceptions import DeliveryError
from antipode import ConfigurationError, Lineage, Redeliver, barrier_async
from antipode._model.errors import PendingWriteError
from antipode.messages import HEADER
from antipode.testing import isolated
from antipode_rabbitmq import Tap, declare_tap, scope_of
from rabbit_regions import Blog, Link, Region

STORE = "notifications"


@asynccontextmanager
async def channel_of(
    region: Region, *, robust: bool = False, confirms: bool = True, url: str = "", **options: Any
) -> AsyncIterator[Any]:
    """A wrapped channel on a connection of its own."""
    connect = aio_pika.connect_robust if robust else aio_pika.connect
    connection: Any = await connect(url or region.url)
    try:
        plain = await connection.channel(publisher_confirms=confirms)
        yield antipode_rabbitmq.wrap(plain, **({"store": STORE} | options))
    finally:
        await connection.close()


async def eventually(what: str, condition: Callable[[], Any], timeout: float = 30.0) -> None:
    deadline = time.monotonic() + timeout
    while not condition():
        assert time.monotonic() < deadline, f"in vain: {what}"
        await asyncio.sleep(0.01)


def depend(blog: Blog) -> None:
    """The current scope depends on a write that does not come to B."""
    blog.store.freeze("b")
    blog.posts_a.set("post:42", "hi")


@pytest.mark.parametrize("robust", [False, True])
async def test_it_stays_aio_pikas_channel(a: Region, robust: bool) -> None:
    """SHIM-1: of the same classes, and the one passed in stays plain."""
    connection: Any = await (aio_pika.connect_robust if robust else aio_pika.connect)(a.url)
    async with connection:
        plain = await connection.channel()
        channel = antipode_rabbitmq.wrap(plain, store=STORE)
        assert isinstance(channel, type(plain))
        name = a.queue()
        queue = await channel.get_queue(name)
        assert isinstance(queue, type(await plain.get_queue(name)))
        with antipode.scope(Lineage.deserialize("1~s.k._.m")):
            await channel.default_exchange.publish(aio_pika.Message(b"ours"), name)
            exchange = await channel.get_exchange("notifications")
            assert isinstance(exchange, type(await plain.get_exchange("notifications")))
            await plain.default_exchange.publish(aio_pika.Message(b"plain"), name)
        _, ours, _ = a.get(name)
        assert ours.headers[HEADER] == "1~s.k._.m"
        _, other, _ = a.get(name)
        assert not (other.headers or {}).get(HEADER)
        assert antipode_rabbitmq.wrap(channel, store=STORE)._antipode.plain is plain
        await channel.close()
        assert plain.is_closed


async def test_the_lineage_goes_into_a_copy(a: Region, blog: Blog) -> None:
    """PROP-17: the caller's message stays as it was; one that came in may be published again."""
    queue = a.queue()
    async with channel_of(a) as channel:
        message = aio_pika.Message(b"42", headers={"k": "v"}, content_type="text/plain", type="t", expiration=60)
        with antipode.scope() as scope:
            depend(blog)
            await channel.default_exchange.publish(message, queue)
            text = scope.lineage.serialize()
        assert message.headers == {"k": "v"}
        taken = await (await channel.get_queue(queue)).get()
        assert taken.headers == {"k": "v", HEADER: text}
        assert (taken.content_type, taken.type, taken.expiration) == ("text/plain", "t", 60)
        await taken.ack()
        await channel.default_exchange.publish(taken, queue)  # outside any scope: what it carries goes on
        _, again, _ = a.get(queue)
        assert again.headers[HEADER] == text


async def test_each_message_has_a_scope_of_its_own(a: Region) -> None:
    """SCOPE-6: callbacks run side by side in tasks."""
    name = a.queue()
    seen: dict[bytes, str] = {}
    both = asyncio.Barrier(2)

    async def callback(message: Any) -> None:
        async with message.process():
            await asyncio.wait_for(both.wait(), 20)
            seen[message.body] = antipode.serialize()

    async with channel_of(a) as channel:
        for key in ("one", "two"):
            with antipode.scope(Lineage.deserialize(f"1~s.{key}._.m")):
                await channel.default_exchange.publish(aio_pika.Message(key.encode()), name)
        queue = await channel.get_queue(name)
        await queue.consume(callback)
        await eventually("both", lambda: len(seen) == 2)
    assert seen == {b"one": "1~s.one._.m", b"two": "1~s.two._.m"}
    assert a.count(name) == 0


@pytest.mark.parametrize("form", ["process", "by hand"])
async def test_a_message_goes_back_and_comes_again(a: Region, blog: Blog, form: str) -> None:
    """BAR-45: also out of `message.process()`, which would drop it."""
    name = a.queue()
    tries: list[tuple[float, bool]] = []
    done: list[Any] = []

    async def work(message: Any) -> None:
        tries.append((time.monotonic(), message.redelivered))
        await barrier_async(timeout=0.05, on_timeout="redeliver")
        done.append(blog.posts_b.get("post:42"))

    async def processed(message: Any) -> None:
        async with message.process():
            await work(message)

    async def acknowledged(message: Any) -> None:
        await work(message)
        await message.ack()

    callback: Callable[[Any], Awaitable[None]] = processed if form == "process" else acknowledged
    async with channel_of(a, redeliver_delay=0.2) as channel:
        with antipode.scope():
            depend(blog)
            await channel.default_exchange.publish(aio_pika.Message(b"42"), name)
        await (await channel.get_queue(name)).consume(callback)
        await eventually("the second try", lambda: len(tries) >= 2)
        blog.store.heal("b")
        await eventually("success", lambda: done)
    assert done == [b"hi"]
    assert [again for _, again in tries[:2]] == [False, True]
    assert tries[1][0] - tries[0][0] >= 0.19
    assert a.count(name) == 0


async def test_iterators_and_get_open_scopes_by_hand(a: Region, blog: Blog) -> None:
    name = a.queue()
    async with channel_of(a, redeliver_delay=0) as channel:
        with antipode.scope() as scope:
            depend(blog)
            await channel.default_exchange.publish(aio_pika.Message(b"42"), name)
            text = scope.lineage.serialize()
        queue = await channel.get_queue(name)
        rounds = 0
        async with queue.iterator() as messages:
            async for message in messages:
                assert antipode.current_scope() is None
                with scope_of(message, channel=channel) as scope:
                    assert scope.lineage.serialize() == text
                    rounds += 1
                    await barrier_async(timeout=0.02, on_timeout="redeliver" if rounds < 3 else "proceed")
                    await message.ack()
                if rounds == 3:
                    break
        assert a.count(name) == 0


async def by_process_outside(message: Any, channel: Any) -> None:
    async def handle() -> None:
        async with message.process():
            with scope_of(message, channel=channel):
                await barrier_async(timeout=0.02, on_timeout="redeliver")

    with pytest.raises(ConfigurationError, match="would be lost"):
        await handle()


async def by_process_outside_of_a_second_scope(message: Any, channel: Any) -> None:
    with scope_of(message, channel=channel):
        pass
    async with message.process():
        with scope_of(message, channel=channel):
            await barrier_async(timeout=0.02, on_timeout="redeliver")


async def by_process_inside(message: Any, channel: Any) -> None:
    with scope_of(message, channel=channel):
        async with message.process():
            await barrier_async(timeout=0.02, on_timeout="redeliver")


async def by_a_task_group(message: Any, channel: Any) -> None:
    with scope_of(message, channel=channel):
        async with message.process(), asyncio.TaskGroup() as tasks:
            tasks.create_task(barrier_async(timeout=0.02, on_timeout="redeliver"))


async def by_acknowledging_behind(message: Any, channel: Any) -> None:
    with scope_of(message, channel=channel) as scope:
        await barrier_async(timeout=0.02, on_timeout="redeliver")
    assert scope.delivery is not None
    assert scope.delivery.goes_back
    with pytest.raises(ConfigurationError, match="would be lost"):
        await message.ack()


@pytest.mark.parametrize(
    "handle",
    [
        by_process_outside,
        by_process_outside_of_a_second_scope,
        by_process_inside,
        by_a_task_group,
        by_acknowledging_behind,
    ],
)
@pytest.mark.parametrize("delay", [0, 0.3])
async def test_what_goes_back_is_not_acknowledged(a: Region, blog: Blog, handle: Any, delay: float) -> None:
    """PROP-36: whichever block stands in the other, in a group of exceptions, and behind the block."""
    name = a.queue()
    async with channel_of(a, redeliver_delay=delay) as channel:
        with antipode.scope():
            depend(blog)
            await channel.default_exchange.publish(aio_pika.Message(b"42"), name)
        await handle(await (await channel.get_queue(name)).get(timeout=20), channel)
        _, _, body = await asyncio.to_thread(a.get, name, 60)
    assert body == b"42"


async def test_what_was_settled_cannot_go_back(a: Region, blog: Blog) -> None:
    """BAR-45."""
    name = a.queue()
    async with channel_of(a) as channel:
        queue = await channel.get_queue(name)
        with antipode.scope():
            depend(blog)
            for _ in range(4):
                await channel.default_exchange.publish(aio_pika.Message(b"42"), name)

        async def handle(settle: str) -> None:
            message = await queue.get(no_ack=settle == "no_ack")
            with scope_of(message, channel=channel):  # a Redeliver would end the block, and go no further
                if settle == "nack":
                    await message.nack(requeue=False)
                elif settle != "no_ack":
                    await getattr(message, settle)()
                await barrier_async(timeout=0, on_timeout="redeliver")

        for settle in ("ack", "nack", "reject", "no_ack"):
            with pytest.raises(ConfigurationError, match=r"acknowledged|no_ack"):
                await handle(settle)


async def test_acknowledging_several_leaves_those_that_wait_to_go_back(a: Region, blog: Blog) -> None:
    name = a.queue()
    async with channel_of(a, redeliver_delay=30) as channel:
        queue = await channel.get_queue(name)
        with antipode.scope():
            depend(blog)
            for body in (b"goes back", b"done"):
                await channel.default_exchange.publish(aio_pika.Message(body), name)
        first, second = await queue.get(), await queue.get()
        with scope_of(first, channel=channel):
            await barrier_async(timeout=0.02, on_timeout="redeliver")
        with scope_of(second, channel=channel):
            await second.ack(multiple=True)
        _, _, body = a.get(name)
        assert body == b"goes back"


@pytest.mark.parametrize("settle", ["ack", "nack"])
async def test_acknowledging_several_tells_the_scopes_that_are_open(a: Region, blog: Blog, settle: str) -> None:
    """BAR-45: a message that was settled along with a later one cannot go back; the broker would end the channel."""
    name = a.queue()
    async with channel_of(a) as channel, channel_of(a) as other:
        with antipode.scope():
            depend(blog)
            for _ in range(4):
                await channel.default_exchange.publish(aio_pika.Message(b"42"), name)
        queue = await channel.get_queue(name)
        elsewhere = await (await other.get_queue(name)).get()  # the first of its own channel
        first, second, third = [await queue.get() for _ in range(3)]

        async def handle_first() -> None:
            with scope_of(first, channel=channel):  # a Redeliver would end the block, and go no further
                with scope_of(second, channel=channel):
                    await (second.ack(multiple=True) if settle == "ack" else second.nack(multiple=True, requeue=False))
                await barrier_async(timeout=0, on_timeout="redeliver")

        with (
            scope_of(third, channel=channel) as after,
            scope_of(elsewhere, channel=other) as of_another,
        ):
            with pytest.raises(ConfigurationError, match="acknowledged or rejected already"):
                await handle_first()
            for scope in (after, of_another):
                assert scope.delivery is not None
                assert scope.delivery.can_redeliver
        await third.ack()
        await elsewhere.ack()
        assert await queue.get(fail=False, timeout=5) is None
        assert not channel.is_closed


async def test_a_message_that_is_acknowledged_along_while_it_waits_does_not_go_back(a: Region, blog: Blog) -> None:
    """BAR-45"""
    name = a.queue()
    async with channel_of(a, redeliver_delay=0) as channel:
        with antipode.scope():
            depend(blog)
            for _ in range(2):
                await channel.default_exchange.publish(aio_pika.Message(b"42"), name)
        queue = await channel.get_queue(name)
        first, second = await queue.get(), await queue.get()
        waiting = asyncio.Event()

        async def handle_first() -> None:
            with scope_of(first, channel=channel):
                waiting.set()
                await barrier_async(timeout=1, on_timeout="redeliver")

        task = asyncio.create_task(handle_first())
        await waiting.wait()
        with scope_of(second, channel=channel):
            await second.ack(multiple=True)
        with pytest.raises(Redeliver):  # it goes out of the block: nothing gives the message back
            await task
        assert await queue.get(fail=False, timeout=5) is None
        assert not channel.is_closed


async def test_an_acknowledgement_that_is_refused_tells_nobody(a: Region, blog: Blog) -> None:
    """BAR-45: aio-pika sends none for a message that was settled before."""
    name = a.queue()
    async with channel_of(a) as channel:
        for _ in range(2):
            await channel.default_exchange.publish(aio_pika.Message(b"42"), name)
        queue = await channel.get_queue(name)
        first, second = await queue.get(), await queue.get()
        await second.ack()
        with scope_of(first, channel=channel) as scope, scope_of(second, channel=channel):
            with pytest.raises(aio_pika.exceptions.MessageProcessError):
                await second.ack(multiple=True)
            assert scope.delivery is not None
            assert scope.delivery.can_redeliver
        await first.ack()


async def test_tracked_messages_are_waited_for_by_a_tap(a: Region, b: Region) -> None:
    """SHIM-17: published by aio-pika in A, waited for in B."""
    declare_tap(b.own, "notifications", f"tap-{a.queue()}")
    tap = Tap(b.url, f"tap-{a.queues[-1]}")
    b.queues.append(tap.queue)
    a.lab.wait_probe("notifications")
    async with channel_of(a, track=True) as channel:
        exchange = await channel.get_exchange("notifications")
        message = aio_pika.Message(b"42")
        with antipode.scope() as scope:
            await exchange.publish(message, "")
            lineage = scope.lineage
        assert message.message_id is None
    with isolated():
        antipode_rabbitmq.register(STORE, tap=tap)
        assert (await barrier_async(lineage, timeout=30)).satisfied


async def test_outcomes(a: Region) -> None:
    """SHIM-6: what came back was not written; what was broken off is of unknown outcome."""
    link = Link(a)
    async with channel_of(a, track=True, url=link.url) as channel:
        exchange = channel.default_exchange
        with antipode.scope() as scope:
            await exchange.publish(aio_pika.Message(b"42"), "no-such-queue")
            assert not scope.lineage
            assert not scope.pending
            await exchange.publish(aio_pika.Message(b"42"), a.queue())
            assert len(list(scope.lineage.of_store(STORE))) == 1
            link.silence()
            with pytest.raises(asyncio.TimeoutError):
                await exchange.publish(aio_pika.Message(b"42"), a.queues[-1], timeout=0.3)
            assert len(scope.pending) == 1
        link.cut()
    async with channel_of(a, track=True) as channel:
        await channel.close()
        with antipode.scope() as scope:
            with pytest.raises(aio_pika.exceptions.ChannelInvalidStateError):
                await channel.default_exchange.publish(aio_pika.Message(b"42"), "q")
            assert not scope.pending
    assert issubclass(aio_pika.exceptions.PublishError, DeliveryError)


async def test_transactions(a: Region) -> None:
    """SHIM-11: pending until the commit; nothing is left after a rollback."""
    name = a.queue()

    def state() -> tuple[int, int]:
        """How many are pending, and how many are written."""
        return len(scope.pending), len(list(scope.lineage.of_store(STORE)))

    async with channel_of(a, track=True, confirms=False) as channel:
        with antipode.scope() as scope:
            async with channel.transaction():
                await channel.default_exchange.publish(aio_pika.Message(b"1"), name)
                assert state() == (1, 0)
            assert state() == (0, 1)
            transaction = channel.transaction()
            await transaction.select()
            await channel.default_exchange.publish(aio_pika.Message(b"2"), name)
            assert state() == (1, 1)
            await transaction.rollback()
            assert state() == (0, 1)
            await transaction.select()
            await channel.default_exchange.publish(aio_pika.Message(b"3"), name)
            with antipode.scope() as committing:
                await transaction.commit()
                assert len(committing.lineage) == 1  # SCOPE-24


async def test_what_leaves_a_task_before_its_commit(a: Region) -> None:
    """SCOPE-16, SCOPE-18: the kit's case of an open transaction, in one task; another one's is no violation."""
    name = a.queue()
    async with channel_of(a, track=True, confirms=False) as channel:
        with antipode.scope() as scope:
            async with channel.transaction():
                await channel.default_exchange.publish(aio_pika.Message(b"1"), name)
                assert antipode.deserialize(antipode.serialize()).incomplete == {STORE}
                antipode.configure(on_pending="raise")
                with pytest.raises(PendingWriteError):
                    antipode.serialize()
                other = await asyncio.create_task(_serialized())
                assert antipode.deserialize(other).incomplete == {STORE}
                antipode.configure(on_pending="mark")
            assert not scope.pending
            assert antipode.deserialize(antipode.serialize()).is_complete()
            assert scope.lineage.of_store(STORE)


async def _serialized() -> str:
    return antipode.serialize()


async def test_after_a_reconnection_lineages_are_carried_on(a: Region) -> None:
    """A robust connection restores exchanges, queues and consumers: ours, and each message has one scope."""
    name, link = a.queue(), Link(a)
    seen: list[tuple[bytes, str]] = []

    async def callback(message: Any) -> None:
        async with message.process():
            seen.append((message.body, antipode.serialize()))

    async with channel_of(a, robust=True, url=f"{link.url}?reconnect_interval=0.2") as channel:
        await (await channel.declare_queue(name, passive=True)).consume(callback)
        link.cut()
        link.heal()
        deadline = time.monotonic() + 60
        while (b"after", "1~s.k._.m") not in seen:
            assert time.monotonic() < deadline
            with antipode.scope(Lineage.deserialize("1~s.k._.m")):
                try:
                    message = aio_pika.Message(b"after")
                    await asyncio.wait_for(channel.default_exchange.publish(message, name), 3)
                except (Exception, asyncio.CancelledError):
                    await asyncio.sleep(0.1)
                    continue
            await asyncio.sleep(0.3)


async def test_a_frame_has_room_for_the_lineage_or_it_is_left_out(a: Region, blog: Blog) -> None:
    """PROP-19."""
    name = a.queue()
    async with channel_of(a) as channel, channel_of(a, on_no_room="raise") as strict:
        with antipode.scope():
            depend(blog)
            size = channel._antipode.frame_max - 105
            assert size > 0
            full = aio_pika.Message(b"42", headers={"k": "x" * size})
            await channel.default_exchange.publish(full, name)
            with pytest.raises(ConfigurationError, match="no room"):
                await strict.default_exchange.publish(full, name)
        _, received, _ = a.get(name)
        assert received.headers.get(HEADER) in (None, "1~_.i")


async def test_what_is_no_channel(a: Region) -> None:
    connection = await aio_pika.connect(a.url)
    async with connection:
        with pytest.raises(TypeError, match="pika channel"):
            antipode_rabbitmq.wrap(connection, store=STORE)
        plain = await connection.channel()
        with pytest.raises(ConfigurationError, match="has returned"):
            scope_of(object(), channel=plain)
    assert pika.__version__
