"""Taking the scope along into threads, executors, tasks and detached work (SCOPE-7, SCOPE-11, SCOPE-12)."""

from __future__ import annotations

import asyncio
import inspect
import threading
import time
from collections.abc import AsyncIterator, Awaitable, Callable, Generator, Iterator
from concurrent.futures import ProcessPoolExecutor, ThreadPoolExecutor
from typing import Any

import antipode
import pytest
from antipode import Lineage, Scope, WriteId
from antipode._model.branch_ids import branches_of
from branching import World


def at(counter: int, store: str = "posts") -> WriteId:
    return WriteId.position(store, "e", counter)


def text() -> str | None:
    scope = antipode.current_scope()
    return None if scope is None else scope.lineage.serialize()


def is_open(scope: Scope) -> bool:
    return not scope.closed


def test_a_thread_inherits_nothing_and_carry_brings_it() -> None:
    seen: list[str | None] = []
    with antipode.scope(Lineage([at(1)])) as scope:
        for target in (lambda: seen.append(text()), antipode.carry(lambda: seen.append(text()))):
            thread = threading.Thread(target=target)
            thread.start()
            thread.join(30)
        thread = threading.Thread(target=antipode.carry(antipode.append), args=(at(2),))
        thread.start()
        thread.join(30)
        assert scope.lineage.serialize() == "1~posts..e.2"
    assert seen == [None, "1~posts..e.1"]


def test_carry_passes_arguments_and_results_and_restores_the_threads_own_scope() -> None:
    with antipode.scope(Lineage([at(1)])):
        carried = antipode.carry(lambda a, *, b: (a, b, text()))

    def fails() -> None:
        raise KeyError("no")

    with antipode.scope(Lineage([at(7)])):
        carried_failing = antipode.carry(fails)
        assert carried(1, b=2) == (1, 2, "1~posts..e.1~_.i")  # its scope has ended (SCOPE-34)
        assert text() == "1~posts..e.7"
        with pytest.raises(KeyError):
            carried_failing()
        assert text() == "1~posts..e.7"


def test_one_carried_function_may_run_in_many_threads_at_once() -> None:
    together = threading.Barrier(4)
    with antipode.scope() as scope, ThreadPoolExecutor(4) as pool:

        def work(n: int) -> None:
            together.wait(30)
            antipode.append(at(n, f"s{n}"))

        list(pool.map(antipode.carry(work), range(4), timeout=60))
        assert sorted(scope.lineage.stores) == ["s0", "s1", "s2", "s3"]


def test_no_scope_goes_into_another_process() -> None:
    """SCOPE-12: it is refused where it is asked for, with the way round; pickle's own error names none."""
    with ProcessPoolExecutor(1) as pool, pytest.raises(antipode.ConfigurationError, match="AP117"):
        antipode.carry_all(pool)


def test_carry_all_wraps_an_executor() -> None:
    with antipode.carry_all(ThreadPoolExecutor(2)) as pool:
        with antipode.scope() as first:
            pool.submit(antipode.append, at(1)).result(30)
            list(pool.map(antipode.append, [at(2, "a"), at(3, "b")], timeout=30))
        with antipode.scope() as second:
            pool.submit(antipode.append, at(9)).result(30)
        assert pool.submit(text).result(30) is None
    assert first.lineage.serialize() == "1~a..e.2~b..e.3~posts..e.1"
    assert second.lineage.serialize() == "1~posts..e.9"


def test_carry_outside_any_scope_runs_outside() -> None:
    carried = antipode.carry(text)
    with antipode.scope():
        assert carried() is None


async def test_a_carried_coroutine_runs_in_its_scope() -> None:
    async def work() -> str | None:
        await asyncio.sleep(0)
        antipode.append(at(2))
        return text()

    with antipode.scope(Lineage([at(1)])) as scope:
        carried = antipode.carry(work)
    with antipode.scope(), antipode.scope(Lineage([at(7)])):
        assert await asyncio.create_task(carried()) == "1~posts..e.1~_.i"  # it has ended, and is current (SCOPE-34)
    assert scope.lineage.serialize() == "1~posts..e.1~_.i.posts"  # the append was dropped (SCOPE-4)


def test_a_detached_scope_is_a_copy() -> None:
    """SCOPE-7: later changes of either do not show in the other."""
    with antipode.scope(Lineage([at(1)])) as outer:
        with antipode.detached_scope() as detached:
            antipode.append(at(5))
        outer.append(at(3))
        assert detached.lineage.serialize() == "1~posts..e.5"
        assert outer.lineage.serialize() == "1~posts..e.3"


