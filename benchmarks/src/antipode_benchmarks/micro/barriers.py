"""Barriers in one process, on the embedded store: nothing to wait for, and many waiters released at once."""

from __future__ import annotations

import asyncio
import gc
import threading
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from typing import Any

import antipode
import antipode.memory
from antipode import Lineage
from antipode._base import observers
from antipode._engine import pending_wait
from antipode._engine.pending_wait import WaitGroup
from antipode._model.result import BarrierTimeout

from antipode_benchmarks.micro.figures import Figure, spread_of
from antipode_benchmarks.micro.process import fresh

CALLS = 500
DEADLINE_S = 60.0


def figures(rounds: int, *, tasks: int, threads: int) -> Iterator[Figure]:
    """All figures of this group."""
    for stores in (1, 3):
        with fresh():
            yield from _free(rounds, stores)
    with fresh():
        yield _fresh(rounds)
    with fresh():
        yield _release_tasks(tasks)
    with fresh():
        yield _release_threads(threads)


def _store(name: str, lag: float = 0.0) -> antipode.memory.Store:
    return antipode.memory.Store(name, regions=["a", "b"], lag=lag)


def _written(count: int) -> list[antipode.memory.Store]:
    """Stores that were written to in the current scope; a barrier on all of them has passed."""
    stores = [_store(f"blog-store-{n}") for n in range(count)]
    for store in stores:
        store.client("a").set("post:42", b"hi")
        store.client("b")
    antipode.barrier(timeout=DEADLINE_S)
    return stores


def _free(rounds: int, stores: int) -> Iterator[Figure]:
    """Repeating a barrier of a scope whose proofs are fresh."""
    barrier = antipode.barrier
    with antipode.scope():
        _written(stores)
        freely, calls = observers.barriers["free"], 0
        times = []
        for _ in range(rounds):
            barrier(timeout=DEADLINE_S)  # whatever the pause between rounds did to the watermark
            start = time.thread_time_ns()
            for _ in range(CALLS):
                barrier()
            times.append((time.thread_time_ns() - start) / 1000 / CALLS)
            calls += CALLS
        share = (observers.barriers["free"] - freely) / (calls + rounds)
    yield Figure(
        f"barrier_satisfied_{stores}",
        f"a satisfied barrier on {stores} store{'s'[: stores > 1]}, repeated in its scope",
        "us",
        spread_of(times, 50)["p50"],
        spread_of(times, 10, 50, 90),
        at_most=3.0 if stores == 1 else None,
        beside={"share_without_io": share},
    )


def _fresh(rounds: int) -> Figure:
    """The first barrier of each request: its own lineage, a position that is known to be applied."""
    with antipode.scope() as scope:
        _written(1)
        text = scope.lineage.serialize()
    times = []
    for _ in range(rounds):
        scopes = [Lineage.deserialize(text) for _ in range(CALLS)]
        with antipode.scope(scopes[0]):
            antipode.barrier(timeout=DEADLINE_S)
        start = time.thread_time_ns()
        for lineage in scopes:
            antipode.barrier(lineage)
        times.append((time.thread_time_ns() - start) / 1000 / CALLS)
    return Figure(
        "barrier_first_1",
        "the first barrier on a fresh lineage of 1 store whose position is known to be applied",
        "us",
        spread_of(times, 50)["p50"],
        spread_of(times, 10, 50, 90),
    )


def _parked(store: antipode.memory.Store, expected: int) -> Callable[[], bool]:
    """Whether so many barriers wait at the store now."""
    registered = next(each for each in antipode.stores() if each.name == store.name)
    return lambda: registered.parked_tasks + registered.parked_threads >= expected


def _release_tasks(count: int) -> Figure:
    """So many asyncio barriers of as many requests wait at one store, for one write; then it arrives."""
    antipode.configure(max_tasks=max(count, 20_000))
    store = _store("blog-posts")
    writer = store.client("a")
    store.client("b")
    with antipode.scope() as scope:
        writer.set("warm", b"up")
        antipode.barrier(timeout=DEADLINE_S)
        store.freeze("b")
        writer.set("post:42", b"hi")
        text = scope.lineage.serialize()

    async def request() -> float:
        with antipode.scope(Lineage.deserialize(text)):
            await antipode.barrier_async(timeout=DEADLINE_S)
        return time.perf_counter()

    async def run() -> tuple[float, float, list[float]]:
        waiting = [asyncio.create_task(request()) for _ in range(count)]
        parked = _parked(store, count)
        deadline = time.monotonic() + DEADLINE_S
        while not parked():
            if time.monotonic() > deadline:
                raise BarrierTimeout("the barriers were not parked in time")
            await asyncio.sleep(0.01)
        gc.collect()  # at a known time: a full collection takes longer than the release, and falls anywhere
        with _noting_releases() as released:
            # From a thread of its own, as a push comes: the event loop is idle then.
            pushed = await asyncio.to_thread(_heal, store)
            ends = await asyncio.gather(*waiting)
        return pushed, released[-1], ends

    pushed, released, ends = asyncio.run(run())
    returns = [(end - pushed) * 1000 for end in ends]
    return _released("release_tasks", f"{count:,} asyncio barriers", (released - pushed) * 1000, returns, 100.0)


@contextmanager
def _noting_releases() -> Iterator[list[float]]:
    """The times at which the engine had let tasks go: their futures are done, and none of them has run yet."""
    times: list[float] = []
    engine: Any = pending_wait
    release = engine._release_in_loop

    def noted(groups: list[WaitGroup]) -> None:
        release(groups)
        times.append(time.perf_counter())

    engine._release_in_loop = noted
    try:
        yield times
    finally:
        engine._release_in_loop = release


def _release_threads(count: int) -> Figure:
    """So many blocking barriers, a thread each."""
    antipode.configure(max_waiters=max(count, 1000))
    store = _store("blog-posts")
    writer = store.client("a")
    store.client("b")
    with antipode.scope() as scope:
        writer.set("warm", b"up")
        antipode.barrier(timeout=DEADLINE_S)
        store.freeze("b")
        writer.set("post:42", b"hi")
        lineage = scope.lineage
    ends: list[float] = []

    def request() -> None:
        with antipode.scope(lineage):
            antipode.barrier(timeout=DEADLINE_S)
        ends.append(time.perf_counter())

    threads = [threading.Thread(target=request, daemon=True) for _ in range(count)]
    for thread in threads:
        thread.start()
    parked = _parked(store, count)
    deadline = time.monotonic() + DEADLINE_S
    while not parked():
        if time.monotonic() > deadline:
            raise BarrierTimeout("the barriers were not parked in time")
        time.sleep(0.01)
    pushed = _heal(store)
    for thread in threads:
        thread.join(DEADLINE_S)
    if len(ends) != count:
        raise BarrierTimeout(f"{count - len(ends)} barriers were not released")
    returns = [(end - pushed) * 1000 for end in ends]
    return _released("release_threads", f"{count:,} blocking barriers, a thread each,", max(returns), returns, None)


def _heal(store: antipode.memory.Store) -> float:
    pushed = time.perf_counter()
    store.heal("b")
    return pushed


def _released(name: str, whose: str, released: float, returns: list[float], at_most: float | None) -> Figure:
    return Figure(
        name,
        f"{whose} parked on one store: from the push until all are released",
        "ms",
        released,
        at_most=at_most,
        beside={f"returned_{share}": value for share, value in spread_of(returns, 50, 100).items()},
    )
