"""A write with its version: kept growing by a condition of ours, beside the application's own (spec SHIM-8 to SHIM-10).

The application's condition, values and errors stay its own. What fails by our condition alone is tried again, knowing
more: a greater version is there, a tombstone (which the application must not see), another lineage to be joined.
"""

from __future__ import annotations

import time
from dataclasses import dataclass, replace
from enum import Enum
from typing import Any, Final

from antipode import Ordered

from antipode_dynamodb.attributes import (
    CHAIN,
    LINEAGE,
    TOMBSTONE,
    VERSION,
    Item,
    as_if_absent,
    both,
    chain_of,
    edited_update,
    in_chain,
    is_tombstone,
    lineage_text,
    names_another_chain,
    number,
    place_of,
    stripped,
    version_of,
    with_names,
    with_values,
)
from antipode_dynamodb.tables import Table

TOMBSTONE_LIFE_S: Final = 24 * 3600
_FIRST: Final = "attribute_not_exists(#apv)"
_ABOVE: Final = "(attribute_not_exists(#apv) OR #apv < :apv)"
_LINKED: Final = "(#apv < :apv AND (#ape = :ape OR (attribute_not_exists(#ape) AND #apv = :ape)))"
"""By them alone a greater version of a chain is one that was written later (SHIM-53)."""


class Mode(Enum):
    """What the write takes to be at its key."""

    LIVE = "live"
    """An item, or nothing."""
    TOMBSTONE = "tombstone"
    ABSENT = "absent"
    """Nothing: a deletion changes nothing there."""


class Kind(Enum):
    """The four actions on one item."""

    PUT = "Put"
    UPDATE = "Update"
    DELETE = "Delete"
    CHECK = "ConditionCheck"


