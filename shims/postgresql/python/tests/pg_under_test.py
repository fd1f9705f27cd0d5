"""PostgreSQL as the conformance kit drives it: values are rows, each with the column `antipode` beside it."""

from __future__ import annotations

import threading
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager, suppress
from typing import Any, ClassVar

import antipode_postgresql
import psycopg
from antipode.shim import Shim
from antipode.testing.under_test import Transaction
from antipode_lab import Lab
from antipode_lab.stores._postgresql_servers import APP_USER, DATABASE
from antipode_lab.stores.postgresql import PostgresqlStore
from antipode_lab.under_test import LabUnderTest
from pg_regions import prepare, shows
from psycopg_pool import ConnectionPool

ROUTINES = """
CREATE FUNCTION kit_value(wanted text) RETURNS text LANGUAGE sql AS 'SELECT value FROM posts WHERE key = wanted';
CREATE VIEW kit_values AS SELECT key, value FROM posts;
CREATE PROCEDURE kit_commits(k text, v text) LANGUAGE plpgsql AS $$ BEGIN
    INSERT INTO posts (key, value) VALUES (k, v);
    COMMIT;
    INSERT INTO posts (key, value) VALUES (k || ' never', v);
    ROLLBACK;
END $$;
"""
UPSERT = "INSERT INTO posts (key, value) VALUES (%s, %s) ON CONFLICT (key) DO UPDATE SET value = excluded.value"


