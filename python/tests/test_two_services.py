"""Two services with our middlewares and no configuration at all: they work at once, and forgeries do not.

Real servers and real clients on loopback, alone and beside OpenTelemetry's own instrumentations in both orders.
"""

from __future__ import annotations

import logging
from collections.abc import Callable, Iterator
from contextlib import ExitStack
from typing import Any

import antipode
import antipode.asgi
import antipode.httpx
import antipode.requests
import antipode.wsgi
import httpx
import pytest
import requests
from antipode import WriteId
from antipode.propagation import uninstrument
from flask import Flask, request
from opentelemetry import baggage
from opentelemetry import context as otel
from opentelemetry.instrumentation.asgi import OpenTelemetryMiddleware
from opentelemetry.instrumentation.httpx import HTTPXClientInstrumentor
from opentelemetry.instrumentation.requests import RequestsInstrumentor
from starlette.applications import Starlette
from starlette.requests import Request
from starlette.responses import PlainTextResponse, Response
from starlette.routing import Route
from web import asgi_server, wsgi_server

EPOCH = "8371ab90c2d4e6f1"
BEFORE = WriteId.position("blog-posts", EPOCH, 1042)
FORGED = "1~forged..8371ab90c2d4e6f1.7"
AFTER = WriteId.position("user-acl", EPOCH, 57)


pytestmark = pytest.mark.usefixtures("own_propagators")


def flask_service(seen: list[Any]) -> Any:
    """B as a WSGI application: notes what came in, and writes."""
    app = Flask("b")

    @app.route("/", methods=["GET", "POST"])
    def handle() -> str:
        scope = antipode.current_scope()
        assert scope is not None
        seen.append((scope.lineage, dict(request.headers), dict(baggage.get_all())))
        antipode.append(AFTER)
        return "done"

    app.wsgi_app = antipode.wsgi.Middleware(app.wsgi_app)  # type: ignore[method-assign]
    return app


def starlette_service(seen: list[Any]) -> Any:
    """B as an ASGI application."""

    async def handle(incoming: Request) -> Response:
        scope = antipode.current_scope()
        assert scope is not None
        seen.append((scope.lineage, dict(incoming.headers), dict(baggage.get_all())))
        antipode.append(AFTER)
        return PlainTextResponse("done")

    return Starlette(routes=[Route("/", handle, methods=["GET", "POST"])])


@pytest.fixture(params=["wsgi", "asgi", "asgi inside OpenTelemetry's", "asgi round OpenTelemetry's"])
def service_b(request: pytest.FixtureRequest) -> Iterator[tuple[int, list[Any]]]:
    """Service B on a real server: its port, and what its handler saw."""
    seen: list[Any] = []
    if request.param == "wsgi":
        with wsgi_server(flask_service(seen)) as port:
            yield port, seen
        return
    app = starlette_service(seen)
    if request.param == "asgi":
        app = antipode.asgi.Middleware(app)
    elif request.param == "asgi inside OpenTelemetry's":
        app = OpenTelemetryMiddleware(antipode.asgi.Middleware(app))
    else:
        app = antipode.asgi.Middleware(OpenTelemetryMiddleware(app))
    with asgi_server(app, proxy_headers=False) as port:
        yield port, seen


def requests_plain(url: str, **options: Any) -> Any:
    return antipode.requests.wrap(requests.Session()).get(url, **options)


def requests_wrapped_first(url: str, **options: Any) -> Any:
    session = antipode.requests.wrap(requests.Session())
    RequestsInstrumentor().instrument()
    try:
        return session.get(url, **options)
    finally:
        RequestsInstrumentor().uninstrument()


def requests_instrumented_first(url: str, **options: Any) -> Any:
    RequestsInstrumentor().instrument()
    try:
        return antipode.requests.wrap(requests.Session()).get(url, **options)
    finally:
        RequestsInstrumentor().uninstrument()


def httpx_plain(url: str, **options: Any) -> Any:
    with httpx.Client() as client:
        return antipode.httpx.wrap(client).get(url, **options)


def httpx_wrapped_first(url: str, **options: Any) -> Any:
    with httpx.Client() as client:
        wrapped = antipode.httpx.wrap(client)
        HTTPXClientInstrumentor().instrument()
        try:
            return wrapped.get(url, **options)
        finally:
            HTTPXClientInstrumentor().uninstrument()


