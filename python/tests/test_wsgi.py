"""The WSGI middleware by the protocol itself: generators, `write`, errors, closing, any header at all."""

from __future__ import annotations

import sys
import threading
import wsgiref.simple_server
from collections.abc import Iterable, Iterator
from contextlib import contextmanager
from typing import Any
from wsgiref.util import setup_testing_defaults
from wsgiref.validate import validator

import antipode
import antipode.requests
import antipode.wsgi
import pytest
import requests
from antipode import WriteId
from antipode._base.observers import events
from flask import Flask, Response, stream_with_context
from hypothesis import given, settings
from hypothesis import strategies as st
from web import wait_until_logged, wsgi_server
from werkzeug.middleware.proxy_fix import ProxyFix
from werkzeug.test import Client

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


def call(app: Any, **environ: str) -> tuple[str, dict[str, str], bytes]:
    """One request by the protocol, with the validator of the standard library round the middleware."""
    given_environ: dict[str, Any] = {"REMOTE_ADDR": "127.0.0.1", "QUERY_STRING": "", **environ}
    setup_testing_defaults(given_environ)
    started: list[Any] = []
    written: list[bytes] = []

    def start_response(status: str, headers: list[tuple[str, str]], exc_info: Any = None) -> Any:
        started.append((status, headers))
        return written.append

    body = validator(app)(given_environ, start_response)
    try:
        pieces = list(body)
    finally:
        body.close()  # type: ignore[attr-defined]
    [(status, headers)] = started
    return status, {name.lower(): value for name, value in headers}, b"".join(written + pieces)


def plain(environ: Any, start_response: Any) -> Iterable[bytes]:
    start_response("200 OK", [("Content-Type", "text/plain"), ("X-A", "1")])
    antipode.append(AFTER)  # behind start_response, but before anything has left
    return [b"done"]


def test_what_is_written_before_the_first_piece_goes_back(late: list[str]) -> None:
    """PROP-13: many applications call start_response first."""
    status, headers, body = call(antipode.wsgi.Middleware(plain))
    assert (status, body) == ("200 OK", b"done")
    assert headers["antipode-lineage"] == ANSWER
    assert headers["x-a"] == "1"
    assert late == []


def test_a_generator_runs_in_the_scope_and_its_later_writes_are_late(late: list[str]) -> None:
    """PROP-16, SCOPE-8."""
    scopes: list[antipode.Scope | None] = []

    def app(environ: Any, start_response: Any) -> Iterator[bytes]:
        start_response("200 OK", [("Content-Type", "text/plain")])
        antipode.append(AFTER)
        yield b"one"
        scopes.append(antipode.current_scope())
        antipode.append(BEFORE)
        yield b"two"

    _, headers, body = call(antipode.wsgi.Middleware(app))
    assert body == b"onetwo"
    assert headers["antipode-lineage"] == ANSWER
    assert late == ["blog-posts"]
    assert scopes[0] is not None
    assert scopes[0].closed
    assert antipode.current_scope() is None


def test_the_scope_closes_with_the_iterable() -> None:
    closed: list[bool] = []

    class Body:
        def __init__(self) -> None:
            self.left = [b"done"]
            self.scope = antipode.current_scope()

        def __iter__(self) -> Body:
            return self

        def __next__(self) -> bytes:
            if not self.left:
                raise StopIteration
            return self.left.pop()

        def close(self) -> None:
            assert antipode.current_scope() is self.scope
            assert self.scope is not None
            closed.append(self.scope.closed)

    bodies: list[Body] = []

    def app(environ: Any, start_response: Any) -> Body:
        start_response("200 OK", [("Content-Type", "text/plain")])
        bodies.append(Body())
        return bodies[0]

    call(antipode.wsgi.Middleware(app))
    assert closed == [False]
    assert bodies[0].scope is not None
    assert bodies[0].scope.closed


def test_write_and_an_empty_body() -> None:
    def writes(environ: Any, start_response: Any) -> Iterable[bytes]:
        write = start_response("200 OK", [("Content-Type", "text/plain")])
        antipode.append(AFTER)
        write(b"done")
        return []

    def empty(environ: Any, start_response: Any) -> Iterable[bytes]:
        start_response("204 No Content", [])
        antipode.append(AFTER)
        return []

    for app, answer in ((writes, b"done"), (empty, b"")):
        _, headers, body = call(antipode.wsgi.Middleware(app))
        assert body == answer
        assert headers["antipode-lineage"] == ANSWER


