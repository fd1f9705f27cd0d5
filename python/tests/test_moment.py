"""A pass is a picture of one moment: what a server showed, and may have lost while others were waited for (BAR-63)."""

from __future__ import annotations

import asyncio
import threading
import time
from collections.abc import Callable, Sequence
from typing import ClassVar

import antipode
import pytest
from antipode import Lineage, Ordered, WriteId
from antipode._base.settings import settings
from antipode._engine.free_path import free
from antipode._engine.pending_wait import Proof, WaitGroup
from antipode._engine.plan import DEFAULT
from antipode._model.verdict import VISIBLE, Verdict, not_yet
from antipode._store.store import StoreOptions, registry
from antipode.shim import Capabilities, Server, Visibility, join_store
from fakes import FakeShim, Target, fake_store, until
from inner import poller, region_store

STORE = "log"
POSITION = WriteId.position(STORE, "e1", 5)
OBJECT = WriteId(STORE, "k", Ordered("", 5))


class PositionShim(FakeShim):
    capabilities: ClassVar[Capabilities] = Capabilities(versions="position")


class PacedShim(FakeShim):
    own_pace: ClassVar[float] = 0.005


class QuietChannel:
    """A channel that says nothing."""

    def fileno(self) -> int | None:
        return None

    def pump(self) -> None:
        """Nothing comes."""

    def close(self) -> None:
        """Nothing is open."""


class QuietPushShim(PositionShim):
    capabilities: ClassVar[Capabilities] = Capabilities(versions="position", push=True)

    def watch(self, server: Server, on_change: Callable[[], None]) -> QuietChannel:
        return QuietChannel()


class Replica(Target):
    """A server that can lose what it had: pointed at another primary, say."""

    def __init__(self, name: str, applied: int = 0, *, positions: bool = True, slow: float = 0.0) -> None:
        super().__init__(name, self._judge)
        self.applied = applied
        self.positions = positions
        self.slow = slow
        self.asked_at: list[float] = []
        self.server: Server | None = None

    def _judge(self, ids: Sequence[WriteId], server: Server) -> Sequence[Visibility]:
        self.server = server
        self.asked_at.append(time.monotonic())
        applied = self.applied
        time.sleep(self.slow)
        if self.positions:
            server.applied(f"i-{self.name}", "e1", {"e1": applied})
        return [VISIBLE if applied >= 5 else not_yet("behind")] * len(ids)


def two_servers(*, positions: bool = True, slow: float = 0.0) -> tuple[Replica, Replica]:
    """Return one that has the write, and one that has not."""
    antipode.configure(poll=0.005)
    there = Replica("there", 5, positions=positions, slow=slow)
    late = Replica("late", 0, positions=positions, slow=slow)
    fake_store(STORE, there, late, shim=PositionShim if positions else FakeShim)
    return there, late


def waits_for_one(there: Replica, late: Replica) -> bool:
    """Return whether the first one has shown the write, and the other one has said that it has not got it."""
    return there.server is not None and not poller(there.server).waiters.live and len(late.asked_at) >= 2


class Waiting:
    """A barrier in a thread of its own."""

    def __init__(self, write: WriteId, timeout: float, *, require_complete: bool = False) -> None:
        self.result: antipode.BarrierResult | None = None
        self._write, self._timeout, self._require_complete = write, timeout, require_complete
        self._thread = threading.Thread(target=self._run, daemon=True)
        self._thread.start()

    def _run(self) -> None:
        self.result = antipode.barrier(
            Lineage([self._write]),
            timeout=self._timeout,
            on_timeout="proceed",
            require_complete=self._require_complete,
        )

    def end(self) -> antipode.BarrierResult:
        self._thread.join(60)
        assert self.result is not None
        return self.result


def test_what_was_pushed_away_while_another_server_was_waited_for_is_no_pass() -> None:
    """BAR-63: the server has shown it, is pointed elsewhere, and says so by its push."""
    there, late = two_servers()
    waiting = Waiting(POSITION, 2.0)
    until(lambda: waits_for_one(there, late))
    assert there.server is not None
    there.applied = 0
    there.server.reset()
    late.applied = 5
    assert not waiting.end().satisfied
    there.applied = 5
    assert antipode.barrier(Lineage([POSITION]), timeout=60).satisfied


