"""MariaDB and MySQL as the conformance kit drives them: a table with a lineage's column, PyMySQL's connections."""

from __future__ import annotations

import threading
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager, suppress
from typing import Any, ClassVar
from urllib.parse import urlsplit

import antipode_mysql
import mysql.connector
import pymysql
from aio_client import Blocking, blocking
from antipode.shim import Shim
from antipode.testing.under_test import Transaction
from antipode_lab.stores.mariadb import MariaDBStore
from antipode_lab.stores.mysql import MySQLStore
from antipode_lab.under_test import LabUnderTest
from antipode_mysql import column
from pymysql.constants import CLIENT

ROUTINES = (
    "CREATE FUNCTION kit_value(x VARCHAR(200)) RETURNS TEXT READS SQL DATA RETURN (SELECT v FROM kit WHERE k = x)",
    "CREATE PROCEDURE kit_read(x VARCHAR(200)) SELECT v FROM kit WHERE k = x",
    "CREATE PROCEDURE kit_commits(x VARCHAR(200), y TEXT) BEGIN INSERT INTO kit (k, v) VALUES (x, y); COMMIT; "
    "START TRANSACTION; INSERT INTO kit (k, v) VALUES (CONCAT(x, ' never'), y); END",
    "CREATE VIEW kit_values AS SELECT k, v FROM kit",
)


