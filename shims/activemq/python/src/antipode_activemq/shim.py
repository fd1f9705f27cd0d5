"""The shim: whether a tracked message has arrived in a region, as far as somebody here can see it (spec SHIM)."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, ClassVar

from antipode.shim.tap import KeptTapShim, ReadTap, TapMemory, TapSession
from stomp.exception import StompException

from antipode_activemq import doctor, preparing
from antipode_activemq.reader import TapReader
from antipode_activemq.tap import REMEMBERED, Tap


class ActiveMQShim(KeptTapShim):
    """Messages in ActiveMQ; a tap is a topic that keeps its last messages."""

    kind: ClassVar[str] = "activemq"
    brand: ClassVar[str] = "ActiveMQ"
    remembered: ClassVar[int] = REMEMBERED // 5
    unreachable: ClassVar[tuple[type[Exception], ...]] = (OSError, StompException)
    schemes: ClassVar[tuple[str, ...]] = ("stomp",)
    preparation_options: ClassVar[Mapping[str, str]] = preparing.OPTIONS

    tap_of = staticmethod(Tap.of)

    def session_of(self, target: Any) -> TapSession:
        """As the base says."""
        tap = Tap.of(target)
        memory = TapMemory(tap.remember)
        return TapSession(
            ReadTap(memory, tap.broker, tap.topic), lambda told, timeout: TapReader(tap, memory, told, timeout)
        )

    # For operators

    diagnose = staticmethod(doctor.diagnose)
    preparations = staticmethod(preparing.preparations)
