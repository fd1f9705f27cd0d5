"""Waiting on a real Redis replica: how soon a barrier wakes up, and what waiting costs the server."""

from __future__ import annotations

import asyncio
import time
from bisect import bisect_left
from collections.abc import Iterator

import antipode
import antipode_redis
import redis
from antipode import Lineage
from antipode._base.settings import settings
from antipode._model.write_id import WriteId
from antipode_lab import Lab
from antipode_lab.processes import wait_until

from antipode_benchmarks.micro.figures import Figure, rank
from antipode_benchmarks.micro.process import fresh
from antipode_benchmarks.micro.writer import STORE, Writer

RATE = 500.0
AHEAD = 3
"""A barrier waits for the position that the writer reaches so many writes later: nothing has to lag for that."""
DEADLINE_S = 10.0
SETTLE_S, WINDOW_S = 1.0, 3.0


def figures(lab: Lab, seconds: float) -> Iterator[Figure]:
    """All figures of this group. The replica follows its primary without a proxy between them."""
    yield from _requests(lab)
    _directly(lab)
    replica = lab.redis.server("b1")
    for name, url, push in (
        ("push", replica.url, True),
        ("poll", _without_tracking(lab), False),
    ):
        with fresh():
            antipode_redis.register(STORE, replicas=[url])
            yield from _wake_up(lab, name, seconds, push=push)


def _directly(lab: Lab) -> None:
    """Takes the lab's proxy out of the replication link."""
    with lab.redis.client("b1") as client:
        client.execute_command("REPLICAOF", "127.0.0.1", lab.redis.server("a").port)
        wait_until(
            "the replica follows its primary directly",
            lambda: client.info("replication").get("master_link_status") == "up",
        )


def _without_tracking(lab: Lab) -> str:
    """The replica's address for a user who may not have changes pushed."""
    server = lab.redis.server("b1")
    with lab.redis.client("b1") as client:
        client.execute_command("ACL", "SETUSER", "polls", "on", ">polls", "~*", "&*", "+@all", "-client|tracking")
    return f"redis://polls:polls@127.0.0.1:{server.port}"


def _wake_up(lab: Lab, name: str, seconds: float, *, push: bool) -> Iterator[Figure]:
    after_ack: list[float] = []
    after_send: list[float] = []
    most = int(RATE * (seconds + 20))
    with Writer(lab.redis.server("a").url, RATE, most) as writer:
        wait_until("the writer writes", lambda: writer.count > 50 or not writer.alive)
        waits = list(_waits(writer, time.monotonic() + seconds))
        wait_until("the last write is noted", lambda: writer.write(writer.count - 1)[0] >= waits[-1][0])
        writes = [writer.write(number) for number in range(writer.count)]
    positions = [position for position, _, _ in writes]
    for wanted, done in waits:
        _, sent, acknowledged = writes[bisect_left(positions, wanted)]
        after_ack.append((done - acknowledged) / 1e6)
        after_send.append((done - sent) / 1e6)
    poll_ms = settings().poll * 1000
    how = f"with push, at {RATE:g} writes a second" if push else f"without push, at {RATE:g} writes a second"
    for share, at_most in ((50, 1.0), (99, 5.0)) if push else ((50, None), (99, 1.5 * poll_ms)):
        yield Figure(
            f"wake_up_{name}_p{share}",
            f"{share} % of barriers are awake so soon after the write was acknowledged, {how}",
            "ms",
            rank(after_ack, share / 100),
            at_most=at_most,
            beside={
                "after_it_was_sent": rank(after_send, share / 100),
                "barriers": len(after_ack),
                "poll_interval_ms": poll_ms,
            },
        )


def _waits(writer: Writer, until: float) -> Iterator[tuple[int, int]]:
    """Barriers, one after another, for a position that is yet to be written: what each wanted, and when it returned."""
    epoch = writer.epoch
    while time.monotonic() < until:
        count = writer.count
        last, earlier = writer.write(count - 1)[0], writer.write(count - 11)[0]
        wanted = last + (last - earlier) * AHEAD // 10
        lineage = Lineage([WriteId.position(STORE, epoch, wanted)])
        antipode.barrier(lineage, timeout=DEADLINE_S)
        yield wanted, time.monotonic_ns()


def _requests(lab: Lab) -> Iterator[Figure]:
    """Barriers wait for a write that does not come through; the server counts what it is asked meanwhile."""
    lab.redis.partition("b1")
    try:
        for waiting in (1, 100, 1000):
            with fresh():
                antipode_redis.register(STORE, replicas=[lab.redis.server("b1").url])
                with lab.redis.client("a") as client:
                    posts = antipode_redis.wrap(client, store=STORE, replicas=[lab.redis.server("b1").url])
                    with antipode.scope() as scope:
                        posts.set("post:42", b"hi")
                        lineage = scope.lineage
                looks, commands = asyncio.run(_count(lab, lineage, waiting))
            yield Figure(
                f"requests_{waiting}_waiting",
                f"questions to a silent replica while {waiting:,} barrier{'s'[: waiting > 1]} wait",
                "/s",
                looks,
                at_most=25.0,
                beside={"commands_per_s": commands},
            )
    finally:
        lab.redis.heal("b1")


async def _count(lab: Lab, lineage: Lineage, waiting: int) -> tuple[float, float]:
    barriers = [asyncio.create_task(_barrier(lineage)) for _ in range(waiting)]
    store = next(each for each in antipode.stores() if each.name == STORE)
    deadline = time.monotonic() + DEADLINE_S
    while store.parked_tasks < waiting:
        if time.monotonic() > deadline:
            raise TimeoutError(f"{store.parked_tasks} of {waiting} barriers were parked")
        await asyncio.sleep(0.01)
    await asyncio.sleep(SETTLE_S)  # the poll interval has doubled to what it stays at
    with lab.redis.client("b1") as client:
        first, start = _counters(client), time.monotonic()
        await asyncio.sleep(WINDOW_S)
        second, seconds = _counters(client), time.monotonic() - start
    for barrier in barriers:
        barrier.cancel()
    await asyncio.gather(*barriers, return_exceptions=True)
    # Our own question is among them: INFO once, for both counts.
    return (second[0] - first[0] - 1) / seconds, (second[1] - first[1] - 1) / seconds


async def _barrier(lineage: Lineage) -> None:
    await antipode.barrier_async(lineage, timeout=60.0)


def _counters(client: redis.Redis) -> tuple[int, int]:
    """How often the server was asked where it is, and how many commands it has run."""
    found = client.info("all")
    return int(found["cmdstat_info"]["calls"]), int(found["total_commands_processed"])
