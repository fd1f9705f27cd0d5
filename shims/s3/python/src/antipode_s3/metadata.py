"""What rests beside an object: its version and the lineage of its writer, in one entry of its metadata (spec SHIM-9).

    x-amz-meta-antipode: 1k3v9c0q8z6wm.4jx0k2ab 1~blog-acl..0-1.57

The version is the counter and the name of its chain, in base 36, lower case (an earlier release wrote no chain); the
lineage, in the wire form, follows after a space where it is not
empty. S3 takes 2 KB of metadata an object, names and values together.
"""

from __future__ import annotations

import re
from collections.abc import Mapping
from typing import Any, Final, NamedTuple

from antipode import EMPTY, Lineage, Ordered
from antipode.shim import MAX_COUNTER, events, lineage_at_rest, text_at_rest, trust_settings

from antipode_s3.chains import base36

NAME: Final = "antipode"
MOST_BYTES: Final = 2048
"""What S3 takes of user metadata: the octets of all names and values. MinIO counts the names' prefix, too."""
_PREFIX: Final = len("x-amz-meta-")
_VERSION: Final = re.compile(r"([0-9a-z]{1,13})(?:\.([0-9a-z]{1,8}))?")


class Rest(NamedTuple):
    """What was found beside an object."""

    version: Ordered | None
    """Its version; None where it was written without Antipode, or by something that broke it."""
    lineage: str = ""
    """The text of the lineage, not looked at yet."""
    broken: bool = False
    """There is an entry, and it cannot be read."""


NOTHING: Final = Rest(None)


def spell(version: Ordered) -> str:
    """A version as it stands in the metadata."""
    return f"{base36(version.counter)}.{version.epoch}" if version.epoch else base36(version.counter)


def read(metadata: Mapping[str, str] | None) -> Rest:
    """What rests beside an object with this metadata."""
    value = (metadata or {}).get(NAME)
    if value is None:
        return NOTHING
    spelled, _, lineage = value.partition(" ")
    found = _VERSION.fullmatch(spelled)
    counter = -1 if found is None else int(found[1], 36)
    if found is None or counter > MAX_COUNTER:
        return Rest(None, broken=True)
    return Rest(Ordered(found[2] or "", counter), lineage.strip())


def lineage_of(rest: Rest, store: str, lineage_in: bool) -> Lineage:
    """The lineage that rests beside an object; what cannot be read is incomplete for the store (SHIM-14)."""
    if rest.broken:
        return EMPTY.marked_incomplete(store)
    return lineage_at_rest(rest.lineage or None, store, lineage_in)


def with_rest(
    given: Mapping[str, Any] | None, own: Ordered, lineage: Lineage, store: str, lineage_out: bool
) -> dict[str, Any] | None:
    """The application's metadata with our entry; None where there is no room even for the version.

    Where there is no room for the whole lineage, what does not fit is left out and marked.
    """
    metadata: dict[str, Any] = {str(name): value for name, value in (given or {}).items() if str(name).lower() != NAME}
    used = sum(_PREFIX + len(name.encode()) + len(str(value).encode()) for name, value in metadata.items())
    version = spell(own)
    room = MOST_BYTES - used - _PREFIX - len(NAME) - len(version)
    if room < 0:
        return None
    text = text_at_rest(lineage, lineage_out)
    if text and len(text) + 1 > room:
        events.on_lineage_incomplete("budget", store)
        text = text_at_rest(lineage.fit(max(room - 1 - trust_settings().seal_length, 0)), lineage_out)
        if len(text) + 1 > room:
            text = text_at_rest(EMPTY.marked_incomplete(), lineage_out)
        if len(text) + 1 > room:
            return None
    metadata[NAME] = f"{version} {text}" if text else version
    return metadata
