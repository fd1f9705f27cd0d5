"""Statements that are transactions by themselves: the question rides in their packet (spec SHIM-1, EPOCH-1)."""

from __future__ import annotations

from contextlib import nullcontext
from typing import Any

import antipode
import psycopg
import pytest
from antipode_lab.stores.postgresql import PostgresqlStore
from antipode_postgresql.positions import number_of
from pg_regions import INSERT, STORE, Posts, proved


def test_an_error_in_autocommit_mode_leaves_nothing(wrapped: psycopg.Connection[Any]) -> None:
    wrapped.autocommit = True
    wrapped.execute(INSERT, ("1",))
    with antipode.scope() as scope:
        with pytest.raises(psycopg.errors.UniqueViolation):
            wrapped.execute(INSERT, ("1",))
        with pytest.raises(psycopg.errors.SyntaxError):
            wrapped.execute("INSERT nonsense")
        with pytest.raises(psycopg.errors.UniqueViolation):
            wrapped.cursor().executemany(INSERT, [("2",), ("1",)])
        with (
            pytest.raises(psycopg.errors.UniqueViolation),
            wrapped.cursor().copy("COPY posts (key, value) FROM STDIN") as copy,
        ):
            copy.write_row(("1", "v"))
        assert not scope.pending
        assert not scope.lineage
        assert wrapped.execute("SELECT 1").fetchone() == (1,), "the connection is usable"


def test_prepared_statements_and_results_are_the_clients_own(wrapped: psycopg.Connection[Any]) -> None:
    wrapped.autocommit = True
    with antipode.scope() as scope:
        for number in range(10):  # prepared from the sixth on
            cursor = wrapped.execute("INSERT INTO posts (key, value) VALUES (%s, %s) RETURNING key", (str(number), "v"))
            assert cursor.fetchone() == (str(number),)
            assert cursor.rowcount == 1
            assert cursor.statusmessage == "INSERT 0 1"
        cursor = wrapped.execute("UPDATE posts SET value = 'w' WHERE key < %s", ("5",), binary=True)
        assert cursor.rowcount == 5
        ours = [
            row[0] for row in wrapped.execute("SELECT name FROM pg_prepared_statements WHERE name LIKE '%antipode%'")
        ]
        assert sorted(ours) == [f"_antipode_{name}" for name in ("begin", "commit", "how", "question")], (
            "nothing of ours stays on the connection but what the page names (SHIM-5)"
        )
        assert proved(scope)


def test_the_questions_are_prepared_as_the_client_prepares(quiet_posts: Posts) -> None:
    """As often asked as `prepare_threshold` says; what the application discards does no harm, and costs no write."""
    always = quiet_posts.wrap("a")
    always.prepare_threshold = 2
    prepared = "SELECT count(*) FROM pg_prepared_statements WHERE name LIKE '%antipode%'"
    found = []
    for number in range(12):
        if number == 6:
            always.execute("DISCARD ALL")
        with antipode.scope() as scope:
            always.execute(INSERT, (f"{number}",))
            found.append(proved(scope))
            quiet_posts.comes("b1", scope.lineage)
            assert quiet_posts.shows("b1", f"{number}") == "v"
    assert found == sorted(set(found))
    assert always.execute(prepared).fetchone() == (4,)
    assert always.execute("SELECT count(*) FROM posts").fetchone() == (12,)
    never = quiet_posts.wrap("a")
    never.prepare_threshold = None
    for number in range(12):
        with antipode.scope() as scope:
            never.execute(INSERT, (f"never-{number}",))
            assert proved(scope) > found[-1]
    assert never.execute(prepared).fetchone() == (0,)


@pytest.mark.parametrize("threshold", [0, None])
def test_the_packet_of_a_write_ends_as_its_own_statement_would(quiet_posts: Posts, threshold: int | None) -> None:
    """The block that takes the write in is over with the packet, and the server has nothing to warn of."""
    wrapped = quiet_posts.wrap("a")
    wrapped.prepare_threshold = threshold
    notices: list[str | None] = []
    wrapped.add_notice_handler(lambda notice: notices.append(notice.message_primary))
    with antipode.scope() as scope:
        for number in range(4):
            wrapped.execute(INSERT, (f"{number}",))
            assert wrapped.info.transaction_status == psycopg.pq.TransactionStatus.IDLE
            with pytest.raises(psycopg.errors.UniqueViolation):
                wrapped.execute(INSERT, (f"{number}",))
            assert wrapped.info.transaction_status == psycopg.pq.TransactionStatus.IDLE
        assert not scope.pending
        quiet_posts.comes("b1", scope.lineage)
        assert quiet_posts.shows("b1", "3") == "v"
    assert notices == []


