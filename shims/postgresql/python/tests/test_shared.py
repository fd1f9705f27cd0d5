"""A transaction that several scopes share, and a commit within what looks like an open one (SCOPE-24, SCOPE-25)."""

from __future__ import annotations

from collections.abc import Callable
from contextlib import nullcontext, suppress
from typing import Any

import antipode
import antipode_postgresql
import psycopg
import pytest
from antipode import Lineage
from antipode.messages import outgoing_message
from pg_regions import INSERT, STORE, Posts, proved

Connection = psycopg.Connection[Any]


def leaves_marked() -> bool:
    text = outgoing_message()
    return text is not None and Lineage.deserialize(text).incomplete == {STORE}


def test_each_scope_of_a_transaction_has_its_write(wrapped: Connection) -> None:
    """SCOPE-24: a batch's consumer has one transaction, and a scope a message."""
    with antipode.scope() as outer:
        wrapped.execute(INSERT, ("1",))
        with antipode.scope() as inner:
            wrapped.execute(INSERT, ("2",))
            assert len(inner.pending) == 1
            assert leaves_marked()
            wrapped.commit()
            assert antipode.barrier(timeout=10).complete
        assert proved(inner) == proved(outer)


def test_a_transaction_that_began_outside_any_scope(wrapped: Connection) -> None:
    """SCOPE-24: nor does it matter that the first scope has ended when it is committed."""
    wrapped.execute(INSERT, ("1",))
    with antipode.scope() as ended:
        wrapped.execute(INSERT, ("2",))
    with antipode.scope() as scope, wrapped.cursor() as cursor:
        cursor.executemany(INSERT, [("3",), ("4",)])
        wrapped.commit()
    assert proved(scope)
    assert not ended.pending


def _in_words(connection: Connection) -> None:
    connection.execute("COMMIT")


def _by_a_block(connection: Connection) -> None:
    connection.__exit__(None, None, None)


def _in_a_pipeline(connection: Connection) -> None:
    with connection.pipeline():
        connection.commit()


def _in_words_in_a_pipeline(connection: Connection) -> None:
    with connection.pipeline():
        connection.execute("COMMIT")


def _as_usual(connection: Connection) -> None:
    connection.commit()


COMMITS: list[Callable[[Connection], None]] = [_as_usual, _in_words, _by_a_block, _in_a_pipeline]
COMMITS += [_in_words_in_a_pipeline]


@pytest.mark.parametrize("outside", [True, False])
@pytest.mark.parametrize("commit", COMMITS)
def test_who_commits_what_others_wrote(
    wrapped: Connection, commit: Callable[[Connection], None], outside: bool
) -> None:
    """SCOPE-24: also where those have ended."""
    with nullcontext() if outside else antipode.scope():
        wrapped.execute(INSERT, ("1",))
    with antipode.scope() as committing:
        assert not committing.pending
        commit(wrapped)
        assert proved(committing)


@pytest.mark.parametrize("end", ["commit", "rollback", "COMMIT"])
def test_who_ends_it_by_another_wrap(wrapped: Connection, end: str) -> None:
    """SCOPE-24: of the same connection."""
    other = antipode_postgresql.wrap(wrapped._antipode_plain, STORE)  # type: ignore[attr-defined]
    with antipode.scope() as outer:
        wrapped.execute(INSERT, ("1",))
        with antipode.scope() as ending:
            _in_words(other) if end == "COMMIT" else getattr(other, end)()
            if end == "rollback":
                assert not outer.pending
                assert antipode.serialize() == "1"
            else:
                assert proved(ending) == proved(outer)


async def test_who_commits_by_asyncio(awrapped: psycopg.AsyncConnection[Any]) -> None:
    block = awrapped.transaction()
    with antipode.scope():
        await block.__aenter__()
        await awrapped.execute(INSERT, ("1",))
    with antipode.scope() as committing:
        await block.__aexit__(None, None, None)
        assert proved(committing)


def test_who_has_a_pipeline_done(wrapped: Connection) -> None:
    """SCOPE-24: in autocommit mode a Sync commits what was queued before it."""
    wrapped.autocommit = True
    with antipode.scope() as outer:
        with wrapped.pipeline() as pipeline:
            with antipode.scope():
                wrapped.execute(INSERT, ("1",))
            assert not outer.pending
            pipeline.sync()
            assert leaves_marked()
        assert proved(outer)


@pytest.mark.parametrize("autocommit", [False, True])
def test_who_hears_of_a_queued_commit(wrapped: Connection, autocommit: bool) -> None:
    """SCOPE-24: a fetch has the pipeline's replies, that of another scope's COMMIT among them."""
    wrapped.autocommit = autocommit
    with antipode.scope() as hearing:
        with wrapped.pipeline():
            with antipode.scope():
                if autocommit:
                    wrapped.execute("BEGIN")
                wrapped.execute(INSERT, ("1",))
                wrapped.execute("COMMIT")
            assert antipode.serialize() == "1"
            wrapped.execute("SELECT 1").fetchone()
            assert leaves_marked()
        assert proved(hearing)


