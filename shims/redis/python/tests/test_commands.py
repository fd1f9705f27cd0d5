"""What the table of commands says, against the real server's own list (SHIM-43, SHIM-44, SHIM-6)."""

from __future__ import annotations

import asyncio
from collections.abc import Iterator
from typing import Any

import antipode
import antipode_redis
import pytest
import redis
import redis.asyncio
from antipode.testing import isolated
from antipode_lab.stores.redis import RedisStore
from antipode_redis.commands import Kind, answers, classify
from regions import STORE

pytestmark = pytest.mark.redis_lab(replicas=1, lag="0ms")

NEITHER = """
    ACL ASKING AUTH BGREWRITEAOF BGSAVE CLIENT CLUSTER COMMAND CONFIG ECHO FAILOVER FUNCTION HELLO INFO LASTSAVE
    LATENCY LOLWUT MEMORY MODULE MONITOR PFSELFTEST PING PSUBSCRIBE PSYNC PUBLISH PUBSUB PUNSUBSCRIBE QUIT READONLY
    READWRITE REPLCONF REPLICAOF ROLE SAVE SCRIPT SELECT SHUTDOWN SLAVEOF SLOWLOG SPUBLISH SSUBSCRIBE SUBSCRIBE
    SUNSUBSCRIBE SYNC TIME UNSUBSCRIBE UNWATCH WAIT WATCH XGROUP
""".split()  # noqa: SIM905
"""Those of which each was looked at, and shows nothing of what keys hold: a new one is to be looked at, too."""
MAYBE = {"DEBUG", "EVAL", "EVALSHA", "FCALL", "MIGRATE", "PFDEBUG"}
"""Those that may write more, or otherwise, than their flags say."""
READS_WITHOUT_A_WORD = {"GEORADIUS", "GEORADIUSBYMEMBER", "SORT"}
"""Flagged as writes, which they are with STORE."""


@pytest.fixture(autouse=True)
def _isolated() -> Iterator[None]:
    with isolated():
        yield


def listed(lab: RedisStore) -> Iterator[tuple[list[str], set[str]]]:
    """Each command and subcommand of the server, with its flags."""
    client: Any = lab.client("a")
    client.response_callbacks.pop("COMMAND", None)

    def walk(rows: Any) -> Iterator[tuple[list[str], set[str]]]:
        for row in rows:
            below = row[9] if len(row) > 9 else []
            if below:
                yield from walk(below)
            else:
                yield row[0].decode().upper().split("|"), {flag.decode() for flag in row[2]}

    yield from walk(client.execute_command("COMMAND"))


def test_every_command_of_the_server_is_known_for_what_it_does(redis_lab: RedisStore) -> None:
    """SHIM-43, SHIM-44: what may read waits or is looked at by name, what may write is recorded."""
    wrong = []
    found = list(listed(redis_lab))
    assert len(found) > 300
    for words, flags in found:
        kinds = {classify(words), classify([" ".join(words)]), classify([words[0].lower().encode(), *words[1:]])}
        kind = classify(words)
        if len(kinds) != 1:
            wrong.append(f"{words}: {kinds} by its spelling")
        if (kind is Kind.MAYBE) != (words[0] in MAYBE):
            wrong.append(f"{words} is {kind}")
        if "write" in flags and kind not in (Kind.WRITE, Kind.MAYBE) and words[0] not in READS_WITHOUT_A_WORD:
            wrong.append(f"{words} writes, and is {kind}")
        if "readonly" in flags and kind not in (Kind.READ, Kind.MAYBE) and words != ["LOLWUT"]:
            wrong.append(f"{words} reads, and is {kind}")
        if kind is Kind.OTHER and words[0] not in NEITHER:
            wrong.append(f"{words} is passed on without a look")
        if kind is Kind.MAYBE and not answers(words):
            wrong.append(f"{words} may answer, and does not wait")
    assert not wrong, "\n".join(wrong)


def test_words_of_a_command_decide() -> None:
    """SHIM-43."""
    assert classify(["SORT", "k"]) is Kind.READ
    assert classify(["sort", "k", b"store", "l"]) is Kind.WRITE
    assert classify(["FUNCTION LOAD", "x"]) is classify(["XGROUP CREATE", "s"]) is Kind.WRITE
    assert classify(["FUNCTION", "LIST"]) is classify(["MEMORY USAGE", "k"]) is Kind.READ
    assert classify(["FUNCTION", "STATS"]) is classify(["MEMORY STATS"]) is Kind.OTHER
    assert classify([b"set", "k", "v"]) is Kind.WRITE
    assert classify(["SOME.MODULE", "k"]) is Kind.MAYBE


@pytest.mark.parametrize("words", [("MEMORY USAGE", "k"), ("MEMORY", "USAGE", "k"), (b"memory", b"usage", "k")])
def test_memory_usage_waits(redis_lab: RedisStore, words: Any) -> None:
    """SHIM-44: it shows whether a key is there, and how much it holds."""
    reader: Any = antipode_redis.wrap(redis.Redis.from_url(redis_lab.url("b1")), STORE, wait_on_read=True, timeout=0.3)
    by_asyncio: Any = antipode_redis.wrap(
        redis.asyncio.Redis.from_url(redis_lab.url("b1")), STORE, wait_on_read=True, timeout=0.3
    )

    async def read() -> Any:
        async with by_asyncio:
            return await by_asyncio.execute_command(*words)

    with antipode.scope():
        redis_lab.partition("b1")
        try:
            antipode_redis.wrap(redis.Redis.from_url(redis_lab.url("a")), STORE).set("k", "v")
            with pytest.raises(antipode.BarrierTimeout):
                reader.execute_command(*words)
            with pytest.raises(antipode.BarrierTimeout):
                asyncio.run(read())
        finally:
            redis_lab.heal()
        antipode.barrier(timeout=30)
        assert reader.execute_command(*words) > 0
        assert reader.memory_usage("k") > 0
        assert reader.memory_stats()
