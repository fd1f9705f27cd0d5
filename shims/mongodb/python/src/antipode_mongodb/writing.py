"""Writes of one document where documents have versions of their own (spec SHIM-8 to SHIM-10, SHIM-24 to SHIM-30).

An update or a replacement is sent as `findAndModify`: its answer says which document it was, and which version that
had. Where that was not smaller than ours, the version alone is raised once more: what follows the write in the log
proves it. The application's filter, operators and errors stay its own.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any, Final

from antipode import Ordered
from antipode.shim import Write
from antipode.shim.both_ways import BlockingCall, Steps
from antipode.shim.objects import deleted_version
from bson.codec_options import CodecOptions
from pymongo.collection import ReturnDocument
from pymongo.errors import DuplicateKeyError, OperationFailure, PyMongoError, WriteError
from pymongo.results import DeleteResult, UpdateResult

from antipode_mongodb import noting, tombstones
from antipode_mongodb.binding import Binding
from antipode_mongodb.fields import (
    CHAIN,
    LINEAGE,
    MORE,
    MOST_TEXTS,
    NAME_AND_VERSION,
    OWN_PROJECTION,
    VERSION,
    dressed_document,
    dressed_update,
    identity_of,
    may_drop,
    own_chain,
    replacing_pipeline,
    stored,
    texts_of,
    version_of,
)
from antipode_mongodb.keys import key_octets
from antipode_mongodb.outcome import incomplete, is_refusal, settle

NEVER: Final[dict[str, Any]] = {VERSION: {"$in": []}}
"""What no document matches: an upsert with it inserts, or finds that its document is there by now."""
DROPPED: Final = (
    "a pipeline with other stages than $set may take the version away, and its answer does not say which that was; "
    "ask for the document before the change, or use $set"
)
_MOST_TRIES: Final = 10
_UPSERT_TRIES: Final = 3


@dataclass(frozen=True, slots=True)
class BoundCollection:
    """One collection of a wrapped client."""

    binding: Binding
    low: Any
    """The plain collection, by the wrapped client's connections and sessions."""
    ours: Any
    """The same, whose answers are dictionaries."""
    namespace: str

    @property
    def store(self) -> str:
        """The store's name."""
        return self.binding.store.name

    @property
    def database(self) -> str:
        """The database's name."""
        return str(self.low.database.name)

    def key(self, name: Any) -> bytes:
        """The key of the document with this `_id`."""
        codec: CodecOptions[Any] = self.low.codec_options
        return key_octets(self.namespace, name, codec)

    def tombs(self) -> Any:
        """The collection of tombstones."""
        plain = type(self.ours)
        made = plain(self.ours.database, tombstones.COLLECTION, codec_options=self.ours.codec_options)
        return as_plain(made, plain)


def as_plain(collection: Any, kind: type[Any]) -> Any:
    """Make a collection of our own plain, which a wrapped client's database has made record."""
    collection.__class__ = kind
    return collection


@dataclass(slots=True)
class Change:
    """An update or a replacement of one document."""

    filter: Any
    change: Any
    replaces: bool
    upsert: bool
    options: dict[str, Any]

    def dressed(self, counter: int | None, text: str, *, inserts: bool = False) -> Any:
        """What is sent, with what of ours goes with it; a replacement of what is there keeps its chain."""
        if not self.replaces:
            return dressed_update(self.change, counter, text, inserts=inserts)
        return (
            dressed_document(self.change, counter, text) if inserts else replacing_pipeline(self.change, counter, text)
        )

    def note(self, at: BoundCollection, write: Write, name: Any, *, late: bool) -> None:
        """Tells a recorded history of which document it was. late: its version came after it."""
        if self.replaces:
            noting.put(at, write, name, self.change)
        else:
            noting.changed(at, write, name, self.change, late=late)


@dataclass(slots=True)
class ChangeOutcome:
    """What became of a change."""

    value: Any = None
    """What the application's `find_one_and_…` gives, with our fields in it."""
    matched: bool = False
    result: UpdateResult | None = None
    """Of an upsert that inserted."""


def change_one(at: BoundCollection, change: Change) -> Steps[UpdateResult]:
    """`update_one` and `replace_one`."""
    done = yield from run_change(at, change, dict(OWN_PROJECTION), ReturnDocument.BEFORE, at.ours, plain_errors=True)
    if done.result is not None:
        return done.result
    number = int(done.matched)
    raw = {"n": number, "nModified": number, "ok": 1.0, "updatedExisting": done.matched}
    return UpdateResult(raw, acknowledged=True)


