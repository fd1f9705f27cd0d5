"""Posts in PostgreSQL: a primary in region A, standbys in region B; psycopg's connections, one a thread."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, Final

import psycopg
from antipode_lab.model import StoreState
from tenacity import retry, retry_if_exception_type, stop_after_delay, wait_fixed

from antipode_benchmarks.postnotification.options import STORE, Setup
from antipode_benchmarks.postnotification.stores import Place
from antipode_benchmarks.postnotification.stores._blocking import BlockingPosts

LAB: Final[Mapping[str, Any]] = {}
_OPERATOR: Final = "postgres"


class PostgresqlPosts(BlockingPosts["psycopg.Connection[tuple[Any, ...]]"]):
    """A row a post."""

    def connect(self, url: str) -> psycopg.Connection[tuple[Any, ...]]:
        """A connection on which each statement commits by itself."""
        connection = psycopg.connect(url, autocommit=True)
        if not self.setup.antipode:
            return connection
        import antipode_postgresql  # the baseline does without it

        return antipode_postgresql.wrap(
            connection, store=STORE, wait_on_read=self.setup.wait_on_read, timeout=self.setup.options.timeout
        )

    def put(self, client: psycopg.Connection[tuple[Any, ...]], key: str, body: bytes) -> None:
        """INSERT at the primary."""
        client.execute("INSERT INTO posts (key, body) VALUES (%s, %s)", (key, body))

    def get(self, client: psycopg.Connection[tuple[Any, ...]], key: str) -> bytes | None:
        """SELECT at a standby."""
        row = client.execute("SELECT body FROM posts WHERE key = %s", (key,)).fetchone()
        return None if row is None else bytes(row[0])


open_posts = PostgresqlPosts


def prepare(lab: StoreState) -> Place:
    """Creates the table, and waits until the standbys have it."""
    urls = {name: server.url for name, server in lab.servers.items()}
    with psycopg.connect(urls["a"]) as connection:
        connection.execute("CREATE TABLE posts (key text PRIMARY KEY, body bytea NOT NULL)")
    for url in urls.values():
        _find_table(url)
    login, _, place = urls["a"].partition("://")[2].partition("@")
    return Place(urls, f"postgresql://{_OPERATOR}@{place}", login)


@retry(retry=retry_if_exception_type(psycopg.errors.UndefinedTable), stop=stop_after_delay(30), wait=wait_fixed(0.05))
def _find_table(url: str) -> None:
    with psycopg.connect(url) as connection:
        connection.execute("SELECT FROM posts")


def register(setup: Setup) -> None:
    """follower-notify waits for all of the region's standbys, and has no connection of its own."""
    import antipode_postgresql

    antipode_postgresql.register(STORE, replicas=[setup.posts[name] for name in setup.options.replicas])
