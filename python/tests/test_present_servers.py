"""A pass speaks of the servers that are known when it is given: they may change while a barrier waits (spec BAR-65)."""

from __future__ import annotations

import threading
import time
from collections.abc import Callable, Sequence
from typing import Any

import antipode
import pytest
from antipode import Lineage, UnprovenKind, Verdict, WriteId
from antipode._base import observers
from antipode._diagnostics import telemetry
from antipode._engine import barrier_waits
from antipode._engine.judgement import _judge_store
from antipode._engine.pending_wait import PendingWait, WaitGroup
from antipode._engine.plan import StoreRequest
from antipode._facade.answering import Question
from antipode._model.verdict import NOT_YET, VISIBLE, unproven
from antipode._trust.trust import Caller
from antipode.shim import Server, Store, StoreOptions, Visibility, join_store
from fakes import FakeShim, Target, always, fake_store, until
from inner import discovery_of, poller, region_store
from parked_barriers import WRITE, Client, Waiting, follow, is_parked, judged


def late_server() -> tuple[Store, Target]:
    """Return a store with a server that has not got the write yet."""
    antipode.configure(poll=0.005)
    late = Target("late", always(NOT_YET))
    return fake_store("posts", late), late


@pytest.mark.parametrize("by_task", [False, True])
def test_a_server_that_joins_while_a_barrier_waits_is_waited_for(by_task: bool) -> None:
    """BAR-65: however it came to be known."""
    store, late = late_server()
    joined = Target("joined", always(NOT_YET))
    telemetry.reset()
    waiting = Waiting(by_task=by_task)
    until(lambda: is_parked(store))
    began = time.monotonic()
    store.use_server(joined)
    late.answer = always(VISIBLE)
    until(lambda: joined.asked >= 2)
    assert waiting.result is None
    waited = time.monotonic() - began
    joined.answer = always(VISIBLE)
    result = waiting.end()
    assert result.complete
    assert judged(result) == ["late", "joined"]
    assert result.waited >= waited
    assert dict(observers.barriers) == {"satisfied": 1}


@pytest.mark.parametrize("options", [{}, {"reach": "replica"}, {"require_complete": True}])
def test_a_server_that_joins_is_no_pass_before_it_shows_the_write(options: dict[str, Any]) -> None:
    """BAR-65: under the barrier's own deadline."""
    store, late = late_server()
    if options.get("reach") == "replica":
        store.use_server(late)
    waiting = Waiting(timeout=1.0, **options)
    until(lambda: is_parked(store))
    store.use_server(Target("joined", always(NOT_YET)))
    late.answer = always(VISIBLE)
    result = waiting.end()
    assert not result.satisfied
    assert result.stores["posts"].verdict is Verdict.TIMED_OUT
    assert "joined" in result.stores["posts"].reason


@pytest.mark.parametrize("by_task", [False, True])
@pytest.mark.parametrize("reach", ["region", "replica"])
def test_a_client_that_is_led_elsewhere_while_a_barrier_waits(by_task: bool, reach: str) -> None:
    """BAR-65: nothing says so but the client itself, which is looked at again behind the wait."""
    antipode.configure(poll=0.005)
    store = join_store("posts", FakeShim, StoreOptions())
    first, second = Target("first", always(NOT_YET)), Target("second", always(NOT_YET))
    client = Client(first)
    follow(store, client)
    assert not antipode.barrier(WRITE, timeout=0.5, on_timeout="proceed", reach=reach).satisfied
    waiting = Waiting(by_task=by_task, reach=reach)
    until(lambda: is_parked(store))
    client.leads_to = second
    first.answer = always(VISIBLE)
    until(lambda: second.asked >= 2)
    assert waiting.result is None
    second.answer = always(VISIBLE)
    result = waiting.end()
    assert result.satisfied
    assert judged(result) == ["second"]
    assert result.stores["posts"].left_out == ("first",)  # BAR-54
    assert not result.complete


