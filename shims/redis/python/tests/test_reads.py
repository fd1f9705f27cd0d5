"""Reads that say what they depend on, reads that wait, and lineages that rest in hashes, on real Redis servers."""

from __future__ import annotations

import asyncio
import threading
import time
from collections.abc import Callable, Iterator
from typing import Any

import antipode
import antipode_redis
import pytest
import redis
import redis.asyncio
from antipode import Lineage, Verdict
from antipode.testing import isolated
from antipode_lab.stores.redis import RedisStore
from redis.backoff import NoBackoff
from redis.retry import Retry
from regions import STORE, Posts, until

one_replica = pytest.mark.redis_lab(replicas=1, lag="0ms")
pytestmark = one_replica


@pytest.fixture(autouse=True)
def _isolated() -> Iterator[None]:
    with isolated():
        yield


@pytest.fixture
def posts(redis_lab: RedisStore) -> Posts:
    return Posts(redis_lab)


def waiting(lab: RedisStore, name: str = "b1", **options: Any) -> Any:
    """A wrapped client of a replica whose reads wait."""
    return antipode_redis.wrap(
        redis.Redis.from_url(lab.url(name)),
        store=STORE,
        wait_on_read=True,
        **options,
    )


def test_a_native_read_adds_nothing(posts: Posts) -> None:
    """SHIM-12."""
    posts.write("k")
    with antipode.scope() as scope:
        assert posts.wrapped["a"].get("k") == b"v"
        assert scope.lineage == antipode.EMPTY


def test_what_was_read_is_covered_by_the_position_of_the_server_that_answered(posts: Posts) -> None:
    """SHIM-13."""
    written = posts.write("k")
    assert posts.look(written, 5.0).satisfied
    reader: Any = posts.wrapped["b1"]
    with antipode.scope() as scope:
        with antipode.reading() as seen:
            assert reader.get("k") == b"v"
            assert reader.mget("k", "none") == [b"v", None]
            assert reader.hgetall("no hash") == {}
            with pytest.raises(redis.ResponseError, match="WRONGTYPE"):
                reader.lrange("k", 0, -1)
            with pytest.raises(redis.ResponseError, match="wrong number of arguments"):
                reader.execute_command("GET")
        assert written <= seen.lineage
        assert seen.lineage.is_complete()
        assert scope.lineage == antipode.EMPTY
        with antipode.reading(merge=True):
            reader.get("k")
        assert written <= scope.lineage


def test_reads_of_a_pipeline_are_covered_too(posts: Posts) -> None:
    written = posts.write("k")
    assert posts.look(written, 5.0).satisfied
    for transaction in (True, False):
        with antipode.reading() as seen:
            pipe = posts.wrapped["b1"].pipeline(transaction=transaction)
            pipe.get("k")
            pipe.exists("k")
            assert pipe.execute() == [b"v", 1]
        assert written <= seen.lineage


def test_a_read_waits_on_its_own_connection_for_the_scopes_writes(posts: Posts) -> None:
    reader: Any = waiting(posts.lab)
    posts.lab.lag("b1", "60ms")
    for number in range(5):
        with antipode.scope():
            posts.wrapped["a"].set("k", number)
            assert reader.get("k") == str(number).encode()
            posts.wrapped["a"].delete("k")
            pipe = reader.pipeline()
            assert pipe.exists("k").execute() == [0]


def test_reading_after_a_lineage_waits_for_it(posts: Posts) -> None:
    posts.lab.lag("b1", "60ms")
    lineage = posts.write("k", "new")
    with antipode.reading(after=lineage):
        assert posts.wrapped["b1"].get("k") == b"new"


def test_a_read_that_waits_in_vain_obeys_on_timeout(posts: Posts) -> None:
    posts.write("k", "old")
    assert posts.look(posts.write("l"), 5.0).satisfied
    reader: Any = waiting(posts.lab, timeout=0.2)
    posts.lab.partition("b1", mode="silent")
    with antipode.scope():
        posts.wrapped["a"].set("k", "new")
        began = time.monotonic()
        with pytest.raises(antipode.BarrierTimeout, match="wait on read"):
            reader.get("k")
        assert time.monotonic() - began < 2
        antipode.configure(on_timeout="proceed")
        assert reader.get("k") == b"old"
        antipode.configure(on_timeout="raise", mode="dry-run")
        began = time.monotonic()
        assert reader.get("k") == b"old"
        assert time.monotonic() - began < 0.15, "dry-run waits for nothing"


