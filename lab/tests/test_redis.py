"""The lab's Redis, on real servers."""

from __future__ import annotations

import time
from collections.abc import Callable

import pytest
import redis as redis_py
from antipode_lab import LabError
from antipode_lab.stores.redis import LOST_KEY, RedisOptions, RedisStore
from redis.sentinel import Sentinel

two_replicas = pytest.mark.redis_lab(replicas=2, lag=["80ms", "120ms"])


def until(condition: Callable[[], object], timeout: float = 10.0) -> None:
    """Polls, with a deadline."""
    begun = time.monotonic()
    while not condition():
        assert time.monotonic() - begun < timeout, "waited in vain"
        time.sleep(0.0005)


def lag_of(lab: RedisStore, replica: str, key: str) -> float:
    """Seconds from before a write at the primary until the replica shows it: never less than the link's lag."""
    with lab.client(lab.primary) as writer, lab.client(replica) as reader:
        reader.ping()
        writer.ping()
        begun = time.monotonic()
        writer.set(key, "x")
        until(lambda: reader.get(key))
        return time.monotonic() - begun


@two_replicas
def test_each_replica_has_its_own_lag(redis_lab: RedisStore) -> None:
    assert redis_lab.primary == "a"
    assert redis_lab.replicas == ["b1", "b2"]
    lags = {name: min(lag_of(redis_lab, name, f"{name}:{i}") for i in range(5)) for name in ("b1", "b2")}
    assert 0.079 < lags["b1"] < 0.11, lags
    assert 0.119 < lags["b2"] < 0.15, lags


@two_replicas
def test_lag_changes_under_a_live_connection(redis_lab: RedisStore) -> None:
    redis_lab.lag("b2", "200ms")
    assert lag_of(redis_lab, "b2", "k1") > 0.199
    redis_lab.lag("b2", 0.005)
    assert min(lag_of(redis_lab, "b2", f"k{i}") for i in range(2, 6)) < 0.1
    assert lag_of(redis_lab, "b1", "other") > 0.079, "the other replica's lag must stay"


@two_replicas
@pytest.mark.parametrize("mode", ["cut", "silent"])
def test_a_partition_parts_one_replica_only_and_loses_nothing(redis_lab: RedisStore, mode: str) -> None:
    redis_lab.partition("b1", mode="cut" if mode == "cut" else "silent")
    redis_lab.client("a").set("k", "1")
    until(lambda: redis_lab.client("b2").get("k"))
    time.sleep(0.3)  # three times the lag: a partition that parts nothing would show
    assert redis_lab.client("b1").get("k") is None
    assert redis_lab.replication("b1")["master_link_status"] == ("down" if mode == "cut" else "up")
    assert {s.name: s.link for s in redis_lab.status()} == {"a": None, "b1": mode, "b2": "up"}
    redis_lab.heal("b1")
    assert redis_lab.client("b1").get("k") == b"1"


@two_replicas
def test_a_promotion_loses_what_never_arrived(redis_lab: RedisStore) -> None:
    with redis_lab.client("a") as client:
        client.set("kept", "1")
    redis_lab.wait_caught_up("b1")
    redis_lab.promote("b1", lose=7)
    lost = [LOST_KEY.format(index) for index in range(7)]
    assert redis_lab.client("a").exists(*lost) == 7, "the old primary still has its lost writes"
    for name in ("b1", "b2"):
        assert redis_lab.client(name).exists(*lost) == 0
        assert redis_lab.client(name).get("kept") == b"1"
    assert lag_of(redis_lab, "b2", "after") > 0.119, "the re-pointed replica keeps its lag"
    redis_lab.heal()
    redis_lab.repoint("a", "b1")
    assert redis_lab.client("a").exists(*lost) == 0
    assert redis_lab.client("a").get("after") == b"x"
    assert redis_lab.primary == "b1"
    assert sorted(redis_lab.replicas) == ["a", "b2"]


@two_replicas
def test_lose_takes_the_callers_own_writes_and_zero_loses_nothing(redis_lab: RedisStore) -> None:
    redis_lab.promote("b1", lose=lambda client: client.set("own", "1"))
    assert redis_lab.client("a").get("own") == b"1"
    assert redis_lab.client("b1").get("own") is None
    redis_lab.client("b1").set("all", "1")
    redis_lab.promote("b2", lose=0)
    assert redis_lab.client("b2").get("all") == b"1"
    assert redis_lab.primary == "b2"


@pytest.mark.parametrize("source", ["rdb", "aof", "nothing"])
def test_the_primary_restarts_from(redis_lab: RedisStore, source: str) -> None:
    with redis_lab.client("a") as client:
        client.set("k", "1")
    before = redis_lab.replication("a")
    redis_lab.restart("a", source)
    after = redis_lab.replication("a")
    assert redis_lab.client("a").get("k") == (None if source == "nothing" else b"1")
    assert redis_lab.client("b1").get("k") == redis_lab.client("a").get("k")
    assert after["master_replid"] != before["master_replid"]
    # traps: only an RDB carries the old epoch on
    assert (after["master_replid2"] == before["master_replid"]) == (source == "rdb")


def test_a_crashed_primary_loses_what_its_rdb_had_not(redis_lab: RedisStore) -> None:
    with redis_lab.client("a") as client:
        client.set("saved", "1")
        redis_lab.save("a")
        client.set("unsaved", "1")
    redis_lab.restart("a", "rdb", crash=True)
    for name in ("a", "b1"):
        assert redis_lab.client(name).get("saved") == b"1"
        assert redis_lab.client(name).get("unsaved") is None


