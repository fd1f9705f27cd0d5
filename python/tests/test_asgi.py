"""The ASGI middleware by the protocol itself: late writes, trailers, nesting, WebSockets, any header at all."""

from __future__ import annotations

import asyncio
from pathlib import Path
from typing import Any
from unittest.mock import AsyncMock

import antipode
import antipode.asgi
import antipode.httpx
import httpx
import pytest
from antipode import WriteId
from antipode._base.observers import events
from antipode._trust import addresses
from antipode.session import Cookie
from hypothesis import given, settings
from hypothesis import strategies as st
from starlette.applications import Starlette
from starlette.background import BackgroundTask
from starlette.requests import Request
from starlette.responses import PlainTextResponse, Response, StreamingResponse
from starlette.routing import Mount, Route, WebSocketRoute
from starlette.testclient import TestClient
from starlette.websockets import WebSocket
from web import asgi_server, wait_until_logged

EPOCH = "8371ab90c2d4e6f1"
BEFORE = WriteId.position("blog-posts", EPOCH, 1042)
AFTER = WriteId.position("user-acl", EPOCH, 57)
TEXT = antipode.Lineage([BEFORE]).serialize()
ANSWER = antipode.Lineage([AFTER]).serialize()


pytestmark = pytest.mark.usefixtures("own_propagators")


@pytest.fixture
def late(monkeypatch: pytest.MonkeyPatch) -> list[str]:
    """The stores of writes that were counted as late."""
    found: list[str] = []
    monkeypatch.setattr(events, "on_write_late", lambda store, site: found.append(store))
    return found


async def call(app: Any, headers: list[tuple[bytes, bytes]], **scope: Any) -> list[Any]:
    """One request by the protocol; gives the messages that the application sent."""
    sent: list[Any] = []

    async def receive() -> Any:
        return {"type": "http.request", "body": b"", "more_body": False}

    async def send(message: Any) -> None:
        sent.append(message)

    given_scope = {
        "type": "http",
        "asgi": {"version": "3.0"},
        "http_version": "1.1",
        "method": "GET",
        "path": "/",
        "raw_path": b"/",
        "query_string": b"",
        "root_path": "",
        "scheme": "http",
        "headers": headers,
        "client": ("127.0.0.1", 5000),
        "server": ("127.0.0.1", 80),
        **scope,
    }
    await app(given_scope, receive, send)
    return sent


async def plain(scope: Any, receive: Any, send: Any) -> None:
    antipode.append(AFTER)
    await send({"type": "http.response.start", "status": 200, "headers": [(b"x-a", b"1")]})
    await send({"type": "http.response.body", "body": b"do", "more_body": True})
    antipode.append(BEFORE)
    await send({"type": "http.response.body", "body": b"ne"})


async def test_a_late_write_is_counted(late: list[str]) -> None:
    """PROP-16."""
    sent = await call(antipode.asgi.Middleware(plain), [])
    assert sent[0]["headers"] == [(b"x-a", b"1"), (b"antipode-lineage", ANSWER.encode())]
    assert [message["type"] for message in sent] == ["http.response.start", *["http.response.body"] * 2]
    assert late == ["blog-posts"]


@pytest.mark.parametrize("is_nested", [False, True])
async def test_a_late_write_goes_into_the_trailer_where_there_is_one(late: list[str], is_nested: bool) -> None:
    """PROP-16, PROP-33: the server offers trailers and the client takes them; the outermost middleware fills it."""
    antipode.configure(keys={"one": b"k" * 32}, trust="private")
    app: Any = antipode.asgi.Middleware(plain, session=Cookie()) if is_nested else plain
    sent = await call(
        antipode.asgi.Middleware(app),
        [(b"te", b"trailers")],
        extensions={"http.response.trailers": {}},
    )
    assert sent[0]["trailers"] is True
    assert sent[3] == {
        "type": "http.response.trailers",
        "headers": [(b"antipode-lineage", TEXT.encode())],
        "more_trailers": False,
    }
    assert late == ["blog-posts"]


