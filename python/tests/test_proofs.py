"""What a server has proved, and for how long; and that nothing is kept for those that wait no more (BAR-33, BAR-39)."""

from __future__ import annotations

import threading
import time
from collections.abc import Sequence
from datetime import timedelta
from typing import ClassVar

import antipode
import pytest
from antipode import Lineage, Ordered, WriteId
from antipode._engine.pending_wait import PendingWait, Proof, WaitGroup
from antipode._engine.position_queue import PositionQueue
from antipode._engine.wait_queue import WaitQueue
from antipode._model.verdict import VISIBLE, not_yet
from antipode._store.store import registry
from antipode.shim import Capabilities, Server, Visibility
from fakes import FakeShim, Target, fake_store
from inner import poller

STORE = "log"


class PositionShim(FakeShim):
    capabilities: ClassVar[Capabilities] = Capabilities(versions="position")


class WaitingShim(PositionShim):
    """One with the store's own wait, which here comes back at once."""

    capabilities: ClassVar[Capabilities] = Capabilities(versions="position", blocking_wait=True)

    def wait(self, ids: Sequence[WriteId], server: Server, timeout: float) -> Sequence[Visibility]:
        return self.visible(ids, server)


class Replaced(Target):
    """A server whose data are replaced while its answer is on the way, so many times, as a push says."""

    def __init__(self, times: int = 0) -> None:
        super().__init__("log-1", self._judge)
        self.times = times
        self.after = VISIBLE
        """What is true of the data that came in their place; until then whatever is asked for was there."""

    def _judge(self, ids: Sequence[WriteId], server: Server) -> Sequence[Visibility]:
        answer = VISIBLE if self.times else self.after
        if self.times:
            self.times -= 1
            pushed = threading.Thread(target=server.reset)  # a channel's own thread
            pushed.start()
            pushed.join()
        if answer is VISIBLE:  # it comes only now
            server.applied("i1", "e1", {"e1": 10})
        return [answer] * len(ids)


POSITION = WriteId.position(STORE, "e1", 5)
OBJECT = WriteId(STORE, "k", Ordered("", 1))
SHIMS = pytest.mark.parametrize(
    ("shim", "wanted"), [(PositionShim, POSITION), (WaitingShim, POSITION), (FakeShim, OBJECT)]
)


@SHIMS
def test_an_answer_that_was_overtaken_settles_nobody(shim: type[FakeShim], wanted: WriteId) -> None:
    """BAR-33: what was there before the data were replaced may not be there now."""
    target = Replaced(times=1)
    target.after = not_yet("behind")
    fake_store(STORE, target, shim=shim)
    [server] = registry().need(STORE).servers()
    with pytest.raises(antipode.BarrierTimeout):
        antipode.barrier(Lineage([wanted]), timeout=0.3)
    assert target.times == 0
    assert not poller(server).holds("e1", 5, time.monotonic())


@SHIMS
def test_what_was_overtaken_is_asked_again_at_once(shim: type[FakeShim], wanted: WriteId) -> None:
    antipode.configure(poll=timedelta(seconds=30))
    target = Replaced(times=1)
    fake_store(STORE, target, shim=shim)
    assert antipode.barrier(Lineage([wanted]), timeout=5).satisfied
    assert 2 <= target.asked <= 3, "or once more, by a poke that came late"


@SHIMS
def test_who_only_looks_is_answered_by_what_was_asked_again(shim: type[FakeShim], wanted: WriteId) -> None:
    target = Replaced(times=1)
    fake_store(STORE, target, shim=shim)
    assert antipode.barrier(Lineage([wanted]), timeout=0).satisfied
    assert 2 <= target.asked <= 3, "or once more, by a poke that came late"


@SHIMS
def test_a_server_whose_answers_are_all_overtaken_is_asked_at_the_pace_of_a_poll(
    shim: type[FakeShim], wanted: WriteId
) -> None:
    antipode.configure(poll=timedelta(milliseconds=20))
    target = Replaced(times=1_000_000)
    fake_store(STORE, target, shim=shim)
    with pytest.raises(antipode.BarrierTimeout):
        antipode.barrier(Lineage([wanted]), timeout=1)
    assert 2 <= target.asked <= 40, "two a poll, and the interval doubles"
    target.times = 0
    assert antipode.barrier(Lineage([wanted]), timeout=5).satisfied


