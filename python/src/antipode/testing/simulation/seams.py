"""What the simulation puts in the place of time, threads, chance and descriptors, in the engine's modules."""

from __future__ import annotations

import asyncio
import errno
import math
import os
import random
import threading
import time
from collections.abc import Callable, Coroutine, Iterator
from contextlib import contextmanager
from types import ModuleType, SimpleNamespace
from typing import Any, Final

from antipode._engine import (
    barrier,
    branch_rounds,
    discovery,
    free_path,
    pace,
    pending_wait,
    plan,
    renewal,
    server,
    store_servers,
    waiting,
)
from antipode._engine.pending_wait import WaitGroup
from antipode._engine.server import ServerPoller
from antipode._store import store
from antipode.testing.simulation.actors import FOREVER, Actor, SimulationError, scheduler

_MODULES: Final = (
    server,
    pending_wait,
    pace,
    waiting,
    free_path,
    store,
    store_servers,
    discovery,
    plan,
    barrier,
    branch_rounds,
    renewal,
)
_NO_DESCRIPTOR: Final = os.strerror(errno.EMFILE)


def _monotonic() -> float:
    run = scheduler()
    run.give_way()
    return run.now


def _wall() -> float:
    return scheduler().wall


def _sleep(seconds: float) -> None:
    scheduler().sleep(seconds)


def _uniform(least: float, most: float) -> float:
    return scheduler().jitter.uniform(least, most)


class SimulatedLock:
    """A lock. One that is entered may not be held where its actor waits; one that is acquired may be waited for."""

    __slots__ = ("_is_held", "_sleeper")

    def __init__(self) -> None:
        self._is_held = False
        self._sleeper: Actor | None = None

    def __enter__(self) -> bool:
        current = scheduler().current
        if self._is_held:
            raise SimulationError("a lock is held where its actor waits")
        self._is_held = True
        if current is not None:
            current.held += 1
        return True

    def __exit__(self, *_: object) -> None:
        run = scheduler()
        self._is_held = False
        if run.current is not None:
            run.current.held -= 1
            run.give_way()

    def acquire(self, blocking: bool = True, timeout: float = -1) -> bool:
        """Take it, or wait until somebody releases it."""
        run = scheduler()
        if self._is_held and blocking:
            self._sleeper = run.current
            try:
                run.park(FOREVER if timeout < 0 else timeout)
            finally:
                self._sleeper = None
        if self._is_held:
            return False
        self._is_held = True
        return True

    def release(self) -> None:
        """Let it go; raise RuntimeError where nobody holds it."""
        if not self._is_held:
            raise RuntimeError("release unlocked lock")
        self._is_held = False
        if self._sleeper is not None:
            scheduler().unpark(self._sleeper)


class SimulatedThread:
    """A thread: an actor, once it is started. A process that has no thread left refuses."""

    def __init__(
        self,
        target: Callable[..., object],
        name: str = "",
        args: tuple[Any, ...] = (),
        daemon: bool = True,
    ) -> None:
        self.name = name
        self.daemon = daemon
        self._run: Callable[[], object] = lambda: target(*args)
        self._actor: Actor | None = None
        self._sleepers: list[Actor] = []

    def start(self) -> None:
        """Add its actor; raise RuntimeError where the process has no thread left."""
        run = scheduler()
        if run.has_trouble("threads"):
            raise RuntimeError("can't start new thread")
        self._actor = run.spawn(self._main, self.name)
        self._actor.thread = self

    def _main(self) -> None:
        try:
            self._run()
        finally:
            for sleeper in self._sleepers:
                scheduler().unpark(sleeper)

    def is_alive(self) -> bool:
        """Return whether it has begun and not ended."""
        return self._actor is not None and not self._actor.is_over

    def join(self, timeout: float | None = None) -> None:
        """Wait until it has ended."""
        run = scheduler()
        if self.is_alive() and run.current is not None:
            self._sleepers.append(run.current)
            run.park(FOREVER if timeout is None else timeout)
            self._sleepers.remove(run.current)


def _current_thread() -> object:
    current = scheduler().current
    return None if current is None else current.thread


