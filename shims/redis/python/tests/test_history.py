"""Recorded histories of Redis: what commands change and read, and what a replica that lags makes of it (HIST-23 …)."""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import antipode
import antipode_redis
import pytest
import redis
import redis.asyncio
from antipode._diagnostics.history.recorder import value_digest
from antipode.check.history.deciding import Verdict, decide
from antipode.messages import outgoing_message
from antipode.testing import isolated
from antipode.testing.histories import judged, lines
from antipode_lab.stores.redis import RedisStore
from regions import STORE, Posts, until

pytestmark = pytest.mark.redis_lab(replicas=1, lag="0ms")


@pytest.fixture(autouse=True)
def _isolated() -> Iterator[None]:
    with isolated():
        yield


@pytest.fixture
def posts(redis_lab: RedisStore) -> Posts:
    found = Posts(redis_lab)
    found.wrapped["a"].flushall()
    until(lambda: found.lab.client("b1").dbsize() <= 1)
    return found


@pytest.fixture
def folder(posts: Posts, tmp_path: Path) -> Path:
    antipode.configure(history=tmp_path / "history")
    return tmp_path / "history"


def value(key: str, octets: str) -> str:
    return value_digest(STORE, key.encode(), octets.encode())


# The story


@pytest.mark.parametrize("waits", [False, True])
@pytest.mark.parametrize("decode", [False, True])
def test_the_story_with_and_without_a_barrier(posts: Posts, folder: Path, waits: bool, decode: bool) -> None:
    """HIST-29: values tell which write was read, at whichever client's decoding."""
    reader = antipode_redis.wrap(redis.Redis.from_url(posts.lab.url("b1"), decode_responses=decode), store=STORE)
    posts.lab.lag("b1", "200ms" if waits else "3s")
    for number in range(3):
        with antipode.scope():
            posts.wrapped["a"].set(f"post:{number}", f"body {number}")
            text = outgoing_message()
        with antipode.message_scope(text):
            if waits:
                antipode.barrier(timeout=5)
            assert (reader.get(f"post:{number}") is not None) == waits
    verdict, history = judged(folder)
    assert not history.gaps
    assert verdict is (Verdict.CONSISTENT if waits else Verdict.VIOLATED)
    assert len(decide(history).found) == (0 if waits else 3)


@pytest.mark.parametrize("waits", [False, True])
def test_the_same_of_asyncio(posts: Posts, folder: Path, waits: bool) -> None:
    posts.lab.lag("b1", "200ms" if waits else "3s")

    async def run() -> None:
        async with (
            redis.asyncio.Redis.from_url(posts.lab.url("a")) as plain_a,
            redis.asyncio.Redis.from_url(posts.lab.url("b1")) as plain_b,
        ):
            writer = antipode_redis.wrap(plain_a, store=STORE)
            reader = antipode_redis.wrap(plain_b, store=STORE)
            with antipode.scope():
                await asyncio.gather(writer.set("post:1", "body 1"), writer.set("post:2", "body 2"))
                text = outgoing_message()
            with antipode.message_scope(text):
                if waits:
                    await antipode.barrier_async(timeout=5)
                found = await asyncio.gather(reader.get("post:1"), reader.get("post:2"))
            assert list(found) == ([b"body 1", b"body 2"] if waits else [None, None])

    asyncio.run(run())
    verdict, history = judged(folder)
    assert not history.gaps
    assert verdict is (Verdict.CONSISTENT if waits else Verdict.VIOLATED)
    assert len(decide(history).found) == (0 if waits else 2)


def test_reads_that_merge_cover_their_position(posts: Posts, folder: Path) -> None:
    """HIST-28: a position that no write has is that of the read."""
    antipode.configure(auto_merge=True)
    plain = redis.Redis.from_url(posts.lab.url("a"))
    with antipode.scope():
        posts.wrapped["a"].set("1", "x")
    plain.set("unrecorded", "moves the position")
    with antipode.scope():
        assert posts.wrapped["a"].get("1") == b"x"
        text = outgoing_message()
    with antipode.message_scope(text):
        assert posts.wrapped["a"].get("1") == b"x"
    assert all("covers" in line for line in lines(folder, "read"))
    verdict, history = judged(folder)
    assert not history.gaps
    assert verdict is Verdict.CONSISTENT


