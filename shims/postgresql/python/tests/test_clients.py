"""Wrapped connections: what is recorded when, and that the client stays what it was (spec SHIM)."""

from __future__ import annotations

import threading
import time
from typing import Any
from urllib.parse import urlsplit

import antipode
import antipode_postgresql
import psycopg
import pytest
import sqlalchemy
from antipode import UnprovenKind
from antipode._model.errors import ConfigurationError
from antipode.testing import isolated
from antipode_lab.stores.postgresql import PostgresqlStore
from pg_regions import INSERT, STORE, Posts, proved, shows, until
from psycopg.rows import dict_row, tuple_row


def test_it_stays_a_connection_and_the_plain_one_stays_plain(quiet_lab: PostgresqlStore, quiet_posts: Posts) -> None:
    with psycopg.connect(quiet_lab.url("a"), row_factory=dict_row) as plain:
        wrapped = antipode_postgresql.wrap(plain, STORE)
        assert isinstance(wrapped, psycopg.Connection)
        assert type(plain) is psycopg.Connection
        with antipode.scope() as scope:
            plain.execute(INSERT, ("by the plain one",))
            plain.commit()
            assert not scope.lineage
            assert wrapped.execute("SELECT key FROM posts").fetchone() == {"key": "by the plain one"}
            wrapped.execute(INSERT, ("by the wrapped one",))
            plain.commit()  # they share one transaction
            assert wrapped.info.transaction_status == psycopg.pq.TransactionStatus.IDLE


class Counting(psycopg.Connection[Any]):
    """An application's own class, with an idea of its own of what a cursor is."""

    cursors = 0

    def cursor(self, *args: Any, **options: Any) -> Any:
        self.cursors += 1
        return super().cursor(*args, **options)


def test_cursors_are_made_as_the_connections_class_makes_them(quiet_lab: PostgresqlStore, quiet_posts: Posts) -> None:
    """They are of the recording class from the second one on; a class of the application's own is asked each time."""
    with antipode.scope() as scope, Counting.connect(quiet_lab.url("a"), autocommit=True) as own:
        counted = antipode_postgresql.wrap(own, STORE)
        for number in range(3):
            counted.execute(INSERT, (f"{number}",))
            assert counted.cursors == number + 1
        assert proved(scope)
    wrapped: Any = quiet_posts.wrap("a")
    factories: list[Any] = [psycopg.Cursor, psycopg.ClientCursor, psycopg.RawCursor]
    factories.append(lambda *args, **_: psycopg.Cursor(*args))
    for factory in factories:
        wrapped.cursor_factory = factory
        for row_factory, row in ((dict_row, {"one": 1}), (tuple_row, (1,))):
            wrapped.row_factory = row_factory
            with antipode.scope() as scope, wrapped.cursor() as cursor:
                cursor.execute("INSERT INTO posts VALUES ('x', 'v') ON CONFLICT DO NOTHING RETURNING 1 AS one")
                assert proved(scope)
                assert issubclass(type(cursor), factory if isinstance(factory, type) else psycopg.Cursor)
                assert cursor.connection is wrapped
                cursor.execute("SELECT 1 AS one")
                assert cursor.fetchone() == row
    wrapped.close()
    with pytest.raises(psycopg.OperationalError, match="closed"):
        wrapped.cursor()


def test_a_write_is_pending_until_its_commit_has_returned(wrapped: psycopg.Connection[Any]) -> None:
    with antipode.scope() as scope:
        wrapped.execute("SELECT 1")
        assert not scope.pending
        wrapped.execute(INSERT, ("1",))
        assert len(scope.pending) == 1
        wrapped.execute(INSERT, ("2",))
        assert len(scope.pending) == 1
        assert not scope.lineage.of_store(STORE)
        assert scope.lineage.incomplete == {STORE}
        wrapped.commit()
        first = proved(scope)
        assert scope.lineage.is_complete()
        wrapped.execute(INSERT, ("3",))
        wrapped.commit()
        assert proved(scope) > first


def test_a_rollback_clears(wrapped: psycopg.Connection[Any]) -> None:
    with antipode.scope() as scope:
        wrapped.execute(INSERT, ("1",))
        wrapped.rollback()
        assert not scope.pending
        wrapped.execute(INSERT, ("1",))
        with pytest.raises(psycopg.errors.UniqueViolation):
            wrapped.execute(INSERT, ("1",))
        wrapped.commit()  # of a transaction in error: the server rolls back
        assert not scope.pending
        wrapped.execute("BEGIN")
        wrapped.execute(INSERT, ("1",))
        wrapped.execute("ROLLBACK")
        assert not scope.pending
        assert not scope.lineage


