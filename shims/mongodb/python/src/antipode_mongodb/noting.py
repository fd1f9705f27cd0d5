"""What a recorded history is told of documents (spec HIST-28).

Where documents have versions, each says itself which write it is; of a replica set whole documents have digests.
"""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence
from datetime import datetime
from typing import TYPE_CHECKING, Any, Final

import bson
from antipode.shim import GONE, THERE, KeyChange, ReadValue, Write, noting, value_digest
from bson.codec_options import CodecOptions
from bson.datetime_ms import DatetimeMS
from bson.regex import Regex
from pymongo.operations import DeleteMany, DeleteOne, InsertOne, ReplaceOne, UpdateMany, UpdateOne

from antipode_mongodb.binding import Binding
from antipode_mongodb.fields import OURS, identity_of
from antipode_mongodb.keys import key_octets

if TYPE_CHECKING:
    from antipode_mongodb.reading import CursorRead
    from antipode_mongodb.writing import BoundCollection

_NO_NAMES: Final = (type(None), list, tuple, re.Pattern, Regex)
"""As an `_id` in a filter they stand for more than one document, or for none."""


def only_name(filter: Any) -> tuple[Any] | None:
    """The one `_id` that a filter asks for, and nothing else."""
    if not isinstance(filter, Mapping) or list(filter) != ["_id"]:
        return None
    name = filter["_id"]
    if isinstance(name, _NO_NAMES) or (isinstance(name, Mapping) and next(iter(name), "$").startswith("$")):
        return None
    return (name,)


# Writes where documents have versions. Each is called only where `write.noted` is something.


@noting
def put(at: BoundCollection, write: Write, name: Any, document: Mapping[str, Any]) -> None:
    """This document stands under its name from now on."""
    _tell(write, [_put(at, name, document)])


@noting
def changing(at: BoundCollection, write: Write, filter: Any, change: Any, *, replaces: bool) -> None:
    """One document, or a new one, is about to be changed."""
    found = only_name(filter)
    if found is None:
        _tell(write, None)
    elif replaces:
        put(at, write, found[0], change)
    else:
        changed(at, write, found[0], change, late=True)


@noting
def changed(at: BoundCollection, write: Write, name: Any, change: Any, *, late: bool = False) -> None:
    """A document has been changed; `late`: the version came after the change."""
    _tell(write, [KeyChange(at.key(name), THERE, _may_be_dated(change), late_version=late)])


@noting
def gone(at: BoundCollection, write: Write, name: Any) -> None:
    """A document is deleted."""
    _tell(write, [KeyChange(at.key(name), GONE)])


@noting
def deleting(at: BoundCollection, write: Write, filter: Any) -> None:
    """One document is about to be deleted."""
    found = only_name(filter)
    _tell(write, None if found is None else [KeyChange(at.key(found[0]), GONE)])


# Writes to a replica set

UNSENT: Final = object()
"""In place of a result: none has come yet."""


@noting
def positioned(at: BoundCollection, name: str, given: Mapping[str, Any], write: Write, result: Any) -> None:
    """An operation of a collection, before it is sent (`UNSENT`) and when its result has come."""
    if result is not UNSENT and getattr(result, "acknowledged", True) is False:
        _tell(write, None)
    elif name == "bulk_write":
        _tell(write, _of_bulk(at, given["requests"], result))
    else:
        _tell(write, _of_one(at, name, given, result))


def _of_one(at: BoundCollection, name: str, given: Mapping[str, Any], result: Any) -> Sequence[KeyChange] | None:
    if name == "insert_one":
        return [_put(at, given["document"]["_id"], given["document"])]
    if name == "insert_many":
        return [_put(at, each["_id"], each) for each in given["documents"]]
    found = only_name(given.get("filter"))
    if found is None:
        return None
    if result is not UNSENT and _did_nothing(name, given, result):
        return ()
    if "delete" in name:
        return [KeyChange(at.key(found[0]), GONE)]
    if "replacement" in given:
        return [_put(at, found[0], given["replacement"])]
    return [KeyChange(at.key(found[0]), THERE, _may_be_dated(given["update"]))] if "update" in given else None


