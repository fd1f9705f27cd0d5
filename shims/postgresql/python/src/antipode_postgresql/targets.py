"""How to reach a PostgreSQL server beside the application's own connections: with its host, user, password and TLS."""

from __future__ import annotations

import os
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from typing import Any, Final
from urllib.parse import quote

from antipode import ConfigurationError
from antipode.shim import is_connected
from antipode.shim.administration import without_credentials
from psycopg import Connection, ProgrammingError, pq
from psycopg.conninfo import conninfo_to_dict, make_conninfo

SCHEMES: Final = ("postgresql", "postgres")
_DROPPED: Final = frozenset(
    {"options", "application_name", "fallback_application_name", "replication", "target_session_attrs"}
    | {"load_balance_hosts", "connect_timeout", "client_encoding"}
)
_VARIABLES: Final = (
    *("PGHOST", "PGHOSTADDR", "PGPORT", "PGDATABASE", "PGUSER", "PGSERVICE", "PGSERVICEFILE", "PGSYSCONFDIR"),
    *("PGTARGETSESSIONATTRS", "PGLOADBALANCEHOSTS"),
)


@dataclass(frozen=True)
class Target:
    """One server and database, as libpq reaches it."""

    address: str
    """Its name for people and for telling servers apart: no credentials."""
    words: Mapping[str, Any] = field(default_factory=dict, repr=False)
    guessed: bool = field(default=False, compare=False)
    """Of a client that has no open connection yet: an open one may know more (a password that a hook adds)."""

    def conninfo(self, **more: Any) -> str:
        """The connection string; holds the password."""
        return make_conninfo("", **{**self.words, "application_name": "antipode", **more})

    def __str__(self) -> str:
        return self.address


def target_of(what: Any) -> Target:
    """The server behind a URL, a connection string, or an open connection."""
    if isinstance(what, Target):
        return what
    if isinstance(what, str):
        try:
            words = {key: value for key, value in conninfo_to_dict(what).items() if value is not None}
        except ProgrammingError:  # neither its words nor itself as the cause: they may hold a part of the password
            shown = without_credentials(what) if "://" in what else "…"
            raise ConfigurationError(
                f"no server's URL: {shown!r}; want postgresql://host:5432/database", code="AP502"
            ) from None
        kept = {key: value for key, value in words.items() if key not in _DROPPED}
        return Target(_address(kept, str(kept.get("host", "")), str(kept.get("port", ""))), kept)
    return _connected(what)


def targets_of(conninfo: str, more: Mapping[str, Any]) -> list[Target] | None:
    """Return the servers that connections made by these words lead to; None where only libpq can tell, by connecting.

    Of several hosts all where any of them may serve. `more`: keywords of psycopg's connect, its own among them.
    """
    defaults = {option.keyword.decode(): option.val for option in pq.Conninfo.get_defaults()}
    given = conninfo_to_dict(conninfo, **{key: value for key, value in more.items() if key in defaults})
    given = {key: value for key, value in given.items() if value not in (None, "")}
    words: dict[str, Any] = {key: value.decode() for key, value in defaults.items() if value is not None} | given
    hosts = str(words.get("host") or words.get("hostaddr") or "").split(",")
    ports = str(words.get("port") or "5432").split(",")
    ports = ports * len(hosts) if len(ports) == 1 else ports
    one_of = len(hosts) > 1 and words.get("target_session_attrs") in ("read-write", "primary")
    if not all(hosts) or len(ports) != len(hosts) or one_of or words.get("service"):
        return None
    kept = {key: value for key, value in given.items() if key not in _DROPPED}
    kept |= {key: words[key] for key in ("user", "dbname") if key in words}
    if len(hosts) > 1:
        kept.pop("hostaddr", None)
    return [
        Target(_address(kept, name, port), kept | {"host": name, "port": port or "5432"}, guessed=True)
        for name, port in zip(hosts, ports, strict=True)
    ]


def names_several(address: str) -> bool:
    """Return whether an address is none of one server: a reader's connection may reach another of them than ours."""
    return "," in address.split("/")[2]


def environment() -> tuple[str | None, ...]:
    """Return what of the environment libpq reads, whenever it connects, to find out where to (BAR-52)."""
    return tuple(map(os.environ.get, _VARIABLES))


def reached_by(conninfo: str, more: Mapping[str, Any]) -> list[Target]:
    """Return the server that one more connection by these words reaches. Raises what libpq says."""
    known = {option.keyword.decode() for option in pq.Conninfo.get_defaults()}
    words = {key: value for key, value in more.items() if key in known}
    with Connection.connect(conninfo, **{"connect_timeout": 2, **words}) as connection:
        return [target_of(connection)]


def leads_on(connection: Any) -> Callable[[Any], bool]:
    """Return what tells whether an open connection leads where it does, until its peer closes it (BAR-62).

    A thread of Antipode's own asks: libpq may be in the midst of ending the connection, so it is not asked.
    """
    descriptor = connection.pgconn.socket
    return lambda own: not own._closed and is_connected(descriptor)


def _connected(connection: Any) -> Target:
    """The very server that a connection has reached, of several in its connection string."""
    pgconn = connection.pgconn
    words = {
        option.keyword.decode(): option.val.decode()
        for option in pgconn.info
        if option.val is not None and option.val != option.compiled
    }
    kept = {key: value for key, value in words.items() if key not in _DROPPED}
    host, port = pgconn.host.decode(), pgconn.port.decode()
    kept |= {"host": host, "port": port, "user": pgconn.user.decode(), "dbname": pgconn.db.decode()}
    if "," in kept.get("hostaddr", ""):
        del kept["hostaddr"]
    if pgconn.password:
        kept["password"] = pgconn.password.decode()
    return Target(_address(kept, host, port), kept)


def _address(words: Mapping[str, Any], host: str, port: str) -> str:
    hosts, ports = (host or "localhost").split(","), (port or "5432").split(",")
    ports = ports * len(hosts) if len(ports) == 1 else ports
    places = []
    for one, number in zip(hosts, ports, strict=False):
        name = quote(one, safe="") if one.startswith("/") else f"[{one}]" if ":" in one else one
        places.append(f"{name}:{number or '5432'}")
    return f"postgresql://{','.join(places)}/{words.get('dbname') or words.get('user') or ''}"
