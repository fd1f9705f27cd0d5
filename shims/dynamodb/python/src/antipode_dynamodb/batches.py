"""Writes of many items: `BatchWriteItem`, `TransactWriteItems`."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass, replace
from typing import Any, Final

from antipode.shim import Write
from antipode.shim.aws import code_of
from antipode.shim.objects import deleted_version
from botocore.exceptions import ClientError

from antipode_dynamodb import noting
from antipode_dynamodb.attributes import NAMES, Item, in_chain, is_tombstone, stripped, version_of
from antipode_dynamodb.binding import Binding
from antipode_dynamodb.guarding import Failure, GuardedAction, Kind, judge
from antipode_dynamodb.keys import key_octets
from antipode_dynamodb.tables import Table
from antipode_dynamodb.writing import (
    MOST_TRIES,
    Told,
    ignore,
    known_table,
    native,
    raised,
    settle,
)

# BatchWriteItem takes no conditions: the versions that are there are read first, so that the new ones pass them.


@dataclass(slots=True)
class _Request:
    """One request of a batch."""

    table: Table
    octets: bytes
    key: Item
    original: dict[str, Any]
    sent: dict[str, Any]
    version: int = 0
    changes: bool = True
    fits: bool = True
    """The version is greater than the one that was there."""

    @property
    def deletes(self) -> bool:
        return "DeleteRequest" in self.original


def write_batch(binding: Binding, operation: str, params: dict[str, Any]) -> Any:
    """A batch: every request with a version of its own, above the one that its item has."""
    try:
        requests = list(_requests(binding, params))
    except (KeyError, ValueError, TypeError, AttributeError):  # DynamoDB refuses it in its own words
        requests = []
    except _UnknownKeyError:
        return native(binding, operation, params, "rights", "the table's key is not known; see the line before")
    if not requests:
        return binding.low._make_api_call(operation, params)
    binding.observe_scope()
    text = binding.text_at_rest()
    try:
        seen = _versions(binding, requests)
    except ClientError as error:
        detail = f"the versions that are there cannot be read ({error}). Allow dynamodb:BatchGetItem"
        return native(binding, operation, params, "rights", detail)
    for request in requests:
        _dress(binding, request, text, seen.get((request.table.name, request.octets)))
    by_table: dict[str, list[dict[str, Any]]] = {name: [] for name in params["RequestItems"]}
    names = {request.table.name: name for name in by_table for request in requests if _is(request.table, name)}
    for request in requests:
        by_table[names[request.table.name]].append(request.sent)
    for name, plain in params["RequestItems"].items():
        if not binding.has(name):
            by_table[name] = plain
    writes = [_begin(binding, request) for request in requests]
    try:
        result = binding.low._make_api_call(operation, {**params, "RequestItems": by_table})
    except BaseException as error:
        settle(writes, error)
        raise
    left = _left_over(requests, result)
    for request, write in zip(requests, writes, strict=True):
        if id(request) in left or not request.changes:
            write.abandon()
        elif not request.fits:
            write.record_incomplete("implausible", "the item held a version beyond all others")
        elif request.deletes and request.table.ttl is None:
            write.record(deleted_version(request.version))
        else:
            write.record(in_chain(request.version, request.version))  # it proves itself alone (SHIM-52)
        if request.changes and id(request) not in left:
            binding.chains.put(request.octets, request.version)
    return result


def _begin(binding: Binding, request: _Request) -> Write:
    write = binding.store.begin(request.octets)
    if write.noted is not None:
        put = request.original.get("PutRequest", {}).get("Item")
        noting.changes(write, request.table, request.octets, Kind.PUT if put else Kind.DELETE, put)
    return write


class _UnknownKeyError(Exception):
    """A table's key cannot be asked for."""


def _is(table: Table, name: str) -> bool:
    return name == table.name or name.endswith(f":table/{table.name}")


def _requests(binding: Binding, params: dict[str, Any]) -> Iterator[_Request]:
    for name, requests in params["RequestItems"].items():
        if not binding.has(name):
            continue
        table = known_table(binding, name)
        if table is None:
            raise _UnknownKeyError
        for original in requests:
            if "PutRequest" in original:
                attributes = original["PutRequest"]["Item"]
            else:
                attributes = original["DeleteRequest"]["Key"]
            octets = key_octets(table.name, table.keys, attributes)
            yield _Request(table, octets, {part: attributes[part] for part in table.keys}, original, original)


