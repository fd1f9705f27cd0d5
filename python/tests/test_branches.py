"""Announcing, handing over, closing: what scopes and texts hold of branches (spec BRANCH)."""

from __future__ import annotations

import asyncio
import time
from concurrent.futures import ThreadPoolExecutor
from datetime import timedelta

import antipode
import pytest
from antipode import Lineage, WriteId
from antipode._base.seal_keys import Keys
from antipode._model.branch_ids import BRANCHES, BranchId, branches_of
from antipode._model.errors import BlockingCallError, ConfigurationError, UnknownStoreError
from antipode._propagation.gate import leaving
from antipode._store.branch_table import CLOSED
from antipode.messages import outgoing_message
from antipode.propagation import extract_request, inject_request, inject_response
from branching import World, eventually, look, open_branch, reason, verdict
from scopes import positions


@pytest.fixture
def world() -> World:
    return World()


def entries(text: str) -> list[BranchId]:
    found = [BranchId.of(write_id) for write_id in antipode.deserialize(text).of_store(BRANCHES)]
    return [branch for branch in found if branch is not None]


def test_each_text_of_the_block_is_a_task_with_a_branch_of_its_own_and_none_of_its_block(world: World) -> None:
    """BRANCH-1, BRANCH-3, BRANCH-4."""
    with antipode.scope():
        world.orders_a.set("x", "1")
        before = antipode.serialize()
        with antipode.branch(within=timedelta(seconds=30)) as block:
            texts = [antipode.serialize(), str(outgoing_message()), antipode.serialize()]
        after = antipode.serialize()
    announced = block.announced
    assert len({branch.id for branch in announced}) == 3
    assert {branch.key for branch in entries(after)} == {branch.key for branch in announced}
    for branch, text in zip(announced, texts, strict=True):
        assert text == f"{before}~_.task.orders.{branch.id}.{branch.lease_ms}"
        assert 29 < branch.lease_ms / 1000 - time.time() <= 30
    assert after.startswith(f"1~antipode-branches.orders_2F{min(b.id for b in announced)}..")


def test_a_request_in_the_block_is_a_task_as_well(world: World) -> None:
    """BRANCH-3: a service that answers 202 and works on."""
    headers: dict[str, str] = {}
    with antipode.scope() as scope, antipode.branch(within=30) as block:
        inject_request(headers, "localhost")
        assert entries(scope.lineage.serialize()) == list(block.announced)
    with extract_request(headers, "127.0.0.1"):
        world.posts_a.set("p", "1")
        antipode.close()
    assert eventually(scope.lineage).complete


def test_after_the_block_nothing_is_a_task_any_more(world: World) -> None:
    async def main() -> list[str]:
        ended = asyncio.Event()

        async def later() -> str:
            await ended.wait()
            return antipode.serialize()

        with antipode.branch(within=30):
            task = asyncio.create_task(later())
            await asyncio.sleep(0)
        ended.set()
        return [await task, antipode.serialize()]

    with antipode.scope():
        assert asyncio.run(main()) == ["1", "1"]


def test_a_scope_inside_the_block_is_another_request(world: World) -> None:
    with antipode.scope(), antipode.branch(within=30), antipode.scope():
        assert antipode.serialize() == "1"


def test_what_cannot_be_announced_is_the_programmers_mistake(world: World) -> None:
    """BRANCH-2, BRANCH-24."""
    for lease in (0, -1, 24 * 3600 + 1, float("nan"), True, "30"):
        with antipode.scope(), pytest.raises(ConfigurationError, match="24 hours"):
            antipode.branch(within=lease).__enter__()  # type: ignore[arg-type]
    with pytest.raises(ConfigurationError, match="outside any scope"):
        antipode.branch(within=1).__enter__()
    with pytest.raises(ConfigurationError, match="outside any scope"):
        antipode.close()
    antipode.configure(branches=None)
    with antipode.scope(), pytest.raises(ConfigurationError, match="configure\\(branches"):
        antipode.branch(within=1).__enter__()
    with pytest.raises(UnknownStoreError, match="Did you mean orders"):
        antipode.configure(branches="order")
    with pytest.raises(ConfigurationError, match="wrapped client"):
        antipode.configure(branches=object())
    with pytest.raises(ConfigurationError, match="kind positions has no table"):
        antipode.configure(branches=positions("plain"))
    assert antipode.configure(branches="orders").branches == "orders"


def test_no_store_may_have_the_name_of_branches() -> None:
    """BRANCH-1."""
    with pytest.raises(ConfigurationError, match="name the store otherwise"):
        positions(BRANCHES)


def test_announcing_asks_nobody(world: World) -> None:
    """BRANCH-2."""
    world.orders.stop("a")
    world.orders.stop("b")
    task, mine = world.hand_over()
    assert "_.task.orders" in task
    assert entries(mine)


