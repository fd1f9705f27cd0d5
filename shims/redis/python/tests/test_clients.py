"""The wrapped client stays redis-py's: types, connections, writes of every form, errors, sync and asyncio."""

from __future__ import annotations

import asyncio
import gc
import shutil
import subprocess
import time
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import antipode
import antipode_redis
import pytest
import redis
import redis.asyncio
from antipode.testing import isolated
from antipode_lab.stores.redis import RedisOptions, RedisStore
from antipode_redis.info import Replication, parse
from regions import STORE, until

pytestmark = pytest.mark.redis_lab(replicas=1, lag="0ms")


@pytest.fixture(autouse=True)
def _isolated() -> Iterator[None]:
    with isolated():
        yield


@pytest.fixture
def url(redis_lab: RedisStore) -> str:
    return redis_lab.url("a")


@pytest.fixture
def client(url: str) -> Any:
    return antipode_redis.wrap(redis.Redis.from_url(url), store=STORE)


def made(plain: Any, **options: Any) -> Any:
    """A wrapped client, past redis-py's types: its pipelines' are those of clients."""
    return antipode_redis.wrap(plain, store=STORE, **options)


def position(lineage: antipode.Lineage) -> int:
    """The counter of the one position that a lineage holds."""
    assert lineage.is_complete()
    [write_id] = lineage.of_store(STORE)
    assert isinstance(write_id.version, antipode.Ordered)
    return write_id.version.counter


def test_a_wrapped_client_is_an_instance_of_its_own_class_and_shares_the_pool(url: str) -> None:
    class Own(redis.Redis):
        def hello(self) -> str:
            return "hello"

    plain = Own.from_url(url)
    wrapped = antipode_redis.wrap(plain, store=STORE)
    assert isinstance(wrapped, Own)
    assert wrapped.hello() == "hello"
    assert wrapped.connection_pool.__dict__ is plain.connection_pool.__dict__, "a pool that shares all state"
    assert isinstance(wrapped.connection_pool, type(plain.connection_pool))
    assert type(plain) is Own, "the one passed in stays plain"
    again = antipode_redis.wrap(wrapped, store="other")
    with antipode.scope() as scope:
        again.set("k", "v")
        assert set(scope.lineage.stores) == {"other"}
        plain.set("k", "w")
        assert set(scope.lineage.stores) == {"other"}
    assert isinstance(wrapped.pipeline(), redis.client.Pipeline)
    with pytest.raises(antipode.ConfigurationError, match="not a pipeline"):
        antipode_redis.wrap(plain.pipeline(), store=STORE)
    with pytest.raises(TypeError, match="Redis"):
        antipode_redis.wrap(object(), store=STORE)  # type: ignore[type-var]


@pytest.mark.parametrize("kind", [redis.Redis, redis.asyncio.Redis, type("Own", (redis.Redis,), {})])
def test_the_class_of_a_wrapped_client_makes_no_other(url: str, kind: Any) -> None:
    """SHIM-50: what it made recorded nothing, and said nothing."""
    client = made(kind.from_url(url))
    pipeline = client.pipeline()
    for make in (
        lambda: client.from_url(url),
        lambda: client.from_pool(kind.from_url(url).connection_pool),
        lambda: type(client)(host="a"),
        lambda: type(pipeline)(client.connection_pool, {}, True, None),
        lambda: client.connection_pool.from_url(url),
        type(client.connection_pool),
    ):
        with pytest.raises(antipode.ConfigurationError, match=r"makes no other one.*AP505"):
            make()
    assert type(client.client()) is type(client)


def test_the_pool_outlives_the_wrapped_client_and_its_pipelines(url: str) -> None:
    plain = redis.Redis.from_url(url)
    wrapped: Any = antipode_redis.wrap(plain, store=STORE)
    wrapped.pipeline().set("k", "v").execute()
    connection = plain.connection_pool.get_connection()
    del wrapped
    gc.collect()
    assert connection.is_connected
    plain.connection_pool.release(connection)
    one = redis.Redis.from_url(url, single_connection_client=True)
    with antipode_redis.wrap(one, store=STORE) as shared:
        shared.set("k", "v")
    assert one.get("k") == b"v"
    assert wrapped_only(url).get("k") == b"v"


def wrapped_only(url: str) -> Any:
    """A wrapped client whose plain one nobody else holds."""
    return antipode_redis.wrap(redis.Redis.from_url(url), store=STORE)


