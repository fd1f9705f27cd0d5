"""Reads that wait, and that say what they return and what that depends on (spec SHIM-12 to SHIM-14, SHIM-54)."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Any, Final

from antipode import Opaque, WriteId
from antipode.shim import GONE, Keys, Read, ReadValue
from antipode.shim.aws import status_of
from botocore.exceptions import ClientError

from antipode_s3 import metadata
from antipode_s3.binding import Binding
from antipode_s3.operations import READS_MANY, READS_OBJECT, READS_PART
from antipode_s3.outcome import octets
from antipode_s3.targets import target_of

_ABSENT: Final = ("absent",)


def do(client: Any, binding: Binding, operation: str, params: dict[str, Any]) -> Any:
    """Do one operation that reads, and hide our entry of an object's metadata in its answer."""
    with binding.read(binding.server, _keys(operation, params)) as read:
        read.wait()
        try:
            answer = client._antipode_send(operation, params)
        except ClientError as error:
            _refused(read, binding, operation, params, error)
            raise
        if operation in READS_OBJECT:
            rest = _hide(answer)
            binding.observe(rest.version)
            _came(read, binding, params, rest, answer)
        elif read.is_observed:
            read.returned(lambda: [_part(binding, operation, params, answer)])
    return answer


def _keys(operation: str, params: Mapping[str, Any]) -> Keys:
    """The objects that it reads, for whoever follows it: not one of a certain version, which is itself."""
    if "VersionId" in params:
        return ()
    if operation not in READS_MANY:
        return [octets(params.get("Key", ""))]
    prefix = octets(params.get("Prefix") or "")
    return lambda key: key.startswith(prefix)


def _hide(answer: dict[str, Any]) -> metadata.Rest:
    """Take our entry out of what the application gets."""
    found = answer.get("Metadata")
    if not isinstance(found, dict) or metadata.NAME not in found:
        return metadata.NOTHING
    rest = metadata.read(found)
    answer["Metadata"] = {name: value for name, value in found.items() if name != metadata.NAME}
    return rest


# What was read


def _came(read: Read, binding: Binding, params: Mapping[str, Any], rest: metadata.Rest, answer: Any) -> None:
    """An object was read: its lineage at rest, and the version that covers it (SHIM-13)."""
    if not read.is_observed:
        return
    shown = _shown(answer)

    def value() -> ReadValue:
        key, version = octets(params.get("Key", "")), str(answer.get("VersionId") or "")
        own = None if rest.version is None else binding.store.write_id(key, rest.version)
        covers = own or _opaque(binding, key, version)  # else written without Antipode: the store's own name of it
        beside = metadata.lineage_of(rest, binding.store.name, binding.options.lineage_in)
        return ReadValue(key, None, own, covers, beside, is_known=covers is not None)

    read.returned(lambda: [value()], shown=lambda: shown, repeat=_again(binding, params))


def _refused(read: Read, binding: Binding, operation: str, params: Mapping[str, Any], error: ClientError) -> None:
    """Nothing was there: where it was deleted, that is a version, too."""
    if not read.is_observed:
        return
    status, key = status_of(error), octets(params.get("Key", ""))
    if status in (304, 412, 416):  # it says something of an object, and not of which version
        read.mark()
    headers = error.response.get("ResponseMetadata", {}).get("HTTPHeaders", {})
    is_deleted = status == 404 and headers.get("x-amz-delete-marker") == "true"
    covers = _opaque(binding, key, headers.get("x-amz-version-id", "")) if is_deleted else None
    if covers is not None:
        read.saw(covers)
    if status == 404 and operation in READS_OBJECT:
        read.returned(lambda: [ReadValue(key, GONE)], shown=lambda: _ABSENT, repeat=_again(binding, params))
    else:
        read.returned(tuple)


def _part(binding: Binding, operation: str, params: Mapping[str, Any], answer: Mapping[str, Any]) -> ReadValue:
    """Tags, attributes, lists: no lineage comes with them."""
    key, version = octets(params.get("Key", "")), str(answer.get("VersionId") or params.get("VersionId") or "")
    return ReadValue(key, covers=_opaque(binding, key, version) if operation in READS_PART else None, is_known=False)


def _opaque(binding: Binding, key: bytes, version: str) -> WriteId | None:
    return binding.store.write_id(key, Opaque(version)) if version and version != "null" else None


# In dry-run: the read once more, by a HEAD of our own; what is compared is the object's tag and version (REC-13)


def _again(binding: Binding, params: Mapping[str, Any]) -> Callable[[], Any]:
    target, timeout = target_of(binding.server.target), binding.server.ask_timeout

    def again() -> Any:
        client = target.connect(timeout)
        try:
            found = client.head_object(Bucket=target.bucket, Key=params["Key"])
        except ClientError as error:
            if status_of(error) != 404:
                raise
            return _ABSENT
        finally:
            client.close()
        return _shown(found)

    return again


def _shown(answer: Mapping[str, Any]) -> Any:
    return ("there", str(answer.get("ETag", "")), str(answer.get("VersionId", "")))
