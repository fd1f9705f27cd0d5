"""gRPC streams that are open, fail, or are given up: what the caller's scope says meanwhile (spec PROP-27, PROP-28)."""

from __future__ import annotations

import asyncio
import gc
import subprocess
import sys
import threading
from collections.abc import AsyncIterator, Callable, Iterator
from contextlib import AbstractContextManager, suppress
from typing import Any

import antipode
import antipode.grpc
import antipode.memory
import grpc
import grpc.aio
import pytest
from antipode import Lineage, Scope
from antipode._propagation.response_stream import ResponseStream
from streamed import (
    DEADLINE,
    GET,
    LIST,
    UPLOAD,
    Posts,
    aio_channel_to,
    channel_to,
    serving,
    serving_async,
    until,
    write,
)

Serve = Callable[[Posts], AbstractContextManager[str]]

pytestmark = pytest.mark.usefixtures("own_propagators")


def by_threads(posts: Posts) -> AbstractContextManager[str]:
    return serving(list=posts.open)


def by_coroutines(posts: Posts) -> AbstractContextManager[str]:
    return serving_async(list=posts.open_async)


def by_threads_of_asyncio(posts: Posts) -> AbstractContextManager[str]:
    return serving_async(list=posts.open)


SERVERS = pytest.mark.parametrize("serve", [by_threads, by_coroutines])
ALL_SERVERS = pytest.mark.parametrize("serve", [by_threads, by_coroutines, by_threads_of_asyncio])


def reasons(scope: Scope) -> list[str]:
    return [gap.reason for gap in scope.gaps]


def assert_open(scope: Scope) -> None:
    """A message is in hand: nothing that judges or leaves this scope takes it for complete."""
    assert scope.lineage.incomplete == {""}
    assert Lineage.deserialize(antipode.serialize()).incomplete == {""}
    assert scope.lineage.incomplete == {""}
    assert reasons(scope) == ["streaming"]


def assert_ended(scope: Scope) -> None:
    assert scope.lineage == Lineage(map(write, ["first", "second", "left"]))
    assert scope.lineage.is_complete()
    assert scope.gaps == ()


@SERVERS
def test_the_scope_is_incomplete_until_the_trailer(serve: Serve) -> None:
    posts = Posts()
    with serve(posts) as target, channel_to(target) as channel, antipode.scope() as scope:
        answers = channel.unary_stream(LIST)(b"go", timeout=DEADLINE)
        assert scope.lineage.is_complete()  # nothing is in hand yet
        assert next(answers) == b"a"
        assert_open(scope)
        posts.go_on.set()
        assert next(answers) == b"b"
        assert list(answers) == []
        assert_ended(scope)


@SERVERS
async def test_the_same_by_asyncio(serve: Serve) -> None:
    posts = Posts()
    with serve(posts) as target, antipode.scope() as scope:
        async with aio_channel_to(target) as channel:
            answers = channel.unary_stream(LIST)(b"go", timeout=DEADLINE)
            assert await answers.read() == b"a"
            assert_open(scope)
            posts.go_on.set()
            assert await answers.read() == b"b"
            assert await answers.read() is grpc.aio.EOF
            assert_ended(scope)


def test_a_barrier_is_not_complete_meanwhile() -> None:
    """BAR-15, BAR-35, BAR-44: nor does a proof from before pass for what the messages depend on."""
    store = antipode.memory.Store("s", regions=["a"])
    posts = Posts()
    with by_threads(posts) as target, channel_to(target) as channel, antipode.scope():
        store.client("a").set("k", "v")
        assert antipode.barrier().complete
        assert antipode.barrier().complete
        answers = channel.unary_stream(LIST)(b"go", timeout=DEADLINE)
        next(answers)
        result = antipode.barrier()
        assert (result.satisfied, result.complete) == (True, False)
        assert [gap.reason for gap in result.gaps] == ["streaming"]
        with pytest.raises(antipode.BarrierIncomplete, match="response stream"):
            antipode.barrier(require_complete=True)
        posts.go_on.set()
        list(answers)
        assert antipode.barrier(stores=["s"]).complete


