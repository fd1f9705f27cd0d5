"""Posts in MariaDB or MySQL: a primary in region A, replicas in region B; PyMySQL's connections, one a thread."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, Final
from urllib.parse import urlsplit

import pymysql
from antipode_lab.model import StoreState
from pymysql.constants import CLIENT
from tenacity import retry, retry_if_exception_type, stop_after_delay, wait_fixed

from antipode_benchmarks.postnotification.options import STORE, Setup
from antipode_benchmarks.postnotification.stores import Place
from antipode_benchmarks.postnotification.stores._blocking import BlockingPosts

LAB: Final[Mapping[str, Any]] = {"fresh_server_ids": True}


class SqlPosts(BlockingPosts["pymysql.Connection[Any]"]):
    """A row a post."""

    def connect(self, url: str) -> pymysql.Connection[Any]:
        """A connection on which each statement commits by itself."""
        connection = _connect(url)
        if not self.setup.antipode:
            return connection
        import antipode_mysql  # the baseline does without it

        return antipode_mysql.wrap(
            connection,
            store=STORE,
            fresh_server_ids=True,
            wait_on_read=self.setup.wait_on_read,
            timeout=self.setup.options.timeout,
        )

    def put(self, client: pymysql.Connection[Any], key: str, body: bytes) -> None:
        """INSERT at the primary."""
        with client.cursor() as cursor:
            cursor.execute("INSERT INTO posts (id, body) VALUES (%s, %s)", (key, body))

    def get(self, client: pymysql.Connection[Any], key: str) -> bytes | None:
        """SELECT at a replica."""
        with client.cursor() as cursor:
            cursor.execute("SELECT body FROM posts WHERE id = %s", (key,))
            row = cursor.fetchone()
        return None if row is None else bytes(row[0])


open_posts = SqlPosts


def _connect(url: str) -> pymysql.Connection[Any]:
    place = urlsplit(url)
    return pymysql.connect(
        host=place.hostname,
        port=place.port or 3306,
        user=place.username,
        password=place.password or "",
        database=place.path.strip("/"),
        autocommit=True,
        client_flag=CLIENT.SESSION_TRACK,  # so that MySQL tells a commit's id in its own answer
    )


def prepare(lab: StoreState) -> Place:
    """Creates the table, and waits until the replicas have it."""
    urls = {name: server.url for name, server in lab.servers.items()}
    with _connect(urls["a"]) as connection, connection.cursor() as cursor:
        cursor.execute("CREATE TABLE posts (id VARCHAR(64) PRIMARY KEY, body LONGBLOB NOT NULL)")
    for url in urls.values():
        _find_table(url)
    return Place(urls)


@retry(retry=retry_if_exception_type(pymysql.err.ProgrammingError), stop=stop_after_delay(30), wait=wait_fixed(0.05))
def _find_table(url: str) -> None:
    with _connect(url) as connection, connection.cursor() as cursor:
        cursor.execute("SELECT 1 FROM posts LIMIT 0")


def register(setup: Setup) -> None:
    """follower-notify waits for all of the region's replicas, and has no connection of its own."""
    import antipode_mysql

    replicas = [setup.posts[name] for name in setup.options.replicas]
    antipode_mysql.register(STORE, replicas=replicas, fresh_server_ids=True)
