"""The shim: whether a tracked message has arrived in a region, as far as somebody here can see it (spec SHIM)."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, ClassVar

from antipode.shim.tap import KeptTapShim, ReadTap, TapSession
from pika.exceptions import AMQPConnectionError

from antipode_rabbitmq import doctor, preparing
from antipode_rabbitmq.memory import StreamMemory
from antipode_rabbitmq.reader import TapReader
from antipode_rabbitmq.tap import REMEMBERED, Tap


class RabbitMQShim(KeptTapShim):
    """Messages in RabbitMQ; a tap is a stream queue."""

    kind: ClassVar[str] = "rabbitmq"
    brand: ClassVar[str] = "RabbitMQ"
    remembered: ClassVar[int] = REMEMBERED // 5
    unreachable: ClassVar[tuple[type[Exception], ...]] = (OSError, AMQPConnectionError)
    schemes: ClassVar[tuple[str, ...]] = ("amqp", "amqps")
    preparation_options: ClassVar[Mapping[str, str]] = preparing.OPTIONS

    tap_of = staticmethod(Tap.of)

    def session_of(self, target: Any) -> TapSession:
        """As the base says."""
        tap = Tap.of(target)
        memory = StreamMemory(tap.remember)
        return TapSession(
            ReadTap(memory, tap.broker, tap.queue), lambda told, timeout: TapReader(tap, memory, told, timeout)
        )

    # For operators

    diagnose = staticmethod(doctor.diagnose)
    preparations = staticmethod(preparing.preparations)
