"""The figures of the store's page, measured here: python pg_measure.py [--writes 2000]. Medians of interleaved runs.

Where others use the disk, a log in memory whose flush takes a fixed time (in microseconds) tells more:
TMPDIR=/dev/shm python pg_measure.py --commit-delay 150
"""

from __future__ import annotations

import argparse
import os
import random
import threading
import time
from collections.abc import Callable
from functools import partial
from typing import Any

import antipode
import psycopg
from antipode.testing import isolated
from antipode_lab import Lab
from antipode_lab.stores.postgresql import PostgresqlOptions, PostgresqlStore
from pg_regions import INSERT, Posts, prepare


def timed(action: Callable[[], object]) -> tuple[float, float]:
    """Microseconds that it takes: by the wall, and of this thread's processor time, which a busy machine spares."""
    began, worked = time.perf_counter(), time.thread_time()
    action()
    return (time.perf_counter() - began) * 1e6, (time.thread_time() - worked) * 1e6


def in_transaction(connection: psycopg.Connection[Any], key: str) -> None:
    with connection.transaction():
        connection.execute(INSERT, (key,))


def in_autocommit(connection: psycopg.Connection[Any], key: str) -> None:
    connection.execute(INSERT, (key,))


def commits(posts: Posts, writes: int) -> None:
    """A wrapped commit over a plain one, in pairs, so that a busy machine slows both."""
    for name, way in (("autocommit", in_autocommit), ("transaction", in_transaction)):
        wrapped = posts.wrap("a")
        with psycopg.connect(posts.lab.url("a"), autocommit=True) as plain, antipode.scope():
            ways: dict[psycopg.Connection[Any], list[tuple[float, float]]] = {plain: [], wrapped: []}
            for _ in range(writes):
                for connection in random.sample((plain, wrapped), 2):
                    ways[connection].append(timed(partial(way, connection, f"{name}-{time.time_ns()}")))
            (its, worked), (own, works) = (tuple(map(sorted, zip(*found, strict=True))) for found in ways.values())
            median, quick = writes // 2, writes // 10
            print(f"  {name}: plain {its[median]:.0f} us, wrapped {own[median]:.0f} us", end=", ")
            print(
                f"x {own[median] / its[median]:.2f}; quickest tenths {its[quick]:.0f} and {own[quick]:.0f} us", end=", "
            )
            print(f"x {own[quick] / its[quick]:.2f}; the client's processor time", end=" ")
            print(f"{worked[median]:.0f} and {works[median]:.0f} us")


def wake_ups(posts: Posts, writes: int) -> None:
    """How much later a barrier returns than a reader sees the row, which asks for it all the time.

    It became visible between the reader's last question without it and the first with it: so the first figure is the
    least delay, the second the greatest.
    """
    writer = posts.wrap("a")
    late: list[float] = []
    at_most: list[float] = []
    with posts.lab.connect("b1", user="app") as reader:
        for number in range(writes):
            key = f"wake-{number}-{time.time_ns()}"
            with antipode.scope() as scope:
                writer.execute(INSERT, (key,))
                lineage = scope.lineage
            woken: list[float] = []
            waiter = threading.Thread(
                target=lambda lineage=lineage, woken=woken: woken.append(
                    (antipode.barrier(lineage, timeout=10), time.perf_counter())[1]
                )
            )
            waiter.start()
            unseen = asked = time.perf_counter()
            while reader.execute("SELECT 1 FROM posts WHERE key = %s", (key,)).fetchone() is None:
                time.sleep(0.0002)
                unseen, asked = asked, time.perf_counter()
            seen = time.perf_counter()
            waiter.join()
            late.append((woken[0] - seen) * 1000)
            at_most.append((woken[0] - unseen) * 1000)
    for words, each in (("first seen", late), ("last not seen", at_most)):
        each.sort()
        p50, p95 = each[len(each) // 2], each[len(each) * 95 // 100]
        print(f"  wake-up after the row was {words}: p50 {p50:.2f} ms, p95 {p95:.2f} ms")


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--writes", type=int, default=1000)
    parser.add_argument("--commit-delay", type=int, default=0, help="of the server, in microseconds; with fsync only")
    options = parser.parse_args()
    for fsync in (True, False):
        print(f"fsync {'on' if fsync else 'off'}, load {os.getloadavg()[0]:.1f}")
        settings = {"postgresql": PostgresqlOptions(fsync=fsync)}
        with isolated(), Lab("postgresql", replicas=1, lag="20ms", options=settings) as lab:
            store = lab.get(PostgresqlStore)
            prepare(store)
            if options.commit_delay:
                with store.connect("a") as superuser:
                    superuser.execute(f"ALTER SYSTEM SET commit_delay = {options.commit_delay}")
                    superuser.execute("ALTER SYSTEM SET commit_siblings = 0")
                    superuser.execute("SELECT pg_reload_conf()")
            posts = Posts(store, replicas=[store.url("b1")])
            commits(posts, options.writes)
            wake_ups(posts, options.writes // 10)
            print(f"  beside a row: {len(str(posts.write('size')))} bytes")
            posts.close()


if __name__ == "__main__":
    main()
