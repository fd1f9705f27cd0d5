"""Seals: a keyed proof that a lineage text was written by one of ours (spec TRUST).

A seal is the last extension of a text, `~_.h.KEYID.EXPIRY.MAC`. It is no part of the lineage: dropped where
the text is read, made anew where it is written. The MAC covers everything before it, key id and expiry
included: were the expiry outside, whoever saw one sealed text could use it for ever.
"""

from __future__ import annotations

import base64
import binascii
import hashlib
import hmac
import re
from collections.abc import Iterator, Mapping
from enum import StrEnum
from types import MappingProxyType
from typing import Final, NamedTuple

from antipode.errors import ConfigurationError
from antipode.wire import is_spelled, spell_name

_MARK: Final = "~_.h"
_MAC_BYTES: Final = 16
_LEAST_KEY: Final = 16
_LONGEST_ID: Final = 32
_SEAL = re.compile(r"\.((?:[A-Za-z0-9-]|_[0-9A-F]{2})+)\.(0|[1-9][0-9]{0,18})\.([0-9a-f]{32})", re.ASCII)


class SealState(StrEnum):
    """What a look at a text's seal found; only VALID is a proof."""

    VALID = "valid"
    MISSING = "missing"
    EXPIRED = "expired"
    UNKNOWN_KEY = "unknown key"
    BAD = "bad"


class Purpose(StrEnum):
    """What a lineage is sealed for: with a key of its own, so that no other one takes it (TRUST-36)."""

    REQUEST = "antipode request"
    RESPONSE = "antipode response"
    MESSAGE = "antipode message"
    VALUE = "antipode value"

    @property
    def is_rest(self) -> bool:
        """Return whether what is sealed rests somewhere, and may be read long after (TRUST-21)."""
        return self in {Purpose.MESSAGE, Purpose.VALUE}


class Opened(NamedTuple):
    """A text without its seal, and what the seal was worth."""

    text: str
    state: SealState


class Keys(Mapping[str, bytes]):
    """Seal keys by id, in order: the first signs, all verify, so that two are valid while keys are rotated.

    Raises ConfigurationError for an empty or over-long id, and for a key of fewer than 16 octets.
    """

    __slots__ = ("_keys", "_made", "_spelled")

    def __init__(self, keys: Mapping[str, bytes] = MappingProxyType({})) -> None:
        self._keys = dict(keys)
        for name, key in self._keys.items():
            if not 0 < len(spell_name(name)) <= _LONGEST_ID:
                raise ConfigurationError(f"a seal key's id has 1 to {_LONGEST_ID} characters: {name!r}", code="AP304")
            if not isinstance(key, bytes | bytearray):
                raise ConfigurationError(
                    f"the seal key {name!r} is no octets but {type(key).__name__}: want bytes", code="AP304"
                )
            if len(key) < _LEAST_KEY:
                raise ConfigurationError(
                    f"the seal key {name!r} has {len(key)} octets; at least {_LEAST_KEY}", code="AP304"
                )
        self._spelled = {spell_name(name): key for name, key in self._keys.items()}
        self._made: dict[Purpose, Keys] = {}

    def __getitem__(self, name: str) -> bytes:
        return self._keys[name]

    def __iter__(self) -> Iterator[str]:
        return iter(self._keys)

    def __len__(self) -> int:
        return len(self._keys)

    def __hash__(self) -> int:
        return hash(tuple(self._keys.items()))

    def __repr__(self) -> str:
        # Never the keys themselves: settings are printed by `antipode version`.
        return f"Keys({', '.join(self._keys)})"

    def spelled(self, name: str) -> bytes | None:
        """The key whose id is spelled so in a seal."""
        return self._spelled.get(name)

    def for_purpose(self, purpose: bytes) -> Keys:
        """Others, made from these (HMAC-SHA256): what they seal is worth nothing where another purpose is asked for."""
        return Keys({name: hmac.new(key, purpose, hashlib.sha256).digest() for name, key in self._keys.items()})

    def sealing(self, purpose: Purpose) -> Keys:
        """Return those of one purpose of lineages, made once (TRUST-36)."""
        found = self._made.get(purpose)
        if found is None:
            found = self._made[purpose] = self.for_purpose(purpose.encode())
        return found

    @property
    def signer(self) -> tuple[str, bytes] | None:
        """The first key with its spelled id; None where there is no key."""
        return next(iter(self._spelled.items()), None)

    @property
    def seal_length(self) -> int:
        """How many bytes a seal of the signing key adds to a text; 0 without a key."""
        signer = self.signer
        return 0 if signer is None else len(f"{_MARK}.{signer[0]}.9999999999.") + 2 * _MAC_BYTES


