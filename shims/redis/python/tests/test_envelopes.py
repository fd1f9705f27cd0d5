"""Rest mode `envelope`: string values with their lineages in one operation (spec SHIM-34 to SHIM-37)."""

from __future__ import annotations

import asyncio
import contextvars
import inspect
from collections.abc import Callable, Iterator
from typing import Any

import antipode
import antipode_redis
import pytest
import redis
import redis.asyncio
from antipode import Lineage
from antipode._store.envelope import BEGIN, close_envelope, open_envelope
from antipode.testing import isolated
from antipode_lab.stores.redis import RedisStore
from antipode_redis.envelopes import glob
from hypothesis import given, settings
from hypothesis import strategies as st
from regions import STORE

pytestmark = pytest.mark.redis_lab(replicas=1, lag="0ms")
OTHER = Lineage([antipode.WriteId.position("user-acl", "0123456789abcdef", 49)])
OTHER_TEXT = OTHER.serialize()


@pytest.fixture(autouse=True)
def _isolated(redis_lab: RedisStore) -> Iterator[None]:
    redis_lab.client("a").flushall()
    with isolated():
        yield


class Clients:
    """Wrapped clients of one kind; their calls and those of their pipelines are waited for."""

    def __init__(self, lab: RedisStore, kind: str, runner: asyncio.Runner) -> None:
        self.lab = lab
        self.plain: Any = lab.client("a")
        """Without the shim: what is stored."""
        self._kind = redis.asyncio.Redis if kind == "asyncio" else redis.Redis
        self._runner = runner
        self.posts = self.wrap()

    def wrap(self, name: str = "a", keys: str = "post:*", url_options: str = "", **options: Any) -> Any:
        client: Any = self._kind.from_url(self.lab.url(name) + url_options)
        return antipode_redis.wrap(client, store=STORE, rest="envelope", envelope_keys=keys, **options)

    def do(self, call: Any) -> Any:
        """What a call, or the coroutine that it gave, gives."""
        if inspect.isawaitable(call):
            return self._runner.run(_awaited(call), context=contextvars.copy_context())
        return call

    def stored(self, key: str) -> bytes:
        found: bytes = self.plain.get(key)
        return found


async def _awaited(call: Any) -> Any:
    return await call


@pytest.fixture(params=["sync", "asyncio"])
def clients(request: pytest.FixtureRequest, redis_lab: RedisStore) -> Iterator[Clients]:
    with asyncio.Runner() as runner:
        yield Clients(redis_lab, request.param, runner)


def beside(stored: bytes) -> tuple[bytes, str | None]:
    opened = open_envelope(stored)
    assert not opened.fault
    return opened.value, opened.text


def test_value_and_lineage_are_one_value_that_reads_as_itself(clients: Clients) -> None:
    """SHIM-9, SHIM-12, SHIM-36."""
    posts, do = clients.posts, clients.do
    with antipode.scope(OTHER) as scope:
        assert do(posts.set("post:1", "body")) is True
        assert len(scope.lineage.of_store(STORE)) == 1
        assert do(posts.set("other", "body")) is True
    assert beside(clients.stored("post:1")) == (b"body", OTHER_TEXT)
    assert clients.stored("other") == b"body"
    assert do(posts.get("post:1")) == b"body"
    assert do(posts.get(b"post:1")) == b"body"
    assert do(posts.get("post:none")) is None
    with antipode.scope() as scope:
        do(posts.get("post:1"))
        assert scope.lineage == antipode.EMPTY


WRITES: dict[str, Callable[[Any], Any]] = {
    "SETEX": lambda c: c.execute_command("SETEX", "post:1", 100, "v"),
    "PSETEX": lambda c: c.psetex("post:1", 100000, "v"),
    "SETNX": lambda c: c.setnx("post:1", "v"),
    "SET with options": lambda c: c.set("post:1", "v", ex=100, nx=True),
    "MSET": lambda c: c.mset({"other": "v", "post:1": "v"}),
    "MSETNX": lambda c: c.msetnx({"post:1": b"v", "other": "v"}),
    "GETSET": lambda c: c.getset("post:1", "v"),
    "as one text": lambda c: c.execute_command("set", "post:1", "v"),
    "a number": lambda c: c.execute_command(b"SET", b"post:1", memoryview(b"v")),
    "a pipeline": lambda c: c.pipeline(transaction=False).set("other", "v").set("post:1", "v").execute(),
    "a transaction": lambda c: c.pipeline(transaction=True).set("post:1", "v").set("other", "v").execute(),
}


