"""Where a lineage stands in headers: read from raw lines, taken out, put in (spec PROP). No trust here."""

from __future__ import annotations

import re
from collections.abc import Callable, Iterable, Mapping
from typing import Final, NamedTuple
from urllib.parse import unquote_plus

from antipode._model.wire import unwrap_header

LINEAGE_HEADER: Final = "antipode-lineage"
"""The lineage's own header: in responses, messages, metadata, and where baggage cannot carry it (PROP-2)."""
JMS_PROPERTY: Final = "antipode_lineage"
"""The same in JMS, whose names are Java identifiers (PROP-18)."""
BAGGAGE_HEADER: Final = "baggage"
BAGGAGE_KEY: Final = "antipode"
JAEGER_HEADER: Final = "uberctx-antipode"
"""The baggage member in the format of Jaeger's clients (PROP-7)."""
JAEGER_TRACE_HEADER: Final = "uber-trace-id"
"""Whoever writes it propagates in that format."""
MAX_BAGGAGE_BYTES: Final = 8192
MAX_BAGGAGE_MEMBERS: Final = 64

_OWN: Final = frozenset({LINEAGE_HEADER, JAEGER_HEADER})
CARRIERS: Final = (BAGGAGE_HEADER, LINEAGE_HEADER, JAEGER_HEADER)
"""The headers that may hold a lineage, in the order in which they are read (WIRE-40)."""
FORWARDING: Final = frozenset({"x-forwarded-for", "forwarded"})

_SPELLED_KEY: Final = re.compile(
    "".join(f"(?:{letter}|%{ord(letter) // 16}[{ord(letter) % 16:x}{ord(letter) % 16:X}])" for letter in BAGGAGE_KEY)
)
"""The key as an encoder may spell it: asked for before anything is decoded, which takes much longer (WIRE-42)."""

HeaderValue = str | bytes | Iterable[str | bytes]
Headers = Mapping[str, HeaderValue] | Iterable[tuple[str | bytes, HeaderValue]]
"""What the transport functions take: a mapping (values may be lists), or pairs, names in any case."""


class InboundHeaders(NamedTuple):
    """What headers brought: lineage texts, not yet judged or parsed, and the forwarding headers beside them.

    An empty text is a carrier that was there and held nothing: something was lost (WIRE-30).
    """

    texts: tuple[str, ...] = ()
    forwarded: tuple[tuple[str, str], ...] = ()


NOTHING: Final = InboundHeaders()


class Formats(NamedTuple):
    """In which formats the application propagates its own baggage: W3C, and that of Jaeger's clients."""

    baggage: bool = True
    jaeger: bool = False


def pairs(headers: Headers) -> list[tuple[str, str]]:
    """Headers as pairs of text, names in lower case; octets are Latin-1, what is no text is left out."""
    items = headers.items() if isinstance(headers, Mapping) else headers
    found: list[tuple[str, str]] = []
    for name, value in items:
        lower = _text(name).lower()
        if isinstance(value, str | bytes):
            found.append((lower, _text(value)))
        elif isinstance(value, Iterable):
            found.extend((lower, _text(one)) for one in value if isinstance(one, str | bytes))
    return found


def _text(value: str | bytes) -> str:
    return value if isinstance(value, str) else value.decode("latin-1")


def read(headers: Headers) -> InboundHeaders:
    """Finds the lineage texts in raw header lines, each once, and the forwarding headers (PROP-4, PROP-5)."""
    carriers: dict[str, list[str]] = {}
    forwarded: list[tuple[str, str]] = []
    for name, value in pairs(headers):
        if name == BAGGAGE_HEADER:
            if BAGGAGE_KEY in value or _SPELLED_KEY.search(value):
                for member in value.split(","):
                    if _is_ours(member):
                        carriers.setdefault(name, []).append(member.partition("=")[2])
        elif name in _OWN:
            carriers.setdefault(name, []).append(value)
        elif name in FORWARDING:
            forwarded.append((name, value))
    if not carriers and not forwarded:
        return NOTHING
    texts = [text for name in sorted(carriers, key=CARRIERS.index) for text in unwrap_header(carriers[name])]
    return InboundHeaders(tuple(dict.fromkeys(texts)), tuple(forwarded))


def _is_ours(member: str) -> bool:
    """Whether a baggage member is the lineage, also where its key is spelled so that a library decodes it."""
    key, equals, _ = member.partition("=")
    if not equals:
        return False
    key = key.strip(" \t")
    found = _SPELLED_KEY.search(key)
    return found is not None and (found[0] == key or unquote_plus(key).strip() == BAGGAGE_KEY)


def without_member(baggage: str) -> str:
    """A baggage line without the lineage; the application's members stay as they are spelled (PROP-10)."""
    if BAGGAGE_KEY not in baggage and ("%" not in baggage or _SPELLED_KEY.search(baggage) is None):
        return baggage
    members = baggage.split(",")
    kept = [member for member in members if not _is_ours(member)]
    return baggage if len(kept) == len(members) else ",".join(kept).strip(" \t")


def with_member(baggage: str, text: str) -> str | None:
    """A baggage line with the lineage as its last member; None where that passes a limit (PROP-8, PROP-9)."""
    rest = without_member(baggage)
    members = sum(1 for member in rest.split(",") if member.strip())
    line = f"{rest},{BAGGAGE_KEY}={text}" if members else f"{BAGGAGE_KEY}={text}"
    if members + 1 > MAX_BAGGAGE_MEMBERS or len(line.encode("utf-8", "surrogatepass")) > MAX_BAGGAGE_BYTES:
        return None
    return line


def rewrite(get: Callable[[str], str | None], text: str | None, formats: Formats) -> dict[str, str | None]:
    """The changes that make headers carry this lineage text, and no older one: name to value, None to remove.

    `get` gives a header's value by its name, several lines joined by commas. With no text the lineage is only
    taken out. What stays as it is is not named.
    """
    changes: dict[str, str | None] = {}
    baggage = get(BAGGAGE_HEADER)
    own = text
    if baggage is not None:
        rest = without_member(baggage)
        if rest != baggage:
            changes[BAGGAGE_HEADER] = rest or None
    if text is not None and formats.baggage:
        line = with_member(baggage or "", text)
        if line is not None:
            changes[BAGGAGE_HEADER] = line
            own = None
    if text is not None and (formats.jaeger or get(JAEGER_TRACE_HEADER) is not None):
        changes[JAEGER_HEADER] = text
        own = own if formats.baggage else None
    elif get(JAEGER_HEADER) is not None:
        changes[JAEGER_HEADER] = None
    if own is not None:
        changes[LINEAGE_HEADER] = own
    elif get(LINEAGE_HEADER) is not None:
        changes[LINEAGE_HEADER] = None
    return changes
