"""What a recorded history is told of items: each says by its attribute which write it is (spec HIST-28)."""

from __future__ import annotations

import json
from collections.abc import Iterator, Mapping
from typing import Any, Final

from antipode.shim import GONE, THERE, KeyChange, ReadValue, Write, noting, value_digest

from antipode_dynamodb.attributes import TOMBSTONE, Item, identity_of, is_tombstone, stripped, version_of
from antipode_dynamodb.binding import Binding
from antipode_dynamodb.guarding import Kind
from antipode_dynamodb.keys import canonical_number, key_octets
from antipode_dynamodb.tables import Table, table_name

_SETS: Final = frozenset({"SS", "NS", "BS"})
_PARTS: Final = frozenset({"IndexName", "ProjectionExpression", "AttributesToGet"})


# Writes


@noting
def changes(write: Write, table: Table, key: bytes, kind: Kind, item: Item | None = None) -> None:
    """A write of one item is about to be sent; `item`: what a put leaves."""
    if write.noted is None:
        return
    if kind is Kind.DELETE:
        change = KeyChange(key, GONE)
    elif item is None:  # an update: what it leaves depends on what is there
        change = KeyChange(key, THERE, expires=not table.lasting)
    else:
        expires = not table.lasting and (table.ttl is None or table.ttl == TOMBSTONE or table.ttl in item)
        change = KeyChange(key, _digest(write.store, key, item), expires)
    write.noted.changes([change])


# Reads


def values(
    binding: Binding, operation: str, params: Mapping[str, Any], result: Mapping[str, Any]
) -> Iterator[ReadValue]:
    """Give what a read found, whose answer still has our attributes; `params` as the application gave them."""
    return _FOUND.get(operation, _of_statements)(binding, params, result)


def _of_get(binding: Binding, params: Mapping[str, Any], result: Mapping[str, Any]) -> Iterator[ReadValue]:
    if not binding.has(params["TableName"]):
        return
    table = binding.tables.known(params["TableName"])
    if table is None:
        yield ReadValue(table_name(params["TableName"]).encode())
    else:
        yield _found(binding, table, params["Key"], result.get("Item"), is_whole(params))


def _of_transact(binding: Binding, params: Mapping[str, Any], result: Mapping[str, Any]) -> Iterator[ReadValue]:
    for asked, response in zip(params["TransactItems"], result["Responses"], strict=True):
        yield from _of_get(binding, asked["Get"], response)


def _of_batch(binding: Binding, params: Mapping[str, Any], result: Mapping[str, Any]) -> Iterator[ReadValue]:
    responses = {table_name(name): items for name, items in result.get("Responses", {}).items()}
    left = {table_name(name): part["Keys"] for name, part in (result.get("UnprocessedKeys") or {}).items()}
    for name, part in params["RequestItems"].items():
        if not binding.has(name):
            continue
        table = binding.tables.known(name)
        if table is None:
            yield ReadValue(table_name(name).encode())
            continue
        unread = {key_octets(table.name, table.keys, key) for key in left.get(table.name, ())}
        items: dict[bytes, Item] = {}
        nameless = False
        for item in responses.get(table.name, ()):
            if item.keys() >= set(table.keys):
                items[key_octets(table.name, table.keys, item)] = item
            else:  # a projection without the key
                nameless = True
        for key in part["Keys"]:
            octets = key_octets(table.name, table.keys, key)
            if octets in items or not (nameless or octets in unread):
                yield _found(binding, table, key, items.get(octets), is_whole(part))
            elif octets not in unread:
                yield ReadValue(octets)


def _of_query(binding: Binding, params: Mapping[str, Any], result: Mapping[str, Any]) -> Iterator[ReadValue]:
    """What came says itself which write it is; what did not come is not known, and so there is a line of the table."""
    if not binding.has(params["TableName"]):
        return
    table = binding.tables.known(params["TableName"])
    if table is not None and "IndexName" not in params:  # an index lags by itself
        for item in result.get("Items", ()):
            if version_of(item) is not None and item.keys() >= set(table.keys):
                yield _found(binding, table, item, item, is_whole(params))
    yield ReadValue(table_name(params["TableName"]).encode())


def _of_statements(binding: Binding, params: Mapping[str, Any], result: Mapping[str, Any]) -> Iterator[ReadValue]:
    yield ReadValue(b"")


def _found(binding: Binding, table: Table, key: Item, item: Item | None, whole: bool) -> ReadValue:
    octets = key_octets(table.name, table.keys, key)
    version = identity_of(item)
    exact = None if version is None else binding.store.write_id(octets, version)
    if item is None:
        return ReadValue(octets, GONE)
    if is_tombstone(item):
        return ReadValue(octets, None if exact is None else GONE, exact)
    return ReadValue(octets, _digest(binding.store.name, octets, item) if whole else None, exact)


def is_whole(params: Mapping[str, Any]) -> bool:
    """Whether items come with every attribute that they have."""
    return not _PARTS & params.keys() and params.get("Select", "ALL_ATTRIBUTES") == "ALL_ATTRIBUTES"


_FOUND: Final = {"GetItem": _of_get, "TransactGetItems": _of_transact, "BatchGetItem": _of_batch} | dict.fromkeys(
    ("Query", "Scan"), _of_query
)


# Values


def _digest(store: str, key: bytes, item: Item) -> str:
    text = json.dumps(_plain(stripped(dict(item))), sort_keys=True, separators=(",", ":"))
    return value_digest(store, key, text.encode("utf-8", "surrogatepass"))


def _plain(attributes: Mapping[str, Any]) -> dict[str, Any]:
    return {name: _value(value) for name, value in attributes.items()}


def _value(value: Mapping[str, Any]) -> Any:
    """One value in one form, whoever wrote it: sets have no order, numbers no zeros at their ends."""
    ((kind, inner),) = value.items()
    if kind == "M":
        return [kind, _plain(inner)]
    if kind == "L":
        return [kind, [_value(each) for each in inner]]
    if kind in _SETS:
        return [kind, sorted(_scalar(kind[0], each) for each in inner)]
    return [kind, _scalar(kind, inner)]


def _scalar(kind: str, inner: Any) -> Any:
    if kind == "N":
        try:
            return canonical_number(str(inner))
        except ValueError:
            return str(inner)
    if kind == "B":
        return (inner.encode() if isinstance(inner, str) else bytes(getattr(inner, "value", inner))).hex()
    return inner
