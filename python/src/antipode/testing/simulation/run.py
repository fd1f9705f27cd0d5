"""One run: a script, played to its end, then healed, with everything that the oracles found."""

from __future__ import annotations

import asyncio
import gc
import logging
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any, Final
from unittest.mock import patch

import antipode
from antipode._base import logs, observers
from antipode._base.settings import reset_settings
from antipode._diagnostics import announcement
from antipode._engine import free_path, plan
from antipode._engine.discovery import REFRESH_S
from antipode._engine.server import ServerPoller
from antipode._engine.wait_queue import LINGER_S
from antipode._facade.configuration import configure
from antipode._model.lineage import Lineage
from antipode._model.result import BarrierIncomplete, BarrierResult
from antipode._scope.scope import open_scope
from antipode._store.store import Registry, Store, join_store, replace_registry, twins_of
from antipode.shim import StoreOptions
from antipode.testing.simulation.actors import Scheduler, SimulationError, put_scheduler
from antipode.testing.simulation.happenings import Happenings
from antipode.testing.simulation.oracles import Finding
from antipode.testing.simulation.script import Call, Script
from antipode.testing.simulation.seams import SimulatedLoop
from antipode.testing.simulation.shims import SHIMS

_PASS_S: Final = 2.0
_BRISK_S: Final = 0.15


@dataclass(frozen=True, slots=True)
class Outcome:
    """What a run came to."""

    script: Script
    findings: list[Finding]
    hash: str
    log: Sequence[str]
    passes: int


def play(script: Script) -> Outcome:
    """Play a script; the engine has to be on the seams."""
    run = Scheduler(script.seed, script.features.preemption)
    put_scheduler(run)
    before = replace_registry(Registry())
    _forget()
    level, logs.logger.disabled = logs.logger.disabled, True
    director = _Director(run, script)
    try:
        try:
            run.spawn(director.direct, "director")
            run.run(lambda: director.is_over or bool(run.errors))
        except SimulationError as error:
            run.errors.append(("scheduler", error))
        for name, raised in run.errors:
            director.truth.find("error", f"{name}: {type(raised).__name__}: {raised}")
    finally:
        run.end()
        director.close()
        replace_registry(before)
        _forget()
        logs.logger.disabled = level
        put_scheduler(None)
    return Outcome(script, director.truth.findings, run.hash, run.log, director.passes)


def _forget() -> None:
    """Clear what the process would remember of another run."""
    reset_settings()
    logs.reset()
    announcement.reset()
    observers.barriers.clear()
    twins_of.cache_clear()


def _options(call: Call) -> dict[str, Any]:
    options = {"timeout": call.timeout, "on_timeout": "proceed", "on_unproven": "proceed"}
    return {**options, "require_complete": True} if call.is_complete else options


