"""Pipelines and transactions that several scopes share: each has a write of its own in them (SCOPE-24)."""

from __future__ import annotations

import asyncio
import contextlib
import contextvars
from collections.abc import Iterator
from typing import Any

import antipode
import antipode_redis
import pytest
import redis
import redis.asyncio
from antipode import Lineage
from antipode.messages import outgoing_message
from antipode.testing import isolated
from antipode_lab.stores.redis import RedisStore
from regions import STORE, Posts

pytestmark = pytest.mark.redis_lab(replicas=1, lag="0ms")


@pytest.fixture(autouse=True)
def _isolated() -> Iterator[None]:
    with isolated():
        yield


@pytest.fixture
def posts(redis_lab: RedisStore) -> Posts:
    return Posts(redis_lab)


def check(posts: Posts, scopes: list[antipode.Scope]) -> None:
    """Each has a position that the replica, cut off before, has not reached."""
    for scope in scopes:
        assert not scope.pending
        lineage = scope.lineage
        assert lineage.is_complete()
        assert len(lineage.of_store(STORE)) == 1
        assert not posts.look(lineage, 0.1).satisfied


@pytest.mark.parametrize("transaction", [True, False])
@pytest.mark.parametrize("outside", [True, False])
def test_each_scope_of_a_pipeline_has_its_position(posts: Posts, transaction: bool, outside: bool) -> None:
    posts.lab.partition("b1")
    pipe = posts.wrapped["a"].pipeline(transaction=transaction)
    if outside:
        pipe.set("outside", 1)
    with antipode.scope() as first:
        pipe.set("k:1", 1)
        with antipode.scope() as second:
            pipe.set("k:2", 1)
            pipe.set("k:3", 1)
            assert [len(scope.pending) for scope in (first, second)] == [1, 1]
            assert antipode.deserialize(antipode.serialize()).incomplete == {STORE}
            with antipode.scope() as third:
                pipe.get("k:1")
                assert not third.pending
                pipe.execute()
                check(posts, [first, second, third])
    posts.lab.heal("b1")


async def test_each_scope_of_an_asyncio_pipeline_has_its_position(posts: Posts) -> None:
    posts.lab.partition("b1")
    async with redis.asyncio.Redis.from_url(posts.lab.url("a")) as plain:
        pipe: Any = antipode_redis.wrap(plain, store=STORE).pipeline()
        with antipode.scope() as first:
            pipe.set("k:1", 1)
            with antipode.scope() as second:
                pipe.set("k:2", 1)
                with antipode.scope() as third:
                    await pipe.execute()
                    await asyncio.to_thread(check, posts, [first, second, third])
    posts.lab.heal("b1")


@pytest.mark.parametrize("end", ["EXEC", "DISCARD"])
def test_each_scope_of_a_multi_that_is_sent_by_hand(posts: Posts, end: str) -> None:
    plain = redis.Redis.from_url(posts.lab.url("a"), single_connection_client=True)
    client: Any = antipode_redis.wrap(plain, store=STORE, replicas=[posts.lab.url("b1")])
    posts.lab.partition("b1")
    client.execute_command("MULTI")
    with antipode.scope() as first:
        client.set("k:1", 1)
        with antipode.scope() as second:
            client.set("k:2", 1)
            client.set("k:3", 1)
            assert [len(scope.pending) for scope in (first, second)] == [1, 1]
            with antipode.scope() as third:
                client.execute_command(end)
                if end == "EXEC":
                    check(posts, [first, second, third])
                else:
                    assert not any(scope.pending or scope.lineage for scope in (first, second, third))
    posts.lab.heal("b1")
    client.close()
    plain.close()


@pytest.mark.parametrize("behind_a_watch", [True, False])
async def test_who_sends_exec_by_hand_with_asyncio(posts: Posts, behind_a_watch: bool) -> None:
    posts.lab.partition("b1")
    async with redis.asyncio.Redis.from_url(posts.lab.url("a"), single_connection_client=True) as plain:
        client: Any = antipode_redis.wrap(plain, store=STORE)
        if behind_a_watch:
            client = client.pipeline()
            await client.watch("k:2")
        with antipode.scope():
            await client.execute_command("MULTI")
            await client.set("k:1", 1)
        with antipode.scope() as executing:
            assert len(await client.execute_command("EXEC")) == 1
            await asyncio.to_thread(check, posts, [executing])
    posts.lab.heal("b1")


def _by_another_client(plain: Any, client: Any) -> tuple[Any, Any]:
    return client.execute_command, antipode_redis.wrap(plain, store=STORE).execute_command


def _behind_a_watch(plain: Any, client: Any) -> tuple[Any, Any]:
    pipe = client.pipeline()
    pipe.watch("k:2")
    return pipe.execute_command, pipe.execute_command


def _unseen(plain: Any, client: Any) -> tuple[Any, Any]:
    return plain.execute_command, client.execute_command


def _in_pipelines(plain: Any, client: Any) -> tuple[Any, Any]:
    def run(*words: Any) -> Any:
        pipe = client.pipeline(transaction=False)
        pipe.execute_command(*words)
        return pipe.execute()[-1]

    return run, run


@pytest.mark.parametrize("ways", [_by_another_client, _behind_a_watch, _unseen, _in_pipelines])
def test_who_sends_an_exec_of_what_it_may_not_have_seen(posts: Posts, ways: Any) -> None:
    """SCOPE-24: and its reply is the server's own."""
    plain = redis.Redis.from_url(posts.lab.url("a"), single_connection_client=True, max_connections=2)
    client: Any = antipode_redis.wrap(plain, store=STORE, replicas=[posts.lab.url("b1")])
    queues, ends = ways(plain, client)
    posts.lab.partition("b1")
    with antipode.scope():
        queues("MULTI")
        queues("SET", "k:1", 1)
    with antipode.scope() as executing:
        assert ends("EXEC")[0] in (True, b"OK")
        check(posts, [executing])
    posts.lab.heal("b1")


