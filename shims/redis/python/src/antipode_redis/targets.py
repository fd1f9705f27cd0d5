"""How to reach a Redis server beside the application's own client: with its address, user, TLS and Sentinels."""

from __future__ import annotations

import asyncio
import socket
import weakref
from collections.abc import Callable, Hashable, Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass, field
from typing import Any, Final, NamedTuple
from urllib.parse import quote

import redis.asyncio.connection as asyncio_connection
import redis.asyncio.sentinel as asyncio_sentinel
import redis.connection as sync_connection
import redis.sentinel as sync_sentinel
from antipode import ConfigurationError
from antipode.shim import is_connected, parse_address
from antipode.shim.administration import without_credentials
from redis.backoff import NoBackoff
from redis.maint_notifications import MaintNotificationsConfig
from redis.retry import Retry

SCHEMES: Final = ("redis", "rediss", "unix")
_KEPT: Final = frozenset(
    {"host", "port", "path", "db", "username", "password", "credential_provider", "socket_keepalive"}
    | {"socket_keepalive_options", "socket_type", "redis_connect_func"}
)
Discover = Callable[[float], tuple[str, int]]


@dataclass(frozen=True)
class Target:
    """One server, or one role that Sentinels know the server of."""

    address: str
    """Its name for people and for telling servers apart: no credentials."""
    connection_class: type[Any] = sync_connection.Connection
    kwargs: Mapping[str, Any] = field(default_factory=dict)
    discover: Discover | None = None
    """Asks Sentinels for the host and port, within so many seconds; None where they are fixed."""

    def connect(self, timeout: float, protocol: int | None = 3, **decoding: Any) -> Any:
        """A new connection of our own, handshake done; raises what redis-py raises.

        `decoding`: how replies are made text, as redis-py's own connections take it.
        """
        kwargs = {**self.kwargs, **decoding}
        if self.discover is not None:
            kwargs["host"], kwargs["port"] = self.discover(timeout)
        if self.connection_class is not sync_connection.UnixDomainSocketConnection:
            kwargs["socket_connect_timeout"] = timeout
        connection = self.connection_class(
            **kwargs,
            protocol=protocol,
            socket_timeout=timeout,
            retry=Retry(NoBackoff(), 0),
            driver_info=None,
            maint_notifications_config=MaintNotificationsConfig(enabled=False),
        )
        connection.connect()
        return connection

    def __str__(self) -> str:
        return self.address


def target_of(what: Any) -> Target:
    """The target behind a URL or a client, sync or asyncio."""
    if isinstance(what, Target):
        return what
    if isinstance(what, str):
        try:
            url: dict[str, Any] = sync_connection.parse_url(what)  # type: ignore[no-untyped-call]
        except ValueError:  # neither its words nor itself as the cause: they may hold a part of the password
            shown = without_credentials(what)
            raise ConfigurationError(f"no server's URL: {shown!r}; want redis://host:6379", code="AP502") from None
        return _fixed(url.pop("connection_class", sync_connection.Connection), url)
    return target_of_pool(what.connection_pool)


def target_of_pool(pool: Any) -> Target:
    """Return the target that a pool's words name."""
    if asks_sentinels(pool):
        return _through_sentinels(pool, pool.service_name)
    return _fixed(_sync_class(pool.connection_class), pool.connection_kwargs)


def look_at(pool: Any) -> object:
    """Return what decides where a pool's connections lead; it may be changed while the pool is used (BAR-52)."""
    return _makers(pool), pool.connection_class, dict(pool.connection_kwargs)


def is_plain(kind: type[Any]) -> bool:
    """Return whether a class is redis-py's own: others may lead elsewhere than their words say."""
    return str(kind.__module__).startswith("redis.")


def connects_plainly(pool: Any) -> bool:
    """Return whether a pool's words say where its connections lead: all that makes them is redis-py's own."""
    ways = [way for _, way in _makers(pool)]
    return is_plain(pool.connection_class) and all(str(way.__module__).startswith("redis.") for way in ways)


def _makers(pool: Any) -> list[tuple[str, Any]]:
    return [
        (name, pool.__dict__.get(name) or getattr(type(pool), name)) for name in ("make_connection", "get_connection")
    ]


def servers_of(pool: Any) -> list[Target]:
    """Return the server that a pool leads to, by one more connection where the application's own code makes them."""
    if connects_plainly(pool):
        return [target_of_pool(pool)]
    (_, make), (_, get) = _makers(pool)
    is_async = issubclass(pool.connection_class, asyncio_connection.AbstractConnection)
    own = not str(get.__module__).startswith("redis.")
    if is_async and own:
        raise LookupError(
            "its pool's own get_connection() has not handed out a connection yet: send a PING at the start"
        )
    if is_async:
        return [asyncio.run(_reached_by_asyncio(pool, pool.make_connection()))]
    if not own:  # one that is made now: an idle one leads where it was made for
        opens = str(make.__module__).startswith("redis.")  # it may be at the most that it makes
        connection = pool.connection_class(**pool.connection_kwargs) if opens else pool.make_connection()
        try:
            connection.connect()
            return [target_at(pool, connection, reached_by(getattr(connection, "_conn", connection)))]
        finally:
            connection.disconnect()
    connection = pool.get_connection()
    try:
        return [target_at(pool, connection, reached_by(getattr(connection, "_conn", connection)))]
    finally:
        pool.release(connection)


