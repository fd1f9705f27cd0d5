"""A gRPC service of streams on a real server of this machine, and callers of it, blocking and asyncio alike."""

from __future__ import annotations

import asyncio
import threading
import time
from collections.abc import AsyncIterator, Callable, Iterator
from concurrent.futures import ThreadPoolExecutor
from contextlib import contextmanager
from typing import Any

import antipode
import antipode.grpc
import grpc
import grpc.aio
from antipode import Scope, WriteId

LIST, UPLOAD, TALK, GET = (f"/antipode.test.Posts/{name}" for name in ("List", "Upload", "Talk", "Get"))
_MAKE: dict[str, Callable[..., Any]] = {
    LIST: grpc.unary_stream_rpc_method_handler,
    UPLOAD: grpc.stream_unary_rpc_method_handler,
    TALK: grpc.stream_stream_rpc_method_handler,
    GET: grpc.unary_unary_rpc_method_handler,
}
DEADLINE = 30.0


def write(name: str) -> WriteId:
    return WriteId.position(f"store-{name}", "e", 1)


def until(condition: Callable[[], object], what: str = "") -> None:
    end = time.monotonic() + DEADLINE
    while not condition():
        assert time.monotonic() < end, what or "not in time"
        time.sleep(0.005)


class Posts:
    """Notes the scope of every step; each message is written to a store of its own name."""

    def __init__(self) -> None:
        self.scopes: list[Scope | None] = []
        self.go_on = threading.Event()
        self.left = threading.Event()

    def note(self, name: str) -> None:
        self.scopes.append(antipode.current_scope())
        antipode.append(write(name))

    def list(self, request: bytes, context: Any) -> Iterator[bytes]:
        self.note("first")
        yield b"a"
        self.note("second")
        yield b"b"

    async def list_async(self, request: bytes, context: Any) -> AsyncIterator[bytes]:
        for message in self.list(request, context):
            yield message

    def upload(self, requests: Iterator[bytes], context: Any) -> bytes:
        for message in requests:
            self.note(message.decode())
        self.note("end")
        return b"done"

    async def upload_async(self, requests: AsyncIterator[bytes], context: Any) -> bytes:
        async for message in requests:
            self.note(message.decode())
        self.note("end")
        return b"done"

    def talk(self, requests: Iterator[bytes], context: Any) -> Iterator[bytes]:
        for message in requests:
            self.note(message.decode())
            yield message
        self.note("end")

    async def talk_async(self, requests: AsyncIterator[bytes], context: Any) -> AsyncIterator[bytes]:
        async for message in requests:
            self.note(message.decode())
            yield message
        self.note("end")

    def open(self, request: bytes, context: Any) -> Iterator[bytes]:
        """Sends a message, waits for the test, sends another, and ends as the request says."""
        try:
            self.note("first")
            yield b"a"
            assert self.go_on.wait(DEADLINE)
            yield b"b"
            self.note("second")
            if request == b"abort":
                context.abort(grpc.StatusCode.NOT_FOUND, "no such post")
            if request == b"raise":
                raise ValueError("broken")
        finally:
            self.note("left")
            self.left.set()

    async def open_async(self, request: bytes, context: Any) -> AsyncIterator[bytes]:
        try:
            self.note("first")
            yield b"a"
            while not self.go_on.is_set():
                await asyncio.sleep(0.005)
            yield b"b"
            self.note("second")
            if request == b"abort":
                await context.abort(grpc.StatusCode.NOT_FOUND, "no such post")
            if request == b"raise":
                raise ValueError("broken")
        finally:
            self.note("left")
            self.left.set()

    def one_scope(self) -> Scope:
        [scope] = set(self.scopes)
        assert scope is not None
        return scope


class _Handlers(grpc.GenericRpcHandler):  # type: ignore[misc]
    def __init__(self, behaviors: dict[str, Any]) -> None:
        self._behaviors = behaviors

    def service(self, details: Any) -> Any:
        behavior = self._behaviors.get(details.method)
        return None if behavior is None else _MAKE[details.method](behavior)


@contextmanager
def serving(**behaviors: Any) -> Iterator[str]:
    """A `grpc.server` with these behaviors, by the method's name in lower case; the target of a channel to it."""
    with ThreadPoolExecutor(8) as pool:
        server = grpc.server(pool, interceptors=[antipode.grpc.server_interceptor()])
        server.add_generic_rpc_handlers((_Handlers(_by_method(behaviors)),))
        port = server.add_insecure_port("127.0.0.1:0")
        server.start()
        try:
            yield f"127.0.0.1:{port}"
        finally:
            server.stop(None).wait(DEADLINE)


@contextmanager
def serving_async(**behaviors: Any) -> Iterator[str]:
    """The same by `grpc.aio`, on an event loop in a thread of its own."""
    ready: ThreadPoolExecutor
    started = threading.Event()
    target: list[str] = []
    stop: list[Callable[[], object]] = []

    async def serve() -> None:
        server = grpc.aio.server(interceptors=[antipode.grpc.aio_server_interceptor()])
        server.add_generic_rpc_handlers((_Handlers(_by_method(behaviors)),))
        target.append(f"127.0.0.1:{server.add_insecure_port('127.0.0.1:0')}")
        await server.start()
        ended = asyncio.Event()
        loop = asyncio.get_running_loop()
        stop.append(lambda: loop.call_soon_threadsafe(ended.set))
        started.set()
        await ended.wait()
        await server.stop(None)

    with ThreadPoolExecutor(1) as ready:
        running = ready.submit(asyncio.run, serve())
        assert started.wait(DEADLINE)
        try:
            yield target[0]
        finally:
            stop[0]()
            running.result(DEADLINE)


def _by_method(behaviors: dict[str, Any]) -> dict[str, Any]:
    return {f"/antipode.test.Posts/{name.capitalize()}": behavior for name, behavior in behaviors.items()}


@contextmanager
def channel_to(target: str, trusted: str = "") -> Iterator[grpc.Channel]:
    with grpc.insecure_channel(target) as channel:
        yield grpc.intercept_channel(channel, antipode.grpc.client_interceptor(trusted or target))


def aio_channel_to(target: str, trusted: str = "") -> grpc.aio.Channel:
    return grpc.aio.insecure_channel(target, interceptors=antipode.grpc.aio_client_interceptors(trusted or target))
