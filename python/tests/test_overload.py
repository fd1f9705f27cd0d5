"""Overload answers only for what it asked: looks, lag, waits in a row, bounds (spec BAR-39, BAR-40, BAR-57, BAR-60)."""

from __future__ import annotations

import asyncio
import errno
import os
import threading
import time
from typing import Any, NoReturn

import antipode
import antipode.memory
import pytest
from antipode import Lineage, Ordered, UnprovenKind, Verdict, WriteId
from antipode._engine.server import ServerPoller
from antipode._model.verdict import NOT_YET, VISIBLE
from antipode._store import contract
from antipode._store.store import registry
from antipode.shim import Server
from fakes import Target, always, fake_store
from inner import poller
from test_engine import Log, LogShim, at, log_store, server, until


def timed_out(lineage: Lineage, times: int, seconds: float) -> None:
    for _ in range(times):
        assert not antipode.barrier(lineage, timeout=seconds, on_timeout="proceed").satisfied


def test_waits_for_objects_that_never_come_stop_no_other() -> None:
    """BAR-40: each key counts for itself, and nobody is answered unasked."""
    store = antipode.memory.Store("posts", regions=["a", "b"], lag=0.02, versions="object")
    writer = store.client("a")
    store.client("b")
    with antipode.scope() as scope:
        writer.set("x", b"1")
        good = scope.lineage
    stopped = threading.Event()

    def haunt(thread: int) -> None:
        number = 0
        while not stopped.is_set():
            number += 1
            ghost = WriteId("posts", f"ghost{thread}-{number}".encode(), Ordered("", 1))
            antipode.barrier(Lineage([ghost]), timeout=0.2, on_timeout="proceed")

    threads = [threading.Thread(target=haunt, args=(number,)) for number in range(8)]
    for thread in threads:
        thread.start()
    try:
        time.sleep(0.6)  # so that each has timed out twice
        for _ in range(20):
            assert antipode.barrier(good, timeout=20).satisfied
            time.sleep(0.02)
    finally:
        stopped.set()
        for thread in threads:
            thread.join()


def test_a_wish_for_a_position_that_is_not_written_yet_is_no_lag() -> None:
    """BAR-57: the next honest write gets that very number."""
    store = antipode.memory.Store("posts", regions=["a", "b"], lag=0.1)
    writer = store.client("a")
    store.client("b")

    def write() -> Lineage:
        with antipode.scope() as scope:
            writer.set("x", b"1")
            return scope.lineage

    last = write()
    assert antipode.barrier(last, timeout=20).satisfied
    [entry] = last.of_store("posts")
    assert isinstance(entry.version, Ordered)
    wish = WriteId.position("posts", entry.version.epoch, entry.version.counter + 1)
    assert not antipode.barrier(Lineage([wish]), timeout=0.05, on_timeout="proceed").satisfied
    time.sleep(0.3)  # the wish is older than the deadline below
    assert antipode.barrier(write(), timeout=0.25).satisfied


def test_what_arrives_in_time_passes_behind_a_barrier_that_timed_out() -> None:
    """BAR-40: it is looked up."""
    log = log_store()
    timed_out(at(5), 1, 0.2)
    log.applied = 6
    assert antipode.barrier(at(6), timeout=0.1).satisfied


def test_waits_in_a_row_that_time_out_at_a_server_that_stands_still_end_the_next_one_early() -> None:
    """BAR-40: it is looked up first; any growth of the position ends it."""
    log = log_store()
    log.applied = 1
    assert antipode.barrier(at(1), timeout=20).satisfied
    timed_out(at(5), 5, 0.05)
    asked = log.asked
    assert "5 waits in a row timed out there" in late(at(6), 0.08)
    assert log.asked > asked
    assert "in a row" not in late(at(6), 0.2), "a longer deadline has not passed in vain yet"
    log.applied = 2
    until(lambda: server().applied_in("e1") == 2)
    assert "in a row" not in late(at(6), 0.03)
    log.applied = 6
    assert antipode.barrier(at(6), timeout=20).satisfied


