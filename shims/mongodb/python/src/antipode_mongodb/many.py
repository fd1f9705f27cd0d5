"""`update_many` and `delete_many` where documents have versions of their own: which documents it was is asked first."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any, Final

from antipode.shim import Write
from antipode.shim.both_ways import BlockingCall, Steps
from pymongo.errors import PyMongoError
from pymongo.results import DeleteResult, UpdateResult

from antipode_mongodb import noting, tombstones
from antipode_mongodb.fields import NAME_AND_VERSION, dressed_update, identity_of, may_drop, own_chain, version_of
from antipode_mongodb.outcome import SEVERAL, incomplete, settle
from antipode_mongodb.writing import DROPPED, NEVER, BoundCollection, above_tombstone, bury, raised, record

MOST: Final = 512
"""A lineage holds no more entries (WIRE-32), so of more documents none is recorded by itself."""
_FIND_OPTIONS: Final = ("collation", "hint", "session", "let")


def _found(at: BoundCollection, filter: Any, options: Mapping[str, Any]) -> Steps[list[Mapping[str, Any]]]:
    """The documents that a filter means now, with their versions; one more than `MOST` at most."""
    asked = {word: options[word] for word in _FIND_OPTIONS if options.get(word) is not None}
    found: list[Mapping[str, Any]] = yield at.ours.find(filter, NAME_AND_VERSION, limit=MOST + 1, **asked).to_list()
    return found


def _these(filter: Any, names: Sequence[Any]) -> dict[str, Any]:
    """A filter, of these documents alone."""
    chosen = {"_id": {"$in": list(names)}}
    return {"$and": [filter, chosen]} if filter else chosen


def update_many(
    at: BoundCollection, filter: Any, update: Any, upsert: bool, options: dict[str, Any]
) -> Steps[UpdateResult]:
    """`update_many`: one version for all that it changes."""
    binding = at.binding
    binding.observe_scope()
    text = binding.text_at_rest()
    found = yield from _found(at, filter, options)
    if upsert and not found:
        return (yield from _upserted(at, filter, update, text, options))
    for each in found:
        seen = version_of(each)
        if seen is not None:
            binding.clock.observe(seen)
    counter = binding.clock.next()
    too_many = len(found) > MOST
    writes = [binding.store.begin() for _ in (range(1) if too_many else found)]
    names = [each["_id"] for each in found]
    query = filter if too_many else _these(filter, names)
    try:
        sent = dressed_update(update, counter, text)
        result: UpdateResult = yield at.low.update_many(query, sent, upsert=False, **options)
    except BaseException as error:
        settle(writes, error, SEVERAL)
        raise
    if too_many:
        incomplete(writes, at.store, "many", f"one operation changed more than {MOST} documents")
    elif may_drop(update):
        incomplete(writes, at.store, "operation", DROPPED)
    elif not result.matched_count:
        for write in writes:
            write.abandon()
    else:
        yield from _settled(at, update, names, writes, counter)
    return result


def _settled(
    at: BoundCollection, update: Any, names: Sequence[Any], writes: Sequence[Write], counter: int
) -> Steps[None]:
    """The version of each document: another writer's may have been greater, and is raised then.

    A document that did not match any more is raised likewise, and was not changed: the lineage says too much then.
    """
    try:
        there = yield at.ours.find({"_id": {"$in": list(names)}}, NAME_AND_VERSION).to_list()
        versions = {at.key(each["_id"]): identity_of(each) for each in there}
        for name, write in zip(names, writes, strict=True):
            key = at.key(name)
            if key not in versions:  # deleted meanwhile
                write.record_incomplete("contention", "the document was deleted meanwhile")
                continue
            seen = versions[key]
            counted = None if seen is None else seen.counter
            if write.noted is not None:
                noting.changed(at, write, name, update, late=counted != counter)
            done = seen is not None and seen.epoch and counted == counter
            record(at, write, name, seen if done else (yield from raised(at, name, counted)))
    except Exception as error:  # the application's own operation was done
        left = [write for write in writes if write.is_open]
        incomplete(left, at.store, "contention", f"their versions cannot be told ({type(error).__name__})")


def _upserted(at: BoundCollection, filter: Any, update: Any, text: str, options: dict[str, Any]) -> Steps[UpdateResult]:
    """Nothing matched, so it inserts; a unique index refuses where that is not so any more."""
    counter = at.binding.clock.next()
    write = at.binding.store.begin()
    query = {"$and": [filter, NEVER]} if filter else NEVER
    left = {word: value for word, value in options.items() if word != "hint"}
    try:
        sent = dressed_update(update, counter, text, inserts=True)
        result: UpdateResult = yield at.low.update_many(query, sent, upsert=True, **left)
    except BaseException as error:
        settle([write], error)
        raise
    try:
        got = yield from above_tombstone(at, result.upserted_id, counter)
    except Exception as error:  # the application's own operation was done
        incomplete([write], at.store, "contention", f"its version cannot be told ({type(error).__name__})")
    else:
        if write.noted is not None:
            noting.changed(at, write, result.upserted_id, update)
        record(at, write, result.upserted_id, got)
    return result


def delete_many(at: BoundCollection, filter: Any, options: dict[str, Any]) -> Steps[DeleteResult]:
    """`delete_many`: a tombstone for each."""
    binding = at.binding
    binding.observe_scope()
    found = yield from _found(at, filter, options)
    too_many = len(found) > MOST
    writes = [binding.store.begin() for _ in (range(1) if too_many else found)]
    names = [each["_id"] for each in found]
    query = filter if too_many else _these(filter, names)
    try:
        result: DeleteResult = yield at.low.delete_many(query, **options)
    except BaseException as error:
        settle(writes, error, SEVERAL)
        raise
    if too_many:
        incomplete(writes, at.store, "many", f"one operation deleted more than {MOST} documents")
        return result
    try:
        left: set[bytes] = set()
        if result.deleted_count != len(found):  # some did not match any more, or were deleted by others
            there = yield at.ours.find({"_id": {"$in": names}}, {"_id": 1}).to_list()
            left = {at.key(each["_id"]) for each in there}
        gone = [(each, write) for each, write in zip(found, writes, strict=True) if at.key(each["_id"]) not in left]
        for each, write in zip(found, writes, strict=True):
            if at.key(each["_id"]) in left:
                write.abandon()
        yield from _buried(at, gone)
    except Exception as error:  # the application's own operation was done
        open_ones = [write for write in writes if write.is_open]
        incomplete(open_ones, at.store, "tombstone", f"tombstones cannot be written ({type(error).__name__})")
    return result


def _buried(at: BoundCollection, gone: Sequence[tuple[Mapping[str, Any], Write]]) -> Steps[None]:
    """Tombstones of several documents, in one request; those that met a greater one are made again by themselves."""
    from pymongo import UpdateOne

    binding = at.binding
    for each, write in gone:
        if write.noted is not None:
            noting.gone(at, write, each["_id"])
    together: list[tuple[Mapping[str, Any], Write]] = []
    several = len(gone) > 1 and (yield BlockingCall(lambda: binding.has_tombstones(at.database)))
    for each, write in gone:
        seen = version_of(each)
        if several and (seen is None or binding.clock.observe(seen)):
            together.append((each, write))
        else:  # a version that the clock does not take is passed for its document alone (SHIM-28)
            yield from bury(at, write, each["_id"], identity_of(each), surely=False)
    if not together:
        return
    counter = binding.clock.next()
    places = [tombstones.name_of(at.key(each["_id"])) for each, _ in together]
    marks: list[Any] = [
        UpdateOne({"_id": place}, tombstones.marking(counter, *_chains(each, counter)), upsert=True)
        for (each, _), place in zip(together, places, strict=True)
    ]
    try:
        yield at.tombs().bulk_write(marks, ordered=False)
        there = yield at.tombs().find({"_id": {"$in": places}}).to_list()
    except PyMongoError as error:
        incomplete(
            [write for _, write in together], at.store, "tombstone", f"they cannot be written ({type(error).__name__})"
        )
        return
    versions = {each["_id"]: version_of(each, tombstones.VERSION) for each in there}
    for (each, write), place in zip(together, places, strict=True):
        if versions.get(place) == counter:
            record(at, write, each["_id"], own_chain(counter))
        else:
            yield from bury(at, write, each["_id"], identity_of(each), surely=False)


def _chains(document: Mapping[str, Any], counter: int) -> set[str]:
    """The chains that a tombstone ends: the document's, as it was found, and the deletion's own."""
    there = identity_of(document)
    return {own_chain(counter).epoch} | ({there.epoch} if there is not None and there.epoch else set())
