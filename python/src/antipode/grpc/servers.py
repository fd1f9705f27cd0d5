"""Interceptors of servers: a scope for each call, and what it added in trailing metadata (spec PROP-15)."""

from __future__ import annotations

import functools
import time
from collections.abc import Callable, Iterator
from functools import partial
from typing import Any

import grpc

from antipode._base.settings import Mode, settings
from antipode._propagation.carriers import LINEAGE_HEADER, read
from antipode._trust.trust import trust_settings
from antipode.grpc.metadata import repeated, text_pairs
from antipode.propagation import Inbound

Behavior = Callable[[Any, Any], Any]


class ServerInterceptor(grpc.ServerInterceptor):  # type: ignore[misc]
    """For `grpc.server`."""

    def __init__(self, edge: bool | None) -> None:
        self._edge = edge
        trust_settings()

    def intercept_service(self, continuation: Callable[[Any], Any], details: Any) -> Any:
        """The handler of the call, run in a scope."""
        handler = continuation(details)
        if handler is None:
            return None
        behavior = behavior_of(handler)
        if getattr(behavior, "experimental_non_blocking", False):
            return handler  # it answers by a callback, after it has returned
        return with_behavior(handler, blocking(behavior, handler.response_streaming, details, self._edge))


def _as_it_is(context: Any, _: Inbound) -> Any:
    return context


def blocking(
    behavior: Behavior,
    streams: bool,
    details: Any,
    edge: bool | None,
    context_of: Callable[[Any, Inbound], Any] = _as_it_is,
) -> Behavior:
    """A handler that is no coroutine, in a scope; it gets what `context_of` makes of its context."""

    @functools.wraps(behavior)
    def run(request: Any, context: Any) -> Any:
        inbound = open_call(details, context, edge)
        context = context_of(context, inbound)
        try:
            with inbound.active():
                answer = behavior(request, context)
        except BaseException:
            add_trailer(context, inbound)
            inbound.close()
            raise
        if streams:
            return _Responses(answer, context, inbound)
        add_trailer(context, inbound)
        inbound.close()
        return answer

    return run


class _Responses(Iterator[Any]):
    """What a handler streams: each step runs in the call's scope, which ends with it.

    Where the caller has gone, the server drops this: the handler's generator and the scope end then.
    """

    def __init__(self, responses: Iterator[Any], context: Any, inbound: Inbound) -> None:
        self._responses = responses
        self._context = context
        self._inbound = inbound
        self._ended = False

    def __next__(self) -> Any:
        try:
            with self._inbound.active():
                return next(self._responses)
        except BaseException:
            self._ended = True
            add_trailer(self._context, self._inbound)
            self._inbound.close()
            raise

    def __del__(self) -> None:
        if self._ended:
            return
        self._ended = True
        try:
            close = getattr(self._responses, "close", None)
            if close is not None:
                with self._inbound.active():
                    close()
        finally:
            self._inbound.close()


def open_call(details: Any, context: Any, edge: bool | None) -> Inbound:
    """The scope of a call that came in; the call's own deadline is its (PROP-25)."""
    inbound = Inbound(read(text_pairs(details.invocation_metadata)), context.peer(), edge=edge)
    inbound.scope.endpoint = partial(str, details.method)
    remaining = context.time_remaining()
    if remaining is not None:
        inbound.scope.deadline = time.monotonic() + remaining
    return inbound


def add_trailer(context: Any, inbound: Inbound) -> None:
    """Puts what the scope has added beside the application's own trailing metadata."""
    text = inbound.response_text()
    added = [] if text is None else [(LINEAGE_HEADER, text)]
    if settings().mode is not Mode.OFF and inbound.may_answer():
        added += repeated(context.invocation_metadata())
    if added:
        context.set_trailing_metadata((*(context.trailing_metadata() or ()), *added))


def _kind(handler: Any) -> str:
    request = "stream" if handler.request_streaming else "unary"
    return f"{request}_{'stream' if handler.response_streaming else 'unary'}"


def behavior_of(handler: Any) -> Behavior:
    """What the application does in the call, of whichever of the four kinds it is."""
    behavior: Behavior = getattr(handler, _kind(handler))
    return behavior


def with_behavior(handler: Any, behavior: Behavior) -> Any:
    """The handler with this in its place."""
    make = getattr(grpc, f"{_kind(handler)}_rpc_method_handler")
    return make(
        behavior,
        request_deserializer=handler.request_deserializer,
        response_serializer=handler.response_serializer,
    )