# Commands


def refused(pipeline: Any) -> None:
    """Of its commands one is refused, and the others are done."""
    with pytest.raises(redis.exceptions.ResponseError):
        pipeline.execute()


WRITES: dict[str, tuple[Callable[[Any], Any], list[dict[str, Any]]]] = {
    "set": (lambda r: r.set("k", "v"), [{"key": "k", "value": value("k", "v")}]),
    "set a number": (lambda r: r.set("k", 7), [{"key": "k", "value": value("k", "7")}]),
    "set ex": (lambda r: r.set("k", "v", ex=60), [{"key": "k", "value": value("k", "v"), "expires": True}]),
    "setex": (lambda r: r.setex("k", 60, "v"), [{"key": "k", "value": value("k", "v"), "expires": True}]),
    "set nx": (lambda r: r.set("k", "v", nx=True), [{"key": "k", "value": value("k", "v")}]),
    "set nx refused": (lambda r: r.set("old", "v", nx=True), [{"key": "", "nothing": True}]),
    "set get": (lambda r: r.set("k", "v", get=True), [{"key": "k", "value": value("k", "v")}]),
    "set nx get": (lambda r: r.set("k", "v", nx=True, get=True), [{"key": "k"}]),
    "setnx refused": (lambda r: r.setnx("old", "v"), [{"key": "", "nothing": True}]),
    "getset": (lambda r: r.getset("k", "v"), [{"key": "k", "value": value("k", "v")}]),
    "mset": (
        lambda r: r.mset({"k": "v", "l": "w"}),
        [{"key": "k", "value": value("k", "v")}, {"key": "l", "value": value("l", "w")}],
    ),
    "del": (lambda r: r.delete("old", "k"), [{"key": "old", "value": None}, {"key": "k", "value": None}]),
    "del of nothing": (lambda r: r.delete("k"), [{"key": "", "nothing": True}]),
    "getdel": (lambda r: r.getdel("old"), [{"key": "old", "value": None}]),
    "incr": (lambda r: r.incr("n"), [{"key": "n", "value": value("n", "1")}]),
    "hset": (lambda r: r.hset("h", "f", "v"), [{"key": "h"}]),
    "expire": (lambda r: r.expire("old", 60), [{"key": "old"}]),
    "rename": (lambda r: r.rename("old", "new"), [{"key": "", "any_key": True}]),
    "script": (lambda r: r.eval("redis.call('set', KEYS[1], 'v')", 1, "k"), [{"key": "", "any_key": True}]),
    "pipeline": (
        lambda r: r.pipeline().set("k", "v").incr("n").execute(),
        [{"key": "k", "value": value("k", "v")}, {"key": "n", "value": value("n", "1")}],
    ),
    "pipeline without MULTI": (
        lambda r: r.pipeline(transaction=False).set("k", "v").delete("none").execute(),
        [{"key": "k", "value": value("k", "v")}],
    ),
    "pipeline with a refusal": (
        lambda r: r.pipeline().set("k", "v").incr("old").execute(raise_on_error=False),
        [{"key": "k", "value": value("k", "v")}],
    ),
    "pipeline with a refused value": (
        lambda r: r.pipeline(transaction=False).set("k", "v").getset("list", "v").execute(raise_on_error=False),
        [{"key": "k", "value": value("k", "v")}],
    ),
    "pipeline that raises": (
        lambda r: refused(r.pipeline().set("k", "v").getset("list", "v")),
        [{"key": "", "any_key": True}],
    ),
    "pipeline with a script": (
        lambda r: r.pipeline().set("k", "v").eval("return 1", 0).execute(),
        [{"key": "", "any_key": True}],
    ),
}
_CHANGES = ("key", "value", "expires", "any_key", "nothing")


