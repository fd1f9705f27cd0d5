"""What a database needs before its clients are wrapped: `antipode init` (spec SHIM-3)."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from contextlib import closing
from functools import partial
from typing import Any, Final

from antipode import ConfigurationError, UnfitStoreError
from antipode.shim.administration import InitRequest, Step
from pymongo.errors import OperationFailure

from antipode_mongodb import tombstones
from antipode_mongodb.flavour import GRANT, examine
from antipode_mongodb.targets import Target, target_of

OPTIONS: Final[Mapping[str, str]] = {
    "database": "the store's database; for several: names with commas between (the store's name)"
}
_PRIMARY: Final = "this server takes no writes: name the primary"
_TIMEOUT_S: Final = 5.0
_NOT_FOUND: Final = 59


def preparations(url: str, wanted: InitRequest) -> Sequence[Step]:
    """A collection of tombstones for each database, and the right to ask what the server is."""
    target = target_of(url)
    names = [name.strip() for name in wanted.options.get("database", wanted.store).split(",")]
    steps = [
        Step(
            "mongosh",
            tombstones.cure(name),
            "without it deletions leave no tombstone, and are unproven at other servers. A replica set of MongoDB "
            "needs none: its writes have positions",
            partial(_make, target, name),
        )
        for name in names
    ]
    grant = GRANT.replace("USER", wanted.user or "USER")
    steps.append(
        Step(
            "mongosh",
            grant,
            "of a replica set: its id names the history of its positions; without the right wrap() refuses it",
            None if wanted.user is None else partial(_grant, target, wanted.user),
        )
    )
    return steps


def _make(target: Target, database: str) -> str:
    """Makes the collection with its index; one that is there stays as it is."""
    with closing(target.connect(_TIMEOUT_S)) as client:
        if _is_replica_set(client):
            return "not needed: its writes have positions"
        if tombstones.are_on(client, database):
            return "there already"
        try:
            client[database][tombstones.COLLECTION].create_index(tombstones.EXPIRES, expireAfterSeconds=0)
        except OperationFailure as error:
            if "recovery" in str(error) or error.code == 10107:
                raise ConfigurationError(_PRIMARY, code="AP512") from error
            raise
        return "created"


def _is_replica_set(client: Any) -> bool:
    try:
        return examine(client, "the store").positions
    except UnfitStoreError as error:
        raise ConfigurationError(str(error.args[0]), code=error.code) from error


def _grant(target: Target, user: str) -> str:
    with closing(target.connect(_TIMEOUT_S)) as client:
        try:
            client.admin.command("grantRolesToUser", user, roles=[{"role": "clusterMonitor", "db": "admin"}])
        except OperationFailure as error:
            if error.code == _NOT_FOUND:
                return "not needed: this server has no such right"
            if error.code == 11:
                raise ConfigurationError(f"there is no user {user}", code="AP707") from error
            raise
    return "granted"