class SqlUnderTest(LabUnderTest):
    """A lab of a primary and two replicas; made anew after the cases that spoil it."""

    client_flag: ClassVar[int] = 0
    short: ClassVar[float] = 0.3
    """A time-out of the client that passes soon, in seconds."""
    shim: ClassVar[type[Shim]] = antipode_mysql.MySQLShim
    exceptions: ClassVar[Mapping[str, str]] = {
        "missing_rights": "positions and waits need no right: every login may ask for them"
    }

    def prepare(self) -> None:
        self.lab.run("a", "CREATE TABLE kit (k VARCHAR(200) PRIMARY KEY, v TEXT)", *column.statements("kit"), *ROUTINES)
        self.lab.wait_links()

    def begin(self) -> None:
        self._lock = threading.Lock()
        self._local = threading.local()
        self._opened: list[Any] = []
        for name in self.lab.servers:
            self._client(name)

    def _client(self, name: str, *, wrapped: bool = True) -> Any:
        """This thread's connection to a server; a new one for each life of it."""
        known: dict[Any, Any] = self._local.__dict__
        key = (name, self.lab.server(name).pid, wrapped)
        client = known.get(key)
        if client is None or not self.is_open(client):
            client = self.open(name, 10.0)
            if wrapped:
                urls = [self.lab.url(replica) for replica in self.replicas]
                client = self.wrap(client, replicas=urls, rest="native")
            known[key] = client
            with self._lock:
                self._opened.append(client)
        return client

    def close_clients(self) -> None:
        for client in self._opened:
            with suppress(pymysql.MySQLError, mysql.connector.Error):
                client.close()

    # What a client has of its own

    takes_several: ClassVar[bool] = True
    """Whether one text may hold several statements."""

    def open(self, name: str, read_timeout: float) -> Any:
        """A plain autocommit connection."""
        flags = self.client_flag | CLIENT.MULTI_STATEMENTS
        return self.lab.client(name, read_timeout=read_timeout, client_flag=flags)

    def is_open(self, client: Any) -> bool:
        """Whether the connection still serves."""
        return bool(client.open)

    def wrap(self, plain: Any, **options: Any) -> Any:
        """The same connection, recording."""
        return antipode_mysql.wrap(plain, store=self.name, fresh_server_ids=True, **options)

    # Data

    def write(self, key: str, value: str) -> None:
        _put(self._client(self.primary), key, value)

    def read(self, key: str, at: str) -> str | None:
        with self._client(at).cursor() as cursor:
            cursor.execute(f"SELECT v, {column.NAME} FROM kit WHERE k = %s", (key,))
            row = cursor.fetchone()
            return None if row is None else str(row[0])

    def look(self, key: str, at: str) -> str | None:
        with self._client(at, wrapped=False).cursor() as cursor:
            cursor.execute("SELECT v FROM kit WHERE k = %s", (key,))
            row = cursor.fetchone()
            return None if row is None else str(row[0])

    def delete(self, key: str) -> None:
        with self._client(self.primary).cursor() as cursor:
            cursor.execute("DELETE FROM kit WHERE k = %s", (key,))

    def raw_write(self, key: str, value: str) -> None:
        _put(self._client(self.primary, wrapped=False), key, value)

    def write_nothing(self) -> None:
        with self._client(self.primary).cursor() as cursor:
            cursor.execute("DELETE FROM kit WHERE k = %s", (self.new_key("never there"),))
            assert cursor.rowcount == 0

    @contextmanager
    def transaction(self) -> Iterator[Transaction]:
        client = self._client(self.primary)
        with client.cursor() as cursor:
            cursor.execute("BEGIN")
        try:
            yield _Transaction(client)
        except BaseException:
            client.rollback()
            raise
        client.commit()

    def commits_inside(self) -> Mapping[str, Callable[[str, str], None]]:
        def run(*texts: str) -> Callable[[str, str], None]:
            def write(key: str, value: str) -> None:
                client = self._client(self.primary)
                put = f"INSERT INTO kit (k, v) VALUES ('{key}', '{value}')"
                never = f"INSERT INTO kit (k, v) VALUES ('{key} never', '{value}')"
                for text in texts:
                    _all(client, text.format(put=put, never=never))
                client.rollback()

            return write

        def in_a_procedure(key: str, value: str) -> None:
            client = self._client(self.primary)
            _all(client, "BEGIN")
            _all(client, f"CALL kit_commits('{key}', '{value}')")
            client.rollback()

        several = {"several statements": run("BEGIN; {put}; COMMIT; BEGIN; {never}")} if self.takes_several else {}
        chain = run("BEGIN", "{put}", "COMMIT AND CHAIN", "{never}")
        return {"COMMIT AND CHAIN": chain, "procedure": in_a_procedure, **several}

    # More clients

    def wrap_client(self, server: str, *, replicas: Sequence[str] | None = None, wait_on_read: bool = False) -> Any:
        urls = None if replicas is None else [self.lab.url(replica) for replica in replicas]
        plain = self.open(server, 10.0)
        with self._lock:
            self._opened.append(plain)
        return self.wrap(plain, replicas=urls, rest="native", wait_on_read=wait_on_read)

    def reads(self, client: Any) -> Mapping[str, Callable[[str], object]]:
        def last(*texts: str) -> Callable[[str], object]:
            def read(key: str) -> object:
                found: object = None
                for text in texts:
                    found = _all(client, text.format(f"'{key}'"))
                return found

            return read

        prepared: set[str] = set()

        def executed(key: str) -> object:
            if key not in prepared:  # once: that reads nothing, and so waits for nothing
                _all(client, f"PREPARE q FROM \"SELECT v FROM kit WHERE k = '{key}'\"")
                prepared.add(key)
            return _all(client, "EXECUTE q")

        ways = {
            "SELECT": last("SELECT v FROM kit WHERE k = {}"),
            "function": last("SELECT kit_value({})"),
            "view": last("SELECT v FROM kit_values WHERE k = {}"),
            "procedure": last("CALL kit_read({})"),
            "EXECUTE": executed,
            "SET": last("SET @v = (SELECT v FROM kit WHERE k = {})", "SELECT @v"),
        }
        return {**ways, "several": last("DO 1; SELECT v FROM kit WHERE k = {}")} if self.takes_several else ways

    def counts(self, client: Any) -> Mapping[str, Callable[[str], object]]:
        return {
            "COUNT": lambda key: _all(client, f"SELECT COUNT(*) FROM kit WHERE k = '{key}'"),
            "EXISTS": lambda key: _all(client, f"SELECT EXISTS (SELECT * FROM kit WHERE k = '{key}')"),
            "LENGTH": lambda key: _all(client, f"SELECT LENGTH(v) FROM kit WHERE k = '{key}'"),
        }

    @contextmanager
    def past_moment(self, client: Any, key: str) -> Iterator[Callable[[], object]]:
        _all(client, "START TRANSACTION WITH CONSISTENT SNAPSHOT")
        yield lambda: _all(client, f"SELECT v FROM kit WHERE k = '{key}'")
        client.rollback()

    def list_port(self, port: int) -> None:
        url = urlsplit(self.lab.url(self.primary))
        moved = url._replace(netloc=f"{url.netloc.rpartition(':')[0]}:{port}").geturl()
        antipode_mysql.register(self.name, replicas=[moved], fresh_server_ids=True)

    # Links and servers

    def restart(self, server: str) -> None:
        self.lab.restart(server, crash=True)

    # Troubles

    def write_with_unknown_outcome(self, key: str, value: str) -> None:
        client = self.wrap(self.open(self.primary, self.short))
        _put(client, key, "before")  # what a client asks the server once, it has asked
        self.lab.freeze(self.primary)
        try:
            _put(client, key, value)
        finally:
            self.lab.thaw(self.primary)

    def write_refused(self, key: str) -> None:
        with self._client(self.primary).cursor() as cursor:
            cursor.execute("INSERT INTO kit (k, nothing) VALUES (%s, 1)", (key,))

    def wrap_unfit(self) -> None:
        self.lab.config("a", "sync_binlog", "0")
        try:
            antipode_mysql.wrap(self.lab.client("a"), store="unfit", fresh_server_ids=True)
        finally:
            self.lab.config("a", "sync_binlog", "1")


