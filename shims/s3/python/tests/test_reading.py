"""Reads that wait, and reads that say what they depend on (SHIM-12 to SHIM-14, BAR-50, BAR-51)."""

from __future__ import annotations

import io
import threading
from collections.abc import Callable
from typing import Any

import antipode
import antipode_s3
import pytest
from antipode import Lineage, Opaque, Ordered, WriteId, barrier, reading
from antipode._store.store import registry
from antipode_s3 import metadata
from botocore.exceptions import ClientError
from s3_regions import BUCKET, STORE, Images, new_key, until

ACL = WriteId.position("blog-acl", "8371ab90c2d4e6f1", 1042)


def test_a_read_depends_on_the_value_and_on_what_its_writer_depended_on(images: Images) -> None:
    key = new_key()
    with antipode.scope(Lineage([ACL])) as opened:
        images.a.put_object(Bucket=BUCKET, Key=key, Body=b"v")
        written = opened.lineage
    for client in (images.a, antipode_s3.wrap(images.plain_b, STORE, bucket=BUCKET)):
        assert images.judge(written).satisfied
        with reading() as seen:
            client.get_object(Bucket=BUCKET, Key=key)
        assert seen.lineage == written


def test_resources_and_downloads_read_alike(images: Images) -> None:
    key = new_key()
    written = images.put(key)
    resource: Any = antipode_s3.wrap(images.lab.new_resource("a"), STORE, bucket=BUCKET)
    reads: tuple[Callable[[], Any], ...] = (
        lambda: resource.Object(BUCKET, key).get(),
        lambda: resource.Object(BUCKET, key).load(),
        lambda: images.a.download_fileobj(BUCKET, key, io.BytesIO()),
        lambda: images.a.head_object(Bucket=BUCKET, Key=key),
    )
    for read in reads:
        with reading() as seen:
            read()
        assert seen.lineage == written


def test_what_was_written_without_antipode_is_covered_by_its_version_id(images: Images) -> None:
    key = new_key()
    version = images.plain_a.put_object(Bucket=BUCKET, Key=key, Body=b"v", Metadata={"mine": "1"})["VersionId"]
    with reading() as seen:
        assert images.a.get_object(Bucket=BUCKET, Key=key)["Metadata"] == {"mine": "1"}
    assert seen.lineage == Lineage([WriteId(STORE, key, Opaque(version))])
    assert images.judge(seen.lineage).complete


def test_an_old_version_that_is_asked_for_by_name_is_itself(images: Images) -> None:
    key = new_key()
    first = images.put(key, b"1")
    version = images.plain_a.head_object(Bucket=BUCKET, Key=key)["VersionId"]
    images.put(key, b"2")
    with reading() as seen:
        images.a.get_object(Bucket=BUCKET, Key=key, VersionId=version)
    assert seen.lineage == first


@pytest.mark.parametrize("condition", [{"IfMatch": '"another"'}, {"Range": "bytes=100-"}])
def test_an_error_that_says_something_of_an_object_is_marked(images: Images, condition: dict[str, str]) -> None:
    """SHIM-13: that an object is another one, or shorter, depends on it, and no version comes with the error."""
    key = new_key()
    images.put(key)
    with reading() as seen, pytest.raises(ClientError, match=r"PreconditionFailed|InvalidRange"):
        images.a.get_object(Bucket=BUCKET, Key=key, **condition)
    assert not seen.lineage.is_complete()


def test_a_deletion_that_was_seen_is_depended_on(images: Images) -> None:
    key = new_key()
    images.put(key)
    with antipode.scope() as opened:
        images.a.delete_object(Bucket=BUCKET, Key=key)
        deleted = opened.lineage
    with reading() as seen:
        with pytest.raises(ClientError, match="NoSuchKey"):
            images.a.get_object(Bucket=BUCKET, Key=key)
    assert seen.lineage == deleted
    with reading() as seen:
        with pytest.raises(ClientError, match="NoSuchKey"):
            images.a.get_object(Bucket=BUCKET, Key=new_key())
    assert not seen.lineage


@pytest.mark.parametrize("text", ["", "xyz!", "-1", "z" * 13, "1 2~not-a-lineage", "1k3v 1~a"])
def test_what_is_broken_reads_as_incomplete(images: Images, text: str) -> None:
    key = new_key()
    images.plain_a.put_object(Bucket=BUCKET, Key=key, Body=b"v", Metadata={metadata.NAME: text})
    with reading() as seen:
        assert images.a.get_object(Bucket=BUCKET, Key=key)["Body"].read() == b"v"
    assert seen.lineage.incomplete


