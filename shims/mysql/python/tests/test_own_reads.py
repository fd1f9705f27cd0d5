"""Stale reads of a replica, confirmed by reads of the shim's own (REC-22), and which ones are sent (REC-23)."""

from __future__ import annotations

import json
import time
from collections.abc import Callable, Iterator
from contextlib import closing
from dataclasses import replace
from pathlib import Path
from typing import Any
from uuid import uuid4

import antipode
import pymysql
import pytest
from antipode import records
from antipode.repeatable_sql import BEFORE_PARENTHESIS
from antipode.testing.recorded import Recorded
from antipode_mysql import repeating
from antipode_mysql.repeating import may_be_repeated, own_reads
from antipode_mysql.session_settings import SessionSettings
from sql_regions import Posts

VECTORS = Path(__file__).parents[4] / "spec" / "vectors" / "repeatable-statements.json"
CLIENTS = ["pymysql", "connector", "aio"]
SELECT = "SELECT body FROM posts WHERE id = %s"
STALE, BEHIND = ("stale", "repeat"), ("behind", None)


def cases() -> list[Any]:
    found = json.loads(VECTORS.read_text("utf-8"))
    assert found["kind"] == "repeatable-statements"
    mine = [case for case in found["cases"] if "mysql" in case["dialects"]]
    assert mine
    return [pytest.param(case, id=case["id"]) for case in mine]


@pytest.mark.parametrize("case", cases())
def test_which_statements_may_be_repeated(case: dict[str, Any]) -> None:
    """REC-23."""
    assert may_be_repeated(case["statement"].encode()) is case["repeatable"]


def test_no_other_word_may_stand_before_a_parenthesis() -> None:
    """REC-23: the cases `word-…` are all of them."""
    statements = [case.values[0]["statement"] for case in cases() if str(case.id).startswith("word-")]
    named = [statement.split()[2] for statement in statements if statement.startswith("SELECT a ")]
    assert {word.upper().encode() for word in named} == BEFORE_PARENTHESIS


@pytest.mark.parametrize(
    ("statement", "repeatable"),
    [
        (rb"SELECT a FROM b WHERE c = 'x\ny' AND d = 1", True),
        (rb"SELECT a FROM b WHERE c = '\' OR now() OR d = '", False),
        (rb"SELECT a FROM b WHERE c = '\' OR d = ' OR now() -- '", False),
        (rb'SELECT "\" OR now() OR ", a FROM b', False),
        (rb"SELECT a FROM b WHERE c = '\' OR d = \" OR now() -- \"'", False),
        (rb"SELECT a FROM b --now()", False),
        (rb"SELECT a - -1 FROM b", True),
        (b"SELECT a FROM b --\x01 now()", False),
        (b"SELECT a FROM b WHERE c = '\xe4'", False),
        (b"SELECT a FROM b -- x\0\n", False),
        (rb"SELECT a FROM b WHERE c = \N", False),
    ],
)
def test_what_depends_on_the_session_is_not_repeated(statement: bytes, repeatable: bool) -> None:
    """REC-23: on its `sql_mode` or character set, or on how a server reads it."""
    assert may_be_repeated(statement) is repeatable


@pytest.mark.parametrize("part", ["/*", "(", "'a''", '"a""', "`a``", "1", "a.", "/* */", "''", "- ", "\\"], ids=repr)
def test_a_long_statement_costs_what_its_length_does(part: str) -> None:
    """REC-23: whatever stands in it."""
    begun = time.thread_time()
    may_be_repeated(f"SELECT 1 + {part * (60_000 // len(part))} FOR".encode())
    assert time.thread_time() - begun < 5


@pytest.mark.parametrize(
    ("sql", "changed"),
    [
        (b"SET AUTOCOMMIT = 1", False),
        (b"SET @@session.autocommit = OFF", False),
        (b"SET NAMES 'utf8mb4' COLLATE 'utf8mb4_bin'", False),
        (b"SET NAMES latin1", True),
        (b"SET SESSION TRANSACTION ISOLATION LEVEL READ COMMITTED", False),
        (b"SET SESSION wait_timeout = 5", False),
        (b"SET SQL_AUTO_IS_NULL = 0", False),
        (b"SET SQL_AUTO_IS_NULL = 1", True),
        (b"SET autocommit = 1, sql_mode = 'ANSI'", True),
        (b"SET sql_mode = 'ANSI'", True),
        (b"SET @@time_zone = '+00:00'", True),
        (b"set @tenant := 7", True),
        (b"/* x */ SET ROLE writer", True),
        (b"SET PASSWORD = 'x'", True),
        (b"EXECUTE IMMEDIATE 'SET @a = 1'", True),
        (b"UPDATE posts SET a = 1", False),
        (b"CREATE TABLE a (b TEXT CHARACTER SET utf8)", False),
        (b"UPDATE posts SET a = 1; SET @a = 1", True),
        (b"COMMIT", False),
        (b"SAVEPOINT a", False),
        (b"CALL f()", False),
    ],
)
def test_what_changes_a_session(sql: bytes, changed: bool) -> None:
    """REC-23."""
    settings = SessionSettings("blog", changed=False)
    settings.said(sql, several=True)
    assert settings.changed is changed
    settings.renewed()
    assert not settings.changed


