"""What the shims of queues share: whether a tracked message has arrived here, as far as a tap shows it (spec SHIM).

A tap is whatever shows a region's messages without taking them from their consumers: a stream, a topic, a queue.
"""

from __future__ import annotations

from abc import abstractmethod
from collections.abc import Callable, Sequence
from dataclasses import replace
from functools import partial
from typing import Any, ClassVar, Final, NamedTuple, Protocol

from antipode._base import logs
from antipode._base.bounded import BoundedMap
from antipode._model.errors import UnfitStoreError
from antipode._model.verdict import VISIBLE, Visibility, not_yet, unproven
from antipode._model.write_id import Opaque, WriteId
from antipode._store.store import Store, StoreOptions, join_store
from antipode.shim import Capabilities, Server, Shim
from antipode.shim.administration import EpochRecord, Finding, Level

__all__ = [
    "Broker",
    "KeptTapShim",
    "Marks",
    "ReadTap",
    "TapMemory",
    "TapReader",
    "TapRefusedError",
    "TapSession",
    "TapWatch",
    "TappedShim",
    "check_tap",
    "join_tapped",
    "refused_tap",
]

_MOST_WANTED: Final = 10_000


class Marks(BoundedMap[str, None]):
    """The last so many marks that were seen."""

    def add(self, mark: str) -> None:
        """A message with this mark has arrived; once more is the same."""
        self.put(mark, None)


class TapMemory:
    """The marks that a tap has shown, and those that somebody waits for; it outlives the connections to the tap."""

    def __init__(self, remember: int) -> None:
        self.remember = remember
        self.seen = Marks(remember)
        self.wanted: dict[str, None] = {}
        """Marks that somebody waits for: only these are worth a push."""

    def want(self, mark: str) -> bool:
        """Whether a message with this mark has arrived; if not, its arrival will be told.

        First wanted, then looked up; the reader first notes, then looks whether it is wanted. So none is missed.
        """
        if len(self.wanted) >= _MOST_WANTED:
            self.wanted.clear()  # whoever waits asks again within the poll interval
        self.wanted[mark] = None
        if mark in self.seen:
            self.wanted.pop(mark, None)
            return True
        return False

    def note(self, mark: str) -> bool:
        """A message has arrived; True if somebody waits for it, who is to be told now."""
        self.seen.add(mark)
        if mark not in self.wanted:
            return False
        self.wanted.pop(mark, None)
        return True

    def disbelieve(self) -> None:
        """What was seen did not prove arrival here: all of it is forgotten."""
        self.seen = Marks(self.remember)


class TapWatch:
    """The push of a tap: its reader's thread calls back; `close` ends that."""

    def __init__(self, close: Callable[[], None]) -> None:
        self.close = close

    def fileno(self) -> int | None:
        return None

    def pump(self) -> None:
        """Nothing to read: the reader's own thread calls back."""


class ReadTap(NamedTuple):
    """A tap that is being read."""

    memory: TapMemory
    broker: str
    """Where its messages arrive, as consumers of this process name it."""
    name: str
    """The stream, topic or queue, for people."""


class TapRefusedError(Exception):
    """The broker is there, and its tap cannot be read, or proves nothing."""


class Broker(NamedTuple):
    """What this process is connected to without a tap: a broker or region, or those that a connection may take."""

    addresses: tuple[str, ...]

    @property
    def address(self) -> str:
        """All of them, as one word."""
        return ",".join(self.addresses)


def check_tap(
    store: str,
    address: str,
    on_unfit: str,
    probe: Callable[[], object],
    cure_of: Callable[[Any], tuple[str, str]],
) -> None:
    """Asks at once whether a tap can be read; one whose broker does not answer now is asked again when waited for.

    probe: reads it for a moment; raises TapRefusedError, of which cure_of says what it means and what to do about it,
    or OSError where the broker is out of reach. Raises UnfitStoreError; with on_unfit="unproven" it is logged.
    """
    try:
        probe()
    except TapRefusedError as error:
        what, cure = cure_of(error)
        words = f"the tap of {store} cannot be read: {what} at {address}.\n  {cure}"
        if on_unfit == "raise":
            raise UnfitStoreError(f'{words} Until then wrap(…, on_unfit="unproven") lets the service start.') from error
        logs.warn(f"unfit {address}", words, code="AP208")
    except OSError as error:
        logs.warn(f"unfit {address}", f"the tap of {store} at {address} does not answer now: {error}", code="AP507")


def join_tapped(
    store: str,
    shim: type[TappedShim],
    taps: Sequence[Any] | Callable[[], Sequence[Any]] | None,
    options: StoreOptions,
    *,
    probe: Callable[[Any], object],
    cure_of: Callable[[Any, Any], tuple[str, str]],
) -> Store:
    """Register a store of messages, having asked those of its taps that are named here whether they can be read.

    probe and cure_of are those of `check_tap`, for a tap. Raises as that does.
    """
    if taps is not None and not callable(taps):
        taps = [shim.tap_of(each) for each in taps]
        for each in taps:
            check_tap(store, each.address, options.on_unfit, partial(probe, each), partial(cure_of, each))
    return join_store(store, shim, replace(options, replicas=taps))


def refused_tap(what: str, cure: str) -> Finding:
    """Return the finding for a tap that cannot be read."""
    return Finding(Level.UNPROVEN, what, "Tracked messages are unproven here.", cure, code="AP208")


