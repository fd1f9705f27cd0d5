"""The rows of closed branches: one small collection a server, in a database of its own (spec BRANCH-22, BRANCH-25)."""

from __future__ import annotations

import os
import threading
from collections.abc import Callable, Mapping, Sequence
from datetime import UTC, datetime, timedelta
from typing import Any, Final

import pymongo
from antipode import logs
from antipode.errors import ConfigurationError, UnfitStoreError
from antipode.store import Store
from antipode.verdict import Verdict
from pymongo import ReadPreference, WriteConcern
from pymongo.errors import (
    AutoReconnect,
    ConnectionFailure,
    DuplicateKeyError,
    NetworkTimeout,
    NotPrimaryError,
    OperationFailure,
    ServerSelectionTimeoutError,
)
from pymongo.read_concern import ReadConcern
from pymongo.topology_description import TOPOLOGY_TYPE

from antipode_mongodb import judging
from antipode_mongodb.targets import Target

DATABASE: Final = "antipode"
COLLECTION: Final = "branches"
TABLE: Final = f"{DATABASE}.{COLLECTION}"
TEXT: Final = "l"
ENDS: Final = "x"
CREATE: Final = f'db.getSiblingDB("{DATABASE}").{COLLECTION}.createIndex({{{ENDS}: 1}}, {{expireAfterSeconds: 0}})'
ROLE: Final = {"role": "readWrite", "db": DATABASE}
GRANT: Final = f'db.grantRolesToUser("USER", [{{role: "readWrite", db: "{DATABASE}"}}])'
_CHECK: Final = "check"
"""The `_id` of a row that stands for nothing, and may go at once."""
_TIMEOUT_S: Final = 3.0
_MAJORITY: Final = WriteConcern(w="majority", j=True, wtimeout=2500)
"""An election takes back what less have acknowledged, and the branch would be open again after its close."""
_MOST_DELETED: Final = 10
_LATE: Final = timedelta(seconds=60)
"""So long behind its time a row is deleted by a close: a mongod has taken it away by then, FerretDB may never."""
_MISSING: Final = 26
_UNAUTHORIZED: Final = (13, 18)


class MissingError(Exception):
    """There is no collection for the rows, or no right to it."""


class ReadOnlyError(Exception):
    """The server takes no writes; its words are the server's."""


def need(client: Any) -> bool:
    """Raises MissingError where a server has no collection for the rows, and OSError where it is not there.

    False where it could not say now.
    """
    try:
        missing = _indexes(client) is None
    except OperationFailure as error:
        if error.code in _UNAUTHORIZED:
            raise MissingError(f"{error}. {cure('STORE')}") from error
        if judging.refused(error).verdict is Verdict.NOT_YET:
            return False
        raise
    if missing:
        raise MissingError(f"there is no collection {TABLE}. {cure('STORE')}")
    return True


def find(client: Any, ids: Sequence[str]) -> Mapping[str, str]:
    """The rows that a server shows for good, by one question."""
    rows = _rows(client).with_options(
        read_concern=ReadConcern("majority"), read_preference=ReadPreference.PRIMARY_PREFERRED
    )
    try:
        found = list(rows.find({"_id": {"$in": list(ids)}}, {TEXT: 1}, batch_size=len(ids) + 1))
    except OperationFailure as error:
        if judging.refused(error).verdict is Verdict.NOT_YET:
            return {}
        raise
    return {str(row["_id"]): str(row.get(TEXT, "")) for row in found}


def close(client: Any, branch: str, text: str, life: float) -> bool:
    """Writes a row where there is none, and returns when it cannot be taken back; raises ReadOnlyError at a secondary.

    Where the row is there it waits for that one: an update that changes nothing is acknowledged like others.
    """
    rows = _rows(client)
    now = datetime.now(UTC)
    late = {ENDS: {"$lt": now - _LATE}}
    try:
        old = [row["_id"] for row in rows.find(late, {"_id": 1}).sort(ENDS, 1).limit(_MOST_DELETED)]
        if old:
            rows.delete_many({"_id": {"$in": old}, **late})
        row = {TEXT: text, ENDS: now + timedelta(seconds=life)}
        return _inserted(rows.with_options(write_concern=_MAJORITY), branch, row)
    except OperationFailure as error:
        _raise_read_only(error)
        raise


def _inserted(rows: Any, branch: str, row: Mapping[str, Any]) -> bool:
    try:
        rows.insert_one({"_id": branch, **row})
    except DuplicateKeyError:
        # Whether a majority has that row this answer does not say: an update that changes nothing waits for it. (No
        # upsert: of two in the same moment FerretDB tells both that they were first, and keeps the row of one.)
        rows.update_one({"_id": branch}, {"$setOnInsert": row})
        return False
    return True


def is_there(client: Any) -> bool:
    """Whether the collection is there, with the index by which the server takes rows away."""
    return any(
        dict(index.get("key", {})) == {ENDS: 1} and "expireAfterSeconds" in index for index in _indexes(client) or ()
    )


def create(client: Any) -> str:
    """Makes the collection with its index. Raises ReadOnlyError at a secondary."""
    if is_there(client):
        return "there already"
    try:
        _rows(client).create_index(ENDS, expireAfterSeconds=0)
    except OperationFailure as error:
        _raise_read_only(error)
        raise
    return "created"


