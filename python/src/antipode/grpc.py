"""gRPC interceptors for unary calls: metadata in, trailing metadata out (spec PROP).

server = grpc.server(pool, interceptors=[antipode.grpc.server_interceptor()])
channel = grpc.intercept_channel(channel, antipode.grpc.client_interceptor("post-storage:9090"))
"""

from __future__ import annotations

import threading
import time
from collections.abc import Awaitable, Callable, Iterable
from functools import partial
from typing import Any, Final, NamedTuple

import grpc
import grpc.aio

from antipode.carriers import LINEAGE_HEADER, read
from antipode.propagation import Inbound, Outgoing, approved, merge_response, prepare_request, unanswered
from antipode.scope import Scope, activate, current_scope
from antipode.site import skip_packages
from antipode.trust import is_approved, trust_settings

Pairs = Iterable[tuple[str, str | bytes]]

_LOOPBACK: Final = "127.0.0.1"
_NO_ANSWER: Final = frozenset(
    {grpc.StatusCode.DEADLINE_EXCEEDED, grpc.StatusCode.CANCELLED, grpc.StatusCode.UNAVAILABLE}
)
"""Codes that a client makes up by itself; gRPC does not tell whether the call had left."""

skip_packages("grpc", "opentelemetry")


def server_interceptor(*, edge: bool | None = None) -> grpc.ServerInterceptor:
    """A scope for each unary call of a `grpc.server`; its additions go back in trailing metadata, errors too.

    The call's own deadline tightens the barriers in it. `edge=True`: callers are outside.
    """
    return _ServerInterceptor(edge)


def aio_server_interceptor(*, edge: bool | None = None) -> grpc.aio.ServerInterceptor:
    """The same for a `grpc.aio.server`."""
    return _AioServerInterceptor(edge)


def client_interceptor(target: str) -> grpc.UnaryUnaryClientInterceptor:
    """Carries lineages with the unary calls of a channel to `target`, by the word that opened the channel."""
    return _ClientInterceptor(target)


def aio_client_interceptor(target: str) -> grpc.aio.UnaryUnaryClientInterceptor:
    """The same for a `grpc.aio` channel."""
    return _AioClientInterceptor(target)


def host_of(target: str) -> str:
    """The host that a channel's target names, as trust judges it; of several addresses one that is not inside.

    A Unix socket counts as loopback.
    """
    scheme, colon, rest = target.partition(":")
    if not colon:
        return target
    if scheme in {"unix", "unix-abstract"}:
        return _LOOPBACK
    if scheme in {"ipv4", "ipv6"}:
        addresses = [item.removeprefix("//").lstrip("/") for item in rest.split(",")]
        trust = trust_settings()
        return next((address for address in addresses if not is_approved(address, trust)), addresses[0])
    if "://" in target or rest.startswith("/") or scheme in {"dns", "passthrough"}:
        return rest.rpartition("/")[2]
    return target


# Servers


class _ServerInterceptor(grpc.ServerInterceptor):  # type: ignore[misc]
    def __init__(self, edge: bool | None) -> None:
        self._edge = edge
        trust_settings()

    def intercept_service(self, continuation: Callable[[Any], Any], details: Any) -> Any:
        handler = continuation(details)
        if handler is None or handler.request_streaming or handler.response_streaming:
            return handler
        behavior = handler.unary_unary

        def run(request: Any, context: Any) -> Any:
            inbound = _open(details, context, self._edge)
            try:
                with inbound.active():
                    return behavior(request, context)
            finally:
                _add_trailer(context, inbound)
                inbound.close()

        return _unary(handler, run)


class _AioServerInterceptor(grpc.aio.ServerInterceptor):  # type: ignore[misc]
    def __init__(self, edge: bool | None) -> None:
        self._edge = edge
        trust_settings()

    async def intercept_service(self, continuation: Callable[[Any], Awaitable[Any]], details: Any) -> Any:
        handler = await continuation(details)
        if handler is None or handler.request_streaming or handler.response_streaming:
            return handler
        behavior = handler.unary_unary

        async def run(request: Any, context: Any) -> Any:
            inbound = _open(details, context, self._edge)
            answer = _AioContext(context, inbound)
            try:
                with inbound.active():
                    return await behavior(request, answer)
            finally:
                answer.add_trailer()
                inbound.close()

        return _unary(handler, run)


def _open(details: Any, context: Any, edge: bool | None) -> Inbound:
    inbound = Inbound(read(_text_pairs(details.invocation_metadata)), context.peer(), edge=edge)
    inbound.scope.endpoint = partial(str, details.method)
    remaining = context.time_remaining()
    if remaining is not None:
        inbound.scope.deadline = time.monotonic() + remaining
    return inbound


def _unary(handler: Any, behavior: Callable[..., Any]) -> Any:
    return grpc.unary_unary_rpc_method_handler(
        behavior,
        request_deserializer=handler.request_deserializer,
        response_serializer=handler.response_serializer,
    )


def _add_trailer(context: Any, inbound: Inbound) -> None:
    text = inbound.response_text()
    if text is not None:
        context.set_trailing_metadata((*(context.trailing_metadata() or ()), (LINEAGE_HEADER, text)))


