"""DynamoDB for the adversary (spec SHIM-49): one item a row, also over one that a clock ahead has written."""

from __future__ import annotations

import json
import time
import zlib
from collections.abc import Callable, Mapping
from typing import Any, ClassVar

import antipode
import antipode_dynamodb
from antipode._store.hybrid_clock import HybridClock, place_number
from antipode._store.store import registry
from antipode.testing.adversary import Stage
from antipode_dynamodb import DynamoDbShim
from antipode_lab.stores.dynamodb import DynamoDbStore
from botocore.exceptions import BotoCoreError, ClientError
from dynamodb_regions import TABLE, item, key

AHEAD = 12
"""So many items were written in region A, whose clock is ahead; B2, which has not seen that, writes them again. As many
others are deleted in A by code without Antipode, which leaves no tombstone, and written there again."""
AHEAD_S = 600
OLDER = "older"
PUT = f"INSERT INTO \"{TABLE}\" VALUE {{'id': ?, 'value': 'v'}}"


class Client:
    """Wrapped clients of two regions."""

    def __init__(self, plain: Any, wrapped: Any, other: Any, table: Any) -> None:
        self.plain = plain
        self.wrapped = wrapped
        self.other = other
        self.table = table

    def call(self, operation: str, **arguments: Any) -> Any:
        """Call an operation on the table."""
        return getattr(self.wrapped, operation)(TableName=TABLE, **arguments)


def _many(operation: str, *arguments: str) -> Callable[[Client, str], object]:
    """Return what writes a row among another one's."""
    words, form = arguments[0], arguments[1] if len(arguments) > 1 else ""

    def write(client: Client, row: str) -> object:
        put = {form: {"Item": item(row)} if form == "PutRequest" else {"TableName": TABLE, "Item": item(row)}}
        wanted: Any = {TABLE: [put]} if form == "PutRequest" else [put]
        return getattr(client.wrapped, operation)(**{words: wanted})

    return write


def _statement(operation: str, words: str) -> Callable[[Client, str], object]:
    text = {"Statement": PUT}

    def write(client: Client, row: str) -> object:
        given = {**text, "Parameters": [{"S": row}]}
        return getattr(client.wrapped, operation)(**(given if not words else {words: [given]}))

    return write


def _batch_writer(client: Client, row: str) -> None:
    with client.table.batch_writer() as batch:
        batch.put_item(Item={"id": row, "value": "b"})
        batch.put_item(Item={"id": f"{row}-b", "value": "b"})


def _again(client: Client, row: str) -> object:
    client.call("put_item", Item=item(row, "1"))
    client.call("delete_item", Key=key(row), ReturnValues="ALL_OLD")
    return client.call("put_item", Item=item(row, "2"), ReturnValues="ALL_OLD")


def _deleted(client: Client, row: str) -> object:
    client.call("put_item", Item=item(row))
    return client.call("delete_item", Key=key(row))


def _only_if_new(client: Client, row: str) -> object:
    for _ in range(2):
        client.call("put_item", Item=item(row), ConditionExpression="attribute_not_exists(id)")
    return None


def _ahead(row: str, kind: str = "ahead") -> str:
    """The item that a row takes the place of."""
    return f"{kind}-{zlib.crc32(row.encode()) % AHEAD:02}"


def _behind_a_deletion(client: Client, row: str) -> object:
    name, names, values = _ahead(row, "gone"), {"#v": "value"}, {":v": {"S": OLDER}}
    client.plain.delete_item(
        TableName=TABLE,
        Key=key(name),
        ConditionExpression="#v = :v",
        ExpressionAttributeNames=names,
        ExpressionAttributeValues=values,
    )
    return client.call("put_item", Item=item(name, row))


def _update(client: Client, row: str) -> object:
    return client.call(
        "update_item",
        Key=key(row),
        UpdateExpression="SET #v = :v ADD n :one",
        ExpressionAttributeNames={"#v": "value"},
        ExpressionAttributeValues={":v": {"S": "u"}, ":one": {"N": "1"}},
        ReturnValues="ALL_NEW",
    )


def _shows(reader: Any, row: str, look: Callable[[str], list[Any]]) -> bool:
    """Return whether a row is there, under its own key or in place of another item."""
    others = [*look(_ahead(row)), *look(_ahead(row, "gone"))]
    return bool(look(row)) or any(found["value"] == {"S": row} for found in others)


def _getting(reader: Any, row: str, **options: Any) -> bool:
    def look(name: str) -> list[Any]:
        answer = reader.get_item(TableName=TABLE, Key=key(name), **options)
        return [answer["Item"]] if "Item" in answer else []

    return _shows(reader, row, look)


def _querying(reader: Any, row: str) -> bool:
    return _shows(
        reader,
        row,
        lambda name: reader.query(
            TableName=TABLE, KeyConditionExpression="id = :n", ExpressionAttributeValues={":n": {"S": name}}
        )["Items"],
    )


def _stating(reader: Any, row: str) -> bool:
    text = f'SELECT * FROM "{TABLE}" WHERE id = ?'
    return _shows(reader, row, lambda name: reader.execute_statement(Statement=text, Parameters=[{"S": name}])["Items"])


def _in_a_batch(reader: Any, row: str) -> bool:
    def look(name: str) -> list[Any]:
        return list(reader.batch_get_item(RequestItems={TABLE: {"Keys": [key(name)]}})["Responses"][TABLE])

    return _shows(reader, row, look)


def _in_a_transaction(reader: Any, row: str) -> bool:
    def look(name: str) -> list[Any]:
        asked = [{"Get": {"TableName": TABLE, "Key": key(name)}}]
        return [each["Item"] for each in reader.transact_get_items(TransactItems=asked)["Responses"] if "Item" in each]

    return _shows(reader, row, look)


