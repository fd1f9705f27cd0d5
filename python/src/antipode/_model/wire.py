"""The wire form: one text for baggage, headers, messages and the value beside the data (spec WIRE).

This module knows spelled strings only: it validates a whole value with one regular expression, splits it into
sections that stay unopened, and opens a section when something is appended to it or merged with it.
"""

from __future__ import annotations

import hashlib
import re
from collections.abc import Collection, Iterable
from functools import lru_cache
from typing import Any, Final, NamedTuple
from urllib.parse import unquote

from antipode._model.errors import MalformedLineageError

_new: Final[Any] = tuple.__new__  # past the named tuple's own, which takes three times as long

MAX_BYTES: Final = 4087
"""Longest lineage text, in bytes: a baggage pair of 4,096 less `antipode=` (WIRE)."""
MAX_ENTRIES: Final = 512
MAX_KEY: Final = 1024
"""Longest spelled key, in characters; a longer one travels in its hashed form."""
MAX_STORE: Final = 63
MAX_EPOCH: Final = 32
MAX_COUNTER: Final = 2**64 - 1
EMPTY_TEXT: Final = "1"
WHITE_SPACE: Final = " \t\r\n"
INCOMPLETE_TAG: Final = "i"
SEAL_TAG: Final = "h"


def _at_most(limit: str) -> str:
    """A regular expression for the decimal numbers that are as long as `limit` and not greater."""
    if not limit:
        return ""
    first, rest = int(limit[0]), limit[1:]
    equal = f"{first}{_at_most(rest)}"
    return equal if first == 0 else f"(?:[0-{first - 1}][0-9]{{{len(rest)}}}|{equal})"


# An escape stands exactly for the octets outside A-Z a-z 0-9 "-": an over-escape would be a second spelling.
_ESCAPE = "_(?:2[0-9A-CEF]|[0189A-F][0-9A-F]|3[A-F]|40|5[B-F]|60|7[B-F])"
_RUN = f"[A-Za-z0-9-]*+(?:{_ESCAPE}[A-Za-z0-9-]*+)*+"
_NAME = f"(?:[A-Za-z0-9-]++(?:{_ESCAPE}[A-Za-z0-9-]*+)*+|(?:{_ESCAPE}[A-Za-z0-9-]*+)++)"


def _bounded(least: int, most: int) -> str:
    """A name of so many octets up to the next dot; the first alternative is the fast one, without escapes."""
    bounds = f"{{{least},{most}}}+"
    return f"(?:[A-Za-z0-9-]{bounds}(?=\\.)|(?:[A-Za-z0-9-]|{_ESCAPE}){bounds}(?=\\.))"


_COUNTER = f"(?:0|[1-9][0-9]{{0,18}}+(?![0-9])|{_at_most(str(MAX_COUNTER))})(?![0-9])"
_POSITION = f"\\.\\.{_bounded(1, MAX_EPOCH)}\\.{_COUNTER}"
_OPAQUE = f"\\.{_NAME}\\._\\.{_NAME}"
_OBJECT = f"\\.{_NAME}\\.{_bounded(0, MAX_EPOCH)}\\.{_COUNTER}"
_SECTION = f"~{_bounded(1, MAX_STORE)}(?:(?:{_OPAQUE})++|{_POSITION}|{_OBJECT})++(?=~|\\Z)"
_EXTENSION = f"~_\\.[a-z0-9]++(?:\\.{_RUN})*+"
_LINEAGE = re.compile(f"1(?:{_SECTION})*+(?:{_EXTENSION})*+", re.ASCII)
_is_lineage: Final = _LINEAGE.fullmatch
# The common case alone: one position a store, without escapes. For a few stores each asks by a look-ahead whether it is
# one of those before it; where there are more, the names are gathered.
_ONE_POSITION = r"\.\.[A-Za-z0-9-]{1,32}+\.(?:[1-9][0-9]{0,18}+|0)"


def _positions_of(stores: int) -> str:
    pattern = ""
    for place in range(stores, 0, -1):
        earlier = "|".join(rf"\{before}\." for before in range(1, place))
        other = f"(?!{earlier})" if earlier else ""
        pattern = f"(?:~{other}([A-Za-z0-9-]{{1,63}}+){_ONE_POSITION}{pattern})?+"
    return f"1{pattern}"


