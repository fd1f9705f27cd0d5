"""The shim contract: what a datastore owes Antipode (DESIGN 7, spec SHIM).

A shim says what its store can do and answers one question; the core does deadlines, parallel waits, polling, single
flight and overload.
"""

from __future__ import annotations

import copy
from abc import ABC, abstractmethod
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Any, ClassVar, Literal, NoReturn, Protocol, TypeVar

from antipode.errors import ConfigurationError
from antipode.pending import PendingWrite
from antipode.reading import Reading, current_reading
from antipode.server import Server
from antipode.store import Replicas, Store, StoreOptions, Write, join_store, stores
from antipode.verdict import NOT_YET, VISIBLE, UnprovenKind, Visibility, not_yet, unproven
from antipode.writeid import WriteId

__all__ = [
    "NOT_YET",
    "VISIBLE",
    "Capabilities",
    "PendingWrite",
    "Reading",
    "Replicas",
    "Server",
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


def refuse_making(made: object, *_: object, **__: object) -> NoReturn:
    """Refuse the object that the class of a wrapped one makes, as its `__init__`: it would record nothing (SHIM-50)."""
    mro = (made if isinstance(made, type) else type(made)).__mro__
    kind = next(each for each in mro if not each.__module__.startswith("antipode"))
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
