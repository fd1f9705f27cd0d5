"""The engine, broken on purpose: what a rule is for shows where it is taken out, and the oracles have to find it."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping
from contextlib import ExitStack, contextmanager
from typing import Any, Final
from unittest.mock import patch

from antipode._base.settings import settings
from antipode._engine import free_path, pace, server
from antipode._engine.barrier_waits import BarrierWaits
from antipode._engine.pace import Pace
from antipode._engine.pending_wait import PendingWait, WaitGroup
from antipode._engine.server import ServerPoller
from antipode._engine.wait_queue import WaitQueue
from antipode.testing.simulation.actors import scheduler

Patches = Iterator[Any]
_never: Final = lambda *_, **__: None  # noqa: E731


def _settled_stays() -> Patches:
    """What was proved once is not looked at again when the barrier ends (C12)."""
    yield patch.object(PendingWait, "needs_proof", property(lambda _: False))


def _age_from_answer() -> Patches:
    """A proof is as old as its answer, and not as its question (T3)."""
    original = ServerPoller.applied

    def applied(self: ServerPoller, instance: str, epoch: str, positions: Mapping[str, int]) -> None:
        self._asked_at = scheduler().now
        original(self, instance, epoch, positions)

    yield patch.object(ServerPoller, "applied", applied)


def _overtaken_counts() -> Patches:
    """An answer counts though the data were replaced while it was under way."""
    yield patch.object(ServerPoller, "_asked_under", property(lambda self: self.generation, _never), create=True)


def _own_fault_is_silence() -> Patches:
    """A process without descriptors takes its servers for silent."""
    yield patch.object(server, "is_own_fault", lambda _: False)


def _poke_is_lost() -> Patches:
    """Nobody wakes the thread that asks."""
    yield patch.object(ServerPoller, "_poke", _never)


def _scan_of_now() -> Patches:
    """The end of a barrier looks at one proof after the other, each as it is then (T5)."""

    def conclude(self: WaitGroup) -> bool:
        is_whole = False
        while not is_whole:
            with self._lock:
                if self._left or self._over:
                    return False
            is_whole = True
            for each in self.needs:
                with self._lock:
                    stands = not each.needs_proof or each.generation == each.server.generation
                if not stands and self._open(each, each.generation, each.asked_at, self._oldest):
                    if not each.server.park(each):
                        return False
                    is_whole = False
        return self._end_once()

    yield patch.object(WaitGroup, "end_settled", lambda _: False)
    yield patch.object(WaitGroup, "conclude", conclude)


def _counter_is_no_state() -> Patches:
    """Whoever opens a need counts it, though another thread opened it already."""
    original = WaitGroup._open

    def _open(self: WaitGroup, each: PendingWait, *proof: Any) -> bool:
        if original(self, each, *proof):
            return True
        with self._lock:
            self._left += not self._over
        return False

    yield patch.object(WaitGroup, "_open", _open)


def _epochs_are_one() -> Patches:
    """What was proved stays where the server comes to be another one, or its epoch does."""
    original = ServerPoller.applied

    def applied(self: ServerPoller, instance: str, epoch: str, positions: Mapping[str, int]) -> None:
        kept = dict(self._applied)
        self._instance, self._epoch = instance, epoch
        original(self, instance, epoch, {**kept, **{each: max(n, kept.get(each, 0)) for each, n in positions.items()}})

    yield patch.object(ServerPoller, "applied", applied)


def _probe_never_ends() -> Patches:
    """A server is asked on for what it has shown."""
    yield patch.object(WaitQueue, "_drop_probe", _never)


def _releases_twice() -> Patches:
    """Whoever settles the last need releases, and so does whoever comes behind him."""
    original = WaitGroup.release

    def release(self: WaitGroup) -> None:
        original(self)
        original(self)

    yield patch.object(WaitGroup, "release", release)


def _wall_clock() -> Patches:
    """How long an epoch has been unknown is told by the wall clock."""
    original = WaitQueue._answer_position

    def _answer_position(self: WaitQueue, write_id: Any, answer: Any, now: float, *rest: Any) -> None:
        original(self, write_id, answer, now + scheduler().step, *rest)

    yield patch.object(WaitQueue, "_answer_position", _answer_position)


def _old_proofs() -> Patches:
    """A proof is believed for twice its time where nobody is asked."""
    original = free_path._stand_together

    def stand_together(needs: Any, now: float) -> bool:
        return original(needs, now - settings().free_path_ttl)

    yield patch.object(free_path, "_stand_together", stand_together)


def _any_age() -> Patches:
    """A proof may be as old as it likes when the barrier ends, as long as nobody dropped it."""
    yield patch.object(WaitGroup, "_oldest", property(lambda _: -1e9))


def _shown_once() -> Patches:
    """A barrier that is to be complete takes what each server showed at its own time (BAR-64)."""
    yield patch.object(WaitGroup, "_oldest", property(lambda self: self._moment - settings().free_path_ttl))


def _nobody_abandons() -> Patches:
    """The places of tasks whose event loop was closed stay taken."""
    yield patch.object(WaitGroup, "abandon", _never)


def _asked_at_each_push() -> Patches:
    """A push is asked for at once, however often they come (BAR-66)."""
    original = Pace.due

    def due(self: Pace, *given: Any) -> float:
        return self.asked_at if self.has_news else original(self, *given)

    yield patch.object(Pace, "due", due)


def _prediction_without_bound() -> Patches:
    """A server is asked when the position is expected, however late that is (BAR-66)."""
    yield patch.object(pace, "CAP_S", 60.0)


def _servers_of_the_call() -> Patches:
    """A pass speaks of the servers that were known when the barrier was called (BAR-65)."""

    def take(self: BarrierWaits, group: WaitGroup) -> bool:
        self.group, self.needs = group, group.needs
        return True

    yield patch.object(BarrierWaits, "take", take)


MUTANTS: Final[Mapping[str, Callable[[], Patches]]] = {
    "settled stays": _settled_stays,
    "age from answer": _age_from_answer,
    "overtaken counts": _overtaken_counts,
    "own fault is silence": _own_fault_is_silence,
    "poke is lost": _poke_is_lost,
    "scan of now": _scan_of_now,
    "counter is no state": _counter_is_no_state,
    "epochs are one": _epochs_are_one,
    "probe never ends": _probe_never_ends,
    "releases twice": _releases_twice,
    "wall clock": _wall_clock,
    "old proofs": _old_proofs,
    "any age": _any_age,
    "shown once": _shown_once,
    "nobody abandons": _nobody_abandons,
    "servers of the call": _servers_of_the_call,
    "asked at each push": _asked_at_each_push,
    "prediction without bound": _prediction_without_bound,
}


@contextmanager
def mutated(name: str | None) -> Iterator[None]:
    """Have the engine be broken so within the block; as it is, where no name is given."""
    with ExitStack() as stack:
        for each in MUTANTS[name]() if name is not None else ():
            stack.enter_context(each)
        yield
