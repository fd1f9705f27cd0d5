"""A store in two regions for the tests: wrapped connections to the lab's servers, and barriers on what they wrote."""

from __future__ import annotations

import time
from collections.abc import Callable
from typing import Any

import antipode
import antipode_mysql
import mysql.connector
from aio_client import Blocking, blocking, inner
from antipode import BarrierResult, Lineage, Verdict
from antipode._model.write_id import Ordered
from antipode_lab.stores._sql_store import SqlStore
from antipode_mysql.gtid_sets import GtidSet, epoch_of
from mysql.connector.constants import ClientFlag

STORE = "blog-posts"
SLACK_S = 1.5


def until(condition: Callable[[], object], seconds: float = 20.0) -> None:
    """Polls a condition, with a deadline."""
    deadline = time.monotonic() + seconds
    while not condition():
        assert time.monotonic() < deadline, "the condition did not come true"
        time.sleep(0.005)


def connector(lab: SqlStore, name: str, **arguments: Any) -> Any:
    """A plain connection of mysql-connector-python."""
    settled = {"host": "127.0.0.1", "port": lab.server(name).port, "user": "root", "database": "lab"}
    charset = {"charset": "utf8mb4", "collation": "utf8mb4_general_ci", "use_pure": True, "ssl_disabled": True}
    return mysql.connector.connect(**{**settled, **charset, **arguments})


class Posts:
    """One store of the lab; region B's readers may use all its replicas."""

    def __init__(self, lab: SqlStore, *, tracked: bool = False, **options: Any) -> None:
        self.lab = lab
        self.tracked = tracked
        """Whether connections are opened for being told a commit's id by the server (MySQL's session tracking)."""
        self.options = {"fresh_server_ids": True, **options}
        self._clients: dict[tuple[str, int], Any] = {}

    def wrap(self, plain: Any, **options: Any) -> Any:
        replicas = [self.lab.url(name) for name in self.lab.servers if name != "a"]
        settled = {"replicas": replicas, **self.options, **options}
        wrapped = antipode_mysql.wrap(inner(plain), store=STORE, **settled)
        return Blocking(plain.loop, wrapped) if isinstance(plain, Blocking) else wrapped

    def pymysql(self, name: str, **arguments: Any) -> Any:
        """A plain connection of PyMySQL."""
        flag = arguments.pop("client_flag", 0) | (ClientFlag.SESSION_TRACK if self.tracked else 0)
        return self.lab.client(name, client_flag=flag, **arguments)

    def connector(self, name: str, **arguments: Any) -> Any:
        """A plain connection of mysql-connector-python."""
        flags = {"client_flags": [ClientFlag.SESSION_TRACK]} if self.tracked else {}
        return connector(self.lab, name, **flags, **arguments)

    def aio(self, name: str, **arguments: Any) -> Blocking:
        """A plain asyncio connection of mysql-connector-python."""
        flags = {"client_flags": ClientFlag.get_default() | ClientFlag.SESSION_TRACK} if self.tracked else {}
        return blocking(self.lab, name, **flags, **arguments)

    def open(self, client: str, name: str, **arguments: Any) -> Any:
        """A plain connection of a client: `pymysql`, `connector` or `aio`."""
        return {"pymysql": self.pymysql, "connector": self.connector, "aio": self.aio}[client](name, **arguments)

    def last(self) -> Ordered:
        """The primary's newest transaction."""
        if self.lab.kind == "mariadb":
            domain, server, number = str(self.lab.run("a", "SELECT @@gtid_binlog_pos")[0][0]).split("-")
            return Ordered(f"{domain}-{server}", int(number))
        [(text, uuid)] = self.lab.run("a", "SELECT @@GLOBAL.gtid_executed, @@server_uuid")
        return Ordered(epoch_of(uuid), GtidSet(text).greatest(epoch_of(uuid)))

    def at(self, name: str) -> Any:
        """A wrapped autocommit connection of PyMySQL to a server, as long as that lives."""
        key = (name, self.lab.server(name).pid)
        if key not in self._clients:
            self._clients[key] = self.wrap(self.pymysql(name))
        return self._clients[key]

    def write(self, key: str, value: str = "v", *, at: str | None = None) -> Lineage:
        """Writes a post by the wrapped connection, at the primary unless said otherwise; the scope's lineage."""
        with antipode.scope() as scope, self.at(at or self.lab.primary).cursor() as cursor:
            cursor.execute("REPLACE INTO posts VALUES (%s, %s)", (key, value))
            return scope.lineage

    def shows(self, name: str, key: str) -> str | None:
        """What a server has, without Antipode."""
        with self.lab.client(name) as client, client.cursor() as cursor:
            cursor.execute("SELECT body FROM posts WHERE id = %s", (key,))
            row = cursor.fetchone()
            return None if row is None else str(row[0])

    def look(self, lineage: Lineage, timeout: float = 1.0, **options: Any) -> BarrierResult:
        """A barrier that raises for no verdict, and never takes longer than its deadline."""
        began = time.monotonic()
        result = antipode.barrier(
            lineage, timeout=timeout, on_timeout="proceed", on_unproven="proceed", stores=[STORE], **options
        )
        assert time.monotonic() - began < timeout + SLACK_S, "past its deadline"
        return result

    def verdict(self, lineage: Lineage, timeout: float = 1.0) -> Verdict:
        """The verdict for this store."""
        return self.look(lineage, timeout).stores[STORE].verdict


def position(lineage: Lineage) -> Ordered:
    """The only position in a lineage."""
    [write_id] = lineage.of_store(STORE)
    assert isinstance(write_id.version, Ordered)
    assert write_id.is_position
    return write_id.version


def make_table(lab: SqlStore) -> None:
    """The table of posts, at every server."""
    lab.run("a", "CREATE TABLE posts (id VARCHAR(64) PRIMARY KEY, body TEXT)")
    lab.wait_links()


def lose(posts: Posts, count: int, target: str = "b1") -> tuple[Lineage, list[Lineage]]:
    """The old primary's last writes never arrive: what was kept, and what was lost. It does not rejoin."""
    kept = posts.write("kept")
    assert posts.verdict(kept, 20) is Verdict.VISIBLE
    lost: list[Lineage] = []
    posts.lab.promote(
        target, lose=lambda _: lost.extend(posts.write(f"lost-{number}", at="a") for number in range(count))
    )
    return kept, lost


def never(posts: Posts, lineage: Lineage) -> None:
    assert posts.verdict(lineage, 0.4) in (Verdict.UNPROVEN, Verdict.TIMED_OUT)