class DynamoDbStage(Stage):
    """A lab of three regions: A writes, B1 reads, and B2 writes as well what A wrote with a clock that is ahead."""

    errors = (ClientError, BotoCoreError)
    writes: ClassVar = {
        "put": lambda client, row: client.call("put_item", Item=item(row), ReturnValues="ALL_OLD"),
        "put twice, if it is new": _only_if_new,
        "update": _update,
        "batch": _many("batch_write_item", "RequestItems", "PutRequest"),
        "transaction": _many("transact_write_items", "TransactItems", "Put"),
        "statement": _statement("execute_statement", ""),
        "statements": _statement("batch_execute_statement", "Statements"),
        "statements of a transaction": _statement("execute_transaction", "TransactStatements"),
        "table": lambda client, row: client.table.put_item(Item={"id": row, "value": "t"}),
        "table's batch": _batch_writer,
        "put, delete, put": _again,
        "put, delete": _deleted,
        "over one of a clock ahead": lambda client, row: client.other.put_item(
            TableName=TABLE, Item=item(_ahead(row), row)
        ),
        "in the place of one of a clock ahead": _behind_a_deletion,
    }
    acts: ClassVar = {
        "read": lambda client: client.call("get_item", Key=key("nothing"), ConsistentRead=True),
        "error": lambda client: client.call("get_item", Key={}),
        "refusal": lambda client: client.call(
            "put_item", Item=item("nothing"), ConditionExpression="attribute_exists(id)"
        ),
        "delete nothing": lambda client: client.call("delete_item", Key=key("nothing"), ReturnValues="ALL_OLD"),
        "update nothing": lambda client: client.call(
            "update_item", Key=key("nothing"), UpdateExpression="REMOVE n", ConditionExpression="attribute_exists(id)"
        ),
    }
    reads: ClassVar = {
        "get": _getting,
        "consistent get": lambda reader, row: _getting(reader, row, ConsistentRead=True),
        "query": _querying,
        "statement": _stating,
        "batch": _in_a_batch,
        "transaction": _in_a_transaction,
        "scan": lambda reader, row: _shows(
            reader,
            row,
            lambda name: [
                found
                for found in reader.scan(TableName=TABLE, ConsistentRead=True)["Items"]
                if found["id"]["S"] == name
            ],
        ),
    }
    replicas = ("b1",)

    def __init__(self, lab: DynamoDbStore) -> None:
        self.lab = lab
        self._plain = {name: lab.client(name) for name in ("a", "b1", "b2")}
        table = lab.resource("a").Table(TABLE)
        self._clients = {
            plain: Client(
                self._plain["a"],
                *(each if plain else self.wrap(each) for each in (self._plain["a"], self._plain["b2"], table)),
            )
            for plain in (False, True)
        }

    def wrap(self, plain: Any, **options: Any) -> Any:
        """Wrap a client under the stage's name."""
        return antipode_dynamodb.wrap(plain, store=self.name, tables=[TABLE], replicas=[self._plain["b1"]], **options)

    def open(self, kind: int, *, plain: bool = False) -> Client:
        return self._clients[plain]

    def close(self, client: Any) -> None:
        """All share the connections of one client a region."""

    def reader(self) -> Any:
        return self.wrap(self._plain["b1"], wait_on_read=True)

    def _items(self, server: str) -> dict[str, dict[str, Any]]:
        found: dict[str, dict[str, Any]] = {}
        pages = self._plain[server].get_paginator("scan").paginate(TableName=TABLE, ConsistentRead=True)
        for each in (each for page in pages for each in page["Items"] if "_apx" not in each):
            name = each["value"]["S"] if each["id"]["S"].startswith(("ahead-", "gone-")) else each["id"]["S"]
            found[name] = {word: value for word, value in each.items() if not word.startswith("_ap")}
        return found

    def rows(self, server: str | None = None) -> set[str]:
        return {row for row in self.contents(server) if row.startswith("adv-")}

    def contents(self, server: str | None = None) -> Mapping[str, object]:
        if server is not None:
            return self._items(server)
        written = {row: each for row, each in self._items("b2").items() if each["id"]["S"].startswith("ahead-")}
        own = {row: each for row, each in self._items("a").items() if not each["id"]["S"].startswith("ahead-")}
        return own | written

    def tell(self, result: Any) -> str:
        if isinstance(result, dict):
            kept = {name: value for name, value in result.items() if name != "ResponseMetadata"}
            return json.dumps(kept, sort_keys=True, default=str)
        return super().tell(result)

    def clear(self) -> None:
        self.lab.heal("b2", "a")
        for name in self.lab.servers:
            for found in self._items(name).values():
                self._plain[name].delete_item(TableName=TABLE, Key={"id": found["id"]})
        region, shim = self.lab.region("a"), registry().need(self.name).shim
        assert isinstance(shim, DynamoDbShim)
        clock = shim.clock(region)
        ahead = HybridClock(place=place_number(region), time_ns=lambda: time.time_ns() + AHEAD_S * 10**9)
        shim._clocks[region] = ahead  # which a client takes when it is wrapped
        wrapped = self.wrap(self._plain["a"])
        shim._clocks[region] = clock
        self.lab.wait_caught_up("b2")
        self.lab.partition("b2", "a")
        with antipode.scope():
            for number in range(AHEAD):
                for kind in ("ahead", "gone"):
                    wrapped.put_item(TableName=TABLE, Item=item(f"{kind}-{number:02}", OLDER))

    def cut(self) -> None:
        for source in ("a", "b2"):
            self.lab.wait_caught_up("b1", source)
        self.lab.partition("b1")

    def heal(self) -> None:
        self.lab.heal("b1", wait=False)
