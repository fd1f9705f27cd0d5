"""The DynamoDB shim: reads versions in the local region, strongly consistent (spec SHIM, SHIM-24 to SHIM-30)."""

from __future__ import annotations

import threading
import time
from collections.abc import Mapping, Sequence
from typing import Any, ClassVar, Final

from antipode import Opaque, Ordered, Store, UnfitStoreError, WriteId
from antipode.shim import (
    VISIBLE,
    Capabilities,
    HybridClock,
    Server,
    Shim,
    UnprovenKind,
    Visibility,
    not_yet,
    place_number,
    seconds_of,
    unproven,
)
from antipode.shim.aws import code_of, status_of
from antipode.shim.objects import deletion_of, is_content
from botocore.exceptions import ClientError, HTTPClientError, NoCredentialsError

from antipode_dynamodb import doctor, preparing
from antipode_dynamodb.attributes import NAMES, Item, chain_of, is_tombstone, named_chain, version_of
from antipode_dynamodb.keys import key_octets, parse_key
from antipode_dynamodb.opaque import content_version
from antipode_dynamodb.plain import for_questions
from antipode_dynamodb.tables import Tables
from antipode_dynamodb.targets import SCHEMES, target_of

_AT_ONCE: Final = 100
"""So many keys a BatchGetItem may ask for."""
_SURE_S: Final = 3600.0
"""By so much no clock of a writer is wrong: the service refuses its requests."""
GRANT: Final = "Allow dynamodb:BatchGetItem and dynamodb:DescribeTable on the tables (and dynamodb:DescribeTimeToLive)"


