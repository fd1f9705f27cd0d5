"""What the shims of AWS' services share: clients of boto3, ours and wrapped ones, and what an error says of a request.

Every call of a client comes through its `_make_api_call`. Nothing here knows a service.
"""

from __future__ import annotations

import copy
import os
import threading
from collections.abc import Callable, Mapping
from typing import TYPE_CHECKING, Any, ClassVar, Final

import botocore.session
from botocore.client import BaseClient
from botocore.config import Config
from botocore.exceptions import ClientError

from antipode.shim import refuse_making

if TYPE_CHECKING:
    _Base = Any
else:
    _Base = object
_MOST_CLASSES: Final = 256
_classes: Final[dict[tuple[type[Any], type[Any]], type[Any]]] = {}
_loading = threading.Lock()
if hasattr(os, "register_at_fork"):  # in the child no thread of the parent holds it
    os.register_at_fork(after_in_child=lambda: globals().update(_loading=threading.Lock()))
_loaders: Final[list[Any]] = []


# What an error says


def code_of(error: ClientError) -> str:
    """Return the service's name of an error: `NoSuchKey`, `AccessDenied`; empty where its reply has none."""
    return str(error.response.get("Error", {}).get("Code", ""))


def status_of(error: ClientError) -> int:
    """Return the HTTP status of an error; 0 where there is none."""
    return int(error.response.get("ResponseMetadata", {}).get("HTTPStatusCode", 0))


def attempts_before(reply: Mapping[str, Any]) -> int:
    """Return how often the client had sent the request before it got this reply."""
    return int(reply.get("ResponseMetadata", {}).get("RetryAttempts", 0))


def is_refused(error: BaseException, statuses: range, *more: int) -> bool:
    """Return whether the service said no, by one of these statuses, and no attempt before may have been done.

    What it says to a second attempt says nothing of the first, whose reply was lost.
    """
    if not isinstance(error, ClientError) or attempts_before(error.response):
        return False
    return status_of(error) in statuses or status_of(error) in more


# A wrapped client


class _Sent(threading.local):
    has_left = False
    depth = 0


_sent: Final = _Sent()


class WrappedAwsClient(_Base):  # type: ignore[misc]
    """The part of a wrapped boto3 client that is ours. Never made by itself: put before the client's own class.

    It notes for each thread whether its last call has got as far as its connection.
    """

    _antipode: Any
    _antipode_plain: Any
    _antipode_refusals: ClassVar[tuple[int, ...]] = ()
    """Statuses from 500 on by which the service says that nothing was done."""
    __init__ = refuse_making

    def _antipode_send(self, operation: str, params: dict[str, Any]) -> Any:
        """Make the client's own call."""
        if not _sent.depth:  # a call inside another one (of a hook) must not make that one's request unsent
            _sent.has_left = False
        _sent.depth += 1
        try:
            return super()._make_api_call(operation, params)
        finally:
            _sent.depth -= 1

    def _antipode_attempt(self, operation: str, params: dict[str, Any], failed: Callable[[bool], None]) -> Any:
        """Make the client's own call; where it raises, tell first whether it may have been done all the same."""
        try:
            return self._antipode_send(operation, params)
        except BaseException as error:
            failed(_sent.has_left and not is_refused(error, range(300, 500), *self._antipode_refusals))
            raise

    def _make_request(self, *args: Any, **kwargs: Any) -> Any:
        _sent.has_left = True
        return super()._make_request(*args, **kwargs)


def wrapped_class(mixin: type[Any], base: type[Any]) -> type[Any]:
    """Return the class of a wrapped client: the client's own, with ours before it."""
    made = _classes.get((mixin, base))
    if made is None:
        if len(_classes) >= _MOST_CLASSES:  # boto3 makes a class for each client
            _classes.clear()
        space = {"__module__": base.__module__, "__doc__": base.__doc__}
        made = _classes[mixin, base] = type(base.__name__, (mixin, base), space)
    return made


def copy_of(client: Any, kind: type[Any] | None = None, **changes: Any) -> Any:
    """Return a copy of a client that shares its connections, credentials and events.

    (`copy.copy` cannot make one: a client answers for any name.)
    """
    made = object.__new__(kind or type(client))
    made.__dict__.update(client.__dict__, **changes)
    return made


def like(given: Any, client: Any) -> Any:
    """Return a wrapped client; where its resource, Bucket, Table, Queue was given, a copy of that which uses it."""
    if isinstance(given, BaseClient):
        return client
    resource = copy.copy(given)
    resource.meta = given.meta.copy()
    resource.meta.client = client
    return resource


def client_of(given: Any, *services: str) -> Any:
    """Return the boto3 client of one of these services that this is or uses; None where it is something else."""
    client = given if isinstance(given, BaseClient) else getattr(getattr(given, "meta", None), "client", None)
    if not isinstance(client, BaseClient):
        return None
    return client if client.meta.service_model.service_name in services else None


# A client of our own


def own_config(timeout: float, wait: float = 0.0, **more: Any) -> Config:
    """Return the settings of our own clients: no retries, and time-outs in seconds.

    wait: how long a reply may be kept back on purpose.
    """
    retries = {"total_max_attempts": 1, "mode": "standard"}
    return Config(connect_timeout=timeout, read_timeout=timeout + wait, retries=retries, **more)


def own_session(credentials: Any = None, profile: str | None = None) -> Any:
    """Return a botocore session of our own; the models that it reads are read once a process.

    credentials: a client's, which are refreshed for ours when they are for it.
    """
    session = botocore.session.Session(profile=profile)
    with _loading:
        if not _loaders:
            _loaders.append(session.get_component("data_loader"))
        session.register_component("data_loader", _loaders[0])
    if credentials is not None:
        session._credentials = credentials
    return session


def client_beside(client: Any, config: Config, endpoint: str | None = None, region: str | None = None) -> Any:
    """Return a client of our own like the application's, for the same service and with its credentials."""
    return own_session(client._get_credentials()).create_client(
        client.meta.service_model.service_name,
        region_name=region or client.meta.region_name,
        endpoint_url=endpoint or client.meta.endpoint_url,
        verify=getattr(getattr(client._endpoint, "http_session", None), "_verify", None),
        config=client.meta.config.merge(config),
    )