@dataclass(frozen=True, slots=True)
class GuardedAction:
    """One action of the application, and what of ours goes with it."""

    kind: Kind
    params: dict[str, Any]
    table: Table
    version: int
    text: str
    """The lineage that rests beside the item; empty where none does."""
    mode: Mode = Mode.LIVE
    old_text: str | None = None
    """What rests there now, and is in `text`: an update keeps values of earlier writers, and what they depend on."""
    unguarded: bool = False
    """Our condition was given up, after many tries."""
    chain: int | None = None
    """The chain that it goes on with; None: it begins one."""
    above: bool = False
    """It begins a chain above whatever is there, and not where no version is."""

    @property
    def identity(self) -> Ordered:
        """Its version as it stands in lineages."""
        return in_chain(self.version if self.chain is None else self.chain, self.version)

    @property
    def left_chain(self) -> int | None:
        """The chain of the item that it leaves; None where it leaves none."""
        if self.mode is Mode.ABSENT or (self.kind is Kind.DELETE and not self.leaves_tombstone):
            return None
        return self.version if self.chain is None else self.chain

    def given_up(self) -> GuardedAction:
        """The same action without our condition: what it leaves is of no chain that was there."""
        return replace(self, unguarded=True, chain=None, above=True)

    @property
    def leaves_tombstone(self) -> bool:
        """Whether it is a deletion that leaves a tombstone."""
        return self.kind is Kind.DELETE and self.table.ttl is not None and self.mode is not Mode.ABSENT

    @property
    def changes_nothing(self) -> bool:
        """Whether its success says that nothing was there to be changed."""
        return self.kind is Kind.CHECK or self.mode is Mode.ABSENT

    def request(self) -> tuple[Kind, dict[str, Any]]:
        """What is sent, and as which action: a deletion that leaves a tombstone puts it."""
        params = dict(self.params)
        self._take_condition(params)
        if self.kind is Kind.PUT:
            params["Item"] = {**stripped(params["Item"]), **self.beside()}
        elif self.kind is Kind.UPDATE:
            self._dress_update(params)
        elif self.leaves_tombstone:
            params["Item"] = {**params.pop("Key"), **self.tombstone()}
            self._guard(params)
            params["ReturnValuesOnConditionCheckFailure"] = "ALL_OLD"
            return Kind.PUT, params
        self._guard(params)
        params["ReturnValuesOnConditionCheckFailure"] = "ALL_OLD"
        return self.kind, params

    def tombstone(self) -> Item:
        """What a deletion leaves beside the key."""
        expires = number(int(time.time()) + TOMBSTONE_LIFE_S)
        ttl = self.table.ttl or TOMBSTONE
        return {TOMBSTONE: expires, ttl: expires, **self.beside()}

    def beside(self) -> Item:
        """What of ours an item holds."""
        ours: Item = {VERSION: number(self.version)}
        if self.chain is not None:
            ours[CHAIN] = number(self.chain)
        if self.text:
            ours[LINEAGE] = {"S": self.text}
        return ours

    def _take_condition(self, params: dict[str, Any]) -> None:
        """Of a tombstone the application's condition is asked as if nothing were there."""
        condition = params.get("ConditionExpression")
        if condition is None or self.mode is not Mode.TOMBSTONE:
            return
        names = params.get("ExpressionAttributeNames", {})
        update = params.get("UpdateExpression") or ""
        condition, renamed = as_if_absent(condition, names, self.table.keys)
        # An update's own expression keeps the names: only the condition's are another.
        if update and renamed != names:
            clash = {short for short in names if renamed[short] != names[short] and short in update}
            if clash:
                renamed |= {short: names[short] for short in clash}
                for short in sorted(clash, key=len, reverse=True):
                    condition = condition.replace(short, "#ap0")
                renamed["#ap0"] = "_ap0"
        params["ConditionExpression"] = condition
        if renamed:
            params["ExpressionAttributeNames"] = renamed

    def _guard(self, params: dict[str, Any]) -> None:
        own = params.get("ConditionExpression")
        if self.mode is Mode.ABSENT:
            with_names(params, apk=self.table.keys[0])
            params["ConditionExpression"] = both(own, "attribute_not_exists(#apk)")
            return
        if self.unguarded:
            return
        if self.kind is Kind.CHECK:
            with_names(params, "#apx")
            guard = "attribute_exists(#apx)" if self.mode is Mode.TOMBSTONE else "attribute_not_exists(#apx)"
            params["ConditionExpression"] = both(own, guard)
            return
        guard = self._order(params)
        if self.mode is Mode.TOMBSTONE:
            with_names(params, "#apx")
            guard += " AND attribute_exists(#apx)"
        elif own is not None or self.kind is not Kind.PUT:  # else what is there is replaced whole, a tombstone too
            with_names(params, "#apx")
            guard += " AND attribute_not_exists(#apx)"
        if self.leaves_tombstone and self.mode is Mode.LIVE:
            with_names(params, apk=self.table.keys[0])
            guard = f"attribute_exists(#apk) AND {guard}"
        if self.kind is Kind.UPDATE and self.text and self.mode is Mode.LIVE:
            with_names(params, "#apl")
            if self.old_text is None:
                guard += " AND (attribute_not_exists(#apl) OR #apl = :apl)"
            else:
                with_values(params, apo={"S": self.old_text})
                guard += " AND #apl = :apo"
        params["ConditionExpression"] = both(own, guard)

    def _order(self, params: dict[str, Any]) -> str:
        """The condition that keeps versions growing, and chains in order."""
        with_names(params, "#apv")
        if self.chain is not None:
            with_names(params, "#ape")
            with_values(params, apv=number(self.version), ape=number(self.chain))
            return _LINKED
        if self.above or (self.kind is Kind.DELETE and not self.leaves_tombstone):  # what is deleted has no chain
            with_values(params, apv=number(self.version))
            return _ABOVE
        return _FIRST

    def _dress_update(self, params: dict[str, Any]) -> None:
        with_names(params, "#apv")
        with_values(params, apv=number(self.version))
        to_set, to_remove = ["#apv = :apv"], []
        if self.chain is not None:
            with_names(params, "#ape")
            with_values(params, ape=number(self.chain))
            to_set.append("#ape = :ape")
        elif self.above or self.unguarded:
            with_names(params, "#ape")
            to_remove.append("#ape")
        if self.text:
            with_names(params, "#apl")
            with_values(params, apl={"S": self.text})
            to_set.append("#apl = :apl")
        if self.mode is Mode.TOMBSTONE:
            with_names(params, "#apx")
            to_remove.append("#apx")
            if not self.text:
                with_names(params, "#apl")
                to_remove.append("#apl")
            if self.table.ttl not in {None, TOMBSTONE} and not self._mentions(str(self.table.ttl)):
                with_names(params, apt=str(self.table.ttl))
                to_remove.append("#apt")
        params["UpdateExpression"] = edited_update(
            self.params.get("UpdateExpression"), to_set=to_set, to_remove=to_remove
        )

    def _mentions(self, attribute: str) -> bool:
        names = self.params.get("ExpressionAttributeNames", {}).values()
        return attribute in names or attribute in (self.params.get("UpdateExpression") or "")


