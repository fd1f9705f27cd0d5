"""The datastores that this process has registered, and the writes that shims make to them (spec SHIM)."""

from __future__ import annotations

import itertools
import threading
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, field, fields
from datetime import timedelta
from typing import TYPE_CHECKING, Any, Final, Literal

from antipode.branch_ids import BRANCHES
from antipode.errors import ConfigurationError, UnknownStoreError
from antipode.observers import events
from antipode.setting_words import did_you_mean
from antipode.settings import Mode, mode_of, settings, settings_generation, store_settings, timeout_of
from antipode.store_servers import Replicas, StoreServers
from antipode.waiters import Ages
from antipode.wire import hashed_key
from antipode.write import Write
from antipode.writeid import Ordered, Version, WriteId

if TYPE_CHECKING:
    from antipode.shim import Shim

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

MOST_ENTRIES: Final = 100_000
"""So many entries are parked at most, a store and process (BAR-60)."""


@dataclass(frozen=True, slots=True)
class StoreOptions:
    """What `wrap` and `register` take, the same words for every store (API section 3a)."""

    replicas: Replicas = None
    """The servers that readers of this region may use: URLs or clients, or a callable asked again every 5 s."""
    wait_on_read: bool = False
    timeout: float | timedelta | None = None
    rest: str = "none"
    envelope_keys: str | None = None
    hash_keys: bool | None = None
    lineage_in: bool = True
    lineage_out: bool = True
    on_unfit: Literal["raise", "unproven"] = "raise"
    on_replica_out: Literal["name", "fail"] | None = None
    mode: Mode | str | None = None
    extra: Mapping[str, Any] = field(default_factory=dict)
    """What only one kind of store has."""

    def joined_with(self, other: StoreOptions) -> StoreOptions:
        """The options of several wraps of one store: the later says what it says, the rest stays."""
        changed = {
            item.name: getattr(other, item.name)
            for item in fields(self)
            if item.name != "replicas" and getattr(other, item.name) != getattr(_DEFAULTS, item.name)
        }
        merged = {item.name: getattr(self, item.name) for item in fields(self)} | changed
        return StoreOptions(**merged)


_DEFAULTS: Final = StoreOptions()