async def test_a_response_that_a_shared_cache_may_keep_carries_a_mark_as_its_trailer_does() -> None:
    """PROP-16, PROP-34."""

    async def app(scope: Any, receive: Any, send: Any) -> None:
        antipode.append(AFTER)
        headers = [(b"Cache-Control", b"s-maxage=5"), (b"Antipode-Lineage", TEXT.encode())]
        await send({"type": "http.response.start", "status": 200, "headers": headers})
        await send({"type": "http.response.body", "body": b"do", "more_body": True})
        antipode.append(BEFORE)
        await send({"type": "http.response.body", "body": b"ne"})

    offers: dict[str, Any] = {"extensions": {"http.response.trailers": {}}}
    sent = await call(antipode.asgi.Middleware(app), [(b"te", b"trailers")], **offers)
    assert sent[0]["headers"] == [(b"Cache-Control", b"s-maxage=5"), (b"antipode-lineage", b"1~_.i")]
    assert sent[3]["headers"] == [(b"antipode-lineage", b"1~_.i")]


async def test_nested_stacks_share_the_scope_of_the_outermost() -> None:
    """PROP-22: the header is written once."""
    app = antipode.asgi.Middleware(antipode.asgi.Middleware(plain))
    sent = await call(app, [(b"baggage", f"antipode={TEXT}".encode())])
    names = [name for name, _ in sent[0]["headers"]]
    assert names.count(b"antipode-lineage") == 1


async def test_a_mounted_application_and_a_call_within_the_process() -> None:
    """PROP-22: a call within the process is a request of its own, with a scope of its own."""
    seen: list[antipode.Scope | None] = []

    async def inner(_: Request) -> Response:
        seen.append(antipode.current_scope())
        antipode.append(AFTER)
        return PlainTextResponse("inner")

    inner_app = antipode.asgi.Middleware(Starlette(routes=[Route("/", inner)]))

    async def outer(_: Request) -> Response:
        seen.append(antipode.current_scope())
        antipode.append(BEFORE)
        async with httpx.AsyncClient(transport=httpx.ASGITransport(inner_app)) as client:
            await antipode.httpx.wrap(client).get("http://inner/")
        scope = antipode.current_scope()
        assert scope is not None
        assert scope is seen[0]
        return PlainTextResponse(scope.lineage.serialize())

    app = antipode.asgi.Middleware(Starlette(routes=[Mount("/sub", inner_app), Route("/", outer)]))
    async with httpx.AsyncClient(transport=httpx.ASGITransport(app), base_url="http://test") as client:
        answer = await client.get("/")
        assert answer.text == antipode.Lineage([BEFORE, AFTER]).serialize()
        assert seen[1] is not seen[0]
        assert (await client.get("/sub/")).headers["antipode-lineage"] == ANSWER


@pytest.mark.parametrize("length", [False, True])
async def test_the_header_leaves_with_the_first_piece(late: list[str], length: bool) -> None:
    """PROP-16: what is written behind the start of a response goes back in its header."""

    async def app(scope: Any, receive: Any, send: Any) -> None:
        headers = [(b"content-length", b"0")] if length else []
        await send({"type": "http.response.start", "status": 200, "headers": headers})
        antipode.append(AFTER)
        if length:
            await send({"type": "http.response.body"})

    sent = await call(antipode.asgi.Middleware(app), [])
    assert sent[0]["headers"][length:] == [(b"antipode-lineage", ANSWER.encode())]
    assert len(sent) == 1 + length
    assert not late


@pytest.mark.parametrize("is_nested", [False, True])
async def test_a_header_that_nothing_follows_leaves_by_itself_and_says_so(
    late: list[str], is_nested: bool, monkeypatch: pytest.MonkeyPatch
) -> None:
    """PROP-16: its reader may wait for the header alone; what is written before the first piece is missing there."""
    antipode.configure(keys={"one": b"k" * 32}, trust="private")
    holds: list[Any] = []
    hold = antipode.asgi._Answer._hold

    def counted(*words: Any) -> bool:
        holds.append(words)
        return hold(*words)

    monkeypatch.setattr(antipode.asgi._Answer, "_hold", counted)
    left = asyncio.Event()
    sent: list[Any] = []

    async def server(message: Any) -> None:
        sent.append(message)
        left.set()

    async def app(scope: Any, receive: Any, send: Any) -> None:
        await send({"type": "http.response.start", "status": 200, "headers": []})
        await asyncio.wait_for(left.wait(), 60)
        antipode.append(AFTER)
        await send({"type": "http.response.body", "body": b"done"})

    scope = {"type": "http", "method": "GET", "path": "/", "headers": [], "client": ("127.0.0.1", 5000)}
    inner: Any = antipode.asgi.Middleware(app, session=Cookie()) if is_nested else app
    await antipode.asgi.Middleware(inner)(scope, None, server)  # type: ignore[arg-type]
    assert len(holds) == 1, "a second at most, however many there are"
    assert sent[0].keys() == {"type", "status", "headers"}
    assert [message["type"] for message in sent] == ["http.response.start", "http.response.body"]
    assert sent[0]["headers"] == [(b"antipode-lineage", b"1~_.i")]
    assert late == ["user-acl"]


