"""The keys that seal lineages, and what for (spec TRUST); settings hold them, `seal` uses them."""

from __future__ import annotations

import base64
import binascii
import hashlib
import hmac
from collections.abc import Iterator, Mapping
from enum import StrEnum
from types import MappingProxyType
from typing import Final

from antipode._model.errors import ConfigurationError
from antipode._model.wire import spell_name

MARK: Final = "~_.h"
MAC_BYTES: Final = 16
_LEAST_KEY: Final = 16
_LONGEST_ID: Final = 32


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
        return 0 if signer is None else len(f"{MARK}.{signer[0]}.9999999999.") + 2 * MAC_BYTES


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
