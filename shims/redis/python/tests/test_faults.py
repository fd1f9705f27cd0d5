"""Faults of links and servers, on real Redis servers: no barrier passes falsely, none hangs past its deadline."""

from __future__ import annotations

import asyncio
import os
import threading
import time
from collections.abc import Iterator
from typing import Any

import antipode
import antipode_redis
import pytest
import redis
import redis.asyncio
from antipode import Verdict
from antipode._diagnostics import telemetry
from antipode.testing import isolated
from antipode_lab.stores.redis import RedisOptions, RedisStore
from regions import STORE, Posts, until

two_replicas = pytest.mark.redis_lab(replicas=2, lag=["5ms", "20ms"])


@pytest.fixture(autouse=True)
def _isolated() -> Iterator[None]:
    with isolated():
        yield


@pytest.fixture
def posts(redis_lab: RedisStore) -> Posts:
    return Posts(redis_lab)


@two_replicas
@pytest.mark.parametrize("mode", ["cut", "silent"])
def test_a_partition_times_out_and_its_healing_passes(posts: Posts, mode: str) -> None:
    assert posts.verdict(posts.write("before")) is Verdict.VISIBLE
    posts.lab.partition("b2", mode="cut" if mode == "cut" else "silent")
    lineage = posts.write("k")
    result = posts.look(lineage, 0.3)
    assert result.stores[STORE].verdict is Verdict.TIMED_OUT
    assert posts.lab.url("b2").partition("//")[2] in result.stores[STORE].reason
    assert posts.shows("b2", "k") is None
    posts.lab.heal("b2", wait=False)
    until(lambda: posts.look(lineage, 1.0).satisfied)
    assert posts.shows("b2", "k") == b"v"


@two_replicas
def test_a_barrier_parked_in_a_partition_is_released_by_the_healing(posts: Posts) -> None:
    posts.lab.partition("b1", mode="silent")
    lineage = posts.write("k")
    healer = threading.Timer(0.3, posts.lab.heal, ("b1",))
    healer.start()
    result = posts.look(lineage, 10.0)
    assert result.satisfied
    assert posts.shows("b1", "k") == b"v"
    healer.join()


@two_replicas
def test_a_frozen_replica_is_left_out_by_name_and_is_in_again_when_it_answers(posts: Posts) -> None:
    antipode.configure(replica_out_after=0.6)
    posts.look(posts.write("before"))
    posts.lab.freeze("b2")
    try:
        lineage = posts.write("k")
        assert not posts.look(lineage, 0.2).satisfied, "frozen, and not yet out"
        began = time.monotonic()
        until(lambda: posts.look(lineage, 0.5).satisfied)
        assert time.monotonic() - began < 3
        result = posts.look(lineage, 0.5)
        assert not result.complete
        assert [address for address in result.stores[STORE].left_out if str(posts.lab.server("b2").port) in address]
        assert posts.shows("b1", "k") == b"v"
    finally:
        posts.lab.thaw("b2")
    until(lambda: posts.look(lineage, 1.0).complete)
    assert posts.shows("b2", "k") == b"v"


@two_replicas
def test_one_of_two_replicas_killed_barriers_pass_for_the_other_within_three_seconds_and_say_so(posts: Posts) -> None:
    posts.look(posts.write("before"))
    posts.lab.kill("b1")
    killed = time.monotonic()
    while not (result := posts.look(posts.write("k"), 1.0)).satisfied:
        assert time.monotonic() - killed < 3
    assert time.monotonic() - killed < 3.5
    assert not result.complete
    assert "left out" in result.explain()
    assert str(posts.lab.server("b1").port) in str(result)
    assert posts.shows("b2", "k") == b"v"
    antipode.configure(on_replica_out="fail")
    assert posts.verdict(posts.write("l"), 0.5) is Verdict.UNPROVEN
    antipode.configure(on_replica_out="name")
    posts.lab.restart("b1", "rdb")
    until(lambda: posts.look(posts.write("m"), 1.0).complete)


