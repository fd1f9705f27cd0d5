"""The shim: whether a tracked message has arrived in a region, as far as somebody here can see it (spec SHIM)."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from typing import Any, ClassVar, Final, NamedTuple

from antipode.administration import EpochRecord, Finding, Step, Wanted
from antipode.server import Server
from antipode.shim import Capabilities, Shim, Visibility, not_yet, unproven
from antipode.store import Store
from antipode.verdict import VISIBLE
from antipode.writeid import Opaque, WriteId
from stomp.exception import StompException

from antipode_activemq import preparing
from antipode_activemq.marks import Marks
from antipode_activemq.memory import TapMemory
from antipode_activemq.reader import TapReader
from antipode_activemq.tap import REMEMBERED, Tap

_OWN_REMEMBERED: Final = REMEMBERED // 5


class Broker(NamedTuple):
    """What this process is connected to without a tap: a broker, or the list of those that a connection may take."""

    addresses: tuple[str, ...]

    @property
    def address(self) -> str:
        """All of them, as one word."""
        return ",".join(self.addresses)


class _Session:
    """The memory of one tap in this process, and its connection while somebody waits."""

    def __init__(self, tap: Tap) -> None:
        self.tap = tap
        self.memory = TapMemory(tap.remember)
        self.reader: TapReader | None = None


class _TapWatch:
    """The push of a tap: its reader's thread calls back."""

    def __init__(self, reader: TapReader) -> None:
        self._reader = reader

    def fileno(self) -> int | None:
        return None

    def pump(self) -> None:
        """Nothing to read: the reader's own thread calls back."""

    def close(self) -> None:
        self._reader.close()


class ActiveMQShim(Shim):
    """A message is visible at a broker when the broker has got it: its tap gave it, or it was consumed here.

    That does not end: a message that has arrived stays arrived, also after it was consumed.
    """

    kind: ClassVar[str] = "activemq"
    capabilities: ClassVar[Capabilities] = Capabilities(versions="opaque", push=True, rest=("native",), tap=True)
    unreachable: ClassVar[tuple[type[Exception], ...]] = (OSError, StompException)
    schemes: ClassVar[tuple[str, ...]] = ("stomp",)
    preparation_options: ClassVar[Mapping[str, str]] = preparing.OPTIONS

    def __init__(self, store: Store) -> None:
        super().__init__(store)
        self._arrived: dict[str, Marks] = {}

    def arrived(self, broker: str, mark: str) -> None:
        """A tracked message was consumed by this process from this broker."""
        marks = self._arrived.get(broker)
        if marks is None:
            marks = self._arrived.setdefault(broker, Marks(_OWN_REMEMBERED))
        marks.add(mark)

    def visible(self, ids: Sequence[WriteId], server: Server) -> Sequence[Visibility]:
        target = server.target
        if isinstance(target, Broker):
            return [self._without_tap(write_id, target.addresses) for write_id in ids]
        session = self._session(server)
        if session.reader is None:
            raise ConnectionError("the tap is not being read")
        session.reader.check(server.ask_timeout)
        return [self._by_tap(write_id, session) for write_id in ids]

    def watch(self, server: Server, on_change: Callable[[], None]) -> _TapWatch:
        if isinstance(server.target, Broker):
            raise NotImplementedError("it has no tap")
        session = self._session(server)
        reader = TapReader(session.tap, session.memory, on_change, server.ask_timeout)
        reader.start(server.ask_timeout)
        session.reader = reader
        return _TapWatch(reader)

    def close(self, server: Server) -> None:
        """Gives up the connection; what has arrived is not forgotten with it."""
        session = server.session
        if isinstance(session, _Session):
            session.reader = None

    def address(self, target: Any) -> str:
        return target.address if isinstance(target, Broker) else Tap.of(target).address

    @staticmethod
    def _session(server: Server) -> _Session:
        # None at first, and in the child of a fork: nothing of the parent's threads is touched there.
        if not isinstance(server.session, _Session):
            server.session = _Session(Tap.of(server.target))
        return server.session

    def _by_tap(self, write_id: WriteId, session: _Session) -> Visibility:
        mark = _mark(write_id)
        if mark is None:
            return unproven(_NO_MARK)
        if session.memory.want(mark) or self._was_consumed(mark, [session.tap.broker]):
            return VISIBLE
        return not_yet(
            f"a message to {_words(write_id)} is not among the last {len(session.memory.seen)} of {session.tap.topic}"
        )

    def _without_tap(self, write_id: WriteId, brokers: Sequence[str]) -> Visibility:
        mark = _mark(write_id)
        if mark is None:
            return unproven(_NO_MARK)
        if self._was_consumed(mark, brokers):
            return VISIBLE
        return unproven(
            f"nobody can tell whether a message to {_words(write_id)} has arrived: this process reads no tap of "
            f"{self.store.name}; give it one by antipode_activemq.register({self.store.name!r}, tap=…)"
        )

    def _was_consumed(self, mark: str, brokers: Sequence[str]) -> bool:
        return any(mark in self._arrived[broker] for broker in brokers if broker in self._arrived)

    # For operators

    @classmethod
    def diagnose(cls, url: str) -> Sequence[Finding]:
        """Whether the tap of the URL (`stomp://broker:61613#antipode.tap.orders`) can be read, and what cures it."""
        from antipode_activemq.doctor import diagnose

        return diagnose(url)

    @classmethod
    def epochs(cls, url: str) -> Sequence[EpochRecord]:
        """None: messages have marks of their own, without order."""
        return []

    @classmethod
    def settle(cls, url: str, epoch: str, position: int | None = None) -> None:
        """Raises ValueError: there is nothing to settle."""
        raise ValueError("ActiveMQ has no epochs: each tracked message has a mark of its own")

    @classmethod
    def preparations(cls, url: str, wanted: Wanted) -> Sequence[Step]:
        """What the broker's configuration needs for a tap: the copy, its past, its rights."""
        return preparing.preparations(url, wanted)


_NO_MARK: Final = "messages have opaque marks; this identifier was not made by an ActiveMQ shim"


def _mark(write_id: WriteId) -> str | None:
    return write_id.version.mark if isinstance(write_id.version, Opaque) else None


def _words(write_id: WriteId) -> str:
    return write_id.key.decode("utf-8", "backslashreplace")[:80]
