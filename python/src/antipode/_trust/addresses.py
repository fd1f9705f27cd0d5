"""Which addresses are private, and which addresses a forwarding header names (spec TRUST).

Private is this list and no library's: Python's `is_private` and Java's differ, and both are wrong here.
"""

from __future__ import annotations

import re
import socket
from collections.abc import Iterable, Iterator, Sequence
from functools import lru_cache
from ipaddress import IPv4Address, IPv4Network, IPv6Address, IPv6Network, ip_address
from typing import Any, Final, TypeAlias

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
MOST_HOPS: Final = 64
MOST_HOP_OCTETS: Final = 4096
"""Of all forwarding headers of a request together (TRUST-32)."""
_FORWARDING: Final = frozenset({"x-forwarded-for", "forwarded"})
_UNIX_PEER: Final = ("unix:", "unix-abstract:", "/", "@")
_LONGEST: Final = 256
named_peers: Final[set[str]] = set()
"""Names that stand for a private peer: a fixture of tests puts those of test clients here."""

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


def is_private_address(text: str | None, *, unix: bool = False) -> bool:
    """Whether a peer's address as text is private (TRUST-6); what cannot be parsed is public (TRUST-8).

    A Unix socket counts as loopback; so does no peer at all (None, empty) where the operator says that such requests
    come by one, `unix`, and nowhere else (TRUST-9).
    """
    if not text:
        return unix
    return text.startswith(_UNIX_PEER) or text in named_peers or _is_private_text(text)


def _is_private_text(text: str) -> bool:
    # The length first: what comes from outside must not fill the cache with long texts.
    return len(text) <= _LONGEST and _is_private_cached(text)


@lru_cache(maxsize=4096)
def _is_private_cached(text: str) -> bool:
    address = parse_address(text)
    return address is not None and is_private(address)


def peer_of(connection: Any) -> str | None:
    """Return the address of a socket's peer, `unix:` for a Unix socket; None where it cannot be told."""
    try:
        if connection.family == getattr(socket, "AF_UNIX", None):
            return "unix:"
        return str(connection.getpeername()[0]) or None
    except (OSError, AttributeError, IndexError, TypeError):
        return None


def is_too_long(headers: Iterable[tuple[str, str]]) -> bool:
    """Return whether forwarding headers are longer than what is judged; nothing of them is parsed (TRUST-32)."""
    values = [value for name, value in headers if name.lower() in _FORWARDING]
    if sum(map(len, values)) > MOST_HOP_OCTETS:
        return True
    return sum(1 for value in values for _ in _list_items(value)) > MOST_HOPS


def is_hop(address: str, headers: Sequence[tuple[str, str]]) -> bool:
    """Return whether forwarding headers name this address, maybe spelled otherwise, or are too long to tell."""
    if is_too_long(headers):
        return True
    wanted = parse_address(address)
    hops = (hop for name, value in headers for hop in _hops(name.lower(), value))
    return any(hop == address or (wanted is not None and parse_address(hop) == wanted) for hop in hops)


def _hops(name: str, value: str) -> Iterator[str]:
    return _forwarded_hops(value) if name == "forwarded" else _list_items(value)


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