@two_replicas
def test_a_replica_restarted_from_its_rdb_is_behind_again(posts: Posts) -> None:
    """EPOCH-15: visibility goes back; the proofs of the server's earlier life do not count."""
    antipode.configure(free_path_ttl=60)
    posts.lab.save("b1")
    lineage = posts.write("k")
    assert posts.look(lineage).satisfied
    posts.lab.partition("b1")
    posts.lab.restart("b1", "rdb", crash=True, wait=False)
    assert posts.shows("b1", "k") is None
    result = posts.look(lineage, 0.5)
    assert not result.satisfied
    posts.lab.heal("b1")
    until(lambda: posts.look(lineage, 1.0).satisfied)
    assert posts.shows("b1", "k") == b"v"


@two_replicas
def test_overwritten_deleted_and_expired_count_as_visible(posts: Posts) -> None:
    written = posts.write("k", "1")
    plain = posts.lab.client("a")
    plain.set("k", "2")
    assert posts.look(written).satisfied
    plain.delete("k")
    assert posts.look(written).satisfied
    with antipode.scope() as scope:
        posts.wrapped["a"].set("e", "1", px=30)
        lineage = scope.lineage
    until(lambda: plain.get("e") is None)
    assert posts.look(lineage).satisfied
    with antipode.scope() as scope:
        assert posts.wrapped["a"].delete("never there") == 0
        assert posts.look(scope.lineage).satisfied


@two_replicas
def test_a_delete_is_waited_for_like_a_write(posts: Posts) -> None:
    posts.look(posts.write("k"))
    posts.lab.lag("b2", "150ms")
    with antipode.scope() as scope:
        posts.wrapped["a"].delete("k")
        result = posts.look(scope.lineage, 5.0)
    assert result.satisfied
    assert posts.shows("b2", "k") is None


@two_replicas
def test_a_store_registered_under_another_name_does_not_pass_silently(
    posts: Posts, caplog: pytest.LogCaptureFixture
) -> None:
    lineage = posts.write("k")
    with isolated():
        antipode_redis.register("articles", replicas=[posts.lab.url("b1")])
        result = antipode.barrier(lineage)
        assert result.vacuous
        assert not result.complete
        assert "blog-posts" in caplog.text
        assert "articles" in caplog.text
        with pytest.raises(antipode.BarrierIncomplete):
            antipode.barrier(lineage, on_vacuous="raise")
    with isolated():
        antipode_redis.register("blog_posts", replicas=[posts.lab.url("b1")])
        with pytest.raises(antipode.BarrierUnproven, match="same name"):
            antipode.barrier(lineage)


@two_replicas
def test_a_barrier_before_the_first_wrap_is_unproven_where_the_store_is_announced(posts: Posts) -> None:
    lineage = posts.write("k")
    with isolated():
        antipode.configure(stores=[STORE])
        with pytest.raises(antipode.BarrierUnproven, match="not registered yet"):
            antipode.barrier(lineage)
        antipode_redis.register(STORE, replicas=[posts.lab.url(name) for name in ("b1", "b2")])
        assert antipode.barrier(lineage).satisfied


@two_replicas
def test_an_implausible_position_is_dropped_by_the_next_write_and_never_passes(posts: Posts) -> None:
    """LIN-28."""
    [write_id] = posts.write("k").of_store(STORE)
    assert isinstance(write_id.version, antipode.Ordered)
    forged = antipode.WriteId.position(STORE, write_id.version.epoch, 2**64 - 1)
    assert posts.verdict(antipode.Lineage([forged]), 0.1) is Verdict.TIMED_OUT
    with antipode.message_scope(antipode.Lineage([forged]).serialize()) as scope:
        posts.wrapped["a"].set("l", "v")
        assert forged not in scope.lineage
        assert scope.lineage.incomplete == {STORE}
        assert [gap.reason for gap in scope.gaps] == ["implausible"]
        assert posts.look(scope.lineage).satisfied


