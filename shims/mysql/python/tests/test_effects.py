"""Writes by their effect: whatever its text, what a server has logged is in the lineage (spec SHIM-43, SCOPE-25)."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from contextlib import closing, suppress
from typing import Any

import antipode
import mysql.connector
import pymysql
import pytest
from antipode._model.write_id import Ordered
from antipode_lab.stores._sql_store import SqlStore
from antipode_mysql.statements import _KNOWN, classify
from mysql.connector.pooling import MySQLConnectionPool
from pymysql.constants import CLIENT
from sql_regions import STORE, Posts, until
from things import INSERT, make_things, run

SAVES = "RETURNS INT DETERMINISTIC MODIFIES SQL DATA BEGIN INSERT INTO things (v) VALUES (x); RETURN 1; END"
Refusal = (pymysql.err.MySQLError, mysql.connector.Error)
Open = Callable[..., Any]


@pytest.fixture(scope="module", autouse=True)
def _routines(any_lab: SqlStore) -> None:
    make_things(any_lab)
    any_lab.run(
        "a",
        *(
            f"CREATE FUNCTION IF NOT EXISTS {name}(x VARCHAR(100)) {SAVES}"
            for name in ("записать", "注文", "büif", "book")
        ),
        f"CREATE FUNCTION IF NOT EXISTS `2if`(x VARCHAR(100)) {SAVES}",
        f"CREATE FUNCTION IF NOT EXISTS `$if`(x VARCHAR(100)) {SAVES}",
        f"CREATE FUNCTION IF NOT EXISTS `count`(x VARCHAR(100)) {SAVES}",
        f"CREATE PROCEDURE IF NOT EXISTS twice() BEGIN {INSERT}; COMMIT; START TRANSACTION; {INSERT}; END",
        f"CREATE PROCEDURE IF NOT EXISTS in_vain() BEGIN {INSERT}; COMMIT; START TRANSACTION; "
        "SIGNAL SQLSTATE '45000'; END",
    )


@pytest.fixture(params=["pymysql", "connector", "aio"])
def opened(request: pytest.FixtureRequest, any_posts: Posts) -> Iterator[Open]:
    """Opens wrapped connections of one client."""
    made: list[Any] = []
    more = {"client_flag": CLIENT.MULTI_STATEMENTS} if request.param == "pymysql" else {}

    def connect(*, autocommit: bool = True) -> Any:
        made.append(any_posts.wrap(any_posts.open(request.param, "a", autocommit=autocommit, **more)))
        return made[-1]

    yield connect
    for each in made:
        with suppress(*Refusal):
            each.close()


def all_of(connection: Any, *texts: Any) -> None:
    """Executes texts, and reads all that comes; or calls what is no text."""
    for text in texts:
        if callable(text):
            text(connection)
            continue
        with closing(connection.cursor()) as cursor, suppress(*Refusal):
            cursor.execute(text)
            while True:
                if cursor.description:
                    cursor.fetchall()
                if not cursor.nextset():
                    break


def covers(scope: antipode.Scope, wanted: Ordered) -> bool:
    """Whether a scope's lineage has a position, or says that it is not whole."""
    known = [each.version for each in scope.lineage.of_store(STORE) if isinstance(each.version, Ordered)]
    held = any(each.epoch == wanted.epoch and each.counter >= wanted.counter for each in known)
    return held or STORE in scope.lineage.incomplete