# In the task


def test_a_scope_never_holds_its_own_branch_however_it_comes_in(world: World) -> None:
    """BRANCH-7."""
    task, mine = world.hand_over()
    own = entries(mine)[0]
    lineage = antipode.deserialize(mine)
    renewed = Lineage([BranchId(own.store, own.id, own.lease_ms + 5).write_id])
    with antipode.message_scope(task) as scope:
        scope.transfer(lineage)
        scope.merge(lineage)
        scope.receive(lineage)
        scope.append(own.write_id)
        scope.transfer(renewed)
        assert not entries(scope.lineage.serialize())
        assert antipode.barrier(timeout=5).complete
        began = time.monotonic()
        assert antipode.barrier(lineage, timeout=5).complete
        assert time.monotonic() - began < 2
        other = open_branch()
        scope.transfer(Lineage([other.write_id]))
        assert entries(scope.lineage.serialize()) == [other]
    with antipode.scope(lineage) as scope:
        scope.receive(antipode.deserialize(task))  # the message's own text last
        assert not entries(scope.lineage.serialize())


def test_whom_a_task_calls_is_within_its_branch_and_does_not_close_it(world: World) -> None:
    """BRANCH-6, BRANCH-8."""
    task, mine = world.hand_over()
    headers: dict[str, str] = {}
    response: dict[str, str] = {}
    with antipode.message_scope(task):
        inject_request(headers, "localhost")
    assert "~_.within.orders." in "".join(headers.values())
    assert "_.task" not in "".join(headers.values())
    with extract_request(headers, "127.0.0.1") as callee:
        callee.transfer(antipode.deserialize(mine))  # of a value that the request wrote
        assert antipode.barrier(timeout=5).complete
        onward: dict[str, str] = {}
        inject_request(onward, "localhost")
        assert "_.within" in "".join(onward.values())
        world.posts_a.set("p", "1")
        antipode.close()
        inject_response(response)
        assert "_.within" not in "".join(response.values())
    assert verdict(look(mine)) == "not_yet"


def test_what_a_task_sends_on_is_not_within_its_branch(world: World) -> None:
    """BRANCH-8: messages, values, texts, responses."""
    task, mine = world.hand_over()
    with antipode.message_scope(task) as scope:
        world.posts_a.set("p", "1")
        sent = [str(outgoing_message()), antipode.serialize(), leaving(scope).serialize(), scope.lineage.serialize()]
        sent.append(scope.additions().serialize())
    for text in sent:
        assert not antipode.deserialize(text).extensions
    with antipode.scope() as reader:  # nor does it make a reader a task that a value or response had it
        reader.transfer(antipode.deserialize(task))
        reader.merge(antipode.deserialize(task))
        assert not reader.tasks
        assert not reader.lineage.extensions
        reader.transfer(antipode.deserialize(mine))
        assert entries(reader.lineage.serialize())


def test_extensions_that_name_no_branch_name_none(world: World) -> None:
    """BRANCH-8: and another's extension goes on (WIRE-14)."""
    bad = ["_.task", "_.task.orders", "_.task.orders.xyz.1", f"_.within.orders.{'a' * 32}.{10**20}", "_.task.a.b.c.d"]
    with antipode.message_scope("1~" + "~".join(sorted([*bad, "_.zz.1"]))) as scope:
        assert not scope.tasks
        assert not scope.own_branches
        assert antipode.serialize() == "1~_.zz.1"


def test_the_first_close_stands(world: World) -> None:
    """BRANCH-10."""
    task, mine = world.hand_over()
    world.run(task, "first")
    world.posts.freeze("b")
    world.run(task, "second")  # a message that came twice
    with antipode.message_scope(task):
        antipode.close()
        antipode.close()
    assert eventually(mine).complete


def test_a_close_that_is_refused_is_told_and_may_be_tried_again(world: World) -> None:
    """BRANCH-10."""
    task, mine = world.hand_over()
    with antipode.message_scope(task):
        world.posts_a.set("p", "1")
        world.orders.stop("a")
        with pytest.raises(ConnectionError):
            antipode.close()
        world.orders.restart("a")
        antipode.close()
    assert eventually(mine).complete


def test_a_task_that_is_no_branchs_closes_nothing(world: World) -> None:
    with antipode.message_scope("1"):
        antipode.close()


def test_a_branch_of_a_store_that_is_not_wrapped_cannot_be_closed(world: World) -> None:
    """BRANCH-18."""
    positions("plain")
    for store, words in (("payments", "has not wrapped"), ("plain", "without branches")):
        with antipode.message_scope(f"1~{open_branch(store).extension('task')}"):
            with pytest.raises(ConfigurationError, match=words):
                antipode.close()


