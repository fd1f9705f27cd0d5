"""The operations that write an object or change it, and where each of them is done (spec SHIM-6 to SHIM-10)."""

from __future__ import annotations

from functools import partial
from typing import Any

from antipode.shim import THERE, KeyChange, Read

from antipode_s3 import copies, deletes, multiparts
from antipode_s3.binding import Binding
from antipode_s3.operations import UNVERSIONED
from antipode_s3.outcome import PendingVersion, failed, key_of


def do(client: Any, binding: Binding, operation: str, params: dict[str, Any]) -> Any:
    """Does one operation that may write, and records it."""
    binding.warn_before_writing()
    handler = _HANDLERS.get(operation, _unversioned)
    return handler(client, binding, operation, params)


def _put(client: Any, binding: Binding, operation: str, params: dict[str, Any]) -> Any:
    key = key_of(params)
    version = PendingVersion(binding, key, params.get("Metadata"))
    write = binding.store.begin(key)
    if write.noted is not None:
        write.noted.changes([KeyChange(key, THERE)])
    changed = params if version.metadata is None else {**params, "Metadata": version.metadata}
    answer = client._antipode_attempt(operation, changed, partial(version.failed, write))
    version.record(write, answer)
    return answer


def _unversioned(client: Any, binding: Binding, operation: str, params: dict[str, Any]) -> Any:
    if operation not in UNVERSIONED:
        _wait_unsure(binding)
    write = binding.store.begin(key_of(params))
    answer = client._antipode_attempt(operation, params, partial(failed, write))
    write.record_incomplete(
        "unversioned", f"{operation} changes an object, and makes no version that could be waited for"
    )
    return answer


def _wait_unsure(binding: Binding) -> None:
    """Before an operation that nobody knows, and that may read: nothing tells what it depends on."""
    with Read(binding, binding.server, is_told=False) as read:
        read.wait()
        read.mark()


_HANDLERS = {
    "PutObject": _put,
    "CopyObject": copies.copy,
    "DeleteObject": deletes.delete,
    "DeleteObjects": deletes.delete_many,
    "CreateMultipartUpload": multiparts.create,
    "CompleteMultipartUpload": multiparts.complete,
    "AbortMultipartUpload": multiparts.abort,
}
