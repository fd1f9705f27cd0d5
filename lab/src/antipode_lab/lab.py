"""`Lab`: two regions of real stores on this machine, with lag, partition and failover as methods."""

from __future__ import annotations

import os
import threading
import time
from collections.abc import Iterator, Mapping, Sequence
from concurrent.futures import ThreadPoolExecutor
from contextlib import contextmanager, suppress
from dataclasses import asdict, is_dataclass
from pathlib import Path
from types import TracebackType
from typing import TYPE_CHECKING, Any, Self, TypeVar, cast

from antipode_lab import packages
from antipode_lab import stores as stores_
from antipode_lab.cache import locked
from antipode_lab.durations import Duration, spread
from antipode_lab.errors import LabError
from antipode_lab.model import LabState, StoreState, write_atomically
from antipode_lab.processes import Supervisor
from antipode_lab.store import BaseStore, Context, ServerStatus, Store
from antipode_lab.toxiproxy import Toxiproxy

if TYPE_CHECKING:
    from antipode_lab.stores.rabbitmq import RabbitStore
    from antipode_lab.stores.redis import RedisStore

ENVIRONMENT = "ANTIPODE_LAB"
"""Names the file of endpoints, for tests and programs of every language."""

T = TypeVar("T", bound=BaseStore[Any])


def lab_path(path: str | os.PathLike[str] | None = None) -> Path:
    """The file of endpoints: the one given, else ``ANTIPODE_LAB``, else ``lab.json`` in this folder."""
    return Path(path or os.environ.get(ENVIRONMENT) or "lab.json")


