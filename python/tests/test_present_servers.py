"""A pass speaks of the servers that are known when it is given: they may change while a barrier waits (spec BAR-65)."""

from __future__ import annotations

import asyncio
import threading
import time
from collections.abc import Callable, Sequence
from typing import Any

import antipode
import pytest
from antipode import Lineage, UnprovenKind, Verdict, WriteId, barrier_waits, telemetry
from antipode.answering import Question
from antipode.shim import Server, Store, StoreOptions, Visibility, join_store
from antipode.trust import Caller
from antipode.verdict import NOT_YET, VISIBLE
from fakes import FakeShim, Target, always, fake_store, until

WRITE = Lineage([WriteId("posts", "k", antipode.Ordered("", 1))])


class Waiting:
    """A barrier in a thread of its own, blocking or of an event loop, and what came of it."""

    def __init__(self, *, by_task: bool = False, timeout: float = 60.0, **options: Any) -> None:
        self._options = {"timeout": timeout, "on_timeout": "proceed", "on_unproven": "proceed", **options}
        self.result: antipode.BarrierResult | None = None
        self._thread = threading.Thread(target=self._run_task if by_task else self._run, daemon=True)
        self._thread.start()

    def _run(self) -> None:
        try:
            self.result = antipode.barrier(WRITE, **self._options)
        except antipode.BarrierIncomplete as error:
            self.result = error.result

    def _run_task(self) -> None:
        async def run() -> antipode.BarrierResult:
            return await antipode.barrier_async(WRITE, **self._options)

        self.result = asyncio.run(run())

    def end(self) -> antipode.BarrierResult:
        self._thread.join(70)
        assert self.result is not None
        return self.result


class Client:
    """What leads to a server, as its settings say."""

    def __init__(self, leads_to: Target) -> None:
        self.leads_to = leads_to


def follow(store: Store, client: Client, *, listed: bool = False) -> None:
    store.follow_client(client, lambda it: it.leads_to, lambda it: [it.leads_to], "a client", listed=listed)


def judged(result: antipode.BarrierResult) -> list[str]:
    return [server.address for server in result.stores["posts"].servers if not server.left_out]


def late_server() -> tuple[Store, Target]:
    """Return a store with a server that has not got the write yet."""
    antipode.configure(poll=0.005)
    late = Target("late", always(NOT_YET))
    return fake_store("posts", late), late


def is_parked(store: Store) -> bool:
    return store.parked_threads + store.parked_tasks == 1


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
    assert dict(telemetry.barriers) == {"satisfied": 1}


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
    for source in list(store._discoveries.values()):
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
    for source in list(store._discoveries.values()):
        source.attempt()
    lost.answer = always(antipode.verdict.unproven("it is another history"))
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
