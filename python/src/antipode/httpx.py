"""Client hook for httpx: the lineage goes out with each call and comes back with its response (spec PROP).

http = antipode.httpx.wrap(httpx.Client())          # or httpx.AsyncClient()
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, Final, TypeVar, cast, overload

import httpx

from antipode._base.call_site import skip_packages
from antipode._propagation.attempts import Attempts
from antipode._propagation.carriers import FORWARDING, LINEAGE_HEADER
from antipode._trust.trust import judged_host, trust_settings
from antipode.propagation import Outgoing, approved, prepare_request

_C = TypeVar("_C", bound=httpx.Client)
_A = TypeVar("_A", bound=httpx.AsyncClient)

skip_packages("httpx", "httpcore", "anyio", "opentelemetry")


@overload
def wrap(client: _C) -> _C: ...
@overload
def wrap(client: _A) -> _A: ...
def wrap(client: httpx.Client | httpx.AsyncClient) -> httpx.Client | httpx.AsyncClient:
    """A client of the same type that carries lineages; it shares connections, cookies and settings.

    The client passed in stays plain; closing either closes the connections. Each hop of a redirect is judged
    anew. Raises ConfigurationError where the settings of trust are wrong.
    """
    trust_settings()
    kind = type(client)
    if issubclass(kind, _CarryingTransports):
        return client
    wrapped: Any = object.__new__(_carrying(kind))
    wrapped.__dict__ = client.__dict__.copy()
    return cast("httpx.Client | httpx.AsyncClient", wrapped)


class _CarryingTransports:
    """What `wrap` adds to a client's class: the transport of each hop goes through ours."""

    def _transport_for_url(self, url: httpx.URL) -> Any:
        transport = super()._transport_for_url(url)  # type: ignore[misc]
        if isinstance(transport, httpx.AsyncBaseTransport) and isinstance(self, httpx.AsyncClient):
            return _AsyncTransport(transport, url)
        return _Transport(transport, url)


_classes: dict[type[Any], type[Any]] = {}


def _carrying(kind: type[Any]) -> type[Any]:
    found = _classes.get(kind)
    if found is None:
        found = type(kind.__name__, (_CarryingTransports, kind), {"__module__": kind.__module__})
        _classes[kind] = found
    return found


class _Transport(httpx.BaseTransport):
    def __init__(self, inner: httpx.BaseTransport, url: httpx.URL) -> None:
        self._inner = inner
        self._host = _judged(inner, url)

    def handle_request(self, request: httpx.Request) -> httpx.Response:
        # An instrumentation further in may inject once more and overwrite baggage: the approval in the Context
        # lets our propagator, which goes round the global one, write the same text there.
        call = _Call(self._host, self._inner, request)
        call.watch(call.trace)
        with approved(_prepare(request, self._host).text):
            try:
                response = self._inner.handle_request(request)
            except BaseException as error:
                call.fail(error)
                raise
        call.end(response)
        return response


class _AsyncTransport(httpx.AsyncBaseTransport):
    def __init__(self, inner: httpx.AsyncBaseTransport, url: httpx.URL) -> None:
        self._inner = inner
        self._host = _judged(inner, url)

    async def handle_async_request(self, request: httpx.Request) -> httpx.Response:
        call = _Call(self._host, self._inner, request)
        call.watch(call.trace_async)
        with approved(_prepare(request, self._host).text):
            try:
                response = await self._inner.handle_async_request(request)
            except BaseException as error:  # also the task's cancellation
                call.fail(error)
                raise
        call.end(response)
        return response


def _judged(transport: Any, url: httpx.URL) -> str:
    """Return the host that decides on a request: where a proxy reads it in plain text, maybe the proxy (TRUST-35)."""
    proxy = getattr(getattr(transport, "_pool", None), "_proxy_url", None) if url.scheme == "http" else None
    return judged_host(url.host, None if proxy is None else proxy.host.decode("ascii"))


def _prepare(request: httpx.Request, host: str) -> Outgoing:
    headers = request.headers
    # httpx looks at, and decodes, all of its headers for each that is asked for.
    there = {name.lower() for name, _ in headers.raw}

    def get(name: str) -> str | None:
        return headers.get(name) if name.encode() in there else None

    forwarding = [(name, value) for name in FORWARDING if name.encode() in there for value in headers.get_list(name)]
    outgoing = prepare_request(host, get, forwarding)
    for name, value in outgoing.changes.items():
        if value is None:
            headers.pop(name, None)
        else:
            headers[name] = value
    return outgoing


_PLAIN: Final = frozenset({httpx.HTTPTransport, httpx.AsyncHTTPTransport})
"""Transports that repeat nothing that has left."""
_NOT_SENT: Final = (httpx.ConnectError, httpx.ConnectTimeout, httpx.PoolTimeout, httpx.UnsupportedProtocol)


class _Call:
    """One call through a transport, which may repeat it below us and give the last answer alone (PROP-30).

    What truly leaves is told by httpcore, in the `trace` extension of the request.
    """

    __slots__ = ("_attempts", "_given", "_plain", "_request", "_tunnel")

    def __init__(self, host: str, transport: object, request: httpx.Request) -> None:
        self._attempts = Attempts(host)
        self._request = request
        self._given = request.extensions
        self._plain = type(transport) in _PLAIN
        self._tunnel = False

    def watch(self, trace: Callable[[str, Any], Any]) -> None:
        """Have httpcore tell of what leaves, where a request may leave more than once."""
        if not self._plain:
            self._request.extensions = {**self._given, "trace": trace}

    def trace(self, name: str, info: Any) -> None:
        """Hear of what a transport does, as the application does that asked for it."""
        self._note(name, info)
        told = self._given.get("trace")
        if told is not None:
            told(name, info)

    async def trace_async(self, name: str, info: Any) -> None:
        """The same of a transport of asyncio."""
        self._note(name, info)
        told = self._given.get("trace")
        if told is not None:
            await told(name, info)

    def _note(self, name: str, info: Any) -> None:
        event = name.partition(".")[2]
        if event == "send_request_headers.started":
            self._tunnel = getattr(info.get("request"), "method", b"") == b"CONNECT"  # answered by a proxy
            if self._tunnel:
                self._attempts.seen = True
            else:
                self._attempts.begin()
        elif event == "receive_response_headers.complete" and not self._tunnel:
            answer = info.get("return_value") or ()  # HTTP/1 and HTTP/2 have them at different places
            status = next((part for part in answer if isinstance(part, int)), 0)
            headers = next((part for part in answer if isinstance(part, list)), [])
            self._attempts.answer(status, [value.decode("latin-1") for key, value in headers if _is_ours(key)])
            self._attempts.settle()

    def fail(self, error: BaseException) -> None:
        """Mark the scope, unless nothing was sent of which no answer came or may come."""
        self._request.extensions = self._given
        if self._attempts.is_under_way(error) if self._attempts.seen else not isinstance(error, _NOT_SENT):
            self._attempts.fail(error)

    def end(self, response: httpx.Response) -> None:
        """Join what the last attempt brought."""
        self._request.extensions = self._given  # a redirect's request takes them over
        self._attempts.end(response.status_code, response.headers.get_list(LINEAGE_HEADER))


def _is_ours(name: bytes) -> bool:
    return name.lower() == LINEAGE_HEADER.encode()