@pytest.mark.parametrize("positions", [True, False])
def test_what_was_lost_in_silence_is_no_pass_once_its_proof_is_old(positions: bool) -> None:
    """BAR-63: nobody pushes; the age of the proof is what has it asked for again."""
    antipode.configure(free_path_ttl=0.05)
    there, late = two_servers(positions=positions)
    waiting = Waiting(POSITION if positions else OBJECT, 3.0)
    until(lambda: waits_for_one(there, late))
    there.applied = 0
    shown_at = there.asked_at[0]
    until(lambda: time.monotonic() > shown_at + 0.1)
    late.applied = 5
    result = waiting.end()
    assert not result.satisfied
    assert [one.verdict for one in result.stores[STORE].servers if one.address == "there"] == [Verdict.TIMED_OUT]
    there.applied = 5
    assert antipode.barrier(Lineage([POSITION if positions else OBJECT]), timeout=60).satisfied


@pytest.mark.parametrize("ttl", [0.0, 0.01])
@pytest.mark.parametrize("positions", [True, False])
def test_one_more_round_is_enough_however_slow_the_link(ttl: float, positions: bool) -> None:
    """BAR-63: ages count from the moment, else every proof would be too old when it arrives."""
    antipode.configure(free_path_ttl=ttl)
    there, late = two_servers(positions=positions, slow=0.1)
    waiting = Waiting(POSITION if positions else OBJECT, 30.0)
    until(lambda: len(late.asked_at) >= 2)
    late.applied = 5
    shown_at = time.monotonic()
    assert waiting.end().satisfied
    assert len([at for at in there.asked_at if at > shown_at]) <= 3, "one under way, one more, and the engine's own"


def test_a_server_alone_is_asked_once() -> None:
    """BAR-63: its own answer is the moment."""
    antipode.configure(free_path_ttl=0)
    alone = Replica("alone", 5)
    fake_store(STORE, alone, shim=PositionShim)
    assert antipode.barrier(Lineage([POSITION]), timeout=60).satisfied
    assert len(alone.asked_at) <= 2, "or once more, by a poke that came late"


def test_an_answer_is_as_old_as_its_question() -> None:
    """BAR-34, BAR-63: what was long on its way may be gone when it arrives."""
    antipode.configure(free_path_ttl=0.5)
    slow = Replica("slow", 5, slow=0.3)
    fake_store(STORE, slow, shim=PositionShim)
    assert antipode.barrier(Lineage([POSITION]), timeout=60).satisfied
    [server] = registry().need(STORE).servers()
    asked_at = slow.asked_at[0]
    assert poller(server).holds("e1", 5, asked_at + 0.49)
    assert not poller(server).holds("e1", 5, asked_at + 0.52)


def test_complete_and_region_wants_one_instant_within_the_call() -> None:
    """BAR-64: each server shows it once more behind the last of them."""
    antipode.configure(free_path_ttl=60)
    there, late = two_servers()
    waiting = Waiting(POSITION, 60.0, require_complete=True)
    until(lambda: len(late.asked_at) >= 1)
    late.applied = 5
    assert waiting.end().satisfied
    assert len(late.asked_at) >= 2
    assert there.asked_at[-1] > late.asked_at[-2]
    called_at = time.monotonic()
    assert antipode.barrier(Lineage([POSITION]), timeout=60, require_complete=True).satisfied
    assert there.asked_at[-1] > called_at
    assert late.asked_at[-1] > called_at


def test_a_look_does_the_same() -> None:
    """BAR-29, BAR-63."""
    antipode.configure(free_path_ttl=0)
    there, late = two_servers()
    late.applied = 5
    assert antipode.barrier(Lineage([POSITION]), timeout=0).satisfied
    there.applied = 0
    assert not antipode.barrier(Lineage([POSITION]), timeout=0, on_timeout="proceed").satisfied


