"""What an operator asks of a server: what would be unproven there, and why (`antipode doctor`)."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import closing
from typing import Any, Final

from antipode import UnfitStoreError
from antipode.shim.administration import EpochRecord, Finding, Level, no_answer
from pymongo.errors import OperationFailure, PyMongoError

from antipode_mongodb import judging, marks, tombstones
from antipode_mongodb.flavour import GRANT, Flavour, NotReadyError, examine
from antipode_mongodb.targets import target_of

_TIMEOUT_S: Final = 5.0
_MOST_DATABASES: Final = 50
_OWN: Final = frozenset({"admin", "config", "local", marks.DATABASE})


def diagnose(target: Any) -> list[Finding]:
    """Asks a server; never raises for what is wrong with it."""
    with closing(target_of(target).connect(_TIMEOUT_S)) as client:
        try:
            return _findings(client)
        except (OSError, PyMongoError) as error:
            words = str(error) if isinstance(error, NotReadyError) else f"does not answer: {type(error).__name__}"
            return [no_answer(words, "the login and the network")]


def _findings(client: Any) -> list[Finding]:
    try:
        flavour = examine(client, "the store")
    except UnfitStoreError as error:
        return [Finding(Level.UNPROVEN, str(error), "wrap() refuses it", "see there", code="AP208")]
    except OperationFailure as error:
        return [Finding(Level.UNKNOWN, f"may not be asked: {error}", "nothing can be said of it", GRANT, code="AP203")]
    return [*_of_server(client, flavour), *_of_databases(client, flavour)]


def _of_server(client: Any, flavour: Flavour) -> Iterator[Finding]:
    hello = client.admin.command("hello")
    role = "primary" if hello.get("isWritablePrimary") else "secondary"
    if not flavour.positions:
        # FerretDB says that a standby is a primary, too.
        yield Finding(
            Level.OK,
            f"{flavour.product}: documents have versions of their own ({flavour.why_none})",
            "each document holds 14 bytes more, and a lineage names each document that was written",
        )
        return
    yield Finding(Level.OK, f"{flavour.product}, {role} of the replica set {hello.get('setName')} ({flavour.epoch})")
    if flavour.majority:
        yield Finding(Level.OK, "writes are acknowledged by a majority, where nothing else is asked for")
    else:
        yield Finding(
            Level.UNPROVEN,
            "writes are not known to be acknowledged by a majority where the client says nothing",
            "they may be rolled back under their position, so they are recorded as incomplete",
            'w="majority" in the client\'s URL, or db.adminCommand({setDefaultRWConcern: 1, defaultWriteConcern: '
            '{w: "majority"}})',
            code="AP509",
        )
    if judging._committed_time(client, None, 0) is None:
        yield Finding(
            Level.UNPROVEN,
            "a majority read has no operationTime",
            "positions cannot be judged here",
            "wait until the server has caught up, and ask again",
            code="AP706",
        )


def _of_databases(client: Any, flavour: Flavour) -> Iterator[Finding]:
    if flavour.positions:
        return
    try:
        names = [name for name in client.list_database_names() if name not in _OWN][:_MOST_DATABASES]
    except OperationFailure as error:
        yield Finding(
            Level.UNKNOWN, f"may not list its databases: {error}", "nothing is known of tombstones", GRANT, code="AP203"
        )
        return
    for name in names:
        if tombstones.are_on(client, name):
            yield Finding(Level.OK, f"{name}: deletions leave tombstones for a day")
        else:
            yield Finding(
                Level.UNPROVEN,
                f"{name}: no collection for tombstones",
                "deletions there are unproven at other servers",
                tombstones.cure(name),
                code="AP213",
            )


def epochs(target: Any) -> list[EpochRecord]:
    """What was settled of other replica sets, and the history of this one, up to its committed time."""
    with closing(target_of(target).connect(_TIMEOUT_S)) as client:
        flavour = examine(client, "the store")
        if not flavour.positions:
            return []
        settled = marks.settled(client).items()
        own = EpochRecord(flavour.epoch, judging._committed_time(client, None, 0) or 0, current=True)
        return [*(EpochRecord(epoch, counter, detail="settled by hand") for epoch, counter in settled), own]
