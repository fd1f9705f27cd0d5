"""Interceptors of channels: the caller's lineage out, the callee's back (spec PROP-15, PROP-27, PROP-28)."""

from __future__ import annotations

import threading
from collections.abc import Callable, Iterator
from contextlib import nullcontext, suppress
from typing import Any, NamedTuple

import grpc

from antipode._propagation.response_stream import ResponseStream
from antipode._scope.context import activate
from antipode._scope.scope import Scope, current_scope
from antipode._trust.trust import trust_settings
from antipode.grpc.metadata import answered, changed, ended
from antipode.grpc.targets import host_of
from antipode.propagation import approved

Continuation = Callable[[Any, Any], Any]


class _CallDetails(NamedTuple):
    method: str
    timeout: float | None
    metadata: Any
    credentials: Any
    wait_for_ready: bool | None
    compression: Any


class _Details(_CallDetails, grpc.ClientCallDetails):  # type: ignore[misc]
    """A call's details with other metadata."""


class ClientInterceptor(
    grpc.UnaryUnaryClientInterceptor,  # type: ignore[misc]
    grpc.UnaryStreamClientInterceptor,  # type: ignore[misc]
    grpc.StreamUnaryClientInterceptor,  # type: ignore[misc]
    grpc.StreamStreamClientInterceptor,  # type: ignore[misc]
):
    """For `grpc.intercept_channel`: calls of all four kinds."""

    def __init__(self, target: str) -> None:
        self._host = host_of(target)
        trust_settings()

    def _send(self, continuation: Continuation, details: Any, request: Any) -> Any:
        metadata, outgoing = changed(details.metadata, self._host)
        to_send = _Details(
            details.method,
            details.timeout,
            metadata,
            details.credentials,
            getattr(details, "wait_for_ready", None),
            getattr(details, "compression", None),
        )
        with approved(outgoing.text):
            return continuation(to_send, request)

    def _one_answer(self, continuation: Continuation, details: Any, request: Any) -> Any:
        call = _Call(self._send(continuation, details, request), self._host)
        call.add_done_callback(lambda _: None)  # it joins, and marks, also where nobody asks for the result (PROP-27)
        return call

    def _stream(self, continuation: Continuation, details: Any, request: Any) -> Any:
        return _Stream(self._send(continuation, details, request), ResponseStream(self._host))

    intercept_unary_unary = _one_answer
    intercept_stream_unary = _one_answer
    intercept_unary_stream = _stream
    intercept_stream_stream = _stream


class _Call:
    """A call whose answer joins the caller's scope before the caller has it."""

    def __init__(self, call: Any, host: str) -> None:
        self._call = call
        self._host = host
        self._scope: Scope | None = current_scope()
        self._merged = False
        self._lock = threading.RLock()

    def __getattr__(self, name: str) -> Any:
        return getattr(self._call, name)

    def _join(self) -> None:
        with self._lock:
            if self._merged or not self._call.done():
                return
            # Callbacks run in threads of the channel; whoever has the result meanwhile has its lineage, too.
            with nullcontext() if self._scope is None else activate(self._scope):
                answered(self._call.code(), self._call.trailing_metadata(), self._host)
            self._merged = True

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


class _Stream(Iterator[Any]):
    """A call that brings messages, and their lineage at its end.

    Like the call that it stands for, it is cancelled when nobody holds it any more.
    """

    def __init__(self, call: Any, stream: ResponseStream) -> None:
        self._call = call
        self._stream = stream

    def __getattr__(self, name: str) -> Any:
        return getattr(self._call, name)

    def __next__(self) -> Any:
        try:
            message = next(self._call)
        except BaseException:
            self._join()
            raise
        self._stream.message()
        return message

    def _join(self) -> None:
        if self._call.done():
            ended(self._stream, self._call.code(), self._call.trailing_metadata())

    def cancel(self) -> Any:
        cancelled = self._call.cancel()
        self._join()
        return cancelled

    def code(self) -> Any:
        code = self._call.code()
        self._join()
        return code

    def trailing_metadata(self) -> Any:
        metadata = self._call.trailing_metadata()
        self._join()
        return metadata

    def result(self, timeout: float | None = None) -> Any:
        with suppress(grpc.FutureTimeoutError):
            self._call.exception(timeout)
        self._join()
        return self._call.result(timeout)

    def exception(self, timeout: float | None = None) -> Any:
        error = self._call.exception(timeout)
        self._join()
        return error

    def add_done_callback(self, callback: Callable[[Any], None]) -> None:
        def joined(_: Any) -> None:
            self._join()
            callback(self)

        self._call.add_done_callback(joined)

    def add_callback(self, callback: Callable[[], None]) -> Any:
        def joined() -> None:
            self._join()
            callback()

        return self._call.add_callback(joined)

    def __del__(self) -> None:
        self._stream.drop()
