"""Calls that the client's library repeats, and answers of gateways: what the caller knows (PROP-30 to PROP-32)."""

from __future__ import annotations

import asyncio
import json
import threading
from collections.abc import Callable, Iterator
from concurrent.futures import ThreadPoolExecutor
from contextlib import contextmanager
from typing import Any

import antipode
import antipode.grpc
import antipode.httpx
import antipode.requests
import grpc
import grpc.aio
import httpx
import pytest
import requests
from antipode import Lineage, WriteId
from antipode.grpc import metadata
from requests.adapters import HTTPAdapter
from requests.auth import HTTPDigestAuth
from urllib3.util.retry import Retry
from web import wsgi_server

pytestmark = pytest.mark.usefixtures("own_propagators")

EPOCH = "8371ab90c2d4e6f1"
FIRST = WriteId.position("blog-posts", EPOCH, 1042)
LAST = WriteId.position("user-acl", EPOCH, 57)
DIGEST = 'Digest realm="r", nonce="n", qop="auth", algorithm=MD5'

Answer = tuple[str, list[tuple[str, str]]]


def bearing(status: str, *writes: WriteId, **headers: str) -> Answer:
    """An answer of a service that speaks Antipode."""
    lineage = [("antipode-lineage", Lineage(writes).serialize())] if writes else []
    return status, [*lineage, *headers.items()]


@contextmanager
def answering(*answers: Answer | None) -> Iterator[str]:
    """A service with these answers, one after the other; None: that one never comes."""
    left = list(answers)
    over = threading.Event()

    def app(environ: Any, start_response: Any) -> list[bytes]:
        answer = left.pop(0)
        if answer is None:
            over.wait(60)
            answer = bearing("200 OK")
        start_response(*answer)
        return [b"done"]

    with wsgi_server(app) as port:
        try:
            yield f"http://127.0.0.1:{port}/"
        finally:
            over.set()


class RepeatingAdapter(HTTPAdapter):
    """An adapter of an application that asks once more by itself."""

    pause: Callable[[], object] = staticmethod(int)
    """Called before it does."""

    def send(self, *args: Any, **kwargs: Any) -> requests.Response:
        try:
            answer = super().send(*args, **kwargs)
        except requests.RequestException:
            answer = None
        if answer is not None and answer.status_code == 200:
            return answer
        self.pause()
        return super().send(*args, **kwargs)


class RepeatingTransport(httpx.BaseTransport, httpx.AsyncBaseTransport):
    """The same for httpx, of both kinds."""

    pause: Callable[[], object] = staticmethod(int)

    def __init__(self) -> None:
        self._inner = httpx.HTTPTransport()
        self._async = httpx.AsyncHTTPTransport()

    def handle_request(self, request: httpx.Request) -> httpx.Response:
        try:
            answer = self._inner.handle_request(request)
        except httpx.TransportError:
            answer = None
        if answer is not None and answer.status_code == 200:
            return answer
        self.pause()
        return self._inner.handle_request(request)

    async def handle_async_request(self, request: httpx.Request) -> httpx.Response:
        try:
            answer = await self._async.handle_async_request(request)
        except httpx.TransportError:
            answer = None
        if answer is not None and answer.status_code == 200:
            return answer
        return await self._async.handle_async_request(request)


def by_retry(url: str, wait: float) -> int:
    session = requests.Session()
    again = Retry(total=3, status_forcelist=[502, 503, 504], allowed_methods=None, backoff_factor=0)
    session.mount("http://", HTTPAdapter(max_retries=again))
    with session:
        return antipode.requests.wrap(session).post(url, timeout=wait).status_code


def by_adapter(url: str, wait: float) -> int:
    with requests.Session() as session:
        session.mount("http://", RepeatingAdapter())
        return antipode.requests.wrap(session).get(url, timeout=wait).status_code


def by_httpx(url: str, wait: float) -> int:
    with httpx.Client(transport=RepeatingTransport(), timeout=wait) as client:
        return antipode.httpx.wrap(client).get(url).status_code


def by_async_httpx(url: str, wait: float) -> int:
    async def call() -> int:
        async with httpx.AsyncClient(transport=RepeatingTransport(), timeout=wait) as client:
            return (await antipode.httpx.wrap(client).get(url)).status_code

    return asyncio.run(call())


