"""Every operation of DynamoDB and every public way of its client is known (SHIM-43, SHIM-44, SHIM-51)."""

from __future__ import annotations

import antipode
import pytest
from antipode import BarrierTimeout
from antipode.testing.inventory import check_inventory, check_makes_none, public_ways
from antipode_dynamodb.client import HANDLERS, NEITHER
from botocore.exceptions import ClientError
from dynamodb_regions import STORE, TABLE, Posts

UNSURE = {"SearchVectors", "StartBulkPutItems"}
"""No server of ours has them; they wait as a read does, and are recorded as incomplete."""
WAYS = {
    "they send operations": {"get_paginator", "get_waiter"},
    "neither": {"can_paginate", "close", "exceptions", "generate_presigned_url", "meta", "waiter_names"},
}


def test_every_operation_is_known(posts: Posts) -> None:
    """SHIM-51: a new release of botocore that brings one fails here."""
    operations = posts.plain["a"].meta.service_model.operation_names
    check_inventory(operations, {"handled": HANDLERS, "neither": NEITHER, "unsure": UNSURE})


def test_every_way_of_the_client_is_known(posts: Posts) -> None:
    """SHIM-51"""
    plain = posts.plain["a"]
    check_inventory((public_ways([type(plain)]) - set(plain.meta.method_to_api_mapping)) | {"meta"}, WAYS)
    check_makes_none(type(posts.wrapped["a"]))  # SHIM-50


def test_what_nobody_knows_waits(posts: Posts) -> None:
    """SHIM-43, SHIM-44"""
    search = {"TableName": TABLE, "IndexName": "index", "SearchVector": [{"N": "1"}], "TopK": 1}
    impatient = posts.wrap("b1", wait_on_read=True, timeout=0.15)
    posts.lab.partition("b1")
    with antipode.scope(posts.write("stale")), pytest.raises(BarrierTimeout, match="wait on read"):
        impatient.search_vectors(**search)
    with antipode.scope(), antipode.reading() as seen, pytest.raises(ClientError):
        posts.wrapped["a"].search_vectors(**search)
    assert seen.lineage.incomplete == {STORE}