def test_a_read_parked_in_a_partition_goes_on_when_it_heals(posts: Posts) -> None:
    reader: Any = waiting(posts.lab, timeout=20)
    posts.lab.partition("b1", mode="silent")
    with antipode.scope():
        posts.wrapped["a"].set("k", "v")
        healer = threading.Timer(0.3, posts.lab.heal, ("b1",))
        healer.start()
        assert reader.get("k") == b"v"
        healer.join()


def test_a_read_of_a_lost_write_is_unproven_not_stale(posts: Posts) -> None:
    kept = posts.write("kept")
    posts.wait_marked(kept)
    lost: list[Lineage] = []
    posts.lab.promote("b1", lose=lambda _: lost.append(posts.write("lost", at="a")))
    posts.wait_marked(posts.write("after"))
    reader: Any = waiting(posts.lab, timeout=1)
    with antipode.reading(after=kept):
        assert reader.get("kept") == b"v"
    with antipode.reading(after=lost[0]), pytest.raises(antipode.BarrierUnproven, match="has ended there"):
        reader.get("lost")


def test_a_read_that_blocks_waits_before_it_blocks(posts: Posts) -> None:
    reader: Any = waiting(posts.lab)
    posts.lab.lag("b1", "60ms")
    with antipode.scope():
        posts.wrapped["a"].xadd("stream", {"f": "v"})
        [[name, entries]] = _streams(reader.xread({"stream": "0"}, block=2000))
        assert (name, len(entries)) == (b"stream", 1)


def _streams(reply: Any) -> list[list[Any]]:
    if isinstance(reply, dict):
        return [[name, entries[0]] for name, entries in reply.items()]
    return [list(each) for each in reply]


def test_automatic_merging_makes_the_scope_depend_on_what_it_reads(posts: Posts) -> None:
    written = posts.write("k")
    assert posts.look(written, 5.0).satisfied
    antipode.configure(auto_merge=True)
    with antipode.scope() as scope:
        posts.wrapped["b1"].get("k")
        assert written <= scope.lineage


async def test_asyncio_reads_wait_and_collect(posts: Posts) -> None:
    client: Any = antipode_redis.wrap(redis.asyncio.Redis.from_url(posts.lab.url("a")), store=STORE)
    reader: Any = antipode_redis.wrap(redis.asyncio.Redis.from_url(posts.lab.url("b1")), store=STORE, wait_on_read=True)
    posts.lab.lag("b1", "40ms")
    async with client, reader:
        for number in range(3):
            with antipode.scope() as scope, antipode.reading() as seen:
                await client.set("k", number)
                assert await reader.get("k") == str(number).encode()
                async with reader.pipeline() as pipe:
                    assert await pipe.get("k").execute() == [str(number).encode()]
                assert scope.lineage <= seen.lineage


# Lineages at rest


@pytest.fixture
def other() -> Lineage:
    return Lineage([antipode.WriteId.position("user-acl", "0123456789abcdef", 57)])


@pytest.fixture(params=["2", "3"])
def hashes(request: pytest.FixtureRequest, posts: Posts) -> Any:
    url = f"{posts.lab.url('a')}?protocol={request.param}"
    return antipode_redis.wrap(redis.Redis.from_url(url), store=STORE, rest="field")


