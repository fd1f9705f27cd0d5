"""Client hook for httpx: the lineage goes out with each call and comes back with its response (spec PROP).

http = antipode.httpx.wrap(httpx.Client())          # or httpx.AsyncClient()
"""

from __future__ import annotations

from typing import Any, TypeVar, cast, overload

import httpx

from antipode.carriers import FORWARDING, LINEAGE_HEADER
from antipode.propagation import Outgoing, approved, merge_response, prepare_request, unanswered
from antipode.site import skip_packages
from antipode.trust import judged_host, trust_settings

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
    if issubclass(kind, _Carrying):
        return client
    wrapped: Any = object.__new__(_carrying(kind))
    wrapped.__dict__ = client.__dict__.copy()
    return cast("httpx.Client | httpx.AsyncClient", wrapped)


class _Carrying:
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
        found = type(kind.__name__, (_Carrying, kind), {"__module__": kind.__module__})
        _classes[kind] = found
    return found


class _Transport(httpx.BaseTransport):
    def __init__(self, inner: httpx.BaseTransport, url: httpx.URL) -> None:
        self._inner = inner
        self._host = _judged(inner, url)

    def handle_request(self, request: httpx.Request) -> httpx.Response:
        # An instrumentation further in may inject once more and overwrite baggage: the approval in the Context
        # lets our propagator, which goes round the global one, write the same text there.
        with approved(_prepare(request, self._host).text):
            try:
                response = self._inner.handle_request(request)
            except Exception as error:
                _unanswered(self._host, error)
                raise
        _merge(self._host, response)
        return response


class _AsyncTransport(httpx.AsyncBaseTransport):
    def __init__(self, inner: httpx.AsyncBaseTransport, url: httpx.URL) -> None:
        self._inner = inner
        self._host = _judged(inner, url)

    async def handle_async_request(self, request: httpx.Request) -> httpx.Response:
        with approved(_prepare(request, self._host).text):
            try:
                response = await self._inner.handle_async_request(request)
            except BaseException as error:  # also the task's cancellation
                _unanswered(self._host, error)
                raise
        _merge(self._host, response)
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


def _unanswered(host: str, error: BaseException) -> None:
    """Marks the scope, unless the call failed before anything was sent."""
    if not isinstance(error, httpx.ConnectError | httpx.ConnectTimeout | httpx.PoolTimeout | httpx.UnsupportedProtocol):
        unanswered(host, error)


def _merge(host: str, response: httpx.Response) -> None:
    values = response.headers.get_list(LINEAGE_HEADER)
    if values:
        merge_response(values, host)
