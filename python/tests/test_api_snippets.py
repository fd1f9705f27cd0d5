"""The documentation's own lines, run and typed: what users type works as it stands (mypy checks `assert_type`)."""

from __future__ import annotations

import asyncio
from collections.abc import Mapping, Sequence
from concurrent.futures import Executor, ThreadPoolExecutor
from datetime import timedelta
from typing import ClassVar, NamedTuple, assert_type

import antipode
import antipode.httpx
import antipode.memory
import antipode.requests
import antipode.shim
import antipode.testing
import httpx
import pytest
import requests
from antipode import BarrierResult, Lineage, Ordered, Scope, Store, StoreResult, Verdict, WriteId
from antipode.shim import NOT_YET, VISIBLE, Capabilities, Visibility


def regions(lag: float = 0.02) -> tuple[antipode.memory.Store, antipode.memory.Client, antipode.memory.Client]:
    store = antipode.memory.Store("blog-posts", regions=["a", "b"], lag=lag)
    return store, store.client("a"), store.client("b")


def test_clients_keep_their_type() -> None:
    class Mine(requests.Session):
        """An application's own."""

    assert_type(antipode.requests.wrap(requests.Session()), requests.Session)
    assert_type(antipode.requests.wrap(Mine()), Mine)
    assert_type(antipode.httpx.wrap(httpx.Client()), httpx.Client)
    assert_type(antipode.httpx.wrap(httpx.AsyncClient()), httpx.AsyncClient)
    assert isinstance(antipode.requests.wrap(Mine()), Mine)


def test_barrier_before_a_read() -> None:
    _, posts, _ = regions()
    with antipode.scope():
        posts.set("post:42", "body")
        antipode.barrier()
        result = antipode.barrier(
            timeout=0.5, stores=["blog-posts"], reach="region", require_complete=False, on_timeout="proceed"
        )
    assert_type(result, BarrierResult)
    assert_type(result.satisfied, bool)
    assert_type(result.complete, bool)
    assert_type(result.waited, float)
    assert_type(result.stores, Mapping[str, StoreResult])
    verdict = result.stores["blog-posts"]
    assert_type(verdict.verdict, Verdict)
    assert_type(verdict.reason, str)
    assert (result.satisfied, result.complete, verdict.verdict) == (True, True, Verdict.VISIBLE)
    assert str(result).startswith("satisfied in ")
    with pytest.raises(TypeError, match="satisfied or"):
        bool(result)


def test_what_is_an_error_and_what_is_no_pass() -> None:
    with pytest.raises(antipode.ConfigurationError):
        antipode.barrier()  # outside any scope, and with no store
    _, posts, _ = regions()
    with antipode.scope():
        posts.set("k", "v")
        with pytest.raises(antipode.ConfigurationError):
            antipode.barrier(timeout=None)  # type: ignore[arg-type]  # there is no infinite wait to ask for
        with pytest.raises(antipode.UnknownStoreError, match="Did you mean"):
            antipode.barrier(stores=["blog-post"])
        assert antipode.barrier(timeout=timedelta(seconds=5)).satisfied
    with antipode.scope(Lineage([WriteId.position("user-acl", "e", 1)])):
        result = antipode.barrier()
        assert (result.vacuous, result.satisfied, result.complete) == (True, True, False)
        assert "user-acl elsewhere (not registered in this process)" in str(result)
        with pytest.raises(antipode.BarrierIncomplete):
            antipode.barrier(on_vacuous="raise")


def test_a_look_without_waiting() -> None:
    store, posts, _ = regions()
    store.freeze("b")
    with antipode.scope():
        posts.set("k", "v")
        result = antipode.barrier(timeout=0, on_timeout="proceed")
    assert result.stores["blog-posts"].verdict is Verdict.NOT_YET


async def test_without_blocking() -> None:
    _, posts, _ = regions()
    with antipode.scope():
        posts.set("k", "v")
        result = await antipode.barrier_async(timeout=5)
        assert_type(result, BarrierResult)
        with pytest.raises(antipode.BlockingCallError, match="barrier_async"):
            antipode.barrier()
        # asyncio tasks and asyncio.to_thread need nothing.
        await asyncio.to_thread(posts.set, "k2", "v")
        assert len(antipode.serialize()) > 1


def test_read_or_fallback() -> None:
    store, posts_a, posts_b = regions()
    store.freeze("b")
    with antipode.scope():
        posts_a.set("key", "v")
        body = antipode.read_or_fallback(lambda: posts_b.get("key"), lambda: posts_a.get("key"), timeout=0.05)
    assert_type(body, bytes | None)
    assert body == b"v"


def test_threads_and_detached_work() -> None:
    _, posts, _ = regions()
    pool = antipode.carry_all(ThreadPoolExecutor(2))
    assert_type(pool, Executor)
    with antipode.scope() as opened:
        assert_type(opened, Scope)
        pool.submit(posts.set, "one", "v").result()
        with ThreadPoolExecutor(1) as plain:
            plain.submit(antipode.carry(posts.set), "two", "v").result()
        [position] = opened.lineage
        assert_type(position, WriteId)
        with antipode.detached_scope() as copy:
            pool.submit(antipode.carry(posts.set), "three", "v").result()
        assert opened.lineage <= copy.lineage
        assert opened.lineage != copy.lineage


