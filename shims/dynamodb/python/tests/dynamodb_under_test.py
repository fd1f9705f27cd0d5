"""DynamoDB as the conformance kit drives it: three regions, each of which takes writes; `primary` is where ours go."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from typing import Any, ClassVar

import antipode_dynamodb
import boto3
from antipode.shim import Shim
from antipode_lab.stores.dynamodb import ACCESS_KEY, DynamoDbStore
from antipode_lab.under_test import LabLinks
from botocore.config import Config
from dynamodb_regions import TABLE, answering, denied, item, key, restore

_ONE_REQUEST = "a transaction of DynamoDB is one request: there is none that is open"


class DynamoDbUnderTest(LabLinks):
    """The run's lab: what a case changes is undone."""

    shim: ClassVar[type[Shim]] = antipode_dynamodb.DynamoDbShim
    exceptions: ClassVar[Mapping[str, str]] = {
        "open_transaction": _ONE_REQUEST,
        "transaction_over_two_scopes": _ONE_REQUEST,
        "transaction_only_read_so_far": _ONE_REQUEST,
        "rolled_back_transaction": _ONE_REQUEST,
        "barrier_in_a_transaction": _ONE_REQUEST,
        "commit_inside_a_transaction": _ONE_REQUEST,
        "past_moment": "DynamoDB has no cursors over a snapshot: each page is a request that shows what is there then",
        "hashed_keys": "items are asked for by their keys, which a hash does not give back: unproven",
        "repointed_replica": "regions of a global table have no source that could be another one",
        "address_that_moves": "a request is signed for its region, and no other region's server answers it",
        "overwritten_without_antipode": "an item that a plain writer put has no version: it may be older or newer",
    }
    patience = 20.0
    rights_cure = "dynamodb:DescribeTable"
    unfit_cure = "add one, or correct region_name="

    def __init__(self, lab: DynamoDbStore) -> None:
        self.lab = lab
        self._primary = "a"

    def begin(self) -> None:
        self._primary = "a"
        self._plain = {name: self.lab.client(name) for name in self.lab.servers}
        self._wrapped = {
            name: antipode_dynamodb.wrap(
                plain, store=self.name, tables=[TABLE], replicas=[self._plain[replica] for replica in self.replicas]
            )
            for name, plain in self._plain.items()
        }

    def recover(self, *, spoiled: bool) -> None:
        restore(self.lab)

    @property
    def primary(self) -> str:
        return self._primary

    # Data

    def write(self, key: str, value: str) -> None:
        self._wrapped[self.primary].put_item(TableName=TABLE, Item=item(key, value))

    def read(self, key: str, at: str) -> str | None:
        return _value(self._wrapped[at], key)

    def look(self, key: str, at: str) -> str | None:
        return _value(self._plain[at], key)

    def delete(self, key_: str) -> None:
        self._wrapped[self.primary].delete_item(TableName=TABLE, Key=key(key_))

    def raw_write(self, key: str, value: str) -> None:
        self._plain[self.primary].put_item(TableName=TABLE, Item=item(key, value))

    def write_nothing(self) -> None:
        self._wrapped[self.primary].delete_item(TableName=TABLE, Key=key(self.new_key("never there")))

    # More clients

    def wrap_client(self, server: str, *, replicas: Sequence[str] | None = None, wait_on_read: bool = False) -> Any:
        listed = None if replicas is None else [self._plain[name] for name in replicas]
        return antipode_dynamodb.wrap(
            self.lab.client(server), store=self.name, tables=[TABLE], replicas=listed, wait_on_read=wait_on_read
        )

    def counts(self, client: Any) -> Mapping[str, Callable[[str], object]]:
        def queried(name: str) -> object:
            [(attribute, value)] = key(name).items()
            condition = {attribute: {"AttributeValueList": [value], "ComparisonOperator": "EQ"}}
            return client.query(TableName=TABLE, KeyConditions=condition, Select="COUNT")["Count"]

        return {
            "query COUNT": queried,
            "scan COUNT": lambda name: client.scan(TableName=TABLE, Select="COUNT")["Count"],
        }

    def reads(self, client: Any) -> Mapping[str, Callable[[str], object]]:
        def first(items: Sequence[Mapping[str, Any]]) -> object:
            return items[0]["value"]["S"] if items else None

        def queried(name: str) -> object:
            [(attribute, value)] = key(name).items()
            condition = {attribute: {"AttributeValueList": [value], "ComparisonOperator": "EQ"}}
            return first(client.query(TableName=TABLE, KeyConditions=condition)["Items"])

        def by_a_statement(name: str) -> object:
            [(attribute, value)] = key(name).items()
            text = f'SELECT * FROM "{TABLE}" WHERE "{attribute}" = ?'
            return first(client.execute_statement(Statement=text, Parameters=[value])["Items"])

        def in_a_batch(name: str) -> object:
            return first(client.batch_get_item(RequestItems={TABLE: {"Keys": [key(name)]}})["Responses"][TABLE])

        def in_a_transaction(name: str) -> object:
            asked = [{"Get": {"TableName": TABLE, "Key": key(name)}}]
            return first([client.transact_get_items(TransactItems=asked)["Responses"][0]["Item"]])

        return {
            "get_item": lambda name: _value(client, name),
            "query": queried,
            "execute_statement": by_a_statement,
            "batch_get_item": in_a_batch,
            "transact_get_items": in_a_transaction,
        }

    # Links and servers

    def promote(self, replica: str, lost: Callable[[], None] | None = None) -> None:
        """The application moves its writes to another region; what the first one wrote in a partition stays there."""
        if lost is None:
            self.lab.wait_caught_up(replica, self.primary)
        else:
            self.lab.partition(self.primary)
            lost()
        self._primary = replica

    # Troubles

    def write_with_unknown_outcome(self, key: str, value: str) -> None:
        plain = self._client(0.5)
        client = antipode_dynamodb.wrap(plain, store=self.name, tables=[TABLE])
        self.lab.freeze(self.primary)
        try:
            client.put_item(TableName=TABLE, Item=item(key, value))
        finally:
            self.lab.thaw(self.primary)

    def _client(self, timeout: float) -> Any:
        return boto3.client(
            "dynamodb",
            region_name=self.lab.region(self.primary),
            endpoint_url=self.lab.url(self.primary),
            aws_access_key_id=ACCESS_KEY,
            aws_secret_access_key=ACCESS_KEY,
            config=Config(connect_timeout=timeout, read_timeout=timeout, retries={"total_max_attempts": 1}),
        )

    def write_refused(self, key: str) -> None:
        self._wrapped[self.primary].put_item(
            TableName=TABLE, Item=item(key), ConditionExpression="attribute_exists(never)"
        )

    def write_without_rights(self, key: str, value: str) -> None:
        plain = self._client(30.0)
        with answering(plain, "DescribeTable", denied):
            client = antipode_dynamodb.wrap(plain, store=self.name)
            client.put_item(TableName=TABLE, Item=item(key, value))

    def wrap_unfit(self) -> None:
        antipode_dynamodb.wrap(self._plain["b1"], store="unfit", tables=["not-replicated-here"])


def _value(client: Any, name: str) -> str | None:
    found = client.get_item(TableName=TABLE, Key=key(name), ConsistentRead=True).get("Item", {}).get("value")
    return None if found is None else str(found["S"])