def _did_nothing(name: str, given: Mapping[str, Any], result: Any) -> bool:
    if name.startswith("find_one_and_"):  # of an upsert that inserts, what was there before is nothing
        return result is None and not given.get("upsert")
    if "delete" in name:
        return bool(result.deleted_count == 0)
    return bool(result.matched_count == 0 and result.upserted_id is None)


def _of_bulk(at: BoundCollection, requests: Sequence[Any], result: Any) -> Sequence[KeyChange] | None:
    """The result does not say which requests matched; where all did, or it has not come, each did what it says."""
    made: list[KeyChange] = []
    changes = deletions = 0
    for each in requests:
        if isinstance(each, InsertOne):
            made.append(_put(at, each._doc["_id"], each._doc))
            continue
        found = only_name(each._filter)
        if found is None:
            return None
        if isinstance(each, DeleteOne | DeleteMany):
            deletions += 1
            made.append(KeyChange(at.key(found[0]), GONE))
        elif isinstance(each, ReplaceOne):
            changes += 1
            made.append(_put(at, found[0], each._doc))
        elif isinstance(each, UpdateOne | UpdateMany):
            changes += 1
            made.append(KeyChange(at.key(found[0]), THERE, _may_be_dated(each._doc)))
        else:
            return None
    if result is UNSENT:
        return made
    whole = result.matched_count + result.upserted_count == changes and result.deleted_count == deletions
    return made if whole else None


def _tell(write: Write, changes: Sequence[KeyChange] | None) -> None:
    if write.noted is not None:
        write.noted.changes(changes)


# Reads


def wants_versions(binding: Binding) -> bool:
    """Whether documents are asked for their versions, too."""
    return binding.notes and not binding.flavour.positions


def of_cursor(seen: CursorRead, cursor: Any) -> list[ReadValue]:
    """The first documents of a cursor; what else its filter might have found is not known, unless it is one name's."""
    documents, codec = cursor._data, cursor._collection.codec_options
    name = None if seen.raw else only_name(cursor._spec)
    found: list[ReadValue] = []
    whole = seen.whole and not (cursor._return_key or cursor._show_record_id)
    for each in () if seen.raw else documents:
        if "_id" in each:
            found.append(_found(seen.binding, seen.namespace, codec, each, whole))
        else:
            name = None
    narrowed = cursor._skip or cursor._min or cursor._max or cursor._hint or cursor._collation
    if name is not None and not (documents or narrowed or cursor._id):
        found.append(ReadValue(key_octets(seen.namespace, name[0], codec), GONE))
    elif name is None or not documents:
        found.append(ReadValue(seen.namespace.encode("utf-8", "surrogatepass")))
    return found


def _found(
    binding: Binding, namespace: str, codec: CodecOptions[Any], document: Mapping[str, Any], whole: bool
) -> ReadValue:
    key = key_octets(namespace, document["_id"], codec)
    version = None if binding.flavour.positions or binding.unknown else identity_of(document)
    exact = None if version is None else binding.store.write_id(key, version)
    return ReadValue(key, _digest(binding.store.name, key, document, codec) if whole else None, exact)


# Values


def _put(at: BoundCollection, name: Any, document: Mapping[str, Any]) -> KeyChange:
    key = at.key(name)
    value = _digest(at.store, key, {**document, "_id": name}, at.low.codec_options)
    return KeyChange(key, value, _may_go(document) or _is_date(name))


def _digest(store: str, key: bytes, document: Mapping[str, Any], codec: CodecOptions[Any]) -> str:
    kept = {name: value for name, value in document.items() if name not in OURS}
    return value_digest(store, key, bson.encode(kept, codec_options=codec))  # it puts the _id first


def _may_be_dated(update: Any) -> bool:
    """Whether an update may leave a date; what a pipeline leaves its text does not say."""
    return isinstance(update, list | tuple) or "$currentDate" in update or _may_go(update)


def _may_go(value: Any) -> bool:
    """Whether a TTL index may take the document away that has this: such have dates."""
    if isinstance(value, Mapping):
        return any(map(_may_go, value.values()))
    if isinstance(value, list | tuple):
        return any(map(_may_go, value))
    return _is_date(value)


def _is_date(value: Any) -> bool:
    return isinstance(value, datetime | DatetimeMS)