class DynamoDbShim(Shim):
    """What knows DynamoDB. Versions of objects: a hybrid logical clock in an attribute of the item."""

    kind: ClassVar[str] = "dynamodb"
    capabilities: ClassVar[Capabilities] = Capabilities(versions="object", tombstones=True, rest=("field",))
    unreachable: ClassVar[tuple[type[Exception], ...]] = (OSError, HTTPClientError)
    notes_reads: ClassVar[bool] = True
    schemes: ClassVar[tuple[str, ...]] = SCHEMES
    """URLs of these schemes are ours (`antipode doctor`, `antipode init`)."""
    preparation_options: ClassVar[Mapping[str, str]] = preparing.OPTIONS

    def __init__(self, store: Store) -> None:
        super().__init__(store)
        self._lock = threading.Lock()
        self._clocks: dict[str, HybridClock] = {}
        self._places: dict[str, int] = {}
        self.proved_at = -1e9
        """When a write was last seen, `time.monotonic()`: reads have to show what was proved."""

    # Clocks

    def clock(self, region: str) -> HybridClock:
        """The clock of this process's writes in a region; one for all its clients."""
        with self._lock:
            clock = self._clocks.get(region)
            if clock is None:
                clock = self._clocks[region] = HybridClock(place=self._places.get(region, place_number(region)))
            return clock

    def place(self, regions: Sequence[str], numbers: Mapping[str, int]) -> None:
        """Checks that no two of the store's regions have one number (SHIM-29).

        Raises UnfitStoreError that says what to give.
        """
        with self._lock:
            for region in regions:
                self._places.setdefault(region, numbers.get(region, place_number(region)))
            self._places.update(numbers)
            taken: dict[int, str] = {}
            for region, number in self._places.items():
                other = taken.setdefault(number, region)
                if other != region:
                    raise UnfitStoreError(
                        f"{self.store.name}: the regions {other} and {region} have one number, {number}, so two "
                        f"writers could give one version. Give them others, the same in every service: "
                        f"wrap(…, places={{'{other}': {number}, '{region}': {(number + 1) % 256}}})"
                    )

    # Answers

    def visible(self, ids: Sequence[WriteId], server: Server) -> Sequence[Visibility]:
        session = self._session(server)
        if not ids:
            session.ask.list_tables(Limit=1)
            return []
        answers: list[Visibility | None] = [None] * len(ids)
        wanted: dict[tuple[str, bytes], list[int]] = {}
        whole: set[str] = set()  # the tables whose items are read whole
        keys: dict[tuple[str, bytes], Item] = {}
        for index, write_id in enumerate(ids):
            found = self._parse(session, write_id)
            if isinstance(found, Visibility):
                answers[index] = found
            else:
                table, key = found
                wanted.setdefault((table, write_id.key), []).append(index)
                keys[table, write_id.key] = key
                if isinstance(write_id.version, Opaque) and is_content(write_id.version):
                    whole.add(table)
        items = self._read(session, keys, whole)
        for place, indexes in wanted.items():
            for index in indexes:
                found_item = items.get(place, _UNASKED)
                answers[index] = (
                    found_item if isinstance(found_item, Visibility) else judge(ids[index], found_item or None)
                )
        if VISIBLE in answers:
            self.proved_at = time.monotonic()
        return [answer if answer is not None else not_yet("not asked", unanswered=True) for answer in answers]

    def _parse(self, session: _Session, write_id: WriteId) -> tuple[str, Item] | Visibility:
        """The table and key of a write, or why it cannot be asked for."""
        version = write_id.version
        if write_id.is_position:
            return unproven("DynamoDB has versions of items, and no positions")
        if isinstance(version, Ordered) and version.epoch and named_chain(version.epoch) is None:
            return unproven(f"a version of epoch {version.epoch} is none of this store's")
        if isinstance(version, Opaque) and deletion_of(version) is None and not is_content(version):
            return unproven("this opaque version is none of this store's")
        parsed = parse_key(write_id.key)
        if parsed is None:
            return unproven(
                "its key travels as a hash, and DynamoDB can only be asked by the key itself; shorten the key, or set "
                "hash_keys=False"
            )
        table, values = parsed
        try:
            known = session.tables.get(table)
        except ClientError as error:
            if code_of(error) == "ResourceNotFoundException":
                return not_yet(f"there is no table {table} in this region; add a replica of it")
            if status_of(error) >= 500:
                raise OSError(str(error)) from error
            return unproven(f"it may not be asked for its tables ({error}). {GRANT}", UnprovenKind.RIGHT)
        if len(values) != len(known.keys):
            return unproven(f"the key has {len(values)} parts, and those of {table} have {len(known.keys)}")
        return table, dict(zip(known.keys, values, strict=True))

    def _read(
        self, session: _Session, keys: Mapping[tuple[str, bytes], Item], whole: set[str]
    ) -> dict[tuple[str, bytes], Item | Visibility]:
        """The versions at these keys, an empty item where nothing is, or why they could not be read."""
        found: dict[tuple[str, bytes], Item | Visibility] = {}
        places = list(keys)
        for start in range(0, len(places), _AT_ONCE):
            some = places[start : start + _AT_ONCE]
            request: dict[str, Any] = {}
            for table, octets in some:
                part = request.setdefault(table, {"Keys": [], "ConsistentRead": True})
                if table not in whole:
                    names = session.tables.get(table).keys
                    short = {f"#k{index}": name for index, name in enumerate(names)}
                    part["ExpressionAttributeNames"] = short | {name: NAMES[name] for name in ("#apv", "#ape", "#apx")}
                    part["ProjectionExpression"] = ", ".join(part["ExpressionAttributeNames"])
                part["Keys"].append(keys[table, octets])
            found |= self._ask(session, some, request)
        return found

    def _ask(
        self, session: _Session, places: Sequence[tuple[str, bytes]], request: dict[str, Any]
    ) -> dict[tuple[str, bytes], Item | Visibility]:
        try:
            answer = session.ask.batch_get_item(RequestItems=request)
        except NoCredentialsError as error:
            return dict.fromkeys(places, unproven(f"it cannot be asked ({error})"))
        except ClientError as error:
            code = code_of(error)
            if code in _THROTTLED:
                return dict.fromkeys(places, not_yet(f"DynamoDB throttles the questions ({code})", unanswered=True))
            if status_of(error) >= 500:
                raise OSError(str(error)) from error
            if code == "ResourceNotFoundException":
                return dict.fromkeys(places, not_yet("the table is not there any more"))
            return dict.fromkeys(places, unproven(f"it may not be asked ({error}). {GRANT}", UnprovenKind.RIGHT))
        found: dict[tuple[str, bytes], Item | Visibility] = {place: {} for place in places}
        for table, items in answer["Responses"].items():
            names = session.tables.get(table).keys
            for item in items:
                found[table, key_octets(table, names, item)] = item
        for table, part in answer.get("UnprocessedKeys", {}).items():
            names = session.tables.get(table).keys
            for key in part["Keys"]:
                found[table, key_octets(table, names, key)] = not_yet(
                    "DynamoDB left the question unprocessed", unanswered=True
                )
        return found

    def _session(self, server: Server) -> _Session:
        session = server.session
        if not isinstance(session, _Session):
            session = server.session = _Session(server, self.store.name)
        return session

    def address(self, target: Any) -> str:
        return target_of(target).address

    # What the command line asks for

    epochs = staticmethod(doctor.epochs)
    settle = staticmethod(doctor.settle)
    diagnose = staticmethod(doctor.diagnose)
    preparations = staticmethod(preparing.preparations)