def run_change(
    at: BoundCollection, change: Change, projection: Any, give: bool, collection: Any, *, plain_errors: bool = False
) -> Steps[ChangeOutcome]:
    """One change of one document, recorded.

    give: whether the document is wanted as it is after the change. plain_errors: errors are those of an update's reply.
    """
    binding = at.binding
    binding.observe_scope()
    text = binding.text_at_rest()
    write = binding.store.begin()
    if write.noted is not None:
        noting.changing(at, write, change.filter, change.change, replaces=change.replaces)
    try:
        for tries in range(_UPSERT_TRIES):
            counter = binding.clock.next()
            found = yield from _changed(at, change, projection, give, collection, counter, text)
            if found is not None or not change.upsert:
                break
            try:
                return (yield from _inserted(at, change, write, projection, give, collection, text))
            except DuplicateKeyError:
                if tries == _UPSERT_TRIES - 1:
                    raise
    except BaseException as error:
        settle([write], error)
        if plain_errors and type(error) is OperationFailure:
            raise WriteError(error._message, error.code, error.details) from None
        raise
    if found is None:
        write.abandon()
        return ChangeOutcome()
    yield from _settled(at, change, write, found, give, counter, text)
    return ChangeOutcome(found, matched=True)


def _changed(
    at: BoundCollection, change: Change, projection: Any, give: bool, collection: Any, counter: int, text: str
) -> Steps[Any]:
    sent, send = change.dressed(counter, text), collection.find_one_and_update
    return (yield send(change.filter, sent, projection=projection, return_document=give, **change.options))


def _settled(
    at: BoundCollection, change: Change, write: Write, found: Mapping[str, Any], give: bool, counter: int, text: str
) -> Steps[None]:
    """The version that the change has got, once it is known."""
    name, seen, there = found["_id"], version_of(found), identity_of(found)
    if give is ReturnDocument.AFTER and not change.replaces and may_drop(change.change):
        incomplete([write], at.store, "operation", DROPPED)
        return
    passed = seen == counter if give is ReturnDocument.AFTER else seen is None or seen < counter
    try:
        got: Ordered | None = None
        if passed and not may_drop(change.change) and there is not None and there.epoch:
            got = Ordered(there.epoch, counter)
        else:  # what follows says which chain it has now
            got = yield from raised(at, name, counter if passed else seen)
            if there is not None and there.epoch and got is not None and got.epoch != there.epoch:
                yield from _ended(at, name, there)
        if not change.replaces and text and len(texts_of(found)) >= MOST_TEXTS:
            yield from _joined(at, name)
    except Exception as error:  # the application's own operation was done
        incomplete([write], at.store, "contention", f"its version cannot be told ({type(error).__name__})")
        return
    if write.noted is not None:
        change.note(at, write, name, late=not passed)
    record(at, write, name, got)


def _ended(at: BoundCollection, name: Any, there: Ordered) -> Steps[None]:
    """Leave a tombstone of a document's chain that a pipeline took away: all that was of it lies before this."""
    if not (yield BlockingCall(lambda: at.binding.has_tombstones(at.database))):
        return
    where, change = {"_id": tombstones.name_of(at.key(name))}, tombstones.marking(there.counter, there.epoch)
    yield at.tombs().update_one(where, change, upsert=True)


def record(at: BoundCollection, write: Write, name: Any, got: Ordered | None) -> None:
    """The document with this `_id` has this version; None: none could be had."""
    if got is None:
        write.record_incomplete("contention", "the document is gone, or holds a version beyond all others")
        return
    write.record(got, at.key(name))


def raised(at: BoundCollection, name: Any, seen: int | None) -> Steps[Ordered | None]:
    """Raises the version of a document above what was seen there, in its chain, which it begins where there is none.

    None where the document is gone, or no version is left.
    """
    options: dict[str, Any] = {"projection": NAME_AND_VERSION, "return_document": True}
    for _ in range(_MOST_TRIES):
        counter = at.binding.version_after(seen)
        if counter is None:
            return None
        change = {"$max": {VERSION: stored(counter)}}
        found = yield at.ours.find_one_and_update({"_id": name}, change, **options)
        if found is None:
            return None
        if found.get(CHAIN) is None:  # of an earlier release, or without Antipode: the version alone proves nothing
            only = {"_id": name, CHAIN: None}
            begun = change | {"$set": {CHAIN: stored(counter)}}
            found = (yield at.ours.find_one_and_update(only, begun, **options)) or found
        seen, got = version_of(found), identity_of(found)
        if seen == counter and got is not None and got.epoch:
            return got
    return None


def _joined(at: BoundCollection, name: Any) -> Steps[None]:
    """Makes one text of those that rest beside a document, unless another writer is there at once."""
    found = yield at.ours.find_one({"_id": name}, {LINEAGE: 1, MORE: 1})
    if not found or not isinstance(found.get(MORE), list):
        return
    text = at.binding.text_of(at.binding.lineage_of(texts_of(found)))
    there = {word: found[word] for word in (LINEAGE, MORE) if word in found}
    yield at.ours.update_one({"_id": name, **there}, {"$set": {LINEAGE: text}, "$unset": {MORE: ""}})


