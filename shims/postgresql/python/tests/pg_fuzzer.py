"""The failover fuzzer on real PostgreSQL servers (spec EPOCH-27). By hand: python pg_fuzzer.py --runs 100 --seed 1"""

from __future__ import annotations

import random
import sys
import threading
from collections.abc import Callable, Hashable, Iterator
from contextlib import contextmanager, suppress
from typing import Any

import antipode_postgresql
import psycopg
from antipode.testing.failover import FailoverDriver, Tally, command_line, run
from antipode_lab import Lab
from antipode_lab.failover import LabDriver
from antipode_lab.stores.postgresql import PostgresqlStore
from pg_regions import prepare, shows

NAMES = ("a", "b1", "b2")
ASYNC = "SET synchronous_commit = off"


class PostgresqlDriver(LabDriver):
    """One lab of a primary and two hot standbys."""

    may_crash_primary = True

    def __init__(self, seed: int) -> None:
        self._chance = random.Random(seed)
        self._local = threading.local()
        self._open: list[psycopg.Connection[Any]] = []

    def __enter__(self) -> PostgresqlDriver:
        self._whole = Lab("postgresql", replicas=2, lag=["2ms", "10ms"]).start()
        self.lab = self._whole.get(PostgresqlStore)
        prepare(self.lab)
        self._urls = [self.lab.url(name) for name in NAMES]
        self._wrapped: dict[str, psycopg.Connection[Any]] = {}
        for name in NAMES:
            self._client(name)
        return self

    def __exit__(self, *_: object) -> None:
        for connection in self._open:
            connection.close()
        self._whole.close()

    def _client(self, name: str) -> psycopg.Connection[Any]:
        found = self._wrapped.get(name)
        if found is None or found.closed:
            plain = psycopg.connect(self.lab.url(name), autocommit=True, connect_timeout=10)
            if self._chance.random() < 0.3:
                plain.execute(ASYNC)
            self._open.append(plain)
            found = antipode_postgresql.wrap(plain, store=self.name, replicas=self._urls)
            self._wrapped[name] = found
        return found

    def address(self, server: str) -> str:
        return f":{self.lab.server(server).port}/"

    # Data

    def write(self, server: str, key: str, value: str) -> None:
        statement = "INSERT INTO posts (key, value) VALUES (%s, %s)"
        for _ in range(3):
            client = self._client(server)
            try:
                if self._chance.random() < 0.5:
                    client.execute(statement, (key, value))
                else:
                    with client.transaction():
                        client.execute("SELECT count(*) FROM posts")
                        client.execute(statement, (key, value))
                return
            except psycopg.OperationalError:
                # The server was started anew since this connection was used last: nothing was sent to it.
                if not client.closed:
                    raise
        raise AssertionError(f"{server} takes no writes")

    def shows(self, server: str, key: str, value: str) -> bool | None:
        for _ in range(2):
            with suppress(psycopg.Error):
                return shows(self._looking(server), key) == value
        return None

    def history(self, server: str) -> Hashable | None:
        for _ in range(2):
            with suppress(psycopg.Error):
                return self._looking(server).execute("SELECT pg_postmaster_start_time()::text").fetchone()
        return None

    def _looking(self, server: str) -> psycopg.Connection[Any]:
        """This thread's plain connection to a server."""
        found: dict[str, psycopg.Connection[Any]] = self._local.__dict__.setdefault("found", {})
        if server not in found or found[server].closed:
            found[server] = psycopg.connect(self.lab.url(server), autocommit=True, connect_timeout=5)
            self._open.append(found[server])
        return found[server]

    def settle_marks(self) -> None:
        """Nothing: the ends of timelines are the server's own knowledge."""

    # Faults

    def restart_replica(self, replica: str, write: Callable[[], None], *, wait: bool) -> None:
        if self._chance.random() < 0.5:
            self.lab.kill(replica)
            write()
            self.lab.restart(replica, wait=wait)
        else:
            write()
            self.lab.restart(replica, crash=True, wait=wait)

    def crash_primary(self, write: Callable[[], None]) -> None:
        """A crash of PostgreSQL loses nothing that was flushed: what was recorded has to be there again."""
        write()
        self.lab.restart(self.lab.primary, crash=True, wait=False)

    def calm(self) -> None:
        self.lab.heal(wait=False)  # one that cannot follow as it is does so once it was re-pointed
        for name in NAMES:
            if name != self.lab.primary:
                self.lab.lag(name, "0ms")
                if name not in self.lab.replicas:
                    self.lab.repoint(name, self.lab.primary)


@contextmanager
def _driver(seed: int) -> Iterator[FailoverDriver]:
    with PostgresqlDriver(seed) as driver:
        yield driver


def fuzz(runs: int, seed: int, say: Callable[[str], object] | None = None) -> Tally:
    """Plays so many runs."""
    return run(_driver, runs, seed, say=say)


if __name__ == "__main__":
    sys.exit(command_line(fuzz, __doc__ or ""))
