"""Questions by messages, and their answers (SCOPE-29), with pika's and aio-pika's own ways of asking."""

from __future__ import annotations

import asyncio
import gc
import threading
import weakref
from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any

import aio_pika
import antipode
import pytest
from aio_pika.patterns import RPC
from antipode import Lineage, Mode, configure
from antipode._propagation.questions import MOST, Questions
from antipode._scope.context import activate
from antipode.messages import HEADER
from rabbit_regions import Consumer, Region, properties, wait_for
from test_aio import channel_of

ASKED, ACL, BOTH = "1~blog..0-1.42", "1~acl..0-1.7", "1~acl..0-1.7~blog..0-1.42"
DIRECT = "amq.rabbitmq.reply-to"
WAITS = "1~blog..0-1.42~_.i"


@contextmanager
def answering(a: Region, queue: str, times: int = 1) -> Iterator[Any]:
    """A service that depends on something of its own, by a plain channel."""

    def answer(channel: Any, method: Any, received: Any, body: bytes) -> None:
        for _ in range(times):
            plain = properties(correlation_id=received.correlation_id, headers={HEADER: ACL})
            channel._antipode.plain.basic_publish("", received.reply_to, body, plain)
        channel.basic_ack(method.delivery_tag)

    with Consumer(a, queue, answer) as consumer:
        yield consumer


def ask(channel: Any, queue: str, reply_to: str, identifier: str | None = "1") -> None:
    channel.basic_publish("", queue, b"?", properties(reply_to=reply_to, correlation_id=identifier))


@pytest.mark.parametrize("place", [DIRECT, "exclusive", "named"])
def test_an_answer_joins_the_scope_that_asked(a: Region, place: str) -> None:
    """SCOPE-29, as in the tutorial on calls."""
    queue, channel, seen = a.queue(), a.wrapped(), list[Any]()
    reply_to = a.queue() if place == "named" else place
    if place == "exclusive":
        reply_to = channel.queue_declare("", exclusive=True).method.queue

    def on_reply(_channel: Any, _method: Any, received: Any, _body: bytes) -> None:
        seen.append((received.correlation_id, antipode.serialize(), scope.lineage.serialize()))

    channel.basic_consume(reply_to, on_reply, auto_ack=True)
    with antipode.scope(Lineage.deserialize(ASKED)) as scope:
        ask(channel, queue, reply_to)
        assert antipode.serialize() == (ASKED if place == "named" else WAITS), "the answer is not in hand"
        with answering(a, queue):
            wait_for("the answer", lambda: channel.connection.process_data_events(0.05) or seen)
        assert seen == [("1", ACL, BOTH)], "the message's own scope has it alone"
        assert antipode.serialize() == BOTH


def test_an_answer_whose_question_was_written_in_octets(a: Region) -> None:
    """SCOPE-29: pika takes octets in the place of any text."""
    queue, channel, own, seen = a.queue(), a.wrapped(), a.queue(), list[Any]()
    with antipode.scope() as scope, answering(a, queue):
        octets = properties(reply_to=own.encode(), correlation_id=b"4\xc3\xa9")
        channel.basic_publish("", queue, b"?", octets)
        channel.basic_consume(own, lambda *_: seen.append(1), auto_ack=True)
        wait_for("the answer", lambda: channel.connection.process_data_events(0.05) or seen)
        assert scope.lineage.serialize() == ACL


def test_an_answer_that_is_pulled_joins(a: Region) -> None:
    """SCOPE-29: by `basic_get`, and by `consume()`."""
    queue, channel = a.queue(), a.wrapped()
    reply_to = channel.queue_declare("", exclusive=True).method.queue
    with answering(a, queue):
        with antipode.scope(Lineage.deserialize(ASKED)):
            ask(channel, queue, reply_to)
            wait_for("the answer", lambda: channel.basic_get(reply_to, auto_ack=True)[0])
            assert antipode.serialize() == BOTH
        with antipode.scope(Lineage.deserialize(ASKED)):
            ask(channel, queue, reply_to)
            next(channel.consume(reply_to, auto_ack=True, inactivity_timeout=60))
            assert antipode.serialize() == BOTH
        channel.cancel()


