"""Writes that dry-run follows with nobody waiting: looked at first, then parked until they are seen (REC-5, REC-15)."""

from __future__ import annotations

import threading
import time
import traceback
from collections.abc import Callable, Iterable, Sequence
from typing import Final

from antipode._base import logs
from antipode._base.background import Background
from antipode._engine.pending_wait import JudgedServer, PendingWait, WaitGroup
from antipode._model.verdict import Verdict, Visibility
from antipode._model.write_id import WriteId

FOLLOW_S: Final = 30.0
"""How long a write that was not visible is followed, in seconds."""
MOST_FOLLOWED: Final = 1000
"""Barriers and reads that are followed at once, a process."""
_LAST_LOOK_S: Final = 0.25
"""How long the end of the process waits for first looks that are under way."""


class FollowedWrite:
    """One write at one server: what the first look said, and when it was seen."""

    __slots__ = ("answer", "at", "first", "need", "visible_after")

    def __init__(self, need: PendingWait) -> None:
        self.need = need
        """Of the first look."""
        self.first: Visibility | None = None
        """What that said; None where the server did not answer, or where nobody asked it any more."""
        self.at: int | None = None
        """How far the server was in the write's epoch at the first look, as far as it said."""
        self.answer: Visibility | None = None
        """The last answer."""
        self.visible_after: float | None = None
        """Seconds until it was seen; None where it was not."""

    @property
    def server(self) -> JudgedServer:
        """Where it is looked for."""
        return self.need.server

    @property
    def write_id(self) -> WriteId:
        """The write."""
        return self.need.write_id

    @property
    def late(self) -> bool:
        """The first look found that it was not visible: the server knows the write's history, and was not so far."""
        last = self.answer
        if self.first is None or self.first.verdict is not Verdict.NOT_YET or self.first.unanswered:
            return False
        unknown = self.first.unknown_epoch and (last is None or last.verdict is not Verdict.VISIBLE)
        return not unknown

    @property
    def there_at_once(self) -> bool:
        """The first look found it visible."""
        return self.first is not None and self.first.verdict is Verdict.VISIBLE

    def took(self, answer: Visibility | None, since: float, seen: float) -> None:
        """The last answer has come."""
        self.answer = answer
        if answer is not None and answer.verdict is Verdict.VISIBLE:
            self.visible_after = max(seen - since, 0.0)


Over = Callable[[Sequence[FollowedWrite]], None]


class FollowedWrites:
    """The writes of one barrier or read. `over` is called once, by whichever thread ends it."""

    def __init__(self, wanted: Iterable[tuple[JudgedServer, WriteId]], over: Over) -> None:
        self._over = over
        self._lock = threading.Lock()
        """Held while writes are parked: none is given up before it is parked. Servers' locks are taken under it."""
        self._given_up = False
        self._ended = False
        self._answered = threading.Event()
        self._told = threading.Event()
        self._look = _group(0.0, self._looked)
        self._park: WaitGroup | None = None
        self.since = self._look.since
        self.writes = [FollowedWrite(self._look.add(write_id, server)) for server, write_id in wanted]
        self._parked: list[tuple[PendingWait, FollowedWrite]] = []

    @property
    def looked(self) -> bool:
        """Whether every server has answered the first look."""
        return self._answered.is_set()

    def wait_for_look(self, timeout: float) -> None:
        """Blocks until then, for so many seconds at most."""
        self._answered.wait(timeout)

    def start(self) -> None:
        """Asks the servers; never waits. Raises what the system does that has no thread or channel left for it."""
        with self._lock:
            if self._given_up:
                return
            for write in self.writes:
                write.server.park(write.need)
        if not self._look.parked():
            self._looked()

    def _looked(self) -> None:
        """Every server has answered the first look: what was not there is parked."""
        with self._lock:
            if self._given_up:
                return
            group = _group(FOLLOW_S, self.end)
            for write in self.writes:
                need = write.need
                write.first = None if need.left_out else need.answer
                write.took(write.first, self.since, need.seen)
                if need.counter >= 0:
                    write.at = write.server.applied_in(need.epoch)
                if write.first is not None and write.first.verdict is Verdict.NOT_YET:
                    self._parked.append((group.add(write.write_id, write.server), write))
            self._park = group
            for need, write in self._parked:
                write.server.park(need)
        self._answered.set()
        if not group.parked():
            self.end()

    def end(self) -> None:
        """Everything is seen, or nobody follows it any more."""
        with self._lock:
            if self._ended:
                return
            self._ended = True
        for need, write in self._parked:
            if need.done:
                write.took(need.answer or write.answer, self.since, need.seen)
        try:
            self._over(self.writes)
        except Exception:  # never an exception into the engine's thread
            logs.logger.exception("a dry-run record could not be made [AP601]")
        with _lock:
            _followed.pop(self, None)
        self._told.set()

    def wait_until_told(self, timeout: float) -> None:
        """Blocks until whoever wanted to know has been told, for so many seconds at most."""
        self._told.wait(timeout)

    def give_up(self) -> None:
        """Asks no server for it any more."""
        with self._lock:
            self._given_up = True
        for group in (self._look, self._park):
            if group is not None:
                group.cancelled = True
                for need in group.needs:
                    if not need.done:
                        need.server.give_up(need)

    def forget(self) -> None:
        """Gives it up, and nobody is told of it."""
        with self._lock:
            self._ended = True
        with _lock:
            _followed.pop(self, None)
        self.give_up()