class Store(StoreServers):
    """A registered datastore: its logical name, its kind, and the servers that its readers here may use."""

    def __init__(self, name: str, shim: type[Shim], options: StoreOptions) -> None:
        WriteId(name, b"check", Ordered("", 0))  # refuses a name that the wire cannot carry
        if name == BRANCHES:
            raise ConfigurationError(
                f"{name} is the name under which branches travel (BRANCH-1): name the store otherwise",
                code="AP501",
            )
        super().__init__(name)
        self.options = options
        self.gives_positions = shim.capabilities.versions == "position"
        self.shim = shim(self)
        self.parked_threads = 0
        self.parked_tasks = 0
        self.parked_entries = 0
        self.ages = Ages()
        self._envelopes: list[str | None] = []
        """Which keys hold envelopes, once a wrap has said it."""
        self._dry_run: tuple[bool, int, StoreOptions | None] = (False, -1, None)
        """Whether the mode is dry-run, and the settings and options that said so."""

    @property
    def _store(self) -> Store:
        return self

    @property
    def kind(self) -> str:
        """The kind of store: `redis`, `memory`…"""
        return self.shim.kind

    @property
    def capabilities(self) -> Any:
        """What its shim can do."""
        return self.shim.capabilities

    @property
    def mode(self) -> Mode:
        """Enforce, dry-run or off for this store: the most careful of what was said."""
        return mode_of(self.name, self.options.mode)

    @property
    def fails_without_replica(self) -> bool:
        """Whether a server that does not answer makes the store unproven (BAR-26)."""
        return (self.options.on_replica_out or settings().on_replica_out) == "fail"

    @property
    def dry_run(self) -> bool:
        """Whether the mode is dry-run; cheap enough for every read."""
        generation = settings_generation()
        if self._dry_run[1:] != (generation, self.options):
            self._dry_run = (self.mode is Mode.DRY_RUN, generation, self.options)
        return self._dry_run[0]

    @property
    def timeout(self) -> float:
        """The deadline of a barrier on this store alone where the call has none, in seconds."""
        return timeout_of(self.name, self.options.timeout)

    @property
    def hashes_keys(self) -> bool:
        """Whether its object keys travel as hashes."""
        option = self.options.hash_keys
        return settings().hash_keys if option is None else option

    def agree_on_envelopes(self, keys: str | None) -> None:
        """A wrap says which keys hold envelopes (None: no key does); every wrap of the store has to say the same.

        Raises ConfigurationError where an earlier one said otherwise: one would misread the other's values (SHIM-37).
        """
        with self.lock:
            said = self._envelopes[0] if self._envelopes else keys
            self._envelopes = [said]
        if said != keys:
            raise ConfigurationError(
                f"{self.name} was wrapped with envelope_keys={said!r} before, and now with {keys!r}: one would "
                "misread the other's values. Give every wrap of this store, in every process, the same envelope_keys=",
                code="AP503",
            )

    # Barriers that wait

    def take_place(self, limit: int, entries: int, *, tasks: bool) -> bool:
        """Take a place of a parked barrier; return False where all are taken (BAR-39, BAR-60)."""
        with self.lock:
            if (self.parked_tasks if tasks else self.parked_threads) >= limit:
                return False
            if self.parked_entries + entries > MOST_ENTRIES:
                return False
            self._park(1, entries, tasks=tasks)
            return True

    def give_place_back(self, entries: int, *, tasks: bool) -> None:
        """The barrier is parked no more."""
        with self.lock:
            self._park(-1, -entries, tasks=tasks)

    def _park(self, barriers: int, entries: int, *, tasks: bool) -> None:
        self.parked_entries += entries
        if tasks:
            self.parked_tasks += barriers
        else:
            self.parked_threads += barriers

    def forget(self) -> None:
        """Gives its servers up: their threads end at once, with their channels, and the shim's own (tests)."""
        for server in dict.fromkeys(self._all_servers()):
            server.retire()
        self.shim.forget()

    def after_fork(self) -> None:
        """In the child of a fork: nobody is parked here, and no server has been asked."""
        self.lock = threading.Lock()
        self.parked_threads = self.parked_tasks = self.parked_entries = 0
        for server in dict.fromkeys(self._all_servers()):
            server.after_fork()

    # Writes

    @property
    def records(self) -> bool:
        """Whether writes are recorded at all (not with `ANTIPODE_MODE=off`)."""
        return self.mode is not Mode.OFF

    def begin(self, key: bytes | str = b"") -> Write:
        """Begins a write: it is pending in the current scope until it is recorded, dropped or abandoned."""
        return Write(self, key)

    @contextmanager
    def writing(self, key: bytes | str = b"") -> Iterator[Write]:
        """A write for the block: left by an exception its outcome is unknown and it stays pending."""
        write = Write(self, key)
        try:
            yield write
        except BaseException:
            write.outcome_unknown()
            raise
        write.close()

    def write_id(self, key: bytes | str, version: Version) -> WriteId:
        """The write identifier of one object's or position's version in this store."""
        octets = key.encode("utf-8", "surrogateescape") if isinstance(key, str) else key
        if octets and self.hashes_keys:
            octets = hashed_key(octets)
        return WriteId(self.name, octets, version)

    def __repr__(self) -> str:
        return f"<Store {self.name} ({self.kind}) {', '.join(self.replicas)}>"


_generations = itertools.count(1)


class Registry:
    """The stores of this process, by name."""

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
                store = self._stores[name] = Store(name, shim, options)
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


_registry = Registry()


def registry() -> Registry:
    """The registry in force."""
    return _registry


def replace_registry(new: Registry) -> Registry:
    """Puts another registry in force and returns the one before (tests)."""
    global _registry
    before, _registry = _registry, new
    return before


def join_store(name: str, shim: type[Shim], options: StoreOptions = _DEFAULTS) -> Store:
    """Registers a store, or joins the one of that name: what every shim's `wrap` and `register` do."""
    return _registry.join(name, shim, options)


def stores() -> list[Store]:
    """The stores that this process has registered."""
    return _registry.all()


def note_marks(store: str, missing: str | None) -> None:
    """A shim says that it may not mark this store's epochs, and why; None: it may."""
    events.on_marks_missing(store, missing)