def test_a_transaction_that_only_read_gives_nothing(wrapped: psycopg.Connection[Any]) -> None:
    with antipode.scope() as scope:
        wrapped.execute("SELECT count(*), max(key) FROM posts")
        wrapped.execute("SET LOCAL statement_timeout = '1min'")
        assert not scope.pending
        wrapped.execute("SELECT pg_advisory_xact_lock(1)")  # a function may write, for all that its name says
        wrapped.commit()
        assert not scope.pending
        assert not scope.lineage


def test_nested_transactions_and_savepoints(wrapped: psycopg.Connection[Any]) -> None:
    with antipode.scope() as scope:
        with wrapped.transaction():
            with pytest.raises(psycopg.errors.UniqueViolation), wrapped.transaction():  # noqa: PT012
                wrapped.execute(INSERT, ("1",))
                wrapped.execute(INSERT, ("1",))
            with wrapped.transaction(force_rollback=True):
                wrapped.execute(INSERT, ("2",))
            wrapped.execute(INSERT, ("3",))
            assert len(scope.pending) == 1
        assert proved(scope)
        assert [row[0] for row in wrapped.execute("SELECT key FROM posts")] == ["3"]


def test_a_commit_that_the_server_refuses(wrapped: psycopg.Connection[Any]) -> None:
    wrapped.execute("CREATE TABLE IF NOT EXISTS late (key text UNIQUE DEFERRABLE INITIALLY DEFERRED)")
    wrapped.commit()
    with antipode.scope() as scope:
        wrapped.execute("INSERT INTO late VALUES ('1'), ('1')")
        with pytest.raises(psycopg.errors.UniqueViolation):
            wrapped.commit()
        assert not scope.pending
        assert not scope.lineage
        wrapped.execute("INSERT INTO late VALUES ('2')")
        wrapped.commit()
        assert proved(scope)


def test_ddl_is_a_write(wrapped: psycopg.Connection[Any]) -> None:
    with antipode.scope() as scope:
        wrapped.execute("CREATE TABLE IF NOT EXISTS other (key text)")
        wrapped.execute("DROP TABLE other")
        wrapped.commit()
        assert proved(scope)
        wrapped.autocommit = True
        before = proved(scope)
        wrapped.execute("CREATE INDEX CONCURRENTLY IF NOT EXISTS by_value ON posts (value)")
        wrapped.execute("VACUUM posts")
        assert proved(scope) > before


def test_a_server_side_cursor_only_reads(wrapped: psycopg.Connection[Any]) -> None:
    wrapped.execute(INSERT, ("1",))
    wrapped.commit()
    with antipode.scope() as scope:
        with wrapped.cursor("mine") as cursor:
            cursor.execute("SELECT key FROM posts")
            assert cursor.fetchall() == [("1",)]
        wrapped.commit()
        assert not scope.lineage


def test_two_phase_commit(wrapped: psycopg.Connection[Any]) -> None:
    with antipode.scope() as scope:
        wrapped.tpc_begin("one")
        wrapped.execute(INSERT, ("1",))
        wrapped.tpc_prepare()
        assert len(scope.pending) == 1
        assert not scope.lineage.of_store(STORE)
        wrapped.tpc_commit()
        first = proved(scope)
        wrapped.tpc_begin("two")
        wrapped.execute(INSERT, ("2",))
        wrapped.tpc_prepare()
        wrapped.tpc_rollback()
        assert proved(scope) == first
        wrapped.tpc_begin("three")
        wrapped.execute(INSERT, ("3",))
        wrapped.tpc_commit()
        assert proved(scope) > first


def test_two_phase_commit_in_words(wrapped: psycopg.Connection[Any]) -> None:
    wrapped.autocommit = True
    with antipode.scope() as scope:
        for end in ("COMMIT", "ROLLBACK"):
            wrapped.execute("BEGIN")
            wrapped.execute(INSERT, (end,))
            wrapped.execute("PREPARE TRANSACTION 'words'")
            assert len(scope.pending) == 1
            wrapped.execute(f"{end} PREPARED 'words'".encode())
        assert proved(scope)