CALLS = [
    "SELECT записать('x')",
    "SELECT 注文('x')",
    "SELECT büif('x')",
    "SELECT 2if('x')",
    "SELECT $if('x')",
    "SELECT count ('x')",
    "SELECT count/**/('x')",
    "SELECT `book`('x')",
    "SELECT lab . book ('x')",
    "WITH `c` (x) AS (SELECT 'x') SELECT `book`(x) FROM c",
    "WITH `c` (x) AS (SELECT 'x') SELECT book/**/(x) FROM c",
    "SELECT 1 --\x01 '\n, book('x') --\x01 '",
    "SET @a = (SELECT записать('x'))",
    "SET @a = book('x')",
    "DO book('x')",
    "SHOW TABLES WHERE book('x') = 1",
    "SHOW VARIABLES WHERE book('x') = 1",
    "KILL book('x') + 4000000000",
    "/*!40000 SELECT book('x') */",
    "CREATE TABLE IF NOT EXISTS made_here AS SELECT book('x') AS i",
]
OF_MARIADB = [
    "SET STATEMENT max_statement_time = 5 FOR INSERT INTO things (v) VALUES ('x')",
    "SET STATEMENT max_statement_time = 5 FOR UPDATE things SET v = UUID()",
    "SET STATEMENT max_statement_time = 5 FOR DELETE FROM things LIMIT 1",
    "SET/**/STATEMENT max_statement_time = 5 FOR INSERT things SET v = 'x'",
    "BEGIN NOT ATOMIC INSERT INTO things (v) VALUES ('x'); END",
    "SET PASSWORD FOR effect = PASSWORD('x')",
    "INSERT DELAYED INTO plain VALUES (7)",  # last: it is done later, and seems to be the next one
]
OF_MYSQL = ["SET PASSWORD FOR effect = 'x'"]


@pytest.mark.parametrize("autocommit", [True, False], ids=["autocommit", "committed"])
def test_whatever_writes_is_recorded(any_posts: Posts, opened: Open, autocommit: bool) -> None:
    any_posts.lab.run("a", "CREATE USER IF NOT EXISTS effect")
    client = opened(autocommit=autocommit)
    all_of(client, INSERT, "COMMIT")
    missed, wrote = [], 0
    for sql in [*CALLS, *(OF_MARIADB if any_posts.lab.kind == "mariadb" else OF_MYSQL)]:
        before = any_posts.last()
        with antipode.scope() as scope:
            all_of(client, sql)
            if not autocommit:
                client.commit()
            after = any_posts.last()
            wrote += after != before
            if after != before and not covers(scope, after):
                missed.append(sql)
    assert not missed
    assert wrote >= len(CALLS) - 4


@pytest.mark.parametrize("how", ["{}('1')", "{} ('1')", "{}/**/('1')"], ids=["tight", "gap", "remark"])
def test_a_name_that_is_harmless_calls_nobodys_function(any_posts: Posts, how: str) -> None:
    """SHIM-43: a stored function may have any name; where the server calls it, its text may write."""
    if any_posts.tracked:
        pytest.skip("it is the server's grammar")
    lab = any_posts.lab
    names = sorted(name.decode() for name in _KNOWN)
    lab.run("a", "CREATE DATABASE IF NOT EXISTS names", "CREATE TABLE IF NOT EXISTS names.calls (n INT)")
    missed = []
    with closing(lab.client("a", database="names", autocommit=True)) as client, closing(client.cursor()) as cursor:
        for name in names:
            cursor.execute(
                f"CREATE FUNCTION IF NOT EXISTS `{name}`(x VARCHAR(100)) RETURNS INT DETERMINISTIC MODIFIES SQL DATA "
                "BEGIN INSERT INTO names.calls VALUES (1); RETURN 1; END"
            )
            text = f"SELECT {how.format(name)}"
            with suppress(pymysql.err.MySQLError):
                cursor.execute(text)
            if cursor.execute("DELETE FROM names.calls") and not classify(text.encode()).may_write:
                missed.append(text)
    assert not missed


ENDS: dict[str, Callable[[Any], Any]] = {
    "rollback": lambda client: client.rollback(),
    "ROLLBACK": lambda client: run(client, "ROLLBACK"),
    "close": lambda client: client.close(),
    "reset": lambda client: client.reset_session() if hasattr(client, "reset_session") else client.close(),
    "change user": lambda client: (
        client.cmd_change_user("root", "", "lab") if hasattr(client, "cmd_change_user") else client.close()
    ),
    "connect again": lambda client: client.connect() if isinstance(client, pymysql.Connection) else client.reconnect(),
}
INSIDE: dict[str, tuple[Any, ...]] = {
    "procedure": ("CALL twice()",),
    "behind a write": (INSERT, "CALL twice()"),
    "that fails": ("CALL in_vain()",),
    "prepared": ("PREPARE q FROM 'CALL twice()'", "EXECUTE q"),
    "several": (f"{INSERT}; COMMIT; BEGIN; {INSERT}",),
    "several, of which the last fails": (f"{INSERT}; COMMIT; BEGIN; SELECT nothing",),
    "chain": (INSERT, "COMMIT AND CHAIN", INSERT),
    "failed setting": (INSERT, "SET @x = no_such_function()", lambda client: client.commit()),
    "failed start": (INSERT, "SET autocommit = nonsense", lambda client: client.commit()),
    "failed lock": (INSERT, "LOCK TABLES nowhere WRITE"),
    "failed component": (INSERT, "INSTALL PLUGIN nothing SONAME 'nothing'"),
    "table without transactions": ("INSERT INTO plain VALUES (9)",),
}