@pytest.mark.parametrize(
    ("sql", "database"), [(b"USE other;", "other"), (b" use `a``b`", "a`b"), (b"SET @a = 1", "blog")]
)
def test_which_database_a_session_is_in(sql: bytes, database: str) -> None:
    settings = SessionSettings("blog", changed=False)
    settings.said(sql, several=False)
    assert settings.database == database
    settings.reconnected()
    assert settings.database == "blog"


class Behind:
    """A replica that is cut off, a post that it has not got, and a scope that wants to see it."""

    def __init__(self, posts: Posts, folder: Path) -> None:
        self.posts = posts
        self.recorded = Recorded(folder)
        posts.lab.wait_links()
        posts.lab.partition("b1")
        self.key = f"private-{uuid4().hex}"
        self.lineage = posts.write(self.key)

    def read(self, reader: Any, query: str = SELECT, params: Any = None, **options: Any) -> Any:
        """The rows of a query that is read by the scope."""
        with antipode.scope(self.lineage), closing(reader.cursor(**options)) as cursor:
            cursor.execute(query, (self.key,) if params is None and "%s" in query else params)
            return cursor.fetchall()

    def found(self, reads: int = 1) -> list[tuple[str, str | None]]:
        """What the reads were, once the replica has got the post."""
        self.recorded.looked()
        self.posts.lab.heal("b1")
        found = self.recorded.findings(reads, timeout=30)
        self.recorded.ended()
        assert self.key not in str(self.recorded.lines())
        return [(record["kind"], record.get("confirmed")) for record in found]


@pytest.fixture
def behind(any_posts: Posts, tmp_path: Path) -> Iterator[Behind]:
    yield Behind(any_posts, tmp_path)
    any_posts.lab.heal("b1")


def reader_of(behind: Behind, client: str, **arguments: Any) -> Any:
    return behind.posts.wrap(behind.posts.open(client, "b1", autocommit=True, **arguments))


@pytest.mark.parametrize("client", CLIENTS)
def test_a_read_that_misses_a_row_is_stale(behind: Behind, client: str) -> None:
    """REC-6, REC-22: with its parameters as they were; one of another row is not."""
    reader = reader_of(behind, client)
    assert not behind.read(reader)
    assert not behind.read(reader, params=("another",))
    assert not behind.read(reader, f"SELECT body FROM posts WHERE id = '{behind.key}' -- without parameters")
    assert behind.found(3) == [STALE, BEHIND, STALE]


@pytest.mark.parametrize(
    ("client", "options"),
    [
        ("pymysql", {"cursor": pymysql.cursors.SSCursor}),
        ("pymysql", {"cursor": pymysql.cursors.DictCursor}),
        ("connector", {"buffered": True}),
        ("connector", {"dictionary": True}),
    ],
    ids=["unbuffered", "dictionaries", "buffered", "dictionaries of the connector"],
)
def test_by_whatever_cursor(behind: Behind, client: str, options: dict[str, Any]) -> None:
    """REC-22."""
    assert not behind.read(reader_of(behind, client), **options)
    assert behind.found() == [STALE]


def test_a_prepared_statement_with_parameters_is_behind(behind: Behind) -> None:
    """REC-23: they are not known here. Without any it is a text as others are."""
    reader = reader_of(behind, "connector")
    assert not behind.read(reader, SELECT, prepared=True)
    behind.read(reader, "SELECT COUNT(*) FROM posts", prepared=True)
    assert behind.found(2) == [BEHIND, STALE]


def test_what_differs_by_itself_is_behind(behind: Behind) -> None:
    """REC-22, REC-23: a view that calls a clock, a clock, a lock, any row."""
    lab = behind.posts.lab
    lab.heal("b1")
    lab.run("a", "CREATE OR REPLACE VIEW clock AS SELECT id, UUID() AS word FROM posts")
    lab.wait_links()
    lab.partition("b1")
    behind.lineage = behind.posts.write(behind.key, "again")
    reader = reader_of(behind, "pymysql")
    for query in [
        "SELECT * FROM clock",
        "SELECT id, NOW() FROM posts",
        "SELECT id, UTC_TIMESTAMP FROM posts",
        "SELECT id FROM posts FOR UPDATE",
        "SELECT id FROM posts LIMIT 1",
    ]:
        behind.read(reader, query)
    assert behind.found(5) == [BEHIND] * 5


@pytest.mark.parametrize("client", CLIENTS)
def test_in_the_database_that_the_application_is_in(behind: Behind, client: str) -> None:
    """REC-22: by whatever way it got there."""
    by_text, by_call = reader_of(behind, client, database="mysql"), reader_of(behind, client, database="mysql")
    with closing(by_text.cursor()) as cursor:
        cursor.execute("USE lab")
    (by_call.select_db if client == "pymysql" else by_call.cmd_init_db)("lab")
    assert not behind.read(by_text)
    assert not behind.read(by_call)
    assert behind.found(2) == [STALE, STALE]