def test_every_form_of_write_has_a_position(client: Any) -> None:
    def transaction(pipe: Any) -> None:
        pipe.get("k")
        pipe.multi()
        pipe.set("k", "t")

    writes = [
        lambda: client.set("k", "1"),
        lambda: client.delete("k"),
        lambda: client.delete("never there"),
        lambda: client.expire("k", 10),
        lambda: client.incr("n"),
        lambda: client.rpush("l", "1", "2", "3"),
        lambda: client.blpop(["l"], 1),
        lambda: client.blmove("l", "m", 1),
        lambda: client.sort("m", store="sorted"),
        lambda: client.getex("n", ex=10),
        lambda: client.getdel("n"),
        lambda: client.eval("return redis.call('SET', KEYS[1], 'x')", 1, "k"),
        lambda: client.register_script("return redis.call('SET', KEYS[1], 'y')")(["k"]),
        lambda: client.pipeline().set("k", "1").incr("n").execute(),
        lambda: client.pipeline(transaction=False).set("k", "1").incr("n").execute(),
        lambda: client.transaction(transaction, "k"),
        lambda: client.xadd("s", {"f": "v"}),
        lambda: client.pfadd("hll", "x"),
        lambda: client.execute_command("set", "k", "lower"),
        lambda: client.set("k", b"x" * 100_000),
        lambda: client.lock("lock").acquire(),
        client.flushall,
    ]
    at = 0
    for number, write in enumerate(writes):
        with antipode.scope() as scope:
            write()
            assert position(scope.lineage) >= at, number
            assert not scope.pending
            at = position(scope.lineage)


def test_what_does_not_write_is_not_recorded(client: Any) -> None:
    with antipode.scope() as scope:
        client.ping()
        client.get("k")
        client.publish("c", "m")
        client.pfcount("hll")
        client.sort("m")
        client.script_load("return 1")
        client.config_get("port")
        client.pipeline().get("k").execute()
        client.pubsub().subscribe("c")
        with client.monitor():
            client.ping()
        assert scope.lineage == antipode.EMPTY
        assert scope.lineage.is_complete()


def test_the_one_question_of_a_batch(client: Any, redis_lab: RedisStore) -> None:
    """SHIM-7: a pipeline of a hundred writes asks once."""
    plain = redis_lab.client("a")

    def asked() -> int:
        return int(plain.info("commandstats")["cmdstat_info"]["calls"])

    client.set("k", "v")
    before = asked()
    pipe = client.pipeline()
    for number in range(100):
        pipe.set(f"k:{number}", "v")
    pipe.execute()
    assert asked() - before <= 4, "one for the batch, one to look here, and the marker's"


def test_errors_are_redis_pys_own(client: Any) -> None:
    client.set("text", "v")
    with antipode.scope() as scope:
        with pytest.raises(redis.ResponseError, match="WRONGTYPE"):
            client.lpush("text", "v")
        with pytest.raises(redis.DataError):
            client.set("k", object())
        pipe = client.pipeline().lpush("text", "1")
        with pytest.raises(redis.ResponseError, match="Command # 1"):
            pipe.execute()
        assert scope.lineage.is_complete()
        assert not scope.pending
        pipe = client.pipeline().lpush("text", "1").set("k", "v")
        [first, second] = pipe.execute(raise_on_error=False)
        assert isinstance(first, redis.ResponseError)
        assert second is True
        at = position(scope.lineage)
        with pytest.raises(redis.ResponseError, match="boom"):
            client.eval("redis.call('SET', 'k', 'v') return redis.error_reply('boom')", 0)
        assert position(scope.lineage) > at, "a script is not rolled back"
        with pytest.raises(redis.exceptions.NoScriptError):
            client.evalsha("0" * 40, 0)
        client.set_response_callback("SET", lambda reply, **_: 1 / 0)
        with pytest.raises(ZeroDivisionError):
            client.set("k", "v")
        assert not scope.pending
        assert client.get("k") == b"v", "the connection is in step"


def test_a_watch_error_leaves_nothing(client: Any, redis_lab: RedisStore) -> None:
    with antipode.scope() as scope, client.pipeline() as pipe:
        pipe.watch("k")
        redis_lab.client("a").set("k", "other")
        pipe.multi()
        pipe.set("k", "mine")
        assert scope.pending
        with pytest.raises(redis.WatchError):
            pipe.execute()
        assert not scope.pending
        assert scope.lineage == antipode.EMPTY
        assert scope.lineage.is_complete()


def test_a_module_s_pipeline_is_recorded(client: Any) -> None:
    with antipode.scope() as scope:
        client.json().pipeline().execute_command("SET", "k", "v").execute()
        assert position(scope.lineage) > 0


def test_a_retried_write_is_recorded_once_it_succeeds(url: str, redis_lab: RedisStore) -> None:
    client: Any = antipode_redis.wrap(redis.Redis.from_url(url), store=STORE)
    client.set("k", "0")
    client.connection_pool.disconnect()
    redis_lab.client("a").client_kill_filter(_type="normal", skipme=True)
    with antipode.scope() as scope:
        assert client.set("k", "1") is True
        assert position(scope.lineage) > 0
        assert not scope.pending