def test_what_is_called_meanwhile_hears_that_something_is_missing() -> None:
    """SCOPE-16: and the response of the caller's own caller, by the same copies."""
    posts = Posts()
    heard: list[Lineage] = []

    def get(request: bytes, context: Any) -> bytes:
        scope = antipode.current_scope()
        assert scope is not None
        heard.append(scope.lineage)
        return b""

    with serving(list=posts.open, get=get) as target, channel_to(target) as channel, antipode.scope() as scope:
        answers = channel.unary_stream(LIST)(b"go", timeout=DEADLINE)
        next(answers)
        channel.unary_unary(GET)(b"go", timeout=DEADLINE)
        posts.go_on.set()
        list(answers)
        channel.unary_unary(GET)(b"go", timeout=DEADLINE)
        assert [lineage.incomplete for lineage in heard] == [{""}, set()]
        assert_ended(scope)


def test_vouching_holds_until_the_next_message() -> None:
    """LIN-26."""
    posts = Posts()
    with by_threads(posts) as target, channel_to(target) as channel, antipode.scope() as scope:
        answers = channel.unary_stream(LIST)(b"go", timeout=DEADLINE)
        next(answers)
        scope.remove(incomplete=True)
        assert scope.lineage.is_complete()
        posts.go_on.set()
        next(answers)
        assert_open(scope)
        list(answers)
        assert_ended(scope)


def test_from_a_stranger_nothing_is_expected() -> None:
    """TRUST-3."""
    posts = Posts()
    with by_threads(posts) as target, channel_to(target, "203.0.113.9:80") as channel, antipode.scope() as scope:
        answers = channel.unary_stream(LIST)(b"go", timeout=DEADLINE)
        next(answers)
        assert scope.lineage.is_complete()
        posts.go_on.set()
        list(answers)
        assert scope.lineage == Lineage()
        assert scope.lineage.is_complete()


@ALL_SERVERS
@pytest.mark.parametrize("ending", [b"abort", b"raise"])
def test_an_error_in_mid_stream_brings_the_writes_back(serve: Serve, ending: bytes) -> None:
    """PROP-15; what the handler's `finally` writes comes too late for an abort, whose status leaves before it."""
    posts = Posts()
    with serve(posts) as target, channel_to(target) as channel, antipode.scope() as scope:
        answers = channel.unary_stream(LIST)(ending, timeout=DEADLINE)
        next(answers)
        posts.go_on.set()
        next(answers)
        with pytest.raises(grpc.RpcError) as caught:
            next(answers)
        assert caught.value.code() is (grpc.StatusCode.NOT_FOUND if ending == b"abort" else grpc.StatusCode.UNKNOWN)
        assert Lineage(map(write, ["first", "second"])) <= scope.lineage
        assert scope.lineage.is_complete()
        assert scope.gaps == ()
        until(lambda: posts.one_scope().closed)


def cancelling(answers: Any) -> None:
    assert answers.cancel()


def dropping(answers: Any) -> None:
    """Nobody holds it any more: gRPC cancels it."""


@SERVERS
@pytest.mark.parametrize("giving_up", [cancelling, dropping])
def test_a_stream_that_is_given_up_is_a_loss(serve: Serve, giving_up: Callable[[Any], None]) -> None:
    """PROP-27: the handler ends in its scope, and what it wrote stays missing."""
    posts = Posts()
    with serve(posts) as target, channel_to(target) as channel, antipode.scope() as scope:
        answers = channel.unary_stream(LIST)(b"go", timeout=DEADLINE)
        next(answers)
        giving_up(answers)
        del answers
        gc.collect()
        assert scope.lineage.incomplete == {""}
        posts.go_on.set()
        until(posts.left.is_set, "the handler did not end")
        theirs = posts.one_scope()
        until(lambda: theirs.closed)
        assert write("left") in theirs.lineage
    assert scope.lineage.incomplete == {""}
    assert reasons(scope) == ["unanswered"]
    assert not scope.passing_gaps


def too_long(request: bytes, context: Any) -> Iterator[bytes]:
    antipode.append(write("first"))
    yield b"a"
    antipode.append(write("second"))
    yield b"b" * 2000


def unreadable(message: bytes) -> bytes:
    if message == b"b" * 2000:
        raise ValueError("unreadable")
    return message