def test_a_question_without_an_answer_leaves_its_scope_incomplete(a: Region) -> None:
    """SCOPE-29, PROP-27: nobody was there; after the scope's end, too."""
    channel = a.wrapped()
    channel.basic_consume(DIRECT, lambda *_: None, auto_ack=True)
    with antipode.scope() as scope:
        ask(channel, a.queue(), DIRECT)
        channel.connection.process_data_events(0.1)
        result = antipode.barrier(timeout=0, on_timeout="proceed", on_unproven="proceed")
        assert not result.complete
        assert [gap.reason for gap in scope.gaps] == ["unanswered"]
    assert not scope.lineage.is_complete()


def test_an_answer_joins_only_those_who_may_have_asked(a: Region) -> None:
    """SCOPE-29: of another identifier, or late, it is a message as others are; the same one twice joins each."""
    queue, channel, seen = a.queue(), a.wrapped(), list[Any]()
    channel.basic_consume(DIRECT, lambda *_: seen.append(antipode.serialize()), auto_ack=True)
    first, second, other, late = [antipode.scope() for _ in range(4)]
    with first as one, second as two, other as three:
        for scope, identifier in ((one, "1"), (two, "1"), (three, "3")):
            with activate(scope):
                ask(channel, queue, DIRECT, identifier)
        with late as gone:
            ask(channel, queue, DIRECT, "gone")
        with answering(a, queue):
            wait_for("four answers", lambda: channel.connection.process_data_events(0.05) or len(seen) == 4)
        assert [scope.lineage.serialize() for scope in (one, two, three)] == [ACL] * 3
        assert gone.lineage.serialize() == "1~_.i"


def test_an_answer_that_nobody_can_tell_leaves_the_scope_incomplete(a: Region) -> None:
    """SCOPE-29: without an identifier, where two scopes wait."""
    queue, channel, seen = a.queue(), a.wrapped(), list[Any]()
    channel.basic_consume(DIRECT, lambda *_: seen.append(1), auto_ack=True)
    with answering(a, queue):
        with antipode.scope() as one:
            ask(channel, queue, DIRECT, None)
            with antipode.scope() as two:
                ask(channel, queue, DIRECT, None)
                wait_for("both", lambda: channel.connection.process_data_events(0.05) or len(seen) == 2)
                assert not two.lineage.is_complete()
            assert one.lineage.serialize() == ACL


def test_an_answer_by_a_named_queue_that_is_consumed_only_later(a: Region) -> None:
    """SCOPE-29: without an identifier nobody can tell it, so only who consumes there is incomplete."""
    queue, channel, own, seen = a.queue(), a.wrapped(), a.queue(), list[str]()
    with antipode.scope() as scope:
        ask(channel, queue, own, None)
        with antipode.scope() as sender:
            ask(channel, queue, a.queue(), None)  # another process has the answer
        assert scope.lineage == antipode.EMPTY
        channel.basic_consume(own, lambda *_: seen.append(scope.lineage.serialize()), auto_ack=True)
        with answering(a, queue):
            wait_for("the answer", lambda: channel.connection.process_data_events(0.05) or seen)
        assert seen == ["1~_.i"]
        assert sender.lineage == antipode.EMPTY


def test_what_never_left_is_no_question_and_what_another_awaits_is_not_ours(a: Region) -> None:
    """SCOPE-29"""
    channel = a.wrapped()
    with antipode.scope() as scope:
        ask(channel, a.queue(), "amq.gen-of-another-process")
        assert scope.lineage.is_complete()
        channel.basic_consume(DIRECT, lambda *_: None, auto_ack=True)
        channel.close()
        with pytest.raises(Exception, match="closed"):
            ask(channel, "q", DIRECT)
        assert scope.lineage.is_complete()


def test_with_mode_off_an_answer_adds_nothing(a: Region) -> None:
    """PROP-26"""
    configure(mode=Mode.OFF)
    queue, channel, seen = a.queue(), a.wrapped(), list[Any]()
    channel.basic_consume(DIRECT, lambda *_: seen.append(1), auto_ack=True)
    with antipode.scope() as scope, answering(a, queue):
        ask(channel, queue, DIRECT)
        wait_for("the answer", lambda: channel.connection.process_data_events(0.05) or seen)
        assert scope.lineage == antipode.EMPTY


def test_too_many_questions_leave_the_eldest_scope_incomplete() -> None:
    """SCOPE-29: the memory is bounded; closed scopes go first."""
    questions = Questions(lambda _: False)
    for number in range(1000):
        with antipode.scope():
            questions.ask("q", f"closed {number}")
    assert questions._size < 300
    with antipode.scope() as eldest:
        questions.ask("q", "eldest")
        with antipode.scope() as scope:
            for number in range(MOST):
                questions.ask("q", str(number))
            assert questions._size <= MOST
            assert not eldest.lineage.is_complete()
            assert not scope.lineage.is_complete(), "some of its own are forgotten, too"
            questions.after_fork()
            assert not questions._size


