"""WebSockets and server-sent events on a real server: one scope a stream, one a message on demand (spec SCOPE-8)."""

from __future__ import annotations

import asyncio
import gc
import logging
import socket as sockets
import threading
from collections.abc import AsyncIterator, Awaitable, Callable
from typing import Any

import antipode
import antipode.asgi
import httpx
import pytest
from antipode import Lineage, Scope, WriteId
from antipode._base.observers import events
from antipode.propagation import extract_response
from starlette.applications import Starlette
from starlette.requests import Request
from starlette.responses import PlainTextResponse, Response, StreamingResponse
from starlette.routing import Route, WebSocketRoute
from starlette.websockets import WebSocket, WebSocketDisconnect
from web import asgi_server, wait_until
from websockets.exceptions import ConnectionClosed, InvalidStatus
from websockets.sync.client import ClientConnection, connect

BEFORE = WriteId.position("blog-posts", "8371ab90c2d4e6f1", 1042)
HEADERS = {"antipode-lineage": Lineage([BEFORE]).serialize()}
MESSAGES = 3000

pytestmark = pytest.mark.usefixtures("own_propagators")
Talk = Callable[[WebSocket], Awaitable[None]]
Pieces = Callable[[], AsyncIterator[str]]


def write(name: str) -> WriteId:
    return WriteId.position(f"store-{name}", "e", 1)


class Seen:
    """The scopes of a stream's steps, and whether its handler has ended."""

    def __init__(self) -> None:
        self.scopes: list[Scope | None] = []
        self.left = False

    def note(self, name: str) -> None:
        self.scopes.append(antipode.current_scope())
        antipode.append(write(name))

    def ended(self) -> Scope:
        """The one scope of all steps, which ends with the handler."""
        wait_until(lambda: self.left, "the handler has ended")
        [scope] = set(self.scopes)
        assert scope is not None
        wait_until(lambda: scope.closed, "its scope has ended")
        return scope


@pytest.fixture
def seen() -> Seen:
    return Seen()


def talking(talk: Talk) -> Any:
    return antipode.asgi.Middleware(Starlette(routes=[WebSocketRoute("/", talk)]))


def telling(pieces: Pieces) -> Any:
    async def events(_: Request) -> Response:
        return StreamingResponse(pieces(), media_type="text/event-stream")

    return antipode.asgi.Middleware(Starlette(routes=[Route("/", events)]))


def open_socket(port: int) -> ClientConnection:
    return connect(f"ws://127.0.0.1:{port}/", additional_headers=HEADERS, proxy=None, compression=None)


def scopes_alive() -> int:
    gc.collect()
    return sum(issubclass(type(each), Scope) for each in gc.get_objects())  # not isinstance: it wakes lazy objects


def test_a_websocket_has_one_scope(seen: Seen, caplog: pytest.LogCaptureFixture) -> None:
    async def talk(socket: WebSocket) -> None:
        seen.note("before")
        await socket.accept()
        async for message in socket.iter_text():
            with antipode.message_scope(message) as scope:
                antipode.append(write("inside"))
                await socket.send_text(antipode.serialize())
            assert scope.closed
            seen.note("after")
        seen.left = True

    with asgi_server(talking(talk)) as port, open_socket(port) as client:
        for name in ("a", "b"):
            client.send(Lineage([write(name)]).serialize())
            assert client.recv(10) == Lineage([write(name), write("inside")]).serialize()
        client.close()
        stream = seen.ended()
        assert stream.lineage == Lineage([BEFORE, write("before"), write("after")])
        assert stream.endpoint is not None
        assert stream.endpoint() == "WEBSOCKET /"


def test_the_handshake_carries_back_what_was_written_before_it(seen: Seen) -> None:
    """PROP-13, PROP-16: accepted, refused with a response, or failed."""

    async def talk(socket: WebSocket) -> None:
        seen.note("before")
        if "refuse" in socket.query_params:
            await socket.send_denial_response(PlainTextResponse("no", 403))
            return
        if "fail" in socket.query_params:
            raise ValueError("broken")
        await socket.accept(headers=[(b"x-own", b"1")])
        seen.note("late")
        await socket.close()

    def joined(headers: Any) -> Lineage:
        with antipode.scope() as scope:
            extract_response(headers, "127.0.0.1")
            return scope.lineage

    with asgi_server(talking(talk)) as port:
        with open_socket(port) as client:
            assert client.response is not None
            assert client.response.headers["x-own"] == "1"
            assert joined(client.response.headers) == Lineage([write("before")])
        for query, status in (("refuse", 403), ("fail", 500)):
            with pytest.raises(InvalidStatus) as caught:
                connect(f"ws://127.0.0.1:{port}/?{query}=1", additional_headers=HEADERS, proxy=None)
            assert caught.value.response.status_code == status
            assert joined(caught.value.response.headers) == Lineage([write("before")])


