"""The contract between the core and a shim: a store, its servers, and what knows its kind (DESIGN 7, spec SHIM).

The three name each other, so they stand in one file. `antipode.shim` has what a shim imports.
"""

from __future__ import annotations

import threading
from abc import ABC, abstractmethod
from collections.abc import Callable, Hashable, Iterable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from typing import Any, ClassVar, Final, Literal, Protocol

from antipode._base.settings import Mode, mode_of, settings, settings_generation, timeout_of
from antipode._model.branch_ids import BRANCHES
from antipode._model.errors import ConfigurationError
from antipode._model.lineage import Lineage
from antipode._model.verdict import UnprovenKind, Visibility
from antipode._model.wire import hashed_key
from antipode._model.write_id import Ordered, Version, WriteId
from antipode._store.ages import Ages
from antipode._store.store_options import Replicas, StoreOptions
from antipode._store.write import Write

MOST_ENTRIES: Final = 100_000
"""So many entries are parked at most, a store and process (BAR-60)."""


@dataclass(frozen=True, slots=True)
class Capabilities:
    """What a kind of store can do; each value obliges the shim (API section 3k)."""

    versions: Literal["position", "object", "opaque"]
    push: bool = False
    """`watch` tells when a server has changed."""
    blocking_wait: bool = False
    """`wait` blocks at the server until a write is visible."""
    tombstones: bool = False
    """Deletes leave a version behind; without, they are answered `unproven`."""
    rest: tuple[Literal["field", "envelope", "native"], ...] = ()
    """Where a lineage can rest beside its value in the same atomic operation."""
    tap: bool = False
    """Queues: arrival can be observed, so `track=True` is allowed."""
    marks: Literal["native", "in_band", "none"] = "none"
    """How ended epochs are decided."""


class Watch(Protocol):
    """A live push channel to one server."""

    def fileno(self) -> int | None:
        """A descriptor that becomes readable when something was pushed; None where another thread calls back."""

    def pump(self) -> None:
        """Reads what was pushed, without blocking, and calls `on_change` if anything changed. Raises if broken."""

    def close(self) -> None:
        """Ends the channel; never raises."""


class Server(ABC):
    """A server of a store, by its address, as a shim sees it."""

    store: Store
    address: str
    target: Any
    """The shim's way to reach it."""
    session: Any
    """The shim's own state, a connection for instance."""

    @property
    @abstractmethod
    def ask_timeout(self) -> float:
        """How long one question may take, in seconds; then the shim raises."""

    @abstractmethod
    def applied(self, instance: str, epoch: str, positions: Mapping[str, int]) -> None:
        """What one reply proved: this instance, in this epoch now, has applied each epoch up to the counter.

        Proofs of another instance or epoch are dropped, and all of them where the server went back.
        """

    @abstractmethod
    def begin_question(self) -> None:
        """Note that a question begins: the ages of what it proves count from now (BAR-34).

        The engine says so before each question; a shim whose `wait` asks several times says it for each.
        """

    @abstractmethod
    def reset(self) -> None:
        """Drops every proof: the connection or the server's data may be another one (push of a full resync)."""

    @property
    @abstractmethod
    def interrupted(self) -> bool:
        """Whether somebody new waits: a blocking `wait` answers now, and is called anew with what is wanted then."""

    @property
    @abstractmethod
    def is_unhurried(self) -> bool:
        """Whether only records are made of what is asked (REC-21): a `wait` that looks by itself answers at once."""

    @abstractmethod
    def rest(self, lead: float) -> float | None:
        """Sleep in a blocking `wait`, until it is worth a glance for some seconds; see `Pace.rest`."""

    @property
    @abstractmethod
    def awaited(self) -> frozenset[WriteId]:
        """The writes and branches that barriers, or reads, wait for here now: not those that only look or record."""

    @abstractmethod
    def wait_for(self, lineage: Lineage, timeout: float) -> Visibility:
        """Block until it shows the lineage's writes to its store, or `timeout` seconds are over; return its answer."""

    @abstractmethod
    async def wait_for_async(self, lineage: Lineage, timeout: float) -> Visibility:
        """`wait_for`, for asyncio."""

    @abstractmethod
    def on_change(self) -> None:
        """The store's push: something was applied at this server (any thread)."""

    @abstractmethod
    def applied_in(self, epoch: str) -> int | None:
        """How far the server was last seen in an epoch; None where it has not said."""


