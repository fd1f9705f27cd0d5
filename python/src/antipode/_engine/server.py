"""One server of a store: what it has proved, and who waits for it (spec BAR, EPOCH).

One thread a server asks it, however many barriers wait (single flight), and only while somebody waits and ten
seconds longer. It is woken by the server's push where the store has one, by a new need, or by its poll timer.
"""

from __future__ import annotations

import threading
import time
from collections.abc import Mapping, Sequence
from contextlib import suppress
from typing import Any, Final

from antipode._base import logs
from antipode._base.background import Background
from antipode._base.observers import events
from antipode._base.own_faults import is_own_fault
from antipode._base.settings import Settings, settings
from antipode._engine.branch_lookup import look_for
from antipode._engine.pace import RETRY_S, Pace
from antipode._engine.pending_wait import JudgedServer, JudgedStore, PendingWait, Proof, end_without, release_all
from antipode._engine.poller import Poller
from antipode._engine.reachability import Reachability
from antipode._engine.renewal import Renewal
from antipode._engine.wait_queue import LINGER_S, WaitQueue
from antipode._engine.waiting import wait_for_server, wait_for_server_async
from antipode._model.branch_ids import BRANCHES
from antipode._model.errors import ConfigurationError
from antipode._model.lineage import Lineage
from antipode._model.verdict import VISIBLE, UnprovenKind, Visibility, unproven
from antipode._model.write_id import WriteId
from antipode._store.contract import Watch

_WAIT_SLICE_S: Final = 0.1
_BREATH_S: Final = 0.001