class SimulatedPoller:
    """The engine's sleep: until it is woken, its channel has something, or the time is over."""

    def __init__(self) -> None:
        if scheduler().has_trouble("descriptors"):
            raise OSError(errno.EMFILE, _NO_DESCRIPTOR)
        self._is_woken = False
        self._is_closed = False
        self._sleeper: Actor | None = None

    def wait(self, heard: int | None, seconds: float) -> tuple[bool, bool]:
        """Sleep; return whether somebody woke it, and whether the channel has something."""
        run = scheduler()
        if self._is_closed:
            raise SimulationError("a poller that is closed is waited at")
        if run.has_trouble("memory"):
            raise MemoryError
        channel = None if heard is None else run.channels.get(heard)
        if not self._is_woken and seconds > 0 and not (channel is not None and channel.has_news):
            self._sleeper = run.current
            if channel is not None:
                channel.sleeper = run.current
            try:
                run.park(math.ceil(seconds * 1000) / 1000)
            finally:
                self._sleeper = None
                if channel is not None:
                    channel.sleeper = None
        woken, self._is_woken = self._is_woken, False
        return woken, channel is not None and channel.has_news

    def wake(self) -> None:
        """End the sleep."""
        if self._is_closed:
            raise SimulationError("a poller that is closed is woken")
        self._is_woken = True
        if self._sleeper is not None:
            scheduler().unpark(self._sleeper)

    def close(self) -> None:
        """End it."""
        self._is_closed = True


def _counted(release: Callable[[WaitGroup], None]) -> Callable[[WaitGroup], None]:
    def count(group: WaitGroup) -> None:
        released = scheduler().releases
        released[group] = released.get(group, 0) + 1
        if released[group] > 1:
            raise SimulationError("a barrier is released twice")
        release(group)

    return count


def _noted(poke: Callable[[ServerPoller], None]) -> Callable[[ServerPoller], None]:
    def note(self: ServerPoller) -> None:
        self.target.called_at = scheduler().now
        poke(self)

    return note


def _copy(module: ModuleType, **names: Any) -> SimpleNamespace:
    return SimpleNamespace(**{name: getattr(module, name) for name in dir(module)} | names)


@contextmanager
def seams() -> Iterator[None]:
    """Have the engine run on the simulation's clock, threads, chance and pollers within the block."""
    replaced = {
        "time": _copy(time, monotonic=_monotonic, time=_wall, perf_counter=_monotonic, sleep=_sleep),
        "threading": _copy(threading, Lock=SimulatedLock, Thread=SimulatedThread, current_thread=_current_thread),
        "random": _copy(random, uniform=_uniform),
        "Background": SimulatedThread,
        "Poller": SimulatedPoller,
    }
    before: list[tuple[Any, str, Any]] = [
        (module, name, vars(module)[name]) for module in _MODULES for name in replaced if name in vars(module)
    ]
    for module, name, _ in before:
        setattr(module, name, replaced[name])
    before += [(WaitGroup, "release", WaitGroup.release), (ServerPoller, "_poke", ServerPoller._poke)]
    setattr(WaitGroup, "release", _counted(WaitGroup.release))  # noqa: B010  mypy knows a method there
    setattr(ServerPoller, "_poke", _noted(ServerPoller._poke))  # noqa: B010
    try:
        yield
    finally:
        for module, name, old in before:
            setattr(module, name, old)


# Tasks


class _Selector:
    """What an event loop sleeps at."""

    def __init__(self) -> None:
        self._sleeper: Actor | None = None
        self._is_woken = False

    def select(self, timeout: float | None) -> list[object]:
        run = scheduler()
        if not self._is_woken and (timeout is None or timeout > 0):
            self._sleeper = run.current
            try:
                run.park(FOREVER if timeout is None else timeout)
            finally:
                self._sleeper = None
        self._is_woken = False
        return []

    def wake(self) -> None:
        self._is_woken = True
        if self._sleeper is not None:
            scheduler().unpark(self._sleeper)


class SimulatedLoop(asyncio.BaseEventLoop):
    """An event loop on the simulation's clock, without a descriptor. It runs on one actor."""

    def __init__(self) -> None:
        super().__init__()
        self._selector = _Selector()
        self._clock_resolution = 1e-9
        self._actor: Actor | None = None
        self.tasks: list[asyncio.Task[None]] = []

    def time(self) -> float:
        """Return the simulation's time."""
        return scheduler().now

    def _process_events(self, _: list[object]) -> None:
        """Nothing ever comes but wakes."""

    def _write_to_self(self) -> None:
        self._selector.wake()

    def start(self, begin: Callable[[], Coroutine[Any, Any, None]], cancel_after: float | None) -> None:
        """Begin a task, and cancel it after so long; an actor runs the loop."""
        self.call_soon_threadsafe(self._start, begin, cancel_after)
        if self._actor is None:
            self._actor = scheduler().spawn(self._main, "loop")

    def _start(self, begin: Callable[[], Coroutine[Any, Any, None]], cancel_after: float | None) -> None:
        task = self.create_task(begin())
        self.tasks.append(task)
        if cancel_after is not None:
            self.call_later(cancel_after, task.cancel)

    def _main(self) -> None:
        actor = scheduler().current
        assert actor is not None
        actor.loop = self
        try:
            self.run_forever()
        finally:
            actor.loop = None
            self.close()

    def end(self) -> None:
        """Stop it, and close it."""
        if self._actor is None:
            self.close()
        else:
            self.call_soon_threadsafe(self.stop)
