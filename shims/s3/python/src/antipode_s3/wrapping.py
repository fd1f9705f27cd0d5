"""`wrap` and `register`: how a client or a list of buckets joins a store."""

from __future__ import annotations

from collections.abc import Mapping
from contextlib import closing
from typing import Any, Literal, TypeVar, Unpack

from antipode import ConfigurationError, UnfitStoreError
from antipode.shim import Replicas, Store, StoreOptions, join_store, logs
from antipode.shim.aws import client_of, copy_of, like, wrapped_class
from antipode.shim.join import ObjectWrapOptions, RegisterOptions, check_word, tell_silence, with_options
from botocore.exceptions import BotoCoreError

from antipode_s3.binding import Binding
from antipode_s3.client import RecordingS3
from antipode_s3.probe import Facts, grant, probe
from antipode_s3.shim import S3Shim
from antipode_s3.targets import SERVICE, Target, target_of
from antipode_s3.transfers import look_at_constructors

_C = TypeVar("_C")
_PROBE_S = 2.0


@with_options(ObjectWrapOptions)
def wrap(
    client: _C,
    store: str,
    *,
    bucket: str | None = None,
    rest: Literal["native", "none"] = "native",
    **options: Unpack[ObjectWrapOptions],
) -> _C:
    """A copy of a boto3 client or resource of S3 that records its writes to one bucket under the store's name.

    It is of the same class and shares connections, credentials and events; the one passed in stays plain. A client may
    be wrapped again for another bucket. bucket: the bucket of this store in this client's region; a Bucket or Object
    resource names its own.

    replicas: the buckets that readers of this region may use: URLs (`s3://BUCKET?region=…`,
    `s3+https://HOST/BUCKET?region=…`), pairs (client, bucket), Bucket resources, or a callable that lists them and is
    asked again every 5 s; without, the client's own bucket. wait_on_read: each read first waits for the scope's writes
    to this store, in this bucket, up to `timeout` seconds. rest: where the lineage rests beside an object: `native`
    (its metadata), or `none`. lineage_in, lineage_out: whether lineages at rest are taken and given. on_unfit: a bucket
    whose versioning is off, that is not there, in another region, or may not be asked, raises UnfitStoreError here, or
    is `unproven` later.

    Raises ConfigurationError for options that cannot be, UnfitStoreError for such a bucket. An endpoint that does not
    answer now is no error: what it lacks is then said by who waits there.
    """
    plain = client_of(client, SERVICE)
    if plain is None:
        raise TypeError(f"wrap() takes a boto3 client or resource of S3, not {type(client).__name__}")
    check_word("rest", rest, "native", "none")
    given = StoreOptions(rest=rest, **options)
    if given.hash_keys:
        raise ConfigurationError(
            "hash_keys=True: S3 is asked for objects by their keys, so that hashed ones prove nothing. Leave it out, "
            "or use keys that tell nothing",
            code="AP501",
        )
    look_at_constructors()
    target = _own_target(client, plain, bucket)
    facts = _probe(target, store)
    if facts.unfit and given.on_unfit == "raise":
        raise UnfitStoreError(f"{facts.unfit}. Until then wrap(…, on_unfit='unproven') lets the service start")
    if facts.refused:
        logs.warn(
            f"rights {store}",
            f"{store}: {target.address}: its user may not ask for the bucket's settings, so that nothing is known of "
            f"versioning and replication. {grant(target.bucket, *facts.refused)}",
            code="AP506",
        )
    joined = join_store(store, S3Shim, given)
    server = joined.use_server(target, target.address, listed=given.replicas is not None)
    wrapped: _C = _copy(client, plain, Binding(joined, target, server, given, facts))
    return wrapped


@with_options(RegisterOptions)
def register(
    store: str,
    *,
    replicas: Replicas,
    **options: Unpack[RegisterOptions],
) -> Store:
    """This process waits for a store's buckets, and never reads or writes them."""
    return join_store(store, S3Shim, StoreOptions(replicas=replicas, **options))


def _own_target(given: Any, plain: Any, bucket: str | None) -> Target:
    own = str(getattr(given, "bucket_name", None) or "") if given is not plain else ""
    if not own and given is not plain:
        own = str(getattr(given, "name", None) or "")
    if bucket is not None and own and bucket != own:
        raise ConfigurationError(f"bucket={bucket!r} for a resource of bucket {own!r}", code="AP501")
    name = bucket or own
    if not name:
        raise ConfigurationError(
            "wrap(client, store=…) needs bucket=…: the bucket of this store in this client's region. A store is one "
            "bucket; wrap the client again for another one",
            code="AP501",
        )
    return target_of(plain, name)


def _probe(target: Target, store: str) -> Facts:
    """Asks the bucket what it allows; what cannot be reached now is asked by who waits there."""
    with closing(target.connect(_PROBE_S)) as client:
        try:
            return probe(client, target.bucket, target.address, reads=False)
        except (OSError, BotoCoreError) as error:
            tell_silence(store, target.address, error, "what it allows is asked")
            return Facts()


def _copy(given: Any, plain: Any, binding: Binding) -> Any:
    before: Mapping[str, Binding] = getattr(plain, "_antipode", None) or {}
    origin = getattr(plain, "_antipode_plain", None) or plain
    bindings = {**before, binding.target.bucket: binding}
    kind = wrapped_class(RecordingS3, type(origin))
    return like(given, copy_of(origin, kind, _antipode=bindings, _antipode_plain=origin, _antipode_context=None))