def test_read_with_the_lineage_beside_the_value() -> None:
    _, posts_a, posts_b = regions(lag=0)
    with antipode.scope():
        antipode.append(WriteId.position("user-acl", "e", 7))
        posts_a.set("post:42", "body")
        lineage = antipode.current_scope().lineage  # type: ignore[union-attr]
    with antipode.scope() as scope:
        with antipode.reading(after=lineage) as seen:
            assert posts_b.get("post:42") == b"body"
        assert_type(seen.lineage, Lineage)
        assert "user-acl" not in scope.lineage.stores
        antipode.transfer(seen.lineage)
        assert set(scope.lineage.stores) == {"user-acl", "blog-posts"}
    with antipode.scope() as scope:
        with antipode.reading(merge=True):
            posts_b.get("post:42")
        assert "user-acl" in scope.lineage.stores


def test_reads_merge_by_themselves_where_that_is_asked_for() -> None:
    _, posts_a, posts_b = regions(lag=0)
    with antipode.scope():
        antipode.append(WriteId.position("user-acl", "e", 7))
        posts_a.set("post:42", "body")
    for merges in (False, True):
        antipode.configure(auto_merge=merges)
        with antipode.scope() as scope:
            posts_b.get("post:42")
            assert set(scope.lineage.stores) == ({"user-acl", "blog-posts"} if merges else set())


def test_the_papers_verbs() -> None:
    scope = antipode.root()
    antipode.append(WriteId("img", "cat.jpg", Ordered("", 3)), WriteId.position("s", "e", 1))
    text = antipode.serialize()
    assert_type(text, str)
    removed = antipode.remove("img")
    assert removed.lineage.stores == ["img"]
    antipode.transfer(antipode.deserialize(text))
    assert antipode.current_scope() is scope
    antipode.stop()
    assert antipode.current_scope() is None
    with pytest.raises(antipode.MalformedLineageError):
        antipode.deserialize("nonsense")


def follower(posts_b: antipode.memory.Client) -> bytes | None:
    """A service under test."""
    antipode.barrier(timeout=5)
    return posts_b.get("post:42")


def test_follower_waits(antipode_isolated: None) -> None:
    store = antipode.memory.Store("blog-posts", regions=["a", "b"], lag=0.08)
    posts_a, posts_b = store.client("a"), store.client("b")
    with antipode.scope():
        posts_a.set("post:42", b"hi")
        message = antipode.serialize()
    with antipode.message_scope(message):
        assert posts_b.get("post:42") is None
        assert follower(posts_b) == b"hi"
    antipode.testing.assert_barriers("blog-posts", at_least=1)
    with pytest.raises(AssertionError, match="unprotected"):
        antipode.testing.assert_barriers("blog-posts", at_least=2)


def test_settings_are_one_value() -> None:
    now = antipode.configure(timeout=timedelta(milliseconds=250), mode="dry-run", region="b")
    assert_type(now, antipode.Settings)
    assert (now.timeout, now.mode, antipode.settings().region) == (0.25, antipode.Mode.DRY_RUN, "b")
    with pytest.raises(antipode.ConfigurationError, match="Did you mean timeout"):
        antipode.configure(timout=1)  # type: ignore[call-arg]


# Write a shim


class Found(NamedTuple):
    """A value of the little store below."""

    value: str
    version: int


class Kv:
    """A store's own client: as it is without Antipode."""

    def __init__(self, data: dict[bytes, Found]) -> None:
        self.data = data

    def put(self, key: bytes, value: str) -> Found:
        before = self.data.get(key, Found("", 0))
        reply = self.data[key] = Found(value, before.version + 1)
        return reply

    def mget(self, keys: Sequence[bytes]) -> list[Found | None]:
        return [self.data.get(key) for key in keys]


class KvShim(antipode.shim.Shim):
    kind: ClassVar[str] = "kv"
    capabilities: ClassVar[Capabilities] = Capabilities(versions="object")

    def visible(self, ids: Sequence[WriteId], server: antipode.shim.Server) -> Sequence[Visibility]:
        found = server.target.mget([write_id.key for write_id in ids])
        return [
            VISIBLE if there and isinstance(i.version, Ordered) and there.version >= i.version.counter else NOT_YET
            for there, i in zip(found, ids, strict=True)
        ]


class KvClient(Kv):
    _store: Store

    def put(self, key: bytes, value: str) -> Found:
        with self._store.writing(key) as write:
            reply = super().put(key, value)
            write.record(Ordered("", reply.version))
            return reply


wrap = antipode.shim.wrapper(KvShim, client=Kv, wrapped=KvClient)


def test_a_shim_of_one_page_waits() -> None:
    primary, replica = Kv({}), Kv({})
    client = wrap(primary, store="things", replicas=[replica])
    assert_type(client, Kv)
    with antipode.scope() as scope:
        client.put(b"k", "one")
        client.put(b"k", "two")
        assert scope.lineage.serialize() == "1~things.k..2"
        with pytest.raises(antipode.BarrierTimeout):
            antipode.barrier(timeout=0.05)
        replica.data[b"k"] = Found("two", 2)
        assert antipode.barrier(timeout=5).satisfied
    with antipode.scope() as scope:
        primary.put(b"plain", "x")  # the client that was passed in stays plain
        assert scope.lineage.serialize() == "1"
    [store] = antipode.stores()
    assert_type(store, Store)
    assert (store.name, store.kind, store.capabilities.versions) == ("things", "kv", "object")
