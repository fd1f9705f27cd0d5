"""What a parked barrier waits for: one need a write and server, one group a barrier (spec BAR).

How a barrier ends (BAR-63; the steps are those of `spec/tla/Reopen.tla`, the ages those of `Barrier.tla`):
1. An answer settles a need under the generation that its server was in when the question was asked, with the time of
   the asking. Both are written under the group's lock, and so is how many needs are open.
2. Whoever settles the last one notes *the moment*: when its question was asked. Then he takes the group's lock, under
   which no proof changes, and compares each with its server's generation. Generations only grow, so what is equal later
   was equal when the lock was taken: that is the instant at which all stood.
3. What does not stand is opened again, with no lock of a server held, and asked for at once. Where only its age was too
   great the moment stays, so that one more round is enough however slow the link is; where the data may be others it is
   another moment.
4. One test-and-set decides who releases. The deadline looks once more itself: what does not stand then is not visible.
"""

from __future__ import annotations

import asyncio
import threading
import time
from abc import abstractmethod
from collections.abc import Callable, Iterable, Sequence
from typing import Any, NamedTuple, TypeAlias, cast

from antipode._base.settings import settings
from antipode._model.branch_ids import BRANCHES
from antipode._model.verdict import VISIBLE, Verdict, Visibility, not_yet
from antipode._model.write_id import Ordered, WriteId
from antipode._store.contract import Server, Store


class Proof(NamedTuple):
    """By which question an answer came."""

    asked_at: float
    """When it was asked, `time.monotonic()`."""
    generation: int
    """The server's at that time."""
    is_kept: bool = False
    """It was asked for others, before anybody asked for this write here."""


class JudgedStore(Store):
    """A store as barriers judge it: with the servers that prove something."""

    @abstractmethod
    def servers(self, *, own: bool = False, stale: bool = False) -> Sequence[JudgedServer]: ...

    @abstractmethod
    def take_answer(self, source: Any, targets: Sequence[Any]) -> None:
        """Let a source have the servers that it names; those that nobody names any more are gone (BAR-54)."""

    @abstractmethod
    def has_lost(self, server: JudgedServer, now: float) -> bool:
        """Return whether a server where barriers wait may have left since this was last asked; ask who may say so."""

    @abstractmethod
    def is_named(self, server: JudgedServer, *, own: bool) -> bool:
        """Return whether a server is among those of a reach, or is asked who they are."""

    @abstractmethod
    def gone(self, *, own: bool = False) -> Sequence[str]:
        """Return the addresses that discovery took away within `left_server`: clients may still go there (BAR-54)."""

    @abstractmethod
    def discovery_due(self, now: float) -> bool:
        """Return whether what names the servers is to be asked again, or its answer stands no more (BAR-22)."""


def judged_store(store: Store) -> JudgedStore:
    """Return a registered store as the engine made it."""
    return cast("JudgedStore", store)


def judged_server(server: Server) -> JudgedServer:
    """Return a store's server as the engine made it."""
    return cast("JudgedServer", server)


class JudgedServer(Server):
    """A server as barriers judge it: what it has proved, and where they wait."""

    store: JudgedStore
    generation: int
    """How often its proofs were dropped. An answer to a question from before may speak of other data."""
    known_under: int
    """The generation of the store's servers under which this was last seen to be one of them."""
    passed_at: float
    """When a barrier last passed by what is kept: the server is asked on for ten seconds (BAR-37)."""

    @property
    @abstractmethod
    def down(self) -> str:
        """The words of the last failure while the server does not answer, else empty."""

    @abstractmethod
    def kept_proof(self, epoch: str, counter: int, since: float) -> Proof | None:
        """Return what proves a position without a question: an answer to others, asked since then (no I/O, no lock)."""

    @abstractmethod
    def holds(self, epoch: str, counter: int, now: float) -> bool:
        """Return whether a fresh proof covers this position."""

    @abstractmethod
    def tell_position(self, epoch: str) -> str:
        """Return where the server last said that it was, for a person who wants a position of this epoch."""

    @abstractmethod
    def park(self, need: PendingWait) -> bool:
        """Wait for a need; return True where it was settled at once and its group is over."""

    @abstractmethod
    def give_up(self, need: PendingWait) -> None:
        """Note that the barrier's deadline has passed, or that it was cancelled."""

    @abstractmethod
    def retire(self) -> None:
        """End the thread now, and its channel with it: nobody waits here any more."""

    @abstractmethod
    def after_fork(self) -> None:
        """Note that this is the child of a fork: the thread, its channel and its proofs stayed with the parent."""


