"""A bounded memory of what was seen last."""

from __future__ import annotations

from collections import deque
from collections.abc import Hashable
from typing import Generic, TypeVar

__all__ = ["BoundedMap"]

_K = TypeVar("_K", bound=Hashable)
_V = TypeVar("_V")


class BoundedMap(Generic[_K, _V]):
    """The last so many entries.

    Each step is atomic, so threads share it without a lock, and a fork finds no lock held.
    """

    def __init__(self, most: int) -> None:
        self._most = most
        self._held: dict[_K, _V] = {}
        self._order: deque[_K] = deque()

    def put(self, key: _K, value: _V) -> None:
        """Keeps an entry; one that is there already takes the new value."""
        known = key in self._held
        self._held[key] = value
        if known:
            return
        self._order.append(key)
        while len(self._order) > self._most:
            try:
                self._held.pop(self._order.popleft(), None)
            except IndexError:  # another thread was faster
                return

    def get(self, key: _K) -> _V | None:
        """An entry; None where it is not there, or no more."""
        return self._held.get(key)

    def __contains__(self, key: _K) -> bool:
        return key in self._held

    def __len__(self) -> int:
        return len(self._held)
