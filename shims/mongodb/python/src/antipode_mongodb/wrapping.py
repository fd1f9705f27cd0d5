"""`wrap` and `register` for MongoDB: they check the options, and find out what the server's answers are worth."""

from __future__ import annotations

from dataclasses import replace
from typing import Any, Literal, TypeVar, Unpack, cast

from antipode import UnfitStoreError
from antipode.shim import Replicas, Store, StoreOptions, join_store
from antipode.shim.join import ObjectWrapOptions, RegisterOptions, check_word, with_options
from pymongo.asynchronous.collection import AsyncCollection
from pymongo.asynchronous.database import AsyncDatabase
from pymongo.collection import Collection
from pymongo.database import Database
from pymongo.errors import PyMongoError

from antipode_mongodb import tombstones as burying
from antipode_mongodb.adopting import look_at_constructors
from antipode_mongodb.binding import Binding
from antipode_mongodb.recording import recording_client
from antipode_mongodb.shim import MongoShim
from antipode_mongodb.targets import is_client, member, whole

_C = TypeVar("_C")


@with_options(ObjectWrapOptions)
def wrap(
    client: _C,
    store: str,
    *,
    rest: Literal["none", "field"] = "field",
    tombstones: bool | None = None,
    **options: Unpack[ObjectWrapOptions],
) -> _C:
    """A copy of a client, database or collection of PyMongo, sync or async, that records its writes.

    It is of the same class and shares the connections; the one passed in stays plain.

    replicas: the servers that readers here may use, as URLs or clients of one server each; without, the client's own:
    its server, or of a replica set the members that its read preference may choose. rest: whether the lineage rests
    beside each document: `field` or `none`. tombstones (where documents have versions of their own): `True` insists on
    them, and raises where the database passed in has no collection for them; `False` writes none, so that deletions
    are unproven. timeout in seconds.

    Raises ConfigurationError for options that cannot be, UnfitStoreError for a server that is not fit. A server that
    does not answer now is no error.
    """
    check_word("rest", rest, "field", "none")
    if isinstance(client, Collection | AsyncCollection):
        owner: Any = client.database.client
    elif isinstance(client, Database | AsyncDatabase):
        owner = client.client
    elif is_client(client):
        owner = client
    else:
        raise TypeError(f"wrap() takes a client, database or collection of PyMongo, not {type(client).__name__}")
    plain = getattr(owner, "_antipode_plain", owner) if hasattr(type(owner), "_antipode_plain") else owner
    look_at_constructors()
    given = StoreOptions(rest=rest, **options)
    if given.replicas is None:
        given = replace(given, replicas=_members(plain))
    joined = join_store(store, MongoShim, given)
    seeds = sorted(plain._topology_settings.seeds)
    own = member(plain, seeds[0])
    server = (
        joined.use_server(own, own.address, listed=given.replicas is not None)
        if len(seeds) == 1
        else joined.servers()[0]
    )
    clock = cast(MongoShim, joined.shim).clock
    binding = Binding(joined, given, server, whole(plain), clock, tombstones=tombstones)
    binding.learn(plain)
    if tombstones and not binding.flavour.positions and client is not owner:
        _need_tombstones(binding, cast(Any, client))
    return cast(_C, _copy(client, plain, binding))


@with_options(RegisterOptions)
def register(
    store: str,
    *,
    replicas: Replicas,
    **options: Unpack[RegisterOptions],
) -> Store:
    """This process waits for a store's servers, and never reads or writes it."""
    return join_store(store, MongoShim, StoreOptions(replicas=replicas, **options))


def _members(client: Any) -> Any:
    """Of a client of a replica set the members that its reads may go to, asked again and again; None of one server."""
    if len(client._topology_settings.seeds) == 1 and not client._topology_settings.replica_set_name:
        return None

    def members() -> list[Any]:
        primary_only = client.read_preference.mode == 0
        servers = client.topology_description.server_descriptions().values()
        found = [each for each in servers if each.is_readable and (each.is_writable or not primary_only)]
        places = [each.address for each in found] or sorted(client._topology_settings.seeds)
        return [member(client, place) for place in places]

    return members


def _need_tombstones(binding: Binding, part: Any) -> None:
    database = str(part.database.name if isinstance(part, Collection | AsyncCollection) else part.name)
    try:
        found = binding.has_tombstones(database)
    except PyMongoError:  # it does not answer now
        return
    if not found:
        raise UnfitStoreError(
            f"{binding.store.name}: {database} has no collection for tombstones, so deletions there are unproven. In "
            f"mongosh: {burying.cure(database)}",
            code="AP213",
        )


def _copy(client: Any, plain: Any, binding: Binding) -> Any:
    kind = recording_client(type(plain))
    wrapped: Any = object.__new__(kind)
    wrapped.__dict__ = plain.__dict__
    wrapped._antipode = binding
    wrapped._antipode_plain = plain
    if is_client(client):
        return wrapped
    is_collection = isinstance(client, Collection | AsyncCollection)
    database = client.database if is_collection else client
    codec, preference = database.codec_options, database.read_preference
    made = wrapped.get_database(database.name, codec, preference, database.write_concern, database.read_concern)
    if not is_collection:
        return made
    concern, reading = client.write_concern, client.read_concern
    return made.get_collection(client.name, client.codec_options, client.read_preference, concern, reading)
