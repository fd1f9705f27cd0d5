"""What kind of server this is, and what its answers are worth (spec SHIM-3, EPOCH-6, EPOCH-7)."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any, Final

from antipode import UnfitStoreError
from bson.timestamp import Timestamp
from pymongo.errors import AutoReconnect, ExecutionTimeout, OperationFailure

_AHEAD_S: Final = 365 * 24 * 3600
_UNAUTHORIZED: Final = (13, 18)
_EXPIRED: Final = 50
_NOT_INITIALIZED: Final = 94
NO_MAJORITY_YET: Final = 134
"""ReadConcernMajorityNotAvailableYet: the server has no snapshot of a majority, after its start or a rollback."""
GRANT: Final = 'db.grantRolesToUser("USER", [{role: "clusterMonitor", db: "admin"}])'


class NotReadyError(AutoReconnect):
    """A member of a replica set that cannot say yet what it is: it has just started."""


@dataclass(frozen=True, slots=True)
class Flavour:
    """What was found out about a server."""

    product: str
    """For a person: `MongoDB 8.0.4`, `FerretDB v2.7.0`."""
    epoch: str = ""
    """The replica set's own id, where the server gives positions; empty where documents have versions of their own."""
    why_none: str = ""
    """Why it gives no positions."""
    majority: bool = False
    """Whether writes that do not say otherwise are acknowledged by a majority."""

    @property
    def positions(self) -> bool:
        """Whether writes get positions."""
        return bool(self.epoch)


def examine(client: Any, store: str) -> Flavour:
    """Asks a server what it is.

    Raises UnfitStoreError for what is refused, with what to change; PyMongoError where it does not answer, or cannot
    say it yet.
    """
    hello: Mapping[str, Any] = client.admin.command("hello")
    product = _product(client)
    if hello.get("msg") == "isdbgrid" or "serviceId" in hello:
        raise UnfitStoreError(
            f"{store}: this is a router of a sharded cluster. Chunks move between its shards, and each shard has a "
            "history of its own, so no position of one covers a write. Wrap a client of a replica set"
        )
    if hello.get("isreplicaset"):
        raise NotReadyError("it is a member of a replica set without its configuration: wait, or rs.initiate()")
    if not hello.get("setName"):
        return Flavour(product, why_none="it is no member of a replica set")
    if not (hello.get("isWritablePrimary") or hello.get("ismaster") or hello.get("secondary")):
        raise NotReadyError("it is a member of a replica set, and neither primary nor secondary now")
    if "operationTime" not in hello:
        return Flavour(product, why_none="its answers have no operationTime")
    if not _honours_cluster_time(client, hello["operationTime"]):
        return Flavour(product, why_none="it accepts afterClusterTime, and answers without waiting for it")
    return _of_replica_set(client, store, product)


def _product(client: Any) -> str:
    try:
        built = client.admin.command("buildInfo")
    except OperationFailure:
        return "MongoDB"
    if isinstance(built.get("ferretdb"), Mapping):
        return f"FerretDB {built['ferretdb'].get('version', '')}".strip()
    return f"MongoDB {built.get('version', '')}".strip()


def _honours_cluster_time(client: Any, now: Timestamp) -> bool:
    """Whether a read after a time that has not come is refused, or waits: a server that ignores it answers."""
    ahead = Timestamp(now.time + _AHEAD_S, 1)
    try:
        client.admin.command(
            {
                "find": "antipode.probe",
                "limit": 1,
                "readConcern": {"level": "majority", "afterClusterTime": ahead},
                "maxTimeMS": 50,
            }
        )
    except ExecutionTimeout:
        return True
    except OperationFailure as error:
        if error.code == NO_MAJORITY_YET:
            raise NotReadyError(str(error)) from error
        # 72: the time is greater than the cluster's. Without the right to read there it cannot be told: not believed.
        return error.code in (72, _EXPIRED)
    return False


def _of_replica_set(client: Any, store: str, product: str) -> Flavour:
    try:
        config: Mapping[str, Any] = client.admin.command("replSetGetConfig")["config"]
    except OperationFailure as error:
        if error.code in _UNAUTHORIZED:
            raise UnfitStoreError(
                f"{store}: the login may not ask for the replica set's id, which names the history of its positions "
                f"({error.details.get('codeName') if error.details else error.code}). {GRANT}",
                code="AP203",
            ) from error
        if error.code == _NOT_INITIALIZED:
            raise NotReadyError(str(error)) from error
        return Flavour(product, why_none=f"it does not say what its replica set is ({error})")
    set_id = config.get("settings", {}).get("replicaSetId")
    if set_id is None:
        return Flavour(product, why_none="its replica set has no id")
    if config.get("writeConcernMajorityJournalDefault") is False:
        raise UnfitStoreError(
            f"{store}: the replica set acknowledges writes of a majority before they are in the journal, so a crash "
            "loses them under their position. Set writeConcernMajorityJournalDefault: true by rs.reconfig()"
        )
    return Flavour(product, epoch=str(set_id), majority=_majority_by_default(client))


def _majority_by_default(client: Any) -> bool:
    """Whether the cluster's default is a majority: what a client that says nothing gets."""
    try:
        default = client.admin.command("getDefaultRWConcern").get("defaultWriteConcern", {})
    except OperationFailure:
        return False
    return is_durable_majority(default)


def is_durable_majority(concern: Mapping[str, Any]) -> bool:
    """Whether a write concern waits until a majority has the write in its journal: no election and no crash loses it.

    One that is given without `w` does not: servers up to 6.0 take 1 then, whatever their default is.
    """
    return bool(concern.get("w") == "majority" and concern.get("j") is not False)


def counter_of(time: Timestamp) -> int:
    """A position's counter: the 64 bits of an operationTime, seconds and then number."""
    return time.time << 32 | time.inc


def time_of(counter: int) -> Timestamp:
    """The operationTime of a counter."""
    return Timestamp(counter >> 32, counter & 0xFFFFFFFF)
