"""Six races for one barrier, on an engine whose threads are the test's own (BAR-32, BAR-63; `spec/tla/Reopen.tla`)."""

from __future__ import annotations

import inspect
import random
import sys
import textwrap
import threading
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from typing import Any, Final, NamedTuple
from unittest.mock import patch

from antipode._engine import pending_wait as need_module
from antipode._engine import server as server_module
from antipode._engine import waiting
from antipode._engine.pending_wait import Settled, WaitGroup, release_all
from antipode._engine.server import ServerPoller
from antipode._model.verdict import VISIBLE
from antipode._model.write_id import WriteId
from antipode._store.store import Store
from antipode.shim import Capabilities, Server, Visibility
from fakes import FakeShim, Target, fake_store
from inner import region_store
from turns import TurnLock, Turns

STORE: Final = "log"
END: Final = frozenset({need_module.__file__})
"""How a barrier ends: between any two of its byte codes the other thread may come."""
ENGINE: Final = END | {server_module.__file__}
"""The same, with the server that is asked, reset, or parked at."""
_WRITE: Final = WriteId.position(STORE, "e1", 5)
_ROUNDS: Final = 8


class LogShim(FakeShim):
    capabilities = Capabilities(versions="position")


class Replica(Target):
    """A server that has the write, and is led to other data at times."""

    def __init__(self, barrier: Barrier, name: str) -> None:
        super().__init__(name, self._show)
        self._barrier = barrier
        self.data = 0
        """How often its data were replaced, as far as the engine knows."""
        self.shown: int | None = None
        """Which of them showed the write last."""

    def _show(self, ids: Sequence[WriteId], server: Server) -> Sequence[Visibility]:
        self.shown = self.data
        self._barrier.note_shown()
        server.applied("i", "e1", {"e1": 5})
        return [VISIBLE] * len(ids)


class WatchedServer(ServerPoller):
    """A server of which it is seen when a reset takes effect."""

    @property
    def generation(self) -> int:
        return self._generation

    @generation.setter
    def generation(self, generation: int) -> None:
        self._generation = generation
        if sys._getframe(1).f_code.co_name == "reset":
            self.target.data += 1


class Barrier:
    """A barrier that waits for a write at some servers, and what is true of it."""

    def __init__(self, store: Store, turns: Turns, servers: int = 2) -> None:
        self.replicas = [Replica(self, f"b{number}") for number in range(servers)]
        self.servers = [WatchedServer(region_store(store), each.name, each) for each in self.replicas]
        self.group = WaitGroup(60.0, self._release, None)
        self.group._lock = TurnLock(turns)  # type: ignore[assignment]
        for server in self.servers:
            server._lock = TurnLock(turns)  # type: ignore[assignment]
            server._thread = threading.current_thread()  # none is started: the test asks
        self.stood = False
        """There was an instant at which each server had shown the write of the data that it had then."""
        self.wakings = 0
        self.passes: list[bool] = []
        """Whether it had stood, as often as anybody was told that it passes."""
        self.left: Settled = {}
        """What was settled last, and nobody has concluded yet."""
        self._is_over = False

    # What happens

    def park(self) -> None:
        """Park it at each server, as its caller does."""
        if not waiting._park(self.group, [(server, _WRITE) for server in self.servers], False):
            self._release()

    def ask(self, which: int) -> None:
        """Ask a server, as its thread does."""
        self.servers[which]._ask(True)

    def ask_only(self, which: int) -> None:
        """Ask it, and let its thread stand still before it concludes."""
        with patch.object(server_module, "release_all", self.left.update):
            self.ask(which)

    def conclude(self) -> None:
        """Go on where that thread stood still."""
        left, self.left = self.left, {}
        release_all(left)

    def replace(self, which: int) -> None:
        """Have a server be led to other data, and say so."""
        self.servers[which].reset()

    def give_up(self) -> None:
        """Do what its caller does when he is woken, or the deadline has come."""
        was_woken = self.wakings > 0
        waiting._give_up(self.group)
        self._is_over = True
        if all(each.answer is VISIBLE for each in self.group.needs):
            self.passes.append(self.stood)
        else:
            assert not was_woken, "it was released as a pass, which its caller does not see"

    def cancel(self) -> None:
        """Do what its caller does when his task is cancelled."""
        self.group.cancelled = True
        waiting._give_up(self.group)
        self._is_over = True

    def note_shown(self) -> None:
        self.stood |= all(each.shown == each.data for each in self.replicas)

    def _release(self) -> None:
        self.wakings += 1
        self.passes.append(self.stood)

    # What has to hold

    def check(self) -> None:
        """Go on as the servers' threads do, until all is said; raise `AssertionError` for what may never be."""
        self.conclude()
        for _ in range(_ROUNDS):
            for number, server in enumerate(self.servers):
                if server.waiters.live > 0:
                    self.ask(number)
        assert self._is_over or self.wakings, "it sleeps on though all is there (NobodySleepsOn)"
        assert self.wakings <= 1, "it was released twice (WokenOnce)"
        for number, server in enumerate(self.servers):
            proved, by = server._proofs
            assert not proved or by.generation == server.generation, "a proof outlives its generation"
            assert server.waiters.live == 0, f"b{number} counts {server.waiters.live} who wait, of none"
            self.replace(number)
        if not self._is_over:
            self.give_up()
        assert all(self.passes), "it passed with proofs that never stood together (PassStood)"


Actors = tuple[Callable[[], None], Callable[[], None]]


def _in_turn(*acts: Callable[[], None]) -> Callable[[], None]:
    def act() -> None:
        for each in acts:
            each()

    return act