def httpx_instrumented_first(url: str, **options: Any) -> Any:
    HTTPXClientInstrumentor().instrument()
    try:
        with httpx.Client() as client:
            return antipode.httpx.wrap(client).get(url, **options)
    finally:
        HTTPXClientInstrumentor().uninstrument()


def httpx_instrumented_client(url: str, **options: Any) -> Any:
    with httpx.Client() as client:
        HTTPXClientInstrumentor.instrument_client(client)
        return antipode.httpx.wrap(client).get(url, **options)


Call = Callable[..., Any]
CALLS: list[Call] = [
    requests_plain,
    requests_wrapped_first,
    requests_instrumented_first,
    httpx_plain,
    httpx_wrapped_first,
    httpx_instrumented_first,
    httpx_instrumented_client,
]


@pytest.mark.parametrize("call", CALLS)
@pytest.mark.parametrize("host", ["127.0.0.1", "localhost"])
def test_no_configuration_at_all(service_b: tuple[int, list[Any]], call: Call, host: str) -> None:
    """PROP-8, PROP-13, PROP-14, PROP-24, TRUST-10, TRUST-15: there and back, the application's baggage untouched."""
    port, seen = service_b
    token = otel.attach(baggage.set_baggage("tenant", "acme inc"))
    try:
        with antipode.scope() as scope:
            antipode.append(BEFORE)
            response = call(f"http://{host}:{port}/")
            assert scope.lineage == antipode.Lineage([BEFORE, AFTER])
            assert scope.lineage.is_complete()
    finally:
        otel.detach(token)
    assert response.status_code == 200
    assert response.headers["antipode-lineage"] == antipode.Lineage([AFTER]).serialize()
    [(lineage, headers, bag)] = seen
    assert lineage == antipode.Lineage([BEFORE])
    assert "antipode" not in bag
    lower = {name.lower(): value for name, value in headers.items()}
    assert "antipode-lineage" not in lower
    assert "antipode" not in lower.get("baggage", "")


@pytest.mark.parametrize("call", [requests_plain, httpx_plain])
def test_dotless_host_names(service_b: tuple[int, list[Any]], call: Call, monkeypatch: pytest.MonkeyPatch) -> None:
    """TRUST-15: names as Compose and clusters give them; here the resolver is told what they mean."""
    import socket

    real = socket.getaddrinfo

    def resolve(host: Any, *args: Any, **kwargs: Any) -> Any:
        return real("127.0.0.1" if host in {"post-storage", b"post-storage"} else host, *args, **kwargs)

    monkeypatch.setattr(socket, "getaddrinfo", resolve)
    port, seen = service_b
    with antipode.scope() as scope:
        antipode.append(BEFORE)
        call(f"http://post-storage:{port}/")
        assert scope.lineage == antipode.Lineage([BEFORE, AFTER])
    assert seen[0][0] == antipode.Lineage([BEFORE])


async def test_asyncio_clients(service_b: tuple[int, list[Any]]) -> None:
    port, seen = service_b
    for instrumented in (False, True):
        async with httpx.AsyncClient() as client:
            if instrumented:
                HTTPXClientInstrumentor.instrument_client(client)
            http = antipode.httpx.wrap(client)
            assert isinstance(http, httpx.AsyncClient)
            with antipode.scope() as scope:
                antipode.append(BEFORE)
                await http.get(f"http://127.0.0.1:{port}/")
                assert scope.lineage == antipode.Lineage([BEFORE, AFTER])
        assert seen.pop()[0] == antipode.Lineage([BEFORE])


@pytest.mark.parametrize("carrier", ["baggage", "antipode-lineage", "uberctx-antipode"])
def test_a_forged_lineage_through_a_load_balancer_is_dropped_with_one_line(
    service_b: tuple[int, list[Any]], carrier: str, caplog: pytest.LogCaptureFixture
) -> None:
    """TRUST-5, TRUST-10, TRUST-27: the request is served, the lineage is not believed, nothing goes back."""
    port, seen = service_b
    value = f"user=7,antipode={FORGED}" if carrier == "baggage" else FORGED
    with caplog.at_level(logging.WARNING, "antipode"):
        for _ in range(5):
            response = requests.get(
                f"http://127.0.0.1:{port}/",
                headers={carrier: value, "X-Forwarded-For": "203.0.113.9, 10.0.0.1"},
                timeout=5,
            )
            assert response.status_code == 200
            assert "antipode-lineage" not in response.headers
    for lineage, headers, bag in seen:
        assert not lineage
        assert lineage.is_complete()
        assert "antipode" not in bag
        assert FORGED not in str(headers)
    lines = [record.getMessage() for record in caplog.records if "(request in)" in record.getMessage()]
    assert lines == [
        "dropped a lineage from 203.0.113.9 (request in): X-Forwarded-For has a public address. "
        "If this is the edge set ANTIPODE_EDGE=true; if applications copy that header inside, "
        "ANTIPODE_FORWARDED=ignore. [AP403] dropped=1"
    ]


