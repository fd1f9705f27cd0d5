"""Whom ANTIPODE_PEERS lists (spec TRUST-16, TRUST-17)."""

from __future__ import annotations

import re
from collections.abc import Iterable
from ipaddress import IPv4Network, IPv6Network, ip_network
from string import ascii_lowercase, ascii_uppercase
from typing import Final

from antipode._model.errors import ConfigurationError
from antipode._trust.addresses import parse_address

LABELS: Final = re.compile(r"[a-z0-9_-]+(?:\.[a-z0-9_-]+)*", re.ASCII)
"""A host's name in lower case."""
_TARGET: Final = re.compile(r"(?!https?:)[a-z][a-z0-9+.-]*://[^/\s]*/[^/\s]+", re.ASCII)
"""A gRPC target of a scheme whose resolver may lead anywhere (TRUST-35)."""
_LOWER: Final = str.maketrans(ascii_uppercase, ascii_lowercase)


class Peers:
    """What ANTIPODE_PEERS lists: host names, `.suffixes`, addresses and CIDR ranges, `*` (TRUST-16).

    Raises ConfigurationError for an item that is none of these.
    """

    __slots__ = ("_everyone", "_names", "_networks", "_suffixes")

    def __init__(self, items: Iterable[str] = ()) -> None:
        names: set[str] = set()
        suffixes: set[str] = set()
        networks: list[IPv4Network | IPv6Network] = []
        self._everyone = False
        for item in items:
            text = lower(item).rstrip(".")
            if text == "*":
                self._everyone = True
            elif _TARGET.fullmatch(text) is not None:
                names.add(text)
            elif "/" in text or parse_address(text) is not None:
                networks.append(_network(text, item))
            elif LABELS.fullmatch(text.removeprefix(".")) is None:
                raise ConfigurationError(
                    f"ANTIPODE_PEERS: not a name, .suffix, address, range or *: {item!r}", code="AP305"
                )
            elif text.startswith("."):
                suffixes.add(text)
            else:
                names.add(text)
        self._names = frozenset(names)
        self._suffixes = tuple(suffixes)
        self._networks = tuple(networks)

    def __eq__(self, other: object) -> bool:
        return isinstance(other, Peers) and self._parts() == other._parts()

    def __hash__(self) -> int:
        return hash(self._parts())

    def _parts(self) -> tuple[object, ...]:
        return self._everyone, self._names, frozenset(self._suffixes), frozenset(self._networks)

    def lists(self, host: str) -> bool:
        """Whether a host, already normalised, is listed; a name is never looked up (TRUST-17)."""
        if self._everyone or host in self._names or host.endswith(self._suffixes):
            return True
        address = parse_address(host) if self._networks else None
        return address is not None and any(address in network for network in self._networks)


def lower(name: str) -> str:
    """With A to Z in lower case, and no other letter: some, such as U+212A, would become another host (TRUST-17)."""
    return name.translate(_LOWER)


def _network(text: str, item: str) -> IPv4Network | IPv6Network:
    if "/" in text and not text.rpartition("/")[2].isdecimal():  # a mask
        raise ConfigurationError(f"ANTIPODE_PEERS: {item!r} is no range: want it as in 10.0.0.0/8", code="AP305")
    try:
        return ip_network(text if "/" in text else str(parse_address(text)))
    except ValueError as error:
        raise ConfigurationError(f"ANTIPODE_PEERS: {item!r}: {error}", code="AP305") from None
