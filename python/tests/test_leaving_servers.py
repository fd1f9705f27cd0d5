"""A barrier ends when nothing is left to wait for: servers may leave while it waits at them (spec BAR-65, BAR-54)."""

from __future__ import annotations

import gc
import threading
from typing import Any

import antipode
import pytest
from antipode import Lineage, Verdict, WriteId
from antipode._engine import discovery
from antipode._engine.pending_wait import PendingWait, Proof, WaitGroup
from antipode._engine.server import ServerPoller
from antipode._engine.wait_queue import WaitQueue
from antipode._model.verdict import NOT_YET, VISIBLE
from antipode.shim import Store, StoreOptions, join_store
from fakes import FakeShim, Target, always, fake_store, until
from inner import discovery_of, poller, region_store
from parked_barriers import WRITE, Client, Waiting, follow, is_parked, judged


def listed_store() -> tuple[Store, list[Target], Target]:
    """Return a store whose list has a server that shows the write and one that is behind, and the latter."""
    antipode.configure(poll=0.005)
    late = Target("late", always(NOT_YET))
    listed = [Target("there", always(VISIBLE)), late]
    return join_store("posts", FakeShim, StoreOptions(replicas=lambda: list(listed))), listed, late


@pytest.mark.parametrize("by_task", [False, True])
@pytest.mark.parametrize("options", [{}, {"reach": "replica"}])
def test_discovery_drops_the_server_that_is_behind(
    by_task: bool, options: dict[str, Any], monkeypatch: pytest.MonkeyPatch
) -> None:
    """BAR-65, BAR-22: nobody else comes, so it is the wait that has discovery asked again."""
    monkeypatch.setattr(discovery, "REFRESH_S", 0.2)
    store, listed, late = listed_store()
    waiting = Waiting(by_task=by_task, **options)
    until(lambda: is_parked(store) and late.asked >= 2)
    listed.remove(late)
    result = waiting.end()
    assert result.satisfied
    assert not result.complete
    assert judged(result) == ["there"]
    assert result.stores["posts"].left_out == ("late",)  # BAR-54


@pytest.mark.parametrize("reach", ["region", "replica"])
def test_a_client_is_led_away_from_the_server_that_is_behind(reach: str) -> None:
    """BAR-65, BAR-52: the client is looked at while the barrier waits, not behind that alone."""
    antipode.configure(poll=0.005)
    store = join_store("posts", FakeShim, StoreOptions())
    client = Client(Target("first", always(NOT_YET)))
    follow(store, client)
    assert not antipode.barrier(WRITE, timeout=0.2, on_timeout="proceed", reach=reach).satisfied
    waiting = Waiting(reach=reach)
    until(lambda: is_parked(store))
    client.leads_to = Target("second", always(VISIBLE))
    result = waiting.end()
    assert result.satisfied
    assert judged(result) == ["second"]
    assert result.stores["posts"].left_out == ("first",)


def test_a_server_leaves_one_reach_alone(monkeypatch: pytest.MonkeyPatch) -> None:
    """BAR-65, BAR-21: the list drops what is a wrapped client's own server; who waits for that one waits on."""
    monkeypatch.setattr(discovery, "REFRESH_S", 0.2)
    store, listed, late = listed_store()
    store.use_server(late, listed=True)
    region, replica = Waiting(), Waiting(reach="replica")
    until(lambda: store.parked_threads == 2)
    listed.remove(late)
    assert judged(region.end()) == ["there"]
    assert replica.result is None
    late.answer = always(VISIBLE)
    result = replica.end()
    assert result.satisfied
    assert judged(result) == ["late"]


def test_all_of_them_are_at_another_instant_together(monkeypatch: pytest.MonkeyPatch) -> None:
    """BAR-65, BAR-64: what was proved before the server left is asked for once more."""
    monkeypatch.setattr(discovery, "REFRESH_S", 0.2)
    store, listed, late = listed_store()
    listed.append(Target("third", always(VISIBLE)))
    waiting = Waiting(require_complete=True)
    until(lambda: is_parked(store) and listed[0].asked)
    asked = listed[0].asked
    listed.remove(late)
    result = waiting.end()
    assert judged(result) == ["there", "third"]
    assert listed[0].asked > asked


def test_no_pass_by_what_a_server_showed_before_another_one_left(monkeypatch: pytest.MonkeyPatch) -> None:
    """BAR-65, BAR-63: its data were replaced meanwhile, and nobody has looked at the end of the first wait."""
    monkeypatch.setattr(discovery, "REFRESH_S", 0.2)
    store, listed, late = listed_store()
    waiting = Waiting(timeout=3.0)
    there = listed[0]
    until(lambda: is_parked(store) and there.asked)
    there.answer = always(NOT_YET)
    server = store.server_at("there")
    assert server is not None
    server.reset()
    listed.remove(late)
    result = waiting.end()
    assert not result.satisfied
    assert result.stores["posts"].verdict is Verdict.TIMED_OUT
    assert "there" in result.stores["posts"].reason
    assert result.waited >= 3.0, "it waits on, under its deadline"


def test_a_server_leaves_before_the_barrier_is_parked_there(monkeypatch: pytest.MonkeyPatch) -> None:
    """BAR-65: between its naming and the parking, and the thread that asks it has seen it leave before that."""
    store, listed, late = listed_store()
    server = store.server_at("late")
    assert server is not None
    threading.Thread(target=server.wait_for, args=(WRITE, 60.0), daemon=True).start()
    until(lambda: late.asked)
    park = ServerPoller.park

    def park_late(self: ServerPoller, need: Any) -> bool:
        if self is server and late in listed:
            listed.remove(late)
            for source in list(region_store(store)._discoveries.values()):
                source.attempt()
            until(lambda: self.known_under == store.generation)
        return park(self, need)

    monkeypatch.setattr(ServerPoller, "park", park_late)
    result = Waiting().end()
    assert result.satisfied
    assert judged(result) == ["there"]


