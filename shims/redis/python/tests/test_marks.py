"""Marks on real Redis servers: when they are written, by whom, what bounds them, and what happens without them."""

from __future__ import annotations

import subprocess
import sys
import textwrap
import threading
import time
from collections.abc import Iterator
from typing import Any

import antipode
import antipode_redis
import pytest
import redis
from antipode import Lineage, Verdict
from antipode.testing import isolated
from antipode_lab.stores.redis import RedisOptions, RedisStore
from antipode_redis import marks
from antipode_redis.info import EPOCH_DIGITS
from regions import STORE, Posts, until, wait_marked

pytestmark = pytest.mark.redis_lab(replicas=1, lag="0ms")


@pytest.fixture(autouse=True)
def _isolated() -> Iterator[None]:
    with isolated():
        yield


def found(client: redis.Redis) -> list[marks.Mark]:
    """The marks in a server's data."""
    return marks.read_marks(client.hgetall(marks.DEFAULT_KEY))


def mark(client: redis.Redis, epoch: str = "", position: int = 0, most: int = marks.MOST) -> Any:
    """What a marking process does."""
    return client.eval(marks.MARK, 1, marks.DEFAULT_KEY, epoch, position, 1000, most, EPOCH_DIGITS)


def test_a_process_that_holds_a_primary_marks_its_epoch_without_writing(redis_lab: RedisStore) -> None:
    """EPOCH-19."""
    client = antipode_redis.wrap(redis.Redis.from_url(redis_lab.url("a")), store=STORE)
    plain = redis_lab.client("a")
    until(lambda: found(plain))
    assert found(plain)[0].epoch == redis_lab.replication("a")["master_replid"][:EPOCH_DIGITS]
    reader = antipode_redis.wrap(redis.Redis.from_url(redis_lab.url("b1")), store=STORE)
    redis_lab.promote("b1", lose=0)
    new = redis_lab.replication("b1")["master_replid"][:EPOCH_DIGITS]
    promoted = redis_lab.client("b1")
    until(lambda: new in {each.epoch for each in found(promoted)}, 5)
    assert reader.connection_pool is not client.connection_pool


def test_the_last_write_is_covered_within_two_seconds_and_then_nothing_more_is_marked(redis_lab: RedisStore) -> None:
    """EPOCH-18."""
    posts = Posts(redis_lab)
    lineage = posts.write("k")
    began = time.monotonic()
    posts.wait_marked(lineage)
    assert time.monotonic() - began < 2.5
    before = redis_lab.replication("a")["master_repl_offset"]
    time.sleep(2.5)  # what would be a mark a second, were it not covered
    assert redis_lab.replication("a")["master_repl_offset"] == before


def test_writers_make_one_mark_a_second_however_many_they_are(redis_lab: RedisStore) -> None:
    """EPOCH-18, EPOCH-16: the script compares the stored time."""
    plain = redis_lab.client("a")
    stop = threading.Event()
    told: list[bytes] = []

    def write() -> None:
        client = redis_lab.client("a")
        while not stop.is_set():
            epoch = redis_lab_epoch
            client.set("k", "v")
            offset = client.info("replication")["master_repl_offset"]
            told.append(mark(client, epoch, offset)[0])

    redis_lab_epoch = redis_lab.replication("a")["master_replid"][:EPOCH_DIGITS]
    threads = [threading.Thread(target=write) for _ in range(5)]
    for thread in threads:
        thread.start()
    time.sleep(2.2)
    stop.set()
    for thread in threads:
        thread.join(10)
    assert 1 <= told.count(b"marked") <= 4
    assert len(told) > 20
    assert len(found(plain)) == 1


def test_offsets_past_two_to_the_fifty_third_are_exact(redis_lab: RedisStore) -> None:
    """EPOCH-17: Lua's numbers are not."""
    plain = redis_lab.client("a")
    script = textwrap.dedent(
        marks.MARK.replace(
            "if t.role ~= 'master'",
            "t.master_repl_offset = ARGV[6] t.second_repl_offset = ARGV[7] t.master_replid2 = string.rep('b', 40)\n"
            "if t.role ~= 'master'",
            1,
        )
    )
    big = 2**53 + 1
    for offset, second in ((big, 2**63), (big + 1, 10**18), (10**14 + 1, 10**15)):
        plain.delete(marks.DEFAULT_KEY)
        words = ("", 0, 0, marks.MOST, EPOCH_DIGITS, offset, second)
        assert plain.eval(script, 1, marks.DEFAULT_KEY, *words)[0] == b"marked"
        assert {each.position for each in found(plain)} == {offset, second - 1}
    assert plain.eval(marks.SETTLE, 1, marks.DEFAULT_KEY, "c" * 16, 2**64 - 1, 1000, 16) == b"OK"
    assert max(each.position for each in found(plain)) == 2**64 - 1


def test_no_more_than_a_thousand_epochs_are_kept_the_oldest_go(redis_lab: RedisStore) -> None:
    """EPOCH-20."""
    plain = redis_lab.client("a")
    for number in range(12):
        plain.eval(marks.SETTLE, 1, marks.DEFAULT_KEY, f"{number:016x}", 5, 10, 16)
    kept = found(plain)
    assert [each.epoch for each in kept] == [f"{number:016x}" for number in range(2, 12)]
    assert mark(plain, most=5)[0] == b"marked"
    assert len(found(plain)) == 5
    assert found(plain)[-1].epoch == redis_lab.replication("a")["master_replid"][:EPOCH_DIGITS]