class PendingWait:
    """One write that one barrier waits for at one server."""

    __slots__ = (
        "answer",
        "asked_at",
        "branch",
        "counter",
        "divided",
        "done",
        "epoch",
        "first_round",
        "fresh_from",
        "generation",
        "group",
        "left_out",
        "parked",
        "repeats",
        "seen",
        "server",
        "since",
        "write_id",
    )

    @property
    def key(self) -> str | bytes:
        """Return what its time-outs count by: the epoch of a position, the key of an object (BAR-40)."""
        return self.epoch if self.counter >= 0 else self.write_id.key

    def __init__(self, write_id: WriteId, server: JudgedServer, group: WaitGroup) -> None:
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
        self.asked_at = 0.0
        """When the question was asked that settled it."""
        self.generation = 0
        """The server's when that question was asked."""
        self.fresh_from = -1e9
        """It is to be proved by what was asked for then or later."""
        self.repeats = False
        """It was proved before, only its proof was too old, and no answer since said that it is not there."""
        self.parked = False
        """It was not settled at once: it has to be waited for."""
        self.first_round = 0
        """The number of the server's first question that speaks of it."""
        self.left_out = False
        """The server does not answer, and is left out of the pass."""
        self.divided = False
        """Other needs stand for it, at the servers that it waited to know."""
        version = write_id.version
        if not write_id.key and isinstance(version, Ordered):
            self.epoch, self.counter = version
        else:
            self.epoch, self.counter = "", -1

    @property
    def needs_proof(self) -> bool:
        """Return whether it counts as visible by an answer that may stop to be true (a closed branch stays closed)."""
        return self.answer is not None and self.answer.verdict is Verdict.VISIBLE and not (self.branch or self.divided)

    def renew(self, since: float) -> bool:
        """Take the proof of an answer to others, asked for since then, for one of the same data that is too old.

        Return False where there is none. The lock of its group is held.
        """
        server = self.server
        proof = server.kept_proof(self.epoch, self.counter, since)
        if proof is None or not proof.generation == self.generation == server.generation:
            return False
        self.asked_at = proof.asked_at
        return True


