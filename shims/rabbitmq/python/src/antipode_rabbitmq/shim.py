"""The shim: whether a tracked message has arrived in a region, as far as somebody here can see it (spec SHIM)."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from typing import Any, ClassVar, NamedTuple

from antipode.administration import Finding, Step, Wanted
from antipode.server import Server
from antipode.tapped import ReadTap, TappedShim, TapWatch
from pika.exceptions import AMQPConnectionError

from antipode_rabbitmq import preparing
from antipode_rabbitmq.memory import StreamMemory
from antipode_rabbitmq.reader import TapReader
from antipode_rabbitmq.tap import REMEMBERED, Tap


class Broker(NamedTuple):
    """A broker that this process consumes from or publishes to, without a tap."""

    address: str


class _Session:
    """The memory of one tap in this process, and its connection while somebody waits."""

    def __init__(self, tap: Tap) -> None:
        self.tap = tap
        self.memory = StreamMemory(tap.remember)
        self.reader: TapReader | None = None


class RabbitMQShim(TappedShim):
    """Messages in RabbitMQ; a tap is a stream queue."""

    kind: ClassVar[str] = "rabbitmq"
    brand: ClassVar[str] = "RabbitMQ"
    remembered: ClassVar[int] = REMEMBERED // 5
    unreachable: ClassVar[tuple[type[Exception], ...]] = (OSError, AMQPConnectionError)
    schemes: ClassVar[tuple[str, ...]] = ("amqp", "amqps")
    preparation_options: ClassVar[Mapping[str, str]] = preparing.OPTIONS

    def without_tap(self, target: Any) -> Sequence[str] | None:
        """As the base says."""
        return [target.address] if isinstance(target, Broker) else None

    def tap(self, server: Server) -> ReadTap:
        """As the base says."""
        session = self._session(server)
        if session.reader is None:
            raise ConnectionError("the tap is not being read")
        session.reader.check(server.ask_timeout)
        return ReadTap(session.memory, session.tap.broker, session.tap.queue)

    def watch(self, server: Server, on_change: Callable[[], None]) -> TapWatch:
        """As the base says."""
        if isinstance(server.target, Broker):
            raise NotImplementedError("it has no tap")
        session = self._session(server)
        reader = TapReader(session.tap, session.memory, on_change, server.ask_timeout)
        reader.start(server.ask_timeout)
        session.reader = reader
        return TapWatch(reader.close)

    def close(self, server: Server) -> None:
        """Gives up the connection; what has arrived is not forgotten with it."""
        session = server.session
        if isinstance(session, _Session):
            session.reader = None

    def address(self, target: Any) -> str:
        """As the base says."""
        return target.address if isinstance(target, Broker) else Tap.of(target).address

    @staticmethod
    def _session(server: Server) -> _Session:
        # None at first, and in the child of a fork: nothing of the parent's threads is touched there.
        if not isinstance(server.session, _Session):
            server.session = _Session(Tap.of(server.target))
        return server.session

    # For operators

    @classmethod
    def diagnose(cls, url: str) -> Sequence[Finding]:
        """Whether the tap of the URL (`amqp://broker/vhost#queue`) can be read, and what cures it."""
        from antipode_rabbitmq.doctor import diagnose

        return diagnose(url)

    @classmethod
    def preparations(cls, url: str, wanted: Wanted) -> Sequence[Step]:
        """A tap at the broker of the URL, and the rights to publish tracked messages and to read the tap."""
        return preparing.preparations(url, wanted)