@pytest.mark.parametrize("end", ENDS)
@pytest.mark.parametrize("inside", INSIDE)
def test_what_was_committed_inside_stays(any_posts: Posts, opened: Open, inside: str, end: str) -> None:
    """SCOPE-25: whatever ends the transaction that seemed open."""
    client = opened(autocommit=False)
    all_of(client, INSERT, "COMMIT")
    before = any_posts.last()
    with antipode.scope() as scope:
        all_of(client, *INSIDE[inside])
        ENDS[end](client)
        after = any_posts.last()
        assert after != before
        assert covers(scope, after)


def test_a_pool_gets_back_what_has_committed_inside(any_posts: Posts) -> None:
    """SCOPE-25; without a reset whoever gets the connection next may commit it."""
    settled: dict[str, Any] = {"host": "127.0.0.1", "port": any_posts.lab.server("a").port, "user": "root"}
    more = {"database": "lab", "use_pure": True, "ssl_disabled": True, "collation": "utf8mb4_general_ci"}
    for resets in (True, False):
        pool = MySQLConnectionPool(
            pool_name=f"inside-{resets}", pool_size=1, pool_reset_session=resets, **settled, **more
        )
        wrapped = any_posts.wrap(pool)
        with antipode.scope() as scope:
            connection = wrapped.get_connection()
            all_of(connection, "CALL twice()")
            connection.close()
            assert covers(scope, any_posts.last())
        before = any_posts.last()
        with antipode.scope() as scope:
            connection = wrapped.get_connection()
            all_of(connection, INSERT)
            connection.close()
            with antipode.scope():
                again = wrapped.get_connection()
                again.commit()
                again.close()
            assert (any_posts.last() == before) is resets
            assert resets or covers(scope, any_posts.last())


XA = ("XA START 'x1'", INSERT, "XA END 'x1'")


@pytest.mark.parametrize("how", ["one phase", "two phases", "another connection", "another scope", "behind another"])
def test_transactions_of_two_phases(any_posts: Posts, opened: Open, how: str) -> None:
    """SCOPE-25: who has prepared one does not know whether somebody commits it."""
    client = opened()
    all_of(client, INSERT)
    with antipode.scope() as scope:
        all_of(client, *XA)
        if how == "one phase":
            all_of(client, "XA COMMIT 'x1' ONE PHASE")
        elif how == "two phases":
            all_of(client, "XA PREPARE 'x1'", "XA /* x */ COMMIT 'x1'")
        elif how == "another scope":
            with antipode.scope():
                all_of(client, "XA PREPARE 'x1'", "XA COMMIT 'x1'")
        else:
            all_of(client, "XA PREPARE 'x1'")
            if how == "behind another":
                all_of(client, INSERT)
            client.close()
            until(lambda: _committed(any_posts, "x1"), 60)
        assert covers(scope, any_posts.last())
        if how in ("one phase", "two phases"):
            assert scope.lineage.is_complete()


def _committed(posts: Posts, name: str) -> bool:
    """Return whether another connection could commit it: not while the preparing one is being closed."""
    try:
        posts.lab.run("a", f"XA COMMIT '{name}'")
    except pymysql.err.OperationalError:
        return False
    return True


LEFT: dict[str, str] = {"rows": "SELECT i FROM things", "several": "CALL two_sets()"}


