"""Servers that only somebody else knows: a callable, a Sentinel, a client not opened yet (spec BAR-52 to BAR-54)."""

from __future__ import annotations

import threading
import time
import weakref
from collections.abc import Callable, Coroutine, Iterable, Mapping, Sequence
from typing import Any, Final

from antipode._base import logs
from antipode._base.background import Background
from antipode._engine.pending_wait import JudgedServer, JudgedStore, PendingWait, release_all
from antipode._engine.server import ServerPoller
from antipode._model.errors import ConfigurationError
from antipode._model.verdict import VISIBLE, UnprovenKind, Visibility, unproven

REFRESH_S: Final = 5.0
"""The servers are asked for again so often, in seconds (BAR-22)."""
STALE_S: Final = 30.0
"""How long an answer stands behind which only empty ones and errors came, in seconds (BAR-53)."""
CURRENT_S: Final = 10.0
"""How old the last question that came to anything may be, in seconds: else a barrier waits for the next (BAR-67)."""
_PAUSES_S: Final = (0.05, 0.5)
"""Between two questions while somebody waits: the first pause, and the longest."""


class Discovery(ServerPoller):
    """Stands for the servers that it asks for, as long as nobody has said which they are.

    Who waits for a write here waits for that answer, and then at each of the servers. It is never left out, and it
    proves nothing: without an answer the store is unproven at the deadline, or at once where an answer was known.
    """

    def __init__(
        self, store: JudgedStore, name: str, ask: Callable[[], Sequence[Any]], *, own: bool, region: bool, once: bool
    ) -> None:
        """`ask` returns the servers known now, and may raise. `own`: they are those of a wrapped client; `region`:
        readers of this region may use them (BAR-22). `once`: the first answer is the last."""
        super().__init__(store, name, None)
        self.own = own
        self.region = region
        self.once = once
        self.servers: Mapping[str, JudgedServer] = {}
        """By address: those of the last answer that was not empty."""
        self._ask_for = ask
        self._given_at: float | None = None
        self._asked_at = -1e9
        self._told_at = -1e9
        """When the last question was asked that came to anything, an answer or a fault."""
        self._asking = False
        self._failed_at = -1e9
        """When an answer that was known could not be had again."""
        self._parked: list[PendingWait] = []
        self._words = "nobody has asked it yet"

    # What the store asks

    @property
    def kind(self) -> UnprovenKind:
        """Return what a store without this answer is unproven for."""
        return UnprovenKind.NOT_OPENED if self.once else UnprovenKind.DISCOVERY

    @property
    def is_over(self) -> bool:
        """Return whether nobody can name others any more: what is known stays."""
        return False

    def names(self, *, own: bool) -> bool:
        """Return whether it names servers of wrapped clients (`own`), or of the region."""
        return self.own if own else self.region

    def is_known(self, now: float) -> bool:
        """Return whether its answer stands, at `now` (`time.monotonic()`)."""
        if self._given_at is None or self.once:
            return self._given_at is not None
        return now - self._given_at <= STALE_S and now - self._told_at <= CURRENT_S

    def is_due(self, now: float) -> bool:
        """Return whether it is to be asked again."""
        return now - self._asked_at > REFRESH_S and not (self.once and self._given_at is not None)

    def meet_idle(self) -> None:
        """Let the servers join to which the connections lead that a client holds and has not handed out (BAR-68)."""

    @property
    def down(self) -> str:
        return self._words

    def found(
        self, given: Iterable[Any], named: Callable[[], None] = lambda: None, asked_at: float | None = None
    ) -> bool:
        """Take an answer: whoever waits here goes on at each of these servers. Return False for an empty one.

        named: called when the store has these servers, and before the answer stands. asked_at: when it was asked for,
        `time.monotonic()`; now, where none is given.
        """
        targets = list(given)  # an iterator that gives nothing would pass for servers
        if not targets:
            return False
        self.store.take_answer(self, targets)
        named()
        self._words = "what was said of them is too old"  # where this stands no more (BAR-67)
        self._given_at = time.monotonic()
        self._told_at = self._given_at if asked_at is None else asked_at
        self.go_on()
        return True

    def go_on(self) -> None:
        """Have whoever waits here wait at each of the known servers."""
        with self._lock:
            parked, self._parked = self._parked, []
            over = {need.group: need.group.is_alone for need in parked if self._divide(need)}
        release_all(over)

    def _divide(self, need: PendingWait) -> bool:
        """Have a need wait at each of the known servers; without one it has no answer, and the others decide."""
        parts = need.group.divide(need, list(self.servers.values()))
        for each in parts:
            each.server.park(each)
        return need.group.settle(need, VISIBLE if parts else None)

    # Who waits

    def park(self, need: PendingWait) -> bool:
        now = time.monotonic()
        with self._lock:
            if self.is_known(now):  # meanwhile
                return self._divide(need)
            if need.group.follows or now - self._failed_at < _PAUSES_S[1]:
                settled = need.group.settle(need, self._missing())
            else:
                need.parked = True
                self._parked.append(need)
                settled = False
        self.refresh()
        return settled

    def give_up(self, need: PendingWait) -> None:
        with self._lock:
            if need in self._parked:
                self._parked.remove(need)
            if not need.done:
                need.group.settle(need, self._missing())

    def _missing(self) -> Visibility:
        return unproven(f"its servers are not known: {self._words}", self.kind)

    # Asking

    def refresh(self) -> None:
        """Have a thread ask now, unless one does; never waits, never raises."""
        with self._lock:
            if self._asking:
                return
            self._asking = True
            self._asked_at = time.monotonic()
        try:
            Background(self._run, f"antipode-servers-{self.store.name}").start()
        except (OSError, RuntimeError, MemoryError) as error:  # no thread is to be had: who waits next tries again
            self._asking = False
            self._words = f"no thread could be started to ask for them ({error})"
            self._settle_all(unproven(self._words, UnprovenKind.OWN_FAULT))

    def ask(self) -> bool:
        """Ask now, on this thread; return False where no server was named. Raises what the question raises."""
        asked_at = self._asked_at = time.monotonic()
        given = self._ask_for()
        if isinstance(given, str) or not isinstance(given, Iterable):
            if isinstance(given, Coroutine):
                given.close()
            raise ConfigurationError(
                f"{self.address} of a callable wants a plain function that returns a list of servers; this one gave "
                f"a {type(given).__name__}: a coroutine function cannot be asked",
                code="AP501",
            )
        return self.found(given, asked_at=asked_at)

    def attempt(self, *, is_first: bool = False) -> None:
        """Ask now, on this thread. What the question raises, and an empty answer, are a fault of it.

        is_first: a mistake of the programmer, ConfigurationError, is raised.
        """
        try:
            if not self.ask():
                self._missed("it names no server")
        except Exception as error:
            if is_first and isinstance(error, ConfigurationError):
                raise
            self._missed(str(error) or type(error).__name__)

    def _run(self) -> None:
        try:
            self._work()
        except BaseException:  # no memory: who waits next has another thread ask
            self._asking = False
            raise

    def _work(self) -> None:
        pause = _PAUSES_S[0]
        while True:
            self.attempt()
            with self._lock:
                if not self._parked:
                    self._asking = False
                    return
            time.sleep(pause)
            pause = min(pause * 2, _PAUSES_S[1])

    def _missed(self, words: str) -> None:
        """The last answer stands for a while; where it does not any more, nobody is kept waiting for another."""
        self._words = words
        now = time.monotonic()
        if not self.once:
            logs.warn(f"servers {self.store.name}", f"{self.store.name}: {self.address}: {words}", code="AP207")
        self._told_at = self._asked_at
        if self.is_known(now):
            self.go_on()
        elif self._given_at is not None:
            self._failed_at = now
            self._settle_all(self._missing())

    def _settle_all(self, answer: Visibility) -> None:
        with self._lock:
            parked, self._parked = self._parked, []
            over = {need.group: need.group.is_alone for need in parked if need.group.settle(need, answer)}
        release_all(over)

    # What a server has, and this has not

    def retire(self) -> None:
        self._settle_all(self._missing())

    def after_fork(self) -> None:
        self._lock = threading.Lock()
        self._asking = False
        self._parked = []


