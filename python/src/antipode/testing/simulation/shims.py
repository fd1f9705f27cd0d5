"""The shims of the simulation: each asks a node in another way, over a link that takes its time."""

from __future__ import annotations

import errno
import os
from collections.abc import Callable, Mapping, Sequence
from typing import Any, ClassVar, Final, NamedTuple

from antipode._base.settings import settings
from antipode._model.verdict import Verdict
from antipode._model.write_id import Ordered, WriteId
from antipode._store.epochs import judge_position
from antipode.shim import NOT_YET, VISIBLE, Capabilities, Server, Shim, Visibility, Watch, not_yet
from antipode.testing.simulation.actors import SimulationError, scheduler
from antipode.testing.simulation.world import Channel, Node, deliver

SLOW_S: Final = 0.9
"""How long a question and an answer of a slow node are on their way, at most."""
_GLANCE_S: Final = 0.02
"""So often a blocking wait looks whether it is interrupted."""


class Refusal(Exception):
    """The server's own answer that it will not say."""


class Link:
    """A connection of the engine's to a node."""

    def __init__(self, node: Node) -> None:
        self.node = node
        self.number = node.connection
        self.channel: Channel | None = None
        """Of pushes that come by this connection."""

    def check(self) -> None:
        """Raise where the connection is broken."""
        if self.number != self.node.connection:
            raise ConnectionResetError(errno.ECONNRESET, "the connection broke")


class Reply(NamedTuple):
    """What a node said, as it was in the moment of the answer."""

    instance: str
    epoch: str
    positions: Mapping[str, int]
    answers: Sequence[Visibility]


class PositionShim(Shim):
    """A store of positions that is polled."""

    kind = "simulated"
    capabilities = Capabilities("position", marks="in_band")
    renews = True

    def address(self, target: Any) -> str:
        """Return the node's name."""
        return str(target.name)

    def visible(self, ids: Sequence[WriteId], server: Server) -> Sequence[Visibility]:
        """Ask the node, and tell the engine what it had in the moment that it answered."""
        return self._asked(ids, server, 0.0)

    def renew(self, server: Server) -> Link:
        """Open a connection, which takes as long as a question."""
        run, link = scheduler(), Link(server.target)
        begun, cluster = run.now, link.node.cluster
        try:
            self._travel(link, server)
            self._travel(link, server, is_answer=True)
        finally:
            cluster.renewal = max(cluster.renewal, run.now - begun)
            server.target.renewed_at = run.now
        return link

    def _asked(self, ids: Sequence[WriteId], server: Server, patience: float) -> Sequence[Visibility]:
        run, node = scheduler(), server.target
        assert isinstance(node, Node)
        begun = run.now
        if server in node.askers:
            raise SimulationError(f"{node.name} is asked twice at once")
        node.askers.add(server)
        shortest = 0.0 if self.capabilities.blocking_wait else max(settings().poll, self.own_pace)
        node.note_question(tuple(node.cluster.number_of(each) for each in ids), shortest)
        try:
            link = self._link(server)
            self._travel(link, server)
            reply = self._read(ids, node)
            until = run.now + patience
            while run.now < until and not server.interrupted and not _is_done(reply.answers):
                node.sleep(min(_GLANCE_S, until - run.now))
                link.check()
                reply = self._read(ids, node)
            self._travel(link, server, is_answer=True)
            node.note_answer(begun, fails=False)
            return self._tell(server, reply)
        except (TimeoutError, ConnectionError):
            node.note_answer(begun, fails=True)
            raise
        finally:
            node.askers.discard(server)
            node.cluster.longest = max(node.cluster.longest, run.now - begun)

    def _link(self, server: Server) -> Link:
        if scheduler().has_trouble("descriptors"):
            raise OSError(errno.EMFILE, os.strerror(errno.EMFILE))
        if server.session is None:
            server.session = Link(server.target)
        link = server.session
        assert isinstance(link, Link)
        return link

    def _travel(self, link: Link, server: Server, *, is_answer: bool = False) -> None:
        """Have a question, or an answer, be on its way. Raises where the node is silent, or the connection breaks."""
        run, node = scheduler(), link.node
        delay = node.cluster.flight * node.cluster.chance.random()
        if run.now < node.slow_until:
            delay += SLOW_S * node.cluster.chance.random() / 2
        if is_answer and link.channel is not None:  # what was pushed before comes before
            delay = max(delay, link.channel.arrives_at - run.now)
        late = server.ask_timeout
        if run.now < node.silent_until:
            delay = late + 1.0
        run.sleep(min(delay, late))
        if delay > late:
            raise TimeoutError(errno.ETIMEDOUT, f"{node.name} did not answer")
        link.check()

    def _read(self, ids: Sequence[WriteId], node: Node) -> Reply:
        now = scheduler().now
        if now < node.refuses_until:
            raise Refusal(f"{node.name} will not say")
        if now < node.loads_until:
            return Reply("", "", {}, [not_yet(f"{node.name} loads", unanswered=True)] * len(ids))
        positions = {**node.ends(), node.epoch: len(node.log)}
        return Reply(f"{node.name}/{node.instance}", node.epoch, positions, [self._judge(each, node) for each in ids])

    def _judge(self, write_id: WriteId, node: Node) -> Visibility:
        version = write_id.version
        assert isinstance(version, Ordered)
        ends = node.ends()
        answer = judge_position(
            version.epoch,
            version.counter,
            current=node.epoch,
            applied=len(node.log),
            marks=ends if node.knows_ends() else {},
            known=ends,
        )
        if answer.verdict is Verdict.UNPROVEN:
            node.denials.append((scheduler().now, node.cluster.number_of(write_id)))
        return answer

    def _tell(self, server: Server, reply: Reply) -> Sequence[Visibility]:
        if reply.instance:
            server.applied(reply.instance, reply.epoch, reply.positions)
            scheduler().give_way()
        if scheduler().has_trouble("sense"):
            return [*reply.answers, NOT_YET]
        return reply.answers


