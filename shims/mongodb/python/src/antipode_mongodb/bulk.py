"""`bulk_write` where documents have versions of their own: each operation by itself, insertions that follow together.

Which document an operation of a bulk changed is nowhere in the server's reply.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any, Final

from antipode.shim.both_ways import Steps
from pymongo.errors import BulkWriteError, WriteError
from pymongo.operations import DeleteMany, DeleteOne, InsertOne, ReplaceOne, UpdateMany, UpdateOne
from pymongo.results import BulkWriteResult

from antipode_mongodb.fields import is_replacement, is_update
from antipode_mongodb.inserting import can_insert, insert_many
from antipode_mongodb.many import delete_many, update_many
from antipode_mongodb.outcome import details_of
from antipode_mongodb.writing import BoundCollection, Change, change_one, delete_one

_KINDS: Final = (InsertOne, UpdateOne, UpdateMany, ReplaceOne, DeleteOne, DeleteMany)
_OPTIONS: Final = {
    "_collation": "collation",
    "_array_filters": "array_filters",
    "_hint": "hint",
    "_sort": "sort",
}


def can_take_apart(requests: Any) -> bool:
    """Whether every request is of a kind that is known, and can be sent. What is not the client refuses itself."""
    return bool(requests) and all(isinstance(each, _KINDS) and _is_sound(each) for each in requests)


def _is_sound(request: Any) -> bool:
    if isinstance(request, InsertOne):
        return can_insert(request._doc)
    if isinstance(request, ReplaceOne):
        return is_replacement(request._doc)
    if isinstance(request, UpdateOne | UpdateMany):
        return is_update(request._doc)
    return True


class _Tally:
    """The reply of a bulk, as it grows."""

    def __init__(self) -> None:
        self.reply: dict[str, Any] = {
            "writeErrors": [],
            "writeConcernErrors": [],
            "nInserted": 0,
            "nUpserted": 0,
            "nMatched": 0,
            "nModified": 0,
            "nRemoved": 0,
            "upserted": [],
        }

    def add(self, word: str, count: int) -> None:
        self.reply[word] += count

    def failed(self, index: int, error: WriteError, op: Mapping[str, Any]) -> None:
        details = details_of(error)
        message = details.get("errmsg", str(error))
        self.reply["writeErrors"].append({"index": index, "code": error.code, "errmsg": message, "op": dict(op)})


def bulk_write(
    at: BoundCollection, requests: Sequence[Any], ordered: bool, shared: dict[str, Any], insert_options: dict[str, Any]
) -> Steps[BulkWriteResult]:
    """`bulk_write`; the result and the errors are those of one bulk.

    shared: session, let and comment. insert_options: what goes with insertions besides.
    """
    tally, place = _Tally(), 0
    order = list(range(len(requests)))
    if not ordered:  # as the client itself sends them
        order.sort(key=lambda index: _rank(requests[index]))
    while place < len(order):
        if isinstance(requests[order[place]], InsertOne):
            end = place
            while end < len(order) and isinstance(requests[order[end]], InsertOne):
                end += 1
            fine = yield from _insert(at, requests, order[place:end], ordered, tally, shared | insert_options)
            place = end
        else:
            fine = yield from _one(at, requests[order[place]], order[place], tally, shared, insert_options)
            place += 1
        if ordered and not fine:
            break
    if tally.reply["writeErrors"]:
        tally.reply["writeErrors"].sort(key=lambda error: error["index"])
        raise BulkWriteError(tally.reply)
    return BulkWriteResult(tally.reply, acknowledged=True)


def _rank(request: Any) -> int:
    """The place of a kind in a bulk without order: insertions, changes, deletions."""
    if isinstance(request, InsertOne):
        return 0
    return 2 if isinstance(request, DeleteOne | DeleteMany) else 1


def _insert(
    at: BoundCollection,
    requests: Sequence[Any],
    indexes: Sequence[int],
    ordered: bool,
    tally: _Tally,
    options: dict[str, Any],
) -> Steps[bool]:
    documents = [requests[index]._doc for index in indexes]
    options = {word: value for word, value in options.items() if word != "let"}
    try:
        yield from insert_many(at, documents, {"ordered": ordered, **options})
    except BulkWriteError as error:
        tally.add("nInserted", error.details["nInserted"])
        for failed in error.details["writeErrors"]:
            tally.reply["writeErrors"].append({**failed, "index": indexes[failed["index"]]})
        return False
    tally.add("nInserted", len(documents))
    return True


def _one(
    at: BoundCollection, request: Any, index: int, tally: _Tally, shared: dict[str, Any], more: dict[str, Any]
) -> Steps[bool]:
    options = dict(shared)
    for attribute, word in _OPTIONS.items():
        value = getattr(request, attribute, None)
        if value is not None:
            options[word] = value
    deletes, many = isinstance(request, DeleteOne | DeleteMany), isinstance(request, UpdateMany | DeleteMany)
    upsert = bool(getattr(request, "_upsert", False))
    try:
        if deletes:
            remove = delete_many if many else delete_one
            removed = yield from remove(at, request._filter, options)
            tally.add("nRemoved", removed.deleted_count)
            return True
        if many:
            word, value = "bypass_document_validation", more.get("bypass_document_validation")
            options |= {word: value} if value is not None else {}
            result = yield from update_many(at, request._filter, request._doc, upsert, options)
        else:
            value = more.get("bypass_document_validation")
            options |= {"bypassDocumentValidation": value} if value is not None else {}
            change = Change(request._filter, request._doc, isinstance(request, ReplaceOne), upsert, options)
            result = yield from change_one(at, change)
    except WriteError as error:
        tally.failed(index, error, _shown(request, deletes, many, upsert))
        return False
    tally.add("nMatched", result.matched_count)
    tally.add("nModified", result.modified_count or 0)
    if result.upserted_id is not None:
        tally.add("nUpserted", 1)
        tally.reply["upserted"].append({"index": index, "_id": result.upserted_id})
    return True


def _shown(request: Any, deletes: bool, many: bool, upsert: bool) -> dict[str, Any]:
    """An operation as it is in the details of an error."""
    if deletes:
        return {"q": request._filter, "limit": 0 if many else 1}
    return {"q": request._filter, "u": request._doc, "multi": many, "upsert": upsert}