def late(lineage: Lineage, seconds: float) -> str:
    """The reason why a barrier timed out."""
    [store] = antipode.barrier(lineage, timeout=seconds, on_timeout="proceed").stores.values()
    assert store.verdict is Verdict.TIMED_OUT
    assert store.code == ("AP205" if "in a row" in store.reason or "it lags by" in store.reason else "AP201")  # OBS-15
    return store.reason


def test_waits_for_one_key_do_not_count_against_another() -> None:
    """BAR-40."""
    there: set[bytes] = set()
    target = Target("s0", lambda ids, server: [VISIBLE if each.key in there else NOT_YET for each in ids])
    fake_store("s", target)
    one, other = (Lineage([WriteId("s", key, Ordered("", 1))]) for key in (b"one", b"other"))
    timed_out(one, 5, 0.03)
    assert "in a row" in late(one, 0.03)
    assert "in a row" not in late(other, 0.03)
    there.add(b"one")
    assert antipode.barrier(one, timeout=0.03).satisfied
    there.clear()
    assert "in a row" not in late(one, 0.03), "a write of the key that was seen ends it"


def test_barriers_that_were_cancelled_or_refused_a_place_are_no_time_outs() -> None:
    """BAR-40."""
    antipode.configure(max_tasks=0)
    log_store()

    async def refused() -> None:
        for _ in range(6):
            result = await antipode.barrier_async(at(5), timeout=0.05, on_timeout="proceed")
            assert "overloaded" in result.stores["log"].reason
            await asyncio.sleep(0.05)

    asyncio.run(refused())
    antipode.configure(max_tasks=10)

    async def cancelled() -> None:
        for _ in range(6):
            with pytest.raises(TimeoutError):
                await asyncio.wait_for(antipode.barrier_async(at(5), timeout=0.06), 0.04)

    asyncio.run(cancelled())
    assert "in a row" not in late(at(5), 0.05)


def test_lag_is_what_servers_show() -> None:
    """BAR-40, BAR-57: a replica that is behind another server for longer than the deadline is looked up and no more."""
    primary, replica = Log("log-1"), Log("log-2")
    fake_store("log", primary, replica, shim=LogShim)
    assert "lags" not in late(at(5), 0.1)
    primary.applied = 5
    assert "lags" not in late(at(5), 0.3), "it is behind, and not for so long"
    until(lambda: "lags by" in late(at(5), 0.3))
    began = time.monotonic()
    assert "lags by" in late(at(5), 0.3)
    assert time.monotonic() - began < 0.3
    primary.applied = replica.applied = 6
    assert antipode.barrier(at(6), timeout=20).satisfied
    primary.applied = 7
    assert "lags" not in late(at(7), 0.1), "its age begins when another server is seen there"


def test_a_look_ends_an_overload_that_is_over() -> None:
    """BAR-40: what is known at the call may be long past."""
    primary, replica = Log("log-1"), Log("log-2")
    fake_store("log", primary, replica, shim=LogShim)
    primary.applied = 5
    late(at(5), 0.1)
    late(at(5), 0.1)
    replica.applied = 5
    assert antipode.barrier(at(5), timeout=0.1).satisfied


# Bounds


def objects(count: int, prefix: str = "g") -> Lineage:
    return Lineage([WriteId("s", f"{prefix}{number}".encode(), Ordered("", 1)) for number in range(count)])