def test_the_end_of_another_prepared_transaction_settles_nothing(
    wrapped: psycopg.Connection[Any], quiet_posts: Posts
) -> None:
    """SCOPE-17, SCOPE-24: each name has its own writes, whoever ends it; one that could not be ended is in doubt."""
    other = quiet_posts.wrap("a", autocommit=True)

    def prepare(connection: psycopg.Connection[Any], name: str) -> None:
        connection.execute("BEGIN")
        connection.execute(INSERT, (name,))
        connection.execute(f"PREPARE TRANSACTION '{name}'".encode())

    for end in ("ROLLBACK", "COMMIT"):
        wrapped.autocommit = True
        prepare(other, "theirs")
        with antipode.scope() as mine:
            prepare(wrapped, "mine")
        with antipode.scope() as second:
            prepare(wrapped, "second")
            wrapped.execute("COMMIT PREPARED 'second'")
            proved(second)
        with antipode.scope():
            wrapped.execute(f"{end} PREPARED 'theirs'".encode())
        assert not mine.lineage.is_complete()
        with antipode.scope():
            wrapped.execute("COMMIT PREPARED 'mine'")
        assert not mine.lineage.is_complete() or mine.lineage.of_store(STORE)
        wrapped.execute("DELETE FROM posts")
    wrapped.autocommit = False
    with antipode.scope() as doubtful:
        wrapped.tpc_begin("doubtful")
        wrapped.execute(INSERT, ("doubtful",))
        wrapped.tpc_prepare()
        other.execute("COMMIT PREPARED 'doubtful'")
        with pytest.raises(psycopg.Error):
            wrapped.tpc_commit()
        assert not doubtful.lineage.is_complete()


def test_what_is_prepared_unseen_is_in_doubt(wrapped: psycopg.Connection[Any]) -> None:
    """SCOPE-17: in a text of several statements, or in a pipeline, nobody tells what was prepared."""
    wrapped.autocommit = True
    with antipode.scope() as scope:
        wrapped.execute("BEGIN; INSERT INTO posts VALUES ('text', 'v'); PREPARE /* */ TRANSACTION 'text'")
    assert not scope.lineage.is_complete()
    with antipode.scope() as scope:
        with wrapped.pipeline():
            wrapped.execute("BEGIN")
            wrapped.execute(INSERT, ("pipe",))
            wrapped.execute("PREPARE TRANSACTION 'pipe'")
        assert not scope.lineage.is_complete()
        wrapped.execute(INSERT, ("plain",))
        assert scope.lineage.of_store(STORE)  # what follows is recorded
    for name in ("text", "pipe"):
        wrapped.execute(f"ROLLBACK PREPARED '{name}'".encode())


def test_an_unknown_outcome_stays_pending(quiet_posts: Posts, quiet_lab: PostgresqlStore) -> None:
    wrapped = quiet_posts.wrap("a", autocommit=False)
    with antipode.scope() as scope:
        wrapped.execute("CREATE TABLE IF NOT EXISTS slow (key text)")
        wrapped.execute(
            "CREATE OR REPLACE FUNCTION dawdle() RETURNS trigger LANGUAGE plpgsql AS "
            "$$ BEGIN PERFORM pg_sleep(20); RETURN NULL; END $$"
        )
        wrapped.execute(
            "CREATE CONSTRAINT TRIGGER dawdle AFTER INSERT ON slow DEFERRABLE INITIALLY DEFERRED "
            "FOR EACH ROW EXECUTE FUNCTION dawdle()"
        )
        wrapped.commit()
        before = scope.lineage
        wrapped.execute("INSERT INTO slow VALUES ('1')")
        pid = wrapped.info.backend_pid
        with quiet_lab.connect("a") as server:

            def cut_off() -> None:
                while True:
                    row = server.execute("SELECT query FROM pg_stat_activity WHERE pid = %s", (pid,)).fetchone()
                    if row is not None and "COMMIT" in row[0]:
                        break
                server.execute("SELECT pg_terminate_backend(%s)", (pid,))

            thread = threading.Thread(target=cut_off)
            thread.start()
            with pytest.raises(psycopg.OperationalError):
                wrapped.commit()
            thread.join()
        assert [write.unknown for write in scope.pending] == [True]
        assert scope.lineage.incomplete == {STORE}
        assert scope.lineage == before


def test_a_connection_lost_before_its_commit_leaves_nothing(quiet_posts: Posts, quiet_lab: PostgresqlStore) -> None:
    """What was never told to commit is rolled back: that is known."""
    wrapped = quiet_posts.wrap("a", autocommit=False)
    with antipode.scope() as scope:
        wrapped.execute(INSERT, ("1",))
        with quiet_lab.connect("a") as server:
            server.execute("SELECT pg_terminate_backend(%s)", (wrapped.info.backend_pid,))
        with pytest.raises(psycopg.OperationalError):
            wrapped.execute(INSERT, ("2",))
        wrapped.close()
        assert not scope.pending
        assert not scope.lineage


