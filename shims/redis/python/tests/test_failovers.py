"""Ended epochs on real Redis servers: promotions, restarts and resyncs, judged at every kind of replica (EPOCH).

Each row of what becomes of replid and offset, for a write before it, a lost one and one after it.
"""

from __future__ import annotations

import socket
import threading
from collections.abc import Iterator
from contextlib import suppress
from typing import Any, Literal

import antipode
import antipode_redis
import pytest
import redis
from antipode import Lineage, Verdict
from antipode.testing import isolated
from antipode_lab.stores.redis import RedisOptions, RedisStore
from redis.sentinel import Sentinel
from regions import STORE, Posts, until, wait_marked

two_replicas = pytest.mark.redis_lab(replicas=2, lag=["2ms", "10ms"])


@pytest.fixture(autouse=True)
def _isolated() -> Iterator[None]:
    with isolated():
        yield


@pytest.fixture
def posts(redis_lab: RedisStore) -> Posts:
    return Posts(redis_lab, replicas=[redis_lab.url(name) for name in redis_lab.servers])


def at(posts: Posts, name: str, lineage: Lineage, timeout: float = 1.0) -> Verdict:
    """The verdict at one server."""
    port = f":{posts.lab.server(name).port}"
    [server] = [server for server in antipode.stores()[0].servers() if port in server.address]
    return server.wait_for(lineage, timeout).verdict


def check(posts: Posts, name: str, *, kept: Lineage, lost: Lineage | None = None, after: Lineage | None = None) -> None:
    """At a server that has caught up: what is there passes, what is lost does not."""
    if after is not None:
        assert at(posts, name, after, 5.0) is Verdict.VISIBLE
        assert posts.shows(name, "after") == b"v"
    assert at(posts, name, kept, 5.0) is Verdict.VISIBLE, name
    assert posts.shows(name, "kept") == b"v"
    if lost is not None:
        assert at(posts, name, lost, 0.5) is not Verdict.VISIBLE, name
        assert posts.shows(name, "lost") is None


def lose(posts: Posts, name: str) -> Lineage:
    """Promotes a server; the old primary's last write is lost."""
    found: list[Lineage] = []
    old = posts.lab.primary
    posts.lab.promote(name, lose=lambda _: found.append(posts.write("lost", at=old)))
    return found[0]


@two_replicas
def test_one_promotion_that_loses_a_write_and_the_old_primary_rejoining(posts: Posts) -> None:
    """EPOCH-6."""
    kept = posts.write("kept")
    posts.wait_marked(kept)
    lost = lose(posts, "b1")
    after = posts.write("after")
    for name in ("b1", "b2"):
        check(posts, name, kept=kept, lost=lost, after=after)
    assert posts.shows("a", "lost") == b"v", "the old primary has not been told"
    assert at(posts, "a", lost) is Verdict.VISIBLE, "where it is there, in its own history, it is visible"
    assert at(posts, "a", after, 0.2) is not Verdict.VISIBLE
    posts.lab.heal()
    posts.lab.repoint("a", "b1")
    check(posts, "a", kept=kept, lost=lost, after=after)


@two_replicas
def test_an_ended_epoch_is_answered_at_once_with_the_reason(posts: Posts) -> None:
    kept = posts.write("kept")
    posts.wait_marked(kept)
    lost = lose(posts, "b1")
    after = posts.write("after")
    posts.wait_marked(after)
    posts.lab.heal()
    posts.lab.repoint("a", "b1")
    assert posts.look(after, 5.0).satisfied
    result = posts.look(lost, 5.0)
    assert result.stores[STORE].verdict is Verdict.UNPROVEN
    assert result.waited < 1.0
    assert "has ended there" in result.stores[STORE].reason
    with pytest.raises(antipode.BarrierUnproven, match="antipode epoch settle"):
        antipode.barrier(lost, timeout=5)


