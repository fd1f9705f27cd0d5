"""Clients and pools that lead elsewhere since they were wrapped, or by the application's own code (BAR-52)."""

from __future__ import annotations

import asyncio
import gc
import itertools
import socket
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from typing import Any, cast
from uuid import uuid4

import antipode
import antipode_redis
import pytest
import redis
import redis.asyncio
from antipode import UnprovenKind
from antipode._engine import discovery
from antipode._engine.discovery import ClientServers
from antipode._engine.store_servers import RegionStore
from antipode._store.store import registry
from antipode.testing import isolated
from antipode_lab.stores.redis import RedisStore
from regions import STORE, until

pytestmark = pytest.mark.redis_lab(replicas=2, lag=["0ms", "0ms"])


@pytest.fixture(autouse=True)
def _isolated(redis_lab: RedisStore) -> Iterator[None]:
    with isolated():
        yield
    redis_lab.heal()


def address(lab: RedisStore, name: str) -> str:
    return f"redis://127.0.0.1:{lab.server(name).port}"


def look(lineage: antipode.Lineage, timeout: float) -> antipode.StoreResult:
    result = antipode.barrier(lineage, timeout=timeout, on_timeout="proceed", on_unproven="proceed")
    return result.stores[STORE]


def write(lab: RedisStore, key: str) -> antipode.Lineage:
    with antipode.scope() as scope:
        antipode_redis.wrap(redis.Redis.from_url(lab.url("a")), STORE).set(key, "v")
        return scope.lineage


def assert_judged(lab: RedisStore, name: str) -> None:
    """A barrier is never satisfied while a server lacks a write, and is when it has it."""
    key = uuid4().hex
    lab.partition(name)
    try:
        lineage = write(lab, key)
        assert lab.client(name).get(key) is None
        assert look(lineage, 0.5).verdict is not antipode.Verdict.VISIBLE
    finally:
        lab.heal(name)
    found = look(lineage, 30)
    assert found.verdict is antipode.Verdict.VISIBLE
    assert address(lab, name) in [server.address for server in found.servers]


def use(client: Any) -> None:
    if isinstance(client, redis.asyncio.Redis):
        asyncio.run(_use(client))
    else:
        client.ping()


async def _use(client: Any) -> None:
    await client.ping()
    await client.aclose(close_connection_pool=True)


def pools_of(kind: str) -> Any:
    return redis if kind == "sync" else redis.asyncio


KINDS = pytest.mark.parametrize("kind", ["sync", "asyncio"])


@KINDS
@pytest.mark.parametrize("asked_before", [True, False])
def test_another_pool(redis_lab: RedisStore, kind: str, asked_before: bool) -> None:
    """BAR-52: a client that was given one leads where that leads."""
    made = pools_of(kind)
    client = antipode_redis.wrap(made.Redis.from_url(redis_lab.url("a")), STORE)
    if asked_before:
        assert look(write(redis_lab, "k"), 30).verdict is antipode.Verdict.VISIBLE
    client.connection_pool = made.ConnectionPool.from_url(redis_lab.url("b1"))
    assert_judged(redis_lab, "b1")


def own_pool(kind: str, lab: RedisStore, *names: str, by: str = "make_connection") -> Any:
    """A client whose pool's own code makes its connections: to these servers in turn, whatever its words say."""
    made = pools_of(kind)
    ports = itertools.cycle([lab.server(name).port for name in names])

    class Own(made.ConnectionPool):  # type: ignore[misc, name-defined]
        def make_connection(self) -> Any:
            connection = super().make_connection()
            if by == "make_connection":
                connection.port = next(ports)
            return connection

    class Getting(made.ConnectionPool):  # type: ignore[misc, name-defined]
        def get_connection(self, *args: Any, **options: Any) -> Any:
            self.connection_kwargs["port"] = next(ports)
            try:
                return super().get_connection(*args, **options)
            finally:
                self.connection_kwargs["port"] = lab.server("a").port

    pool = (Own if by == "make_connection" else Getting)(host="127.0.0.1", port=lab.server("a").port)
    return made.Redis(connection_pool=pool)


@pytest.mark.parametrize(
    ("kind", "by"), [("sync", "make_connection"), ("sync", "get_connection"), ("asyncio", "make_connection")]
)
def test_a_pool_of_the_applications_own(redis_lab: RedisStore, kind: str, by: str) -> None:
    """BAR-52: where its connections lead, only connecting tells; it is known before the client hands one out."""
    client = antipode_redis.wrap(own_pool(kind, redis_lab, "b1", by=by), STORE)
    assert antipode.stores()[0].replicas == (address(redis_lab, "b1"),)
    assert isinstance(client.connection_pool, type(client._antipode_plain.connection_pool))
    assert_judged(redis_lab, "b1")


