"""Connections that a pool holds, and that lead elsewhere than its words: they are judged before their first use."""

from __future__ import annotations

import asyncio
import socket
from collections.abc import Iterator
from typing import Any

import antipode
import antipode_redis
import pytest
import redis
import redis.asyncio
from antipode.testing import isolated
from antipode_lab.stores.redis import RedisStore
from antipode_redis.targets import reached_by
from regions import STORE
from test_moved import KINDS, address, assert_judged, pools_of

pytestmark = pytest.mark.redis_lab(replicas=2, lag=["0ms", "0ms"])


@pytest.fixture(autouse=True)
def _isolated(redis_lab: RedisStore) -> Iterator[None]:
    with isolated():
        yield
    redis_lab.heal()


def words(lab: RedisStore, name: str) -> dict[str, Any]:
    return {"host": "127.0.0.1", "port": lab.server(name).port}


async def ping(client: Any) -> None:
    asked = client.ping()
    if not isinstance(asked, bool):
        await asked


@KINDS
@pytest.mark.parametrize("pool", ["ConnectionPool", "BlockingConnectionPool"])
@pytest.mark.parametrize("changed", ["before the wrap", "and changed back"])
async def test_a_pool_whose_words_were_changed(redis_lab: RedisStore, kind: str, pool: str, changed: str) -> None:
    """BAR-68: its connections lead where they were made for, whatever its words say by now."""
    made = pools_of(kind)
    plain = made.Redis(connection_pool=getattr(made, pool)(**words(redis_lab, "a")))
    kept = antipode_redis.wrap(plain, STORE) if changed == "and changed back" else None
    plain.connection_pool.connection_kwargs.update(words(redis_lab, "b1"))
    await ping(plain)
    plain.connection_pool.connection_kwargs.update(words(redis_lab, "a"))
    kept = kept or antipode_redis.wrap(plain, STORE)
    await asyncio.to_thread(assert_judged, redis_lab, "b1")
    if kind == "asyncio":
        await plain.aclose(close_connection_pool=True)
    del kept


def test_a_connection_that_is_taken_out_of_the_plain_pool(redis_lab: RedisStore) -> None:
    """BAR-68: it comes back."""
    pool = redis.ConnectionPool(**words(redis_lab, "b1"))
    taken = pool.get_connection()
    pool.connection_kwargs.update(words(redis_lab, "a"))
    kept = antipode_redis.wrap(redis.Redis(connection_pool=pool), STORE)
    assert_judged(redis_lab, "b1")
    pool.release(taken)
    del kept


def test_an_open_connection_whose_words_were_changed(redis_lab: RedisStore) -> None:
    """BAR-68: it leads where it is connected, and where its words say when it is made anew."""
    plain = redis.Redis(connection_pool=redis.ConnectionPool(**words(redis_lab, "b1")))
    plain.ping()
    [connection] = plain.connection_pool._available_connections
    connection.port = redis_lab.server("b2").port
    plain.connection_pool.connection_kwargs.update(words(redis_lab, "a"))
    kept = antipode_redis.wrap(plain, STORE)
    assert_judged(redis_lab, "b1")
    assert_judged(redis_lab, "b2")
    del kept


def test_a_class_that_connects_elsewhere(redis_lab: RedisStore) -> None:
    """BAR-68: a connection of the application's own class leads where it is connected."""
    leads = {"to": redis_lab.server("b1").port}

    class Elsewhere(redis.Connection):
        def _connect(self) -> Any:
            return socket.create_connection(("127.0.0.1", leads["to"]))

    pool = redis.ConnectionPool(connection_class=Elsewhere, host="127.0.0.1", port=1)
    plain = redis.Redis(connection_pool=pool)
    plain.ping()
    leads["to"] = redis_lab.server("a").port
    pool.connection_kwargs.update(words(redis_lab, "a"))
    pool.connection_class = redis.Connection
    kept = antipode_redis.wrap(plain, STORE)
    assert_judged(redis_lab, "b1")
    assert address(redis_lab, "a") in antipode.stores()[0].replicas
    del kept


@pytest.mark.parametrize("host", ["127.0.0.2", "::1"])
def test_the_peer_counts_where_the_host_alone_was_changed(redis_lab: RedisStore, host: str) -> None:
    """BAR-68: in most deployments all servers have one port."""
    plain = redis.Redis(**words(redis_lab, "b1"))
    assert plain.ping()
    [connection] = plain.connection_pool._available_connections
    assert reached_by(connection) is None
    connection.host = host
    assert reached_by(connection) == ("127.0.0.1", redis_lab.server("b1").port)
    connection.host = "redis.internal"
    assert reached_by(connection) is None, "a name is not resolved"
    plain.close()
