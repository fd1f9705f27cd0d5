"""An application of one protocol in one of another, each with its middleware: one request, one scope (PROP-33)."""

from __future__ import annotations

import asyncio
import contextvars
import threading
from collections.abc import AsyncIterator, Iterable
from typing import Any

import antipode
import antipode.asgi
import antipode.session
import antipode.wsgi
import httpx
import pytest
from antipode import WriteId
from asgiref.wsgi import WsgiToAsgi
from flask import Flask
from starlette.applications import Starlette
from starlette.requests import Request
from starlette.responses import PlainTextResponse, Response
from starlette.routing import Mount, Route

BEFORE = WriteId.position("blog-posts", "8371ab90c2d4e6f1", 1042)
AFTER = WriteId.position("user-acl", "8371ab90c2d4e6f1", 57)
BOTH = antipode.Lineage([BEFORE, AFTER]).serialize()
TEXT = antipode.Lineage([BEFORE]).serialize()
ANSWER = antipode.Lineage([AFTER]).serialize()

pytestmark = pytest.mark.usefixtures("own_propagators")


def flask_app(*, session: antipode.session.Session | None = None) -> Flask:
    app = Flask("inner")

    @app.get("/write")
    def write() -> str:
        antipode.append(AFTER)
        return antipode.serialize()

    app.wsgi_app = antipode.wsgi.Middleware(app.wsgi_app, session=session)  # type: ignore[method-assign]
    return app


async def page(_: Request) -> Response:
    return PlainTextResponse(antipode.serialize())


def mounting(inner: Any, session: antipode.session.Session | None = None) -> Any:
    app = Starlette(routes=[Route("/page", page), Mount("/v1", WsgiToAsgi(inner))])  # type: ignore[no-untyped-call]
    return antipode.asgi.Middleware(app, session=session)


@pytest.fixture
async def client(request: pytest.FixtureRequest) -> AsyncIterator[httpx.AsyncClient]:
    app = request.param() if hasattr(request, "param") else mounting(flask_app())
    transport = httpx.ASGITransport(app, client=("127.0.0.1", 1))
    async with httpx.AsyncClient(transport=transport, base_url="http://x.test") as made:
        yield made


async def test_wsgi_in_asgi(client: httpx.AsyncClient) -> None:
    """The inner scope is the outer's: it has what came in, and the answer carries what was written there, once."""
    answer = await client.get("/v1/write", headers={"baggage": f"antipode={TEXT}"})
    assert answer.text == BOTH
    assert answer.headers.get_list("antipode-lineage") == [ANSWER]
    assert (await client.get("/page")).text == "1"


def with_keys(made: Any) -> Any:
    antipode.configure(keys={"k1": b"x" * 32}, trust="private")
    return made()


def cookie() -> antipode.session.Cookie:
    return antipode.session.Cookie(secure=False)


@pytest.mark.parametrize(
    "client",
    [
        lambda: with_keys(lambda: mounting(flask_app(), cookie())),
        lambda: with_keys(lambda: mounting(flask_app(session=cookie()), cookie())),
    ],
    indirect=True,
    ids=["outer", "both"],
)
async def test_the_outer_session_keeps_what_the_inner_application_writes(client: httpx.AsyncClient) -> None:
    """SESS-3: and one cookie is set, where both keep sessions."""
    answer = await client.get("/v1/write")
    assert len(answer.headers.get_list("set-cookie")) == 1
    assert (await client.get("/page")).text == ANSWER


@pytest.mark.parametrize("client", [lambda: with_keys(lambda: mounting(flask_app(session=cookie())))], indirect=True)
async def test_the_inner_session_is_kept_where_the_outer_has_none(client: httpx.AsyncClient) -> None:
    await client.get("/v1/write")
    assert len(client.cookies.jar) == 1
    assert (await client.get("/v1/write", headers={"antipode-lineage": TEXT})).text == BOTH


class AsgiInWsgi:
    """An ASGI application for a WSGI server, on an event loop of another thread; it takes the Context along."""

    def __init__(self, app: Any) -> None:
        self._app = app

    def __call__(self, environ: Any, start_response: Any) -> Iterable[bytes]:
        headers = [
            (key[5:].lower().replace("_", "-").encode(), value.encode())
            for key, value in environ.items()
            if key.startswith("HTTP_")
        ]
        scope = {
            "type": "http",
            "method": "GET",
            "path": environ["PATH_INFO"],
            "query_string": b"",
            "headers": headers,
            "client": (environ["REMOTE_ADDR"], 1),
        }
        pieces: list[bytes] = []

        async def receive() -> Any:
            return {"type": "http.request", "body": b""}

        async def send(message: Any) -> None:
            if message["type"] == "http.response.start":
                start_response("200 OK", [(name.decode(), value.decode()) for name, value in message["headers"]])
            else:
                pieces.append(message.get("body", b""))

        context = contextvars.copy_context()
        thread = threading.Thread(target=context.run, args=(asyncio.run, self._app(scope, receive, send)), daemon=True)
        thread.start()
        thread.join(60)
        return pieces


async def writes(_: Request) -> Response:
    antipode.append(AFTER)
    return PlainTextResponse(antipode.serialize())


def test_asgi_in_wsgi() -> None:
    inner = antipode.asgi.Middleware(Starlette(routes=[Route("/write", writes)]))
    app = antipode.wsgi.Middleware(AsgiInWsgi(inner))
    with httpx.Client(transport=httpx.WSGITransport(app, remote_addr="127.0.0.1"), base_url="http://x.test") as client:
        answer = client.get("/write", headers={"antipode-lineage": TEXT})
    assert answer.text == BOTH
    assert answer.headers.get_list("antipode-lineage") == [ANSWER]


async def test_a_request_of_another_caller_is_another_request() -> None:
    """One that brings a lineage is none that an outer middleware has seen, nor one after the outer scope's end."""
    seen: list[antipode.Scope | None] = []

    def inner(environ: Any, start_response: Any) -> Iterable[bytes]:
        seen.append(antipode.current_scope())
        start_response("200 OK", [("content-type", "text/plain")])
        return [antipode.serialize().encode()]

    middleware = antipode.wsgi.Middleware(inner)

    def call(**headers: str) -> str:
        transport = httpx.WSGITransport(middleware, remote_addr="127.0.0.1")
        with httpx.Client(transport=transport, base_url="http://x.test") as client:
            return client.get("/", headers=headers).text

    async def outer(_: Request) -> Response:
        seen.append(antipode.current_scope())
        kept.append(contextvars.copy_context())
        antipode.append(AFTER)
        return PlainTextResponse(call(**{"antipode-lineage": TEXT}))

    kept: list[contextvars.Context] = []
    app = antipode.asgi.Middleware(Starlette(routes=[Route("/", outer)]))
    transport = httpx.ASGITransport(app, client=("127.0.0.1", 1))
    async with httpx.AsyncClient(transport=transport, base_url="http://x.test") as client:
        assert (await client.get("/")).text == TEXT
    assert kept[0].run(call) == "1"
    assert len(set(seen)) == 3
