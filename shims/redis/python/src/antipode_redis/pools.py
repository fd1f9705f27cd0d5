"""The pool of a wrapped client: the application's own, of whose connections the shim knows (spec BAR-52, SHIM-44)."""

from __future__ import annotations

import asyncio
import sys
from collections.abc import Callable
from contextvars import ContextVar
from functools import cache
from types import FrameType
from typing import Any, Final

import redis.asyncio.client
import redis.client
from antipode import ConfigurationError, current_scope
from antipode.shim import refuse_making

from antipode_redis.binding import Binding
from antipode_redis.commands import Kind, classify
from antipode_redis.reads import read_call
from antipode_redis.serving import PASSED
from antipode_redis.targets import asks_sentinels, is_plain

_OWN: Final = ("redis.", "antipode_redis.")
"""Modules in which a wrapped client's own connections are taken."""
_NO_DATA: Final = (
    redis.client.PubSub,
    redis.client.Monitor,
    redis.asyncio.client.PubSub,
    redis.asyncio.client.Monitor,
)
"""Whose connections carry no data of keys."""
_making: Final[ContextVar[bool]] = ContextVar("antipode_redis_making", default=False)
_WAY: Final = "use execute_command(), a pipeline or a script of the wrapped client, or a barrier and the plain client"


class RecordingPool:
    """A pool that shares all state with the one that was wrapped."""

    __slots__ = ()
    _antipode: Binding
    _antipode_plain: Any
    __init__ = refuse_making

    def __del__(self) -> None:
        """The pool that was wrapped ends itself."""

    def get_connection(self, *args: Any, **options: Any) -> Any:
        """As redis-py's; the server that it reaches joins the store."""
        _taken(self._antipode, sys._getframe(1))
        connection = super().get_connection(*args, **options)  # type: ignore[misc]
        if not self._antipode.leads.knows(connection):
            self._antipode.met(connection, self._antipode_plain)
        return connection


class AsyncRecordingPool(RecordingPool):
    """The same, for asyncio."""

    __slots__ = ()

    def get_connection(self, *args: Any, **options: Any) -> Any:
        """As redis-py's; the server that it reaches joins the store."""
        _taken(self._antipode, sys._getframe(1))
        return self._antipode_get(super(RecordingPool, self).get_connection(*args, **options))

    async def _antipode_get(self, getting: Any) -> Any:
        connection = await getting
        if not self._antipode.leads.knows(connection):
            if is_plain(type(connection)):
                self._antipode.met(connection, self._antipode_plain)
            else:  # a name may have to be resolved
                await asyncio.to_thread(self._antipode.met, connection, self._antipode_plain)
        return connection


def make(client: Callable[[], Any]) -> Any:
    """Return what a wrapped client makes, which takes its connection before it is wrapped, too."""
    token = _making.set(True)
    try:
        return client()
    finally:
        _making.reset(token)


def check_making(made: Any) -> None:
    """Refuse what the class of a wrapped client makes, unless the client makes it itself (SHIM-50)."""
    if not _making.get():
        refuse_making(made)


def _taken(binding: Binding, frame: FrameType) -> None:
    """Look at who takes a connection out: all but the wrapped client's own objects go round it (SHIM-50).

    A plain client, pipeline or cache over the same pool is redis-py's code, too: so the object counts, not its module.
    """
    if frame.f_globals.get("__name__", "").startswith(_OWN):
        taker = frame.f_locals.get("self")
        if getattr(taker, "_antipode", None) is binding or isinstance(taker, _NO_DATA) or _making.get():
            return
    _goes_round(binding, "a connection was taken out of its pool")


def came_round(binding: Binding | None, args: Any) -> Any:
    """Return PASSED; refuse, or mark, a command that came by `redis.Redis`'s own method and not by the wrapped one."""
    if binding is not None and binding.records and classify(args) not in (Kind.OTHER, Kind.TRANSACTION):
        _goes_round(binding, "a command went round the client")
    return PASSED


def _goes_round(binding: Binding, what: str) -> None:
    """Refuse what the wrapped client does not see where a read would wait; else mark the scope."""
    binding.refresh()
    call, scope = read_call(binding), current_scope()
    if call is not None and call.ids:
        words = f"{binding.store.name}: {what}, where reads wait for nothing: {_WAY}"
        raise ConfigurationError(words, code="AP505")
    if call is not None:
        call.mark()
    if scope is not None and binding.records:
        words = f"{what}, and what is written there is not seen: {_WAY}"
        scope.mark_incomplete("raw", binding.store.name, detail=words)


def plain_pool(pool: Any) -> Any:
    """Return the pool that the application made."""
    return getattr(pool, "_antipode_plain", pool)


def recording_pool(pool: Any, binding: Binding) -> Any:
    """Return a pool that shares all state with this one."""
    plain = plain_pool(pool)
    kind: Any = type(plain)
    wrapped = object.__new__(_recording_class(kind))
    wrapped.__dict__ = plain.__dict__
    wrapped._antipode, wrapped._antipode_plain = binding, plain
    return wrapped


@cache
def _recording_class(plain: Any) -> Any:
    is_async = issubclass(plain, redis.asyncio.ConnectionPool)
    bases = (AsyncRecordingPool if is_async else RecordingPool, plain)
    slots = {"__slots__": ("_antipode", "_antipode_plain"), "__module__": plain.__module__}
    return type(plain.__name__, bases, slots)


def _pool_of(client: Any) -> Any:
    return client.__dict__["_antipode_pool"]


def _use(client: Any, pool: Any) -> None:
    binding = client._antipode
    if binding is not None:
        before, pool = plain_pool(client.__dict__.get("_antipode_pool", pool)), plain_pool(pool)
        if before is not pool and (asks_sentinels(before) or asks_sentinels(pool)):
            raise ConfigurationError(
                "Sentinels name the servers of one of these pools, so a wrapped client cannot change between them: "
                "wrap a client of the new one",
                code="AP505",
            )
        binding.leads.uses(client, pool)
        pool = recording_pool(pool, binding)
    client.__dict__["_antipode_pool"] = pool


POOL: Final = property(_pool_of, _use)
"""A wrapped client's `connection_pool`, which the application may replace."""
