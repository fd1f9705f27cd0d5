"""Wrapped connections, pools and engines: what is recorded when, and that the client stays what it was (spec SHIM)."""

from __future__ import annotations

from collections.abc import AsyncIterator, Iterator
from typing import Any

import antipode
import antipode_postgresql
import psycopg
import pytest
import sqlalchemy
from antipode import Ordered
from antipode.errors import BarrierTimeout, ConfigurationError
from antipode.testing import isolated
from antipode_lab.fixtures import LabFactory
from antipode_lab.stores.postgresql import PostgresqlStore
from pg_regions import STORE, Posts, prepare
from psycopg.rows import dict_row
from psycopg_pool import AsyncConnectionPool, ConnectionPool
from sqlalchemy.ext.asyncio import create_async_engine

INSERT = "INSERT INTO posts (key, value) VALUES (%s, 'v')"


@pytest.fixture(scope="module")
def lab(module_lab_factory: LabFactory) -> PostgresqlStore:
    options = {"postgresql": {"config": {"max_prepared_transactions": "5"}}}
    lab = module_lab_factory("postgresql", replicas=1, lag="3ms", options=options).get(PostgresqlStore)
    prepare(lab)
    return lab


@pytest.fixture
def posts(lab: PostgresqlStore) -> Iterator[Posts]:
    with isolated():
        with lab.connect("a", user="app") as connection:
            connection.execute("DELETE FROM posts")
        posts = Posts(lab, replicas=[lab.url("b1")])
        yield posts
        posts.close()


@pytest.fixture
def wrapped(posts: Posts) -> psycopg.Connection[Any]:
    return posts.wrap("a", autocommit=False)


@pytest.fixture
async def awrapped(posts: Posts, lab: PostgresqlStore) -> AsyncIterator[psycopg.AsyncConnection[Any]]:
    async with await psycopg.AsyncConnection.connect(lab.url("a")) as plain:
        yield antipode_postgresql.wrap(plain, STORE, replicas=[lab.url("b1")])


def proved(scope: antipode.Scope) -> int:
    """The counter of the one position that the scope has; nothing is pending."""
    assert not scope.pending
    [write_id] = scope.lineage.of_store(STORE)
    assert isinstance(write_id.version, Ordered)
    return write_id.version.counter


# Transactions


def test_it_stays_a_connection_and_the_plain_one_stays_plain(lab: PostgresqlStore, posts: Posts) -> None:
    with psycopg.connect(lab.url("a"), row_factory=dict_row) as plain:
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


def test_a_write_is_pending_until_its_commit_has_returned(wrapped: psycopg.Connection[Any]) -> None:
    with antipode.scope() as scope:
        wrapped.execute("SELECT 1")
        assert not scope.pending
        wrapped.execute(INSERT, ("1",))
        assert len(scope.pending) == 1
        wrapped.execute(INSERT, ("2",))
        assert len(scope.pending) == 1
        assert not scope.lineage.of_store(STORE)
        assert scope.marked().incomplete == {STORE}
        wrapped.commit()
        first = proved(scope)
        assert scope.marked().is_complete()
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
        assert not scope.lineage
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


def test_an_unknown_outcome_stays_pending(posts: Posts, lab: PostgresqlStore) -> None:
    wrapped = posts.wrap("a", autocommit=False)
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
        with lab.connect("a") as server:
            import threading

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
        assert scope.marked().incomplete == {STORE}
        assert scope.lineage == before


def test_a_connection_lost_before_its_commit_leaves_nothing(posts: Posts, lab: PostgresqlStore) -> None:
    """What was never told to commit is rolled back: that is known."""
    wrapped = posts.wrap("a", autocommit=False)
    with antipode.scope() as scope:
        wrapped.execute(INSERT, ("1",))
        with lab.connect("a") as server:
            server.execute("SELECT pg_terminate_backend(%s)", (wrapped.info.backend_pid,))
        with pytest.raises(psycopg.OperationalError):
            wrapped.execute(INSERT, ("2",))
        wrapped.close()
        assert not scope.pending
        assert not scope.lineage


