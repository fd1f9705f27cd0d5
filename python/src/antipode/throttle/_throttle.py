"""A throttle: permits for threads and tasks, its clock, and what it tells (spec THR)."""

from __future__ import annotations

import asyncio
import functools
import inspect
import os
import random
import threading
import time
import weakref
from collections.abc import AsyncIterator, Callable, Iterator
from contextlib import asynccontextmanager, contextmanager
from typing import Any, Final, ParamSpec, TypeVar, cast

from antipode._base.background import Background
from antipode._base.observers import events
from antipode._base.permit import current_permit, hold_permit
from antipode._base.settings import Mode, settings
from antipode._model.errors import AntipodeError
from antipode._scope.scope import current_scope
from antipode.throttle._limit import ExploringLimit, ExploringOptions, Limit
from antipode.throttle._permits import Outcome, Permits, Ticket
from antipode.throttle._pie import Pie, PieOptions

_P = ParamSpec("_P")
_R = TypeVar("_R")
_PUBLISHED_PIE: Final = PieOptions(reference_delay=30.0, burst=30.0, quiet=30.0)
_PUBLISHED: Final = ExploringOptions(initial=80, memory=None, published=True)
_throttles: weakref.WeakSet[Throttle] = weakref.WeakSet()


class Throttled(AntipodeError):
    """Raised where a request is refused: too many wait already.

    Attributes:
        throttle: which one refuses it.
        retry_after: the seconds after which a caller may try again, 1 at least.
        outcome: `shed`, `queue_full` or `expired`.
    """

    default_code = "AP801"

    def __init__(self, words: str, *, throttle: Throttle, outcome: str, retry_after: float) -> None:
        super().__init__(words)
        self.throttle = throttle
        self.outcome = outcome
        self.retry_after = retry_after


class _Permit:
    """A request at a throttle, as the engine and its own thread or task have it."""

    __slots__ = ("_depth", "_outer", "_throttle", "grant", "is_virtual", "permits", "ticket")

    def __init__(self, throttle: Throttle, mode: Mode) -> None:
        self._throttle = throttle
        self.permits = throttle._permits
        """Of the process that it was asked for in: a fork's child begins with none."""
        self.is_virtual = mode is not Mode.ENFORCE
        """It runs whatever is decided (dry-run)."""
        self._depth = 0
        self._outer = current_permit()
        """Of another throttle that the request has passed: it waits in both, or works in both."""
        self.ticket = Ticket()
        self.grant: Callable[[], object] = int
        """Wake who waits for the permit; called under the throttle's lock, by any thread."""

    def park(self) -> None:
        self._throttle._park(self)
        if self._outer is not None:
            self._outer.park()

    def resume(self) -> None:
        if self._outer is not None:
            self._outer.resume()
        self._throttle._resume(self)


