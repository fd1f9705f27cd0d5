"""Which servers a barrier asks, where somebody else has to say so (spec BAR-52 to BAR-55)."""

from __future__ import annotations

import gc
import threading
import time
from collections.abc import Callable, Sequence
from typing import Any, cast

import antipode
import pytest
from antipode import Lineage, UnprovenKind, Verdict, WriteId
from antipode._engine import discovery
from antipode._model.verdict import NOT_YET, VISIBLE
from antipode.shim import Server, Store, StoreOptions, Visibility, join_store
from fakes import FakeShim, Target, always, fake_store
from inner import poller, region_store

WRITE = Lineage([WriteId("posts", "k", antipode.Ordered("", 1))])


def until(condition: Callable[[], object]) -> None:
    deadline = time.monotonic() + 60
    while not condition():
        assert time.monotonic() < deadline
        time.sleep(0.005)


class Pool:
    """A client that does not know its server before it is opened."""

    def __init__(self) -> None:
        self.server: Target | None = None
        self.asked = 0

    def target(self) -> Target | None:
        self.asked += 1
        return self.server


def with_pool(store: Store, *, listed: bool = False) -> Pool:
    pool = Pool()
    store.expect_server(pool, Pool.target, "a pool that is not opened", listed=listed)
    return pool


def judge(timeout: float = 60.0, **options: Any) -> antipode.BarrierResult:
    return antipode.barrier(WRITE, timeout=timeout, on_timeout="proceed", on_unproven="proceed", **options)


def primary_alone() -> Store:
    store = join_store("posts", FakeShim, StoreOptions())
    store.use_server(Target("primary", always(VISIBLE)))
    return store


def test_an_empty_list_of_replicas_is_a_mistake() -> None:
    """BAR-53: the client's own server would be judged in their place, and the barrier pass on it alone."""
    with pytest.raises(antipode.ConfigurationError, match="names no server"):
        join_store("posts", FakeShim, StoreOptions(replicas=[]))


def test_the_servers_that_are_known_are_not_judged_alone() -> None:
    """BAR-52: a process that has not used its replica's pool yet."""
    pool = with_pool(primary_alone())
    result = judge(0.2)
    assert not result.satisfied
    assert result.stores["posts"].kind is UnprovenKind.NOT_OPENED
    assert "a pool that is not opened" in result.stores["posts"].reason
    assert "lost" not in result.explain()
    pool.server = Target("replica", always(NOT_YET))
    assert judge(0.2).stores["posts"].verdict is Verdict.TIMED_OUT
    pool.server.answer = always(VISIBLE)
    result = judge()
    assert result.complete
    assert [server.address for server in result.stores["posts"].servers] == ["primary", "replica"]


@pytest.mark.parametrize("stands", [VISIBLE, NOT_YET])
def test_a_client_that_is_opened_while_a_barrier_waits(stands: Visibility) -> None:
    """BAR-52: the barrier goes on at the server that has become known, under its own deadline."""
    pool = with_pool(primary_alone())
    results: list[antipode.BarrierResult] = []
    thread = threading.Thread(target=lambda: results.append(judge(2.0 if stands is NOT_YET else 60.0)))
    thread.start()
    until(lambda: pool.asked)
    pool.server = Target("replica", always(stands))
    thread.join(60)
    [result] = results
    assert result.satisfied == (stands is VISIBLE)
    assert {server.address for server in result.stores["posts"].servers} == {"primary", "replica"}


async def test_a_client_that_is_opened_while_an_asyncio_barrier_waits() -> None:
    pool = with_pool(primary_alone())
    threading.Timer(0.1, lambda: setattr(pool, "server", Target("replica", always(VISIBLE)))).start()
    assert (await antipode.barrier_async(WRITE, timeout=60)).complete


def test_a_look_at_a_client_that_is_not_opened_proves_nothing() -> None:
    """BAR-52, BAR-29."""
    pool = with_pool(primary_alone())
    assert judge(0).stores["posts"].kind is UnprovenKind.NOT_OPENED
    assert pool.server is None