async def _reached_by_asyncio(pool: Any, connection: Any) -> Target:
    try:
        await connection.connect()
        return target_at(pool, connection, reached_by(connection))
    finally:
        await connection.disconnect(nowait=True)


def place_of(connection: Any) -> object:
    """Return what a connection has for its server; cheap."""
    return getattr(connection, "path", None) or (getattr(connection, "host", None), getattr(connection, "port", None))


def held_by(pool: Any) -> list[Any]:
    """Return the connections of a pool, idle ones and those in use; none where Sentinels name their servers."""
    if asks_sentinels(pool):
        return []
    used = getattr(pool, "_in_use_connections", ())
    used = getattr(used, "data", used)  # asyncio's pool holds them weakly
    idle = getattr(pool, "_available_connections", ())
    blocking = getattr(pool, "_connections", ())
    found = [each() if isinstance(each, weakref.ref) else each for each in [*list(used), *idle, *blocking]]
    return [each for each in found if each is not None]


def reached_by(connection: Any) -> Any:
    """Return the peer of an open connection where its words need not say it; None where they do.

    They do where redis-py's own class opened it, and the application has not changed them since.
    """
    try:
        writer = getattr(connection, "_writer", None)
        peer = writer.get_extra_info("peername") if writer is not None else connection._sock.getpeername()
    except (AttributeError, OSError):
        return None
    if is_plain(type(connection)) and not (isinstance(peer, tuple) and _is_elsewhere(peer, connection)):
        return None
    return peer


def _is_elsewhere(peer: Sequence[Any], connection: Any) -> bool:
    """Return whether a connection's words are another server's than its peer; a name is not resolved."""
    wanted = parse_address(str(getattr(connection, "host", "")))
    is_other_host = wanted is not None and wanted != parse_address(str(peer[0]))
    return is_other_host or bool(peer[1] != getattr(connection, "port", None))


def leads_on(connection: Any) -> bool:
    """Return whether a connection is open, and its peer there still (BAR-62). Raises where nobody can tell."""
    if not hasattr(connection, "_writer"):
        return connection._sock is not None and is_connected(connection._sock.fileno())
    writer = connection._writer
    return writer is not None and is_connected(writer.get_extra_info("socket").fileno())


def target_at(pool: Any, connection: Any, peer: Any) -> Target:
    """Return the server of a pool's connection: its peer, where that is known, else what it has for it."""
    words = {
        word: value
        for word in ("host", "port", "path", "db", "username", "password", "credential_provider")
        if (value := getattr(connection, word, None)) is not None
    }
    kwargs = {**pool.connection_kwargs, **words}
    if peer is not None:
        kwargs |= _reached(connection, peer)
    kind = _sync_class(type(connection))
    for plain in (sync_connection.UnixDomainSocketConnection, sync_connection.SSLConnection):
        if issubclass(kind, plain):
            return _fixed(plain, kwargs)
    return _fixed(sync_connection.Connection, kwargs)


def _reached(connection: Any, peer: Any) -> dict[str, Any]:
    """Return the words for a connection's peer: by the name that the connection has for it, if that is its name."""
    if not isinstance(peer, tuple):
        return {"path": peer}
    host, port = getattr(connection, "host", None), getattr(connection, "port", None)
    with suppress(OSError):  # else its name is no help
        if host and port == peer[1] and any(found[4][0] == peer[0] for found in socket.getaddrinfo(host, port)):
            return {"host": host, "port": port}
    return {"host": peer[0], "port": peer[1]}


def asks_sentinels(pool: Any) -> bool:
    """Return whether a pool's servers are named by Sentinels."""
    return getattr(pool, "service_name", None) is not None


class Source(NamedTuple):
    """The servers behind a client of Sentinels."""

    name: str
    ask: Callable[[], Sequence[Target]]
    """Asks the Sentinels; raises what redis-py raises where none answers."""
    primary: bool
    """Whether it is `master_for`, whose one server changes."""
    key: Hashable
    """The same for clients of one service of the same Sentinels."""


