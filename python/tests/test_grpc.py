"""gRPC, unary calls on a real server on loopback: metadata in, trailing metadata out (spec PROP-15, PROP-25)."""

from __future__ import annotations

import logging
import threading
import time
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from contextlib import contextmanager
from typing import Any

import antipode
import antipode.grpc
import grpc
import grpc.aio
import pytest
from antipode import WriteId
from antipode._trust.trust import Peers, TrustSettings, is_approved
from antipode.grpc import host_of
from opentelemetry import baggage, propagate
from opentelemetry import context as otel

EPOCH = "8371ab90c2d4e6f1"
BEFORE = WriteId.position("blog-posts", EPOCH, 1042)
AFTER = WriteId.position("user-acl", EPOCH, 57)
FORGED = "1~forged..8371ab90c2d4e6f1.7"
METHOD = "/antipode.test.Posts/Get"


pytestmark = pytest.mark.usefixtures("own_propagators")


class Servicer:
    """Notes what came in, writes, and ends as the request says."""

    def __init__(self) -> None:
        self.seen: list[Any] = []

    def note(self, context: Any) -> None:
        scope = antipode.current_scope()
        assert scope is not None
        remaining = None if scope.deadline is None else scope.deadline - time.monotonic()
        self.seen.append((scope.lineage, remaining, dict(context.invocation_metadata())))
        antipode.append(AFTER)

    def get(self, request: bytes, context: Any) -> bytes:
        self.note(context)
        if request == b"abort":
            context.abort(grpc.StatusCode.NOT_FOUND, "no such post")
        if request == b"raise":
            raise ValueError("broken")
        if request == b"trailer":
            context.set_trailing_metadata((("app", "1"),))
        return b"done"

    async def get_async(self, request: bytes, context: Any) -> bytes:
        self.note(context)
        if request == b"abort":
            await context.abort(grpc.StatusCode.NOT_FOUND, "no such post")
        if request == b"raise":
            raise ValueError("broken")
        if request == b"trailer":
            context.set_trailing_metadata((("app", "1"),))
        return b"done"


class Handlers(grpc.GenericRpcHandler):  # type: ignore[misc]
    def __init__(self, behavior: Any) -> None:
        self._behavior = behavior

    def service(self, details: Any) -> Any:
        return grpc.unary_unary_rpc_method_handler(self._behavior) if details.method == METHOD else None


@contextmanager
def serving(servicer: Servicer, **options: Any) -> Iterator[str]:
    with ThreadPoolExecutor(4) as pool:
        server = grpc.server(pool, interceptors=[antipode.grpc.server_interceptor(**options)])
        server.add_generic_rpc_handlers((Handlers(servicer.get),))
        port = server.add_insecure_port("127.0.0.1:0")
        server.start()
        try:
            yield f"127.0.0.1:{port}"
        finally:
            server.stop(None).wait(5)


@contextmanager
def calling(target: str, wrapped: bool = True) -> Iterator[Any]:
    with grpc.insecure_channel(target) as channel:
        ours = [antipode.grpc.client_interceptor(target)] if wrapped else []
        yield grpc.intercept_channel(channel, *ours).unary_unary(METHOD)


@pytest.mark.parametrize("way", ["call", "with_call", "future", "callback"])
def test_there_and_back(way: str) -> None:
    """PROP-15: the answer's lineage is in the caller's scope before the caller has the answer."""
    servicer = Servicer()
    with serving(servicer) as target, calling(target) as call, antipode.scope() as scope:
        antipode.append(BEFORE)
        if way == "call":
            assert call(b"go", timeout=5) == b"done"
        elif way == "with_call":
            answer, done = call.with_call(b"go", timeout=5)
            assert answer == b"done"
            assert dict(done.trailing_metadata())["antipode-lineage"]
        elif way == "future":
            assert call.future(b"go", timeout=5).result(5) == b"done"
        else:
            lineages: list[antipode.Lineage] = []
            arrived = threading.Event()

            def note(_: Any) -> None:
                lineages.append(scope.lineage)
                arrived.set()

            call.future(b"go", timeout=5).add_done_callback(note)
            assert arrived.wait(5)
            assert lineages == [antipode.Lineage([BEFORE, AFTER])]
        assert scope.lineage == antipode.Lineage([BEFORE, AFTER])
    [(lineage, _, metadata)] = servicer.seen
    assert lineage == antipode.Lineage([BEFORE])
    assert metadata["baggage"] == f"antipode={lineage}"


