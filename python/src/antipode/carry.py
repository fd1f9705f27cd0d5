"""Taking the scope along: into threads, executors and work that outlives the request (spec SCOPE)."""

from __future__ import annotations

import asyncio
import contextvars
import functools
import inspect
from collections.abc import Callable, Iterable, Iterator
from concurrent.futures import Executor, Future
from typing import Any, ParamSpec, TypeVar, cast

from antipode.branches import Branch, close_carried
from antipode.errors import ConfigurationError
from antipode.recorder import recorder
from antipode.scope import Scope, activate, current_block, current_scope

_P = ParamSpec("_P")
_R = TypeVar("_R")


def carry(function: Callable[_P, _R]) -> Callable[_P, _R]:
    """A function that runs in the scope that is current now, in whichever thread or task it is called.

    A detached scope stays open until each function that carries it has run once. In the block of a `branch()` it is a
    task, with a scope of its own, and closes its branch where it returns; it can then be run once.
    """
    scope = current_scope()
    block = None if scope is None else current_block(scope)
    if scope is not None and isinstance(block, Branch):
        taken = block.take(scope.lineage)
        if taken is not None:
            own = Scope(taken[1], kind="detached")
            own.be_task_of(taken[0])
            recording = recorder()
            if recording is not None:
                recording.joined(scope, own)
            return _task(function, own)
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


def _task(function: Callable[_P, _R], scope: Scope) -> Callable[_P, _R]:
    """A function that is the task of a branch (BRANCH-9)."""
    context = contextvars.copy_context()
    begun = iter([True])

    def begin() -> None:
        if not next(begun, False):
            raise ConfigurationError(
                "a function carried in a branch() is one task and runs once: carry it anew for each run",
                code="AP117",
            )

    if inspect.iscoroutinefunction(function):

        @functools.wraps(function)
        async def run_async(*args: Any, **kwargs: Any) -> Any:
            begin()
            try:
                with activate(scope):
                    result = await function(*args, **kwargs)
                if scope.tasks:
                    await asyncio.to_thread(close_carried, scope)
                return result
            finally:
                scope.stop()

        return cast("Callable[_P, _R]", run_async)

    def run_here(*args: Any, **kwargs: Any) -> Any:
        with activate(scope):
            return function(*args, **kwargs)

    @functools.wraps(function)
    def run(*args: _P.args, **kwargs: _P.kwargs) -> _R:
        begin()
        try:
            result = context.copy().run(run_here, *args, **kwargs)
            if scope.tasks:
                close_carried(scope)
            return cast("_R", result)
        finally:
            scope.stop()

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
        scope = current_scope()
        if scope is not None and current_block(scope) is not None:
            return super().map(fn, *iterables, timeout=timeout, chunksize=chunksize)  # each call is a task
        return self._executor.map(carry(fn), *iterables, timeout=timeout, chunksize=chunksize)

    def shutdown(self, wait: bool = True, *, cancel_futures: bool = False) -> None:
        self._executor.shutdown(wait=wait, cancel_futures=cancel_futures)


def carry_all(executor: Executor) -> Executor:
    """An executor around this one whose work runs in the scope in which it was submitted."""
    return _CarryingExecutor(executor)
