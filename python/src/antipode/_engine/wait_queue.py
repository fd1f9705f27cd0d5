"""Who waits at one server, what it is to be asked for them, and what an answer settles (spec BAR, EPOCH).

Nothing here asks or sleeps: `Server` does, and holds its lock round every call.

When a barrier is told *too late* before its deadline (BAR-40, BAR-57):
1. Never without a look. Whoever comes is parked, and asked for in the next question. Only behind an answer `not_yet` to
   that may it be given up early, where the reason stands even then. An answer that says nothing of it is none.
2. Lag: a position's age counts from when any server of the store was seen past it (`Ages`), so that only servers make
   lag, never what somebody asks for. A server's lag is the age of its newest position; it counts above the deadline.
3. Stuck: `_IN_A_ROW` waits for one key (an object) or epoch (a position) timed out in a row. Each began after the
   server last moved, and none was much shorter than the deadline now. Any growth of the server's position, a write of
   the key or epoch that is seen, and ten seconds without another time-out end it. What was cancelled, refused a place,
   only recorded or named its servers anew does not count, nor an unknown epoch.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence
from itertools import chain, islice
from typing import Final, NamedTuple

from antipode._engine.pending_wait import PendingWait, Proof, Settled, WaitGroup
from antipode._engine.position_queue import PositionQueue
from antipode._model.branch_ids import BRANCHES
from antipode._model.verdict import VISIBLE, UnprovenKind, Verdict, Visibility, not_yet, unproven
from antipode._model.write_id import Ordered, WriteId

LINGER_S: Final = 10.0
"""How long a server is asked on after the last barrier."""
_MOST_OBJECTS: Final = 200
_MOST_BRANCHES: Final = 2000
_IN_A_ROW: Final = 5
_MOST_KEPT: Final = 1000
"""So many unknown epochs are kept, and as many keys and epochs that timed out; the oldest are forgotten first."""


class _TimeoutStreak(NamedTuple):
    """Waits in a row that timed out for one key or epoch: how many, the shortest's seconds, and when the last did."""

    times: int
    shortest: float
    last: float