@pytest.mark.parametrize("write", WRITES)
def test_what_a_write_changed(posts: Posts, folder: Path, write: str) -> None:
    """HIST-28: whole values by their digest, and every line with the position of the write."""
    run, wanted = WRITES[write]
    plain = redis.Redis.from_url(posts.lab.url("a"))
    plain.set("old", "old")
    plain.rpush("list", "element")
    with antipode.scope() as scope:
        run(posts.wrapped["a"])
        position = scope.lineage.serialize()
    found = lines(folder, "write")
    assert [{name: line[name] for name in _CHANGES if name in line} for line in found] == wanted
    assert {line["identifier"] for line in found} == {position}


READS: dict[str, tuple[Callable[[Any], Any], list[dict[str, Any]]]] = {
    "get": (lambda r: r.get("k"), [{"key": "k", "value": value("k", "v")}]),
    "mget": (lambda r: r.mget(["k", "no"]), [{"key": "k", "value": value("k", "v")}, {"key": "no", "value": None}]),
    "exists": (lambda r: r.exists("no"), [{"key": "no", "value": None}]),
    "strlen": (lambda r: r.strlen("k"), [{"key": "k", "reads_from": "unattributed"}]),
    "hgetall": (lambda r: r.hgetall("h"), [{"key": "h", "reads_from": "unattributed"}]),
    "keys": (lambda r: r.keys(), [{"key": "", "reads_from": "unattributed"}]),
    "pipeline": (
        lambda r: r.pipeline().get("k").set("l", "w").get("no").execute(),
        [{"key": "k", "value": value("k", "v")}, {"key": "no", "value": None}],
    ),
}


@pytest.mark.parametrize("read", READS)
def test_what_a_read_saw(posts: Posts, folder: Path, read: str) -> None:
    run, wanted = READS[read]
    redis.Redis.from_url(posts.lab.url("a")).set("k", "v")
    with antipode.scope():
        run(posts.wrapped["a"])
    found = lines(folder, "read")
    assert [{name: line[name] for name in ("key", "value", "reads_from") if name in line} for line in found] == wanted


def test_each_write_of_a_scope_is_recorded(posts: Posts, folder: Path) -> None:
    """HIST-23: also those that take the short way and raise a position that the scope has already."""
    with antipode.scope():
        for number in range(5):
            posts.wrapped["a"].set("k", f"v{number}")
        posts.wrapped["a"].get("k")
    found = lines(folder, "write", "read")
    assert [line["value"] for line in found] == [*(value("k", f"v{number}") for number in range(5)), value("k", "v4")]
    assert len({line["scope"] for line in found}) == 1


async def test_each_write_of_a_scope_is_recorded_by_asyncio(posts: Posts, folder: Path) -> None:
    async with redis.asyncio.Redis.from_url(posts.lab.url("a")) as plain:
        writer = antipode_redis.wrap(plain, store=STORE)
        with antipode.scope():
            for number in range(5):
                await writer.set("k", f"v{number}")
    found = lines(folder, "write")
    assert [line["value"] for line in found] == [value("k", f"v{number}") for number in range(5)]


def test_a_multi_that_is_sent_by_hand_may_have_changed_any_key(posts: Posts, folder: Path) -> None:
    plain = redis.Redis.from_url(posts.lab.url("a"), single_connection_client=True)
    single: Any = antipode_redis.wrap(plain, store=STORE)
    with antipode.scope():
        single.execute_command("MULTI")
        single.set("k", "v")
        single.get("k")
        single.execute_command("EXEC")
    assert [line.get("any_key") for line in lines(folder, "write")] == [True]
    assert [line["reads_from"] for line in lines(folder, "read")] == ["unattributed"]
    single.close()


def test_a_write_that_was_refused_is_none(posts: Posts, folder: Path) -> None:
    """HIST-27."""
    with antipode.scope(), pytest.raises(redis.exceptions.ReadOnlyError):
        posts.wrapped["b1"].set("k", "v")
    assert lines(folder, "write") == []
