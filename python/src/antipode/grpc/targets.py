"""The host that a channel's target names (spec TRUST)."""

from __future__ import annotations

from typing import Final

from antipode._trust.trust import is_approved, trust_settings

_LOOPBACK: Final = "127.0.0.1"


def host_of(target: str) -> str:
    """The host that a channel's target names, as trust judges it; of several addresses one that is not inside.

    A Unix socket counts as loopback. Of a scheme whose resolver may lead anywhere it is the whole target, which only
    ANTIPODE_PEERS can approve (TRUST-35).
    """
    scheme, colon, rest = target.partition(":")
    if not colon:
        return target
    if scheme in {"unix", "unix-abstract"}:
        return _LOOPBACK
    if scheme in {"ipv4", "ipv6"}:
        addresses = [item.removeprefix("//").lstrip("/") for item in rest.split(",")]
        trust = trust_settings()
        return next((address for address in addresses if not is_approved(address, trust)), addresses[0])
    if scheme == "dns":
        return rest.rpartition("/")[2]
    return target