class ServerSource(Protocol):
    """Whoever names servers of a wrapped client; a shim tells it what it learned otherwise."""

    @property
    def servers(self) -> Mapping[str, Server]:
        """Return those of the last answer that was not empty, by address."""

    def found(self, given: Iterable[Any]) -> bool:
        """Take an answer: whoever waits for it goes on at each of these servers. Return False for an empty one."""


class Shim(ABC):
    """What knows one kind of store. One instance serves one named store of this process.

    All methods that ask a server are called by the engine's one thread for that server, never concurrently for the
    same server (but for `renew`), and never in a request. They may block for `server.ask_timeout` seconds at most and
    then raise.
    """

    kind: ClassVar[str]
    capabilities: ClassVar[Capabilities]
    unreachable: ClassVar[tuple[type[Exception], ...]] = (OSError,)
    """What the client raises where a server is out of reach. Anything else that `visible` raises is the server's
    own answer, and makes the writes unproven with its words (BAR-13)."""

    reconnects: ClassVar[bool] = True
    """Whether the engine gives up its connection every `ANTIPODE_RECONNECT_MS`, and asks by a new one: an address may
    lead to another server by then (BAR-55). Not where what was seen on a connection is seen once, as at a tap."""

    renews: ClassVar[bool] = False
    """Whether `renew` opens the next connection beside the one that answers (BAR-69)."""

    notes_reads: ClassVar[bool] = False
    """Whether its clients tell a recorded history what they read (HIST-31)."""

    own_pace: ClassVar[float] = 0.0
    """Seconds, for stores that neither push nor block: the shim itself spaces its questions, object by object, and
    `visible` answers between them from the last one. It is called so often while somebody waits, without back-off.
    Such a shim counts its questions by itself (`events.on_server_asked`)."""

    def __init__(self, store: Store) -> None:
        self.store = store

    @abstractmethod
    def visible(self, ids: Sequence[WriteId], server: Server) -> Sequence[Visibility]:
        """One answer a write, in order: VISIBLE, not_yet("where it is") or unproven("why", kind). Never guesses.

        `ids` may be empty: a sign of life is asked for. A positional shim calls `server.applied(…)` with what the
        same reply proved, so that one question releases everybody up to there.
        """

    def watch(self, server: Server, on_change: Callable[[], None]) -> Watch:
        """Opens a push channel that calls `on_change` whenever something was applied at the server (`push`)."""
        raise NotImplementedError(f"{self.kind} has no push")

    def wait(self, ids: Sequence[WriteId], server: Server, timeout: float) -> Sequence[Visibility]:
        """Like `visible`, but blocks at the server up to `timeout` seconds for the first of the writes.

        One that can end early looks at `server.interrupted`: somebody new waits for another write. One that asks again
        and again by itself answers at once where `server.is_unhurried`.
        """
        raise NotImplementedError(f"{self.kind} has no blocking wait")

    def close(self, server: Server) -> None:
        """Gives up the connection to a server (`server.session`); never raises."""
        server.session = None

    def renew(self, server: Server) -> Any:
        """Open a connection to a server, and return what is to be `server.session`; raise what opening raises.

        It is called on a thread of its own while the server is asked by the one that is there, so it changes nothing of
        the server or the shim. `close` takes what it returned, in the place of a server's.
        """
        raise NotImplementedError(f"{self.kind} opens no connection beside another")

    def forget(self) -> None:  # noqa: B027  a shim without threads of its own has nothing to do
        """The store is given up (tests): threads of the shim's own end, with what they had open."""

    def kind_of(self, error: Exception) -> UnprovenKind:
        """Return what an exception that `visible` raised says of why nothing is proved; none of `unreachable`."""
        return UnprovenKind.OTHER

    def address(self, target: Any) -> str:
        """A name for the server behind a client or URL, for results and errors; without credentials."""
        return target if isinstance(target, str) else f"{self.kind}:{id(target):x}"


