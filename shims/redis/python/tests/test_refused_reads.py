"""Reads that are refused, that wait in vain, or of which nobody can tell where they read: what is left of them."""

from __future__ import annotations

import asyncio
import gc
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import antipode
import antipode_redis
import pytest
import redis
import redis.asyncio
from antipode import Lineage, WriteId
from antipode.testing import isolated
from antipode.testing.histories import lines
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


def misspelt(posts: Posts) -> Lineage:
    """What a lineage says of a write under a name that differs only in case."""
    written = posts.write("known")
    return Lineage([WriteId(STORE.upper(), each.key, each.version) for each in written.of_store(STORE)])


def test_a_pipeline_that_is_refused_is_gone(posts: Posts) -> None:
    """BAR-51: what was queued in it is not sent by a later execute, whose scope would not have it."""
    pipeline = posts.wrapped["a"].pipeline()
    with antipode.scope() as opened:
        pipeline.set("queued", "v")
        pipeline.get("known")
        with antipode.reading(after=misspelt(posts)), pytest.raises(antipode.BarrierUnproven, match="AP107"):
            pipeline.execute()
        assert not opened.pending
        assert opened.lineage == antipode.EMPTY
        assert pipeline.execute() == []
    assert posts.shows("a", "queued") is None


def test_an_asyncio_pipeline_that_is_refused_is_gone(posts: Posts) -> None:
    """The same."""
    after = misspelt(posts)

    async def run() -> None:
        client = antipode_redis.wrap(redis.asyncio.Redis.from_url(posts.lab.url("a")), store=STORE)
        pipeline = client.pipeline()
        with antipode.scope() as opened:
            pipeline.set("queued", "v")
            pipeline.get("known")
            with antipode.reading(after=after), pytest.raises(antipode.BarrierUnproven, match="AP107"):
                await pipeline.execute()
            assert not opened.pending
            assert opened.lineage == antipode.EMPTY
            assert await pipeline.execute() == []
        await client.aclose()

    asyncio.run(run())
    assert posts.shows("a", "queued") is None


def _at_once(client: redis.Redis) -> Any:
    pipeline: Any
    with client.pipeline() as pipeline:
        pipeline.watch("known")
        return pipeline.getdel("known")


@pytest.mark.parametrize("send", [lambda client: client.getdel("known"), _at_once], ids=["client", "pipeline"])
def test_a_write_that_answers_and_is_refused_has_not_happened(posts: Posts, send: Callable[[Any], Any]) -> None:
    """BAR-51: its scope has neither a write in flight nor one that got lost."""
    with antipode.scope() as opened:
        with antipode.reading(after=misspelt(posts)), pytest.raises(antipode.BarrierUnproven, match="AP107"):
            send(posts.wrapped["a"])
        gc.collect()
        assert not opened.pending
        assert opened.lineage == antipode.EMPTY
    assert posts.shows("a", "known") == b"v"


def test_a_read_that_waited_in_vain_returned_nothing(posts: Posts, tmp_path: Path) -> None:
    """HIST-28: its value was never given to anybody, and is not recorded as read."""
    reader = antipode_redis.wrap(
        redis.Redis.from_url(posts.lab.url("b1")), store=STORE, wait_on_read=True, timeout=0.05
    )
    posts.lab.partition("b1")
    antipode.configure(history=tmp_path)
    with antipode.scope():
        posts.wrapped["a"].set("new", "v")
        with pytest.raises(antipode.BarrierTimeout):
            reader.get("new")
    assert [line["kind"] for line in lines(tmp_path, "write", "read")] == ["write"]


@pytest.mark.parametrize("is_recorded", [True, False])
def test_a_history_that_begins_or_ends_while_commands_are_queued(
    posts: Posts, tmp_path: Path, is_recorded: bool
) -> None:
    """HIST-24: a pipeline is sent, and answers, as it would without."""
    antipode.configure(history=tmp_path if is_recorded else None)
    with antipode.scope() as opened:
        pipeline = posts.wrapped["a"].pipeline()
        pipeline.set("k", "v")
        pipeline.get("k")
        antipode.configure(history=None if is_recorded else tmp_path)
        assert pipeline.execute() == [True, b"v"]
        assert not opened.pending
        assert opened.lineage.of_store(STORE)


def _all_of(client: redis.Redis, *, writes: bool) -> Any:
    pipeline = client.pipeline()
    pipeline.get("k")
    if writes:
        pipeline.set("k", "new")
    return pipeline.execute()


_READS: dict[str, Callable[[redis.Redis], Any]] = {
    "getdel": lambda client: client.getdel("k"),
    "script": lambda client: client.eval("return redis.call('get', 'k')", 0),
    "pipeline": lambda client: _all_of(client, writes=False),
    "pipeline that writes": lambda client: _all_of(client, writes=True),
}


@pytest.mark.parametrize("way", _READS)
def test_a_value_without_a_position_is_marked(posts: Posts, way: str) -> None:
    """SHIM-13: what is read where the server may not be asked where it is does not depend on nothing."""
    plain: Any = posts.lab.client("a")
    plain.set("k", "v")
    plain.execute_command("ACL", "SETUSER", "blind", "on", ">secret", "~*", "&*", "+@all", "-info")
    client = antipode_redis.wrap(
        redis.Redis.from_url(posts.lab.url("a"), username="blind", password="secret"), store=STORE
    )
    with antipode.scope(), antipode.reading():
        client.get("k")  # after which it is known that it may not be asked
    with antipode.scope(), antipode.reading() as seen:
        assert _READS[way](client) in (b"v", [b"v"], [b"v", True])
    assert not seen.lineage.is_complete()


def test_a_script_that_reads_at_a_replica_is_merged(posts: Posts) -> None:
    """SHIM-13: the scope depends on what a script has read where it could not write."""
    antipode.configure(auto_merge=True)
    posts.lab.client("a").set("k", "v")
    posts.lab.wait_links()
    with antipode.scope() as opened:
        assert posts.wrapped["b1"].eval("return redis.call('get', 'k')", 0, "k") == b"v"
        assert opened.lineage.of_store(STORE)