class Lab:
    """A lab, from ``start`` (or ``with``) to ``close``. It ends with this process, however that ends.

    Args:
        stores: names of stores, such as ``redis`` and ``rabbitmq``.
        replicas: replicas in region B, for stores that have replicas.
        lag: one-way lag of the links, or one a replica; whole milliseconds (seconds, timedelta, or
        ``"80ms"``).
        queue_lag: the same for queues' links.
        lags: the same for single stores, by name.
        options: a store's own options, by name: its options class, or a mapping of the same fields.
        json_path: where else to keep the file of endpoints, next to the one in the scratch folder.

    Verbs are methods of the stores: ``lab.redis.promote("b1", lose=5)``. Threads may call them; each runs
    alone.
    """

    def __init__(
        self,
        *stores: str,
        replicas: int = 1,
        lag: Duration | Sequence[Duration] = "80ms",
        queue_lag: Duration | Sequence[Duration] = "10ms",
        lags: Mapping[str, Duration | Sequence[Duration]] | None = None,
        options: Mapping[str, object] | None = None,
        json_path: str | os.PathLike[str] | None = None,
    ) -> None:
        self._wanted = {name: stores_.find(name) for name in dict.fromkeys(stores)}
        if not self._wanted:
            raise LabError("a lab needs at least one store, such as redis")
        if replicas < 1:
            raise LabError("a lab needs at least one replica in region B")
        for given in {**(lags or {}), **(options or {})}:
            if given not in self._wanted:
                raise LabError(f"a setting for {given!r}, which is not among the lab's stores")
        self._lags = {
            name: spread(
                (lags or {}).get(name, queue_lag if store.is_queue else lag),
                1 if store.is_queue else replicas,
            )
            for name, store in self._wanted.items()
        }
        self._options = {name: _option_dict(store, (options or {}).get(name)) for name, store in self._wanted.items()}
        self._json_path = Path(json_path).absolute() if json_path is not None else None
        self._lock = threading.RLock()
        self._depth = 0
        self._seen: tuple[int, int] | None = None
        self._owner: int | None = None
        self._supervisor: Supervisor | None = None
        self._state: LabState | None = None
        self._stores: dict[str, Store] = {}
        self.ready_after: float = 0.0
        """Seconds that ``start`` took."""

    # -- life --------------------------------------------------------------------------------------

    def start(self) -> Self:
        """Starts everything; returns when every link has carried a probe and has its lag.

        Raises:
            InstallError: if a server's program is missing; the message says how to get it.
            LabError: if a server does not start; nothing is left behind then.
        """
        if self._supervisor is not None:
            raise LabError("this lab has been started already")
        packages.require(self._wanted.values())
        begun = time.monotonic()
        self._owner = os.getpid()
        self._supervisor = supervisor = Supervisor.start()
        try:
            toxiproxy = Toxiproxy.start(supervisor)
            pid = int((supervisor.scratch / "supervisor.pid").read_text().split()[0])
            self._state = LabState(
                scratch=str(supervisor.scratch),
                supervisor_pid=pid,
                toxiproxy_port=toxiproxy.port,
                json_path=None if self._json_path is None else str(self._json_path),
                stores={name: StoreState(name, self._options[name]) for name in self._wanted},
            )
            self._make_stores()
            with ThreadPoolExecutor(len(self._stores)) as pool:
                starts = [pool.submit(store.start, self._lags[name]) for name, store in self._stores.items()]
                for start in starts:
                    start.result()
            if self._json_path is not None:
                supervisor.remove_at_end(self._json_path)
            self._save()
            for store in self._stores.values():
                store.arm()
        except BaseException:
            self.close()
            raise
        self.ready_after = time.monotonic() - begun
        return self

    @classmethod
    def attach(cls, path: str | os.PathLike[str] | None = None) -> Lab:
        """A lab that another process started. Closing it leaves the lab running; ``down`` ends it.

        Raises:
            LabError: if there is no such file, or the lab has ended.
        """
        file = lab_path(path)
        try:
            state = LabState.from_json(file.read_text())
        except FileNotFoundError:
            raise LabError(f"there is no lab in {file}; start one with: antipode-lab up redis rabbitmq") from None
        except (ValueError, KeyError, TypeError) as error:
            raise LabError(f"{file} does not describe a lab: {error}") from error
        lab = cls(*state.stores)
        lab._supervisor = Supervisor.attach(Path(state.scratch))
        lab._state = state
        lab._json_path = None if state.json_path is None else Path(state.json_path)
        lab._make_stores()
        return lab

    def _make_stores(self) -> None:
        assert self._supervisor is not None
        assert self._state is not None
        for name, store in self._wanted.items():
            folder = self._supervisor.scratch / name
            folder.mkdir(exist_ok=True)
            context = Context(
                self._supervisor,
                Toxiproxy(self._state.toxiproxy_port, self._supervisor),
                folder,
                lambda name=name: self._running_state().stores[name],  # type: ignore[misc]
                self.transaction,
            )
            self._stores[name] = store(context)

    def detach(self) -> None:
        """Lets the lab outlive this process; ``Lab.attach(path).down()`` ends it."""
        self._running().detach()
        self._owner = None

    def down(self) -> None:
        """Ends the lab, whoever started it: every process, its scratch folder and its file of endpoints."""
        if self._supervisor is not None:
            self._supervisor.shutdown()
        self._supervisor = None

    def close(self) -> None:
        """Ends the lab, if this process started it and has not detached it (a forked child has not started
        it).
        """
        if self._owner == os.getpid():
            self.down()

    def __enter__(self) -> Self:
        return self if self._supervisor is not None else self.start()

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self.close()

    # -- the model, shared with other processes ----------------------------------------------------

    def _running(self) -> Supervisor:
        if self._supervisor is None:
            raise LabError("this lab is not running")
        return self._supervisor

    def _running_state(self) -> LabState:
        if self._state is None or self._supervisor is None:
            raise LabError("this lab is not running")
        return self._state

    @property
    def path(self) -> Path:
        """The file of endpoints in the scratch folder; hand it to children as ``ANTIPODE_LAB``."""
        return self._running().scratch / "lab.json"

    @property
    def endpoints(self) -> LabState:
        """The endpoints, as in the file."""
        return self._running_state()

    @contextmanager
    def transaction(self) -> Iterator[None]:
        """Alone among threads and processes; what others changed is seen, what is changed here is saved."""
        with self._lock:
            if self._depth:
                yield
                return
            with locked(self._running().scratch / "lock"):
                self._reload()
                self._depth = 1
                try:
                    yield
                finally:
                    self._depth = 0
                    self._save()

    def _reload(self) -> None:
        with suppress(FileNotFoundError):
            status = self.path.stat()
            if (status.st_ino, status.st_mtime_ns) != self._seen:
                self._state = LabState.from_json(self.path.read_text())

    def _save(self) -> None:
        state = self._running_state()
        for store in self._stores.values():
            store.refresh()
        text = state.to_json()
        write_atomically(self.path, text)
        status = self.path.stat()
        self._seen = (status.st_ino, status.st_mtime_ns)
        if self._json_path is not None:
            write_atomically(self._json_path, text)

    # -- the stores --------------------------------------------------------------------------------

    def __getitem__(self, name: str) -> Store:
        try:
            return self._stores[name]
        except KeyError:
            known = ", ".join(self._stores) or "nothing: it is not running"
            raise LabError(f"this lab has no {name!r}; it has {known}") from None

    def get(self, kind: type[T]) -> T:
        """A store by its class, for typed code: ``lab.get(RedisStore)``."""
        found = self[kind.kind]
        if not isinstance(found, kind):
            raise LabError(f"{kind.kind} is no {kind.__name__}")
        return found

    @property
    def redis(self) -> RedisStore:
        """The lab's Redis."""
        return cast("RedisStore", self["redis"])

    @property
    def rabbitmq(self) -> RabbitStore:
        """The lab's RabbitMQ."""
        return cast("RabbitStore", self["rabbitmq"])

    def status(self) -> dict[str, list[ServerStatus]]:
        """Every server of every store, as it is now."""
        return {name: store.status() for name, store in self._stores.items()}


def _option_dict(store: type[Store], given: object) -> dict[str, Any]:
    """A store's options as JSON, from nothing, its options class, or a mapping."""
    if given is None:
        given = store.options_type()
    if isinstance(given, Mapping):
        try:
            given = store.options_type(**given)
        except TypeError as error:
            raise LabError(f"{store.kind}: {error}") from error
    if not isinstance(given, store.options_type) or not is_dataclass(given) or isinstance(given, type):
        raise LabError(f"{store.kind} takes options of {store.options_type.__name__}")
    return asdict(given)
