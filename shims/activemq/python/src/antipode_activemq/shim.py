"""The shim: whether a tracked message has arrived in a region, as far as somebody here can see it (spec SHIM)."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any, ClassVar, NamedTuple

from antipode.administration import Finding, Step, Wanted
from antipode.tapped import KeptTapShim, ReadTap, TapMemory, TapSession
from stomp.exception import StompException

from antipode_activemq import preparing
from antipode_activemq.reader import TapReader
from antipode_activemq.tap import REMEMBERED, Tap


class Broker(NamedTuple):
    """What this process is connected to without a tap: a broker, or the list of those that a connection may take."""

    addresses: tuple[str, ...]

    @property
    def address(self) -> str:
        """All of them, as one word."""
        return ",".join(self.addresses)


class ActiveMQShim(KeptTapShim):
    """Messages in ActiveMQ; a tap is a topic that keeps its last messages."""

    kind: ClassVar[str] = "activemq"
    brand: ClassVar[str] = "ActiveMQ"
    remembered: ClassVar[int] = REMEMBERED // 5
    unreachable: ClassVar[tuple[type[Exception], ...]] = (OSError, StompException)
    schemes: ClassVar[tuple[str, ...]] = ("stomp",)
    preparation_options: ClassVar[Mapping[str, str]] = preparing.OPTIONS

    def without_tap(self, target: Any) -> Sequence[str] | None:
        """As the base says."""
        return target.addresses if isinstance(target, Broker) else None

    def session_of(self, target: Any) -> TapSession:
        """As the base says."""
        tap = Tap.of(target)
        memory = TapMemory(tap.remember)
        return TapSession(
            ReadTap(memory, tap.broker, tap.topic), lambda told, timeout: TapReader(tap, memory, told, timeout)
        )

    def address(self, target: Any) -> str:
        """As the base says."""
        return target.address if isinstance(target, Broker) else Tap.of(target).address

    # For operators

    @classmethod
    def diagnose(cls, url: str) -> Sequence[Finding]:
        """Whether the tap of the URL (`stomp://broker:61613#antipode.tap.orders`) can be read, and what cures it."""
        from antipode_activemq.doctor import diagnose

        return diagnose(url)

    @classmethod
    def preparations(cls, url: str, wanted: Wanted) -> Sequence[Step]:
        """What the broker's configuration needs for a tap: the copy, its past, its rights."""
        return preparing.preparations(url, wanted)
