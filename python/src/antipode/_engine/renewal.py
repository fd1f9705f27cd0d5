"""The connections by which a server is asked: the next one stands before the last one ends (spec BAR-55, BAR-69).

To open a connection may take a second, and nobody is answered meanwhile. So it is opened on a thread of its own, while
the one that is there goes on answering. That lets no barrier pass that could not pass before:

1. A connection may stay at a server to which its address leads no more. BAR-55 allows that for its time, which begins
   with its opening: the address was looked up then. It never answers behind its time, whether the next one stands or
   not; where that is late, whoever waits stands still. So it is of the next one, which may have stood there for long
   when somebody asks again.
2. When the next one stands, all that was proved is dropped before it is asked, as with any new connection (BAR-33): it
   may lead to another server. One thread does both, between two questions: no answer of one counts as the other's.
3. That it cannot be opened is no silence of the server (BAR-26), which answers by the other one. Behind that one's time
   the thread that asks opens a connection itself, and finds out whose fault it is (BAR-61).
"""

from __future__ import annotations

import threading
import time
from collections.abc import Callable
from contextlib import suppress
from typing import Any, Final, cast

from antipode._base.background import Background
from antipode._store.contract import Server

_QUESTIONS: Final = 10
"""A connection lives for so many questions at least: several servers are to stand together (BAR-55)."""
_LEAD: Final = 5
"""The next one is begun in the last fifth of a connection's time, or sooner where it lately took longer."""


class Renewal:
    """The connection of a server's thread, and the next one. Used by that thread alone."""

    def __init__(self, server: Server, close: Callable[[Any], None]) -> None:
        """`close(session)` ends the connection that is there; the session takes its place, where it is not None."""
        self._server = server
        self._close_channel = close
        self._made_at: float | None = None
        """When the connection that may be open began to be opened."""
        self._is_new = False
        self._question_s = 0.0
        self._opening_s = 0.0
        self._next: ConnectionAttempt | None = None

    def begin_question(self, now: float, reconnect: float) -> None:
        """Have the next connection take the place of this one, where it stands or it is time.

        reconnect: how long a connection lives, in seconds.
        """
        if not self._server.store.shim.reconnects:
            return
        if self._made_at is None:
            self._made_at, self._is_new = now, True
            return
        life = max(reconnect, _QUESTIONS * self._question_s)
        left = self._made_at + life - now
        if self._next is None and 0 < left <= min(life / 2, max(life / _LEAD, 2 * self._opening_s)):
            self._next = self._begin()
            left = self._made_at + life - time.monotonic()  # a thread may begin late
        if self._next is not None and left <= 0:
            self._next.wait(max(self._server.ask_timeout, 2 * self._opening_s))  # it is further than a new one
        if self._next is not None and (session := self._next.take()) is not None:
            made_at, self._opening_s = self._next.began_at, self._next.seconds
            self._close_channel(session)
            self._made_at = made_at
            left = made_at + life - time.monotonic()  # it may have stood there for long
        if left <= 0:
            self._close_channel(None)
            self._made_at, self._is_new = time.monotonic(), True

    def end_question(self, seconds: float) -> None:
        """Note that a question was answered, and how long that took, the opening of its connection included."""
        self._question_s = max(seconds, self._question_s / 2)
        if self._is_new:
            self._is_new, self._opening_s = False, seconds

    def end(self) -> None:
        """Note that the connection is closed: whoever is asked next, is asked by one that is opened then."""
        self._made_at = None
        if self._next is not None:
            self._next.give_up()
            self._next = None

    def _begin(self) -> ConnectionAttempt | None:
        server = self._server
        if not server.store.shim.renews:
            return None
        opening = ConnectionAttempt(server)
        try:
            Background(opening.run, f"antipode-next-{server.store.name}-{server.address}").start()
        except (OSError, RuntimeError, MemoryError):  # this one answers to its end, and then none is opened beside it
            opening.is_over = True
        return opening


class ConnectionAttempt:
    """A connection that a thread opens beside the one that answers."""

    def __init__(self, server: Server) -> None:
        self.session: Any = None
        """What the shim made; `Shim.close` takes it from here as from a server."""
        self.is_over = False
        self.began_at = time.monotonic()
        self.seconds = 0.0
        """How long it took."""
        self._server = server
        self._lock = threading.Lock()
        self._is_given_up = False
        self._goes_on = threading.Lock()
        self._goes_on.acquire()

    def run(self) -> None:
        """Open it, and close it again where nobody wants it any more."""
        session = None
        with suppress(Exception):  # the connection that answers does so still
            session = self._server.store.shim.renew(self._server)
        with self._lock:
            self.session, self.is_over = session, True
            self.seconds = time.monotonic() - self.began_at
            is_unwanted = self._is_given_up
        self._goes_on.release()
        if is_unwanted:
            self._close()

    def wait(self, seconds: float) -> None:
        """Wait so long at most until it is over."""
        if not self.is_over:
            self._goes_on.acquire(timeout=seconds)

    def take(self) -> Any:
        """Return what was opened, once; None where it is not over, or failed."""
        with self._lock:
            session, self.session = self.session, None
        return session

    def give_up(self) -> None:
        """Have it closed, as soon as it is over."""
        with self._lock:
            self._is_given_up = True
            is_over = self.is_over
        if is_over:
            self._close()

    def _close(self) -> None:
        with suppress(Exception):
            self._server.store.shim.close(cast("Server", self))
