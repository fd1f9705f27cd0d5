"""The shim contract: what a datastore owes Antipode (DESIGN 7, spec SHIM).

A shim says what its store can do and answers one question; the core does deadlines, parallel waits, polling, single
flight and overload.
"""

from __future__ import annotations

import copy
from collections.abc import Callable
from typing import Any, NoReturn, TypeVar

from antipode.contract import Capabilities, Server, ServerSource, Shim, Store, Watch
from antipode.errors import ConfigurationError
from antipode.pending import PendingWrite
from antipode.reading import Reading, current_reading
from antipode.store import Replicas, StoreOptions, Write, join_store, stores
from antipode.verdict import NOT_YET, VISIBLE, UnprovenKind, Visibility, not_yet, unproven

__all__ = [
    "NOT_YET",
    "VISIBLE",
    "Capabilities",
    "PendingWrite",
    "Reading",
    "Replicas",
    "Server",
    "ServerSource",
    "Shim",
    "Store",
    "StoreOptions",
    "UnprovenKind",
    "Visibility",
    "Watch",
    "Write",
    "current_reading",
    "join_store",
    "not_yet",
    "stores",
    "unproven",
    "wrapper",
]

_C = TypeVar("_C")


def refuse_making(made: object, *_: object, **__: object) -> NoReturn:
    """Refuse the object that the class of a wrapped one makes, as its `__init__`: it would record nothing (SHIM-50)."""
    mro = (made if isinstance(made, type) else type(made)).__mro__
    kind = next(each for each in mro if not any(base.__module__.startswith("antipode") for base in each.__mro__))
    raise ConfigurationError(
        f"the class of a wrapped {kind.__name__} makes no other one, which would record nothing: make it by "
        f"{kind.__module__}.{kind.__qualname__} itself, and give that to wrap()",
        code="AP505",
    )


def wrapper(shim: type[Shim], *, client: type[_C], wrapped: type[_C]) -> Callable[..., _C]:
    """Makes the `wrap` function of a simple shim (API section 3k).

    `wrap(client, store="name", **options)` returns a copy of the client, of class `wrapped`, that shares its
    connections and finds its store in `self._store`. The one passed in stays plain.
    """

    def wrap(plain: _C, store: str, *, replicas: Replicas = None, **options: Any) -> _C:
        if not isinstance(plain, client):
            raise TypeError(f"wrap() takes a {client.__name__}, not {type(plain).__name__}")
        joined = join_store(store, shim, StoreOptions(replicas=replicas, **options))
        joined.use_server(plain, listed=replicas is not None)
        result = copy.copy(plain)
        result.__class__ = wrapped
        result._store = joined  # type: ignore[attr-defined]
        return result

    return wrap
