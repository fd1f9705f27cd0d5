"""What a parked barrier waits for: one need a write and server, one group a barrier (spec BAR)."""

from __future__ import annotations

import asyncio
import threading
import time
from collections.abc import Callable, Iterable, Sequence
from typing import TYPE_CHECKING

from antipode.branch_ids import BRANCHES
from antipode.verdict import Visibility
from antipode.writeid import Ordered, WriteId

if TYPE_CHECKING:
    from antipode.server import Server
    from antipode.store import Store


class Need:
    """One write that one barrier waits for at one server."""

    __slots__ = (
        "answer",
        "branch",
        "counter",
        "divided",
        "done",
        "epoch",
        "first_round",
        "group",
        "late",
        "left_out",
        "parked",
        "seen",
        "server",
        "since",
        "write_id",
    )

    @property
    def key(self) -> str | bytes:
        """Return what its time-outs count by: the epoch of a position, the key of an object (BAR-40)."""
        return self.epoch if self.counter >= 0 else self.write_id.key

    def __init__(self, write_id: WriteId, server: Server, group: Group) -> None:
        self.write_id = write_id
        self.branch = write_id.store == BRANCHES
        """It is no write but an open branch, whose row the server is to show."""
        self.server = server
        self.group = group
        self.since = group.since
        self.done = False
        self.answer: Visibility | None = None
        """The last answer of the server; None while it has not been asked."""
        self.seen = 0.0
        """When it was settled, `time.monotonic()`."""
        self.parked = False
        """It was not settled at once: it has to be waited for."""
        self.first_round = 0
        """The number of the server's first question that speaks of it."""
        self.late = False
        """The first look did not show the write."""
        self.left_out = False
        """The server does not answer, and is left out of the pass."""
        self.divided = False
        """Other needs stand for it, at the servers that it waited to know."""
        version = write_id.version
        if not write_id.key and isinstance(version, Ordered):
            self.epoch, self.counter = version
        else:
            self.epoch, self.counter = "", -1


class Group:
    """The needs of one barrier. It is over when every need is settled, or when the barrier gives up."""

    __slots__ = (
        "_left",
        "_lock",
        "_over",
        "_places",
        "_release",
        "cancelled",
        "follows",
        "loop",
        "needs",
        "overloaded",
        "since",
        "timeout",
    )

    def __init__(self, timeout: float, release: Callable[[], None], loop: asyncio.AbstractEventLoop | None) -> None:
        """`release` is called once, by the engine's thread, or in `loop` together with those of other groups."""
        self.timeout = timeout
        self.since = time.monotonic()
        self.needs: list[Need] = []
        self.loop = loop
        self.cancelled = False
        self.follows = False
        """It only records when the writes are seen: nobody waits for them (dry-run)."""
        self.overloaded = False
        """All places for waiting were taken."""
        self._release = release
        self._lock = threading.Lock()
        self._over = False
        self._places: tuple[tuple[Store, int], ...] = ()
        self._left = 1  # one for the barrier itself, until it has parked everything

    def add(self, write_id: WriteId, server: Server) -> Need:
        """One more need; to be parked at its server."""
        need = Need(write_id, server, self)
        self.needs.append(need)
        with self._lock:  # those that are parked already may be settled meanwhile
            self._left += 1
        return need

    def divide(self, need: Need, servers: Sequence[Server]) -> Sequence[Need]:
        """Return the needs that stand for this one at the servers that it waited to know; none where it is over."""
        with self._lock:
            if self._over or need.done:
                return ()
            need.divided = True
            found = [Need(need.write_id, server, self) for server in servers]
            self.needs += found
            self._left += len(found)
        return found

    def end(self) -> list[Need]:
        """The barrier is over: return what is not settled; nothing is added any more."""
        with self._lock:
            self._over = True
        return [need for need in self.needs if not need.done]

    def take_places(self, limit: int) -> bool:
        """Take a place at each store that something is waited for at; return False, with none, where one has none left.

        limit: of the barriers of this kind (threads, or tasks) that may be parked a store and process (BAR-39).
        """
        entries: dict[Server, int] = {}
        for need in self.needs:
            if not need.done:
                entries[need.server] = entries.get(need.server, 0) + 1
        stores: dict[Store, int] = {}
        for server, count in entries.items():
            stores[server.store] = max(stores.get(server.store, 0), count)
        for store, count in stores.items():
            if not store.take_place(limit, count, tasks=self.loop is not None):
                self.give_places_back()
                return False
            self._places = (*self._places, (store, count))
        return True

    def give_places_back(self) -> None:
        """Give back what it has taken, once."""
        with self._lock:
            places, self._places = self._places, ()
        for store, count in places:
            store.give_place_back(count, tasks=self.loop is not None)

    @property
    def is_abandoned(self) -> bool:
        """Return whether nobody can be woken any more: its event loop was closed while it was parked."""
        return self.loop is not None and self.loop.is_closed()

    def abandon(self) -> None:
        """Give everything up for a barrier that will never do so itself."""
        self.cancelled = True
        for need in self.end():
            need.server.give_up(need)
        self.give_places_back()

    def parked(self) -> bool:
        """Everything is parked; True if something is still to be waited for."""
        return not self._count_down()

    def settle(self, need: Need, answer: Visibility | None) -> bool:
        """A need is over, one way or another; True where it was the last one and the group is to be released."""
        if need.done:
            return False
        need.done = True
        need.seen = time.monotonic()
        if answer is not None:
            need.answer = answer
        return self._count_down()

    def _count_down(self) -> bool:
        with self._lock:
            self._left -= 1
            return self._left == 0

    def release(self) -> None:
        """Wakes the barrier."""
        self._release()


def release_all(groups: Iterable[Group]) -> None:
    """Wakes barriers: each thread by itself, the tasks of one event loop together."""
    by_loop: dict[asyncio.AbstractEventLoop, list[Group]] = {}
    for group in groups:
        if group.loop is None:
            group.release()
        else:
            by_loop.setdefault(group.loop, []).append(group)
    for loop, members in by_loop.items():
        try:
            loop.call_soon_threadsafe(_release_in_loop, members)
        except RuntimeError:  # the loop was closed meanwhile: nobody is left to be woken
            for group in members:
                group.abandon()


def _release_in_loop(groups: list[Group]) -> None:
    for group in groups:
        group.release()
