"""Barriers over open branches: rounds, leases, what is looked at and where, and what never passes (spec BRANCH)."""

from __future__ import annotations

import asyncio
import threading
import time
from collections.abc import Mapping, Sequence
from concurrent.futures import ThreadPoolExecutor
from typing import Any

import antipode
import pytest
from antipode import BarrierIncomplete, BarrierTimeout, BarrierUnproven, Lineage, WriteId
from antipode._engine import server
from antipode._engine.branch_lookup import look_for
from antipode._model.branch_ids import BRANCHES, BranchId
from antipode._model.verdict import UnprovenKind, unproven
from antipode.memory import MemoryShim
from antipode.shim import Server
from branching import World, eventually, look, open_branch, reason, verdict
from fakes import Target, always, fake_store
from inner import region_store
from scopes import at, positions


@pytest.fixture
def world() -> World:
    return World()


class Questions:
    """How often servers were asked for rows, and for how many at once."""

    def __init__(self, monkeypatch: pytest.MonkeyPatch) -> None:
        self.asked: list[tuple[str, int]] = []
        plain = MemoryShim.find_branches

        def counted(shim: MemoryShim, ids: Sequence[str], server: Server) -> Mapping[str, str]:
            self.asked.append((server.address, len(ids)))
            return plain(shim, ids, server)

        monkeypatch.setattr(MemoryShim, "find_branches", counted)


def later(run: Any, *args: Any, after: float = 0.15) -> threading.Thread:
    def wait() -> None:
        time.sleep(after)
        run(*args)

    thread = threading.Thread(target=wait)
    thread.start()
    return thread


def test_a_barrier_waits_for_the_task_and_then_for_what_it_wrote(world: World) -> None:
    """BRANCH-12."""
    task, mine = world.hand_over()
    world.posts.freeze("b")
    thread = later(world.run, task)
    result = look(mine, 1.0)
    thread.join(30)
    assert str(result.stores["posts"].verdict) == "timed_out"
    assert BRANCHES not in result.stores
    assert 0.9 < result.waited < 1.5
    world.posts.heal("b")
    assert eventually(mine).complete


def test_what_is_not_named_is_resolved_all_the_same(world: World) -> None:
    """BRANCH-17."""
    task, mine = world.hand_over()
    assert verdict(look(mine, 0.1, stores=["posts"])) == "timed_out"
    assert verdict(look(mine, 0.0, stores=["posts"])) == "not_yet"
    world.posts.freeze("b")
    world.run(task)
    assert str(look(mine, 0.2, stores=["posts"]).stores["posts"].verdict) == "timed_out"
    assert eventually(mine, stores=["orders"]).complete
    with (
        pytest.raises(BarrierTimeout, match=r"antipode-branches is not visible .* still open") as raised,
        antipode.scope(),
    ):
        antipode.barrier(Lineage([open_branch().write_id]), timeout=0.05)
    assert raised.value.code == raised.value.result.stores[BRANCHES].code == "AP210"  # OBS-15


def test_the_code_of_an_error_is_that_of_the_first_store_by_name(world: World) -> None:
    """OBS-15: branches have a name like stores."""
    fake_store("a-store", Target("a-store", always(unproven("the test says so", UnprovenKind.RIGHT))))
    fake_store("b-store", Target("b-store", always(unproven("the test says so", UnprovenKind.UNFIT))))
    nowhere = open_branch()._replace(store="nowhere").write_id
    lost = {name: WriteId.position(name, "e", 1) for name in ("a-store", "b-store")}
    for names, code in ((["a-store", "b-store"], "AP203"), (["b-store"], "AP299")):
        with pytest.raises(BarrierUnproven) as raised:
            antipode.barrier(Lineage([nowhere, *(lost[name] for name in names)]), timeout=20)
        assert raised.value.code == code


def test_a_close_that_the_replica_has_not_got_is_still_open(world: World) -> None:
    """BRANCH-13."""
    task, mine = world.hand_over()
    world.orders.freeze("b")
    region_store(antipode.stores()[0])._own.clear()  # a process of region b, which reads there alone
    antipode.stores()[0].generation += 1
    with antipode.message_scope(task):
        world.posts_a.set("p", "1")
        world.orders.close_row(b"antipode:branch:" + antipode.current_scope().tasks[0].id.encode(), b"1", 60.0)  # type: ignore[union-attr]
    assert verdict(look(mine, 0.2)) == "timed_out"
    world.orders.heal("b")
    assert eventually(mine).complete