def test_a_connection_lost_under_the_plain_ones_commit_leaves_it_unknown(
    quiet_posts: Posts, quiet_lab: PostgresqlStore
) -> None:
    """SCOPE-25: nobody heard whether the server took it."""
    wrapped = quiet_posts.wrap("a", autocommit=False)
    with antipode.scope() as scope:
        wrapped.execute(INSERT, ("1",))
        with quiet_lab.connect("a") as server:
            server.execute("SELECT pg_terminate_backend(%s)", (wrapped.info.backend_pid,))
        wrapped.pgconn.exec_(b"COMMIT")
        wrapped.close()
        assert scope.pending
        assert not scope.lineage.is_complete()


def test_a_connection_lost_in_a_text_that_may_commit_leaves_it_unknown(
    quiet_posts: Posts, quiet_lab: PostgresqlStore
) -> None:
    """Several statements in one text: the commit among them has happened here, and nobody heard of it."""
    wrapped = quiet_posts.wrap("a", autocommit=False)
    with antipode.scope() as scope, quiet_lab.connect("a", user="app") as other, quiet_lab.connect("a") as server:
        wrapped.execute(INSERT, ("committed",))
        pid = wrapped.info.backend_pid

        def cut_off() -> None:
            until(lambda: shows(other, "committed"))
            server.execute("SELECT pg_terminate_backend(%s)", (pid,))

        thread = threading.Thread(target=cut_off)
        thread.start()
        with pytest.raises(psycopg.OperationalError):
            wrapped.execute("COMMIT; BEGIN; SELECT pg_sleep(60)")
        thread.join()
        wrapped.close()
        assert [write.unknown for write in scope.pending] == [True]
        assert scope.lineage.incomplete == {STORE}


def test_closing_an_open_transaction_abandons_it(quiet_posts: Posts) -> None:
    wrapped = quiet_posts.wrap("a", autocommit=False)
    with antipode.scope() as scope:
        wrapped.execute(INSERT, ("1",))
        wrapped.close()
        assert not scope.pending


def test_a_cursor_that_binds_at_the_client(quiet_posts: Posts) -> None:
    """Django's kind: parameters are in the statement's text, and each write is recorded with its own packet."""
    wrapped = quiet_posts.wrap("a")
    wrapped.cursor_factory = psycopg.ClientCursor
    with antipode.scope() as scope:
        wrapped.execute(INSERT, ("1",))
        first = scope.lineage
        assert proved(scope)
        wrapped.execute("UPDATE posts SET value = %s WHERE key = '1'", ("100%",))
        wrapped.execute("DELETE FROM posts WHERE key = '2'")
        assert scope.lineage != first
        assert wrapped.execute("SELECT value FROM posts").fetchall() == [("100%",)]
        with pytest.raises(psycopg.NotSupportedError):
            wrapped.execute("UPDATE posts SET value = %s", ("x",), binary=True)
        with pytest.raises(psycopg.errors.UniqueViolation):
            wrapped.execute(INSERT, ("1",))
        assert not scope.pending
        assert wrapped.execute("SELECT value FROM posts").fetchall() == [("100%",)]


def test_a_cursor_made_by_hand_does_not_go_unseen(wrapped: psycopg.Connection[Any]) -> None:
    with antipode.scope() as scope:
        psycopg.ClientCursor(wrapped).execute(INSERT, ("1",))
        assert scope.pending
        wrapped.commit()
        assert proved(scope)


def test_pipelines_with_several_transactions(wrapped: psycopg.Connection[Any]) -> None:
    with antipode.scope() as scope:
        with wrapped.pipeline() as pipeline:
            with wrapped.transaction():
                wrapped.execute(INSERT, ("1",))
            with wrapped.transaction():
                cursor = wrapped.execute("SELECT count(*) FROM posts")
            with pytest.raises(psycopg.errors.UniqueViolation), wrapped.transaction():  # noqa: PT012
                wrapped.execute(INSERT, ("1",))
                pipeline.sync()
            with wrapped.transaction():
                wrapped.execute(INSERT, ("2",))
        assert cursor.fetchone() == (1,)
        assert proved(scope)
        assert [row[0] for row in wrapped.execute("SELECT key FROM posts ORDER BY key")] == ["1", "2"]


