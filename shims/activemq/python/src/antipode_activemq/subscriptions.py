"""What a wrapped connection has subscribed to, and so whether a message of it can go back."""

from __future__ import annotations

import threading
from collections.abc import Mapping
from typing import Any, Final, NamedTuple

QUEUES: Final = "/queue/"
_LOST: Final = "�"
"""What stomp.py puts where octets of a body are no text."""


class Subscription(NamedTuple):
    """One SUBSCRIBE."""

    destination: str
    ack: str
    browses: bool


class Subscriptions:
    """By identifier, or by destination where STOMP 1.0 gave none."""

    def __init__(self) -> None:
        self._lock = threading.Lock()
        self._by_name: dict[str, Subscription] = {}

    def add(self, destination: Any, identifier: Any, ack: Any, headers: Mapping[str, Any]) -> None:
        """Before it is sent: its first message may be faster."""
        made = Subscription(str(destination), str(ack), str(headers.get("browser", "")).lower() == "true")
        with self._lock:
            self._by_name[str(destination if identifier is None else identifier)] = made

    def remove(self, *names: Any) -> None:
        """It has ended."""
        with self._lock:
            for name in names:
                self._by_name.pop(str(name), None)

    def obstacle(self, headers: Mapping[str, Any], body: object) -> str:
        """Why a message cannot go back to its queue; empty where it can (BAR-45)."""
        destination = str(headers.get("destination", ""))
        found = self._by_name.get(str(headers.get("subscription"))) or self._by_name.get(destination)
        if found is None:
            return "its subscription was not made by the wrapped connection: subscribe by what wrap() has returned"
        if found.browses:
            return "a browser is shown messages and takes none"
        if not destination.startswith(QUEUES):
            return (
                "a topic takes no message back: consume a queue (Consumer.NAME.VirtualTopic.TOPIC for a virtual topic)"
            )
        if found.ack == "auto":
            return "it is subscribed to with ack='auto', so the broker has forgotten it"
        if found.ack != "client-individual":
            return (
                "with ack='client' each acknowledgement is one of all messages before, so none can go back alone: "
                "subscribe with ack='client-individual'"
            )
        if isinstance(body, str) and _LOST in body:
            return "its body is no text, and stomp.py has lost octets of it: make the connection with auto_decode=False"
        return ""
