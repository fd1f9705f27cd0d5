"""Transfer managers that an application makes of a wrapped client, and copies: they record and wait (SHIM-50)."""

from __future__ import annotations

import io
from collections.abc import Callable
from pathlib import Path
from typing import Any

import antipode
import antipode_s3
import pytest
from antipode_s3.transfers import look_at_constructors
from boto3.s3.transfer import S3Transfer, TransferConfig, TransferManager, create_transfer_manager
from s3_regions import BUCKET, STORE, Images, new_key

PARTS = TransferConfig(multipart_threshold=5 * 1024**2, multipart_chunksize=5 * 1024**2)
LARGE = b"x" * (5 * 1024**2 + 1)


def _managed(body: bytes) -> Callable[[Images, str, Path], None]:
    def upload(images: Images, key: str, _: Path) -> None:
        with create_transfer_manager(images.a, PARTS) as manager:
            manager.upload(io.BytesIO(body), BUCKET, key).result()

    return upload


def _copied(images: Images, key: str, _: Path) -> None:
    source = new_key()
    images.plain_a.put_object(Bucket=BUCKET, Key=source, Body=b"v")
    with create_transfer_manager(images.a, PARTS) as manager:
        manager.copy({"Bucket": BUCKET, "Key": source}, BUCKET, key).result()


def _deleted(images: Images, key: str, _: Path) -> None:
    images.plain_a.put_object(Bucket=BUCKET, Key=key, Body=b"v")
    with create_transfer_manager(images.a, PARTS) as manager:
        manager.delete(BUCKET, key).result()


def _by_class(body: bytes) -> Callable[[Images, str, Path], None]:
    def upload(images: Images, key: str, folder: Path) -> None:
        file = folder / "file"
        file.write_bytes(body)
        S3Transfer(images.a, PARTS).upload_file(str(file), BUCKET, key)

    return upload


@pytest.mark.parametrize(
    "write",
    [_managed(b"v"), _managed(LARGE), _copied, _deleted, _by_class(b"v"), _by_class(LARGE)],
    ids=["upload", "upload in parts", "copy", "delete", "file", "file in parts"],
)
def test_what_a_manager_writes_is_waited_for(
    images: Images, tmp_path: Path, write: Callable[[Images, str, Path], None]
) -> None:
    """SHIM-50"""
    key = new_key()
    images.lab.partition("b1", mode="silent")
    with antipode.scope() as opened:
        write(images, key, tmp_path)
        lineage = opened.lineage
    assert [each.key for each in lineage.of_store(STORE)] == [key.encode()]
    assert lineage.is_complete()
    assert not images.judge(lineage, 0.3).satisfied
    images.lab.heal(wait=False)
    assert images.judge(lineage).satisfied


def test_each_transfer_of_one_manager_is_of_its_own_scope(images: Images) -> None:
    """SHIM-50: and a plain client's manager stays plain."""
    keys = [new_key(), new_key()]
    with create_transfer_manager(images.a, PARTS) as manager:
        for key in keys:
            with antipode.scope() as opened:
                manager.upload(io.BytesIO(b"v"), BUCKET, key).result()
                assert [each.key for each in opened.lineage.of_store(STORE)] == [key.encode()]
    with create_transfer_manager(images.plain_a, PARTS) as manager, antipode.scope() as opened:
        manager.upload(io.BytesIO(b"v"), BUCKET, keys[0]).result()
        assert not opened.lineage


def test_a_constructor_that_two_threads_wrapped_looks_once(
    images: Images, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """SHIM-50"""
    monkeypatch.setattr(TransferManager, "__init__", TransferManager.__init__)  # put back afterwards
    look_at_constructors.__wrapped__()
    key = new_key()
    with antipode.scope() as opened:
        _by_class(b"v")(images, key, tmp_path)
        assert [each.key for each in opened.lineage.of_store(STORE)] == [key.encode()]


def test_what_a_manager_reads_and_what_is_copied_waits(images: Images, tmp_path: Path) -> None:
    """SHIM-44, SHIM-50: a copy reads its source at the server."""
    key, copied = new_key(), new_key()
    images.plain_a.put_object(Bucket=BUCKET, Key=key, Body=b"old")
    impatient: Any = antipode_s3.wrap(images.plain_b, STORE, bucket=BUCKET, wait_on_read=True, timeout=0.2)
    source = {"Bucket": BUCKET, "Key": key}
    upload = impatient.create_multipart_upload(Bucket=BUCKET, Key=copied)
    place = {"Bucket": BUCKET, "Key": copied, "UploadId": upload["UploadId"]}

    def download() -> None:
        with create_transfer_manager(impatient, PARTS) as manager:
            manager.download(BUCKET, key, io.BytesIO()).result()

    images.lab.partition("b1", mode="silent")
    with antipode.scope() as opened:
        images.a.put_object(Bucket=BUCKET, Key=key, Body=b"new")
        for read in (
            download,
            lambda: S3Transfer(impatient).download_file(BUCKET, key, str(tmp_path / "file")),
            lambda: impatient.copy_object(Bucket=BUCKET, Key=copied, CopySource=source),
            lambda: impatient.upload_part_copy(**place, PartNumber=1, CopySource=source),
        ):
            with pytest.raises(antipode.BarrierTimeout):
                read()
        with pytest.raises(antipode.BarrierTimeout), antipode.reading(after=opened.lineage):
            images.b.copy_object(Bucket=BUCKET, Key=copied, CopySource=source)
    images.plain_b.abort_multipart_upload(**place)


def _copied_by_client(images: Images, key: str, source: dict[str, str]) -> None:
    images.a.copy(source, BUCKET, key, Config=PARTS)


def _copied_by_manager(images: Images, key: str, source: dict[str, str]) -> None:
    with create_transfer_manager(images.a, PARTS) as manager:
        manager.copy(source, BUCKET, key).result()


@pytest.mark.parametrize("copy", [_copied_by_client, _copied_by_manager])
def test_a_copy_in_parts_reads_as_incomplete(
    images: Images, copy: Callable[[Images, str, dict[str, str]], None]
) -> None:
    """SHIM-12: what its source depends on is not beside it; that of a copy in one piece is."""
    for body, missing in ((LARGE, {STORE}), (b"v", set())):
        source, key = {"Bucket": BUCKET, "Key": new_key("source")}, new_key()
        with antipode.scope():
            images.a.put_object(Body=body, **source)
        with antipode.scope() as opened:
            copy(images, key, source)
            assert opened.lineage.is_complete()
        with antipode.reading() as seen:
            images.a.get_object(Bucket=BUCKET, Key=key)
        assert seen.lineage.incomplete == missing


def test_a_copy_to_where_nothing_is_recorded_waits_for_its_source(images: Images) -> None:
    """SHIM-44: a bucket of no store, and one of a store that is off."""
    key = new_key()
    images.plain_a.put_object(Bucket=BUCKET, Key=key, Body=b"old")
    for number in range(2):
        images.lab.make_bucket(f"copies-{number}", servers=["b1"])
    impatient: Any = antipode_s3.wrap(images.plain_b, STORE, bucket=BUCKET, wait_on_read=True, timeout=0.2)
    impatient = antipode_s3.wrap(impatient, "copies", bucket="copies-1", mode="off")
    images.lab.partition("b1", mode="silent")
    with antipode.scope():
        images.a.put_object(Bucket=BUCKET, Key=key, Body=b"new")
        for number in range(2):
            with pytest.raises(antipode.BarrierTimeout):
                impatient.copy_object(Bucket=f"copies-{number}", Key=key, CopySource={"Bucket": BUCKET, "Key": key})
