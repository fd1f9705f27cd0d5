"""When the thread that asks a server asks it next (spec BAR-38, BAR-66).

A server is asked at once for whoever is new. Else no more than once a shortest interval, and by a prediction where its
position grows:

1. Growth is told from answers alone: how far the position came from the asking of one to the asking of the next, so
   that the round trip is in it already; what is older than `_MEMORY_S` hardly counts.
2. The nearest position that somebody waits for is expected where that growth gets there, and a little later: a question
   that comes too early is one more, and the next has to keep the interval. Nobody looks further ahead than twice the
   time in which the growth was seen, nor than `CAP_S`: so much a prediction that is wrong may cost.
3. A push says that something was applied, and not how much; each stands for its share of the growth. One is asked for
   where those since the last answer may have brought the position, or where they come so seldom that asking for each
   costs no more than the cap does. Where few are to bring it they are waited for, a shortest interval longer than the
   growth says: a write that is late comes with its push.
4. Nothing is predicted where the position stands still, belongs to other data than before, or is not all that the
   server is asked for: then it is asked for each push, and else with a poll's back-off.

A prediction says when to ask. What is visible, only the answer says.
"""

from __future__ import annotations

import math
import random
import time
from typing import Final

from antipode._engine.poller import Poller

CAP_S: Final = 0.05
"""A server that somebody waits for is asked after so long in any case, or after a longer shortest interval."""
RETRY_S: Final = (0.05, 0.5)
"""The first pause behind a failure, and the longest."""
SAFETY_NET: Final = 10
"""The poll interval doubles up to so many times the shortest."""
_UNHURRIED: Final = 1.25
"""By so much it grows where nobody waits: when a write was seen is known to within a quarter, or the longest one."""
_MEMORY_S: Final = 0.25
_TWIN_S: Final = 0.002
"""Of two answers so close to each other the second shows no standstill."""
_LATER: Final = 0.08
"""By this share of the time ahead a question comes behind its prediction."""
_FEW: Final = 4
"""So many pushes can be counted: of more the time tells better."""
_GONE: Final = 0.5
"""Fewer pushes that are remembered are of long ago: the channel may be gone."""
_PART: Final = 0.02
"""By so much of a push the count may be wrong: writes differ a little, and sums of fractions do."""


class Growth:
    """How a server's position grows, as its answers show it. `data` names what it is a position of."""

    __slots__ = ("_asked_at", "_counter", "_data", "_grown", "_is_moving", "_pushed", "_pushes", "_spent")

    def __init__(self) -> None:
        self._data: object = None
        self._asked_at = 0.0
        self._counter = 0
        self._is_moving = False
        self._grown = self._spent = self._pushes = 0.0
        """How far it came, in how long, with how many pushes."""
        self._pushed = 0
        """Since the last answer."""

    def note(self, data: object, asked_at: float, counter: int) -> None:
        """An answer: asked then, the server was so far."""
        if data != self._data or counter < self._counter:
            self._data, self._is_moving = data, False
            self._grown = self._spent = self._pushes = 0.0
        else:
            seconds, growth = asked_at - self._asked_at, counter - self._counter
            if not growth and seconds < _TWIN_S:
                return
            self._is_moving = growth > 0 and seconds > 0
            kept = math.exp(-seconds / _MEMORY_S)
            self._grown = self._grown * kept + growth
            self._spent = self._spent * kept + seconds
            self._pushes = self._pushes * kept + self._pushed
        self._asked_at, self._counter, self._pushed = asked_at, counter, 0

    def note_push(self) -> None:
        """A push: something was applied (any thread: what is lost to another one makes a prediction a little worse)."""
        self._pushed += 1

    def look_ahead(self, data: object, counter: int | None, now: float, lead: float = 0.0) -> tuple[float, bool] | None:
        """Return after how many seconds to ask, and whether this position is expected then; None where nothing tells.

        Else it is further ahead than anybody looks. lead: so many seconds before it is expected; negative: behind that.
        """
        if counter is None or data != self._data or not self._is_moving:
            return None
        ahead = max(counter - self._counter, 0) * self._spent / self._grown * (1 + _LATER) - lead
        most = min(2 * self._spent, CAP_S)
        return max(self._asked_at + min(ahead, most) - now, 0.0), ahead <= most

    def is_pushed_to(self, counter: int) -> bool:
        """Return whether the pushes since the last answer may have brought this position, or come seldom."""
        return self._spent >= CAP_S * self._pushes or self._pushes_to(counter) <= min(self._pushed, _FEW)

    def is_told_by_pushes(self, counter: int) -> bool:
        """Return whether so few pushes are to bring this position that they tell it better than the time."""
        return self._pushes > _GONE and self._pushes_to(counter) <= _FEW

    def _pushes_to(self, counter: int) -> float:
        return (counter - self._counter) * self._pushes / self._grown - _PART


