"""Reads in dry-run: what follows them, and how one is sent once more, by a HEAD of our own (REC-12 to REC-14)."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from antipode.followed_reads import FollowedRead, followed_read, quietly
from antipode.reading import Reading
from antipode.writeid import Ordered
from botocore.exceptions import ClientError

from antipode_s3.binding import Binding
from antipode_s3.operations import READS_MANY, READS_OBJECT
from antipode_s3.outcome import octets
from antipode_s3.probe import status_of
from antipode_s3.targets import target_of

_ABSENT = ("absent",)


@quietly
def begin(binding: Binding, operation: str, params: Mapping[str, Any], reading: Reading | None) -> FollowedRead | None:
    """An operation that reads is about to be sent; None where nothing follows it."""
    if "VersionId" in params:  # it asks for a certain version, which is itself
        return None
    if operation not in READS_MANY:
        return followed_read(binding.store, reading, [octets(params.get("Key", ""))])
    prefix = octets(params.get("Prefix") or "")
    return followed_read(binding.store, reading, lambda key: key.startswith(prefix))


@quietly
def over(
    followed: FollowedRead,
    binding: Binding,
    operation: str,
    params: Mapping[str, Any],
    answer: Mapping[str, Any] | ClientError,
    version: Ordered | None = None,
) -> None:
    """The answer has come, with this version in its metadata. What is compared is the object's tag and version."""
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

    absent = isinstance(answer, ClientError)
    if operation not in READS_OBJECT or (isinstance(answer, ClientError) and status_of(answer) != 404):
        followed.over(binding.server)
        return
    exact = {} if version is None else {octets(params["Key"]): version}
    followed.over(binding.server, lambda: _ABSENT if absent else _shown(answer), repeat=again, versions=exact)


def _shown(answer: Any) -> Any:
    return ("there", str(answer.get("ETag", "")), str(answer.get("VersionId", "")))