@KINDS
def test_a_pool_that_alternates(redis_lab: RedisStore, kind: str) -> None:
    """BAR-52: a server joins when a connection to it is handed out."""
    client: Any = antipode_redis.wrap(own_pool(kind, redis_lab, "a", "b1"), STORE)
    if kind == "asyncio":
        use(client)
    else:
        with client.pipeline() as pipeline:
            pipeline.watch("k")  # it has the first connection, so another one is made
            use(client)
    assert_judged(redis_lab, "b1")


def test_an_asyncio_pool_that_only_its_own_loop_can_ask(redis_lab: RedisStore) -> None:
    """BAR-52: unproven until it has handed out a connection, never judged without its server."""
    made = redis.asyncio

    class Getting(made.ConnectionPool):
        async def get_connection(self, *args: Any, **options: Any) -> Any:
            connection = await super().get_connection(*args, **options)  # type: ignore[no-untyped-call]
            if connection.port != redis_lab.server("b1").port:
                await connection.disconnect()
                connection.port = redis_lab.server("b1").port
                await connection.connect()
            return connection

    pool = Getting(host="127.0.0.1", port=redis_lab.server("a").port)
    client: Any = antipode_redis.wrap(made.Redis(connection_pool=pool), STORE)
    found = look(write(redis_lab, "k"), 0.5)
    assert (found.verdict, found.kind) == (antipode.Verdict.UNPROVEN, UnprovenKind.NOT_OPENED)
    assert "PING" in found.reason
    use(client)
    assert_judged(redis_lab, "b1")


def test_a_class_that_connects_elsewhere(redis_lab: RedisStore) -> None:
    """BAR-52: the server that was really reached, whatever the connection's words say; also when it is made anew."""
    leads = {"to": redis_lab.server("a").port}

    class Elsewhere(redis.Connection):
        def _connect(self) -> Any:
            return socket.create_connection(("127.0.0.1", leads["to"]))

    pool = redis.ConnectionPool(connection_class=Elsewhere, host="127.0.0.1", port=1)
    client = antipode_redis.wrap(redis.Redis(connection_pool=pool), STORE)
    client.ping()
    leads["to"] = redis_lab.server("b1").port
    pool.disconnect()
    client.ping()
    leads["to"] = redis_lab.server("a").port
    assert_judged(redis_lab, "b1")


@pytest.mark.parametrize("opened", [True, False])
def test_a_single_connection_whose_words_changed(redis_lab: RedisStore, opened: bool) -> None:
    """BAR-52: before it is made anew, and after."""
    plain = redis.Redis.from_url(redis_lab.url("a"), single_connection_client=True)
    client: Any = antipode_redis.wrap(plain, STORE)
    client.connection.port = redis_lab.server("b1").port
    if opened:
        client.connection.disconnect()
        assert client.info("replication")["role"] == "slave"
        client.connection.port = redis_lab.server("a").port
    assert_judged(redis_lab, "b1")


def lead(pool: Any, port: int) -> None:
    """Says where its connections are to lead when they are opened anew; those that are open stay where they are."""
    pool.connection_kwargs["port"] = port
    for connection in pool._available_connections:
        connection.port = port


@KINDS
@pytest.mark.parametrize("end", ["is stopped", "closes it"])
async def test_a_server_to_which_a_connection_leads(
    redis_lab: RedisStore, monkeypatch: pytest.MonkeyPatch, kind: str, end: str
) -> None:
    """BAR-62: it is judged until the connection is lost; then results are complete without it."""
    monkeypatch.setattr(discovery, "REFRESH_S", 0.0)
    client: Any = antipode_redis.wrap(pools_of(kind).Redis.from_url(redis_lab.url("b2")), STORE)
    asked = client.ping()
    if kind == "asyncio":
        await asked
    lead(client.connection_pool, redis_lab.server("a").port)
    for _ in range(3):
        await asyncio.to_thread(assert_judged, redis_lab, "b2")
    if end == "is stopped":
        redis_lab.kill("b2")
    else:
        redis_lab.client("b2").client_kill_filter(_type="normal", skipme=True)
    try:
        antipode.configure(left_server=0)
        lineage = await asyncio.to_thread(write, redis_lab, "k")
        await asyncio.to_thread(until, lambda: is_complete_without(lineage, address(redis_lab, "b2")), 60.0)
    finally:
        if end == "is stopped":
            redis_lab.restart("b2")
        if kind == "asyncio":
            await client.aclose()


def is_complete_without(lineage: antipode.Lineage, server: str) -> bool:
    result = antipode.barrier(lineage, timeout=1.0, on_timeout="proceed", on_unproven="proceed")
    return result.complete and server not in [each.address for each in result.stores[STORE].servers]


