"""Client hook for requests: the lineage goes out with each call and comes back with its response (spec PROP).

http = antipode.requests.wrap(requests.Session())
"""

from __future__ import annotations

from typing import Any, TypeVar, cast
from urllib.parse import urlsplit

import requests
from requests.adapters import BaseAdapter, HTTPAdapter
from requests.utils import select_proxy
from urllib3.connectionpool import HTTPConnectionPool
from urllib3.exceptions import ConnectTimeoutError, NewConnectionError

from antipode._base.call_site import skip_packages
from antipode._propagation.attempts import Attempts
from antipode._propagation.carriers import LINEAGE_HEADER
from antipode._trust.trust import judged_host, trust_settings
from antipode.propagation import approved, prepare_request

_S = TypeVar("_S", bound=requests.Session)

skip_packages("requests", "urllib3", "opentelemetry")


def wrap(session: _S) -> _S:
    """A session of the same type that carries lineages; it shares connections, cookies and settings.

    The session passed in stays plain. Each hop of a redirect is judged anew. Raises ConfigurationError where the
    settings of trust are wrong.
    """
    trust_settings()
    kind = type(session)
    if issubclass(kind, _CarryingSession):
        return session
    wrapped = object.__new__(_derived(_CarryingSession, kind))
    wrapped.__dict__ = session.__dict__.copy()
    return cast(_S, wrapped)


class _CarryingSession(requests.Session):
    """What `wrap` adds to a session's class."""

    def send(self, request: requests.PreparedRequest, **kwargs: Any) -> requests.Response:
        # An instrumentation may patch Session.send and inject there: our adapter sees to the lineage, after it.
        with approved(None):
            return super().send(request, **kwargs)

    def get_adapter(self, url: str) -> BaseAdapter:
        adapter = super().get_adapter(url)
        return adapter if isinstance(adapter, _Adapter) else _Adapter(adapter)

    def __reduce__(self) -> tuple[Any, ...]:
        plain = type(self).__mro__[2]
        return _unpickle, (plain, self.__getstate__())


_classes: dict[type[Any], type[Any]] = {}


def _derived(base: type[Any], kind: type[Any], **more: Any) -> type[Any]:
    """Return the class of that name which adds what `base` has to it."""
    found = _classes.get(kind)
    if found is None:
        found = _classes[kind] = type(kind.__name__, (base, kind), {"__module__": kind.__module__, **more})
    return found


def _unpickle(kind: type[requests.Session], state: dict[str, Any]) -> requests.Session:
    plain = cast(Any, object.__new__(kind))
    plain.__setstate__(state)
    return wrap(cast(requests.Session, plain))


class _Adapter(BaseAdapter):
    """Round the session's own adapter: the last place where headers can be changed, and one call a hop."""

    def __init__(self, inner: BaseAdapter) -> None:
        super().__init__()
        self._inner = inner

    def __getattr__(self, name: str) -> Any:
        return getattr(self._inner, name)

    def send(self, request: requests.PreparedRequest, *args: Any, **kwargs: Any) -> requests.Response:
        host = judged_host(urlsplit(request.url or "").hostname or "", _proxy(request.url or "", args, kwargs))
        headers = request.headers
        outgoing = prepare_request(host, headers.get, headers.items())
        for name, value in outgoing.changes.items():
            if value is None:
                headers.pop(name, None)
            else:
                headers[name] = value
        attempts = Attempts(host)
        inner = self._inner
        if isinstance(inner, HTTPAdapter):
            inner = cast(BaseAdapter, _view(inner, _AttemptPools, attempts))
        try:
            response = inner.send(request, *args, **kwargs)
        except BaseException as error:
            if attempts.is_under_way(error) if attempts.seen else not _never_left(error):
                attempts.fail(error)
            raise
        value = response.headers.get(LINEAGE_HEADER)
        attempts.end(response.status_code, [] if value is None else [value])
        return response

    def close(self) -> None:
        self._inner.close()


def _view(plain: Any, base: type[Any], attempts: Attempts) -> Any:
    """Return an object with the very state of this one that tells `attempts` of each time a request is sent.

    urllib3 and adapters repeat a request below us, and give the last answer alone (PROP-30).
    """
    view = object.__new__(_derived(base, type(plain), __slots__=("_antipode_attempts", "_antipode_plain")))
    view.__dict__ = plain.__dict__
    view._antipode_attempts = attempts
    view._antipode_plain = plain  # whoever lets go of a pool closes its connections
    return view


class _AttemptPools:
    """What a view adds to an adapter: its pools are views."""

    _antipode_attempts: Attempts

    def _pool(self, pool: Any) -> Any:
        if not isinstance(pool, HTTPConnectionPool) or isinstance(pool, _AttemptingPool):
            return pool
        return _view(pool, _AttemptingPool, self._antipode_attempts)

    def get_connection_with_tls_context(self, *args: Any, **kwargs: Any) -> Any:
        return self._pool(super().get_connection_with_tls_context(*args, **kwargs))  # type: ignore[misc]

    def get_connection(self, *args: Any, **kwargs: Any) -> Any:
        return self._pool(super().get_connection(*args, **kwargs))  # type: ignore[misc]


class _AttemptingPool:
    """What a view adds to a pool of connections: each attempt is told of."""

    _antipode_attempts: Attempts

    def _make_request(self, *args: Any, **kwargs: Any) -> Any:
        attempts = self._antipode_attempts
        attempts.begin()
        try:
            response = super()._make_request(*args, **kwargs)  # type: ignore[misc]
        except BaseException as error:
            if not isinstance(error, NewConnectionError | ConnectTimeoutError):
                attempts.fail(error)
            raise
        else:
            attempts.answer(response.status, _lineage(response.headers))
            return response
        finally:
            attempts.settle()


def _lineage(headers: Any) -> list[str]:
    """Return the header's value as requests reads it: lines joined by commas."""
    values = headers.get_all(LINEAGE_HEADER)
    return [", ".join(values)] if values else []


def _proxy(url: str, args: tuple[Any, ...], kwargs: dict[str, Any]) -> str | None:
    """Return the host of the proxy that reads a request in plain text, if there is one; past TLS it sees nothing."""
    proxies = kwargs.get("proxies", args[4] if len(args) > 4 else None)
    proxy = select_proxy(url, proxies) if url.lower().startswith("http:") else None
    return urlsplit(proxy if "://" in proxy else f"//{proxy}").hostname or "" if proxy else None


def _never_left(error: BaseException) -> bool:
    """Whether a call failed before anything was sent: no connection, or nothing to connect to."""
    if isinstance(error, requests.exceptions.ConnectTimeout | requests.exceptions.ProxyError | ValueError):
        return True
    reason = getattr(error.args[0] if error.args else None, "reason", None)
    return isinstance(reason, NewConnectionError | ConnectTimeoutError)
