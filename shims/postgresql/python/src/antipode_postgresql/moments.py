"""Data of a moment that is past: cursors at the server, snapshots of transactions, results read in parts (SHIM-48)."""

from __future__ import annotations

import re
from typing import Final

from antipode import EMPTY, Lineage

from antipode_postgresql.statements import bare

_NAME: Final = rb'("(?:[^"]|"")+"|[A-Za-z_\x80-\xff][\w$\x80-\xff]*)'
_DECLARE: Final = re.compile(rb"\s*declare\s+" + _NAME, re.IGNORECASE)
_FETCH: Final = re.compile(rb"\s*fetch\b", re.IGNORECASE)
_LAST: Final = re.compile(_NAME + rb"[\s;]*$")
_AMONG: Final = re.compile(rb"\bfetch\b(?!\s+(?:first|next)\s+(?:\S+\s+)?rows?\b)", re.IGNORECASE)
"""Not the FETCH FIRST 5 ROWS of a query."""
_NO_SNAPSHOT: Final = re.compile(rb"\s*(?:begin|start|set)\b(?!.*\bsnapshot\b)", re.IGNORECASE | re.DOTALL)
_IMPORTS: Final = re.compile(rb"\btransaction\b.*\bsnapshot\b", re.IGNORECASE | re.DOTALL)
_MOST: Final = 256
"""Of the cursors whose moments are kept; those before count as opened when nothing was proved."""


class Moments:
    """What was proved when the data of a connection was taken; shared by all wraps of it."""

    __slots__ = ("_cursors", "proved")

    def __init__(self) -> None:
        self.proved = EMPTY
        """What the connection's server was proved to have before its present snapshot was taken."""
        self._cursors: dict[str, Lineage] = {}

    def opened(self, name: str) -> None:
        """Note that a cursor was opened at the server just now."""
        self._cursors.pop(name, None)
        self._cursors[name] = self.proved
        if len(self._cursors) > _MOST:
            del self._cursors[next(iter(self._cursors))]

    def closed(self, text: bytes) -> None:
        """Note that a statement closes the cursor that it names last."""
        found = _LAST.search(text)
        if found is not None:
            self._cursors.pop(_name(found[1]), None)

    def of_cursor(self, name: str) -> Lineage:
        """Return what was proved when a cursor was opened; nothing of one that nobody saw being opened."""
        return self._cursors.get(name, EMPTY)

    def executed(self, text: bytes) -> None:
        """Note the cursor that a statement has opened, and that one imports a snapshot: that may be of any moment."""
        if _IMPORTS.search(text):
            self.proved = EMPTY
        found = _DECLARE.match(_bare(text, b"declare"))
        if found is not None:
            self.opened(_name(found[1]))

    def of_text(self, text: bytes) -> Lineage | None:
        """Return what was proved when the data that a statement fetches was taken; None where it reads what is now."""
        text = _bare(text, b"fetch")
        if _FETCH.match(text) is None:
            return EMPTY if b";" in text and _AMONG.search(text) else None
        found = _LAST.search(text)
        return EMPTY if found is None else self.of_cursor(_name(found[1]))


def _bare(text: bytes, word: bytes) -> bytes:
    """Return a text that may hold a word without its comments; where they are unclear it is fetched among others."""
    if word not in text.lower():
        return b""
    told = bare(text)
    return b"; fetch" if told is None else told


def takes_no_snapshot(text: bytes) -> bool:
    """Return whether a statement that is no query leaves it open which moment its transaction shows."""
    return _NO_SNAPSHOT.match(text) is not None


def _name(spelled: bytes) -> str:
    name = spelled.decode("utf-8", "replace")
    return name[1:-1].replace('""', '"') if name.startswith('"') else name.lower()
