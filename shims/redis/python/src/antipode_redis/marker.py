"""Writes marks, in a thread of its own a server: never on the path of a request (spec EPOCH).

When an epoch is first met; at most once a second while there are writes; once within a second after the last one; and
where a primary is held and nobody writes, in a new epoch as well.
"""

from __future__ import annotations

import atexit
import hashlib
import os
import threading
import time
import weakref
from typing import Any, Final

from antipode import Ordered, settings
from antipode.shim import Background, Bell, events, logs, note_marks

from antipode_redis import marks
from antipode_redis.info import EPOCH_DIGITS
from antipode_redis.probe import Facts, grant, probe
from antipode_redis.resp import ServerError, pack
from antipode_redis.session import Session
from antipode_redis.targets import Target

SOON_S: Final = 0.05
"""A mark follows the first write after a pause so soon."""
_TIMEOUT_S: Final = 1.0
_RETRY_S: Final = (0.25, 5.0)
_REFUSED_S: Final = 10.0
_EXIT_S: Final = 0.15
"""What the end of the process may be delayed by, at most, a server."""
_SHA: Final = hashlib.sha1(marks.MARK.encode(), usedforsecurity=False).hexdigest()


def _period() -> float:
    return marks.PERIOD_MS / 1000


class Marker:
    """Marks one store's epochs at one server, for all the clients of this process that reach it."""

    def __init__(self, store: str, target: Target, key: str) -> None:
        self.store = store
        self.target = target
        self.key = key
        self.facts: Facts | None = None
        """What was found out about the server; None until it has been reached."""
        self.position: Ordered | None = None
        """The last position that this process has written."""
        self.forms: dict[str, Any] = {}
        """By command, how its last reply and the answer behind it were put together."""
        self.epoch = ""
        """Of the last position that woke the thread."""
        self.dirty = False
        self.users: weakref.WeakSet[Any] = weakref.WeakSet()
        self._forget()

    def _forget(self) -> None:
        self._wake = Bell()
        self._starting = threading.Lock()
        self._using = threading.Lock()
        self._thread: threading.Thread | None = None
        self._session: Session | None = None
        self._connected_at = 0.0
        self._ended = False

    # Called in a request

    def wrote(self, position: Ordered) -> None:
        """A write of this process got this position. Costs next to nothing."""
        self.position = position
        if not self.dirty or self.epoch != position.epoch:
            self.epoch = position.epoch
            self.dirty = True
            if self._thread is None:
                self.start()
            self._wake.ring()

    def start(self) -> None:
        """Start the thread, if it does not run. Where none is to be had the next write tries again, and goes on."""
        if not self._starting.acquire(blocking=False):  # another one does: nobody waits for it in a request
            return
        try:
            if self._thread is None and not self._ended:
                self._thread = Background(self._run, f"antipode-marks-{self.store}")
                self._thread.start()
        except Exception as error:  # never the application's, whose write was executed (SHIM-2)
            self._thread, self.dirty = None, False
            words = f"no thread could be started to mark the epochs of {self.store} ({error}): tried again"
            logs.warn(f"marker {self.store}", words, code="AP209")
        finally:
            self._starting.release()

    # The thread

    def _run(self) -> None:
        try:
            self._work()
        except BaseException:  # no memory: the next write starts another one
            self._thread = None
            self.dirty = False  # last: who finds it so starts one
            raise
        self._thread = None

    def _work(self) -> None:
        pause, retry = 0.0, _RETRY_S[0]
        while self._wanted():
            # Whoever writes first after a pause wakes the thread; marks keep their distance by the script's clock.
            woken = self._wake.wait(pause)
            if woken and not self._ended:
                time.sleep(min(SOON_S, _period()))
            with self._using:
                if self._ended:
                    break
                try:
                    pause, retry = self._step(), _RETRY_S[0]
                except ServerError as error:
                    pause = self._refused(error)
                except Exception:  # the server cannot be reached: the mark stays due
                    self._drop()
                    pause, retry = retry, min(retry * 2, _RETRY_S[1])
        with self._using:
            self._drop()

    def _wanted(self) -> bool:
        return not self._ended and (bool(self.users) or self.dirty)

    def _step(self) -> float:
        """Marks if a mark is due; returns how long the next look may take, in seconds."""
        session = self._session
        now = time.monotonic()
        if session is not None and now - self._connected_at >= settings().reconnect:
            self._drop()  # the address may lead to another server by now (BAR-55)
            session = None
        if session is None:
            session, self._connected_at = Session(self.target, _TIMEOUT_S), now
            self._session = session
            if self.facts is None or not self.facts.reached:
                self.facts = probe(session, self.store, self.key)
        self.dirty = False  # first: what is written from here on is due again
        position = self.position
        try:
            word, wait = self._mark(session, position)
        except BaseException:
            self.dirty = position is not None
            raise
        if word == "wait":
            self.dirty = True
            return max(wait, 0.01)
        if word != "replica":
            note_marks(self.store, None)
        # Where nobody writes: has it become the primary of a new epoch?
        return _period()

    def _mark(self, session: Session, position: Ordered | None, period_ms: int | None = None) -> tuple[str, float]:
        epoch, counter = position or ("", 0)
        period = marks.PERIOD_MS if period_ms is None else period_ms
        words = ("1", self.key, epoch, counter, period, marks.MOST, EPOCH_DIGITS)
        reply = session.ask(pack("EVALSHA", _SHA, *words))[0]
        if isinstance(reply, ServerError) and reply.code == "NOSCRIPT":
            reply = session.ask(pack("EVAL", marks.MARK, *words))[0]
        if isinstance(reply, ServerError):
            raise reply
        events.on_server_asked(self.store, "mark")
        return reply[0].decode(), int(reply[1]) / 1000

    def _refused(self, error: ServerError) -> float:
        """The server answered with an error: no right, a full memory, a key of another type."""
        if error.code in {"LOADING", "MASTERDOWN", "BUSY"}:
            return _RETRY_S[0]
        note_marks(self.store, f"{self.target.address}: {error}")
        logs.warn(
            f"marks {self.store} {self.target.address}",
            f"the epochs of {self.store} cannot be marked at {self.target.address}: {error}. Positions are given, and "
            f"a failover or restart makes older ones unproven. {grant(self.key)}",
            code="AP508",
        )
        return _REFUSED_S

    def _drop(self) -> None:
        session, self._session = self._session, None
        if session is not None:
            session.close()

    # The end

    def last_mark(self) -> None:
        """The process ends: one mark, if there is something to mark, within a moment."""
        self._ended = True
        if not self.dirty or self.position is None or not self._using.acquire(timeout=_EXIT_S):
            return
        try:
            session = self._session or Session(self.target, _EXIT_S)
            session.timeout = _EXIT_S
            self._mark(session, self.position, 0)  # nobody is left to do it in a second
            self._drop()
        except Exception:  # nobody is left to be told
            return
        finally:
            self._using.release()

    def stop(self) -> None:
        """Ends the thread and its connection (tests, a store that was forgotten)."""
        self._ended = True
        self._wake.ring()
        thread = self._thread
        if thread is not None and thread is not threading.current_thread():
            thread.join(2 * _TIMEOUT_S)

    def after_fork(self) -> None:
        """In the child of a fork: the thread and the connection stayed with the parent."""
        self.dirty = False
        self._forget()


_markers: weakref.WeakSet[Marker] = weakref.WeakSet()


def marker(store: Any, target: Target, key: str) -> Marker:
    """The marker of this store (an `antipode.Store`) at this server: one a process."""
    kept: dict[str, Marker] = store.shim.markers
    found = kept.get(target.address)
    if found is None:
        found = kept[target.address] = Marker(store.name, target, key)
        _markers.add(found)
    return found


def _at_exit() -> None:
    for each in list(_markers):
        each.last_mark()


def _after_fork_in_child() -> None:
    for each in list(_markers):
        each.after_fork()


atexit.register(_at_exit)
if hasattr(os, "register_at_fork"):
    os.register_at_fork(after_in_child=_after_fork_in_child)
