"""A wait before a read ends by its deadline also where the server is frozen (SHIM-47)."""

from __future__ import annotations

import asyncio
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from typing import Any

import antipode
import antipode_redis
import pytest
import redis
import redis.asyncio
from antipode._model.result import BarrierTimeout
from antipode.testing import isolated
from antipode_lab.stores.redis import RedisStore
from regions import STORE, Posts

pytestmark = pytest.mark.redis_lab(replicas=1, lag="0ms")
TIMEOUT_S, SLACK_S = 0.5, 5.0


@pytest.fixture
def written(redis_lab: RedisStore) -> Iterator[antipode.Lineage]:
    """A write that the replica has."""
    with isolated():
        posts = Posts(redis_lab)
        lineage = posts.write("k")
        assert posts.look(lineage, 20).satisfied
        yield lineage


def waits(client: Any, **options: Any) -> Any:
    return antipode_redis.wrap(client, STORE, wait_on_read=True, timeout=TIMEOUT_S, **options)


@contextmanager
def frozen(lab: RedisStore) -> Iterator[None]:
    lab.freeze("b1")
    try:
        yield
    finally:
        lab.thaw("b1")


def get(client: Any) -> Any:
    return client.get("k")


def pops(client: Any) -> Any:
    return client.blpop("none", 1)


def writes_and_answers(client: Any) -> Any:
    return client.getset("k", "w")


def piped(client: Any) -> Any:
    return client.pipeline(transaction=False).get("k").execute()


def in_a_transaction(client: Any) -> Any:
    return client.pipeline().get("k").execute()


def watched(client: Any) -> Any:
    with client.pipeline() as pipeline:
        pipeline.connection = client.connection
        return pipeline.immediate_execute_command("GET", "k")


def scanned(client: Any) -> Any:
    return list(client.scan_iter())


def by_hand(client: Any) -> Any:
    return client.execute_command("MULTI")


WAYS: list[Callable[[Any], Any]] = [get, pops, writes_and_answers, piped, in_a_transaction, watched, scanned, by_hand]


@pytest.mark.parametrize("way", WAYS, ids=lambda way: way.__name__)
@pytest.mark.parametrize("decodes", [True, False])
def test_a_frozen_server(
    redis_lab: RedisStore, written: antipode.Lineage, way: Callable[[Any], Any], decodes: bool
) -> None:
    url = redis_lab.url("b1")
    plain = redis.Redis.from_url(url, decode_responses=decodes, single_connection_client=way in (watched, by_hand))
    client = waits(plain)
    client.ping()
    with antipode.scope(written):
        with frozen(redis_lab):
            began = time.monotonic()
            with pytest.raises(BarrierTimeout, match="is closed"):
                way(client)
            assert time.monotonic() - began < TIMEOUT_S + SLACK_S
        assert client.ping() is True, "no answer of ours is taken for another's"
        assert client.get("k") in ("v", b"v")


def test_a_pool(redis_lab: RedisStore, written: antipode.Lineage) -> None:
    pool = redis.BlockingConnectionPool.from_url(redis_lab.url("b1"), max_connections=1)
    client = waits(redis.Redis(connection_pool=pool))
    client.ping()
    with antipode.scope(written):
        with frozen(redis_lab), pytest.raises(BarrierTimeout, match="is closed"):
            client.get("k")
        assert client.get("k") == b"v"


def test_who_says_proceed_reads(redis_lab: RedisStore, written: antipode.Lineage) -> None:
    """By a connection of its own, whatever that takes."""
    antipode.configure(on_timeout="proceed")
    client = waits(redis.Redis.from_url(redis_lab.url("b1"), socket_timeout=0.5, retry=None))
    client.ping()
    with antipode.scope(written), frozen(redis_lab), pytest.raises(redis.RedisError):
        client.get("k")


async def test_asyncio(redis_lab: RedisStore, written: antipode.Lineage) -> None:
    plain = redis.asyncio.Redis.from_url(redis_lab.url("b1"))
    client = waits(plain)

    async def piped_too() -> Any:
        return await client.pipeline().get("k").execute()

    with antipode.scope(written):
        for read in (lambda: client.get("k"), lambda: client.getset("k", "w"), piped_too):
            await client.ping()
            with frozen(redis_lab):
                async with asyncio.timeout(TIMEOUT_S + SLACK_S):
                    with pytest.raises(BarrierTimeout, match="is closed"):
                        await read()
            assert await client.get("k") == b"v"
    await client.aclose()
    await plain.aclose()


async def test_a_task_that_is_cancelled_while_we_ask(redis_lab: RedisStore, written: antipode.Lineage) -> None:
    """No later command takes the answer to our question for its own."""
    plain = redis.asyncio.Redis.from_url(redis_lab.url("b1"), single_connection_client=True)
    client: Any = antipode_redis.wrap(plain, STORE, wait_on_read=True, timeout=60)
    await client.ping()
    with antipode.scope(written):
        with frozen(redis_lab):
            task: asyncio.Task[Any] = asyncio.create_task(client.get("k"))
            await asyncio.sleep(0.2)
            task.cancel()
            with pytest.raises(asyncio.CancelledError):
                await task
        assert await client.ping() is True
        assert await client.get("k") == b"v"
    await client.aclose()
    await plain.aclose()
