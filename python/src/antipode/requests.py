"""Client hook for requests: the lineage goes out with each call and comes back with its response (spec PROP).

http = antipode.requests.wrap(requests.Session())
"""

from __future__ import annotations

from typing import Any, TypeVar, cast
from urllib.parse import urlsplit

import requests
from requests.adapters import BaseAdapter
from requests.utils import select_proxy
from urllib3.exceptions import ConnectTimeoutError, NewConnectionError

from antipode.carriers import LINEAGE_HEADER
from antipode.propagation import approved, merge_response, prepare_request, unanswered
from antipode.site import skip_packages
from antipode.trust import judged_host, trust_settings

_S = TypeVar("_S", bound=requests.Session)

skip_packages("requests", "urllib3", "opentelemetry")


def wrap(session: _S) -> _S:
    """A session of the same type that carries lineages; it shares connections, cookies and settings.

    The session passed in stays plain. Each hop of a redirect is judged anew. Raises ConfigurationError where the
    settings of trust are wrong.
    """
    trust_settings()
    kind = type(session)
    if issubclass(kind, _Carrying):
        return session
    wrapped = object.__new__(_carrying(kind))
    wrapped.__dict__ = session.__dict__.copy()
    return cast(_S, wrapped)


class _Carrying(requests.Session):
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


_classes: dict[type[requests.Session], type[requests.Session]] = {}


def _carrying(kind: type[requests.Session]) -> type[requests.Session]:
    found = _classes.get(kind)
    if found is None:
        found = type(kind.__name__, (_Carrying, kind), {"__module__": kind.__module__})
        _classes[kind] = found
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
        try:
            response = self._inner.send(request, *args, **kwargs)
        except Exception as error:
            if not _never_left(error):
                unanswered(host, error)
            raise
        value = response.headers.get(LINEAGE_HEADER)
        if value is not None:
            merge_response([value], host)
        return response

    def close(self) -> None:
        self._inner.close()


def _proxy(url: str, args: tuple[Any, ...], kwargs: dict[str, Any]) -> str | None:
    """Return the host of the proxy that reads a request in plain text, if there is one; past TLS it sees nothing."""
    proxies = kwargs.get("proxies", args[4] if len(args) > 4 else None)
    proxy = select_proxy(url, proxies) if url.lower().startswith("http:") else None
    return urlsplit(proxy if "://" in proxy else f"//{proxy}").hostname or "" if proxy else None


def _never_left(error: Exception) -> bool:
    """Whether a call failed before anything was sent: no connection, or nothing to connect to."""
    if isinstance(error, requests.exceptions.ConnectTimeout | requests.exceptions.ProxyError | ValueError):
        return True
    reason = getattr(error.args[0] if error.args else None, "reason", None)
    return isinstance(reason, NewConnectionError | ConnectTimeoutError)
