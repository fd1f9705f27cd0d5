"""Whether writes are visible at one server (spec SHIM-31, SHIM-32, EPOCH-9 to EPOCH-14)."""

from __future__ import annotations

from collections.abc import Collection, Iterable, Mapping, Sequence
from typing import Any, Final

from antipode import Opaque, Ordered, WriteId
from antipode.shim import VISIBLE, UnprovenKind, Visibility, not_yet, unproven, wire
from antipode.shim.objects import deletion_of, is_content
from bson.timestamp import Timestamp
from pymongo.errors import ExecutionTimeout, OperationFailure

from antipode_mongodb import marks, tombstones
from antipode_mongodb.fields import NAME_AND_VERSION, identity_of, is_chain, version_of
from antipode_mongodb.flavour import NO_MAJORITY_YET, Flavour, counter_of, time_of
from antipode_mongodb.keys import Name, key_octets, parse_key
from antipode_mongodb.reading import content_version

_AT_ONCE: Final = 200
_BUSY: Final = ("conflict with recovery", "recovery conflict", "canceling statement")
"""A standby's own work was in the way of the question: it is asked again."""
_GONE: Final = ("failed to connect", "connection refused", "starting up", "shutting down", "terminating connection")
_UNAUTHORIZED: Final = (13, 18)
GRANT: Final = 'db.grantRolesToUser("USER", [{role: "read", db: "DATABASE"}])'


def refused(error: OperationFailure) -> Visibility:
    """What a server's error is worth as an answer. Raises OSError where the server is not there."""
    words = str(error).lower()
    if any(word in words for word in _GONE):
        raise OSError(str(error)) from error
    if any(word in words for word in _BUSY):
        return not_yet("the server's own recovery was in the way of the question", unanswered=True)
    if error.code == NO_MAJORITY_YET:
        return not_yet("the server does not know yet what a majority has", unanswered=True)
    if error.code in _UNAUTHORIZED:
        return unproven(f"its login may not read there ({error}). {GRANT}", UnprovenKind.RIGHT)
    return unproven(str(error))


# Positions of a replica set


def positions(
    client: Any, flavour: Flavour, entries: Sequence[Ordered], wait_ms: int = 0
) -> tuple[list[Visibility], int | None]:
    """One answer a position, and how far the server is: the committed time that a read of it stands on.

    wait_ms: how long the server may wait for the first of them.
    """
    own = [entry.counter for entry in entries if entry.epoch == flavour.epoch]
    others = {entry.epoch for entry in entries} - {flavour.epoch}
    at = _committed_time(client, min(own) if own and wait_ms else None, wait_ms)
    settled, refused = _settled(client, others)
    return [_judge_position(flavour, entry, at, settled.get(entry.epoch, 0), refused) for entry in entries], at


def _settled(client: Any, epochs: Collection[str]) -> tuple[Mapping[str, int], str]:
    """What operators have vouched for of other replica sets; and why that cannot be seen, where it cannot."""
    if not epochs:
        return {}, ""
    try:
        return marks.settled(client, epochs), ""
    except OperationFailure as error:
        if error.code not in _UNAUTHORIZED:
            raise
        return {}, f". Whether it was settled its login may not read: {marks.GRANT}"


def _committed_time(client: Any, after: int | None, wait_ms: int) -> int | None:
    """The time of the snapshot that a majority read gets: everything up to it is there, and stays."""
    concern: dict[str, Any] = {"level": "majority"}
    question: dict[str, Any] = {"find": "antipode.probe", "limit": 1, "readConcern": concern}
    if after is not None:
        concern["afterClusterTime"] = time_of(after)
        question["maxTimeMS"] = max(wait_ms, 1)
    try:
        reply: Mapping[str, Any] = client.admin.command(question)
    except ExecutionTimeout:
        return None if after is None else _committed_time(client, None, 0)
    except OperationFailure as error:
        if after is not None and error.code in (50, 72):  # the cluster has not come so far
            return _committed_time(client, None, 0)
        raise
    time = reply.get("operationTime")
    return counter_of(time) if isinstance(time, Timestamp) else None


def _judge_position(flavour: Flavour, entry: Ordered, at: int | None, settled: int, refused: str) -> Visibility:
    if entry.epoch != flavour.epoch:
        if settled >= entry.counter:
            return VISIBLE
        upto = f", of which {settled} is settled and {entry.counter} wanted" if settled else ""
        return unproven(
            f"it is of the replica set {entry.epoch}{upto}, and this server is of {flavour.epoch}: its times say "
            f"nothing here{refused}",
            UnprovenKind.HISTORY,
        )
    if at is None:
        return unproven("the server's replies have no operationTime")
    if at >= entry.counter:
        return VISIBLE
    return not_yet(f"a majority's time {time_of(at)} there, wanted {time_of(entry.counter)}")


# Versions of documents