def test_a_server_that_a_client_says_otherwise() -> None:
    """BAR-52: the shim has seen the first connection."""
    store = primary_alone()
    pool = Pool()
    expected = store.expect_server(pool, Pool.target, "a pool that is not opened")
    assert not judge(0.1).satisfied
    assert expected.found([Target("replica", always(VISIBLE))])
    assert judge().complete
    assert len(store.servers()) == 2


def test_a_client_that_is_gone_is_not_waited_for() -> None:
    pool = with_pool(primary_alone())
    del pool
    gc.collect()
    assert judge().complete


def test_listed_replicas_are_what_is_known() -> None:
    """BAR-52: with a list in its wrap nobody has to know the client's own server, but for reach `replica`."""
    pool = with_pool(fake_store("posts", Target("listed", always(VISIBLE))), listed=True)
    assert judge().complete
    assert not pool.asked
    assert judge(0.1, reach="replica").stores["posts"].kind is UnprovenKind.NOT_OPENED


def test_a_list_speaks_for_its_own_wrap_alone() -> None:
    """BAR-22: a reader whose server is in nobody's list is judged, also one that is not opened yet."""
    store = fake_store("posts", Target("listed", always(VISIBLE)))
    reader = Target("reader", always(NOT_YET))
    store.use_server(reader)
    assert judge(0.05).stores["posts"].verdict is Verdict.TIMED_OUT
    reader.answer = always(VISIBLE)
    result = judge()
    assert result.complete
    assert [server.address for server in result.stores["posts"].servers] == ["listed", "reader"]
    pool = with_pool(store)
    assert judge(0.1).stores["posts"].kind is UnprovenKind.NOT_OPENED
    pool.server = Target("opened", always(NOT_YET))
    assert not judge(0.1).satisfied


def test_a_writer_that_names_the_readers_adds_none() -> None:
    """BAR-22: in its wrap, or for every wrap in ANTIPODE_STORES."""
    store = fake_store("posts", Target("listed", always(VISIBLE)))
    store.use_server(Target("primary", always(NOT_YET)), listed=True)
    assert judge().complete
    assert not judge(0.05, reach="replica").satisfied


def test_the_setting_names_the_readers_for_every_wrap(monkeypatch: pytest.MonkeyPatch) -> None:
    """BAR-22."""
    monkeypatch.setenv("ANTIPODE_STORE_POSTS_REPLICAS", "listed")
    monkeypatch.setattr(FakeShim, "address", lambda _, target: getattr(target, "address", target))
    store = join_store("posts", FakeShim, StoreOptions())
    store.use_server(Target("primary", always(NOT_YET)))
    assert store.replicas == ("listed",)


def test_a_source_of_two_wraps_is_of_the_region_where_one_has_no_list() -> None:
    """BAR-22, BAR-53."""
    store = fake_store("posts", Target("listed", always(VISIBLE)))
    for listed in (True, False):
        assert judge().complete
        store.discover("a Sentinel", lambda: [Target("led to", always(NOT_YET))], key="service", listed=listed)
    assert judge(0.05).stores["posts"].verdict is Verdict.TIMED_OUT


def test_the_repeated_barrier_of_a_scope_knows_of_a_new_client() -> None:
    """BAR-52: the free path, too."""
    store = primary_alone()
    with antipode.scope(WRITE):
        assert antipode.barrier().satisfied
        pool = with_pool(store)
        with pytest.raises(antipode.BarrierUnproven):
            antipode.barrier(timeout=0.1)
        assert pool.asked


# Discovery


class Listed:
    """A callable for `replicas=`."""

    def __init__(self, *targets: Target) -> None:
        self.targets: Sequence[Target] = targets
        self.error: Exception | None = None

    def __call__(self) -> Sequence[Target]:
        if self.error is not None:
            raise self.error
        return self.targets


