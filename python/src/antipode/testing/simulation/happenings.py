"""What a script's events do to the world, and to the process."""

from __future__ import annotations

import random
from collections.abc import Callable, Sequence
from typing import Final

from antipode._engine.pace import RETRY_S
from antipode._facade.configuration import configure
from antipode.testing.simulation.actors import Scheduler
from antipode.testing.simulation.oracles import Truth
from antipode.testing.simulation.script import Event, Script
from antipode.testing.simulation.shims import SHIMS
from antipode.testing.simulation.world import Cluster, Node

_LEAP_S: Final = 600.0
_PROCESS: Final = frozenset({"threads", "descriptors", "memory", "sense"})
_DISCOVERY: Final = frozenset({"no answer", "no names", "some names"})
_REST_S: Final = {"silence": 1.0, **dict.fromkeys(_PROCESS, RETRY_S[1])}
"""By how many seconds the effect of a fault outlasts it: a question that was asked in a silence waits, and behind a
fault of the process the thread that asks pauses."""


class Happenings:
    """The world of one run, and the faults of the process in it."""

    def __init__(self, run: Scheduler, script: Script) -> None:
        self.run = run
        self.features = script.features
        self._chance = random.Random(f"world {script.seed}")
        self.clusters = [
            Cluster(
                run,
                random.Random(f"store {place} {script.seed}"),
                f"s{place}",
                script.features.servers,
                has_objects=SHIMS[kind].capabilities.versions == "object",
                is_paced=SHIMS[kind].own_pace > 0,
                lag=script.features.lag,
                flight=script.features.flight,
            )
            for place, kind in enumerate(script.features.kinds)
        ]
        self.truth = Truth(run, script.features, self.clusters)
        self._leap = 0.0

    def happen(self, event: Event) -> None:
        """Have an event happen. One that means nothing here, or now, does nothing."""
        if event.store >= len(self.clusters):
            return
        cluster = self.clusters[event.store]
        node = cluster.nodes[event.node % len(cluster.nodes)]
        self.run.tell(str(event))
        if event.what != "write":
            until = self.run.now + event.value + _REST_S.get(event.what, 0.0)
            self.truth.quiet_from = max(self.truth.quiet_from, until)
        if event.what in _PROCESS or event.what in _DISCOVERY:
            self.run.troubles[event.what] = max(self.run.troubles.get(event.what, 0.0), self.run.now + event.value)
            self.truth.faults.append((event.what, self.run.now, self.run.now + event.value))
            return
        self._act(event, cluster, node)

    def _act(self, event: Event, cluster: Cluster, node: Node) -> None:
        now, seconds = self.run.now, event.value
        match event.what:
            case "write":
                cluster.write()
            case "old write":
                if node.primary is None and node is not cluster.primary:
                    cluster.write(node)
            case "promote":
                cluster.promote(node)
            case "point":
                other = cluster.nodes[event.other % len(cluster.nodes)]
                if node is not cluster.primary:
                    cluster.point(node, other, seconds)
            case "empty":
                if node is not cluster.primary:
                    cluster.point(node, cluster.blank)
                    self.run.at(now + seconds, lambda: cluster.point(node, cluster.primary))
            case "failed copy":
                if node is not cluster.primary:
                    cluster.point(node, cluster.primary, seconds, fails=True)
            case "restart":
                cluster.restart(node, event.other)
            case "freeze":
                node.frozen_until = now + seconds
            case "silence":
                node.fall_silent(seconds)
            case "slow":
                node.slow_until = now + seconds
            case "refuse":
                node.refuses_until = now + seconds
                self.truth.faults.append(("refuse", now, now + seconds))
            case "cut":
                node.cut()
            case _:
                self._act_on_process(event, node)

    def _act_on_process(self, event: Event, node: Node) -> None:
        match event.what:
            case "deaf":
                for channel in node.channels:
                    channel.is_deaf = channel.by_thread  # where it is the questions' connection, those fail, too
            case "wall clock":
                self.run.step += (event.value - 0.3) * 1000
            case "leap":
                self.truth.faults.append(("leap", self.run.now, self.run.now + _LEAP_S + 5.0))
                self.run.now += _LEAP_S
                self._leap += _LEAP_S
            case "tune":
                ttl = (0.0, 0.02, 0.25)[event.other % 3]
                self.truth.ttl = max(self.truth.ttl, ttl)
                configure(free_path_ttl=ttl)

    def take_leap(self) -> float:
        """Return by how much the clock leapt since this was asked last."""
        leap, self._leap = self._leap, 0.0
        return leap

    def discovery(self, cluster: Cluster) -> Callable[[], Sequence[Node]]:
        """Return what names the servers of a store."""

        questions = self.truth.questions[cluster.name]

        def ask() -> Sequence[Node]:
            with questions.asked(self.run.now):
                if self.run.current is not None:
                    self.run.sleep(cluster.flight * cluster.chance.random())
                if self.run.has_trouble("no answer"):
                    raise ConnectionError("the name service does not answer")
                if self.run.has_trouble("no names"):
                    return []
                named = cluster.readable[:1] if self.run.has_trouble("some names") else cluster.readable
                self.truth.discovered[cluster.name] = self.run.now, named
                return named

        return ask

    def heal(self) -> None:
        """End every fault."""
        self.run.tell("heal")
        self.run.troubles.clear()
        now = self.run.now
        self.truth.faults = [
            (name, begun, until if name == "leap" else min(until, now)) for name, begun, until in self.truth.faults
        ]
        configure(free_path_ttl=self.features.ttl)
        self.truth.quiet_from = max(
            [now, *(until + _REST_S[name] for name, _, until in self.truth.faults if name in _PROCESS)]
        )
        for cluster in self.clusters:
            cluster.heal()
