"""PostgreSQL for the adversary (spec SHIM-49): psycopg's connections, and most of what is done with transactions.

By hand: python pg_adversary.py --runs 2000 --seed 1
"""

from __future__ import annotations

import asyncio
import itertools
from collections.abc import Callable, Mapping
from typing import Any, ClassVar

import antipode_postgresql
import psycopg
from antipode.testing.adversary import Stage
from antipode.testing.driven import BlockingProxy
from antipode_lab.stores.postgresql import PostgresqlStore
from pg_regions import INSERT

TEXT = "INSERT INTO posts (key, value) VALUES ('{}', 'v')"
PREPARED = "adversary"

ROUTINES = (
    "CREATE FUNCTION book(x text) RETURNS text LANGUAGE sql AS "
    "$$ INSERT INTO posts (key, value) VALUES (x, 'f') RETURNING key $$",
    'CREATE FUNCTION "записать"(x text) RETURNS text LANGUAGE sql AS $$ SELECT book(x) $$',
    "CREATE FUNCTION replace(n int, x text) RETURNS text LANGUAGE sql AS $$ SELECT book(x) $$",
    "CREATE PROCEDURE put(x text) LANGUAGE plpgsql AS "
    "$$ BEGIN INSERT INTO posts (key, value) VALUES (x, 'p'); COMMIT; END $$",
    "CREATE TABLE inbox (key text)",
    "CREATE FUNCTION deliver() RETURNS trigger LANGUAGE plpgsql AS $$ BEGIN PERFORM book(NEW.key); RETURN NEW; END $$",
    "CREATE TRIGGER delivers AFTER INSERT ON inbox FOR EACH ROW EXECUTE FUNCTION deliver()",
)


class Client:
    """A wrapped connection, and what is open on it."""

    def __init__(self, stage: PostgresqlStage, autocommit: bool, *, plain: bool) -> None:
        self._stage = stage
        self._plain = plain
        self._autocommit = autocommit
        self.blocks: list[Any] = []
        self.reopen()

    def reopen(self) -> None:
        """Have another connection."""
        self.plain = self._stage.connect("a", autocommit=self._autocommit)
        self.wrapped: Any = self._stage.drive(self.plain if self._plain else self._stage.wrap(self.plain))
        self.blocks = []

    def renew(self) -> None:
        """Close the connection in whatever state it is; have another one."""
        self.wrapped.close()
        self.reopen()

    def kill(self) -> None:
        """Have the server end the connection."""
        pid = self.plain.info.backend_pid
        with self._stage.lab.connect("a") as other:
            other.execute("SELECT pg_terminate_backend(%s, 5000)", (pid,))

    def enter(self) -> None:
        """Enter a block `connection.transaction()`."""
        block = self.wrapped.transaction()
        block.__enter__()
        self.blocks.append(block)

    def leave(self, error: Exception | None = None) -> None:
        """Leave the innermost block."""
        if self.blocks:
            self.blocks.pop().__exit__(*((None, None, None) if error is None else (type(error), error, None)))

    def commit_in_two_phases(self, ends: str) -> None:
        """Prepare what is open under a name, and end it."""
        name = f"{PREPARED}-{next(self._stage.numbers)}"
        self.wrapped.execute(f"PREPARE TRANSACTION '{name}'")
        self.wrapped.rollback()
        before = self.wrapped.autocommit
        self.set_autocommit(True)
        self.wrapped.execute(f"{ends} PREPARED '{name}'")
        self.set_autocommit(before)

    def set_autocommit(self, value: bool) -> None:
        """As each client has it."""
        if self._stage.is_of_asyncio:
            self.wrapped.set_autocommit(value)
        else:
            self.wrapped.autocommit = value


def _text(text: str) -> Callable[[Client], object]:
    return lambda client: client.wrapped.execute(text)


def _write(text: str) -> Callable[[Client, str], object]:
    """Return what executes a text with the row written out."""
    return lambda client, row: client.wrapped.execute(text.replace("{}", row))


def _copy(client: Client, row: str) -> None:
    with client.wrapped.cursor() as cursor, cursor.copy("COPY posts (key, value) FROM STDIN") as copy:
        copy.write_row((row, "c"))


def _pipeline(client: Client, row: str) -> None:
    with client.wrapped.pipeline():
        client.wrapped.execute("SELECT 1")
        client.wrapped.execute(INSERT, (row,))


def _prepare(client: Client, row: str) -> None:
    for text in ("DEALLOCATE ALL", f"PREPARE put_row AS {TEXT}", "EXECUTE put_row"):
        client.wrapped.execute(text.replace("{}", row))


def _server_cursor(client: Client, row: str) -> None:
    with client.wrapped.cursor(name="adversary") as cursor:
        cursor.execute("SELECT book(%s)", (row,))
        cursor.fetchall()