def test_an_exec_without_a_multi_leaves_nothing(posts: Posts) -> None:
    client: Any = posts.wrapped["a"]
    with antipode.scope() as executing:
        with pytest.raises(redis.ResponseError, match="EXEC without MULTI"):
            client.execute_command("EXEC")
        pipe = client.pipeline(transaction=False)
        pipe.execute_command("EXEC")
        pipe.execute(raise_on_error=False)
        assert not executing.pending
        assert executing.outgoing() == antipode.EMPTY


@pytest.mark.parametrize("outside", [True, False])
def test_who_executes_what_an_ended_scope_queued(posts: Posts, outside: bool) -> None:
    """Its replies are in hand, and nothing else says what they depend on."""
    posts.lab.partition("b1")
    pipe = posts.wrapped["a"].pipeline()
    with contextlib.nullcontext() if outside else antipode.scope():
        pipe.incr("k:1")
        pipe.incr("k:2")
    with antipode.scope() as executing:
        assert pipe.execute() == [1, 1]
        check(posts, [executing])
        pipe.get("k:1")
        pipe.execute()
        assert len(executing.lineage) == 1
    posts.lab.heal("b1")


def test_who_executes_outside_any_scope_is_told_nothing(posts: Posts, caplog: pytest.LogCaptureFixture) -> None:
    pipe = posts.wrapped["a"].pipeline()
    with antipode.scope() as scope:
        pipe.set("k:1", 1)
        contextvars.Context().run(pipe.execute)
        assert len(scope.lineage) == 1
    assert not caplog.records


def test_who_executes_what_was_watched_in_vain_has_nothing(posts: Posts) -> None:
    client: Any = posts.wrapped["a"]
    with client.pipeline() as pipe:
        with antipode.scope():
            pipe.watch("k:1")
            pipe.multi()
            pipe.set("k:2", 1)
        posts.wrapped["a"].set("k:1", 1)
        with antipode.scope() as executing:
            with pytest.raises(redis.WatchError):
                pipe.execute()
            assert not executing.pending
            assert executing.lineage == antipode.EMPTY


def test_what_was_not_executed_leaves_nothing_in_any_scope(posts: Posts) -> None:
    pipe = posts.wrapped["a"].pipeline()
    with antipode.scope() as first:
        pipe.set("k:1", 1)
        with antipode.scope() as second:
            pipe.set("k:2", 1)
            pipe.reset()
            assert not any(scope.pending or scope.lineage for scope in (first, second))


def test_an_unknown_outcome_is_unknown_in_each_scope(posts: Posts) -> None:
    plain = redis.Redis.from_url(posts.lab.url("a"), socket_timeout=0.2, retry=None)
    client: Any = antipode_redis.wrap(plain, store=STORE)
    client.ping()
    pipe = client.pipeline()
    with antipode.scope() as first:
        pipe.set("k:1", 1)
        with antipode.scope() as second:
            pipe.set("k:2", 1)
            with antipode.scope() as third:
                posts.lab.freeze("a")
                try:
                    with pytest.raises(redis.RedisError):
                        pipe.execute()
                finally:
                    posts.lab.thaw("a")
            scopes = (first, second, third)
            assert [[write.unknown for write in scope.pending] for scope in scopes] == [[True]] * 3


def test_what_rests_beside_a_value_has_the_lineages_of_all_its_scopes(posts: Posts) -> None:
    """SHIM-9: also where the batch is sent outside of any scope."""
    client: Any = antipode_redis.wrap(redis.Redis.from_url(posts.lab.url("a")), store=STORE, rest="field")
    ids = [antipode.WriteId.position("other", "e", 1), antipode.WriteId.position("third", "e", 1)]
    pipe = client.pipeline()
    with antipode.scope(Lineage(ids[:1])):
        pipe.hset("h", "f", "v")
        with antipode.scope(Lineage(ids[1:])):
            pipe.hset("h", "g", "v")
            pipe.execute()
    with antipode.reading() as seen:
        assert client.hget("h", "f") == b"v"
    assert Lineage(ids) <= seen.lineage
    assert seen.lineage.is_complete()


def test_a_command_that_is_queued_outside_any_scope_may_be_what_others_depend_on(posts: Posts) -> None:
    """SCOPE-31, SCOPE-32: all but itself."""
    client: Any = antipode_redis.wrap(redis.Redis.from_url(posts.lab.url("a")), store=STORE, rest="field")
    assert outgoing_message() is None
    pipe = client.pipeline().hset("first", "f", "v")
    assert outgoing_message() == "1~_.i"
    pipe.execute()
    pipe = client.pipeline().hset("second", "f", "v")
    with antipode.scope():
        pipe.hset("second", "g", "v").execute()
    for key in ("first", "second"):
        with antipode.reading() as seen:
            assert client.hget(key, "f") == b"v"
        assert seen.lineage.is_complete() is (key == "first")


def test_a_history_has_a_write_of_each_scope(posts: Posts, tmp_path: Any) -> None:
    """HIST-23: also outside of any scope, where nobody carries it."""
    antipode.configure(history=tmp_path / "history")
    client: Any = posts.wrapped["a"]
    assert client.set("k", "v") is True
    assert client.pipeline().set("k", "w").execute() == [True]
    pipe = client.pipeline()
    with antipode.scope() as first:
        pipe.set("k:1", 1)
        with antipode.scope() as second:
            pipe.set("k:2", 1)
            assert pipe.execute() == [True, True]
            check_both = (first.lineage, second.lineage)
    assert all(lineage.of_store(STORE) for lineage in check_both)