@pytest.mark.parametrize("request_text", [b"abort", b"raise"])
def test_a_call_that_ends_in_an_error_brings_its_writes_back_too(request_text: bytes) -> None:
    """PROP-15."""
    with serving(Servicer()) as target, calling(target) as call, antipode.scope() as scope:
        with pytest.raises(grpc.RpcError) as caught:
            call(request_text, timeout=5)
        expected = grpc.StatusCode.NOT_FOUND if request_text == b"abort" else grpc.StatusCode.UNKNOWN
        assert caught.value.code() is expected
        assert scope.lineage == antipode.Lineage([AFTER])


def test_the_applications_trailer_stays() -> None:
    with serving(Servicer()) as target, calling(target) as call, antipode.scope() as scope:
        _, done = call.with_call(b"trailer", timeout=5)
        assert dict(done.trailing_metadata())["app"] == "1"
        assert scope.lineage == antipode.Lineage([AFTER])


def test_the_deadline_of_the_call_is_the_scopes() -> None:
    """PROP-25."""
    servicer = Servicer()
    with serving(servicer) as target, calling(target) as call:
        call(b"go", timeout=4.0)
        call(b"go")
    (_, first, _), (_, second, _) = servicer.seen
    assert 0 < first < 4.5
    assert second is None or second > 1e6


def test_a_forged_lineage_from_outside_is_dropped(caplog: pytest.LogCaptureFixture) -> None:
    """TRUST-10: a gateway passes X-Forwarded-For on as metadata."""
    servicer = Servicer()
    forged = (("baggage", f"user=7,antipode={FORGED}"), ("x-forwarded-for", "203.0.113.9"))
    with serving(servicer) as target, calling(target, wrapped=False) as call:
        with caplog.at_level(logging.WARNING, "antipode"):
            _, done = call.with_call(b"go", timeout=5, metadata=forged)
    assert not servicer.seen[0][0]
    assert "antipode-lineage" not in dict(done.trailing_metadata())
    assert "ANTIPODE_FORWARDED=ignore" in caplog.text


def test_an_edge_answers_nothing() -> None:
    """TRUST-4."""
    servicer = Servicer()
    with serving(servicer, edge=True) as target, calling(target) as call, antipode.scope() as scope:
        antipode.append(BEFORE)
        call(b"go", timeout=5)
        assert scope.lineage == antipode.Lineage([BEFORE])
    assert not servicer.seen[0][0]


def test_nothing_goes_to_a_host_that_is_not_ours(caplog: pytest.LogCaptureFixture) -> None:
    """TRUST-29: the channel's own word decides; here the same server by a name of the outside."""
    servicer = Servicer()
    with serving(servicer) as target, grpc.insecure_channel(target) as plain:
        outside = antipode.grpc.client_interceptor("api.example.com:443")
        call = grpc.intercept_channel(plain, outside).unary_unary(METHOD)
        with antipode.scope() as scope, caplog.at_level(logging.WARNING, "antipode"):
            antipode.append(BEFORE)
            call(b"go", timeout=5, metadata=(("baggage", f"a=1,antipode={FORGED}"), ("x-bin", b"\x00")))
            assert scope.lineage == antipode.Lineage([BEFORE])
    lineage, _, metadata = servicer.seen[0]
    assert not lineage
    assert metadata["baggage"] == "a=1"
    assert metadata["x-bin"] == b"\x00"
    assert "api.example.com:443 (request out)" in caplog.text or "api.example.com (request out)" in caplog.text