def test_a_commit_that_nobody_hears_marks_nobody_later(wrapped: Connection) -> None:
    """SCOPE-24: a pipeline that ends by an error; who uses the connection after it has done nothing of that."""
    with antipode.scope(), suppress(psycopg.errors.UniqueViolation), wrapped.pipeline():
        wrapped.execute(INSERT, ("1",))
        wrapped.execute(INSERT, ("1",))
        wrapped.commit()
    wrapped.rollback()
    with antipode.scope(), wrapped.pipeline():
        wrapped.execute("SELECT 1").fetchone()
        assert antipode.serialize() == "1"


@pytest.mark.parametrize("writes", ["who began it", "who ends it"])
def test_who_ends_a_copy(wrapped: Connection, writes: str) -> None:
    """SCOPE-24: its end commits it, and whoever writes rows has a write in it."""
    wrapped.autocommit = True
    with wrapped.cursor() as cursor:
        with antipode.scope():
            copying = cursor.copy("COPY posts (key, value) FROM STDIN")
            copy = copying.__enter__()
            if writes == "who began it":
                copy.write_row(("1", "v"))
        with antipode.scope() as ending:
            assert antipode.serialize() == "1"
            if writes == "who ends it":
                copy.write_row(("1", "v"))
            copying.__exit__(None, None, None)
            assert proved(ending)


async def test_who_ends_a_copy_of_asyncio(awrapped: psycopg.AsyncConnection[Any]) -> None:
    await awrapped.set_autocommit(True)
    async with awrapped.cursor() as cursor:
        with antipode.scope():
            copying = cursor.copy("COPY posts (key, value) FROM STDIN")
            copy = await copying.__aenter__()
            await copy.write_row(("1", "v"))
        with antipode.scope() as ending:
            await copying.__aexit__(None, None, None)
            assert proved(ending)


def test_who_takes_the_rest_of_a_stream(wrapped: Connection) -> None:
    """SCOPE-24: in autocommit mode its end is a commit."""
    wrapped.autocommit = True
    with wrapped.cursor() as cursor:
        with antipode.scope():
            rows = cursor.stream("INSERT INTO posts (key, value) SELECT generate_series(1, 9)::text, 'v' RETURNING key")
            next(rows)
        with antipode.scope() as taking:
            assert len(list(rows)) == 8
            assert proved(taking)


async def test_who_ends_a_pipeline_of_asyncio(awrapped: psycopg.AsyncConnection[Any]) -> None:
    await awrapped.set_autocommit(True)
    with antipode.scope() as outer:
        async with awrapped.pipeline():
            with antipode.scope():
                await awrapped.execute(INSERT, ("1",))
        assert proved(outer)


def test_who_commits_in_vain(wrapped: Connection, quiet_posts: Posts) -> None:
    """SCOPE-17, SCOPE-24: what is known not to have happened leaves nothing, and a lost connection a doubt."""
    with antipode.scope():
        wrapped.execute(INSERT, ("1",))
        with pytest.raises(psycopg.errors.UniqueViolation):
            wrapped.execute(INSERT, ("1",))
    with antipode.scope() as committing:
        wrapped.commit()
        assert antipode.serialize() == "1"
    with antipode.scope():
        wrapped.execute(INSERT, ("1",))
    with antipode.scope() as committing:
        with quiet_posts.lab.connect("a") as server:
            server.execute("SELECT pg_terminate_backend(%s, 60000)", (wrapped.info.backend_pid,))
        with pytest.raises(psycopg.OperationalError):
            wrapped.commit()
        assert [write.unknown for write in committing.pending] == [True]


def test_who_prepares_and_who_commits_that(wrapped: Connection) -> None:
    """SCOPE-24: somebody else may commit what is prepared."""
    with antipode.scope():
        wrapped.tpc_begin("shared")
        wrapped.execute(INSERT, ("1",))
    with antipode.scope() as preparing:
        wrapped.tpc_prepare()
        assert leaves_marked()
        with antipode.scope() as committing:
            wrapped.tpc_commit()
            assert proved(preparing) == proved(committing)


def test_a_rollback_is_everybodys(wrapped: Connection) -> None:
    with antipode.scope() as outer:
        wrapped.execute(INSERT, ("1",))
        with antipode.scope() as inner:
            wrapped.execute(INSERT, ("2",))
            wrapped.rollback()
            assert not inner.pending
        assert not outer.pending
        assert outer.lineage == inner.lineage == Lineage()