def test_a_closed_branch_gives_its_place_to_its_lineage(world: World) -> None:
    """BRANCH-12, and LIN-24."""
    task, mine = world.hand_over()
    world.run(task)
    with antipode.message_scope(mine) as scope:
        assert antipode.barrier(timeout=10).complete
        assert list(scope.lineage.stores) == ["posts"]
        assert list(scope.additions().stores) == ["posts"]
        assert antipode.barrier(timeout=0).complete
    with antipode.message_scope(mine) as scope:
        scope.remove("posts")
        assert antipode.barrier(timeout=10).complete
        assert not scope.lineage.stores
    with antipode.scope() as scope:  # a lineage that is given is not the scope's
        assert antipode.barrier(antipode.deserialize(mine), timeout=10).complete
        assert not scope.lineage


def test_a_hundred_nested_branches_end_in_one_barrier(world: World) -> None:
    """BRANCH-12: each task hands over the next, and closes at once."""
    task, first = world.hand_over()
    for depth in range(100):
        with antipode.message_scope(task):
            world.posts_a.set(f"p{depth}", "1")
            if depth < 99:
                with antipode.branch(within=30):
                    task = antipode.serialize()
            antipode.close()
    began = time.monotonic()
    branch_table_of_another_process()
    with antipode.scope(antipode.deserialize(first)) as scope:
        assert antipode.barrier(timeout=10).complete
        assert {write_id.store for write_id in scope.lineage} == {"posts"}
    assert time.monotonic() - began < 5
    world.posts.freeze("b")
    task, mine = world.hand_over()
    world.run(task)
    assert not look(mine, 0.1).satisfied


def branch_table_of_another_process() -> None:
    from antipode._store.branch_table import CLOSED

    CLOSED._held.clear()


def test_a_nested_one_that_never_closes_ends_with_the_deadline(world: World) -> None:
    task, first = world.hand_over()
    for depth in range(100):
        with antipode.message_scope(task):
            with antipode.branch(within=30):
                task = antipode.serialize()
            if depth < 99:
                antipode.close()
    result = look(first, 1.0)
    assert verdict(result) == "timed_out"
    assert 0.9 < result.waited < 30


def test_branches_that_name_each_other_end(world: World) -> None:
    one, two = open_branch(name="1" * 32), open_branch(name="2" * 32)
    for branch, other in ((one, two), (two, one)):
        text = Lineage([other.write_id, branch.write_id]).serialize()
        world.orders.close_row(b"antipode:branch:" + branch.id.encode(), text.encode(), 60.0)
    assert eventually(Lineage([one.write_id])).complete


def test_tasks_that_wait_for_each_other_end_with_their_deadlines(world: World) -> None:
    """A circle that the application made: nobody passes, nobody hangs."""
    (one, waits_one), (two, waits_two) = world.hand_over(), world.hand_over()
    with ThreadPoolExecutor(2) as pool:

        def wait(task: str, other: str) -> bool:
            with antipode.message_scope(task) as scope:
                scope.transfer(antipode.deserialize(other))
                return antipode.barrier(timeout=0.5, on_timeout="proceed").satisfied

        results = [pool.submit(wait, one, waits_two), pool.submit(wait, two, waits_one)]
        assert [each.result(30) for each in results] == [False, False]


# Leases


def test_a_task_that_died_is_waited_for_until_its_lease_ends_and_then_never_again(world: World) -> None:
    """BRANCH-15."""
    task, mine = world.hand_over(within=0.2)
    result = look(mine, 10.0)
    assert verdict(result) == "unproven"
    assert "abandoned" in reason(result)
    assert 1.0 < result.waited < 3
    result = look(mine, 10.0)
    assert verdict(result) == "unproven"
    assert result.waited < 1
    with pytest.raises(BarrierUnproven, match="run it again"), antipode.scope(antipode.deserialize(mine)):
        antipode.barrier()
    world.run(task)  # late, and all the same what the task wrote
    assert eventually(mine).complete


