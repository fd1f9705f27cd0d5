"""How to reach one server beside the application's own client, with its credentials and settings."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import Any, Final
from urllib.parse import urlsplit

import pymongo
from antipode import ConfigurationError
from antipode.shim.administration import without_credentials
from pymongo.asynchronous.mongo_client import AsyncMongoClient
from pymongo.errors import PyMongoError
from pymongo.topology_description import TOPOLOGY_TYPE

SCHEMES: Final = ("mongodb", "mongodb+srv")
_DEFAULT_PORT: Final = 27017


class OwnClient(pymongo.MongoClient[dict[str, Any]]):
    """A client of our own: it has no part in a session that the application has bound to its own calls."""

    def _get_bound_session(self) -> None:
        return None


@dataclass(frozen=True)
class Target:
    """One server."""

    address: str
    """Its name for people and for telling servers apart: no credentials."""
    given: dict[str, Any] = field(compare=False, repr=False)
    """What a client of it is made with."""

    def connect(self, timeout: float) -> pymongo.MongoClient[dict[str, Any]]:
        """A client of our own: its connections, its time-outs, no retries. It connects when it is first used."""
        limit = max(round(timeout * 1000), 1)
        bounded = dict.fromkeys(("serverSelectionTimeoutMS", "connectTimeoutMS", "socketTimeoutMS"), limit)
        ours = {"retryReads": False, "retryWrites": False, "maxPoolSize": 2, "tz_aware": False, "document_class": dict}
        return OwnClient(**{**self.given, **bounded, **ours, "minPoolSize": 0, "connect": False})

    def __str__(self) -> str:
        return self.address


def is_client(what: Any) -> bool:
    """Whether this is a client of PyMongo's."""
    return isinstance(what, pymongo.MongoClient | AsyncMongoClient)


def target_of(what: Any) -> Target:
    """The server behind a URL, or behind a client of one server.

    Raises ConfigurationError for what names several, or none.
    """
    if isinstance(what, Target):
        return what
    if isinstance(what, str):
        return _by_url(what)
    client = getattr(what, "client", what) if not is_client(what) else what
    if not is_client(client):
        raise ConfigurationError(f"no client or URL of MongoDB: {type(what).__name__}", code="AP501")
    seeds = sorted(client._topology_settings.seeds)
    if len(seeds) != 1:
        raise ConfigurationError(
            "a client of several servers does not say which of them reads use: name each in replicas=[…], as "
            "mongodb://HOST:PORT",
            code="AP501",
        )
    return member(client, seeds[0])


def member(client: Any, address: tuple[str, int | None]) -> Target:
    """One server of a client's, with the client's own settings."""
    host, port = address
    given = dict(client._init_kwargs)
    hosts = given.get("host")
    urls = [hosts] if isinstance(hosts, str) else list(hosts or [])
    given["host"] = next((_with_host(url, host, port) for url in urls if "://" in url), None) or _shown(host, port)
    given.pop("port", None)
    for word in ("event_listeners", "type_registry", "replicaSet", "replicaset", "connect", "document_class"):
        given.pop(word, None)
    given["directConnection"] = True
    return Target(url_of(host, port), given)


def url_of(host: str, port: int | None) -> str:
    """The URL of one server, by which it is known: no credentials."""
    return f"mongodb://{_shown(host, port)}"


def whole(client: Any) -> Target:
    """All the servers of a client, as the client finds them."""
    given = dict(client._init_kwargs)
    for word in ("event_listeners", "type_registry", "connect", "document_class"):
        given.pop(word, None)
    seeds = ",".join(_shown(*seed) for seed in sorted(client._topology_settings.seeds))
    return Target(f"mongodb://{seeds}", given)


def view_of(client: Any) -> Any:
    """What a client sees of its servers: another value where they may be others, or of another kind, than before."""
    topology = client.topology_description
    sets = frozenset(each.replica_set_name for each in topology.server_descriptions().values()) - {None}
    return topology.max_election_id, sets


def connections_of(client: Any) -> tuple[int, ...]:
    """How many connections a client has made by now: it replaces those that have died without a word."""
    topology = client._topology
    return id(topology), *(server.pool.next_connection_id for server in list(topology._servers.values()))


def is_of_one(client: Any) -> bool:
    """Whether a client is of one server, and sees no elections: a new connection may lead to another one there."""
    return bool(client.topology_description.topology_type == TOPOLOGY_TYPE.Single)


def _shown(host: str, port: int | None) -> str:
    if port is None:  # a Unix socket
        return host.replace("/", "%2F")
    return f"[{host}]:{port}" if ":" in host else f"{host}:{port}"


def _with_host(url: str, host: str, port: int | None) -> str:
    """A URL with one host in place of those that it names."""
    scheme, _, rest = url.partition("://")
    hosts, slash, tail = rest.partition("/")
    if not slash:
        hosts, mark, query = rest.partition("?")
        tail = mark + query
    login, at, _ = hosts.rpartition("@")
    path, _, query = tail.partition("?")
    options = [each for each in query.split("&") if each]
    options = [each for each in options if each.partition("=")[0].lower() not in ("directconnection", "replicaset")]
    if scheme.lower() == "mongodb+srv" and not any(each.lower().startswith(("tls=", "ssl=")) for each in options):
        options.append("tls=true")
    asked = f"?{'&'.join(options)}" if options else ""
    return f"mongodb://{login}{at}{_shown(host, port)}/{path}{asked}"


def _by_url(url: str) -> Target:
    shown = without_credentials(url)
    if urlsplit(url).scheme.lower() not in SCHEMES:
        raise ConfigurationError(f"no address of MongoDB: {shown}; want mongodb://HOST:PORT", code="AP502")
    try:
        probe: Any = pymongo.MongoClient(url, connect=False)
    except (PyMongoError, ValueError, TypeError) as error:
        raise ConfigurationError(f"no address of MongoDB: {shown} ({type(error).__name__})", code="AP502") from None
    seeds = sorted(probe._topology_settings.seeds)
    if len(seeds) != 1:
        raise ConfigurationError(
            f"{shown} names {len(seeds)} servers: name each by itself, replicas=[…, …]", code="AP502"
        )
    return member(probe, seeds[0])