class Failure(Enum):
    """Why a condition did not hold."""

    THEIRS = "theirs"
    """By the application's own condition: it gets the error."""
    OURS = "ours"
    """By ours: try again."""
    DONE = "done"
    """It was done before: a repetition that botocore sent after a lost answer."""


def judge(action: GuardedAction, item: Item | None, *, repeated: bool) -> tuple[Failure, GuardedAction]:
    """Why an action's condition failed at this item, and how to try again; the version is the caller's to raise.

    repeated: the client had sent this request before, and got no answer. Else a version that is the action's own is
    another's, above the same refused one.
    """
    seen = version_of(item)
    has_own = action.params.get("ConditionExpression") is not None
    if repeated and action.kind is not Kind.CHECK and seen is not None and seen == action.version:
        return Failure.DONE, action
    tombstone, absent = is_tombstone(item), not item
    again = _linked(action, item)
    if action.mode is Mode.LIVE:
        if tombstone and (action.kind is not Kind.PUT or has_own):
            return Failure.OURS, replace(again, mode=Mode.TOMBSTONE, old_text=None)
        if absent and action.leaves_tombstone:
            return Failure.OURS, replace(again, mode=Mode.ABSENT)
        if (
            action.kind is Kind.UPDATE
            and action.text
            and lineage_text(item) not in {None, action.text, action.old_text}
        ):
            return Failure.OURS, replace(again, old_text=lineage_text(item))
    elif (action.mode is Mode.TOMBSTONE) != tombstone or (action.mode is Mode.ABSENT) != absent:
        return Failure.OURS, replace(again, mode=Mode.LIVE)
    if action.kind is not Kind.CHECK and not _holds(action, item):
        return Failure.OURS, again
    if has_own:
        return Failure.THEIRS, action
    return Failure.OURS, again  # somebody wrote between: look again


def _linked(action: GuardedAction, item: Item | None) -> GuardedAction:
    """The same action with a condition that holds at this item: it goes on with the chain of its own region."""
    if action.unguarded:
        return action.given_up()
    chain = chain_of(item)
    if chain is None:
        return replace(action, chain=None, above=False)
    is_own = place_of(chain) == place_of(action.version) and not names_another_chain(item)
    return replace(action, chain=chain if is_own else None, above=not is_own)


def _holds(action: GuardedAction, item: Item | None) -> bool:
    """Return whether the condition of an action that keeps versions in order holds at this item."""
    seen = version_of(item)
    if seen is None:
        return action.chain is None
    if action.chain is not None:
        return seen < action.version and chain_of(item) == action.chain and not names_another_chain(item)
    is_first = not action.above and (action.kind is not Kind.DELETE or action.leaves_tombstone)
    return not is_first and seen < action.version