def _inserted(
    at: BoundCollection, change: Change, write: Write, projection: Any, give: bool, collection: Any, text: str
) -> Steps[ChangeOutcome]:
    """The part of an upsert that inserts. Raises DuplicateKeyError where a document is there by now."""
    counter = at.binding.clock.next()
    sent = change.dressed(counter, text, inserts=True)
    query = {"$and": [change.filter, NEVER]} if change.filter else NEVER
    send = at.low.replace_one if change.replaces else at.low.update_one
    options = {word: value for word, value in change.options.items() if word not in ("sort", "hint")}
    if "bypassDocumentValidation" in options:
        options["bypass_document_validation"] = options.pop("bypassDocumentValidation")
    result: UpdateResult = yield send(query, sent, upsert=True, **options)
    name = result.upserted_id
    value = None
    try:
        got = yield from above_tombstone(at, name, counter)
        if give is ReturnDocument.AFTER:
            value = yield collection.find_one({"_id": name}, projection, session=options.get("session"))
    except Exception as error:  # it was done
        incomplete([write], at.store, "contention", f"its version cannot be told ({type(error).__name__})")
    else:
        if write.noted is not None:
            change.note(at, write, name, late=False)
        record(at, write, name, got)
    return ChangeOutcome(value, matched=False, result=result)


def above_tombstone(at: BoundCollection, name: Any, counter: int) -> Steps[Ordered | None]:
    """The version of a document that was just inserted, above any tombstone that was there before it.

    One that is written after the insertion speaks of a later deletion, and lies behind the insertion in the log.
    """
    if not (yield BlockingCall(lambda: at.binding.has_tombstones(at.database))):
        return own_chain(counter)
    where = {"_id": tombstones.name_of(at.key(name))}
    found = yield at.tombs().find_one(where)
    buried = version_of(found, tombstones.VERSION)
    if buried is None or buried < counter:
        return own_chain(counter)
    return (yield from raised(at, name, buried))


# Deletions


def delete_one(at: BoundCollection, filter: Any, options: dict[str, Any]) -> Steps[DeleteResult]:
    """`delete_one`."""
    value = yield from run_deletion(at, filter, NAME_AND_VERSION, at.ours, options, plain_errors=True)
    return DeleteResult({"n": int(value is not None), "ok": 1.0}, acknowledged=True)


def run_deletion(
    at: BoundCollection,
    filter: Any,
    projection: Any,
    collection: Any,
    options: dict[str, Any],
    *,
    plain_errors: bool = False,
) -> Steps[Any]:
    """The deletion of one document, recorded; what it was."""
    binding = at.binding
    binding.observe_scope()
    write = binding.store.begin()
    if write.noted is not None:
        noting.deleting(at, write, filter)
    try:
        found = yield collection.find_one_and_delete(filter, projection=projection, **options)
    except BaseException as error:
        settle([write], error)
        if plain_errors and type(error) is OperationFailure:
            raise WriteError(error._message, error.code, error.details) from None
        raise
    if found is None:
        write.abandon()
        return None
    yield from bury(at, write, found["_id"], identity_of(found))
    return found


def bury(at: BoundCollection, write: Write, name: Any, there: Ordered | None, *, surely: bool = True) -> Steps[None]:
    """Leaves a tombstone of a document that is gone, and records the deletion.

    there: the version that it had. surely: it was that very document, and no later one of the same name.
    """
    binding, seen = at.binding, None if there is None else there.counter
    if write.noted is not None:
        noting.gone(at, write, name)
    counter = binding.version_after(seen)
    if counter is None:
        write.record_incomplete("contention", "the document held a version beyond all others")
        return
    try:
        if not (yield BlockingCall(lambda: binding.has_tombstones(at.database))):
            write.record(deleted_version(counter), at.key(name))
            return
        for _ in range(_MOST_TRIES):
            own = f"{counter:x}"
            gone = there.epoch if there is not None and there.epoch else own
            epoch = gone if surely else own
            where, change = {"_id": tombstones.name_of(at.key(name))}, tombstones.marking(counter, *{gone, epoch})
            options: dict[str, Any] = {"upsert": True, "return_document": True, "projection": {tombstones.VERSION: 1}}
            try:
                found = yield at.tombs().find_one_and_update(where, change, **options)
            except DuplicateKeyError:  # two upserts at once
                continue
            got = version_of(found, tombstones.VERSION)
            if got == counter:
                write.record(Ordered(epoch, counter), at.key(name))
                return
            after = binding.version_after(got)
            if after is None:
                break
            counter = after
        write.record_incomplete("contention", "others wrote its tombstone all the time")
    except (PyMongoError, OSError) as error:  # the application's own operation was done
        reason = "rights" if is_refusal(error) else "tombstone"
        incomplete([write], at.store, reason, f"a tombstone cannot be written ({type(error).__name__})")
