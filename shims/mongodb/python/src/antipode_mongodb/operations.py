"""Every operation of a collection, a database and a client that writes or reads data, by what it does to them."""

from __future__ import annotations

import functools
import inspect
from collections.abc import Callable, Mapping, Sequence
from typing import Any, Final

from antipode import EMPTY, Lineage
from antipode.shim import ReadValue, Write
from antipode.shim.both_ways import BlockingCall, Steps
from bson.objectid import ObjectId
from pymongo.collection import Collection, ReturnDocument
from pymongo.operations import InsertOne, ReplaceOne, UpdateMany, UpdateOne
from pymongo.write_concern import WriteConcern

from antipode_mongodb import noting
from antipode_mongodb.batches import watched
from antipode_mongodb.binding import Binding
from antipode_mongodb.bulk import bulk_write, can_take_apart
from antipode_mongodb.fields import (
    OURS,
    dressed_document,
    dressed_update,
    hiding,
    is_replacement,
    is_update,
    is_whole,
    stripped,
    widened,
)
from antipode_mongodb.inserting import can_insert, insert_many, insert_one
from antipode_mongodb.many import delete_many, update_many
from antipode_mongodb.outcome import ONE, SEVERAL, Parts, incomplete, parts_of, settle
from antipode_mongodb.positions import enlist, positioned
from antipode_mongodb.reading import DocumentRead, can_strip
from antipode_mongodb.writing import BoundCollection, Change, change_one, delete_one, run_change, run_deletion

Given = dict[str, Any]
_GIVING: Final = "find_one_and_"
INQUIRIES: Final = ("list_indexes", "list_search_indexes", "index_information", "options", "watch")
_PARAMETERS: Final = {
    name: tuple(inspect.signature(getattr(Collection, name)).parameters)[1:]
    for name in (
        *("insert_one", "insert_many", "replace_one", "update_one", "update_many", "delete_one", "delete_many"),
        *("find_one_and_delete", "find_one_and_replace", "find_one_and_update", "bulk_write", "drop", "rename"),
        *("aggregate", "count_documents", "estimated_document_count", "distinct", "aggregate_raw_batches"),
        *INQUIRIES,
    )
}


def given_to(name: str, args: Sequence[Any], kwargs: Mapping[str, Any]) -> Given:
    """The arguments of a call by their names. Raises TypeError where the client would."""
    names = _PARAMETERS[name]
    if len(args) > len(names) or any(names[index] in kwargs for index in range(len(args))):
        getattr(Collection, name)(None, *args, **kwargs)  # raises it, with its own words
    return {**dict(zip(names, args, strict=False)), **kwargs}


def concern_of(given: Mapping[str, Any], part: Any) -> Mapping[str, Any]:
    """The write concern that goes with a call: its own option, or else that of the client, database or collection."""
    own = given.get("writeConcern")
    if isinstance(own, Mapping):
        return own
    concern: WriteConcern = given.get("write_concern") or part.write_concern
    return concern.document


def ready(binding: Binding, client: Any) -> Steps[None]:
    """Finds out what the server is, where that is not known."""
    if not binding.known(client):
        yield BlockingCall(lambda: binding.learn(client))


def native(at: BoundCollection, reason: str, detail: str, call: Callable[[], Any], parts: Parts = ONE) -> Steps[Any]:
    """A write as it came: it is recorded, and no version of it can be had."""
    write = at.binding.store.begin()
    try:
        result = yield call()
    except BaseException as error:
        settle([write], error, parts)
        raise
    incomplete([write], at.store, reason, detail)
    return result


def write(at: BoundCollection, name: str, given: Given) -> Steps[Any]:
    """One operation of a collection that writes; one that gives the document waits as a read does (SHIM-44)."""
    if not name.startswith(_GIVING):
        return (yield from _written(at, name, given))
    with DocumentRead(at.binding, session=given.get("session")) as read:
        yield from read.waiting()
        result = yield from _written(at, name, given, read)
        if not read.told:
            read.mark()
        return result


