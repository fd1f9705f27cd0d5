"""How to reach a server beside the application's own connection: with its address, user and TLS."""

from __future__ import annotations

import ipaddress
from collections.abc import Mapping
from dataclasses import dataclass, field, replace
from typing import Any, Final
from urllib.parse import parse_qs, unquote, urlsplit

import pymysql
from antipode import ConfigurationError
from antipode.shim import is_connected
from antipode.shim.administration import without_credentials

SCHEMES: Final = ("mariadb", "mysql")
DRIVERS: Final = ("", "pymysql", "mysqlconnector")
_PORT: Final = 3306
_TLS: Final = (
    "ssl",
    "ssl_disabled",
    "ssl_ca",
    "ssl_cert",
    "ssl_key",
    "ssl_key_password",
    "ssl_verify_cert",
    "ssl_verify_identity",
)


@dataclass(frozen=True)
class Target:
    """One server, and how to log in there."""

    host: str = "localhost"
    port: int = _PORT
    unix_socket: str | None = None
    user: str | None = None
    password: Any = field(default=None, repr=False)
    database: str | None = None
    tls: Mapping[str, Any] = field(default_factory=dict, repr=False)

    @property
    def address(self) -> str:
        """Its name for people and for telling servers apart: no credentials, no database (all share one log)."""
        if self.unix_socket:
            return f"mysql://{self.unix_socket}"
        host = f"[{self.host}]" if ":" in self.host else self.host
        return f"mysql://{host}:{self.port}"

    def with_login_of(self, other: Target | None) -> Target:
        """Where no user was named: the login of the store's wrapped connection."""
        if self.user is not None or other is None:
            return self
        return replace(self, user=other.user, password=other.password, tls=self.tls or other.tls)

    def connect(self, timeout: float) -> Any:
        """A new connection of our own; raises what PyMySQL raises."""
        return pymysql.connect(
            host=self.host,
            port=self.port,
            unix_socket=self.unix_socket,
            user=self.user,
            password=self.password or "",
            connect_timeout=max(timeout, 0.05),
            read_timeout=timeout,
            write_timeout=timeout,
            autocommit=True,
            charset="utf8mb4",
            **self.tls,
        )

    def __str__(self) -> str:
        return self.address


def target_of(what: Any, *, reached: bool = True) -> Target:
    """Return the target behind a URL, a mapping of PyMySQL's arguments, or a connection of either client.

    reached: of an open connection the server that it really leads to, which need not be what its words say: a socket
    of the application's own, words that were changed since. Else that of its words.
    """
    if isinstance(what, Target):
        return what
    if isinstance(what, str):
        return _of_url(what)
    if isinstance(what, Mapping):
        return _of_arguments(what)
    if isinstance(what, pymysql.Connection):
        target = _of_pymysql(what)
    elif hasattr(what, "cmd_query"):  # mysql-connector-python, which need not be installed
        target = _of_connector(what)
    else:
        raise ConfigurationError(
            f"no server: {type(what).__name__}; want a URL such as mysql://user@host:3306", code="AP502"
        )
    return _as_reached(target, _peer(what)) if reached else target


def words_of(connection: Any) -> object:
    """Return what decides where a connection will lead when it is opened anew; cheap."""
    if isinstance(connection, pymysql.Connection):
        return connection.host, connection.port, connection.unix_socket
    return connection._host, connection._port, connection._unix_socket


def leads_on(connection: Any) -> bool:
    """Return whether a connection is open, and its peer there still (BAR-62). Raises where nobody can tell."""
    found = _socket_of(connection)
    writer = getattr(found, "_writer", None)
    if writer is not None:  # asyncio
        found = writer.get_extra_info("socket")
    return found is not None and is_connected(getattr(found, "sock", found).fileno())


def _socket_of(connection: Any) -> Any:
    return getattr(connection, "_sock" if isinstance(connection, pymysql.Connection) else "_socket")


