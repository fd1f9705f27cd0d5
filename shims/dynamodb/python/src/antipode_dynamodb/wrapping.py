"""`wrap` and `register`: how a client, a resource, a table or a list of regions joins a store."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any, Literal, TypeVar, Unpack, cast

from antipode import ConfigurationError, UnfitStoreError
from antipode.shim import Replicas, Store, StoreOptions, join_store, logs
from antipode.shim.aws import code_of, copy_of, like, wrapped_class
from antipode.shim.join import ObjectWrapOptions, RegisterOptions, check_word, with_options
from botocore.exceptions import BotoCoreError, ClientError

from antipode_dynamodb.binding import Binding
from antipode_dynamodb.client import RecordingDynamoDB
from antipode_dynamodb.plain import Conversion, low_level
from antipode_dynamodb.shim import GRANT, DynamoDbShim
from antipode_dynamodb.tables import Table, Tables, table_name, ttl_cure
from antipode_dynamodb.targets import is_client, is_resource, target_of

_C = TypeVar("_C")
_Consistent = Literal["dependent", "always", "never"]


@with_options(ObjectWrapOptions)
def wrap(
    client: _C,
    store: str,
    *,
    tables: Sequence[str] | None = None,
    rest: Literal["none", "field"] = "field",
    tombstones: bool | None = None,
    consistent_reads: _Consistent = "dependent",
    places: Mapping[str, int] | None = None,
    **options: Unpack[ObjectWrapOptions],
) -> _C:
    """A copy of a boto3 client, resource or table of DynamoDB that records its writes under the store's name.

    It is of the same class and shares the connections; the one passed in stays plain.

    tables: the tables that belong to the store (all that the client meets, if not given; of a table resource, that
    one); their settings are asked here. replicas: the regions whose readers a pass speaks of, as clients or URLs
    (`dynamodb://eu-central-1`); without, the client's own. rest: whether the lineage rests beside each item: `field`
    or `none`. tombstones: `True` insists on them, and raises where a table has no time to live; `False` writes none,
    so that deletions are unproven; without, they are written where time to live is on. consistent_reads: whether reads
    that do not say so are made strongly consistent: those of scopes that depend on this store (`dependent`), `always`,
    or `never`. places: numbers of regions, where two names give the same one. timeout in seconds.

    Raises ConfigurationError for options that cannot be, UnfitStoreError for a table that is not there or is not fit.
    A server that does not answer now is no error.
    """
    check_word("rest", rest, "field", "none")
    check_word("consistent_reads", consistent_reads, "dependent", "always", "never")
    if not is_client(client) and not is_resource(client):
        raise TypeError(f"wrap() takes a boto3 client, resource or table of DynamoDB, not {type(client).__name__}")
    own = client if is_client(client) else cast(Any, client).meta.client
    plain = getattr(own, "_antipode_plain", own)
    given = StoreOptions(rest=rest, **options)
    if tables is None and hasattr(client, "table_name"):
        tables = [str(cast(Any, client).table_name)]
    elif isinstance(tables, str):
        raise ConfigurationError("tables= takes a list of names, not one text: tables=[…]", code="AP501")
    low = low_level(plain)
    met = Tables(low, store, with_tombstones=tombstones is not False)
    target = target_of(plain)
    facts = [fact for name in tables or () if (fact := _examine(met, name, store, given.on_unfit)) is not None]
    if tombstones:
        _need_tombstones(facts, store)
    joined = join_store(store, DynamoDbShim, given)
    shim = cast(DynamoDbShim, joined.shim)
    regions = {target.region, *(region for fact in facts for region in fact.regions)}
    shim.place(
        sorted(regions | {target_of(server.target).region for server in joined.servers() if server.target}),
        places or {},
    )
    binding = Binding(
        joined,
        given,
        joined.use_server(target, target.address, listed=given.replicas is not None),
        low=low,
        conversion=None if is_client(client) else Conversion(plain),
        tables=met,
        clock=shim.clock(target.region),
        only=None if tables is None else frozenset(table_name(name) for name in tables),
        consistent=consistent_reads,
    )
    kind = wrapped_class(RecordingDynamoDB, type(plain))
    return cast(_C, like(client, copy_of(plain, kind, _antipode=binding, _antipode_plain=plain)))


@with_options(RegisterOptions)
def register(
    store: str,
    *,
    replicas: Replicas,
    **options: Unpack[RegisterOptions],
) -> Store:
    """This process waits for a store's regions, and never reads or writes it."""
    return join_store(store, DynamoDbShim, StoreOptions(replicas=replicas, **options))


def _examine(met: Tables, name: str, store: str, on_unfit: str) -> Table | None:
    """What is known of a table; None where its region does not answer now."""
    try:
        return met.get(name)
    except ClientError as error:
        refusal = code_of(error)
        if refusal == "ResourceNotFoundException":
            code = "AP519"
            words = f"{store}: there is no table {name} in this region ({met.region}): a wrong region or account, or "
            words += "no replica of it here; add one, or correct region_name="
        elif refusal == "AccessDeniedException":
            code = "AP203"
            words = f"{store}: the key of {name} cannot be asked ({error}). {GRANT}"
        else:
            return None
    except BotoCoreError as error:
        logs.info(
            f"probe {store} {name}",
            f"{store}: {name} cannot be examined yet ({error}); it is when first used",
            code="AP507",
        )
        return None
    if on_unfit == "raise":
        raise UnfitStoreError(f"{words}. wrap(…, on_unfit='unproven') lets the service start", code=code)
    logs.warn(f"unfit {store} {name}", words, code=code)
    return None


def _need_tombstones(tables: Sequence[Table], store: str) -> None:
    for table in tables:
        if table.ttl is None:
            raise UnfitStoreError(
                f"{store}: {table.name} has no time to live, so nothing would take tombstones away. "
                f"{ttl_cure(table.name)}. Without tombstones=True deletions there are unproven.",
                code="AP213",
            )