@pytest.mark.parametrize("name", ["how", "begin", "commit", "question"])
def test_a_prepared_statement_that_the_server_has_not_got_any_more(quiet_posts: Posts, name: str) -> None:
    """What it was to do before the COMMIT is undone, and sent again: once."""
    wrapped = quiet_posts.wrap("a")
    wrapped.prepare_threshold = 0
    with antipode.scope():
        for number in range(3):
            wrapped.execute(INSERT, (f"{number}",))
    wrapped.execute(f"DEALLOCATE _antipode_{name}")
    with antipode.scope() as scope:
        wrapped.execute(INSERT, ("one",))
        assert wrapped.info.transaction_status == psycopg.pq.TransactionStatus.IDLE
        assert not scope.pending
        assert not scope.lineage.incomplete
        quiet_posts.comes("b1", scope.lineage)
        assert quiet_posts.shows("b1", "one") == "v"
        assert wrapped.execute("SELECT count(*) FROM posts").fetchone() == (4,)


def test_a_write_that_is_stopped_between_its_begin_and_its_commit(
    wrapped: psycopg.Connection[Any], monkeypatch: pytest.MonkeyPatch
) -> None:
    """It is undone, its error is raised, and the connection is out of the block."""
    wrapped.autocommit = True
    monkeypatch.setattr("antipode_postgresql.flow.COMMIT", b"SELECT 1/0")
    with antipode.scope() as scope:
        with pytest.raises(psycopg.errors.DivisionByZero):
            wrapped.execute(INSERT, ("1",))
        assert wrapped.info.transaction_status == psycopg.pq.TransactionStatus.IDLE
        assert not scope.pending
        assert not scope.lineage
    monkeypatch.undo()
    assert wrapped.execute("SELECT count(*) FROM posts").fetchone() == (0,)


def make_careless(connection: psycopg.Connection[Any]) -> str:
    """Makes a table whose trigger commits asynchronously; what inserts into it."""
    connection.execute("DROP TABLE IF EXISTS careless")
    connection.execute("CREATE TABLE careless (key text)")
    connection.execute(
        "CREATE OR REPLACE FUNCTION careless() RETURNS trigger LANGUAGE plpgsql AS "
        "$$ BEGIN PERFORM set_config('synchronous_commit', 'off', true); RETURN NEW; END $$"
    )
    connection.execute("CREATE TRIGGER careless BEFORE INSERT ON careless FOR EACH ROW EXECUTE FUNCTION careless()")
    return "INSERT INTO careless VALUES ('1')"


def test_a_trigger_that_commits_asynchronously_is_seen(quiet_posts: Posts) -> None:
    """Its setting is gone behind the commit, so it is asked for before."""
    wrapped = quiet_posts.wrap("a", async_commits="incomplete")
    careless = make_careless(wrapped)
    for number in range(8):
        with antipode.scope() as scope:
            wrapped.execute(careless)
            assert scope.lineage.incomplete == {STORE}
            assert [gap.reason for gap in scope.gaps] == ["asynchronous"]
        with antipode.scope() as scope:
            wrapped.execute(INSERT, (f"{number}",))
            assert not scope.lineage.incomplete


