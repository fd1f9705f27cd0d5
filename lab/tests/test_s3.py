"""The lab's S3, on real MinIO servers."""

from __future__ import annotations

import time
from collections.abc import Iterator
from typing import Any

import pytest
from antipode_lab import Lab, LabError
from antipode_lab.stores.s3 import LOST_KEY, S3Store
from botocore.exceptions import BotoCoreError, ClientError

BUCKET = "posts"


@pytest.fixture(scope="module")
def lab() -> Iterator[S3Store]:
    with Lab("s3", replicas=2, lag=["40ms", "80ms"]) as whole:
        yield whole.get(S3Store)


def there(client: Any, key: str, version: str) -> bool:
    """Whether a server has this very version, or delete marker."""
    try:
        client.head_object(Bucket=BUCKET, Key=key, VersionId=version)
    except ClientError as error:
        return bool(error.response["ResponseMetadata"]["HTTPStatusCode"] == 405)
    return True


def wait_there(client: Any, key: str, version: str) -> float:
    begun = time.monotonic()
    while not there(client, key, version):
        assert time.monotonic() - begun < 60, f"{key} did not come"
        time.sleep(0.005)
    return time.monotonic() - begun


def test_versions_metadata_and_delete_markers_arrive_after_their_lag(lab: S3Store) -> None:
    with lab.client("a") as a, lab.client("b1") as near, lab.client("b2") as far:
        begun = time.monotonic()
        put = a.put_object(Bucket=BUCKET, Key="k", Body=b"v", Metadata={"mine": "1"})
        wait_there(near, "k", put["VersionId"])
        assert time.monotonic() - begun >= 0.04
        wait_there(far, "k", put["VersionId"])
        assert time.monotonic() - begun >= 0.08
        found = far.head_object(Bucket=BUCKET, Key="k")
        assert found["Metadata"] == {"mine": "1"}
        assert found["ReplicationStatus"] == "REPLICA"
        marker = a.delete_object(Bucket=BUCKET, Key="k")["VersionId"]
        wait_there(far, "k", marker)
        with pytest.raises(ClientError, match="NoSuchKey"):
            far.get_object(Bucket=BUCKET, Key="k")


@pytest.mark.parametrize("mode", ["cut", "silent"])
def test_a_partition_holds_and_heals(lab: S3Store, mode: Any) -> None:
    key = f"held-{mode}"
    with lab.client("a") as a, lab.client("b1") as near, lab.client("b2") as far:
        lab.partition("b1", mode=mode)
        version = a.put_object(Bucket=BUCKET, Key=key, Body=b"v")["VersionId"]
        wait_there(far, key, version)
        time.sleep(0.3)  # many times the lag: a partition that parts nothing would show
        assert not there(near, key, version)
        states = {status.name: status.link for status in lab.status()}
        assert states == {"a": None, "b1": mode, "b2": "up"}
        lab.heal()
        assert there(near, key, version)


def test_a_frozen_server_and_a_killed_one(lab: S3Store) -> None:
    with lab.client("b2", timeout=0.5, attempts=1) as far, lab.client("a") as a:
        lab.freeze("b2")
        with pytest.raises(BotoCoreError):
            far.list_buckets()
        lab.thaw("b2")
        lab.kill("b2")
        with pytest.raises(BotoCoreError):
            far.list_buckets()
        version = a.put_object(Bucket=BUCKET, Key="while-down", Body=b"v")["VersionId"]
        lab.restart("b2")
        assert there(far, "while-down", version)


def test_writes_move_and_come_back() -> None:
    with Lab("s3", lag="5ms") as whole:
        lab = whole.get(S3Store)
        with lab.client("a") as a, lab.client("b1") as b:
            before = a.put_object(Bucket=BUCKET, Key="before", Body=b"v")["VersionId"]
            lab.promote("b1", lose=0)
            assert there(b, "before", before)
            assert lab.primary == "b1"
            after = b.put_object(Bucket=BUCKET, Key="after", Body=b"v")["VersionId"]
            lab.repoint("a", "b1")
            assert there(a, "after", after)
            lab.promote("a", lose=2)
            with pytest.raises(ClientError, match="NoSuchKey"):
                a.get_object(Bucket=BUCKET, Key=LOST_KEY.format(0))
            assert b.get_object(Bucket=BUCKET, Key=LOST_KEY.format(1))["Body"].read() == b"lost"
        with pytest.raises(LabError, match="already"):
            lab.promote("a")
        with pytest.raises(LabError, match="disk"):
            lab.restart("a", "nothing")