def test_each_scope_of_a_pipeline_has_its_write(wrapped: Connection) -> None:
    with antipode.scope():
        wrapped.execute(INSERT, ("0",))
        wrapped.commit()  # so that the connection knows its server
    with antipode.scope() as outer, wrapped.pipeline() as pipeline:
        wrapped.execute(INSERT, ("1",))
        with antipode.scope() as inner:
            wrapped.execute(INSERT, ("2",))
            wrapped.commit()
            pipeline.sync()
            assert proved(inner) == proved(outer)


def chain(connection: Connection) -> None:
    connection.execute("COMMIT AND CHAIN")


def several(connection: Connection) -> None:
    connection.execute("COMMIT; BEGIN")


def by_hand(connection: Connection) -> None:
    psycopg.ClientCursor(connection).execute("COMMIT AND CHAIN")


@pytest.mark.parametrize("commit", [chain, several, by_hand])
def test_a_commit_within_is_not_thrown_away(wrapped: Connection, commit: Callable[[Connection], None]) -> None:
    """SCOPE-25: by the rollback of what came after it."""
    with antipode.scope() as scope:
        wrapped.execute(INSERT, ("1",))
        commit(wrapped)
        wrapped.rollback()
        assert proved(scope)
        assert antipode.barrier(timeout=10).complete


@pytest.mark.parametrize("end", ["ROLLBACK", "COMMIT"])
def test_a_commit_within_and_an_end_in_words(wrapped: Connection, end: str) -> None:
    with antipode.scope() as scope:
        wrapped.execute(INSERT, ("1",))
        wrapped.execute("COMMIT AND CHAIN")
        wrapped.execute("SELECT 1")
        wrapped.execute(end)
        assert proved(scope)


def _fails(wrapped: Connection) -> None:
    with pytest.raises(psycopg.errors.DivisionByZero):
        wrapped.execute("SELECT 1/0")
    wrapped.rollback()


def _fails_in_autocommit_mode(wrapped: Connection) -> None:
    wrapped.autocommit = True
    with pytest.raises(psycopg.errors.UniqueViolation):
        wrapped.execute(INSERT, ("1",))


def _fails_in_a_block(wrapped: Connection) -> None:
    with pytest.raises(psycopg.errors.DivisionByZero), wrapped.transaction():
        wrapped.execute("SELECT 1/0")


def _fails_to_copy(wrapped: Connection) -> None:
    wrapped.autocommit = True
    with pytest.raises(psycopg.errors.NotNullViolation), wrapped.cursor().copy("COPY posts (key) FROM STDIN") as copy:
        copy.write("1\n")


def _rolls_back_by_hand(wrapped: Connection) -> None:
    with pytest.raises(psycopg.errors.DivisionByZero):
        psycopg.ClientCursor(wrapped).execute("SELECT 1/0")
    wrapped.rollback()


@pytest.mark.parametrize(
    "behind", [_fails, _fails_in_autocommit_mode, _fails_in_a_block, _fails_to_copy, _rolls_back_by_hand]
)
def test_what_the_plain_connection_commits_no_later_call_throws_away(
    wrapped: Connection, behind: Callable[[Connection], None]
) -> None:
    """SCOPE-25: its end shows before the next statement."""
    with antipode.scope() as scope:
        wrapped.execute(INSERT, ("1",))
        wrapped.pgconn.exec_(b"COMMIT")
        assert leaves_marked()
        behind(wrapped)
        assert proved(scope)
        assert not scope.pending


def test_a_commit_within_and_a_pipeline_that_rolls_back(wrapped: Connection) -> None:
    with antipode.scope() as scope:
        wrapped.execute(INSERT, ("1",))
        with wrapped.pipeline():
            wrapped.execute("COMMIT AND CHAIN")
            wrapped.rollback()
        assert proved(scope)


def test_a_commit_within_and_a_connection_that_is_closed(quiet_posts: Posts) -> None:
    """SCOPE-25: nobody asks any more, so its outcome is unknown."""
    connection = quiet_posts.wrap("a", autocommit=False)
    with antipode.scope() as scope:
        connection.execute(INSERT, ("1",))
        connection.execute("COMMIT AND CHAIN")
        connection.close()
        assert scope.pending
        assert leaves_marked()


async def test_shared_and_committed_within_by_asyncio(awrapped: psycopg.AsyncConnection[Any]) -> None:
    with antipode.scope() as outer:
        await awrapped.execute(INSERT, ("1",))
        with antipode.scope() as inner:
            await awrapped.execute(INSERT, ("2",))
            await awrapped.execute("COMMIT AND CHAIN")
            await awrapped.rollback()
    assert proved(outer) == proved(inner)
