"""Taking the scope along: into threads, executors and work that outlives the request (spec SCOPE)."""

from __future__ import annotations

import contextvars
import functools
import inspect
from collections.abc import Callable, Iterable, Iterator
from concurrent.futures import Executor, Future
from typing import Any, ParamSpec, TypeVar, cast

from antipode.scope import activate, current_scope

_P = ParamSpec("_P")
_R = TypeVar("_R")


def carry(function: Callable[_P, _R]) -> Callable[_P, _R]:
    """A function that runs in the scope that is current now, in whichever thread or task it is called.

    A detached scope stays open until each function that carries it has run once.
    """
    scope = current_scope()
    context = contextvars.copy_context()
    holding = scope is not None and scope.kind == "detached"
    if scope is not None and holding:
        scope.hold()

    def released() -> None:
        nonlocal holding
        if holding and scope is not None:
            holding = False
            scope.release()

    if inspect.iscoroutinefunction(function):

        @functools.wraps(function)
        async def run_async(*args: Any, **kwargs: Any) -> Any:
            try:
                if scope is None:
                    return await function(*args, **kwargs)
                with activate(scope):
                    return await function(*args, **kwargs)
            finally:
                released()

        return cast("Callable[_P, _R]", run_async)

    @functools.wraps(function)
    def run(*args: _P.args, **kwargs: _P.kwargs) -> _R:
        try:
            # A copy each time: one Context cannot be entered by two threads at once.
            return context.copy().run(function, *args, **kwargs)
        finally:
            released()

    return run


class _CarryingExecutor(Executor):
    """An executor whose work runs in the scope in which it was submitted."""

    def __init__(self, executor: Executor) -> None:
        self._executor = executor

    def submit(self, fn: Callable[..., _R], /, *args: Any, **kwargs: Any) -> Future[_R]:
        return self._executor.submit(carry(fn), *args, **kwargs)

    def map(
        self, fn: Callable[..., _R], *iterables: Iterable[Any], timeout: float | None = None, chunksize: int = 1
    ) -> Iterator[_R]:
        return self._executor.map(carry(fn), *iterables, timeout=timeout, chunksize=chunksize)

    def shutdown(self, wait: bool = True, *, cancel_futures: bool = False) -> None:
        self._executor.shutdown(wait=wait, cancel_futures=cancel_futures)


def carry_all(executor: Executor) -> Executor:
    """An executor around this one whose work runs in the scope in which it was submitted."""
    return _CarryingExecutor(executor)
