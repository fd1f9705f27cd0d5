"""The datastores that this process has registered, and the writes that shims make to them (spec SHIM)."""

from __future__ import annotations

import itertools
import threading
from collections.abc import Collection, Sequence
from functools import lru_cache
from typing import ClassVar

from antipode._base.observers import events
from antipode._base.setting_fields import did_you_mean
from antipode._base.settings import outdate, store_settings
from antipode._model import display
from antipode._model.errors import ConfigurationError, UnknownStoreError
from antipode._model.lineage import Lineage
from antipode._model.verdict import UnprovenKind, Visibility, unproven
from antipode._store.contract import Shim, Store
from antipode._store.store_options import DEFAULTS, Replicas, StoreOptions
from antipode._store.write import Write

__all__ = [
    "Registry",
    "Replicas",
    "Store",
    "StoreOptions",
    "Write",
    "join_store",
    "note_marks",
    "registry",
    "replace_registry",
    "stores",
    "unknown_store",
]

_generations = itertools.count(1)


class Registry:
    """The stores of this process, by name."""

    store_type: ClassVar[type[Store]]
    """What a store is made as: the engine's, which asks its servers."""

    def __init__(self) -> None:
        self._lock = threading.Lock()
        self._stores: dict[str, Store] = {}
        self.generation = next(_generations)
        """Another number whenever a store joins; never the same in two registries."""

    def after_fork(self) -> None:
        """In the child of a fork: no thread of the parent holds a lock here."""
        self._lock = threading.Lock()
        for store in self.all():
            store.after_fork()

    def join(self, name: str, shim: type[Shim], options: StoreOptions) -> Store:
        """The store of this name; several wraps under one name join one store."""
        with self._lock:
            store = self._stores.get(name)
            if store is None:
                store = self._stores[name] = self.store_type(name, shim, options)
                self.generation = next(_generations)
                events.on_store_joined(store)
            elif not isinstance(store.shim, shim):
                raise ConfigurationError(
                    f"store {name!r} is registered as {store.kind} already; it cannot be {shim.kind}, too. "
                    "Give one of them another name.",
                    code="AP503",
                )
            else:
                mode, store.options = store.options.mode, store.options.joined_with(options)
                if store.options.mode != mode:
                    self.generation = next(_generations)  # a pass that is kept may be without this store
                    outdate()  # the clients that were wrapped before do as it says now
        listed = options.replicas
        if listed is None and store_settings(name).replicas:
            listed = store_settings(name).replicas
        store.list_replicas(listed)
        return store

    def get(self, name: str) -> Store | None:
        """The store of this name, or None."""
        return self._stores.get(name)

    def all(self) -> list[Store]:
        """Every registered store."""
        return list(self._stores.values())

    def need(self, name: str) -> Store:
        """The store of this name; raises UnknownStoreError with the nearest name."""
        store = self._stores.get(name)
        if store is None:
            raise UnknownStoreError(unknown_store(name, list(self._stores)))
        return store


def unknown_store(name: str, known: Sequence[str]) -> str:
    """The sentence for a store that nobody registered here."""
    return (
        f"barrier(stores=[{name!r}]): no such store in this process; registered: {', '.join(known) or 'none'}."
        f"{did_you_mean(name, known)}\n  If another service owns it, leave it out, or register it here."
    )


@lru_cache(maxsize=1024)
def twins_of(name: str, generation: int) -> frozenset[str]:
    """Return the registered stores whose names differ from this one in case, `-` and `_` only: it is misspelt.

    generation: the registry's; another set of stores is another answer.
    """
    del generation  # part of the cache's key
    return frozenset(store.name for store in registry().all() if _plain(store.name) == _plain(name))


def misspelt(name: str, twins: Collection[str]) -> Visibility:
    """Return the answer for the writes of a store that a lineage names otherwise than this process (BAR-6)."""
    words = f'the lineage names store "{display.shown(name)}", this process has registered "{min(twins)}"'
    return unproven(f"{words}: the same name but for case, - and _", UnprovenKind.MISSPELT)


def misspelt_in(lineage: Lineage, store: str) -> Visibility | None:
    """Return the answer for those writes to this store that a lineage has under another spelling; None without any."""
    known = registry()
    for name in lineage.stores:
        if name != store and store in twins_of(name, known.generation) and known.get(name) is None:
            return misspelt(name, {store})
    return None


def _plain(name: str) -> str:
    return name.casefold().replace("-", "").replace("_", "")


_registry = Registry()


def registry() -> Registry:
    """The registry in force."""
    return _registry


def replace_registry(new: Registry) -> Registry:
    """Puts another registry in force and returns the one before (tests)."""
    global _registry
    before, _registry = _registry, new
    return before


def join_store(name: str, shim: type[Shim], options: StoreOptions = DEFAULTS) -> Store:
    """Registers a store, or joins the one of that name: what every shim's `wrap` and `register` do."""
    return _registry.join(name, shim, options)


def stores() -> list[Store]:
    """The stores that this process has registered."""
    return _registry.all()


def note_marks(store: str, missing: str | None) -> None:
    """A shim says that it may not mark this store's epochs, and why; None: it may."""
    events.on_marks_missing(store, missing)
