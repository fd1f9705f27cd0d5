"""Dry-run's records of reads of a lagging replica: behind, and stale where the read returns something else later."""

from __future__ import annotations

import asyncio
import time
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any, cast

import antipode
import antipode_redis
import pytest
import redis
import redis.asyncio
from antipode.testing import isolated
from antipode.testing.recorded import DryRunRecording
from antipode_lab.stores.redis import RedisOptions, RedisStore
from antipode_redis import repeating
from redis.sentinel import Sentinel
from regions import STORE, Posts, until

HERE = "tests/test_followed_reads.py:"


pytestmark = pytest.mark.redis_lab(replicas=1, lag="0ms")


@pytest.fixture(autouse=True)
def _isolated() -> Iterator[None]:
    with isolated():
        yield


@pytest.fixture
def posts(redis_lab: RedisStore) -> Posts:
    return Posts(redis_lab)


@pytest.fixture
def recorded(posts: Posts, tmp_path: Path) -> DryRunRecording:
    posts.wrapped["a"].flushall()
    until(lambda: posts.lab.client("b1").dbsize() <= 1)
    posts.lab.lag("b1", "200ms")
    return DryRunRecording(tmp_path)


def test_a_read_that_misses_its_write_is_stale(posts: Posts, recorded: DryRunRecording) -> None:
    """REC-6, REC-12, REC-14."""
    with antipode.message_scope("") as scope:
        scope.queue = "notifications"
        posts.wrapped["a"].set("private-key", "private-value")
        assert posts.wrapped["b1"].get("private-key") is None
        assert posts.wrapped["b1"].get("private-key-2") is None
    stale, behind = recorded.findings(2)
    assert (stale["kind"], stale["confirmed"], behind["kind"]) == ("stale", "repeat", "behind")
    assert stale["site"].startswith(HERE)
    assert stale["origin"]["store"] == "notifications"
    assert (stale["store"], stale["store_kind"], stale["server"]) == (STORE, "redis", posts.lab.url("b1"))
    assert int(stale["seen"]["counter"]) < int(stale["wanted"]["counter"])
    assert 0.02 < stale["visible_after"] < 5
    assert "private" not in str(recorded.lines())


READS: dict[str, Callable[[Any], Any]] = {
    "get": lambda client: client.get("text"),
    "mget": lambda client: client.mget(["text", "none"]),
    "exists": lambda client: client.exists("text"),
    "hgetall": lambda client: client.hgetall("hash"),
    "smembers": lambda client: client.smembers("set"),
    "zrange": lambda client: client.zrange("sorted", 0, -1, withscores=True),
    "xrange": lambda client: client.xrange("stream"),
    "pipeline": lambda client: client.pipeline().get("text").hget("hash", "f").execute(),
    "transaction": lambda client: client.pipeline(transaction=True).get("text").llen("list").execute(),
}
NOT_REPEATED: dict[str, Callable[[Any], Any]] = {
    "randomkey": lambda client: client.randomkey(),
    "hkeys": lambda client: client.hkeys("hash"),
    "ttl": lambda client: client.ttl("text"),
    "pipeline": lambda client: client.pipeline().get("text").ttl("text").execute(),
}


def write(client: Any) -> None:
    pipe = client.pipeline()
    pipe.set("text", "v").hset("hash", "f", "v").sadd("set", "x", "y", "z").zadd("sorted", {"m": 1.5})
    pipe.xadd("stream", {"f": "v"}, id="1-1").rpush("list", "e")
    pipe.execute()


@pytest.mark.parametrize("decode", [False, True])
@pytest.mark.parametrize("read", READS)
def test_every_deterministic_read_is_repeated_as_the_client_reads(
    posts: Posts, recorded: DryRunRecording, read: str, decode: bool
) -> None:
    """REC-14: what has not changed since is behind, what has is stale: with the client's own decoding and callbacks."""
    client = redis.Redis.from_url(posts.lab.url("b1"), decode_responses=decode)
    reader = antipode_redis.wrap(client, store=STORE)
    with antipode.scope():
        write(posts.wrapped["a"])
        READS[read](reader)
        [missed] = recorded.findings()
        posts.wrapped["a"].set("other", "v")
        READS[read](reader)
        _, same = recorded.findings(2)
    assert (missed["kind"], same["kind"]) == ("stale", "behind")


@pytest.mark.parametrize("read", NOT_REPEATED)
def test_other_reads_are_not(posts: Posts, recorded: DryRunRecording, read: str) -> None:
    """REC-14: what is random, of times, or in no order says something else of the same data."""
    with antipode.scope():
        write(posts.wrapped["a"])
        NOT_REPEATED[read](posts.wrapped["b1"])
    assert [record["kind"] for record in recorded.findings()] == ["behind"]


def test_a_long_pipeline_is_read_again_within_one_deadline(
    posts: Posts, recorded: DryRunRecording, monkeypatch: pytest.MonkeyPatch
) -> None:
    """REC-14: others wait for the thread."""
    antipode.configure(replica_out_after=1.0)
    once_more, asked = repeating._once_more, []

    def slow(*command: Any) -> Any:
        asked.append(command)
        time.sleep(0.1)
        return once_more(*command)

    monkeypatch.setattr(repeating, "_once_more", slow)
    with antipode.scope():
        posts.wrapped["a"].set("k", "v")
        pipe = posts.wrapped["b1"].pipeline()
        for _ in range(50):
            pipe.get("k")
        assert pipe.execute() == [None] * 50
    assert [record["kind"] for record in recorded.findings(timeout=30)] == ["behind"]
    assert 0 < len(asked) <= 6


