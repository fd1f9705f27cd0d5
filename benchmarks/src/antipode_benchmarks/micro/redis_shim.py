"""What a wrapped redis-py client costs: SET through it and through the plain client, in turns, on one server."""

from __future__ import annotations

import asyncio
import time
from collections.abc import Awaitable, Callable, Iterator
from contextlib import contextmanager

import antipode
import antipode_redis
import redis
import redis.asyncio
from antipode_lab import Lab
from antipode_lab.relay import Relay

from antipode_benchmarks.micro.figures import Figure, Pair, spread_of
from antipode_benchmarks.micro.process import fresh

BODY = b"x" * 1024
ONE_WAY_S = 0.00015
"""Delay of the relay in each direction: a round trip of 0.3 ms, as between two zones of a region."""
WRITES_A_REQUEST = 10


def figures(lab: Lab, writes: int) -> Iterator[Figure]:
    """All figures of this group, at the lab's primary."""
    port = lab.redis.server("a").port
    with fresh():
        pair = _sync(port, writes)
    yield _added("set_sync", "a SET through the wrapped client (sync) beyond the plain one, on loopback", pair, 15.0)
    with fresh():
        pair = asyncio.run(_async(port, writes))
    yield _added("set_asyncio", "a SET through the wrapped client (asyncio) beyond the plain one, on loopback", pair)
    with fresh(), Relay(port, ONE_WAY_S) as relay:
        pair = _sync(relay.port, writes // 2)
    ratios = [1 / ratio for ratio in pair.ratios]
    yield Figure(
        "set_sync_distant",
        f"a SET through the wrapped client (sync) against the plain one, round trip {2000 * ONE_WAY_S:g} ms longer",
        "times",
        spread_of(ratios, 50)["p50"],
        spread_of(ratios, 10, 50, 90),
        at_most=1.1,
        beside=_medians(pair),
    )


def _added(name: str, what: str, pair: Pair, at_most: float | None = None) -> Figure:
    differences = pair.differences
    return Figure(
        name,
        what,
        "us",
        spread_of(differences, 50)["p50"],
        spread_of(differences, 10, 50, 90),
        at_most=at_most,
        beside=_medians(pair),
    )


def _medians(pair: Pair) -> dict[str, float]:
    found = {"wrapped_us": spread_of(pair.ours, 50)["p50"], "plain_us": spread_of(pair.other, 50)["p50"]}
    # What the calls took that nothing came between, on a machine that is busy: the quickest tenth.
    quick = spread_of(pair.ours, 10)["p10"] - spread_of(pair.other, 10)["p10"]
    return found | {"quick_calls_us": quick}


@contextmanager
def _clients(port: int) -> Iterator[tuple[redis.Redis, redis.Redis]]:
    with redis.Redis(port=port) as plain, redis.Redis(port=port) as inner:
        yield plain, antipode_redis.wrap(inner, store="blog-posts")


def _sync(port: int, writes: int) -> Pair:
    """Single calls in turns, each timed by the wall: the server's part and the network's count."""
    pair = Pair([], [])
    with _clients(port) as (plain, wrapped):
        for _ in range(50):
            with antipode.scope():
                plain.set("warm", BODY), wrapped.set("warm", BODY)
        for start in range(0, writes, WRITES_A_REQUEST):
            with antipode.scope():
                for number in range(start, start + WRITES_A_REQUEST):
                    turns = [(wrapped.set, pair.ours), (plain.set, pair.other)]
                    for call, times in turns if number % 2 else reversed(turns):
                        times.append(_timed(call, f"post:{number % 100}"))
    return pair


def _timed(call: Callable[[str, bytes], object], key: str) -> float:
    start = time.perf_counter_ns()
    call(key, BODY)
    return (time.perf_counter_ns() - start) / 1000


async def _async(port: int, writes: int) -> Pair:
    pair = Pair([], [])
    async with redis.asyncio.Redis(port=port) as plain, redis.asyncio.Redis(port=port) as inner:
        wrapped = antipode_redis.wrap(inner, store="blog-posts")
        for _ in range(50):
            with antipode.scope():
                await plain.set("warm", BODY), await wrapped.set("warm", BODY)
        for start in range(0, writes, WRITES_A_REQUEST):
            with antipode.scope():
                for number in range(start, start + WRITES_A_REQUEST):
                    turns = [(wrapped.set, pair.ours), (plain.set, pair.other)]
                    for call, times in turns if number % 2 else reversed(turns):
                        times.append(await _timed_async(call, f"post:{number % 100}"))
    return pair


async def _timed_async(call: Callable[[str, bytes], Awaitable[object]], key: str) -> float:
    start = time.perf_counter_ns()
    await call(key, BODY)
    return (time.perf_counter_ns() - start) / 1000
