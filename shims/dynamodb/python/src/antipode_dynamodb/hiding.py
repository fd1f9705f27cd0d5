"""Reads: what was asked for is what the plain client gives, and the versions and lineages beside it are ours."""

from __future__ import annotations

import re
import time
from collections.abc import Callable
from typing import Any, Final

from antipode.shim import Keys, Read, quietly

from antipode_dynamodb import noting
from antipode_dynamodb.attributes import (
    NAMES,
    Item,
    both,
    chain_of,
    identity_of,
    is_tombstone,
    lineage_text,
    stripped,
    with_names,
)
from antipode_dynamodb.binding import Binding
from antipode_dynamodb.keys import key_octets, parse_key
from antipode_dynamodb.opaque import content_version
from antipode_dynamodb.plain import for_questions
from antipode_dynamodb.statements import BEFORE, reads_index
from antipode_dynamodb.tables import Table, table_name
from antipode_dynamodb.writing import Told, ignore, known_table, native

_LEGACY: Final = frozenset({"QueryFilter", "ScanFilter", "AttributesToGet", "ConditionalOperator", "KeyConditions"})
GIVING: Final = ("ReturnValues", "ReturnValuesOnConditionCheckFailure")
"""Words by which a write gives back what is there."""
_AFTER_A_PROOF_S: Final = 10.0
"""So long after a barrier has passed all reads that do not say otherwise are strongly consistent."""
_SELECT: Final = re.compile(rf"^{BEFORE}SELECT\b{BEFORE}(?!\*)", re.IGNORECASE)


class ItemRead(Read):
    """One read of items."""

    __slots__ = ("binding",)

    def __init__(self, binding: Binding, keys: Keys = (), *, is_told: bool = False) -> None:
        super().__init__(binding, binding.server, keys, is_told=is_told)
        self.binding = binding

    @property
    def is_strong(self) -> bool:
        """Whether the read has to be strongly consistent, where the application did not say.

        A barrier proves what a strongly consistent read shows; another one may be behind that.
        """
        if self.binding.consistent != "dependent":
            return self.binding.consistent == "always"
        if self.reading is not None and self.reading.after is not None:
            return True
        if self.scope is not None and self.scope.recorded_lineage.of_store(self.binding.store.name):
            return True
        # A barrier may have been given its lineage, which the scope has not.
        proved_at: float = getattr(self.binding.store.shim, "proved_at", 0.0)
        return time.monotonic() - proved_at < _AFTER_A_PROOF_S

    def saw_item(self, table: Table | None, item: Item, *, whole: bool) -> None:
        """Add what a value depends on; `whole`: it has every attribute that it has at the server."""
        version = identity_of(item)
        texts = [text for text in [lineage_text(item)] if text is not None]
        self.saw(lineage=self.binding.lineage_of(texts))
        if table is None or (version is None and not whole):
            self.mark()
            return
        try:
            octets = key_octets(table.name, table.keys, item)
        except (KeyError, ValueError, TypeError):  # an index or a projection without the key
            self.mark()
        else:
            self.saw(self.binding.store.write_id(octets, content_version(item) if version is None else version))

    def given(self, table: Table | None, item: Item, whole: bool) -> None:
        """Add what an item depends on that a write gave back; of a part of one nobody knows it."""
        if not self.collects:
            return
        if whole:
            self.saw_item(table, item, whole=True)
        else:
            self.mark()


def read_items(binding: Binding, operation: str, params: dict[str, Any]) -> Any:
    """Do a read of any kind, with our attributes hidden and tombstones left out."""
    with ItemRead(binding, _keys(binding, operation, params) if binding.follows else (), is_told=True) as read:
        read.wait()
        request = dict(params)
        _ASKED[operation](read, request)
        result = binding.low._make_api_call(operation, request)
        if read.is_noted:
            _tell(read, operation, params, request, result)
        _GIVEN[operation](read, params, result)
        return result


def write_and_read(binding: Binding, operation: str, params: dict[str, Any], write: Callable[[], Any]) -> Any:
    """Do what writes and may give values: it waits as a read does, and our attributes are hidden."""
    with ItemRead(binding) as read:
        read.wait()
        result = write()
        _GIVEN[operation](read, params, result)
        return result


def write_and_give(
    write: Callable[[Binding, str, dict[str, Any], Told], Any], binding: Binding, operation: str, params: dict[str, Any]
) -> Any:
    """Do a write; one that gives values back waits as a read does, and what they depend on is collected (SHIM-44)."""
    if not _gives_back(params):
        return write(binding, operation, params, ignore)
    with ItemRead(binding) as read:
        read.wait()
        return write(binding, operation, params, read.given)


def _gives_back(params: dict[str, Any]) -> bool:
    """Return whether a write may give back what is there: its result, or the error of its condition."""
    items = [item for item in params.get("TransactItems") or () if isinstance(item, dict)]
    parts = [params, *(part for item in items for part in item.values())]
    return any(isinstance(part, dict) and part.get(word, "NONE") != "NONE" for part in parts for word in GIVING)