class WaitQueue:
    """The needs that are parked at one server: positions by epoch, least first, and all others by write."""

    def __init__(self) -> None:
        self.live = 0
        """Needs that are neither settled nor given up."""
        self._followed = 0
        """Those of them that nobody waits for."""
        self.looks: list[PendingWait] = []
        """Those that only look (`timeout=0`)."""
        self.in_turns = False
        """An answer that says nothing of a write says that its turn has not come, and not that the server is silent."""
        self.probes: dict[str, tuple[int, float, WriteId]] = {}
        """The least position of an epoch that was given up, since when it was wanted: one prober goes on for it."""
        self._ordered: dict[str, PositionQueue] = {}
        self._objects: dict[WriteId, dict[PendingWait, None]] = {}
        self._branches: dict[WriteId, dict[PendingWait, None]] = {}
        self._rounds = 0
        self._unknown: dict[str, tuple[float, float]] = {}
        """Epochs that the server does not know: since when, and when it last said so; the oldest word first."""
        self._stuck: dict[str | bytes, _TimeoutStreak] = {}
        self._applied: Mapping[str, int] = {}
        self._moved_at = -1e9
        self._looked_at = -1e9

    @property
    def wanted(self) -> bool:
        """Whether the server is to be asked for anybody."""
        return self.live > 0 or bool(self.probes)

    @property
    def only_follows(self) -> bool:
        """Whether the server is asked for records alone, so that an answer may take its time (REC-21)."""
        return self.live > 0 and self.live == self._followed and not self.probes

    def nearest(self, epoch: str) -> int | None:
        """Return the least position of this epoch that is waited for; None where something else is, or nobody waits."""
        others = (self._first(each) for each in self._ordered if each != epoch)
        if self.only_follows or self._objects or self._branches or any(others) or any(e != epoch for e in self.probes):
            return None
        first, probe = self._first(epoch), self.probes.get(epoch)
        counters = [*((first.counter,) if first else ()), *((probe[0],) if probe else ())]
        return min(counters, default=None)

    @property
    def awaited(self) -> frozenset[WriteId]:
        """What barriers wait for now: not what one only looks at or records, nor what a prober asks for."""
        waiting = (need for need in self._parked() if not (need.done or need.group.follows or need.group.timeout == 0))
        return frozenset(need.write_id for need in waiting)

    @property
    def changing(self) -> set[WaitGroup]:
        """Return those that wait here and name their servers anew where those change."""
        return {need.group for need in self._parked() if not need.done and need.group.has_lost is not None}

    def _parked(self) -> Iterator[PendingWait]:
        others = chain(self._objects.values(), self._branches.values())
        return chain(chain.from_iterable(self._ordered.values()), chain.from_iterable(others))

    # Coming and going

    def add(self, need: PendingWait, lag: float) -> bool:
        """Park a need; return True where an earlier one of the same epoch has to be seen first.

        lag: the server's, in seconds, where the need is for the epoch that it is in, else 0.
        """
        need.parked = True
        rides_along = self._keep(need)
        need.first_round = self._rounds + 1
        if need.group.timeout == 0 or self._overload(need, lag, need.since):
            self.looks.append(need)
            rides_along = False
        self._count(need, 1)
        return rides_along

    def _overload(self, need: PendingWait, lag: float, now: float) -> str:
        """Return why waiting on is known to be in vain; empty where it is not."""
        if need.branch or need.group.follows or need.epoch in self._unknown:
            # A task that is slow says nothing of the replica (BRANCH-14). In dry-run nobody waits, and a record is of
            # what the server said (REC-13). An unknown epoch is waited for (EPOCH-13).
            return ""
        timeout = need.group.timeout
        if lag > timeout:
            return f"it lags by {lag:.1f} s, longer than the deadline"
        stuck = self._stuck.get(need.key)
        if stuck is None or stuck.times < _IN_A_ROW or timeout > 2 * stuck.shortest or now - stuck.last > LINGER_S:
            return ""
        return f"{stuck.times} waits in a row timed out there"

    def _count(self, need: PendingWait, change: int) -> None:
        self.live += change
        self._followed += change * need.group.follows

    def _keep(self, need: PendingWait) -> bool:
        if need.counter < 0:
            (self._branches if need.branch else self._objects).setdefault(need.write_id, {})[need] = None
            return False
        queue = self._ordered.get(need.epoch)
        if queue is None:
            queue = self._ordered[need.epoch] = PositionQueue()
        first = queue.first()
        queue.push(need)
        hurries = self.only_follows and not need.group.follows  # those that came first may take their time (REC-21)
        return not hurries and first is not None and first.counter <= need.counter and first.answer is not None

    def give_up(self, need: PendingWait, now: float) -> None:
        """The barrier's deadline has passed, or it was cancelled; a prober goes on for the least position."""
        if need.done:
            return
        need.group.settle(need, None)
        if not need.parked:
            return
        self._count(need, -1)
        self._note_timeout(need, now)
        if need.counter >= 0 and need.epoch in self._ordered:
            self._ordered[need.epoch].given_up()
        if need.counter >= 0 and not (need.group.cancelled or need.group.is_outdated):
            probe = self.probes.get(need.epoch)
            if probe is None or need.counter < probe[0]:
                self.probes[need.epoch] = (need.counter, need.since, need.write_id)
        self._forget_other(need)

    def _note_timeout(self, need: PendingWait, now: float) -> None:
        group = need.group
        is_over = group.cancelled or group.overloaded or group.is_outdated
        if need.branch or group.follows or is_over or not group.timeout:
            return
        if need.since < self._moved_at or need.epoch in self._unknown or now - need.since < group.timeout / 2:
            return
        before = self._stuck.pop(need.key, None)
        if before is None or now - before.last > LINGER_S:
            before = _TimeoutStreak(0, group.timeout, now)
        self._stuck[need.key] = _TimeoutStreak(before.times + 1, min(before.shortest, group.timeout), now)
        if len(self._stuck) > _MOST_KEPT:
            del self._stuck[next(iter(self._stuck))]

    def _forget_other(self, need: PendingWait) -> None:
        if need.counter < 0:
            others = self._branches if need.branch else self._objects
            needs = others.get(need.write_id, {})
            needs.pop(need, None)
            if not needs:
                others.pop(need.write_id, None)

    def forget_unknown(self) -> None:
        """The server or its epoch is another one: what it did not know, it may know now."""
        self._unknown = {}

    def forget_probes(self) -> None:
        """Nobody is asked for any more but who waits."""
        self.probes.clear()

    # Asking

    def choose(self, now: float, wanted_at: float) -> list[WriteId]:
        """What to ask for: of each epoch the least position that somebody waits for (the others come after it)."""
        self._rounds += 1
        chosen: list[WriteId] = []
        for epoch in list(self._ordered):
            first = self._first(epoch)
            if first is None:
                del self._ordered[epoch]
            else:
                chosen.append(first.write_id)
        for epoch, (counter, since, write_id) in list(self.probes.items()):
            if now - max(since, wanted_at) > LINGER_S:
                del self.probes[epoch]
            elif (first := self._first(epoch)) is None or counter < first.counter:
                chosen.append(write_id)
        self._forget_old(now)
        for others, most in ((self._objects, _MOST_OBJECTS), (self._branches, _MOST_BRANCHES)):
            some = list(islice(others, most))
            chosen += some
            for write_id in some if len(others) > most else ():  # the next round begins with the others
                others[write_id] = others.pop(write_id)
        return chosen

    def _forget_old(self, now: float) -> None:
        """Unknown epochs are kept while somebody waits for them, and ten seconds longer (BAR-60)."""
        while self._unknown:
            epoch, (_, last) = next(iter(self._unknown.items()))
            if len(self._unknown) <= _MOST_KEPT and now - last <= LINGER_S:
                return
            del self._unknown[epoch]

    def abandoned(self, now: float) -> set[WaitGroup]:
        """Return the groups, looked for once a second, whose event loop was closed while they were parked."""
        if now - self._looked_at < 1.0:
            return set()
        self._looked_at = now
        return {need.group for need in self._parked() if need.group.is_abandoned}

    def _first(self, epoch: str) -> PendingWait | None:
        queue = self._ordered.get(epoch)
        return None if queue is None else queue.first()

    # Answers; each returns the groups whose last need they settled

    def answer(
        self,
        ids: Sequence[WriteId],
        answers: Iterable[Visibility],
        applied: Mapping[str, int],
        now: float,
        proof: Proof,
        epoch: str = "",
        lag: float = 0.0,
    ) -> Settled:
        """Settle what the answers decide, and the proofs that came with them: the server has applied so much.

        proof: by which question they came.
        lag: the server's, in seconds, after this answer, for needs of the epoch that it is in (`epoch`).
        """
        released: Settled = {}
        if applied and applied != self._applied:
            self._applied, self._moved_at = applied, now
            self._stuck.clear()
        for write_id, answer in zip(ids, answers, strict=True):
            if write_id.is_position:
                self._answer_position(write_id, answer, now, proof, released)
            else:
                self._answer_other(write_id, answer, proof, released)
        for each, counter in applied.items():
            queue = self._ordered.get(each)
            if queue is not None:
                for need in queue.reached(counter):
                    self._settle(need, VISIBLE, released, proof)
            self._drop_probe(each, counter)
        if self.looks:
            self._end_looks(released, epoch, lag, now)
        return released

    def answer_all(self, answer: Visibility) -> Settled:
        """One answer for whoever waits."""
        released: Settled = {}
        for need in self._take_all():
            self._settle(need, answer, released)
        return released

    def leave_out(self) -> Settled:
        """The server is out: whoever waits goes on without it."""
        released: Settled = {}
        for need in self._take_all():
            if not need.done:
                need.left_out = True
                self._settle(need, None, released)
        return released

    def _take_all(self) -> list[PendingWait]:
        needs = list(self._parked())
        self._ordered.clear()
        self._objects.clear()
        self._branches.clear()
        return needs

    def _end_looks(self, released: Settled, epoch: str, lag: float, now: float) -> None:
        """Answer by the first question that was asked for it who only looks (BAR-29) or waits in vain (BAR-40)."""
        looks, self.looks = self.looks, []
        for need in looks:
            if need.done:
                continue
            answer = need.answer
            hopes = need.group.timeout > 0
            if need.first_round > self._rounds or answer is None or (hopes and answer.unanswered):
                self.looks.append(need)  # not asked for, or not answered yet
                continue
            if hopes:
                why = self._overload(need, lag if need.epoch == epoch else 0.0, now)
                if not why:
                    continue  # it waits on
                need.answer = not_yet("; ".join(filter(None, (answer.reason, why))), overloaded=True)
            self._count(need, -1)
            self._forget_other(need)
            if need.group.settle(need, None):
                released[need.group] = need.group.is_alone or need.group.end_settled()

    def _drop_probe(self, epoch: str, applied: int) -> None:
        probe = self.probes.get(epoch)
        if probe is not None and probe[0] <= applied:
            del self.probes[epoch]

    def _answer_position(
        self, write_id: WriteId, answer: Visibility, now: float, proof: Proof, released: Settled
    ) -> None:
        version = write_id.version
        assert isinstance(version, Ordered)
        epoch, counter = version
        queue = self._ordered.get(epoch) or PositionQueue()
        first = queue.first()
        if answer.verdict is Verdict.VISIBLE:
            # Without a call of `applied` in the same reply this proves no more than what was asked.
            for need in queue.reached(counter):
                self._settle(need, VISIBLE, released, proof)
            self._drop_probe(epoch, counter)
        elif answer.unknown_epoch:
            since, _ = self._unknown.pop(epoch, (now, now))  # whoever waits may have begun at another server
            self._unknown[epoch] = (since, now)
            self._forget_old(now)
            for need in queue:
                if need.counter < counter:
                    continue  # it came meanwhile; the server may know its epoch up to there (EPOCH-30)
                need.answer = answer
                if now - min(since, need.since) >= need.group.timeout:
                    words = f"unknown epoch: {answer.reason}"
                    self._settle(need, unproven(words, UnprovenKind.HISTORY), released)
        elif answer.verdict is Verdict.UNPROVEN:
            # Positions of one epoch are a prefix: what cannot be proved up to here cannot be proved beyond.
            for need in queue.from_counter(counter):
                self._settle(need, answer, released)
            self.probes.pop(epoch, None)
        elif first is not None:
            first.answer = answer
            for need in self.looks:  # what is not there up to here is not there beyond
                if need.done or need.epoch != epoch:  # what is over changes no more
                    continue
                if need.counter >= counter and need.first_round <= self._rounds:
                    need.answer = answer

    def _answer_other(self, write_id: WriteId, answer: Visibility, proof: Proof, released: Settled) -> None:
        others = self._branches if write_id.store == BRANCHES else self._objects
        if answer.verdict is Verdict.NOT_YET:
            for need in others.get(write_id, ()):
                need.answer = answer
                need.repeats &= answer.unanswered and self.in_turns
            return
        for need in others.pop(write_id, ()):
            self._settle(need, answer, released, proof)

    def _settle(
        self, need: PendingWait, answer: Visibility | None, released: Settled, proof: Proof | None = None
    ) -> None:
        if need.done:
            return
        group = need.group
        self.live -= 1
        self._followed -= group.follows
        if self._stuck:
            self._stuck.pop(need.key, None)
        if need.counter >= 0 and self._rounds > need.first_round:  # the first look did not show it (BAR-63)
            need.repeats = False
        if group.settle(need, answer, proof):
            released[group] = group.is_alone or group.end_settled()