def test_a_detached_scope_stays_open_until_the_work_that_carries_it_has_ended() -> None:
    """SCOPE-12: work that outlives the request still records what it writes."""
    go, jobs = threading.Event(), []

    def work(n: int) -> None:
        assert go.wait(30)
        antipode.append(at(n, f"s{n}"))

    with antipode.scope() as outer:
        with antipode.detached_scope() as detached:
            for n in range(2):
                jobs.append(threading.Thread(target=antipode.carry(work), args=(n,)))
                jobs[-1].start()
    assert outer.closed
    assert is_open(detached)
    go.set()
    for job in jobs:
        job.join(30)
    assert detached.closed
    assert sorted(detached.lineage.stores) == ["s0", "s1"]


def test_a_detached_scope_closes_also_when_the_work_fails_and_a_second_run_does_not_open_it() -> None:
    def fails() -> None:
        raise KeyError("no")

    with antipode.detached_scope() as detached:
        carried = antipode.carry(fails)
    assert is_open(detached)
    for _ in range(2):
        with pytest.raises(KeyError):
            carried()
        assert detached.closed


async def test_a_detached_scope_with_asyncio() -> None:
    begun, go = asyncio.Event(), asyncio.Event()

    async def work() -> None:
        begun.set()
        await go.wait()
        antipode.append(at(4))

    with antipode.scope():
        with antipode.detached_scope() as detached:
            task = asyncio.create_task(antipode.carry(work)())
    await begun.wait()
    assert is_open(detached)
    go.set()
    await task
    assert detached.closed
    assert detached.lineage.serialize() == "1~posts..e.4"


def test_a_detached_scope_outside_any_scope_is_empty() -> None:
    with antipode.detached_scope() as detached:
        antipode.append(at(1))
    assert detached.lineage.serialize() == "1~posts..e.1"


def test_carried_methods_keep_their_names() -> None:
    def resize() -> None:
        """Makes it smaller."""

    carried = antipode.carry(resize)
    assert (carried.__name__, carried.__doc__) == ("resize", "Makes it smaller.")


class Caller:
    """An object whose call is a coroutine, as a class-based handler's is."""

    async def __call__(self) -> None:
        await asyncio.sleep(0)
        antipode.append(at(1, "inside"))


async def job() -> None:
    await Caller()()


def plain() -> Awaitable[None]:
    return job()


def steps() -> Iterator[int]:
    yield 1
    antipode.append(at(1, "inside"))


async def async_steps() -> AsyncIterator[int]:
    yield 1
    antipode.append(at(1, "inside"))


DRIVEN = threading.Event()
"""Holds back what `begun` began, which runs by itself whenever the loop turns."""


async def job_when_driven() -> None:
    while not DRIVEN.is_set():
        await asyncio.sleep(0.001)
    await job()


def begun() -> asyncio.Future[None]:
    DRIVEN.clear()
    return asyncio.ensure_future(job_when_driven())


async def drive(returned: Any) -> None:
    DRIVEN.set()
    if inspect.isgenerator(returned):
        assert list(returned) == [1]
    elif inspect.isasyncgen(returned):
        assert [item async for item in returned] == [1]
    else:
        await returned


LATER: list[Callable[[], Any]] = [job, Caller(), plain, steps, async_steps, begun]


@pytest.mark.parametrize("function", LATER, ids=["async", "object", "plain", "generator", "async generator", "future"])
async def test_what_a_carried_function_returns_runs_in_its_scope(function: Callable[[], Any]) -> None:
    """BRANCH-26: whichever scope is current where it is driven; a detached one stays open until then (SCOPE-12)."""
    with antipode.scope():
        with antipode.detached_scope() as detached:
            carried = antipode.carry(function)
        assert is_open(detached)
    with antipode.scope() as other:
        returned = carried()
        assert is_open(detached)
        await drive(returned)
        assert other.lineage == Lineage()
    await asyncio.sleep(0)  # a future's callbacks
    assert detached.lineage == Lineage([at(1, "inside")])
    assert detached.closed