@two_replicas
def test_a_replica_restarts_from_its_rdb_at_an_older_offset(redis_lab: RedisStore) -> None:
    with redis_lab.client("a") as client:
        client.set("k", "1")
        redis_lab.wait_caught_up("b1")
        redis_lab.save("b1")
        client.set("k", "2")
        redis_lab.wait_caught_up("b1")
        redis_lab.partition("b1")
        redis_lab.restart("b1", "rdb", crash=True)
        assert redis_lab.client("b1").get("k") == b"1", "visibility has gone backwards"
        redis_lab.heal()
        assert redis_lab.client("b1").get("k") == b"2"


@pytest.mark.redis_lab(options={"redis": RedisOptions(config={"repl-backlog-ttl": "1"})})
def test_a_backlog_can_be_freed(redis_lab: RedisStore) -> None:
    before = redis_lab.replication("a")
    redis_lab.partition("b1")
    until(lambda: redis_lab.replication("a")["repl_backlog_active"] == "0")
    redis_lab.heal()
    assert redis_lab.replication("a")["master_replid"] != before["master_replid"]


@two_replicas
def test_freeze_and_kill(redis_lab: RedisStore) -> None:
    redis_lab.freeze("b1")
    with pytest.raises(redis_py.TimeoutError):
        redis_lab.client("b1", socket_timeout=0.2, retry=None).ping()
    assert {s.name: s.state for s in redis_lab.status()}["b1"] == "frozen"
    redis_lab.thaw("b1")
    assert redis_lab.client("b1").ping()
    redis_lab.kill("b2")
    with pytest.raises(redis_py.ConnectionError):
        redis_lab.client("b2", retry=None).ping()
    assert {s.name: s.state for s in redis_lab.status()}["b2"] == "stopped"
    redis_lab.client("a").set("k", "1")
    with pytest.raises(LabError, match="restart"):
        redis_lab.freeze("b2")
    redis_lab.restart("b2")
    assert redis_lab.client("b2").get("k") == b"1"


@two_replicas
def test_a_promotion_while_the_other_replica_is_frozen_or_down(redis_lab: RedisStore) -> None:
    redis_lab.freeze("b2")
    redis_lab.promote("b1", lose=0)
    redis_lab.thaw("b2")
    assert redis_lab.server("b2").source == "a", "nobody could tell it"
    redis_lab.client("a").set("k", "old branch")
    redis_lab.wait_caught_up("b2")
    assert redis_lab.client("b2").get("k") == b"old branch"
    redis_lab.repoint("b2", "b1")
    assert redis_lab.client("b2").get("k") is None
    redis_lab.repoint("a", "b1")
    redis_lab.kill("b2")
    redis_lab.promote("a", lose=0)
    redis_lab.client("a").set("k", "new branch")
    redis_lab.restart("b2")
    assert redis_lab.client("b2").get("k") == b"new branch"


def test_a_hardened_user_may_not_ask_for_the_position(redis_lab: RedisStore) -> None:
    redis_lab.create_user("app", "secret")
    with redis_lab.client("b1", username="app", password="secret") as client:
        assert client.get("k") is None
        with pytest.raises(redis_py.exceptions.NoPermissionError):
            client.info("replication")
    redis_lab.restart("b1")
    with redis_lab.client("b1", username="app", password="secret") as client:
        assert client.ping(), "the user is there again after a restart"


def test_what_cannot_be_is_refused(redis_lab: RedisStore) -> None:
    with pytest.raises(LabError, match="no server 'b7'"):
        redis_lab.lag("b7", "1ms")
    with pytest.raises(LabError, match="whole milliseconds"):
        redis_lab.lag("b1", 0.00015)
    with pytest.raises(LabError, match="circle"):
        redis_lab.repoint("a", "b1")
    with pytest.raises(LabError, match="primary already"):
        redis_lab.promote("a")
    with pytest.raises(LabError, match="append-only"):
        redis_lab.restart("b1", "aof", crash=True)
    assert redis_lab.client("b1").ping(), "a refused restart must leave the server running"


@pytest.mark.redis_lab(replicas=2, lag=["40ms", "60ms"], options={"redis": RedisOptions(sentinels=True)})
def test_sentinels_fail_over_and_the_links_keep_their_lags(redis_lab: RedisStore) -> None:
    finder = Sentinel(redis_lab.sentinels)  # type: ignore[no-untyped-call]
    primary = finder.master_for(redis_lab.sentinel_name)  # type: ignore[no-untyped-call]
    primary.set("k", "1")
    assert lag_of(redis_lab, "b2", "before") > 0.059
    redis_lab.wait_caught_up("b1")
    redis_lab.wait_caught_up("b2")
    with pytest.raises(LabError, match="Sentinels"):
        redis_lab.promote("b1")
    redis_lab.kill("a")
    new = redis_lab.wait_failover("a")
    assert new in {"b1", "b2"}
    other = "b2" if new == "b1" else "b1"
    assert primary.get("k") == b"1"
    until(lambda: redis_lab.replication(other).get("master_link_status") == "up", 60)  # it tries the dead one first
    redis_lab.wait_caught_up(other)
    assert lag_of(redis_lab, other, "after") > (0.059 if other == "b2" else 0.039)
    redis_lab.restart("a")
    redis_lab.repoint("a", new)
    assert redis_lab.client("a").get("after") == b"x"
    assert redis_lab.failover() != new
