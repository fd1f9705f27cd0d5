"""What one bucket shows of one write: the version that is current there, the others that it keeps (spec SHIM-30)."""

from __future__ import annotations

import time
from collections import OrderedDict
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any, Final, NamedTuple

from antipode import Opaque, Ordered, WriteId
from antipode.shim import VISIBLE, UnprovenKind, Visibility, not_yet, seconds_of, unproven, wire
from antipode.shim.aws import status_of
from botocore.exceptions import ClientError

from antipode_s3 import metadata
from antipode_s3.chains import is_chain
from antipode_s3.probe import READING, grant, raise_unavailable

NO_PROXY: Final = "X-Minio-Source-Proxy-Request"
"""MinIO answers for an object that it lacks by asking the other site, unless a request says this."""
_MOST_ASKED: Final = 20
"""So many versions of a key are asked for in one look."""
_LONGEST_S: Final = 7 * 86400.0
"""S3 takes a request whose time is 15 minutes off, and an upload in parts has its counter from when it was created. So
long after a counter was given its write has come, or never will."""
_MOST_KNOWN: Final = 20_000
_DEEP_S: Final = (0.2, 2.0)
"""Between two looks through the versions that are not current, while the current one stays."""


class CurrentVersion(NamedTuple):
    """The version that readers of a key get."""

    there: bool
    own: Ordered | None = None
    """Our version of it."""
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
        self._owns: OrderedDict[tuple[str, str], Ordered | None] = OrderedDict()

    # Questions

    def current(self, key: str) -> CurrentVersion:
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
            return CurrentVersion(False, None, headers.get("x-amz-version-id", ""), marker)
        version = answer.get("VersionId", "")
        own = metadata.read(answer.get("Metadata")).version
        self._know(key, version, own)
        return CurrentVersion(True, own, version)

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

    def keeps(self, key: str, wanted: Ordered) -> bool:
        """Return whether this version is among those that the bucket keeps of the key."""
        self.requests += 1
        answer = self.client.list_object_versions(Bucket=self.name, Prefix=key)
        issued = seconds_of(wanted.counter)
        distance = {
            item["VersionId"]: abs(item["LastModified"].timestamp() - issued)
            for item in answer.get("Versions", [])
            if item["Key"] == key
        }
        asked = 0
        for version in sorted(distance, key=distance.__getitem__):
            if (key, version) not in self._owns:
                if asked == _MOST_ASKED:
                    continue  # until the next look; what is known costs nothing
                asked += 1
            if _is(self._own_of(key, version), wanted):
                return True
        return False

    def _own_of(self, key: str, version: str) -> Ordered | None:
        if (key, version) in self._owns:
            return self._owns[key, version]
        self.requests += 1
        try:
            answer = self.client.head_object(Bucket=self.name, Key=key, VersionId=version)
        except ClientError as error:
            raise_unavailable(error)
            if status_of(error) not in (404, 405):
                raise
            return None
        own = metadata.read(answer.get("Metadata")).version
        self._know(key, version, own)
        return own

    def _know(self, key: str, version: str, own: Ordered | None) -> None:
        if version and version != "null":
            self._owns[key, version] = own
            if len(self._owns) > _MOST_KNOWN:
                self._owns.popitem(last=False)

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
            if _is(now.own, version) or _is_after(now.own, version):
                return VISIBLE
            if now.version and look.is_due(now.version):
                if self.keeps(key, version):
                    return VISIBLE  # superseded: the store put something else after it
                look.done(now.version)
        except ClientError as error:
            return self._refused(error)
        if now.there:
            if now.own is None:
                return not_yet("a version of others is there")
            if now.own.counter < version.counter:
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


def _is(there: Ordered | None, wanted: Ordered) -> bool:
    """Return whether it is this very version; lineages and objects of an earlier release name no chain."""
    if there is None or there.counter != wanted.counter:
        return False
    return there.epoch == wanted.epoch or not (there.epoch and wanted.epoch)


def _is_after(there: Ordered | None, wanted: Ordered) -> bool:
    """Whether a version came behind that one: it is a greater one of its chain, or so much greater that it did,
    whatever clocks and uploads in parts have done (SHIM-52, SHIM-53)."""
    if there is None or there.counter < wanted.counter:
        return False
    if wanted.epoch and there.epoch == wanted.epoch:
        return True
    return seconds_of(there.counter) - seconds_of(wanted.counter) > _LONGEST_S


def _unfit(write_id: WriteId) -> Visibility | None:
    """Why a write identifier cannot be asked for in S3."""
    if write_id.is_position:
        return unproven("S3 has no positions")
    if isinstance(write_id.version, Ordered) and not is_chain(write_id.version.epoch):
        return unproven(f"S3 has no epochs such as {write_id.version.epoch}")
    if wire.is_hashed(write_id.key):
        return unproven(
            "its key travels as a hash, so that the object cannot be asked for: hash_keys=False, short keys"
        )
    return None


def without_proxy(params: Mapping[str, Any], **_: Any) -> None:
    """Before a question is sent: MinIO is to answer for itself."""
    params["headers"][NO_PROXY] = "false"
