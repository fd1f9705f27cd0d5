"""Octets of a statement that are no signs: some encodings have characters whose second octet looks like one."""

from __future__ import annotations

import re
from typing import Final

# SJIS, BIG5, GBK, GB18030 and their like: \ and ` in their second octets hide what follows, the others a call's name.
_PAIRS: Final = re.compile(rb"[\x80-\xff](?:[@\[\\\]^`{|}~]|[eE]')")
_PAIRS_IN_ANY: Final = re.compile(rb"[\x80-\xff](?:\\|[@\[\]^`{|}~]\s*(?:\(|/\*|--|#))")


def may_hold_pairs(text: bytes) -> bool:
    """Return whether a sign in the text may be half of a character; in UTF-8 where that would hide much."""
    if text.isascii() or not _PAIRS.search(text):
        return False
    if _PAIRS_IN_ANY.search(text):  # such a text may be good UTF-8 by chance
        return True
    try:
        text.decode("utf-8")
    except UnicodeDecodeError:
        return True
    return False