POSITIONS: Final = re.compile(_positions_of(6), re.ASCII)
SHORT: Final = 256
"""Texts up to this length are tried as lineages of six positions at most; longer ones may be of more."""
_MANY_POSITIONS = re.compile(rf"1(?:~[A-Za-z0-9-]{{1,63}}+{_ONE_POSITION})*+", re.ASCII)
_STORES = re.compile(r"~([^.]++)")
MEDIUM: Final = 2048
"""Longest text of many positions: it cannot have more entries than a lineage may."""
_PLAIN = re.compile(rb"[A-Za-z0-9-]*+")
_SPELLED = re.compile(_RUN, re.ASCII)
_HASHED = re.compile(rb"\x00h-[0-9a-f]{32}")
_ESCAPED_OCTET = re.compile("_([0-9A-F]{2})")
_OCTETS = [chr(octet) if _PLAIN.fullmatch(bytes([octet])) else f"_{octet:02X}" for octet in range(256)]


def spell(octets: bytes) -> str:
    """Spells octets with the unreserved characters of the wire form."""
    return octets.decode("latin-1").translate(_OCTETS)


def unspell(text: str) -> bytes:
    """The octets that a spelled name stands for."""
    if "_" not in text:
        return text.encode("ascii")
    return _ESCAPED_OCTET.sub(lambda match: chr(int(match[1], 16)), text).encode("latin-1")


@lru_cache(maxsize=4096)
def spell_name(name: str) -> str:
    """Spells a store name, an epoch or a mark: UTF-8, and octets that are no UTF-8 as they came."""
    return spell(name.encode("utf-8", "surrogateescape"))


@lru_cache(maxsize=4096)
def unspell_name(text: str) -> str:
    """The name that a spelled store, epoch or mark stands for."""
    return unspell(text).decode("utf-8", "surrogateescape")


def spell_mark(mark: str) -> str:
    """Spells a mark, which hardly ever comes twice, so that a cache would only be turned over."""
    return mark if mark.isalnum() and mark.isascii() else spell(mark.encode("utf-8", "surrogateescape"))


def unspell_mark(text: str) -> str:
    """The mark that a spelled one stands for."""
    return text if "_" not in text else unspell(text).decode("utf-8", "surrogateescape")


def hashed_key(key: bytes) -> bytes:
    """The hashed form of a key: NUL, `h-`, and 32 hexadecimal digits of its SHA-256 (long or private keys, WIRE-17).

    A key in that form already stays as it is.
    """
    if _HASHED.fullmatch(key):
        return key
    return b"\x00h-" + hashlib.sha256(key).hexdigest()[:32].encode("ascii")


def is_hashed(key: bytes) -> bool:
    """Whether a key is in its hashed form: a store that asks by key cannot ask for it."""
    return _HASHED.fullmatch(key) is not None


def spell_key(key: bytes) -> str:
    """Spells a key; one that would pass 1,024 characters is spelled in its hashed form."""
    text = key.decode("latin-1").translate(_OCTETS)
    return text if len(text) <= MAX_KEY else spell(hashed_key(key))


def has_many_positions(text: str) -> bool:
    """Whether a text, of up to MEDIUM characters, is a lineage of one plain position a store."""
    if len(text) > MEDIUM or _MANY_POSITIONS.fullmatch(text) is None:
        return False
    stores = _STORES.findall(text)
    return len(set(stores)) == len(stores)


class ParsedText(NamedTuple):
    """A lineage text split at `~`; the sections are still closed."""

    sections: dict[str, str]
    incomplete: frozenset[str]
    """Spelled stores in which something is missing; the empty string means anywhere."""
    extensions: tuple[str, ...]
    """Unknown extensions, kept and re-emitted (WIRE)."""


_NOTHING_MISSING: Final[frozenset[str]] = frozenset()
ANYWHERE: Final[frozenset[str]] = frozenset({""})


