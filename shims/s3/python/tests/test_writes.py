"""Every operation that writes: recorded, waited for, and with the client's own results (SHIM-6 to SHIM-10)."""

from __future__ import annotations

import io
import logging
import threading
from collections.abc import Callable
from pathlib import Path
from typing import Any

import antipode
import antipode_s3
import pytest
from antipode import Lineage, Opaque, Ordered, WriteId, reading
from antipode_s3 import metadata
from boto3.s3.transfer import TransferConfig
from botocore.exceptions import ClientError, ParamValidationError
from s3_regions import BUCKET, STORE, Images, new_key

PARTS = TransferConfig(multipart_threshold=5 * 1024**2, multipart_chunksize=5 * 1024**2)
LARGE = b"x" * (5 * 1024**2 + 1)


def counter_of(lineage: Lineage, key: str) -> int:
    [version] = [w.version for w in lineage.of_store(STORE) if w.key == key.encode() and isinstance(w.version, Ordered)]
    assert isinstance(version, Ordered)
    return version.counter


def test_a_put_rests_beside_the_object_and_is_hidden_from_its_readers(images: Images) -> None:
    key = new_key()
    with antipode.scope(Lineage([WriteId.position("blog-acl", "8371ab90c2d4e6f1", 1042)])) as opened:
        answer = images.a.put_object(Bucket=BUCKET, Key=key, Body=b"v", Metadata={"mine": "1"}, ContentType="image/png")
        lineage = opened.lineage
    assert answer["ResponseMetadata"]["HTTPStatusCode"] == 200
    rest = metadata.read(images.metadata(key))
    assert rest.version is not None
    assert rest.version.counter == counter_of(lineage, key)
    assert rest.lineage == "1~blog-acl..8371ab90c2d4e6f1.1042"
    assert len(metadata.NAME) + len(images.metadata(key)[metadata.NAME]) <= 64, "growth for a lineage of one store"
    assert images.judge(lineage).complete
    found = images.b.get_object(Bucket=BUCKET, Key=key)
    assert found["Metadata"] == {"mine": "1"}
    assert found["ContentType"] == "image/png"
    assert found["Body"].read() == b"v"
    assert images.b.head_object(Bucket=BUCKET, Key=key)["Metadata"] == {"mine": "1"}


def version_in(images: Images, key: str) -> Ordered:
    version = metadata.read(images.metadata(key)).version
    assert version is not None
    return version


Write = Callable[[Images, str], Any]


def _resource(images: Images) -> Any:
    return antipode_s3.wrap(images.lab.new_resource("a"), STORE, bucket=BUCKET)


def _bucket(images: Images) -> Any:
    return antipode_s3.wrap(images.lab.new_resource("a").Bucket(BUCKET), STORE)


def _source(images: Images) -> dict[str, str]:
    key = new_key("source")
    images.plain_a.put_object(Bucket=BUCKET, Key=key, Body=b"v", Metadata={"of": "source"}, CacheControl="no-store")
    return {"Bucket": BUCKET, "Key": key}


def _by_parts(images: Images, key: str) -> None:
    upload = images.a.create_multipart_upload(Bucket=BUCKET, Key=key)
    place = {"Bucket": BUCKET, "Key": key, "UploadId": upload["UploadId"]}
    part = images.a.upload_part(**place, PartNumber=1, Body=b"v")
    images.a.complete_multipart_upload(**place, MultipartUpload={"Parts": [{"PartNumber": 1, "ETag": part["ETag"]}]})


def _upload_file(images: Images, key: str) -> None:
    images.a.upload_file(__file__, BUCKET, key)


def _upload_large(images: Images, key: str) -> None:
    images.a.upload_fileobj(io.BytesIO(LARGE), BUCKET, key, Config=PARTS)


def _copy_large(images: Images, key: str) -> None:
    source = new_key("large")
    images.plain_a.upload_fileobj(io.BytesIO(LARGE), BUCKET, source)
    images.a.copy({"Bucket": BUCKET, "Key": source}, BUCKET, key, Config=PARTS)