_UNASKED: Final = not_yet("not asked", unanswered=True)
_THROTTLED: Final = frozenset(
    {"ProvisionedThroughputExceededException", "RequestLimitExceeded", "ThrottlingException", "LimitExceededException"}
)


class _Session:
    """The engine's own client of one region."""

    def __init__(self, server: Server, store: str) -> None:
        self.ask = for_questions(target_of(server.target).client, server.ask_timeout)
        self.tables = Tables(self.ask, store)


def judge(write_id: WriteId, item: Item | None) -> Visibility:
    """Whether a write is visible where this item, or none, is what a strongly consistent read shows."""
    version = write_id.version
    at = version_of(item)
    if isinstance(version, Opaque) and is_content(version):
        if item and at is None and content_version(item) == version:
            return VISIBLE
        return not_yet("the item, written without Antipode, is not there, or something else took its place")
    if isinstance(version, Opaque):
        deleted = deletion_of(version)
        if at is not None and deleted is not None and at > deleted:
            return _passed(at, deleted, linked=False)
        if item and at is not None:
            return not_yet("the item is there still, with an older version")
        return unproven(
            "it is a deletion that left no tombstone, because the table has no time to live: nothing tells it from "
            "what has not arrived. Enable time to live for the attribute _apx",
            UnprovenKind.UNFIT,
        )
    if at is None:
        if item:
            return not_yet("an item without a version is there, written without Antipode: an older or a newer one")
        return not_yet("no such item yet")
    if at >= version.counter:
        is_same = at == version.counter and not version.epoch  # an earlier release named no chain
        linked = is_same or chain_of(item) == named_chain(version.epoch)
        return _passed(at, version.counter, linked=linked)
    what = "the tombstone of an older version" if is_tombstone(item) else "an older version"
    return not_yet(f"{what} is there ({at}, wanted {version.counter}): not arrived, or passed over by another region's")


def _passed(there: int, counter: int, *, linked: bool) -> Visibility:
    """Return whether a greater version was written behind this one (SHIM-52); linked: it is of the same chain.

    Only within a chain conditions kept the order. Among regions the service keeps the last by its own clocks; a batch
    takes no conditions; a key whose version is gone (deleted without a tombstone, put by code without Antipode) has
    nothing that a write must pass: there a machine's clock that is ahead gives the earlier write the greater version.
    """
    if linked or seconds_of(there) - seconds_of(counter) > _SURE_S:
        return VISIBLE
    return unproven(
        f"a version is there ({there}, wanted {counter}) of nearly the same time, which no condition put behind it: of "
        "another region, by a batch, or where no version was. By the writers' clocks nobody can tell which came last"
    )
