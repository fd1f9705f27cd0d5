"""`wrap` and `register`: how a connection, a pool, an engine or a list of servers joins a store."""

from __future__ import annotations

import sys
import time
import weakref
from collections.abc import Callable
from contextlib import suppress
from typing import Any, Final, Literal, NamedTuple, TypeAlias, TypeVar, Unpack

import psycopg
from antipode import UnfitStoreError
from antipode.shim import Replicas, Store, StoreOptions, join_store, logs, note_marks
from antipode.shim.join import RegisterOptions, WrapOptions, check_word, flags, tell_silence, with_options

from antipode_postgresql.binding import Binding
from antipode_postgresql.connections import record
from antipode_postgresql.known import NO_TABLE
from antipode_postgresql.pools import ask_pool, idle_of_pool, look_at_pool, record_pool, targets_of_pool
from antipode_postgresql.probe import Facts, probe, say_what_lacks
from antipode_postgresql.session import RefusedError
from antipode_postgresql.shim import PostgresqlShim
from antipode_postgresql.targets import Target, leads_on, target_of
from antipode_postgresql.unsure import pattern_of

_C = TypeVar("_C")
Join: TypeAlias = Callable[[Any], Binding]
_PROBE_S: Final = 1.0
_FACTS_S: Final = 10.0
_MOST_ASKED: Final = 8
"""So often a client is asked at once that names another server each time."""


@with_options(WrapOptions)
def wrap(
    client: _C,
    store: str,
    *,
    rest: Literal["none", "column"] = "none",
    async_commits: Literal["flush", "incomplete"] = "flush",
    unique_timelines: bool = False,
    relaxed_durability: bool = False,
    **options: Unpack[WrapOptions],
) -> _C:
    """A copy of a psycopg connection, a psycopg_pool pool or an SQLAlchemy engine that records under the store's name.

    It is an instance of the same class and shares the connections; what is passed in stays plain. Sync and asyncio.
    Of `django.db.connections[alias]` every connection that Django opens for the alias is wrapped; it is returned.

    replicas: the servers that readers of this region may use, as URLs, or a callable that lists them and is asked again
    every 5 s; without, the client's own server. wait_on_read: each read first waits for the scope's writes to this
    store, up to `timeout` seconds. rest: where the lineage rests beside a row: `none`, or `column` (a column `antipode`
    of the tables that `antipode init --set table=…` prepared). async_commits: what becomes of a write committed with
    synchronous_commit = off: `flush` (a small commit behind it), or `incomplete`. unique_timelines: the operator's word
    that all servers share one archive of the log, so that no two standbys promoted apart take the same timeline; for
    stores without the table of epochs. relaxed_durability: the operator's word that a server that crashed is rebuilt
    before it serves readers, for servers with fsync or full_page_writes off.

    Raises ConfigurationError for options that cannot be, UnfitStoreError for a server whose positions prove nothing (a
    pooler in transaction mode, wal_level = minimal, fsync = off). A server that does not answer now is no error.
    """
    check_word("rest", rest, "none", "column")
    check_word("async_commits", async_commits, "flush", "incomplete")
    extra = flags(unique_timelines=unique_timelines, relaxed_durability=relaxed_durability)
    given = StoreOptions(rest="native" if rest == "column" else "none", extra=extra, **options)
    make, ways = _maker(client)
    joined = join_store(store, PostgresqlShim, given)
    listed = given.replicas is not None
    plain = getattr(client, "_antipode_plain", client)
    plain = getattr(plain, "sync_engine", plain)  # an AsyncEngine is a shell, which nobody holds any more
    source = None
    met: weakref.WeakSet[Any] = weakref.WeakSet()

    def meet(holder: Any, connection: Any, target: Target) -> None:
        """Let the server join that a connection has reached: once a connection, which is never opened anew."""
        if ways is None or ways.varies(holder):  # nobody else says where the next one leads: it stays (BAR-62)
            server = joined.use_server(target, target.address, listed=listed)
        else:
            server = joined.reach(connection, target, leads_on(connection), listed=listed)
        if isinstance(server.target, Target) and server.target.guessed:
            server.target = target
        met.add(connection)

    def meet_idle(holder: Any) -> None:
        """Let the servers join to which the idle connections of a pool lead, before it hands them out (BAR-68)."""
        assert ways is not None
        for connection in ways.idle(holder):
            if connection not in met:
                with suppress(psycopg.Error):  # closed, or just being closed: it leads nowhere
                    meet(holder, connection, target_of(connection))

    if ways is not None:
        name = f"a {type(client).__name__}"
        source = joined.follow_client(
            plain, ways.look, ways.servers, name, listed=listed, varies=ways.varies, meet=meet_idle
        )
        source.found(ways.targets(plain) or ())

    def join(connection: Any) -> Binding:
        """The binding of a connection, of which nobody knows its server before it is there."""
        target = target_of(connection)
        if connection not in met:
            meet(plain, connection, target)
        if source is not None and not source.servers:
            source.found([target])
        binding = Binding(joined, given, async_commits=async_commits)
        facts = _facts(joined, target)
        binding.unsure = pattern_of(facts.unsure)
        shim = joined.shim
        assert isinstance(shim, PostgresqlShim)
        unfit = facts.unfit(relaxed_durability=shim.relaxed_durability)
        binding.unfit = f"{target.address} {unfit}" if unfit else ""
        if binding.unfit and given.on_unfit == "raise":
            raise UnfitStoreError(f"{binding.unfit}. wrap(…, on_unfit='unproven') lets the service start")
        return binding

    wrapped: _C = make(join, store)
    return wrapped


