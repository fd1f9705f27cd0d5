"""Writing a history: JSON lines (spec HIST-1)."""

from __future__ import annotations

import json
from collections.abc import Iterable
from typing import IO, Any

from antipode.check.history.operations import Kind, Operation
from antipode.check.history.reading import FORMAT


def as_fields(each: Operation) -> dict[str, Any]:
    """The fields of an operation's line, without those that say nothing."""
    fields: dict[str, Any] = {"history": FORMAT, "id": each.id, "kind": str(each.kind)}
    fields |= {"process": each.process, "scope": each.scope}
    if each.request:
        fields["request"] = each.request
    if each.kind in (Kind.SEND, Kind.RECEIVE):
        fields["message"] = each.message
    elif each.kind is Kind.GAP:
        fields["reason"] = "" if each.recorded is None else each.recorded.reason
    elif each.kind in (Kind.WRITE, Kind.READ):
        fields |= {"store": each.store, "key": each.key}
    if each.kind is Kind.READ:
        fields["reads_from"] = each.reads_from
    if each.recorded is not None and each.recorded.covers:
        fields["covers"] = each.recorded.covers
    if each.identifier:
        fields["identifier"] = each.identifier
    if each.lineage is not None:
        fields["lineage"] = each.lineage if isinstance(each.lineage, str) else list(each.lineage)
    if each.time is not None:
        fields["time"] = each.time
    return fields


def write_operations(operations: Iterable[Operation], stream: IO[str]) -> None:
    """One line each."""
    for each in operations:
        stream.write(json.dumps(as_fields(each), separators=(",", ":")))
        stream.write("\n")