@pytest.mark.parametrize("client", CLIENTS)
def test_where_the_session_was_changed_it_is_not_repeated(behind: Behind, client: str) -> None:
    """REC-23: a connection of ours has not got its settings. Another wrap of it knows that, too."""
    plain = behind.posts.open(client, "b1", autocommit=True)
    wrapped = behind.posts.wrap(plain)
    with closing(wrapped.cursor()) as cursor:
        cursor.execute("SET sql_mode = 'ANSI'")
    opened = reader_of(behind, client, init_command="SET time_zone = '+01:00'")
    assert not behind.read(behind.posts.wrap(plain))
    assert not behind.read(opened)
    assert behind.found(2) == [BEHIND, BEHIND]


def refused(*_: Any, **__: Any) -> Any:
    raise pymysql.err.OperationalError(1040, "Too many connections")


@pytest.mark.parametrize("how", ["no connection", "no right", "too many rows", "too slow", "another server", "broken"])
def test_what_fails_of_ours_is_behind(behind: Behind, how: str, monkeypatch: pytest.MonkeyPatch) -> None:
    """REC-13, REC-22: and the application sees nothing of it."""
    reader, query = reader_of(behind, "pymysql"), SELECT
    if how == "no connection":
        nowhere = replace(behind.posts.wrap(behind.posts.pymysql("b1"))._antipode.binding.target, port=1)
        monkeypatch.setattr("antipode_mysql.recorder.own_reads", lambda target, *rest: own_reads(nowhere, *rest))
    elif how == "no right":
        monkeypatch.setattr(repeating, "_BEGIN", "SET ROLE nobody_of_this_name")
    elif how == "too many rows":
        query = (
            "WITH RECURSIVE x AS (SELECT 1 AS a UNION ALL SELECT a + 1 FROM x WHERE a < 900)"
            " SELECT x.a, y.a, %s FROM x, x AS y WHERE y.a < 9"
        )
    elif how == "too slow":
        monkeypatch.setattr(repeating, "_LIMITS", dict.fromkeys(repeating._LIMITS, "SET @nothing = '{seconds}'"))
        monkeypatch.setattr(repeating._OwnReads, "_rows", late)
    elif how == "another server":
        monkeypatch.setattr(repeating, "_WHERE", "SELECT CONNECTION_ID()")
    else:
        monkeypatch.setattr("antipode_mysql.recorder.own_reads", refused)
    assert behind.read(reader, query) is not None
    if how == "broken":
        assert reader.ping() is None
        behind.recorded.ended()
        assert behind.recorded.lines("behind", "stale") == []
        return
    assert behind.found() == [BEHIND]


def late(reads: Any, connection: Any, until: float) -> Iterator[Any]:
    yield from ROWS(reads, connection, until - 60)


ROWS: Callable[..., Iterator[Any]] = repeating._OwnReads._rows


def test_a_user_that_may_have_no_other_connection(any_posts: Posts, tmp_path: Path) -> None:
    """REC-22: the application's is all that there is."""
    lab, user = any_posts.lab, f"app{uuid4().hex[:8]}"
    lab.run("a", f"CREATE USER {user}@'%' IDENTIFIED BY 'x' WITH MAX_USER_CONNECTIONS 1")
    lab.run("a", f"GRANT SELECT ON lab.* TO {user}@'%'")
    behind = Behind(any_posts, tmp_path)
    plain = pymysql.connect(
        host="127.0.0.1", port=lab.server("b1").port, user=user, password="x", database="lab", autocommit=True
    )
    with closing(plain):
        reader = any_posts.wrap(plain)
        assert not behind.read(reader)
        assert behind.found() == [BEHIND]
        assert behind.read(reader)


def test_at_the_end_of_the_process_it_is_behind(behind: Behind) -> None:
    """REC-15."""
    assert not behind.read(reader_of(behind, "pymysql"))
    behind.recorded.looked()
    records.end()
    [record] = behind.recorded.findings()
    assert (record["kind"], record["visible_after"]) == ("behind", None)


def test_what_is_sent_could_only_read(behind: Behind) -> None:
    """REC-22: whatever a text might do after all."""
    target = behind.posts.wrap(behind.posts.pymysql("b1"))._antipode.binding.target
    flavour = behind.posts.wrap(behind.posts.pymysql("b1"))._antipode.flavour
    again = own_reads(target, "lab", flavour, b"SELECT 1 FROM posts", 1.0)
    assert again is not None
    with closing(again(1)) as reads:
        next(reads)
    writing = repeating._OwnReads(target, "lab", flavour, b"DELETE FROM posts", 1.0)
    writing._server = again.__self__._server  # type: ignore[attr-defined]
    with closing(writing.read(1)) as reads, pytest.raises(pymysql.err.MySQLError) as refusal:
        list(next(reads))
    assert refusal.value.args[0] == 1792  # cannot execute statement in a READ ONLY transaction