class PostgresqlUnderTest(LabUnderTest):
    """A lab of a primary and two hot standbys; made anew after the cases that spoil it."""

    kind = "postgresql"
    store = PostgresqlStore
    shim: ClassVar[type[Shim]] = antipode_postgresql.PostgresqlShim
    exceptions: ClassVar[Mapping[str, str]] = {}
    rights_cure = "antipode init"
    unfit_cure = "wal_level"

    def prepare(self) -> None:
        prepare(self.lab)
        with self.lab.connect(self.primary, user="app") as connection:
            connection.execute(ROUTINES)
        for name in self.lab.replicas:
            self.lab.wait_caught_up(name)

    def begin(self) -> None:
        self._plain: list[psycopg.Connection[Any]] = []
        self._looking: dict[str, psycopg.Connection[Any]] = {}
        self._local = threading.local()
        for name in self.lab.servers:
            self._client(name)

    def _client(self, name: str) -> psycopg.Connection[Any]:
        """This thread's wrapped connection to a server; a lost one is replaced, as a pool does."""
        clients: dict[str, psycopg.Connection[Any]] = self._local.__dict__.setdefault("clients", {})
        if name not in clients or clients[name].closed:
            plain = psycopg.connect(self.lab.url(name), autocommit=True, connect_timeout=10)
            self._plain.append(plain)
            urls = [self.lab.url(replica) for replica in self.replicas]
            clients[name] = antipode_postgresql.wrap(plain, store=self.name, replicas=urls, rest="column")
        return clients[name]

    def _again(self, name: str, ask: Callable[[psycopg.Connection[Any]], Any]) -> Any:
        """Asks on a connection; on another one where the server was started anew since."""
        try:
            return ask(self._client(name))
        except psycopg.OperationalError:
            if not self._client(name).closed:
                raise
            return ask(self._client(name))

    def close_clients(self) -> None:
        for client in [*self._plain, *self._looking.values()]:
            client.close()

    # Data

    def write(self, key: str, value: str) -> None:
        client = self._client(self.primary)
        client.execute(UPSERT, (key, value))

    def read(self, key: str, at: str) -> str | None:
        row = self._again(
            at, lambda client: client.execute("SELECT value, antipode FROM posts WHERE key = %s", (key,)).fetchone()
        )
        return None if row is None else str(row[0])

    def look(self, key: str, at: str) -> str | None:
        for _ in range(2):
            if at not in self._looking or self._looking[at].closed:
                self._looking[at] = self.lab.connect(at, user="app")
            with suppress(psycopg.OperationalError):
                return shows(self._looking[at], key)
        raise AssertionError(f"{at} does not answer")

    def delete(self, key: str) -> None:
        self._client(self.primary).execute("DELETE FROM posts WHERE key = %s", (key,))

    def raw_write(self, key: str, value: str) -> None:
        with self.lab.connect(self.primary, user="app") as connection:
            connection.execute(UPSERT, (key, value))

    def write_nothing(self) -> None:
        done = self._client(self.primary).execute("DELETE FROM posts WHERE key = 'never there'")
        assert done.rowcount == 0

    @contextmanager
    def transaction(self) -> Iterator[Transaction]:
        client = self._client(self.primary)
        with client.transaction():
            yield _Transaction(client)

    def commits_inside(self) -> Mapping[str, Callable[[str, str], None]]:
        def run(*texts: str) -> Callable[[str, str], None]:
            def write(key: str, value: str) -> None:
                client = self._client(self.primary)
                for text in texts:
                    client.execute(text.format(f"INSERT INTO posts (key, value) VALUES ('{key}', '{value}')"))

            return write

        def in_a_block(key: str, value: str) -> None:
            client = self._client(self.primary)
            with client.transaction(force_rollback=True):
                client.execute(UPSERT, (key, value))
                client.execute("COMMIT; BEGIN")

        def in_a_procedure(key: str, value: str) -> None:
            self._client(self.primary).execute("CALL kit_commits(%s, %s)", (key, value))

        return {
            "COMMIT AND CHAIN": run("BEGIN", "{}", "COMMIT AND CHAIN", "ROLLBACK"),
            "several statements": run("BEGIN; {}; COMMIT; BEGIN", "ROLLBACK"),
            "one text": run("BEGIN; {}; COMMIT; BEGIN; ROLLBACK"),
            "procedure": in_a_procedure,
            "block": in_a_block,
        }

    # More clients

    def wrap_client(
        self, server: str, *, replicas: Sequence[str] | None = None, wait_on_read: bool = False
    ) -> psycopg.Connection[Any]:
        plain = psycopg.connect(self.lab.url(server), autocommit=True, connect_timeout=10)
        self._plain.append(plain)
        urls = None if replicas is None else [self.lab.url(replica) for replica in replicas]
        return antipode_postgresql.wrap(plain, store=self.name, replicas=urls, rest="column", wait_on_read=wait_on_read)

    def reads(self, client: Any) -> Mapping[str, Callable[[str], object]]:
        def first(text: str) -> Callable[[str], object]:
            def read(key: str) -> object:
                return client.execute(text, (key,)).fetchone()[0]

            return read

        def among_several(key: str) -> object:
            cursor = client.execute(f"SELECT 1; SELECT value FROM posts WHERE key = '{key}'")
            cursor.nextset()
            return cursor.fetchone()[0]

        def prepared(key: str) -> object:
            client.execute("DEALLOCATE ALL")
            client.execute("PREPARE kit AS SELECT value FROM posts WHERE key = $1")
            return client.execute(f"EXECUTE kit('{key}')").fetchone()[0]

        def copied(key: str) -> object:
            with client.cursor().copy(f"COPY (SELECT value FROM posts WHERE key = '{key}') TO STDOUT") as copy:
                return b"".join(copy).decode().strip()

        def by_a_cursor(key: str) -> object:
            cursor = client.cursor("kit_read", withhold=True)
            found = cursor.execute("SELECT value FROM posts WHERE key = %s", (key,)).fetchone()[0]
            cursor.close()  # not where it waited in vain: psycopg asks the server, which may be frozen
            return found

        return {
            "SELECT": first("SELECT value FROM posts WHERE key = %s"),
            "function": first("SELECT kit_value(%s)"),
            "view": first("SELECT value FROM kit_values WHERE key = %s"),
            "VALUES": first("VALUES ((SELECT value FROM posts WHERE key = %s))"),
            "several statements": among_several,
            "EXECUTE": prepared,
            "COPY": copied,
            "cursor": by_a_cursor,
            "stream": lambda key: next(client.cursor().stream("SELECT value FROM posts WHERE key = %s", (key,)))[0],
        }

    def counts(self, client: Any) -> Mapping[str, Callable[[str], object]]:
        def first(text: str) -> Callable[[str], object]:
            return lambda key: client.execute(text, (key,)).fetchone()[0]

        return {
            "count": first("SELECT count(*) FROM posts WHERE key = %s"),
            "EXISTS": first("SELECT EXISTS (SELECT FROM posts WHERE key = %s)"),
            "rowcount": lambda key: client.execute("SELECT FROM posts WHERE key = %s", (key,)).rowcount,
        }

    @contextmanager
    def past_moment(self, client: Any, key: str) -> Iterator[Callable[[], object]]:
        with client.cursor("kit_past", withhold=True) as cursor:
            cursor.execute("SELECT value FROM posts WHERE key = %s", (key,))
            yield lambda: cursor.fetchone()[0]

    def list_port(self, port: int) -> None:
        antipode_postgresql.register(self.name, replicas=[f"postgresql://{APP_USER}@127.0.0.1:{port}/{DATABASE}"])

    # Links and servers

    def restart(self, server: str) -> None:
        for client in self._plain:  # as a pool does that finds them lost
            client.close()
        self.lab.restart(server)

    # Troubles

    def write_with_unknown_outcome(self, key: str, value: str) -> None:
        client = self._client(self.primary)
        timer = threading.Timer(0.3, self._cut_off, args=(client.info.backend_pid,))
        with self.lab.connect(self.primary, database="app", autocommit=False) as other:
            other.execute("LOCK TABLE posts IN EXCLUSIVE MODE")
            timer.start()
            try:
                client.execute(UPSERT, (key, value))
            finally:
                timer.join()
                other.rollback()

    def _cut_off(self, pid: int) -> None:
        with self.lab.connect(self.primary) as connection:
            connection.execute("SELECT pg_terminate_backend(%s)", (pid,))

    def write_refused(self, key: str) -> None:
        self._client(self.primary).execute("INSERT INTO posts (key) VALUES (%s)", (key,))

    def write_without_rights(self, key: str, value: str) -> None:
        with self.lab.connect(self.primary, database="app") as connection:
            connection.execute("DROP ROLE IF EXISTS plain")
            connection.execute("CREATE ROLE plain LOGIN")
            connection.execute("GRANT SELECT, INSERT, UPDATE ON posts TO plain")
        try:
            with psycopg.connect(self.lab.url(self.primary, user="plain"), autocommit=True) as plain:
                client = antipode_postgresql.wrap(plain, store=self.name)
                client.execute(UPSERT, (key, value))
        finally:
            with self.lab.connect(self.primary, database="app") as connection:
                connection.execute("DROP OWNED BY plain")
                connection.execute("DROP ROLE plain")

    def wrap_unused(self, server: str) -> object:
        return antipode_postgresql.wrap(ConnectionPool(self.lab.url(server), open=False), store=self.name)

    def wrap_unfit(self) -> None:
        options = {"postgresql": {"config": {"wal_level": "minimal", "max_wal_senders": "0"}, "alone": True}}
        with Lab("postgresql", options=options) as lab:
            with psycopg.connect(lab.get(PostgresqlStore).url("a")) as plain:
                antipode_postgresql.wrap(plain, store="alone")


class _Transaction:
    def __init__(self, client: psycopg.Connection[Any]) -> None:
        self._client = client

    def read(self, key: str) -> object:
        return self._client.execute("SELECT value FROM posts WHERE key = %s", (key,)).fetchone()

    def write(self, key: str, value: str) -> None:
        self._client.execute(UPSERT, (key, value))
