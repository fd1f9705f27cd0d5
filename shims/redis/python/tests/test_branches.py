"""Branches whose rows are in Redis: two regions, partitions, lost rows, failovers, rights (spec BRANCH)."""

from __future__ import annotations

import subprocess
import sys
import threading
import time
from collections.abc import Iterator
from typing import Any

import antipode
import antipode_redis
import pytest
import redis
from antipode import Lineage, UnfitStoreError
from antipode._model.branch_ids import BRANCHES
from antipode._model.errors import ConfigurationError
from antipode._model.result import BarrierResult
from antipode._store.branch_table import CLOSED
from antipode.shim.administration import Finding, InitRequest, Level
from antipode.testing import isolated
from antipode_lab.stores.redis import RedisStore
from regions import STORE, Posts, until

two_replicas = pytest.mark.redis_lab(replicas=2, lag=["5ms", "20ms"])


@pytest.fixture(autouse=True)
def _isolated() -> Iterator[None]:
    with isolated():
        yield


@pytest.fixture
def posts(redis_lab: RedisStore) -> Posts:
    found = Posts(redis_lab)
    antipode.configure(branches=found.wrapped["a"])
    return found


def hand_over(within: float = 30.0) -> tuple[str, Lineage]:
    with antipode.scope() as scope:
        with antipode.branch(within=within):
            task = antipode.serialize()
        return task, scope.lineage


def run(posts: Posts, task: str, key: str = "k") -> None:
    with antipode.message_scope(task):
        posts.wrapped[posts.lab.primary].set(key, "v")
        antipode.close()


def look(lineage: Lineage, timeout: float) -> BarrierResult:
    CLOSED._held.clear()  # as another process, which has seen nothing yet
    began = time.monotonic()
    result = antipode.barrier(lineage, timeout=timeout, on_timeout="proceed", on_unproven="proceed")
    assert time.monotonic() - began < timeout + 1.0, "past its deadline"
    return result