Call = Callable[[str, float], int]
CALLS = pytest.mark.parametrize("call", [by_retry, by_adapter, by_httpx, by_async_httpx])


@CALLS
def test_each_attempt_gives_back_its_lineage(call: Call) -> None:
    """PROP-30."""
    answers = bearing("503 Busy", FIRST), bearing("200 OK", LAST)
    with answering(*answers) as url, antipode.scope() as scope:
        assert call(url, 60) == 200
        assert scope.lineage == Lineage([FIRST, LAST])
        assert scope.lineage.is_complete()


@CALLS
def test_an_attempt_without_an_answer_is_a_loss(call: Call) -> None:
    """PROP-30: the last attempt's answer says nothing of it."""
    with answering(None, bearing("200 OK", LAST)) as url, antipode.scope() as scope:
        assert call(url, 1) == 200
        assert scope.lineage.incomplete == {""}
        assert LAST in scope.lineage
        assert {gap.reason for gap in scope.gaps} == {"unanswered"}


@CALLS
def test_an_attempt_that_a_gateway_answered_is_a_loss(call: Call) -> None:
    """PROP-30, PROP-31."""
    with answering(("504 Gateway", []), bearing("200 OK", LAST)) as url, antipode.scope() as scope:
        assert call(url, 60) == 200
        assert scope.lineage.incomplete == {""}


POOL = ThreadPoolExecutor(4)
"""Its threads know no Context."""


class PooledAdapter(RepeatingAdapter):
    """One that runs its attempts in other threads, and waits for them."""

    patience = 60.0

    def send(self, *args: Any, **kwargs: Any) -> requests.Response:
        return POOL.submit(super().send, *args, **kwargs).result(self.patience)


class PooledTransport(RepeatingTransport):
    """The same for httpx."""

    patience = 60.0

    def handle_request(self, request: httpx.Request) -> httpx.Response:
        return POOL.submit(super().handle_request, request).result(self.patience)


def by_pooled_adapter(url: str, patience: float, pause: Callable[[], object] = int) -> int:
    with requests.Session() as session:
        adapter = PooledAdapter()
        adapter.patience, adapter.pause = patience, pause
        session.mount("http://", adapter)
        return antipode.requests.wrap(session).get(url, timeout=60).status_code


def by_pooled_transport(url: str, patience: float, pause: Callable[[], object] = int) -> int:
    transport = PooledTransport()
    transport.patience, transport.pause = patience, pause
    with httpx.Client(transport=transport, timeout=60) as client:
        return antipode.httpx.wrap(client).get(url).status_code


POOLED = pytest.mark.parametrize("call", [by_pooled_adapter, by_pooled_transport])


@POOLED
def test_each_attempt_in_another_thread_gives_back_its_lineage(call: Call) -> None:
    """PROP-30: that thread knows no scope."""
    answers = bearing("503 Busy", FIRST), bearing("200 OK", LAST)
    with answering(*answers) as url, antipode.scope() as scope:
        assert call(url, 60) == 200
        assert scope.lineage == Lineage([FIRST, LAST])
        assert scope.lineage.is_complete()


@POOLED
def test_a_call_given_up_while_an_attempt_is_under_way_is_a_loss(call: Call) -> None:
    """PROP-27, PROP-30: the attempt has left, and goes on in its thread."""
    with answering(None, bearing("200 OK")) as url, antipode.scope() as scope:
        with pytest.raises(TimeoutError):
            call(url, 0.5)
        assert scope.lineage.incomplete == {""}
        assert {gap.reason for gap in scope.gaps} == {"unanswered"}


@POOLED
def test_a_call_given_up_before_it_asks_once_more_is_a_loss(call: Callable[..., int]) -> None:
    """PROP-27, PROP-30: nobody waits for the attempt that leaves afterwards."""
    over = threading.Event()
    with answering(bearing("500 Broken", FIRST), bearing("200 OK")) as url, antipode.scope() as scope:
        with pytest.raises(TimeoutError):
            call(url, 1, lambda: over.wait(60))
        assert scope.lineage.incomplete == {""}
        over.set()


def once_by_requests(url: str) -> int:
    with requests.Session() as session:
        return antipode.requests.wrap(session).get(url, timeout=60).status_code


