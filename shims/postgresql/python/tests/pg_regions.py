"""A store in two regions for the tests: wrapped connections to the lab's servers, and barriers on what they wrote."""

from __future__ import annotations

import time
from collections.abc import Callable
from typing import Any

import antipode
import antipode_postgresql
import psycopg
from antipode import BarrierResult, Lineage, Ordered, Verdict
from antipode.shim import Server
from antipode_lab.stores.postgresql import PostgresqlStore
from antipode_postgresql import schema

STORE = "blog-posts"
SLACK_S = 5.0
INSERT = "INSERT INTO posts (key, value) VALUES (%s, 'v')"


def until(condition: Callable[[], object], seconds: float = 20.0) -> None:
    """Polls a condition, with a deadline."""
    deadline = time.monotonic() + seconds
    while not condition():
        assert time.monotonic() < deadline, "the condition did not come true"
        time.sleep(0.005)


def prepare(lab: PostgresqlStore) -> None:
    """What `antipode init` makes, and a table for the tests, at every server."""
    with lab.connect(lab.primary, database="app") as connection:
        for statement in schema.statements("app"):
            connection.execute(statement)
    with lab.connect(lab.primary, user="app") as connection:
        connection.execute("CREATE TABLE posts (key text PRIMARY KEY, value text NOT NULL)")
        for statement in schema.column("posts"):
            connection.execute(statement)
    for name in lab.replicas:
        lab.wait_caught_up(name)


def shows(connection: psycopg.Connection[Any], key: str) -> str | None:
    """What a server has, without Antipode."""
    row = connection.execute("SELECT value FROM posts WHERE key = %s", (key,)).fetchone()
    return None if row is None else str(row[0])


class Posts:
    """One store of the lab, wrapped at every server; region B's readers may use all its replicas."""

    def __init__(self, lab: PostgresqlStore, **options: Any) -> None:
        self.lab = lab
        self.options = options
        self._open: list[psycopg.Connection[Any]] = []
        self._writers: dict[str, psycopg.Connection[Any]] = {}

    def wrap(self, name: str, *, autocommit: bool = True, **options: Any) -> psycopg.Connection[Any]:
        """A wrapped connection to a server."""
        plain = psycopg.connect(self.lab.url(name), autocommit=autocommit, connect_timeout=10)
        self._open.append(plain)
        options = {"replicas": [self.lab.url(each) for each in self.lab.servers], **self.options, **options}
        return antipode_postgresql.wrap(plain, store=STORE, **options)

    def close(self) -> None:
        """Closes every connection that was wrapped."""
        for connection in self._open:
            connection.close()

    def write(self, key: str, value: str = "v", *, at: str | None = None) -> Lineage:
        """Writes through a wrapped connection, at the primary unless said otherwise; the scope's lineage."""
        name = at or self.lab.primary
        wrapped = self._writers.get(name)
        if wrapped is None or wrapped.closed:
            wrapped = self._writers[name] = self.wrap(name)
        with antipode.scope() as scope:
            wrapped.execute(
                "INSERT INTO posts (key, value) VALUES (%s, %s) ON CONFLICT (key) DO UPDATE SET value = excluded.value",
                (key, value),
            )
            return scope.lineage

    def shows(self, name: str, key: str) -> str | None:
        """What a server has, without Antipode."""
        with self.lab.connect(name, user="app") as connection:
            return shows(connection, key)

    def server(self, name: str) -> Server:
        """The store's server."""
        port = f":{self.lab.server(name).port}/"
        [found] = [server for server in antipode.stores()[0].servers() if port in server.address]
        return found

    def at(self, name: str, lineage: Lineage, timeout: float = 1.0) -> Verdict:
        """The verdict at one server, never past its deadline."""
        began = time.monotonic()
        verdict = self.server(name).wait_for(lineage, timeout).verdict
        assert time.monotonic() - began < timeout + SLACK_S, "past its deadline"
        return verdict

    def comes(self, name: str, lineage: Lineage) -> None:
        """Becomes visible at a server, also where it was down for a while and is left out of passes still."""
        until(lambda: self.at(name, lineage, 5.0) is Verdict.VISIBLE, 60.0)

    def look(self, lineage: Lineage, timeout: float = 1.0, **options: Any) -> BarrierResult:
        """A barrier that never raises for a verdict, and never takes longer than its deadline."""
        began = time.monotonic()
        result = antipode.barrier(
            lineage, timeout=timeout, on_timeout="proceed", on_unproven="proceed", stores=[STORE], **options
        )
        assert time.monotonic() - began < timeout + SLACK_S, "past its deadline"
        return result


def proved(scope: antipode.Scope) -> int:
    """The counter of the one position that the scope has; nothing is pending."""
    assert not scope.pending
    [write_id] = scope.lineage.of_store(STORE)
    assert isinstance(write_id.version, Ordered)
    return write_id.version.counter


# Transactions
