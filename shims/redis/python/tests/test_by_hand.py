"""MULTI, EXEC and DISCARD that the application sends by hand through redis-py, sync and asyncio."""

from __future__ import annotations

import asyncio
from collections.abc import Iterator
from typing import Any

import antipode
import antipode_redis
import pytest
import redis
import redis.asyncio
import redis.asyncio.retry
from antipode.testing import isolated
from antipode_lab.stores.redis import RedisStore
from redis.backoff import NoBackoff
from redis.cache import CacheConfig
from redis.connection import CacheProxyConnection
from redis.retry import Retry
from regions import STORE, until

pytestmark = pytest.mark.redis_lab(replicas=1, lag="0ms")


@pytest.fixture(autouse=True)
def _isolated() -> Iterator[None]:
    with isolated():
        yield


@pytest.fixture
def url(redis_lab: RedisStore) -> str:
    return redis_lab.url("a")


def position(lineage: antipode.Lineage) -> int:
    """The counter of the one position that a lineage holds."""
    assert lineage.is_complete()
    [write_id] = lineage.of_store(STORE)
    assert isinstance(write_id.version, antipode.Ordered)
    return write_id.version.counter


def connected(url: str, **options: Any) -> Any:
    """A client of one connection, which redis-py makes anew once where it must."""
    return redis.Redis.from_url(url, single_connection_client=True, retry=Retry(NoBackoff(), 1), **options)


def connected_asyncio(url: str) -> Any:
    """The same, for asyncio."""
    return redis.asyncio.Redis.from_url(
        url, single_connection_client=True, retry=redis.asyncio.retry.Retry(NoBackoff(), 1)
    )


def end_by_a_health_check(client: Any) -> None:
    """The next command's health check is queued, too, and redis-py makes the connection anew within that command."""
    inner = getattr(client.connection, "_conn", client.connection)
    inner.health_check_interval, inner.next_health_check = 3600, 0


def test_a_transaction_sent_by_hand(url: str) -> None:
    """Its EXEC returns what the application queued, and nothing of ours."""
    client: Any = antipode_redis.wrap(redis.Redis.from_url(url, single_connection_client=True), store=STORE)
    with antipode.scope() as scope:
        client.execute_command("MULTI")
        assert not scope.pending
        assert client.execute_command("SET", "k", "1") in {b"QUEUED", False, None}
        client.execute_command("INCR", "k")
        assert [write.store for write in scope.pending] == [STORE]
        assert client.execute_command("EXEC") == [b"OK", 2]
        assert scope.pending == ()
        at = position(scope.lineage)
        client.execute_command("MULTI")
        client.execute_command("SET", "k", "9")
        client.execute_command("DISCARD")
        assert not scope.pending
        client.set("k", "3")
        assert position(scope.lineage) > at


def test_a_transaction_sent_by_hand_ends_with_its_connection(url: str, redis_lab: RedisStore) -> None:
    """What redis-py repeats on the next one is executed by itself; what was queued before did not happen."""
    retry = Retry(NoBackoff(), 1)
    client: Any = antipode_redis.wrap(
        redis.Redis.from_url(url, single_connection_client=True, retry=retry), store=STORE
    )
    plain = redis_lab.client("a")
    for ended in ("its server", "a health check"):
        with antipode.scope() as scope:
            client.execute_command("MULTI")
            client.execute_command("SET", "k", "1")
            if ended == "its server":
                plain.client_kill_filter(_type="normal", skipme=True)
            else:  # whose PING is queued, too
                client.connection.health_check_interval, client.connection.next_health_check = 3600, 0
            client.execute_command("SET", "l", ended)
            assert plain.get("l") == ended.encode()
            assert not scope.pending, ended
            at = position(scope.lineage)
            assert scope.lineage.is_complete()
            with pytest.raises(redis.ResponseError, match="EXEC without MULTI"):
                client.execute_command("EXEC")
            assert plain.get("k") is None
            assert not scope.pending
            assert position(scope.lineage) == at


def test_a_command_that_is_refused_in_a_transaction_sent_by_hand_is_not_pending(url: str) -> None:
    client: Any = antipode_redis.wrap(redis.Redis.from_url(url, single_connection_client=True), store=STORE)
    with antipode.scope() as scope:
        client.execute_command("MULTI")
        with pytest.raises(redis.ResponseError, match="number of arguments"):
            client.execute_command("SET", "k")
        with pytest.raises(redis.exceptions.ExecAbortError):
            client.execute_command("EXEC")
        assert not scope.pending