@pytest.mark.parametrize("way", ["closes", "vanishes", "fails"])
def test_a_websocket_that_ends_before_its_time(seen: Seen, way: str) -> None:
    """SCOPE-3: by the caller, with or without a word, and by the handler's own error."""

    async def talk(socket: WebSocket) -> None:
        try:
            await socket.accept()
            seen.note("first")
            while True:
                await socket.send_text("tick")
                if way == "fails":
                    raise ValueError("broken")
                await socket.receive_text()
        finally:
            seen.note("left")
            seen.left = True

    with asgi_server(talking(talk)) as port, open_socket(port) as client:
        assert client.recv(10) == "tick"
        if way == "closes":
            client.close()
        elif way == "vanishes":
            client.socket.shutdown(sockets.SHUT_RDWR)
        else:
            with pytest.raises(ConnectionClosed):
                client.recv(10)
        assert seen.ended().lineage == Lineage([BEFORE, write("first"), write("left")])


def test_thousands_of_messages_leave_nothing(seen: Seen) -> None:
    counted: list[int] = []

    async def talk(socket: WebSocket) -> None:
        await socket.accept()
        number = 0
        async for message in socket.iter_text():
            number += 1
            with antipode.message_scope(message):
                antipode.append(WriteId.position("blog-posts", "e", number))
                await socket.send_text(antipode.serialize())
            antipode.append(WriteId.position("user-acl", "e", number))
            if number in {100, MESSAGES - 1}:
                counted.append(scopes_alive())
        seen.note("end")
        seen.left = True

    with asgi_server(talking(talk)) as port, open_socket(port) as client:
        for number in range(1, MESSAGES + 1):
            client.send("1")
            assert client.recv(10) == f"1~blog-posts..e.{number}"
        client.close()
        stream = seen.ended()
        assert stream.lineage == Lineage([BEFORE, WriteId.position("user-acl", "e", MESSAGES), write("end")])
        assert counted[1] <= counted[0] + 2


@pytest.mark.parametrize("kind", ["websocket", "events"])
def test_a_slow_reader_holds_the_writer_back(kind: str) -> None:
    made = 0
    piece = "x" * 65_536

    async def talk(socket: WebSocket) -> None:
        nonlocal made
        await socket.accept()
        for made in range(1, 1001):  # noqa: B007
            await socket.send_text(piece)
        await socket.close()

    async def pieces() -> AsyncIterator[str]:
        nonlocal made
        for made in range(1, 1001):  # noqa: B007
            yield piece

    def stands_still() -> None:
        before = -1

        def same() -> bool:
            nonlocal before
            was, before = before, made
            gone.wait(0.3)
            return was == made

        gone = threading.Event()
        wait_until(same, "the writer waits")
        assert made < 700

    if kind == "websocket":
        with asgi_server(talking(talk)) as port, open_socket(port) as client:
            client.recv(10)
            stands_still()
            assert sum(1 for _ in client) == 999
    else:
        with asgi_server(telling(pieces)) as port, httpx.Client(trust_env=False, timeout=30) as http:
            with http.stream("GET", f"http://127.0.0.1:{port}/") as answer:
                chunks = answer.iter_bytes(65_536)
                next(chunks)
                stands_still()
                assert sum(map(len, chunks)) == 999 * 65_536
    assert made == 1000


@pytest.fixture
def late(caplog: pytest.LogCaptureFixture, monkeypatch: pytest.MonkeyPatch) -> list[str]:

    caplog.set_level(logging.WARNING)
    found: list[str] = []
    monkeypatch.setattr(events, "on_write_late", lambda store, site: found.append(store))
    return found


