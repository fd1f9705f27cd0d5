"""What may never be: each finding is a sentence. The world's own truth judges, and no position does."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from typing import Final

from antipode._engine.discovery import CURRENT_S
from antipode._engine.judgement import _GONE
from antipode._engine.pace import CAP_S, RETRY_S, SAFETY_NET
from antipode._engine.waiting import LOOK_S
from antipode._model.result import BarrierResult, StoreResult
from antipode._model.verdict import UnprovenKind, Verdict
from antipode.testing.simulation.actors import FOREVER, Scheduler
from antipode.testing.simulation.script import Call, Features
from antipode.testing.simulation.world import Cluster, Node

_LATE_S: Final = 0.01
_NOTHING_S: Final = 1e-9
_TROUBLES: Final[Mapping[UnprovenKind, tuple[str, ...]]] = {
    UnprovenKind.OWN_FAULT: ("threads", "descriptors", "memory", "sense"),
    UnprovenKind.OTHER: ("refuse", "sense"),
    UnprovenKind.DISCOVERY: ("no answer", "no names", "leap"),
    UnprovenKind.NOT_OPENED: (),
}


@dataclass(frozen=True, slots=True)
class Finding:
    """Something that may never be, and when it was."""

    oracle: str
    words: str
    at: float

    def __str__(self) -> str:
        return f"{self.oracle} at {self.at:.4f}: {self.words}"


class Questions:
    """Those of one store for its servers: one at a time."""

    def __init__(self) -> None:
        self._asked_at: float | None = None
        self._told_at = -FOREVER

    @contextmanager
    def asked(self, now: float) -> Iterator[None]:
        """Note that one is asked, and when it has come to something: an answer or a fault."""
        self._asked_at = now
        try:
            yield
        finally:
            self._told_at, self._asked_at = now, None

    def leaves_unknown(self, now: float, *, looks: bool) -> bool:
        """Return whether what was said is too old, and the next is under way; who only looks has just had it asked."""
        return now - self._told_at > CURRENT_S and (self._asked_at is not None or looks)


class Truth:
    """What the world knows of the faults that were, beside its nodes."""

    def __init__(self, run: Scheduler, features: Features, clusters: Sequence[Cluster]) -> None:
        self.run = run
        self.features = features
        self.clusters = clusters
        self.ttl = features.ttl
        """The longest that was in force."""
        self.quiet_from = 0.0
        """Since when nothing happens but writes."""
        self.faults: list[tuple[str, float, float]] = []
        """Which, from when and until when."""
        self.discovered: dict[str, tuple[float, Sequence[Node]]] = {}
        """By store: whom discovery named last, and when."""
        self.questions = {cluster.name: Questions() for cluster in clusters}
        """By store, for its servers."""
        self.findings: list[Finding] = []

    def find(self, oracle: str, words: str) -> None:
        """Note a finding."""
        self.findings.append(Finding(oracle, words, self.run.now - 1000))
        self.run.tell(f"FOUND {oracle}: {words}")

    def had(self, what: Sequence[str], since: float) -> bool:
        """Return whether one of these faults was there since then."""
        return any(name in what and until >= since and begun <= self.run.now for name, begun, until in self.faults)

    def leapt(self, since: float) -> bool:
        """Return whether the process stood still, so that nothing it did since then was in time."""
        return self.had(("leap",), since)

    # 1: a pass is a snapshot

    def judge_pass(
        self, result: BarrierResult, wanted: Mapping[int, Sequence[int]], begun: float, *, together: bool
    ) -> None:
        """Find whether a pass speaks of a write that is not there, or says nothing of a server.

        wanted: the writes, by store. together: it was to be complete (BAR-64). What a pass says was so within its
        exposure: for `free_path_ttl` where it asked nobody, else where several servers answer for three questions
        longer; and no longer than until a push said that the data were replaced.
        """
        if self.leapt(begun - self.ttl):
            return
        judged = [(place, node) for place in wanted for node in self._judged(place, result)]
        longest = max(cluster.longest for cluster in self.clusters)
        if self.run.now - begun <= _NOTHING_S:
            exposure = self.ttl
        elif len(judged) == 1:
            exposure = max(self.ttl, longest)
        else:
            exposure = self.ttl + 3 * longest
            for place in wanted:  # where one is asked for after the other, the moment stays for all turns
                if self.clusters[place].is_paced:
                    exposure += len(self.clusters[place].writes) * (longest + 0.03)
        for place, node in judged:
            for number in wanted[place]:
                ago = self.run.now - node.lost_at(number)
                if not node.has(number) and ago > exposure + _NOTHING_S:
                    past = f"lost it {ago:.4f} s ago" if ago < 1e6 else "never had it"
                    words = f"{node.name} is said to have w{number} and {past}: stated are {exposure:.4f} s"
                    self.find("snapshot", words)
                elif not node.has(number) and node.lost_at(number) <= node.told_of and node.told_at < self.run.now:
                    self.find("told", f"{node.name} lost w{number} {ago:.4f} s ago, its push said so, and it passes")

        if together and len(judged) > 1:
            self._judge_instant(judged, wanted, begun)

    def _judge_instant(
        self, judged: Sequence[tuple[int, Node]], wanted: Mapping[int, Sequence[int]], begun: float
    ) -> None:
        """Find whether there was no instant of the call at which all servers had all writes (BAR-64)."""
        common = [(begun, self.run.now)]
        for place, node in judged:
            for number in wanted[place]:
                spans = node.spans_of(number)
                common = [
                    (max(one, other), min(end, until))
                    for one, end in common
                    for other, until in spans
                    if max(one, other) <= min(end, until)
                ]
        if not common:
            self.find("instant", f"{[node.name for _, node in judged]} never had {dict(wanted)} together in the call")

    def _judged(self, place: int, result: BarrierResult) -> Iterator[Node]:
        cluster = self.clusters[place]
        found = result.stores[cluster.name]
        named = {server.address: server for server in found.servers}
        for node in cluster.readable:
            server = named.get(node.name)
            if server is None or server.reason == _GONE:
                if not self.features.discovers or self._is_known(node):
                    self.find("names", f"a pass does not speak of {node.name}: {found}")
            elif not server.left_out:
                yield node

    def _is_known(self, node: Node) -> bool:
        """Return whether discovery has named a node, so that a pass speaks of it (BAR-65)."""
        since, nodes = self.discovered.get(node.cluster.name, (FOREVER, ()))
        return node in nodes and since < self.run.now - _NOTHING_S

    # 2: exactly one completion, in time

    def judge_end(self, call: Call, begun: float, ends: int) -> None:
        """Find whether a barrier ended in time, and once."""
        deadline = begun + (call.timeout or LOOK_S)
        if ends != 1:
            self.find("once", f"a barrier ended {ends} times")
        if self.run.now > deadline + _LATE_S and not self.leapt(begun):
            self.find("deadline", f"a barrier ended {self.run.now - deadline:.4f} s behind its deadline")

    # 2b: how soon, and how often asked (BAR-66)

    def judge_delay(self, result: BarrierResult, wanted: Mapping[int, Sequence[int]], begun: float) -> None:
        """Find whether a barrier passed late: all was there, nothing was wrong, and nobody looked."""
        place = next(iter(wanted))
        cluster = self.clusters[place]
        if self.leapt(begun) or len(self.clusters) > 1 or cluster.is_paced or self.features.discovers:
            return
        there = [
            max(begun for begun, _ in node.spans_of(number))
            for node in self._judged(place, result)
            for number in wanted[place]
            if node.has(number)
        ]
        delay = self.run.now - max(self.quiet_from, begun, *there)
        most = max(CAP_S, 1.1 * SAFETY_NET * self.features.poll) + 6 * cluster.longest + _LATE_S
        most += RETRY_S[0] * sum(node.is_found_cut(self.run.now - delay) for node in cluster.readable)
        if delay > most:
            self.find("delay", f"{wanted[place]} were everywhere for {delay:.4f} s: at most {most:.4f} are stated")

    def judge_questions(self) -> None:
        """Find whether a server was asked more often than once a shortest interval, for nobody new."""
        if self.features.discovers:  # several servers of the engine may be one node
            return
        for node in (node for cluster in self.clusters for node in cluster.nodes):
            for at, apart in node.hasty[:1]:
                self.find("often", f"{node.name} was asked at {at - 1000:.4f}, {apart:.4f} s behind the last question")

    # 3 and 4: what is unproven is so, and for that reason; silence is a server's own

    def judge_rest(self, call: Call, result: BarrierResult, wanted: Mapping[int, Sequence[int]], begun: float) -> None:
        """Find whether what is said of stores that are not visible, and of servers left out, is so."""
        is_overloaded = any(each.overloaded for each in result.stores.values())
        for place, numbers in wanted.items():
            cluster = self.clusters[place]
            found = result.stores[cluster.name]
            for server in found.servers:
                node = next((each for each in cluster.nodes if each.name == server.address), None)
                is_named = server.reason == _GONE
                if server.left_out and node is not None and not is_named and not self._is_out(node, begun):
                    self.find("silence", f"{node.name} was left out ({server.reason}), and was not silent so long")
            if found.verdict is Verdict.UNPROVEN:
                self._judge_unproven(call, cluster, numbers, found, begun)
            elif found.verdict is Verdict.TIMED_OUT and not is_overloaded:
                waited = self.run.now - begun
                self._judge_late(cluster, numbers, begun)
                if waited < 0.9 * call.timeout:
                    self.find("early", f"a barrier was given up {call.timeout - waited:.4f} s before its deadline")

    def _judge_late(self, cluster: Cluster, numbers: Sequence[int], begun: float) -> None:
        """Find whether a barrier of a store alone timed out though all was there for long, and nothing was wrong."""
        if self.leapt(begun):
            return
        since = max(
            self.quiet_from,
            begun,
            *(
                max(begun for begun, _ in node.spans_of(each)) if node.has(each) else FOREVER
                for node in cluster.readable
                for each in numbers
            ),
        )
        least = 0.6 + 6 * cluster.longest + 20 * self.features.poll
        if cluster.is_paced:  # one is asked for after the other
            least += 3 * len(cluster.writes) * (cluster.longest + 0.03)
        if self.run.now - since > least and len(self.clusters) == 1 and not self.features.discovers:
            self.find("late", f"{list(numbers)} are everywhere since {self.run.now - since:.4f} s, and it timed out")

    def _is_out(self, node: Node, begun: float) -> bool:
        now = self.run.now
        least = self.features.replica_out_after - node.cluster.opening
        recent = begun - 0.5 - 3 * min(1.0, self.features.replica_out_after / 2) - _LATE_S
        return any(until >= recent and min(now, until + 3) - since >= least - _LATE_S for since, until in node.silences)

    def _is_old(self, call: Call, cluster: Cluster, numbers: Sequence[int]) -> bool:
        """Return whether one of these writes' histories began longer ago than the barrier waits (EPOCH-13)."""
        least = self.run.now - call.timeout + _LATE_S
        return any(cluster.began[cluster.epoch_of(number)] <= least for number in numbers)

    def _is_unknown(self, call: Call, cluster: Cluster) -> bool:
        """Return whether a barrier that waited for what discovery says next has no answer yet (BAR-67)."""
        return self.questions[cluster.name].leaves_unknown(self.run.now, looks=not call.timeout)

    def _judge_unproven(
        self, call: Call, cluster: Cluster, numbers: Sequence[int], found: StoreResult, begun: float
    ) -> None:
        kind = found.kind or UnprovenKind.OTHER
        if kind is UnprovenKind.HISTORY:
            if self.run.now >= begun + call.timeout - _LATE_S:
                return  # the server does not know that epoch, and the time is over
            if "unknown epoch" in found.reason and self._is_old(call, cluster, numbers):
                return
            since = begun - max(self.ttl, cluster.longest) - _LATE_S
            epochs = {cluster.epoch_of(number) for number in numbers}
            said = any(
                at >= since and cluster.epoch_of(number) in epochs
                for node in cluster.nodes
                for at, number in node.denials
            )
            if not said:
                self.find("final", f"{found.reason}: no server said so")
        elif kind is UnprovenKind.CONNECTION:
            if _GONE not in found.reason and not any(self._is_out(node, begun) for node in cluster.nodes):
                self.find("silence", f"{found.reason}: no server was silent so long")
        elif kind is UnprovenKind.DISCOVERY and self._is_unknown(call, cluster):
            return
        elif kind in _TROUBLES:
            past = 45.0 if kind in {UnprovenKind.DISCOVERY, UnprovenKind.NOT_OPENED} else 1.0 + cluster.longest
            if not self.had(_TROUBLES[kind], begun - past):
                self.find("kind", f"{found.kind}: {found.reason}: there was no such trouble")
