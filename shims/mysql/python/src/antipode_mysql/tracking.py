"""What a server tells of the session behind its OK: the ids of what was just committed (MySQL's session tracking)."""

from __future__ import annotations

from typing import Final

STATE_CHANGED: Final = 0x4000
"""The status flag that says that there is something."""
_GTIDS: Final = 3


def length(packet: bytes, at: int) -> tuple[int | None, int]:
    """A length-encoded number, and where it ends; None for NULL."""
    first = packet[at]
    if first < 0xFB:
        return first, at + 1
    if first == 0xFB:
        return None, at + 1
    size = {0xFC: 2, 0xFD: 3, 0xFE: 8}[first]
    return int.from_bytes(packet[at + 1 : at + 1 + size], "little"), at + 1 + size


def _text(packet: bytes, at: int) -> tuple[bytes, int]:
    size, at = length(packet, at)
    return packet[at : at + (size or 0)], at + (size or 0)


def gtids_in(rest: bytes) -> str:
    """The ids in what follows the number of warnings in an OK with `STATE_CHANGED`; empty for none, or for nonsense."""
    try:
        _, at = _text(rest, 0)  # a sentence for people
        changes, _ = _text(rest, at)
        at, found = 0, []
        while at < len(changes):
            kind = changes[at]
            data, at = _text(changes, at + 1)
            if kind == _GTIDS:
                found.append(_text(data, 1)[0].decode("ascii"))  # behind one octet for how they are spelled
        return ",".join(found)
    except (IndexError, KeyError, UnicodeDecodeError):
        return ""