class Throttle:
    """An adaptive limit on how many requests run at once. Thread-safe; for threads and for tasks of any loop.

    A request that a barrier holds up does not count: it gives its permit back until the barrier returns (THR-4).
    """

    def __init__(
        self,
        name: str,
        *,
        reference_delay: float = 0.2,
        limit: Limit | None = None,
        least: int = 5,
        most: int = 400,
        initial: int = 20,
        max_queue: int = 1000,
        max_wait: float = 2.0,
        max_parked: int | None = None,
        interval: float = 0.5,
        protect: Callable[[Any], bool] | None = None,
        mode: Mode | str | None = None,
        published: bool = False,
    ) -> None:
        """Make a throttle; nothing runs until the first request.

        Args:
            name: what it is called in metrics and errors.
            reference_delay: the delay in its queue that it aims at, seconds.
            limit: how many requests may run at once; None: it finds out, between `least` and `most`, from `initial`.
            max_queue: how many requests may wait for a permit.
            max_wait: how long each may wait, seconds.
            max_parked: how many may wait in barriers without a permit; None: four times the greatest limit.
            interval: between two adaptations, seconds.
            protect: returns True for a request that is never shed (it gets what `permit(request=)` is given).
            mode: `off`, `dry-run` (decide and count, refuse nothing) or `enforce`; None: as ANTIPODE_MODE says.
            published: behave as Kanaloa's paper does, for experiments (THR-8).

        Raises:
            ValueError: an argument is out of its range.
        """
        if not (reference_delay > 0 and max_wait > 0 and interval > 0):
            raise ValueError("want reference_delay, max_wait and interval above 0 seconds")
        if max_queue < 0 or (max_parked or 0) < 0:
            raise ValueError("want max_queue and max_parked of 0 at least")
        self.name = name
        self._mode = None if mode is None else Mode(mode)
        self._max_wait = max_wait
        self._interval = interval
        self._protect = protect
        self._random = random.Random()
        sizes = ExploringOptions(initial=min(max(initial, least), most), least=least, most=most)
        own = _PUBLISHED if published else sizes
        self._limit = limit if limit is not None else ExploringLimit(self._random.random, own)
        self._pie = Pie(_PUBLISHED_PIE if published else PieOptions(reference_delay=reference_delay))
        self._max_queue, self._max_parked = max_queue, max_parked
        self._waiters: dict[Ticket, _Permit] = {}
        self._begin()
        _throttles.add(self)
        events.on_throttle_made(self)

    def _begin(self) -> None:
        self._lock = threading.Lock()
        self._permits = Permits(
            self._limit,
            self._pie,
            max_queue=self._max_queue,
            max_wait=self._max_wait,
            max_parked=self._max_parked,
            now=time.monotonic(),
        )
        self._waiters.clear()
        self._thread: threading.Thread | None = None

    # What is to be seen

    @property
    def limit(self) -> int:
        """Return how many requests may run at once now."""
        return self._limit.limit

    @property
    def inflight(self) -> int:
        """Return how many requests run now, those that wait in barriers left out."""
        return self._permits.running

    @property
    def queued(self) -> int:
        """Return how many requests wait for a permit."""
        return self._permits.queued

    @property
    def parked(self) -> int:
        """Return how many requests wait in barriers without a permit."""
        return self._permits.parked

    @property
    def shedding(self) -> float:
        """Return the probability with which a request that would have to queue is shed now."""
        return self._pie.probability if self._pie.is_shedding else 0.0

    # Permits

    @contextmanager
    def permit(self, timeout: float | None = None, *, request: Any = None) -> Iterator[None]:
        """Run the block with a permit; block the thread until there is one.

        Args:
            timeout: seconds to wait at most; None: as the throttle says. The scope's deadline tightens it.
            request: what `protect` decides by.

        Raises:
            Throttled: the request is refused.
        """
        mode = self._mode_now()
        if mode is Mode.OFF:
            yield
            return
        permit = _Permit(self, mode)
        gate = threading.Lock()
        gate.acquire()
        permit.grant = gate.release
        try:
            began, outcome = self._ask(permit, request)
            if outcome is Outcome.QUEUED and not permit.is_virtual:
                is_granted = gate.acquire(timeout=self._patience(timeout, began))
                self._settle(permit, began, is_granted=is_granted)
            with hold_permit(permit):
                yield
        finally:
            self._finish(permit)

    @asynccontextmanager
    async def permit_async(self, timeout: float | None = None, *, request: Any = None) -> AsyncIterator[None]:
        """Run the block with a permit, as `permit` does, without blocking the event loop."""
        mode = self._mode_now()
        if mode is Mode.OFF:
            yield
            return
        permit = _Permit(self, mode)
        loop = asyncio.get_running_loop()
        granted: asyncio.Future[None] = loop.create_future()

        def grant() -> None:
            if not granted.done():
                granted.set_result(None)

        permit.grant = functools.partial(_call_in, loop, grant)
        try:
            began, outcome = self._ask(permit, request)
            if outcome is Outcome.QUEUED and not permit.is_virtual:
                await asyncio.wait([granted], timeout=self._patience(timeout, began))
                self._settle(permit, began, is_granted=granted.done())
            with hold_permit(permit):
                yield
        finally:
            self._finish(permit)

    def _mode_now(self) -> Mode:
        return settings().mode if self._mode is None else self._mode

    def _patience(self, timeout: float | None, began: float) -> float:
        seconds = self._max_wait if timeout is None else min(timeout, self._max_wait)
        scope = current_scope()
        if scope is not None and scope.deadline is not None:
            seconds = min(seconds, scope.deadline - began)
        return max(seconds, 0.0)

    def _ask(self, permit: _Permit, request: Any) -> tuple[float, Outcome]:
        """Ask for a permit; return when, and what came of it.

        Raises:
            Throttled: it is refused at once.
        """
        is_protected = self._protect is not None and self._protect(request)
        now = time.monotonic()
        with self._lock:
            if self._permits.late_by(now) > 2 * self._interval and not self._permits.is_idle:
                self._wake(self._permits.tick(now))  # the thread does not come to it
            outcome = self._permits.arrive(permit.ticket, now, self._random.random(), is_protected=is_protected)
            if outcome is Outcome.QUEUED:
                self._waiters[permit.ticket] = permit
            if self._thread is None:
                self._start()
        if outcome is not Outcome.QUEUED:
            events.on_request_throttled(self.name, outcome, 0.0)
        if outcome in {Outcome.SHED, Outcome.QUEUE_FULL} and not permit.is_virtual:
            raise self._refusal(outcome)
        return now, outcome

    def _settle(self, permit: _Permit, began: float, *, is_granted: bool) -> None:
        """End the wait in the queue.

        Raises:
            Throttled: it has lasted too long.
        """
        if not is_granted:
            with self._lock:
                is_granted = permit.ticket.state == "running"  # it came in the last moment
        outcome = Outcome.ADMITTED if is_granted else Outcome.EXPIRED
        events.on_request_throttled(self.name, outcome, time.monotonic() - began)
        if not is_granted:
            raise self._refusal(outcome)

    def _refusal(self, outcome: Outcome) -> Throttled:
        delay = self._pie.delay
        words = f"{self.name}: {outcome.replace('_', ' ')}; {self.queued} requests wait for {self.limit} permits"
        return Throttled(words, throttle=self, outcome=outcome, retry_after=max(1.0, delay))

    def _finish(self, permit: _Permit) -> None:
        now = time.monotonic()
        with self._lock:
            was_queued = self._waiters.pop(permit.ticket, None) is not None
            self._wake(permit.permits.finish(permit.ticket, now))
        if was_queued and permit.is_virtual:  # it ran all the time, and would have waited so long
            waited = now - permit.ticket.arrived_at
            outcome = Outcome.EXPIRED if waited > self._max_wait else Outcome.ADMITTED
            events.on_request_throttled(self.name, outcome, min(waited, self._max_wait))

    def _park(self, permit: _Permit) -> None:
        with self._lock:
            permit._depth += 1
            if permit._depth == 1:
                self._wake(permit.permits.park(permit.ticket, time.monotonic()))

    def _resume(self, permit: _Permit) -> None:
        with self._lock:
            permit._depth -= 1
            if permit._depth == 0:
                permit.permits.resume(permit.ticket, time.monotonic())

    def _wake(self, granted: list[Ticket]) -> None:
        for ticket in granted:
            permit = self._waiters.pop(ticket, None)
            if permit is not None:
                permit.grant()
                if permit.is_virtual:
                    events.on_request_throttled(self.name, Outcome.ADMITTED, ticket.began_at - ticket.arrived_at)

    # Its clock

    def _start(self) -> None:
        try:
            run = functools.partial(_tick, weakref.ref(self), self._interval)
            self._thread = Background(run, f"antipode-throttle-{self.name}")
            self._thread.start()
        except (RuntimeError, MemoryError):
            self._thread = None  # each request that comes too late for a tick makes it (THR-3)

    def _turn(self) -> bool:
        """Make one tick; return False where the throttle is idle, and its thread ends."""
        with self._lock:
            self._wake(self._permits.tick(time.monotonic()))
            if self._permits.is_idle:
                self._thread = None
                return False
        return True


