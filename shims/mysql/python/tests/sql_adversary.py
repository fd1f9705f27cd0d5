"""MariaDB and MySQL for the adversary (spec SHIM-49): PyMySQL and mysql-connector-python, with and without tracking."""

from __future__ import annotations

import itertools
import re
from collections.abc import Callable, Mapping
from contextlib import closing
from typing import Any, ClassVar

import antipode_mysql
import mysql.connector
import pymysql
from antipode.testing.adversary import Stage
from antipode_lab.stores._sql_store import SqlStore
from pymysql.constants import CLIENT
from sql_regions import Posts, until

INSERT = "INSERT INTO adversary (k) VALUES ('{}')"
SAVES = "RETURNS INT DETERMINISTIC MODIFIES SQL DATA BEGIN INSERT INTO adversary (k) VALUES (x); RETURN 1; END"
CUT_S = 60.0
ROUTINES = (
    "CREATE TABLE IF NOT EXISTS adversary (k VARCHAR(60) PRIMARY KEY)",
    "CREATE TABLE IF NOT EXISTS inbox (k VARCHAR(60))",
    "CREATE TRIGGER IF NOT EXISTS delivers AFTER INSERT ON inbox FOR EACH ROW INSERT INTO adversary (k) VALUES (NEW.k)",
    *(
        f"CREATE FUNCTION IF NOT EXISTS {name}(x VARCHAR(60)) {SAVES}"
        for name in ("book", "записать", "`2if`", "lastval", "`count`")
    ),
    "CREATE PROCEDURE IF NOT EXISTS put(x VARCHAR(60)) INSERT INTO adversary (k) VALUES (x)",
    "CREATE PROCEDURE IF NOT EXISTS put_and_look(x VARCHAR(60)) "
    "BEGIN INSERT INTO adversary (k) VALUES (x); SELECT 1; SELECT 2; END",
    "CREATE PROCEDURE IF NOT EXISTS put_and_begin(x VARCHAR(60)) "
    "BEGIN INSERT INTO adversary (k) VALUES (x); COMMIT; START TRANSACTION; END",
    "CREATE PROCEDURE IF NOT EXISTS put_and_fail(x VARCHAR(60)) "
    "BEGIN INSERT INTO adversary (k) VALUES (x); COMMIT; START TRANSACTION; SIGNAL SQLSTATE '45000'; END",
    "CREATE FUNCTION IF NOT EXISTS look(x VARCHAR(60)) "
    "RETURNS INT READS SQL DATA RETURN (SELECT COUNT(*) FROM adversary WHERE k = x)",
)


def run(client: Any, text: str, words: Any = None) -> list[Any]:
    """Execute a text, and read every result of it; return the first one's rows."""
    with closing(client.cursor()) as cursor:
        cursor.execute(text, words)
        rows = list(cursor.fetchall()) if cursor.description else []
        while cursor.nextset():
            if cursor.description:
                cursor.fetchall()
        return rows


class Client:
    """A wrapped connection."""

    def __init__(self, stage: SqlStage, kind: str, autocommit: bool, *, plain: bool) -> None:
        self.stage = stage
        self._plain = plain
        self._kind = kind
        self._autocommit = autocommit
        self.reopen()

    def reopen(self) -> None:
        """Have another connection."""
        more = {"client_flag": CLIENT.MULTI_STATEMENTS} if self._kind == "pymysql" else {}
        self.plain = self.stage.posts.open(self._kind, "a", autocommit=self._autocommit, **more)
        run(self.plain, "SET SESSION lock_wait_timeout = 1, innodb_lock_wait_timeout = 1")  # others have open ones, too
        self.wrapped: Any = self.plain if self._plain else self.stage.wrap(self.plain)

    def renew(self) -> None:
        """Close the connection in whatever state it is; have another one."""
        self.wrapped.close()
        self.reopen()

    def kill(self) -> None:
        """Have the server end the connection, which it does some time behind its answer."""
        number = self.plain.thread_id() if self._kind == "pymysql" else self.plain.connection_id
        there = f"SELECT 1 FROM information_schema.processlist WHERE id = {number}"
        with closing(self.stage.lab.client("a", autocommit=True)) as other:
            run(other, f"KILL {number}")
            until(lambda: not run(other, there), CUT_S)

    def set_autocommit(self, value: bool) -> None:
        """As each client has it."""
        if self._kind == "pymysql":
            self.wrapped.autocommit(value)
        else:
            self.wrapped.autocommit = value

    def reset(self) -> None:
        """Have the session as it was when it was new; rolls back."""
        if self._kind == "connector":
            self.wrapped.cmd_reset_connection()
        else:
            self.wrapped.ping(reconnect=True)


