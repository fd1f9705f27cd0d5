"""Redis and PostgreSQL that take writes all the time, for `busy`."""

from __future__ import annotations

import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from multiprocessing.connection import Connection
from multiprocessing.synchronize import Event
from typing import Any, Final

import antipode_postgresql
import antipode_redis
import psycopg
import redis
from antipode_lab import Lab
from antipode_lab.stores.postgresql import PostgresqlStore

from antipode_benchmarks.micro.busy import LAG, LOOK_S, RATE, STORE, Look, Place
from antipode_benchmarks.micro.process import fresh
from antipode_benchmarks.postnotification import servers, stores

_BACKENDS: Final = 4
_COUNTED_S: Final = 3.0
"""PostgreSQL's sessions tell their statements once a second."""


def _paced(write: Callable[[int], object], over: Event) -> None:
    """Write at the rate of the load, `write(count)` each time for what is due."""
    begun, done = time.monotonic(), 0
    while not over.is_set():
        due = int((time.monotonic() - begun) * RATE) - done
        if due > 0:
            write(min(due, 50))
            done += min(due, 50)
        time.sleep(0.002)


def _looked(position: Callable[[], int], over: Event, answer: Connection) -> None:
    """Look how far a replica is, again and again; answer the looks that saw it go on, and each one's before."""
    answer.send(None)
    looks: list[Look] = []
    while not over.is_set():
        began = time.monotonic_ns()
        found = position()
        looks.append(Look(began, time.monotonic_ns(), found))
        time.sleep(LOOK_S)
    answer.send(looks)


def load_redis(url: str, over: Event, answer: Connection) -> None:
    """Write to a Redis all the time."""
    with redis.Redis.from_url(url) as client:

        def write(count: int) -> None:
            with client.pipeline(transaction=False) as commands:
                for number in range(count):
                    commands.set(f"user:{number}", b"x" * 100)
                commands.execute()

        answer.send(None)
        _paced(write, over)
    answer.send([])


def observe_redis(url: str, over: Event, answer: Connection) -> None:
    """Look how far a replica is, by another command than the shim's."""
    with redis.Redis.from_url(url) as client:
        _looked(lambda: int(client.execute_command("ROLE")[4]), over, answer)


@contextmanager
def redis_place() -> Iterator[Place]:
    """A primary and a replica."""
    with Lab("redis", lag=LAG) as lab, fresh(), lab.redis.client("a") as client, lab.redis.client("b1") as replica:
        primary, url = lab.redis.server("a").url, lab.redis.server("b1").url
        posts = antipode_redis.wrap(client, store=STORE, replicas=[url])
        yield Place(
            "Redis",
            primary,
            url,
            load_redis,
            observe_redis,
            lambda: posts.set("post", b"hi"),
            lambda: int(replica.info("commandstats")["cmdstat_info"]["calls"]),
            25.0,
            5.0,
        )


def load_postgresql(url: str, over: Event, answer: Connection) -> None:
    """Commit at a PostgreSQL all the time: each session's loop is at the server."""
    connections = [psycopg.connect(url, autocommit=True) for _ in range(_BACKENDS)]
    loop = "DO $$ BEGIN FOR n IN 1..{} LOOP INSERT INTO load (body) VALUES (repeat('x', 100)); COMMIT; END LOOP; END $$"

    def write(count: int) -> None:
        share = -(-count // _BACKENDS)
        for each in connections:
            each.pgconn.send_query(loop.format(share).encode())
        for each in connections:
            while each.pgconn.get_result() is not None:
                pass

    answer.send(None)
    _paced(write, over)
    for each in connections:
        each.close()
    answer.send([])


def observe_postgresql(url: str, over: Event, answer: Connection) -> None:
    """Look how far a standby has replayed, in a database of its own: its statements do not count."""
    with psycopg.connect(url, autocommit=True) as connection:
        row: Any = "SELECT pg_last_wal_replay_lsn() - '0/0'::pg_lsn"
        _looked(lambda: int(connection.execute(row).fetchone()[0]), over, answer)  # type: ignore[index]


@contextmanager
def postgresql_place() -> Iterator[Place]:
    """A primary and a standby."""
    with Lab("postgresql", lag=LAG) as lab, fresh():
        urls = {name: server.url for name, server in lab.endpoints.stores["postgresql"].servers.items()}
        login, _, at = urls["a"].partition("://")[2].partition("@")
        operator, other = f"postgresql://postgres@{at}", f"postgresql://postgres@{urls['b1'].partition('@')[2]}"
        with psycopg.connect(urls["a"], autocommit=True) as plain:
            plain.execute("CREATE TABLE load (key bigserial PRIMARY KEY, body text)")
            plain.execute("CREATE TABLE posts (key bigserial PRIMARY KEY, body text)")
            servers.prepare_antipode(stores.Place(urls, operator, login))
            store = lab["postgresql"]
            assert isinstance(store, PostgresqlStore)
            store.wait_caught_up("b1")
            name = plain.info.dbname
            posts = antipode_postgresql.wrap(plain, store=STORE, replicas=[urls["b1"]])
            elsewhere = other.replace(f"/{name}", "/postgres")
            with psycopg.connect(elsewhere, autocommit=True) as counter:

                def count() -> int:
                    time.sleep(_COUNTED_S / 2)
                    counter.execute("SELECT pg_stat_clear_snapshot()")
                    row = counter.execute(
                        "SELECT xact_commit FROM pg_stat_database WHERE datname = %s", (name,)
                    ).fetchone()
                    assert row is not None
                    return int(row[0])

                yield Place(
                    "PostgreSQL",
                    urls["a"],
                    elsewhere,
                    load_postgresql,
                    observe_postgresql,
                    lambda: posts.execute("INSERT INTO posts (body) VALUES ('hi')"),
                    count,
                    100.0,
                    2.0,
                )