async def test_a_transaction_sent_by_hand_ends_with_its_connection_asyncio(url: str, redis_lab: RedisStore) -> None:
    retry = redis.asyncio.retry.Retry(NoBackoff(), 1)
    native = redis.asyncio.Redis.from_url(url, single_connection_client=True, retry=retry)
    plain = redis_lab.client("a")
    async with native:
        client: Any = antipode_redis.wrap(native, store=STORE)
        for ended in ("its server", "a health check"):
            with antipode.scope() as scope:
                await client.execute_command("MULTI")
                await client.execute_command("SET", "k", "1")
                if ended == "its server":
                    plain.client_kill_filter(_type="normal", skipme=True)
                else:
                    client.connection.health_check_interval, client.connection.next_health_check = 3600, 0
                await client.execute_command("SET", "l", ended)
                assert plain.get("l") == ended.encode()
                assert not scope.pending, ended
                at = position(scope.lineage)
                with pytest.raises(redis.ResponseError, match="EXEC without MULTI"):
                    await client.execute_command("EXEC")
                assert plain.get("k") is None
                assert not scope.pending
                assert position(scope.lineage) == at


# A MULTI inside it


@pytest.mark.parametrize("waits", [False, True])
def test_a_nested_multi_is_refused_and_leaves_the_transaction_as_it_is(url: str, waits: bool) -> None:
    """Nothing of ours comes into it either: it waited at its first MULTI (SHIM-2, SHIM-11)."""
    client: Any = antipode_redis.wrap(connected(url), store=STORE, wait_on_read=waits)
    with antipode.scope() as scope:
        client.set("k", "0")
        before = position(scope.lineage)
        client.execute_command("MULTI")
        client.execute_command("SET", "k", "1")
        with pytest.raises(redis.ResponseError, match="nested"):
            client.execute_command("MULTI")
        assert [write.store for write in scope.pending] == [STORE]
        client.execute_command("INCR", "k")
        assert client.execute_command("EXEC") == [b"OK", 2]
        assert not scope.pending
        assert position(scope.lineage) > before


@pytest.mark.parametrize("waits", [False, True])
async def test_a_nested_multi_is_refused_and_leaves_the_transaction_as_it_is_asyncio(url: str, waits: bool) -> None:
    native = connected_asyncio(url)
    async with native:
        client: Any = antipode_redis.wrap(native, store=STORE, wait_on_read=waits)
        with antipode.scope() as scope:
            await client.set("k", "0")
            before = position(scope.lineage)
            await client.execute_command("MULTI")
            await client.execute_command("SET", "k", "1")
            with pytest.raises(redis.ResponseError, match="nested"):
                await client.execute_command("MULTI")
            assert [write.store for write in scope.pending] == [STORE]
            await client.execute_command("INCR", "k")
            assert await client.execute_command("EXEC") == [b"OK", 2]
            assert not scope.pending
            assert position(scope.lineage) > before


def test_a_multi_that_comes_onto_the_next_connection_is_the_first_there(url: str) -> None:
    """Nothing waited there for what is read in it, as it was sent as a nested one: it says so (BAR-50)."""
    client: Any = antipode_redis.wrap(connected(url), store=STORE, wait_on_read=True)
    with antipode.scope() as scope:
        client.execute_command("MULTI")
        client.execute_command("SET", "k", "lost")
        end_by_a_health_check(client)
        assert client.execute_command("MULTI")
        assert not scope.pending
        client.execute_command("SET", "k", "1")
        assert client.execute_command("EXEC") == [b"OK"]
        at = position(scope.lineage)
        client.execute_command("MULTI")
        end_by_a_health_check(client)
        with pytest.raises(antipode.BarrierUnproven, match="made anew"):
            client.execute_command("MULTI")
        client.execute_command("SET", "k", "2")
        assert client.execute_command("EXEC") == [b"OK"]
        assert position(scope.lineage) > at


async def test_a_multi_that_comes_onto_the_next_connection_is_the_first_there_asyncio(url: str) -> None:
    native = connected_asyncio(url)
    async with native:
        client: Any = antipode_redis.wrap(native, store=STORE, wait_on_read=True)
        with antipode.scope() as scope:
            await client.execute_command("MULTI")
            await client.execute_command("SET", "k", "lost")
            end_by_a_health_check(client)
            assert await client.execute_command("MULTI")
            assert not scope.pending
            await client.execute_command("SET", "k", "1")
            assert await client.execute_command("EXEC") == [b"OK"]
            at = position(scope.lineage)
            await client.execute_command("MULTI")
            end_by_a_health_check(client)
            with pytest.raises(antipode.BarrierUnproven, match="made anew"):
                await client.execute_command("MULTI")
            await client.execute_command("SET", "k", "2")
            assert await client.execute_command("EXEC") == [b"OK"]
            assert position(scope.lineage) > at