def test_what_is_consumed_is_forgotten_when_nobody_uses_it() -> None:
    """SCOPE-29: no channel is kept, and of too many queues those that are used are the last to go."""

    class Channel:
        pass

    questions, channel = Questions(lambda _: True), Channel()
    gone = weakref.ref(channel)
    questions.consuming(channel)
    with antipode.scope() as scope:
        asking = questions.ask(channel, "1")
        assert asking is not None
        asking.sent()
        assert not scope.lineage.is_complete()
        questions.came(channel, "1", lambda _: None)
        assert scope.lineage.is_complete()
    for number in range(MOST):
        questions.consuming(str(number))
    for name in ("0", "another", "0"):
        with antipode.scope() as scope:
            asking = questions.ask(name, "1")
            assert asking is not None
            asking.sent()
            assert scope.lineage.is_complete() == (name == "another")
        questions.consuming(f"new {scope}")
    del asking, channel
    for number in range(300):  # closed scopes are forgotten as the memory grows
        with antipode.scope():
            questions.ask("q", str(number))
    gc.collect()
    assert gone() is None


def test_an_answer_in_another_thread(a: Region) -> None:
    """SCOPE-29: threads ask and are answered side by side."""
    questions = Questions(lambda _: True)
    questions.consuming("q")
    wrong = list[Any]()

    def work(name: str) -> None:
        for number in range(200):
            with antipode.scope() as scope:
                asking = questions.ask("q", f"{name}{number}")
                assert asking is not None
                asking.sent()
                if scope.lineage.is_complete():
                    wrong.append("complete before")
                questions.came("q", f"{name}{number}", lambda scope: scope.merge(Lineage.deserialize(ACL)))
                if scope.lineage.serialize() != ACL:
                    wrong.append(scope.lineage.serialize())

    threads = [threading.Thread(target=work, args=(name,)) for name in "abcd"]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join(60)
    assert not wrong


@pytest.mark.parametrize("robust", [False, True])
@pytest.mark.parametrize("way", ["consume", "iterator", "get", "direct"])
async def test_aio_pikas_answers_join(a: Region, way: str, robust: bool) -> None:
    """SCOPE-29"""
    name = a.queue()
    async with channel_of(a, robust=robust) as channel:
        queue = await (
            channel.get_queue(DIRECT, ensure=False) if way == "direct" else channel.declare_queue(exclusive=True)
        )
        came: asyncio.Queue[Any] = asyncio.Queue()
        if way in ("consume", "direct"):
            await queue.consume(came.put, no_ack=True)
        with answering(a, name), antipode.scope(Lineage.deserialize(ASKED)):
            await channel.default_exchange.publish(
                aio_pika.Message(b"?", reply_to=queue.name, correlation_id="1"), name
            )
            if way in ("consume", "direct"):
                assert antipode.serialize() == WAITS
            if way == "iterator":
                async with queue.iterator(no_ack=True) as messages:
                    await asyncio.wait_for(anext(messages), 60)
            elif way == "get":
                while await queue.get(no_ack=True, fail=False) is None:
                    await asyncio.sleep(0.01)
            else:
                await asyncio.wait_for(came.get(), 60)
            assert antipode.serialize() == BOTH


@pytest.mark.parametrize("robust", [False, True])
async def test_aio_pikas_own_calls(a: Region, robust: bool) -> None:
    """SCOPE-29: `aio_pika.patterns.RPC`; what it forgets stays missing."""
    async with channel_of(a, robust=robust) as channel:
        rpc = await RPC.create(channel)
        silent = asyncio.Event()

        async def post(*, wait: bool) -> str:
            antipode.append(antipode.WriteId.position("acl", "0-1", 7))
            if wait:
                await silent.wait()
            return "done"

        await rpc.register(f"post-{a.queue()}", post, auto_delete=True)
        [method] = rpc.routes
        with antipode.scope(Lineage.deserialize(ASKED)):
            assert await rpc.call(method, {"wait": False}) == "done"
            assert antipode.serialize() == BOTH
        with antipode.scope(Lineage.deserialize(ASKED)):
            with pytest.raises(asyncio.TimeoutError):
                await asyncio.wait_for(rpc.call(method, {"wait": True}), 0.2)
            assert antipode.serialize() == WAITS
        silent.set()