@pytest.mark.parametrize("block", ["no block", "trigger", "SET LOCAL"])
def test_what_is_committed_asynchronously_unasked_is_flushed(quiet_posts: Posts, block: str) -> None:
    """Where it was not asked for, as all of the log had been flushed behind the commits before."""
    wrapped = quiet_posts.wrap("a")
    wrapped.prepare_threshold = 0
    careless = make_careless(wrapped)

    def write(statement: str, *parameters: str) -> None:
        with nullcontext() if block == "no block" else wrapped.transaction():
            if block == "SET LOCAL" and not parameters:
                wrapped.execute("SET LOCAL synchronous_commit = off")
            wrapped.execute(statement, parameters or None)

    with quiet_posts.lab.connect("a") as observer:

        def lsn(which: str) -> int:
            row = observer.execute(f"SELECT pg_current_wal_{which}_lsn()::text").fetchone()
            assert row is not None
            return number_of(row[0])

        for number in range(6):
            with antipode.scope() as scope:
                write(INSERT, f"{number}")
                assert lsn("flush") >= proved(scope)
            wrapped._antipode_flow.known.asks_how = 0  # type: ignore[attr-defined]
            before = lsn("insert")
            with antipode.scope() as scope:
                write(INSERT.replace("%s", f"'careless {number}'") if block == "SET LOCAL" else careless)
                assert before < proved(scope) <= lsn("flush")
            assert wrapped._antipode_flow.known.asks_how  # type: ignore[attr-defined]


def test_a_transaction_asks_how_where_the_answers_do_not_prove_it(
    quiet_posts: Posts, monkeypatch: pytest.MonkeyPatch
) -> None:
    """A COMMIT whose answer says that the whole log is flushed needs no other question; a read of it is none."""
    wrapped = quiet_posts.wrap("a")
    wrapped.prepare_threshold = 0
    known = wrapped._antipode_flow.known  # type: ignore[attr-defined]
    with antipode.scope() as scope:
        with wrapped.transaction():
            wrapped.execute(INSERT, ("asks",))
        first = proved(scope)
        monkeypatch.setattr("antipode_postgresql.flow.HOW", b"SELECT 1/0")
        for number in range(3):
            known.asks_how = 0  # whatever else writes here, such as the server's own background writer
            with wrapped.transaction():
                wrapped.execute(INSERT, (f"{number}",))
        assert proved(scope) > first
        known.asks_how = 2
        with pytest.raises(psycopg.errors.DivisionByZero), wrapped.transaction():
            wrapped.execute(INSERT, ("asks again",))
        wrapped.rollback()
        monkeypatch.undo()
        with wrapped.transaction():
            wrapped.execute(INSERT, ("asks again",))
        assert known.asks_how == 1


@pytest.mark.parametrize("threshold", [0, 2, None])
def test_the_question_of_a_transaction_is_prepared_as_the_client_prepares(
    quiet_posts: Posts, threshold: int | None
) -> None:
    """In the message of the COMMIT; an application that makes the server forget it loses no position."""
    wrapped = quiet_posts.wrap("a", autocommit=False)
    wrapped.prepare_threshold = threshold
    found = []
    for number in range(10):
        if number == 6:
            wrapped.execute("DEALLOCATE ALL")
        with antipode.scope() as scope:
            wrapped.execute(INSERT, (f"{number}",), prepare=False)
            wrapped.commit()
            found.append(proved(scope))
            quiet_posts.comes("b1", scope.lineage)
            assert quiet_posts.shows("b1", f"{number}") == "v"
    assert found == sorted(set(found))
    ours = wrapped.execute("SELECT name FROM pg_prepared_statements WHERE name LIKE '%antipode%'").fetchall()
    assert ours == ([] if threshold is None else [("_antipode_question",)])
    wrapped.rollback()
    if threshold is not None:  # a write in autocommit mode finds it there
        wrapped.autocommit = True
        for number in range(9):
            with antipode.scope() as scope:
                wrapped.execute(INSERT, (f"alone-{number}",))
                assert proved(scope) > found[-1]


def errors_of(lab: PostgresqlStore) -> int:
    """How many errors of prepared statements the primary has logged: one that is there already, or is not there."""
    log = lab.context.supervisor.log_path(lab.process("a")).read_text()
    return log.count("ERROR:  prepared statement")


def test_what_writes_nothing_prepares_once(quiet_posts: Posts) -> None:
    """Neither a transaction that may have written, nor a write that fails, asks the server for the same again."""
    before = errors_of(quiet_posts.lab)
    wrapped = quiet_posts.wrap("a", autocommit=False)
    wrapped.execute("CREATE OR REPLACE FUNCTION reads() RETURNS int LANGUAGE sql AS 'SELECT 1'")
    wrapped.commit()
    with antipode.scope() as scope:
        for _ in range(12):
            wrapped.execute("SELECT reads()")
            wrapped.commit()
        assert not scope.lineage
        assert not scope.pending
    wrapped.autocommit = True
    with antipode.scope():
        wrapped.execute(INSERT, ("1",))
        for _ in range(12):
            with pytest.raises(psycopg.errors.UniqueViolation):
                wrapped.execute(INSERT, ("1",))
    assert errors_of(quiet_posts.lab) == before