@pytest.mark.parametrize("left", LEFT)
@pytest.mark.parametrize("streaming", [False, True], ids=["buffered", "streaming"])
@pytest.mark.parametrize("then", [INSERT, "COMMIT", "ROLLBACK"])
@pytest.mark.filterwarnings("ignore:Previous unbuffered result")
def test_what_is_left_unread_holds_nothing_up(any_posts: Posts, left: str, streaming: bool, then: str) -> None:
    """SHIM-2, SCOPE-25: the next statement reads it to its end, as in the client."""
    any_posts.lab.run(
        "a",
        f"CREATE PROCEDURE IF NOT EXISTS two_sets() BEGIN {INSERT}; COMMIT; SELECT 1 UNION SELECT 2; SELECT 3; "
        f"{INSERT}; END",
        INSERT,
    )
    client = any_posts.wrap(any_posts.pymysql("a", autocommit=then == INSERT, read_timeout=20))
    all_of(client, INSERT, "COMMIT")
    with antipode.scope() as scope, antipode.reading() as seen:
        cursor = client.cursor(pymysql.cursors.SSCursor if streaming else None)
        cursor.execute(LEFT[left])
        assert cursor.fetchone()
        if then == INSERT:
            run(client, INSERT)
        else:
            client.commit() if then == "COMMIT" else client.rollback()
        if left == "several" or then == INSERT:
            assert covers(scope, any_posts.last())
        assert seen.lineage.of_store(STORE) or not seen.lineage.is_complete()
    client.close()


def _read_all(connection: Any, text: str) -> None:
    with closing(connection.cursor()) as cursor:
        cursor.execute(text)
        while cursor.nextset():
            pass


@pytest.mark.parametrize(
    "before", ["", f"{INSERT}; COMMIT; SELECT nothing"], ids=["first", "behind a text that failed"]
)
def test_a_statement_on_a_lost_connection_fails_as_the_plain_clients(any_posts: Posts, before: str) -> None:
    """SHIM-2: our question comes before it, and is the one that meets the loss."""
    errors = []
    for is_wrapped in (False, True):
        plain = any_posts.open("pymysql", "a", autocommit=True, client_flag=CLIENT.MULTI_STATEMENTS)
        connection = any_posts.wrap(plain) if is_wrapped else plain
        if before:
            with antipode.scope(), pytest.raises(pymysql.err.MySQLError):
                _read_all(connection, before)
        number = connection.thread_id()
        there = f"SELECT 1 FROM information_schema.processlist WHERE id = {number}"
        with closing(any_posts.lab.client("a", autocommit=True)) as other:
            run(other, f"KILL {number}")
            until(lambda: not run(other, there), 60)  # noqa: B023
        with antipode.scope(), pytest.raises(pymysql.err.MySQLError) as caught:
            run(connection, INSERT)
        errors.append(repr(caught.value))
    assert errors[0] == errors[1]


@pytest.mark.parametrize("pings", [False, True])
def test_a_reset_of_a_lost_connection_fails_as_the_plain_clients(any_posts: Posts, pings: bool) -> None:
    """SHIM-2: our question comes before, and is the one that meets the loss."""
    connection = any_posts.open("connector", "a", autocommit=False)
    number = connection.connection_id
    wrapped = any_posts.wrap(connection)
    there = f"SELECT 1 FROM information_schema.processlist WHERE id = {number}"
    rows = "SELECT COUNT(*) FROM things"
    with antipode.scope() as scope, closing(any_posts.lab.client("a", autocommit=True)) as other:
        before = run(other, rows)
        run(wrapped, INSERT)
        run(other, f"KILL {number}")
        until(lambda: not run(other, there), 60)
        if pings:  # what is sent behind that is refused at once, of which this client makes no error
            assert not wrapped.is_connected()
            assert wrapped.cmd_reset_connection() is False
        else:
            with pytest.raises(mysql.connector.errors.InterfaceError):
                wrapped.cmd_reset_connection()
        # A server that tells of ids has told of none, so the row went with its transaction; else nobody knows.
        assert scope.lineage.is_complete() is any_posts.tracked
        assert run(other, rows) == before