@two_replicas
def test_a_fallback_to_the_primary_tells_every_write_that_a_failover_lost(posts: Posts) -> None:
    """BAR-46: the region lags, and the new primary has lost them: 10 of 10 are told, none is read stale in silence."""
    kept = posts.write("kept")
    posts.wait_marked(kept)
    found: list[Lineage] = []
    old = posts.lab.primary
    posts.lab.promote("b1", lose=lambda _: found.extend(posts.write(f"lost{n}", at=old) for n in range(10)))
    reader, primary = posts.wrapped["b2"], posts.wrapped["b1"]
    told = 0
    for number, lineage in enumerate(found):
        on_unproven: Literal["raise", "proceed"] = "proceed" if number % 2 else "raise"
        with antipode.scope(lineage), suppress(antipode.BarrierError):
            name = f"lost{number}"
            antipode.read_or_fallback(
                lambda name=name: reader.get(name),  # type: ignore[misc]
                lambda name=name: primary.get(name),  # type: ignore[misc]
                timeout=0,
                on_unproven=on_unproven,
            )
            continue
        told += 1
    assert told == 10
    with antipode.scope(posts.write("fresh")):
        fresh = antipode.read_or_fallback(
            lambda: reader.get("fresh"), lambda: primary.get("fresh"), timeout=0, on_unproven="proceed"
        )
        assert fresh == b"v"


@two_replicas
def test_a_promotion_without_loss_proves_everything(posts: Posts) -> None:
    kept = posts.write("kept")
    posts.wait_marked(kept)
    last = posts.write("last")
    posts.lab.promote("b1", lose=0)
    posts.lab.heal()
    posts.lab.repoint("a", "b1")
    after = posts.write("after")
    for name in ("a", "b1", "b2"):
        check(posts, name, kept=kept, after=after)
        assert at(posts, name, last, 5.0) is Verdict.VISIBLE


@two_replicas
def test_two_promotions_the_second_without_a_write_between(posts: Posts) -> None:
    """EPOCH-19: the only proof of the middle epoch is a mark that somebody made without writing."""
    kept = posts.write("kept")
    posts.wait_marked(kept)
    lost = lose(posts, "b1")
    posts.lab.heal(wait=False)
    epoch = posts.lab.replication("b1")["master_replid"][:16]
    marks = posts.lab.client("b1")
    until(lambda: marks.hexists(antipode_redis.marks.DEFAULT_KEY, epoch))
    posts.lab.promote("b2", lose=0)
    posts.lab.repoint("a", "b2")
    posts.lab.repoint("b1", "b2")
    after = posts.write("after")
    for name in ("a", "b1", "b2"):
        check(posts, name, kept=kept, lost=lost, after=after)


@two_replicas
def test_a_fully_synced_replica_knows_no_parent_and_judges_by_marks(posts: Posts) -> None:
    """EPOCH-16, traps R2: it has no replid2 at all."""
    kept = posts.write("kept")
    posts.wait_marked(kept)
    lost = lose(posts, "b1")
    after = posts.write("after")
    posts.lab.heal(wait=False)
    posts.lab.restart("b2", "nothing", crash=True)
    posts.lab.repoint("b2", "b1")
    assert posts.lab.replication("b2")["master_replid2"].strip("0") == ""
    check(posts, "b2", kept=kept, lost=lost, after=after)


@two_replicas
def test_a_restarted_replica_judges_the_same(posts: Posts) -> None:
    kept = posts.write("kept")
    posts.wait_marked(kept)
    lost = lose(posts, "b1")
    after = posts.write("after")
    posts.lab.wait_caught_up("b2")
    posts.lab.restart("b2", "rdb")
    check(posts, "b2", kept=kept, lost=lost, after=after)


@two_replicas
def test_a_barrier_parked_across_a_promotion(posts: Posts) -> None:
    posts.look(posts.write("kept"))
    posts.lab.partition("b1", mode="silent")
    posts.lab.partition("b2", mode="silent")
    kept = posts.write("kept", "w")
    verdicts: dict[str, Verdict] = {}

    def park(word: str, lineage: Lineage, name: str) -> threading.Thread:
        def wait() -> None:
            verdicts[f"{word} {name}"] = at(posts, name, lineage, 8.0)

        thread = threading.Thread(target=wait)
        thread.start()
        return thread

    threads = [park("kept", kept, name) for name in ("b1", "b2")]
    posts.lab.heal()
    posts.wait_marked(kept)
    found: list[Lineage] = []

    def losing(_: redis.Redis) -> None:
        found.append(posts.write("lost", at="a"))
        threads.extend(park("lost", found[0], name) for name in ("b1", "b2"))

    posts.lab.promote("b1", lose=losing)
    posts.write("after")
    for thread in threads:
        thread.join(20)
        assert not thread.is_alive()
    assert verdicts["kept b1"] is verdicts["kept b2"] is Verdict.VISIBLE
    assert Verdict.VISIBLE not in (verdicts["lost b1"], verdicts["lost b2"])