WRITES: dict[str, Write] = {
    "put": lambda images, key: images.a.put_object(Bucket=BUCKET, Key=key, Body=b"v"),
    "copy": lambda images, key: images.a.copy_object(Bucket=BUCKET, Key=key, CopySource=_source(images)),
    "copy, named by text": lambda images, key: images.a.copy_object(
        Bucket=BUCKET, Key=key, CopySource="{Bucket}/{Key}".format(**_source(images))
    ),
    "managed copy": lambda images, key: images.a.copy(_source(images), BUCKET, key),
    "managed copy in parts": _copy_large,
    "parts": _by_parts,
    "upload_file": _upload_file,
    "upload_fileobj": lambda images, key: images.a.upload_fileobj(io.BytesIO(b"v"), BUCKET, key),
    "upload_fileobj in parts": _upload_large,
    "Object.put": lambda images, key: _resource(images).Object(BUCKET, key).put(Body=b"v"),
    "Object.copy_from": lambda images, key: _resource(images).Object(BUCKET, key).copy_from(CopySource=_source(images)),
    "Object.copy": lambda images, key: _resource(images).Bucket(BUCKET).Object(key).copy(_source(images)),
    "Object.upload_fileobj": lambda images, key: _resource(images).Object(BUCKET, key).upload_fileobj(io.BytesIO(b"v")),
    "Bucket.put_object": lambda images, key: _bucket(images).put_object(Key=key, Body=b"v"),
    "Bucket.upload_file": lambda images, key: _bucket(images).upload_file(__file__, key),
}


@pytest.mark.parametrize("write", WRITES.values(), ids=WRITES)
def test_what_is_written_is_there_after_the_barrier(images: Images, write: Write) -> None:
    key = new_key()
    with antipode.scope() as opened:
        write(images, key)
        assert not opened.pending
        lineage = opened.lineage
    assert lineage.is_complete()
    assert version_in(images, key).counter == counter_of(lineage, key)
    assert images.judge(lineage).satisfied
    assert images.body(key) == images.body(key, "a") is not None


DELETES: dict[str, Write] = {
    "delete": lambda images, key: images.a.delete_object(Bucket=BUCKET, Key=key),
    "batch": lambda images, key: images.a.delete_objects(Bucket=BUCKET, Delete={"Objects": [{"Key": key}]}),
    "quiet batch": lambda images, key: images.a.delete_objects(
        Bucket=BUCKET, Delete={"Objects": [{"Key": key}], "Quiet": True}
    ),
    "Object.delete": lambda images, key: _resource(images).Object(BUCKET, key).delete(),
    "objects.delete": lambda images, key: _bucket(images).objects.filter(Prefix=key).delete(),
}


@pytest.mark.parametrize("name", DELETES)
def test_what_is_deleted_is_gone_after_the_barrier(images: Images, name: str) -> None:
    key = new_key()
    assert images.judge(images.put(key)).satisfied
    with antipode.scope() as opened:
        answer = DELETES[name](images, key)
        assert not opened.pending
        lineage = opened.lineage
    [deleted] = lineage.of_store(STORE)
    assert isinstance(deleted.version, Opaque)
    assert lineage.is_complete()
    if name == "quiet batch":
        assert "Deleted" not in answer
    assert images.judge(lineage).satisfied
    assert images.body(key) is None


def test_a_batch_says_of_each_object_what_became_of_it(images: Images) -> None:
    keys = [new_key() for _ in range(3)]
    for key in keys:
        images.put(key)
    with antipode.scope() as opened:
        images.a.delete_objects(Bucket=BUCKET, Delete={"Objects": [{"Key": key} for key in keys]})
        lineage = opened.lineage
    assert {w.key.decode() for w in lineage.of_store(STORE)} == set(keys)
    assert images.judge(lineage).satisfied
    assert [images.body(key) for key in keys] == [None] * 3


def test_removing_a_version_for_good_cannot_be_waited_for(images: Images) -> None:
    key = new_key()
    images.put(key)
    version = images.plain_a.head_object(Bucket=BUCKET, Key=key)["VersionId"]
    removals: tuple[Callable[[], Any], ...] = (
        lambda: images.a.delete_object(Bucket=BUCKET, Key=key, VersionId=version),
        lambda: images.a.delete_objects(Bucket=BUCKET, Delete={"Objects": [{"Key": key, "VersionId": version}]}),
    )
    for remove in removals:
        with antipode.scope() as opened:
            remove()
            assert not opened.pending
            assert opened.lineage.incomplete == {STORE}