def test_every_command_that_writes_whole_values(clients: Clients) -> None:
    """SHIM-9."""
    for name, call in WRITES.items():
        clients.plain.delete("post:1", "other")
        with antipode.scope(OTHER) as scope:
            clients.do(call(clients.posts))
            assert len(scope.lineage.of_store(STORE)) == 1, name
            assert not scope.pending, name
        assert beside(clients.stored("post:1")) == (b"v", OTHER_TEXT), name
        assert clients.plain.get("other") in (None, b"v"), name


READS: dict[str, tuple[Callable[[Any], Any], Any]] = {
    "GET": (lambda c: c.get("post:1"), "body"),
    "GETEX": (lambda c: c.getex("post:1", ex=100), "body"),
    "GETDEL": (lambda c: c.getdel("post:1"), "body"),
    "GETSET": (lambda c: c.getset("post:1", "v"), "body"),
    "SET … GET": (lambda c: c.set("post:1", "v", get=True), "body"),
    "MGET": (lambda c: c.mget("other", "post:1", "post:none"), ["plain", "body", None]),
    "a pipeline": (
        lambda c: c.pipeline(transaction=False).get("other").get("post:1").set("x", "1").execute(),
        ["plain", "body", True],
    ),
    "a transaction": (
        lambda c: (
            c.pipeline(transaction=True).get("other").get("post:1").mget(["post:1", "other"]).hgetall("h").execute()
        ),
        ["plain", "body", ["body", "plain"], {"f": "ü"}],
    ),
    "a pipeline that takes": (lambda c: c.pipeline().getdel("post:1").execute(), ["body"]),
}


def _bytes(value: Any) -> Any:
    if isinstance(value, str):
        return value.encode()
    if isinstance(value, list):
        return [_bytes(each) for each in value]
    return {_bytes(name): _bytes(each) for name, each in value.items()} if isinstance(value, dict) else value


@pytest.mark.parametrize("url_options", ["?protocol=2", "?protocol=3", "?decode_responses=true"])
def test_every_command_that_answers_with_whole_values(clients: Clients, url_options: str) -> None:
    """SHIM-13, SHIM-36: values, decoded or not, and in `reading()` what they depend on."""
    posts = clients.wrap(url_options=url_options)
    clients.plain.set("other", "plain")
    clients.plain.hset("h", "f", "ü")
    for name, (call, wanted) in READS.items():
        for collects in (False, True):
            with antipode.scope(OTHER):
                clients.do(posts.set("post:1", "body"))
            with antipode.scope():
                if not collects:
                    got = clients.do(call(posts))
                else:
                    with antipode.reading() as seen:
                        got = clients.do(call(posts))
                    assert seen.lineage >= OTHER, name
                    assert STORE in seen.lineage.stores, name
                    assert seen.lineage.is_complete(), name
            assert got == (wanted if "decode" in url_options else _bytes(wanted)), name


def test_automatic_merging(clients: Clients) -> None:
    with antipode.scope(OTHER):
        clients.do(clients.posts.mset({"post:1": "a", "post:2": "b"}))
    antipode.configure(auto_merge=True)
    for call in (clients.posts.get, clients.posts.getdel):
        with antipode.scope() as scope:
            assert clients.do(call("post:1")) == b"a"
            assert scope.lineage >= OTHER


