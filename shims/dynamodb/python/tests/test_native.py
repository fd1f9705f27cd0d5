"""A wrapped client gives what the plain one gives: the same calls on two tables, compared one by one (SHIM-2)."""

from __future__ import annotations

import json
import random
from typing import Any

import antipode
import antipode_dynamodb
import pytest
from antipode_lab.stores.dynamodb import DynamoDbStore
from boto3.dynamodb.conditions import Attr, Key
from botocore.exceptions import ClientError
from dynamodb_regions import item, key

NATIVE, MIRROR = "native", "mirror"
KEYS = ("k1", "k2", "k3")
CONDITIONS: list[dict[str, Any]] = [
    {},
    {},
    {"ConditionExpression": "attribute_not_exists(id)"},
    {"ConditionExpression": "attribute_exists(id)"},
    {"ConditionExpression": "attribute_not_exists(#i)", "ExpressionAttributeNames": {"#i": "id"}},
    {
        "ConditionExpression": "#n > :n OR attribute_not_exists(#n)",
        "ExpressionAttributeNames": {"#n": "n"},
        "ExpressionAttributeValues": {":n": {"N": "3"}},
    },
    {"ConditionExpression": "id = :id", "ExpressionAttributeValues": {":id": {"S": "k1"}}},
]
UPDATES: list[dict[str, Any]] = [
    {"UpdateExpression": "SET n = :u", "ExpressionAttributeValues": {":u": {"N": "5"}}},
    {"UpdateExpression": "ADD n :u REMOVE gone", "ExpressionAttributeValues": {":u": {"N": "1"}}},
    {"UpdateExpression": "SET m = if_not_exists(m, :u)", "ExpressionAttributeValues": {":u": {"L": []}}},
    {"UpdateExpression": "REMOVE n"},
    {"UpdateExpression": "SET n = n + :u", "ExpressionAttributeValues": {":u": {"N": "2"}}},
]
OPERATIONS = (
    *("put_item", "update_item", "delete_item", "delete_item", "get_item", "scan", "query", "batch_write_item"),
    *("batch_get_item", "transact_write_items", "transact_get_items", "execute_statement"),
)
BY_ITSELF = {"ResponseMetadata", "ConsumedCapacity", "ScannedCount"}
"""Differs: DynamoDB Local gives capacity where none is asked for, and tombstones are scanned."""
RETURNS = ("NONE", "ALL_OLD", "UPDATED_OLD", "ALL_NEW", "UPDATED_NEW")