def test_a_hashs_lineage_rests_in_a_field_that_nobody_sees(hashes: Any, posts: Posts, other: Lineage) -> None:
    """PROP-21, SHIM-9."""
    with antipode.scope(other):
        assert hashes.hset("h", mapping={"f": "1", "g": "2"}) == 2
        assert hashes.hset("h", "f", "3") == 0
        assert hashes.hincrby("h", "g", 5) == 7
        assert hashes.hincrbyfloat("h", "x", 1.5) == 1.5
        assert hashes.hsetnx("h", "f", "9") in {0}
        assert hashes.hdel("h", "x") == 1
        pipe = hashes.pipeline()
        assert pipe.hset("h", "z", "9").hgetall("h").hdel("h", "z").execute() == [
            1,
            {b"f": b"3", b"g": b"7", b"z": b"9"},
            1,
        ]
    plain = posts.lab.client("a")
    stored = plain.hget("h", "antipode")
    assert isinstance(stored, bytes)
    assert other <= Lineage.deserialize(stored.decode())
    assert hashes.hgetall("h") == {b"f": b"3", b"g": b"7"}
    assert sorted(hashes.hkeys("h")) == [b"f", b"g"]
    assert sorted(hashes.hvals("h")) == [b"3", b"7"]
    assert hashes.hlen("h") == 2
    assert hashes.hscan("h") == (0, {b"f": b"3", b"g": b"7"})
    assert hashes.hmget("h", "f", "none") == [b"3", None]
    for transaction in (True, False):
        pipe = hashes.pipeline(transaction=transaction)
        assert pipe.hkeys("h").hlen("h").hgetall("h").execute()[1:] == [2, {b"f": b"3", b"g": b"7"}]


def test_what_rests_beside_a_value_is_read_with_it(hashes: Any, other: Lineage) -> None:
    with antipode.scope(other):
        hashes.hset("h", "f", "1")
    reads: tuple[Callable[[], object], ...] = (
        lambda: hashes.hget("h", "f"),
        lambda: hashes.hgetall("h"),
        lambda: hashes.hmget("h", ["f"]),
        lambda: hashes.hvals("h"),
        lambda: hashes.hexists("h", "f"),
        lambda: hashes.pipeline().hgetall("h").execute(),
    )
    for read in reads:
        with antipode.reading() as seen:
            read()
        assert other <= seen.lineage
        assert [write_id.store for write_id in seen.lineage] == [STORE, "user-acl"]


def test_a_read_that_waits_behind_a_watch_leaves_it(posts: Posts) -> None:
    """SHIM-2: a MULTI of ours would end it, and what others change would be overwritten."""
    plain: Any = posts.lab.client("a")
    plain.hset(antipode_redis.marks.DEFAULT_KEY, "8371ab90c2d4e6f1", "10 1")
    reader = waiting(posts.lab, "a")
    with antipode.scope() as scope:
        scope.append(antipode.WriteId.position(STORE, "8371ab90c2d4e6f1", 9))
        pipe = reader.pipeline()
        pipe.watch("k")
        assert pipe.get("k") is None
        plain.set("k", "theirs")
        pipe.multi()
        pipe.set("k", "ours")
        with pytest.raises(redis.WatchError):
            pipe.execute()


def test_what_is_read_between_watch_and_multi_is_not_taken_for_complete(hashes: Any, other: Lineage) -> None:
    """SHIM-13: the lineage beside the value cannot be read in one step there, so it is marked."""
    with antipode.scope(other):
        hashes.hset("h", "f", "1")
    pipe = hashes.pipeline()
    pipe.watch("h")
    with antipode.reading() as seen:
        assert pipe.hget("h", "f") == b"1"
    assert not seen.lineage.is_complete([STORE])
    pipe.reset()


def test_lineages_of_a_hash_are_joined_and_stay_small(hashes: Any, posts: Posts) -> None:
    for number in range(50):
        with antipode.scope(Lineage([antipode.WriteId.position("user-acl", "0123456789abcdef", number)])):
            hashes.hset("h", f"f{number}", "v")
    stored = posts.lab.client("a").hget("h", "antipode")
    assert stored == b"1~user-acl..0123456789abcdef.49"
    with antipode.scope(Lineage([antipode.WriteId("img", "cat.jpg", antipode.Opaque("m"))])):
        hashes.hset("h", "g", "v")
    with antipode.reading() as seen:
        hashes.hgetall("h")
    assert {write_id.store for write_id in seen.lineage} == {STORE, "user-acl", "img"}


def test_a_lineage_at_rest_past_its_limit_is_incomplete_never_empty(hashes: Any) -> None:
    for number in range(60):
        with antipode.scope(Lineage([antipode.WriteId(f"store-{number}", "k" * 80, antipode.Opaque("m"))])):
            hashes.hset("h", "f", number)
    with antipode.reading() as seen:
        assert hashes.hget("h", "f") == b"59"
    assert not seen.lineage.is_complete()


