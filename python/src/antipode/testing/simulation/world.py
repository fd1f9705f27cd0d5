"""What is really there: nodes with logs that follow one another, lose data, and answer slowly or not at all.

The oracles ask a node which writes its log holds, and when it lost one. They know nothing of positions.
"""

from __future__ import annotations

import random
from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass, field
from typing import Final, NamedTuple

from antipode._model.write_id import Ordered, WriteId
from antipode.testing.simulation.actors import FOREVER, Actor, Scheduler

NEVER: Final = -1e9
KEYS: Final = 3
"""So many objects a store has."""


class Record(NamedTuple):
    """One entry of a log."""

    epoch: str
    number: int
    """Of the write; 0 for a mark, which says what the epochs before had."""


@dataclass(eq=False)
class Channel:
    """A push channel. It tells what happens at its node, unless it is deaf, until it breaks."""

    node: Node
    number: int
    on_change: Callable[[], None]
    on_loss: Callable[[], None]
    """What a shim calls where the data were replaced."""
    by_thread: bool
    """A thread of the client calls back: it has no descriptor."""
    news: list[tuple[str, float]] = field(default_factory=list)
    is_broken: bool = False
    is_deaf: bool = False
    sleeper: Actor | None = None
    arrives_at: float = 0.0
    """When the last that was sent arrives: nothing that is sent later on this connection comes before."""

    @property
    def has_news(self) -> bool:
        """Return whether it can be read."""
        return bool(self.news) or (self.is_broken and not self.is_deaf)


class Node:
    """A server of a store as it is."""

    def __init__(self, cluster: Cluster, name: str) -> None:
        self.cluster = cluster
        self.name = name
        self.log: list[Record] = []
        self.epoch = ""
        self.instance = 0
        self.primary: Node | None = None
        self.connection = 0
        """Another number whenever connections to it broke."""
        self.silent_until = NEVER
        self.silences: list[tuple[float, float]] = []
        """From when to when it did not answer: the first question without an answer began then, and the last ended."""
        self.is_failing = False
        self.frozen_until = NEVER
        """Until then it applies nothing."""
        self.slow_until = NEVER
        self.refuses_until = NEVER
        self.loads_until = NEVER
        """It copies another node's data, and cannot tell what it has."""
        self.copies = 0
        """How many were begun, or given up: the last one counts."""
        self.there: set[int] = set()
        """The writes that it has."""
        self.spans: dict[int, list[tuple[float, float]]] = {}
        """From when to when it had each write."""
        self.denials: list[tuple[float, int]] = []
        """When it said of which write that it cannot come any more."""
        self.channels: list[Channel] = []
        self.told_of = NEVER
        """The last loss that a push told the engine of, and when it did."""
        self.told_at = NEVER
        self.renewed_at = NEVER
        self.askers: set[object] = set()
        """Who asks it now."""
        self.questions: list[tuple[float, tuple[int, ...]]] = []
        """When it was asked for which writes."""
        self.called_at = NEVER
        """When the engine was last told to ask it for somebody new."""
        self.hasty: list[tuple[float, float]] = []
        """When it was asked for nobody new, and how soon behind the question before that was for nobody new either."""
        self._paced_at = NEVER
        self.sleepers: list[Actor] = []
        """Blocking waits, which end at the next change."""

    def has(self, number: int) -> bool:
        """Return whether a read here gives the write, or a later one of its object."""
        return number in self.there or any(other in self.there for other in self.cluster.newer(number))

    def spans_of(self, number: int) -> list[tuple[float, float]]:
        """Return from when to when a read here gave the write, or a later one of its object."""
        return [span for each in (number, *self.cluster.newer(number)) for span in self.spans.get(each, ())]

    def lost_at(self, number: int) -> float:
        """Return when a read here last gave the write; never, where it never did."""
        return max((until for _, until in self.spans_of(number)), default=NEVER)

    def _keep(self, numbers: Iterable[int]) -> None:
        now, there = self.cluster.run.now, set(numbers) - {0}
        for number in self.there - there:
            begun, _ = self.spans[number].pop()
            self.spans[number].append((begun, now))
        for number in there - self.there:
            self.spans.setdefault(number, []).append((now, FOREVER))
        self.there = there

    def ends(self) -> dict[str, int]:
        """Return the last position of each epoch of its log."""
        return {record.epoch: place for place, record in enumerate(self.log, 1)}

    def knows_ends(self) -> bool:
        """Return whether its epoch has a mark, behind which the ends of those before are final."""
        return any(record.epoch == self.epoch and not record.number for record in self.log)

    # What happens to it

    def replace(self, log: Iterable[Record], epoch: str) -> None:
        """Have other data."""
        self.log, self.epoch = list(log), epoch
        self._keep(record.number for record in self.log)

    def append(self, record: Record) -> None:
        """Write to the log."""
        self.log.append(record)
        self._keep({*self.there, record.number})

    def pull(self, primary: Node, length: int) -> None:
        """Apply what the primary sent: its log up to this length."""
        now = self.cluster.run.now
        if self.primary is not primary or now < self.loads_until:
            return
        if now < self.frozen_until:
            self.cluster.run.at(self.frozen_until, lambda: self.pull(primary, length))
            return
        new = primary.log[:length]
        if len(new) <= len(self.log) or new[: len(self.log)] != self.log:
            return
        self.replace(new, primary.epoch)
        self.tell("change")
        for each in self.cluster.followers(self):
            self.cluster.send(self, each)

    def tell(self, what: str) -> None:
        """Push what happened, and end blocking waits."""
        for channel in self.channels:
            self.cluster.push(channel, what)
        self._end_waits()

    def cut(self) -> None:
        """Break every connection to it."""
        self.connection += 1
        for channel in self.channels:
            channel.is_broken = True
            wake(self.cluster.run, channel)
        self.channels.clear()
        self._end_waits()

    def sleep(self, seconds: float) -> None:
        """Have the current actor wait for the next change here, so long at most."""
        actor = self.cluster.run.current
        assert actor is not None
        self.sleepers.append(actor)
        try:
            self.cluster.run.park(seconds)
        finally:
            self.sleepers.remove(actor)

    def _end_waits(self) -> None:
        for sleeper in self.sleepers:
            self.cluster.run.unpark(sleeper)

    def fall_silent(self, seconds: float) -> None:
        """Answer nobody for so long."""
        self.silent_until = max(self.silent_until, self.cluster.run.now + seconds)

    def note_question(self, numbers: tuple[int, ...], shortest: float) -> None:
        """Note that it is asked for these writes; the engine asks no more than once a shortest interval (BAR-66)."""
        now, before = self.cluster.run.now, self.questions[-1][0] if self.questions else NEVER
        self.questions.append((now, numbers))
        renewal = self.cluster.renewal if self.renewed_at >= before - self.cluster.renewal else 0.0
        opening = self.cluster.opening + renewal
        if max(self.called_at, self.told_at) >= before - opening:  # for somebody new, or it was overtaken
            return
        if now - self._paced_at < shortest - 1e-9:
            self.hasty.append((now, now - self._paced_at))
        self._paced_at = now

    def note_answer(self, begun: float, *, fails: bool) -> None:
        """Note that a question that began then has its answer, or that it failed."""
        now = self.cluster.run.now
        if fails and self.is_failing:
            self.silences[-1] = self.silences[-1][0], now
        elif fails:
            self.silences.append((begun, now))
        self.is_failing = fails

    def is_found_cut(self, since: float) -> bool:
        """Return whether it did not answer a question since then."""
        return bool(self.silences) and self.silences[-1][1] > since

    def heal(self) -> None:
        """End everything that is wrong with it."""
        self.silent_until = self.frozen_until = self.slow_until = self.refuses_until = self.loads_until = NEVER


