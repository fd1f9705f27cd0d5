"""The shim: whether a tracked message has arrived in a region, as far as somebody here can see it (spec SHIM)."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any, ClassVar, NamedTuple

from antipode.administration import Finding, Step, Wanted
from antipode.tapped import KeptTapShim, ReadTap, TapSession
from pika.exceptions import AMQPConnectionError

from antipode_rabbitmq import preparing
from antipode_rabbitmq.memory import StreamMemory
from antipode_rabbitmq.reader import TapReader
from antipode_rabbitmq.tap import REMEMBERED, Tap


class Broker(NamedTuple):
    """A broker that this process consumes from or publishes to, without a tap."""

    address: str


class RabbitMQShim(KeptTapShim):
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

    def session_of(self, target: Any) -> TapSession:
        """As the base says."""
        tap = Tap.of(target)
        memory = StreamMemory(tap.remember)
        return TapSession(
            ReadTap(memory, tap.broker, tap.queue), lambda told, timeout: TapReader(tap, memory, told, timeout)
        )

    def address(self, target: Any) -> str:
        """As the base says."""
        return target.address if isinstance(target, Broker) else Tap.of(target).address

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