def test_a_key_that_a_library_would_decode_is_no_way_round(service_b: tuple[int, list[Any]]) -> None:
    """TRUST-5: `%61ntipode` is `antipode` to OpenTelemetry, which would pass it on from a private address."""
    port, seen = service_b
    headers = {"baggage": f"user=7,%61ntipode={FORGED}", "X-Forwarded-For": "203.0.113.9"}
    assert requests.get(f"http://127.0.0.1:{port}/", headers=headers, timeout=5).status_code == 200
    lineage, inner, bag = seen[0]
    assert not lineage
    assert "antipode" not in bag
    assert FORGED not in str(inner)


@pytest.mark.parametrize("call", [requests_plain, httpx_plain])
def test_where_a_copies_the_header_to_b_both_name_the_cure_and_it_cures(
    service_b: tuple[int, list[Any]], call: Call, caplog: pytest.LogCaptureFixture
) -> None:
    """TRUST-13, TRUST-30."""
    port, seen = service_b
    copied = {"X-Forwarded-For": "203.0.113.9"}

    def a_calls_b() -> antipode.Lineage:
        with antipode.scope() as scope:
            antipode.append(BEFORE)
            call(f"http://127.0.0.1:{port}/", headers=copied)
            return scope.lineage

    with caplog.at_level(logging.WARNING, "antipode"):
        assert a_calls_b() == antipode.Lineage([BEFORE])
        assert a_calls_b() == antipode.Lineage([BEFORE])
    assert not seen[0][0]
    lines = [record.getMessage() for record in caplog.records]
    at_a = [line for line in lines if line.startswith("sent a lineage to 127.0.0.1 beside X-Forwarded-For")]
    at_b = [line for line in lines if line.startswith("dropped a lineage from 203.0.113.9 (request in)")]
    assert len(at_a) == len(at_b) == 1
    assert all("ANTIPODE_FORWARDED=ignore" in line for line in at_a + at_b)
    seen.clear()
    antipode.configure(forwarded="ignore")
    assert a_calls_b() == antipode.Lineage([BEFORE, AFTER])
    assert seen[0][0] == antipode.Lineage([BEFORE])


def test_at_an_edge_nothing_comes_in_or_goes_back_and_its_own_calls_work() -> None:
    """TRUST-4."""
    inner_seen: list[Any] = []
    edge_seen: list[Any] = []
    http = antipode.requests.wrap(requests.Session())
    with ExitStack() as stack:
        inner = stack.enter_context(wsgi_server(flask_service(inner_seen)))
        app = Flask("edge")

        @app.route("/")
        def handle() -> tuple[str, int, dict[str, str]]:
            antipode.append(BEFORE)
            answer = http.get(f"http://127.0.0.1:{inner}/")
            edge_seen.append(antipode.current_scope().lineage)  # type: ignore[union-attr]
            return "done", 200, {"antipode-lineage": answer.headers["antipode-lineage"]}

        app.wsgi_app = antipode.wsgi.Middleware(app.wsgi_app, edge=True)  # type: ignore[method-assign]
        edge = stack.enter_context(wsgi_server(app))
        response = requests.get(f"http://127.0.0.1:{edge}/", headers={"baggage": f"antipode={FORGED}"}, timeout=5)
    assert response.status_code == 200
    assert "antipode-lineage" not in response.headers
    assert inner_seen[0][0] == antipode.Lineage([BEFORE])
    assert edge_seen[0] == antipode.Lineage([BEFORE, AFTER])