def test_writes_in_flight_mark_what_is_closed_and_later_ones_are_counted(world: World, caplog: object) -> None:
    """BRANCH-9."""
    task, mine = world.hand_over()
    with antipode.message_scope(task) as scope:
        world.posts.lose_next_answer()
        with pytest.raises(ConnectionError):
            world.posts_a.set("p", "1")
        antipode.close()
        assert scope.sent
    result = eventually(mine)
    assert not result.complete
    assert eventually(mine, stores=["orders"]).complete


def test_withdrawn_branches_are_closed_and_gone(world: World) -> None:
    """BRANCH-5."""
    with antipode.scope():
        with antipode.branch(within=30) as block:
            antipode.serialize()
        before = antipode.serialize()
        block.withdraw()
        assert antipode.serialize() == "1"
    assert eventually(before).complete


def test_a_second_taker_of_one_text_is_warned_of(world: World, caplog: pytest.LogCaptureFixture) -> None:
    """BRANCH-28: the first close stands (BRANCH-10), and what the second taker wrote is in nothing."""
    task, _ = world.hand_over()
    world.run(task, "first")
    world.run(task, "nothing", close=False)
    with antipode.message_scope(task):
        antipode.close()  # it has written nothing
    assert "several takers" not in caplog.text
    world.run(task, "second")
    assert "several takers" in caplog.text


def test_a_branch_that_its_task_closed_stays_whoever_withdraws_it(world: World) -> None:
    """BRANCH-27: the publish raised, and the message came all the same."""
    world.posts.freeze("b")
    with antipode.scope():
        with antipode.branch(within=30) as block:
            task, never = antipode.serialize(), antipode.serialize()
        world.run(task)
        block.withdraw()
        mine = antipode.serialize()
    assert never
    assert look(mine, 0.2).satisfied is False
    assert len(branches_of(antipode.deserialize(mine))) == 1
    world.posts.heal("b")
    assert eventually(mine).complete
    assert world.posts.client("b").get("p") == b"1"


def test_what_is_not_withdrawn_stays(world: World) -> None:
    """BRANCH-27: where nothing may be closed, the branch stays open."""
    with antipode.scope():
        with antipode.branch(within=30) as block:
            antipode.serialize()
        antipode.configure(mode="off")
        block.withdraw()
        antipode.configure(mode="enforce")
        assert len(branches_of(antipode.deserialize(antipode.serialize()))) == 1


def test_closing_blocks_no_event_loop(world: World) -> None:
    """BRANCH-11."""
    task, mine = world.hand_over()

    async def main() -> None:
        with antipode.message_scope(task):
            with pytest.raises(BlockingCallError, match="close_async"):
                antipode.close()
            await antipode.close_async()
        with antipode.scope(), antipode.branch(within=30) as block:
            with pytest.raises(BlockingCallError, match="withdraw_async"):
                block.withdraw()
            await block.withdraw_async()

    asyncio.run(main())
    assert eventually(mine).complete


# Carried functions


def test_a_carried_function_closes_its_branch_where_it_returns_and_not_where_it_raises(world: World) -> None:
    """BRANCH-6, BRANCH-9."""

    def good() -> str:
        world.posts_a.set("p", "1")
        scope = antipode.current_scope()
        assert scope is not None
        assert scope.tasks
        return "done"

    def bad() -> None:
        raise KeyError("no")

    with antipode.scope():
        world.orders_a.set("x", "1")
        with antipode.branch(within=30):
            carried = antipode.carry(good)
        waits_for_good = antipode.serialize()
        with antipode.branch(within=30):
            failing = antipode.carry(bad)
        waits_for_both = antipode.serialize()
    assert not look(waits_for_good).satisfied
    with ThreadPoolExecutor(1) as pool:
        assert pool.submit(carried).result(30) == "done"
        with pytest.raises(KeyError):
            pool.submit(failing).result(30)
    assert eventually(waits_for_good).complete
    assert verdict(look(waits_for_both)) == "not_yet"
    with pytest.raises(ConfigurationError, match="runs once"):
        carried()


def test_each_call_of_an_executor_is_a_task(world: World) -> None:
    """BRANCH-3."""
    with ThreadPoolExecutor(4) as plain, antipode.scope():
        pool = antipode.carry_all(plain)
        with antipode.branch(within=30) as block:
            futures = [pool.submit(world.posts_a.set, f"s{number}", "1") for number in range(5)]
            mapped = pool.map(lambda number: world.posts_a.set(f"m{number}", "1"), range(5))
        assert len(block.announced) == 10
        waits = antipode.serialize()
        assert [future.result(30) for future in futures] == list(mapped) == [None] * 5
    assert eventually(waits).complete


