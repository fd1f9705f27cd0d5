"""A store in two regions for the tests: wrapped clients of the lab's buckets, and barriers on what they wrote."""

from __future__ import annotations

import itertools
import time
from collections.abc import Callable, Mapping
from typing import Any

import antipode
import antipode_s3
from antipode import BarrierResult, Lineage, Verdict
from antipode._store.store import registry
from antipode_lab.stores.s3 import S3Store
from antipode_s3 import S3Shim
from botocore.exceptions import ClientError

STORE = "images"
BUCKET = "posts"
PATIENCE = 30.0
_numbers = itertools.count(1)


def until(condition: Callable[[], object], seconds: float = PATIENCE) -> None:
    """Polls a condition, with a deadline."""
    deadline = time.monotonic() + seconds
    while not condition():
        assert time.monotonic() < deadline, "the condition did not come true"
        time.sleep(0.01)


def new_key(word: str = "key") -> str:
    """A key that nobody has used."""
    return f"{word}/{next(_numbers)}-{time.time_ns():x}.jpg"


class Images:
    """One store, wrapped at both regions' buckets; region B's readers use its own."""

    def __init__(self, lab: S3Store) -> None:
        self.lab = lab
        self.plain_a, self.plain_b = lab.new_client("a"), lab.new_client("b1")
        self.a: Any = antipode_s3.wrap(self.plain_a, STORE, bucket=BUCKET, replicas=[lab.replica_url("b1")])
        self.b: Any = antipode_s3.wrap(self.plain_b, STORE, bucket=BUCKET)

    @property
    def shim(self) -> S3Shim:
        """The store's shim in this process."""
        shim = registry().need(STORE).shim
        assert isinstance(shim, S3Shim)
        return shim

    def put(self, key: str, body: bytes = b"v", **arguments: Any) -> Lineage:
        """Writes in a scope of its own; what it left."""
        with antipode.scope() as opened:
            self.a.put_object(Bucket=BUCKET, Key=key, Body=body, **arguments)
            return opened.lineage

    def judge(self, lineage: Lineage, timeout: float = PATIENCE) -> BarrierResult:
        """A barrier on this store that raises for no verdict."""
        return antipode.barrier(lineage, timeout=timeout, stores=[STORE], on_timeout="proceed", on_unproven="proceed")

    def verdict(self, lineage: Lineage, timeout: float = PATIENCE) -> Verdict:
        """The verdict of such a barrier."""
        return self.judge(lineage, timeout).stores[STORE].verdict

    def body(self, key: str, at: str = "b") -> bytes | None:
        """What a region's readers get, without Antipode."""
        try:
            answer = (self.plain_a if at == "a" else self.plain_b).get_object(Bucket=BUCKET, Key=key)
        except ClientError as error:
            if error.response["Error"]["Code"] == "NoSuchKey":
                return None
            raise
        content: bytes = answer["Body"].read()
        return content

    def metadata(self, key: str, at: str = "a") -> Mapping[str, str]:
        """All of an object's metadata, ours too."""
        client = self.plain_a if at == "a" else self.plain_b
        found: Mapping[str, str] = client.head_object(Bucket=BUCKET, Key=key)["Metadata"]
        return found