def test_closing_an_open_transaction_abandons_it(posts: Posts) -> None:
    wrapped = posts.wrap("a", autocommit=False)
    with antipode.scope() as scope:
        wrapped.execute(INSERT, ("1",))
        wrapped.close()
        assert not scope.pending


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
        names = {row[0] for row in wrapped.execute("SELECT statement FROM pg_prepared_statements")}
        assert all("pg_walfile_name" not in name for name in names), "nothing of ours stays on the connection"
        assert proved(scope)


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


# Pools and SQLAlchemy


def test_pools(lab: PostgresqlStore, posts: Posts) -> None:
    with ConnectionPool(lab.url("a"), min_size=1, max_size=2, open=True) as plain:
        pool = antipode_postgresql.wrap(plain, STORE, replicas=[lab.url("b1")])
        assert isinstance(pool, ConnectionPool)
        with antipode.scope() as scope:
            with pool.connection() as connection:
                connection.execute(INSERT, ("1",))
                assert scope.pending
            first = proved(scope)
            with plain.connection() as connection:
                connection.execute(INSERT, ("2",))
            assert proved(scope) == first
            connection = pool.getconn()
            connection.execute(INSERT, ("3",))
            pool.putconn(connection)  # with a transaction open: the pool rolls back
            assert not scope.pending
            with pytest.raises(ZeroDivisionError), pool.connection() as connection:  # noqa: PT012
                connection.execute(INSERT, ("4",))
                raise ZeroDivisionError
            assert proved(scope) == first
            assert antipode.barrier(timeout=10).satisfied


async def test_async_pools(lab: PostgresqlStore, posts: Posts) -> None:
    async with AsyncConnectionPool(lab.url("a"), min_size=1, open=False) as plain:
        pool = antipode_postgresql.wrap(plain, STORE, replicas=[lab.url("b1")])
        with antipode.scope() as scope:
            async with pool.connection() as connection:
                await connection.execute(INSERT, ("1",))
            assert proved(scope)


def test_sqlalchemy_engines(lab: PostgresqlStore, posts: Posts) -> None:
    url = lab.url("a").replace("postgresql://", "postgresql+psycopg://")
    plain = sqlalchemy.create_engine(url)
    engine = antipode_postgresql.wrap(plain, STORE, replicas=[lab.url("b1")])
    insert = sqlalchemy.text("INSERT INTO posts (key, value) VALUES (:key, 'v')")
    try:
        with antipode.scope() as scope:
            with engine.begin() as connection:
                connection.execute(insert, [{"key": "1"}, {"key": "2"}])
                assert scope.pending
            first = proved(scope)
            with plain.begin() as connection:
                connection.execute(insert, {"key": "3"})
            with engine.connect() as connection:
                assert connection.execute(sqlalchemy.text("SELECT count(*) FROM posts")).scalar() == 3
                connection.execute(insert, {"key": "4"})
                connection.rollback()
            assert proved(scope) == first
            with engine.connect().execution_options(isolation_level="AUTOCOMMIT") as connection:
                connection.execute(insert, {"key": "5"})
            assert proved(scope) > first
            assert antipode.barrier(timeout=10).satisfied
    finally:
        plain.dispose()


async def test_async_sqlalchemy_engines(lab: PostgresqlStore, posts: Posts) -> None:
    plain = create_async_engine(lab.url("a").replace("postgresql://", "postgresql+psycopg_async://"))
    engine = antipode_postgresql.wrap(plain, STORE, replicas=[lab.url("b1")])
    try:
        with antipode.scope() as scope:
            async with engine.begin() as connection:
                await connection.execute(sqlalchemy.text("INSERT INTO posts (key, value) VALUES ('1', 'v')"))
            assert proved(scope)
    finally:
        await plain.dispose()


def test_what_cannot_be_wrapped() -> None:
    with isolated():
        with pytest.raises(TypeError, match="psycopg connection"):
            antipode_postgresql.wrap(object(), STORE)
        with pytest.raises(TypeError, match="postgresql\\+psycopg"):
            antipode_postgresql.wrap(sqlalchemy.create_engine("sqlite://"), STORE)
        with pytest.raises(ConfigurationError, match="rest="):
            antipode_postgresql.wrap(object(), STORE, rest="field")  # type: ignore[arg-type]


# Reads


