"""Insertions where documents have versions of their own."""

from __future__ import annotations

from collections.abc import Mapping, MutableMapping
from typing import Any

from antipode import settings
from antipode.shim import Write
from antipode.shim.both_ways import BlockingCall, Steps
from bson.objectid import ObjectId
from pymongo.errors import BulkWriteError
from pymongo.results import InsertManyResult, InsertOneResult

from antipode_mongodb import noting, tombstones
from antipode_mongodb.fields import dressed_document, own_chain, stripped, version_of
from antipode_mongodb.outcome import BATCHES, ONE, incomplete, settle
from antipode_mongodb.writing import BoundCollection, above_tombstone, raised, record


def can_insert(document: Any) -> bool:
    """Whether a document can get our fields: the client itself adds an `_id` to such ones."""
    return isinstance(document, MutableMapping) or (isinstance(document, Mapping) and "_id" in document)


def insert_one(at: BoundCollection, document: Any, options: dict[str, Any]) -> Steps[InsertOneResult]:
    """`insert_one`."""
    binding = at.binding
    fresh = "_id" not in document
    if fresh:
        document["_id"] = ObjectId()
    name = document["_id"]
    binding.observe_scope()
    counter = binding.clock.next()
    sent = dressed_document(document, counter, binding.text_at_rest())
    write = binding.store.begin()
    if write.noted is not None:
        noting.put(at, write, name, document)
    try:
        result: InsertOneResult = yield at.low.insert_one(sent, **options)
    except BaseException as error:
        settle([write], error)
        raise
    if fresh:  # nobody can have used that name before
        record(at, write, name, own_chain(counter))
        return result
    try:
        got = yield from above_tombstone(at, name, counter)
    except Exception as error:  # the application's own operation was done
        incomplete([write], at.store, "contention", f"its version cannot be told ({type(error).__name__})")
    else:
        record(at, write, name, got)
    return result


def insert_many(at: BoundCollection, documents: list[Any], options: dict[str, Any]) -> Steps[InsertManyResult]:
    """`insert_many`: one request, and one version for all."""
    binding = at.binding
    used = []
    for document in documents:
        if "_id" in document:
            used.append(document["_id"])
        else:
            document["_id"] = ObjectId()
    binding.observe_scope()
    counter = binding.clock.next()
    text = binding.text_at_rest()
    sent = [dressed_document(document, counter, text) for document in documents]
    writes = [binding.store.begin() for _ in documents]
    if settings().history:
        for write, document in zip(writes, documents, strict=True):
            noting.put(at, write, document["_id"], document)
    try:
        result: InsertManyResult = yield at.low.insert_many(sent, **options)
    except BulkWriteError as error:
        done = _done(error, len(writes), ordered=options.get("ordered", True))
        for index in set(range(len(writes))) - done:
            writes[index].abandon()
        yield from _record(at, [(documents[i]["_id"], writes[i]) for i in sorted(done)], used, counter)
        for failed in error.details["writeErrors"]:
            if isinstance(failed.get("op"), dict):
                stripped(failed["op"])
        raise
    except BaseException as error:
        settle(writes, error, BATCHES if len(writes) > 1 else ONE)
        raise
    yield from _record(at, list(zip((each["_id"] for each in documents), writes, strict=True)), used, counter)
    return result


def _done(error: BulkWriteError, count: int, *, ordered: bool) -> set[int]:
    """Which insertions happened."""
    failed = {int(each["index"]) for each in error.details.get("writeErrors", [])}
    if ordered and failed:
        return set(range(min(failed)))
    return set(range(count)) - failed


def _record(at: BoundCollection, writes: list[tuple[Any, Write]], used: list[Any], counter: int) -> Steps[None]:
    """Records insertions; those whose names were given may have had documents and tombstones before."""
    buried: dict[str, int] = {}
    try:
        if used and (yield BlockingCall(lambda: at.binding.has_tombstones(at.database))):
            names = [tombstones.name_of(at.key(name)) for name in used]
            found = yield at.tombs().find({"_id": {"$in": names}}).to_list()
            buried = {each["_id"]: version_of(each, tombstones.VERSION) or 0 for each in found}
        for name, write in writes:
            seen = buried.get(tombstones.name_of(at.key(name)), -1)
            got = own_chain(counter) if seen < counter else (yield from raised(at, name, seen))
            record(at, write, name, got)
    except Exception as error:  # the application's own operation was done
        left = [write for _, write in writes if write.is_open]
        incomplete(left, at.store, "contention", f"their versions cannot be told ({type(error).__name__})")