@with_options(RegisterOptions)
def register(
    store: str,
    *,
    replicas: Replicas,
    unique_timelines: bool = False,
    relaxed_durability: bool = False,
    **options: Unpack[RegisterOptions],
) -> Store:
    """This process waits for a store's servers, and never reads or writes it."""
    extra = flags(unique_timelines=unique_timelines, relaxed_durability=relaxed_durability)
    return join_store(store, PostgresqlShim, StoreOptions(replicas=replicas, extra=extra, **options))


class _Ways(NamedTuple):
    """How a client that opens connections is asked where they lead (BAR-52)."""

    targets: Callable[[Any], list[Target] | None]
    """By its words; None where only connecting can tell."""
    ask: Callable[[Any], list[Target]]
    """By one more connection."""
    look: Callable[[Any], object]
    """What decides where they lead."""
    idle: Callable[[Any], list[Any]]
    """The connections that it holds, and that nobody uses."""

    def servers(self, client: Any) -> list[Target]:
        """Return its servers; raises what libpq says.

        Where the application's own code opens its connections it is asked until it names none that is new.
        """
        if (named := self.targets(client)) is not None:
            return named
        found: dict[str, Target] = {}
        for _ in range(_MOST_ASKED):
            new = {target.address: target for target in self.ask(client)}
            if new.keys() <= found.keys():
                break
            found |= new
        return list(found.values())

    def varies(self, client: Any) -> bool:
        """Return whether only connecting tells where it leads, and may tell otherwise the next time."""
        return self.targets(client) is None


def _maker(client: Any) -> tuple[Callable[[Join, str], Any], _Ways | None]:
    """Return how a client is wrapped, and how it is asked for its servers; None for a connection.

    Pools and SQLAlchemy are only looked at where the application has imported them.
    """
    if isinstance(client, psycopg.Connection | psycopg.AsyncConnection):
        return lambda join, _: record(client, join(client)), None
    pool = sys.modules.get("psycopg_pool")
    plain = getattr(client, "_antipode_plain", client)
    if pool is not None and isinstance(client, pool.ConnectionPool | pool.AsyncConnectionPool):
        is_async = isinstance(client, pool.AsyncConnectionPool)
        ways = _Ways(targets_of_pool, ask_pool, look_at_pool, idle_of_pool)
        return lambda join, _: record_pool(plain, join, is_async=is_async), ways
    if "sqlalchemy" in sys.modules:
        from antipode_postgresql import engines

        if engines.is_engine(client):
            looks = engines.look_at_engine, engines.idle_of_engine
            ways = _Ways(engines.targets_of_engine, engines.ask_engine, *looks)
            return lambda join, store: engines.record_engine(plain, join, store), ways
    if "django.db.backends.postgresql.base" in sys.modules:
        from antipode_postgresql import databases

        if databases.is_database(client):
            look, idle = databases.look_at_database, databases.idle_of_database
            ways = _Ways(databases.targets_of_database, databases.ask_database, look, idle)
            return lambda join, _: databases.record_database(client, join), ways
    raise TypeError(
        "wrap() takes a psycopg connection, a psycopg_pool pool, an SQLAlchemy engine or a database of "
        f"django.db.connections, not {type(client).__name__}"
    )


def _facts(store: Store, target: Target) -> Facts:
    """Return what the server allows: asked once a server, and again where that was ten seconds ago (SHIM-43)."""
    shim = store.shim
    assert isinstance(shim, PostgresqlShim)
    place = f"{target.words.get('user', '')}@{target.address}"
    known, asked_at = shim.facts.get(place, (Facts(), -_FACTS_S))
    now = time.monotonic()
    if now - asked_at < _FACTS_S:
        return known
    try:
        facts = probe(target, _PROBE_S)
    except (psycopg.Error, OSError, RefusedError) as error:
        tell_silence(store.name, target.address, error, "its rights are asked")
        return known
    shim.facts[place] = (facts, now)
    say_what_lacks(store.name, target, facts)
    if not facts.marks:
        words = NO_TABLE.format(store=store.name, user=facts.user)
        note_marks(store.name, f"{target.address}: {words}")
        logs.warn(f"marks {store.name} {target.address}", f"{store.name}: {words}", code="AP508")
    return facts
