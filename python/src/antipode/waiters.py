"""Who waits at one server, what it is to be asked for them, and what an answer settles (spec BAR, EPOCH).

Nothing here asks or sleeps: `Server` does, and holds its lock round every call.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from itertools import chain
from typing import Final

from antipode.branch_ids import BRANCHES
from antipode.need import Group, Need
from antipode.position_queue import PositionQueue
from antipode.verdict import VISIBLE, UnprovenKind, Verdict, Visibility, not_yet, unproven
from antipode.writeid import Ordered, WriteId

LINGER_S: Final = 10.0
"""How long a server is asked on after the last barrier."""
_MOST_OBJECTS: Final = 200
_MOST_BRANCHES: Final = 2000
_FAILED_IN_A_ROW: Final = 5


class Waiters:
    """The needs that are parked at one server: positions by epoch, least first, and all others by write."""

    def __init__(self) -> None:
        self.live = 0
        """Needs that are neither settled nor given up."""
        self._followed = 0
        """Those of them that nobody waits for."""
        self.looks: list[Need] = []
        """Those that only look (`timeout=0`)."""
        self.probes: dict[str, tuple[int, float, WriteId]] = {}
        """The least position of an epoch that was given up, since when it was wanted: one prober goes on for it."""
        self._ordered: dict[str, PositionQueue] = {}
        self._others: dict[WriteId, list[Need]] = {}
        self._rounds = 0
        self._unknown: dict[str, float] = {}
        self._timeouts_in_a_row = 0

    @property
    def wanted(self) -> bool:
        """Whether the server is to be asked for anybody."""
        return self.live > 0 or bool(self.probes)

    @property
    def only_follows(self) -> bool:
        """Whether the server is asked for records alone, so that an answer may take its time (REC-21)."""
        return self.live > 0 and self.live == self._followed and not self.probes

    @property
    def awaited(self) -> frozenset[WriteId]:
        """What barriers wait for now: not what one only looks at or records, nor what a prober asks for."""
        parked = chain(chain.from_iterable(self._ordered.values()), chain.from_iterable(self._others.values()))
        waiting = (need for need in parked if not (need.done or need.group.follows or need.group.timeout == 0))
        return frozenset(need.write_id for need in waiting)

    # Coming and going

    def lagging(self, need: Need, now: float, position: str) -> Visibility | None:
        """The overload rule: where the known lag exceeds the deadline nobody parks, one prober goes on (BAR)."""
        if need.branch or need.group.follows:
            # A task that is slow says nothing of the replica (BRANCH-14). In dry-run nobody waits, and a record is of
            # what the server said (REC-13).
            return None
        if need.counter < 0:
            crowd = sum(len(needs) for needs in self._others.values())
            if self._timeouts_in_a_row >= _FAILED_IN_A_ROW and crowd:
                return not_yet(f"{self._timeouts_in_a_row} waits in a row timed out there")
            return None
        probe = self.probes.get(need.epoch)
        looking = need.group.timeout == 0  # nobody would wait anyway
        if looking or probe is None or probe[0] > need.counter or need.epoch in self._unknown:
            return None
        behind = now - probe[1]
        if behind <= need.group.timeout:
            return None
        return not_yet(
            f"at {position}, wanted {need.counter}; it lags by more than {behind:.1f} s, longer than the deadline"
        )

    def add(self, need: Need) -> bool:
        """Parks a need; True where an earlier one of the same epoch has to be seen first."""
        need.parked = True
        rides_along = need.late = self._keep(need)
        need.first_round = self._rounds + 1
        if need.group.timeout == 0:
            self.looks.append(need)
            rides_along = False
        self._count(need, 1)
        return rides_along

    def _count(self, need: Need, change: int) -> None:
        self.live += change
        self._followed += change * need.group.follows

    def _keep(self, need: Need) -> bool:
        if need.counter < 0:
            self._others.setdefault(need.write_id, []).append(need)
            return False
        queue = self._ordered.get(need.epoch)
        if queue is None:
            queue = self._ordered[need.epoch] = PositionQueue()
        first = queue.first()
        queue.push(need)
        return first is not None and first.counter <= need.counter and first.answer is not None

    def give_up(self, need: Need) -> None:
        """The barrier's deadline has passed, or it was cancelled; a prober goes on for the least position."""
        if need.done:
            return
        need.group.settle(need, None)
        if not need.parked:
            return
        self._count(need, -1)
        self._timeouts_in_a_row += not (need.branch or need.group.follows)
        if need.counter >= 0 and need.epoch in self._ordered:
            self._ordered[need.epoch].given_up()
        if need.counter >= 0 and not need.group.cancelled:
            probe = self.probes.get(need.epoch)
            if probe is None or need.counter < probe[0]:
                self.probes[need.epoch] = (need.counter, need.since, need.write_id)
        self._forget_other(need)

    def _forget_other(self, need: Need) -> None:
        if need.counter < 0:
            queue = self._others.get(need.write_id, [])
            if need in queue:
                queue.remove(need)
            if not queue:
                self._others.pop(need.write_id, None)

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
        objects = [write_id for write_id in self._others if write_id.store != BRANCHES]
        branches = [write_id for write_id in self._others if write_id.store == BRANCHES]
        others = objects[:_MOST_OBJECTS] + branches[:_MOST_BRANCHES]
        for write_id in others:  # the next round begins with the others
            self._others[write_id] = self._others.pop(write_id)
        return chosen + others

    def _first(self, epoch: str) -> Need | None:
        queue = self._ordered.get(epoch)
        return None if queue is None else queue.first()

    # Answers; each returns the groups that are over

    def answer(
        self, ids: Sequence[WriteId], answers: Iterable[Visibility], applied: Mapping[str, int], now: float
    ) -> list[Group]:
        """Settles what the answers decide, and the proofs that came with them: the server has applied so much."""
        released: list[Group] = []
        for write_id, answer in zip(ids, answers, strict=True):
            if write_id.is_position:
                self._answer_position(write_id, answer, now, released)
            else:
                self._answer_other(write_id, answer, released)
        for epoch, counter in applied.items():
            queue = self._ordered.get(epoch)
            if queue is not None:
                for need in queue.reached(counter):
                    self._settle(need, VISIBLE, released)
            self._drop_probe(epoch, counter)
        if self.looks:
            self._end_looks(released)
        return released

    def answer_all(self, answer: Visibility) -> list[Group]:
        """One answer for whoever waits."""
        released: list[Group] = []
        for need in self._take_all():
            self._settle(need, answer, released)
        return released

    def leave_out(self) -> list[Group]:
        """The server is out: whoever waits goes on without it."""
        released: list[Group] = []
        for need in self._take_all():
            if not need.done:
                need.left_out = True
                self._settle(need, None, released)
        return released

    def _take_all(self) -> list[Need]:
        needs = [need for queue in self._ordered.values() for need in queue]
        needs += [need for queue in self._others.values() for need in queue]
        self._ordered.clear()
        self._others.clear()
        return needs

    def _end_looks(self, released: list[Group]) -> None:
        """Who only looks (`timeout=0`) is answered by the first question that was asked for it (BAR-29)."""
        looks, self.looks = self.looks, []
        for need in looks:
            if need.done:
                continue
            if need.first_round > self._rounds or need.answer is None:  # not asked for, or not answered yet
                self.looks.append(need)
                continue
            self._count(need, -1)
            self._forget_other(need)
            if need.group.settle(need, None):
                released.append(need.group)

    def _drop_probe(self, epoch: str, applied: int) -> None:
        probe = self.probes.get(epoch)
        if probe is not None and probe[0] <= applied:
            del self.probes[epoch]

    def _answer_position(self, write_id: WriteId, answer: Visibility, now: float, released: list[Group]) -> None:
        version = write_id.version
        assert isinstance(version, Ordered)
        epoch, counter = version
        queue = self._ordered.get(epoch) or PositionQueue()
        first = queue.first()
        if answer.verdict is Verdict.VISIBLE:
            # Without a call of `applied` in the same reply this proves no more than what was asked.
            for need in queue.reached(counter):
                self._settle(need, VISIBLE, released)
            self._drop_probe(epoch, counter)
        elif answer.unknown_epoch:
            since = self._unknown.setdefault(epoch, first.since if first is not None else now)
            for need in queue:
                if need.counter < counter:
                    continue  # it came meanwhile; the server may know its epoch up to there (EPOCH-30)
                need.answer = answer
                if now - since >= need.group.timeout:
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

    def _answer_other(self, write_id: WriteId, answer: Visibility, released: list[Group]) -> None:
        needs = self._others.get(write_id, [])
        if answer.verdict is Verdict.NOT_YET:
            for need in needs:
                need.answer = answer
            return
        for need in self._others.pop(write_id, []):
            self._settle(need, answer, released)

    def _settle(self, need: Need, answer: Visibility | None, released: list[Group]) -> None:
        if need.done:
            return
        self._count(need, -1)
        if not need.branch:
            self._timeouts_in_a_row = 0
        need.late = need.late or self._rounds > need.first_round
        if need.group.settle(need, answer):
            released.append(need.group)