def test_a_client_that_is_wrapped_while_a_barrier_waits_for_another_one() -> None:
    """BAR-65, BAR-52: while the barrier waits to know where the first one leads."""
    antipode.configure(poll=0.005)
    store = join_store("posts", FakeShim, StoreOptions())
    known: list[Target] = []
    first = Client(Target("first", always(VISIBLE)))
    store.follow_client(first, lambda it: it.leads_to, lambda _: list(known), "a client that is not opened")
    waiting = Waiting(timeout=2.0)
    until(lambda: is_parked(store))
    second = Client(Target("second", always(NOT_YET)))
    follow(store, second)
    known.append(first.leads_to)
    assert not waiting.end().satisfied


def test_a_server_that_left_while_another_one_was_waited_for_is_named() -> None:
    """BAR-65, BAR-54: though it had shown the write."""
    antipode.configure(poll=0.005)
    there, late = Target("there", always(VISIBLE)), Target("late", always(NOT_YET))
    listed = [there, late]
    store = join_store("posts", FakeShim, StoreOptions(replicas=lambda: list(listed)))
    waiting = Waiting()
    until(lambda: there.asked and late.asked >= 2)
    listed.remove(there)
    for source in list(region_store(store)._discoveries.values()):
        source.attempt()
    late.answer = always(VISIBLE)
    result = waiting.end()
    assert result.satisfied
    assert not result.complete
    assert judged(result) == ["late"]
    assert result.stores["posts"].left_out == ("there",)


def test_where_the_server_left_that_cannot_show_it_the_others_decide() -> None:
    """BAR-65: the barrier goes on, as what is unproven ends it before its time."""
    antipode.configure(poll=0.005)
    lost, late = Target("lost", always(NOT_YET)), Target("late", always(NOT_YET))
    listed = [lost, late]
    store = join_store("posts", FakeShim, StoreOptions(replicas=lambda: list(listed)))
    waiting = Waiting()
    until(lambda: lost.asked and late.asked)
    listed.remove(lost)
    for source in list(region_store(store)._discoveries.values()):
        source.attempt()
    lost.answer = always(unproven("it is another history"))
    late.answer = always(VISIBLE)
    result = waiting.end()
    assert result.satisfied
    assert judged(result) == ["late"]


def test_servers_that_change_until_the_deadline_are_no_pass() -> None:
    """BAR-65: each one shows the write, and by then there is another."""
    antipode.configure(poll=0.001)
    store = join_store("posts", FakeShim, StoreOptions())
    count = iter(range(1, 1_000_000))

    def join(ids: Sequence[WriteId], server: Server) -> Sequence[Visibility]:
        store.use_server(Target(f"server{next(count)}", join))
        return [VISIBLE] * len(ids)

    store.use_server(Target("server0", join))
    began = time.monotonic()
    result = antipode.barrier(WRITE, timeout=0.5, on_timeout="proceed")
    assert not result.satisfied
    assert result.stores["posts"].verdict is Verdict.TIMED_OUT
    assert 0.5 <= time.monotonic() - began < 30
    assert len(store.servers()) > 2


@pytest.mark.parametrize("is_known", [True, False])
def test_a_server_that_joins_as_the_time_is_over_is_named(is_known: bool, monkeypatch: pytest.MonkeyPatch) -> None:
    """BAR-65, BAR-59: in a sentence; where only the client is known, as BAR-52 says."""
    store, late = late_server()
    client = Client(late)
    waiting = Waiting()
    until(lambda: is_parked(store))
    monkeypatch.setattr(barrier_waits, "seconds_left", lambda _: 0.0)
    if is_known:
        store.use_server(Target("joined", always(VISIBLE)))
    else:
        store.expect_server(client, lambda _: None, "a pool that is not opened")
    late.answer = always(VISIBLE)
    result = waiting.end()
    assert not result.satisfied
    found = result.stores["posts"]
    assert "changed until the deadline" in found.reason
    assert found.kind is (None if is_known else UnprovenKind.NOT_OPENED)
    assert found.verdict is (Verdict.TIMED_OUT if is_known else Verdict.UNPROVEN)


def test_a_look_speaks_of_the_servers_of_its_end() -> None:
    """BAR-65, BAR-29: one that joined during the question is not passed over."""
    store = join_store("posts", FakeShim, StoreOptions())

    def join(ids: Sequence[WriteId], server: Server) -> Sequence[Visibility]:
        store.use_server(Target("joined", always(NOT_YET)))
        return [VISIBLE] * len(ids)

    store.use_server(Target("first", join))
    result = antipode.barrier(WRITE, timeout=0, on_timeout="proceed")
    assert not result.satisfied
    assert result.stores["posts"].verdict is Verdict.NOT_YET


