"""`antipode.memory`: replication, faults, marks (random failovers are in test_failover_fuzzer)."""

from __future__ import annotations

import threading
import time

import antipode
import antipode.memory
import pytest
from antipode import Lineage, Verdict
from antipode._propagation.at_rest import lineage_unscoped


def written(store: antipode.memory.Store, client: antipode.memory.Client, key: str, value: str = "v") -> Lineage:
    with antipode.scope() as scope:
        client.set(key, value)
        return scope.lineage


def test_a_replica_gets_writes_after_its_lag_and_refuses_them() -> None:
    store = antipode.memory.Store("s", lag=0.05)
    a, b = store.client("a"), store.client("b")
    a.set("k", "v")
    assert b.get("k") is None
    deadline = time.monotonic() + 5
    while b.get("k") is None:
        assert time.monotonic() < deadline
    with pytest.raises(PermissionError):
        b.set("k", "w")
    a.delete("k")
    while b.get("k") is not None:
        assert time.monotonic() < deadline


def test_a_refused_write_is_not_pending() -> None:
    store = antipode.memory.Store("s")
    b = store.client("b")
    with antipode.scope() as scope, pytest.raises(PermissionError):
        b.set("k", "v")
    assert not scope.pending
    assert not scope.lineage


def test_the_lineage_does_not_grow_with_writes() -> None:
    store = antipode.memory.Store("blog-posts")
    a = store.client("a")
    with antipode.scope() as scope:
        a.set("k0", "v")
        once = len(scope.lineage.serialize())
        for number in range(10_000):
            a.set(f"k{number}", "v")
        assert len(scope.lineage) == 1
        assert len(scope.lineage.serialize()) - once <= 5
        assert len(scope.lineage.serialize()) < 80


def test_freeze_and_heal() -> None:
    store = antipode.memory.Store("s")
    a, b = store.client("a"), store.client("b")
    store.freeze("b")
    lineage = written(store, a, "k")
    assert not antipode.barrier(lineage, timeout=0.05, on_timeout="proceed").satisfied
    threading.Timer(0.1, store.heal, ("b",)).start()
    assert antipode.barrier(lineage, timeout=5).satisfied
    assert b.get("k") == b"v"


def test_one_promotion_keeps_what_arrived_and_a_lost_write_never_passes() -> None:
    store = antipode.memory.Store("s", regions=["a", "b", "c"])
    a, b, c = (store.client(region) for region in "abc")
    kept = written(store, a, "kept")
    lost = written(store, a, "lost")
    store.promote("b", lose=1)
    assert (b.get("kept"), b.get("lost")) == (b"v", None)
    assert antipode.barrier(kept, timeout=2).satisfied
    result = antipode.barrier(lost, timeout=2, on_unproven="proceed")
    assert result.stores["s"].verdict is Verdict.UNPROVEN
    assert "may be lost" in result.stores["s"].reason
    assert result.waited < 1, "an epoch that has ended is answered at once"
    new = written(store, b, "new")
    assert antipode.barrier(new, timeout=2).satisfied
    assert (a.get("new"), c.get("new")) == (b"v", b"v")


def test_two_promotions_with_no_write_between() -> None:
    store = antipode.memory.Store("s", regions=["a", "b", "c"])
    a, _, c = (store.client(region) for region in "abc")
    kept = written(store, a, "kept")
    lost = written(store, a, "lost")
    store.promote("b", lose=1)
    store.promote("c")
    assert antipode.barrier(kept, timeout=2).satisfied
    assert not antipode.barrier(lost, timeout=0.3, on_timeout="proceed", on_unproven="proceed").satisfied
    assert antipode.barrier(written(store, c, "k"), timeout=2).satisfied


def test_a_barrier_parked_across_a_promotion() -> None:
    store = antipode.memory.Store("s", regions=["a", "b", "c"])
    a, b, _ = (store.client(region) for region in "abc")
    store.freeze("b")
    store.freeze("c")
    kept, lost = written(store, a, "kept"), written(store, a, "lost")
    results: dict[str, antipode.BarrierResult] = {}

    def park(name: str, lineage: Lineage) -> None:
        results[name] = antipode.barrier(lineage, timeout=3, on_timeout="proceed", on_unproven="proceed")

    threads = [threading.Thread(target=park, args=each) for each in (("kept", kept), ("lost", lost))]
    for thread in threads:
        thread.start()
    deadline = time.monotonic() + 5
    while antipode.stores()[0].parked_threads < 2:
        assert time.monotonic() < deadline
    store.promote("b", lose=1)
    store.heal("c")
    for thread in threads:
        thread.join(10)
    assert results["kept"].satisfied
    assert not results["lost"].satisfied
    assert b.get("lost") is None


def test_restarts_keep_the_data_and_drop_the_proofs() -> None:
    store = antipode.memory.Store("s")
    a, b = store.client("a"), store.client("b")
    before = written(store, a, "k")
    antipode.barrier(before)
    store.restart("b")
    store.restart("a")
    assert antipode.barrier(before, timeout=2).satisfied
    after = written(store, a, "l")
    assert antipode.barrier(before | after, timeout=2).satisfied
    assert b.get("l") == b"v"


