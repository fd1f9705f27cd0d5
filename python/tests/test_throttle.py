"""Throttles with threads, tasks, barriers and a server (spec THR)."""

from __future__ import annotations

import asyncio
import os
import threading
import time
from collections.abc import Callable, Iterator
from concurrent.futures import ThreadPoolExecutor
from typing import Any

import antipode
import antipode.memory
import antipode.throttle
import pytest
from antipode._base.observers import events
from antipode.throttle import ExploringOptions, FixedLimit, Throttle, Throttled, throttle
from collected import Collected, installed_sdk

PATIENCE_S = 60.0


def until(condition: Callable[[], object]) -> None:
    deadline = time.monotonic() + PATIENCE_S
    while not condition():
        assert time.monotonic() < deadline
        time.sleep(0.002)


@pytest.fixture
def told(monkeypatch: pytest.MonkeyPatch) -> list[tuple[str, str, float]]:
    found: list[tuple[str, str, float]] = []
    monkeypatch.setattr(events, "on_request_throttled", lambda *event: found.append(event))
    return found


@pytest.fixture
def occupied() -> Iterator[Callable[[Throttle, int], Callable[[], None]]]:
    """Take some permits by threads, until what it returns is called."""
    with ThreadPoolExecutor(64) as pool:
        releases: list[threading.Event] = []

        def occupy(limits: Throttle, number: int) -> Callable[[], None]:
            free = threading.Event()
            releases.append(free)
            before = limits.inflight

            def run() -> None:
                with limits.permit():
                    free.wait(PATIENCE_S)

            for _ in range(number):
                pool.submit(run)
            until(lambda: limits.inflight == before + number)
            return free.set

        yield occupy
        for free in releases:
            free.set()


def small(**options: Any) -> Throttle:
    return Throttle("orders", limit=FixedLimit(2), **options)


def test_who_comes_waits_for_a_permit(occupied: Any, told: list[Any]) -> None:
    """THR-1."""
    limits = small(max_wait=PATIENCE_S)
    free = occupied(limits, 2)
    with ThreadPoolExecutor(1) as pool:
        waiting = pool.submit(throttle(limits)(lambda: limits.inflight))
        until(lambda: limits.queued == 1)
        free()
        assert waiting.result(PATIENCE_S) <= 2
    until(lambda: limits.inflight == 0)
    assert [outcome for _, outcome, _ in told] == ["admitted"] * 3
    assert told[-1][2] > 0


@pytest.mark.parametrize("outcome", ["expired", "queue_full"])
def test_who_is_refused_is_told_when_to_come_again(occupied: Any, told: list[Any], outcome: str) -> None:
    """THR-1, THR-6."""
    limits = small(max_queue=0 if outcome == "queue_full" else 5, max_wait=0.05)
    occupied(limits, 2)
    with pytest.raises(Throttled) as raised, limits.permit():
        pytest.fail("it has no permit")
    assert (raised.value.outcome, raised.value.code) == (outcome, "AP801")
    assert raised.value.retry_after >= 1
    assert limits.queued == 0
    assert told[-1][:2] == ("orders", outcome)


def test_its_own_deadline_ends_the_wait(occupied: Any) -> None:
    """THR-1: the caller's, or the request's."""
    limits = small(max_wait=PATIENCE_S)
    occupied(limits, 2)
    began = time.monotonic()
    with pytest.raises(Throttled), limits.permit(timeout=0.02):
        pytest.fail("it has no permit")
    with antipode.scope() as opened:
        opened.deadline = time.monotonic() + 0.02
        with pytest.raises(Throttled), limits.permit():
            pytest.fail("it has no permit")
    assert time.monotonic() - began < PATIENCE_S / 2


def test_what_is_protected_is_not_shed(occupied: Any) -> None:
    """THR-2."""
    limits = small(protect=lambda request: request == "compensation", max_wait=0.02)
    limits._pie.probability, limits._pie.state = 1.0, "expired"
    occupied(limits, 2)
    assert limits.shedding == 1.0
    with pytest.raises(Throttled) as raised, limits.permit(request="order"):
        pytest.fail("it has no permit")
    assert raised.value.outcome == "shed"
    with pytest.raises(Throttled) as raised, limits.permit(request="compensation"):
        pytest.fail("it has no permit")
    assert raised.value.outcome == "expired"


def test_ticks_come_and_end(occupied: Any) -> None:
    """THR-3: by a thread that ends when there is nothing to do."""
    ticks: list[tuple[bool, int, float]] = []

    class Noting(FixedLimit):
        def tick(self, queued: bool, done: int, mean: float, seconds: float, now: float) -> None:
            ticks.append((queued, done, mean))

    limits = Throttle("orders", limit=Noting(2), interval=0.02)
    free = occupied(limits, 2)
    until(lambda: len(ticks) > 2)
    free()
    until(lambda: limits._thread is None)
    assert sum(done for _, done, _ in ticks) == 2
    assert all(mean > 0 for _, done, mean in ticks if done)
    with limits.permit():  # and comes again
        until(lambda: limits._thread is not None)


