"""What one bucket shows of one write: the version that is current there, the others that it keeps (spec SHIM-30)."""

from __future__ import annotations

import time
from collections import OrderedDict
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any, Final, NamedTuple

from antipode import wire
from antipode.hybrid_clock import seconds_of
from antipode.shim import VISIBLE, UnprovenKind, Visibility, not_yet, unproven
from antipode.writeid import Opaque, WriteId
from botocore.exceptions import ClientError

from antipode_s3 import metadata
from antipode_s3.probe import READING, grant, raise_unavailable, status_of

NO_PROXY: Final = "X-Minio-Source-Proxy-Request"
"""MinIO answers for an object that it lacks by asking the other site, unless a request says this."""
_MOST_VERSIONS: Final = 20
_LONGEST_S: Final = 7 * 86400.0
"""S3 takes a request whose time is 15 minutes off, and an upload in parts has its counter from when it was created. So
long after a counter was given its write has come, or never will."""
_MOST_KNOWN: Final = 20_000
_DEEP_S: Final = (0.2, 2.0)
"""Between two looks through the versions that are not current, while the current one stays."""


class Current(NamedTuple):
    """The version that readers of a key get."""

    there: bool
    counter: int | None = None
    version: str = ""
    """Its VersionId; of a delete marker, too."""
    marker: bool = False


@dataclass(slots=True)
class Look:
    """When the versions that are not current are looked through again for one write: that costs several questions."""

    due: float = 0.0
    interval: float = _DEEP_S[0]
    version: str = ""
    """The current version at the last time: what supersedes a write becomes current."""

    def is_due(self, version: str) -> bool:
        """Whether to look now, with this version current."""
        return version != self.version or time.monotonic() >= self.due

    def done(self, version: str) -> None:
        """It was in vain; beside a new current version others may be about to come."""
        if version != self.version:
            self.interval = _DEEP_S[0]
        self.version = version
        self.due = time.monotonic() + self.interval
        self.interval = min(self.interval * 2, _DEEP_S[1])


class Bucket:
    """Asks one bucket at one endpoint. What it knows of a version never changes: versions are immutable."""

    def __init__(self, client: Any, name: str) -> None:
        self.client = client
        self.name = name
        self.requests = 0
        """Questions asked so far."""
        self._counters: OrderedDict[tuple[str, str], int | None] = OrderedDict()

    # Questions

    def current(self, key: str) -> Current:
        """What readers of this key get now."""
        self.requests += 1
        try:
            answer = self.client.head_object(Bucket=self.name, Key=key)
        except ClientError as error:
            raise_unavailable(error)
            if status_of(error) != 404:
                raise
            headers = error.response.get("ResponseMetadata", {}).get("HTTPHeaders", {})
            marker = headers.get("x-amz-delete-marker") == "true"
            return Current(False, None, headers.get("x-amz-version-id", ""), marker)
        version = answer.get("VersionId", "")
        counter = metadata.read(answer.get("Metadata")).counter
        self._know(key, version, counter)
        return Current(True, counter, version)

    def has(self, key: str, version: str) -> bool:
        """Whether this very version, or delete marker, is there."""
        self.requests += 1
        try:
            self.client.head_object(Bucket=self.name, Key=key, VersionId=version)
        except ClientError as error:
            raise_unavailable(error)
            if status_of(error) == 404:
                return False
            headers = error.response.get("ResponseMetadata", {}).get("HTTPHeaders", {})
            if status_of(error) == 405 and headers.get("x-amz-delete-marker") == "true":
                return True
            raise
        return True

    def keeps(self, key: str, counter: int) -> bool:
        """Whether the version with this counter is among those that the bucket keeps of the key."""
        self.requests += 1
        answer = self.client.list_object_versions(Bucket=self.name, Prefix=key)
        issued = seconds_of(counter)
        distance = {
            item["VersionId"]: abs(item["LastModified"].timestamp() - issued)
            for item in answer.get("Versions", [])
            if item["Key"] == key
        }
        near = sorted(distance, key=distance.__getitem__)[:_MOST_VERSIONS]
        return any(self._counter_of(key, version) == counter for version in near)

    def _counter_of(self, key: str, version: str) -> int | None:
        if (key, version) in self._counters:
            return self._counters[key, version]
        self.requests += 1
        try:
            answer = self.client.head_object(Bucket=self.name, Key=key, VersionId=version)
        except ClientError as error:
            raise_unavailable(error)
            if status_of(error) not in (404, 405):
                raise
            return None
        counter = metadata.read(answer.get("Metadata")).counter
        self._know(key, version, counter)
        return counter

    def _know(self, key: str, version: str, counter: int | None) -> None:
        if version and version != "null":
            self._counters[key, version] = counter
            if len(self._counters) > _MOST_KNOWN:
                self._counters.popitem(last=False)

    # Answers

    def judge(self, write_id: WriteId, look: Look) -> Visibility:
        """What this bucket proves of a write; `look` keeps what was seen of it at the last question."""
        version = write_id.version
        refused = _unfit(write_id)
        if refused is not None:
            return refused
        key = write_id.key.decode("utf-8", "surrogateescape")
        try:
            if isinstance(version, Opaque):
                if self.has(key, version.mark):
                    return VISIBLE
                return not_yet("that version is not there")
            now = self.current(key)
            if now.counter == version.counter or _is_long_after(now.counter, version.counter):
                return VISIBLE
            if now.version and look.is_due(now.version):
                if self.keeps(key, version.counter):
                    return VISIBLE  # superseded: the store put something else after it
                look.done(now.version)
        except ClientError as error:
            return self._refused(error)
        if now.there:
            if now.counter is None:
                return not_yet("a version of others is there")
            if now.counter < version.counter:
                return not_yet("an older version is there")
            return not_yet("another version is there, and nothing says that the store took it after this one")
        return not_yet("it is deleted there" if now.marker else "no such object there")

    def _refused(self, error: ClientError) -> Visibility:
        if status_of(error) == 403:
            return unproven(f"its user may not look at the object. {grant(self.name, *READING)}", UnprovenKind.RIGHT)
        if status_of(error) == 400:
            return unproven(
                "the bucket refuses the question (400): the object is encrypted with a customer's key, or the name of "
                "the version is not one of this store's"
            )
        return unproven(str(error))


def _is_long_after(there: int | None, counter: int) -> bool:
    """Whether a version is so much greater that it came after that one, whatever clocks and uploads in parts did."""
    return there is not None and seconds_of(there) - seconds_of(counter) > _LONGEST_S


def _unfit(write_id: WriteId) -> Visibility | None:
    """Why a write identifier cannot be asked for in S3."""
    if write_id.is_position:
        return unproven("S3 has no positions")
    if not isinstance(write_id.version, Opaque) and write_id.version.epoch:
        return unproven("S3 has no epochs")
    if wire.is_hashed(write_id.key):
        return unproven(
            "its key travels as a hash, so that the object cannot be asked for: hash_keys=False, short keys"
        )
    return None


def without_proxy(params: Mapping[str, Any], **_: Any) -> None:
    """Before a question is sent: MinIO is to answer for itself."""
    params["headers"][NO_PROXY] = "false"