def test_wait_on_read(posts: Posts, lab: PostgresqlStore) -> None:
    reader = posts.wrap("b1", wait_on_read=True, timeout=10)
    lab.lag("b1", "100ms")
    try:
        with antipode.scope():
            writer = posts.wrap("a")
            for number in range(3):
                writer.execute(INSERT, (f"read-{number}",))
                found = reader.execute("SELECT value FROM posts WHERE key = %s", (f"read-{number}",)).fetchone()
                assert found == ("v",)
            lab.partition("b1")
            impatient = posts.wrap("b1", wait_on_read=True, timeout=0.2)
            writer.execute(INSERT, ("parted",))
            with pytest.raises(BarrierTimeout, match="wait on read"):
                impatient.execute("SELECT 1")
    finally:
        lab.lag("b1", "3ms")
        lab.heal()


def test_a_snapshot_taken_before_is_not_waited_for(posts: Posts) -> None:
    reader = posts.wrap("b1", wait_on_read=True, autocommit=False, timeout=5)
    reader.isolation_level = psycopg.IsolationLevel.REPEATABLE_READ
    reader.execute("SELECT 1")
    with antipode.scope():
        posts.wrap("a").execute(INSERT, ("behind the snapshot",))
        with pytest.raises(BarrierTimeout, match="snapshot"):
            reader.execute("SELECT value FROM posts")
        reader.rollback()
        assert reader.execute("SELECT value FROM posts").fetchone() == ("v",)


def test_reading_covers_and_gives_what_rests_beside(posts: Posts, lab: PostgresqlStore) -> None:
    writer = posts.wrap("a", rest="column")
    reader = posts.wrap("b1", rest="column")
    other = antipode.Lineage([antipode.WriteId("elsewhere", "key", Ordered("", 7))])
    with antipode.scope(other) as scope:
        writer.execute(INSERT, ("beside",))
        with writer.transaction():
            writer.execute("UPDATE posts SET value = 'w' WHERE key = 'beside'")
        with writer.cursor().copy("COPY posts (key, value) FROM STDIN") as copy:
            copy.write_row(("copied", "v"))
        assert antipode.barrier(timeout=10, stores=[STORE]).satisfied
        mine = scope.lineage
    assert writer.execute("SELECT current_setting('antipode.lineage', true)").fetchone() in ((None,), ("",))
    for key in ("beside", "copied"):
        with antipode.reading() as seen:
            reader.execute("SELECT * FROM posts WHERE key = %s", (key,))
        assert other <= seen.lineage
        assert seen.lineage.is_complete()
        [covering] = seen.lineage.of_store(STORE)
        assert isinstance(covering.version, Ordered)
        [written] = mine.of_store(STORE)
        assert isinstance(written.version, Ordered)
        assert covering.version >= written.version
    with antipode.reading() as seen:
        reader.execute("SELECT value FROM posts")
    assert STORE in seen.lineage.incomplete, "the column was not read"
    with lab.connect("a", user="app") as plain:
        plain.execute("INSERT INTO posts (key, value) VALUES ('plain', 'v')")
        assert plain.execute("SELECT antipode FROM posts WHERE key = 'plain'").fetchone() == (None,)


def test_lineages_beside_a_row_are_joined(lab: PostgresqlStore) -> None:
    cases = [
        ("1~s..e.5", "1~s..e.7", "1~s..e.7"),
        ("1~s..e.7", "1~s..e.5", "1~s..e.7"),
        ("1~s..e.7", "1~s..f.5", "1~s..e.7..f.5"),
        ("1~t..e.7", "1~s..f.5", "1~s..f.5~t..e.7"),
        (None, "1~s..f.5", "1~s..f.5"),
        ("1~s.key..5", "1~s..f.5", "1~s..f.5 1~s.key..5"),
        ("1~s..e.18446744073709551615", "1~s..e.9", "1~s..e.18446744073709551615"),
        ("1~_.i", "1~s..f.5", "1~s..f.5 1~_.i"),
        ("1~s..f.5 1~_.i", "1~s..f.6", "1~s..f.6 1~_.i"),
        ("1~s.k..1" + "x" * 4000, "1~s..f.6", "1~_.i"),
    ]
    with lab.connect("a", database="app") as connection:
        for kept, added, joined in cases:
            assert connection.execute("SELECT antipode.joined(%s, %s)", (kept, added)).fetchone() == (joined,)