class Pace:
    """The thread's: the times of its last questions, its poll interval, its pauses."""

    def __init__(self) -> None:
        self.growth = Growth()
        self.has_news = False
        """Whether the server has pushed since it was asked."""
        self.asked_at = -1e9
        self._paced_at = -1e9
        """When it was last asked for nobody who is new."""
        self._interval = 0.0
        self.is_unhurried = False
        """Whether nobody waited for the last answer, and it may have been long since then."""
        self.retry = RETRY_S[0]
        self._was_down = False
        self.pause = RETRY_S[0]
        """How long it rests behind a fault of this process."""
        self.blocks = True
        """Whether the store's own wait lately waited, or saw something: one that comes back at once is a poll."""

    def due(self, now: float, shortest: float, data: object, nearest: int | None) -> float:
        """Return when to ask for those who wait.

        nearest: the position that comes first, where they wait for positions of these data alone.
        """
        soonest = self._paced_at + shortest
        pushed = self._paced_at + min(shortest, CAP_S)  # who has a push may poll seldom
        ahead = self.growth.look_ahead(data, nearest, now)
        if ahead is None or nearest is None:
            slow = self.asked_at + max(self._interval, shortest) * random.uniform(0.9, 1.1)
            return pushed if self.has_news else max(slow, soonest)
        if self.has_news and self.growth.is_pushed_to(nearest):
            return pushed
        if self.growth.is_told_by_pushes(nearest):
            ahead = self.growth.look_ahead(data, nearest, now, -shortest) or ahead
        return max(now + ahead[0], soonest)

    def rest(self, poller: Poller | None, data: object, nearest: int | None, lead: float) -> float | None:
        """Sleep until so long before the nearest position should be there, or until somebody new waits.

        Return for how many seconds it is worth a glance from then on: 0 where it is further ahead, and the server is
        to be asked first. None at once where nothing tells.
        """
        ahead = self.growth.look_ahead(data, nearest, time.monotonic(), lead)
        if ahead is None or poller is None:
            return None
        seconds, is_near = ahead
        poller.rest(seconds)
        return 2 * lead if is_near else 0.0

    def begin(self, now: float, *, is_paced: bool) -> None:
        """Note that a question begins; is_paced: it is due, and not for somebody new alone."""
        self.asked_at = now
        self.has_news = False
        if is_paced:
            self._paced_at = now

    def hurry(self) -> None:
        """Ask soon again: of what has just come, it is known the sooner."""
        self._interval = 0.0

    def end(self, asked_at: float, shortest: float, *, is_down: bool, is_steady: bool, is_unhurried: bool) -> None:
        """Note what came of a question, which may have been asked behind a connection's opening."""
        if self._paced_at == self.asked_at < asked_at:
            self._paced_at = asked_at
        self.retry = min(self.retry * 2, RETRY_S[1]) if is_down and self._was_down else RETRY_S[0]
        self._was_down = is_down
        growth = _UNHURRIED if is_unhurried else 2
        longer = min(max(self._interval, shortest) * growth, shortest * SAFETY_NET)
        self._interval = shortest if is_down or is_steady else longer
        self.is_unhurried = is_unhurried