def _call_in(loop: asyncio.AbstractEventLoop, call: Callable[[], object]) -> None:
    try:
        loop.call_soon_threadsafe(call)
    except RuntimeError:
        return  # the loop is closed, and who waited in it is gone


def _tick(of: weakref.ref[Throttle], interval: float) -> None:
    while True:
        time.sleep(interval)
        throttle = of()
        if throttle is None or not throttle._turn():
            return
        del throttle


def throttle(limits: Throttle) -> Callable[[Callable[_P, _R]], Callable[_P, _R]]:
    """Return a decorator that runs each call of a function, sync or async, with a permit.

    The function raises Throttled where a call is refused.
    """

    def decorate(function: Callable[_P, _R]) -> Callable[_P, _R]:
        if inspect.iscoroutinefunction(function):

            @functools.wraps(function)
            async def run_async(*args: _P.args, **options: _P.kwargs) -> Any:
                async with limits.permit_async():
                    return await function(*args, **options)

            return cast("Callable[_P, _R]", run_async)

        @functools.wraps(function)
        def run(*args: _P.args, **options: _P.kwargs) -> _R:
            with limits.permit():
                return function(*args, **options)

        return run

    return decorate


def _after_fork() -> None:
    for each in list(_throttles):
        each._begin()


if hasattr(os, "register_at_fork"):
    os.register_at_fork(after_in_child=_after_fork)
