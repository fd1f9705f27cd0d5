"""Deleting: with versioning, a delete marker, which has a VersionId and no metadata (spec SHIM-16).

A marker cannot carry a counter, so the deletion's version is its VersionId, opaque: replication keeps it, and a bucket
that has the marker has the deletion.
"""

from __future__ import annotations

from functools import partial
from typing import Any, Final

from antipode import Opaque
from antipode.shim import Write

from antipode_s3.binding import Binding
from antipode_s3.outcome import failed, key_of, octets

_FOR_GOOD: Final = "a version was removed for good: that makes no version, and replication may not carry it"
_UNNAMED: Final = "the bucket named no version for the deletion: its versioning is suspended or off"
_NOT_DONE: Final = frozenset({"AccessDenied", "MalformedXML", "InvalidArgument", "NoSuchVersion", "PreconditionFailed"})


def delete(client: Any, binding: Binding, operation: str, params: dict[str, Any]) -> Any:
    """DeleteObject."""
    write = binding.store.begin(key_of(params))
    answer = client._antipode_attempt(operation, params, partial(failed, write))
    version, marker = answer.get("VersionId"), answer.get("DeleteMarker")
    _record(binding, write, for_good="VersionId" in params, version=version, marker=marker)
    return answer


def delete_many(client: Any, binding: Binding, operation: str, params: dict[str, Any]) -> Any:
    """DeleteObjects: one write an object; what an answer in quiet mode leaves out is asked for, and left out by us."""
    wanted = params.get("Delete") or {}
    named = [item for item in wanted.get("Objects", []) if isinstance(item, dict) and "Key" in item]
    pending = [(item, binding.store.begin(octets(item["Key"]))) for item in named]
    quiet = bool(wanted.get("Quiet"))

    def all_failed(sent: bool) -> None:
        for _, write in pending:
            failed(write, sent)

    asked = {**params, "Delete": {**wanted, "Quiet": False}} if quiet else params
    answer = client._antipode_attempt(operation, asked, all_failed)
    done: dict[tuple[str, str], list[dict[str, Any]]] = {}
    for item in answer.get("Deleted", []):
        done.setdefault((item.get("Key", ""), "" if _made_marker(item) else item.get("VersionId", "")), []).append(item)
    refused = {(item.get("Key", ""), item.get("VersionId", "")): item for item in answer.get("Errors", [])}
    for item, write in pending:
        place = (str(item["Key"]), str(item.get("VersionId") or ""))
        found = done.get(place)
        if found:
            told = found.pop(0) if len(found) > 1 else found[0]
            marker = bool(told.get("DeleteMarker"))
            _record(binding, write, for_good=bool(place[1]), version=told.get("DeleteMarkerVersionId"), marker=marker)
        elif place in refused or (place[0], "") in refused:
            told = refused.get(place) or refused[place[0], ""]
            if told.get("Code") in _NOT_DONE:
                write.abandon()
            else:
                write.outcome_unknown()
        else:
            write.outcome_unknown()
    if quiet:
        answer.pop("Deleted", None)
    return answer


def _made_marker(item: dict[str, Any]) -> bool:
    """Whether the deletion named no version, and so made a marker; else it removed one, perhaps a marker."""
    return not item.get("VersionId")


def _record(binding: Binding, write: Write, *, for_good: bool, version: str | None, marker: bool | None) -> None:
    if for_good:
        write.record_incomplete("unversioned", _FOR_GOOD)
    elif version and version != "null":
        write.record(Opaque(version))
    elif marker or version or not binding.is_versioned:
        write.record_incomplete("unversioned", _UNNAMED)
    else:
        write.abandon()  # MinIO makes no marker where the key has no version at all: nothing was changed
