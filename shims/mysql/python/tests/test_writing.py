"""Writes by both clients on either server: when they are pending, their position, its cost (spec SCOPE, SHIM)."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from contextlib import closing, suppress
from pathlib import Path
from typing import Any
from uuid import uuid4

import antipode
import antipode_mysql
import mysql.connector
import pymysql
import pytest
from aio_client import Blocking, inner
from antipode_lab.stores._sql_store import SqlStore
from mysql.connector import aio
from pymysql.constants import CLIENT
from sql_regions import STORE, Posts, position
from things import INSERT, make_things, run

Open = Callable[..., Any]


@pytest.fixture(scope="module", autouse=True)
def _tables(any_lab: SqlStore) -> None:
    make_things(any_lab)


@pytest.fixture(params=["pymysql", "connector", "aio"])
def opened(request: pytest.FixtureRequest, any_posts: Posts) -> Iterator[Open]:
    """Opens wrapped connections of one client."""
    made: list[Any] = []

    def connect(autocommit: bool = True, at: str = "a", **arguments: Any) -> Any:
        made.append(any_posts.wrap(any_posts.open(request.param, at, autocommit=autocommit, **arguments)))
        return made[-1]

    yield connect
    for each in made:
        with suppress(pymysql.err.Error):
            each.close()


last, told = Posts.last, position


def in_flight(scope: antipode.Scope) -> int:
    return len(scope.pending)


def test_a_statement_that_commits_gets_its_own_position(opened: Open, any_posts: Posts) -> None:
    client = opened()
    run(client, INSERT)  # from now on the session's newest id is known
    with antipode.scope() as scope:
        run(client, INSERT)
        own = last(any_posts)
        any_posts.lab.run("a", INSERT)
        assert told(scope.lineage) == own
        assert not scope.pending
    assert any_posts.look(scope.lineage, 20).satisfied


def test_the_first_write_of_a_connection_is_covered(opened: Open, any_posts: Posts) -> None:
    client = opened()
    with antipode.scope() as scope:
        run(client, INSERT)
        assert told(scope.lineage) == last(any_posts)


def test_a_transaction_is_pending_until_its_commit(opened: Open, any_posts: Posts) -> None:
    client = opened(autocommit=False)
    with antipode.scope() as scope:
        run(client, "SELECT * FROM things LIMIT 1")
        assert in_flight(scope) == 0
        run(client, INSERT)
        assert in_flight(scope) == 1
        assert antipode.deserialize(antipode.serialize()).incomplete == {STORE}
        run(client, "SELECT * FROM things LIMIT 1", INSERT)
        assert in_flight(scope) == 1
        client.commit()
        assert in_flight(scope) == 0
        assert told(scope.lineage) == last(any_posts)
        assert scope.lineage.is_complete()


def test_a_transaction_that_only_read_leaves_nothing(opened: Open) -> None:
    client = opened(autocommit=False)
    with antipode.scope() as scope:
        run(client, "SELECT * FROM things LIMIT 1")
        client.commit()
        assert not scope.lineage
        assert not scope.pending


def test_a_rollback_leaves_nothing(opened: Open) -> None:
    client = opened(autocommit=False)
    with antipode.scope() as scope:
        run(client, INSERT)
        client.rollback()
        run(client, INSERT, "ROLLBACK")
        assert not scope.lineage
        assert not scope.pending
        assert scope.lineage.is_complete()


def test_a_savepoint_is_no_end(opened: Open, any_posts: Posts) -> None:
    client = opened(autocommit=False)
    with antipode.scope() as scope:
        run(client, INSERT, "SAVEPOINT one", INSERT, "ROLLBACK TO SAVEPOINT one", "SAVEPOINT two", INSERT)
        assert scope.pending
        run(client, "RELEASE SAVEPOINT two")
        assert scope.pending
        client.commit()
        assert told(scope.lineage) == last(any_posts)


def test_an_explicit_transaction_on_an_autocommit_connection(opened: Open, any_posts: Posts) -> None:
    client = opened()
    with antipode.scope() as scope:
        run(client, "START TRANSACTION", INSERT)
        assert scope.pending
        run(client, "COMMIT AND CHAIN")
        assert not scope.pending
        assert told(scope.lineage) == last(any_posts)
        run(client, INSERT)
        assert scope.pending
        run(client, "BEGIN")  # commits what was open
        assert not scope.pending
        assert told(scope.lineage) == last(any_posts)
        run(client, "ROLLBACK")


def test_ddl_commits_what_was_open(opened: Open, any_posts: Posts) -> None:
    client = opened(autocommit=False)
    with antipode.scope() as scope:
        run(client, INSERT)
        assert scope.pending
        run(client, f"CREATE TABLE made_{uuid4().hex} (i INT)")
        assert not scope.pending
        assert told(scope.lineage) == last(any_posts)


def test_switching_autocommit_on_commits(opened: Open, any_posts: Posts) -> None:
    client = opened(autocommit=False)
    with antipode.scope() as scope:
        run(client, INSERT)
        if callable(client.autocommit):
            client.autocommit(True)
        else:
            client.autocommit = True
        assert not scope.pending
        assert told(scope.lineage) == last(any_posts)
        run(client, INSERT)
        assert told(scope.lineage) == last(any_posts)


def test_many_rows(opened: Open, any_posts: Posts) -> None:
    client = opened()
    with antipode.scope() as scope, closing(client.cursor()) as cursor:
        cursor.executemany("INSERT INTO things (v) VALUES (%s)", [(str(number),) for number in range(50)])
        assert told(scope.lineage) == last(any_posts)
        cursor.executemany("UPDATE things SET v = %s WHERE i = %s", [("u", 1), ("w", 2)])
        assert told(scope.lineage) == last(any_posts)
        assert not scope.pending


def test_a_statement_of_many_packets(opened: Open, any_posts: Posts) -> None:
    client = opened()
    with antipode.scope() as scope:
        run(client, "INSERT INTO things (v) VALUES (LEFT(%s, 5))", words=("x" * 300_000,))
        assert told(scope.lineage) == last(any_posts)


def test_a_file_is_loaded(opened: Open, any_posts: Posts, tmp_path: Path) -> None:
    path = tmp_path / "rows"
    path.write_text("loaded\n" * 3)
    allowed = {"local_infile": True} if isinstance(opened(), pymysql.Connection) else {"allow_local_infile": True}
    client = opened(**allowed)
    any_posts.lab.run("a", "SET GLOBAL local_infile = 1")
    with antipode.scope() as scope:
        run(client, f"LOAD DATA LOCAL INFILE '{path}' INTO TABLE things (v)")
        assert told(scope.lineage) == last(any_posts)
        assert not scope.pending


def test_a_write_that_gives_rows(opened: Open, any_posts: Posts) -> None:
    if any_posts.lab.kind == "mysql":
        pytest.skip("MySQL has no RETURNING")
    client = opened()
    with antipode.scope() as scope:
        assert len(run(client, "INSERT INTO things (v) VALUES ('r'), ('r') RETURNING i")) == 2
        assert told(scope.lineage) == last(any_posts)
        assert not scope.pending


def test_procedures_and_functions_that_write(opened: Open, any_posts: Posts) -> None:
    client = opened()
    with antipode.scope() as scope, closing(client.cursor()) as cursor:
        cursor.callproc("put_one")
        while cursor.nextset():
            pass
        assert told(scope.lineage) == last(any_posts)
        cursor.execute("CALL put_two()")
        cursor.fetchall()
        while cursor.nextset():
            cursor.fetchall() if cursor.description else None
        assert told(scope.lineage) == last(any_posts)
        assert not scope.pending
        run(client, "SELECT save_one()")
        assert told(scope.lineage) == last(any_posts)
        assert not scope.pending


def test_a_write_that_changed_nothing_takes_where_the_log_is(opened: Open, any_posts: Posts) -> None:
    client = opened()
    if any_posts.lab.kind == "mariadb":  # in MySQL it is so
        run(client, "SET SESSION binlog_format = 'ROW'")
    run(client, INSERT)
    for _ in range(3):
        any_posts.lab.run("a", INSERT)
    with antipode.scope() as scope:
        run(client, "DELETE FROM things WHERE i = -1")
        assert told(scope.lineage) == last(any_posts)
        assert scope.lineage.is_complete()


def test_a_session_that_is_not_logged_gets_no_position(opened: Open) -> None:
    client = opened()
    with antipode.scope() as scope:
        run(client, "SET sql_log_bin = 0", INSERT)
        assert not scope.lineage.of_store(STORE)
        assert scope.lineage.incomplete == {STORE}


def test_a_refused_statement_leaves_nothing(opened: Open, any_posts: Posts) -> None:
    client = opened()
    run(client, "REPLACE INTO once VALUES (1)")
    with antipode.scope() as scope:
        with pytest.raises((pymysql.err.IntegrityError, mysql.connector.IntegrityError)):
            run(client, "INSERT INTO once VALUES (1)")
        with pytest.raises((pymysql.err.ProgrammingError, mysql.connector.ProgrammingError)):
            run(client, "INSERT INTO nowhere VALUES (1)")
        assert not scope.pending
        assert not scope.lineage
    with antipode.scope() as scope:
        run(client, INSERT)  # and the connection is in step
        assert told(scope.lineage) == last(any_posts)


def test_a_refusal_inside_a_transaction_is_not_its_end(opened: Open, any_posts: Posts) -> None:
    client = opened(autocommit=False)
    run(client, "REPLACE INTO once VALUES (2)")
    client.commit()
    with antipode.scope() as scope:
        run(client, INSERT)
        with pytest.raises((pymysql.err.IntegrityError, mysql.connector.IntegrityError)):
            run(client, "INSERT INTO once VALUES (2)")
        assert scope.pending
        client.commit()
        assert told(scope.lineage) == last(any_posts)


def test_a_rollback_keeps_what_a_table_without_transactions_has(opened: Open, any_posts: Posts) -> None:
    client = opened(autocommit=False)
    with antipode.scope() as scope:
        if any_posts.lab.kind == "mariadb":  # MySQL allows no mixture where transactions have ids
            run(client, INSERT)
        run(client, "INSERT INTO plain VALUES (1)")
        client.rollback()
        assert not scope.pending
        assert told(scope.lineage) == last(any_posts)


def test_an_unknown_outcome_stays_pending(opened: Open, any_posts: Posts) -> None:
    client = opened(autocommit=False)
    with antipode.scope() as scope:
        run(client, INSERT)
        number = client.thread_id() if hasattr(client, "thread_id") else client.connection_id
        any_posts.lab.run("a", f"KILL {number}")
        with pytest.raises((pymysql.err.MySQLError, mysql.connector.Error)):
            client.commit()
        assert [write.unknown for write in scope.pending] == [True]
        assert scope.lineage.incomplete == {STORE}


def test_a_commit_whose_answer_came_too_late_stays_pending(opened: Open, any_posts: Posts) -> None:
    """The asyncio client closes the connection then, within the statement's call."""
    client = opened(read_timeout=1)
    cursor = client.cursor()
    cursor.execute(INSERT)  # the session's first statement may ask something before
    with antipode.scope() as scope:
        any_posts.lab.freeze("a")
        try:
            with pytest.raises((pymysql.err.MySQLError, mysql.connector.Error)):
                cursor.execute(INSERT)
        finally:
            any_posts.lab.thaw("a")
        assert [write.unknown for write in scope.pending] == [True]
        assert scope.lineage.incomplete == {STORE}


