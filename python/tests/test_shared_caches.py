"""Answers that shared caches may keep, and those that look like a gateway's: what the caller knows, on real servers."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from contextlib import contextmanager
from typing import Any

import antipode
import antipode.asgi
import antipode.httpx
import antipode.requests
import antipode.wsgi
import httpx
import pytest
import requests
from antipode import Lineage, WriteId
from antipode._propagation.shared_caches import is_shared
from antipode.propagation import extract_request, inject_response
from flask import Flask, Response
from starlette.applications import Starlette
from starlette.requests import Request
from starlette.responses import Response as StarletteResponse
from starlette.routing import Route
from web import asgi_server, wsgi_server

pytestmark = pytest.mark.usefixtures("own_propagators")

WRITTEN = WriteId.position("user-acl", "8371ab90c2d4e6f1", 57)
MARK = "1~_.i"
METHODS = ["GET", "POST", "PUT", "DELETE"]


@contextmanager
def flask_service(status: int, headers: dict[str, str], writes: bool) -> Iterator[str]:
    app = Flask("posts")

    @app.route("/", methods=METHODS)
    def handle() -> Response:
        if writes:
            antipode.append(WRITTEN)
        return Response(b"", status, headers)

    app.wsgi_app = antipode.wsgi.Middleware(app.wsgi_app)  # type: ignore[method-assign]
    with wsgi_server(app) as port:
        yield f"http://127.0.0.1:{port}/"


@contextmanager
def starlette_service(status: int, headers: dict[str, str], writes: bool) -> Iterator[str]:
    def handle(_: Request) -> StarletteResponse:
        if writes:
            antipode.append(WRITTEN)
        return StarletteResponse(b"", status, headers)

    app = antipode.asgi.Middleware(Starlette(routes=[Route("/", handle, methods=METHODS)]))
    with asgi_server(app) as port:
        yield f"http://127.0.0.1:{port}/"


def by_requests(method: str, url: str) -> Any:
    with requests.Session() as session:
        return antipode.requests.wrap(session).request(method, url, timeout=60).headers


def by_httpx(method: str, url: str) -> Any:
    with httpx.Client(timeout=60) as client:
        return antipode.httpx.wrap(client).request(method, url).headers


Service = Callable[[int, dict[str, str], bool], Any]
Call = Callable[[str, str], Any]
SERVICES = pytest.mark.parametrize("service", [flask_service, starlette_service])
CLIENTS = pytest.mark.parametrize("call", [by_requests, by_httpx])
CACHED = {"Cache-Control": "max-age=60"}


@SERVICES
@CLIENTS
def test_what_an_answer_may_not_carry_is_known_to_be_missing(service: Service, call: Call) -> None:
    """PROP-16, PROP-34: it is no empty lineage that is complete."""
    with service(200, CACHED, True) as url, antipode.scope() as scope:
        headers = call("GET", url)
        assert headers["antipode-lineage"] == MARK
        assert scope.lineage == Lineage().marked_incomplete()
        assert headers["cache-control"] == "max-age=60"


@SERVICES
def test_what_added_nothing_lacks_nothing(service: Service) -> None:
    """PROP-16, PROP-34."""
    with service(200, CACHED, False) as url, antipode.scope() as scope:
        assert "antipode-lineage" not in by_requests("GET", url)
        assert scope.lineage.is_complete()


@SERVICES
@pytest.mark.parametrize("method", ["POST", "PUT", "DELETE"])
def test_the_answer_to_a_write_brings_its_lineage_back(service: Service, method: str) -> None:
    """PROP-39: an application that puts one `max-age` on all its answers loses nothing."""
    with service(200, CACHED, True) as url, antipode.scope() as scope:
        by_httpx(method, url)
        assert scope.lineage == Lineage([WRITTEN])


@SERVICES
def test_an_answer_to_a_post_that_a_cache_may_keep(service: Service) -> None:
    """PROP-39."""
    with service(200, {**CACHED, "Content-Location": "/"}, True) as url, antipode.scope() as scope:
        assert by_httpx("POST", url)["antipode-lineage"] == MARK
        assert scope.lineage == Lineage().marked_incomplete()


@SERVICES
@pytest.mark.parametrize(("status", "shared"), [(200, True), (500, False)])
def test_a_cache_may_guess(service: Service, status: int, shared: bool) -> None:
    """PROP-34: of statuses that say so."""
    changed = {"Last-Modified": "Sun, 06 Nov 1994 08:49:37 GMT"}
    with service(status, changed, True) as url, antipode.scope() as scope:
        by_requests("GET", url)
        assert scope.lineage == (Lineage().marked_incomplete() if shared else Lineage([WRITTEN]))


@SERVICES
@CLIENTS
@pytest.mark.parametrize("status", [502, 503, 504, 520, 527, 530])
def test_a_service_says_that_it_was_no_gateway(service: Service, call: Call, status: int) -> None:
    """PROP-13, PROP-31: and that it has added nothing."""
    with service(status, {}, False) as url, antipode.scope() as scope:
        assert call("GET", url)["antipode-lineage"] == "1"
        assert scope.lineage.is_complete()


@SERVICES
def test_no_other_answer_says_so(service: Service) -> None:
    """PROP-13."""
    with service(500, {}, False) as url, antipode.scope():
        assert "antipode-lineage" not in by_requests("GET", url)


@SERVICES
def test_nothing_is_said_to_strangers_or_with_mode_off(service: Service) -> None:
    """PROP-13, PROP-26, TRUST-3."""
    with service(503, {}, False) as url:
        stranger = {"X-Forwarded-For": "203.0.113.9"}
        assert "antipode-lineage" not in requests.get(url, headers=stranger, timeout=60).headers
        antipode.configure(mode="off")
        assert "antipode-lineage" not in requests.get(url, timeout=60).headers


@SERVICES
def test_a_304_replaces_what_a_cache_has(service: Service) -> None:
    """PROP-13: a cache puts its headers in place of those that it keeps."""
    with service(304, {"ETag": '"a"'}, False) as url, antipode.scope():
        assert by_requests("GET", url)["antipode-lineage"] == "1"


@SERVICES
def test_a_304_hands_no_lineage_to_others(service: Service) -> None:
    """PROP-34: a cache puts it in place of what it has kept by a guess."""
    with service(304, {"ETag": '"a"'}, True) as url, antipode.scope():
        assert by_requests("GET", url)["antipode-lineage"] == MARK


def test_a_seal_is_on_what_says_that_nothing_was_added() -> None:
    """PROP-13, TRUST-18."""
    antipode.configure(keys={"one": b"k" * 32}, trust="key")
    response: dict[str, str] = {}
    with extract_request({}, "10.0.0.1"):
        inject_response(response, status=503)
    assert response["antipode-lineage"].startswith("1~_.h.one.")


@pytest.mark.parametrize("copied", ["1~a..e.1", "1"])
def test_a_lineage_that_the_application_copied_is_not_lost_unseen(copied: str) -> None:
    """PROP-16: it is taken out, and the mark stands in its place."""
    response = {"Cache-Control": "public", "Antipode-Lineage": copied}
    with extract_request({}, "10.0.0.1"):
        inject_response(response)
    assert response == {"Cache-Control": "public", "antipode-lineage": MARK}


def test_nested_middlewares_lose_no_copied_lineage() -> None:
    """PROP-16, PROP-33: the inner one leaves it to the outer one."""
    app = Flask("proxy")

    @app.route("/")
    def handle() -> Response:
        return Response(b"", 200, {**CACHED, "antipode-lineage": "1~a..e.1"})

    inner = antipode.wsgi.Middleware(app.wsgi_app)
    with wsgi_server(antipode.wsgi.Middleware(inner)) as port:
        assert by_requests("GET", f"http://127.0.0.1:{port}/")["antipode-lineage"] == MARK


def test_a_hostile_header_is_read_in_time() -> None:
    """PROP-34, PROP-12: what an application passes on may be anything."""
    for value in ('"' * 60_000, '"\\' * 30_000, "a=" * 30_000, ",=" * 30_000):
        assert is_shared({"Cache-Control": value, "Expires": value}, "GET", 200) in {True, False}


def test_a_head_is_kept_as_a_get_is() -> None:
    """PROP-39."""
    with flask_service(200, CACHED, True) as url:
        assert requests.head(url, timeout=60).headers["antipode-lineage"] == MARK
