"""What follows a result that psycopg read row by row: libpq may go on so in a pipeline's first answer."""

from __future__ import annotations

from typing import Any

import antipode
import psycopg
from pg_regions import Posts, proved


def _streamed(connection: psycopg.Connection[Any]) -> None:
    assert len(list(connection.cursor().stream("SELECT generate_series(1, 3)"))) == 3


def test_a_read_that_waits_in_a_pipeline_behind_a_stream(quiet_posts: Posts) -> None:
    """SHIM-2, SHIM-44: our own question is the pipeline's first; its answer comes row by row."""
    reader = quiet_posts.wrap("b1", wait_on_read=True, timeout=30)
    with antipode.scope(), quiet_posts.wrap("a") as writer:
        for number in range(3):
            _streamed(reader)
            writer.execute("INSERT INTO posts (key, value) VALUES (%s, 'v')", (str(number),))
            with reader.pipeline():
                found = reader.execute("SELECT count(*) FROM posts").fetchone()
            assert found == (number + 1,)


def test_a_write_that_returns_rows_behind_a_stream(quiet_posts: Posts) -> None:
    """SHIM-2: what is packed with it is a pipeline of ours."""
    with quiet_posts.wrap("a") as writer:
        for number in range(3):
            _streamed(writer)
            with antipode.scope() as scope:
                insert = "INSERT INTO posts (key, value) VALUES (%s, 'v'), (%s, 'v') RETURNING key"
                found = writer.execute(insert, (f"a{number}", f"b{number}")).fetchall()
                assert found == [(f"a{number}",), (f"b{number}",)]
                assert proved(scope)


def test_a_transaction_behind_a_stream(quiet_posts: Posts) -> None:
    """SHIM-2: its commit asks in a pipeline of ours."""
    with quiet_posts.wrap("a") as writer, antipode.scope() as scope:
        with writer.transaction():
            writer.execute("INSERT INTO posts (key, value) VALUES ('1', 'v')")
            _streamed(writer)
        first = proved(scope)
        writer.autocommit = False
        writer.execute("INSERT INTO posts (key, value) VALUES ('2', 'v')")
        _streamed(writer)
        writer.commit()
        assert proved(scope) > first


def test_a_commit_in_a_pipeline_behind_a_stream(quiet_posts: Posts) -> None:
    """SCOPE-14: how it is made is the pipeline's first question, and is heard: its position is behind it."""
    with quiet_posts.wrap("a", autocommit=False) as writer, quiet_posts.lab.connect("a") as plain:
        writer.execute("SET synchronous_commit = off")
        writer.commit()
        for number in range(5):
            with antipode.scope() as scope:
                writer.execute("INSERT INTO posts (key, value) VALUES (%s, 'v')", (str(number),))
                _streamed(writer)
                written = plain.execute("SELECT pg_current_wal_insert_lsn() - '0/0'").fetchone()
                with writer.pipeline():
                    writer.commit()
                assert written is not None
                assert proved(scope) > written[0]