class WaitGroup:
    """The needs of one barrier. It is over when every need is settled, or when the barrier gives up."""

    __slots__ = (
        "_left",
        "_lock",
        "_moment",
        "_over",
        "_places",
        "_release",
        "cancelled",
        "follows",
        "has_lost",
        "has_waited",
        "is_alone",
        "is_outdated",
        "is_released",
        "looks_twice",
        "loop",
        "needs",
        "overloaded",
        "since",
        "timeout",
    )

    def __init__(
        self,
        timeout: float,
        release: Callable[[], None],
        loop: asyncio.AbstractEventLoop | None,
        since: float | None = None,
    ) -> None:
        """`release` is called once, by the engine's thread, or in `loop` together with those of other groups.

        since: when its barrier began to wait; now, where none is given.
        """
        self.timeout = timeout
        self.since = time.monotonic() if since is None else since
        self.needs: list[PendingWait] = []
        self.loop = loop
        self.cancelled = False
        self.follows = False
        """It only records when the writes are seen: nobody waits for them (dry-run)."""
        self.has_waited = False
        """Not everything was settled when it had been parked."""
        self.has_lost: Callable[[JudgedServer], bool] | None = None
        """Whether a server is none of those that are known by now: then it ends, and its barrier names them anew
        (BAR-65). None: it waits where it was parked."""
        self.is_outdated = False
        """It ended since one has left where it waited."""
        self.is_alone = False
        """Its only need was settled while it waited: there is nothing that it has to stand together with."""
        self.is_released = False
        """Its barrier was woken. Where it is over and was not, a fault of our own came between: its proofs are old."""
        self.overloaded = False
        """All places for waiting were taken."""
        self.looks_twice = False
        """Where several servers are judged, each shows its entries once more behind the last of them (BAR-64)."""
        self._release = release
        self._lock = threading.Lock()
        self._over = False
        self._moment = -1e9
        self._places: tuple[tuple[JudgedStore, int], ...] = ()
        self._left = 1  # one for the barrier itself, until it has parked everything

    def add(self, write_id: WriteId, server: JudgedServer) -> PendingWait:
        """One more need; to be parked at its server."""
        need = PendingWait(write_id, server, self)
        self.needs.append(need)
        with self._lock:  # those that are parked already may be settled meanwhile
            self._left += 1
        return need

    def divide(self, need: PendingWait, servers: Sequence[JudgedServer]) -> Sequence[PendingWait]:
        """Return the needs that stand for this one at the servers that it waited to know; none where it is over."""
        with self._lock:
            if self._over or need.done:
                return ()
            need.divided = True
            found = [PendingWait(need.write_id, server, self) for server in servers]
            self.needs += found
            self._left += len(found)
        return found

    def end(self) -> list[PendingWait]:
        """End the barrier; return what is not settled, or does not stand. Nothing is added or settled any more."""
        with self._lock:
            left = [need for need in self.needs if not need.done]
            is_unwoken = self.has_waited and not (self.is_released or self.overloaded)
            if (self._end_once() or self.is_outdated or is_unwoken) and not self.follows:
                since = -1e9 if self._left else self._oldest
                for need in self.needs:
                    stands = need.generation == need.server.generation and need.asked_at >= since
                    if need.needs_proof and not stands:
                        need.answer = not_yet("it was there, and may be gone again")
                        left.append(need)
        return left

    @property
    def open_at(self) -> set[JudgedServer]:
        """Return the servers that have not settled everything."""
        return {need.server for need in self.needs if not need.done}

    def end_without(self, server: JudgedServer) -> bool:
        """End it where a server has left at which it waits; return True for the first who does: he wakes it."""
        if self.has_lost is None or not self.has_lost(server):
            return False
        with self._lock:
            if self._over:
                return False
            self.is_outdated = True
            return self._end_once()

    def take_places(self, limit: int) -> bool:
        """Take a place at each store that something is waited for at; return False, with none, where one has none left.

        limit: of the barriers of this kind (threads, or tasks) that may be parked a store and process (BAR-39).
        """
        entries: dict[JudgedServer, int] = {}
        for need in self.needs:
            if not need.done:
                entries[need.server] = entries.get(need.server, 0) + 1
        stores: dict[JudgedStore, int] = {}
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
        with self._lock:
            self._left -= 1
            is_last = self._left == 0
        return not (is_last and self.conclude())

    def settle(self, need: PendingWait, answer: Visibility | None, proof: Proof | None = None) -> bool:
        """End a need, one way or another; return True where it was the last one: then somebody is to `conclude`.

        proof: by which question the answer came; None where it is no server's answer, or makes nothing visible.
        """
        with self._lock:
            if need.done:
                return False
            need.done = True
            left = self._left = self._left - 1
            if answer is not None:
                if self._over and answer.verdict is Verdict.VISIBLE:
                    return False  # the barrier has looked at what it had
                need.answer = answer
            now = need.seen = time.monotonic()
            if not left and len(self.needs) == 1:  # its own answer is the moment
                self.is_alone = True
                return self._end_once()
            asked_at, generation, is_kept = proof or (now, 0, False)
            if not need.repeats or generation != need.generation:
                self._moment = now if self.looks_twice or is_kept else asked_at
            need.asked_at, need.generation = asked_at, generation
        return not left

    def end_settled(self) -> bool:
        """End it where its last need was settled and all proofs stand; return True once: for who is to release it.

        The caller may hold a server's lock. Where this is False somebody is to `conclude` without one.
        """
        with self._lock:
            if self._left or self._over or self._stale(self._oldest):
                return False
            self._over = True
            return True

    def _stale(self, since: float) -> list[tuple[PendingWait, int, float]]:
        """Return what does not stand, with its generation and age; the lock is held."""
        stale = []
        for need in self.needs:  # 10,000 barriers may be looked at here while a server's lock is held
            if need.asked_at >= since and need.generation == need.server.generation:
                continue
            if need.renew(since) or not need.needs_proof or self.follows:  # nobody relies on a record
                continue
            stale.append((need, need.generation, need.asked_at))
        return stale

    def conclude(self) -> bool:
        """Return True where no need is open and all proofs stand; ask again at once for what does not (BAR-63).

        The caller holds no lock of a server, and releases the barrier where this is True: once.
        """
        while True:
            with self._lock:
                if self._left or self._over:
                    return False
                since = self._oldest
                stale = self._stale(since)
                if not stale:
                    return self._end_once()
            may_be_over = False
            for need, generation, asked_at in stale:
                if self._open(need, generation, asked_at, since):
                    may_be_over |= need.server.park(need)
            if self.is_alone or not may_be_over:  # a lone need that was settled at once has ended the barrier
                return may_be_over

    @property
    def _oldest(self) -> float:
        """Return when a question must have been asked, at the earliest, for its answer to count at the moment."""
        if self.looks_twice and len({need.server for need in self.needs if not need.divided}) > 1:
            return self._moment
        return self._moment - settings().free_path_ttl

    def _end_once(self) -> bool:
        """Return True for the first who ends the barrier; the lock is held."""
        first, self._over = not self._over, True
        return first

    def _open(self, need: PendingWait, generation: int, asked_at: float, since: float) -> bool:
        """Open a need whose proof does not stand; return False where somebody else did, or the barrier is over."""
        with self._lock:
            if self._over or not need.done or need.generation != generation or need.asked_at != asked_at:
                return False
            need.done = need.parked = False
            need.answer = None
            need.seen = 0.0
            need.repeats = generation == need.server.generation
            need.fresh_from = since
            self._left += 1
        return True

    def release(self) -> None:
        """Wake the barrier."""
        self.is_released = True
        self._release()


def shown(wanted: Iterable[tuple[JudgedServer, WriteId]]) -> list[PendingWait]:
    """Return the needs of a barrier that was shown all of it and parked none of them."""
    group = WaitGroup(0.0, lambda: None, None)
    for server, write_id in wanted:
        group.add(write_id, server).answer = VISIBLE
    return group.needs


Settled: TypeAlias = dict[WaitGroup, bool]
"""The barriers whose last need was settled, and whether that has ended them: it does where all their proofs stand."""


def release_all(settled: Settled) -> None:
    """Wake the barriers that have ended, and those whose proofs stand by now."""
    _wake(group for group, is_over in settled.items() if is_over or group.conclude())


def end_without(server: JudgedServer, groups: Iterable[WaitGroup]) -> None:
    """Wake those of the barriers that wait at a server and have lost it (BAR-65)."""
    _wake(group for group in groups if group.end_without(server))


def _wake(groups: Iterable[WaitGroup]) -> None:
    """Wake barriers that are over: each thread by itself, the tasks of one event loop together."""
    by_loop: dict[asyncio.AbstractEventLoop, list[WaitGroup]] = {}
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


def _release_in_loop(groups: list[WaitGroup]) -> None:
    for group in groups:
        group.release()
