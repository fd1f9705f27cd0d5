"""Uploads in parts: the version and the lineage are given when the upload is created, and rest when it is complete.

Metadata cannot be changed after `CreateMultipartUpload`. Parts may hold what was read later, so what rests beside an
object that the application uploads in parts is marked incomplete for its store, unless the whole upload was one call of
ours (`upload_file`, `upload_fileobj`), whose lineage is the one at the call. A copy in parts is marked, too: its parts
hold what the source depends on.
"""

from __future__ import annotations

import os
import threading
import time
from collections import OrderedDict
from dataclasses import dataclass
from functools import partial
from typing import Any, Final

from antipode import Opaque
from antipode.shim import Write, events, seconds_of

from antipode_s3.binding import Binding
from antipode_s3.copies import is_copy
from antipode_s3.outcome import PendingVersion, failed, key_of, outgoing

_MOST: Final = 10_000
_LONGEST_S: Final = 6 * 86400.0
"""A version that is greater by seven days counts as later (`judging`): an older upload's counter proves nothing."""


@dataclass(slots=True)
class _Upload:
    version: PendingVersion
    write: Write
    """Pending in the scope that created the upload."""


_open: OrderedDict[tuple[str, str], _Upload] = OrderedDict()
"""The uploads that this process has created, by store and UploadId."""
_lock = threading.Lock()
if hasattr(os, "register_at_fork"):  # in the child no thread of the parent holds it
    os.register_at_fork(after_in_child=lambda: globals().update(_lock=threading.Lock()))


def create(client: Any, binding: Binding, operation: str, params: dict[str, Any]) -> Any:
    """CreateMultipartUpload: from now on the write is pending in this scope."""
    key = key_of(params)
    beside = outgoing(binding)
    if not client._antipode_managed or is_copy():  # nobody has looked at a copy's source
        beside = beside.marked_incomplete(binding.store.name)
        events.on_lineage_incomplete("multipart", binding.store.name)
    version = PendingVersion(binding, key, params.get("Metadata"), beside=beside, apart=True)
    write = binding.store.begin(key)
    changed = params if version.metadata is None else {**params, "Metadata": version.metadata}
    # Whatever became of it: an upload that is never completed changes nothing.
    answer = client._antipode_attempt(operation, changed, lambda _: write.abandon())
    with _lock:
        _open[binding.store.name, str(answer.get("UploadId", ""))] = _Upload(version, write)
        if len(_open) > _MOST:
            _open.popitem(last=False)
    return answer


def complete(client: Any, binding: Binding, operation: str, params: dict[str, Any]) -> Any:
    """CompleteMultipartUpload: the object is there, with the version that the upload was created with."""
    place = (binding.store.name, str(params.get("UploadId", "")))
    with _lock:
        upload = _open.get(place)
    key = key_of(params)
    write = binding.store.begin(key)
    answer = client._antipode_attempt(operation, params, partial(failed, write))
    with _lock:
        _open.pop(place, None)
    mark = str(answer.get("VersionId") or "")
    if upload is not None and time.time() - seconds_of(upload.version.version.counter) <= _LONGEST_S:
        upload.version.record(write, answer)
    elif mark and mark != "null":
        # Created by another process, or so long ago that its counter says too little: the store's own name of it.
        write.record(Opaque(mark))
    else:
        write.record_incomplete("multipart", "the bucket named no version for the upload")
    if upload is not None:
        upload.write.abandon()  # last: it is in the lineage of the scope that completed it
    return answer


def abort(client: Any, binding: Binding, operation: str, params: dict[str, Any]) -> Any:
    """AbortMultipartUpload: the write does not happen."""
    answer = client._antipode_send(operation, params)
    with _lock:
        upload = _open.pop((binding.store.name, str(params.get("UploadId", ""))), None)
    if upload is not None:
        upload.write.abandon()
    return answer