@pytest.mark.parametrize("function", LATER, ids=["async", "object", "plain", "generator", "async generator", "future"])
async def test_a_branch_is_closed_when_what_a_carried_function_returned_is_over(function: Callable[[], Any]) -> None:
    """BRANCH-26: it is the task; closed before it ran, a barrier would pass its writes."""
    World()
    with antipode.scope() as scope:
        with antipode.branch(within=60):
            carried = antipode.carry(function)
        returned = carried()
        assert (await antipode.barrier_async(timeout=0, on_timeout="proceed", on_unproven="proceed")).satisfied is False
        await drive(returned)
        end = time.monotonic() + 60
        while "inside" not in scope.lineage.stores:
            assert time.monotonic() < end
            await antipode.barrier_async(timeout=0.1, on_timeout="proceed", on_unproven="proceed")
        assert not branches_of(scope.lineage)


async def test_a_branch_stays_open_where_what_was_returned_fails() -> None:
    """BRANCH-9, BRANCH-26."""
    World()

    async def fails(word: str) -> None:
        raise KeyError(word)

    def fails_in_steps() -> Iterator[int]:
        yield 1
        raise KeyError("no")

    with antipode.scope() as scope:
        with antipode.branch(within=60):
            first, second = antipode.carry(lambda: fails("no")), antipode.carry(fails_in_steps)
            third = antipode.carry(lambda: asyncio.ensure_future(fails("no")))
        for returned in (first(), third()):
            with pytest.raises(KeyError):
                await returned
        with pytest.raises(KeyError):
            list(second())
        await antipode.barrier_async(timeout=0.5, on_timeout="proceed", on_unproven="proceed")
        assert len(branches_of(scope.lineage)) == 3


@pytest.mark.parametrize("helper", [lambda: None, job], ids=["plain", "coroutine"])
def test_a_function_carried_from_a_task_leaves_its_branch_open(helper: Callable[[], Any]) -> None:
    """BRANCH-9: the branch is the task's own to close; the row of its helper would hide what it writes afterwards."""
    world = World()

    def run_helper() -> None:
        returned = antipode.carry(helper)()
        if returned is not None:
            asyncio.run(returned)
        antipode.append(at(2, "after"))

    task, mine = world.hand_over()
    with antipode.message_scope(task) as scope:
        run_helper()
        assert scope.tasks
        antipode.close()
    assert "after" in resolved(mine).stores
    with antipode.scope() as sender:
        with antipode.branch(within=60):
            carried = antipode.carry(run_helper)
        carried()
        assert "after" in resolved(sender.lineage.serialize()).stores


def resolved(text: str) -> Lineage:
    """Return a lineage with what its branches wrote, once all of them are closed."""
    with antipode.scope(Lineage.deserialize(text)) as scope:
        end = time.monotonic() + 60
        while branches_of(scope.lineage):
            assert time.monotonic() < end
            antipode.barrier(timeout=0.1, on_timeout="proceed", on_unproven="proceed")
        return scope.lineage


class Opening(Awaitable[str]):
    """What many clients return: it is awaited, or opened by `async with`."""

    def __await__(self) -> Generator[Any, None, str]:
        yield from asyncio.sleep(0).__await__()
        return "open"

    async def __aenter__(self) -> str:
        return await self

    async def __aexit__(self, *_: object) -> None:
        pass


async def test_an_awaitable_that_is_no_coroutine_stays_what_it_is() -> None:
    """SCOPE-7: `async with carry(session.get)(url)`; the task of a branch ends with it all the same (BRANCH-26)."""
    returned = Opening()
    assert antipode.carry(lambda: returned)() is returned
    with antipode.scope():
        carried = antipode.carry(lambda: returned)
    async with carried() as opened:
        assert opened == await carried() == "open"
    with antipode.detached_scope() as detached:
        carried = antipode.carry(lambda: returned)
    assert carried() is returned
    assert detached.closed
    World()
    with antipode.scope():
        with antipode.branch(within=60):
            carried = antipode.carry(lambda: returned)
        assert await carried() == "open"
        result = await antipode.barrier_async(timeout=10)
        assert result.complete


def test_a_carried_generator_is_sent_to_and_thrown_into() -> None:
    """SCOPE-12: it stays the generator that it was."""
    heard: list[object] = []

    def talk() -> Generator[str | None, str, str]:
        heard.append((yield text()))
        try:
            yield text()
        except KeyError as error:
            heard.append(error.args[0])
        yield text()
        return "end"

    with antipode.scope(Lineage([at(7)])):
        generator = antipode.carry(talk)()
    mine = Lineage([at(7)]).marked_incomplete().serialize()  # its scope has ended (SCOPE-34)
    assert next(generator) == mine
    assert generator.send("hi") == mine
    assert generator.throw(KeyError("thrown")) == mine
    with pytest.raises(StopIteration, match="end"):
        next(generator)
    assert heard == ["hi", "thrown"]