def _text(text: str) -> Callable[[Client], object]:
    return lambda client: run(client.wrapped, text)


def _write(text: str) -> Callable[[Client, str], object]:
    """Return what executes a text with the row written out."""
    return lambda client, row: run(client.wrapped, text.replace("{}", row))


def _many(client: Client, row: str) -> None:
    with closing(client.wrapped.cursor()) as cursor:
        cursor.executemany("INSERT INTO adversary (k) VALUES (%s)", [(row,), (f"{row}-b",)])


def _call(client: Client, row: str) -> None:
    with closing(client.wrapped.cursor()) as cursor:
        cursor.callproc("put", (row,))


def _prepare(client: Client, row: str) -> None:
    run(client.wrapped, f'PREPARE p FROM "{INSERT.replace("{}", row)}"')
    run(client.wrapped, "EXECUTE p")


def _in_two_phases(*ends: str) -> Callable[[Client, str], object]:
    def write(client: Client, row: str) -> None:
        name = f"'x-{row}'"
        for text in ("XA START {}", INSERT.replace("{}", row), "XA END {}", *ends):
            run(client.wrapped, text.replace("{}", name))

    return write


class SqlStage(Stage):
    """A primary and a replica of a lab; the other replicas of the lab are nobody's."""

    commits_at_once = True
    errors = (pymysql.err.Error, mysql.connector.Error)
    writes: ClassVar = {
        "parameters": lambda client, row: run(client.wrapped, "INSERT INTO adversary (k) VALUES (%s)", (row,)),
        "many": _many,
        "replace": _write("REPLACE INTO adversary (k) VALUES ('{}')"),
        "set": _write("INSERT INTO adversary SET k = '{}'"),
        "select": _write("INSERT INTO adversary (k) SELECT '{}'"),
        "trigger": _write("INSERT INTO inbox VALUES ('{}')"),
        "function": _write("SELECT book('{}')"),
        "function not in ASCII": _write("SELECT записать('{}')"),
        "function that begins with a digit": _write("SELECT `2if`('{}')"),
        "function by a harmless name": _write("SELECT lab.lastval('{}')"),
        "function by a quoted harmless name": _write("SELECT lab.`count`('{}')"),
        "function beside a WITH": _write("WITH `c` (x) AS (SELECT 1) SELECT `book`('{}') FROM c"),
        "function behind a comment": _write("SELECT book/**/('{}')"),
        "function in a variable": _write("SET @a = (SELECT book('{}'))"),
        "do": _write("DO book('{}')"),
        "procedure": _write("CALL put('{}')"),
        "procedure by the client": _call,
        "procedure with results": _write("CALL put_and_look('{}')"),
        "procedure that commits": _write("CALL put_and_begin('{}')"),
        "procedure that commits and fails": _write("CALL put_and_fail('{}')"),
        "text of two": _write(f"{INSERT}; SELECT 1"),
        "text that commits": _write(f"{INSERT}; COMMIT"),
        "text that commits and begins": _write(f"{INSERT}; COMMIT; BEGIN"),
        "text that begins": _write(f"BEGIN; {INSERT}"),
        "text that fails": _write(f"{INSERT}; SELECT nothing"),
        "text that commits and fails": _write(f"{INSERT}; COMMIT; SELECT nothing"),
        "comment that is run": _write("/*!50000 INSERT INTO adversary (k) VALUES ('{}') */"),
        "prepared by text": _prepare,
        "in two phases": _in_two_phases("XA PREPARE {}", "XA COMMIT {}"),
        "in one phase": _in_two_phases("XA COMMIT {} ONE PHASE"),
        "in two phases, rolled back": _in_two_phases("XA PREPARE {}", "XA ROLLBACK {}"),
    }
    acts: ClassVar = {
        "begin": _text("BEGIN"),
        "start": _text("START TRANSACTION"),
        "commit": lambda client: client.wrapped.commit(),
        "rollback": lambda client: client.wrapped.rollback(),
        "commit by text": _text("COMMIT"),
        "rollback by text": _text("ROLLBACK"),
        "commit and chain": _text("COMMIT AND CHAIN"),
        "rollback and chain": _text("ROLLBACK AND CHAIN"),
        "chain from now on": _text("SET completion_type = 1"),
        "savepoint": _text("SAVEPOINT s"),
        "rollback to the savepoint": _text("ROLLBACK TO s"),
        "release the savepoint": _text("RELEASE SAVEPOINT s"),
        "definition": _text("CREATE TEMPORARY TABLE IF NOT EXISTS t (i INT)"),
        "definition that commits": _text("ALTER TABLE inbox COMMENT 'x'"),
        "definition that fails": _text("DROP TABLE nothing"),
        "error": _text("SELECT nothing"),
        "read": _text("SELECT COUNT(*) FROM adversary WHERE k LIKE 'adv%'"),
        "read only": _text("START TRANSACTION READ ONLY"),
        "autocommit": lambda client: client.set_autocommit(True),
        "no autocommit": lambda client: client.set_autocommit(False),
        "autocommit by text": _text("SET autocommit = 1"),
        "no autocommit by text": _text("SET SESSION autocommit = OFF"),
        "reset": lambda client: client.reset(),
        "kill": lambda client: client.kill(),
        "new connection": lambda client: client.renew(),
    }
    reads: ClassVar = {
        "select": lambda reader, row: run(reader, "SELECT 1 FROM adversary WHERE k = %s", (row,)),
        "all": lambda reader, row: (row,) in run(reader, "SELECT k FROM adversary"),
        "with": lambda reader, row: run(
            reader, "WITH x AS (SELECT k FROM adversary) SELECT 1 FROM x WHERE k = %s", (row,)
        ),
        "function": lambda reader, row: run(reader, "SELECT look(%s)", (row,)) != [(0,)],
        "table": lambda reader, row: run(reader, "SELECT /*x*/ * FROM adversary WHERE k = %s FOR UPDATE", (row,)),
    }
    replicas = ("b1",)

    def __init__(self, posts: Posts) -> None:
        self.posts = posts
        self.lab: SqlStore = posts.lab
        self._batches = itertools.count(1)
        self.lab.run("a", *ROUTINES)

    def wrap(self, plain: Any, **options: Any) -> Any:
        """Wrap a connection under the stage's name."""
        return antipode_mysql.wrap(
            plain, store=self.name, replicas=[self.lab.url("b1")], fresh_server_ids=True, **options
        )

    def open(self, kind: int, *, plain: bool = False) -> Client:
        return Client(self, "pymysql" if kind % 2 else "connector", autocommit=kind % 4 < 2, plain=plain)

    def close(self, client: Any) -> None:
        (client.wrapped if isinstance(client, Client) else client).close()

    def reader(self) -> Any:
        return self.wrap(self.posts.open("pymysql", "b1", autocommit=True), wait_on_read=True)

    def rows(self, server: str | None = None) -> set[str]:
        with closing(self.lab.client(server or "a", autocommit=True)) as plain:
            return {str(row[0]) for row in run(plain, "SELECT k FROM adversary")}

    def contents(self) -> Mapping[str, object]:
        with closing(self.lab.client("a", autocommit=True)) as plain:
            kept = run(plain, "SELECT k, (SELECT COUNT(*) FROM inbox i WHERE i.k = a.k) FROM adversary a")
            return {str(name): count for name, count in kept}

    def tell(self, result: Any) -> str:
        return re.sub(r"thread id: \d+", "thread id", super().tell(result))

    def clear(self) -> None:
        self.lab.run("a", "DELETE FROM adversary", "DELETE FROM inbox")

    def cut(self) -> None:
        last = f"batch-{next(self._batches)}"
        self.lab.run("a", f"INSERT INTO adversary (k) VALUES ('{last}')")
        until(lambda: last in self.rows("b1"), CUT_S)
        self.lab.partition("b1")

    def heal(self) -> None:
        self.lab.heal("b1", wait=False)


class MariaDBStage(SqlStage):
    """With what MySQL does not have."""

    writes: ClassVar = {
        **SqlStage.writes,
        "set statement": _write(f"SET STATEMENT max_statement_time = 60 FOR {INSERT}"),
        "execute immediate": _write("EXECUTE IMMEDIATE CONCAT('INSERT INTO adversary (k) VALUES (''', '{}', ''')')"),
        "returning": _write(f"{INSERT} RETURNING k"),
    }


class MySQLStage(SqlStage):
    """With what MariaDB does not have."""

    writes: ClassVar = {**SqlStage.writes, "function by a name of MariaDB's": _write("SELECT lastval('{}')")}