def _settle_and_settle(barrier: Barrier) -> Actors:
    barrier.park()
    return lambda: barrier.ask(0), lambda: barrier.ask(1)


def _settle_and_reset(barrier: Barrier) -> Actors:
    """The last but one is settled while its server is led elsewhere; the last one is settled then."""
    barrier.park()
    return lambda: barrier.ask(0), _in_turn(lambda: barrier.replace(0), lambda: barrier.ask(1))


def _settle_and_deadline(barrier: Barrier) -> Actors:
    """The last one is settled while another one is led elsewhere and the deadline comes."""
    barrier.park()
    barrier.ask(1)
    return lambda: barrier.ask(0), _in_turn(lambda: barrier.replace(1), barrier.give_up)


def _reset_and_scan(barrier: Barrier) -> Actors:
    """Who compares finds two that do not stand, and opens one after the other; the first is settled, so that another
    one compares. Meanwhile its server is led elsewhere again, and the second one is settled.
    """
    barrier.park()
    barrier.ask(0)
    barrier.replace(0)
    barrier.ask_only(1)
    barrier.replace(1)
    scan = _in_turn(barrier.conclude, lambda: barrier.replace(0), lambda: barrier.ask_only(1))
    return scan, lambda: barrier.ask(0)


def _settle_and_cancel(barrier: Barrier) -> Actors:
    barrier.park()
    barrier.ask(1)
    barrier.replace(1)
    return lambda: barrier.ask(0), barrier.cancel


def _park_and_settle(barrier: Barrier) -> Actors:
    """What is parked first may be settled while the others are parked."""
    return barrier.park, _in_turn(lambda: barrier.ask(0), lambda: barrier.replace(0), lambda: barrier.ask(1))


RACES: Final[dict[str, Callable[[Barrier], Actors]]] = {
    "settle and settle": _settle_and_settle,
    "settle and reset": _settle_and_reset,
    "settle and deadline": _settle_and_deadline,
    "reset and scan": _reset_and_scan,
    "settle and cancel": _settle_and_cancel,
    "park and settle": _park_and_settle,
}


def race(store: Store, name: str, first: int, legs: Sequence[int], files: frozenset[str] = ENGINE) -> Turns:
    """Run a race, the actor of this number first; return how it went.

    Raise `AssertionError` or `Stuck` for what may never be.
    """
    turns = Turns(files, legs)
    barrier = Barrier(store, turns)
    actors = RACES[name](barrier)
    turns.run(actors[first], actors[1 - first])
    barrier.check()
    return turns


def race_in_places(store: Store, name: str, first: int, each: int) -> int:
    """Run a race with the other one's whole run at each place of the first one, or each second, third one, ...

    Return how many places it has.
    """
    place = each
    while race(store, name, first, (place,)).switched:
        place += each
    return place


def race_drawn(store: Store, seed: int, names: Sequence[str] = tuple(RACES)) -> None:
    """Run a race that is drawn, with two or three switches at places that are drawn."""
    drawn = random.Random(seed)
    name, first, files = drawn.choice(names), drawn.randrange(2), drawn.choice((END, END, ENGINE))
    steps = race(store, name, first, (), files).steps
    legs = [drawn.randint(1, steps[leg % 2] + 1) for leg in range(drawn.choice((1, 2, 2, 3)))]
    race(store, name, first, legs, files)


def make_store() -> Store:
    """Return the store of the races; its servers are each race's own."""
    return fake_store(STORE, shim=LogShim)


class Mutant(NamedTuple):
    """A rule that is taken out of a method by replacing its text."""

    owner: type
    method: str
    replaced: Mapping[str, str]


MUTANTS: Final = {
    "compares": Mutant(WaitGroup, "conclude", {"if not stale:": "if stale is not None:"}),
    "comparesCopy": Mutant(
        WaitGroup, "conclude", {"since = self._oldest\n": "since = self._oldest\n        if True:\n"}
    ),  # without the lock
    "openIsAState": Mutant(WaitGroup, "_open", {"if self._over or ": "if self._over and "}),
    "growsFirst": Mutant(
        ServerPoller,
        "reset",
        {
            "    self.generation += 1\n": "    pass\n",
            "    self._answered_at = -1e9": "    pass\n    self.generation += 1",
        },
    ),
    "asAsked": Mutant(
        ServerPoller,
        "_ask",
        {"self._asked_at, self._asked_under)": "self._asked_at, self.generation)", "self._asked_under != ": "None is "},
    ),
    "comparesUnderLock": Mutant(WaitGroup, "end_settled", {" or self._stale(self._oldest)": ""}),
    "onlyOnce": Mutant(WaitGroup, "_end_once", {"= not self._over, True": "= True, True"}),
}
"""By the rules of `spec/tla/Reopen.tla`."""


@contextmanager
def without(rule: str) -> Iterator[None]:
    """Have the engine be without a rule within the block; each barrier's end is concluded as a step of its own."""
    owner, method, replaced = MUTANTS[rule]
    text = textwrap.dedent(inspect.getsource(vars(owner)[method]))
    for old, new in replaced.items():
        assert text.count(old) == 1, f"{method} has another text now: {old!r}"
        text = text.replace(old, new)
    module = sys.modules[owner.__module__]
    made: dict[str, Any] = {}
    assert module.__file__ is not None
    exec(compile("from __future__ import annotations\n" + text, module.__file__, "exec"), vars(module), made)
    patches = {"end_settled": lambda _: False} | ({method: made[method]} if owner is WaitGroup else {})
    with patch.object(owner, method, made[method]), patch.multiple(WaitGroup, **patches):
        yield