class _Director:
    def __init__(self, run: Scheduler, script: Script) -> None:
        self.run = run
        self.script = script
        features = script.features
        self.happenings = Happenings(run, script)
        self.clusters = self.happenings.clusters
        self.truth = self.happenings.truth
        self.is_over = False
        self.passes = 0
        self._open: set[object] = set()
        """Barriers that have begun and not ended."""
        self._loops = [SimulatedLoop()]
        """The last one is in use: those before were closed while tasks were parked."""
        self._of_loop: set[object] = set()
        """Barriers of the tasks of the loop in use."""
        self._features = features
        self._stores: list[Store] = []

    # The play

    def direct(self) -> None:
        """Play the script, then heal the world and see that everything comes right."""
        self._join()
        begun = self.run.now
        for one in self.script.items:
            if begun + one.at > self.run.now:
                self.run.sleep(begun + one.at - self.run.now)
            if isinstance(one, Call):
                self._begin(one)
            elif one.what == "loop":
                self._close_loop()
            else:
                self.happenings.happen(one)
        self._await("the script's barriers", 20.0 + max((each.timeout for each in self.script.calls), default=0.0))
        self.happenings.heal()
        # Behind a leap nobody asks any more, and what was silent before counts as out for a while.
        self.run.sleep(4.0 if any(name == "leap" for name, _, _ in self.truth.faults) else 1.5)
        if self._features.discovers:
            self.run.sleep(REFRESH_S)
            for store in self._stores:
                store.servers()  # where the answer is old, it is asked for now
            self.run.sleep(1.0)
        self._come_right()
        self.truth.judge_questions()
        self._end()
        self.is_over = True

    def _join(self) -> None:
        features = self._features
        configure(
            poll=features.poll,
            free_path_ttl=features.ttl,
            replica_out_after=features.replica_out_after,
            reconnect=features.reconnect,
            max_waiters=features.places,
            max_tasks=features.places,
            on_replica_out="fail" if features.fails else "name",
        )
        for cluster, kind in zip(self.clusters, features.kinds, strict=True):
            names: Any = self.happenings.discovery(cluster) if features.discovers else list(cluster.readable)
            self._stores.append(join_store(cluster.name, SHIMS[kind], StoreOptions(replicas=names)))

    def _begin(self, call: Call) -> None:
        wanted = self._wanted(call)
        if not wanted:
            return
        ticket = object()
        self._open.add(ticket)
        if call.by_task:
            self._of_loop.add(ticket)
            self._loops[-1].start(lambda: self._call_as_task(call, wanted, ticket), call.cancel_after)
        else:
            self.run.spawn(lambda: self._call(call, wanted, ticket), "barrier")

    def _close_loop(self) -> None:
        """Close the event loop; nobody wakes its tasks any more."""
        self.run.tell("the loop is closed")
        self._loops[-1].end()
        self._loops.append(SimulatedLoop())
        self._open -= self._of_loop
        self._of_loop.clear()

    def _wanted(self, call: Call) -> dict[int, list[int]]:
        wanted: dict[int, list[int]] = {}
        for place, back in call.picks:
            if place < len(self.clusters) and self.clusters[place].writes:
                number = max(len(self.clusters[place].writes) - back, 1)
                if number not in wanted.setdefault(place, []):
                    wanted[place].append(number)
        return wanted

    def _lineage(self, wanted: Mapping[int, Iterable[int]]) -> Lineage:
        return Lineage([self.clusters[place].writes[each - 1] for place, some in wanted.items() for each in some])

    def _await(self, what: str, seconds: float) -> None:
        until = self.run.now + seconds
        while self._open and (self.run.now < until or self.truth.leapt(until - seconds)):
            self.run.sleep(0.05)
            until += self.happenings.take_leap()
        if self._open:
            self.truth.find("hang", f"{what}: {len(self._open)} have not ended")
            self._open.clear()

    def close(self) -> None:
        """End the tasks of a run that was broken off, quietly."""
        left = [task for loop in self._loops for task in loop.tasks if not task.done()]
        if not left:
            return
        before = logging.root.manager.disable
        logging.disable(logging.CRITICAL)
        for task in left:
            task.get_coro().close()
        for loop in self._loops:
            loop.tasks.clear()
        del left, task, loop
        gc.collect()
        logging.disable(before)

    # Barriers of threads

    def _call(self, call: Call, wanted: Mapping[int, Sequence[int]], ticket: object) -> None:
        with open_scope(self._lineage(wanted)) as scope:
            for turn in range(call.repeats + 1):
                if turn:
                    self.run.sleep(call.pause)
                    self._compare(scope.recorded_lineage)
                begun = self.run.now
                try:
                    result = antipode.barrier(**_options(call))
                except BarrierIncomplete as error:
                    result = error.result
                if not self._take(call, result, wanted, begun):
                    break
        self._open.discard(ticket)

    def _take(self, call: Call, result: BarrierResult, wanted: Mapping[int, Sequence[int]], begun: float) -> bool:
        """Judge what came of a barrier; return whether it passed."""
        self.run.tell(f"{result.satisfied} {call}")
        self.truth.judge_end(call, begun, 1)
        if result.satisfied:
            self.passes += 1
            self.truth.judge_pass(result, wanted, begun, together=call.is_complete and result.complete)
            self.truth.judge_delay(result, wanted, begun)
        self.truth.judge_rest(call, result, wanted, begun)
        return result.satisfied

    def _compare(self, lineage: Lineage) -> None:
        """See that the long way says what the free path says, in one moment (oracle 6)."""
        before, self.run.preemption = self.run.preemption, 0.0
        try:
            passed = free_path.free(plan.DEFAULT)
            if passed is not None:
                now = self.run.now
                with patch.object(free_path, "_stand_together", lambda *_: False):
                    asked = antipode.barrier(lineage, timeout=0.0, on_timeout="proceed", on_unproven="proceed")
                if not asked.satisfied or asked.complete != passed.complete or self.run.now > now:
                    self.truth.find("free path", f"it passes where the long way says: {asked.explain()}")
        finally:
            self.run.preemption = before

    # Barriers of tasks

    async def _call_as_task(self, call: Call, wanted: Mapping[int, Sequence[int]], ticket: object) -> None:
        try:
            with open_scope(self._lineage(wanted)):
                for turn in range(call.repeats + 1):
                    if turn:
                        await asyncio.sleep(call.pause)
                    begun = self.run.now
                    try:
                        result = await antipode.barrier_async(**_options(call))
                    except BarrierIncomplete as error:
                        result = error.result
                    if not self._take(call, result, wanted, begun):
                        break
        except asyncio.CancelledError:
            self.run.tell(f"cancelled {call}")
            raise
        finally:
            self._open.discard(ticket)

    # The end

    def _come_right(self) -> None:
        """See that everything that is there passes, and nothing else does (oracle 5)."""
        if self._features.ttl:
            self.run.sleep(self._features.ttl)
        for place, cluster in enumerate(self.clusters):
            there = [each for each in range(1, len(cluster.writes) + 1) if cluster.primary.has(each)]
            gone = [each for each in range(1, len(cluster.writes) + 1) if each not in there]
            if there:
                self._see({place: there}, _PASS_S, passes=True)
            for number in gone[-2:]:
                self._see({place: [number]}, 0.2, passes=False)
            self.run.sleep(self._features.ttl + 0.01)
            number = cluster.write()
            self.run.sleep(0.05)
            self._see({place: [number]}, _BRISK_S, passes=True)

    def _see(self, wanted: dict[int, list[int]], seconds: float, *, passes: bool) -> None:
        found: list[BarrierResult] = []
        call = Call(self.run.now - 1000, seconds, ())
        begun = self.run.now

        def wait() -> None:
            found.append(
                antipode.barrier(self._lineage(wanted), timeout=seconds, on_timeout="proceed", on_unproven="proceed")
            )
            self._take(call, found[0], wanted, begun)
            self._open.discard(call)

        self._open.add(call)
        self.run.spawn(wait, "barrier")
        self._await("a barrier after everything was healed", seconds + 1.0)
        if found and found[0].satisfied is not passes:
            word = "does not pass" if passes else "passes"
            self.truth.find("liveness", f"healed, and {wanted} {word}: {found[0].explain()}")

    def _end(self) -> None:
        """See that nothing is left: no place taken, nothing parked, no actor, nobody asked for what is there."""
        self._loops[-1].end()
        for store in self._stores:
            if store.parked_threads or store.parked_tasks or store.parked_entries:
                taken = f"{store.parked_threads} threads, {store.parked_tasks} tasks, {store.parked_entries} entries"
                self.truth.find("places", f"{store.name}: {taken} are parked")
            for server in store.servers():
                if isinstance(server, ServerPoller) and server.waiters.live:
                    self.truth.find("places", f"{server.address}: {server.waiters.live} needs are live")
        idle = self.run.now
        if self._features.lingers:
            self.run.sleep(LINGER_S + 3.0)
            self._judge_questions(idle + 0.5)
        else:
            for store in self._stores:
                store.forget()
            self.run.sleep(3.0)
        left = [actor.name for actor in self.run.actors if actor is not self.run.current]
        if left and not self._features.discovers:  # who was named anew left one behind, which lingers
            self.truth.find("actors", f"these go on: {left}")

    def _judge_questions(self, since: float) -> None:
        for cluster in self.clusters:
            for node in cluster.readable:
                for at, numbers in node.questions:
                    there = [number for number in numbers if node.has(number)]
                    if at >= since and there:
                        self.truth.find("questions", f"{node.name} is asked for w{there[0]}, which nobody waits for")
                        return