def test_a_wait_is_begun_anew_at_a_server_that_has_left(monkeypatch: pytest.MonkeyPatch) -> None:
    """BAR-65, BAR-63: the wait there was over when it left; others waited there then, for which it was looked."""
    monkeypatch.setattr(discovery, "REFRESH_S", 0.2)
    another = WriteId("posts", "another", antipode.Ordered("", 1))
    store, listed, late = listed_store()
    there = listed[0]
    left, stays = store.server_at("there"), store.server_at("late")
    assert left is not None
    assert stays is not None
    there.answer = lambda ids, server: [NOT_YET if each == another else VISIBLE for each in ids]
    late.answer = lambda ids, server: [VISIBLE if each == another else NOT_YET for each in ids]
    waiting, other = Waiting(), Waiting(Lineage([another]))
    until(lambda: store.parked_threads == 2 and poller(left).waiters.live == 1 and poller(stays).waiters.live == 1)
    there.answer = always(NOT_YET)
    listed.remove(there)
    assert judged(other.end()) == ["late"]
    left.reset()
    late.answer = always(VISIBLE)
    result = waiting.end()
    assert result.satisfied
    assert judged(result) == ["late"]


def test_a_read_waits_on_at_the_server_that_it_reads_from(monkeypatch: pytest.MonkeyPatch) -> None:
    """BAR-50, BAR-65: the application's connection leads there whatever discovery says."""
    monkeypatch.setattr(discovery, "REFRESH_S", 0.2)
    store, listed, late = listed_store()
    server = store.server_at("late")
    assert server is not None
    found: list[Verdict] = []
    thread = threading.Thread(target=lambda: found.append(server.wait_for(WRITE, 60.0).verdict))
    thread.start()
    until(lambda: late.asked)
    listed.remove(late)
    until(lambda: store.server_at("late") is None)
    asked = late.asked
    until(lambda: late.asked > asked + 2)
    assert not found
    late.answer = always(VISIBLE)
    thread.join(70)
    assert found == [Verdict.VISIBLE]


def test_a_client_that_is_gone_is_waited_for_no_more() -> None:
    """BAR-52, BAR-65: it had not opened a connection, and a barrier waited to know its server."""
    store = fake_store("posts", Target("there", always(VISIBLE)))
    client = Client(Target("never", always(VISIBLE)))
    source = store.expect_server(client, lambda _: None, "a pool that is not opened")
    waiting = Waiting()
    until(lambda: discovery_of(source)._parked)
    del client
    gc.collect()
    assert waiting.end().complete


def test_a_wait_is_not_disturbed_where_servers_join_or_are_named_again(monkeypatch: pytest.MonkeyPatch) -> None:
    """BAR-65: it ends where one leaves at which it waits."""
    store, listed, late = listed_store()
    store.use_server(Target("own", always(VISIBLE)), listed=True)
    waits: list[WaitGroup] = []
    park = ServerPoller.park

    def parked(self: ServerPoller, need: PendingWait) -> bool:
        waits.append(need.group)
        return park(self, need)

    monkeypatch.setattr(ServerPoller, "park", parked)
    waiting = Waiting()
    until(lambda: is_parked(store))
    server = store.server_at("late")
    assert server is not None
    listed.append(Target("joined", always(VISIBLE)))
    for source in list(region_store(store)._discoveries.values()):
        source.attempt()
    until(lambda: poller(server).known_under == store.generation)
    asked = late.asked
    until(lambda: late.asked > asked + 2)
    assert len(set(waits)) == 1
    late.answer = always(VISIBLE)
    assert judged(waiting.end()) == ["there", "late", "joined"]


def test_who_goes_on_elsewhere_counts_for_no_row_of_timeouts() -> None:
    """BAR-40, BAR-65: it did not wait there in vain, and nobody asks on for it."""
    [server] = fake_store("posts", Target("late", always(NOT_YET))).servers()
    waiters, group = WaitQueue(), WaitGroup(1.0, lambda: None, None)
    group.has_lost = lambda _: True
    waiters.add(group.add(WriteId.position("posts", "e", 1), poller(server)), 0.0)
    assert group.end_without(poller(server))
    assert not group.end_without(poller(server)), "one releases it"
    for need in group.end():
        waiters.give_up(need, group.since + 0.9)
    assert waiters.live == 0
    assert not waiters.probes
    assert not waiters._stuck


def test_what_does_not_stand_is_no_pass_where_the_time_is_over_as_well() -> None:
    """BAR-63, BAR-65: a wait that ends since the servers are others looks at its proofs, as at the deadline."""
    first, second = fake_store("posts", *(Target(name, always(VISIBLE)) for name in ("first", "second"))).servers()
    group = WaitGroup(1.0, lambda: None, None)
    group.has_lost = lambda _: True
    needs = [group.add(WriteId.position("posts", "e", 1), poller(server)) for server in (first, second)]
    for need in needs:
        group.settle(need, VISIBLE, Proof(group.since, need.server.generation))
    first.reset()
    assert group.end_without(poller(first))
    assert group.end() == needs[:1]
    assert needs[0].answer is not None
    assert needs[0].answer.verdict is Verdict.NOT_YET
    assert needs[1].answer is VISIBLE