def _versions(binding: Binding, requests: Sequence[_Request]) -> dict[tuple[str, bytes], Item]:
    asked: dict[str, Any] = {}
    for request in requests:
        names = {f"#k{index}": name for index, name in enumerate(request.table.keys)} | {
            "#apv": NAMES["#apv"],
            "#apx": NAMES["#apx"],
        }
        part = asked.setdefault(
            request.table.name,
            {
                "Keys": [],
                "ConsistentRead": True,
                "ProjectionExpression": ", ".join(names),
                "ExpressionAttributeNames": names,
            },
        )
        if request.key not in part["Keys"]:  # DynamoDB refuses a key twice, here too
            part["Keys"].append(request.key)
    tables = {request.table.name: request.table for request in requests}
    found: dict[tuple[str, bytes], Item] = {}
    for _ in range(MOST_TRIES):
        answer = binding.low._make_api_call("BatchGetItem", {"RequestItems": asked})
        for name, items in answer["Responses"].items():
            for item in items:
                found[name, key_octets(name, tables[name].keys, item)] = item
        asked = answer.get("UnprocessedKeys") or {}
        if not asked:
            break
    return found


def _dress(binding: Binding, request: _Request, text: str, there: Item | None) -> None:
    request.version, request.fits = binding.version_after(version_of(there))
    action = GuardedAction(Kind.DELETE if request.deletes else Kind.PUT, {}, request.table, request.version, text)
    if not request.deletes:
        ours = action.beside()
        request.sent = {"PutRequest": {"Item": {**stripped(request.original["PutRequest"]["Item"]), **ours}}}
    elif not there:
        request.changes = False
    elif action.leaves_tombstone:
        request.sent = {"PutRequest": {"Item": {**request.key, **action.tombstone()}}}


def _left_over(requests: Sequence[_Request], result: dict[str, Any]) -> set[int]:
    """The requests that DynamoDB left unprocessed; in the result they become what they were."""
    left: set[int] = set()
    for name, unprocessed in (result.get("UnprocessedItems") or {}).items():
        originals = []
        for sent in unprocessed:
            attributes = sent["PutRequest"]["Item"] if "PutRequest" in sent else sent["DeleteRequest"]["Key"]
            for request in requests:
                if _is(request.table, name) and all(attributes[part] == request.key[part] for part in request.key):
                    left.add(id(request))
                    originals.append(request.original)
                    break
            else:
                originals.append(sent)
        result["UnprocessedItems"][name] = originals
    return left


# Transactions: each action has its condition, and one that fails by ours alone has all of them tried again.

_IDEMPOTENT: Final = "ClientRequestToken"


def write_transaction(binding: Binding, operation: str, params: dict[str, Any], told: Told = ignore) -> Any:
    """A transaction: every action with a version of its own."""
    if params.get(_IDEMPOTENT):
        detail = (
            "a transaction with the application's own ClientRequestToken carries no versions: a repetition would "
            "have others, and be refused. Leave the token to boto3"
        )
        return native(binding, operation, params, "token", detail)
    try:
        actions = [_action(binding, item) for item in params["TransactItems"]]
        octets = [_octets(action) for action in actions]
    except (KeyError, ValueError, TypeError, AttributeError):  # DynamoDB refuses it in its own words
        return binding.low._make_api_call(operation, params)
    except _UnknownKeyError:
        return native(binding, operation, params, "rights", "a table's key is not known; see the line before")
    binding.observe_scope()
    text = binding.text_at_rest()
    actions = [_begun(binding, action, key, text) for action, key in zip(actions, octets, strict=True)]
    writes = [
        _begin_action(binding, action, key)
        for action, key in zip(actions, octets, strict=True)
        if isinstance(action, GuardedAction) and action.kind is not Kind.CHECK
    ]
    try:
        actions, result = _run(binding, params, actions, told)
    except BaseException as error:
        settle(writes, error)
        raise
    for action, key in zip(actions, octets, strict=True):
        if isinstance(action, GuardedAction) and action.kind is not Kind.CHECK:
            binding.chains.put(key, action.left_chain)
    recorded = [action for action in actions if isinstance(action, GuardedAction) and action.kind is not Kind.CHECK]
    for action, write in zip(recorded, writes, strict=True):
        if action.changes_nothing:
            write.abandon()
        elif action.unguarded:
            write.record_incomplete(
                "contention", "an item holds a version beyond all others, or others wrote all the time"
            )
        elif action.kind is Kind.DELETE and not action.leaves_tombstone:
            write.record(deleted_version(action.version))
        else:
            write.record(action.identity)
    return result


