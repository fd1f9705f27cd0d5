"""The same for `grpc.aio` servers (spec PROP-15)."""

from __future__ import annotations

import inspect
from collections.abc import Awaitable, Callable
from typing import Any

import grpc
import grpc.aio

from antipode._trust.trust import trust_settings
from antipode.grpc.servers import Behavior, add_trailer, behavior_of, blocking, open_call, with_behavior
from antipode.propagation import Inbound


class AioServerInterceptor(grpc.aio.ServerInterceptor):  # type: ignore[misc]
    """For `grpc.aio.server`; handlers that are no coroutines run in its threads, as without it."""

    def __init__(self, edge: bool | None) -> None:
        self._edge = edge
        trust_settings()

    async def intercept_service(self, continuation: Callable[[Any], Awaitable[Any]], details: Any) -> Any:
        """The handler of the call, run in a scope."""
        handler = await continuation(details)
        if handler is None:
            return None
        behavior = behavior_of(handler)
        if not _is_async(behavior):
            run_in_thread = blocking(behavior, handler.response_streaming, details, self._edge, _ThreadContext)
            return with_behavior(handler, run_in_thread)

        async def run(request: Any, context: Any) -> Any:
            inbound = open_call(details, context, self._edge)
            answer = _AioContext(context, inbound)
            try:
                with inbound.active():
                    if handler.response_streaming:
                        await _stream(behavior, request, answer)
                        return None
                    return await behavior(request, answer)
            finally:
                answer.add_trailer()
                inbound.close()

        return with_behavior(handler, run)


def _is_async(behavior: Behavior) -> bool:
    """As grpc.aio judges it."""
    return any(
        inspect.iscoroutinefunction(each) or inspect.isasyncgenfunction(each)
        for each in (behavior, getattr(behavior, "__call__", None))  # noqa: B004
    )


async def _stream(behavior: Behavior, request: Any, context: Any) -> None:
    """Runs a handler that streams: a generator, or a coroutine that writes by itself.

    A generator is read here as the server would: one message after another, each written before the next is made.
    """
    responses = behavior(request, context)
    if not hasattr(responses, "__aiter__"):
        await responses
        return
    try:
        async for response in responses:
            await context.write(response)
    finally:
        close = getattr(responses, "aclose", None)
        if close is not None:
            await close()  # at once, in the call's scope: the caller may have gone


class _ThreadContext:
    """The context of a handler in a thread, which grpc.aio gives no way to ask for its trailing metadata."""

    def __init__(self, context: Any, inbound: Inbound) -> None:
        self._context = context
        self._inbound = inbound
        self._trailing: tuple[Any, ...] = ()

    def __getattr__(self, name: str) -> Any:
        return getattr(self._context, name)

    def trailing_metadata(self) -> tuple[Any, ...]:
        return self._trailing

    def set_trailing_metadata(self, trailing_metadata: Any) -> None:
        self._trailing = tuple(trailing_metadata)
        self._context.set_trailing_metadata(self._trailing)

    def abort(self, code: grpc.StatusCode, details: str = "") -> None:
        add_trailer(self, self._inbound)  # it sends the status at once
        self._context.abort(code, details)

    def abort_with_status(self, status: grpc.Status) -> None:
        if status.trailing_metadata:
            self.set_trailing_metadata(status.trailing_metadata)
        self.abort(status.code, status.details)


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
            add_trailer(self._context, self._inbound)

    async def abort(self, code: grpc.StatusCode, details: str = "", trailing_metadata: Any = ()) -> None:
        if trailing_metadata:
            self._context.set_trailing_metadata(tuple(trailing_metadata))
        self.add_trailer()
        await self._context.abort(code, details, self._context.trailing_metadata() or ())

    async def abort_with_status(self, status: grpc.Status) -> None:
        await self.abort(status.code, status.details, status.trailing_metadata or ())
