"""Taps: stream queues beside an exchange, where everybody can see what has arrived in a region (DESIGN 7)."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any, Final
from urllib.parse import quote, unquote

import pika
from antipode import ConfigurationError

REMEMBERED: Final = 20_000
"""How many of the last messages a tap remembers by default: about 3 MB, and 2 s of reading at first."""


@dataclass(frozen=True, slots=True)
class Tap:
    """A stream queue that is bound to the exchange, at a broker of the region that waits.

    As a text: the broker's URL with the queue as its fragment, `amqp://broker/%2F#notifications.tap`.
    """

    url: Any
    """An AMQP URL, or pika's connection parameters."""
    queue: str
    remember: int = REMEMBERED
    """How many of the last messages are remembered; older ones cannot be waited for. A message takes 130 bytes."""

    @classmethod
    def of(cls, target: Tap | str) -> Tap:
        """A tap as it is given in code or by `ANTIPODE_STORE_<NAME>_REPLICAS`. Raises ConfigurationError."""
        if isinstance(target, Tap):
            return target
        url, _, queue = target.partition("#")
        if not queue or not url.lower().startswith(("amqp://", "amqps://")):
            raise ConfigurationError(
                "a tap is an AMQP URL with its stream queue behind #, such as amqp://broker/%2F#notifications.tap, or "
                "antipode_rabbitmq.Tap(url, queue)",
                code="AP502",
            )
        return cls(url, unquote(queue))

    @property
    def parameters(self) -> Any:
        """pika's connection parameters."""
        return pika.URLParameters(self.url) if isinstance(self.url, str) else self.url

    @property
    def broker(self) -> str:
        """The broker's address, without credentials."""
        return address_of(self.parameters)

    @property
    def address(self) -> str:
        """The tap's address, without credentials."""
        return f"{self.broker}#{quote(self.queue, safe='')}"

    def __repr__(self) -> str:
        return f"<Tap {self.address}>"


def address_of(parameters: Any) -> str:
    """A broker's address by pika's connection parameters, without credentials."""
    scheme = "amqp" if getattr(parameters, "ssl_options", None) is None else "amqps"
    host = f"[{parameters.host}]" if ":" in parameters.host else parameters.host
    return f"{scheme}://{host}:{parameters.port}/{quote(parameters.virtual_host, safe='')}"


def declare_tap(
    channel: Any,
    exchange: str,
    queue: str | None = None,
    *,
    routing_key: str = "#",
    max_bytes: int = 256 * 1024 * 1024,
    arguments: Mapping[str, Any] | None = None,
) -> str:
    """Declares a tap: a stream queue, bound to an exchange. For the operator or the application's own set-up.

    channel: a BlockingChannel to a broker of the region that waits. queue: its name, by default the exchange's with
    `.tap`. routing_key: what is bound; `#` is everything of a topic exchange, and of a fanout exchange any key is; a
    direct exchange needs a call for each of its keys. max_bytes: how much of the past the broker keeps at least a
    quarter of. arguments: more arguments of the queue. Returns the queue's name.
    """
    queue = queue or f"{exchange}.tap"
    wanted = {
        "x-queue-type": "stream",
        "x-max-length-bytes": max_bytes,
        "x-stream-max-segment-size-bytes": max(max_bytes // 4, 1_000_000),
        **(arguments or {}),
    }
    channel.queue_declare(queue, durable=True, arguments=wanted)
    channel.queue_bind(queue, exchange, routing_key)
    return queue