def _peer(connection: Any) -> Any:
    """Return what a connection's socket is connected to; None where it is not, or nobody can tell."""
    found = _socket_of(connection)
    writer = getattr(found, "_writer", None)
    try:
        if writer is not None:  # asyncio
            return writer.get_extra_info("peername")
        return getattr(found, "sock", found).getpeername()
    except (AttributeError, OSError):
        return None


def _as_reached(target: Target, peer: Any) -> Target:
    if isinstance(peer, tuple) and (target.unix_socket or not _is_at(target, peer)):
        return replace(target, host=str(peer[0]), port=int(peer[1]), unix_socket=None)
    if isinstance(peer, str) and peer.startswith("/") and not target.unix_socket:
        return replace(target, unix_socket=peer)  # else its own word: the server may have another name for the file
    return target


def _is_at(target: Target, peer: Any) -> bool:
    """Return whether a target's words may name this address. A name is believed: resolving it may wait."""
    if target.port != peer[1]:
        return False
    try:
        return ipaddress.ip_address(target.host) == ipaddress.ip_address(str(peer[0]).partition("%")[0])
    except ValueError:
        return target.host != "localhost" or ipaddress.ip_address(str(peer[0]).partition("%")[0]).is_loopback


def _of_url(url: str) -> Target:
    shown = without_credentials(url)
    try:
        parts = urlsplit(url)
        port = parts.port or _PORT
    except ValueError:  # neither its words nor itself as the cause: they may hold a part of the password
        raise ConfigurationError(f"no server's URL: {shown!r}; want mysql://user@host:3306", code="AP502") from None
    scheme, _, driver = parts.scheme.partition("+")
    if scheme not in SCHEMES or driver not in DRIVERS or not (parts.hostname or parts.query):
        raise ConfigurationError(f"no server's URL: {shown!r}; want mysql://user@host:3306", code="AP502")
    query = {word: values[-1] for word, values in parse_qs(parts.query).items()}
    return Target(
        host=parts.hostname or "localhost",
        port=port,
        unix_socket=query.get("unix_socket"),
        user=unquote(parts.username) if parts.username is not None else None,
        password=unquote(parts.password) if parts.password is not None else None,
        database=unquote(parts.path[1:]) or None,
        tls={word: value for word, value in query.items() if word in ("ssl_ca", "ssl_cert", "ssl_key")},
    )


def _of_arguments(arguments: Mapping[str, Any]) -> Target:
    tls = {word: arguments[word] for word in _TLS if arguments.get(word) is not None}
    return Target(
        host=str(arguments.get("host") or "localhost"),
        port=int(arguments.get("port") or _PORT),
        unix_socket=arguments.get("unix_socket"),
        user=arguments.get("user"),
        password=arguments.get("password") or arguments.get("passwd"),
        database=arguments.get("database") or arguments.get("db"),
        tls=tls,
    )


def _of_pymysql(connection: Any) -> Target:
    if not connection.ssl:
        tls = {"ssl_disabled": True}
    else:  # since PyMySQL 1.2 TLS is tried where nothing was said of it
        tls = {"ssl": connection.ctx} if getattr(connection, "_ssl_required", True) else {}
    name = connection.db
    return Target(
        host=str(connection.host),
        port=int(connection.port),
        unix_socket=connection.unix_socket or None,
        user=_text(connection.user),
        password=connection.password,
        database=_text(name),
        tls=tls,
    )


def _of_connector(connection: Any) -> Target:
    words = ("ca", "cert", "key", "verify_cert", "verify_identity")
    given = getattr(connection, "_ssl", None)
    if given is None:  # the asyncio connection
        given = {word: getattr(connection, f"_ssl_{word}", None) for word in words}
    tls: dict[str, Any] = {f"ssl_{word}": given[word] for word in words if given.get(word)}
    if connection._ssl_disabled:
        tls = {"ssl_disabled": True}
    return Target(
        host=str(connection._host),
        port=int(connection._port),
        unix_socket=connection._unix_socket or None,
        user=connection._user or None,
        password=connection._password or None,
        database=connection._database or None,
        tls=tls,
    )


def _text(value: Any) -> str | None:
    if not value:
        return None
    return value.decode() if isinstance(value, bytes) else str(value)
