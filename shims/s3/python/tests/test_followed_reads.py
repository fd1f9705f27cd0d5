"""Dry-run's records of reads: an object that has not come, and one whose older version was read (REC)."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import antipode
import pytest
from antipode.testing.recorded import DryRunRecording
from botocore.exceptions import ClientError
from s3_regions import BUCKET, STORE, Images, new_key, until


def get(client: Any, key: str) -> Any:
    return client.get_object(Bucket=BUCKET, Key=key)


def test_an_object_that_has_not_come_is_stale_by_a_repeat(images: Images, tmp_path: Path) -> None:
    """REC-6, REC-12, REC-14."""
    recorded = DryRunRecording(tmp_path)
    key = new_key()
    images.lab.lag("b1", "500ms")
    with antipode.scope():
        images.a.put_object(Bucket=BUCKET, Key=key, Body=b"private-value")
        with pytest.raises(ClientError, match="NoSuchKey"):
            get(images.b, key)
        assert recorded.count("followed_reads") == 1
        with pytest.raises(ClientError, match="NoSuchKey"):
            get(images.b, new_key())
        images.b.list_objects_v2(Bucket=BUCKET, Prefix=f"{key}-of-others")
        assert recorded.count("followed_reads") == 1, "the lineage has no entry of it"
    [record] = recorded.findings(timeout=30)
    assert (record["kind"], record["confirmed"]) == ("stale", "repeat")
    assert (record["store"], record["store_kind"]) == (STORE, "s3")
    assert record["visible_after"] > 0
    assert record["site"].startswith("tests/test_followed_reads.py:")
    assert key not in str(recorded.lines())


def test_an_older_version_is_stale_by_its_own_version(images: Images, tmp_path: Path) -> None:
    """REC-14: the value carries it."""
    key = new_key()
    assert images.judge(images.put(key, b"v")).satisfied
    recorded = DryRunRecording(tmp_path)
    images.lab.partition("b1", mode="silent")
    with antipode.scope():
        images.a.put_object(Bucket=BUCKET, Key=key, Body=b"v")
        assert get(images.b, key)["Body"].read() == b"v"
        listed = images.b.list_objects_v2(Bucket=BUCKET, Prefix=key)
        assert listed["KeyCount"] == 1
        first = images.b.list_object_versions(Bucket=BUCKET, Prefix=key)["Versions"][0]["VersionId"]
        images.b.get_object(Bucket=BUCKET, Key=key, VersionId=first)
    until(lambda: recorded.count("followed_reads") == 3)
    recorded.looked()
    images.lab.heal()
    stale, *lists = recorded.findings(3, timeout=30)
    assert (stale["kind"], stale["confirmed"]) == ("stale", "version")
    assert int(stale["seen"]["counter"]) < int(stale["wanted"]["counter"])
    assert [record["kind"] for record in lists] == ["behind", "behind"]


def test_what_is_there_is_no_finding(images: Images, tmp_path: Path) -> None:
    recorded = DryRunRecording(tmp_path)
    key = new_key()
    with antipode.scope():
        images.a.put_object(Bucket=BUCKET, Key=key, Body=b"v")
        get(images.a, key)
    recorded.ended()
    assert recorded.count("followed_reads") == 1
    assert recorded.lines("behind", "stale") == []