@pytest.mark.parametrize("call", [requests_plain, requests_instrumented_first, httpx_plain, httpx_wrapped_first])
def test_a_redirect_to_a_host_that_is_not_ours_takes_no_lineage_along(call: Call) -> None:
    """TRUST-26, TRUST-34: the second hop is judged anew, by its name."""
    outside: list[dict[str, str]] = []

    async def end(incoming: Request) -> Response:
        outside.append(dict(incoming.headers))
        return PlainTextResponse("end", headers={"antipode-lineage": FORGED})

    with asgi_server(Starlette(routes=[Route("/", end)])) as far:

        async def redirect(_: Request) -> Response:
            antipode.append(AFTER)
            return Response(status_code=302, headers={"location": f"http://far.example.com:{far}/"})

        near_app = antipode.asgi.Middleware(Starlette(routes=[Route("/", redirect)]))
        with asgi_server(near_app) as near, pytest.MonkeyPatch.context() as patch:
            import socket

            real = socket.getaddrinfo

            def resolve(host: Any, *args: Any, **kwargs: Any) -> Any:
                outside_names = {"far.example.com", b"far.example.com"}
                return real("127.0.0.1" if host in outside_names else host, *args, **kwargs)

            patch.setattr(socket, "getaddrinfo", resolve)
            options: dict[str, Any] = {"follow_redirects": True} if "httpx" in call.__name__ else {}
            with antipode.scope() as scope:
                antipode.append(BEFORE)
                response = call(f"http://127.0.0.1:{near}/", **options)
                assert response.text == "end"
                assert scope.lineage == antipode.Lineage([BEFORE, AFTER])
    [headers] = outside
    assert "antipode" not in str(headers)


def test_a_service_without_antipode_passes_it_on_as_plain_baggage() -> None:
    """PROP-11: A with Antipode, a service with OpenTelemetry alone, C with Antipode."""
    seen: list[Any] = []
    with ExitStack() as stack:
        last = stack.enter_context(wsgi_server(flask_service(seen)))

        async def middle(_: Request) -> Response:
            async with httpx.AsyncClient() as client:
                HTTPXClientInstrumentor.instrument_client(client)
                await client.get(f"http://127.0.0.1:{last}/")
            return PlainTextResponse("ok")

        # Another process in real life: the middle has OpenTelemetry's own propagators, and no propagator of ours.
        port = stack.enter_context(asgi_server(OpenTelemetryMiddleware(Starlette(routes=[Route("/", middle)]))))
        with antipode.scope():
            antipode.append(BEFORE)
            text = antipode.serialize()
        uninstrument()
        requests.get(f"http://127.0.0.1:{port}/", headers={"baggage": f"antipode={text}"}, timeout=5)
    assert seen[0][0] == antipode.Lineage([BEFORE])


def test_only_opentelemetrys_instrumentation_sends_nothing_and_says_how(
    service_b: tuple[int, list[Any]], caplog: pytest.LogCaptureFixture
) -> None:
    """TRUST-25: without a hook nobody knows the host; under `all` the propagator writes."""
    port, seen = service_b
    RequestsInstrumentor().instrument()
    try:
        with antipode.scope(), caplog.at_level(logging.WARNING, "antipode"):
            antipode.append(BEFORE)
            requests.get(f"http://127.0.0.1:{port}/", timeout=5)
            assert not seen.pop()[0]
            assert "antipode.propagation.approve(host)" in caplog.text
            with antipode.propagation.approve("127.0.0.1"):
                requests.get(f"http://127.0.0.1:{port}/", timeout=5)
            assert seen.pop()[0] == antipode.Lineage([BEFORE])
            with antipode.propagation.approve("api.example.com"):
                requests.get(f"http://127.0.0.1:{port}/", timeout=5)
            assert not seen.pop()[0]
            antipode.configure(trust="all")
            requests.get(f"http://127.0.0.1:{port}/", timeout=5)
            assert seen.pop()[0] == antipode.Lineage([BEFORE])
    finally:
        RequestsInstrumentor().uninstrument()


def test_sealed_lineages_go_there_and_back_and_others_do_not(service_b: tuple[int, list[Any]]) -> None:
    """TRUST-3 `key`, TRUST-28: what has no seal is dropped and leaves the scope incomplete."""
    port, seen = service_b
    antipode.configure(keys={"one": b"k" * 32})
    with antipode.scope() as scope:
        antipode.append(BEFORE)
        response = requests_plain(f"http://127.0.0.1:{port}/")
        assert "~_.h.one." in response.headers["antipode-lineage"]
        assert scope.lineage == antipode.Lineage([BEFORE, AFTER])
    assert seen.pop()[0] == antipode.Lineage([BEFORE])
    requests.get(f"http://127.0.0.1:{port}/", headers={"antipode-lineage": FORGED}, timeout=5)
    lineage = seen.pop()[0]
    assert not list(lineage)
    assert not lineage.is_complete()
