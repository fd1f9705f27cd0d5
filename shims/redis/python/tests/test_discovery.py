"""Clients whose servers change: an address that comes to lead elsewhere, Sentinels that answer otherwise (BAR-52 to
BAR-55)."""

from __future__ import annotations

import socket
import threading
from collections.abc import Iterator
from contextlib import suppress
from typing import Any

import antipode
import antipode_redis
import pytest
import redis
import redis.asyncio
from antipode import UnprovenKind
from antipode._engine import discovery
from antipode._store.store import registry
from antipode.testing import isolated
from antipode_lab.stores.redis import RedisStore
from redis.sentinel import MasterNotFoundError, Sentinel, SlaveNotFoundError
from regions import STORE, until

pytestmark = pytest.mark.redis_lab(replicas=2, lag=["0ms", "0ms"])


@pytest.fixture(autouse=True)
def _isolated() -> Iterator[None]:
    with isolated():
        yield


class Endpoint:
    """One address in front of several servers, as a floating address is: open connections stay where they are."""

    def __init__(self, port: int) -> None:
        self.leads_to = port
        self._listener = socket.create_server(("127.0.0.1", 0))
        self.port = self._listener.getsockname()[1]
        self._open: list[socket.socket] = []
        threading.Thread(target=self._accept, daemon=True).start()

    def _accept(self) -> None:
        with suppress(OSError):
            while True:
                client, _ = self._listener.accept()
                server = socket.create_connection(("127.0.0.1", self.leads_to))
                self._open += [client, server]
                for source, sink in ((client, server), (server, client)):
                    threading.Thread(target=self._carry, args=(source, sink), daemon=True).start()

    @staticmethod
    def _carry(source: socket.socket, sink: socket.socket) -> None:
        with suppress(OSError):
            while data := source.recv(65536):
                sink.sendall(data)
            sink.shutdown(socket.SHUT_RDWR)

    def close(self) -> None:
        for each in (self._listener, *self._open):
            with suppress(OSError):
                each.shutdown(socket.SHUT_RDWR)
            each.close()


@pytest.fixture
def endpoint(redis_lab: RedisStore) -> Iterator[Endpoint]:
    found = Endpoint(redis_lab.server("b1").port)
    yield found
    found.close()


def judge(lineage: antipode.Lineage, timeout: float) -> antipode.BarrierResult:
    return antipode.barrier(lineage, timeout=timeout, on_timeout="proceed", on_unproven="proceed")


def write(client: Any, key: str, value: str = "v") -> antipode.Lineage:
    with antipode.scope() as scope:
        client.set(key, value)
        return scope.lineage


def test_an_address_that_moves_to_a_replica_that_is_behind(redis_lab: RedisStore, endpoint: Endpoint) -> None:
    """BAR-55: also while barriers keep coming."""
    antipode.configure(reconnect=0.5)
    reader: Any = antipode_redis.wrap(redis.Redis(port=endpoint.port), store=STORE, replicas=None)
    url = redis_lab.url("a")
    writer: Any = antipode_redis.wrap(
        redis.Redis.from_url(url), store=STORE, replicas=[f"redis://127.0.0.1:{endpoint.port}"]
    )
    until(lambda: judge(write(writer, "k"), 1.0).satisfied)
    redis_lab.partition("b2")
    endpoint.leads_to = redis_lab.server("b2").port
    reader.connection_pool.disconnect()
    until(lambda: not judge(write(writer, "k", "later"), 0.5).satisfied)
    for number in range(5):
        assert not judge(write(writer, "k", f"{number}"), 0.2).satisfied
        assert reader.get("k") == b"v"
    redis_lab.heal("b2")
    until(lambda: judge(write(writer, "k", "last"), 1.0).satisfied)


class Sentinels:
    """What Sentinels say now: the lab's own need seconds for another answer."""

    def __init__(self, primary: int, *replicas: int) -> None:
        self.primary: int | None = primary
        self.replicas = replicas

    def discover_master(self, finder: Any, service: str) -> tuple[str, int]:
        if self.primary is None:
            raise MasterNotFoundError(f"No master found for {service!r}")
        return "127.0.0.1", self.primary

    def discover_slaves(self, finder: Any, service: str) -> list[tuple[str, int]]:
        if self.primary is None:
            raise SlaveNotFoundError(f"no replica of {service!r}")
        return [("127.0.0.1", port) for port in self.replicas]


@pytest.fixture
def sentinels(redis_lab: RedisStore, monkeypatch: pytest.MonkeyPatch) -> Sentinels:
    said = Sentinels(*(redis_lab.server(name).port for name in ("a", "b1", "b2")))
    for name in ("discover_master", "discover_slaves"):
        asked = getattr(said, name)
        monkeypatch.setattr(Sentinel, name, lambda finder, service, asked=asked: asked(finder, service))
    monkeypatch.setattr(discovery, "REFRESH_S", 0.0)
    return said