def test_entries_are_bounded_by_store(monkeypatch: pytest.MonkeyPatch) -> None:
    """BAR-60."""
    monkeypatch.setattr(contract, "MOST_ENTRIES", 10)
    target = Target("s0", always(NOT_YET))
    store = fake_store("s", target, Target("s1", always(NOT_YET)))
    waiting = threading.Thread(target=lambda: antipode.barrier(objects(7), timeout=60))
    waiting.start()
    until(lambda: store.parked_entries == 7)
    began = time.monotonic()
    result = antipode.barrier(objects(4, "h"), timeout=30, on_timeout="proceed")
    assert "overloaded" in result.stores["s"].reason
    assert time.monotonic() - began < 15
    assert store.parked_entries == 7
    assert (
        antipode.barrier(objects(3, "h"), timeout=0.05, on_timeout="proceed").stores["s"].verdict is Verdict.TIMED_OUT
    )
    for each in store.servers():
        assert isinstance(each, Server)
        each.target.answer = always(VISIBLE)
    waiting.join(30)
    assert not waiting.is_alive()
    assert (store.parked_entries, store.parked_threads) == (0, 0)


def test_the_deadline_holds_while_a_barrier_is_parked(monkeypatch: pytest.MonkeyPatch) -> None:
    """BAR-28, BAR-60: parking 400 entries would take four seconds here."""
    fake_store("s", Target("s0", always(NOT_YET)))
    park = ServerPoller.park

    def slow(self: ServerPoller, need: Any) -> bool:
        time.sleep(0.01)
        return park(self, need)

    monkeypatch.setattr(ServerPoller, "park", slow)
    began = time.monotonic()
    assert not antipode.barrier(objects(400), timeout=0.2, on_timeout="proceed").satisfied
    assert time.monotonic() - began < 2


def test_parking_takes_no_longer_where_many_wait() -> None:
    """BAR-60: in proportion to the entries parked now. It was the square: 20,000 took minutes."""
    fake_store("s", Target("s0", always(NOT_YET)))
    lineages = [objects(2_000, f"{number}-") for number in range(10)]
    began = time.monotonic()
    threads = [
        threading.Thread(target=lambda each=each: antipode.barrier(each, timeout=2, on_timeout="proceed"))
        for each in lineages
    ]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert time.monotonic() - began < 12


def test_unknown_epochs_are_bounded_and_forgotten() -> None:
    """BAR-60, EPOCH-13."""
    log_store()
    for number in range(30):
        ids = [WriteId.position("log", f"u{number}x{each}", 7) for each in range(50)]
        antipode.barrier(Lineage(ids), timeout=0, on_unproven="proceed", on_timeout="proceed")
    kept = poller(server()).waiters._unknown
    assert 0 < len(kept) <= 1000
    now = time.monotonic()
    poller(server()).waiters._forget_old(now + 9)
    assert kept
    poller(server()).waiters._forget_old(now + 11)
    assert not kept


# Our own process


def test_a_process_without_descriptors_proves_nothing_and_says_so(monkeypatch: pytest.MonkeyPatch) -> None:
    """BAR-59: own fault, out of no barrier as an exception of the system's."""
    log = log_store()
    log.applied = 5

    def none_left() -> NoReturn:
        raise OSError(errno.EMFILE, "Too many open files")

    with monkeypatch.context() as patched:
        patched.setattr(os, "pipe", none_left)
        result = antipode.barrier(at(5), timeout=20, on_timeout="proceed")
    assert result.stores["log"].kind is UnprovenKind.OWN_FAULT
    assert "Too many open files" in result.stores["log"].reason
    assert antipode.barrier(at(5), timeout=20).satisfied


@pytest.mark.parametrize("answered", [True, False])
def test_an_event_loop_that_is_closed_gives_the_places_back(answered: bool) -> None:
    """BAR-32: also where nothing ever comes."""
    log = log_store()
    loop = asyncio.new_event_loop()
    task = loop.create_task(antipode.barrier_async(at(5), timeout=60))
    loop.run_until_complete(asyncio.sleep(0.05))
    store = registry().need("log")
    assert store.parked_tasks == 1
    loop.close()
    if answered:
        log.applied = 5
    until(lambda: (store.parked_tasks, store.parked_entries) == (0, 0))
    until(lambda: poller(server()).waiters.live == 0)
    task._log_destroy_pending = False  # type: ignore[attr-defined]