def test_reset_ends_a_transaction_that_was_sent_by_hand(url: str) -> None:
    """What follows is executed by itself (SHIM-6)."""
    client: Any = antipode_redis.wrap(connected(url, protocol=2), store=STORE)
    with antipode.scope() as scope:
        client.execute_command("MULTI")
        client.execute_command("SET", "k", "1")
        client.execute_command("RESET")
        assert not scope.pending
        client.execute_command("SET", "k", "2")
        at = position(scope.lineage)
        client.execute_command("SET", "k", "3")
        assert position(scope.lineage) > at


async def test_reset_ends_a_transaction_that_was_sent_by_hand_asyncio(url: str) -> None:
    async with connected_asyncio(url) as native:
        client: Any = antipode_redis.wrap(native, store=STORE)
        with antipode.scope() as scope:
            await client.execute_command("MULTI")
            await client.execute_command("SET", "k", "1")
            await client.execute_command("RESET")
            assert not scope.pending
            await client.execute_command("SET", "k", "2")
            at = position(scope.lineage)
            await client.execute_command("SET", "k", "3")
            assert position(scope.lineage) > at


# What is executed by itself, as the connection was made anew within

HALF_DONE = "redis.call('SET', KEYS[1], ARGV[1]); return redis.error_reply('OOPS half done')"


def test_a_script_that_failed_half_done_on_the_next_connection_is_incomplete(url: str, redis_lab: RedisStore) -> None:
    """It is not rolled back (SHIM-6)."""
    client: Any = antipode_redis.wrap(connected(url), store=STORE)
    with antipode.scope() as scope:
        client.execute_command("MULTI")
        client.execute_command("SET", "l", "1")
        end_by_a_health_check(client)
        with pytest.raises(redis.ResponseError, match="half done"):
            client.execute_command("EVAL", HALF_DONE, 1, "k", "written")
        assert redis_lab.client("a").get("k") == b"written"
        assert not scope.pending
        assert not scope.lineage.is_complete()


async def test_a_script_that_failed_half_done_on_the_next_connection_is_incomplete_asyncio(
    url: str, redis_lab: RedisStore
) -> None:
    native = connected_asyncio(url)
    async with native:
        client: Any = antipode_redis.wrap(native, store=STORE)
        with antipode.scope() as scope:
            await client.execute_command("MULTI")
            await client.execute_command("SET", "l", "1")
            end_by_a_health_check(client)
            with pytest.raises(redis.ResponseError, match="half done"):
                await client.execute_command("EVAL", HALF_DONE, 1, "k", "written")
            assert redis_lab.client("a").get("k") == b"written"
            assert not scope.pending
            assert not scope.lineage.is_complete()


def test_a_command_that_the_next_connection_refused_changed_nothing(url: str) -> None:
    client: Any = antipode_redis.wrap(connected(url), store=STORE)
    with antipode.scope() as scope:
        client.execute_command("MULTI")
        end_by_a_health_check(client)
        with pytest.raises(redis.ResponseError, match="number of arguments"):
            client.execute_command("SET", "k")
        assert not scope.pending
        assert scope.lineage.is_complete()