@pytest.fixture
def often(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(discovery, "REFRESH_S", 0.0)


@pytest.mark.parametrize("fault", ["empty", "error"])
def test_the_last_answer_of_discovery_stands_for_a_while(
    often: None, fault: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    """BAR-53: and never means that the client's own server is the only one."""
    replica = Target("b", always(NOT_YET))
    listed = Listed(replica)
    store = join_store("posts", FakeShim, StoreOptions(replicas=listed))
    store.use_server(Target("a", always(VISIBLE)), listed=True)
    if fault == "empty":
        listed.targets = []
    else:
        listed.error = OSError("no such name")
    for _ in range(3):
        assert judge(0.05).stores["posts"].verdict is Verdict.TIMED_OUT
    assert [server.address for server in judge(0.05).stores["posts"].servers] == ["b"]
    monkeypatch.setattr(discovery, "STALE_S", 0.0)
    replica.answer = always(VISIBLE)
    result = judge(5.0)
    assert not result.satisfied
    assert result.stores["posts"].kind is UnprovenKind.DISCOVERY
    listed.targets, listed.error = [replica], None
    until(lambda: judge(1.0).complete)


def test_a_fault_of_discovery_is_told_at_once(often: None, monkeypatch: pytest.MonkeyPatch) -> None:
    """BAR-30, BAR-53."""
    listed = Listed(Target("b", always(VISIBLE)))
    join_store("posts", FakeShim, StoreOptions(replicas=listed))
    assert judge().complete
    monkeypatch.setattr(discovery, "STALE_S", 0.0)
    listed.targets = []
    until(lambda: not judge(60.0).satisfied)
    began = time.monotonic()
    assert not judge(60.0).satisfied
    assert time.monotonic() - began < 30


def test_discovery_that_has_never_answered_is_no_pass() -> None:
    """BAR-53: an empty first answer is a fault, not the client's own server."""
    listed = Listed()
    store = join_store("posts", FakeShim, StoreOptions(replicas=listed))
    store.use_server(Target("a", always(VISIBLE)), listed=True)
    assert judge(0.1).stores["posts"].kind is UnprovenKind.DISCOVERY
    listed.targets = [Target("b", always(VISIBLE))]
    result = judge()
    assert result.complete
    assert [server.address for server in result.stores["posts"].servers] == ["b"]


def test_a_server_that_discovery_takes_away_is_named(often: None) -> None:
    """BAR-54: and the pass is not complete, for as long as a connection may lead there."""
    left, stays = Target("left", always(NOT_YET)), Target("stays", always(VISIBLE))
    listed = Listed(left, stays)
    join_store("posts", FakeShim, StoreOptions(replicas=listed))
    assert judge(0.05).stores["posts"].verdict is Verdict.TIMED_OUT
    listed.targets = [stays]
    until(lambda: judge(1.0).satisfied)
    with antipode.scope(WRITE):
        for _ in range(3):  # nor on the free path
            result = antipode.barrier()
            assert not result.complete
            assert result.stores["posts"].left_out == ("left",)
        with pytest.raises(antipode.BarrierIncomplete, match="left"):
            antipode.barrier(require_complete=True)
        antipode.configure(on_replica_out="fail")
        assert not judge(1.0).satisfied
        antipode.configure(on_replica_out="name", left_server=0)
        assert antipode.barrier().complete
    listed.targets = [left, stays]
    until(lambda: judge(0.05).stores["posts"].verdict is Verdict.TIMED_OUT)


# An address that comes to lead elsewhere


class Moving(FakeShim):
    """Each connection goes where the address leads when it is made."""

    leads_to = "old"

    def visible(self, ids: Sequence[WriteId], server: Server) -> Sequence[Visibility]:
        server.session = server.session or self.leads_to
        server.applied(server.session, "e", {"e": 9 if server.session == "old" else 5})
        return super().visible(ids, server)

    def close(self, server: Server) -> None:
        server.session = None


def test_an_address_that_leads_to_another_server_is_noticed(monkeypatch: pytest.MonkeyPatch) -> None:
    """BAR-55: what the old one proved is dropped, also while barriers keep coming."""
    monkeypatch.setattr(Moving, "leads_to", "old")
    antipode.configure(reconnect=0.3)
    lineage = Lineage([WriteId.position("posts", "e", 7)])
    answers = lambda ids, server: [VISIBLE if server.session == "old" else NOT_YET] * len(ids)  # noqa: E731
    fake_store("posts", Target("vip", answers), shim=Moving)
    assert antipode.barrier(lineage).complete
    monkeypatch.setattr(Moving, "leads_to", "new")
    moved = time.monotonic()
    with antipode.scope(lineage):
        until(lambda: not antipode.barrier(timeout=1, on_timeout="proceed").satisfied)
    assert time.monotonic() - moved < 8, "its thread has ended for want of barriers, and that is all"


@pytest.mark.parametrize("listed", [[17], lambda: [17]])
def test_replicas_that_name_no_server(listed: Any) -> None:
    """BAR-22, OBS-14: what a shim takes for a client and is none is the programmer's mistake, with its code."""

    class Urls(FakeShim):
        def address(self, target: Any) -> str:
            return target if isinstance(target, str) else str(target.connection_pool)

    with pytest.raises(antipode.ConfigurationError, match=r"posts: int names no server.*\[AP502\]"):
        join_store("posts", Urls, StoreOptions(replicas=listed))


def test_a_fork_knows_what_was_known() -> None:
    """SCOPE-13: the child asks by itself."""
    store = primary_alone()
    pool = with_pool(store)
    for server in store.servers():
        poller(server).after_fork()
    store.after_fork()
    assert not judge(0.1).satisfied
    assert pool.asked


def test_a_server_that_a_wrapped_client_reaches_is_taken_away_all_the_same(often: None) -> None:
    """BAR-54: that client may still read there."""
    left, stays = Target("left", always(NOT_YET)), Target("stays", always(VISIBLE))
    listed = Listed(left, stays)
    store = join_store("posts", FakeShim, StoreOptions(replicas=listed))
    store.use_server(left, listed=True)
    listed.targets = [stays]
    until(lambda: judge(1.0).satisfied)
    assert judge().stores["posts"].left_out == ("left",)
    assert not judge(0.05, reach="replica").satisfied


def follow(store: Store, pool: Pool) -> discovery.ClientServers:
    def ask(client: Pool) -> list[Target]:
        return [found] if (found := client.target()) else []

    return cast(
        "discovery.ClientServers",
        store.follow_client(pool, lambda client: client.server, ask, "a pool that may be set anew"),
    )


def test_a_client_is_looked_at_while_it_is_there() -> None:
    """BAR-52: its settings say where it leads; asking whether they are to be looked at changes nothing."""
    store = primary_alone()
    pool = Pool()
    source = follow(store, pool)
    pool.server = Target("first", always(VISIBLE))
    assert judge().complete
    pool.server = Target("second", always(NOT_YET))
    before = dict(region_store(store)._discoveries)
    assert source.is_due(time.monotonic())
    assert region_store(store).discovery_due(time.monotonic())
    assert region_store(store)._discoveries == before
    assert not judge(0.2).satisfied
    assert "second" in store.replicas


@pytest.mark.parametrize("reach", ["region", "replica"])
def test_the_servers_of_a_client_that_is_gone_stay(reach: str) -> None:
    """BAR-52: its connections may be in use still; nobody is asked any more."""
    store = primary_alone()
    pool = Pool()
    pool.server = Target("reader", always(NOT_YET))
    source = follow(store, pool)
    assert not judge(0.2, reach=reach).satisfied
    del pool
    gc.collect()
    assert source.is_over
    assert not source.is_due(time.monotonic())
    assert not judge(0.2, reach=reach).satisfied
    assert source not in region_store(store)._discoveries.values()
    assert store.replicas == ("primary", "reader")


def test_a_client_that_is_gone_before_it_led_anywhere_is_not_waited_for() -> None:
    """BAR-52."""
    store = primary_alone()
    pool = Pool()
    source = follow(store, pool)
    assert judge(0.1).stores["posts"].kind is UnprovenKind.NOT_OPENED
    del pool
    gc.collect()
    assert judge().complete
    assert source not in region_store(store)._discoveries.values()


def test_a_barrier_that_waits_for_a_client_to_be_known_goes_on_where_it_is_gone() -> None:
    """BAR-52."""
    store = primary_alone()
    pool = Pool()
    follow(store, pool)
    results: list[antipode.BarrierResult] = []
    thread = threading.Thread(target=lambda: results.append(judge(60)), daemon=True)
    began = time.monotonic()
    thread.start()
    until(lambda: store.parked_threads == 1)
    del pool
    gc.collect()
    thread.join(60)
    assert [result.complete for result in results] == [True]
    assert time.monotonic() - began < 30


def test_a_store_whose_only_client_is_gone_while_a_barrier_waits_for_it_is_no_pass() -> None:
    """BAR-52: it has no server that could be judged."""
    store = join_store("posts", FakeShim, StoreOptions())
    pool = Pool()
    follow(store, pool)
    results: list[antipode.BarrierResult] = []
    thread = threading.Thread(target=lambda: results.append(judge(60)), daemon=True)
    thread.start()
    until(lambda: store.parked_threads == 1)
    del pool
    gc.collect()
    thread.join(60)
    assert [result.satisfied for result in results] == [False]
    assert results[0].stores["posts"].kind is UnprovenKind.NOT_OPENED


def test_a_client_that_leads_elsewhere_each_time(monkeypatch: pytest.MonkeyPatch) -> None:
    """BAR-52: the application's own code opens its connections; it is asked again, and what it once named stays."""
    monkeypatch.setattr(discovery, "REFRESH_S", 0.0)
    store = primary_alone()
    pool = Pool()
    answers = iter([Target("first", always(VISIBLE)), Target("second", always(NOT_YET))])

    def ask(client: Pool) -> list[Target]:
        return [next(answers, Target("first", always(VISIBLE)))]

    store.follow_client(pool, lambda _: "the same", ask, "a pool of its own code", varies=lambda _: True)
    until(lambda: not judge(0.2).satisfied)
    for _ in range(5):
        assert not judge(0.1).satisfied
    assert set(store.replicas) == {"primary", "first", "second"}


def test_the_generation_of_the_servers_grows_under_the_lock(monkeypatch: pytest.MonkeyPatch) -> None:
    """BAR-65: of two threads that change the set at once one would be lost, and a barrier not name its servers anew."""
    grown: list[bool] = []

    def grow(store: Store, value: int) -> None:
        grown.append(store.lock.locked())
        vars(store)["grown"] = value

    monkeypatch.setattr(Store, "generation", property(lambda store: vars(store)["grown"], grow), raising=False)
    store = fake_store("posts", Target("first", always(VISIBLE)))
    second, third = Target("second", always(VISIBLE)), Target("third", always(VISIBLE))
    pool = with_pool(store)
    changes: list[Callable[[], object]] = [
        lambda: store.use_server(second),
        lambda: store.list_replicas(lambda: [second]),
        lambda: store.discover("a name", lambda: [second], key="a key", listed=True),
        lambda: store.discover("a name", lambda: [second], key="a key"),
        lambda: with_pool(store),
        lambda: store.follow_client(pool, lambda _: 1, lambda _: [third], "a client"),
        lambda: store.reach(pool, third, lambda _: True),
    ]
    for change in changes:
        grown.clear()
        change()
        assert grown
        assert all(grown)


def test_an_iterator_that_gives_no_server_is_an_answer_without_one() -> None:
    """BAR-53: the wrapped client's own server would be judged in their place."""
    store = join_store("posts", FakeShim, StoreOptions(replicas=lambda: iter(())))  # type: ignore[arg-type, return-value]
    store.use_server(Target("primary", always(VISIBLE)), listed=True)
    result = judge(0.1)
    assert not result.satisfied
    assert result.stores["posts"].kind is UnprovenKind.DISCOVERY
    assert "it names no server" in result.stores["posts"].reason