def test_a_server_that_refuses_connections_leaves_no_pending_write(client: Any, redis_lab: RedisStore) -> None:
    client.set_retry(redis.retry.Retry(redis.backoff.NoBackoff(), 0))
    client.connection_pool.disconnect()
    redis_lab.kill("a")
    with antipode.scope() as scope:
        with pytest.raises(redis.ConnectionError):
            client.set("k", "v")
        assert not scope.pending
        assert scope.lineage.is_complete()


def test_a_client_may_be_wrapped_before_its_server_is_up() -> None:
    """SHIM-3: asked when it is first used, then."""
    began = time.monotonic()
    client: Any = antipode_redis.wrap(redis.Redis(port=1), store=STORE)
    assert time.monotonic() - began < 3
    assert isinstance(client, redis.Redis)


def test_options_of_the_connection_are_honoured_by_our_own(redis_lab: RedisStore) -> None:
    """A user with a password, a database, a socket in the file system: barriers reach the server as the client does."""
    redis_lab.create_user("app", "s:cret", "~*", "&*", "+@all")
    for name in ("a", "b1"):
        assert redis_lab.client(name, username="app", password="s:cret").ping()
    for options in ({"username": "app", "password": "s:cret"}, {"db": 3}):
        with isolated():
            place: dict[str, Any] = {"host": "127.0.0.1", **options}
            clients = [redis.Redis(port=redis_lab.server(name).port, **place) for name in ("a", "b1")]
            antipode_redis.wrap(clients[1], store=STORE)
            [address] = antipode.stores()[0].replicas
            assert "cret" not in address
            client: Any = antipode_redis.wrap(clients[0], store=STORE, replicas=[clients[1]])
            with antipode.scope():
                client.set("k", "v")
                assert antipode.barrier(timeout=5).complete
            assert clients[1].get("k") == b"v"


@pytest.mark.redis_lab(replicas=1, lag="0ms", options={"redis": RedisOptions(config={})})
def test_a_unix_socket(redis_lab: RedisStore, tmp_path: Path) -> None:
    path = tmp_path / "redis.sock"
    server = subprocess.Popen(
        [
            *(shutil.which("redis-server") or "redis-server", "--port", "0", "--unixsocket", str(path)),
            *("--save", "", "--dir", str(tmp_path), "--replicaof", "127.0.0.1", str(redis_lab.server("a").port)),
        ],
        stdout=subprocess.DEVNULL,
    )
    try:
        until(path.exists)
        replica = redis.Redis(unix_socket_path=str(path))
        client: Any = antipode_redis.wrap(
            redis.Redis.from_url(redis_lab.url("a")), store=STORE, replicas=[f"unix://{path}", replica]
        )
        assert antipode.stores()[0].replicas == (f"unix://{path}",)
        with antipode.scope():
            client.set("k", "v")
            until(lambda: antipode.barrier(timeout=1, on_timeout="proceed", on_unproven="proceed").complete)
        assert replica.get("k") == b"v"
    finally:
        server.terminate()
        server.wait(10)


def test_a_cluster_is_refused(tmp_path: Path) -> None:
    """EPOCH-9."""
    server = subprocess.Popen(
        [
            *(shutil.which("redis-server") or "redis-server", "--port", "0", "--cluster-enabled", "yes", "--save", ""),
            *("--dir", str(tmp_path), "--unixsocket", str(tmp_path / "c.sock")),
        ],
        stdout=subprocess.DEVNULL,
    )
    try:
        until((tmp_path / "c.sock").exists)
        plain: Any = redis.Redis(unix_socket_path=str(tmp_path / "c.sock"))
        until(plain.ping)
        with pytest.raises(antipode.UnfitStoreError, match="Cluster"):
            antipode_redis.wrap(plain, store=STORE)
        client: Any = antipode_redis.wrap(plain, store=STORE, on_unfit="unproven")
        plain.execute_command("CLUSTER", "ADDSLOTSRANGE", "0", "16383")
        until(lambda: b"cluster_state:ok" in _raw(plain, "CLUSTER", "INFO"))
        with antipode.scope() as scope:
            client.set("k", "v")
            assert scope.lineage.incomplete == {STORE}
    finally:
        server.terminate()
        server.wait(10)


def _raw(client: Any, *words: str) -> bytes:
    reply: Any = client.execute_command(*words)
    if isinstance(reply, dict):
        return "\n".join(f"{key}:{value}" for key, value in reply.items()).encode()
    return reply if isinstance(reply, bytes) else str(reply).encode()


# asyncio


