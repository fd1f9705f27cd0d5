"""Taps: topics of the region's broker to which it copies what arrives, and whose past it keeps (DESIGN 7)."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any, Final
from urllib.parse import quote, unquote, urlsplit

import stomp
from antipode import ConfigurationError

REMEMBERED: Final = 20_000
"""How many of the last messages a tap remembers by default: about 3 MB."""
PREFIX: Final = "antipode.tap."
"""What every tap's name begins with: a topic of its own, which no application reads and no connector carries."""
PORT: Final = 61613


@dataclass(frozen=True, slots=True)
class Tap:
    """A topic, at a broker of the region that waits, to which the broker copies every message that arrives there.

    As a text: the broker's URL with the topic as its fragment, `stomp://user:secret@broker:61613#antipode.tap.orders`.
    """

    url: str
    topic: str
    remember: int = REMEMBERED
    """How many of the last messages are remembered; older ones cannot be waited for. A message takes 130 bytes."""
    connection: Callable[[], Any] | None = None
    """Makes stomp.py's connection, not yet connected, where the URL does not say all (TLS); a new one each time."""

    def __post_init__(self) -> None:
        if not self.topic.startswith(PREFIX) or len(self.topic) == len(PREFIX):
            raise ConfigurationError(
                f"the tap {self.topic!r} is no topic of its own: let the broker copy messages to a topic "
                f"{PREFIX}NAME (antipode init STORE --at {self.broker} prints how), and name that",
                code="AP501",
            )

    @classmethod
    def of(cls, target: Tap | str) -> Tap:
        """A tap as it is given in code or by `ANTIPODE_STORE_<NAME>_REPLICAS`. Raises ConfigurationError."""
        if isinstance(target, Tap):
            return target
        url, _, topic = target.partition("#")
        if not topic or urlsplit(url).scheme.lower() != "stomp" or not urlsplit(url).hostname:
            raise ConfigurationError(
                f"a tap is a STOMP URL with its topic behind #, such as stomp://broker:{PORT}#{PREFIX}notifications, "
                "or antipode_activemq.Tap(url, topic)",
                code="AP502",
            )
        return cls(url, unquote(topic))

    @property
    def login(self) -> tuple[str | None, str | None]:
        """The user and the password of the URL."""
        parts = urlsplit(self.url)
        return (
            None if parts.username is None else unquote(parts.username),
            None if parts.password is None else unquote(parts.password),
        )

    @property
    def broker(self) -> str:
        """The broker's address, without credentials."""
        return address_of(*host_and_port(self.url))

    @property
    def address(self) -> str:
        """The tap's address, without credentials."""
        return f"{self.broker}#{quote(self.topic, safe='')}"

    def open(self, timeout: float) -> Any:
        """A connection that is not connected yet."""
        if self.connection is not None:
            return self.connection()
        return plain_connection(self.url, timeout)

    def __repr__(self) -> str:
        return f"<Tap {self.address}>"


def host_and_port(url: str) -> tuple[str, int]:
    """Where a STOMP URL points. Raises ConfigurationError."""
    try:
        parts = urlsplit(url)
        host, port = parts.hostname, parts.port
    except ValueError:
        host, port = None, None
    if not host:
        raise ConfigurationError(
            "a STOMP URL names a host, and a port that is a number: stomp://broker:61613", code="AP502"
        )
    return host, port or PORT


def plain_connection(url: str, timeout: float) -> Any:
    """A stomp.py connection for one attempt, which keeps the octets of bodies."""
    return stomp.StompConnection12(
        [host_and_port(url)],
        prefer_localhost=False,
        try_loopback_connect=False,
        reconnect_attempts_max=1,
        reconnect_sleep_initial=0,
        timeout=timeout,
        auto_decode=False,
    )


def address_of(host: str, port: int) -> str:
    """A broker's address."""
    return f"stomp://[{host}]:{port}" if ":" in host else f"stomp://{host}:{port}"