def documents(client: Any, ids: Sequence[WriteId]) -> list[Visibility]:
    """One answer a document, in few questions: the versions of all in a collection, then of the tombstones."""
    answers: list[Visibility | None] = [None] * len(ids)
    names: dict[int, Name] = {}
    for index, write_id in enumerate(ids):
        found = _parsed(write_id)
        if isinstance(found, Visibility):
            answers[index] = found
        else:
            names[index] = found
    there: dict[bytes, Mapping[str, Any]] = {}
    by_place: dict[tuple[str, str, bool], list[int]] = {}
    for index, name in names.items():
        version = ids[index].version
        whole = isinstance(version, Opaque) and is_content(version)
        by_place.setdefault((name.database, name.collection, whole), []).append(index)
    for (database, collection, whole), indexes in by_place.items():
        fields = None if whole else NAME_AND_VERSION
        for some in _parts(indexes):
            chosen = {"_id": {"$in": [names[index].id for index in some]}}
            try:
                found_ones = list(client[database][collection].find(chosen, fields))
            except OperationFailure as error:
                answer = refused(error)
                for index in some:
                    answers[index] = answer
                continue
            for document in found_ones:
                there[key_octets(f"{database}.{collection}", document["_id"])] = document
    for index in names:
        if answers[index] is None:
            answers[index] = judge(ids[index], there.get(ids[index].key))
    _see_tombstones(client, ids, names, answers)
    return [answer if answer is not None else not_yet("not asked", unanswered=True) for answer in answers]


def _see_tombstones(
    client: Any, ids: Sequence[WriteId], names: Mapping[int, Name], answers: list[Visibility | None]
) -> None:
    """A tombstone of a version that is not smaller: the document was deleted after the write."""
    by_database: dict[str, list[int]] = {}
    for index, name in names.items():
        if answers[index] is not VISIBLE:
            by_database.setdefault(name.database, []).append(index)
    for database, indexes in by_database.items():
        for some in _parts(indexes):
            places = {tombstones.name_of(ids[index].key): index for index in some}
            by_name: dict[str, Mapping[str, Any]] = {}
            try:
                for each in client[database][tombstones.COLLECTION].find({"_id": {"$in": list(places)}}):
                    by_name[each["_id"]] = each
            except OperationFailure as error:
                answer = refused(error)
                for index in some:
                    answers[index] = answer
                continue
            for index in some:
                buried = by_name.get(tombstones.name_of(ids[index].key))
                if buried is not None and _is_buried(ids[index], buried):
                    answers[index] = VISIBLE


def _is_buried(write_id: WriteId, tombstone: Mapping[str, Any]) -> bool:
    version = write_id.version
    return isinstance(version, Ordered) and tombstones.buries(tombstone, version)


def _parts(indexes: Sequence[int]) -> Iterable[Sequence[int]]:
    return (indexes[start : start + _AT_ONCE] for start in range(0, len(indexes), _AT_ONCE))


def _parsed(write_id: WriteId) -> Name | Visibility:
    """The document of a write, or why it cannot be asked for."""
    version = write_id.version
    if isinstance(version, Ordered) and not is_chain(version.epoch):
        return unproven(f"a version of epoch {version.epoch} is no document's")
    if isinstance(version, Opaque) and deletion_of(version) is None and not is_content(version):
        return unproven("this opaque version is none of this store's")
    name = None if wire.is_hashed(write_id.key) else parse_key(write_id.key)
    if name is None:
        return unproven(
            "its key travels as a hash, and a document can only be asked for by its name; shorten the key, or set "
            "hash_keys=False"
        )
    return name


def judge(write_id: WriteId, document: Mapping[str, Any] | None) -> Visibility:
    """Whether a write is visible where this document, or none, is what a read shows."""
    version, at = write_id.version, version_of(document)
    if isinstance(version, Opaque) and is_content(version):
        if document is not None and at is None and content_version(document) == version:
            return VISIBLE
        return not_yet("the document, written without Antipode, is not there, or something else took its place")
    if isinstance(version, Opaque):
        deleted = deletion_of(version)
        if at is not None and deleted is not None and at < deleted:
            return not_yet("the document is there still, with an older version")
        return unproven(
            "it is a deletion that left no tombstone, because its database has no collection for them: nothing tells "
            f"it from what has not arrived. {tombstones.cure('DATABASE')}",
            UnprovenKind.UNFIT,
        )
    if at is None:
        if document is not None:
            return not_yet("a document without a version is there, written without Antipode: an older or a newer one")
        return not_yet("no such document yet")
    there = identity_of(document)
    if at == version.counter or (there is not None and there.epoch == version.epoch and _is_later(there, version)):
        return VISIBLE
    if at > version.counter:
        return not_yet("another document of that name is there, an earlier one or a later one")
    return not_yet(f"an older version is there ({at}, wanted {version.counter})")


def _is_later(there: Ordered, wanted: Ordered) -> bool:
    """Return whether a version came behind that one: only within a chain counters tell (SHIM-53)."""
    return bool(wanted.epoch) and there.counter > wanted.counter