def test_an_answer_from_before_the_data_were_replaced_proves_nothing_for_later() -> None:
    antipode.configure(free_path_ttl=timedelta(seconds=60))
    target = Replaced()
    fake_store(STORE, target, shim=PositionShim)
    lineage = Lineage([POSITION])
    [server] = registry().need(STORE).servers()
    assert antipode.barrier(lineage, timeout=5).satisfied
    assert poller(server).holds("e1", 5, time.monotonic())
    target.times = 1_000_000
    server.reset()
    with pytest.raises(antipode.BarrierTimeout):
        antipode.barrier(lineage, timeout=0.1)
    assert not poller(server).holds("e1", 5, time.monotonic())
    target.times = 0
    assert antipode.barrier(lineage, timeout=5).satisfied
    assert poller(server).holds("e1", 5, time.monotonic())


def test_needs_that_were_given_up_do_not_pile_up_behind_one_that_waits() -> None:
    """A lineage may hold forged positions that never come, each behind the one before."""
    fake_store(STORE, Replaced(), shim=PositionShim)
    [server] = registry().need(STORE).servers()
    queue = PositionQueue()

    def need(counter: int) -> PendingWait:
        return PendingWait(WriteId.position(STORE, "e1", counter), poller(server), WaitGroup(1.0, lambda: None, None))

    first = need(1)
    queue.push(first)
    for counter in range(2, 10_000):
        late = need(counter)
        queue.push(late)
        late.done = True
        queue.given_up()
    assert queue.first() is first
    assert queue._size < 200
    assert list(queue.reached(10_000)) == [first]


def test_needs_come_out_by_position_and_then_as_they_came() -> None:
    """BAR-41: those up to the one that is reached and nobody else; who stops on the way leaves the others there."""
    fake_store(STORE, Replaced(), shim=PositionShim)
    [server] = registry().need(STORE).servers()
    group, queue = WaitGroup(1.0, lambda: None, None), PositionQueue()
    needs = [
        PendingWait(WriteId.position(STORE, "e1", counter), poller(server), group) for counter in (3, 1, 2, 1, 3, 1)
    ]
    for need in needs:
        queue.push(need)
    needs[3].done = True
    assert next(queue.reached(2)) is needs[1]
    assert queue.first() is needs[5]
    assert list(queue.reached(2)) == [needs[5], needs[2]]
    assert queue.from_counter(4) == []
    assert set(queue) == {needs[0], needs[4]}
    assert queue.from_counter(3) == [needs[0], needs[4]]
    assert queue.first() is None


def test_what_is_said_of_a_position_says_nothing_of_those_before_it() -> None:
    """EPOCH-13, EPOCH-30: a server may have an epoch up to a hole; who waits for less came after the question."""
    fake_store(STORE, Target("log-1", lambda ids, server: []), shim=PositionShim)
    [server] = registry().need(STORE).servers()
    waiters = WaitQueue()

    def parked(counter: int) -> PendingWait:
        need = WaitGroup(0.1, lambda: None, None).add(WriteId.position(STORE, "e1", counter), poller(server))
        waiters.add(need, 0.0)
        return need

    late = time.monotonic() + 60
    beyond, further = parked(17), parked(20)
    asked = waiters.choose(late, late)
    before = parked(4)
    waiters.answer(
        asked, [not_yet("has e1 up to 13, and another went on", unknown_epoch=True)], {}, late, Proof(late, 0)
    )
    assert [need.done for need in (beyond, further, before)] == [True, True, False]
    assert before.answer is None
    waiters.answer(waiters.choose(late, late), [VISIBLE], {}, late, Proof(late, 0))
    assert before.answer is VISIBLE


def test_an_epoch_is_unknown_since_the_server_said_so() -> None:
    """EPOCH-13: and not since somebody began to wait, at another server perhaps, whose deadline is longer."""
    fake_store(STORE, Target("log-1", lambda ids, server: []), shim=PositionShim)
    [server] = registry().need(STORE).servers()
    waiters, now = WaitQueue(), time.monotonic()
    unknown = not_yet("it does not know e1", unknown_epoch=True)

    def parked(timeout: float, since: float) -> PendingWait:
        need = WaitGroup(timeout, lambda: None, None, since).add(WriteId.position(STORE, "e1", 1), poller(server))
        waiters.add(need, 0.0)
        return need

    def over(at: float) -> list[bool]:
        waiters.answer(waiters.choose(at, at), [unknown], {}, at, Proof(at, 0))
        return [need.done for need in needs]

    needs = [parked(60.0, now - 50)]
    assert over(now) == [False]
    needs.append(parked(5.0, now))
    assert over(now + 4) == [False, False]
    assert over(now + 5) == [False, True]
    assert over(now + 10) == [True, True], "its whole deadline has passed"