NO_KEYS: Final = Keys()


def parse_keys(text: str, origin: str) -> Keys:
    """Reads a keys file: one `id base64` a line; empty lines and those that begin with `#` do not count.

    Raises ConfigurationError that names `origin` and the line, never the key.
    """
    keys: dict[str, bytes] = {}
    for number, line in enumerate(text.splitlines(), 1):
        fields = line.split()
        if not fields or fields[0].startswith("#"):
            continue
        if len(fields) != 2:
            raise ConfigurationError(f"{origin}, line {number}: want `id base64`", code="AP304")
        name, encoded = fields
        if name in keys:
            raise ConfigurationError(f"{origin}, line {number}: the key id {name!r} stands twice", code="AP304")
        try:
            keys[name] = base64.b64decode(encoded, validate=True)
        except binascii.Error as error:
            raise ConfigurationError(f"{origin}, line {number}: the key {name!r} is no base64", code="AP304") from error
    if not keys:
        raise ConfigurationError(f"{origin} holds no key; want one `id base64` a line", code="AP304")
    try:
        return Keys(keys)
    except ConfigurationError as error:
        raise ConfigurationError(f"{origin}: {error}", code="AP304") from None


def seal(text: str, keys: Keys, now: float, ttl: float | None) -> str:
    """`text` with a seal of the first key that holds from `now` for `ttl` (Unix time, seconds; None: without end).

    A seal that the text has already is replaced. Raises ConfigurationError without a key.
    """
    signer = keys.signer
    if signer is None:
        raise ConfigurationError("no key to seal with: set ANTIPODE_KEYS_FILE", code="AP303")
    name, key = signer
    text = strip_seal(text)
    claim = f"{text}{_MARK}.{name}.{0 if ttl is None else int(now + ttl)}"
    return f"{claim}.{_mac(key, claim)}"


def open_seal(text: str, keys: Keys, now: float, *, leeway: float = 0.0, endless: bool = False) -> Opened:
    """Takes a text's seal off and verifies it at `now` (Unix time, seconds); raises nothing.

    `leeway`: for how long after its expiry it is valid still, for clocks that differ. `endless`: whether one without
    end is valid, and not bad.
    """
    body, mark, tail = text.rpartition(_MARK)
    if not mark:
        return Opened(text, SealState.MISSING)
    match = _SEAL.fullmatch(tail)
    if match is None:
        # `~_.h` may also begin another extension's tag, such as `~_.hint`.
        state = SealState.MISSING if tail[:1].isalnum() else SealState.BAD
        return Opened(text if state is SealState.MISSING else body, state)
    name, expiry, mac = match.groups()
    key = keys.spelled(name)
    if key is None:
        return Opened(body, SealState.UNKNOWN_KEY)
    if not hmac.compare_digest(_mac(key, text[: -len(mac) - 1]), mac):
        return Opened(body, SealState.BAD)
    if expiry == "0":
        return Opened(body, SealState.VALID if endless else SealState.BAD)
    return Opened(body, SealState.VALID if now < int(expiry) + leeway else SealState.EXPIRED)


def strip_seal(text: str) -> str:
    """The text without its seal, unverified. A tail that is no extension stays: the reader refuses it (WIRE-15).

    What was cut or changed on the way must not look like the lineage that is left over.
    """
    body, mark, tail = text.rpartition(_MARK)
    lexical = not tail or (tail[0] == "." and all(map(is_spelled, tail[1:].split("."))))
    another = body.endswith(_MARK) or f"{_MARK}." in body or f"{_MARK}~" in body
    spaced = body != body.strip()  # which a reader of the rest alone would take for white space around it
    return body if mark and lexical and not another and not spaced else text


def _mac(key: bytes, claim: str) -> str:
    digest = hmac.digest(key, claim.encode("utf-8", "surrogateescape"), hashlib.sha256)
    return digest[:_MAC_BYTES].hex()