def test_an_error_response_replaces_what_was_begun() -> None:
    def app(environ: Any, start_response: Any) -> Iterable[bytes]:
        start_response("200 OK", [("Content-Type", "text/plain")])
        antipode.append(AFTER)
        try:
            raise ValueError("broken")
        except ValueError:
            start_response("500 Oops", [("Content-Type", "text/plain")], sys.exc_info())
        return [b"sorry"]

    status, headers, body = call(antipode.wsgi.Middleware(app))
    assert (status, body) == ("500 Oops", b"sorry")
    assert headers["antipode-lineage"] == ANSWER


def test_an_error_of_the_application_ends_the_scope() -> None:
    seen: list[antipode.Scope | None] = []

    def broken(environ: Any, start_response: Any) -> Iterable[bytes]:
        seen.append(antipode.current_scope())
        raise ValueError("broken")

    with pytest.raises(ValueError, match="broken"):
        call(antipode.wsgi.Middleware(broken))
    assert seen[0] is not None
    assert seen[0].closed
    assert antipode.current_scope() is None


@contextmanager
def reference_server(app: Any) -> Iterator[int]:
    """The server of Python's own library."""
    server = wsgiref.simple_server.make_server("127.0.0.1", 0, app)
    thread = threading.Thread(target=server.serve_forever, args=(0.01,), daemon=True)
    thread.start()
    try:
        yield server.server_port
    finally:
        server.shutdown()
        thread.join(10)
        server.server_close()


@pytest.mark.parametrize("method", ["GET", "HEAD"])
@pytest.mark.parametrize("started", [False, True])
@pytest.mark.parametrize("lazy", [False, True])
@pytest.mark.parametrize("served", [reference_server, wsgi_server])
def test_an_application_that_fails_still_says_what_it_wrote(
    served: Any,
    lazy: bool,
    started: bool,
    method: str,
    capfd: pytest.CaptureFixture[str],
    caplog: pytest.LogCaptureFixture,
) -> None:
    """PROP-13: else the caller takes its lineage for complete. The server hears of the error, and logs it."""

    def fails() -> bytes:
        raise ValueError("broken")

    def failing(environ: Any, start_response: Any) -> Iterator[bytes]:
        if started:
            start_response("200 OK", [("Content-Type", "text/plain")])
        antipode.append(AFTER)
        yield fails()

    def app(environ: Any, start_response: Any) -> Iterable[bytes]:
        pieces = failing(environ, start_response)
        return pieces if lazy else [next(pieces)]

    with served(antipode.wsgi.Middleware(app)) as port, antipode.scope() as scope:
        http = antipode.requests.wrap(requests.Session())
        response = http.request(method, f"http://127.0.0.1:{port}/", timeout=20)
        assert response.status_code == 500
        assert response.headers["antipode-lineage"] == ANSWER
        assert response.text == ("" if method == "HEAD" else "Internal Server Error")
        assert scope.lineage == antipode.Lineage([AFTER])
        assert scope.lineage.is_complete()
    wait_until_logged("ValueError: broken", capfd, caplog)


def test_an_application_that_fails_and_wrote_nothing_is_the_servers_to_answer() -> None:
    started: list[Any] = []

    def broken(environ: Any, start_response: Any) -> Iterable[bytes]:
        raise ValueError("broken")

    with pytest.raises(ValueError, match="broken"):
        antipode.wsgi.Middleware(broken)({"REQUEST_METHOD": "GET"}, lambda *given: started.append(given))  # type: ignore[arg-type]
    assert started == []


def test_nested_stacks_share_the_scope_of_the_outermost() -> None:
    """PROP-22."""
    app = antipode.wsgi.Middleware(antipode.wsgi.Middleware(plain))
    _, headers, _ = call(app, HTTP_ANTIPODE_LINEAGE=TEXT)
    assert headers["antipode-lineage"] == ANSWER


@pytest.mark.parametrize("word", ["Public", "s-maxage=60"])
def test_a_response_that_a_shared_cache_may_keep_carries_a_mark(word: str) -> None:
    """PROP-16, PROP-34."""

    def app(environ: Any, start_response: Any) -> Iterable[bytes]:
        start_response(
            "200 OK",
            [("Content-Type", "text/plain"), ("cache-control", word), ("antipode-lineage", TEXT)],
        )
        antipode.append(AFTER)
        return [b"done"]

    assert call(antipode.wsgi.Middleware(app))[1]["antipode-lineage"] == "1~_.i"


