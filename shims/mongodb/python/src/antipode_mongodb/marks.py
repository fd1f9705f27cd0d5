"""What operators have settled of other replica sets' histories: one small collection a set (spec EPOCH-24)."""

from __future__ import annotations

import re
from collections.abc import Iterable, Mapping
from typing import Any, Final

from antipode import ConfigurationError
from antipode.shim.administration import SETTLED, not_at_primary, not_ended
from pymongo import ReadPreference, WriteConcern
from pymongo.errors import NotPrimaryError
from pymongo.read_concern import ReadConcern

from antipode_mongodb.fields import stored, version_of
from antipode_mongodb.flavour import examine
from antipode_mongodb.targets import target_of

DATABASE: Final = "antipode"
COLLECTION: Final = "epochs"
GRANT: Final = f'db.grantRolesToUser("USER", [{{role: "read", db: "{DATABASE}"}}])'
_COUNTER: Final = "n"
_EPOCH: Final = re.compile(r"[0-9a-f]{24}")
_TIMEOUT_S: Final = 5.0
_MAJORITY: Final = WriteConcern(w="majority", wtimeout=4000)


def settled(client: Any, epochs: Iterable[str] | None = None) -> Mapping[str, int]:
    """By epoch: up to which counter an operator has vouched for it, as a majority of the set has it."""
    marks = client[DATABASE].get_collection(
        COLLECTION, read_preference=ReadPreference.PRIMARY_PREFERRED, read_concern=ReadConcern("majority")
    )
    wanted = {} if epochs is None else {"_id": {"$in": sorted(epochs)}}
    found = {str(mark["_id"]): version_of(mark, _COUNTER) for mark in marks.find(wanted)}
    return {epoch: counter for epoch, counter in found.items() if counter is not None}


def settle(what: Any, epoch: str, position: int | None = None) -> None:
    """Writes down, at the primary, up to where the data of another replica set is in this one; it only ever grows.

    Raises ConfigurationError for what cannot be settled, and PyMongo's errors.
    """
    target = target_of(what)
    if not _EPOCH.fullmatch(epoch):
        raise ConfigurationError(
            f"{epoch!r} is no epoch of MongoDB: it is a replica set's id, 24 hexadecimal digits. Versions of documents "
            "are of none",
            code="AP513",
        )
    if position is None or not 0 < position < SETTLED:
        raise ConfigurationError(
            f"the replica set {epoch} may be written on elsewhere, or again, so say up to where it is settled: "
            "--position N, the greatest counter that barriers name",
            code="AP513",
        )
    client = target.connect(_TIMEOUT_S)
    try:
        flavour = examine(client, "the store")
        if not flavour.positions:
            raise ConfigurationError(
                f"{target} gives no positions ({flavour.why_none}): versions of documents are of no epoch, and there "
                "is nothing to settle",
                code="AP513",
            )
        if epoch == flavour.epoch:  # a set's id stays as long as the set, so it is this one's when the mark is written
            raise not_ended(target)
        marks = client[DATABASE].get_collection(COLLECTION, write_concern=_MAJORITY)
        marks.update_one({"_id": epoch}, {"$max": {_COUNTER: stored(position)}}, upsert=True)
    except NotPrimaryError as error:
        raise not_at_primary(target, "secondary") from error
    finally:
        client.close()
