"""The envelope: a value and the lineage beside it in one string of octets, for stores without a place of their own for
it (spec SHIM-34 to SHIM-37)."""

from __future__ import annotations

from typing import Final, NamedTuple

BEGIN: Final = b"\xf5AE"
"""What no UTF-8 text begins with; a value that does is always put into an envelope."""
FORM: Final = b"1"
_HEAD: Final = len(BEGIN) + len(FORM) + 2
MOST_BYTES: Final = 0xFFFF
"""So long is a lineage's text at most; the wire's own limit is far below it."""


class OpenedEnvelope(NamedTuple):
    """What octets from a store were."""

    value: bytes
    """The application's; where the envelope is broken all octets, as they stand: a value is never lost."""
    text: str | None
    """The lineage's text, not judged yet; None for a value without envelope or with a broken one."""
    fault: str = ""
    """Why an envelope could not be opened."""


def close_envelope(value: bytes, text: str) -> bytes:
    """A value with a lineage's text in one; without a lineage the value as it is, unless it looks like an envelope.

    Raises ValueError for a text that is not ASCII or too long.
    """
    if not text and not value.startswith(BEGIN):
        return value
    octets = text.encode("ascii")
    if len(octets) > MOST_BYTES:
        raise ValueError(f"a lineage of {len(octets)} bytes does not fit into an envelope")
    return b"".join((BEGIN, FORM, len(octets).to_bytes(2, "big"), octets, value))


def open_envelope(octets: bytes) -> OpenedEnvelope:
    """What octets from a store are; never raises."""
    if not octets.startswith(BEGIN):
        return OpenedEnvelope(octets, None)
    if octets[len(BEGIN) : len(BEGIN) + 1] != FORM:
        return OpenedEnvelope(octets, None, "an envelope of a form that this version does not know")
    end = _HEAD + int.from_bytes(octets[_HEAD - 2 : _HEAD], "big")
    if len(octets) < _HEAD or len(octets) < end:
        return OpenedEnvelope(octets, None, "an envelope that is cut off")
    return OpenedEnvelope(octets[end:], octets[_HEAD:end].decode("latin-1"))
