"""Our attributes of an item, and the expressions that write, guard and hide them.

An item holds the version of its last write, and the lineage that rests beside it. A deleted one leaves a tombstone: the
key with a version and the time at which DynamoDB's time to live may take it away.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Mapping
from typing import Any, Final, TypeAlias

from antipode import Ordered
from antipode.shim import MAX_COUNTER, NODE_BITS, PLACE_BITS

Item: TypeAlias = dict[str, Any]
"""An item as the low-level client has it: names to `{"S": …}`, `{"N": …}`…"""

VERSION: Final = "_apv"
CHAIN: Final = "_ape"
"""The version with which the item's chain began; not there where that is the item's own."""
LINEAGE: Final = "_apl"
TOMBSTONE: Final = "_apx"
"""Seconds since 1970 after which a tombstone may go. Names are short because they count in every item."""
NAMES: Final = {"#apv": VERSION, "#ape": CHAIN, "#apl": LINEAGE, "#apx": TOMBSTONE}
_OURS: Final = frozenset(NAMES.values())
_NOWHERE: Final = "_ap0"
"""An attribute that no item has."""
_CHAIN_NAME: Final = re.compile(r"0|[1-9a-f][0-9a-f]{0,15}")
_CLAUSE: Final = re.compile(r"(?<![\w#:.])(SET|REMOVE|ADD|DELETE)(?=\s)", re.IGNORECASE)
_IDENTIFIER: Final = re.compile(r"(?<![\w#:.])[A-Za-z_]\w*(?![\w(])")


def version_of(item: Mapping[str, Any] | None) -> int | None:
    """The version of an item's last write; None where it was written without Antipode, or there is none."""
    return _counter(item, VERSION)


def chain_of(item: Mapping[str, Any] | None) -> int | None:
    """The chain of an item's last write: the version that began it. None where there is no version (SHIM-53).

    An update by an earlier release in another region gives the item its version, and leaves the chain that was there.
    """
    version, chain = version_of(item), _counter(item, CHAIN)
    if version is None or chain is None or chain > version or place_of(chain) != place_of(version):
        return version
    return chain


def names_another_chain(item: Mapping[str, Any] | None) -> bool:
    """Return whether an item names a chain that its last write is not of."""
    return CHAIN in (item or {}) and _counter(item, CHAIN) != chain_of(item)


def _counter(item: Mapping[str, Any] | None, attribute: str) -> int | None:
    text = ((item or {}).get(attribute) or {}).get("N")
    if not isinstance(text, str) or not text.isdecimal():
        return None
    number = int(text)
    return number if number <= MAX_COUNTER else None


def in_chain(chain: int, version: int) -> Ordered:
    """A version as it stands in lineages: its epoch is its chain."""
    return Ordered(f"{chain:x}", version)


def identity_of(item: Mapping[str, Any] | None) -> Ordered | None:
    """The version of an item's last write as it stands in lineages; None where it has none."""
    version, chain = version_of(item), chain_of(item)
    return None if version is None or chain is None else in_chain(chain, version)


def named_chain(epoch: str) -> int | None:
    """The chain that an epoch names; None where it names none."""
    return int(epoch, 16) if _CHAIN_NAME.fullmatch(epoch) else None


def place_of(version: int) -> int:
    """The number of the region whose writer gave this version (SHIM-29)."""
    return (version & ((1 << NODE_BITS) - 1)) >> (NODE_BITS - PLACE_BITS)


def lineage_text(item: Mapping[str, Any] | None) -> str | None:
    """The text of the lineage that rests beside an item."""
    text = ((item or {}).get(LINEAGE) or {}).get("S")
    return text if isinstance(text, str) else None


def is_tombstone(item: Mapping[str, Any] | None) -> bool:
    """Whether this is all that a deletion left."""
    return bool(item) and TOMBSTONE in (item or {})


def stripped(item: Item) -> Item:
    """An item as the application wrote it."""
    return {name: value for name, value in item.items() if name not in _OURS}


# Expressions


def both(first: str | None, second: str) -> str:
    """Both conditions hold. DynamoDB refuses double parentheses, so one that is in parentheses stays as it is."""
    if not first:
        return second
    return f"{first} AND {second}" if _enclosed(first.strip()) else f"({first}) AND {second}"


def _enclosed(text: str) -> bool:
    """Whether the parenthesis that begins a text ends with it."""
    if not text.startswith("("):
        return False
    depth = 0
    for place, character in enumerate(text):
        depth += (character == "(") - (character == ")")
        if depth == 0:
            return place == len(text) - 1
    return False


def with_names(params: dict[str, Any], *placeholders: str, **more: str) -> None:
    """Adds the names of our placeholders, and others."""
    names = {name: NAMES[name] for name in placeholders} | {f"#{name}": attribute for name, attribute in more.items()}
    params["ExpressionAttributeNames"] = {**params.get("ExpressionAttributeNames", {}), **names}


def with_values(params: dict[str, Any], **values: Any) -> None:
    """Adds the values of our placeholders."""
    ours = {f":{name}": value for name, value in values.items()}
    params["ExpressionAttributeValues"] = {**params.get("ExpressionAttributeValues", {}), **ours}


def number(value: int) -> dict[str, str]:
    """A number as DynamoDB has it."""
    return {"N": str(value)}


def edited_update(expression: str | None, *, to_set: Iterable[str], to_remove: Iterable[str] = ()) -> str:
    """An update expression with more to set and to remove."""
    text = expression or ""
    for word, parts in (("SET", list(to_set)), ("REMOVE", list(to_remove))):
        if not parts:
            continue
        ours = ", ".join(parts)
        found = next((match for match in _CLAUSE.finditer(text) if match[1].upper() == word), None)
        if found is None:
            text = f"{text} {word} {ours}".strip()
        else:
            text = f"{text[: found.end()]} {ours}, {text[found.end() :].lstrip()}"
    return text


def as_if_absent(condition: str, names: Mapping[str, str], keys: Iterable[str]) -> tuple[str, dict[str, str]]:
    """A condition and its names, to be asked of a tombstone as if there were no item: its key is not seen either."""
    hidden = set(keys)
    renamed = {short: _NOWHERE if name in hidden else name for short, name in names.items()}
    seen = False

    def hide(match: re.Match[str]) -> str:
        nonlocal seen
        if match[0] not in hidden:
            return match[0]
        seen = True
        return "#ap0"

    text = _IDENTIFIER.sub(hide, condition)
    if seen:
        renamed["#ap0"] = _NOWHERE
    return text, renamed