class TappedShim(Shim):
    """A message is visible at a broker when the broker has got it: its tap gave it, or it was consumed here.

    That does not end: a message that has arrived stays arrived, also after it was consumed.
    """

    capabilities: ClassVar[Capabilities] = Capabilities(versions="opaque", push=True, rest=("native",), tap=True)
    reconnects: ClassVar[bool] = False
    brand: ClassVar[str]
    """The queue's own name, for people."""
    remembered: ClassVar[int]
    """How many messages that this process consumed are remembered for each broker."""

    def __init__(self, store: Store) -> None:
        super().__init__(store)
        self._arrived: dict[str, Marks] = {}

    @staticmethod
    @abstractmethod
    def tap_of(target: Any) -> Any:
        """Return the tap that a target is, which has an `address`; raises ConfigurationError for what is none."""

    def address(self, target: Any) -> str:
        """As the base says."""
        return target.address if isinstance(target, Broker) else str(self.tap_of(target).address)

    @abstractmethod
    def tap(self, server: Server) -> ReadTap:
        """The tap, which is being read now; raises an error of `unreachable` where it is not."""

    def arrived(self, broker: str, mark: str) -> None:
        """A tracked message was consumed by this process from this broker."""
        marks = self._arrived.get(broker)
        if marks is None:
            marks = self._arrived.setdefault(broker, Marks(self.remembered))
        marks.add(mark)

    def visible(self, ids: Sequence[WriteId], server: Server) -> Sequence[Visibility]:
        """As the base says."""
        if isinstance(server.target, Broker):
            return [self._judged(write_id, None, server.target.addresses) for write_id in ids]
        tap = self.tap(server)
        return [self._judged(write_id, tap, [tap.broker]) for write_id in ids]

    def _judged(self, write_id: WriteId, tap: ReadTap | None, brokers: Sequence[str]) -> Visibility:
        if not isinstance(write_id.version, Opaque):
            article = "an" if self.brand[0] in "AEIOU" else "a"
            return unproven(f"messages have opaque marks; this identifier was not made by {article} {self.brand} shim")
        mark = write_id.version.mark
        is_shown = tap is not None and tap.memory.want(mark)
        if is_shown or any(mark in self._arrived[broker] for broker in brokers if broker in self._arrived):
            return VISIBLE
        words = write_id.key.decode("utf-8", "backslashreplace")[:80]
        if tap is not None:
            return not_yet(f"a message to {words} is not among the last {len(tap.memory.seen)} of {tap.name}")
        return unproven(
            f"nobody can tell whether a message to {words} has arrived: this process reads no tap of "
            f"{self.store.name}; give it one by {type(self).__module__.partition('.')[0]}.register("
            f"{self.store.name!r}, tap=…)"
        )

    @classmethod
    def epochs(cls, url: str) -> Sequence[EpochRecord]:
        """None: messages have marks of their own, without order."""
        return []

    @classmethod
    def settle(cls, url: str, epoch: str, position: int | None = None) -> None:
        """Raises ValueError: there is nothing to settle."""
        raise ValueError(f"{cls.brand} has no epochs: each tracked message has a mark of its own")


class TapReader(Protocol):
    """A connection that reads a tap into its memory, and calls back when somebody waits for what came."""

    def start(self, timeout: float) -> None:
        """Connects. Raises TapRefusedError, or an error of the shim's `unreachable`."""

    def check(self, timeout: float) -> None:
        """Returns if the tap is being read; raises as `start` does."""

    def close(self) -> None:
        """Ends the connection."""


class TapSession:
    """What this process knows of one tap, and its connection while somebody waits."""

    def __init__(self, tap: ReadTap, connection: Callable[[Callable[[], None], float], TapReader]) -> None:
        self.tap = tap
        self.connection = connection
        """Makes a reader, of what it calls back and the seconds that a question may take."""
        self.reader: TapReader | None = None

    @property
    def memory(self) -> Any:
        """What the tap has shown."""
        return self.tap.memory


class KeptTapShim(TappedShim):
    """Taps that keep their past themselves (a stream, a topic that is replayed): one is read while somebody waits."""

    @abstractmethod
    def session_of(self, target: Any) -> TapSession:
        """The session of a target that is a tap."""

    def tap(self, server: Server) -> ReadTap:
        """As the base says."""
        session = self._session(server)
        if session.reader is None:
            raise ConnectionError("the tap is not being read")
        session.reader.check(server.ask_timeout)
        return session.tap

    def watch(self, server: Server, on_change: Callable[[], None]) -> TapWatch:
        """As the base says."""
        if isinstance(server.target, Broker):
            raise NotImplementedError("it has no tap")
        session = self._session(server)
        reader = session.connection(on_change, server.ask_timeout)
        reader.start(server.ask_timeout)
        session.reader = reader
        return TapWatch(reader.close)

    def close(self, server: Server) -> None:
        """Gives up the connection; what has arrived is not forgotten with it."""
        session = server.session
        if isinstance(session, TapSession):
            session.reader = None

    def _session(self, server: Server) -> TapSession:
        # None at first, and in the child of a fork: nothing of the parent's threads is touched there.
        if not isinstance(server.session, TapSession):
            server.session = self.session_of(server.target)
        return server.session