@two_replicas
def test_the_primary_restarted_from_its_rdb_loses_what_it_had_not(posts: Posts) -> None:
    kept = posts.write("kept")
    posts.wait_marked(kept)
    posts.lab.save("a")
    lost = posts.write("lost")
    posts.lab.restart("a", "rdb", crash=True)
    after = posts.write("after")
    for name in ("a", "b1", "b2"):
        check(posts, name, kept=kept, lost=lost, after=after)


@pytest.mark.redis_lab(replicas=2, lag=["2ms", "10ms"], options={"redis": RedisOptions(aof=True)})
def test_the_primary_restarted_from_its_aof_has_the_data_and_forgot_the_epoch(posts: Posts) -> None:
    """traps R2: a new replid and no parent, though nothing is lost; only the marks know."""
    kept = posts.write("kept")
    posts.wait_marked(kept)
    posts.lab.restart("a", "aof")
    after = posts.write("after")
    for name in ("a", "b1", "b2"):
        check(posts, name, kept=kept, after=after)


@two_replicas
def test_an_evicted_mark_hash_is_unproven_never_a_pass(posts: Posts) -> None:
    kept = posts.write("kept")
    posts.wait_marked(kept)
    posts.lab.promote("b1", lose=0)
    posts.lab.heal()
    posts.lab.promote("b2", lose=0)
    posts.lab.client("b2").delete(antipode_redis.marks.DEFAULT_KEY)
    posts.lab.repoint("a", "b2")
    posts.lab.repoint("b1", "b2")
    after = posts.write("after")
    posts.wait_marked(after)
    assert posts.look(after, 5.0).satisfied
    assert at(posts, "a", kept, 0.5) is Verdict.UNPROVEN, "it is there, and nothing proves it any more"


@two_replicas
def test_an_operator_settles_what_nothing_proves(posts: Posts) -> None:
    """EPOCH-24."""
    ancient = Lineage([antipode.WriteId.position(STORE, "0123456789abcdef", 2**53 + 1)])
    posts.write("k")
    assert posts.look(ancient, 0.3).stores[STORE].verdict is Verdict.UNPROVEN
    shim = antipode_redis.RedisShim
    shim.settle(posts.lab.url("a"), "0123456789abcdef")
    until(lambda: posts.look(ancient, 1.0).satisfied)
    assert any(mark.epoch == "0123456789abcdef" for mark in shim.epochs(posts.lab.url("a")))


@pytest.mark.timeout(180)
@pytest.mark.redis_lab(replicas=2, lag=["5ms", "10ms"], options={"redis": RedisOptions(sentinels=True)})
def test_a_sentinel_failover(redis_lab: RedisStore) -> None:
    """The usual form of failover in the field: writer and readers find their servers by Sentinel."""
    finder = Sentinel(redis_lab.sentinels)  # type: ignore[no-untyped-call]
    primary = antipode_redis.wrap(
        finder.master_for(redis_lab.sentinel_name),  # type: ignore[no-untyped-call]
        store=STORE,
    )
    reader = antipode_redis.wrap(
        finder.slave_for(redis_lab.sentinel_name),  # type: ignore[no-untyped-call]
        store=STORE,
    )
    with antipode.scope() as scope:
        primary.set("kept", "v")
        assert antipode.barrier(timeout=5).satisfied
        assert reader.get("kept") == b"v"
        kept = scope.lineage
    wait_marked(redis_lab, kept)
    redis_lab.wait_caught_up("b1")
    redis_lab.wait_caught_up("b2")
    redis_lab.kill("a")
    redis_lab.wait_failover("a")

    def writes() -> bool:
        try:
            with antipode.scope():
                primary.set("after", "v")
            return True
        except redis.RedisError:
            return False

    until(writes, 60)
    results: list[antipode.BarrierResult] = []

    def waits() -> bool:
        # Written anew each time: Sentinels may fail over again at once, and what was written between is lost then.
        with antipode.scope() as scope:
            primary.set("after", "w")
            assert scope.lineage.is_complete()
            wanted = kept | scope.lineage
        results.append(antipode.barrier(wanted, timeout=2, on_timeout="proceed", on_unproven="proceed"))
        return results[-1].satisfied

    until(waits, 60, lambda: results[-1].explain() if results else "no write was taken")
    # The list of replicas is asked for every 5 s: a server that joined since is read, and was not waited for.
    until(lambda: (reader.get("kept"), reader.get("after")) == (b"v", b"w"))