def test_tasks_are_released_by_the_same_rule() -> None:
    """BAR-32, BAR-63."""

    async def wait() -> antipode.BarrierResult:
        return await antipode.barrier_async(Lineage([POSITION]), timeout=2.0, on_timeout="proceed")

    async def run() -> list[antipode.BarrierResult]:
        waiting = [asyncio.create_task(wait()) for _ in range(20)]
        while not waits_for_one(there, late):
            await asyncio.sleep(0.001)
        assert there.server is not None
        there.applied = 0
        there.server.reset()
        late.applied = 5
        return await asyncio.gather(*waiting)

    there, late = two_servers()
    assert not any(result.satisfied for result in asyncio.run(run()))
    assert registry().need(STORE).parked_tasks == 0


def test_objects_that_are_asked_for_in_turns_pass() -> None:
    """BAR-63: a round that says nothing of an object does not say that it is gone, so the moment stays."""
    antipode.configure(poll=0.005, free_path_ttl=0)
    objects = [WriteId(STORE, key, Ordered("", 5)) for key in ("k", "l", "m")]
    turn = 0

    def answer(ids: Sequence[WriteId], server: Server) -> Sequence[Visibility]:
        nonlocal turn
        turn += 1
        asked = objects[turn % 3]
        return [VISIBLE if each == asked else not_yet("it is not its turn", unanswered=True) for each in ids]

    fake_store(STORE, Target("paced", answer), shim=PacedShim)
    assert antipode.barrier(Lineage(objects), timeout=30).satisfied


def test_a_server_that_is_silent_for_a_while_makes_another_moment() -> None:
    """BAR-63: what the other one showed before may be gone when it speaks again."""
    antipode.configure(free_path_ttl=0)
    there, late = two_servers(positions=False)

    def loads(ids: Sequence[WriteId], server: Server) -> Sequence[Visibility]:
        late.applied = 0  # it loses what it has shown, in silence
        there.answer = there._judge
        return [not_yet("it is loading", unanswered=True)] * len(ids)

    waiting = Waiting(OBJECT, 2.0)
    until(lambda: waits_for_one(there, late))
    there.answer = loads
    late.applied = 5
    assert not waiting.end().satisfied


def test_an_answer_that_proves_no_position_is_none_of_an_earlier_one() -> None:
    """BAR-33, BAR-63: the server is loading other data, and has shown the write before."""
    antipode.configure(free_path_ttl=0)
    there, late = two_servers()

    def loads(ids: Sequence[WriteId], server: Server) -> Sequence[Visibility]:
        return [not_yet("it is loading", unanswered=True)] * len(ids)

    waiting = Waiting(POSITION, 0.5)
    until(lambda: waits_for_one(there, late))
    there.answer = loads
    late.applied = 5
    assert not waiting.end().satisfied
    there.answer = there._judge
    assert antipode.barrier(Lineage([POSITION]), timeout=60).satisfied


def test_the_proof_that_is_kept_is_of_the_servers_of_the_end() -> None:
    """BAR-35, BAR-36, BAR-65: one joined when the other one had been asked."""
    antipode.configure(free_path_ttl=60)
    there, late = Replica("there", 5), Replica("late", 0)
    found = [there]

    def join(ids: Sequence[WriteId], server: Server) -> Sequence[Visibility]:
        answers = there._judge(ids, server)
        found.append(late)
        for source in list(region_store(server.store)._discoveries.values()):
            source.attempt()
        return answers

    there.answer = join
    join_store(STORE, PositionShim, StoreOptions(replicas=lambda: list(found)))
    with antipode.scope(Lineage([POSITION])):
        assert not antipode.barrier(timeout=0.2, on_timeout="proceed").satisfied
        late.applied = 5
        there.answer = there._judge
        assert antipode.barrier(timeout=60).satisfied
        asked = late.server
        assert asked is not None
        assert free(DEFAULT) is not None
        asked.reset()
        assert free(DEFAULT) is None