@pytest.mark.parametrize("most", [1000, 4000], ids=["too long", "unreadable"])
def test_a_stream_that_the_client_ends_by_itself_is_a_loss(most: int) -> None:
    """PROP-27: the status is the client's own; the trailer may have come all the same, and then it is whole."""
    options = [("grpc.max_receive_message_length", most)]
    with serving(list=too_long) as target, antipode.scope() as scope:
        with grpc.insecure_channel(target, options) as plain:
            channel = grpc.intercept_channel(plain, antipode.grpc.client_interceptor(target))
            answers = channel.unary_stream(LIST, response_deserializer=unreadable)(b"go", timeout=DEADLINE)
            assert next(answers) == b"a"
            with pytest.raises(grpc.RpcError):
                next(answers)
        if write("second") not in scope.lineage:
            assert scope.lineage.incomplete == {""}
            assert reasons(scope) == ["unanswered"]


@pytest.mark.parametrize("most", [1000, 4000], ids=["too long", "unreadable"])
async def test_an_answer_that_the_client_refuses_is_a_loss(most: int) -> None:
    """PROP-27, of calls with one answer, by threads and by asyncio."""

    def get(request: bytes, context: Any) -> bytes:
        antipode.append(write("first"))
        return b"b" * 2000

    options = [("grpc.max_receive_message_length", most)]
    with serving(get=get) as target:
        with antipode.scope() as scope, grpc.insecure_channel(target, options) as plain:
            channel = grpc.intercept_channel(plain, antipode.grpc.client_interceptor(target))
            with pytest.raises(grpc.RpcError):
                channel.unary_unary(GET, response_deserializer=unreadable)(b"go", timeout=DEADLINE)
            assert (not scope.lineage.is_complete()) or write("first") in scope.lineage
        with antipode.scope() as scope:
            interceptors = antipode.grpc.aio_client_interceptors(target)
            async with grpc.aio.insecure_channel(target, options, interceptors=interceptors) as aio:
                with suppress(grpc.RpcError):  # what it cannot read is None there
                    await aio.unary_unary(GET, response_deserializer=unreadable)(b"go", timeout=DEADLINE)
            assert (not scope.lineage.is_complete()) or write("first") in scope.lineage


async def read_all(answers: Any) -> None:
    async for _ in answers:
        pass


@pytest.mark.parametrize("way", ["cancel", "break", "timeout"])
async def test_the_same_by_asyncio_tasks(way: str) -> None:
    posts = Posts()
    with by_coroutines(posts) as target, antipode.scope() as scope:
        async with aio_channel_to(target) as channel:
            if way == "timeout":
                with pytest.raises(TimeoutError):
                    await asyncio.wait_for(read_all(channel.unary_stream(LIST)(b"go", timeout=DEADLINE)), 0.3)
            else:
                answers = channel.unary_stream(LIST)(b"go", timeout=DEADLINE)
                async for _ in answers:
                    if way == "cancel":
                        answers.cancel()
                    break
                del answers
        assert scope.lineage.incomplete == {""}
        await asyncio.to_thread(until, posts.left.is_set)
        await asyncio.to_thread(until, lambda: posts.one_scope().closed)
    assert scope.lineage.incomplete == {""}
    assert reasons(scope) == ["unanswered"]


@pytest.mark.parametrize("way", ["cancelled", "given up"])
def test_a_future_that_nobody_asks_is_joined_or_a_loss(way: str) -> None:
    """PROP-27, PROP-14: what came of a call counts when it ends, not when its result is asked for."""
    arrived, leaves = threading.Event(), threading.Event()

    def get(request: Any, context: Any) -> bytes:
        antipode.append(write("left"))
        arrived.set()
        leaves.wait(DEADLINE)
        return b""

    with serving(get=get) as target, channel_to(target) as channel, antipode.scope() as scope:
        future = channel.unary_unary(GET).future(b"go", timeout=DEADLINE)
        assert arrived.wait(DEADLINE)
        if way == "cancelled":
            future.cancel()
            until(lambda: scope.lineage.incomplete == {""})
            assert reasons(scope) == ["unanswered"]
        leaves.set()
        if way == "given up":
            with pytest.raises(grpc.FutureTimeoutError):
                future.result(0)
            until(lambda: scope.lineage == Lineage([write("left")]))
            assert scope.lineage.is_complete()


