"""Counts header octets at a service's door, those of lineages apart; outside of every middleware."""

from __future__ import annotations

from collections.abc import Awaitable, Callable, Iterable, Mapping, MutableMapping
from dataclasses import dataclass
from typing import Any

AsgiScope = MutableMapping[str, Any]
Message = MutableMapping[str, Any]
Receive = Callable[[], Awaitable[Message]]
Send = Callable[[Message], Awaitable[None]]
App = Callable[[AsgiScope, Receive, Send], Awaitable[None]]

CONTROL = "/-/"
"""Paths of the benchmark's own questions; they are not counted and see no middleware."""
OCTETS = "antipode_benchmarks.octets"
"""Where a request's scope has the octets of its headers, and of the lineage in them, which a middleware takes out."""


@dataclass(slots=True)
class Traffic:
    """Octets of HTTP headers, in and out of one service."""

    requests: int = 0
    request_headers: int = 0
    request_lineage: int = 0
    response_headers: int = 0
    response_lineage: int = 0


class Door:
    """The outermost ASGI application of a service: control questions here, everything else counted and passed on."""

    def __init__(self, app: App, control: App, traffic: Traffic) -> None:
        self._app = app
        self._control = control
        self._traffic = traffic

    async def __call__(self, scope: AsgiScope, receive: Receive, send: Send) -> None:
        """Serves one request."""
        if scope["type"] != "http" or scope["path"].startswith(CONTROL):
            await self._control(scope, receive, send)
            return
        traffic = self._traffic
        octets = size(scope["headers"]), lineage_size(scope["headers"])
        scope[OCTETS] = octets
        traffic.requests += 1
        traffic.request_headers += octets[0]
        traffic.request_lineage += octets[1]

        async def counted(message: Message) -> None:
            if message["type"] == "http.response.start":
                headers = list(message.get("headers") or ())
                traffic.response_headers += size(headers)
                traffic.response_lineage += lineage_size(headers)
            await send(message)

        await self._app(scope, receive, counted)


def size(headers: Iterable[tuple[bytes, bytes]]) -> int:
    """Octets of header lines as HTTP/1.1 spells them."""
    return sum(len(name) + len(value) + 4 for name, value in headers)


def lineage_size(headers: Iterable[tuple[bytes, bytes]]) -> int:
    """Octets among them that carry a lineage: a header of its own, or a member of baggage."""
    octets = 0
    for name, value in headers:
        lower = name.lower()
        if lower in {b"antipode-lineage", b"antipode_lineage", b"uberctx-antipode"}:
            octets += len(name) + len(value) + 4
        elif lower == b"baggage":
            octets += sum(len(member) + 1 for member in value.split(b",") if member.strip().startswith(b"antipode="))
    return octets


def message_size(headers: Mapping[str, Any]) -> tuple[int, int]:
    """Octets of a message's text headers: all of them, and those of the lineage."""
    pairs = [(str(name).encode(), str(value).encode()) for name, value in headers.items() if isinstance(value, str)]
    return size(pairs), lineage_size(pairs)