def unsure(binding: Binding, operation: str, params: dict[str, Any]) -> Any:
    """Do what nobody knows: it waits as a read does, and is recorded as a write of which no version can be had."""
    with ItemRead(binding) as read:
        read.wait()
        read.mark()
    return native(binding, operation, params, "operation", f"{operation} carries no version")


def _tell(
    read: ItemRead, operation: str, params: dict[str, Any], request: dict[str, Any], result: dict[str, Any]
) -> None:
    """Tell what a read found; in dry-run a single item alone is read once more."""
    binding, shown, repeat = read.binding, None, None
    if operation == "GetItem":
        item = _bare(result.get("Item"))

        def again() -> Any:
            own = for_questions(binding.low, binding.server.ask_timeout)
            try:
                return _bare(own._make_api_call(operation, dict(request)).get("Item"))
            finally:
                own.close()

        shown, repeat = lambda: item, again
    read.returned(lambda: noting.values(binding, operation, params, result), shown=shown, repeat=repeat)


@quietly
def _keys(binding: Binding, operation: str, params: dict[str, Any]) -> Keys:
    """The items that it reads, for whoever follows it."""
    if operation in READS and "TableName" in params and not binding.has(params["TableName"]):
        return ()
    key = _key_of(binding, params) if operation == "GetItem" else None
    if key is not None:
        return (key,)
    table = table_name(params.get("TableName", ""))
    return (lambda key: _may_be_in(table, key)) if table else None


def _bare(item: Item | None) -> Item | None:
    return None if item is None or is_tombstone(item) else stripped(dict(item))


def _may_be_in(table: str, key: bytes) -> bool:
    parsed = parse_key(key)
    return parsed is None or parsed[0] == table


def _key_of(binding: Binding, params: dict[str, Any]) -> bytes | None:
    table = binding.tables.known(params.get("TableName", ""))
    try:
        return None if table is None else key_octets(table.name, table.keys, params["Key"])
    except (KeyError, ValueError, TypeError):  # the server's to refuse
        return None


# What is asked for


def _project(read: ItemRead, table: Table | None, params: dict[str, Any]) -> None:
    """Asks for our attributes, too, where the application names those that it wants."""
    if read.collects:
        wanted = ["#apv", "#ape", "#apl", "#apx"]
    elif read.binding.notes:
        wanted = ["#apv", "#ape", "#apx"]
    else:
        wanted = ["#apx"] if _may_hold_tombstones(table) else []
    if not wanted or "IndexName" in params:  # an index need not have them
        return
    if "ProjectionExpression" in params:
        params["ProjectionExpression"] = ", ".join([params["ProjectionExpression"], *wanted])
        with_names(params, *wanted)
    elif "AttributesToGet" in params:
        params["AttributesToGet"] = [*params["AttributesToGet"], *(NAMES[short] for short in wanted)]


def _may_hold_tombstones(table: Table | None) -> bool:
    return table is not None and table.ttl is not None


def _strengthen(read: ItemRead, params: dict[str, Any]) -> None:
    if read.is_strong and "ConsistentRead" not in params:
        params["ConsistentRead"] = True


def _ask_get(read: ItemRead, params: dict[str, Any]) -> None:
    if read.binding.has(params.get("TableName", "")):
        _project(read, _table(read, params), params)
        _strengthen(read, params)


def _ask_query(read: ItemRead, params: dict[str, Any]) -> None:
    if not read.binding.has(params.get("TableName", "")):
        return
    table = _table(read, params)
    _project(read, table, params)
    if "IndexName" not in params:  # a global index has no strongly consistent reads
        _strengthen(read, params)
    shown = "IndexName" not in params or (table is not None and params["IndexName"] in table.showing)
    if _may_hold_tombstones(table) and shown and not _LEGACY & params.keys():
        # At the server, so that counts and pages are those of what is there.
        params["FilterExpression"] = both(params.get("FilterExpression"), "attribute_not_exists(#apx)")
        with_names(params, "#apx")


def _ask_batch(read: ItemRead, params: dict[str, Any]) -> None:
    asked = params.get("RequestItems")
    if not isinstance(asked, dict):
        return
    params["RequestItems"] = {name: dict(part) if isinstance(part, dict) else part for name, part in asked.items()}
    for name, part in params["RequestItems"].items():
        if read.binding.has(name) and isinstance(part, dict):
            _project(read, known_table(read.binding, name), part)
            _strengthen(read, part)


def _ask_transact(read: ItemRead, params: dict[str, Any]) -> None:
    items = []
    for item in params.get("TransactItems", ()):
        get = dict(item["Get"])
        if read.binding.has(get.get("TableName", "")):
            _project(read, _table(read, get), get)
        items.append({"Get": get})
    params["TransactItems"] = items