def _written(at: BoundCollection, name: str, given: Given, read: DocumentRead | None = None) -> Steps[Any]:
    hides = read is not None

    def plain() -> Any:
        hidden = {"projection": hiding(given.get("projection"))} if hides else {}
        return getattr(at.low, name)(**{**given, **hidden})

    binding, parts = at.binding, parts_of(name)
    binding.refresh()
    if not binding.records:
        return (yield plain())
    client = at.low.database.client
    yield from ready(binding, client)
    session = given.get("session")
    if binding.unfit:
        return (yield from native(at, "unfit", binding.unfit, plain, parts))
    if binding.unknown:
        return (yield from native(at, "unfit", binding.flavour.why_none, plain, parts))
    if binding.flavour.positions:
        binding_text = binding.text_at_rest()
        dressed = _dressed(name, given, binding_text)
        send = getattr(at.low, name)
        call = lambda used: send(**{**dressed, "session": used})  # noqa: E731
        note = functools.partial(noting.positioned, at, name, given) if binding.notes else None
        concern = concern_of(given, at.low)
        return (yield from positioned(binding, client, concern, session, call, parts=parts, note=note))
    if session is not None and session.in_transaction:
        words = "a transaction on a server that gives no positions; wrap a client of a replica set"
        return (yield from native(at, "transaction", words, plain, parts))
    if not at.low.write_concern.acknowledged:
        return (yield from native(at, "concern", "w=0: nobody knows what became of them", plain, parts))
    if read is not None:
        steps = _FOUND[name](at, dict(given), read)
    else:
        handler = _VERSIONED.get(name)
        steps = None if handler is None else handler(at, dict(given))
    if steps is None:
        words = f"{name} carries no version here"
        return (yield from native(at, "operation", words, plain, parts))
    return (yield from steps)


def _dressed(name: str, given: Given, text: str) -> Given:
    """The arguments with the lineage that rests beside what is written, where positions are the versions."""
    made = dict(given)
    if name == "insert_one" and can_insert(given.get("document")):
        given["document"].setdefault("_id", ObjectId())
        made["document"] = dressed_document(given["document"], None, text)
    elif name == "insert_many" and isinstance(given.get("documents"), Sequence):
        documents = list(given["documents"])
        if documents and all(can_insert(each) for each in documents):
            for each in documents:
                each.setdefault("_id", ObjectId())
            made["documents"] = [dressed_document(each, None, text) for each in documents]
    elif name in ("replace_one", "find_one_and_replace") and is_replacement(given.get("replacement")):
        made["replacement"] = dressed_document(given["replacement"], None, text)
    elif name in ("update_one", "update_many", "find_one_and_update") and is_update(given.get("update")):
        made["update"] = dressed_update(given["update"], None, text)
    elif name == "bulk_write" and isinstance(given.get("requests"), Sequence):
        made["requests"] = [_dressed_request(each, text) for each in given["requests"]]
    if name.startswith(_GIVING):
        made["projection"] = hiding(given.get("projection"))
    return made


def _dressed_request(request: Any, text: str) -> Any:
    """A request of a bulk with the lineage beside it."""
    import copy

    if isinstance(request, InsertOne) and can_insert(request._doc):
        request._doc.setdefault("_id", ObjectId())
        return InsertOne(dressed_document(request._doc, None, text), namespace=request._namespace)
    made = copy.copy(request)
    if isinstance(request, ReplaceOne) and is_replacement(request._doc):
        made._doc = dressed_document(request._doc, None, text)
    elif isinstance(request, UpdateOne | UpdateMany) and is_update(request._doc):
        made._doc = dressed_update(request._doc, None, text)
    return made


# With versions of documents


def _insert_one(at: BoundCollection, given: Given) -> Steps[Any] | None:
    document = given.pop("document", None)
    return insert_one(at, document, given) if can_insert(document) else None


def _insert_many(at: BoundCollection, given: Given) -> Steps[Any] | None:
    documents = given.pop("documents", None)
    if isinstance(documents, Mapping | str | bytes) or not hasattr(documents, "__iter__"):
        return None
    held = list(documents)
    if not held or not all(can_insert(each) for each in held):
        return _refused(at, "insert_many", {"documents": held, **given})
    return insert_many(at, held, given)


def _refused(at: BoundCollection, name: str, given: Given) -> Steps[Any]:
    """What the client refuses, or takes as it is."""
    words = f"{name} carries no version here"
    return native(at, "operation", words, lambda: getattr(at.low, name)(**given), parts_of(name))


def _change(given: Given, word: str) -> Change | None:
    """The change of an `update_one`, a `replace_one`, or a `find_one_and_…` of these."""
    replaces = word == "replacement"
    change = given.pop(word, None)
    if not (is_replacement(change) if replaces else is_update(change)):
        return None
    options = {
        name: value for name, value in given.items() if name not in ("filter", "upsert", "bypass_document_validation")
    }
    if given.get("bypass_document_validation") is not None:
        options["bypassDocumentValidation"] = given["bypass_document_validation"]
    if options.get("collation") is None:
        options.pop("collation", None)
    return Change(given.get("filter"), change, replaces, bool(given.get("upsert")), options)


