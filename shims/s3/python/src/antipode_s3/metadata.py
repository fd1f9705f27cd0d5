"""What rests beside an object: its version and the lineage of its writer, in one entry of its metadata (spec SHIM-9).

    x-amz-meta-antipode: 1k3v9c0q8z6wm 1~blog-acl..0-1.57

The version is the counter in base 36, lower case; the lineage, in the wire form, follows after a space where it is not
empty. S3 takes 2 KB of metadata an object, names and values together.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, Final, NamedTuple

from antipode import telemetry
from antipode.at_rest import lineage_at_rest, text_at_rest
from antipode.lineage import EMPTY, Lineage
from antipode.trust import trust_settings
from antipode.wire import MAX_COUNTER

NAME: Final = "antipode"
MOST_BYTES: Final = 2048
"""What S3 takes of user metadata: the octets of all names and values. MinIO counts the names' prefix, too."""
_PREFIX: Final = len("x-amz-meta-")
_DIGITS: Final = "0123456789abcdefghijklmnopqrstuvwxyz"


class Rest(NamedTuple):
    """What was found beside an object."""

    counter: int | None
    """Its version; None where it was written without Antipode, or by something that broke it."""
    lineage: str = ""
    """The text of the lineage, not looked at yet."""
    broken: bool = False
    """There is an entry, and it cannot be read."""


NOTHING: Final = Rest(None)


def spell(counter: int) -> str:
    """A counter in base 36."""
    digits = ""
    while counter:
        counter, digit = divmod(counter, 36)
        digits = _DIGITS[digit] + digits
    return digits or "0"


def read(metadata: Mapping[str, str] | None) -> Rest:
    """What rests beside an object with this metadata."""
    value = (metadata or {}).get(NAME)
    if value is None:
        return NOTHING
    version, _, lineage = value.partition(" ")
    if not 0 < len(version) <= 13 or set(version) - set(_DIGITS):
        return Rest(None, broken=True)
    counter = int(version, 36)
    if counter > MAX_COUNTER:
        return Rest(None, broken=True)
    return Rest(counter, lineage.strip())


def lineage_of(rest: Rest, store: str, lineage_in: bool) -> Lineage:
    """The lineage that rests beside an object; what cannot be read is incomplete for the store (SHIM-14)."""
    if rest.broken:
        return EMPTY.marked_incomplete(store)
    return lineage_at_rest(rest.lineage or None, store, lineage_in)


def with_rest(
    given: Mapping[str, Any] | None, counter: int, lineage: Lineage, store: str, lineage_out: bool
) -> dict[str, Any] | None:
    """The application's metadata with our entry; None where there is no room even for the version.

    Where there is no room for the whole lineage, what does not fit is left out and marked.
    """
    metadata: dict[str, Any] = {str(name): value for name, value in (given or {}).items() if str(name).lower() != NAME}
    used = sum(_PREFIX + len(name.encode()) + len(str(value).encode()) for name, value in metadata.items())
    version = spell(counter)
    room = MOST_BYTES - used - _PREFIX - len(NAME) - len(version)
    if room < 0:
        return None
    text = text_at_rest(lineage, lineage_out)
    if text and len(text) + 1 > room:
        telemetry.incomplete("budget", store)
        text = text_at_rest(lineage.fit(max(room - 1 - trust_settings().seal_length, 0)), lineage_out)
        if len(text) + 1 > room:
            text = text_at_rest(EMPTY.marked_incomplete(), lineage_out)
        if len(text) + 1 > room:
            return None
    metadata[NAME] = f"{version} {text}" if text else version
    return metadata