def test_an_application_that_fails_behind_its_start_is_answered_for(late: list[str]) -> None:
    """PROP-13, PROP-16: nothing of its response has left."""

    async def broken(scope: Any, receive: Any, send: Any) -> None:
        await send({"type": "http.response.start", "status": 200, "headers": []})
        antipode.append(AFTER)
        raise ValueError("broken")

    with asgi_server(antipode.asgi.Middleware(broken)) as port, httpx.Client() as plain, antipode.scope() as scope:
        response = antipode.httpx.wrap(plain).get(f"http://127.0.0.1:{port}/", timeout=20)
        assert response.status_code == 500
        assert scope.lineage == antipode.Lineage([AFTER])


async def test_a_start_that_is_held_does_not_follow_the_answer_for_an_error(monkeypatch: pytest.MonkeyPatch) -> None:
    """PROP-16: its time may come while that answer is being sent."""
    monkeypatch.setattr("antipode.asgi._LONGEST_HOLD_S", 0.0)
    sent: list[Any] = []

    async def server(message: Any) -> None:
        sent.append(message["type"])
        for _ in range(5):
            await asyncio.sleep(0)

    async def broken(scope: Any, receive: Any, send: Any) -> None:
        await send({"type": "http.response.start", "status": 200, "headers": []})
        antipode.append(AFTER)
        raise ValueError("broken")

    scope = {"type": "http", "method": "GET", "path": "/", "headers": [], "client": ("127.0.0.1", 5000)}
    with pytest.raises(ValueError, match="broken"):
        await antipode.asgi.Middleware(broken)(scope, None, server)  # type: ignore[arg-type]
    assert sent == ["http.response.start", "http.response.body"]