def once_by_httpx(url: str) -> int:
    with httpx.Client(timeout=60) as client:
        return antipode.httpx.wrap(client).get(url).status_code


def once_by_async_httpx(url: str) -> int:
    async def call() -> int:
        async with httpx.AsyncClient(timeout=60) as client:
            return (await antipode.httpx.wrap(client).get(url)).status_code

    return asyncio.run(call())


ONCE = pytest.mark.parametrize("call", [once_by_requests, once_by_httpx, once_by_async_httpx])


@ONCE
@pytest.mark.parametrize("status", [502, 503, 504, 520, 524, 527, 530])
def test_a_gateways_own_answer_is_none(call: Callable[[str], int], status: int) -> None:
    """PROP-31."""
    with answering((f"{status} Gateway", [])) as url, antipode.scope() as scope:
        assert call(url) == status
        assert scope.lineage.incomplete == {""}
        [gap] = scope.gaps
        assert (gap.reason, str(status) in gap.detail) == ("unanswered", True)


@ONCE
@pytest.mark.parametrize("answer", [bearing("503 Busy", FIRST), bearing("500 Broken"), bearing("404 Missing")])
def test_an_answer_of_the_callee_is_one(call: Callable[[str], int], answer: Answer) -> None:
    """PROP-31: with its lineage, or with a status that gateways do not make up."""
    with answering(answer) as url, antipode.scope() as scope:
        call(url)
        assert scope.lineage.is_complete()


@ONCE
def test_a_gateway_before_a_host_that_gets_no_lineage_hides_nothing(call: Callable[[str], int]) -> None:
    """PROP-31, TRUST-3."""
    antipode.configure(trust="none")
    with answering(("504 Gateway", [])) as url, antipode.scope() as scope:
        call(url)
        assert scope.lineage.is_complete()


def test_an_authentication_that_asks_twice_gives_back_both() -> None:
    """PROP-30: requests sends the second request by the connection of the first answer."""
    first = bearing("401 Who", FIRST, **{"WWW-Authenticate": DIGEST})
    with answering(first, bearing("200 OK", LAST)) as url, antipode.scope() as scope, requests.Session() as session:
        answer = antipode.requests.wrap(session).get(url, auth=HTTPDigestAuth("a", "b"), timeout=60)
        assert answer.status_code == 200
        assert scope.lineage == Lineage([FIRST, LAST])


def test_an_adapter_and_its_pools_keep_their_state_and_class() -> None:
    """PROP-30: what counts the attempts is a view of them."""
    with answering(bearing("200 OK"), bearing("200 OK")) as url, requests.Session() as session:
        adapter = RepeatingAdapter()
        session.mount("http://", adapter)
        wrapped = antipode.requests.wrap(session)
        answer = wrapped.get(url, timeout=60)
        assert isinstance(answer.connection, RepeatingAdapter)
        assert type(answer.connection).__name__ == "RepeatingAdapter"
        [pool] = [adapter.poolmanager.pools[key] for key in adapter.poolmanager.pools.keys()]  # noqa: SIM118
        assert pool.num_requests == 1
        session.get(url, timeout=60)
        assert pool.num_requests == 2


def test_the_applications_own_trace_hears_as_before() -> None:
    """PROP-30: and a redirect's request takes nothing of ours over."""
    heard: list[str] = []
    with answering(bearing("302 There", FIRST, Location="/b"), bearing("200 OK", LAST)) as url:
        with antipode.scope() as scope, httpx.Client(transport=RepeatingTransport(), timeout=60) as client:
            answer = antipode.httpx.wrap(client).get(
                url, extensions={"trace": lambda name, _: heard.append(name)}, follow_redirects=True
            )
        assert answer.status_code == 200
        assert heard.count("http11.send_request_headers.started") == 2
        assert answer.request.extensions["trace"].__name__ == "<lambda>"
        assert scope.lineage == Lineage([FIRST, LAST])


