"""One text for the blocking and the asyncio form of a client: a generator of steps, and a driver for each form.

A step is what a call of the client returned:

    reply = yield connection.read_response()

Of a blocking client that is the answer, and comes right back. Of an asyncio client it is awaited, and what it raises
is raised at the step. Steps include other steps by `yield from`.
"""

from __future__ import annotations

import asyncio
import functools
from collections.abc import Callable, Generator
from contextlib import suppress
from typing import Any, Final, TypeAlias, TypeVar

_T = TypeVar("_T")
_MOST_STEPS_LEFT: Final = 20
Steps: TypeAlias = Generator[Any, Any, _T]


class BlockingCall:
    """A step that blocks whatever the client is: for an asyncio client it is called on another thread."""

    __slots__ = ("call",)

    def __init__(self, call: Callable[[], Any]) -> None:
        self.call = call


def run(steps: Steps[_T]) -> _T:
    """Do the steps of a blocking client; return their result. An interrupt between two is raised at the step, too.

    Steps that an interrupt leaves unfinished would leave their connection open with a reply on its way, and whoever
    takes it next would read that reply for its own.
    """
    generator: Any = steps
    answer: Any = None
    error: BaseException | None = None
    try:
        while True:
            try:
                while True:
                    answer = steps.send(answer) if error is None else steps.throw(error)
                    error = None
                    if type(answer) is BlockingCall:
                        answer = answer.call()
            except BaseException as raised:
                if generator.gi_frame is not None:  # the steps are not at their end: it is for them to clean up
                    error = raised
                    continue
                error = None
                if isinstance(raised, StopIteration):
                    result: _T = raised.value
                    return result
                raise
    except BaseException as raised:
        _end(steps)
        if isinstance(raised, RuntimeError) and isinstance(raised.__cause__, StopIteration):
            raise raised.__cause__ from None  # a generator may not raise the client's own (PEP 479)
        raise


def _end(steps: Steps[Any]) -> None:
    """Let steps clean up that a second interrupt left while they were told of the first."""
    generator: Any = steps
    for _ in range(_MOST_STEPS_LEFT):
        if generator.gi_frame is None:
            return
        with suppress(BaseException):
            steps.throw(GeneratorExit())


async def run_async(steps: Steps[_T]) -> _T:
    """Do the steps of an asyncio client; return their result. A cancellation is raised at the step that waits."""
    generator: Any = steps
    answer: Any = None
    error: BaseException | None = None
    while True:
        try:
            while True:
                answer = steps.send(answer) if error is None else steps.throw(error)
                error = None
                if type(answer) is BlockingCall:
                    answer = await asyncio.to_thread(answer.call)
                elif hasattr(type(answer), "__await__"):
                    answer = await answer
        except BaseException as raised:
            if generator.gi_frame is not None:
                error = raised
                continue
            error = None
            if isinstance(raised, StopIteration):
                result: _T = raised.value
                return result
            raise


def awaited(method: Callable[..., Any]) -> Any:
    """Return the coroutine function of a method that both forms share: an asyncio client's own is one, too."""

    @functools.wraps(method)
    async def call(*args: Any, **kwargs: Any) -> Any:
        return await method(*args, **kwargs)

    return call