def _update_one(at: BoundCollection, given: Given) -> Steps[Any] | None:
    change = _change(given, "update")
    return None if change is None else change_one(at, change)


def _replace_one(at: BoundCollection, given: Given) -> Steps[Any] | None:
    change = _change(given, "replacement")
    return None if change is None else change_one(at, change)


def _update_many(at: BoundCollection, given: Given) -> Steps[Any] | None:
    filter, update, upsert = given.pop("filter", None), given.pop("update", None), bool(given.pop("upsert", False))
    return update_many(at, filter, update, upsert, given) if is_update(update) else None


def _delete_one(at: BoundCollection, given: Given) -> Steps[Any] | None:
    filter = given.pop("filter", None)
    return delete_one(at, filter, _without_none(given, "collation"))


def _delete_many(at: BoundCollection, given: Given) -> Steps[Any] | None:
    return delete_many(at, given.pop("filter", None), given)


def _without_none(given: Given, *names: str) -> Given:
    return {name: value for name, value in given.items() if name not in names or value is not None}


def _find_one_and(at: BoundCollection, given: Given, word: str, read: DocumentRead) -> Steps[Any] | None:
    after = given.pop("return_document", ReturnDocument.BEFORE)
    projection = given.pop("projection", None)
    change = _change(given, word)
    if change is None or not isinstance(after, bool):
        return None
    return _found_one(at, change, projection, after, read)


def _found_one(at: BoundCollection, change: Change, projection: Any, after: bool, read: DocumentRead) -> Steps[Any]:
    wide, without_id = widened(projection)
    collection = at.low if can_strip(at.low.codec_options) else at.ours
    done = yield from run_change(at, change, wide, after, collection)
    return _shown(at, read, done.value, projection, without_id)


def _find_one_and_update(at: BoundCollection, given: Given, read: DocumentRead) -> Steps[Any] | None:
    return _find_one_and(at, given, "update", read)


def _find_one_and_replace(at: BoundCollection, given: Given, read: DocumentRead) -> Steps[Any] | None:
    return _find_one_and(at, given, "replacement", read)


def _find_one_and_delete(at: BoundCollection, given: Given, read: DocumentRead) -> Steps[Any] | None:
    filter, projection = given.pop("filter", None), given.pop("projection", None)
    return _deleted_one(at, filter, projection, given, read)


def _deleted_one(at: BoundCollection, filter: Any, projection: Any, options: Given, read: DocumentRead) -> Steps[Any]:
    wide, without_id = widened(projection)
    collection = at.low if can_strip(at.low.codec_options) else at.ours
    found = yield from run_deletion(at, filter, wide, collection, options)
    return _shown(at, read, found, projection, without_id)


def _shown(at: BoundCollection, read: DocumentRead, document: Any, projection: Any, without_id: bool) -> Any:
    read.gave(at.namespace, document, at.low.codec_options, whole=is_whole(projection))
    if document is None:
        return None
    stripped(document)
    if without_id:
        document.pop("_id", None)
    return document


def _bulk_write(at: BoundCollection, given: Given) -> Steps[Any] | None:
    requests, ordered = list(given.pop("requests", ())), bool(given.pop("ordered", True))
    if not can_take_apart(requests):
        return _refused(at, "bulk_write", {"requests": requests, "ordered": ordered, **given})
    shared = {word: given[word] for word in ("session", "comment", "let") if given.get(word) is not None}
    word = "bypass_document_validation"
    return bulk_write(at, requests, ordered, shared, {word: given[word]} if given.get(word) is not None else {})


_VERSIONED: Final[dict[str, Callable[[BoundCollection, Given], Steps[Any] | None]]] = {
    "insert_one": _insert_one,
    "insert_many": _insert_many,
    "update_one": _update_one,
    "replace_one": _replace_one,
    "update_many": _update_many,
    "delete_one": _delete_one,
    "delete_many": _delete_many,
    "bulk_write": _bulk_write,
}
_FOUND: Final[dict[str, Callable[[BoundCollection, Given, DocumentRead], Steps[Any] | None]]] = {
    "find_one_and_update": _find_one_and_update,
    "find_one_and_replace": _find_one_and_replace,
    "find_one_and_delete": _find_one_and_delete,
}
"""They write, and give the document: reads, too."""
WRITES: Final = (*_VERSIONED, *_FOUND, "drop", "rename")
COUNTS: Final = ("count_documents", "estimated_document_count", "distinct")