def test_tags_have_no_version(images: Images) -> None:
    key = new_key()
    images.put(key)
    with antipode.scope() as opened:
        images.a.put_object_tagging(Bucket=BUCKET, Key=key, Tagging={"TagSet": [{"Key": "a", "Value": "b"}]})
        assert opened.lineage.incomplete == {STORE}
        assert not opened.pending


def test_a_conditional_write_that_is_refused_leaves_nothing(images: Images) -> None:
    key = new_key()
    etag = images.a.put_object(Bucket=BUCKET, Key=key, Body=b"1", IfNoneMatch="*")["ETag"]
    for condition in ({"IfNoneMatch": "*"}, {"IfMatch": '"other"'}):
        with antipode.scope() as opened:
            with pytest.raises(ClientError) as refused:
                images.a.put_object(Bucket=BUCKET, Key=key, Body=b"2", **condition)
            assert refused.value.response["Error"]["Code"] == "PreconditionFailed"
            assert not opened.pending
            assert not opened.lineage
    with antipode.scope() as opened:
        images.a.put_object(Bucket=BUCKET, Key=key, Body=b"3", IfMatch=etag)
        assert images.judge(opened.lineage).satisfied
    assert images.body(key) == b"3"


def test_a_call_that_never_left_leaves_nothing(images: Images) -> None:
    with antipode.scope() as opened:
        with pytest.raises(ParamValidationError):
            images.a.put_object(Bucket=BUCKET, Key=new_key(), NoSuchWord=1)
        assert not opened.pending
        assert not opened.lineage


def test_a_copy_has_a_version_of_its_own_and_depends_on_its_source(images: Images) -> None:
    acl = WriteId.position("blog-acl", "e", 7)
    source, key, replaced = new_key("source"), new_key(), new_key("replaced")
    with antipode.scope(Lineage([acl])) as opened:
        images.a.put_object(
            Bucket=BUCKET, Key=source, Body=b"v", Metadata={"mine": "1"}, CacheControl="no-store", ContentType="a/b"
        )
        written = opened.lineage
    with antipode.scope() as opened:
        answer = images.a.copy_object(Bucket=BUCKET, Key=key, CopySource={"Bucket": BUCKET, "Key": source})
        images.a.copy_object(
            Bucket=BUCKET,
            Key=replaced,
            CopySource={"Bucket": BUCKET, "Key": source},
            MetadataDirective="REPLACE",
            Metadata={"other": "2"},
        )
        lineage = opened.lineage
    assert answer["CopyObjectResult"]["ETag"]
    assert not lineage.of_store("blog-acl"), "the scope depends on what it reads only when asked to"
    found = images.a.head_object(Bucket=BUCKET, Key=key)
    assert found["Metadata"] == {"mine": "1"}
    assert (found["CacheControl"], found["ContentType"]) == ("no-store", "a/b")
    assert images.a.head_object(Bucket=BUCKET, Key=replaced)["Metadata"] == {"other": "2"}
    for each in (key, replaced):
        rest = metadata.read(images.metadata(each))
        assert rest.version is not None
        assert rest.version.counter == counter_of(lineage, each) > counter_of(written, source)
        assert written <= Lineage.deserialize(rest.lineage)


def test_a_copy_of_nothing_fails_as_ever(images: Images) -> None:
    with antipode.scope() as opened:
        with pytest.raises(ClientError) as refused:
            images.a.copy_object(Bucket=BUCKET, Key=new_key(), CopySource={"Bucket": BUCKET, "Key": new_key()})
        assert refused.value.response["Error"]["Code"] == "NoSuchKey"
        assert refused.value.operation_name == "CopyObject"
        assert not opened.pending
        assert not opened.lineage


# Uploads in parts


def test_an_upload_is_pending_until_it_is_complete_or_aborted(images: Images) -> None:
    key = new_key()
    with antipode.scope() as opened:
        upload = images.a.create_multipart_upload(Bucket=BUCKET, Key=key)
        pending: int = len(opened.pending)
        assert pending == 1
        assert Lineage.deserialize(antipode.serialize()).incomplete == {STORE}
        images.a.abort_multipart_upload(Bucket=BUCKET, Key=key, UploadId=upload["UploadId"])
        assert not opened.pending
        assert not opened.lineage