class Store(ABC):
    """A registered datastore: its logical name, its kind, and the servers that its readers here may use."""

    def __init__(self, name: str, shim: type[Shim], options: StoreOptions) -> None:
        WriteId(name, b"check", Ordered("", 0))  # refuses a name that the wire cannot carry
        if name == BRANCHES:
            raise ConfigurationError(
                f"{name} is the name under which branches travel (BRANCH-1): name the store otherwise",
                code="AP501",
            )
        self.name = name
        self.lock = threading.Lock()
        self.generation = 0
        """Grows when the set of servers changes."""
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
        """Give its servers up: their threads end at once, with their channels, and the shim's own (tests)."""
        self.shim.forget()

    def after_fork(self) -> None:
        """Note that this is the child of a fork: nobody is parked here, and no server has been asked."""
        self.lock = threading.Lock()
        self.parked_threads = self.parked_tasks = self.parked_entries = 0

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

    @property
    def replicas(self) -> tuple[str, ...]:
        """The addresses of the servers that a pass with reach `region` speaks of."""
        return tuple(server.address for server in self.servers())

    def __repr__(self) -> str:
        return f"<Store {self.name} ({self.kind}) {', '.join(self.replicas)}>"

    # Its servers, and who names them

    @abstractmethod
    def use_server(self, target: Any, address: str | None = None, *, listed: bool = False) -> Server:
        """Let a wrapped client's own server join the store, and the region where the client may read there (BAR-22).

        Args:
            target: What the shim knows the server by.
            address: Its address, where the shim has it at hand.
            listed: The client's wrap names the region's servers, or nobody can read there (a broker's publisher).
        """

    @abstractmethod
    def list_replicas(self, replicas: Replicas) -> None:
        """Let servers that readers of this region may use join.

        A callable is asked now and, while barriers come, every 5 s; what it raises is a fault of discovery (BAR-53).
        """

    @abstractmethod
    def discover(self, name: str, ask: Callable[[], Sequence[Any]], *, key: Hashable, listed: bool = False) -> None:
        """Let the servers of a wrapped client join that `ask` names, now and again every 5 s (BAR-53).

        `ask` returns targets; an empty answer and what it raises are a fault of it. `key`: what has one key is asked
        once for all. `listed`: as `use_server` has it.
        """

    @abstractmethod
    def expect_server(self, client: Any, ask: Callable[[Any], Any], name: str, *, listed: bool = False) -> ServerSource:
        """Return the server of a wrapped client that has none yet: a pool before its first connection (BAR-52).

        Until it is known no barrier passes on the other servers. `ask(client)` returns the target, or None while nobody
        knows it, and may raise; threads of Antipode's own call it while somebody waits. Where it becomes known
        otherwise, the shim calls `found([target])` of what is returned. A client that is gone is waited for no more.
        `listed`: as `use_server` has it.
        """

    @abstractmethod
    def follow_client(
        self,
        client: Any,
        look: Callable[[Any], object],
        ask: Callable[[Any], Sequence[Any]],
        name: str,
        *,
        listed: bool = False,
        varies: Callable[[Any], bool] = lambda _: False,
        meet: Callable[[Any], None] = lambda _: None,
    ) -> ServerSource:
        """Return the servers of a wrapped client, which are looked for again where `look(client)` changes (BAR-52).

        Until `ask(client)` has named them, or `found` of what is returned, no barrier passes on the other servers.
        `varies(client)`: the application's own code opens its connections, perhaps elsewhere each time: it is asked
        again every 5 s, and what it once named stays.
        `meet(client)` calls `reach` for each connection that the client holds and has not handed out (BAR-68): whenever
        a barrier names servers, so it neither blocks nor asks anybody.
        """

    @abstractmethod
    def reach(self, connection: Any, target: Any, leads: Callable[[Any], bool], *, listed: bool = False) -> Server:
        """Return the server that a connection of a wrapped client has reached: it joins, as long as one leads there.

        Called before the client hands the connection out, and whenever it is made anew (BAR-52, BAR-62). It is held
        weakly. `leads(connection)`: whether it is open there still; a thread of Antipode's own asks every 5 s while
        barriers come, so it neither blocks nor reads. Where it raises the connection leads there. `listed`: as
        `use_server` has it.
        """

    @abstractmethod
    def servers(self, *, own: bool = False, stale: bool = False) -> Sequence[Server]:
        """Return the servers of reach `region`; with `own=True` those of wrapped clients (reach `replica`).

        Where somebody else has still to name some, one that stands for them is among these: who waits there waits for
        that, too. `stale`: an answer stands however old it is (for records, which nobody relies on).
        """

    @abstractmethod
    def wrapped_servers(self) -> Sequence[Server]:
        """Return the servers of wrapped clients alone: this process may write to them. Asks where none is known."""

    @abstractmethod
    def server_at(self, address: str) -> Server | None:
        """Return the server with this address."""