def test_closing_with_an_open_transaction_leaves_nothing(opened: Open, any_posts: Posts) -> None:
    """A MySQL that does not tell of ids cannot say so: then what covers it all stays (SCOPE-25)."""
    client = opened(autocommit=False)
    with antipode.scope() as scope:
        run(client, INSERT)
        client.close()
        assert not scope.pending
        if any_posts.lab.kind == "mariadb" or any_posts.tracked:
            assert not scope.lineage
        else:
            assert told(scope.lineage) == last(any_posts)


def test_two_scopes_in_one_transaction(opened: Open, any_posts: Posts) -> None:
    client = opened(autocommit=False)
    with antipode.scope() as outer:
        run(client, INSERT)
        with antipode.scope() as inner:
            run(client, INSERT)
            client.commit()
        assert told(inner.lineage) == told(outer.lineage) == last(any_posts)


COMMITS: dict[str, Callable[[Any], object]] = {
    "commit": lambda client: client.commit(),
    "words": lambda client: run(client, "COMMIT"),
    "begin": lambda client: run(client, "BEGIN"),
    "autocommit": lambda client: run(client, "SET autocommit = 1"),
    "definition": lambda client: run(client, "CREATE TABLE IF NOT EXISTS once (i INT PRIMARY KEY)"),
}


