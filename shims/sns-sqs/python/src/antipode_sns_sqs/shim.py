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
from botocore.exceptions import BotoCoreError

from antipode_sns_sqs import preparing
from antipode_sns_sqs.memory import Recent, TapMemory
from antipode_sns_sqs.reader import TapReader
from antipode_sns_sqs.tap import REMEMBERED, SCHEMES, Tap

_OWN_REMEMBERED: Final = REMEMBERED // 5


class Region(NamedTuple):
    """The region of a wrapped client, without a tap."""

    address: str


class _Session:
    """The memory of one tap in this process, and what reads it."""

    def __init__(self, tap: Tap) -> None:
        self.tap = tap
        self.memory = TapMemory(tap.remember)
        self._reader: TapReader | None = None

    def reader(self, timeout: float) -> TapReader:
        """What reads the tap from when it is first waited for, until the store is given up: a queue that nobody reads
        fills up, and would have to be read whole by whoever waits next.
        """
        if self._reader is None:
            self._reader = TapReader(self.tap, self.memory, timeout)
        return self._reader

    def close(self) -> None:
        """Ends the reading."""
        reader, self._reader = self._reader, None
        if reader is not None:
            reader.close()


class _TapWatch:
    """The push of a tap: its reader's thread calls back."""

    def __init__(self, reader: TapReader, on_change: Callable[[], None]) -> None:
        self._reader = reader
        reader.on_arrival = on_change

    def fileno(self) -> int | None:
        return None

    def pump(self) -> None:
        """Nothing to read: the reader's own thread calls back."""

    def close(self) -> None:
        self._reader.on_arrival = None


class SnsSqsShim(Shim):
    """A message is visible in a region when a queue there has got it: its tap gave it, or it was received here.

    That does not end: a message that has arrived stays arrived, also after it was deleted.
    """

    kind: ClassVar[str] = "sns-sqs"
    capabilities: ClassVar[Capabilities] = Capabilities(versions="opaque", push=True, rest=("native",), tap=True)
    unreachable: ClassVar[tuple[type[Exception], ...]] = (OSError, BotoCoreError)
    schemes: ClassVar[tuple[str, ...]] = SCHEMES
    preparation_options: ClassVar[Mapping[str, str]] = preparing.OPTIONS

    def __init__(self, store: Store) -> None:
        super().__init__(store)
        self._arrived: dict[str, Recent[bool]] = {}
        self._sessions: list[_Session] = []

    def arrived(self, region: str, mark: str) -> None:
        """This process has received a tracked message in this region, or sent it to a queue there."""
        marks = self._arrived.get(region)
        if marks is None:
            marks = self._arrived.setdefault(region, Recent(_OWN_REMEMBERED))
        marks.put(mark, True)

    def visible(self, ids: Sequence[WriteId], server: Server) -> Sequence[Visibility]:
        target = server.target
        if isinstance(target, Region):
            return [self._without_tap(write_id, target.address) for write_id in ids]
        session = self._session(server)
        session.reader(server.ask_timeout).check(server.ask_timeout)
        return [self._by_tap(write_id, session) for write_id in ids]

    def watch(self, server: Server, on_change: Callable[[], None]) -> _TapWatch:
        if isinstance(server.target, Region):
            raise NotImplementedError("it has no tap")
        return _TapWatch(self._session(server).reader(server.ask_timeout), on_change)

    def close(self, server: Server) -> None:
        """Nothing: what reads the tap goes on by itself, and what has arrived is not forgotten."""

    def forget(self) -> None:
        """Ends the reading of its taps."""
        sessions, self._sessions = self._sessions, []
        for session in sessions:
            session.close()

    def address(self, target: Any) -> str:
        return target.address if isinstance(target, Region) else Tap.of(target).address

    def _session(self, server: Server) -> _Session:
        # None at first, and in the child of a fork: nothing of the parent's threads is touched there.
        if not isinstance(server.session, _Session):
            server.session = _Session(Tap.of(server.target))
            self._sessions.append(server.session)
        return server.session

    def _by_tap(self, write_id: WriteId, session: _Session) -> Visibility:
        mark = _mark(write_id)
        if mark is None:
            return unproven(_NO_MARK)
        if session.memory.want(mark) or self._is_here(mark, session.tap.endpoint):
            return VISIBLE
        return not_yet(
            f"a message to {_words(write_id)} is not among the last {len(session.memory.seen)} of {session.tap.queue}"
        )

    def _without_tap(self, write_id: WriteId, region: str) -> Visibility:
        mark = _mark(write_id)
        if mark is None:
            return unproven(_NO_MARK)
        if self._is_here(mark, region):
            return VISIBLE
        return unproven(
            f"nobody can tell whether a message to {_words(write_id)} has arrived: this process reads no tap of "
            f"{self.store.name}; give it one by antipode_sns_sqs.register({self.store.name!r}, tap=…)"
        )

    def _is_here(self, mark: str, region: str) -> bool:
        marks = self._arrived.get(region)
        return marks is not None and mark in marks

    # For operators

    @classmethod
    def diagnose(cls, url: str) -> Sequence[Finding]:
        """Whether the tap of the URL can be read, and what cures it."""
        from antipode_sns_sqs.doctor import diagnose

        return diagnose(url)

    @classmethod
    def epochs(cls, url: str) -> Sequence[EpochRecord]:
        """None: messages have marks of their own, without order."""
        return []

    @classmethod
    def settle(cls, url: str, epoch: str) -> None:
        """Raises ValueError: there is nothing to settle."""
        raise ValueError("SNS and SQS have no epochs: each tracked message has a mark of its own")

    @classmethod
    def preparations(cls, url: str, wanted: Wanted) -> Sequence[Step]:
        """A tap at the URL, and the rights to read it."""
        return preparing.preparations(url, wanted)


_NO_MARK: Final = "messages have opaque marks; this identifier was not made by a shim of SNS and SQS"


def _mark(write_id: WriteId) -> str | None:
    return write_id.version.mark if isinstance(write_id.version, Opaque) else None


def _words(write_id: WriteId) -> str:
    return write_id.key.decode("utf-8", "backslashreplace")[:80]
