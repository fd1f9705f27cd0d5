"""Actors on a virtual clock: one goes at a time, chance says which, and time passes only where nobody can go."""

from __future__ import annotations

import asyncio
import heapq
import random
from collections.abc import Callable
from hashlib import blake2b
from typing import Any, Final

import greenlet  # type: ignore[import-untyped]

FOREVER: Final = float("inf")
MOST_STEPS: Final = 20_000
"""So many steps may be taken at one moment: more is an actor that spins."""
_WALL: Final = 1_700_000_000.0
_MOST_KEPT: Final = 400


class SimulationError(BaseException):
    """What the scheduler itself finds wrong: a lock that is held where its actor waits, an actor that spins."""


class Actor:
    """One thread of the simulated process. It goes on where it is woken, or where its time has come."""

    __slots__ = ("error", "greenlet", "held", "is_over", "is_parked", "is_woken", "loop", "name", "sleep", "thread")

    def __init__(self, name: str, run: Callable[[], object], hub: greenlet.greenlet) -> None:
        self.name = name
        self.greenlet = greenlet.greenlet(lambda: self._main(run), hub)
        self.is_over = False
        self.error: BaseException | None = None
        self.held = 0
        """The locks that it holds."""
        self.sleep = 0
        """The number of its sleep: an alarm of an earlier one wakes nobody."""
        self.is_parked = False
        self.is_woken = False
        """Whether somebody woke it, and not its alarm."""
        self.thread: object = None
        """What the engine knows it as, where it is a thread of the engine's."""
        self.loop: asyncio.AbstractEventLoop | None = None
        """The event loop that runs on it."""

    def _main(self, run: Callable[[], object]) -> None:
        try:
            run()
        except greenlet.GreenletExit:
            pass
        except BaseException as error:
            self.error = error
        self.is_over = True