class Calls:
    """Calls by chance, for a table whose name is put in later."""

    def __init__(self, seed: int) -> None:
        self.chance = random.Random(seed)

    def _merged(self, *parts: dict[str, Any]) -> dict[str, Any]:
        merged: dict[str, Any] = {}
        for part in parts:
            for word, value in part.items():
                merged[word] = {**merged[word], **value} if isinstance(merged.get(word), dict) else value
        return merged

    def _conditions(self) -> dict[str, Any]:
        chosen = dict(self.chance.choice(CONDITIONS))
        if self.chance.random() < 0.5:
            chosen["ReturnValuesOnConditionCheckFailure"] = "ALL_OLD"
        return chosen

    def _item(self) -> dict[str, Any]:
        return item(self.chance.choice(KEYS), n={"N": str(self.chance.randrange(9))})

    def next(self) -> tuple[str, dict[str, Any]]:
        """An operation and its parameters; `TABLE` stands for the table's name."""
        chance, name = self.chance, key(self.chance.choice(KEYS))
        table: dict[str, Any] = {"TableName": "TABLE"}
        kind = chance.choice(OPERATIONS)
        if kind == "put_item":
            return kind, self._merged(
                table, {"Item": self._item(), "ReturnValues": chance.choice(RETURNS[:2])}, self._conditions()
            )
        if kind == "update_item":
            update = dict(chance.choice(UPDATES))
            returns = {"ReturnValues": chance.choice(RETURNS)}
            return kind, self._merged(table, {"Key": name}, returns, update, self._conditions())
        if kind == "delete_item":
            returns = {"ReturnValues": chance.choice(RETURNS[:2])}
            return kind, self._merged(table, {"Key": name}, returns, self._conditions())
        if kind == "get_item":
            some: dict[str, Any] = {"ProjectionExpression": "id, n"} if chance.random() < 0.5 else {}
            return kind, {**table, "Key": name, **some, "ConsistentRead": True}
        if kind == "scan":
            some = chance.choice(
                [
                    {},
                    {"Select": "COUNT"},
                    {"ProjectionExpression": "n"},
                    {"FilterExpression": "n < :f", "ExpressionAttributeValues": {":f": {"N": "4"}}},
                ]
            )
            return kind, {**table, **some, "ConsistentRead": True}
        if kind == "query":
            return kind, {
                **table,
                "KeyConditionExpression": "id = :k",
                "ExpressionAttributeValues": {":k": name["id"]},
                "ConsistentRead": True,
            }
        if kind == "batch_write_item":
            first, second = chance.sample(KEYS, 2)
            requests = [
                {"PutRequest": {"Item": {**self._item(), **key(first)}}},
                {"DeleteRequest": {"Key": key(second)}},
            ]
            return kind, {"RequestItems": {"TABLE": requests}}
        if kind == "batch_get_item":
            return kind, {"RequestItems": {"TABLE": {"Keys": [key(each) for each in KEYS], "ConsistentRead": True}}}
        if kind == "transact_get_items":
            return kind, {"TransactItems": [{"Get": {**table, "Key": key(each)}} for each in KEYS]}
        if kind == "execute_statement":
            text = f"SELECT {chance.choice(['*', 'n', 'id, n'])} FROM \"TABLE\" WHERE id = '{name['id']['S']}'"
            return kind, {"Statement": text, "ConsistentRead": True}
        actions = []
        for each in chance.sample(KEYS, 2):
            word = chance.choice(["Put", "Update", "Delete", "ConditionCheck"])
            params: dict[str, Any] = {**table, "Key": key(each)}
            if word == "Put":
                params = {**table, "Item": {**self._item(), **key(each)}}
            elif word == "Update":
                params = self._merged(params, UPDATES[2])
            conditions = self._conditions()
            while word == "ConditionCheck" and "ConditionExpression" not in conditions:
                conditions = self._conditions()
            actions.append({word: self._merged(params, conditions)})
        return kind, {"TransactItems": actions}


def for_table(value: Any, name: str) -> Any:
    if isinstance(value, dict):
        return {name if word == "TABLE" else word: for_table(inner, name) for word, inner in value.items()}
    if isinstance(value, list):
        return [for_table(inner, name) for inner in value]
    return value.replace("TABLE", name) if isinstance(value, str) else value


def outcome(client: Any, kind: str, params: dict[str, Any], name: str) -> Any:
    """What a call gives or raises, without what differs by itself."""
    try:
        found = getattr(client, kind)(**for_table(params, name))
    except ClientError as error:
        shown = {word: value for word, value in error.response.items() if word != "ResponseMetadata"}
        return type(error).__name__, shown
    return plain(found, name)


def plain(value: Any, name: str) -> Any:
    if isinstance(value, dict):
        return {
            "TABLE" if word == name else word: plain(inner, name)
            for word, inner in value.items()
            if word not in BY_ITSELF
        }
    if isinstance(value, list):
        shown = [plain(inner, name) for inner in value]
        return (
            sorted(shown, key=lambda each: json.dumps(each, sort_keys=True))
            if shown and isinstance(shown[0], dict) and "id" in shown[0]
            else shown
        )
    return value


def compare(lab: DynamoDbStore, seed: int, calls: int) -> None:
    bare = lab.client("a")
    wrapped = antipode_dynamodb.wrap(bare, store="mirror", tables=[MIRROR])
    source = Calls(seed)
    for table in (NATIVE, MIRROR):
        for each in KEYS:
            bare.delete_item(TableName=table, Key=key(each))
    history = []
    with antipode.scope() as scope:
        for number in range(calls):
            if number % 20 == 19:  # another request, which depends on nothing
                scope.remove("mirror")
            kind, params = source.next()
            history.append((kind, params))
            expected, found = outcome(bare, kind, params, NATIVE), outcome(wrapped, kind, params, MIRROR)
            assert found == expected, f"seed {seed}, call {number}: {history[-6:]}"
        assert not scope.pending