def _ask_statement(read: ItemRead, params: dict[str, Any]) -> None:
    if not reads_index(params.get("Statement", "")):  # an index need not have our attributes
        params["Statement"] = _SELECT.sub(_selected(read), params.get("Statement", ""))
        _strengthen(read, params)


def _ask_statements(read: ItemRead, params: dict[str, Any]) -> None:
    word = "Statements" if "Statements" in params else "TransactStatements"
    statements = []
    for statement in params.get(word, ()):
        changed = dict(statement)
        _ask_statement(read, changed)
        if word != "Statements":
            changed.pop("ConsistentRead", None)  # a transaction is so by itself, and takes no such word
        statements.append(changed)
    params[word] = statements


def _selected(read: ItemRead) -> str:
    ours = ("_apx", "_apv", "_ape", "_apl") if read.collects else ("_apx",)
    return "SELECT " + "".join(f'"{name}", ' for name in ours)


def _table(read: ItemRead, params: dict[str, Any]) -> Table | None:
    return known_table(read.binding, params.get("TableName", ""))


# What is given


def _give_get(read: ItemRead, params: dict[str, Any], result: dict[str, Any]) -> None:
    if "Item" in result and read.binding.has(params["TableName"]):
        table, chain = _table(read, params), chain_of(result["Item"])
        if chain is not None and table is not None:  # who reads an item may write it next
            read.binding.chains.put(key_octets(table.name, table.keys, params["Key"]), chain)
        item = _shown(read, table, result["Item"], params.get("Key"), noting.is_whole(params))
        if item is None:
            del result["Item"]
        else:
            result["Item"] = item


def _give_query(read: ItemRead, params: dict[str, Any], result: dict[str, Any]) -> None:
    if not read.binding.has(params["TableName"]):
        return
    if "Items" not in result:  # items that are counted, and nothing of them comes
        read.mark()
        return
    table, whole = _table(read, params), noting.is_whole(params)
    shown = [_shown(read, table, item, None, whole) for item in result["Items"]]
    result["Items"] = [item for item in shown if item is not None]
    if "Count" in result:
        result["Count"] = len(result["Items"])


def _give_batch(read: ItemRead, params: dict[str, Any], result: dict[str, Any]) -> None:
    asked = params["RequestItems"]
    for name, items in result.get("Responses", {}).items():
        if not read.binding.has(name):
            continue
        table = known_table(read.binding, name)
        shown = [_shown(read, table, item, None, noting.is_whole(asked.get(name, {}))) for item in items]
        result["Responses"][name] = [item for item in shown if item is not None]
    for name, part in result.get("UnprocessedKeys", {}).items():
        original = asked.get(name, {})
        result["UnprocessedKeys"][name] = {
            **{word: value for word, value in original.items() if word != "Keys"},
            "Keys": part["Keys"],
        }


def _give_transact(read: ItemRead, params: dict[str, Any], result: dict[str, Any]) -> None:
    for asked, response in zip(params["TransactItems"], result.get("Responses", ()), strict=False):
        _give_get(read, asked["Get"], response)


def _give_statement(read: ItemRead, params: dict[str, Any], result: dict[str, Any]) -> None:
    shown = [_shown(read, None, item, None, whole=True) for item in result.get("Items", ())]
    if "Items" in result:
        result["Items"] = [item for item in shown if item is not None]


def _give_statements(read: ItemRead, params: dict[str, Any], result: dict[str, Any]) -> None:
    for response in result.get("Responses", ()):
        if "Item" in response:
            item = _shown(read, None, response["Item"], None, whole=True)
            if item is None:
                del response["Item"]
            else:
                response["Item"] = item


def _shown(read: ItemRead, table: Table | None, item: Item, key: Item | None, whole: bool) -> Item | None:
    """An item as the application sees it; None where it was deleted."""
    if read.collects:  # of a tombstone, too: that nothing is there depends on the deletion
        read.saw_item(table, {**item, **(key or {})}, whole=whole)
    return None if is_tombstone(item) else stripped(item)


_ASKED: Final[dict[str, Callable[[ItemRead, dict[str, Any]], None]]] = {
    "GetItem": _ask_get,
    "Query": _ask_query,
    "Scan": _ask_query,
    "BatchGetItem": _ask_batch,
    "TransactGetItems": _ask_transact,
    "ExecuteStatement": _ask_statement,
    "BatchExecuteStatement": _ask_statements,
    "ExecuteTransaction": _ask_statements,
}
_GIVEN: Final[dict[str, Callable[[ItemRead, dict[str, Any], dict[str, Any]], None]]] = {
    "GetItem": _give_get,
    "Query": _give_query,
    "Scan": _give_query,
    "BatchGetItem": _give_batch,
    "TransactGetItems": _give_transact,
    "ExecuteStatement": _give_statement,
    "BatchExecuteStatement": _give_statements,
    "ExecuteTransaction": _give_statements,
}
READS: Final = frozenset({"GetItem", "Query", "Scan", "BatchGetItem", "TransactGetItems"})
