"""The figures of the store's page, measured here: python pg_measure.py [--writes 2000]. Medians of interleaved runs."""

from __future__ import annotations

import argparse
import statistics
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


def timed(action: Callable[[], object]) -> float:
    """Microseconds that it takes."""
    began = time.perf_counter()
    action()
    return (time.perf_counter() - began) * 1e6


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
            own, its = [], []
            for _ in range(writes):
                its.append(timed(partial(way, plain, f"{name}-plain-{time.time_ns()}")))
                own.append(timed(partial(way, wrapped, f"{name}-wrapped-{time.time_ns()}")))
            before, after = statistics.median(its), statistics.median(own)
            print(f"  {name}: plain {before:.0f} us, wrapped {after:.0f} us, x {after / before:.2f}")


def wake_ups(posts: Posts, writes: int) -> None:
    """How much later a barrier returns than a reader that asks for the row all the time."""
    writer = posts.wrap("a")
    late: list[float] = []
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
            while reader.execute("SELECT 1 FROM posts WHERE key = %s", (key,)).fetchone() is None:
                time.sleep(0.0002)
            seen = time.perf_counter()
            waiter.join()
            late.append((woken[0] - seen) * 1000)
    late.sort()
    print(f"  wake-up over visibility: p50 {late[len(late) // 2]:.2f} ms, p95 {late[len(late) * 95 // 100]:.2f} ms")


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--writes", type=int, default=1000)
    options = parser.parse_args()
    for fsync in (True, False):
        print(f"fsync {'on' if fsync else 'off'}")
        settings = {"postgresql": PostgresqlOptions(fsync=fsync)}
        with isolated(), Lab("postgresql", replicas=1, lag="20ms", options=settings) as lab:
            store = lab.get(PostgresqlStore)
            prepare(store)
            posts = Posts(store, replicas=[store.url("b1")])
            commits(posts, options.writes)
            wake_ups(posts, options.writes // 10)
            print(f"  beside a row: {len(str(posts.write('size')))} bytes")
            posts.close()


if __name__ == "__main__":
    main()