class ClientServers(Discovery):
    """The servers of a wrapped client, as the client is while a barrier asks for them (BAR-52)."""

    def __init__(
        self,
        store: JudgedStore,
        name: str,
        client: Any,
        look: Callable[[Any], object],
        ask: Callable[[Any], Sequence[Any]],
        *,
        region: bool,
        varies: Callable[[Any], bool],
        meet: Callable[[Any], None],
    ) -> None:
        """`look(client)` is at hand, and equal as long as the client leads where it led; `ask(client)` names its
        servers, on a thread of Antipode's own. Where they become known otherwise, the shim calls `found`.
        `varies(client)`: it may lead elsewhere each time, as the application's own code says, and what it named stays.
        `meet(client)`: see `meet_idle`.
        """
        super().__init__(store, name, lambda: (), own=True, region=region, once=False)
        self._client = weakref.ref(client)
        self._look = look
        self._ask_of = ask
        self._meet = meet
        self._varies_of = varies
        self._varies = varies(client)
        meet(client)  # first: what it reached may be a part of what is looked at
        self._looked: object = look(client)

    @property
    def kind(self) -> UnprovenKind:
        return UnprovenKind.NOT_OPENED

    def is_known(self, now: float) -> bool:
        client = self._client()
        return self._given_at is not None and (client is None or self._look(client) == self._looked)

    @property
    def is_over(self) -> bool:
        return self._client() is None

    def meet_idle(self) -> None:
        client = self._client()
        if client is not None:
            self._meet(client)

    def is_due(self, now: float) -> bool:
        is_old = self._varies and now - self._asked_at > REFRESH_S
        return not self.is_over and (is_old or not self.is_known(now))

    def ask(self) -> bool:
        self._asked_at = time.monotonic()
        client = self._client()
        if client is None:
            self.go_on()  # nobody waits for what it would have said
            return False
        looked, varies, targets = self._look(client), self._varies_of(client), self._ask_of(client)
        if looked == self._looked and varies and targets:
            targets = [*targets, *(server.target for server in self.servers.values())]

        def named() -> None:  # before that the answer of before does not stand: it speaks of where the client led
            self._looked, self._varies = looked, varies

        return self.found(targets, named)

    def _missed(self, words: str) -> None:
        self._words = words