def finder() -> Any:
    return Sentinel([("127.0.0.1", 1)])  # type: ignore[no-untyped-call]


def test_sentinels_that_name_another_primary(redis_lab: RedisStore, sentinels: Sentinels) -> None:
    """BAR-54, BAR-55: the old one lives on, and an open connection still leads there."""
    client: Any = antipode_redis.wrap(finder().master_for("svc"), store=STORE)
    assert judge(write(client, "k"), 5.0).complete
    redis_lab.partition("b1")
    lineage = write(client, "lost")
    sentinels.primary = redis_lab.server("b1").port
    until(lambda: not judge(lineage, 0.2).satisfied)
    assert client.get("lost") == b"v"  # by the connection that was open
    redis_lab.heal("b1")
    until(lambda: judge(lineage, 0.5).satisfied)
    result = judge(lineage, 5.0)
    assert not result.complete
    assert result.stores[STORE].left_out == (redis_lab.url("a").removesuffix("/0"),)


def test_a_replica_that_sentinels_call_down_is_named(redis_lab: RedisStore, sentinels: Sentinels) -> None:
    """BAR-54: an open connection of `slave_for` still leads there."""
    antipode_redis.wrap(finder().slave_for("svc"), store=STORE)
    writer: Any = antipode_redis.wrap(finder().master_for("svc"), store=STORE)
    until(lambda: judge(write(writer, "k"), 2.0).complete)
    sentinels.replicas = sentinels.replicas[:1]
    redis_lab.partition("b2")
    until(lambda: judge(write(writer, "k"), 0.5).satisfied)
    result = judge(write(writer, "k"), 5.0)
    assert not result.complete
    assert result.stores[STORE].left_out == (redis_lab.url("b2").removesuffix("/0"),)


def test_sentinels_that_do_not_answer_yet(redis_lab: RedisStore, sentinels: Sentinels) -> None:
    """BAR-52: the barrier asks for it, and never passes without."""
    port, sentinels.primary = sentinels.primary, None
    plain: Any = antipode_redis.wrap(redis.Redis.from_url(redis_lab.url("a")), store=STORE)
    antipode_redis.wrap(finder().slave_for("svc"), store=STORE)
    lineage = write(plain, "k")
    result = judge(lineage, 0.3)
    assert not result.satisfied
    assert result.stores[STORE].kind is UnprovenKind.DISCOVERY
    assert "svc" in result.stores[STORE].reason
    sentinels.primary = port
    result = judge(lineage, 5.0)
    assert result.complete
    assert len(result.stores[STORE].servers) == 3, "the plain client's own, too (BAR-22)"


def test_sentinels_that_fall_silent(
    redis_lab: RedisStore, sentinels: Sentinels, monkeypatch: pytest.MonkeyPatch
) -> None:
    """BAR-53: their last answer stands for a while."""
    client: Any = antipode_redis.wrap(finder().slave_for("svc"), store=STORE)
    writer: Any = antipode_redis.wrap(redis.Redis.from_url(redis_lab.url("a")), store=STORE)
    until(lambda: judge(write(writer, "k"), 2.0).complete)
    sentinels.primary = None
    for _ in range(3):
        assert judge(write(writer, "k"), 5.0).complete
    monkeypatch.setattr(discovery, "STALE_S", 0.0)
    result = judge(write(writer, "k"), 5.0)
    assert result.stores[STORE].kind is UnprovenKind.DISCOVERY
    del client


def test_a_pool_of_sentinels_that_asks_for_another_service(redis_lab: RedisStore, sentinels: Sentinels) -> None:
    """BAR-52: its words are as they are now; the pool itself cannot be replaced, nor put in another one's place."""
    asked: list[str] = []
    plain = finder().slave_for("svc")
    client: Any = antipode_redis.wrap(plain, store=STORE)

    def discover(finder: Any, service: str) -> list[tuple[str, int]]:
        asked.append(service)
        return sentinels.discover_slaves(finder, service)

    with pytest.MonkeyPatch.context() as patched:
        patched.setattr(Sentinel, "discover_slaves", discover)
        plain.connection_pool.service_name = "other"
        writer: Any = antipode_redis.wrap(redis.Redis.from_url(redis_lab.url("a")), STORE)
        until(lambda: judge(write(writer, "k"), 2.0).satisfied and "other" in asked)
    with pytest.raises(antipode.ConfigurationError, match="Sentinels"):
        client.connection_pool = redis.ConnectionPool.from_url(redis_lab.url("a"))
    with pytest.raises(antipode.ConfigurationError, match="Sentinels"):
        writer.connection_pool = finder().slave_for("svc").connection_pool