@pytest.mark.redis_lab(
    replicas=2,
    lag=["0ms", "0ms"],
    options={"redis": RedisOptions(config={"loading-process-events-interval-bytes": "1024"})},
)
def test_a_replica_that_is_loading_another_history_proves_nothing_by_the_one_before(posts: Posts) -> None:
    """While it loads it still names its former parent (replid2), and answers INFO; its data are gone."""
    kept = posts.write("kept")
    posts.wait_marked(kept)
    posts.lab.promote("b1", lose=0)
    after = posts.write("after")
    assert at(posts, "b2", kept | after, 5.0) is Verdict.VISIBLE
    assert posts.lab.replication("b2")["second_repl_offset"] != "-1", "it continued, and remembers the parent"
    old, loading = posts.lab.client("a"), posts.lab.client("b2")
    old.flushall()
    old.mset({f"other:{number}": "x" * 50 for number in range(500)})
    loading.config_set("key-load-delay", 4000)
    posts.lab.repoint("b2", "a", wait=False)

    def is_loading() -> bool:
        return bool(loading.info("persistence")["loading"] == 1)

    until(is_loading)
    looks = 0
    while is_loading():
        verdicts = [at(posts, "b2", lineage, 0.05) for lineage in (kept, after)]
        looks += 1
        if is_loading():
            assert Verdict.VISIBLE not in verdicts
    assert looks
    assert posts.shows("b2", "kept") is None


def _primary_with_a_file_that_nobody_reads() -> socket.socket:
    """Stands for a primary of a newer version: its full copy fails at the replica behind the replica's flush."""
    listener = socket.create_server(("127.0.0.1", 0))

    def serve() -> None:
        with suppress(OSError):
            while True:
                connection, _ = listener.accept()
                while data := connection.recv(65536):
                    if b"PSYNC" in data:
                        file = b"REDIS0099\xff" + b"\0" * 8
                        connection.sendall(b"+FULLRESYNC " + b"f" * 40 + b" 1\r\n$%d\r\n" % len(file) + file)
                    else:
                        connection.sendall(b"+PONG\r\n" if b"PING" in data else b"+OK\r\n" * data.count(b"REPLCONF"))

    threading.Thread(target=serve, daemon=True).start()
    return listener


@pytest.mark.redis_lab(replicas=2, lag=["0ms", "0ms"])
def test_a_replica_that_lost_its_data_to_a_failed_copy_proves_nothing(posts: Posts) -> None:
    """EPOCH-33: promoted, it names the old history as its parent, and is empty."""
    kept = posts.write("kept")
    assert posts.look(kept, 5.0).satisfied
    plain: Any = posts.lab.client("b1")
    with _primary_with_a_file_that_nobody_reads() as listener:
        plain.replicaof("127.0.0.1", listener.getsockname()[1])
        until(lambda: plain.get("kept") is None)
        plain.replicaof("NO", "ONE")
    where: Any = plain.info("replication")
    [write_id] = kept.of_store(STORE)
    assert where["master_replid2"].startswith(write_id.version.epoch)  # type: ignore[union-attr]
    assert (where["repl_backlog_active"], plain.dbsize()) == (0, 0)
    assert at(posts, "b1", kept, 1.0) is Verdict.UNPROVEN