def test_lists_and_tags_do_not_say_what_they_depend_on(images: Images) -> None:
    key = new_key()
    images.put(key)
    reads: tuple[Callable[[], Any], ...] = (
        lambda: images.a.list_objects_v2(Bucket=BUCKET, Prefix=key),
        lambda: list(images.a.get_paginator("list_object_versions").paginate(Bucket=BUCKET, Prefix=key)),
        lambda: images.a.get_object_tagging(Bucket=BUCKET, Key=key),
        lambda: images.a.get_object_attributes(Bucket=BUCKET, Key=key, ObjectAttributes=["ETag"]),
    )
    for read in reads:
        with reading() as seen:
            read()
        assert seen.lineage.incomplete == {STORE}


def test_automatic_merging(images: Images) -> None:
    key = new_key()
    written = images.put(key)
    antipode.configure(auto_merge=True)
    with antipode.scope() as opened:
        images.a.get_object(Bucket=BUCKET, Key=key)
        assert opened.lineage == written


def test_lineages_are_neither_given_nor_taken_where_that_is_said(images: Images) -> None:
    key = new_key()
    shy: Any = antipode_s3.wrap(images.plain_a, STORE, bucket=BUCKET, lineage_out=False, lineage_in=False)
    with antipode.scope(Lineage([ACL])):
        shy.put_object(Bucket=BUCKET, Key=key, Body=b"v")
    assert " " not in images.metadata(key)[metadata.NAME]
    with antipode.scope(Lineage([ACL])):
        images.a.put_object(Bucket=BUCKET, Key=key, Body=b"v")
    with reading() as seen:
        shy.get_object(Bucket=BUCKET, Key=key)
    assert set(seen.lineage.stores) == {STORE}


# Waiting before a read


def test_wait_on_read(images: Images) -> None:
    key = new_key()
    patient: Any = antipode_s3.wrap(images.plain_b, STORE, bucket=BUCKET, wait_on_read=True, timeout=30)
    images.lab.partition("b1", mode="silent")

    def heal() -> None:
        until(lambda: registry().need(STORE).parked_threads == 1)
        images.lab.heal(wait=False)

    with antipode.scope():
        images.a.put_object(Bucket=BUCKET, Key=key, Body=b"v")
        assert images.body(key) is None, "the partition does not part"
        healing = threading.Thread(target=heal)
        healing.start()
        assert patient.get_object(Bucket=BUCKET, Key=key)["Body"].read() == b"v"
        healing.join()


def test_wait_on_read_ends_with_its_deadline(images: Images) -> None:
    key = new_key()
    patient: Any = antipode_s3.wrap(images.plain_b, STORE, bucket=BUCKET, wait_on_read=True, timeout=0.3)
    images.lab.partition("b1", mode="silent")
    with antipode.scope():
        images.a.put_object(Bucket=BUCKET, Key=key, Body=b"v")
        with pytest.raises(antipode.BarrierTimeout, match="wait on read"):
            patient.get_object(Bucket=BUCKET, Key=key)
        antipode.configure(on_timeout="proceed")
        with pytest.raises(ClientError, match="NoSuchKey"):
            patient.get_object(Bucket=BUCKET, Key=key)


def test_reading_after_a_lineage(images: Images) -> None:
    key = new_key()
    patient: Any = antipode_s3.wrap(images.plain_b, STORE, bucket=BUCKET, timeout=30)
    images.lab.lag("b1", "300ms")
    written = images.put(key)
    with reading(after=written) as seen:
        assert patient.get_object(Bucket=BUCKET, Key=key)["Body"].read() == b"v"
    assert seen.lineage == written


def test_a_dry_run_looks_and_does_not_wait(images: Images) -> None:
    key = new_key()
    antipode.configure(mode="dry-run")
    patient: Any = antipode_s3.wrap(images.plain_b, STORE, bucket=BUCKET, wait_on_read=True, timeout=30)
    images.lab.partition("b1", mode="silent")
    with antipode.scope():
        images.a.put_object(Bucket=BUCKET, Key=key, Body=b"v")
        with pytest.raises(ClientError, match="NoSuchKey"):
            patient.get_object(Bucket=BUCKET, Key=key)
        assert barrier(timeout=30).satisfied


def test_counters_that_are_read_are_passed_by_the_next_write(images: Images) -> None:
    """A reader that writes next writes what is newer, though its clock is behind."""
    key = new_key()
    ahead = images.shim.clock.next() + (30_000 * 256 << 14)
    value = {metadata.NAME: metadata.spell(Ordered("", ahead))}
    images.plain_a.put_object(Bucket=BUCKET, Key=key, Body=b"1", Metadata=value)
    images.a.get_object(Bucket=BUCKET, Key=key)
    written = images.put(key, b"2")
    [version] = [w.version for w in written.of_store(STORE)]
    assert isinstance(version, Ordered)
    assert version.counter > ahead
    until(lambda: images.body(key) == b"2")