def test_a_server_that_is_down_is_left_out_until_it_is_back() -> None:
    antipode.configure(replica_out_after=0.1)
    store = antipode.memory.Store("s", regions=["a", "b", "c"])
    a, _, c = (store.client(region) for region in "abc")
    store.stop("c")
    with pytest.raises(ConnectionError):
        c.get("k")
    result = antipode.barrier(written(store, a, "k"), timeout=3)
    assert result.stores["s"].left_out == ("memory://s/c",)
    store.restart("c")
    deadline = time.monotonic() + 60
    while not antipode.barrier(written(store, a, "l"), timeout=30).complete:
        assert time.monotonic() < deadline
        time.sleep(0.01)


def test_an_operator_settles_an_epoch() -> None:
    store = antipode.memory.Store("s")
    store.client("a"), store.client("b")
    ancient = Lineage([antipode.WriteId.position("s", "0123456789abcdef", 7)])
    assert not antipode.barrier(ancient, timeout=0.1, on_unproven="proceed").satisfied
    store.settle("0123456789abcdef")
    assert antipode.barrier(ancient, timeout=2).satisfied


def test_mistakes_are_named() -> None:
    with pytest.raises(antipode.ConfigurationError, match="different names"):
        antipode.memory.Store("s", regions=["a", "a"])
    store = antipode.memory.Store("s")
    with pytest.raises(antipode.ConfigurationError, match="no region"):
        store.client("z")
    with pytest.raises(antipode.ConfigurationError, match="primary already"):
        store.promote("a")
    with pytest.raises(antipode.ConfigurationError, match="writes were made"):
        store.promote("b", lose=1)


def test_lineages_rest_beside_values_and_reading_collects_them() -> None:
    """SHIM-13: the lineage at rest, and an identifier that covers the value itself."""
    posts, index = antipode.memory.Store("posts"), antipode.memory.Store("index")
    with antipode.scope() as writer:
        posts.client("a").set("p", "post")
        index.client("a").set("i", "p")
        both = writer.lineage
    with antipode.scope():
        with antipode.reading() as seen:
            assert index.client("a").get("i") == b"p"
        assert both <= seen.lineage
        assert antipode.serialize() == "1", "nothing is added unless asked for"
        antipode.transfer(seen.lineage)
        assert both <= antipode.deserialize(antipode.serialize())
    with antipode.scope() as third:
        with antipode.reading(merge=True):
            index.client("b").get("i")
        assert both <= third.lineage


def test_a_value_of_code_without_antipode_reads_as_the_empty_lineage() -> None:
    """SHIM-14."""
    store = antipode.memory.Store("s")
    antipode.configure(mode="off")
    store.client("a").set("k", "v")
    antipode.configure(mode=None)
    with antipode.scope(), antipode.reading() as seen:
        store.client("a").get("k")
    assert seen.lineage.is_complete()
    assert len(seen.lineage) == 1


def test_what_rests_beside_a_value_that_is_written_outside_any_scope(caplog: pytest.LogCaptureFixture) -> None:
    """SCOPE-32, LIN-19: all but the first write of the process may depend on something."""
    store = antipode.memory.Store("s")
    client = store.client("a")
    client.set("first", "v")
    assert "[AP418]" not in caplog.text
    client.set("second", "v")
    assert "(value out)" in caplog.text
    antipode.configure(mode="off")
    client.set("off", "v")
    antipode.configure(mode=None)
    written(store, client, "scope")
    for key in ("first", "second", "off", "scope"):
        with antipode.scope() as scope, antipode.reading(merge=True):
            client.get(key)
        assert scope.lineage.incomplete == ({""} if key == "second" else set())


def test_a_write_outside_any_scope_does_not_count_beside_its_own_value() -> None:
    """SCOPE-32: another one does, and what was known while its transaction was open."""
    store = antipode.memory.Store("s").client("a")._joined
    first = store.begin("k")
    assert lineage_unscoped(True, first).is_complete()
    assert not lineage_unscoped(True).is_complete()
    assert lineage_unscoped(False).is_complete(), "nothing rests there, so nothing is told"
    first.abandon()
    second = store.begin("k")
    assert not lineage_unscoped(True, second).is_complete()
    assert not lineage_unscoped(True, first).is_complete()


def test_wait_on_read_and_reading_after() -> None:
    """BAR-50, BAR-51."""
    antipode.configure(timeout=20)
    store = antipode.memory.Store("s", lag=0.08)
    a, plain, waiting = store.client("a"), store.client("b"), store.client("b", wait_on_read=True)
    with antipode.scope() as scope:
        a.set("k", "v")
        assert waiting.get("k") == b"v"
        a.set("k", "w")
        with antipode.reading(after=scope.lineage):
            assert plain.get("k") == b"w"
    store.freeze("b")
    with antipode.scope():
        a.set("k", "x")
        antipode.configure(timeout=0.1)
        with pytest.raises(antipode.BarrierTimeout):
            waiting.get("k")


def test_assert_barriers_tells_whether_the_code_waited(antipode_isolated: None) -> None:
    store = antipode.memory.Store("s")
    a, b = store.client("a"), store.client("b")

    def follower(*, protected: bool) -> bytes | None:
        if protected:
            antipode.barrier()
        return b.get("k")

    with antipode.scope():
        a.set("k", "v")
        follower(protected=False)
        with pytest.raises(AssertionError, match="unprotected"):
            antipode.testing.assert_barriers("s")
        follower(protected=True)
        follower(protected=True)
        antipode.testing.assert_barriers("s", at_least=2)