@two_replicas
def test_a_malformed_or_oversized_lineage_is_incomplete_never_empty(posts: Posts) -> None:
    assert posts.look(posts.write("k")).complete
    for text in ("1~blog-posts", "2~blog-posts..e.1", "1~" + "x" * 5000):
        with antipode.message_scope(text):
            result = antipode.barrier()
            assert result.satisfied
            assert not result.complete
            with pytest.raises(antipode.BarrierIncomplete):
                antipode.barrier(require_complete=True)


@two_replicas
def test_parallel_connections_of_one_scope_lose_nothing(posts: Posts) -> None:
    """LIN-29: compared with the scope at the time of sending, not of the reply."""
    client = posts.wrapped["a"]
    with antipode.scope() as scope:

        @antipode.carry
        def writes(number: int) -> None:
            for step in range(250):
                client.set(f"k:{number}:{step}", "v")

        threads = [threading.Thread(target=writes, args=(number,)) for number in range(4)]
        for thread in threads:
            thread.start()
        for thread in threads:
            thread.join(60)
        assert scope.lineage.is_complete()
        assert not scope.gaps
        assert len(scope.lineage) == 1
        assert posts.look(scope.lineage, 5.0).satisfied
    assert posts.lab.client("b2").exists(*[f"k:{n}:{s}" for n in range(4) for s in range(250)]) == 1000


@two_replicas
def test_a_publish_inside_multi_leaves_marked_until_exec(posts: Posts) -> None:
    """SCOPE-14: pending from the first queued write, whole again after EXEC."""
    with antipode.scope() as scope:
        with posts.wrapped["a"].pipeline(transaction=True) as pipe:
            pipe.watch("k")  # type: ignore[no-untyped-call]
            pipe.get("k")
            assert antipode.deserialize(antipode.serialize()).is_complete(), "only read so far"
            pipe.multi()
            pipe.set("k", "v")
            assert antipode.deserialize(antipode.serialize()).incomplete == {STORE}
            antipode.configure(on_pending="raise")
            with pytest.raises(antipode.PendingWriteError):
                antipode.serialize()
            pipe.execute()
        antipode.serialize()
        assert scope.lineage.is_complete()
        assert posts.look(scope.lineage).satisfied
        with posts.wrapped["a"].pipeline() as pipe:
            pipe.set("l", "v")
        antipode.serialize()
        assert scope.lineage.is_complete(), "discarded: nothing was written"


@two_replicas
def test_an_unknown_outcome_stays_pending(posts: Posts) -> None:
    """SCOPE-17."""
    client = antipode_redis.wrap(redis.Redis.from_url(posts.lab.url("a"), socket_timeout=0.2, retry=None), store=STORE)
    client.ping()
    posts.lab.freeze("a")
    try:
        with antipode.scope() as scope, pytest.raises(redis.TimeoutError):
            client.set("k", "v")
        assert [write.unknown for write in scope.pending] == [True]
        assert scope.lineage.incomplete == {STORE}
    finally:
        posts.lab.thaw("a")


@two_replicas
def test_a_refused_write_is_not_pending(posts: Posts) -> None:
    posts.lab.client("a").set("k", "text")
    with antipode.scope() as scope:
        with pytest.raises(redis.ResponseError, match="WRONGTYPE"):
            posts.wrapped["a"].lpush("k", "v")
        with pytest.raises(redis.exceptions.ReadOnlyError):
            posts.wrapped["b1"].set("k", "v")
        assert not scope.pending
        assert scope.lineage.is_complete()


