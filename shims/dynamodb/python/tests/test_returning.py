"""Writes that give back what was there are reads, too (SHIM-13, SHIM-43, SHIM-44)."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import antipode
import pytest
from antipode import Lineage
from antipode._model.result import BarrierTimeout
from antipode.testing.inventory import check_inventory
from antipode_dynamodb.hiding import GIVING
from botocore.exceptions import ClientError
from dynamodb_regions import STORE, TABLE, Posts, item, key

SET = {
    "UpdateExpression": "SET n = :n",
    "ExpressionAttributeValues": {":n": {"N": "1"}},
}
NEVER = {"ConditionExpression": "attribute_exists(never)", "ReturnValuesOnConditionCheckFailure": "ALL_OLD"}
Ask = Callable[[Any, str], Any]


def in_a_transaction(client: Any, name: str) -> None:
    check = {"TableName": TABLE, "Key": key(name), **NEVER}
    client.transact_write_items(TransactItems=[{"ConditionCheck": check}])


WHOLE: dict[str, Ask] = {
    "put_item": lambda client, name: client.put_item(TableName=TABLE, Item=item(name, "n"), ReturnValues="ALL_OLD"),
    "delete_item": lambda client, name: client.delete_item(TableName=TABLE, Key=key(name), ReturnValues="ALL_OLD"),
    "update_item": lambda client, name: client.update_item(
        TableName=TABLE, Key=key(name), ReturnValues="ALL_OLD", **SET
    ),
    "a condition's error": lambda client, name: client.put_item(TableName=TABLE, Item=item(name, "n"), **NEVER),
    "a transaction's error": in_a_transaction,
}
PARTS: dict[str, Ask] = {
    word: lambda client, name, word=word: client.update_item(  # type: ignore[misc]
        TableName=TABLE, Key=key(name), ReturnValues=word, **SET
    )
    for word in ("UPDATED_OLD", "UPDATED_NEW")
}
LEGACY: dict[str, Ask] = {
    "legacy": lambda client, name: client.update_item(
        TableName=TABLE,
        Key=key(name),
        AttributeUpdates={"n": {"Value": {"N": "1"}, "Action": "PUT"}},
        ReturnValues="ALL_NEW",
    )
}


@pytest.mark.parametrize("ask", [*WHOLE.values(), *PARTS.values(), *LEGACY.values()], ids=[*WHOLE, *PARTS, *LEGACY])
def test_a_write_that_gives_something_back_waits(posts: Posts, ask: Ask) -> None:
    """SHIM-44: what it gives is what was there, in its own region."""
    impatient = posts.wrap("b1", wait_on_read=True, timeout=0.15)
    posts.lab.partition("b1")
    with antipode.scope(posts.write("stale")) as scope:
        with pytest.raises(BarrierTimeout, match="wait on read"):
            ask(impatient, "stale")
        assert not scope.pending, "it was not sent"


def test_a_write_that_gives_nothing_back_does_not_wait(posts: Posts) -> None:
    """SHIM-44"""
    impatient = posts.wrap("b1", wait_on_read=True, timeout=0.15)
    posts.lab.partition("b1")
    with antipode.scope(posts.write("unread")):
        impatient.put_item(TableName=TABLE, Item=item("unread"), ReturnValues="NONE")


@pytest.mark.parametrize("ask", WHOLE.values(), ids=WHOLE)
def test_what_is_given_back_says_what_it_depends_on(posts: Posts, ask: Ask) -> None:
    """SHIM-13: the old value's version, and what rests beside it."""
    other = Lineage([antipode.WriteId.position("others", "e", 7)])
    with antipode.scope(other):
        posts.wrapped["a"].put_item(TableName=TABLE, Item=item("given"))
    with antipode.scope(), antipode.reading() as read:
        posts.wrapped["a"].get_item(TableName=TABLE, Key=key("given"))
    with antipode.scope(), antipode.reading() as seen:
        try:
            found = ask(posts.wrapped["a"], "given").get("Attributes")
        except ClientError as error:
            found = error.response.get("Item") or error.response["CancellationReasons"][0]["Item"]
        assert found == item("given")
    assert seen.lineage == read.lineage
    assert other <= seen.lineage
    assert seen.lineage.is_complete()


@pytest.mark.parametrize("ask", [*PARTS.values(), *LEGACY.values()], ids=[*PARTS, *LEGACY])
def test_of_a_part_that_is_given_back_nobody_can_tell(posts: Posts, ask: Ask) -> None:
    """SHIM-44: and nothing of ours is in it."""
    posts.write("part")
    with antipode.scope(), antipode.reading() as seen:
        found = ask(posts.wrapped["a"], "part").get("Attributes", {})
        assert not [name for name in found if name.startswith("_ap")]
    assert seen.lineage.incomplete == {STORE}


def test_automatic_merging_takes_what_is_given_back(posts: Posts) -> None:
    """SHIM-12"""
    other = Lineage([antipode.WriteId.position("others", "e", 7)])
    with antipode.scope(other):
        posts.wrapped["a"].put_item(TableName=TABLE, Item=item("merged"))
    antipode.configure(auto_merge=True)
    with antipode.scope() as scope:
        posts.wrapped["a"].put_item(TableName=TABLE, Item=item("merged", "n"), ReturnValues="ALL_OLD")
        assert other <= scope.lineage


def test_every_word_that_gives_something_back_is_known(posts: Posts) -> None:
    """SHIM-51: parameters of the operations that write, in transactions, too."""
    model = posts.plain["a"].meta.service_model
    found = set()
    for operation in ("PutItem", "UpdateItem", "DeleteItem", "BatchWriteItem", "TransactWriteItems"):
        shape = model.operation_model(operation).input_shape
        found |= {name for name in shape.members if name.startswith("Return")}
    for action in model.shape_for("TransactWriteItem").members.values():
        found |= {name for name in action.members if name.startswith("Return")}
    no_items = {"ReturnConsumedCapacity", "ReturnItemCollectionMetrics"}
    check_inventory(found, {"reads": GIVING, "neither": no_items})