def test_servers_stand_together_however_often_they_are_connected_anew() -> None:
    """BAR-55, BAR-63: a connection lives for several questions, else each would be of another generation."""
    antipode.configure(free_path_ttl=0, reconnect=0.1)
    _, late = two_servers(slow=0.15)
    late.applied = 5
    assert antipode.barrier(Lineage([POSITION]), timeout=20, require_complete=True).satisfied


class _Parking:
    """A server of which only the generation counts."""

    def __init__(self) -> None:
        self.generation = 0
        self.parked: list[object] = []
        self.meanwhile: Callable[[], object] = lambda: None
        self.kept: Proof | None = None

    def kept_proof(self, epoch: str, counter: int, since: float) -> Proof | None:
        return None if self.kept is None or self.kept.asked_at < since else self.kept

    def park(self, need: object) -> bool:
        self.parked.append(need)
        return bool(self.meanwhile())


def _group(servers: Sequence[_Parking]) -> tuple[WaitGroup, list[object]]:
    released: list[object] = []
    group = WaitGroup(1.0, lambda: released.append(1), None)
    for server in servers:
        group.add(POSITION, server)  # type: ignore[arg-type]
    assert group.parked()
    return group, released


def test_the_deadline_looks_for_itself() -> None:
    """BAR-63: all is settled, nobody has looked yet if it stands, and the deadline comes."""
    first, second = _Parking(), _Parking()
    group, _ = _group([first, second])
    now = time.monotonic()
    assert not group.settle(group.needs[0], VISIBLE, Proof(now, 0))
    first.generation += 1
    assert group.settle(group.needs[1], VISIBLE, Proof(now, 0))
    assert group.end() == [group.needs[0]]
    answers = [need.answer.verdict for need in group.needs if need.answer is not None]
    assert answers == [Verdict.NOT_YET, Verdict.VISIBLE]
    assert not group.conclude(), "and nobody is woken behind it"


def test_one_that_ended_and_was_not_woken_is_looked_at_by_the_deadline() -> None:
    """BAR-61, BAR-63: a fault of our own came between the last answer and the waking."""
    first, second = _Parking(), _Parking()
    group, released = _group([first, second])
    group.has_waited = True
    now = time.monotonic()
    for need in group.needs:
        group.settle(need, VISIBLE, Proof(now, 0))
    assert group.end_settled()
    assert not released
    second.generation += 1
    assert group.end() == [group.needs[1]]


def test_a_place_that_is_refused_says_so_and_nothing_else() -> None:
    """BAR-39, BAR-64: what would only have had to be shown once more is no late write."""
    antipode.configure(max_waiters=1, free_path_ttl=60)
    other = WriteId.position("other", "e1", 5)
    fake_store("other", Replica("one", 5), Replica("two", 5), shim=PositionShim)
    _, late = two_servers()
    assert antipode.barrier(Lineage([other]), timeout=60).satisfied
    waiting = Waiting(POSITION, 60.0)
    until(lambda: registry().need(STORE).parked_threads == 1)
    with pytest.raises(antipode.BarrierIncomplete) as refused:
        antipode.barrier(Lineage([other, POSITION]), timeout=30, require_complete=True, on_timeout="proceed")
    told = {name: store.reason for name, store in refused.value.result.stores.items()}
    assert "overloaded" in told[STORE]
    assert "gone again" not in str(told)
    late.applied = 5
    assert waiting.end().satisfied


def test_a_server_that_proves_nothing_is_asked_for_a_sign_of_life_in_its_time() -> None:
    """BAR-38: it answers without a position, as one does that loads its data."""
    antipode.configure(poll=0.005, free_path_ttl=0.25)
    store = Replica("there", 5)
    fake_store(STORE, store, shim=QuietPushShim)
    assert antipode.barrier(Lineage([POSITION]), timeout=60).satisfied
    store.answer = lambda ids, server: [not_yet("it is loading", unanswered=True)] * len(ids)
    asked = store.asked
    until(lambda: store.asked > asked)
    asked, began = store.asked, time.monotonic()
    time.sleep(1)
    assert (store.asked - asked) / (time.monotonic() - began) <= 100, "8 a second are wanted"


