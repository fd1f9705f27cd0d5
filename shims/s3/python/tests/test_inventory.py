"""Every operation of S3 and every public way of its client is known (SHIM-43, SHIM-44, SHIM-51)."""

from __future__ import annotations

from typing import Any

import antipode
import antipode_s3
import antipode_s3.client
import pytest
from antipode.testing.inventory import check_inventory, check_makes_none, public_ways
from antipode_s3.operations import NEITHER, READS, WRITES
from s3_regions import BUCKET, STORE, Images, new_key

WAYS = {
    "managed transfers: test_writes.py": {"copy", "download_file", "download_fileobj", "upload_file", "upload_fileobj"},
    "they send operations: `READS`": {"get_paginator", "get_waiter"},
    "URLs for others: said to be outside": {"generate_presigned_post", "generate_presigned_url"},
    "neither": {"can_paginate", "close", "exceptions", "meta", "waiter_names"},
}


def test_every_operation_is_known(images: Images) -> None:
    """SHIM-51: a new release of botocore that brings one fails here."""
    operations = images.plain_a.meta.service_model.operation_names
    check_inventory(operations, {"reads": READS, "writes": WRITES, "neither": NEITHER})


def test_every_way_of_the_client_is_known(images: Images) -> None:
    """SHIM-51"""
    ways = public_ways([type(images.plain_a)]) - set(images.plain_a.meta.method_to_api_mapping)
    check_inventory(ways | {"meta"}, WAYS)
    check_makes_none(type(images.a))  # SHIM-50


def test_what_nobody_knows_waits_and_is_recorded(images: Images, monkeypatch: pytest.MonkeyPatch) -> None:
    """SHIM-43: an operation of a newer client."""
    monkeypatch.setattr(antipode_s3.client, "READS", READS - {"GetObjectAcl"})
    impatient: Any = antipode_s3.wrap(images.plain_b, STORE, bucket=BUCKET, wait_on_read=True, timeout=0.2)
    key = new_key()
    with antipode.scope() as opened, antipode.reading() as seen:
        images.a.put_object(Bucket=BUCKET, Key=key, Body=b"v")
        assert images.judge(opened.lineage).complete
        images.a.get_object_acl(Bucket=BUCKET, Key=key)
        assert opened.lineage.incomplete == {STORE}
    assert seen.lineage.incomplete == {STORE}
    images.lab.partition("b1", mode="silent")
    with antipode.scope():
        images.a.put_object(Bucket=BUCKET, Key=key, Body=b"v")
        with pytest.raises(antipode.BarrierTimeout):
            impatient.get_object_acl(Bucket=BUCKET, Key=key)