def elsewhere(kind: Any, port: int) -> Any:
    """A class of connections that go where it says, whatever they are told."""

    class Elsewhere(kind):  # type: ignore[misc]
        def __init__(self, **words: Any) -> None:
            super().__init__(**words)
            self.port = port

    return Elsewhere


CLIENTS: dict[str, Any] = {
    "pool": redis.Redis.from_url,
    "pool that blocks": lambda url: redis.Redis(connection_pool=redis.BlockingConnectionPool.from_url(url)),
    "asyncio": redis.asyncio.Redis.from_url,
}


@pytest.mark.parametrize("asked_before", [True, False])
@pytest.mark.parametrize("how", ["its words", "its class"])
@pytest.mark.parametrize("kind", CLIENTS)
def test_a_client_that_leads_elsewhere_since_it_was_wrapped(
    redis_lab: RedisStore, kind: str, how: str, asked_before: bool
) -> None:
    """BAR-52: what it is, is looked at while a barrier asks."""
    client = CLIENTS[kind](redis_lab.url("a"))
    kept = antipode_redis.wrap(client, STORE)
    with antipode.scope():
        antipode_redis.wrap(redis.Redis.from_url(redis_lab.url("a")), STORE).set("k", "v")
        if asked_before:
            assert antipode.barrier(timeout=30).complete
        port = redis_lab.server("b1").port
        pool = client.connection_pool
        if how == "its words":
            pool.connection_kwargs["port"] = port
        else:
            pool.connection_class = elsewhere(pool.connection_class, port)
        redis_lab.partition("b1")
        try:
            antipode_redis.wrap(redis.Redis.from_url(redis_lab.url("a")), STORE).set("k", "w")
            assert not antipode.barrier(timeout=0.5, on_timeout="proceed").satisfied
        finally:
            redis_lab.heal()
        assert antipode.barrier(timeout=30).complete
    assert f"redis://127.0.0.1:{port}" in antipode.stores()[0].replicas
    del kept


@pytest.mark.parametrize("kind", [redis.connection.Connection, redis.asyncio.connection.Connection])
def test_a_class_of_connections_of_the_applications_own(redis_lab: RedisStore, kind: Any) -> None:
    """BAR-52: where its connections lead, only connecting tells."""
    is_sync = kind is redis.connection.Connection
    made = redis if is_sync else redis.asyncio
    pool = made.ConnectionPool(
        connection_class=elsewhere(kind, redis_lab.server("a").port), host="127.0.0.1", port=redis_lab.server("b1").port
    )
    kept = antipode_redis.wrap(made.Redis(connection_pool=pool), STORE)
    assert antipode.stores()[0].replicas == (redis_lab.url("a").removesuffix("/0"),)
    if is_sync:
        with antipode.scope():
            kept.set("k", "v")
            assert antipode.barrier(timeout=30).complete


@pytest.mark.parametrize("turns", ["the list", "the client"])
def test_a_replica_that_is_cut_off_leaves_while_a_barrier_waits(
    redis_lab: RedisStore, monkeypatch: pytest.MonkeyPatch, turns: str
) -> None:
    """BAR-65, BAR-54: nobody else comes, and nothing is left to wait for: it ends, and not at its deadline."""
    monkeypatch.setattr(discovery, "REFRESH_S", 0.2)
    urls = {name: redis_lab.url(name) for name in ("a", "b1", "b2")}
    if turns == "the list":
        listed = [urls["b1"], urls["b2"]]
        replicas: Any = lambda: list(listed)  # noqa: E731
        writer: Any = antipode_redis.wrap(redis.Redis.from_url(urls["a"]), store=STORE, replicas=replicas)
    else:
        writer = antipode_redis.wrap(redis.Redis.from_url(urls["a"]), store=STORE, replicas=[urls["b1"]])
        reader: Any = antipode_redis.wrap(redis.Redis.from_url(urls["b2"]), store=STORE)
    until(lambda: judge(write(writer, "k"), 1.0).complete)
    redis_lab.partition("b2", mode="silent")
    antipode.configure(replica_out_after=120)
    lineage = write(writer, "later")
    results: list[antipode.BarrierResult] = []
    waiting = threading.Thread(target=lambda: results.append(judge(lineage, 60.0)))
    waiting.start()
    until(lambda: registry().need(STORE).parked_threads == 1)
    if turns == "the list":
        listed.remove(urls["b2"])
    else:
        reader.connection_pool.connection_kwargs["port"] = redis_lab.server("b1").port
    waiting.join(70)
    redis_lab.heal("b2", wait=False)
    [result] = results
    assert result.satisfied, result.explain()
    assert [str(redis_lab.server("b2").port) in name for name in result.stores[STORE].left_out] == [True]
    assert not result.complete