@pytest.mark.parametrize("seed", range(2))
def test_calls_by_chance_give_the_same(dynamodb_lab: DynamoDbStore, seed: int) -> None:
    compare(dynamodb_lab, seed, 110)


@pytest.mark.stores
@pytest.mark.timeout(1200)
@pytest.mark.parametrize("seed", range(100, 130))
def test_many_calls_by_chance_give_the_same(dynamodb_lab: DynamoDbStore, seed: int) -> None:
    compare(dynamodb_lab, seed, 400)


def test_resources_and_tables(dynamodb_lab: DynamoDbStore) -> None:
    """The Python types of boto3's resources, conditions as objects, batch_writer, paginators."""
    resource = dynamodb_lab.resource("a")
    both = antipode_dynamodb.wrap(resource, store="posts")
    table = both.Table("mirror")
    assert type(both) is type(resource)
    assert isinstance(table.meta.client, type(resource.meta.client))
    with antipode.scope() as scope:
        table.put_item(Item={"id": "t1", "n": 1, "list": [1, {"x": True}], "set": {"a", "b"}, "octets": b"\x00"})
        assert table.get_item(Key={"id": "t1"})["Item"]["list"] == [1, {"x": True}]
        with pytest.raises(resource.meta.client.exceptions.ConditionalCheckFailedException):
            table.put_item(Item={"id": "t1"}, ConditionExpression=Attr("id").not_exists())
        with table.batch_writer() as batch:
            for number in range(60):
                batch.put_item(Item={"id": f"batch-{number}", "n": number})
            batch.delete_item(Key={"id": "t1"})
        assert "Item" not in table.get_item(Key={"id": "t1"})
        assert table.query(KeyConditionExpression=Key("id").eq("batch-7"))["Items"] == [{"id": "batch-7", "n": 7}]
        low = table.scan(FilterExpression=Attr("id").begins_with("batch-") & Attr("n").lt(10))
        assert sorted(found["n"] for found in low["Items"]) == list(range(10))
        assert len(scope.lineage.of_store("posts")) == 62  # t1's deletion in a batch is in a chain of its own (SHIM-53)
    found = table.update_item(
        Key={"id": "t1"},
        UpdateExpression="SET q = if_not_exists(q, :zero) + :one",
        ConditionExpression=Attr("id").not_exists(),
        ExpressionAttributeValues={":zero": 0, ":one": 1},
        ReturnValues="ALL_NEW",
    )
    assert found["Attributes"] == {"id": "t1", "q": 1}
    only = antipode_dynamodb.wrap(resource.Table("mirror"), store="one-table")
    with antipode.scope() as scope:
        only.put_item(Item={"id": "t2"})
        assert [write_id.key for write_id in scope.lineage.of_store("one-table")] == [b"mirror/St2"]
    pages = both.meta.client.get_paginator("scan").paginate(TableName="mirror", PaginationConfig={"PageSize": 7})
    seen = [each["id"] for page in pages for each in page["Items"]]
    assert len(seen) == len(set(seen)) >= 60
    assert all(not name.startswith("_ap") for page in pages for each in page["Items"] for name in each)


def test_the_plain_client_stays_plain(dynamodb_lab: DynamoDbStore) -> None:
    """SHIM-1: and it shares the connections."""
    bare = dynamodb_lab.client("a")
    before = bare.__dict__.copy()
    wrapped = antipode_dynamodb.wrap(bare, store="mirror")
    assert bare.__dict__ == before
    assert isinstance(wrapped, type(bare))
    assert wrapped._endpoint is bare._endpoint
    with antipode.scope() as scope:
        bare.put_item(TableName=MIRROR, Item=item("plain"))
        assert not scope.lineage
