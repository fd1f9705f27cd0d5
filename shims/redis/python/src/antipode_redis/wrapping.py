"""`wrap` and `register`: how a client or a list of servers joins a store."""

from __future__ import annotations

import copy
from typing import Any, Literal, TypeVar, Unpack

import redis
import redis.asyncio
import redis.asyncio.client
import redis.client
from antipode import ConfigurationError, UnfitStoreError
from antipode.shim import Replicas, Store, StoreOptions, join_store
from antipode.shim.join import ObjectWrapOptions, RegisterOptions, check_word, tell_silence, with_options

from antipode_redis import marks
from antipode_redis.binding import Binding
from antipode_redis.client import AsyncRecordingRedis, RecordingRedis, recording_class
from antipode_redis.envelopes import Envelopes
from antipode_redis.marker import Marker, marker
from antipode_redis.pools import plain_pool
from antipode_redis.probe import CLUSTER, Facts, probe
from antipode_redis.session import Session
from antipode_redis.shim import RedisShim
from antipode_redis.targets import Target, connects_plainly, servers_of, source_of, target_of, target_of_pool

_C = TypeVar("_C", bound=redis.Redis | redis.asyncio.Redis)
_PROBE_S = 1.0


@with_options(ObjectWrapOptions)
def wrap(
    client: _C,
    store: str,
    *,
    rest: Literal["none", "field", "envelope"] = "none",
    envelope_keys: str | None = None,
    marks_key: str = marks.DEFAULT_KEY,
    **options: Unpack[ObjectWrapOptions],
) -> _C:
    """A copy of a redis-py client, sync or asyncio, that records its writes under the store's name.

    It is an instance of the same class and shares the connection pool; the client passed in stays plain.

    replicas: the servers that readers of this region may use, as URLs or clients, or a callable that lists them and is
    asked again every 5 s; without, the client's own server. Clients of Sentinels ask these, likewise.
    wait_on_read: each read first waits for the scope's writes to this store, on its own connection, up to `timeout`
    seconds. rest: where the lineage rests beside a value: `none`, `field` (a field `antipode` in hashes), or
    `envelope`: in the value of the string keys that match `envelope_keys` (a pattern as for KEYS), then to be read
    through such a client only; commands that would see or change the octets inside raise ConfigurationError.
    lineage_in, lineage_out: whether lineages at rest are taken and given. on_unfit: a topology that allows no proof
    raises UnfitStoreError here, or is `unproven` later. marks_key: the hash that holds the marks of epochs.

    Raises ConfigurationError for options that cannot be, UnfitStoreError for a Redis Cluster. A server that does not
    answer now is no error: what it lacks is then said when it is first used.
    """
    _check_client(client)
    check_word("rest", rest, "none", "field", "envelope")
    if (rest == "envelope") != bool(envelope_keys):
        raise ConfigurationError("rest='envelope' and envelope_keys='post:*' (as for KEYS) go together", code="AP501")
    plain: Any = getattr(client, "_antipode_plain", None) or client
    pool = plain_pool(plain.connection_pool)
    source = source_of(plain)
    target, is_known = _leads_to(pool) if source is None else (target_of(plain), True)
    given = StoreOptions(rest=rest, envelope_keys=envelope_keys, extra=_extra(marks_key), **options)
    facts = _probe(target, store, marks_key)
    if facts.cluster and given.on_unfit == "raise":
        raise UnfitStoreError(f"{target.address} {CLUSTER}. wrap(…, on_unfit='unproven') lets the service start")
    joined = join_store(store, RedisShim, given)
    joined.agree_on_envelopes(envelope_keys)
    own_marker = marker(joined, target, marks_key)
    if facts.reached:
        own_marker.facts = facts
    envelopes = Envelopes(store, given, pool.get_encoder()) if envelope_keys else None
    binding = Binding(joined, target, own_marker, given, envelopes)
    wrapped: _C = _copy(plain, binding, own_marker)
    listed = given.replicas is not None
    if source is None:
        name, meet = f"a {type(client).__name__}", Binding.meet_idle
        followed = joined.follow_client(binding, Binding.look, Binding.servers, name, listed=listed, meet=meet)
        followed.found([target, *binding.leads.met_servers().values()] if is_known else [])
        binding.server = joined.server_at(target.address)
    else:
        joined.discover(source.name, source.ask, key=source.key, listed=listed)
    return wrapped


@with_options(RegisterOptions)
def register(
    store: str,
    *,
    replicas: Replicas,
    marks_key: str = marks.DEFAULT_KEY,
    **options: Unpack[RegisterOptions],
) -> Store:
    """This process waits for a store's servers, and never reads or writes it."""
    return join_store(store, RedisShim, StoreOptions(replicas=replicas, extra=_extra(marks_key), **options))


def _extra(marks_key: str) -> dict[str, Any]:
    return {} if marks_key == marks.DEFAULT_KEY else {"marks_key": marks_key}


def _check_client(client: Any) -> None:
    if isinstance(client, redis.client.Pipeline | redis.asyncio.client.Pipeline):
        raise ConfigurationError(
            "wrap() takes a client, not a pipeline: make the pipeline of the wrapped client", code="AP501"
        )
    if isinstance(client, redis.Redis | redis.asyncio.Redis):
        return
    kind = type(client).__name__
    if "Cluster" in kind:
        raise UnfitStoreError(f"{kind}: it {CLUSTER}")
    raise TypeError(f"wrap() takes a redis.Redis or redis.asyncio.Redis, not {kind}")


def _leads_to(pool: Any) -> tuple[Target, bool]:
    """Return the server that a pool leads to, and whether that is known: other code may make its connections."""
    try:
        return servers_of(pool)[0], True
    except Exception:  # asked again by whoever waits
        return target_of_pool(pool), connects_plainly(pool)


def _probe(target: Target, store: str, key: str) -> Facts:
    """Asks the server what it allows; what cannot be reached now is asked when it can."""
    try:
        session = Session(target, _PROBE_S)
    except Exception as error:
        tell_silence(store, target.address, error, "its rights are asked")
        return Facts()
    try:
        return probe(session, store, key)
    except Exception:  # LOADING, a restart just now: asked again by the marker
        return Facts()
    finally:
        session.close()


def _copy(plain: Any, binding: Binding, own_marker: Marker) -> Any:
    wrapped = copy.copy(plain)
    is_async = isinstance(plain, redis.asyncio.Redis)
    wrapped.__class__ = recording_class(type(plain), AsyncRecordingRedis if is_async else RecordingRedis)
    wrapped._antipode = binding
    wrapped._antipode_plain = plain
    del wrapped.__dict__["connection_pool"]
    wrapped.connection_pool = plain.connection_pool
    if wrapped.connection is not None:
        binding.met(wrapped.connection, plain_pool(plain.connection_pool))
    own_marker.users.add(wrapped)
    own_marker.start()
    return wrapped