class Replica:
    """A store whose replica gets nothing until it is healed."""

    def __init__(self) -> None:
        self.store = antipode.memory.Store("posts", regions=["a", "b"])
        self.store.client("b")
        self.store.freeze("b")
        with antipode.scope() as opened:
            self.store.client("a").set("k", "v")
            self.lineage = opened.lineage


def test_a_barrier_that_waits_gives_the_permit_back(occupied: Any) -> None:
    """THR-4: whoever waits does no work, and its wait is no service time."""
    replica, limits = Replica(), small(max_wait=PATIENCE_S)

    @throttle(limits)
    def request() -> int:
        antipode.barrier(replica.lineage, timeout=PATIENCE_S)
        return limits.inflight

    with ThreadPoolExecutor(8) as pool:
        waiting = [pool.submit(request) for _ in range(5)]
        until(lambda: limits.parked == 5)
        assert (limits.inflight, limits.queued) == (0, 0)
        free = occupied(limits, 2)
        replica.store.heal("b")
        assert max(each.result(PATIENCE_S) for each in waiting) >= 3  # above the limit
        free()
    until(lambda: limits.inflight == limits.parked == 0)


def test_a_barrier_of_a_task_gives_the_permit_back() -> None:
    """THR-4, for tasks: of two barriers at once the first gives it back, and the last takes it."""
    replica, limits = Replica(), small(max_wait=PATIENCE_S)

    async def request() -> None:
        async with limits.permit_async():
            one = asyncio.create_task(antipode.barrier_async(replica.lineage, timeout=PATIENCE_S))
            other = asyncio.create_task(antipode.barrier_async(replica.lineage, timeout=0.05, on_timeout="proceed"))
            await other
            assert (limits.parked, limits.inflight) == (1, 0)
            replica.store.heal("b")
            await one
            assert (limits.parked, limits.inflight) == (0, 1)

    asyncio.run(asyncio.wait_for(request(), PATIENCE_S))
    assert (limits.parked, limits.inflight) == (0, 0)


def test_a_barrier_gives_the_permits_of_all_throttles_back() -> None:
    """THR-4: a request may have passed several, as of its server and of one function."""
    replica, outer, inner = Replica(), small(), small()

    def request() -> None:
        with outer.permit(), inner.permit():
            antipode.barrier(replica.lineage, timeout=PATIENCE_S)
            assert (outer.inflight, inner.inflight) == (1, 1)

    with ThreadPoolExecutor(1) as pool:
        waiting = pool.submit(request)
        until(lambda: (outer.parked, inner.parked) == (1, 1))
        replica.store.heal("b")
        waiting.result(PATIENCE_S)
    assert [(each.inflight, each.parked) for each in (outer, inner)] == [(0, 0), (0, 0)]


def test_a_free_barrier_touches_no_permit(monkeypatch: pytest.MonkeyPatch) -> None:
    """THR-4."""
    store, limits = antipode.memory.Store("posts", regions=["a"]), small()
    parked: list[object] = []
    monkeypatch.setattr(limits, "_park", parked.append)
    with antipode.scope(), limits.permit():
        store.client("a").set("k", "v")
        antipode.barrier()
        count = len(parked)
        assert antipode.barrier().satisfied
    assert len(parked) == count


@pytest.mark.parametrize("end", ["cancelled", "barrier"])
def test_a_cancelled_task_leaves_nothing(end: str) -> None:
    replica, limits = Replica(), small(max_wait=PATIENCE_S)

    async def request() -> None:
        async with limits.permit_async():
            await antipode.barrier_async(replica.lineage, timeout=PATIENCE_S)

    async def run() -> None:
        if end == "cancelled":
            async with limits.permit_async(), limits.permit_async():
                task = asyncio.create_task(request())
                while limits.queued != 1:
                    await asyncio.sleep(0.002)
                task.cancel()
                await asyncio.wait([task])
        else:
            task = asyncio.create_task(request())
            while limits.parked != 1:
                await asyncio.sleep(0.002)
            task.cancel()
            await asyncio.wait([task])

    asyncio.run(asyncio.wait_for(run(), PATIENCE_S))
    assert (limits.inflight, limits.parked, limits.queued) == (0, 0, 0)


def test_thousands_of_requests_never_pass_the_limit() -> None:
    """THR-1, from threads and from tasks of two loops at once."""
    limits = Throttle("orders", limit=FixedLimit(7), max_queue=100_000, max_wait=PATIENCE_S)
    most, running, lock = [0], [0], threading.Lock()

    def work() -> None:
        with lock:
            running[0] += 1
            most[0] = max(most[0], running[0])
        time.sleep(0.0001)
        with lock:
            running[0] -= 1

    async def task() -> None:
        async with limits.permit_async():
            work()
            await asyncio.sleep(0)

    async def tasks() -> None:
        await asyncio.gather(*(task() for _ in range(500)))

    with ThreadPoolExecutor(16) as pool:
        calls = [pool.submit(throttle(limits)(work)) for _ in range(1000)]
        calls += [pool.submit(asyncio.run, tasks()) for _ in range(2)]
        for call in calls:
            call.result(PATIENCE_S)
    assert 1 < most[0] <= 7
    assert (limits.inflight, limits.queued) == (0, 0)