@pytest.mark.parametrize("rest", ["field", "envelope"])
def test_what_rests_beside_a_value_is_no_part_of_it(posts: Posts, recorded: DryRunRecording, rest: str) -> None:
    """REC-14: the same value with another lineage is the same value."""
    options: dict[str, Any] = {"rest": rest} | ({"envelope_keys": "post:*"} if rest == "envelope" else {})
    store = f"{STORE}-{rest}"
    writer = antipode_redis.wrap(redis.Redis.from_url(posts.lab.url("a")), store=store, **options)
    reader: Any = antipode_redis.wrap(redis.Redis.from_url(posts.lab.url("b1")), store=store, **options)

    def put() -> None:
        writer.set("post:1", "v")
        writer.hset("hash", "f", "v")

    def get() -> Any:
        return reader.get("post:1"), reader.hgetall("hash")

    with antipode.scope():
        put()
        assert get() == (None, {})
        assert [record["kind"] for record in recorded.findings(2)] == ["stale", "stale"]
    with antipode.scope():
        put()
        assert get() == (b"v", {b"f": b"v"})
        assert [record["kind"] for record in recorded.findings(4)][2:] == ["behind", "behind"]


def test_the_asyncio_client(posts: Posts, recorded: DryRunRecording) -> None:
    async def run() -> None:
        client = redis.asyncio.Redis.from_url(posts.lab.url("b1"))
        reader: Any = antipode_redis.wrap(client, store=STORE)
        with antipode.scope():
            posts.wrapped["a"].set("k", "v")
            assert await reader.get("k") is None
            assert await reader.pipeline().get("k").execute() == [None]
        await reader.aclose()
        await client.aclose()

    asyncio.run(run())
    assert [record["kind"] for record in recorded.findings(2)] == ["stale", "stale"]


@pytest.mark.redis_lab(replicas=1, lag="0ms", options={"redis": RedisOptions(sentinels=True)})
@pytest.mark.parametrize("is_async", [False, True], ids=["sync", "asyncio"])
def test_a_client_of_replicas_that_sentinels_know(posts: Posts, recorded: DryRunRecording, is_async: bool) -> None:
    """REC-13: the server that is looked at is the one that the connection reached."""
    lab = posts.lab
    lab.lag("b1", "2s")  # both clients have first to find it

    def check(value: Any, batch: Any) -> None:
        assert (value, batch) == (None, [None])

    async def read_async() -> None:
        finder = redis.asyncio.Sentinel(lab.sentinels)  # type: ignore[no-untyped-call]
        reader: Any = antipode_redis.wrap(finder.slave_for(lab.sentinel_name), store=STORE)
        check(await reader.get("k"), await reader.pipeline().get("k").execute())
        await reader.aclose()

    with antipode.scope():
        posts.wrapped["a"].set("k", "v")
        if is_async:
            asyncio.run(read_async())
        else:
            finder = Sentinel(lab.sentinels)  # type: ignore[no-untyped-call]
            reader = antipode_redis.wrap(finder.slave_for(lab.sentinel_name), store=STORE)  # type: ignore[no-untyped-call]
            check(reader.get("k"), reader.pipeline().get("k").execute())
    [record] = recorded.findings()
    assert (record["kind"], record["confirmed"]) == ("stale", "repeat")
    assert record["server"].startswith("redis://127.0.0.1:")


def test_nothing_is_asked_in_the_applications_connection(posts: Posts, recorded: DryRunRecording) -> None:
    """REC-12, REC-13: neither INFO nor MULTI, also where a read would wait."""
    plain = redis.Redis.from_url(posts.lab.url("b1"), single_connection_client=True)
    reader = antipode_redis.wrap(plain, store=STORE, wait_on_read=True)
    server: Any = posts.lab.client("b1")
    with server.monitor() as monitor, antipode.scope():
        posts.wrapped["a"].set("k", "v")
        assert reader.get("k") is None
        own = cast("Any", plain).connection._get_socket().getsockname()[1]
        reader.get("the-end")
        sent: list[str] = []
        while not sent or "the-end" not in sent[-1]:
            command = monitor.next_command()
            if command["client_port"] == str(own):
                sent.append(command["command"])
    assert sent == ["GET k", "GET the-end"]
    plain.close()


def test_a_read_of_what_is_there_is_no_finding(posts: Posts, recorded: DryRunRecording) -> None:
    with antipode.scope():
        posts.wrapped["a"].set("k", "v")
        until(lambda: posts.shows("b1", "k"))
        assert posts.wrapped["b1"].get("k") == b"v"
        until(lambda: recorded.count("followed_reads") == 1)
        assert antipode.barrier().dry_run
        until(lambda: recorded.lines("barrier"))
    recorded.ended()
    assert recorded.lines("behind", "stale") == []
