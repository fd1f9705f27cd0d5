"""Waiting at a replica that takes writes all the time: what it is asked, and how soon barriers wake up (BAR-66)."""

from __future__ import annotations

import asyncio
import time
from bisect import bisect_left
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from multiprocessing import get_context
from multiprocessing.connection import Connection
from multiprocessing.synchronize import Event
from typing import Final, NamedTuple

import antipode
from antipode import Lineage
from antipode._model.write_id import Ordered, WriteId
from antipode_lab.processes import wait_until

from antipode_benchmarks.micro.figures import Figure, rank

STORE: Final = "blog-posts"
RATE: Final = 2000
"""Writes a second at the primary, of others."""
LAG: Final = "60ms"
CROWD: Final = 1000
"""So many barriers wait all the time, for a position that is far ahead."""
EVERY_S: Final = 0.1
"""So often one more comes, for what was just written…"""
MESSAGE_S: Final = 0.01
"""…so long behind the write."""
LOOK_S: Final = 0.0005
"""So often the observer looks how far the replica is."""
_FAR: Final = 10**12
_SETTLE_S: Final = 1.5
_DEADLINE_S: Final = 10.0


class Look(NamedTuple):
    """How far the replica was, in nanoseconds from when and until when it was looked at."""

    began: int
    ended: int
    position: int


Task = Callable[[str, Event, Connection], None]
"""What another process does: where, until when, and where its answer goes."""


@dataclass(frozen=True)
class Place:
    """A store that takes writes, and what is known of its replica."""

    name: str
    primary: str
    observed: str
    """Where the observer looks."""
    load: Task
    observe: Task
    write: Callable[[], object]
    """Writes once, by a wrapped client."""
    count: Callable[[], int]
    """How often the replica was asked where it is, beside by the observer."""
    most_questions: float
    most_ms: float


@contextmanager
def _elsewhere(task: Task, url: str) -> Iterator[Callable[[], list[Look]]]:
    """Run a task in a process of its own; gives what ends it and returns its answer."""
    context = get_context("spawn")
    over, (here, there) = context.Event(), context.Pipe()
    process = context.Process(target=task, args=(url, over, there), daemon=True)
    process.start()

    def end() -> list[Look]:
        over.set()
        found: list[Look] = here.recv() if here.poll(_DEADLINE_S) else []
        return found

    try:
        wait_until("the process has begun", lambda: here.poll(0) or not process.is_alive())
        here.recv()
        yield end
    finally:
        over.set()
        process.join(_DEADLINE_S)
        if process.is_alive():
            process.kill()


def figures(place: Place, seconds: float) -> Iterator[Figure]:
    """The figures of one store; it is registered, and its load is not there yet."""
    with _elsewhere(place.load, place.primary), _elsewhere(place.observe, place.observed) as looks:
        questions, waits = asyncio.run(_wait(place, seconds))
        seen = looks()
    least, most = _delays(waits, seen)
    what = f"{place.name} at {RATE:,} writes a second, {LAG} behind"
    beside = {"barriers_per_s": 1 / EVERY_S, "barriers": len(waits)}
    yield Figure(
        f"requests_1000_waiting_busy_{place.name.lower()}",
        f"questions to a replica of {what}, while {CROWD:,} barriers wait",
        "/s",
        questions,
        at_most=place.most_questions,
        beside=beside,
    )
    for share, at_most in ((50, place.most_ms), (99, None)):
        yield Figure(
            f"wake_up_busy_{place.name.lower()}_p{share}",
            f"{share} % of barriers are awake so soon after {what}, has the write",
            "ms",
            rank(least, share / 100),
            at_most=at_most,
            beside={"after_it_had_not": rank(most, share / 100)},
        )


def _delays(waits: Sequence[tuple[int, int]], looks: Sequence[Look]) -> tuple[list[float], list[float]]:
    """Return in milliseconds how long after the first look that showed a write, and after the last that did not."""
    positions = [look.position for look in looks]
    least, most = [], []
    for wanted, woken in waits:
        place = bisect_left(positions, wanted)
        least.append((woken - looks[place].ended) / 1e6)
        most.append((woken - looks[max(place - 1, 0)].began) / 1e6)
    return least, most


async def _wait(place: Place, seconds: float) -> tuple[float, list[tuple[int, int]]]:
    """Return how often the replica is asked a second, and of each barrier for which position, and when it was awake."""
    waits: list[tuple[int, int]] = []

    async def come() -> None:
        lineage = await asyncio.to_thread(_written, place)
        await asyncio.sleep(MESSAGE_S)
        await antipode.barrier_async(lineage, timeout=_DEADLINE_S)
        woken = time.monotonic_ns()
        waits.append((_position(lineage).counter, woken))

    epoch, counter = _position(await asyncio.to_thread(_written, place))
    far = Lineage([WriteId.position(STORE, epoch, counter + _FAR)])
    crowd = [asyncio.create_task(antipode.barrier_async(far, timeout=60.0)) for _ in range(CROWD)]
    store = next(each for each in antipode.stores() if each.name == STORE)
    while store.parked_tasks < CROWD:
        await asyncio.sleep(0.01)
    coming, first, begun = [], 0, time.monotonic()
    asked = 0.0
    until = begun + _SETTLE_S + seconds
    while (now := time.monotonic()) < until:
        if not asked and now - begun >= _SETTLE_S:
            first, asked = await asyncio.to_thread(place.count), time.monotonic()
            waits.clear()
        coming.append(asyncio.create_task(come()))
        await asyncio.sleep(max(begun + len(coming) * EVERY_S - time.monotonic(), 0.0))
    last = await asyncio.to_thread(place.count)
    rate = (last - first) / (time.monotonic() - asked)
    await asyncio.gather(*coming)
    for each in crowd:
        each.cancel()
    await asyncio.gather(*crowd, return_exceptions=True)
    return rate, waits


def _written(place: Place) -> Lineage:
    with antipode.scope() as scope:
        place.write()
        return scope.lineage


def _position(lineage: Lineage) -> Ordered:
    (write_id,) = lineage.of_store(STORE)
    assert isinstance(write_id.version, Ordered)
    return write_id.version
