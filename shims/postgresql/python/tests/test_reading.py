"""What reads depend on, and reads that wait (spec SHIM, BAR-50)."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager

import antipode
import psycopg
import pytest
from antipode import Ordered
from antipode._model.result import BarrierTimeout, BarrierUnproven
from antipode_lab.processes import wait_until
from antipode_lab.stores.postgresql import PostgresqlStore
from antipode_postgresql.positions import number_of
from pg_regions import INSERT, STORE, Posts


def test_wait_on_read(quiet_posts: Posts, quiet_lab: PostgresqlStore) -> None:
    reader = quiet_posts.wrap("b1", wait_on_read=True, timeout=10)
    quiet_lab.lag("b1", "100ms")
    try:
        with antipode.scope():
            writer = quiet_posts.wrap("a")
            for number in range(3):
                writer.execute(INSERT, (f"read-{number}",))
                found = reader.execute("SELECT value FROM posts WHERE key = %s", (f"read-{number}",)).fetchone()
                assert found == ("v",)
            quiet_lab.partition("b1")
            impatient = quiet_posts.wrap("b1", wait_on_read=True, timeout=0.2)
            writer.execute(INSERT, ("parted",))
            with pytest.raises(BarrierTimeout, match="wait on read"):
                impatient.execute("SELECT 1")
    finally:
        quiet_lab.lag("b1", "3ms")
        quiet_lab.heal()


def test_wait_on_read_in_a_session_with_a_time_zone_of_its_own(quiet_posts: Posts) -> None:
    """BAR-50: a server is told by when it was started, whatever clock the application's session shows."""
    reader = quiet_posts.wrap("b1", wait_on_read=True, timeout=10)
    reader.execute("SET TIME ZONE 'Asia/Tokyo'")
    with antipode.scope():
        quiet_posts.wrap("a").execute(INSERT, ("zoned",))
        assert reader.execute("SELECT value FROM posts WHERE key = 'zoned'").fetchone() == ("v",)


def test_a_snapshot_taken_before_is_not_waited_for(quiet_posts: Posts) -> None:
    reader = quiet_posts.wrap("b1", wait_on_read=True, autocommit=False, timeout=5)
    reader.isolation_level = psycopg.IsolationLevel.REPEATABLE_READ
    reader.execute("SELECT 1")
    with antipode.scope():
        quiet_posts.wrap("a").execute(INSERT, ("behind the snapshot",))
        with pytest.raises(BarrierUnproven, match="snapshot"):
            reader.execute("SELECT value FROM posts")
        reader.rollback()
        assert reader.execute("SELECT value FROM posts").fetchone() == ("v",)


def test_reading_covers_and_gives_what_rests_beside(quiet_posts: Posts, quiet_lab: PostgresqlStore) -> None:
    writer = quiet_posts.wrap("a", rest="column")
    reader = quiet_posts.wrap("b1", rest="column")
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
    with quiet_lab.connect("a", user="app") as plain:
        plain.execute("INSERT INTO posts (key, value) VALUES ('plain', 'v')")
        assert plain.execute("SELECT antipode FROM posts WHERE key = 'plain'").fetchone() == (None,)


def test_a_read_at_a_standby_covers_what_it_may_have_begun_to_replay(
    quiet_posts: Posts, quiet_lab: PostgresqlStore
) -> None:
    """EPOCH-31: a commit can be seen before it counts as replayed; until then it is only known to be received."""
    reader = quiet_posts.wrap("b1")
    with quiet_lab.connect("b1") as standby, quiet_lab.connect("a", user="app") as primary:
        standby.execute("SELECT pg_wal_replay_pause()")
        try:
            primary.execute(INSERT, ("received",))
            [written] = primary.execute("SELECT pg_current_wal_flush_lsn()::text").fetchone() or ("",)
            question = "SELECT pg_last_wal_receive_lsn() >= %s::pg_lsn"
            wait_until("it is received", lambda: standby.execute(question, (written,)).fetchone() == (True,))
            with antipode.reading() as seen:
                reader.execute("SELECT value FROM posts")
            [covering] = seen.lineage.of_store(STORE)
            assert isinstance(covering.version, Ordered)
            assert covering.version.counter >= number_of(written)
            assert seen.lineage.is_complete()
        finally:
            standby.execute("SELECT pg_wal_replay_resume()")
    assert antipode.barrier(seen.lineage, timeout=20).complete


