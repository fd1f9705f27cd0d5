"""Our fields of a document, and the updates and projections that write, read and hide them.

A document holds the version of its last write, and the lineage that rests beside it: whole as an insertion or a
replacement wrote it, and what later updates, which keep what they do not change, have added.
"""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence
from typing import Any, Final

from antipode import Ordered
from bson.int64 import Int64

VERSION: Final = "_apv"
"""The counter less 2^63, as a 64-bit integer: the store's order of signed numbers is the counters' unsigned one."""
CHAIN: Final = "_ape"
"""The chain of a document's writes (SHIM-53): its version when it was made, spelled like a version."""
LINEAGE: Final = "_apl"
MORE: Final = "_apm"
"""Texts of later updates. Names are short because they count in every document."""
OURS: Final = (VERSION, CHAIN, LINEAGE, MORE)
OWN_PROJECTION: Final[dict[str, Any]] = {"_id": 1, VERSION: 1, CHAIN: 1, LINEAGE: 1, MORE: 1}
NAME_AND_VERSION: Final[dict[str, Any]] = {"_id": 1, VERSION: 1, CHAIN: 1}
HIDDEN: Final[dict[str, Any]] = dict.fromkeys(OURS, 0)
MOST_TEXTS: Final = 4
"""So many texts of updates rest beside a document before they are joined into one."""
_OFFSET: Final = 1 << 63
_CHAIN: Final = re.compile(r"[0-9a-f]{0,16}")


def stored(counter: int) -> Int64:
    """A counter as it is in a document."""
    return Int64(counter - _OFFSET)


def version_of(document: Mapping[str, Any] | None, field: str = VERSION) -> int | None:
    """The version of a document's last write; None where it was written without Antipode, or there is none."""
    number = None if document is None else document.get(field)
    if not isinstance(number, int) or isinstance(number, bool):
        return None
    counter = number + _OFFSET
    return counter if 0 <= counter < 1 << 64 else None


def identity_of(document: Mapping[str, Any] | None) -> Ordered | None:
    """The version of a document's last write as it stands in lineages, in its chain; None where it has none."""
    version, chain = version_of(document), version_of(document, CHAIN)
    return None if version is None else Ordered("" if chain is None else f"{chain:x}", version)


def is_chain(epoch: str) -> bool:
    """Return whether an epoch can be a chain's; the empty one is that of an earlier release."""
    return _CHAIN.fullmatch(epoch) is not None


def own_chain(counter: int) -> Ordered:
    """A version that begins a chain, as it stands in lineages."""
    return Ordered(f"{counter:x}", counter)


def texts_of(document: Mapping[str, Any]) -> list[str]:
    """The texts of the lineages that rest beside a document."""
    more = document.get(MORE)
    found = [document.get(LINEAGE), *(more if isinstance(more, list) else [])]
    return [text for text in found if isinstance(text, str)]


def beside(counter: int | None, text: str) -> dict[str, Any]:
    """What of ours a new document holds: it begins a chain, as another one may have had its name before."""
    ours: dict[str, Any] = {} if counter is None else {VERSION: stored(counter), CHAIN: stored(counter)}
    if text:
        ours[LINEAGE] = text
    return ours


def stripped(document: Any) -> Any:
    """A document as the application wrote it, in place where it can be changed."""
    for name in OURS:
        if name in document:
            del document[name]
    return document


def dressed_document(document: Mapping[str, Any], counter: int | None, text: str) -> dict[str, Any]:
    """A document with what of ours it holds, to be inserted or to replace another."""
    made = dict(document)
    for name in OURS:
        made.pop(name, None)
    made.update(beside(counter, text))
    return made


def is_update(update: Any) -> bool:
    """Whether this is an update that can be sent: operators, or a pipeline. What is not the client refuses itself."""
    if isinstance(update, list):
        return all(isinstance(stage, Mapping) for stage in update) and bool(update)
    return isinstance(update, Mapping) and bool(update) and next(iter(update)).startswith("$")


def is_replacement(document: Any) -> bool:
    """Whether this is a whole document that can be sent."""
    return isinstance(document, Mapping) and not (document and next(iter(document)).startswith("$"))


def may_drop(update: Any) -> bool:
    """Whether an update is a pipeline that may take our fields away before we set them again."""
    kept = ("$set", "$addFields")
    return isinstance(update, list) and any(next(iter(stage), "") not in kept for stage in update)


def dressed_update(update: Any, counter: int | None, text: str, *, inserts: bool = False) -> Any:
    """An update that also sets our fields: the version only ever grows, and texts are added.

    inserts: it makes a new document, which has nothing of ours yet.
    """
    if isinstance(update, list):
        stage: dict[str, Any] = {}
        if counter is not None:
            stage[VERSION] = stored(counter) if inserts else {"$max": [f"${VERSION}", stored(counter)]}
            if inserts:
                stage[CHAIN] = stored(counter)
            elif may_drop(update):
                stage[CHAIN] = {"$ifNull": [f"${CHAIN}", stored(counter)]}
        if text:
            there = {"$cond": [{"$isArray": f"${MORE}"}, f"${MORE}", []]}
            stage |= {LINEAGE: text} if inserts else {MORE: {"$setUnion": [there, [text]]}}
        return [*update, {"$set": stage}] if stage else update
    made = dict(update)
    if inserts:
        if ours := beside(counter, text):
            made["$set"] = {**made.get("$set", {}), **ours}
        return made
    if counter is not None:
        made["$max"] = {**made.get("$max", {}), VERSION: stored(counter)}
    if text:
        made["$addToSet"] = {**made.get("$addToSet", {}), MORE: text}
    return made


def replacing_pipeline(document: Mapping[str, Any], counter: int | None, text: str) -> list[dict[str, Any]]:
    """A replacement as a pipeline, in which the version only ever grows, and the chain stays."""
    made = dressed_document(document, None, text)
    version = {} if counter is None else {VERSION: {"$max": [f"${VERSION}", stored(counter)]}}
    chain = {} if counter is None else {CHAIN: {"$ifNull": [f"${CHAIN}", stored(counter)]}}
    return [{"$replaceWith": {"$mergeObjects": [{"_id": "$_id"}, {"$literal": made}, version, chain]}}]


# Projections


def includes(projection: Mapping[str, Any]) -> bool:
    """Whether a projection names the fields that are wanted, rather than those that are not."""
    for name, value in projection.items():
        if isinstance(value, Mapping):
            if "$slice" not in value and "$meta" not in value:
                return True
        elif value and name != "_id":
            return True
    return list(projection) == ["_id"] and bool(projection["_id"])


def hiding(projection: Any) -> Any:
    """A projection without our fields."""
    if not projection and not isinstance(projection, list | tuple):
        return HIDDEN
    if isinstance(projection, Mapping) and not includes(projection):
        return {**projection, **HIDDEN}
    return projection


def widened(projection: Any) -> tuple[Any, bool]:
    """A projection with our fields and the document's name, and whether that name was not asked for."""
    if isinstance(projection, Mapping):
        wide = dict(projection)
        without_id = "_id" in wide and not wide["_id"]
        if without_id:
            del wide["_id"]
        if includes(projection):
            wide |= dict.fromkeys(OURS, 1)
        return wide or None, without_id
    if isinstance(projection, Sequence) and not isinstance(projection, str):
        return [*projection, *OURS], False
    return projection, False


def is_whole(projection: Any) -> bool:
    """Whether all fields of a document are wanted."""
    return projection is None
