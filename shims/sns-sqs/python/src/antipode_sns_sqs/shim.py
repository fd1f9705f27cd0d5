"""The shim: whether a tracked message has arrived in a region, as far as somebody here can see it (spec SHIM)."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import ClassVar

from antipode import Store
from antipode.shim import Server
from antipode.shim.tap import Broker, ReadTap, TapMemory, TappedShim, TapWatch
from botocore.exceptions import BotoCoreError

from antipode_sns_sqs import doctor, preparing
from antipode_sns_sqs.reader import TapReader
from antipode_sns_sqs.tap import REMEMBERED, SCHEMES, Tap


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


class SnsSqsShim(TappedShim):
    """Messages of SNS and SQS; a tap is a queue of its own."""

    kind: ClassVar[str] = "sns-sqs"
    brand: ClassVar[str] = "SNS/SQS"
    remembered: ClassVar[int] = REMEMBERED // 5
    unreachable: ClassVar[tuple[type[Exception], ...]] = (OSError, BotoCoreError)
    schemes: ClassVar[tuple[str, ...]] = SCHEMES
    preparation_options: ClassVar[Mapping[str, str]] = preparing.OPTIONS

    tap_of = staticmethod(Tap.of)

    def __init__(self, store: Store) -> None:
        super().__init__(store)
        self._sessions: list[_Session] = []

    def tap(self, server: Server) -> ReadTap:
        """As the base says."""
        session = self._session(server)
        session.reader(server.ask_timeout).check(server.ask_timeout)
        return ReadTap(session.memory, session.tap.endpoint, session.tap.queue)

    def watch(self, server: Server, on_change: Callable[[], None]) -> TapWatch:
        """As the base says."""
        if isinstance(server.target, Broker):
            raise NotImplementedError("it has no tap")
        reader = self._session(server).reader(server.ask_timeout)
        reader.on_arrival = on_change

        def close() -> None:
            reader.on_arrival = None

        return TapWatch(close)

    def close(self, server: Server) -> None:
        """Nothing: what reads the tap goes on by itself, and what has arrived is not forgotten."""

    def forget(self) -> None:
        """Ends the reading of its taps."""
        sessions, self._sessions = self._sessions, []
        for session in sessions:
            session.close()

    def _session(self, server: Server) -> _Session:
        # None at first, and in the child of a fork: nothing of the parent's threads is touched there.
        if not isinstance(server.session, _Session):
            server.session = _Session(Tap.of(server.target))
            self._sessions.append(server.session)
        return server.session

    # For operators

    diagnose = staticmethod(doctor.diagnose)
    preparations = staticmethod(preparing.preparations)