def test_nothing_is_asked_again_where_the_same_servers_are_named() -> None:
    """BAR-65: a wait to know the servers changes their set, and is no reason for another question."""
    store = join_store("posts", FakeShim, StoreOptions())
    client = Client(Target("first", always(VISIBLE)))
    follow(store, client)
    assert antipode.barrier(WRITE, timeout=60).complete
    assert client.leads_to.asked == 1


def test_an_owner_answers_for_the_servers_of_the_end() -> None:
    """BAR-65, DELEG-5: what a delegated wait is told goes into a pass there."""
    store = join_store("posts", FakeShim, StoreOptions())
    joining: list[Callable[[], object]] = [lambda: store.use_server(Target("joined", always(NOT_YET)))]

    def join(ids: Sequence[WriteId], server: Server) -> Sequence[Visibility]:
        if joining:
            joining.pop()()
        return [VISIBLE] * len(ids)

    store.use_server(Target("first", join))
    body = b'{"lineage": "%s", "timeout_ms": 0, "nonce": "%s"}' % (WRITE.serialize().encode(), b"0" * 32)
    answer = Question(body, Caller("127.0.0.1"), edge=False).answer()
    assert answer.status == 200
    assert b"have just changed" in answer.body


def test_an_owner_names_its_servers_once_for_all_writes(monkeypatch: pytest.MonkeyPatch) -> None:
    """BAR-65, DELEG-5: a server that joins between two writes is asked for both, or answers for neither."""
    store = join_store("posts", FakeShim, StoreOptions())
    store.use_server(Target("first", always(VISIBLE)))
    two = WRITE | Lineage([WriteId("posts", "l", antipode.Ordered("", 1))])
    calls: list[None] = []
    servers = store.servers

    def joining(**options: bool) -> Sequence[Server]:
        calls.append(None)
        if len(calls) == 2:
            store.use_server(Target("joined", always(VISIBLE)))
        return servers(**options)

    monkeypatch.setattr(store, "servers", joining)
    body = b'{"lineage": "%s", "timeout_ms": 0, "nonce": "%s"}' % (two.serialize().encode(), b"0" * 32)
    answer = Question(body, Caller("127.0.0.1"), edge=False).answer()
    assert answer.status == 200
    assert b"have just changed" in answer.body


class Turned(Client):
    """A client of which something else changes than where it leads."""

    said = "A"


def test_a_client_that_changed_before_and_is_led_elsewhere_during_the_wait() -> None:
    """BAR-65, BAR-52: the same servers that it named again are no answer to what it says by then."""
    antipode.configure(poll=0.005)
    store = join_store("posts", FakeShim, StoreOptions())
    first, second = Target("first", always(VISIBLE)), Target("second", always(NOT_YET))
    client, goes = Turned(first), threading.Event()
    goes.set()
    source = store.follow_client(client, lambda it: it.said, lambda it: [it.leads_to] * goes.wait(60), "a client")
    assert antipode.barrier(WRITE, timeout=60).satisfied
    first.answer = always(NOT_YET)
    client.said = "B"
    goes.clear()
    waiting = Waiting()
    until(lambda: discovery_of(source)._parked)
    asked = first.asked
    goes.set()
    until(lambda: first.asked > asked + 1)
    goes.clear()
    client.leads_to, client.said = second, "C"
    first.answer = always(VISIBLE)
    until(lambda: discovery_of(source)._parked or waiting.result)
    assert waiting.result is None
    goes.set()
    until(lambda: second.asked >= 2)
    second.answer = always(VISIBLE)
    assert judged(waiting.end()) == ["second"]


