"""Chains: which writes of a key came one after the other (spec SHIM-53).

S3 orders versions by its own time. What is sent when all writes before it have been answered comes behind them: such
writes of one client are a chain, whose name stands beside each object. A write that begins while another one of its
key is under way, or after one of which nobody knows the outcome, is of another chain.
"""

from __future__ import annotations

import hashlib
import os
import secrets
import weakref
from typing import Final

_OCTETS: Final = 5
_LONGEST: Final = 8
"""Digits of so many octets."""
_DIGITS: Final = "0123456789abcdefghijklmnopqrstuvwxyz"


def base36(number: int) -> str:
    """A number in base 36."""
    digits = ""
    while number:
        number, digit = divmod(number, 36)
        digits = _DIGITS[digit] + digits
    return digits or "0"


def is_chain(epoch: str) -> bool:
    """Return whether an epoch is the name of a chain; the empty one is that of an earlier release."""
    return len(epoch) <= _LONGEST and not set(epoch) - set(_DIGITS)


class Turn:
    """One write's place in a chain. Its steps are atomic, so that threads need no lock and a fork finds none held."""

    __slots__ = ("_chains", "_key", "name")

    def __init__(self, name: str, chains: Chains | None = None, key: bytes = b"") -> None:
        self.name = name
        self._chains = chains
        self._key = key

    def end(self, *, certain: bool) -> None:
        """The write was answered; certain: nothing of it may still happen."""
        chains, self._chains = self._chains, None
        if chains is not None:
            chains._end(self._key, certain=certain)


class Chains:
    """The chains of one client's writes to one bucket."""

    def __init__(self) -> None:
        self._begin_anew()
        _all.add(self)

    def _begin_anew(self) -> None:
        self._secret = secrets.token_bytes(16)
        self._under_way: dict[bytes, object] = {}

    def turn(self, key: bytes) -> Turn:
        """The place of a write of this key that begins now."""
        mine = object()
        if self._under_way.setdefault(key, mine) is not mine:
            return alone()
        secret = self._secret  # only now: a turn that ended before has changed it, where it had to
        return Turn(_name(hashlib.blake2b(key, key=secret, digest_size=_OCTETS).digest()), self, key)

    def _end(self, key: bytes, *, certain: bool) -> None:
        if not certain:  # what comes next need not come behind it
            self._secret = secrets.token_bytes(16)
        self._under_way.pop(key, None)


def alone() -> Turn:
    """The place of a write that is of no other one's chain."""
    return Turn(_name(secrets.token_bytes(_OCTETS)))


def _name(octets: bytes) -> str:
    return base36(int.from_bytes(octets))


_all: weakref.WeakSet[Chains] = weakref.WeakSet()


def _after_fork_in_child() -> None:
    """Begin the chains anew, before any thread of the child writes: parent and child write side by side."""
    for chains in list(_all):
        chains._begin_anew()


if hasattr(os, "register_at_fork"):
    os.register_at_fork(after_in_child=_after_fork_in_child)