def test_what_comes_behind_the_deadline_changes_nothing() -> None:
    """BAR-63: nobody would look if it stands."""
    group, _ = _group([_Parking(), _Parking()])
    for need in group.end():
        assert not group.settle(need, VISIBLE, Proof(time.monotonic(), 0))
        assert need.done
        assert need.answer is None


def test_what_does_not_stand_is_opened_once_and_asked_for_at_once() -> None:
    """BAR-63, Reopen.tla: the copy is compared, and the moment is another one."""
    first, second = _Parking(), _Parking()
    group, _ = _group([first, second])
    now = time.monotonic()
    group.settle(group.needs[0], VISIBLE, Proof(now, 0))
    first.generation += 1
    assert group.settle(group.needs[1], VISIBLE, Proof(now, 0))
    assert not group.conclude()
    assert first.parked == [group.needs[0]]
    assert second.parked == []
    assert not group.needs[0].repeats, "its data may be others"
    assert group.settle(group.needs[0], VISIBLE, Proof(now + 10, 1))
    assert not group.conclude(), "the other's proof is older than the moment allows"
    assert second.parked == [group.needs[1]]
    assert group.needs[1].repeats
    assert group.settle(group.needs[1], VISIBLE, Proof(now + 10 - settings().free_path_ttl / 2, 0))
    assert group.conclude()
    assert not group.conclude(), "whoever comes first releases"


@pytest.mark.parametrize(
    ("age", "generation", "stands"),
    [(0.5, 0, True), (1.5, 0, False), (0.5, 1, False)],
    ids=["in time", "too old", "of data that are gone"],
)
def test_a_later_answer_to_others_stands_for_a_proof_that_is_too_old(age: float, generation: int, stands: bool) -> None:
    """BAR-63: a server that a push keeps fresh is not asked again for each barrier that waited for another one."""
    first, second = _Parking(), _Parking()
    group, _ = _group([first, second])
    now = time.monotonic()
    group.settle(group.needs[0], VISIBLE, Proof(now, 0))
    first.kept = Proof(now + 10 - age * settings().free_path_ttl, 0)
    first.generation = generation
    assert group.settle(group.needs[1], VISIBLE, Proof(now + 10, 0))
    assert group.conclude() is stands
    assert bool(first.parked) is not stands
    assert second.parked == []


def test_two_threads_that_look_at_once_open_a_need_once() -> None:
    """BAR-63: the one that was opened first is settled again, and its thread looks, before the other one is opened."""
    first, second = _Parking(), _Parking()
    group, _ = _group([first, second])
    now = time.monotonic()

    def settle_the_first() -> None:
        assert group.settle(group.needs[0], VISIBLE, Proof(now, 1))
        assert not group.conclude()

    group.settle(group.needs[0], VISIBLE, Proof(now, 0))
    assert group.settle(group.needs[1], VISIBLE, Proof(now, 0))
    first.generation = second.generation = 1
    first.meanwhile = settle_the_first
    assert not group.conclude()
    assert second.parked == [group.needs[1]]
    assert group.settle(group.needs[1], VISIBLE, Proof(now, 1))
    assert group.conclude()


def test_a_lone_need_that_is_settled_at_once_when_it_is_opened_ends_the_barrier() -> None:
    """BAR-63: it went stale while the barrier was still parking, and a later proof is at hand."""
    server = _Parking()
    group = WaitGroup(1.0, lambda: None, None)
    need = group.add(POSITION, server)  # type: ignore[arg-type]
    now = time.monotonic()
    assert not group.settle(need, VISIBLE, Proof(now, 0))
    server.generation = 1
    server.meanwhile = lambda: group.settle(need, VISIBLE, Proof(now, 1, is_kept=True))
    assert not group.parked(), "nothing is to be waited for"
    assert group.end() == []
