"""What a recorded history is told of objects: each says by its metadata which write it is (spec HIST-28)."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from antipode.recorder import GONE, THERE, Changed, NotedRead, Seen, note_read, noting
from antipode.scope import Scope
from antipode.settings import settings
from antipode.store import Write
from antipode.writeid import Ordered
from botocore.exceptions import ClientError

from antipode_s3.binding import Binding
from antipode_s3.operations import READS_OBJECT
from antipode_s3.outcome import octets
from antipode_s3.probe import status_of


def put(write: Write, key: bytes) -> None:
    """A whole object is about to be written."""
    if write.noted is not None:
        write.noted.changes([Changed(key, THERE)])


def begin(binding: Binding, scope: Scope | None) -> NotedRead | None:
    """Something is about to be read; None where no history is recorded."""
    return note_read(binding.store, scope) if settings().history else None


@noting
def over(
    noted: NotedRead,
    binding: Binding,
    operation: str,
    params: Mapping[str, Any],
    answer: Mapping[str, Any] | ClientError,
    version: Ordered | None = None,
) -> None:
    """The answer has come, with this version in the object's metadata."""
    key = octets(params.get("Key", ""))
    if isinstance(answer, ClientError):
        if status_of(answer) == 404 and operation in READS_OBJECT:
            noted.over([Seen(key, GONE)])
        else:
            noted.failed()
    elif operation in READS_OBJECT and version is not None:
        noted.over([Seen(key, version=binding.store.write_id(key, version))])
    else:
        noted.over([Seen(key)])