def test_what_the_shim_did_not_write_reads_as_itself_and_as_empty(clients: Clients) -> None:
    """SHIM-14, SHIM-35."""
    clients.plain.set("post:1", b"\xff\xf5AE plain")
    with antipode.scope():
        with antipode.reading() as seen:
            assert clients.do(clients.posts.get("post:1")) == b"\xff\xf5AE plain"
        assert list(seen.lineage.stores) == [STORE]
        assert seen.lineage.is_complete()
        clients.do(clients.posts.set("post:2", "v"))
    assert clients.stored("post:2") == b"v", "no lineage, no envelope"


def test_a_value_that_looks_like_an_envelope_is_none(clients: Clients) -> None:
    """SHIM-34."""
    with antipode.scope():
        for value in (BEGIN, close_envelope(b"x", OTHER_TEXT)):
            clients.do(clients.posts.set("post:1", value))
            with antipode.reading() as seen:
                assert clients.do(clients.posts.get("post:1")) == value
            assert not seen.lineage >= OTHER


def test_a_broken_envelope_loses_no_value(clients: Clients, caplog: pytest.LogCaptureFixture) -> None:
    """SHIM-35."""
    for broken in (BEGIN, BEGIN + b"2abc", BEGIN + b"1\xff\xff1~a..e.1", BEGIN + b"1\x00"):
        clients.plain.set("post:1", broken)
        with antipode.scope(), antipode.reading() as seen:
            assert clients.do(clients.posts.get("post:1")) == broken
            assert clients.do(clients.posts.mget(["post:1"])) == [broken]
            assert clients.do(clients.posts.pipeline().get("post:1").execute()) == [broken]
        assert seen.lineage.incomplete == {STORE}
    assert "an envelope" in caplog.text


def test_a_malformed_lineage_in_an_envelope_is_incomplete(clients: Clients) -> None:
    """SHIM-14."""
    clients.plain.set("post:1", close_envelope(b"body", "no lineage"))
    with antipode.scope(), antipode.reading() as seen:
        assert clients.do(clients.posts.get("post:1")) == b"body"
    assert seen.lineage.incomplete == {STORE}


def test_a_lineage_past_the_budget_is_incomplete_never_empty(clients: Clients) -> None:
    many = Lineage([antipode.WriteId(f"store-{n}", "k" * 80, antipode.Opaque("m")) for n in range(60)])
    with antipode.scope(many):
        clients.do(clients.posts.set("post:1", "body"))
    assert len(clients.stored("post:1")) < 1100
    with antipode.scope(), antipode.reading() as seen:
        assert clients.do(clients.posts.get("post:1")) == b"body"
    assert not seen.lineage.is_complete()


def test_another_write_in_flight_marks_what_rests(clients: Clients) -> None:
    """SCOPE-16: not the write itself."""
    with antipode.scope(OTHER) as scope:
        pipe = clients.posts.pipeline()
        pipe.set("other", "v")
        clients.do(clients.posts.set("post:1", "body"))
        assert beside(clients.stored("post:1"))[1] == f"{OTHER_TEXT}~_.i.{STORE}"
        clients.do(pipe.execute())
        assert not scope.pending


REFUSED: dict[str, Callable[[Any], Any]] = {
    "APPEND": lambda c: c.append("post:1", "x"),
    "INCR": lambda c: c.incr("post:1"),
    "INCRBYFLOAT": lambda c: c.incrbyfloat("post:1", 1.5),
    "SETRANGE": lambda c: c.setrange("post:1", 1, "x"),
    "GETRANGE": lambda c: c.getrange("post:1", 0, 1),
    "STRLEN": lambda c: c.strlen("post:1"),
    "SETBIT": lambda c: c.setbit("post:1", 7, 1),
    "BITCOUNT": lambda c: c.bitcount("post:1"),
    "BITOP": lambda c: c.bitop("AND", "other", "x", "post:1"),
    "LCS": lambda c: c.execute_command("LCS", "x", "post:1"),
    "RENAME": lambda c: c.rename("post:1", "other"),
    "COPY": lambda c: c.copy("post:1", "other"),
    "SET": lambda c: c.execute_command("SET", "post:1", "v", "IFEQ", "x"),
    "in lower case": lambda c: c.execute_command("append post:1", "x"),
    "in a pipeline": lambda c: c.pipeline().append("post:1", "x").execute(),
}