@two_replicas
def test_a_fork_begins_anew(posts: Posts) -> None:
    """SCOPE-13: the child shares no socket, poller or proof with its parent."""
    lineage = posts.write("k")
    assert posts.look(lineage).satisfied
    read, write = os.pipe()
    child = os.fork()
    if child == 0:
        word = b"failed"
        try:
            mine = posts.write("from the child")
            if posts.look(mine | lineage, 5.0).satisfied:
                word = b"passed"
        finally:
            os.write(write, word)
            os._exit(0)
    os.close(write)
    os.waitpid(child, 0)
    assert os.read(read, 10) == b"passed"
    os.close(read)
    assert posts.look(posts.write("from the parent") | lineage, 5.0).satisfied
    assert posts.shows("b2", "from the child") == b"v"


@two_replicas
def test_two_event_loops_one_after_the_other_and_side_by_side(posts: Posts) -> None:
    async def write_and_wait(key: str) -> bool:
        client = antipode_redis.wrap(redis.asyncio.Redis.from_url(posts.lab.url("a")), store=STORE)
        async with client:
            with antipode.scope():
                await client.set(key, "v")
                return (await antipode.barrier_async(timeout=5)).satisfied

    assert asyncio.run(write_and_wait("one"))
    assert asyncio.run(write_and_wait("two"))
    passed: list[bool] = []
    threads = [
        threading.Thread(target=lambda n=n: passed.append(asyncio.run(write_and_wait(f"side {n}")))) for n in range(3)
    ]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join(30)
    assert passed == [True] * 3
    assert posts.shows("b2", "side 2") == b"v"


@two_replicas
def test_a_user_without_the_right_to_the_position_writes_incomplete_lineages(
    redis_lab: RedisStore, caplog: pytest.LogCaptureFixture
) -> None:
    """EPOCH-5, SHIM-2: the refused question never reaches the application, and one line has the grant."""
    redis_lab.create_user("app", "secret")
    url = redis_lab.url("a").replace("redis://", "redis://app:secret@")
    client = antipode_redis.wrap(redis.Redis.from_url(url), store=STORE, replicas=[redis_lab.url("b1")])
    with antipode.scope() as scope:
        assert client.set("k", "v") is True
        with client.pipeline() as pipe:
            pipe.set("l", "v")
            pipe.incr("n")
            assert pipe.execute() == [True, 1]
        assert scope.lineage.incomplete == {STORE}
        result = antipode.barrier()
        assert result.satisfied
        assert not result.complete
    lines = [record.getMessage() for record in caplog.records if "+info" in record.getMessage()]
    assert lines, "the grant is named"
    assert all("secret" not in record.getMessage() for record in caplog.records)


@two_replicas
@pytest.mark.parametrize("failure", ["a command", "MULTI", "the connection"])
def test_a_pipeline_that_fails_without_the_right_to_the_position_is_no_loss(
    redis_lab: RedisStore, failure: str
) -> None:
    """An error of one command says nothing of the others; behind a refused MULTI they are executed by themselves."""
    client, plain = poor(redis_lab, failure), redis_lab.client("a")
    client.set("k", "1")  # from here on it is known that the position may not be asked for
    with antipode.scope() as scope, client.pipeline(transaction=failure == "MULTI") as pipe:
        failing(pipe, failure)
        with pytest.raises(redis.RedisError):
            pipe.execute()
        assert plain.get("k") == b"2"
        assert not scope.outgoing().is_complete()
        assert all(write.unknown for write in scope.pending)


@two_replicas
@pytest.mark.parametrize("failure", ["a command", "MULTI", "the connection"])
async def test_a_pipeline_that_fails_without_the_right_to_the_position_is_no_loss_asyncio(
    redis_lab: RedisStore, failure: str
) -> None:
    client = poor(redis_lab, failure, redis.asyncio.Redis)
    async with client:
        await client.set("k", "1")
        with antipode.scope() as scope:
            async with client.pipeline(transaction=failure == "MULTI") as pipe:
                failing(pipe, failure)
                with pytest.raises(redis.RedisError):
                    await pipe.execute()
            assert redis_lab.client("a").get("k") == b"2"
            assert not scope.outgoing().is_complete()
            assert all(write.unknown for write in scope.pending)


