"""Reads of our own, by which dry-run says whether a read was stale (spec REC-22, REC-24)."""

from __future__ import annotations

from collections.abc import Callable, Generator, Iterator, Mapping, Sequence
from typing import Any, Final

import bson
import pymongo
from antipode.followed_reads import Again
from bson.code import Code
from bson.codec_options import CodecOptions, DatetimeConversion
from bson.regex import Regex
from pymongo.message import _gen_find_command, _Query

from antipode_mongodb.fields import OURS
from antipode_mongodb.targets import Target

_NAMES: Final = """
    eq gt gte in lt lte ne nin and not nor or exists type expr mod regex options all elemMatch size slice bitsAllClear
    bitsAllSet bitsAnyClear bitsAnySet

    match project addFields set unset group sort limit skip count unwind lookup replaceRoot replaceWith sortByCount

    literal cond ifNull switch cmp abs add ceil divide exp floor ln log log10 multiply pow round sqrt subtract trunc
    concat substrBytes substrCP toLower toUpper strLenBytes strLenCP strcasecmp split trim ltrim rtrim indexOfBytes
    indexOfCP regexMatch arrayElemAt concatArrays filter map reduce isArray range reverseArray arrayToObject
    objectToArray mergeObjects getField let anyElementTrue allElementsTrue year month dayOfMonth dayOfWeek dayOfYear
    hour minute second millisecond week isoWeek isoWeekYear isoDayOfWeek dateToString dateFromString dateToParts
    dateFromParts dateTrunc dateAdd dateSubtract dateDiff toBool toDate toDecimal toDouble toInt toLong toObjectId
    toString convert isNumber sum avg min max stdDevPop stdDevSamp
"""
"""Of filters and projections, of stages, of expressions, without their `$`."""
_OPERATORS: Final = frozenset(f"${name}" for name in _NAMES.split())
"""None of them writes, calls code, samples, or says what depends on a clock, a user, or the order of what it gets."""
_VARIABLES: Final = ("$$ROOT", "$$CURRENT", "$$REMOVE")
_MOST_DOCUMENTS: Final = 1000
_MOST_OCTETS: Final = 65_536
"""Of a command that is kept until it is repeated."""
_DEEPEST: Final = 50
_HARMLESS_FLAGS: Final = 4 | 16
"""A secondary may answer; the cursor may live long. Others make it wait for more."""
_CODEC: Final[CodecOptions[Any]] = CodecOptions(document_class=dict, datetime_conversion=DatetimeConversion.DATETIME_MS)
_GIVEN: Final = {"session", "comment", "maxTimeMS", "batchSize"}
"""What says nothing of a read's result."""
_ALIKE: Final = {"collation", "hint", "let"}
"""What goes into a command as it is."""


class NotRepeated(Exception):
    """This read is not sent once more."""


class Asked:
    """A read as it was sent: its command, in its collection's database and by its codec."""

    __slots__ = ("_codec", "_command", "_session", "database")

    def __init__(self, collection: Any, command: Mapping[str, Any], codec: CodecOptions[Any], session: Any) -> None:
        self.database = str(collection.database.name)
        level = collection.read_concern.level
        self._command = command if level is None else {**command, "readConcern": {"level": level}}
        self._codec = codec
        self._session = session

    def octets(self) -> bytes | None:
        """The command, as it is now; None for what is not sent again."""
        if self._session is not None and self._session.in_transaction:
            return None
        octets = bson.encode(self._command, codec_options=self._codec)
        return octets if len(octets) <= _MOST_OCTETS else None


def of_find(collection: Any, operation: Any) -> Asked | None:
    """The read that opens a cursor; None for a further batch, and for a cursor that waits."""
    if not isinstance(operation, _Query) or operation.flags & ~_HARMLESS_FLAGS or operation.exhaust:
        return None
    command = _gen_find_command(
        operation.coll,
        operation.spec,
        operation.fields,
        operation.ntoskip,
        operation.limit,
        None,
        0,
        pymongo.read_concern.ReadConcern(),
        operation.collation,
        allow_disk_use=operation.allow_disk_use,
    )
    bounded = {**command, "singleBatch": True, "batchSize": _MOST_DOCUMENTS + 1}
    return Asked(collection, bounded, operation.codec_options, operation.session)


def of_method(collection: Any, name: str, given: Mapping[str, Any]) -> Asked | None:
    """The read that a collection's method makes, by its arguments; None for one that is not known."""
    arguments = {key: value for key, value in given.items() if key not in _GIVEN and value is not None}
    command: dict[str, Any] = {key: arguments.pop(key) for key in _ALIKE if key in arguments}
    many = {"cursor": {"batchSize": _MOST_DOCUMENTS + 1}}
    coll = str(collection.name)
    if name == "distinct":
        asked = {"key": arguments.pop("key", None), "query": arguments.pop("filter", {})}
        command = {"distinct": coll, **asked, **command}
    elif name == "estimated_document_count":
        command = {"count": coll, **command}
    elif name == "count_documents":
        pipeline = [{"$match": arguments.pop("filter", {})}, {"$group": {"_id": 1, "n": {"$sum": 1}}}]
        command = {"aggregate": coll, "pipeline": pipeline, **many, **command}
    else:
        arguments.pop("allowDiskUse", None)
        command = {"aggregate": coll, "pipeline": list(arguments.pop("pipeline", ())), **many, **command}
    return None if arguments else Asked(collection, command, collection.codec_options, given.get("session"))