def test_an_orphan_write_and_mode_off(wrapped: psycopg.Connection[Any]) -> None:
    wrapped.execute(INSERT, ("without a scope",))
    wrapped.commit()
    antipode.configure(mode="off")
    with antipode.scope() as scope:
        wrapped.execute(INSERT, ("1",))
        wrapped.commit()
        assert not scope.lineage
        assert not scope.pending


# asyncio


async def test_async_connections(awrapped: psycopg.AsyncConnection[Any]) -> None:
    with antipode.scope() as scope:
        async with awrapped.transaction():
            await awrapped.execute(INSERT, ("1",))
            assert scope.pending
        first = proved(scope)
        await awrapped.set_autocommit(True)
        await awrapped.execute(INSERT, ("2",))
        second = proved(scope)
        await awrapped.cursor().executemany(INSERT, [("3",), ("4",)])
        third = proved(scope)
        async with awrapped.cursor().copy("COPY posts (key, value) FROM STDIN") as copy:
            await copy.write_row(("5", "v"))
        fourth = proved(scope)
        async with awrapped.pipeline():
            await awrapped.execute(INSERT, ("6",))
            await awrapped.execute(INSERT, ("7",))
        fifth = proved(scope)
        rows = [row async for row in awrapped.cursor().stream(INSERT + " RETURNING key", ("8",))]
        assert rows == [("8",)]
        assert first < second < third < fourth < fifth < proved(scope)
        assert (await antipode.barrier_async(timeout=10)).satisfied
        with pytest.raises(psycopg.errors.UniqueViolation):
            await awrapped.execute(INSERT, ("1",))
        assert not scope.pending


def test_our_own_question_waits_for_no_standby(quiet_posts: Posts, quiet_lab: PostgresqlStore) -> None:
    """SHIM-2: a commit that was cancelled while it waited for a synchronous standby ends, as without us."""
    wrapped = quiet_posts.wrap("a", autocommit=True)
    with quiet_lab.connect("a", database="app", autocommit=True) as admin:
        scopes: list[antipode.Scope] = []

        def write() -> None:
            with antipode.scope() as scope:
                wrapped.execute(INSERT, ("waits",))
                scopes.append(scope)

        writer = threading.Thread(target=write, daemon=True)
        pid, end = wrapped.info.backend_pid, time.monotonic() + 60
        admin.execute("ALTER SYSTEM SET synchronous_standby_names = 'nobody'")
        admin.execute("SELECT pg_reload_conf()")
        writer.start()
        try:
            while (
                writer.is_alive()
                and not admin.execute(
                    "SELECT 1 FROM pg_stat_activity WHERE pid = %s AND wait_event = 'SyncRep'", (pid,)
                ).fetchone()
            ):
                assert time.monotonic() < end
                time.sleep(0.01)
            admin.execute("SELECT pg_cancel_backend(%s)", (pid,))
            writer.join(20)
            assert not writer.is_alive()
        finally:
            admin.execute("ALTER SYSTEM RESET synchronous_standby_names")
            admin.execute("SELECT pg_reload_conf()")
            writer.join(60)
        assert scopes[0].pending or not scopes[0].lineage.is_complete() or proved(scopes[0])


# Pools and SQLAlchemy


def test_what_cannot_be_wrapped() -> None:
    with isolated():
        with pytest.raises(TypeError, match="psycopg connection"):
            antipode_postgresql.wrap(object(), STORE)
        with pytest.raises(TypeError, match="postgresql\\+psycopg"):
            antipode_postgresql.wrap(sqlalchemy.create_engine("sqlite://"), STORE)
        with pytest.raises(ConfigurationError, match="rest="):
            antipode_postgresql.wrap(object(), STORE, rest="field")  # type: ignore[arg-type]


def test_several_hosts_in_one_address_are_unproven(quiet_lab: PostgresqlStore) -> None:
    """BAR-52, BAR-59: which of them a reader's connection reaches nobody knows."""
    with isolated():
        primary, standby = (urlsplit(quiet_lab.url(name)) for name in ("a", "b1"))
        several = primary._replace(netloc=f"{primary.netloc},127.0.0.1:{standby.port}").geturl()
        writer = antipode_postgresql.wrap(quiet_lab.connect("a", user="app"), STORE, replicas=[several])
        with antipode.scope():
            writer.execute("DELETE FROM posts")
            result = antipode.barrier(timeout=30, on_unproven="proceed")
        assert not result.satisfied
        assert result.stores[STORE].kind is UnprovenKind.UNFIT
        assert "AP208" in result.explain()