def test_a_stream_of_events_has_one_scope(seen: Seen, late: list[str]) -> None:
    """PROP-16: its header leaves with the first event; an event's lineage is the event's own."""

    async def pieces() -> AsyncIterator[str]:
        seen.note("first")
        for name in ("a", "b"):
            with antipode.message_scope(None):
                antipode.append(write(name))
                event = f"id: {antipode.serialize()}\ndata: {name}\n\n"
            yield event
        seen.note("last")
        seen.left = True

    with asgi_server(telling(pieces)) as port, httpx.Client(trust_env=False) as http:
        with http.stream("GET", f"http://127.0.0.1:{port}/", headers=HEADERS) as answer:
            lines = [line for line in answer.iter_lines() if line]
        assert lines == [
            f"id: {Lineage([write('a')])}",
            "data: a",
            f"id: {Lineage([write('b')])}",
            "data: b",
        ]
        stream = seen.ended()
        assert stream.lineage == Lineage([BEFORE, write("first"), write("last")])
        assert late == ["store-last"]


def test_a_message_scope_is_left_before_its_event_leaves(seen: Seen) -> None:
    """A generator that yields inside of the block would give its reader the message's scope."""
    outside: list[Scope | None] = []

    async def pieces() -> AsyncIterator[str]:
        seen.note("first")
        with antipode.message_scope(None):
            yield "data: a\n\n"
        seen.note("last")
        seen.left = True

    async def events(scope: Any, receive: Any, send: Any) -> None:
        await send({"type": "http.response.start", "status": 200, "headers": []})
        async for piece in pieces():
            outside.append(antipode.current_scope())
            await send({"type": "http.response.body", "body": piece.encode(), "more_body": True})
        await send({"type": "http.response.body", "body": b""})

    with asgi_server(antipode.asgi.Middleware(events)) as port, httpx.Client(trust_env=False) as http:
        assert http.get(f"http://127.0.0.1:{port}/").text == "data: a\n\n"
        stream = seen.ended()
    assert [each is stream for each in outside] == [False]


@pytest.mark.parametrize("way", ["leaves", "fails"])
def test_a_stream_of_events_that_ends_before_its_time(seen: Seen, way: str) -> None:
    async def pieces() -> AsyncIterator[str]:
        try:
            seen.note("first")
            while True:
                yield "data: tick\n\n"
                if way == "fails":
                    raise ValueError("broken")
                await asyncio.sleep(0.01)
        finally:
            seen.note("left")
            seen.left = True

    with asgi_server(telling(pieces)) as port, httpx.Client(trust_env=False) as http:
        with http.stream("GET", f"http://127.0.0.1:{port}/", headers=HEADERS) as answer:
            lines = answer.iter_lines()
            assert next(lines) == "data: tick"
            if way == "fails":
                with pytest.raises(httpx.RemoteProtocolError):
                    list(lines)
        assert seen.ended().lineage == Lineage([BEFORE, write("first"), write("left")])


def test_thousands_of_events_leave_nothing(seen: Seen) -> None:
    counted: list[int] = []

    async def pieces() -> AsyncIterator[str]:
        for number in range(1, MESSAGES + 1):
            with antipode.message_scope(None):
                antipode.append(WriteId.position("blog-posts", "e", number))
            if number in {100, MESSAGES - 1}:
                counted.append(scopes_alive())
            yield f"data: {number}\n\n"
        seen.note("end")
        seen.left = True

    with asgi_server(telling(pieces)) as port, httpx.Client(trust_env=False, timeout=30) as http:
        assert http.get(f"http://127.0.0.1:{port}/").text.count("data:") == MESSAGES
        assert seen.ended().lineage == Lineage([write("end")])
        assert counted[1] <= counted[0] + 2


def test_a_websocket_that_nobody_listens_to_any_more_says_so() -> None:
    """The client's going is the framework's own exception, in the stream's scope."""
    gone: list[Scope | None] = []

    async def talk(socket: WebSocket) -> None:
        await socket.accept()
        try:
            await socket.receive_text()
        except WebSocketDisconnect:
            gone.append(antipode.current_scope())

    with asgi_server(talking(talk)) as port:
        with open_socket(port):
            pass
        wait_until(lambda: bool(gone), "the handler has heard of it")
    assert gone[0] is not None
    assert gone[0].kind == "request"
