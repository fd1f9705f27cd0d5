"""Reads that wait, or that say what they depend on (spec SHIM-12 to SHIM-14, BAR-50, BAR-51)."""

from __future__ import annotations

from typing import Any

from antipode.reading import Reading, current_reading
from antipode.recorder import NotedRead
from antipode.scope import Scope, current_scope
from antipode.wait_on_read import wait_first
from antipode.writeid import Opaque, Ordered, WriteId
from botocore.exceptions import ClientError

from antipode_s3 import following, metadata, noting
from antipode_s3.binding import Binding
from antipode_s3.client_calls import send
from antipode_s3.operations import READS_OBJECT, READS_PART
from antipode_s3.outcome import octets
from antipode_s3.probe import status_of


def do(client: Any, binding: Binding, operation: str, params: dict[str, Any]) -> Any:
    """Does one operation that reads: after what it has to wait for, and noting what it depends on."""
    reading = current_reading()
    scope = current_scope()
    noted = noting.begin(binding, scope)
    try:
        return _do(client, binding, operation, params, reading, scope, noted)
    finally:
        if noted is not None:  # where it was not over before
            noted.failed()


def _do(
    client: Any,
    binding: Binding,
    operation: str,
    params: dict[str, Any],
    reading: Reading | None,
    scope: Scope | None,
    noted: NotedRead | None,
) -> Any:
    wait_first(binding.server, binding.timeout, reading, scope, waits=binding.waits)
    merged = Reading() if binding.merges and scope is not None else None
    collecting = [each for each in (reading, merged) if each is not None]
    followed = following.begin(binding, operation, params, reading) if binding.follows else None
    try:
        answer = send(client, operation, params)
    except ClientError as error:
        if noted is not None:
            noting.over(noted, binding, operation, params, error)
        if followed is not None:
            following.over(followed, binding, operation, params, error)
        if collecting:
            _saw_error(binding, params, error, collecting)
            _merge(scope, merged)
        raise
    if operation in READS_OBJECT:
        rest = _hide(answer)
        binding.observe(rest.version)
        if noted is not None:
            noting.over(noted, binding, operation, params, answer, rest.version)
        if followed is not None:
            following.over(followed, binding, operation, params, answer, rest.version)
        if collecting:
            _saw(binding, params, rest, str(answer.get("VersionId") or ""), collecting)
    else:
        if noted is not None:
            noting.over(noted, binding, operation, params, answer)
        if followed is not None:
            following.over(followed, binding, operation, params, answer)
        if collecting:
            _saw_part(binding, operation, params, answer, collecting)
    _merge(scope, merged)
    return answer


def _hide(answer: dict[str, Any]) -> metadata.Rest:
    """Takes our entry out of what the application gets."""
    found = answer.get("Metadata")
    if not isinstance(found, dict) or metadata.NAME not in found:
        return metadata.NOTHING
    rest = metadata.read(found)
    answer["Metadata"] = {name: value for name, value in found.items() if name != metadata.NAME}
    return rest


def _merge(scope: Scope | None, merged: Reading | None) -> None:
    if merged is not None and scope is not None:
        scope.transfer_read(merged.lineage)


# What was read


def _saw(
    binding: Binding, params: dict[str, Any], rest: metadata.Rest, version: str, collecting: list[Reading]
) -> None:
    """An object was read: its lineage at rest, and the version that covers it (SHIM-13)."""
    store = binding.store
    beside = metadata.lineage_of(rest, store.name, binding.options.lineage_in)
    write_id = _id_of(binding, params, rest.version, version)
    for reading in collecting:
        if write_id is None:
            reading.saw(lineage=beside)
            reading.marked(store.name)
        else:
            reading.saw(write_id, lineage=beside)


def _id_of(binding: Binding, params: dict[str, Any], own: Ordered | None, version: str) -> WriteId | None:
    key = octets(params.get("Key", ""))
    if own is not None:
        return binding.store.write_id(key, own)
    if version and version != "null":  # written without Antipode: the store's own name of the version
        return binding.store.write_id(key, Opaque(version))
    return None


def _saw_error(binding: Binding, params: dict[str, Any], error: ClientError, collecting: list[Reading]) -> None:
    """Nothing was there: where it was deleted, that is a version, too."""
    headers = error.response.get("ResponseMetadata", {}).get("HTTPHeaders", {})
    version = headers.get("x-amz-version-id", "")
    deleted = headers.get("x-amz-delete-marker") == "true" and version and version != "null"
    for reading in collecting:
        if status_of(error) == 404 and deleted:
            reading.saw(binding.store.write_id(octets(params.get("Key", "")), Opaque(version)))
        elif status_of(error) in (304, 412):  # it says something of an object, and not of which version
            reading.marked(binding.store.name)


def _saw_part(
    binding: Binding, operation: str, params: dict[str, Any], answer: dict[str, Any], collecting: list[Reading]
) -> None:
    """Tags, attributes, lists: no lineage comes with them."""
    version = str(answer.get("VersionId") or params.get("VersionId") or "")
    for reading in collecting:
        if operation in READS_PART and version and version != "null":
            reading.saw(binding.store.write_id(octets(params.get("Key", "")), Opaque(version)))
        reading.marked(binding.store.name)