def _action(binding: Binding, item: dict[str, Any]) -> GuardedAction | dict[str, Any]:
    """One action of ours; one on a table that is none of the store's stays as it came."""
    ((word, params),) = item.items()
    kind = Kind(word)
    if not binding.has(params["TableName"]):
        return item
    table = known_table(binding, params["TableName"])
    if table is None:
        raise _UnknownKeyError
    return GuardedAction(kind, params, table, 0, "")


def _begin_action(binding: Binding, action: GuardedAction, key: bytes) -> Write:
    write = binding.store.begin(key)
    if write.noted is not None:
        noting.changes(write, action.table, key, action.kind, action.params.get("Item"))
    return write


def _octets(action: GuardedAction | dict[str, Any]) -> bytes:
    if isinstance(action, dict):
        return b""
    attributes = action.params["Item" if action.kind is Kind.PUT else "Key"]
    return key_octets(action.table.name, action.table.keys, attributes)


def _begun(
    binding: Binding, action: GuardedAction | dict[str, Any], key: bytes, text: str
) -> GuardedAction | dict[str, Any]:
    if isinstance(action, dict):
        return action
    return replace(action, version=binding.clock.next(), text=text, chain=binding.chain_at(key))


def _run(
    binding: Binding, params: dict[str, Any], actions: list[GuardedAction | dict[str, Any]], told: Told
) -> tuple[list[GuardedAction | dict[str, Any]], Any]:
    for tries in range(MOST_TRIES + 1):
        if tries == MOST_TRIES:
            actions = [a.given_up() if isinstance(a, GuardedAction) else a for a in actions]
        items = [_sent(action) for action in actions]
        try:
            return actions, binding.low._make_api_call("TransactWriteItems", {**params, "TransactItems": items})
        except ClientError as error:
            if code_of(error) != "TransactionCanceledException":
                raise
            reasons = error.response.get("CancellationReasons") or []
            again = _again(binding, actions, reasons)
            if again is None or tries == MOST_TRIES:
                _clean(actions, reasons, told)
                raise
            actions = again
    raise AssertionError("not reached")


def _sent(action: GuardedAction | dict[str, Any]) -> dict[str, Any]:
    if isinstance(action, dict):
        return action
    kind, request = action.request()
    return {kind.value: request}


def _again(
    binding: Binding, actions: list[GuardedAction | dict[str, Any]], reasons: Sequence[dict[str, Any]]
) -> list[GuardedAction | dict[str, Any]] | None:
    """The actions to try again; None where the application's own are the reason."""
    if len(reasons) != len(actions):
        return None
    changed: list[GuardedAction | dict[str, Any]] = []
    learned = False
    for action, reason in zip(actions, reasons, strict=True):
        changed.append(action)
        if isinstance(action, dict) or reason.get("Code") != "ConditionalCheckFailed":
            if reason.get("Code", "None") != "None":
                return None
            continue
        # A repetition of what was done has the same token, and gets the first one's answer.
        failure, next_action = judge(action, reason.get("Item"), repeated=False)
        if failure is Failure.OURS:
            learned = True
            changed[-1] = raised(binding, next_action, reason.get("Item"))
    # With one of the application's own among them, too: what is learned may show another one.
    return changed if learned else None


def _clean(actions: Sequence[GuardedAction | dict[str, Any]], reasons: Sequence[dict[str, Any]], told: Told) -> None:
    """The reasons as DynamoDB gives them without us."""
    for action, reason in zip(actions, reasons, strict=False):
        if isinstance(action, dict) or reason.get("Code") != "ConditionalCheckFailed":
            continue
        item = reason.pop("Item", None)
        if item and action.params.get("ReturnValuesOnConditionCheckFailure") == "ALL_OLD":
            told(action.table, item, True)
            if not is_tombstone(item):
                reason["Item"] = stripped(item)