async def test_a_cancelled_call_of_asyncio_is_a_loss() -> None:
    """PROP-27, of calls with one answer: it may have run."""
    posts, arrived = Posts(), threading.Event()

    async def get(request: Any, context: Any) -> bytes:
        arrived.set()
        await asyncio.sleep(DEADLINE)
        return b""

    async def no_more() -> AsyncIterator[bytes]:
        yield b"a"

    for kind in ("unary", "stream"):
        arrived.clear()
        with serving_async(get=get, upload=get) as target, antipode.scope() as scope:
            async with aio_channel_to(target) as channel:
                if kind == "unary":
                    call = channel.unary_unary(GET)(b"go", timeout=DEADLINE)
                else:
                    call = channel.stream_unary(UPLOAD)(no_more(), timeout=DEADLINE)
                waiting = asyncio.ensure_future(call)
                await asyncio.to_thread(arrived.wait, DEADLINE)
                waiting.cancel()
                with pytest.raises(asyncio.CancelledError):
                    await waiting
                assert scope.lineage.incomplete == {""}, kind
            assert reasons(scope) == ["unanswered"]
    assert posts.scopes == []


CALLER = """
import sys, antipode.grpc, grpc
target = sys.argv[1]
channel = grpc.intercept_channel(grpc.insecure_channel(target), antipode.grpc.client_interceptor(target))
answers = channel.unary_stream("/antipode.test.Posts/List")(b"go")
print(next(answers), flush=True)
sys.stdin.read()
"""


@SERVERS
def test_a_caller_that_has_died(serve: Serve) -> None:
    """SCOPE-3: the handler ends, and its scope with it."""
    posts = Posts()
    with serve(posts) as target:
        caller = subprocess.Popen(
            [sys.executable, "-c", CALLER, target], stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True
        )
        try:
            assert caller.stdout is not None
            assert caller.stdout.readline().strip() == "b'a'"
        finally:
            caller.kill()
            caller.communicate(timeout=DEADLINE)
        posts.go_on.set()
        until(posts.left.is_set, "the handler did not end")
        until(lambda: posts.one_scope().closed)


def test_a_server_that_goes_away_is_a_loss() -> None:
    posts = Posts()

    def stuck(request: bytes, context: Any) -> Iterator[bytes]:
        posts.note("first")
        yield b"a"
        posts.go_on.wait(DEADLINE)

    with antipode.scope() as scope:
        with serving(list=stuck) as target:
            channel = grpc.intercept_channel(grpc.insecure_channel(target), antipode.grpc.client_interceptor(target))
            answers = channel.unary_stream(LIST)(b"go", timeout=DEADLINE)
            next(answers)
            threading.Timer(0.2, posts.go_on.set).start()
        with pytest.raises(grpc.RpcError):
            list(answers)
        assert scope.lineage.incomplete == {""}
        assert reasons(scope) == ["unanswered"]
        channel.close()


def test_streams_that_nobody_reads_on_do_not_gather() -> None:
    """Each that was dropped is one gap, and holds nothing any more when the next is opened."""
    posts = Posts()
    posts.go_on.set()
    with by_threads(posts) as target, channel_to(target) as channel, antipode.scope() as scope:
        for _ in range(20):
            next(channel.unary_stream(LIST)(b"go", timeout=DEADLINE))
        gc.collect()
        assert len(scope.streams.open) <= 2
        assert scope.lineage.incomplete == {""}


@pytest.mark.parametrize("changed", [{"mode": "off"}, {"trust": "none"}], ids=["off", "no trust"])
@pytest.mark.parametrize("taken", [False, True], ids=["given up", "trailer"])
def test_a_setting_that_changes_while_a_stream_is_open_hides_no_loss(changed: dict[str, Any], taken: bool) -> None:
    """PROP-27, PROP-28: whether a lineage is expected is judged where the call is made."""
    before = antipode.settings()
    with antipode.scope() as scope:
        stream = ResponseStream("localhost:50051")
        stream.message()
        antipode.configure(**changed)
        if taken:
            stream.end(["1~posts..e.7"])
        else:
            stream.lost("UNAVAILABLE")
        antipode.configure(mode=before.mode, trust=before.trust)
        assert "unanswered" in reasons(scope)
        assert scope.lineage.incomplete