async def test_on_another_event_loop_a_header_that_may_stream_says_that_it_is_incomplete(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    """PROP-16: nothing wakes us there, so it leaves at once."""
    monkeypatch.setattr(asyncio, "_get_running_loop", lambda: None)
    for headers in ([], [(b"content-length", b"4")]):

        async def app(scope: Any, receive: Any, send: Any, headers: Any = headers) -> None:
            await send({"type": "http.response.start", "status": 200, "headers": headers})
            await send({"type": "http.response.body", "body": b"done"})

        sent = await call(antipode.asgi.Middleware(app), [])
        assert sent[0]["headers"] == (headers or [(b"antipode-lineage", b"1~_.i")])


def test_streams_and_background_tasks_are_late(late: list[str]) -> None:
    async def stream(_: Request) -> Response:
        async def pieces() -> Any:
            yield b"do"
            antipode.append(AFTER)
            yield b"ne"

        return StreamingResponse(pieces())

    async def background(_: Request) -> Response:
        async def work() -> None:
            antipode.append(BEFORE)

        return PlainTextResponse("done", background=BackgroundTask(work))

    app = antipode.asgi.Middleware(Starlette(routes=[Route("/s", stream), Route("/b", background)]))
    with TestClient(app) as client:
        for path in ("/s", "/b"):
            assert "antipode-lineage" not in client.get(path).headers
    assert late == ["user-acl", "blog-posts"]


def test_a_test_client_counts_as_loopback() -> None:
    """TRUST-9: a user's first unit test."""

    async def handle(_: Request) -> Response:
        return PlainTextResponse(antipode.serialize())

    with TestClient(antipode.asgi.Middleware(Starlette(routes=[Route("/", handle)]))) as client:
        assert client.get("/", headers={"baggage": f"antipode={TEXT}"}).text == TEXT


def test_a_websocket_has_one_scope(late: list[str]) -> None:
    """SCOPE-8: and one a message where the handler asks."""

    async def talk(socket: WebSocket) -> None:
        await socket.accept()
        await socket.send_text(antipode.serialize())
        with antipode.message_scope(await socket.receive_text()):
            await socket.send_text(antipode.serialize())
        antipode.append(AFTER)
        await socket.close()

    app = antipode.asgi.Middleware(Starlette(routes=[WebSocketRoute("/", talk)]))
    with TestClient(app) as client, client.websocket_connect("/", headers={"antipode-lineage": TEXT}) as ws:
        assert ws.receive_text() == TEXT
        ws.send_text(ANSWER)
        assert ws.receive_text() == ANSWER
    assert late == ["user-acl"]


def test_tasks_and_threads_of_a_request_share_its_scope() -> None:
    """SCOPE-11."""

    async def handle(_: Request) -> Response:
        async def one() -> None:
            antipode.append(BEFORE)

        await asyncio.gather(asyncio.create_task(one()), asyncio.to_thread(antipode.append, AFTER))
        return PlainTextResponse("done")

    with TestClient(antipode.asgi.Middleware(Starlette(routes=[Route("/", handle)]))) as client:
        found = client.get("/").headers["antipode-lineage"]
    assert antipode.deserialize(found) == antipode.Lineage([BEFORE, AFTER])


async def test_an_error_of_the_application_ends_the_scope() -> None:
    seen: list[antipode.Scope | None] = []

    async def broken(scope: Any, receive: Any, send: Any) -> None:
        seen.append(antipode.current_scope())
        raise ValueError("broken")

    with pytest.raises(ValueError, match="broken"):
        await call(antipode.asgi.Middleware(broken), [])
    assert seen[0] is not None
    assert seen[0].closed
    assert antipode.current_scope() is None


@pytest.mark.parametrize("writes", [True, False])
def test_an_application_that_fails_still_says_what_it_wrote(
    writes: bool, capfd: pytest.CaptureFixture[str], caplog: pytest.LogCaptureFixture
) -> None:
    """PROP-13: else the caller takes its lineage for complete. The server hears of the error, and logs it."""

    async def broken(scope: Any, receive: Any, send: Any) -> None:
        if writes:
            antipode.append(AFTER)
        raise ValueError("broken")

    with asgi_server(antipode.asgi.Middleware(broken)) as port, httpx.Client() as plain, antipode.scope() as scope:
        response = antipode.httpx.wrap(plain).get(f"http://127.0.0.1:{port}/", timeout=20)
        assert response.status_code == 500
        assert response.text == "Internal Server Error"
        assert scope.lineage == antipode.Lineage([AFTER] if writes else [])
        assert scope.lineage.is_complete()
    wait_until_logged("ValueError: broken", capfd, caplog)


@pytest.mark.parametrize("place", ["around", "added"])
def test_a_frameworks_own_page_for_errors(place: str) -> None:
    """Around the whole application its page stays, with our header; added inside of it, the header counts for more."""

    async def fails(request: Request) -> Response:
        antipode.append(AFTER)
        raise ValueError("broken")

    async def page(request: Request, error: Exception) -> Response:
        return PlainTextResponse("our own page", 500)

    framework = Starlette(routes=[Route("/", fails)], exception_handlers={Exception: page})
    app: Any = antipode.asgi.Middleware(framework) if place == "around" else framework
    if place == "added":
        framework.add_middleware(antipode.asgi.Middleware)
    with asgi_server(app) as port, httpx.Client() as plain, antipode.scope() as scope:
        response = antipode.httpx.wrap(plain).get(f"http://127.0.0.1:{port}/", timeout=20)
        assert response.status_code == 500
        assert response.text == ("our own page" if place == "around" else "Internal Server Error")
        assert scope.lineage == antipode.Lineage([AFTER])


async def test_other_protocols_pass_through() -> None:
    seen: list[Any] = []

    async def app(scope: Any, receive: Any, send: Any) -> None:
        seen.append((scope, antipode.current_scope()))

    scope = {"type": "lifespan"}
    await antipode.asgi.Middleware(app)(scope, None, None)  # type: ignore[arg-type]
    assert seen == [(scope, None)]


HEADERS = st.lists(
    st.tuples(
        st.sampled_from(
            [
                b"baggage",
                b"Baggage",
                b"antipode-lineage",
                b"antipode_lineage",
                b"uberctx-antipode",
                b"x-forwarded-for",
                b"forwarded",
                b"te",
                b"x",
            ]
        ),
        st.one_of(
            st.binary(max_size=80),
            st.text(alphabet="1~_.aie=,;%2x \tantipode-", max_size=80).map(str.encode),
            st.just(f"a=1,antipode={TEXT}".encode()),
        ),
    ),
    max_size=6,
)


@settings(max_examples=300, deadline=None)
@given(HEADERS, st.sampled_from([None, ("127.0.0.1", 1), ("", 0), ("x", 0), ("203.0.113.9", 0), ("::1", 9)]))
async def test_no_header_becomes_an_error(headers: list[tuple[bytes, bytes]], client: Any) -> None:
    """PROP-23, and what the application sees holds no lineage."""
    inner: list[Any] = []

    async def app(scope: Any, receive: Any, send: Any) -> None:
        inner.append(scope["headers"])
        await plain(scope, receive, send)

    sent = await call(antipode.asgi.Middleware(app), headers, client=client)
    assert sent[0]["status"] == 200
    for name, value in inner[0]:
        assert name.lower() not in {b"antipode-lineage", b"uberctx-antipode"}
        assert name.lower() != b"baggage" or f"antipode={TEXT}".encode() not in value


@pytest.mark.parametrize("value", [b"\xff\xfe", b"antipode=\xff", b"1~" + b"a" * 7000, b"%ff%00", b"antipode=" * 900])
def test_a_real_server_answers_whatever_comes(value: bytes) -> None:
    import socket

    app = antipode.asgi.Middleware(plain)
    with asgi_server(app) as port, socket.create_connection(("127.0.0.1", port), timeout=5) as connection:
        connection.sendall(
            b"GET / HTTP/1.1\r\nHost: a\r\nConnection: close\r\nbaggage: " + value + b"\r\n"
            b"antipode-lineage: " + value[:4000] + b"\r\n\r\n"
        )
        answer = b""
        while piece := connection.recv(65536):
            answer += piece
    assert answer.startswith(b"HTTP/1.1 200")


@pytest.mark.parametrize(
    ("forwarded", "header", "options", "taken"),
    [
        ("check", "10.0.0.1", {"forwarded_allow_ips": "*"}, True),
        ("check", "10.0.0.1, 203.0.113.9", {"forwarded_allow_ips": "*"}, False),
        ("ignore", "203.0.113.9", {"forwarded_allow_ips": "*"}, False),
        ("ignore", "testclient", {"forwarded_allow_ips": "*"}, False),
        ("ignore", "203.0.113.9", {"proxy_headers": False}, True),
    ],
)
@pytest.mark.parametrize("hidden", [False, True])
def test_the_peer_of_the_socket_is_judged_and_what_a_real_server_made_of_a_header(
    forwarded: str, header: str, options: dict[str, Any], taken: bool, hidden: bool, monkeypatch: pytest.MonkeyPatch
) -> None:
    """TRUST-13, TRUST-33: where the connection cannot be seen, an address that a header names is not believed."""
    monkeypatch.setattr(addresses, "named_peers", set())
    seen: list[antipode.Lineage] = []

    async def app(scope: Any, receive: Any, send: Any) -> None:
        seen.append(antipode.current_scope().lineage)  # type: ignore[union-attr]
        await plain(scope, receive, send)

    inner = antipode.asgi.Middleware(app)

    async def outer(scope: Any, receive: Any, send: Any) -> None:
        async def wrapped() -> Any:
            return await receive()

        await inner(scope, wrapped if hidden else receive, send)

    antipode.configure(forwarded=forwarded)
    with asgi_server(outer, **options) as port:
        headers = {"X-Forwarded-For": header, "antipode-lineage": TEXT}
        assert httpx.get(f"http://127.0.0.1:{port}/", headers=headers).status_code == 200
    is_resolved = "forwarded_allow_ips" in options
    assert seen == [antipode.Lineage([BEFORE]) if taken and not (hidden and is_resolved) else antipode.EMPTY]


def test_a_server_on_a_unix_socket_names_it(tmp_path: Path) -> None:
    """TRUST-9: and a request that names neither peer nor socket is public."""
    path = str(tmp_path / "app.sock")
    seen: list[antipode.Lineage] = []

    async def app(scope: Any, receive: Any, send: Any) -> None:
        seen.append(antipode.current_scope().lineage)  # type: ignore[union-attr]
        await plain(scope, receive, send)

    async def run(**named: Any) -> None:
        async def receive() -> Any:
            return {"type": "http.request", "body": b""}

        scope = {"type": "http", "method": "GET", "path": "/", "headers": [(b"antipode-lineage", TEXT.encode())]}
        await antipode.asgi.Middleware(app)({**scope, "client": None, **named}, receive, AsyncMock())

    asyncio.run(run())
    asyncio.run(run(server=(path, None)))
    antipode.configure(trust_unix=True)
    asyncio.run(run())
    assert seen == [antipode.EMPTY, antipode.Lineage([BEFORE]), antipode.Lineage([BEFORE])]
