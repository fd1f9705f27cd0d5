"""Taking the scope along: into threads, executors and work that outlives the request (spec SCOPE)."""

from __future__ import annotations

import asyncio
import contextvars
import functools
import inspect
from collections.abc import AsyncGenerator, Awaitable, Callable, Generator, Iterable, Iterator
from concurrent.futures import Executor, Future, ProcessPoolExecutor
from contextlib import AbstractContextManager, nullcontext
from typing import Any, ParamSpec, TypeVar, cast

from antipode._base.observers import events
from antipode._model.errors import ConfigurationError
from antipode._scope import unflushed_changes
from antipode._scope.context import activate, current_block
from antipode._scope.scope import Scope, current_scope

_P = ParamSpec("_P")
_R = TypeVar("_R")


def carry(function: Callable[_P, _R]) -> Callable[_P, _R]:
    """A function that runs in the scope that is current now, in whichever thread or task it is called.

    A detached scope stays open until each function that carries it has run once. In the block of a `branch()` it is a
    task, with a scope of its own, and closes its branch where it returns; it can then be run once.
    """
    scope = current_scope()
    block = None if scope is None else current_block(scope)
    if scope is not None:
        # Here, in the task that may use a session: where the work runs nobody sees it (SCOPE-27).
        unflushed_changes.look(scope)
    if scope is not None and block is not None:
        taken = block.take(scope.lineage)
        if taken is not None:
            own = Scope(taken[1], kind="detached")
            own.be_task_of(taken[0])
            events.on_scopes_joined(scope, own)
            return _task(function, own, block.close_carried)
    context = contextvars.copy_context()
    holding = scope is not None and scope.kind == "detached"
    if scope is not None and holding:
        scope.hold()

    def released() -> None:
        nonlocal holding
        if holding and scope is not None:
            holding = False
            scope.release()

    def run_here(*args: Any, **kwargs: Any) -> Any:
        # A copy each time: one Context cannot be entered by two threads at once.
        return context.copy().run(function, *args, **kwargs)

    return _carried(function, run_here, lambda: _Run(scope, released))


def _task(function: Callable[_P, _R], scope: Scope, close: Callable[[Scope], None]) -> Callable[_P, _R]:
    """Return a function that is the task of a branch; `close` closes that where it returns (BRANCH-9)."""
    context = contextvars.copy_context()
    begun = iter([True])

    def begin() -> _Run:
        if not next(begun, False):
            raise ConfigurationError(
                "a function carried in a branch() is one task and runs once: carry it anew for each run",
                code="AP117",
            )
        return _Run(scope, scope.stop, close)

    def run_inside(*args: Any, **kwargs: Any) -> Any:
        with activate(scope):
            return function(*args, **kwargs)

    def run_here(*args: Any, **kwargs: Any) -> Any:
        return context.copy().run(run_inside, *args, **kwargs)

    return _carried(function, run_here, begin)


def _carried(function: Callable[_P, _R], run_here: Callable[..., Any], begin: Callable[[], _Run]) -> Callable[_P, _R]:
    """The function that runs `function` by `run_here`; a coroutine function stays one."""
    if inspect.iscoroutinefunction(function):

        @functools.wraps(function)
        async def run_async(*args: Any, **kwargs: Any) -> Any:
            return await begin().awaited(function(*args, **kwargs))

        return cast("Callable[_P, _R]", run_async)

    @functools.wraps(function)
    def run(*args: _P.args, **kwargs: _P.kwargs) -> _R:
        running = begin()
        try:
            result = run_here(*args, **kwargs)
        except BaseException:
            running.over()
            raise
        return cast("_R", running.result(result))

    return run


class _Run:
    """One run of a carried function, which lasts as long as what it returned: a coroutine, a generator, a future.

    Where a task's is over without an error the branches of its scope are closed (BRANCH-26); those of a scope that is
    another's are that one's to close.
    """

    def __init__(
        self, scope: Scope | None, over: Callable[[], None], close: Callable[[Scope], None] | None = None
    ) -> None:
        self._scope = scope
        self._close_task = close
        self.over = over

    def result(self, returned: Any) -> Any:
        """Return what the function returned, to run on in the scope."""
        if self._scope is None:
            self.over()
        elif isinstance(returned, Future) or asyncio.isfuture(returned):
            returned.add_done_callback(self._done)
        elif inspect.isgenerator(returned):
            return self._stepped(returned)
        elif inspect.isasyncgen(returned):
            return self._stepped_async(returned)
        elif inspect.iscoroutine(returned) or (self._close_task is not None and inspect.isawaitable(returned)):
            return self.awaited(returned)  # any other awaitable stays what it is: `async with` takes some
        else:
            try:
                self._close()
            finally:
                self.over()
        return returned

    async def awaited(self, awaitable: Awaitable[Any]) -> Any:
        """Return the result of a coroutine that runs in the scope, whichever is current where it is awaited."""
        try:
            with self._active():
                result = await awaitable
            await self._close_async()
            return result
        finally:
            self.over()

    def _stepped(self, generator: Generator[Any, Any, Any]) -> Generator[Any, Any, Any]:
        step = functools.partial(next, generator)
        try:
            while True:
                try:
                    with self._active():
                        item = step()
                except StopIteration as end:
                    self._close()
                    return end.value
                try:
                    step = functools.partial(generator.send, (yield item))
                except GeneratorExit:
                    raise
                except BaseException as error:
                    step = functools.partial(generator.throw, error)
        finally:
            with self._active():
                generator.close()
            self.over()

    async def _stepped_async(self, generator: AsyncGenerator[Any, Any]) -> AsyncGenerator[Any, Any]:
        step: Callable[[], Awaitable[Any]] = generator.__anext__
        try:
            while True:
                try:
                    with self._active():
                        item = await step()
                except StopAsyncIteration:
                    await self._close_async()
                    return
                try:
                    step = functools.partial(generator.asend, (yield item))
                except GeneratorExit:
                    raise
                except BaseException as error:
                    step = functools.partial(generator.athrow, error)
        finally:
            with self._active():
                await generator.aclose()
            self.over()

    def _active(self) -> AbstractContextManager[object]:
        return nullcontext() if self._scope is None else activate(self._scope)

    def _done(self, future: Any) -> None:
        """A future is done; on an event loop's thread its branches are closed by another one."""
        if future.cancelled() or future.exception() is not None or not self._has_branches():
            self.over()
        elif asyncio._get_running_loop() is None:
            self.result(None)
        else:
            asyncio.get_running_loop().run_in_executor(None, self.result, None)

    def _has_branches(self) -> bool:
        return self._close_task is not None and self._scope is not None and bool(self._scope.tasks)

    def _close(self) -> None:
        if self._close_task is not None and self._scope is not None and self._scope.tasks:
            self._close_task(self._scope)

    async def _close_async(self) -> None:
        if self._has_branches():
            await asyncio.to_thread(self._close)


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
    """An executor around this one whose work runs in the scope in which it was submitted.

    What a future's `add_done_callback` calls runs outside of it, as it does with `carry`. Raises ConfigurationError for
    a pool of processes, into which no scope can be taken.
    """
    if isinstance(executor, ProcessPoolExecutor):
        raise ConfigurationError(
            "a scope cannot be carried into another process: give the function antipode.serialize(), open a scope with "
            "it there, return what serialize() says at its end, and transfer() that where the result comes",
            code="AP117",
        )
    return _CarryingExecutor(executor)