def source_of(client: Any) -> Source | None:
    """Return what names the servers of a client of `Sentinel.master_for` or `slave_for`; None for other clients."""
    pool = client.connection_pool
    if not asks_sentinels(pool):
        return None
    service = pool.service_name
    kwargs = _kept(pool.connection_kwargs)

    def servers() -> list[Target]:
        found, named = _sentinels(pool.sentinel_manager)(1.0), pool.service_name  # as they are now
        places = [] if pool.is_master else found.discover_slaves(named)  # type: ignore[no-untyped-call]
        # As redis-py does: the primary where there is no replica.
        places = places or [found.discover_master(named)]  # type: ignore[no-untyped-call]
        kind, words = _sync_class(pool.connection_class), _kept(pool.connection_kwargs)
        return [_fixed(kind, {**words, "host": host, "port": port}) for host, port in places]

    name = _place(pool, service, kwargs)
    return Source(name, servers, bool(pool.is_master), (name, *_addresses(pool.sentinel_manager)))


def _through_sentinels(pool: Any, service: str) -> Target:
    sentinels = _sentinels(pool.sentinel_manager)
    role = "master" if pool.is_master else "slave"

    def discover(timeout: float) -> tuple[str, int]:
        found = sentinels(timeout)
        if role == "slave":
            replicas = found.discover_slaves(service)  # type: ignore[no-untyped-call]
            if replicas:
                host, port = replicas[0]
                return str(host), int(port)
        host, port = found.discover_master(service)  # type: ignore[no-untyped-call]
        return str(host), int(port)

    kwargs = _kept(pool.connection_kwargs)
    return Target(_place(pool, service, kwargs), _sync_class(pool.connection_class), kwargs, discover)


def _place(pool: Any, service: str, kwargs: Mapping[str, Any]) -> str:
    return f"sentinel://{service}/{'primary' if pool.is_master else 'replicas'}{_database(kwargs)}"


def _addresses(manager: Any) -> list[tuple[str, int]]:
    known = [sentinel.connection_pool.connection_kwargs for sentinel in manager.sentinels]
    return [(kwargs["host"], kwargs["port"]) for kwargs in known]


def _sentinels(manager: Any) -> Callable[[float], sync_sentinel.Sentinel]:
    """Makes sync clients of the same Sentinels, also for an asyncio manager: the waiting threads are sync."""
    known = [dict(sentinel.connection_pool.connection_kwargs) for sentinel in manager.sentinels]

    def sentinels(timeout: float) -> sync_sentinel.Sentinel:
        addresses = _addresses(manager)
        shared = {key: value for key, value in _kept(known[0]).items() if key not in {"host", "port", "db"}}
        shared |= {"socket_timeout": timeout / 2, "socket_connect_timeout": timeout / 2, "retry": Retry(NoBackoff(), 0)}
        return sync_sentinel.Sentinel(addresses, manager.min_other_sentinels, sentinel_kwargs=shared)  # type: ignore[no-untyped-call]

    return sentinels


def _fixed(connection_class: type[Any], kwargs: Mapping[str, Any]) -> Target:
    kept = _kept(kwargs)
    if issubclass(connection_class, sync_connection.UnixDomainSocketConnection):
        place = f"unix://{quote(str(kept.get('path', '')))}"
    else:
        scheme = "rediss" if issubclass(connection_class, sync_connection.SSLConnection) else "redis"
        host = str(kept.get("host") or "localhost")
        place = f"{scheme}://{f'[{host}]' if ':' in host else host}:{kept.get('port') or 6379}"
    return Target(place + _database(kept), connection_class, kept)


def _database(kwargs: Mapping[str, Any]) -> str:
    return f"/{kwargs['db']}" if kwargs.get("db") else ""


def _kept(kwargs: Mapping[str, Any]) -> dict[str, Any]:
    kept = {key: value for key, value in kwargs.items() if key in _KEPT or key.startswith("ssl_")}
    connect_func = kept.get("redis_connect_func")
    if connect_func is not None and _is_coroutine(connect_func):
        del kept["redis_connect_func"]
    return kept


def _is_coroutine(function: Any) -> bool:
    from inspect import iscoroutinefunction

    return iscoroutinefunction(function)


_SYNC: Final = {
    asyncio_connection.UnixDomainSocketConnection: sync_connection.UnixDomainSocketConnection,
    asyncio_connection.SSLConnection: sync_connection.SSLConnection,
    asyncio_connection.AbstractConnection: sync_connection.Connection,
}


def _sync_class(connection_class: type[Any]) -> type[Any]:
    """The class of our own connections for an application's: sync, and to a fixed address."""
    managed = (sync_sentinel.SentinelManagedConnection, asyncio_sentinel.SentinelManagedConnection)
    if issubclass(connection_class, managed):
        secure = (sync_connection.SSLConnection, asyncio_connection.SSLConnection)
        return sync_connection.SSLConnection if issubclass(connection_class, secure) else sync_connection.Connection
    for asyncio_class, sync_class in _SYNC.items():
        if issubclass(connection_class, asyncio_class):
            return sync_class
    return connection_class
