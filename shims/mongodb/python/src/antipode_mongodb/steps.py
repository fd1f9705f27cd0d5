"""Operations written once for PyMongo's sync and async clients: generators that yield what is to be called.

Each yields functions; what a function returns, or raises, comes back into it. Of an async client's calls the answers
are awaited.
"""

from __future__ import annotations

import asyncio
import inspect
from collections.abc import Callable, Generator
from typing import Any, TypeAlias, TypeVar

_T = TypeVar("_T")
Call: TypeAlias = Callable[[], Any]
Steps: TypeAlias = Generator[Call, Any, _T]


class Blocking:
    """A call that blocks whatever the client is: of an async one it is made on another thread."""

    def __init__(self, call: Call) -> None:
        self.call = call

    def __call__(self) -> Any:
        return self.call()


def run(steps: Steps[_T]) -> _T:
    """Makes the calls one after another."""
    try:
        call = next(steps)
        while True:
            try:
                answer = call()
            except BaseException as error:
                call = steps.throw(error)
            else:
                call = steps.send(answer)
    except StopIteration as done:
        result: _T = done.value
        return result


async def run_async(steps: Steps[_T]) -> _T:
    """Makes the calls one after another, and awaits what has to be."""
    try:
        call = next(steps)
        while True:
            try:
                answer = await asyncio.to_thread(call) if isinstance(call, Blocking) else call()
                if inspect.isawaitable(answer):
                    answer = await answer
            except BaseException as error:
                call = steps.throw(error)
            else:
                call = steps.send(answer)
    except StopIteration as done:
        result: _T = done.value
        return result