class _AioContext:
    """The servicer's context; `abort` sends the status at once, so the trailer must be there before it."""

    def __init__(self, context: Any, inbound: Inbound) -> None:
        self._context = context
        self._inbound = inbound
        self._sent = False

    def __getattr__(self, name: str) -> Any:
        return getattr(self._context, name)

    def add_trailer(self) -> None:
        if not self._sent:
            self._sent = True
            _add_trailer(self._context, self._inbound)

    async def abort(self, code: grpc.StatusCode, details: str = "", trailing_metadata: Any = ()) -> None:
        if trailing_metadata:
            self._context.set_trailing_metadata(tuple(trailing_metadata))
        self.add_trailer()
        await self._context.abort(code, details, self._context.trailing_metadata() or ())

    async def abort_with_status(self, status: grpc.Status) -> None:
        await self.abort(status.code, status.details, status.trailing_metadata or ())


# Clients


class _CallDetails(NamedTuple):
    method: str
    timeout: float | None
    metadata: Any
    credentials: Any
    wait_for_ready: bool | None
    compression: Any


class _Details(_CallDetails, grpc.ClientCallDetails):  # type: ignore[misc]
    """A call's details with other metadata."""


class _ClientInterceptor(grpc.UnaryUnaryClientInterceptor):  # type: ignore[misc]
    def __init__(self, target: str) -> None:
        self._host = host_of(target)
        trust_settings()

    def intercept_unary_unary(self, continuation: Callable[[Any, Any], Any], details: Any, request: Any) -> Any:
        metadata, outgoing = _outgoing(details.metadata, self._host)
        changed = _Details(
            details.method,
            details.timeout,
            metadata,
            details.credentials,
            getattr(details, "wait_for_ready", None),
            getattr(details, "compression", None),
        )
        with approved(outgoing.text):
            call = continuation(changed, request)
        return _Call(call, self._host)


class _AioClientInterceptor(grpc.aio.UnaryUnaryClientInterceptor):  # type: ignore[misc]
    def __init__(self, target: str) -> None:
        self._host = host_of(target)
        trust_settings()

    async def intercept_unary_unary(
        self, continuation: Callable[[Any, Any], Awaitable[Any]], details: Any, request: Any
    ) -> Any:
        metadata, outgoing = _outgoing(details.metadata, self._host)
        changed = grpc.aio.ClientCallDetails(
            details.method,
            details.timeout,
            grpc.aio.Metadata(*metadata),
            details.credentials,
            details.wait_for_ready,
        )
        with approved(outgoing.text):
            call = await continuation(changed, request)
        # Waits for the end of the call and does not raise for its status; the scope is whole before the caller
        # has the answer.
        trailing = await call.trailing_metadata()
        _merge(trailing, self._host)
        _check_answered(await call.code(), trailing, self._host)
        return call


def _outgoing(metadata: Pairs | None, host: str) -> tuple[list[tuple[str, str | bytes]], Outgoing]:
    given = list(metadata or ())
    text = _text_pairs(given)

    def get(name: str) -> str | None:
        values = [value for key, value in text if key == name]
        return ",".join(values) if values else None

    outgoing = prepare_request(host, get, text)
    changed = [(key, value) for key, value in given if key not in outgoing.changes]
    changed += [(name, value) for name, value in outgoing.changes.items() if value is not None]
    return changed, outgoing


def _text_pairs(metadata: Pairs | None) -> list[tuple[str, str]]:
    return [(key, value) for key, value in metadata or () if isinstance(value, str)]


def _check_answered(code: grpc.StatusCode, metadata: Pairs | None, host: str) -> None:
    """Marks the scope where a call ended without the server's word: whether it ran there is not known."""
    if code in _NO_ANSWER and not metadata:
        unanswered(host, code.name)


def _merge(metadata: Pairs | None, host: str) -> None:
    values = [value for key, value in _text_pairs(metadata) if key == LINEAGE_HEADER]
    if values:
        merge_response(values, host)


class _Call:
    """A call whose answer joins the caller's scope before the caller has it."""

    def __init__(self, call: Any, host: str) -> None:
        self._call = call
        self._host = host
        self._scope: Scope | None = current_scope()
        self._merged = False
        self._lock = threading.Lock()

    def __getattr__(self, name: str) -> Any:
        return getattr(self._call, name)

    def _join(self) -> None:
        with self._lock:
            if self._merged or not self._call.done():
                return
            self._merged = True
            metadata = self._call.trailing_metadata()
            code = self._call.code()
        if self._scope is None:
            _merge(metadata, self._host)
            return
        with activate(self._scope):  # callbacks run in threads of the channel
            _merge(metadata, self._host)
            _check_answered(code, metadata, self._host)

    def result(self, timeout: float | None = None) -> Any:
        try:
            return self._call.result(timeout)
        finally:
            self._join()

    def exception(self, timeout: float | None = None) -> Any:
        try:
            return self._call.exception(timeout)
        finally:
            self._join()

    def code(self) -> Any:
        code = self._call.code()
        self._join()
        return code

    def trailing_metadata(self) -> Any:
        metadata = self._call.trailing_metadata()
        self._join()
        return metadata

    def add_done_callback(self, callback: Callable[[Any], None]) -> None:
        def joined(_: Any) -> None:
            self._join()
            callback(self)

        self._call.add_done_callback(joined)