def test_flask_with_a_stream_an_error_handler_and_a_teardown(late: list[str]) -> None:
    app = Flask("posts")
    torn: list[bool] = []

    @app.route("/stream")
    def stream() -> Response:
        def pieces() -> Iterator[bytes]:
            antipode.append(AFTER)
            yield b"one"
            antipode.append(BEFORE)
            yield b"two"

        return Response(stream_with_context(pieces()))

    @app.route("/error")
    def error() -> str:
        antipode.append(AFTER)
        raise LookupError("no such post")

    @app.errorhandler(LookupError)
    def not_found(_: LookupError) -> tuple[str, int]:
        return "not found", 404

    @app.teardown_request
    def teardown(_: BaseException | None) -> None:
        torn.append(antipode.current_scope() is not None)

    app.wsgi_app = antipode.wsgi.Middleware(app.wsgi_app)  # type: ignore[method-assign]
    client = app.test_client()
    streamed = client.get("/stream")
    assert streamed.data == b"onetwo"
    assert streamed.headers["antipode-lineage"] == ANSWER
    assert late == ["blog-posts"]
    failed = client.get("/error")
    assert failed.status_code == 404
    assert failed.headers["antipode-lineage"] == ANSWER
    assert torn
    assert all(torn)


def test_behind_proxy_fix_the_header_is_judged_and_not_the_peer_that_it_put_there() -> None:
    """TRUST-10, TRUST-13."""
    seen: list[antipode.Lineage] = []

    def app(environ: Any, start_response: Any) -> Iterable[bytes]:
        seen.append(antipode.current_scope().lineage)  # type: ignore[union-attr]
        start_response("200 OK", [("Content-Type", "text/plain")])
        return [b"done"]

    client = Client(ProxyFix(antipode.wsgi.Middleware(app)))
    headers = {"X-Forwarded-For": "203.0.113.9", "baggage": f"antipode={TEXT}"}
    client.get("/", headers=headers, environ_base={"REMOTE_ADDR": "10.0.0.1"})
    antipode.configure(forwarded="ignore")
    client.get("/", headers=headers, environ_base={"REMOTE_ADDR": "10.0.0.1"})  # and so is what it made of the header
    inside = headers | {"X-Forwarded-For": "10.0.0.9"}
    client.get("/", headers=inside, environ_base={"REMOTE_ADDR": "10.0.0.1"})
    client.get("/", headers=inside, environ_base={"REMOTE_ADDR": "203.0.113.1"})
    assert seen == [antipode.EMPTY, antipode.EMPTY, antipode.Lineage([BEFORE]), antipode.EMPTY]


NAMES = ["HTTP_BAGGAGE", "HTTP_ANTIPODE_LINEAGE", "HTTP_UBERCTX_ANTIPODE", "HTTP_X_FORWARDED_FOR", "HTTP_FORWARDED"]
VALUES = st.one_of(
    st.binary(max_size=80).map(lambda octets: octets.decode("latin-1")),
    st.text(alphabet="1~_.aie=,;%2x \tantipode-", max_size=80),
    st.just(f"a=1,antipode={TEXT}"),
)


@settings(max_examples=300, deadline=None)
@given(
    st.dictionaries(st.sampled_from(NAMES), VALUES),
    st.sampled_from(["", "127.0.0.1", "203.0.113.9", "x", "::1", "\xff"]),
)
def test_no_header_becomes_an_error(environ: dict[str, str], peer: str) -> None:
    """PROP-23, and what the application sees holds no lineage."""
    inner: list[dict[str, Any]] = []

    def app(environ: dict[str, Any], start_response: Any) -> Iterable[bytes]:
        inner.append(dict(environ))
        return plain(environ, start_response)

    status, _, body = call(antipode.wsgi.Middleware(app), REMOTE_ADDR=peer, **environ)
    assert (status, body) == ("200 OK", b"done")
    assert f"antipode={TEXT}" not in inner[0].get("HTTP_BAGGAGE", "")
    assert "HTTP_ANTIPODE_LINEAGE" not in inner[0]
    assert "HTTP_UBERCTX_ANTIPODE" not in inner[0]