def wake(run: Scheduler, channel: Channel) -> None:
    """Wake whoever sleeps at a channel."""
    if channel.sleeper is not None and channel.has_news:
        run.unpark(channel.sleeper)


class Cluster:
    """The nodes of one store: a primary, and those that follow it."""

    def __init__(
        self,
        run: Scheduler,
        chance: random.Random,
        name: str,
        count: int,
        *,
        has_objects: bool,
        is_paced: bool,
        lag: float,
        flight: float,
    ) -> None:
        """lag, flight: the longest that a copy of a write, and a question, an answer or a push, usually take."""
        self.run = run
        self.chance = chance
        self.name = name
        self.has_objects = has_objects
        self.is_paced = is_paced
        self.lag = lag
        self.flight = flight
        self.writes: list[WriteId] = []
        """The write of number 1 first."""
        self._numbers: dict[WriteId, int] = {}
        self._keys: list[int] = []
        self.longest = 0.0
        """How long a question took at most."""
        self.opening = 0.0
        """How long it took at most to open a channel: the engine counts a silence from before it."""
        self.renewal = 0.0
        """How long it took at most to open the next connection, for which a question may have to wait."""
        self.began: dict[str, float] = {"": NEVER}
        """When each history began."""
        self._epochs = 0
        self.nodes = [Node(self, f"{name}{place}") for place in range(count + 1)]
        self.blank = Node(self, f"{name}-blank")
        self.blank.epoch = self._new_epoch()
        self.primary = self.nodes[0]
        self.primary.epoch = self._new_epoch()
        for node in self.nodes[1:]:
            node.primary, node.epoch = self.primary, self.primary.epoch
        self._mark(self.primary)

    @property
    def readable(self) -> Sequence[Node]:
        """Return those that readers of this region may use."""
        return self.nodes[1:] or self.nodes

    def _new_epoch(self) -> str:
        self._epochs += 1
        name = f"{self.name}-e{self._epochs}"
        self.began[name] = self.run.now
        return name

    def newer(self, number: int) -> Sequence[int]:
        """Return the later writes of the same object."""
        if not self.has_objects or not number:
            return ()
        key = self._keys[number - 1]
        return [other for other in range(number + 1, len(self._keys) + 1) if self._keys[other - 1] == key]

    def number_of(self, write_id: WriteId) -> int:
        """Return a write's number."""
        return self._numbers[write_id]

    def epoch_of(self, number: int) -> str:
        """Return the history that a write belongs to."""
        version = self.writes[number - 1].version
        return version.epoch if isinstance(version, Ordered) else ""

    def followers(self, node: Node) -> list[Node]:
        """Return those that copy from a node."""
        return [each for each in self.nodes if each.primary is node]

    def send(self, primary: Node, node: Node) -> None:
        """Have a copy of the log under way."""
        length = len(primary.log)
        delay = self.lag * self.chance.random() ** 2
        self.run.at(self.run.now + delay, lambda: node.pull(primary, length))

    # What happens

    def write(self, old: Node | None = None) -> int:
        """Write at the primary, or at an old one that still takes writes; return the write's number."""
        node = self.primary if old is None else old
        number = len(self.writes) + 1
        self._append(node, Record(node.epoch, number))
        if self.has_objects:
            self._keys.append(self.chance.randrange(KEYS))
            self.writes.append(WriteId(self.name, b"key%d" % self._keys[-1], Ordered("", number)))
        else:
            self._keys.append(-number)
            self.writes.append(WriteId.position(self.name, node.epoch, len(node.log)))
        self._numbers[self.writes[-1]] = number
        return number

    def _append(self, node: Node, record: Record) -> None:
        node.append(record)
        node.tell("change")
        for each in self.followers(node):
            self.send(node, each)

    def _mark(self, node: Node) -> None:
        epoch = node.epoch

        def mark() -> None:
            if node.epoch == epoch and node.primary is None:
                self._append(node, Record(epoch, 0))

        self.run.at(self.run.now + 0.05 * self.chance.random(), mark)

    def promote(self, node: Node) -> None:
        """Make another node the primary; the old one goes on, and does not know."""
        if node is self.primary or self.run.now < node.loads_until or not node.epoch:
            return
        node.primary = None
        node.epoch = self._new_epoch()
        self.primary = node
        self._mark(node)
        node.tell("change")

    def point(self, node: Node, primary: Node, seconds: float = 0.0, *, fails: bool = False) -> None:
        """Have a node follow another one. Where its log is no beginning of that one's, it copies that for so long."""
        if node is primary or self._follows(primary, node):
            return
        node.primary = primary
        if not fails and self.run.now >= node.loads_until and primary.log[: len(node.log)] == node.log:
            node.epoch = primary.epoch
            self.send(primary, node)
            return
        node.loads_until = self.run.now + seconds
        node.copies += 1
        copied, number = primary.log[:], node.copies

        def load() -> None:
            if node.primary is not primary or self.run.now < node.loads_until or number != node.copies:
                return
            node.instance += 1
            node.replace([] if fails else copied, primary.epoch)
            node.tell("loss")
            self.send(primary, node)

        if seconds:
            self.run.at(node.loads_until, load)
        else:
            load()

    def _follows(self, node: Node | None, other: Node) -> bool:
        """Return whether a node follows another, perhaps by others between them."""
        while node is not None and node is not other:
            node = node.primary
        return node is other

    def restart(self, node: Node, tail: int) -> None:
        """Have a node start anew without its last entries."""
        epoch = node.epoch
        kept = node.log[: max(len(node.log) - tail, 0)]
        if node.primary is None and len(kept) < len(node.log):
            epoch = self._new_epoch()
        node.instance += 1
        node.replace(kept, epoch)
        node.cut()
        if node.primary is None:
            self._mark(node)
            for each in self.followers(node):
                self.point(each, node)
        else:
            self.point(node, node.primary)

    def heal(self) -> None:
        """Have every node follow the primary, and nothing be wrong."""
        self.lag, self.flight = min(self.lag, 0.005), min(self.flight, 0.002)
        for node in self.nodes:
            node.heal()
        if self.run.now < self.primary.loads_until:
            self.primary.loads_until = NEVER
        self.primary.primary = None
        for node in self.nodes:
            if node is not self.primary:
                node.loads_until = NEVER
                node.copies += 1
                self.point(node, self.primary)

    # Pushes

    def push(self, channel: Channel, what: str) -> None:
        """Send news by a channel; it comes behind all that was sent there before."""
        if channel.is_deaf or channel.is_broken:
            return
        channel.arrives_at = max(channel.arrives_at, self.run.now + self.flight * self.chance.random())

        item = (what, self.run.now)

        def arrive() -> None:
            if channel.is_broken:
                return
            if channel.by_thread:
                self.run.spawn(lambda: deliver(channel, [item]), f"push {channel.node.name}")
                return
            channel.news.append(item)
            wake(self.run, channel)

        self.run.at(channel.arrives_at, arrive)


def deliver(channel: Channel, news: Sequence[tuple[str, float]]) -> None:
    """Tell the engine what a channel brought."""
    losses = [at for what, at in news if what == "loss"]
    if losses:
        # First: the engine may ask before the call returns.
        channel.node.told_of, channel.node.told_at = max(losses), channel.node.cluster.run.now
        channel.on_loss()
    channel.on_change()