def test_marks_do_not_go_back(redis_lab: RedisStore) -> None:
    plain = redis_lab.client("a")
    plain.eval(marks.SETTLE, 1, marks.DEFAULT_KEY, "a" * 16, 100, 10, 16)
    plain.eval(marks.SETTLE, 1, marks.DEFAULT_KEY, "a" * 16, 99, 10, 16)
    assert found(plain) == [marks.Mark("a" * 16, 100, 1)]


def test_marks_that_were_evicted_leave_older_epochs_unproven_and_never_pass(redis_lab: RedisStore) -> None:
    """EPOCH-21."""
    posts = Posts(redis_lab, replicas=[redis_lab.url("b1")])
    kept = posts.write("kept")
    posts.wait_marked(kept)
    redis_lab.promote("b1", lose=0)
    redis_lab.restart("b1", "aof")  # another epoch, without a parent
    redis_lab.client("b1").delete(marks.DEFAULT_KEY)
    assert posts.shows("b1", "kept") == b"v"
    result = posts.look(kept, 0.5)
    assert result.stores[STORE].verdict is Verdict.UNPROVEN
    assert "unknown epoch" in result.stores[STORE].reason
    epoch = kept.of_store(STORE)[0].version
    assert isinstance(epoch, antipode.Ordered)
    antipode_redis.RedisShim.settle(redis_lab.url("b1"), epoch.epoch)
    until(lambda: posts.look(kept, 1.0).satisfied)


@pytest.mark.redis_lab(
    replicas=1, lag="0ms", options={"redis": RedisOptions(config={"maxmemory-policy": "allkeys-lru"})}
)
def test_a_policy_that_may_evict_the_marks_is_warned_about(
    redis_lab: RedisStore, caplog: pytest.LogCaptureFixture
) -> None:
    """EPOCH-21."""
    antipode_redis.wrap(redis.Redis.from_url(redis_lab.url("a")), store=STORE)
    assert "allkeys-lru" in caplog.text


def test_another_key_for_the_marks(redis_lab: RedisStore) -> None:
    client = antipode_redis.wrap(
        redis.Redis.from_url(redis_lab.url("a")), store=STORE, marks_key="posts:epochs", replicas=[redis_lab.url("b1")]
    )
    plain = redis_lab.client("a")
    with antipode.scope():
        client.set("posts:1", "v")
        assert antipode.barrier(timeout=5).satisfied
    until(lambda: plain.exists("posts:epochs"))
    assert not plain.exists(marks.DEFAULT_KEY)


def test_a_process_that_ends_marks_its_last_write_and_is_not_delayed(redis_lab: RedisStore) -> None:
    """EPOCH-18: at exit."""
    program = textwrap.dedent(
        """
        import sys, time, antipode, antipode_redis, redis
        client = antipode_redis.wrap(redis.Redis.from_url(sys.argv[1]), store="blog-posts")
        with antipode.scope() as scope:
            client.set("first", "v")
            time.sleep(0.5)  # the mark of the first write: the next one is due in a second
            client.set("last", "v")
            print(scope.lineage.serialize(), time.time(), flush=True)
        """
    )
    done = subprocess.run(
        [sys.executable, "-c", program, redis_lab.url("a")], capture_output=True, text=True, check=True, timeout=60
    )
    ended = time.time()
    text, last = done.stdout.split()
    assert ended - float(last) < 2
    [write_id] = Lineage.deserialize(text).of_store(STORE)
    assert isinstance(write_id.version, antipode.Ordered)
    [known] = found(redis_lab.client("a"))
    assert known.epoch == write_id.version.epoch
    assert known.position >= write_id.version.counter


def test_no_mark_is_written_at_a_replica(redis_lab: RedisStore) -> None:
    assert mark(redis_lab.client("b1"))[0] == b"replica"
    assert not found(redis_lab.client("b1"))


@pytest.mark.parametrize(
    ("step", "error"), [("start", RuntimeError), ("start", MemoryError), ("__init__", MemoryError)]
)
def test_a_write_succeeds_where_no_thread_is_to_be_had_and_is_marked_later(
    redis_lab: RedisStore, monkeypatch: pytest.MonkeyPatch, step: str, error: type[Exception]
) -> None:
    """SHIM-2, BAR-61: the next write tries again."""
    possible = getattr(threading.Thread, step)

    def refused(thread: threading.Thread, *args: Any, **options: Any) -> None:
        raise error("none is to be had")

    monkeypatch.setattr(threading.Thread, step, refused)
    client: Any = antipode_redis.wrap(redis.Redis.from_url(redis_lab.url("a")), store=STORE)
    with antipode.scope() as scope:
        assert client.set("k", "v") is True
        assert client.pipeline().set("k", "w").execute() == [True]
        assert scope.lineage.is_complete()
        assert not scope.pending
    monkeypatch.setattr(threading.Thread, step, possible)
    with antipode.scope() as scope:
        client.set("k", "x")
        wait_marked(redis_lab, scope.lineage)


def test_a_write_that_was_executed_is_the_applications_whatever_fails_behind_it(
    redis_lab: RedisStore, monkeypatch: pytest.MonkeyPatch
) -> None:
    """SHIM-2: its scope is incomplete instead."""
    client: Any = antipode_redis.wrap(redis.Redis.from_url(redis_lab.url("a")), store=STORE)
    monkeypatch.setattr(antipode_redis.marker.Marker, "wrote", lambda self, position: 1 / 0)
    with antipode.scope() as scope:
        assert client.set("k", "v") is True
        assert client.hset("h", "f", "v") == 1
        assert client.pipeline().set("k", "w").execute() == [True]
        assert scope.lineage.incomplete == {STORE}
        assert not scope.pending