async def test_asyncio_writes_of_every_form(url: str) -> None:
    plain = redis.asyncio.Redis.from_url(url)
    assert isinstance(made(plain), redis.asyncio.Redis)
    client = made(plain)
    assert type(plain) is redis.asyncio.Redis
    async with client:
        with antipode.scope() as scope:
            await client.set("k", "1")
            at = position(scope.lineage)
            async with client.pipeline() as pipe:
                pipe.set("k", "2").incr("n")
                assert scope.pending
                assert await pipe.execute() == [True, 1]
            assert position(scope.lineage) > at
            at = position(scope.lineage)
            async with client.pipeline() as pipe:
                await pipe.watch("k")
                assert await pipe.get("k") == b"2"
                pipe.multi()
                pipe.set("k", "3")
                await pipe.execute()
            assert position(scope.lineage) > at
            async with client.pipeline() as pipe:
                pipe.set("k", "never sent")
            assert not scope.pending
            with pytest.raises(redis.ResponseError, match="WRONGTYPE"):
                await client.lpush("k", "v")
            assert not scope.pending
            async with client.client() as single:
                await single.set("k", "4")
            script = client.register_script("return redis.call('SET', KEYS[1], 'y')")
            await script(["k"])
            assert position(scope.lineage) > at
            assert (await antipode.barrier_async(timeout=5)).satisfied


async def test_a_cancelled_write_has_an_unknown_outcome_and_the_next_reply_is_the_next_ones(
    url: str, redis_lab: RedisStore
) -> None:
    """SCOPE-17."""
    client: Any = antipode_redis.wrap(redis.asyncio.Redis.from_url(url), store=STORE)
    async with client:
        await client.set("k", "1")
        redis_lab.freeze("a")
        try:
            with antipode.scope() as scope:
                task: asyncio.Task[Any] = asyncio.create_task(client.set("k", "2"))
                await asyncio.sleep(0)
                while not scope.pending:
                    await asyncio.sleep(0.001)
                await asyncio.sleep(0.02)
                task.cancel()
                with pytest.raises(asyncio.CancelledError):
                    await task
                assert [write.unknown for write in scope.pending] == [True]
                assert scope.lineage.incomplete == {STORE}
        finally:
            redis_lab.thaw("a")
        assert await client.get("k") in {b"1", b"2"}
        assert await client.echo("in step") == b"in step"


async def test_many_tasks_of_one_scope_lose_nothing(url: str) -> None:
    """LIN-29."""
    client: Any = antipode_redis.wrap(redis.asyncio.Redis.from_url(url, max_connections=16), store=STORE)
    async with client:
        with antipode.scope() as scope:
            for _ in range(20):
                await asyncio.gather(*(client.set(f"k:{number}", "v") for number in range(16)))
            assert scope.lineage.is_complete()
            assert not scope.gaps
            assert position(scope.lineage) > 0


def test_size_does_not_grow_with_writes(client: Any) -> None:
    """WIRE-39."""
    with antipode.scope() as scope:
        client.set("k", "v")
        one = len(scope.lineage.serialize())
        pipe = client.pipeline(transaction=False)
        for number in range(1000):
            client.set(f"k:{number}", "v")
            pipe.set(f"p:{number}", "v")
        pipe.execute()
        many = len(scope.lineage.serialize())
    assert many - one <= 4
    assert many < 80


@pytest.mark.parametrize("protocol", [2, 3])
def test_a_position_is_found_without_a_full_look(url: str, monkeypatch: pytest.MonkeyPatch, protocol: int) -> None:
    """In RESP3 the answer is a verbatim string, which begins with its format."""
    looks: list[object] = []

    def look(reply: object) -> Replication:
        looks.append(reply)
        return parse(reply)

    monkeypatch.setattr("antipode_redis.calls.parse", look)
    client = antipode_redis.wrap(redis.Redis.from_url(url, protocol=protocol), store=STORE)
    with antipode.scope() as scope:
        client.set("k", "v")
        client.delete("k")
    assert len(scope.lineage.of_store(STORE)) == 1
    assert not looks


def test_nothing_of_ours_stays_on_the_applications_connections(url: str) -> None:
    """SHIM-5: tracking is on for our own connection, which the barrier waits on, and for no other."""
    plain: Any = redis.Redis.from_url(url)
    client = antipode_redis.wrap(plain, store=STORE, wait_on_read=True)
    with antipode.scope():
        client.set("k", "v")
        assert antipode.barrier(timeout=20).satisfied
        client.get("k")
        for each in (client, plain):
            told = each.execute_command("CLIENT", "TRACKINGINFO")
            words = dict(zip(told[::2], told[1::2], strict=True)) if isinstance(told, list) else told
            assert [bytes(flag) for flag in words[b"flags"]] == [b"off"]