class ServerPoller(JudgedServer):
    """A server of a store, and the thread that asks it."""

    def __init__(self, store: JudgedStore, address: str, target: Any) -> None:
        self.store = store
        self.address = address
        self.target = target
        self.session: Any = None
        self._settings = settings()
        self._lock = threading.Lock()
        self._forget()

    @property
    def _in_force(self) -> Settings:
        """The settings; those before, where they are to be read anew and cannot: that is for a barrier to raise."""
        with suppress(ConfigurationError):
            self._settings = settings()
        return self._settings

    def _forget(self) -> None:
        # Proofs: they belong to one instance and the epoch that it was in, as read in the reply that proved them.
        self._instance = ""
        self._epoch = ""
        self._proofs: tuple[Mapping[str, int], Proof] = ({}, Proof(-1e9, 0, is_kept=True))
        """Per epoch how far, and by which question: one value, so that none is taken with another's time."""
        self._said: tuple[str, int] | None = None
        """Its position as it last said it: for people, who want to know it when the proofs are dropped, too."""
        self.generation = 0
        self._asked_under = 0
        self._asked_at = -1e9
        self._answered_at = -1e9
        self.waiters = WaitQueue()
        # The thread and its channel.
        self._thread: threading.Thread | None = None
        self._poller: Poller | None = None
        self._pace = Pace()
        self._poked = False
        self._called = False  # whether somebody new waits
        self._pushed = False
        self._watch: Watch | None = None
        self._watchable = True
        self._hurried = False
        """Whether anybody has waited since the thread began, and not only followed writes for records."""
        self._wanted_at = -1e9
        self.passed_at = -1e9
        self.known_under = -1
        self._renewal = Renewal(self, self.close_channel)
        self._reach = Reachability()

    # What a shim calls

    @property
    def ask_timeout(self) -> float:
        return min(1.0, self._in_force.replica_out_after / 2)

    def applied(self, instance: str, epoch: str, positions: Mapping[str, int]) -> None:
        now = time.monotonic()
        with self._lock:
            if self._asked_under != self.generation:
                return
            applied = self._applied
            went_back = positions.get(epoch, 0) < applied.get(epoch, 0)
            if instance != self._instance or epoch != self._epoch or went_back:
                self.generation += 1
                self._asked_under = self.generation  # this reply is the first word of these data
                self._instance, self._epoch = instance, epoch
                self.waiters.forget_unknown()
                applied = dict(positions)
            elif positions != applied:
                applied = {**applied, **positions}
            self._proofs = (applied, Proof(self._asked_at, self.generation, is_kept=True))
            if epoch in applied:
                self._said = epoch, applied[epoch]
                self._pace.growth.note((instance, epoch), self._asked_at, applied[epoch])
        self.store.ages.note(epoch, applied.get(epoch, 0), now)

    def begin_question(self) -> None:
        self._asked_at = time.monotonic()

    @property
    def _applied(self) -> Mapping[str, int]:
        return self._proofs[0]

    def reset(self) -> None:
        with self._lock:
            self.generation += 1
            self._proofs = ({}, Proof(-1e9, self.generation, is_kept=True))
            self._instance = ""
            self._answered_at = -1e9

    @property
    def interrupted(self) -> bool:
        return self._poked

    @property
    def is_unhurried(self) -> bool:
        return self.waiters.only_follows

    def rest(self, lead: float) -> float | None:
        with self._lock:
            nearest = self.waiters.nearest(self._epoch)
        return self._pace.rest(self._poller, (self._instance, self._epoch), nearest, lead)

    @property
    def awaited(self) -> frozenset[WriteId]:
        with self._lock:
            return self.waiters.awaited

    # The free path

    def kept_proof(self, epoch: str, counter: int, since: float) -> Proof | None:
        applied, proof = self._proofs
        return proof if 0 <= counter <= applied.get(epoch, -1) and proof.asked_at >= since else None

    def holds(self, epoch: str, counter: int, now: float) -> bool:
        return self.kept_proof(epoch, counter, now - settings().free_path_ttl) is not None

    def wait_for(self, lineage: Lineage, timeout: float) -> Visibility:
        return wait_for_server(self, lineage, timeout)

    async def wait_for_async(self, lineage: Lineage, timeout: float) -> Visibility:
        return await wait_for_server_async(self, lineage, timeout)

    def applied_in(self, epoch: str) -> int | None:
        return self._applied.get(epoch)

    def tell_position(self, epoch: str) -> str:
        if self._said is None:
            return "an unknown position"
        own, counter = self._said
        return f"{own[:4]}….{counter}{'' if own == epoch else ' of another epoch'}"

    @property
    def down(self) -> str:
        return self._reach.words

    def is_out(self, now: float) -> bool:
        """Whether it has not answered for `replica_out_after`, as far as is known lately."""
        return self._reach.is_down and self._reach.is_out(now, self._in_force.replica_out_after, self.ask_timeout)

    # Parking and giving up

    def park(self, need: PendingWait) -> bool:
        now = time.monotonic()
        with self._lock:
            if need.done:  # its barrier has given up meanwhile
                return False
            self._wanted_at = now
            self._hurried |= not need.group.follows
            try:
                self._ensure_thread()
            except (OSError, RuntimeError, MemoryError) as error:  # nothing is asked, nothing is known (BAR-61)
                words = f"this process can start nothing that asks {self.address} ({error})"
                return need.group.settle(need, unproven(words, UnprovenKind.OWN_FAULT))
            since = now - settings().free_path_ttl
            proof = self.kept_proof(need.epoch, need.counter, since if since > need.fresh_from else need.fresh_from)
            if proof is not None:
                return need.group.settle(need, VISIBLE, proof)
            if self.is_out(now):
                need.left_out = True
                return need.group.settle(need, None)
            self.known_under = -1  # a need that was opened again was not among those that had lost this server (BAR-65)
            rides_along = self.waiters.add(need, self._lag(now) if need.epoch == self._epoch else 0.0)
        if not rides_along:
            self._poke()
        return False

    def give_up(self, need: PendingWait) -> None:
        with self._lock:
            self.waiters.give_up(need, time.monotonic())

    def _lag(self, now: float) -> float:
        """Return how far it is behind the store's other servers, in seconds, as far as they were seen (BAR-57)."""
        return self.store.ages.lag(self._epoch, self._applied.get(self._epoch, 0), now)

    # The thread

    def _ensure_thread(self) -> None:
        if self._thread is not None:
            return
        self._poller = Poller()
        try:
            self._pace = Pace()
            self._thread = Background(self._run, f"antipode-{self.store.name}-{self.address}")
            self._thread.start()
        except (RuntimeError, MemoryError):  # too many threads, or the process ends: the next one who waits tries again
            self._end(self._poller)
            raise

    def _poke(self) -> None:
        """Makes the thread ask now; called from any thread."""
        self._called = True  # first: the thread may be awake
        self._wake()

    def _wake(self) -> None:
        if self._poked:
            return
        with self._lock:  # its pipe is closed under the lock, so that its number is never another file's
            if self._poller is not None and not self._poked:
                self._poked = True
                self._poller.wake()

    def _run(self) -> None:
        pace, poller = self._pace, self._poller
        assert poller is not None
        while True:
            try:
                if self._idle():
                    self.close_channel()  # not under the lock: a shim's close may wait for who is calling back
                    with self._lock:
                        if self._idle():
                            self._end(poller)
                            return
                self._turn(poller, pace)
                pace.pause = RETRY_S[0]
            except Exception as error:  # a fault of ours is no silence of the server (BAR-61)
                self._tell_fault(error)
                time.sleep(pace.pause)
                pace.pause = RETRY_S[1]  # takes no memory

    def _tell_fault(self, error: Exception) -> None:
        """Tell who waits here that this process is in trouble; never raise: the thread goes on when that is over."""
        self._poked = False  # the octet of a poke may have been read: who comes now wakes the thread anew
        try:
            words = f"the thread that asks {self.address} failed ({type(error).__name__}: {error}): it goes on"
            logs.warn(f"own-fault {self.address}", words, code="AP209")
            logs.logger.debug("where it failed", exc_info=error)
            self._refused(error, UnprovenKind.OWN_FAULT)
        except Exception:  # even that takes memory, and so would `suppress`
            try:
                self.reset()
            except Exception:
                return

    def _idle(self) -> bool:
        return self.waiters.live == 0 and time.monotonic() - max(self._wanted_at, self.passed_at) > LINGER_S

    def _turn(self, poller: Poller, pace: Pace) -> None:
        """Sleeps until there is a reason to ask the server, and asks it once."""
        now = time.monotonic()
        if self.waiters.live and not self.waiters.only_follows and self.store.has_lost(self, now):
            with self._lock:
                groups = self.waiters.changing
            end_without(self, groups)
        shortest = max(self._in_force.poll, self.store.shim.own_pace, 0.001)
        due = self._due(pace, shortest, now)
        is_called, is_pushed = self._sleep(poller, min(due - now, 1.0))
        now = time.monotonic()
        with self._lock:
            wanted, unhurried, looks = self.waiters.wanted, self.waiters.only_follows, bool(self.waiters.looks)
        if is_pushed and wanted and (looks or not unhurried):  # else whoever comes next asks anew
            pace.has_news = True
            due = min(due, self._due(pace, shortest, now))
        if now < due and (not is_called or self._reach.is_down):
            return
        if is_called and now - pace.asked_at < _BREATH_S:
            # Bounded even while barriers keep arriving: those of one breath are asked for together.
            time.sleep(pace.asked_at + _BREATH_S - now)
        if is_called and (unhurried or pace.is_unhurried):
            pace.hurry()
        pace.begin(time.monotonic(), is_paced=now >= due and not is_called)
        self._called = False  # whoever has called by now is among those who are asked for
        moved = self._round(wanted)
        is_moving = moved and not unhurried
        pace.blocks = is_moving or self._poked or time.monotonic() - pace.asked_at > _WAIT_SLICE_S / 2
        is_steady = is_moving or self.store.shim.own_pace > 0
        pace.end(self._asked_at, shortest, is_down=self._reach.is_down, is_steady=is_steady, is_unhurried=unhurried)

    def _due(self, pace: Pace, shortest: float, now: float) -> float:
        """Return when the server is to be asked, where nobody new comes before."""
        with self._lock:
            wanted, nearest = self.waiters.wanted, self.waiters.nearest(self._epoch)
        if self._reach.is_down:
            return self._reach.failed_at + pace.retry
        if self._called:
            return now
        if wanted and pace.blocks and self.store.shim.capabilities.blocking_wait:
            return pace.asked_at + _BREATH_S  # the shim itself waits
        if wanted:
            return pace.due(now, shortest, (self._instance, self._epoch), nearest)
        if self._watch is not None and self._in_force.free_path_ttl:
            return self._answered_at + max(self._in_force.free_path_ttl / 2, shortest)
        return now + 1.0

    def _sleep(self, poller: Poller, seconds: float) -> tuple[bool, bool]:
        """Sleeps until the time is over, somebody new waits, or the server pushes; returns which of the latter two."""
        watch = self._watch
        pause = 0.0 if self._pushed else seconds  # for a push that came with an answer nobody wakes it
        woken, heard = poller.wait(None if watch is None else watch.fileno(), pause)
        if woken:
            self._poked = False  # only now: a poke in between is seen by the question that follows
        if watch is not None and heard:
            try:
                watch.pump()
            except Exception as error:  # a broken channel is a server that has to be asked anew
                self._settle_error(error, time.monotonic())
        if not self._pushed:
            return self._called, False
        self._pushed = False
        return self._called, True

    def on_change(self) -> None:
        self._pushed = True
        self._pace.growth.note_push()
        if threading.current_thread() is not self._thread:
            self._wake()

    def _round(self, wanted: bool) -> bool:
        """One question; True if the server has moved. One whose answer was overtaken is asked again, once (BAR-33)."""
        moved = self._ask(wanted)
        if moved is None:
            moved = self._ask(wanted)
        return bool(moved)

    def _ask(self, wanted: bool) -> bool | None:
        """One question; None if the data were replaced while it was asked: the answer may speak of those before."""
        asked_at = time.monotonic()
        with self._lock:
            ids = self.waiters.choose(asked_at, max(self._wanted_at, self.passed_at))
            abandoned = self.waiters.abandoned(asked_at)
        for group in abandoned:
            group.abandon()
        before = (self._epoch, self._applied.get(self._epoch, -1))
        shim = self.store.shim
        try:
            self._renewal.begin_question(asked_at, self._in_force.reconnect)  # the address may lead elsewhere by now
            began_at = asked_at = time.monotonic()
            hurries = self._hurried or asked_at - self.passed_at < LINGER_S
            if self._watch is None and self._watchable and hurries and shim.capabilities.push:
                self._open_watch()
                asked_at = time.monotonic()  # it has just answered
            self._asked_under = self.generation
            self.begin_question()
            branches = [write_id for write_id in ids if write_id.store == BRANCHES]
            writes = [write_id for write_id in ids if write_id.store != BRANCHES] if branches else ids
            answers: Sequence[Visibility] = ()
            if ids and shim.capabilities.blocking_wait and not self.waiters.looks and (writes or not branches):
                answers = shim.wait(writes, self, self._in_force.poll if branches else _WAIT_SLICE_S)
            elif writes or not branches:
                answers = shim.visible(writes, self)
            if len(answers) != len(writes):
                raise RuntimeError(f"{shim.kind}: {len(answers)} answers to {len(writes)} questions")
            if branches:
                ids, answers = [*writes, *branches], [*answers, *look_for(branches, self)]
        except shim.unreachable as error:
            self._settle_error(error, asked_at)
            return False
        except Exception as error:
            self._refused(error)
            return False
        self._reach.note_answer()
        if not shim.own_pace:  # such a shim counts its questions by itself
            events.on_server_asked(self.store.name, "wait" if wanted else "probe")
        now = self._answered_at = time.monotonic()
        self._renewal.end_question(now - began_at)
        if self._asked_under != self.generation:
            return None
        with self._lock:
            proof = Proof(self._asked_at, self._asked_under)
            applied, proved = self._proofs
            self.waiters.in_turns = shim.own_pace > 0
            if proved.asked_at != self._asked_at:  # no position is proved by it: what an earlier one proved is as old
                applied = {}
            released = self.waiters.answer(ids, answers, applied, now, proof, self._epoch, self._lag(now))
        release_all(released)
        return bool(released) or before != (self._epoch, self._applied.get(self._epoch, -1))

    def _open_watch(self) -> None:
        try:
            self._watch = self.store.shim.watch(self, self.on_change)
        except NotImplementedError as error:
            self._watchable = False
            logs.info(f"no-push {self.address}", f"{self.address} cannot push, so it is polled: {error}", code="AP515")

    def _refused(self, error: Exception, kind: UnprovenKind | None = None) -> None:
        """Tell who waits that the question has no answer: the server refused it, or we could not ask (BAR-13)."""
        self._reach.note_answer()  # asked at the pace of a poll, not in a loop
        if kind is None:
            kind = UnprovenKind.OWN_FAULT if is_own_fault(error) else self.store.shim.kind_of(error)
        with suppress(Exception):
            self.close_channel()
        with self._lock:
            released = self.waiters.answer_all(unproven(f"{type(error).__name__}: {error}", kind))
            self.waiters.forget_probes()
        release_all(released)

    def _settle_error(self, error: Exception, asked_at: float) -> None:
        """Settle what an error means that is the server's silence, or this process' own (BAR-26, BAR-61)."""
        if is_own_fault(error):
            self._refused(error, UnprovenKind.OWN_FAULT)
        else:
            self._failed(error, asked_at)

    def _failed(self, error: Exception, asked_at: float) -> None:
        """The server did not answer: proofs go, and after `replica_out_after` it is left out of every pass."""
        self.close_channel()
        now = time.monotonic()
        self._reach.note_silence(error, asked_at, now, self.ask_timeout)
        events.on_server_asked(self.store.name, "probe")
        if not self.is_out(now):
            return
        with self._lock:
            released = self.waiters.leave_out()
        release_all(released)

    def close_channel(self, following: Any = None) -> None:
        """Close the channel and the connection; `following`: the session that takes its place (BAR-55)."""
        watch, self._watch = self._watch, None
        self._renewal.end()
        self.reset()  # first: what was proved goes whatever closing raises
        try:
            if watch is not None:
                watch.close()
        finally:
            self.store.shim.close(self)
            if following is not None:  # else a shim keeps what it may need of its own (a tap, what arrived)
                self.session = following

    def _end(self, poller: Poller) -> None:
        """Ends the thread; the lock is held, so that a need parked now starts another one."""
        self._thread = None
        self._poller = None
        self._poked = False
        self._hurried = False
        self.waiters.forget_probes()
        self.waiters.forget_unknown()
        poller.close()

    def retire(self) -> None:
        with self._lock:
            self._wanted_at = self.passed_at = -1e9
            thread = self._thread
        self._poke()
        if thread is not None and thread is not threading.current_thread():
            thread.join(2 * self.ask_timeout)

    def after_fork(self) -> None:
        self.session = None
        self._lock = threading.Lock()
        self._forget()
