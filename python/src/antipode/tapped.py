"""What the shims of queues share: whether a tracked message has arrived here, as far as a tap shows it (spec SHIM).

A tap is whatever shows a region's messages without taking them from their consumers: a stream, a topic, a queue.
"""

from __future__ import annotations

from abc import abstractmethod
from collections.abc import Callable, Sequence
from typing import Any, ClassVar, Final, NamedTuple

from antipode.administration import EpochRecord
from antipode.recent import Recent
from antipode.server import Server
from antipode.shim import Capabilities, Shim
from antipode.store import Store
from antipode.verdict import VISIBLE, Visibility, not_yet, unproven
from antipode.writeid import Opaque, WriteId

__all__ = ["Marks", "ReadTap", "TapMemory", "TapWatch", "TappedShim"]

_MOST_WANTED: Final = 10_000


class Marks(Recent[str, None]):
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


class TappedShim(Shim):
    """A message is visible at a broker when the broker has got it: its tap gave it, or it was consumed here.

    That does not end: a message that has arrived stays arrived, also after it was consumed.
    """

    capabilities: ClassVar[Capabilities] = Capabilities(versions="opaque", push=True, rest=("native",), tap=True)
    brand: ClassVar[str]
    """The queue's own name, for people."""
    remembered: ClassVar[int]
    """How many messages that this process consumed are remembered for each broker."""

    def __init__(self, store: Store) -> None:
        super().__init__(store)
        self._arrived: dict[str, Marks] = {}

    @abstractmethod
    def without_tap(self, target: Any) -> Sequence[str] | None:
        """The brokers of a target that is no tap: what this process only publishes to or consumes from."""

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
        brokers = self.without_tap(server.target)
        if brokers is not None:
            return [self._judged(write_id, None, brokers) for write_id in ids]
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
