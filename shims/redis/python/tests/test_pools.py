"""What is made over a wrapped client's pool, or sends by the plain client's own methods, goes round it (SHIM-50)."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from typing import Any

import antipode
import antipode_redis
import pytest
import redis
import redis.asyncio
import redis.asyncio.client
import redis.client
from antipode.testing import isolated
from antipode_lab.stores.redis import RedisStore
from regions import STORE

pytestmark = pytest.mark.redis_lab(replicas=1, lag="0ms")
WAYS: dict[str, Callable[[Any, Any], Any]] = {
    "a plain client": lambda made, w: made.Redis(connection_pool=w.connection_pool),
    "from_pool": lambda made, w: made.Redis.from_pool(w.connection_pool),
    "one connection": lambda made, w: made.Redis(connection_pool=w.connection_pool, single_connection_client=True),
    "a pipeline": lambda made, w: made.client.Pipeline(w.connection_pool, w.response_callbacks, True, None),
}


@pytest.fixture(autouse=True)
def _isolated() -> Iterator[None]:
    with isolated():
        yield


async def send(kind: str, client: Any, *words: Any) -> None:
    """One command, by a client or a pipeline that is left to collect its connection itself."""
    if isinstance(client, redis.client.Pipeline | redis.asyncio.client.Pipeline):
        client.execute_command(*words)
        result: Any = client.execute()
    else:
        result = client.execute_command(*words)
    if kind == "asyncio":
        await result


@pytest.mark.parametrize("kind", ["sync", "asyncio"])
@pytest.mark.parametrize("way", WAYS)
async def test_whoever_has_the_wrapped_pool(redis_lab: RedisStore, kind: str, way: str) -> None:
    """SHIM-50: what is written there marks the scope, and reads are refused where they would have to wait."""
    made: Any = redis if kind == "sync" else redis.asyncio
    wrapped = antipode_redis.wrap(made.Redis.from_url(redis_lab.url("a")), STORE)
    await send(kind, wrapped, "SET", "k", "0")
    with antipode.scope() as scope:
        await send(kind, WAYS[way](made, wrapped), "SET", "k", "1")
        assert scope.lineage.incomplete == {STORE}
        [gap] = {gap.reason for gap in scope.gaps}
        assert gap == "raw"
    waits = antipode_redis.wrap(made.Redis.from_url(redis_lab.url("b1")), STORE, wait_on_read=True)
    with antipode.scope():
        await send(kind, wrapped, "SET", "k", "2")
        with pytest.raises(antipode.ConfigurationError, match="reads wait for nothing"):
            await send(kind, WAYS[way](made, waits), "GET", "k")


@pytest.mark.parametrize("kind", ["sync", "asyncio"])
async def test_the_plain_clients_method_on_the_wrapped_one(redis_lab: RedisStore, kind: str) -> None:
    """SHIM-50."""
    made: Any = redis if kind == "sync" else redis.asyncio
    wrapped = antipode_redis.wrap(made.Redis.from_url(redis_lab.url("a")), STORE)
    waits = antipode_redis.wrap(made.Redis.from_url(redis_lab.url("b1")), STORE, wait_on_read=True)

    async def plain(client: Any, *words: Any) -> None:
        result = made.Redis.execute_command(client, *words)
        if kind == "asyncio":
            await result

    await plain(wrapped, "SET", "k", "0")
    with antipode.scope() as scope:
        await plain(wrapped, "PING")
        assert scope.lineage.is_complete()
        await plain(wrapped, "SET", "k", "1")
        assert scope.lineage.incomplete == {STORE}
    with antipode.scope():
        await send(kind, wrapped, "SET", "k", "2")
        with pytest.raises(antipode.ConfigurationError, match="went round the client"):
            await plain(waits, "GET", "k")


async def test_the_wrapped_clients_own_objects_pass(redis_lab: RedisStore) -> None:
    """SHIM-50: clients, pipelines, scripts, locks and subscriptions that it makes itself."""
    wrapped: Any = antipode_redis.wrap(redis.Redis.from_url(redis_lab.url("a")), STORE)
    later: Any = antipode_redis.wrap(redis.asyncio.Redis.from_url(redis_lab.url("a")), STORE)
    with antipode.scope() as scope:
        wrapped.set("k", "1")
        assert wrapped.get("k") == b"1"
        wrapped.client().set("k", "2")
        wrapped.pipeline().set("k", "3").execute()
        wrapped.transaction(lambda pipe: (pipe.multi(), pipe.set("k", "4")), "k")
        with wrapped.lock("l", timeout=5), wrapped.pubsub() as subscription, wrapped.monitor():
            subscription.subscribe("c")
        await later.set("k", "5")
        async with later.client() as one:
            await one.set("k", "6")
        await later.pipeline().set("k", "7").execute()
        async with later.lock("l", timeout=5), later.pubsub() as listener:
            await listener.subscribe("c")
        await later.aclose(close_connection_pool=True)
        assert scope.lineage.is_complete(), scope.gaps
        assert not scope.pending
