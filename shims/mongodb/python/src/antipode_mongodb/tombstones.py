"""What deletions leave behind where documents have versions of their own: one collection in each database.

A tombstone is written after its document is gone, into the same log: who sees it does not see the document any more.
It stands in a collection of its own, so that the application's counts, queries and unique indexes know nothing of it.
"""

from __future__ import annotations

import threading
import time
from collections.abc import Mapping
from datetime import UTC, datetime, timedelta
from typing import Any, Final

from antipode import Ordered
from pymongo.errors import OperationFailure

from antipode_mongodb.fields import stored, version_of

COLLECTION: Final = "antipode_tombstones"
VERSION: Final = "v"
EXPIRES: Final = "x"
CHAINS: Final = "e"
_MOST_CHAINS: Final = 32
"""Of one name; whose documents come and go more often within a day is unproven for who waits so long."""
LIFE: Final = timedelta(hours=24)
_NONE: Final = (13, 18, 26)
"""No collection, or no right to it."""
_ASK_AGAIN_S: Final = 60.0


def name_of(key: bytes) -> str:
    """A tombstone's `_id`: the document's key."""
    return key.decode("utf-8", "surrogatepass").encode("utf-8", "replace").decode("utf-8")


def marking(counter: int, *chains: str) -> dict[str, Any]:
    """The update, an upsert, that leaves a tombstone or makes it newer: the documents of these chains are gone."""
    return {
        "$max": {VERSION: stored(counter)},
        "$set": {EXPIRES: datetime.now(UTC) + LIFE},
        "$push": {CHAINS: {"$each": list(chains), "$slice": -_MOST_CHAINS}},
    }


def buries(tombstone: Mapping[str, Any], version: Ordered) -> bool:
    """Return whether a write comes before a deletion of which this tombstone is left.

    Each document has a chain of its own, so all that was written to it came before its deletion (SHIM-53). A counter
    says nothing: an update of a later document may have a lesser one than the deletion of an earlier one.
    """
    if not version.epoch:  # of an earlier release: its own deletion alone
        return version_of(tombstone, VERSION) == version.counter
    chains = tombstone.get(CHAINS)
    return isinstance(chains, list) and version.epoch in chains


def cure(database: str) -> str:
    """What a database needs so that deletions leave tombstones."""
    return f'db.getSiblingDB("{database}").{COLLECTION}.createIndex({{{EXPIRES}: 1}}, {{expireAfterSeconds: 0}})'


def are_on(client: Any, database: str) -> bool:
    """Whether a database has the collection, with the index by which the server takes tombstones away.

    Raises OperationFailure where the server cannot say it now.
    """
    try:
        indexes = client[database].command("listIndexes", COLLECTION)["cursor"]["firstBatch"]
    except OperationFailure as error:
        if error.code in _NONE:
            return False
        raise
    return any(dict(index.get("key", {})) == {EXPIRES: 1} and "expireAfterSeconds" in index for index in indexes)


class Switches:
    """Which databases have tombstones: asked once a minute where they have none, and never again where they have."""

    def __init__(self) -> None:
        self._lock = threading.Lock()
        self._known: dict[str, tuple[bool, float]] = {}

    def known(self, database: str) -> bool | None:
        """What is known; None: it has to be asked."""
        found = self._known.get(database)
        if found is None or (not found[0] and time.monotonic() - found[1] > _ASK_AGAIN_S):
            return None
        return found[0]

    def learn(self, database: str, on: bool) -> None:
        """What was found out."""
        with self._lock:
            self._known[database] = (on, time.monotonic())
