"""gRPC streams on real servers: one scope each, there and back, both libraries both sides (spec SCOPE-8, PROP-15)."""

from __future__ import annotations

import asyncio
import gc
import threading
from collections.abc import AsyncIterator, Callable, Iterator
from concurrent.futures import ThreadPoolExecutor
from contextlib import AbstractContextManager
from typing import Any

import antipode
import pytest
from antipode import Lineage, Scope, WriteId
from streamed import (
    DEADLINE,
    LIST,
    TALK,
    UPLOAD,
    Posts,
    aio_channel_to,
    channel_to,
    serving,
    serving_async,
    until,
    write,
)

BEFORE = WriteId.position("blog-posts", "8371ab90c2d4e6f1", 1042)
Serve = Callable[[Posts], AbstractContextManager[str]]
Call = Callable[[str], list[bytes]]

pytestmark = pytest.mark.usefixtures("own_propagators")


def by_threads(posts: Posts) -> AbstractContextManager[str]:
    return serving(list=posts.list, upload=posts.upload, talk=posts.talk)


def by_coroutines(posts: Posts) -> AbstractContextManager[str]:
    return serving_async(list=posts.list_async, upload=posts.upload_async, talk=posts.talk_async)


def by_threads_of_asyncio(posts: Posts) -> AbstractContextManager[str]:
    """Plain functions on a `grpc.aio` server, which runs them in threads."""
    return serving_async(list=posts.list, upload=posts.upload, talk=posts.talk)


def by_writers(posts: Posts) -> AbstractContextManager[str]:
    """Coroutines that read and write by themselves."""

    async def listing(request: bytes, context: Any) -> None:
        for message in posts.list(request, context):
            await context.write(message)

    async def talk(_: Any, context: Any) -> None:
        import grpc.aio

        while (message := await context.read()) is not grpc.aio.EOF:
            posts.note(message.decode())
            await context.write(message)
        posts.note("end")

    return serving_async(list=listing, upload=posts.upload_async, talk=talk)


SERVERS = pytest.mark.parametrize("serve", [by_threads, by_coroutines, by_threads_of_asyncio, by_writers])


def call_list(target: str) -> list[bytes]:
    with channel_to(target) as channel:
        return list(channel.unary_stream(LIST)(b"go", timeout=DEADLINE))


def call_upload(target: str) -> list[bytes]:
    with channel_to(target) as channel:
        return [channel.stream_unary(UPLOAD)(iter([b"a", b"b"]), timeout=DEADLINE)]


def call_talk(target: str) -> list[bytes]:
    with channel_to(target) as channel:
        return list(channel.stream_stream(TALK)(iter([b"a", b"b"]), timeout=DEADLINE))


def on_a_loop(calling: Callable[[Any], Any]) -> Call:
    def call(target: str) -> list[bytes]:
        async def run() -> list[bytes]:
            async with aio_channel_to(target) as channel:
                answers: list[bytes] = await calling(channel)
                return answers

        return asyncio.run(run())

    return call


async def aio_list(channel: Any) -> list[bytes]:
    return [message async for message in channel.unary_stream(LIST)(b"go", timeout=DEADLINE)]


async def aio_list_by_read(channel: Any) -> list[bytes]:
    import grpc.aio

    call, messages = channel.unary_stream(LIST)(b"go", timeout=DEADLINE), []
    while (message := await call.read()) is not grpc.aio.EOF:
        messages.append(message)
    return messages


async def some() -> AsyncIterator[bytes]:
    yield b"a"
    yield b"b"


async def aio_upload(channel: Any) -> list[bytes]:
    return [await channel.stream_unary(UPLOAD)(some(), timeout=DEADLINE)]


async def aio_upload_by_write(channel: Any) -> list[bytes]:
    call = channel.stream_unary(UPLOAD)(timeout=DEADLINE)
    await call.write(b"a")
    await call.write(b"b")
    await call.done_writing()
    return [await call]


async def aio_talk(channel: Any) -> list[bytes]:
    return [message async for message in channel.stream_stream(TALK)(some(), timeout=DEADLINE)]


async def aio_talk_by_turns(channel: Any) -> list[bytes]:
    call, messages = channel.stream_stream(TALK)(timeout=DEADLINE), []
    for message in (b"a", b"b"):
        await call.write(message)
        messages.append(await call.read())
    await call.done_writing()
    return messages + [message async for message in call]


@SERVERS
@pytest.mark.parametrize("call", [call_list, on_a_loop(aio_list), on_a_loop(aio_list_by_read)])
def test_from_the_server(serve: Serve, call: Call) -> None:
    check(serve, call, [b"a", b"b"], ["first", "second"])


@SERVERS
@pytest.mark.parametrize("call", [call_upload, on_a_loop(aio_upload), on_a_loop(aio_upload_by_write)])
def test_from_the_client(serve: Serve, call: Call) -> None:
    check(serve, call, [b"done"], ["a", "b", "end"])


@SERVERS
@pytest.mark.parametrize("call", [call_talk, on_a_loop(aio_talk), on_a_loop(aio_talk_by_turns)])
def test_both_ways(serve: Serve, call: Call) -> None:
    check(serve, call, [b"a", b"b"], ["a", "b", "end"])


