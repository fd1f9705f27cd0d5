"""Who runs, who waits and who is shed: the state of one throttle (spec THR-1 to THR-4).

No input or output, no clock, no lock: times and draws are given, and the vectors `throttle-permit` hold every language
to the same answers. `Throttle` calls it under its lock and wakes those whose tickets it returns.
"""

from __future__ import annotations

from collections import OrderedDict
from enum import StrEnum
from typing import Final

from antipode.throttle._limit import Limit
from antipode.throttle._pie import Pie


class Outcome(StrEnum):
    """The fate of a request that asks for a permit; the attribute `outcome` of THR-11, but for `queued`."""

    ADMITTED = "admitted"
    QUEUED = "queued"
    SHED = "shed"
    QUEUE_FULL = "queue_full"
    EXPIRED = "expired"


class Ticket:
    """One request at a throttle."""

    __slots__ = ("arrived_at", "began_at", "parked_at", "parked_for", "state")

    def __init__(self) -> None:
        self.state = ""
        """`queued`, `running`, `parked`, or empty: it has no place here, or none any more."""
        self.arrived_at = self.began_at = self.parked_at = self.parked_for = 0.0


_MOST_PARKED: Final = 4


class Permits:
    """The permits of one throttle, and the queue for them, first come first served."""

    def __init__(
        self, limit: Limit, pie: Pie, *, max_queue: int, max_wait: float, max_parked: int | None, now: float
    ) -> None:
        """Begin with nobody here.

        Args:
            limit: how many may run.
            pie: who is shed.
            max_queue: how many may wait for a permit.
            max_wait: how long, seconds.
            max_parked: how many may wait in barriers without a permit; None: four times the greatest limit.
            now: a monotonic time.
        """
        self._limit = limit
        self._pie = pie
        self._max_queue = max_queue
        self._max_wait = max_wait
        self._max_parked = max_parked
        self._queue: OrderedDict[Ticket, None] = OrderedDict()
        self.running = 0
        self.parked = 0
        self._admitted = 0
        self._done = 0
        self._service = 0.0
        self._ticked_at = now

    @property
    def queued(self) -> int:
        """Return how many requests wait for a permit."""
        return len(self._queue)

    @property
    def is_idle(self) -> bool:
        """Return whether no request is here and nothing is left to calm down, so that no tick is needed."""
        return not (self.running or self.parked or self._queue or self._pie.probability or self._pie.state != "out")

    def late_by(self, now: float) -> float:
        """Return how long the last tick is past, in seconds."""
        return now - self._ticked_at

    def arrive(self, ticket: Ticket, now: float, draw: float, *, is_protected: bool = False) -> Outcome:
        """Ask for a permit. `draw` is uniform in [0, 1); `is_protected`: PIE does not shed it (THR-2)."""
        ticket.arrived_at = now
        if not self._queue and self.running < self._limit.limit:
            self._begin(ticket, now)
            return Outcome.ADMITTED
        if len(self._queue) >= self._max_queue:
            return Outcome.QUEUE_FULL
        if not is_protected and self._pie.shed(draw):
            return Outcome.SHED
        ticket.state = "queued"
        self._queue[ticket] = None
        return Outcome.QUEUED

    def _begin(self, ticket: Ticket, now: float) -> None:
        ticket.state, ticket.began_at = "running", now
        self.running += 1
        self._admitted += 1

    def finish(self, ticket: Ticket, now: float) -> list[Ticket]:
        """End a request, wherever it is; return those that run from now on. A second end does nothing."""
        state, ticket.state = ticket.state, ""
        if state == "queued":
            del self._queue[ticket]  # it gave up
        elif state == "parked":
            self.parked -= 1
            self._count(ticket, ticket.parked_at)
        elif state == "running":
            self.running -= 1
            self._count(ticket, now)
        return self._grant(now)

    def _count(self, ticket: Ticket, end: float) -> None:
        self._done += 1
        self._service += end - ticket.began_at - ticket.parked_for

    def park(self, ticket: Ticket, now: float) -> list[Ticket]:
        """Give a running request's permit back while it waits in a barrier; return those that run from now on.

        It keeps the permit where as many are parked as may be (THR-4).
        """
        most = _MOST_PARKED * getattr(self._limit, "most", self._limit.limit)
        if ticket.state != "running" or self.parked >= (most if self._max_parked is None else self._max_parked):
            return []
        ticket.state, ticket.parked_at = "parked", now
        self.running -= 1
        self.parked += 1
        return self._grant(now)

    def resume(self, ticket: Ticket, now: float) -> None:
        """Take the permit again at once, above the limit if need be: it may hold a lock that others want (THR-4)."""
        if ticket.state != "parked":
            return
        ticket.state = "running"
        ticket.parked_for += now - ticket.parked_at
        self.parked -= 1
        self.running += 1

    def tick(self, now: float) -> list[Ticket]:
        """End an interval; return those that run from now on (THR-3). Who has waited too long waits no more (THR-1)."""
        while self._queue and (first := next(iter(self._queue))).arrived_at + self._max_wait <= now:
            del self._queue[first]
            first.state = ""
        seconds, self._ticked_at = now - self._ticked_at, now
        if seconds > 0:
            self._pie.tick(len(self._queue), self._admitted, seconds, now)
            mean = self._service / self._done if self._done else 0.0
            self._limit.tick(bool(self._queue), self._done, mean, seconds, now)
            self._admitted = self._done = 0
            self._service = 0.0
        return self._grant(now)

    def _grant(self, now: float) -> list[Ticket]:
        granted = []
        while self._queue and self.running < self._limit.limit:
            ticket, _ = self._queue.popitem(last=False)
            self._begin(ticket, now)
            granted.append(ticket)
        return granted