def test_a_malformed_lineage_at_rest_is_incomplete_for_its_store(hashes: Any, posts: Posts) -> None:
    """SHIM-14."""
    posts.lab.client("a").hset("h", mapping={"f": "1", "antipode": "no lineage"})
    with antipode.reading() as seen:
        assert hashes.hgetall("h") == {b"f": b"1"}
    assert seen.lineage.incomplete == {STORE}
    posts.lab.client("a").hset("plain", "f", "1")
    with antipode.reading() as seen:
        hashes.hgetall("plain")
    assert seen.lineage.is_complete()


def test_errors_and_deleted_hashes_are_the_stores_own(hashes: Any, posts: Posts, other: Lineage) -> None:
    posts.lab.client("a").set("text", "v")
    with antipode.scope(other) as scope:
        with pytest.raises(redis.ResponseError, match=r"^Operation against|^WRONGTYPE"):
            hashes.hset("text", "f", "1")
        hashes.hset("h", "f", "x")
        with pytest.raises(redis.ResponseError, match="not an integer"):
            hashes.hincrby("h", "f", 1)
        assert not scope.pending
        assert hashes.hdel("h", "f") == 1
    assert posts.lab.client("a").exists("h") == 0
    assert hashes.hset("big", mapping={f"f{number}": "v" for number in range(5000)}) == 5000


def test_reads_in_a_transaction_sent_by_hand(posts: Posts) -> None:
    """They are queued, and nothing of ours is queued with them; what they have to come after is waited for at MULTI."""
    plain: Any = redis.Redis.from_url(posts.lab.url("b1"), single_connection_client=True)
    client: Any = antipode_redis.wrap(plain, store=STORE, wait_on_read=True, timeout=10)
    posts.lab.lag("b1", "300ms")
    with antipode.scope(posts.write("k", "new")), antipode.reading() as seen:
        client.execute_command("MULTI")
        client.execute_command("GET", "k")
        client.execute_command("GET", "nothing")
        assert client.execute_command("EXEC") == [b"new", None]
    assert not seen.lineage.is_complete(), "nobody knows what these values depend on"


def test_reads_behind_a_transaction_sent_by_hand_that_its_connection_ended(posts: Posts) -> None:
    """They are executed by themselves: nothing has waited for them on the next connection."""
    retry = Retry(NoBackoff(), 1)
    plain: Any = redis.Redis.from_url(posts.lab.url("b1"), single_connection_client=True, retry=retry)
    client: Any = antipode_redis.wrap(plain, store=STORE, wait_on_read=True, timeout=10)
    posts.lab.lag("b1", "300ms")
    with antipode.scope(posts.write("k", "new")), antipode.reading() as seen:
        client.execute_command("MULTI")
        posts.lab.client("b1").client_kill_filter(_type="normal", skipme=True)
        assert client.get("k") == b"new"
    assert seen.lineage.is_complete(), "it is a read like any other"
    with antipode.scope(posts.write("k", "newer")), antipode.reading() as seen:
        client.execute_command("MULTI")
        client.connection.health_check_interval, client.connection.next_health_check = 3600, 0
        with pytest.raises(antipode.BarrierUnproven, match="behind MULTI"):
            client.get("k")
    assert not seen.lineage.is_complete()


def test_modes_that_are_not_there_are_refused(posts: Posts) -> None:
    client: Any = redis.Redis.from_url(posts.lab.url("a"))
    with pytest.raises(antipode.ConfigurationError, match="go together"):
        antipode_redis.wrap(client, store=STORE, rest="envelope")
    with pytest.raises(antipode.ConfigurationError, match="go together"):
        antipode_redis.wrap(client, store=STORE, rest="field", envelope_keys="post:*")
    with pytest.raises(antipode.ConfigurationError, match="none, field or envelope"):
        antipode_redis.wrap(client, store=STORE, rest="beside")  # type: ignore[arg-type]


def test_dry_run_never_waits_and_off_adds_nothing(posts: Posts) -> None:
    antipode.configure(mode="off")
    with antipode.scope() as scope:
        posts.wrapped["a"].set("k", "v")
        assert scope.lineage == antipode.EMPTY
    antipode.configure(mode=None)
    assert posts.verdict(posts.write("k")) is Verdict.VISIBLE
    until(lambda: posts.look(posts.write("l")).satisfied)