def poor(lab: RedisStore, failure: str, kind: Any = redis.Redis) -> Any:
    """A client whose user may not ask for the position."""
    lab.create_user("app", "secret", "~*", "&*", "+@all", "-info", "-@transaction" if failure == "MULTI" else "+multi")
    url = lab.url("a").replace("redis://", "redis://app:secret@")
    return antipode_redis.wrap(kind.from_url(url, socket_timeout=0.5), store=STORE, replicas=[lab.url("b1")])


def failing(pipe: Any, failure: str) -> None:
    """Queues a write, and what fails."""
    pipe.set("text", "x")
    pipe.set("k", "2")
    if failure == "a command":
        pipe.incr("text")
    elif failure == "the connection":
        pipe.blpop("none", 2)


@two_replicas
def test_a_user_without_the_right_to_mark_still_gives_positions(
    redis_lab: RedisStore, caplog: pytest.LogCaptureFixture
) -> None:
    """EPOCH-26."""
    redis_lab.create_user("app", "secret", "~posts:*", "+@all", "-@dangerous", "+info")
    url = redis_lab.url("a").replace("redis://", "redis://app:secret@")
    client = antipode_redis.wrap(
        redis.Redis.from_url(url), store=STORE, replicas=[redis_lab.url(name) for name in ("b1", "b2")]
    )
    with antipode.scope() as scope:
        client.set("posts:1", "v")
        assert scope.lineage.is_complete()
        assert len(scope.lineage) == 1
        assert antipode.barrier(timeout=5).satisfied
    until(lambda: STORE in telemetry.marks_missing)
    until(lambda: any("mark" in record.getMessage() for record in caplog.records))


@pytest.mark.redis_lab(
    replicas=2, lag=["5ms", "5ms"], options={"redis": RedisOptions(config={"repl-backlog-ttl": "1"})}
)
def test_a_freed_backlog_gives_no_position_and_the_next_epoch_judges_the_old(posts: Posts) -> None:
    """traps R1, R2: without a replica the offset stands still; the first one brings a new replid."""
    before = posts.write("before")
    posts.wait_marked(before)
    posts.lab.partition("b1")
    posts.lab.partition("b2")
    until(lambda: posts.lab.replication("a")["repl_backlog_active"] == "0")
    meanwhile = posts.write("meanwhile")
    assert not meanwhile.of_store(STORE)
    assert meanwhile.incomplete == {STORE}
    posts.lab.heal()
    after = posts.write("after")
    assert after != before
    until(lambda: posts.look(after, 2.0).satisfied)
    until(lambda: posts.look(before, 2.0).satisfied)
    assert (posts.shows("b1", "before"), posts.shows("b2", "meanwhile")) == (b"v", b"v")


@two_replicas
def test_a_replica_repointed_under_a_live_connection_is_exposed_no_longer_than_the_ttl(redis_lab: RedisStore) -> None:
    """BAR-33, BAR-34: its data go back under the same connection; measured from the moment that they are gone."""
    ttl = 0.25
    antipode.configure(free_path_ttl=ttl)
    redis_lab.promote("b2", lose=0, repoint=False)  # a second primary, as if restored from an older copy
    redis_lab.client("b2").flushall()
    client = antipode_redis.wrap(redis.Redis.from_url(redis_lab.url("a")), store=STORE, replicas=[redis_lab.url("b1")])
    with antipode.scope():
        client.set("k", "v")
        assert antipode.barrier(timeout=5).satisfied
        reader = redis_lab.client("b1")
        assert reader.get("k") == b"v"
        redis_lab.repoint("b1", "b2", wait=False)
        until(lambda: reader.get("k") is None)
        gone = time.monotonic()
        last_pass = gone
        while time.monotonic() - gone < 4 * ttl:
            if antipode.barrier(timeout=0.05, on_timeout="proceed", on_unproven="proceed").satisfied:
                last_pass = time.monotonic()
    print(f"exposed for {(last_pass - gone) * 1000:.0f} ms")
    assert last_pass - gone <= ttl