class MariaDBUnderTest(SqlUnderTest):
    """On MariaDB."""

    kind = "mariadb"
    store = MariaDBStore
    unfit_cure = "SET GLOBAL sync_binlog=1"


class MySQLUnderTest(SqlUnderTest):
    """On MySQL, which is asked for positions."""

    kind = "mysql"
    store = MySQLStore
    unfit_cure = "SET PERSIST sync_binlog=1"


class TrackedMySQLUnderTest(MySQLUnderTest):
    """On MySQL, which tells a commit's id in its own answer."""

    client_flag = CLIENT.SESSION_TRACK


class AioMariaDBUnderTest(MariaDBUnderTest):
    """By asyncio connections, each in a loop of its own."""

    short = 1
    exceptions: ClassVar[Mapping[str, str]] = {
        **SqlUnderTest.exceptions,
        "open_transaction": "what the kit publishes is another task's than what it has in hand, which is no violation "
        "(SCOPE-18); test_aio.py does both in one task",
    }

    takes_several = False

    def open(self, name: str, read_timeout: float) -> Any:
        return blocking(self.lab, name, autocommit=True, read_timeout=int(read_timeout))

    def is_open(self, client: Any) -> bool:
        return bool(client.is_connected())

    def wrap(self, plain: Any, **options: Any) -> Any:
        return Blocking(plain.loop, super().wrap(plain.inner, **options))


class _Transaction:
    def __init__(self, client: Any) -> None:
        self._client = client

    def read(self, key: str) -> object:
        with self._client.cursor() as cursor:
            cursor.execute("SELECT v FROM kit WHERE k = %s", (key,))
            return cursor.fetchone()

    def write(self, key: str, value: str) -> None:
        _put(self._client, key, value)


def _put(client: Any, key: str, value: str) -> None:
    with client.cursor() as cursor:
        cursor.execute("INSERT INTO kit (k, v) VALUES (%s, %s) ON DUPLICATE KEY UPDATE v = VALUES(v)", (key, value))


def _all(client: Any, text: str) -> object:
    """Runs a text, and reads all that it returns; the first column of its last row."""
    found: object = None
    with client.cursor() as cursor:
        cursor.execute(text)
        while True:
            if cursor.description:
                rows = cursor.fetchall()
                found = rows[-1][0] if rows else None
            if not cursor.nextset():
                return found