@pytest.mark.parametrize("commit", COMMITS)
def test_who_commits_what_others_wrote(opened: Open, any_posts: Posts, commit: str) -> None:
    """SCOPE-24: also where those have ended, or it began outside any scope."""
    client = opened(autocommit=False)
    run(client, INSERT)
    with antipode.scope():
        run(client, INSERT)
    with antipode.scope() as committing:
        run(client, "SELECT * FROM things LIMIT 1")
        assert in_flight(committing) == 0
        COMMITS[commit](client)
        assert told(committing.lineage) == last(any_posts)
        assert in_flight(committing) == 0


def test_who_hears_that_it_was_committed(any_posts: Posts) -> None:
    """SCOPE-24: the rest of a text's results tells of what another scope has sent."""
    flags = CLIENT.MULTI_STATEMENTS
    with closing(any_posts.wrap(any_posts.open("pymysql", "a", autocommit=False, client_flag=flags))) as client:
        with antipode.scope():
            cursor = client.cursor()
            cursor.execute(f"SELECT 1; {INSERT}; COMMIT")
        with antipode.scope() as hearing:
            while cursor.nextset():
                pass
            assert told(hearing.lineage) == last(any_posts)


def test_who_rolls_back_what_others_wrote(opened: Open) -> None:
    client = opened(autocommit=False)
    with antipode.scope():
        run(client, INSERT)
    with antipode.scope() as ending:
        client.rollback()
        assert antipode.serialize() == "1"
        assert not ending.pending


def test_the_plain_connection_stays_plain(opened: Open, any_posts: Posts) -> None:
    client = opened()
    plain = client._antipode_plain
    assert isinstance(inner(client), type(plain))
    assert type(plain) in (pymysql.Connection, mysql.connector.MySQLConnection, aio.connection.MySQLConnection)
    if isinstance(client, Blocking):
        plain = Blocking(client.loop, plain)
    with antipode.scope() as scope:
        run(plain, INSERT)
        assert not scope.lineage
    assert run(client, "SELECT 1") == run(plain, "SELECT 1") == [(1,)]
    again = antipode_mysql.wrap(inner(client), store="other", fresh_server_ids=True)
    assert isinstance(again, type(inner(plain)))