@two_replicas
def test_a_barrier_hears_of_the_close_by_the_servers_push(posts: Posts) -> None:
    """BRANCH-12, BRANCH-14: woken by the row's arrival at the replica, not by a poll."""
    delays = []
    for number in range(8):
        task, lineage = hand_over()
        closed: list[float] = []

        def end(task: str = task, number: int = number, closed: list[float] = closed) -> None:
            time.sleep(0.3)
            run(posts, task, f"k{number}")
            closed.append(time.monotonic())

        thread = threading.Thread(target=end)
        thread.start()
        result = look(lineage, 10.0)
        ended = time.monotonic()
        thread.join()
        assert result.complete
        assert all(posts.shows(name, f"k{number}") == b"v" for name in posts.readers)
        delays.append(ended - closed[0])
    assert sorted(delays)[len(delays) // 2] < 0.2, delays  # 20 ms of lag, and no deadline of a poll


@two_replicas
@pytest.mark.parametrize("mode", ["cut", "silent"])
def test_a_close_behind_a_partition_is_still_open(posts: Posts, mode: str) -> None:
    """BRANCH-13."""
    for name in posts.readers:
        posts.lab.partition(name, mode="cut" if mode == "cut" else "silent")
    task, lineage = hand_over()
    run(posts, task)
    result = look(lineage, 0.4)
    assert str(result.stores[BRANCHES].verdict) == "timed_out"
    for name in posts.readers:
        posts.lab.heal(name, wait=False)
    until(lambda: look(lineage, 2.0).complete)
    assert all(posts.shows(name, "k") == b"v" for name in posts.readers)


@two_replicas
def test_a_row_that_a_failover_lost_is_no_close(posts: Posts) -> None:
    """BRANCH-13, BRANCH-15: and the task, tried again at the new primary, closes it."""
    task, lineage = hand_over(within=1.0)
    for name in posts.readers:
        posts.lab.partition(name)
    with antipode.message_scope(task):
        antipode.close()
    posts.lab.kill("a")
    for name in posts.readers:
        posts.lab.heal(name, wait=False)
    posts.lab.promote("b1")
    result = look(lineage, 4.0)
    assert str(result.stores[BRANCHES].verdict) == "unproven"
    assert "abandoned" in result.stores[BRANCHES].reason
    run(posts, task)
    until(lambda: look(lineage, 2.0).satisfied)
    assert posts.shows("b1", "k") == b"v"


@two_replicas
def test_a_killed_replica_is_not_the_only_one(posts: Posts) -> None:
    """BRANCH-13: any server of the region will do, and where none answers nothing passes."""
    antipode.configure(replica_out_after=0.3)
    task, lineage = hand_over()
    run(posts, task)
    assert look(lineage, 5.0).complete
    posts.lab.kill("b1")
    result = look(lineage, 3.0)
    assert result.satisfied
    assert not result.complete
    posts.lab.kill("b2")
    result = look(lineage, 1.5)
    assert not result.satisfied


TASK = """
import sys, time, antipode, antipode_redis, redis
posts = antipode_redis.wrap(redis.Redis.from_url(sys.argv[1]), store="blog-posts")
with antipode.message_scope(sys.argv[2]):
    posts.set("half", "v")
    print("half", flush=True)
    if sys.argv[3] == "dies":
        time.sleep(60)
    posts.set("whole", "v")
    antipode.close()
"""


@two_replicas
def test_a_task_that_is_killed_never_passes_and_its_second_try_does(posts: Posts) -> None:
    """BRANCH-15: a process of its own, killed between its two writes."""
    text, lineage = hand_over(within=2.0)
    words = [sys.executable, "-c", TASK, posts.lab.url("a"), text]
    with subprocess.Popen([*words, "dies"], stdout=subprocess.PIPE) as task:
        assert task.stdout is not None
        assert task.stdout.readline() == b"half\n"
        task.kill()
    result = look(lineage, 20.0)
    assert str(result.stores[BRANCHES].verdict) == "unproven"
    assert result.waited < 10
    subprocess.run([*words, "lives"], check=True, timeout=30, stdout=subprocess.PIPE)
    until(lambda: look(lineage, 2.0).complete)
    assert all(posts.shows(name, "whole") == b"v" for name in posts.readers)


@two_replicas
def test_rows_go_by_themselves_and_the_first_close_stands(posts: Posts) -> None:
    """BRANCH-10, BRANCH-22."""
    task, lineage = hand_over()
    run(posts, task, "first")
    run(posts, task, "second")
    client: Any = posts.lab.client("a")
    [key] = client.keys("antipode:branch:*")
    assert b"antipode" not in client.get(key)
    assert 23 * 3600 < client.ttl(key) <= 24 * 3600 + 31
    posts.wrapped["a"].delete("second")
    assert look(lineage, 5.0).complete


@two_replicas
def test_a_replica_alone_closes_nothing(posts: Posts) -> None:
    """BRANCH-10: what is to be done about it is said."""
    task, _ = hand_over()
    with isolated():
        antipode_redis.wrap(redis.Redis.from_url(posts.lab.url("b1")), store=STORE)
        with antipode.message_scope(task), pytest.raises(ConfigurationError, match="wrap a client of that"):
            antipode.close()


def diagnosed(url: str) -> Finding:
    """What `antipode doctor` says of branches."""
    [found] = [each for each in antipode_redis.RedisShim.diagnose(url) if each.what.startswith("branches: ")]
    return found


@two_replicas
def test_a_missing_right_is_told_at_once_with_the_grant(posts: Posts) -> None:
    """BRANCH-24; and what `antipode init` prints cures it."""
    admin: Any = posts.lab.client("a")
    admin.execute_command("ACL", "SETUSER", "app", "reset", "on", ">pw", "~app:*", "~antipode:epochs", "+@all", "-mget")
    port = posts.lab.url("a").rpartition(":")[2]
    url = f"redis://app:pw@127.0.0.1:{port}"
    with isolated():
        orders = antipode_redis.wrap(redis.Redis.from_url(url), store="orders")
        with pytest.raises(UnfitStoreError, match=r"ACL SETUSER <user> \+set \+mget ~antipode:branch:\*"):
            antipode.configure(branches=orders)
        before = set(admin.keys())  # what was tried there expires
        found = diagnosed(url)
        assert found.level is Level.OK  # most stores keep none
        assert "'mget'" in found.what
        assert "ACL SETUSER <user> +set +mget" in found.cure
        assert set(admin.keys()) <= before
        steps = antipode_redis.RedisShim.preparations(
            posts.lab.url("a"), InitRequest("orders", user="app", options={"branches": "yes"})
        )
        for step in steps:
            if step.run is not None:
                step.run()
        assert antipode.configure(branches=orders).branches == "orders"
        assert diagnosed(url).cure == ""
    assert diagnosed(posts.lab.url("b1")).cure == ""


@two_replicas
def test_a_connection_that_was_idle_is_made_anew(posts: Posts) -> None:
    task, lineage = hand_over()
    run(posts, task)
    posts.lab.client("a").client_kill_filter(_type="normal", skipme=True)
    task, other = hand_over()
    run(posts, task, "again")
    assert look(lineage | other, 5.0).complete
