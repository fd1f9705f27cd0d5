"""MULTI, EXEC and DISCARD that the application sends by hand through redis-py, sync and asyncio."""

from __future__ import annotations

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
from redis.retry import Retry
from regions import STORE

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
