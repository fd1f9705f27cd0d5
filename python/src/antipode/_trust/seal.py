"""Seals: a keyed proof that a lineage text was written by one of ours (spec TRUST).

A seal is the last extension of a text, `~_.h.KEYID.EXPIRY.MAC`. It is no part of the lineage: dropped where
the text is read, made anew where it is written. The MAC covers everything before it, key id and expiry
included: were the expiry outside, whoever saw one sealed text could use it for ever.
"""

from __future__ import annotations

import hashlib
import hmac
import re
from enum import StrEnum
from typing import NamedTuple

from antipode._base.seal_keys import MAC_BYTES, MARK, Keys
from antipode._model.errors import ConfigurationError
from antipode._model.wire import is_spelled

_SEAL = re.compile(r"\.((?:[A-Za-z0-9-]|_[0-9A-F]{2})+)\.(0|[1-9][0-9]{0,18})\.([0-9a-f]{32})", re.ASCII)


class SealState(StrEnum):
    """What a look at a text's seal found; only VALID is a proof."""

    VALID = "valid"
    MISSING = "missing"
    EXPIRED = "expired"
    UNKNOWN_KEY = "unknown key"
    BAD = "bad"


class OpenedSeal(NamedTuple):
    """A text without its seal, and what the seal was worth."""

    text: str
    state: SealState


def seal(text: str, keys: Keys, now: float, ttl: float | None) -> str:
    """`text` with a seal of the first key that holds from `now` for `ttl` (Unix time, seconds; None: without end).

    A seal that the text has already is replaced. Raises ConfigurationError without a key.
    """
    signer = keys.signer
    if signer is None:
        raise ConfigurationError("no key to seal with: set ANTIPODE_KEYS_FILE", code="AP303")
    name, key = signer
    text = strip_seal(text)
    claim = f"{text}{MARK}.{name}.{0 if ttl is None else int(now + ttl)}"
    return f"{claim}.{_mac(key, claim)}"


def open_seal(text: str, keys: Keys, now: float, *, leeway: float = 0.0, endless: bool = False) -> OpenedSeal:
    """Takes a text's seal off and verifies it at `now` (Unix time, seconds); raises nothing.

    `leeway`: for how long after its expiry it is valid still, for clocks that differ. `endless`: whether one without
    end is valid, and not bad.
    """
    body, mark, tail = text.rpartition(MARK)
    if not mark:
        return OpenedSeal(text, SealState.MISSING)
    match = _SEAL.fullmatch(tail)
    if match is None:
        # `~_.h` may also begin another extension's tag, such as `~_.hint`.
        state = SealState.MISSING if tail[:1].isalnum() else SealState.BAD
        return OpenedSeal(text if state is SealState.MISSING else body, state)
    name, expiry, mac = match.groups()
    key = keys.spelled(name)
    if key is None:
        return OpenedSeal(body, SealState.UNKNOWN_KEY)
    if not hmac.compare_digest(_mac(key, text[: -len(mac) - 1]), mac):
        return OpenedSeal(body, SealState.BAD)
    if expiry == "0":
        return OpenedSeal(body, SealState.VALID if endless else SealState.BAD)
    return OpenedSeal(body, SealState.VALID if now < int(expiry) + leeway else SealState.EXPIRED)


def strip_seal(text: str) -> str:
    """The text without its seal, unverified. A tail that is no extension stays: the reader refuses it (WIRE-15).

    What was cut or changed on the way must not look like the lineage that is left over.
    """
    body, mark, tail = text.rpartition(MARK)
    lexical = not tail or (tail[0] == "." and all(map(is_spelled, tail[1:].split("."))))
    another = body.endswith(MARK) or f"{MARK}." in body or f"{MARK}~" in body
    spaced = body != body.strip()  # which a reader of the rest alone would take for white space around it
    return body if mark and lexical and not another and not spaced else text


def _mac(key: bytes, claim: str) -> str:
    digest = hmac.digest(key, claim.encode("utf-8", "surrogateescape"), hashlib.sha256)
    return digest[:MAC_BYTES].hex()
