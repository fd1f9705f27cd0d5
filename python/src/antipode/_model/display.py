"""Texts from outside as they may stand in a line, an error or a result's words (OBS-12)."""

from __future__ import annotations

import re
from collections.abc import Collection
from typing import Final

MOST_SHOWN: Final = 64
MOST_LISTED: Final = 5
_UNPRINTABLE: Final = re.compile("[^ -~…]")


def shown(text: str) -> str:
    """Return a text from outside as it may stand in a line, an error or a result's words (OBS-12)."""
    return escaped(text if len(text) <= MOST_SHOWN else f"{text[:MOST_SHOWN]}…")


def escaped(text: str) -> str:
    """Return a text on one line, all outside printable ASCII escaped but the project's own `…`."""
    plain = text.isprintable() and text.isascii()
    return text if plain else _UNPRINTABLE.sub(lambda found: ascii(found[0])[1:-1], text)


def listed(names: Collection[str]) -> str:
    """Return names from outside as they may stand there: five at most, and how many more (OBS-12)."""
    words = ", ".join(shown(name) or "some stores" for name in list(names)[:MOST_LISTED])
    return f"{words} and {len(names) - MOST_LISTED} more" if len(names) > MOST_LISTED else words
