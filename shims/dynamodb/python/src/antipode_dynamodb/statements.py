"""The words of a PartiQL statement: what stands in comments and literals is none (spec SHIM-43)."""

from __future__ import annotations

import re
from collections.abc import Iterator
from typing import Final

BEFORE: Final = r"(?>\s+|--[^\r\n]*(?:[\r\n]|\Z)|/\*(?:[^*]|\*(?!/))*\*/)*+"
"""Blanks and comments in a statement: nothing of a comment is ever given back, so that its end is its end."""
_TOKEN: Final = re.compile(
    r"""(?P<blank>\s++|--[^\r\n]*+|/\*(?:[^*]|\*(?!/))*+(?:\*/|\Z))
    |(?P<literal>'(?:[^']|'')*+(?:'|\Z)|`[^`]*+(?:`|\Z))
    |(?P<name>"(?:[^"]|"")*+(?:"|\Z)|(?:\w|-(?!-))++)
    |(?P<other>.)""",
    re.VERBOSE | re.DOTALL,
)
"""Each alternative takes what it has begun, to the end of the text where nothing ends it: the time is linear."""
_LITERAL: Final = ""


def reads_index(statement: str) -> bool:
    """Return whether a statement reads an index: `FROM table.index`."""
    before: list[str] = []
    for token in _tokens(statement):
        if len(before) == 3 and before[0].upper() == "FROM" and before[2] == "." and _is_name(token):
            return _is_name(before[1])
        before = [*before[-2:], token]
    return False


def _is_name(token: str) -> bool:
    return token[:1] == '"' or token[:1].isalnum() or token[:1] in {"_", "-"}


def _tokens(statement: str) -> Iterator[str]:
    for match in _TOKEN.finditer(statement):
        if match.lastgroup != "blank":
            yield _LITERAL if match.lastgroup == "literal" else match[0]