def test_a_rollback_forgets_what_is_prepared_and_no_write_is_sent_twice(quiet_posts: Posts) -> None:
    """psycopg makes the server forget all statements then, ours with its own."""
    before = errors_of(quiet_posts.lab)
    wrapped = quiet_posts.wrap("a")
    wrapped.prepare_threshold = 0
    wrapped.execute("DROP TABLE IF EXISTS counted")
    wrapped.execute("CREATE TABLE counted (id serial, key text)")
    found = []
    with antipode.scope() as scope:
        for number in range(6):
            row = wrapped.execute("INSERT INTO counted (key) VALUES (%s) RETURNING id", (f"{number}",)).fetchone()
            assert row is not None
            found.append(row[0])
            with wrapped.transaction(force_rollback=True):
                wrapped.execute("SELECT count(*) FROM counted")
            with wrapped.transaction():
                wrapped.execute("UPDATE counted SET key = 'x'")
        assert proved(scope)
    assert found == list(range(1, 7))
    assert errors_of(quiet_posts.lab) == before


def test_a_triggers_error_that_looks_like_ours_is_the_writes_own(quiet_posts: Posts) -> None:
    """It is raised, and the write is sent once."""
    wrapped = quiet_posts.wrap("a")
    wrapped.prepare_threshold = 0
    wrapped.execute("DROP TABLE IF EXISTS checked")
    wrapped.execute("CREATE TABLE checked (id serial)")
    wrapped.execute(
        "CREATE OR REPLACE FUNCTION unknown() RETURNS trigger LANGUAGE plpgsql AS "
        "$$ BEGIN RAISE EXCEPTION 'no such statement' USING ERRCODE = '26000'; END $$"
    )
    with antipode.scope() as scope:
        wrapped.execute("INSERT INTO checked DEFAULT VALUES")
        wrapped.execute(
            "CREATE CONSTRAINT TRIGGER unknown AFTER INSERT ON checked DEFERRABLE INITIALLY DEFERRED "
            "FOR EACH ROW EXECUTE FUNCTION unknown()"
        )
        with pytest.raises(psycopg.errors.InvalidSqlStatementName):
            wrapped.execute("INSERT INTO checked DEFAULT VALUES")
        assert not scope.pending
        assert wrapped.execute("SELECT last_value FROM checked_id_seq").fetchone() == (2,)


@pytest.mark.parametrize("threshold", [0, None])
def test_a_write_that_fails_when_it_is_committed(wrapped: psycopg.Connection[Any], threshold: int | None) -> None:
    """The error comes behind the results of the write and of our question, and is the write's own."""
    wrapped.autocommit = True
    wrapped.prepare_threshold = threshold
    with antipode.scope():
        wrapped.execute("DROP TABLE IF EXISTS late_alone")
        wrapped.execute("CREATE TABLE late_alone (key text UNIQUE DEFERRABLE INITIALLY DEFERRED)")
        wrapped.execute("INSERT INTO late_alone VALUES ('1')")
        wrapped.execute("INSERT INTO late_alone VALUES ('2')")
    with antipode.scope() as scope:
        for _ in range(3):
            with pytest.raises(psycopg.errors.UniqueViolation):
                wrapped.execute("INSERT INTO late_alone VALUES ('1')")
            assert not scope.pending
            assert not scope.lineage
        assert wrapped.execute("SELECT count(*) FROM late_alone").fetchone() == (2,), "the connection is usable"
        wrapped.execute("INSERT INTO late_alone VALUES ('3')")
        assert proved(scope)