@pytest.mark.parametrize("skew", [-3600.0, -2.0, 2.0, 3600.0])
def test_clocks_that_differ_cost_time_and_never_a_false_pass(
    world: World, monkeypatch: pytest.MonkeyPatch, skew: float
) -> None:
    """BRANCH-15: a reader whose clock is ahead gives up sooner, one behind waits for its deadline."""
    task, mine = world.hand_over(within=0.5)
    now = time.time
    monkeypatch.setattr("antipode._model.branch_ids.time.time", lambda: now() + skew)
    result = look(mine, 0.3)
    assert verdict(result) == ("unproven" if skew > 0 else "timed_out")
    assert result.waited < 1
    world.posts.freeze("b")
    world.run(task)
    assert not look(mine, 0.2).satisfied
    world.posts.heal("b")
    assert eventually(mine).complete


def test_a_lease_that_nobody_may_give_is_not_waited_for(world: World) -> None:
    """BRANCH-15."""
    result = look(Lineage([open_branch(lease=24 * 3600 + 120).write_id]), 5.0)
    assert verdict(result) == "unproven"
    assert result.waited < 1
    assert "24 hours" in reason(result)


def test_what_is_long_past_is_incomplete_and_asked_of_nobody(world: World, monkeypatch: pytest.MonkeyPatch) -> None:
    """BRANCH-16."""
    questions = Questions(monkeypatch)
    old = Lineage([open_branch(lease=-24 * 3600 - 10).write_id])
    result = look(old, 5.0)
    assert result.satisfied
    assert not result.complete
    assert not questions.asked
    assert [gap.reason for gap in result.gaps] == ["branch"]
    with pytest.raises(BarrierIncomplete), antipode.scope(old):
        antipode.barrier(require_complete=True)


# Who can be asked


def test_what_cannot_be_looked_up_is_unproven_and_named(world: World) -> None:
    """BRANCH-17, BRANCH-18."""
    positions("plain")
    odd = WriteId(BRANCHES, b"odd", antipode.Opaque("m"))
    for entry, words in (
        (open_branch("payments").write_id, "has not registered payments"),
        (open_branch("plain").write_id, "kind positions"),
        (odd, "no branch"),
    ):
        for stores in (None, ["posts"]):
            result = look(Lineage([entry]), 1.0, stores=stores)
            assert verdict(result) == "unproven"
            assert words in reason(result)
            assert not result.vacuous
            assert result.waited < 0.5


def test_a_mark_for_branches_counts_in_every_barrier(world: World) -> None:
    """BRANCH-19."""
    result = look(f"1~_.i.{BRANCHES}", stores=["posts"])
    assert result.satisfied
    assert not result.complete
    with antipode.scope() as scope:
        antipode.configure(budget_bytes=150)
        with antipode.branch(within=30):
            for _ in range(4):
                antipode.serialize()
        text = str(antipode.messages.outgoing_message())
        assert text == "1~_.i", "the name would take more than an eighth of the budget (WIRE-34)"
        assert len(scope.lineage) == 4


def test_a_server_that_is_down_is_not_the_last_word(world: World) -> None:
    """BRANCH-13: any server of the region will do."""
    task, mine = world.hand_over()
    world.run(task)
    branch_table_of_another_process()
    antipode.configure(replica_out_after=0.2)
    world.orders.register("a")
    assert eventually(mine).satisfied
    branch_table_of_another_process()
    world.orders.stop("b")
    assert eventually(mine, stores=["posts"]).satisfied
    branch_table_of_another_process()
    world.orders.stop("a")
    result = look(mine, 1.0, stores=["posts"])
    assert not result.satisfied
    assert verdict(result) in ("unproven", "timed_out")
    assert result.waited < 2


def test_many_barriers_ask_as_one(world: World, monkeypatch: pytest.MonkeyPatch) -> None:
    """BRANCH-14: 120 branches in one question, and 40 barriers with one poller."""
    questions = Questions(monkeypatch)
    with antipode.scope():
        with antipode.branch(within=30) as block:
            tasks = [antipode.serialize() for _ in range(120)]
        lineage = antipode.deserialize(Lineage([branch.write_id for branch in block.announced]).serialize())
    whole = Lineage([branch.write_id for branch in block.announced])
    assert verdict(look(whole)) == "not_yet"
    assert sum(count for _, count in questions.asked) >= 120
    assert len(questions.asked) <= 3  # the engine may have begun with those that came first
    questions.asked.clear()
    some = Lineage([branch.write_id for branch in block.announced[:30]])
    with ThreadPoolExecutor(40) as pool:
        results = [pool.submit(look, some, 10.0) for _ in range(40)]
        time.sleep(0.5)
        for task in tasks[:30]:
            world.run(task)
        assert all(result.result(30).satisfied for result in results)
    assert len(questions.asked) < 200
    assert not lineage.is_complete()  # of 120 a text has no place for all, and says so