@pytest.mark.parametrize("order", ["ours outside", "ours inside"])
def test_beside_an_instrumentation_that_injects(order: str) -> None:
    """PROP-24: an interceptor that overwrites the call's baggage, as OpenTelemetry's does, on either side."""
    servicer = Servicer()

    class Injecting(grpc.UnaryUnaryClientInterceptor):  # type: ignore[misc]
        def intercept_unary_unary(self, continuation: Any, details: Any, request: Any) -> Any:
            metadata = dict(details.metadata or ())
            propagate.inject(metadata)
            return continuation(details._replace(metadata=tuple(metadata.items())), request)

    token = otel.attach(baggage.set_baggage("tenant", "acme"))
    try:
        with serving(servicer) as target, grpc.insecure_channel(target) as channel, antipode.scope() as scope:
            antipode.append(BEFORE)
            ours = antipode.grpc.client_interceptor(target)
            chain = (ours, Injecting()) if order == "ours outside" else (Injecting(), ours)
            grpc.intercept_channel(channel, *chain).unary_unary(METHOD)(b"go", timeout=5)
            assert scope.lineage == antipode.Lineage([BEFORE, AFTER])
    finally:
        otel.detach(token)
    [(lineage, _, metadata)] = servicer.seen
    assert lineage == antipode.Lineage([BEFORE])
    assert metadata["baggage"].startswith("tenant=acme,antipode=1~blog-posts")


@pytest.mark.parametrize("request_text", [b"go", b"abort", b"raise", b"trailer"])
async def test_asyncio_there_and_back(request_text: bytes) -> None:
    """PROP-15, also where the servicer aborts: its status leaves at once, the trailer with it."""
    servicer = Servicer()
    server = grpc.aio.server(interceptors=[antipode.grpc.aio_server_interceptor()])
    server.add_generic_rpc_handlers((Handlers(servicer.get_async),))
    port = server.add_insecure_port("127.0.0.1:0")
    target = f"127.0.0.1:{port}"
    await server.start()
    try:
        interceptors = [*antipode.grpc.aio_client_interceptors(target)]
        async with grpc.aio.insecure_channel(target, interceptors=interceptors) as channel:
            with antipode.scope() as scope:
                antipode.append(BEFORE)
                call = channel.unary_unary(METHOD)(request_text, timeout=5)
                if request_text in {b"abort", b"raise"}:
                    with pytest.raises(grpc.RpcError) as caught:
                        await call
                    expected = "NOT_FOUND" if request_text == b"abort" else "UNKNOWN"
                    assert caught.value.code() is grpc.StatusCode[expected]
                else:
                    assert await call == b"done"
                assert scope.lineage == antipode.Lineage([BEFORE, AFTER])
                trailer = dict(await call.trailing_metadata())
                assert ("app" in trailer) is (request_text == b"trailer")
    finally:
        await server.stop(None)
    assert servicer.seen[0][0] == antipode.Lineage([BEFORE])
    assert 0 < servicer.seen[0][1] < 5.5


@pytest.mark.parametrize(
    ("target", "host"),
    [
        ("post-storage:9090", "post-storage:9090"),
        ("post-storage", "post-storage"),
        ("dns:///post-storage:9090", "post-storage:9090"),
        ("dns://8.8.8.8/api.example.com:443", "api.example.com:443"),
        ("dns:api.example.com", "api.example.com"),
        ("passthrough:///10.0.0.1:50051", "passthrough:///10.0.0.1:50051"),
        ("xds:///orders", "xds:///orders"),
        ("unix:/run/app.sock", "127.0.0.1"),
        ("unix:///run/app.sock", "127.0.0.1"),
        ("unix-abstract:app", "127.0.0.1"),
        ("ipv4:10.0.0.1:50051", "10.0.0.1:50051"),
        ("ipv4:10.0.0.1:1,203.0.113.9:2", "203.0.113.9:2"),
        ("ipv6:[::1]:50051", "[::1]:50051"),
        ("[::1]:50051", "[::1]:50051"),
    ],
)
def test_the_host_of_a_target(target: str, host: str) -> None:
    assert host_of(target) == host


def test_a_target_whose_resolver_may_lead_anywhere_is_approved_as_a_whole_alone() -> None:
    """TRUST-35."""
    assert not is_approved(host_of("xds:///orders"), TrustSettings())
    assert not is_approved(host_of("xds:///orders"), TrustSettings(peers=Peers(["orders", ".orders", "10.0.0.0/8"])))
    assert is_approved(host_of("xds:///Orders"), TrustSettings(peers=Peers(["xds:///orders"])))
    assert is_approved(host_of("dns:///orders"), TrustSettings())