def test_no_pass_while_a_client_is_about_to_name_other_servers(monkeypatch: pytest.MonkeyPatch) -> None:
    """BAR-52, BAR-65: what it named before is no answer until the store has the new servers."""
    antipode.configure(poll=0.005)
    store = join_store("posts", FakeShim, StoreOptions())
    first, second = Target("first", always(VISIBLE)), Target("second", always(NOT_YET))
    client = Client(first)
    follow(store, client)
    assert antipode.barrier(WRITE, timeout=60).satisfied
    inside, outside = threading.Event(), threading.Event()
    take = region_store(store).take_answer

    def slow(*answer: Any) -> Any:
        inside.set()
        assert outside.wait(60)
        return take(*answer)

    monkeypatch.setattr(store, "take_answer", slow)
    client.leads_to = second
    waiting = Waiting()
    assert inside.wait(60)
    assert not antipode.barrier(WRITE, timeout=0.2, on_timeout="proceed", on_unproven="proceed").satisfied
    outside.set()
    until(lambda: second.asked >= 2)
    assert waiting.result is None
    second.answer = always(VISIBLE)
    assert judged(waiting.end()) == ["second"]


def test_a_client_that_names_nobody_any_more_is_no_answer() -> None:
    """BAR-52, BAR-53: the servers of before are not those that it leads to."""
    store = join_store("posts", FakeShim, StoreOptions())
    client = Turned(Target("first", always(VISIBLE)))
    store.follow_client(
        client, lambda it: it.said, lambda it: [it.leads_to] if it.said == "A" else [], "a client that leads nowhere"
    )
    assert antipode.barrier(WRITE, timeout=60).satisfied
    client.said = "B"
    for _ in range(2):
        result = antipode.barrier(WRITE, timeout=0.2, on_timeout="proceed", on_unproven="proceed")
        assert not result.satisfied
        assert result.stores["posts"].verdict is Verdict.UNPROVEN


def test_each_write_is_waited_for_at_each_server_that_is_known_by_then() -> None:
    """BAR-65: discovery names another server between two writes that waited to know the servers."""
    antipode.configure(poll=0.005)
    two = WRITE | Lineage([WriteId("posts", "l", antipode.Ordered("", 1))])
    first, second = Target("first", always(VISIBLE)), Target("second", answers_one)
    store = join_store("posts", FakeShim, StoreOptions())
    client = Client(first)
    goes = threading.Event()
    source = store.follow_client(client, lambda it: it.leads_to, lambda it: [it.leads_to] * goes.wait(60), "a client")
    divide = discovery_of(source)._divide
    parts: list[PendingWait] = []

    def divide_and_join(need: PendingWait) -> bool:
        parts.append(need)
        if len(parts) == 2:
            named(source, first, second)
        return divide(need)

    discovery_of(source)._divide = divide_and_join  # type: ignore[method-assign]
    waiting = Waiting(two, timeout=3.0)
    until(lambda: len(discovery_of(source)._parked) == 2)
    goes.set()
    result = waiting.end()
    assert len(parts) == 2
    assert not result.satisfied
    assert "second" in result.stores["posts"].reason


def named(source: Any, *targets: Target) -> None:
    """Have a source name these servers, as another thread's answer may in any instant."""
    source.store.take_answer(source, targets)


def answers_one(ids: Sequence[WriteId], server: Server) -> Sequence[Visibility]:
    """Show the second write alone."""
    return [VISIBLE if write_id.key == b"l" else NOT_YET for write_id in ids]


def test_a_write_that_was_not_asked_for_is_not_visible() -> None:
    """BAR-65, BAR-52: one write found the client's servers, the other one's time was over before."""
    store = join_store("posts", FakeShim, StoreOptions())
    ids = [WriteId("posts", key, antipode.Ordered("", 1)) for key in "kl"]
    known = store.use_server(Target("first", always(VISIBLE)))
    unknown = store.expect_server(Client(Target("later", always(VISIBLE))), lambda _: None, "a pool")
    group = WaitGroup(1.0, lambda: None, None)
    needs = [
        PendingWait(ids[0], discovery_of(unknown), group),
        PendingWait(ids[0], poller(known), group),
        PendingWait(ids[1], discovery_of(unknown), group),
    ]
    needs[0].divided = True
    needs[0].answer = needs[1].answer = VISIBLE
    for own in (needs, needs[:2]):
        found = _judge_store(StoreRequest(region_store(store), ids, [discovery_of(unknown)], 0), own, 1.0, looked=False)
        assert found.verdict is Verdict.TIMED_OUT
