"""What is wrong with a tap, and what cures it: for `wrap`, and for `antipode doctor amqp://broker/vhost#queue`."""

from __future__ import annotations

from collections.abc import Sequence
from contextlib import closing
from typing import Final

import pika
from antipode.shim.administration import Finding, Level
from antipode.shim.tap import TapRefusedError, refused_tap

from antipode_rabbitmq.memory import StreamMemory
from antipode_rabbitmq.reader import TapReader
from antipode_rabbitmq.tap import Tap

PROBE_S: Final = 2.0


def probe(tap: Tap, timeout: float = PROBE_S) -> None:
    """Reads a tap for a moment. Raises TapRefusedError, or OSError where the broker is out of reach."""
    reader = TapReader(tap, StreamMemory(1), lambda: None, timeout)
    try:
        reader.start(timeout)
    finally:
        reader.close()
        reader.join(timeout)


def cure_of(tap: Tap, error: TapRefusedError) -> tuple[str, str]:
    """What a broker's refusal means, and what to do about it."""
    words = str(error)
    parameters = tap.parameters
    user, vhost = getattr(parameters.credentials, "username", "USER"), parameters.virtual_host
    grant = f"rabbitmqctl set_permissions -p {vhost} {user} '^$' '^$' '^{tap.queue}$'"
    if words.startswith("404"):
        return (
            f"there is no queue {tap.queue}",
            f"Declare it once: antipode_rabbitmq.declare_tap(channel, EXCHANGE, {tap.queue!r}).",
        )
    if words.startswith("406") and "x-stream-offset" in words:
        return (
            f"{tap.queue} is no stream queue",
            "Declare one beside it: antipode_rabbitmq.declare_tap(channel, EXCHANGE).",
        )
    if words.startswith("403"):
        return f"{user} may not read {tap.queue}", f"Grant it: {grant}"
    if "vhost" in words or "virtual host" in words:
        return f"{user} may not use the virtual host {vhost}", f"Create it, and grant: {grant}"
    if "authentication" in words or "ACCESS_REFUSED" in words:
        return f"{user} may not log in", "Give the right user and password in the URL."
    return words, "See the broker's log."


def diagnose(url: str) -> Sequence[Finding]:
    """Findings for a broker, or a tap where the URL names its queue behind #."""
    if "#" not in url:
        return _diagnose_broker(url)
    tap = Tap.of(url)
    try:
        probe(tap)
    except TapRefusedError as error:
        return [refused_tap(*cure_of(tap, error))]
    return [Finding(Level.OK, f"tap: {tap.queue} is a stream and can be read")]


def _diagnose_broker(url: str) -> Sequence[Finding]:
    parameters = pika.URLParameters(url)
    parameters.connection_attempts = 1
    parameters.socket_timeout = parameters.stack_timeout = PROBE_S
    parameters.blocked_connection_timeout = PROBE_S
    with closing(pika.BlockingConnection(parameters)) as connection:
        version = connection._impl.server_properties.get("version", "?")
    return [
        Finding(Level.OK, f"broker: RabbitMQ {version}, lineages travel in the messages' headers"),
        Finding(
            Level.WARNING,
            "tap: none named",
            "Messages that are published with track=True are unproven where no tap is read; without track nothing is.",
            "Name it behind #: antipode doctor amqp://broker/vhost#queue",
            code="AP708",
        ),
    ]
