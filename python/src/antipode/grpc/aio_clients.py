"""The same for `grpc.aio` channels (spec PROP-15, PROP-27, PROP-28)."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator, Awaitable, Callable, Coroutine, Generator
from contextlib import suppress
from typing import Any

import grpc.aio

from antipode._propagation.response_stream import ResponseStream
from antipode._trust.trust import trust_settings
from antipode.grpc.metadata import answered, changed, ended
from antipode.grpc.targets import host_of
from antipode.propagation import approved, unanswered

Continuation = Callable[[Any, Any], Awaitable[Any]]


class _Interceptor:
    def __init__(self, target: str) -> None:
        self._host = host_of(target)
        trust_settings()

    async def _send(self, continuation: Continuation, details: Any, request: Any) -> Any:
        metadata, outgoing = changed(details.metadata, self._host)
        to_send = grpc.aio.ClientCallDetails(
            details.method,
            details.timeout,
            grpc.aio.Metadata(*metadata),
            details.credentials,
            details.wait_for_ready,
        )
        with approved(outgoing.text):
            return await continuation(to_send, request)

    async def _open(self, continuation: Continuation, details: Any, request: Any) -> tuple[Any, ResponseStream]:
        stream = ResponseStream(self._host)
        call = await self._send(continuation, details, request)
        with suppress(NotImplementedError):  # an interceptor behind this one made the answer up
            call.add_done_callback(_CallEnd(stream))
        return call, stream


class UnaryUnary(_Interceptor, grpc.aio.UnaryUnaryClientInterceptor):  # type: ignore[misc]
    """Calls of one message with one answer."""

    async def intercept_unary_unary(self, continuation: Continuation, details: Any, request: Any) -> Any:
        call = await self._send(continuation, details, request)
        try:
            # Waits for the end of the call and does not raise for its status; the scope is whole before the caller
            # has the answer.
            trailing = await call.trailing_metadata()
            code = await call.code()
        except asyncio.CancelledError:
            call.cancel()
            unanswered(self._host, "CANCELLED")
            raise
        answered(code, trailing, self._host)
        return call


class StreamUnary(_Interceptor, grpc.aio.StreamUnaryClientInterceptor):  # type: ignore[misc]
    """Calls of many messages with one answer."""

    async def intercept_stream_unary(self, continuation: Continuation, details: Any, request: Any) -> Any:
        return _Answer(*await self._open(continuation, details, request))


class UnaryStream(_Interceptor, grpc.aio.UnaryStreamClientInterceptor):  # type: ignore[misc]
    """Calls of one message with many answers."""

    async def intercept_unary_stream(self, continuation: Continuation, details: Any, request: Any) -> Any:
        return _messages(*await self._open(continuation, details, request))


class StreamStream(_Interceptor, grpc.aio.StreamStreamClientInterceptor):  # type: ignore[misc]
    """Calls of many messages both ways."""

    async def intercept_stream_stream(self, continuation: Continuation, details: Any, request: Any) -> Any:
        return _messages(*await self._open(continuation, details, request))


class _CallEnd:
    """Hears of the end of a call from the channel, also where nobody reads on."""

    def __init__(self, stream: ResponseStream) -> None:
        self._stream = stream

    def __call__(self, call: Any) -> None:
        with suppress(_NotYetError):
            ended(self._stream, _at_once(call.code()), _at_once(call.trailing_metadata()))


class _NotYetError(Exception):
    """What was asked of a call is not there."""


def _at_once(question: Coroutine[Any, Any, Any]) -> Any:
    """The answer of a call that has ended, which needs no waiting."""
    try:
        question.send(None)
    except StopIteration as answer:
        return answer.value
    question.close()
    raise _NotYetError


async def _join(call: Any, stream: ResponseStream) -> None:
    trailing = await call.trailing_metadata()
    ended(stream, await call.code(), trailing)


async def _messages(call: Any, stream: ResponseStream) -> AsyncIterator[Any]:
    try:
        async for message in call:
            stream.message()
            yield message
    except (asyncio.CancelledError, GeneratorExit):
        raise  # the channel tells how a call ends that is given up
    except BaseException:
        await _join(call, stream)
        raise
    await _join(call, stream)


class _Answer:
    """A call whose answer joins the caller's scope before the caller has it."""

    def __init__(self, call: Any, stream: ResponseStream) -> None:
        self._call = call
        self._stream = stream

    def __getattr__(self, name: str) -> Any:
        return getattr(self._call, name)

    def __await__(self) -> Generator[Any, None, Any]:
        return self._answer().__await__()

    async def _answer(self) -> Any:
        try:
            answer = await self._call
        except asyncio.CancelledError:
            raise
        except BaseException:
            await _join(self._call, self._stream)
            raise
        await _join(self._call, self._stream)
        return answer