def check(client: Any, store: str, address: str) -> None:
    """Asks for the collection, and for the rights to it by using them on a row that stands for nothing.

    Raises UnfitStoreError with the cure; ConnectionFailure or OSError where the server does not answer now.
    """
    try:
        if not is_there(client):
            raise UnfitStoreError(
                f"{store} cannot hold branches at {address}: no collection {TABLE}. {cure(store)}", code="AP511"
            )
        find(client, [_CHECK])
        now = datetime.now(UTC)
        _rows(client).update_one({"_id": _CHECK}, {"$set": {TEXT: "1", ENDS: now}}, upsert=True)
        _rows(client).delete_one({"_id": _CHECK})
    except NotPrimaryError:
        return
    except DuplicateKeyError:  # another process asks in the same moment
        return
    except OperationFailure as error:
        if _is_read_only(error):
            return
        if judging.refused(error).verdict is Verdict.NOT_YET:
            raise OSError(str(error)) from error
        how = f". {cure(store)}" if error.code in _UNAUTHORIZED else ""
        raise UnfitStoreError(f"{store} cannot hold branches at {address}: {error}{how}", code="AP511") from error


class Rows:
    """What was wrapped, and clients of our own to write rows with: never in the application's transaction.

    Used by any thread, side by side: a close waits for a majority, and none waits for another's.
    """

    def __init__(self, store: Store) -> None:
        self._store = store
        self._targets: dict[str, Target] = {}
        self._clients: dict[str, pymongo.MongoClient[dict[str, Any]]] = {}
        self._last = ""
        self._lock = threading.Lock()
        self._process = os.getpid()

    def add(self, target: Target) -> None:
        """A client was wrapped."""
        self._targets[target.address] = target

    def close(self, branch: str, text: str, life: float) -> bool:
        """Writes a row at the primary. Raises ConfigurationError where no server takes writes, and PyMongo's errors."""
        return self._run(lambda client: close(client, branch, text, life))

    def check(self) -> None:
        """Asks every server that can be reached; raises UnfitStoreError with the cure."""
        for target in list(self._targets.values()):
            client = target.connect(_TIMEOUT_S)
            try:
                check(client, self._store.name, target.address)
            except (OSError, ConnectionFailure) as error:
                logs.info(
                    f"branches {target.address}",
                    f"{target.address} does not answer yet ({type(error).__name__}); whether it can hold branches "
                    "shows later",
                    code="AP507",
                )
            finally:
                client.close()

    def end(self) -> None:
        """Gives the clients up."""
        with self._lock:
            clients, self._clients = self._clients, {}
        if self._process == os.getpid():
            for client in clients.values():
                client.close()

    def _run(self, ask: Callable[[Any], bool]) -> bool:
        refused, failure = "", None
        for target in sorted(self._targets.values(), key=lambda each: each.address != self._last):
            try:
                done = self._ask(target, ask)
            except ReadOnlyError as error:
                refused = f"{target.address}: {error}"
            except ConnectionFailure as error:
                failure = error
            else:
                self._last = target.address
                return done
        if failure is not None:
            raise failure
        raise ConfigurationError(
            f"no server of {self._store.name} that this process has wrapped takes writes: branches are closed at its "
            f"primary; wrap a client of that. {refused}".rstrip(),
            code="AP512",
        )

    def _ask(self, target: Target, ask: Callable[[Any], bool]) -> bool:
        client = self._client(target)
        try:
            return ask(client)
        except (NetworkTimeout, ServerSelectionTimeoutError):
            raise
        except AutoReconnect:  # a connection that was idle may have been ended meanwhile; or another primary elected
            try:
                return ask(client)
            except NotPrimaryError as error:
                if client.topology_description.topology_type == TOPOLOGY_TYPE.Single:
                    raise ReadOnlyError(str(error)) from error
                raise

    def _client(self, target: Target) -> Any:
        if self._process != os.getpid():  # in the child of a fork: the clients are its parent's
            self._lock, self._process, self._clients = threading.Lock(), os.getpid(), {}
        with self._lock:
            if target.address not in self._clients:
                self._clients[target.address] = target.connect(_TIMEOUT_S)
            return self._clients[target.address]


def _rows(client: Any) -> Any:
    return client[DATABASE].get_collection(
        COLLECTION, read_preference=ReadPreference.PRIMARY, write_concern=WriteConcern(w=1), read_concern=ReadConcern()
    )


def _indexes(client: Any) -> Sequence[Mapping[str, Any]] | None:
    """The collection's indexes; None where there is no collection."""
    try:
        reply = client[DATABASE].command("listIndexes", COLLECTION, read_preference=ReadPreference.PRIMARY_PREFERRED)
    except OperationFailure as error:
        if error.code == _MISSING:
            return None
        raise
    found: Sequence[Mapping[str, Any]] = reply["cursor"]["firstBatch"]
    return found


def _is_read_only(error: OperationFailure) -> bool:
    # A standby of FerretDB answers in words: it does not know that it is one.
    return "in recovery" in str(error)


def _raise_read_only(error: OperationFailure) -> None:
    """Raises ReadOnlyError for what a server answers that takes no writes."""
    if _is_read_only(error):
        raise ReadOnlyError(str(error)) from error


def cure(store: str) -> str:
    """What makes the collection, with the rights to it."""
    return f"Run: antipode init {store} --at URL-OF-THE-PRIMARY --user USER --set branches=yes --run"