def test_a_write_whose_question_fails_is_undone_and_says_so(
    wrapped: psycopg.Connection[Any], monkeypatch: pytest.MonkeyPatch
) -> None:
    """A statement's time limit, or somebody's cancellation, may hit the question that shares the transaction."""
    wrapped.autocommit = True
    monkeypatch.setattr("antipode_postgresql.flow.HOW", b"SELECT 1/0")
    with antipode.scope() as scope:
        with pytest.raises(psycopg.errors.DivisionByZero):
            wrapped.execute(INSERT, ("1",))
        assert not scope.pending
        assert not scope.lineage
        assert wrapped.execute("SELECT count(*) FROM posts").fetchone() == (0,)


def test_a_question_that_is_cancelled_lacks_no_rights(
    wrapped: psycopg.Connection[Any], monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
) -> None:
    """The write is done and its position unknown; nobody is sent to look for a grant."""
    wrapped.autocommit = True
    wrapped.execute("SET statement_timeout = '200ms'")
    monkeypatch.setattr("antipode_postgresql.flow.QUESTION", b"SELECT pg_sleep(20), 1, 2")
    with antipode.scope() as scope:
        wrapped.execute(INSERT, ("1",))
        assert not scope.pending
        assert scope.lineage.incomplete == {STORE}
        assert wrapped.execute("SELECT count(*) FROM posts").fetchone() == (1,)
        assert [gap.reason for gap in scope.gaps] == ["pending"]
    assert "is recorded as incomplete" not in caplog.text


@pytest.mark.parametrize("patched", ["FLUSH", "QUESTION"])
def test_a_flush_that_fails_bounds_nothing(
    wrapped: psycopg.Connection[Any], monkeypatch: pytest.MonkeyPatch, patched: str
) -> None:
    """An asynchronous commit is behind the flushed position until a commit behind it is flushed; that one may fail."""
    wrapped.autocommit = True
    wrapped.execute("DROP TABLE IF EXISTS unflushed")
    wrapped.execute("CREATE TABLE unflushed (key text UNIQUE DEFERRABLE INITIALLY DEFERRED)")
    wrapped.execute("INSERT INTO unflushed VALUES ('1')")
    wrapped.execute("SET synchronous_commit = off")
    failing = {"FLUSH": b"INSERT INTO unflushed VALUES ('1')", "QUESTION": b"SELECT 1/0"}
    monkeypatch.setattr(f"antipode_postgresql.flow.{patched}", failing[patched])
    with antipode.scope() as scope:
        wrapped.execute(INSERT, ("1",))
        assert not scope.pending
        assert scope.lineage.incomplete == {STORE}
        assert wrapped.execute("SELECT count(*) FROM unflushed").fetchone() == (1,)


def test_a_connection_that_ends_when_the_write_is_committed(wrapped: psycopg.Connection[Any]) -> None:
    """The write and our question are answered, the commit is not: nobody knows its outcome."""
    wrapped.autocommit = True
    wrapped.execute("CREATE TABLE IF NOT EXISTS ending (key text)")
    wrapped.execute(
        "CREATE OR REPLACE FUNCTION ends() RETURNS trigger LANGUAGE plpgsql AS "
        "$$ BEGIN PERFORM pg_terminate_backend(pg_backend_pid()); PERFORM pg_sleep(10); RETURN NULL; END $$"
    )
    wrapped.execute(
        "CREATE CONSTRAINT TRIGGER ends AFTER INSERT ON ending DEFERRABLE INITIALLY DEFERRED "
        "FOR EACH ROW EXECUTE FUNCTION ends()"
    )
    with antipode.scope() as scope:
        with pytest.raises(psycopg.OperationalError):
            wrapped.execute("INSERT INTO ending VALUES ('1')")
        assert [write.unknown for write in scope.pending] == [True]


def test_an_ended_connection_says_so_in_the_servers_words(quiet_posts: Posts, wrapped: psycopg.Connection[Any]) -> None:
    """SHIM-2: what is sent behind it meets a closed connection, which is not why the write failed."""
    wrapped.autocommit = True
    with quiet_posts.lab.connect("a") as other:
        other.execute("SELECT pg_terminate_backend(%s, 60000)", (wrapped.info.backend_pid,))
    with antipode.scope() as scope, pytest.raises(psycopg.errors.AdminShutdown):
        wrapped.execute(INSERT, ("1",))
    assert [write.unknown for write in scope.pending] == [True]