class Scheduler:
    """Runs actors, each until it waits, and keeps the time. The same seed takes the same steps."""

    def __init__(self, seed: int, preemption: float = 0.0) -> None:
        """preemption: how often an actor gives way, of the times that it lets go of a lock or looks at the clock."""
        self.now = 1000.0
        self.step = 0.0
        """By how much the wall clock is off, beside the time that has passed."""
        self.chance = random.Random(f"schedule {seed}")
        self.jitter = random.Random(f"jitter {seed}")
        self.preemption = preemption
        self.actors: dict[Actor, None] = {}
        self.current: Actor | None = None
        self.is_ending = False
        self.troubles: dict[str, float] = {}
        """What this process has none of, and until when: `threads`, `descriptors`…"""
        self.channels: dict[int, Any] = {}
        """Push channels, by the numbers that stand for their descriptors."""
        self.releases: dict[object, int] = {}
        """How often each barrier was released."""
        self.errors: list[tuple[str, BaseException]] = []
        self.log: list[str] = []
        self.steps = 0
        self._hub = greenlet.getcurrent()
        self._ready: list[Actor | Callable[[], object]] = []
        self._alarms: list[tuple[float, int, Actor | Callable[[], object], int]] = []
        self._numbers = 0
        self._hash = blake2b(digest_size=16)

    # What happens is told, and makes the run's hash

    def tell(self, what: str) -> None:
        """Note an event of the run."""
        line = f"{self.now - 1000:.6f} {what}"
        self._hash.update(line.encode())
        if len(self.log) < _MOST_KEPT:
            self.log.append(line)

    @property
    def hash(self) -> str:
        """Return what names the run: all that was told, and how many steps were taken."""
        return f"{self._hash.hexdigest()}-{self.steps}"

    def has_trouble(self, what: str) -> bool:
        """Return whether the process is in this trouble now."""
        return self.troubles.get(what, 0.0) > self.now

    # Actors and alarms

    def spawn(self, run: Callable[[], object], name: str) -> Actor:
        """Add an actor, which can go."""
        actor = Actor(name, run, self._hub)
        self.actors[actor] = None
        self._ready.append(actor)
        return actor

    def at(self, when: float, call: Callable[[], object]) -> None:
        """Have `call` made at a time, by nobody: it may not wait, nor call the engine."""
        self._numbers += 1
        heapq.heappush(self._alarms, (when, self._numbers, call, 0))

    def park(self, seconds: float) -> bool:
        """Have the current actor wait; return True where somebody woke it, False where the time is over."""
        actor = self.current
        if actor is None:
            raise SimulationError("somebody who is no actor waits")
        if self.is_ending:
            raise greenlet.GreenletExit
        if actor.held:
            raise SimulationError(f"{actor.name} holds {actor.held} locks and waits")
        actor.sleep += 1
        actor.is_parked, actor.is_woken = True, False
        if seconds < FOREVER:
            self._numbers += 1
            heapq.heappush(self._alarms, (self.now + max(seconds, 0.0), self._numbers, actor, actor.sleep))
        self._switch()
        return actor.is_woken

    def unpark(self, actor: Actor) -> None:
        """Wake one, if it waits."""
        if actor.is_parked:
            actor.is_parked, actor.is_woken = False, True
            self._ready.append(actor)

    def sleep(self, seconds: float) -> None:
        """Have the current actor sleep; others go first where it does not."""
        if seconds > 0:
            self.park(seconds)
        elif self.current is not None and not self.is_ending:
            self._ready.append(self.current)
            self._switch()

    def give_way(self) -> None:
        """Let others go first, now and then."""
        actor = self.current
        if not self.preemption or actor is None or actor.held or actor.loop is not None or self.is_ending:
            return
        if self.jitter.random() < self.preemption:
            self._ready.append(actor)
            self._switch()

    def _switch(self) -> None:
        self._hub.switch()
        if self.is_ending:
            raise greenlet.GreenletExit

    # The run

    def run(self, is_over: Callable[[], bool]) -> bool:
        """Run actors until `is_over`; return False where nobody can go any more."""
        spent, moment = 0, self.now
        while not is_over():
            if not self._ready:
                if not self._alarms:
                    return False
                self.now = max(self.now, self._alarms[0][0])
                while self._alarms and self._alarms[0][0] <= self.now:
                    self._ring(heapq.heappop(self._alarms))
                continue
            if self.now > moment:
                spent, moment = 0, self.now
            spent += 1
            if spent > MOST_STEPS:
                raise SimulationError(f"{MOST_STEPS} steps at one moment: an actor spins")
            self._go(self._choose())
        return True

    def _ring(self, alarm: tuple[float, int, Actor | Callable[[], object], int]) -> None:
        _, _, waiter, sleep = alarm
        if not isinstance(waiter, Actor):
            self._ready.append(waiter)
        elif waiter.sleep == sleep and waiter.is_parked:
            waiter.is_parked = False
            self._ready.append(waiter)

    def _choose(self) -> Actor | Callable[[], object]:
        ready = self._ready
        if len(ready) == 1:
            return ready.pop()
        place = int(self.chance.random() * len(ready))
        ready[place], ready[-1] = ready[-1], ready[place]
        return ready.pop()

    def _go(self, one: Actor | Callable[[], object]) -> None:
        self.steps += 1
        if not isinstance(one, Actor):
            one()
            return
        self.current = one
        if one.loop is not None:
            asyncio._set_running_loop(one.loop)
        try:
            one.greenlet.switch()
        finally:
            self.current = None
            if one.loop is not None:
                asyncio._set_running_loop(None)
        if one.is_over:
            self.actors.pop(one, None)
            if one.error is not None:
                self.errors.append((one.name, one.error))

    def end(self) -> None:
        """End every actor where it waits."""
        self.is_ending = True
        for actor in list(self.actors):
            self.current = actor
            if actor.loop is not None:
                asyncio._set_running_loop(actor.loop)
            actor.held = 0
            actor.greenlet.throw()
            asyncio._set_running_loop(None)
        self.current = None
        self.actors.clear()

    @property
    def wall(self) -> float:
        """Return the time of the wall clock."""
        return _WALL + self.now + self.step


_schedulers: list[Scheduler] = []


def scheduler() -> Scheduler:
    """Return that of the run; raise IndexError where no run is under way."""
    return _schedulers[-1]


def put_scheduler(run: Scheduler | None) -> None:
    """Make one that of the run, or none."""
    _schedulers[:] = [] if run is None else [run]