def test_a_slow_task_says_nothing_of_the_replica(world: World) -> None:
    """BRANCH-14: the overload rule is for stores that lag."""
    _, mine = world.hand_over()
    for _ in range(6):
        assert verdict(look(mine, 0.02)) == "timed_out"
    task, other = world.hand_over()
    with ThreadPoolExecutor(1) as pool:
        parked = pool.submit(look, mine, 2.0)
        thread = later(world.run, task, after=0.3)
        assert eventually(other, 5.0).complete
        thread.join(30)
        assert not parked.result(30).satisfied


def test_waits_on_read_look_at_writes_alone(world: World) -> None:
    """BRANCH-20."""
    _, mine = world.hand_over()
    reader = world.posts.client("b", wait_on_read=True)
    world.posts.put("p", "1")
    with antipode.scope(antipode.deserialize(mine)):
        assert reader.get("p") == b"1"


def test_the_awaitable_form_is_the_same(world: World) -> None:
    """BRANCH-12, BAR-32: many barriers of one loop, one of them cancelled."""
    task, mine = world.hand_over()

    async def one() -> bool:
        with antipode.scope(antipode.deserialize(mine)):
            return (await antipode.barrier_async(timeout=10)).complete

    async def main() -> list[bool]:
        waiting = [asyncio.create_task(one()) for _ in range(20)]
        cancelled = asyncio.create_task(one())
        await asyncio.sleep(0.1)
        cancelled.cancel()
        await asyncio.to_thread(world.run, task)
        done = await asyncio.gather(*waiting)
        with pytest.raises(asyncio.CancelledError):
            await cancelled
        return done

    assert asyncio.run(main()) == [True] * 20


def test_as_many_barriers_as_are_allowed_wait_for_branches_too(world: World) -> None:
    """BAR-39."""
    _, mine = world.hand_over()
    antipode.configure(max_waiters=0)
    result = look(mine, 5.0)
    assert verdict(result) == "timed_out"
    assert result.waited < 1


def test_a_branch_that_nobody_could_look_up_is_not_called_abandoned(
    world: World, monkeypatch: pytest.MonkeyPatch
) -> None:
    """BAR-39, BRANCH-15: its task may have closed it in time."""
    mine = Lineage([open_branch(lease=-10.0).write_id])
    antipode.configure(max_waiters=0)
    answers = threading.Event()

    def look_late(*question: Any) -> Any:
        answers.wait(60)  # else its answer may be there before the barrier looks for a place
        return look_for(*question)

    monkeypatch.setattr(server, "look_for", look_late)
    result = look(mine, 5.0)
    answers.set()
    assert verdict(result) == "timed_out"
    assert reason(result).endswith("is not known to be closed; as many barriers wait for it as this process allows")
    antipode.configure(max_waiters=10)
    assert verdict(look(mine, 5.0)) == "unproven"


def test_a_store_that_is_off_is_not_asked_for_rows(world: World, monkeypatch: pytest.MonkeyPatch) -> None:
    """BRANCH-21, BAR-49."""
    _, mine = world.hand_over()
    monkeypatch.setenv("ANTIPODE_STORE_ORDERS_MODE", "off")
    questions = Questions(monkeypatch)
    result = look(Lineage([at(1, "elsewhere")]) | antipode.deserialize(mine), 5.0)
    assert result.satisfied
    assert not result.complete
    assert not questions.asked
    assert world.hand_over() == ("1", "1")


def test_the_free_path_never_passes_over_a_branch(world: World) -> None:
    """BRANCH-17, BAR-35."""
    with antipode.scope() as scope:
        world.posts_a.set("p", "1")
        assert antipode.barrier(timeout=10).complete
        with antipode.branch(within=30):
            antipode.serialize()
        for _ in range(3):
            assert not antipode.barrier(timeout=0, on_timeout="proceed").satisfied
        assert isinstance(BranchId.of(scope.lineage.of_store(BRANCHES)[0]), BranchId)