def test_a_connection_with_a_cache_before_it_ends_its_transaction_too(
    url: str, redis_lab: RedisStore, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The client and its callbacks name it differently; redis-py asks for a newer server than the lab's."""
    monkeypatch.setattr(CacheProxyConnection, "MIN_ALLOWED_VERSION", "6.0.0")
    native = connected(url, protocol=3, cache_config=CacheConfig())
    client: Any = antipode_redis.wrap(native, store=STORE)
    assert isinstance(client.connection, CacheProxyConnection)
    with antipode.scope() as scope:
        client.execute_command("MULTI")
        client.execute_command("SET", "k", "1")
        end_by_a_health_check(client)
        client.execute_command("SET", "l", "2")
        plain = redis_lab.client("a")
        assert (plain.get("k"), plain.get("l")) == (None, b"2")
        assert not scope.pending
        at = position(scope.lineage)
        with pytest.raises(redis.ResponseError, match="EXEC without MULTI"):
            client.execute_command("EXEC")
        assert position(scope.lineage) == at


@pytest.mark.parametrize("queued", [("GET", "k"), ("GETSET", "k", "x"), ("EVAL", "return redis.call('GET', 'k')", "0")])
def test_exec_answers_with_what_was_proved_before_multi(redis_lab: RedisStore, url: str, queued: Any) -> None:
    """SHIM-48: inside a MULTI nothing can be asked, so what was written since is refused."""
    with antipode.scope():
        writer = antipode_redis.wrap(redis.Redis.from_url(url), STORE)
        client = antipode_redis.wrap(connected(url), STORE, wait_on_read=True, timeout=20)
        writer.set("k", "v")
        client.execute_command("MULTI")
        client.execute_command(*queued)
        assert client.execute_command("EXEC") == [b"v"]
        client.execute_command("MULTI")
        client.execute_command(*queued)
        writer.set("k", "w")
        with pytest.raises(antipode.BarrierUnproven, match=r"DISCARD.*AP514"):
            client.execute_command("EXEC")
        assert client.execute_command("DISCARD")
        client.execute_command("MULTI")
        client.set("other", "x")
        writer.set("k", "y")
        assert client.execute_command("EXEC"), "one that only writes is not refused"
        assert client.get("other") == b"x"


async def test_exec_by_asyncio(redis_lab: RedisStore, url: str) -> None:
    with antipode.scope():
        writer = antipode_redis.wrap(redis.Redis.from_url(url), STORE)
        plain = connected_asyncio(url)
        client = antipode_redis.wrap(plain, STORE, wait_on_read=True, timeout=20)
        writer.set("k", "v")
        await client.execute_command("MULTI")
        await client.execute_command("GET", "k")
        writer.set("k", "w")
        with pytest.raises(antipode.BarrierUnproven, match=r"DISCARD.*AP514"):
            await client.execute_command("EXEC")
        assert await client.execute_command("DISCARD")
        await client.aclose()
        await plain.aclose()


@pytest.mark.parametrize("ends", ["execute_command", "pipeline"])
def test_exec_of_a_multi_that_was_not_seen(redis_lab: RedisStore, url: str, ends: str) -> None:
    """SHIM-44, SHIM-48: what a pipeline queued, or another client of the connection, is proved by nothing here."""
    plain: Any = redis.Redis.from_url(url)
    client: Any = antipode_redis.wrap(plain, STORE, wait_on_read=True, timeout=20)

    def end() -> Any:
        if ends == "execute_command":
            return client.execute_command("EXEC")
        pipeline = client.pipeline(transaction=False)
        pipeline.execute_command("EXEC")
        return pipeline.execute()[0]

    with antipode.scope():
        antipode_redis.wrap(redis.Redis.from_url(url), STORE).set("k", "v")
        plain.execute_command("MULTI")
        plain.execute_command("GET", "k")
        with pytest.raises(antipode.BarrierError):
            end()
        plain.execute_command("DISCARD")
        pipeline = client.pipeline(transaction=False)
        pipeline.execute_command("MULTI")
        pipeline.get("k")
        pipeline.execute_command("EXEC")
        assert pipeline.execute()[-1] == [b"v"], "this one has waited"
    plain.execute_command("MULTI")
    plain.execute_command("GET", "k")
    with antipode.reading() as seen:
        assert client.execute_command("EXEC") == [b"v"]
    assert not seen.lineage.is_complete()


def test_a_pipeline_inside_a_multi_by_hand_does_not_end_it(redis_lab: RedisStore, url: str) -> None:
    """SHIM-44: no question of ours goes there, whose EXEC would be the application's."""
    client: Any = antipode_redis.wrap(redis.Redis.from_url(url), STORE, wait_on_read=True, timeout=20)
    writer = antipode_redis.wrap(redis.Redis.from_url(url), STORE)
    with antipode.scope():
        client.execute_command("MULTI")
        client.execute_command("SET", "k", "1")
        writer.set("l", "v")
        pipeline = client.pipeline(transaction=False)
        pipeline.get("l")
        with pytest.raises(antipode.BarrierUnproven, match=r"DISCARD.*AP514"):
            pipeline.execute()
        assert redis_lab.client("a").get("k") is None
        assert client.execute_command("EXEC")
        assert redis_lab.client("a").get("k") == b"1"


async def test_exec_of_a_multi_that_was_not_seen_asyncio(redis_lab: RedisStore, url: str) -> None:
    """SHIM-44, SHIM-48."""
    plain = connected_asyncio(url)
    client: Any = antipode_redis.wrap(plain, STORE, wait_on_read=True, timeout=20)
    await client.initialize()
    plain.connection = client.connection
    with antipode.scope():
        antipode_redis.wrap(redis.Redis.from_url(url), STORE).set("k", "v")
        await plain.execute_command("MULTI")
        await plain.execute_command("GET", "k")
        with pytest.raises(antipode.BarrierUnproven, match=r"DISCARD.*AP514"):
            await client.execute_command("EXEC")
        await plain.execute_command("DISCARD")
    await client.aclose()
    await plain.aclose()


def test_a_transaction_by_hand_in_one_pipeline_is_recorded(redis_lab: RedisStore, url: str) -> None:
    """SHIM-6: the question follows its EXEC."""
    client: Any = antipode_redis.wrap(redis.Redis.from_url(url), STORE)

    def is_exact() -> bool:
        with antipode.scope() as scope:
            pipeline = client.pipeline(transaction=False)
            pipeline.execute_command("MULTI")
            pipeline.set("k", "1")
            pipeline.execute_command("EXEC")
            pipeline.execute()
            there: int = redis_lab.client("a").info("replication")["master_repl_offset"]
            assert position(scope.lineage) <= there
            return position(scope.lineage) == there

    until(is_exact)  # the mark of a new epoch, written by a thread of the shim's, may come between


def test_a_transaction_by_hand_that_two_pipelines_share_is_incomplete(redis_lab: RedisStore, url: str) -> None:
    """SHIM-6: the first one's question is queued with its write."""
    client: Any = antipode_redis.wrap(redis.Redis.from_url(url), STORE)
    with antipode.scope() as scope:
        for commands in ([("MULTI",), ("SET", "k", "1")], [("EXEC",)]):
            pipeline = client.pipeline(transaction=False)
            for command in commands:
                pipeline.execute_command(*command)
            pipeline.execute()
        assert redis_lab.client("a").get("k") == b"1"
        assert not scope.lineage.is_complete()


@pytest.mark.parametrize("command", [("GET", "k"), ("EVAL", "return redis.call('get', 'k')", "0")])
@pytest.mark.parametrize("mode", ["enforce", "dry-run"])
def test_exec_where_more_is_wanted_than_where_its_reads_were_queued(
    redis_lab: RedisStore, mode: str, command: tuple[str, ...]
) -> None:
    """SHIM-48: what EXEC answers with is of the moment of its MULTI's wait, whoever has queued the read, and when."""
    writer = antipode_redis.wrap(redis.Redis.from_url(redis_lab.url("a")), store=STORE)
    reader = antipode_redis.wrap(connected(redis_lab.url("b1")), store=STORE, wait_on_read=True, timeout=0.05)
    redis_lab.partition("b1")
    with antipode.scope() as opened:
        writer.set("k", "new")
    antipode.configure(mode=mode)
    with antipode.scope():
        reader.execute_command("MULTI")
        reader.execute_command(*command)
    antipode.configure(mode="enforce")
    with antipode.scope(opened.lineage), pytest.raises(antipode.BarrierUnproven, match="AP514"):
        reader.execute_command("EXEC")
    reader.execute_command("DISCARD")
    reader.close()


def test_exec_where_more_is_wanted_with_asyncio(redis_lab: RedisStore) -> None:
    """The same."""
    writer = antipode_redis.wrap(redis.Redis.from_url(redis_lab.url("a")), store=STORE)
    redis_lab.partition("b1")
    with antipode.scope() as opened:
        writer.set("k", "new")

    async def run() -> None:
        reader = antipode_redis.wrap(
            connected_asyncio(redis_lab.url("b1")), store=STORE, wait_on_read=True, timeout=0.05
        )
        with antipode.scope():
            await reader.execute_command("MULTI")
            await reader.execute_command("GET", "k")
        with antipode.scope(opened.lineage), pytest.raises(antipode.BarrierUnproven, match="AP514"):
            await reader.execute_command("EXEC")
        await reader.execute_command("DISCARD")
        await reader.aclose()

    asyncio.run(run())


@pytest.mark.parametrize("is_scoped", [True, False])
def test_values_of_exec_whose_reads_were_queued_elsewhere(url: str, is_scoped: bool) -> None:
    """SHIM-13: whoever gets the values depends on them, and nothing tells on what."""
    antipode.configure(auto_merge=True)
    client = antipode_redis.wrap(connected(url), store=STORE)
    client.execute_command("MULTI")
    client.execute_command("GET", "k")
    with antipode.scope() as opened, antipode.reading() as seen:
        if is_scoped:
            client.execute_command("EXEC")
        assert opened.lineage.is_complete() is not is_scoped
    if not is_scoped:
        with antipode.reading() as seen:
            client.execute_command("EXEC")
    assert not seen.lineage.is_complete()
    client.close()