def test_what_would_see_the_octets_inside_is_refused_before_it_is_sent(clients: Clients) -> None:
    """SHIM-36, SHIM-37."""
    with antipode.scope(OTHER) as scope:
        clients.do(clients.posts.set("post:1", "7"))
        before = clients.stored("post:1"), scope.lineage
        for call in REFUSED.values():
            with pytest.raises(antipode.ConfigurationError, match=r"post:1.*envelope_keys"):
                clients.do(call(clients.posts))
            assert not scope.pending
        assert (clients.stored("post:1"), scope.lineage) == before
    assert clients.do(clients.posts.append("other", "x")) == 1
    assert clients.do(clients.posts.rename("post:1", "post:2")) is True
    assert clients.do(clients.posts.get("post:2")) == b"7"
    assert clients.do(clients.posts.delete("post:2")) == 1


def test_a_transaction_that_is_sent_by_hand(redis_lab: RedisStore) -> None:
    client: Any = redis.Redis.from_url(redis_lab.url("a"), single_connection_client=True)
    posts: Any = antipode_redis.wrap(client, store=STORE, rest="envelope", envelope_keys="post:*")
    with antipode.scope(OTHER) as scope:
        posts.execute_command("MULTI")
        posts.set("other", "v")
        with pytest.raises(antipode.ConfigurationError, match="by hand"):
            posts.set("post:1", "v")
        with pytest.raises(antipode.ConfigurationError, match="by hand"):
            posts.get("post:1")
        posts.execute_command("EXEC")
        assert posts.get("other") == b"v"
        assert posts.get("post:1") is None
        assert not scope.pending
    client.close()


def test_watched_reads_are_opened(redis_lab: RedisStore) -> None:
    client: Any = redis.Redis.from_url(redis_lab.url("a"))
    posts: Any = antipode_redis.wrap(client, store=STORE, rest="envelope", envelope_keys="post:*")

    def longer(pipe: Any) -> None:
        body = pipe.get("post:1")
        pipe.multi()
        pipe.set("post:1", body + b"!")

    with antipode.scope(OTHER):
        posts.set("post:1", "body")
        posts.transaction(longer, "post:1")
        with antipode.reading() as seen:
            posts.transaction(longer, "post:1")
    assert posts.get("post:1") == b"body!!"
    assert seen.lineage >= OTHER


def test_a_read_that_waits(clients: Clients) -> None:
    reader = clients.wrap("b1", wait_on_read=True, timeout=10.0)
    for number in range(10):
        with antipode.scope(OTHER):
            clients.do(clients.posts.set("post:1", str(number)))
            assert clients.do(reader.get("post:1")) == str(number).encode()
            assert clients.do(reader.pipeline().get("post:1").execute()) == [str(number).encode()]


def test_off_opens_envelopes_all_the_same(clients: Clients) -> None:
    """SHIM-36."""
    with antipode.scope(OTHER):
        clients.do(clients.posts.set("post:1", "body"))
    antipode.configure(mode="off")
    posts = clients.posts
    with antipode.scope(OTHER):
        assert clients.do(posts.get("post:1")) == b"body"
        assert clients.do(posts.mget("post:1")) == [b"body"]
        assert clients.do(posts.pipeline().get("post:1").set("post:3", BEGIN).execute()) == [b"body", True]
        assert clients.do(posts.getset("post:1", "new")) == b"body"
        assert clients.stored("post:1") == b"new"
        clients.do(posts.set("post:2", BEGIN))
        assert clients.do(posts.mget(["post:2", "post:3"])) == [BEGIN, BEGIN]


def test_lineages_may_be_kept_out_and_in(clients: Clients) -> None:
    silent, deaf = clients.wrap(lineage_out=False), clients.wrap(lineage_in=False)
    with antipode.scope(OTHER):
        clients.do(silent.set("post:1", "v"))
        assert clients.stored("post:1") == b"v"
        clients.do(deaf.set("post:1", "v"))
    with antipode.scope(), antipode.reading() as seen:
        assert clients.do(deaf.get("post:1")) == b"v"
    assert list(seen.lineage.stores) == [STORE]