@pytest.mark.parametrize(
    "back",
    ["ROLLBACK TO here", "ROLLBACK TO here; SELECT 1", "RESET ALL", "", "an error", "SELECT set_config(%s, '', true)"],
)
def test_what_takes_the_setting_back_takes_no_lineage_from_the_next_row(quiet_posts: Posts, back: str) -> None:
    """PROP-21: the server forgets at a ROLLBACK TO what it was told behind the savepoint."""
    writer = quiet_posts.wrap("a", rest="column")
    other = antipode.Lineage([antipode.WriteId("elsewhere", "key", Ordered("", 7))])
    with antipode.scope(other), writer.transaction():
        if back:
            writer.execute("SAVEPOINT here")
            writer.execute(INSERT, ("before",))
        else:
            with writer.transaction(force_rollback=True):
                writer.execute(INSERT, ("before",))
        if back == "an error":
            with pytest.raises(psycopg.errors.DivisionByZero):
                writer.execute("UPDATE posts SET value = (1/0)::text")
            back = "ROLLBACK TO here"
        if back:
            writer.execute(back, ("antipode.lineage",) if "%s" in back else None)
        writer.execute(INSERT, ("behind",))
        [(beside,)] = writer.execute("SELECT antipode FROM posts WHERE key = 'behind'").fetchall()
        writer.execute("DELETE FROM posts")
    assert beside == other.serialize()


@contextmanager
def refusing(lab: PostgresqlStore, function: str) -> Iterator[None]:
    """A server that lets nobody call this function."""
    with lab.connect("a", database="app") as administrator:
        administrator.execute(f"REVOKE EXECUTE ON FUNCTION {function} FROM PUBLIC")
        try:
            yield
        finally:
            administrator.execute(f"GRANT EXECUTE ON FUNCTION {function} TO PUBLIC")


def test_without_its_lineage_a_row_is_not_written(quiet_posts: Posts, quiet_lab: PostgresqlStore) -> None:
    """PROP-21: what keeps ours from being told is the write's own error, and has its words."""
    writer = quiet_posts.wrap("a", rest="column")
    refused = pytest.raises(psycopg.errors.InsufficientPrivilege, match="set_config")
    with antipode.scope() as scope, refusing(quiet_lab, "set_config(text, text, boolean)"):
        with refused:
            writer.execute(INSERT, ("alone",))
        with refused:
            writer.execute("DO $$ BEGIN INSERT INTO posts VALUES ('by a procedure', 'v'); END $$")
        with refused, writer.cursor().copy("COPY posts (key, value) FROM STDIN") as copy:
            copy.write_row(("copied", "v"))
        with refused, writer.transaction():
            writer.execute(INSERT, ("in a transaction",))
        assert not scope.lineage
        assert not scope.pending
        with refused, writer.pipeline():
            writer.execute(INSERT, ("piped",))
        with refused, writer.pipeline(), writer.transaction():
            writer.execute(INSERT, ("piped in a transaction",))
        with refused:
            writer.cursor().executemany(INSERT, [("many",), ("more",)])
        assert not scope.pending
    assert writer.execute("SELECT count(*) FROM posts").fetchone() == (0,)


def test_a_pipelined_write_in_a_transaction_in_error_has_its_words(quiet_posts: Posts) -> None:
    writer = quiet_posts.wrap("a", rest="column", autocommit=False)
    with antipode.scope() as scope, writer.pipeline() as pipeline:
        with pytest.raises(psycopg.errors.SyntaxError):  # noqa: PT012
            writer.execute("nonsense")
            pipeline.sync()
        with pytest.raises(psycopg.errors.InFailedSqlTransaction):  # noqa: PT012
            writer.execute(INSERT, ("1",))
            pipeline.sync()
        writer.rollback()
        assert not scope.lineage
        assert not scope.pending


def test_a_pipelined_commit_has_the_words_of_what_kept_it(quiet_posts: Posts, quiet_lab: PostgresqlStore) -> None:
    writer = quiet_posts.wrap("a", autocommit=False)
    with antipode.scope() as scope, refusing(quiet_lab, "pg_current_xact_id_if_assigned()"), writer.pipeline():
        writer.execute(INSERT, ("1",))
        with pytest.raises(psycopg.errors.InsufficientPrivilege, match="pg_current_xact_id_if_assigned"):
            writer.commit()
        writer.rollback()
        assert not scope.lineage
        assert not scope.pending


def test_lineages_beside_a_row_are_joined(quiet_lab: PostgresqlStore) -> None:
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
    with quiet_lab.connect("a", database="app") as connection:
        for kept, added, joined in cases:
            assert connection.execute("SELECT antipode.joined(%s, %s)", (kept, added)).fetchone() == (joined,)