def test_an_upload_by_hand_reads_as_incomplete_one_of_ours_does_not(images: Images) -> None:
    """What was read between creation and completion cannot rest beside it."""
    by_hand, managed = new_key(), new_key()
    for key, upload in ((by_hand, _by_parts), (managed, _upload_large)):
        with antipode.scope() as opened:
            upload(images, key)
            assert opened.lineage.is_complete()
            assert images.judge(opened.lineage).satisfied
        with reading() as seen:
            images.b.get_object(Bucket=BUCKET, Key=key)
        assert seen.lineage.incomplete == ({STORE} if key == by_hand else set())


def test_an_upload_that_another_process_created_is_waited_for_by_its_version_id(images: Images) -> None:
    key = new_key()
    upload = images.plain_a.create_multipart_upload(Bucket=BUCKET, Key=key)
    place = {"Bucket": BUCKET, "Key": key, "UploadId": upload["UploadId"]}
    part = images.plain_a.upload_part(**place, PartNumber=1, Body=b"v")
    parts = {"Parts": [{"PartNumber": 1, "ETag": part["ETag"]}]}
    images.lab.partition("b1", mode="silent")
    with antipode.scope() as opened:
        images.a.complete_multipart_upload(**place, MultipartUpload=parts)
        lineage = opened.lineage
    assert not images.judge(lineage, 0.3).satisfied
    images.lab.heal(wait=False)
    assert images.judge(lineage).satisfied
    assert images.body(key) == b"v"


def test_an_upload_that_was_overtaken_in_its_own_scope_is_not_absorbed(images: Images) -> None:
    """Its counter is that of its creation, but the object that was put meanwhile came before it."""
    key = new_key()
    with antipode.scope() as opened:
        upload = images.a.create_multipart_upload(Bucket=BUCKET, Key=key)
        place = {"Bucket": BUCKET, "Key": key, "UploadId": upload["UploadId"]}
        part = images.a.upload_part(**place, PartNumber=1, Body=b"of parts")
        images.a.put_object(Bucket=BUCKET, Key=key, Body=b"meanwhile")
        assert images.judge(opened.lineage).satisfied
        images.lab.partition("b1", mode="silent")
        images.a.complete_multipart_upload(
            **place, MultipartUpload={"Parts": [{"PartNumber": 1, "ETag": part["ETag"]}]}
        )
        lineage = opened.lineage
    assert images.body(key) == b"meanwhile"
    assert not images.judge(lineage, 0.3).satisfied
    images.lab.heal(wait=False)
    assert images.judge(lineage).satisfied
    assert images.body(key) == b"of parts"


# Room


def test_metadata_that_is_full_leaves_no_room_for_a_version(images: Images) -> None:
    key = new_key()
    with antipode.scope() as opened:
        images.a.put_object(Bucket=BUCKET, Key=key, Body=b"v", Metadata={"k": "x" * 2030})
        assert opened.lineage.incomplete == {STORE}
        assert not opened.pending
    assert images.body(key, "a") == b"v"


def test_a_lineage_that_does_not_fit_leaves_its_object_incomplete(images: Images) -> None:
    key = new_key()
    foreign = Lineage(WriteId("acl", f"object-{number}", Ordered("", number)) for number in range(40))
    with antipode.scope(foreign) as opened:
        images.a.put_object(Bucket=BUCKET, Key=key, Body=b"v", Metadata={"k": "x" * 1500})
        assert images.judge(opened.lineage).satisfied
    held = images.metadata(key)
    assert sum(11 + len(name) + len(value) for name, value in held.items()) <= metadata.MOST_BYTES
    with reading() as seen:
        images.b.get_object(Bucket=BUCKET, Key=key)
    assert seen.lineage.incomplete


# Counters


def test_a_write_is_greater_than_what_it_depends_on(images: Images) -> None:
    """SHIM-26: though the writer's clock is behind."""
    key = new_key()
    ahead = images.shim.clock.next() + (30_000 * 256 << 14)  # half a minute ahead
    earlier = Lineage([WriteId(STORE, key, Ordered("", ahead))])
    with antipode.scope(earlier) as opened:
        images.a.put_object(Bucket=BUCKET, Key=key, Body=b"v")
        assert earlier <= opened.lineage, "which was another client's: nothing says that this one came behind it"
        written = Lineage(set(opened.lineage.of_store(STORE)) - set(earlier.of_store(STORE)))
        assert counter_of(written, key) > ahead
        assert images.judge(written).satisfied


