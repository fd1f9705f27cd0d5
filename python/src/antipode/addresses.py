"""Which addresses are private, and which addresses a forwarding header names (spec TRUST).

Private is this list and no library's: Python's `is_private` and Java's differ, and both are wrong here.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator
from functools import lru_cache
from ipaddress import IPv4Address, IPv4Network, IPv6Address, IPv6Network, ip_address
from typing import Final, TypeAlias

Address: TypeAlias = IPv4Address | IPv6Address

_PRIVATE_4: Final = tuple(
    IPv4Network(block)
    for block in (
        "127.0.0.0/8",
        "10.0.0.0/8",
        "172.16.0.0/12",
        "192.168.0.0/16",
        "169.254.0.0/16",
        "100.64.0.0/10",
    )
)
_PRIVATE_6: Final = tuple(IPv6Network(block) for block in ("::1/128", "fc00::/7", "fe80::/10"))
_NO_PEER: Final = frozenset({"", "unix", "testclient"})
_UNIX_PEER: Final = ("unix:", "unix-abstract:", "/", "@")
_LONGEST: Final = 256

_BRACKETED: Final = re.compile(r"\[([^\[\]]*)\](?::([0-9]{1,5}))?", re.ASCII)
_WITH_PORT: Final = re.compile(r"([0-9.]+):([0-9]{1,5})", re.ASCII)
_GREATEST_PORT: Final = 65535
_PAIR: Final = re.compile(r'\s*([!#$%&\'*+.^_`|~0-9A-Za-z-]+)=("(?:[^"\\]|\\.)*"|[^\s",;]*)\s*', re.ASCII)
_UNPARSABLE: Final = "an address that cannot be read"


def parse_address(text: str) -> Address | None:
    """The IP address in a text, or None where there is none (TRUST-7, TRUST-8).

    White space, quotes, brackets, port, zone id and gRPC's prefixes are taken off. An IPv4-mapped IPv6
    address is given as the IPv4 address.
    """
    text = text.strip(" \t")
    if len(text) > 1 and text[0] == text[-1] == '"':
        text = text[1:-1].strip(" \t")
    if text.startswith(("ipv4:", "ipv6:")):
        text = text[5:].replace("%5B", "[").replace("%5D", "]").replace("%25", "%")
    match = _BRACKETED.fullmatch(text) if text.startswith("[") else _WITH_PORT.fullmatch(text)
    if match is not None:
        if match[2] is not None and int(match[2]) > _GREATEST_PORT:
            return None
        if text.startswith("[") and ":" not in match[1]:
            return None
        text = match[1]
    if ":" in text:
        text, mark, zone = text.partition("%")
        if mark and not zone:
            return None
    try:
        # `ip_address` takes no leading zeros, shorthand or other bases: those are read differently elsewhere.
        address = ip_address(text)
    except ValueError:
        return None
    mapped = address.ipv4_mapped if isinstance(address, IPv6Address) else None
    return address if mapped is None else mapped


def is_private(address: Address) -> bool:
    """Whether an address is on the list of private ones."""
    if isinstance(address, IPv4Address):
        return any(address in block for block in _PRIVATE_4)
    return any(address in block for block in _PRIVATE_6)


def is_private_address(text: str | None) -> bool:
    """Whether a peer's address as text is private (TRUST-6); what cannot be parsed is public (TRUST-8).

    No peer at all (None, empty), a Unix socket and a test client count as loopback (TRUST-9).
    """
    if text is None or text in _NO_PEER or text.startswith(_UNIX_PEER):
        return True
    return _is_private_text(text)


def _is_private_text(text: str) -> bool:
    # The length first: what comes from outside must not fill the cache with long texts.
    return len(text) <= _LONGEST and _is_private_cached(text)


@lru_cache(maxsize=4096)
def _is_private_cached(text: str) -> bool:
    address = parse_address(text)
    return address is not None and is_private(address)


def public_address_in(headers: Iterable[tuple[str, str]]) -> tuple[str, str] | None:
    """The first address in `X-Forwarded-For` and `Forwarded` lines that is not private: (header, address).

    None where there is none. What cannot be read counts as public (TRUST-10 to TRUST-12).
    """
    for name, value in headers:
        lower = name.lower()
        if lower == "x-forwarded-for":
            found = _first_public(_list_items(value))
            if found is not None:
                return "X-Forwarded-For", found
        elif lower == "forwarded":
            found = _first_public(_forwarded_hops(value))
            if found is not None:
                return "Forwarded", found
    return None


def _first_public(addresses: Iterable[str]) -> str | None:
    return next((address for address in addresses if not _is_private_hop(address)), None)


def _is_private_hop(text: str) -> bool:
    # Stricter than for a peer: a header that says `testclient` names nobody's test client.
    return text == "unix:" or _is_private_text(text)


def _list_items(value: str) -> Iterator[str]:
    for item in value.split(","):
        text = item.strip(" \t")
        if text:
            yield text


def _forwarded_hops(value: str) -> Iterator[str]:
    """The `for` and `by` parameters of a Forwarded line (RFC 7239); a break of its grammar is unparsable."""
    place = 0
    while place < len(value):
        if value[place] in ",; \t":
            place += 1
            continue
        match = _PAIR.match(value, place)
        if match is None or (match.end() < len(value) and value[match.end()] not in ",;"):
            yield _UNPARSABLE
            return
        if match[1].lower() in {"for", "by"}:
            yield re.sub(r"\\(.)", r"\1", match[2]) or _UNPARSABLE
        place = match.end()