GET = "return redis.call('GET', KEYS[1])"
ANSWERING: dict[str, Callable[[Any], Any]] = {
    "EVAL": lambda client: client.eval(GET, 1, "k"),
    "EVALSHA": lambda client: client.evalsha(client.script_load(GET), 1, "k"),
    "register_script": lambda client: client.register_script(GET)(keys=["k"]),
    "FCALL": lambda client: client.fcall("read_it", 1, "k"),
    "pipeline": lambda client: client.pipeline(transaction=False).eval(GET, 1, "k").execute()[0],
    "MULTI": lambda client: client.pipeline(transaction=True).eval(GET, 1, "k").execute()[0],
    "transaction": lambda client: client.transaction(lambda pipe: pipe.eval(GET, 1, "k"))[0],
    "WATCH": lambda client: (pipe := client.pipeline()).watch("k") and pipe.eval(GET, 1, "k"),
}


@pytest.mark.parametrize("way", list(ANSWERING))
def test_a_script_may_read_and_so_it_waits(posts: Posts, way: str) -> None:
    """SHIM-44: what is unsure waits."""
    posts.lab.client("a").function_load(
        "#!lua name=lib\nredis.register_function{function_name='read_it', callback=function(keys) return "
        "redis.call('GET', keys[1]) end, flags={'no-writes'}}",
        replace=True,
    )
    assert posts.look(posts.write("k", "old"), 5.0).satisfied
    reader = waiting(posts.lab, timeout=0.3)
    posts.lab.lag("b1", "100ms")
    with antipode.scope():
        posts.wrapped["a"].set("k", "new")
        assert ANSWERING[way](reader) == b"new"
        posts.lab.partition("b1")
        posts.wrapped["a"].set("k", "newer")
        with pytest.raises(antipode.BarrierTimeout):
            ANSWERING[way](reader)
    with antipode.reading(after=posts.write("k", "newest")):
        with pytest.raises(antipode.BarrierTimeout):
            ANSWERING[way](posts.wrap("b1", timeout=0.3))
    posts.lab.heal("b1")


async def test_an_asyncio_script_waits_too(posts: Posts) -> None:
    posts.write("k", "old")
    await asyncio.to_thread(posts.lab.wait_caught_up, "b1")
    posts.lab.partition("b1")
    lineage = posts.write("k", "new")
    async with redis.asyncio.Redis.from_url(posts.lab.url("b1")) as plain:
        reader: Any = antipode_redis.wrap(plain, store=STORE, wait_on_read=True, timeout=0.3)
        with antipode.scope(lineage):
            asks: list[Callable[[], Any]] = [
                lambda: reader.eval(GET, 1, "k"),
                lambda: reader.pipeline(transaction=False).eval(GET, 1, "k").execute(),
                lambda: reader.pipeline(transaction=True).eval(GET, 1, "k").execute(),
            ]
            for ask in asks:
                with pytest.raises(antipode.BarrierTimeout):
                    await ask()
            posts.lab.heal("b1")
            assert await reader.eval(GET, 1, "k") == b"new"


def test_a_write_whose_reply_holds_data_is_not_sent_where_it_waited_in_vain(posts: Posts) -> None:
    """SHIM-44: after a failover, at a primary that has lost what the scope saw."""
    kept = posts.write("k", "old")
    assert posts.look(kept, 5.0).satisfied
    lost: list[Lineage] = []
    posts.lab.promote("b1", lose=lambda _: lost.append(posts.write("k", "lost")))
    client: Any = waiting(posts.lab, "b1", timeout=0.3)
    with antipode.scope(lost[0]) as scope:
        asks: list[Callable[[], Any]] = [
            lambda: client.getset("k", "mine"),
            lambda: client.set("k", "mine", get=True),
            lambda: client.pipeline().getset("k", "mine").execute(),
        ]
        for ask in asks:
            with pytest.raises(antipode.BarrierError):
                ask()
            assert not scope.pending
            assert scope.lineage == lost[0]
        assert posts.shows("b1", "k") == b"old"
        assert client.set("k", "mine") is True