# Reads that give no documents, and pipelines


def count(at: BoundCollection, name: str, given: Given) -> Steps[Any]:
    """A read of numbers or single values."""
    send = lambda: getattr(at.low, name)(**given)  # noqa: E731
    return untold(at.binding, at.low.database.client, send, at.namespace, session=given.get("session"))


def inquire(at: BoundCollection, name: str, given: Given) -> Steps[Any]:
    """A read of what a collection is, or of its changes."""
    send = lambda: getattr(at.low, name)(**given)  # noqa: E731
    return untold(at.binding, at.low.database.client, send, at.namespace, session=given.get("session"))


def untold(
    binding: Binding,
    client: Any,
    call: Callable[[], Any],
    what: str = "",
    *,
    session: Any = None,
    past: Lineage | None = None,
) -> Steps[Any]:
    """A read of which nobody can tell what its values depend on; what: a collection's name, where it is one's.

    session, past: as `DocumentRead` has them.
    """
    with DocumentRead(binding, past=past, session=session, is_told=True) as read:
        yield from read.waiting()
        result = yield call()
        read.server = binding.server_at(client, None)
        read.returned(lambda: [ReadValue(what.encode("utf-8", "surrogatepass"), is_known=False)])
    return watched(result, binding, read.proved if past is None else past) if binding.records else result


def aggregate(at: BoundCollection, name: str, given: Given) -> Steps[Any]:
    """A pipeline: a read, unless its last stage writes."""
    pipeline = given.get("pipeline")
    stages = list(pipeline) if isinstance(pipeline, list | tuple) else []
    last = next(iter(stages[-1]), "") if stages and isinstance(stages[-1], Mapping) else ""
    at.binding.refresh()
    if last in ("$out", "$merge") and at.binding.records:
        # What it writes is other documents' than those that our fields speak of.
        changed = {**given, "pipeline": [*stages[:-1], {"$unset": list(OURS)}, stages[-1]]}
        yield from DocumentRead(at.binding, session=given.get("session")).waiting()  # what it writes is what it reads
        yield from ready(at.binding, at.low.database.client)
        return (yield from _piped(at, name, changed))
    if isinstance(pipeline, list | tuple):
        given = {**given, "pipeline": [*stages, {"$unset": list(OURS)}]}
    send = lambda: getattr(at.low, name)(**given)  # noqa: E731
    session = given.get("session")
    return (yield from untold(at.binding, at.low.database.client, send, at.namespace, session=session))


def _piped(at: BoundCollection, name: str, given: Given) -> Steps[Any]:
    send, binding = getattr(at.low, name), at.binding
    if binding.flavour.positions and not binding.unfit:
        client = at.low.database.client
        call = lambda used: send(**{**given, "session": used})  # noqa: E731
        concern, session = concern_of(given, at.low), given.get("session")
        return (yield from positioned(binding, client, concern, session, call, parts=SEVERAL))
    return (yield from native(at, "operation", "$out and $merge carry no versions", lambda: send(**given), SEVERAL))


# Databases and clients


def wide_write(
    binding: Binding,
    client: Any,
    concern: Mapping[str, Any] | None,
    session: Any,
    call: Callable[[Any], Any],
    failure: Callable[[Any], BaseException | None] = lambda _: None,
    parts: Parts = SEVERAL,
) -> Steps[Any]:
    """A write of a database's or a client's: of many documents, or of nobody knows which.

    concern: as the server gets it; None where nobody sees whether it was kept. failure, parts: as in `positioned`.
    """
    binding.refresh()
    if not binding.records:
        return (yield call(session))
    yield from ready(binding, client)
    if binding.flavour.positions and not binding.unfit and concern is not None:
        return (yield from positioned(binding, client, concern, session, call, failure, parts))
    one: Write = binding.store.begin()
    try:
        result = yield call(session)
    except BaseException as error:
        settle([one], error, parts)
        raise
    if session is not None and session.in_transaction and binding.flavour.positions:
        enlist(session, one)
    else:
        incomplete([one], binding.store.name, "operation", "it carries no version here")
    return watched(result, binding, EMPTY)