def _copied(reader: Any, row: str) -> list[Any]:
    with reader.cursor() as cursor, cursor.copy(f"COPY (SELECT 1 FROM posts WHERE key = '{row}') TO STDOUT") as copy:
        return list(copy.rows())


def _many(reader: Any, row: str) -> Any:
    with reader.cursor() as cursor:
        cursor.executemany("SELECT 1 FROM posts WHERE key = %s", [(row,)], returning=True)
        return cursor.fetchone()


def _in_a_pipeline(reader: Any, row: str) -> Any:
    with reader.pipeline():
        return reader.execute("SELECT 1 FROM posts WHERE key = %s", (row,)).fetchone()


def _fetched(reader: Any, row: str) -> Any:
    with reader.transaction(), reader.cursor(name="adversary") as cursor:
        return cursor.execute("SELECT 1 FROM posts WHERE key = %s", (row,)).fetchone()


class PostgresqlStage(Stage):
    """One lab of a primary and a hot standby, prepared."""

    is_of_asyncio = False
    commits_at_once = True
    errors: ClassVar[tuple[type[Exception], ...]] = (psycopg.Error,)
    writes: ClassVar = {
        "parameters": lambda client, row: client.wrapped.execute(INSERT, (row,)),
        "many": lambda client, row: client.wrapped.cursor().executemany(INSERT, [(row,)]),
        "returning": lambda client, row: client.wrapped.execute(f"{INSERT} RETURNING key", (row,)).fetchall(),
        "binary": lambda client, row: client.wrapped.execute(INSERT, (row,), prepare=True, binary=True),
        "with": _write(f"WITH x AS ({TEXT} RETURNING key) SELECT * FROM x"),
        "explain analyze": _write(f"EXPLAIN ANALYZE {TEXT}"),
        "function": lambda client, row: client.wrapped.execute("SELECT book(%s)", (row,)),
        "function not in ASCII": _write("""SELECT "записать"('{}')"""),
        "function by a harmless name": _write("SELECT replace(1, '{}')"),
        "function in a condition": _write("SELECT 1 WHERE book('{}') = ''"),
        "function in values": _write("VALUES (book('{}'))"),
        "trigger": _write("INSERT INTO inbox VALUES ('{}')"),
        "do": _write(f"DO $x$ BEGIN {TEXT}; END $x$"),
        "do that commits": _write(f"DO $x$ BEGIN {TEXT}; COMMIT; END $x$"),
        "do that commits and fails": _write(f"DO $x$ BEGIN {TEXT}; COMMIT; PERFORM 1/0; END $x$"),
        "procedure that commits": _write("CALL put('{}')"),
        "text of two": _write(f"{TEXT}; SELECT 1"),
        "text that commits": _write(f"{TEXT}; COMMIT"),
        "text that commits first": _write(f"COMMIT; {TEXT}"),
        "text that begins": _write(f"BEGIN; {TEXT}"),
        "text of transactions": _write(f"BEGIN; {TEXT}; COMMIT; BEGIN"),
        "text that commits and fails": _write(f"BEGIN; {TEXT}; COMMIT; SELECT 1/0"),
        "text that fails": _write(f"{TEXT}; SELECT 1/0"),
        "comment": _write(f"/* SELECT */ -- x\n {TEXT}"),
        "copy": _copy,
        "pipeline": _pipeline,
        "prepared by text": _prepare,
        "server's cursor": _server_cursor,
    }
    acts: ClassVar = {
        "begin": _text("BEGIN"),
        "commit": lambda client: client.wrapped.commit(),
        "rollback": lambda client: client.wrapped.rollback(),
        "commit by text": _text("COMMIT"),
        "end by text": _text("END"),
        "rollback by text": _text("ROLLBACK"),
        "commit and chain": _text("COMMIT AND CHAIN"),
        "rollback and chain": _text("ROLLBACK AND CHAIN"),
        "savepoint": _text("SAVEPOINT s"),
        "rollback to the savepoint": _text("ROLLBACK TO s"),
        "release the savepoint": _text("RELEASE s"),
        "error": _text("SELECT 1/0"),
        "time-out": _text("SET LOCAL statement_timeout = 5; SELECT pg_sleep(1)"),
        "read": _text("SELECT count(*) FROM posts"),
        "read only": _text("SET TRANSACTION READ ONLY"),
        "serializable": _text("SET TRANSACTION ISOLATION LEVEL SERIALIZABLE"),
        "autocommit": lambda client: client.set_autocommit(True),
        "no autocommit": lambda client: client.set_autocommit(False),
        "enter a block": lambda client: client.enter(),
        "leave a block": lambda client: client.leave(),
        "leave a block by an error": lambda client: client.leave(ValueError("adversary")),
        "leave a block by Rollback": lambda client: client.leave(psycopg.Rollback()),
        "commit in two phases": lambda client: client.commit_in_two_phases("COMMIT"),
        "rollback in two phases": lambda client: client.commit_in_two_phases("ROLLBACK"),
        "discard": _text("DISCARD ALL"),
        "kill": lambda client: client.kill(),
        "new connection": lambda client: client.renew(),
    }
    reads: ClassVar = {
        "select": lambda reader, row: reader.execute("SELECT 1 FROM posts WHERE key = %s", (row,)).fetchone(),
        "with": lambda reader, row: reader.execute(
            "WITH x AS (SELECT key FROM posts) SELECT 1 FROM x WHERE key = %s", (row,)
        ).fetchone(),
        "stream": lambda reader, row: list(reader.cursor().stream("SELECT 1 FROM posts WHERE key = %s", (row,))),
        "text": lambda reader, row: row in shows_all(reader),
        "copy": _copied,
        "many": _many,
        "pipeline": _in_a_pipeline,
        "server's cursor": _fetched,
        "cursor made by hand": lambda reader, row: (
            psycopg.Cursor(reader).execute("SELECT 1 FROM posts WHERE key = %s", (row,)).fetchone()
        ),
        "values": lambda reader, row: (
            reader.execute(f"VALUES ((SELECT key FROM posts WHERE key = '{row}'))").fetchone() != (None,)
        ),
    }
    replicas = ("b1",)

    def __init__(self, lab: PostgresqlStore) -> None:
        self.lab = lab
        self.numbers = itertools.count(1)
        self._loop = asyncio.new_event_loop()
        with lab.connect("a", user="app") as connection:
            for text in ROUTINES:
                connection.execute(text)
        lab.wait_caught_up("b1")

    def connect(self, server: str, **options: Any) -> Any:
        """Return a plain connection to a server."""
        url, options = self.lab.url(server), {"connect_timeout": 10, **options}
        if self.is_of_asyncio:
            return self._loop.run_until_complete(psycopg.AsyncConnection.connect(url, **options))
        return psycopg.connect(url, **options)

    def drive(self, client: Any) -> Any:
        """Return what has a blocking client's ways."""
        return BlockingProxy(client, self._loop) if self.is_of_asyncio else client

    def wrap(self, plain: Any, **options: Any) -> Any:
        """Wrap a connection under the stage's name."""
        return antipode_postgresql.wrap(plain, store=self.name, replicas=[self.lab.url("b1")], **options)

    def open(self, kind: int, *, plain: bool = False) -> Client:
        return Client(self, autocommit=kind % 2 == 0, plain=plain)

    def close(self, client: Any) -> None:
        (client.wrapped if isinstance(client, Client) else client).close()

    def reader(self) -> Any:
        return self.drive(self.wrap(self.connect("b1", autocommit=True), wait_on_read=True))

    def rows(self, server: str | None = None) -> set[str]:
        with self.lab.connect(server or "a", user="app") as connection:
            return shows_all(connection)

    def contents(self) -> Mapping[str, object]:
        with self.lab.connect("a", user="app") as connection:
            kept = connection.execute(
                "SELECT key, ARRAY[value, (SELECT count(*) FROM inbox WHERE inbox.key = posts.key)::text] FROM posts"
            )
            return dict(kept.fetchall())

    def tell(self, result: Any) -> str:
        if not isinstance(result, psycopg.Cursor | BlockingProxy):
            return super().tell(result)
        names = [column.name for column in result.description or ()]
        rows = result.fetchall() if names and names != ["QUERY PLAN"] else ""
        return f"{result.statusmessage}, {result.rowcount}, {names}, {rows}"

    def clear(self) -> None:
        self.numbers = itertools.count(1)
        with self.lab.connect("a", user="app") as connection:
            for (name,) in connection.execute("SELECT gid FROM pg_prepared_xacts").fetchall():
                connection.execute(f"ROLLBACK PREPARED '{name}'")
            connection.execute("DELETE FROM posts")
            connection.execute("DELETE FROM inbox")

    def cut(self) -> None:
        self.lab.wait_caught_up("b1")
        self.lab.partition("b1")

    def heal(self) -> None:
        self.lab.heal("b1", wait=False)


class AsyncPostgresqlStage(PostgresqlStage):
    """The same by psycopg's asyncio connections."""

    is_of_asyncio = True
    reads: ClassVar = {way: read for way, read in PostgresqlStage.reads.items() if way != "cursor made by hand"}


def shows_all(connection: Any) -> set[str]:
    """Return the rows that a connection shows."""
    return {row[0] for row in connection.execute("SELECT key FROM posts").fetchall()}
