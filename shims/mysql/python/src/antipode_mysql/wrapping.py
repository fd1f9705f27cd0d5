"""`wrap` and `register`: how a connection, a pool, an engine or a list of servers joins a store."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from concurrent.futures import ThreadPoolExecutor
from typing import Any, Literal, TypeVar, Unpack

import pymysql
from antipode import UnfitStoreError
from antipode.shim import Replicas, Store, StoreOptions, join_store
from antipode.shim.join import JoinOptions, WrapOptions, check_word, flags, with_options

from antipode_mysql import pymysql_client
from antipode_mysql.binding import Binding, facts_of
from antipode_mysql.shim import MySQLShim
from antipode_mysql.targets import Target, target_of

_C = TypeVar("_C")


@with_options(WrapOptions)
def wrap(
    client: _C,
    store: str,
    *,
    fresh_server_ids: bool = False,
    relaxed_durability: bool = False,
    rest: Literal["none", "native"] = "none",
    **options: Unpack[WrapOptions],
) -> _C:
    """A connection that records its writes under the store's name, and shares all state with the one passed in.

    client: a connection of PyMySQL or of mysql-connector-python (pure Python), one of the latter's pools or of their
    connections, or a SQLAlchemy engine over either: the engine itself is hooked, and returned.
    replicas: the servers that readers of this region may use, as URLs (a user that is not named is this connection's),
    mappings of PyMySQL's arguments or connections, or a callable that lists them and is asked again every 5 s; without,
    the connection's own server. fresh_server_ids: the operator's statement that every server that is rebuilt, restored,
    or (with MariaDB) rejoins after it was the primary gets a server_id, with MySQL a server_uuid, that no server had
    before. Without it every wait is unproven. relaxed_durability: the operator's statement that every server that
    crashed is rebuilt before it serves readers; without, one that may lose what it has is unfit (SHIM-45).
    wait_on_read: each read first waits for the scope's writes to this store, on its own connection, up to `timeout`
    seconds. rest: where the lineage rests beside a row: `none`, or `native` (a column, see `antipode init`).
    lineage_in, lineage_out: whether lineages at rest are taken and given. on_unfit: settings that allow no proof raise
    UnfitStoreError here, or are `unproven` later.

    Raises ConfigurationError for options that cannot be, UnfitStoreError for servers that answer now and are unfit.
    """
    check_word("rest", rest, "none", "native")
    extra = flags(fresh_server_ids=fresh_server_ids, relaxed_durability=relaxed_durability)
    wrapped: _C = _wrapped(client, store, StoreOptions(rest=rest, extra=extra, **options))
    return wrapped


@with_options(JoinOptions)
def register(
    store: str,
    *,
    replicas: Replicas,
    fresh_server_ids: bool = False,
    relaxed_durability: bool = False,
    **options: Unpack[JoinOptions],
) -> Store:
    """This process waits for a store's servers, and never reads or writes it. The options are `wrap`'s."""
    extra = flags(fresh_server_ids=fresh_server_ids, relaxed_durability=relaxed_durability)
    given = StoreOptions(replicas=replicas, extra=extra, **options)
    joined = join_store(store, MySQLShim, given)
    if given.on_unfit == "raise":
        _refuse_unfit(joined, [])
    return joined


def _wrapped(client: Any, store: str, options: StoreOptions, *, is_named: bool = False) -> Any:
    """Return a client that records. `is_named`: it is a connection of an engine that names its servers."""
    plain = getattr(client, "_antipode_plain", client)

    def bind(target: Target, *, is_named: bool = is_named) -> Binding:
        joined = join_store(store, MySQLShim, options)
        _note(joined, target, options)
        return Binding(joined, target, options, is_named=is_named)

    if isinstance(plain, pymysql.Connection):
        return pymysql_client.wrap_connection(plain, bind(target_of(plain)))
    module = type(plain).__module__
    if "sqlalchemy" in "".join(each.__module__ for each in type(plain).__mro__):
        from antipode_mysql.engines import hook

        leads = hook(plain, lambda opened: _wrapped(opened, store, options, is_named=leads.names_servers), store)
        if (named := leads.targets()) is not None:
            _note(join_store(store, MySQLShim, options), named[0], options)
        _follow(plain, leads.look, leads.servers, named or (), store, options)
        return plain
    try:
        from antipode_mysql import connectors
    except ImportError:
        raise TypeError(_wanted(plain)) from None

    def follow(pool: Any) -> None:
        ask = connectors.targets_of_pool
        _follow(pool, connectors.look_at_pool, ask, ask(pool), store, options)

    wrapped = connectors.wrap(plain, bind, follow)
    if wrapped is None:
        raise TypeError(f"{_wanted(plain)} (of {module})")
    return wrapped


def _follow(
    client: Any,
    look: Callable[[Any], object],
    ask: Callable[[Any], Sequence[Target]],
    named: Sequence[Target],
    store: str,
    options: StoreOptions,
) -> None:
    """Have barriers look where a client leads that opens connections (BAR-52)."""
    joined, listed = join_store(store, MySQLShim, options), options.replicas is not None
    joined.follow_client(client, look, ask, f"a {type(client).__name__}", listed=listed).found(named)


def _wanted(client: Any) -> str:
    return (
        "wrap() takes a connection of PyMySQL or mysql-connector-python, a pool of the latter, or a SQLAlchemy Engine, "
        f"not {type(client).__name__}"
    )


def _note(joined: Store, target: Target, options: StoreOptions) -> None:
    """Note how a wrapped client logs in, and whether its server is fit; raises UnfitStoreError as the options say."""
    shim = joined.shim
    assert isinstance(shim, MySQLShim)
    if shim.login is None:
        shim.login = target
    if options.on_unfit == "raise":
        _refuse_unfit(joined, [target])
    else:
        facts_of(joined, target)


def _refuse_unfit(store: Store, own: Sequence[Target]) -> None:
    """Asks the servers that can be asked now; raises UnfitStoreError with what to change."""
    shim = store.shim
    assert isinstance(shim, MySQLShim)
    targets = {target.address: target for target in own}
    for server in store.servers():
        if server.target is not None:  # else nobody knows yet which it is
            targets.setdefault(server.address, target_of(server.target))
    if len(targets) == 1:
        found = [facts_of(store, target) for target in targets.values()]
    else:
        with ThreadPoolExecutor(min(len(targets), 8) or 1, thread_name_prefix="antipode-probe") as pool:
            found = list(pool.map(lambda target: facts_of(store, target), targets.values()))
    for address, facts in zip(targets, found, strict=True):
        unfit = facts.unfit(relaxed_durability=shim.relaxed_durability)
        if unfit:
            raise UnfitStoreError(
                f"{facts.flavour.name} at {address}: {unfit}. Until then wrap(…, on_unfit='unproven') lets the "
                "service start"
            )