def test_a_coroutine_function_is_carried_likewise(world: World) -> None:
    async def work() -> str:
        world.posts_a.set("p", "1")
        await asyncio.sleep(0)
        return "done"

    async def main() -> str:
        with antipode.scope():
            with antipode.branch(within=30):
                task = asyncio.create_task(antipode.carry(work)())
            waits = antipode.serialize()
            result = await antipode.barrier_async(timeout=10)
            assert result.complete
            assert await task == "done"
        return waits

    assert eventually(asyncio.run(main())).complete


def test_a_carried_function_whose_close_is_refused_ends_as_it_would(
    world: World, caplog: pytest.LogCaptureFixture
) -> None:
    """BRANCH-10."""
    with antipode.scope():
        with antipode.branch(within=30):
            carried = antipode.carry(lambda: 7)
        waits = antipode.serialize()
    world.orders.stop("a")
    assert carried() == 7
    assert "could not be closed" in caplog.text
    assert verdict(look(waits)) == "not_yet"


# Modes and trust


def test_off_announces_and_closes_nothing(world: World) -> None:
    """BRANCH-21."""
    task, mine = world.hand_over()
    antipode.configure(mode="off")
    assert world.hand_over() == ("1", "1")
    world.run(task)
    antipode.configure(mode="enforce")
    assert verdict(look(mine)) == "not_yet"
    world.run(task)
    assert eventually(mine).complete


def test_dry_run_announces_and_closes_and_follows(world: World, tmp_path: object) -> None:
    """BRANCH-21."""
    antipode.configure(mode="dry-run", records=str(tmp_path))
    task, mine = world.hand_over()
    began = time.monotonic()
    result = look(mine, 5.0)
    assert time.monotonic() - began < 2
    assert result.dry_run
    assert result.satisfied
    assert not result.complete
    assert result.stores["orders"].verdict == "not_yet"
    world.run(task)
    antipode.configure(mode="enforce")
    assert eventually(mine).complete


def test_in_dry_run_nobody_follows_his_own_branch(world: World, tmp_path: object) -> None:
    """BRANCH-7, BRANCH-21."""
    antipode.configure(mode="dry-run", records=str(tmp_path))
    task, mine = world.hand_over()
    with antipode.message_scope(task):
        result = antipode.barrier(antipode.deserialize(mine))
    assert dict(result.stores) == {}


def test_under_key_a_row_is_sealed_and_bound_to_its_branch(world: World) -> None:
    """BRANCH-23."""
    antipode.configure(keys=Keys({"one": b"k" * 32}))
    (one, waits_one), (_, waits_two) = world.hand_over(), world.hand_over()
    with antipode.scope(antipode.deserialize(one)):  # `serialize` seals nothing: the text did not leave
        world.posts_a.set("p", "1")
        antipode.close()
    assert eventually(waits_one).complete
    name = antipode.deserialize(waits_one).of_store(BRANCHES)[0].key.rpartition(b"/")[2]
    row = world.orders.look("a", b"antipode:branch:" + name)
    assert row is not None
    assert b"~_.h.one." in row
    other = antipode.deserialize(waits_two).of_store(BRANCHES)[0].key.rpartition(b"/")[2]
    world.orders.put(b"antipode:branch:" + other, row)
    result = look(waits_two, 5.0)
    assert verdict(result) == "unproven"
    assert "seal" in reason(result)


@pytest.mark.parametrize("row", ["", "2~x", "1~posts"])
def test_a_row_that_cannot_be_read_is_unproven(world: World, row: str) -> None:
    """BRANCH-23."""
    _, mine = world.hand_over()
    name = entries(mine)[0].id
    world.orders.put(f"antipode:branch:{name}", row or " ")
    result = look(mine, 5.0)
    assert verdict(result) == "unproven"
    assert "cannot be read" in reason(result)


def test_rows_whose_time_is_over_go(world: World) -> None:
    """BRANCH-22."""
    CLOSED.put(b"other", "1")
    shim = antipode.stores()[0].shim
    for number in range(50):
        assert shim.close_branch(f"{number:032x}", "1", 0.0 if number < 49 else 60.0)  # type: ignore[attr-defined]
    rows = [key for key in world.orders._primary.data if key.startswith(b"antipode:branch:")]
    assert len(rows) <= 2


def test_the_entry_of_a_branch_reads_back() -> None:
    """BRANCH-1."""
    branch = open_branch("a/b.c")
    assert BranchId.of(branch.write_id) == branch
    for key in (b"", b"orders", b"/" + b"a" * 32, b"orders/" + b"A" * 32, b"orders/" + b"a" * 31):
        none = WriteId(BRANCHES, key, antipode.Ordered("", 1)) if key else WriteId.position("s", "e", 1)
        assert BranchId.of(none) is None
    assert BranchId.of(WriteId(BRANCHES, branch.key, antipode.Opaque("m"))) is None
    assert BranchId.of(WriteId(BRANCHES, branch.key, antipode.Ordered("e", 1))) is None