def test_dry_run_decides_and_refuses_nothing(occupied: Any, told: list[Any]) -> None:
    """THR-9."""
    limits = small(mode="dry-run", max_queue=1, max_wait=PATIENCE_S)
    free = occupied(limits, 2)
    with limits.permit(), limits.permit():
        assert (limits.inflight, limits.queued) == (2, 1)
        assert [outcome for _, outcome, _ in told] == ["admitted", "admitted", "queue_full"]
        free()
        until(lambda: limits.queued == 0)  # it would run now
        assert limits.inflight == 1
    assert [outcome for _, outcome, _ in told][3:] == ["admitted"]
    assert limits.inflight == 0


def test_off_does_nothing(told: list[Any]) -> None:
    """THR-9."""
    antipode.configure(mode="off")
    limits = small()
    with limits.permit(), limits.permit(), limits.permit():
        assert limits.inflight == 0
    assert told == []


def test_a_child_of_a_fork_begins_with_no_request(occupied: Any) -> None:
    limits = small(max_wait=PATIENCE_S)
    occupied(limits, 1)
    with limits.permit():
        pid = os.fork()
        if pid == 0:
            code = 1
            try:
                is_empty = (limits.inflight, limits.queued) == (0, 0)
                with limits.permit(), limits.permit():
                    code = 0 if is_empty and limits.inflight == 2 else 2
            finally:
                os._exit(code)
        assert os.waitstatus_to_exitcode(os.waitpid(pid, 0)[1]) == 0
    until(lambda: limits.inflight == 1)


def test_asgi_refuses_with_a_status(occupied: Any) -> None:
    """THR-1: 503 with Retry-After, and the application is not called."""
    limits = small(max_queue=0)
    called: list[str] = []

    async def app(scope: Any, receive: Any, send: Any) -> None:
        called.append(scope["type"])
        if scope["type"] == "http":
            await send({"type": "http.response.start", "status": 200, "headers": []})
            await send({"type": "http.response.body", "body": b""})

    async def ask(kind: str) -> list[Any]:
        sent: list[Any] = []

        async def send(message: Any) -> None:
            sent.append(message)

        await antipode.throttle.asgi(app, limits)({"type": kind}, None, send)
        return sent

    assert asyncio.run(ask("http"))[0]["status"] == 200
    occupied(limits, 2)
    start, body = asyncio.run(ask("http"))
    assert start["status"] == 503
    assert int(dict(start["headers"])[b"retry-after"]) >= 1
    assert body["body"]
    asyncio.run(ask("websocket"))
    assert called == ["http", "websocket"]


@pytest.fixture
def otel(monkeypatch: pytest.MonkeyPatch) -> Iterator[Collected]:
    with installed_sdk(monkeypatch) as collected:
        yield collected


def test_metrics_show_it(otel: Collected, occupied: Any) -> None:
    """THR-11."""
    limits = Throttle("shown", limit=FixedLimit(2), max_queue=0)
    occupied(limits, 2)
    with pytest.raises(Throttled), limits.permit():
        pytest.fail("it has no permit")
    for name, value in (("limit", 2), ("inflight", 2), ("queued", 0), ("parked", 0), ("shedding", 0.0)):
        points = otel.points(f"antipode.throttle.{name}")
        assert [each.value for each in points if each.attributes == {"throttle": "shown"}] == [value]
    assert otel.counts("antipode.throttle.requests", "outcome") == {"admitted": 2, "queue_full": 1}


async def test_the_decorator_takes_async_functions() -> None:
    limits = small()

    @throttle(limits)
    async def request(number: int) -> int:
        return number + limits.inflight

    assert await request(1) == 2


@pytest.mark.parametrize(
    "options",
    [{"reference_delay": 0.0}, {"max_wait": 0.0}, {"interval": 0.0}, {"max_queue": -1}, {"least": 0}, {"mode": "on"}],
)
def test_a_wrong_option_is_refused(options: dict[str, Any]) -> None:
    with pytest.raises(ValueError, match=r"want|mode|Mode"):
        Throttle("orders", **options)


def test_published_is_what_the_paper_has() -> None:
    """THR-8."""
    limits = Throttle("orders", published=True)
    assert limits.limit == 80
    assert (limits._pie._options.reference_delay, limits._pie._options.burst) == (30.0, 30.0)
    assert limits._limit._options == ExploringOptions(initial=80, memory=None, published=True)  # type: ignore[attr-defined]