def test_one_counter_far_ahead_is_passed_for_its_object_alone(images: Images) -> None:
    """SHIM-27, SHIM-28."""
    key, other = new_key(), new_key()
    forged = images.shim.clock.next() + (3_600_000 * 256 << 14)
    earlier = Lineage([WriteId(STORE, key, Ordered("", forged))])
    with antipode.scope(earlier) as opened:
        images.a.put_object(Bucket=BUCKET, Key=key, Body=b"v")
        images.a.put_object(Bucket=BUCKET, Key=other, Body=b"v")
        written = Lineage(set(opened.lineage.of_store(STORE)) - set(earlier.of_store(STORE)))
        assert counter_of(written, key) > forged
        assert counter_of(written, other) < forged
        assert images.judge(written).satisfied


def test_counters_do_not_repeat_though_an_object_is_deleted_and_made_anew(images: Images) -> None:
    key = new_key()
    counters = []
    for _ in range(3):
        counters.append(counter_of(images.put(key), key))
        images.a.delete_object(Bucket=BUCKET, Key=key)
    assert counters == sorted(set(counters))


# Which bucket, which mode


def test_a_bucket_of_no_store_is_written_to_unrecorded_and_said(
    images: Images, caplog: pytest.LogCaptureFixture
) -> None:
    images.lab.make_bucket(bucket := f"other-{threading.get_native_id()}", servers=["a"])
    with antipode.scope() as opened, caplog.at_level(logging.INFO, "antipode"):
        images.a.put_object(Bucket=bucket, Key="k", Body=b"v")
        assert not opened.lineage
    assert bucket in caplog.text
    both: Any = antipode_s3.wrap(images.a, "thumbnails", bucket=bucket)
    with antipode.scope() as opened:
        both.put_object(Bucket=bucket, Key="k", Body=b"v")
        both.put_object(Bucket=BUCKET, Key=new_key(), Body=b"v")
        assert set(opened.lineage.stores) == {"thumbnails", STORE}


def test_the_plain_client_stays_plain(images: Images) -> None:
    key = new_key()
    with antipode.scope() as opened:
        images.plain_a.put_object(Bucket=BUCKET, Key=key, Body=b"v")
        assert not opened.lineage
    assert metadata.NAME not in images.metadata(key)
    assert isinstance(images.a, type(images.plain_a))
    assert images.a.meta.endpoint_url == images.plain_a.meta.endpoint_url


def test_switched_off_nothing_is_recorded_and_nothing_rests(images: Images) -> None:
    key = new_key()
    antipode.configure(mode="off")
    with antipode.scope() as opened:
        images.a.put_object(Bucket=BUCKET, Key=key, Body=b"v")
        images.a.delete_object(Bucket=BUCKET, Key=key)
        assert not opened.lineage
    images.a.put_object(Bucket=BUCKET, Key=key, Body=b"v")
    assert metadata.NAME not in images.metadata(key)


def test_without_rest_only_the_version_is_beside_the_object(images: Images) -> None:
    key = new_key()
    client: Any = antipode_s3.wrap(images.plain_a, STORE, bucket=BUCKET, rest="none")
    with antipode.scope(Lineage([WriteId.position("acl", "e", 1)])) as opened:
        client.put_object(Bucket=BUCKET, Key=key, Body=b"v")
        assert images.judge(opened.lineage).satisfied
    assert " " not in images.metadata(key)[metadata.NAME]


def test_a_presigned_url_is_said_to_be_outside(images: Images, caplog: pytest.LogCaptureFixture) -> None:
    with caplog.at_level(logging.INFO, "antipode"):
        url = images.a.generate_presigned_url("put_object", Params={"Bucket": BUCKET, "Key": "k"})
    assert url.startswith("http://")
    assert "presigned" in caplog.text


def test_a_file_is_downloaded_as_ever(images: Images, tmp_path: Path) -> None:
    key = new_key()
    images.a.upload_fileobj(io.BytesIO(LARGE), BUCKET, key, Config=PARTS)
    with reading() as seen:
        images.a.download_file(BUCKET, key, str(tmp_path / "there"), Config=PARTS)
    assert (tmp_path / "there").read_bytes() == LARGE
    assert [w.key for w in seen.lineage.of_store(STORE)] == [key.encode()]