def split(text: str) -> ParsedText:
    """Validates a lineage text lexically and splits it into closed sections.

    Raises MalformedLineageError where the grammar or a bound is broken, or a store stands twice.
    """
    if len(text) > MAX_BYTES:
        raise MalformedLineageError(f"a lineage of {len(text)} bytes; at most {MAX_BYTES} are taken")
    if _is_lineage(text) is None:
        raise MalformedLineageError(f"not a lineage: {text[:80]!r}")
    incomplete = _NOTHING_MISSING
    extensions: tuple[str, ...] = ()
    if text.rfind("~") == 1 and text[2] != "_":  # one section, and nothing to compare it with
        section = text[2:]
        sections = {section[: section.index(".")]: section}
    else:
        parts = text.split("~")
        del parts[0]
        sections = {part[: part.index(".")]: part for part in parts}
        if "_" in sections:
            del sections["_"]
            extended = [part for part in parts if part.startswith("_.")]
            incomplete, extensions = _split_extensions(extended)
            del parts[-len(extended) :]
        if len(sections) != len(parts):
            raise MalformedLineageError("a store stands twice in a lineage")
    if len(text) > MAX_KEY:
        _check_long(sections.values())
    found: ParsedText = _new(ParsedText, (sections, incomplete, extensions))
    return found


def _split_extensions(parts: list[str]) -> tuple[frozenset[str], tuple[str, ...]]:
    incomplete = _NOTHING_MISSING
    kept: list[str] = []
    for place, part in enumerate(parts):
        fields = part.split(".")
        tag = fields[1]
        if tag == INCOMPLETE_TAG:
            stores = fields[2:]
            if any(not 0 < len(unspell(store)) <= MAX_STORE for store in stores):
                raise MalformedLineageError(f"not a store name in {part[:80]!r}")
            incomplete = join_incomplete(incomplete, frozenset(stores) or ANYWHERE)
        elif tag == SEAL_TAG:
            # A seal speaks of the text that it came with and is made anew on the way out (TRUST).
            if place != len(parts) - 1:
                raise MalformedLineageError("something follows the seal of a lineage")
        else:
            kept.append(part)
    return incomplete, tuple(sorted(set(kept)))


def _check_long(sections: Iterable[str]) -> None:
    """The bounds that the regular expression does not hold: the length of a key, the number of entries."""
    entries = 0
    for section in sections:
        entries += section.count(".") // 3
        if any(len(key) > MAX_KEY for key in section.split(".")[1::3]):
            raise MalformedLineageError(f"a key of more than {MAX_KEY} characters")
    if entries > MAX_ENTRIES:
        raise MalformedLineageError(f"a lineage of {entries} entries; at most {MAX_ENTRIES} are taken")


def join_incomplete(a: frozenset[str], b: frozenset[str]) -> frozenset[str]:
    """Union of two `incomplete` flags; `anywhere` absorbs the named stores."""
    if not a or not b:
        return a or b
    joined = a | b
    return ANYWHERE if "" in joined else joined


def join(parsed: ParsedText) -> str:
    """The lineage text of sections in canonical order, then the extensions; raises nothing."""
    sections, incomplete, kept = parsed
    if len(sections) == 1 and not incomplete and not kept:
        return "1~" + next(iter(sections.values()))
    parts = ["1", *sorted(sections.values())]
    if incomplete or kept:
        extensions = list(kept)
        if incomplete:
            extensions.append(_flag(incomplete))
        parts += sorted(extensions)
    return "~".join(parts)


def _flag(incomplete: Collection[str]) -> str:
    stores = sorted(incomplete)
    return "_.i" if stores[0] == "" else "_.i." + ".".join(stores)


def flag_length(incomplete: Collection[str]) -> int:
    """How much longer a text is by this flag."""
    return len(_flag(incomplete)) + 1 if incomplete else 0


def unwrap_header(values: Iterable[str]) -> list[str]:
    """The lineage texts in the values of one carrier, made strict: joined lines, white space, properties, escapes.

    What comes back is still to be split. Empty items are left out; values that hold nothing else give one empty
    text, which nobody can read: something was lost on the way (WIRE-28, WIRE-30).
    """
    texts = []
    blank = False
    for value in values:
        blank = True
        for item in value.split(","):
            text = item.partition(";")[0].strip(WHITE_SPACE)
            if "%" in text:
                text = unquote(text, encoding="latin-1").strip(WHITE_SPACE)
            if text:
                texts.append(text)
    return texts or [""] * blank


def is_spelled(text: str) -> bool:
    """Whether a text has only characters of spelled names, each spelled as it must be."""
    return _SPELLED.fullmatch(text) is not None