def _is_done(answers: Sequence[Visibility]) -> bool:
    return any(each.verdict is not Verdict.NOT_YET for each in answers)


class BlockingShim(PositionShim):
    """A store of positions that itself waits."""

    capabilities = Capabilities("position", blocking_wait=True, marks="in_band")

    def wait(self, ids: Sequence[WriteId], server: Server, timeout: float) -> Sequence[Visibility]:
        """Ask the node, which answers when one of the writes is there, or when the time is over."""
        return self._asked(ids, server, timeout)


class PushShim(PositionShim):
    """A store of positions that pushes, by the connection that it is asked by."""

    capabilities = Capabilities("position", push=True, marks="in_band")
    by_thread: ClassVar[bool] = False

    def watch(self, server: Server, on_change: Callable[[], None]) -> Watch:
        """Open the channel."""
        run, link = scheduler(), self._link(server)
        if run.has_trouble("sense"):
            raise ValueError("the client could not make sense of that")
        begun, node = run.now, link.node
        try:
            self._travel(link, server)
        except (TimeoutError, ConnectionError):
            node.note_answer(begun, fails=True)
            raise
        finally:
            node.cluster.longest = max(node.cluster.longest, run.now - begun)
            node.cluster.opening = max(node.cluster.opening, run.now - begun)
        number = 10_000 + len(run.channels)
        channel = Channel(node, number, on_change, server.reset, self.by_thread)
        run.channels[number] = channel
        node.channels.append(channel)
        if not self.by_thread:
            link.channel = channel
        return SimulatedWatch(channel)


class CallbackShim(PushShim):
    """A store of positions whose client has a thread that calls back, and a connection for that alone."""

    by_thread = True


class SimulatedWatch:
    """The engine's end of a channel."""

    def __init__(self, channel: Channel) -> None:
        self._channel = channel

    def fileno(self) -> int | None:
        """Return the channel's number; None where a thread calls back."""
        return None if self._channel.by_thread else self._channel.number

    def pump(self) -> None:
        """Take what was pushed; raise where the channel broke."""
        channel = self._channel
        news, channel.news = channel.news, []
        if news:
            deliver(channel, news)
        if channel.is_broken:
            channel.node.note_answer(scheduler().now, fails=True)  # from now on it is silent, whoever asks it (BAR-26)
            raise ConnectionResetError(errno.ECONNRESET, "the channel broke")

    def close(self) -> None:
        """End it."""
        channel = self._channel
        channel.is_broken = True
        channel.news.clear()
        scheduler().channels[channel.number] = None
        if channel in channel.node.channels:
            channel.node.channels.remove(channel)


class ObjectShim(PositionShim):
    """A store of objects, each with its version."""

    capabilities = Capabilities("object")

    def _judge(self, write_id: WriteId, node: Node) -> Visibility:
        number = node.cluster.number_of(write_id)
        return VISIBLE if node.has(number) else not_yet("an older version is there")

    def _tell(self, server: Server, reply: Reply) -> Sequence[Visibility]:
        return [*reply.answers, NOT_YET] if scheduler().has_trouble("sense") else reply.answers


class PacedShim(ObjectShim):
    """A store of objects that is asked for one of them after the other, at the shim's own pace."""

    own_pace = 0.02

    def __init__(self, store: Any) -> None:
        super().__init__(store)
        self._turns: dict[Server, int] = {}

    def visible(self, ids: Sequence[WriteId], server: Server) -> Sequence[Visibility]:
        """Ask for one; of the others nothing new is known."""
        if not ids:
            return super().visible(ids, server)
        turn = self._turns[server] = self._turns.get(server, -1) + 1
        place = turn % len(ids)
        answers: list[Visibility] = [not_yet("it is not its turn", unanswered=True)] * len(ids)
        answers[place : place + 1] = super().visible([ids[place]], server)
        return answers


SHIMS: Final[Mapping[str, type[PositionShim]]] = {
    "position": PositionShim,
    "blocking": BlockingShim,
    "push": PushShim,
    "callback": CallbackShim,
    "object": ObjectShim,
    "paced": PacedShim,
}