def check(serve: Serve, call: Call, answers: list[bytes], written: list[str]) -> None:
    posts = Posts()
    with serve(posts) as target, antipode.scope() as scope:
        antipode.append(BEFORE)
        assert call(target) == answers
        assert scope.lineage == Lineage([BEFORE, *map(write, written)])
        assert scope.lineage.is_complete()
        assert scope.gaps == ()
        theirs = posts.one_scope()
        assert theirs is not scope
        assert theirs.endpoint is not None
        assert theirs.endpoint().startswith("/antipode.test.Posts/")
        until(lambda: theirs.closed)
        assert theirs.lineage == scope.lineage


def test_what_makes_requests_runs_in_the_callers_scope() -> None:
    """SCOPE-11: gRPC reads them in a thread of its own."""
    posts = Posts()

    def requests() -> Iterator[bytes]:
        antipode.append(write("made"))
        yield b"a"

    with by_threads(posts) as target, channel_to(target) as channel, antipode.scope() as scope:
        channel.stream_unary(UPLOAD)(requests(), timeout=DEADLINE)
        assert scope.lineage == Lineage(map(write, ["made", "a", "end"]))


@pytest.mark.parametrize("way", ["threads", "coroutines"])
def test_a_scope_a_message_where_the_handler_asks(way: str) -> None:
    """SCOPE-6, SCOPE-8: from the lineage that the message holds; the stream's own stays as it is."""
    posts = Posts()

    def one(message: bytes) -> bytes:
        with antipode.message_scope(message):
            antipode.append(write("inside"))
            answer = antipode.serialize().encode()
        posts.note("outside")
        return answer

    def talk(requests: Iterator[bytes], _: Any) -> Iterator[bytes]:
        return (one(message) for message in requests)

    async def talk_async(requests: AsyncIterator[bytes], _: Any) -> AsyncIterator[bytes]:
        async for message in requests:
            yield one(message)

    serve = serving(talk=talk) if way == "threads" else serving_async(talk=talk_async)
    messages = [Lineage([write(name)]).serialize().encode() for name in ("a", "b")]
    with serve as target, channel_to(target) as channel, antipode.scope(Lineage([BEFORE])) as scope:
        answers = list(channel.stream_stream(TALK)(iter(messages), timeout=DEADLINE))
        assert answers == [Lineage([write(name), write("inside")]).serialize().encode() for name in ("a", "b")]
        assert scope.lineage == Lineage([BEFORE, write("outside")])
        posts.one_scope()


def scopes_alive() -> int:
    gc.collect()
    return sum(issubclass(type(each), Scope) for each in gc.get_objects())  # not isinstance: it wakes lazy objects


@pytest.mark.parametrize("way", ["threads", "coroutines"])
def test_thousands_of_messages_leave_nothing(way: str) -> None:
    """A lineage is as large as the stores it touched, and a message's scope goes with the message."""
    counted: list[int] = []

    def one(number: int, message: bytes) -> bytes:
        with antipode.message_scope(None):
            antipode.append(WriteId.position("blog-posts", "e", number))
        antipode.append(WriteId.position("user-acl", "e", number))
        if number in {100, 4000}:
            counted.append(scopes_alive())
        return message

    def talk(requests: Iterator[bytes], _: Any) -> Iterator[bytes]:
        return (one(number, message) for number, message in enumerate(requests, 1))

    async def talk_async(requests: AsyncIterator[bytes], _: Any) -> AsyncIterator[bytes]:
        number = 0
        async for message in requests:
            number += 1
            yield one(number, message)

    serve = serving(talk=talk) if way == "threads" else serving_async(talk=talk_async)
    with serve as target, channel_to(target) as channel, antipode.scope() as scope:
        answers = channel.stream_stream(TALK)((b"m" for _ in range(4000)), timeout=60)
        assert sum(1 for _ in answers) == 4000
        assert scope.lineage == Lineage([WriteId.position("user-acl", "e", 4000)])
        assert scope.lineage.is_complete()
    assert counted[1] <= counted[0] + 2


@pytest.mark.parametrize("way", ["threads", "coroutines"])
def test_a_slow_reader_holds_the_writer_back(way: str) -> None:
    """Nothing is read ahead of what gRPC itself reads ahead."""
    made = 0
    message = bytes(65_536)

    def listing(*_: Any) -> Iterator[bytes]:
        nonlocal made
        for made in range(1, 1001):  # noqa: B007
            yield message

    async def listing_async(*_: Any) -> AsyncIterator[bytes]:
        for each in listing():
            yield each

    serve = serving(list=listing) if way == "threads" else serving_async(list=listing_async)
    with serve as target, channel_to(target) as channel, antipode.scope():
        answers = channel.unary_stream(LIST)(b"go", timeout=60)
        next(answers)
        waited, before = threading.Event(), -1
        while before != made:  # until it stands still
            before = made
            waited.wait(0.5)
        assert made < 500
        assert sum(1 for _ in answers) == 999
        assert made == 1000


def test_streams_side_by_side_have_scopes_of_their_own() -> None:
    posts = Posts()
    with by_threads(posts) as target, channel_to(target) as channel, ThreadPoolExecutor(4) as pool:

        def call(name: str) -> Lineage:
            with antipode.scope() as scope:
                list(channel.stream_stream(TALK)(iter([name.encode()] * 5), timeout=DEADLINE))
                return scope.lineage

        names = ["a", "b", "c", "d"]
        found = list(pool.map(call, names))
    assert found == [Lineage([write(name), write("end")]) for name in names]
    assert len(set(posts.scopes)) == 4
