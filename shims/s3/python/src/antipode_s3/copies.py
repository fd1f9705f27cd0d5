"""CopyObject: S3 would copy our entry with the source's metadata, so the copy is given metadata of its own.

The source is looked at first (one HEAD), and the copy is bound to the version seen: metadata and data belong together.
What rests beside the copy is the scope's lineage, joined with what the source depends on and the source itself.
"""

from __future__ import annotations

from collections.abc import Mapping
from contextlib import AbstractContextManager
from functools import partial
from typing import Any, Final

from antipode import EMPTY, Lineage, Opaque
from antipode.shim import Read, hold
from botocore.exceptions import BotoCoreError, ClientError
from opentelemetry import context as otel

from antipode_s3 import metadata
from antipode_s3.binding import Binding
from antipode_s3.outcome import PendingVersion, failed, key_of, octets, outgoing

_CARRIED: Final = (
    "CacheControl",
    "ContentDisposition",
    "ContentEncoding",
    "ContentLanguage",
    "ContentType",
    "ExpiresString",
)
"""What S3 copies beside the user's metadata; with a directive to replace, it has to be said."""
_SECRETS: Final = {
    "CopySourceSSECustomerAlgorithm": "SSECustomerAlgorithm",
    "CopySourceSSECustomerKey": "SSECustomerKey",
    "CopySourceSSECustomerKeyMD5": "SSECustomerKeyMD5",
}


_COPY: Final = otel.create_key("antipode-s3-copy")


def mark_copy() -> AbstractContextManager[None]:
    """Return a block in whose Context a managed transfer copies: its threads have it, too."""
    return hold(_COPY, True)


def is_copy() -> bool:
    """Whether a managed transfer copies here."""
    return bool(otel.get_value(_COPY))


def copy(client: Any, binding: Binding, operation: str, params: dict[str, Any]) -> Any:
    """CopyObject."""
    key = key_of(params)
    source = _look(client, params)
    if source is None:
        return _blind(client, binding, operation, params)
    beside = outgoing(binding) | _depends(client, source, binding)
    replaces = params.get("MetadataDirective") == "REPLACE"
    version = PendingVersion(binding, key, params.get("Metadata") if replaces else source.metadata, beside=beside)
    changed = dict(params)
    if version.metadata is not None:
        changed["CopySource"] = source.bound
        changed["Metadata"] = version.metadata
        if not replaces:
            changed |= {"MetadataDirective": "REPLACE", **source.carried}
    write = binding.store.begin(key)
    answer = client._antipode_attempt(operation, changed, partial(version.failed, write))
    version.record(write, answer)
    return answer


def wait_for_source(client: Any, params: Mapping[str, Any]) -> None:
    """Wait for what a read of the source would wait for: a copy of it or of a part reads it (SHIM-44)."""
    place = _place(params.get("CopySource"))
    owner: Binding | None = None if place is None else client._antipode.get(place[0])
    if owner is not None:
        owner.refresh()
        Read(owner, owner.server, is_told=False).wait()


def _blind(client: Any, binding: Binding, operation: str, params: dict[str, Any]) -> Any:
    """The source cannot be looked at: the store's own error is the application's."""
    write = binding.store.begin(key_of(params))
    answer = client._antipode_attempt(operation, params, partial(failed, write))
    write.record_incomplete("rights", "the source of a copy may not be looked at (HEAD): s3:GetObject is needed there")
    return answer


class _Source:
    """The object that is copied, as it was when it was looked at."""

    def __init__(self, bucket: str, key: str, named: str, answer: Mapping[str, Any]) -> None:
        self.bucket = bucket
        self.key = key
        self.version = str(answer.get("VersionId") or "")
        self.rest = metadata.read(answer.get("Metadata"))
        self.metadata: dict[str, str] = {k: v for k, v in answer.get("Metadata", {}).items() if k != metadata.NAME}
        self.carried = {name.removesuffix("String"): answer[name] for name in _CARRIED if name in answer}
        version = named or (self.version if self.version != "null" else "")
        self.bound: dict[str, str] = {"Bucket": bucket, "Key": key} | ({"VersionId": version} if version else {})


def _look(client: Any, params: Mapping[str, Any]) -> _Source | None:
    place = _place(params.get("CopySource"))
    if place is None:
        return None
    bucket, key, version = place
    asked: dict[str, Any] = {"Bucket": bucket, "Key": key} | ({"VersionId": version} if version else {})
    asked |= {own: params[theirs] for theirs, own in _SECRETS.items() if theirs in params}
    try:
        answer = client._antipode_send("HeadObject", asked)
    except (ClientError, BotoCoreError):
        return None
    return _Source(bucket, key, version, answer)


def _place(source: Any) -> tuple[str, str, str] | None:
    """Bucket, key and version of a CopySource, which is a text or a dictionary; None where it is neither."""
    if isinstance(source, Mapping):
        if "Bucket" not in source or "Key" not in source:
            return None
        return str(source["Bucket"]), str(source["Key"]), str(source.get("VersionId") or "")
    if not isinstance(source, str):
        return None
    path, _, version = source.partition("?versionId=")
    separator = "/object/" if path.startswith("arn:") else "/"
    bucket, found, key = path.removeprefix("/").partition(separator)
    return (bucket, key, version) if found and bucket and key else None


def _depends(client: Any, source: _Source, binding: Binding) -> Lineage:
    """What the source's data depend on: its lineage at rest, and itself where its bucket is of a store."""
    owner: Binding | None = client._antipode.get(source.bucket)
    store = binding if owner is None else owner
    lineage = metadata.lineage_of(source.rest, store.store.name, store.options.lineage_in)
    if owner is None:
        return lineage
    owner.observe(source.rest.version)
    if source.rest.version is not None:
        return lineage | Lineage([owner.store.write_id(octets(source.key), source.rest.version)])
    if source.version and source.version != "null":
        return lineage | Lineage([owner.store.write_id(octets(source.key), Opaque(source.version))])
    return lineage | EMPTY.marked_incomplete(owner.store.name)