class Calls(grpc.GenericRpcHandler):  # type: ignore[misc]
    """Busy at first; then one answer, or a stream of two."""

    def __init__(self, busy: int) -> None:
        self._left = busy

    def _busy(self, context: Any) -> None:
        antipode.append(FIRST if self._left else LAST)
        if self._left:
            self._left -= 1
            context.abort(grpc.StatusCode.UNAVAILABLE, "busy")

    def get(self, request: bytes, context: Any) -> bytes:
        self._busy(context)
        return b"done"

    def list(self, request: bytes, context: Any) -> Iterator[bytes]:
        self._busy(context)
        yield from (b"a", b"b")

    def service(self, details: Any) -> Any:
        if details.method == "/posts/list":
            return grpc.unary_stream_rpc_method_handler(self.list)
        return grpc.unary_unary_rpc_method_handler(self.get)


def retrying(attempts: int) -> list[tuple[str, Any]]:
    policy = {
        "maxAttempts": attempts,
        "initialBackoff": "0.01s",
        "maxBackoff": "0.01s",
        "backoffMultiplier": 1,
        "retryableStatusCodes": ["UNAVAILABLE"],
    }
    return [("grpc.service_config", json.dumps({"methodConfig": [{"name": [{}], "retryPolicy": policy}]}))]


@contextmanager
def serving(busy: int = 1, **options: Any) -> Iterator[str]:
    with ThreadPoolExecutor(2) as pool:
        server = grpc.server(pool, interceptors=[antipode.grpc.server_interceptor(**options)])
        server.add_generic_rpc_handlers((Calls(busy),))
        port = server.add_insecure_port("127.0.0.1:0")
        server.start()
        try:
            yield f"127.0.0.1:{port}"
        finally:
            server.stop(None).wait(60)


def unary(target: str) -> None:
    with grpc.insecure_channel(target, options=retrying(3)) as channel:
        through = grpc.intercept_channel(channel, antipode.grpc.client_interceptor(target))
        assert through.unary_unary("/posts/get")(b"", timeout=60) == b"done"


def stream(target: str) -> None:
    with grpc.insecure_channel(target, options=retrying(3)) as channel:
        through = grpc.intercept_channel(channel, antipode.grpc.client_interceptor(target))
        assert list(through.unary_stream("/posts/list")(b"", timeout=60)) == [b"a", b"b"]


def unary_aio(target: str) -> None:
    async def call() -> None:
        interceptors = antipode.grpc.aio_client_interceptors(target)
        async with grpc.aio.insecure_channel(target, options=retrying(3), interceptors=interceptors) as channel:
            assert await channel.unary_unary("/posts/get")(b"", timeout=60) == b"done"

    asyncio.run(call())


def stream_aio(target: str) -> None:
    async def call() -> None:
        interceptors = antipode.grpc.aio_client_interceptors(target)
        async with grpc.aio.insecure_channel(target, options=retrying(3), interceptors=interceptors) as channel:
            assert [each async for each in channel.unary_stream("/posts/list")(b"", timeout=60)] == [b"a", b"b"]

    asyncio.run(call())


@pytest.mark.parametrize("call", [unary, stream, unary_aio, stream_aio])
def test_a_call_that_grpc_repeats_is_a_loss(call: Callable[[str], None]) -> None:
    """PROP-32: the client is told of the last attempt alone, and the server says that there were more."""
    with serving() as target, antipode.scope() as scope:
        call(target)
        assert LAST in scope.lineage
        assert scope.lineage.incomplete == {""}
        assert {gap.reason for gap in scope.gaps} == {"unanswered"}


@pytest.mark.parametrize("given", ["0", "x", "1e3", "\u0661", "9" * 9])
def test_the_server_says_nothing_of_what_is_no_count(given: str) -> None:
    """PROP-32: a client may send what it likes."""
    assert metadata.repeated([("grpc-previous-rpc-attempts", given)]) == []


@pytest.mark.parametrize(("options", "told"), [({}, "1"), ({"edge": True}, None)])
def test_the_server_tells_its_own_clients_alone(options: dict[str, Any], told: str | None) -> None:
    """PROP-32, TRUST-3: and of a call that needed one attempt it says nothing."""
    with serving(**options) as target, grpc.insecure_channel(target, options=retrying(3)) as channel:
        call = channel.unary_unary("/posts/get")
        _, again = call.with_call(b"", timeout=60)
        assert dict(again.trailing_metadata()).get(metadata.PREVIOUS_ATTEMPTS) == told
        _, once = call.with_call(b"", timeout=60)
        assert metadata.PREVIOUS_ATTEMPTS not in dict(once.trailing_metadata())