def own_reads(target: Target, asked: Asked, timeout: float) -> Again | None:
    """What sends a read again, by a client of our own to the same server; None for what cannot be sent again.

    Whether it may be sent is found out when it is to be, by our own thread. `timeout`: of each read, in seconds.
    """
    try:
        octets = asked.octets()
    except Exception:  # a value that the client's own codec writes otherwise, or that has changed meanwhile
        return None
    return None if octets is None else _OwnReads(target, asked.database, octets, timeout).read


class _OwnReads:
    """One command, and where it is sent."""

    def __init__(self, target: Target, database: str, command: bytes, timeout: float) -> None:
        self._target = target
        self._database = database
        self._command = command
        self._timeout = timeout
        self._life: Any = None
        """Of the server that was read from at first."""

    def read(self, times: int) -> Generator[Iterator[bytes], None, None]:
        """Each read by itself."""
        command = bson.decode(self._command, codec_options=_CODEC)
        if self._life is None and not may_be_repeated(command):
            raise NotRepeated
        command["maxTimeMS"] = max(int(self._timeout * 1000), 1)
        client = self._target.connect(self._timeout)
        try:
            life = _life(client.admin.command("hello"))
            if life != (self._life or life):
                raise NotRepeated
            self._life = life
            for _ in range(times):
                sent: Callable[..., Any] = client[self._database].command
                reply = sent(command, read_preference=pymongo.ReadPreference.SECONDARY_PREFERRED, codec_options=_CODEC)
                yield _rows(client[self._database], command, reply)
        finally:
            client.close()


def _life(hello: Mapping[str, Any]) -> tuple[Any, ...]:
    if hello.get("msg") == "isdbgrid":  # a router, which may ask another member each time
        raise NotRepeated
    process = (hello.get("topologyVersion") or {}).get("processId")
    return hello.get("setName"), hello.get("me"), process


def _rows(database: Any, command: Mapping[str, Any], reply: Mapping[str, Any]) -> Iterator[bytes]:
    cursor = reply.get("cursor")
    if cursor is None:
        found = reply["values"] if "values" in reply else [reply["n"]]
        return (bson.encode({"": value}, codec_options=_CODEC) for value in found)
    documents = cursor["firstBatch"]
    if cursor["id"]:
        database.command({"killCursors": next(iter(command.values())), "cursors": [cursor["id"]]})
    if cursor["id"] or len(documents) > _MOST_DOCUMENTS:
        raise NotRepeated
    kept = ({name: value for name, value in document.items() if name not in OURS} for document in documents)
    return (bson.encode(document, codec_options=_CODEC) for document in kept)


def may_be_repeated(command: Mapping[str, Any]) -> bool:
    """Whether a command may be sent once more (REC-24)."""
    return _is_ordered(command) and _is_plain(command)


def _is_ordered(command: Mapping[str, Any]) -> bool:
    """Whether it is not the server's choice which documents of a `find` come."""
    if not command.get("limit") and not command.get("skip"):
        return True
    if _is_sorted(command.get("sort")):
        return True
    filtered = command.get("filter", {})
    if command.get("skip") or "_id" not in filtered:
        return False
    return not isinstance(filtered["_id"], Mapping | Regex | list)  # it is one document's


def _are_ordered(pipeline: Sequence[Mapping[str, Any]]) -> bool:
    is_sorted = False
    for stage in pipeline:
        is_sorted = _is_sorted(stage.get("$sort")) or (is_sorted and "$group" not in stage)
        if not is_sorted and ("$limit" in stage or "$skip" in stage):
            return False
    return True


def _is_sorted(order: Any) -> bool:
    return isinstance(order, Mapping) and bool(order) and "$natural" not in order


def _has_order(stage: Mapping[str, Any]) -> bool:
    """Whether what may be a pipeline within a stage has an order where it needs one."""
    inner = stage.get("pipeline")
    return not isinstance(inner, list) or _are_ordered([each for each in inner if isinstance(each, Mapping)])


def _is_plain(value: Any, depth: int = 0) -> bool:
    """Whether each of its operators and variables is a known one."""
    if depth > _DEEPEST or isinstance(value, Code):
        return False
    if isinstance(value, Mapping):
        names = all(not name.startswith("$") or name in _OPERATORS for name in value)
        return names and _has_order(value) and all(_is_plain(part, depth + 1) for part in value.values())
    if isinstance(value, str):
        return not value.startswith("$$") or not value[2:3].isupper() or value.split(".")[0] in _VARIABLES
    if isinstance(value, Sequence) and not isinstance(value, bytes):
        return all(_is_plain(part, depth + 1) for part in value)
    return True