def test_errors_are_the_stores_own(clients: Clients) -> None:
    """SHIM-2."""
    clients.plain.lpush("post:list", "x")
    with antipode.scope(OTHER) as scope:
        for command in (["GET", "post:list"], ["GETSET", "post:list", "v"]):
            with pytest.raises(redis.ResponseError, match="WRONGTYPE"):
                clients.do(clients.posts.execute_command(*command))
        with pytest.raises(redis.ResponseError, match="wrong number"):
            clients.do(clients.posts.execute_command("SET", "post:1"))
        with pytest.raises(redis.DataError):
            clients.do(clients.posts.set("post:1", None))
        assert not scope.pending
        with pytest.raises(redis.ResponseError, match="WRONGTYPE"):
            clients.do(clients.posts.pipeline().get("post:list").set("post:1", "v").execute())
        assert clients.do(clients.posts.get("post:1")) == b"v"


def test_any_value_comes_back(redis_lab: RedisStore) -> None:
    """SHIM-34: also what was written without the shim, whatever it looks like."""
    plain: Any = redis_lab.client("a")
    posts: Any = antipode_redis.wrap(plain, store=STORE, rest="envelope", envelope_keys="post:*")

    @settings(deadline=None, max_examples=50)
    @given(st.one_of(st.binary(max_size=200), st.binary(max_size=50).map(lambda rest: BEGIN + b"1" + rest)))
    def turn(value: bytes) -> None:
        with antipode.scope(OTHER):
            posts.set("post:1", value)
        assert posts.get("post:1") == value
        plain.set("post:1", value)
        with antipode.reading():
            assert value.endswith(posts.get("post:1"))

    turn()


def test_patterns_are_those_of_keys(redis_lab: RedisStore) -> None:
    """SHIM-37: the server itself is asked."""
    plain: Any = redis_lab.client("a")
    for pattern, yes, no in PATTERNS:
        matches = glob(pattern.encode())
        for key in [*yes, *no]:
            plain.set(key, "v")
        found = set(plain.keys(pattern))
        for key in [*yes, *no]:
            assert matches(key.encode()) is (key in yes), (pattern, key)
            assert (key.encode() in found) is (key in yes), (pattern, key)


PATTERNS: tuple[tuple[str, list[str], list[str]], ...] = (
    ("post:*", ["post:", "post:1", "post:\n1"], ["post", "xpost:1"]),
    ("p?st", ["post", "p.st"], ["pst", "poost"]),
    ("h[ae]llo", ["hello", "hallo"], ["hillo"]),
    ("h[^e]llo", ["hallo"], ["hello"]),
    ("h[a-c]llo", ["hbllo"], ["hdllo"]),
    ("h[c-a]llo", ["hbllo"], ["hdllo"]),
    (r"a\*b", ["a*b"], ["axb"]),
    (r"[\]x]", ["]", "x"], ["\\"]),
    ("a.b+(c)", ["a.b+(c)"], ["axb+(c)"]),
    ("*", ["", "é"], []),
)


@pytest.mark.parametrize(("first", "second"), [("post:*", "user:*"), ("post:*", None), (None, "post:*")])
def test_wraps_of_one_store_agree_on_the_keys(redis_lab: RedisStore, first: str | None, second: str | None) -> None:
    """SHIM-37: each would misread what the other writes. Whoever only waits has no say."""

    def wrap(keys: str | None) -> redis.Redis:
        return antipode_redis.wrap(
            redis_lab.client("a"), store=STORE, rest="envelope" if keys else "none", envelope_keys=keys
        )

    antipode_redis.register(STORE, replicas=[redis_lab.url("b1")])
    wrap(first)
    wrap(first)
    with pytest.raises(antipode.ConfigurationError, match="the same envelope_keys="):
        wrap(second)