@pytest.mark.parametrize("what", ["client", "pipeline", "derived"])
def test_what_nobody_holds_but_a_part_of_the_wrap(redis_lab: RedisStore, what: str) -> None:
    """BAR-52: what was made of the wrapped client is looked at without it."""
    client: Any = antipode_redis.wrap(redis.Redis.from_url(redis_lab.url("a")), STORE)
    kept = client if what == "client" else client.pipeline() if what == "pipeline" else client.client()
    del client
    gc.collect()
    kept.connection_pool.connection_kwargs["port"] = redis_lab.server("b1").port
    assert_judged(redis_lab, "b1")


def test_clients_that_are_gone_are_looked_at_no_more(redis_lab: RedisStore) -> None:
    """BAR-52: their servers stay, as nobody names others. A service may make a client a request."""
    lineage = write(redis_lab, "k")
    for _ in range(20):
        with antipode_redis.wrap(redis.Redis.from_url(redis_lab.url("b1")), STORE) as client:
            client.get("k")
        del client
    gc.collect()
    assert look(lineage, 10).verdict is antipode.Verdict.VISIBLE
    assert address(redis_lab, "b1") in registry().need(STORE).replicas
    followed = [
        each
        for each in cast("RegionStore", registry().need(STORE))._discoveries.values()
        if isinstance(each, ClientServers)
    ]
    assert len(followed) < 3


@KINDS
async def test_a_connection_that_is_taken_out(redis_lab: RedisStore, kind: str) -> None:
    """SHIM-44, SHIM-6: it goes round the client, so it is refused where reads wait, and marked elsewhere."""

    async def take(client: Any) -> None:
        if kind == "sync":
            client.connection_pool.release(client.connection_pool.get_connection())
        else:
            await client.connection_pool.release(await client.connection_pool.get_connection())

    made: Any = pools_of(kind).Redis.from_url
    plain = antipode_redis.wrap(made(redis_lab.url("a")), STORE)
    waits = antipode_redis.wrap(made(redis_lab.url("b1")), STORE, wait_on_read=True)
    await take(waits)
    with antipode.scope() as scope:
        assert scope.lineage.is_complete()
        await take(plain)
        assert scope.lineage.incomplete == {STORE}
    lineage = await asyncio.to_thread(write, redis_lab, "k")
    with antipode.scope(lineage) as scope:
        with pytest.raises(antipode.ConfigurationError, match="reads wait for nothing"):
            await take(waits)
        with (
            pytest.raises(antipode.ConfigurationError, match="reads wait for nothing"),
            antipode.reading(after=lineage),
        ):
            await take(plain)
        assert scope.lineage.is_complete()
    with antipode.reading() as seen:
        await take(plain)
    assert not seen.lineage.is_complete()
    for client in (plain, waits):
        if kind == "asyncio":
            await client.aclose()


@KINDS
def test_a_client_that_is_led_elsewhere_while_a_barrier_waits(redis_lab: RedisStore, kind: str) -> None:
    """BAR-65: what it reads behind the pass is of the server where it leads by then."""
    made = pools_of(kind)
    client: Any = antipode_redis.wrap(made.Redis.from_url(redis_lab.url("b1")), STORE)
    assert look(write(redis_lab, "k"), 30).verdict is antipode.Verdict.VISIBLE
    key = uuid4().hex
    redis_lab.partition("b1")
    redis_lab.partition("b2")
    lineage = write(redis_lab, key)
    store = registry().all()[0]
    with ThreadPoolExecutor(1) as threads:
        barrier = threads.submit(look, lineage, 60)
        until(lambda: store.parked_threads == 1)
        client.connection_pool.connection_kwargs["port"] = redis_lab.server("b2").port
        redis_lab.heal("b1")
        until(lambda: store.server_at(address(redis_lab, "b2")) or barrier.done())
        assert redis_lab.client("b2").get(key) is None
        assert not barrier.done()
        redis_lab.heal("b2")
        found = barrier.result(60)
    assert found.verdict is antipode.Verdict.VISIBLE
    assert address(redis_lab, "b2") in [server.address for server in found.servers if not server.left_out]
    assert redis_lab.client("b2").get(key) is not None


@KINDS
async def test_a_pool_that_is_given_a_way_to_make_connections(redis_lab: RedisStore, kind: str) -> None:
    """BAR-52: a function that was set since the wrap says where the next connection leads; idle ones do not."""
    made = pools_of(kind)
    plain = made.Redis.from_url(redis_lab.url("a"))
    client: Any = antipode_redis.wrap(plain, STORE)
    asked = client.ping()
    if kind == "asyncio":
        await asked
    connection = type(plain.connection_pool.make_connection())
    port = redis_lab.server("b1").port
    client.connection_pool.make_connection = lambda: connection(host="127.0.0.1", port=port)
    await asyncio.to_thread(assert_judged, redis_lab, "b1")
    if kind == "asyncio":
        await plain.aclose()
