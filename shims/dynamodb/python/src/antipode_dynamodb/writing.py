"""Writes of one item: `PutItem`, `UpdateItem`, `DeleteItem`."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import replace
from typing import Any, Final, TypeAlias

from antipode.shim import Write, logs
from antipode.shim.aws import attempts_before, code_of, is_refused
from antipode.shim.objects import deleted_version
from botocore.exceptions import (
    ClientError,
    NoCredentialsError,
    ParamValidationError,
    PartialCredentialsError,
)

from antipode_dynamodb import noting
from antipode_dynamodb.attributes import Item, is_tombstone, lineage_text, stripped, version_of
from antipode_dynamodb.binding import Binding
from antipode_dynamodb.guarding import Failure, GuardedAction, Kind, Mode, judge
from antipode_dynamodb.keys import key_octets
from antipode_dynamodb.tables import Table

KINDS: Final = {"PutItem": Kind.PUT, "UpdateItem": Kind.UPDATE, "DeleteItem": Kind.DELETE}
_OPERATIONS: Final = {kind: operation for operation, kind in KINDS.items()}
_LEGACY: Final = frozenset({"Expected", "AttributeUpdates", "ConditionalOperator"})
MOST_TRIES: Final = 30
Told: TypeAlias = Callable[[Table | None, Item, bool], None]
"""Who is told of what a write gives back: the table, the item with our attributes, whether it has all of them."""
NOT_SENT: Final = (ParamValidationError, NoCredentialsError, PartialCredentialsError)


def settle(writes: list[Write], error: BaseException) -> None:
    """Says of writes that failed whether they can have happened."""
    for write in writes:
        if isinstance(error, NOT_SENT) or is_refused(error, range(400, 500)):
            write.abandon()
        else:
            write.outcome_unknown()


def native(binding: Binding, operation: str, params: Mapping[str, Any], reason: str, detail: str) -> Any:
    """A write as it came: it is recorded, and no version of it can be had."""
    write = binding.store.begin()
    try:
        result = binding.low._make_api_call(operation, params)
    except BaseException as error:
        settle([write], error)
        raise
    code = "AP506" if reason == "rights" else "AP517"
    logs.warn(f"{reason} {binding.store.name}", f"{binding.store.name}: {detail}", code=code)
    write.record_incomplete(reason, detail)
    return result


def known_table(binding: Binding, name: str) -> Table | None:
    """What is known of a table; None, with a log line, where it may not be asked for."""
    try:
        return binding.tables.get(name)
    except ClientError as error:
        if code_of(error) == "AccessDeniedException":
            logs.warn(
                f"rights {binding.store.name} {name}",
                f"{binding.store.name}: writes to {name} are recorded as incomplete, for its key cannot be asked "
                f"({error}). Allow dynamodb:DescribeTable and dynamodb:DescribeTimeToLive on it.",
                code="AP506",
            )
        return None
    except Exception:  # the write itself will say what is the matter
        return None


def ignore(table: Table | None, item: Item, whole: bool) -> None:
    """Nobody asks what a write gives back."""


def write_item(binding: Binding, operation: str, params: dict[str, Any], told: Told = ignore) -> Any:
    """One write, with a version that is greater than any that the item had."""
    table = known_table(binding, params.get("TableName", ""))
    if table is None:
        words = "the table's key is not known; see the line before"
        return _bare(native(binding, operation, params, "rights", words), told)
    if _LEGACY & params.keys():
        words = "AttributeUpdates and Expected carry no version; use UpdateExpression and ConditionExpression"
        return _bare(native(binding, operation, params, "legacy", words), told)
    kind = KINDS[operation]
    try:
        octets = key_octets(table.name, table.keys, params["Item" if kind is Kind.PUT else "Key"])
    except (KeyError, ValueError, TypeError):  # DynamoDB refuses it in its own words
        return binding.low._make_api_call(operation, params)
    binding.observe_scope()
    text = binding.text_at_rest()
    write = binding.store.begin(octets)
    if write.noted is not None:
        noting.changes(write, table, octets, kind, params.get("Item"))
    try:
        first = GuardedAction(kind, params, table, binding.clock.next(), text, chain=binding.chain_at(octets))
        action, result = _run(binding, first, told)
    except BaseException as error:
        settle([write], error)
        raise
    _record(write, action, result)
    binding.chains.put(octets, action.left_chain)
    return _as_native(action, result, told)


def _bare(result: dict[str, Any], told: Told) -> dict[str, Any]:
    """What a write without a version gives."""
    if "Attributes" in result:
        told(None, result["Attributes"], False)
        result["Attributes"] = stripped(result["Attributes"])
    return result


def _run(binding: Binding, action: GuardedAction, told: Told) -> tuple[GuardedAction, dict[str, Any]]:
    attempts = 0
    asks_old = action.kind is Kind.DELETE and action.table.ttl is None
    for tries in range(MOST_TRIES + 1):
        if tries == MOST_TRIES:
            action = action.given_up()
        kind, request = action.request()
        if asks_old:
            request["ReturnValues"] = "ALL_OLD"
        try:
            return action, binding.low._make_api_call(_OPERATIONS[kind], request)
        except ClientError as error:
            if code_of(error) != "ConditionalCheckFailedException":
                raise
            item = error.response.get("Item")
            before = attempts_before(error.response)
            attempts += before
            failure, action = judge(action, item, repeated=before > 0)
            if failure is Failure.DONE:
                return action, _done(action, error, told)
            if failure is Failure.THEIRS or tries == MOST_TRIES:
                # An answer that was lost before may have been that of a write that others have written over.
                error.response["ResponseMetadata"]["RetryAttempts"] = attempts
                raise _own_error(action, error, told) from None
            action = raised(binding, action, item)
    raise AssertionError("not reached")


def raised(binding: Binding, action: GuardedAction, item: Mapping[str, Any] | None) -> GuardedAction:
    """The same action with a version above what is there, and with the lineage that is there joined to its own."""
    version, fits = binding.version_after(version_of(item))
    text = action.text
    if action.old_text is not None and action.old_text == lineage_text(item):
        text = binding.text_of(binding.lineage_of([action.text]) | binding.lineage_of([action.old_text]))
    action = replace(action, version=version, text=text)
    return action if fits else action.given_up()


def _record(write: Write, action: GuardedAction, result: Mapping[str, Any]) -> None:
    if action.changes_nothing:
        write.abandon()
    elif action.unguarded:
        write.record_incomplete(
            "contention", "the item holds a version beyond all others, or others wrote all the time"
        )
    elif action.kind is Kind.DELETE and not action.leaves_tombstone:
        if result.get("Attributes"):
            write.record(deleted_version(action.version))
        else:  # nothing was there
            write.abandon()
    else:
        write.record(action.identity)


def _as_native(action: GuardedAction, result: dict[str, Any], told: Told) -> dict[str, Any]:
    """The result as DynamoDB gives it without us."""
    old = result.get("Attributes")
    if old is None:
        return result
    wanted = action.params.get("ReturnValues", "NONE")
    was_tombstone = is_tombstone(old) or action.mode is Mode.TOMBSTONE
    kept = stripped(old)
    if wanted != "NONE":
        told(action.table, {**action.params.get("Key", {}), **old}, wanted in {"ALL_OLD", "ALL_NEW"})
    if wanted == "NONE" or not kept or (wanted in {"ALL_OLD", "UPDATED_OLD"} and was_tombstone):
        del result["Attributes"]
    else:
        result["Attributes"] = kept
    return result


def _done(action: GuardedAction, error: ClientError, told: Told) -> dict[str, Any]:
    """The result of a write that was done at an attempt whose answer was lost."""
    result: dict[str, Any] = {"ResponseMetadata": {**error.response["ResponseMetadata"], "HTTPStatusCode": 200}}
    item, wanted = error.response.get("Item"), action.params.get("ReturnValues", "NONE")
    if item and wanted in {"ALL_NEW", "UPDATED_NEW"}:
        result["Attributes"] = item
    elif wanted in {"ALL_OLD", "UPDATED_OLD"}:  # nobody knows any more what was there
        told(action.table, {}, False)
    return result


def _own_error(action: GuardedAction, error: ClientError, told: Told) -> ClientError:
    """The error of the application's own condition, as DynamoDB gives it without us."""
    item = error.response.pop("Item", None)
    wanted = action.params.get("ReturnValuesOnConditionCheckFailure") == "ALL_OLD"
    if wanted and item:
        told(action.table, item, True)
    if wanted and item and not is_tombstone(item):
        error.response["Item"] = stripped(item)
    return error