def _group(timeout: float, over: Callable[[], None]) -> WaitGroup:
    group = WaitGroup(timeout, over, None)
    group.follows = True
    return group


_lock = threading.RLock()
_followed: dict[FollowedWrites, float] = {}
"""What is followed, and until when: in the order in which it began, so that the first is due first."""
_changed = threading.Condition(_lock)
_thread: threading.Thread | None = None


def follow(wanted: Iterable[tuple[JudgedServer, WriteId]], over: Over) -> FollowedWrites | None:
    """Follows writes; `over` gets them when all are seen, or after 30 s. Never raises.

    None where too many are followed, or where the system has nothing left to follow them with.
    """
    if len(_followed) >= MOST_FOLLOWED:
        return None
    followed = FollowedWrites(wanted, over)
    try:
        if not _admit(followed):
            return None
        followed.start()
    except Exception:  # no thread, no file: the application goes on
        followed.forget()
        logs.warn(
            "following", f"what dry-run looks at could not be followed: {traceback.format_exc(limit=-2)}", code="AP603"
        )
        return None
    return followed


def _admit(followed: FollowedWrites) -> bool:
    global _thread
    with _lock:
        if len(_followed) >= MOST_FOLLOWED:
            return False
        if _thread is None:
            thread = Background(_give_up_when_due, "antipode-following")
            thread.start()
            _thread = thread
        _followed[followed] = time.monotonic() + FOLLOW_S
        if len(_followed) == 1:
            _changed.notify()
    return True


def _give_up_when_due() -> None:
    while True:
        due = _next_due()
        if due is not None:
            _give_up(due)
        del due  # while it waits it holds nothing


def _next_due() -> FollowedWrites | None:
    """What has been followed for long enough; None after a while in which nothing was, or after a change."""
    with _lock:
        first = next(iter(_followed.items()), None)
        wait = None if first is None else first[1] - time.monotonic()
        if first is not None and wait is not None and wait <= 0:
            return first[0]
        del first
        _changed.wait(wait)
        return None


def _give_up(followed: FollowedWrites) -> None:
    followed.give_up()
    followed.end()


def all_looked_at() -> bool:
    """Whether every server has answered the first look of what is followed."""
    return all(followed.looked for followed in _all())


def nothing_is_followed() -> bool:
    """Whether all that was followed has ended, and whoever wanted to know has been told."""
    return not _followed


def give_up_all() -> None:
    """Ends what is followed: each is recorded as far as it was seen. First looks that are under way get a moment."""
    until = time.monotonic() + _LAST_LOOK_S
    given_up = _all()
    for followed in given_up:
        followed.wait_for_look(max(until - time.monotonic(), 0.0))
        _give_up(followed)
    until = time.monotonic() + _LAST_LOOK_S
    for followed in given_up:  # the engine's thread may be making one of the records
        followed.wait_until_told(max(until - time.monotonic(), 0.0))


def forget() -> None:
    """Follows nothing any more, and nobody is told of it (tests)."""
    for followed in _all():
        followed.forget()


def _all() -> list[FollowedWrites]:
    with _lock:
        return list(_followed)


def after_fork() -> None:
    """In the child of a fork: the thread stayed with the parent, and what it followed."""
    global _lock, _changed, _thread
    _lock = threading.RLock()
    _changed = threading.Condition(_lock)
    _thread = None
    _followed.clear()
