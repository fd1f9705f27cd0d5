"""Data of a moment that is past: waiting cannot make it newer, so fetching it raises (SHIM-48)."""

from __future__ import annotations

from contextlib import closing
from typing import Any
from uuid import uuid4

import antipode
import pymysql
import pytest
from antipode._model.result import BarrierError
from sql_regions import STORE, Posts
from sqlalchemy import create_engine, text

SELECT = "SELECT id, body FROM posts ORDER BY id"
PAST = "moment that is past"


@pytest.fixture(params=["pymysql", "connector", "aio"])
def client(request: pytest.FixtureRequest) -> str:
    return str(request.param)


def reader(posts: Posts, client: str, *, autocommit: bool = True, **options: Any) -> Any:
    return posts.wrap(posts.open(client, "b1", autocommit=autocommit), **options)


def come(posts: Posts, key: str) -> antipode.Lineage:
    """A write that the replicas have."""
    lineage = posts.write(key)
    assert posts.look(lineage, 30).satisfied
    return lineage


def unbuffered(connection: Any, client: str) -> Any:
    return connection.cursor(pymysql.cursors.SSCursor) if client == "pymysql" else connection.cursor()


@pytest.mark.parametrize("waits", ["wait_on_read", "after"])
def test_a_result_read_in_parts(any_posts: Posts, client: str, waits: str) -> None:
    connection = reader(any_posts, client, wait_on_read=waits == "wait_on_read", timeout=20.0)
    before = [come(any_posts, uuid4().hex) for _ in range(5)][-1]
    with antipode.scope(before), antipode.reading(after=before if waits == "after" else None):
        cursor = unbuffered(connection, client)
        cursor.execute(SELECT)
        assert cursor.fetchone()
        assert cursor.fetchmany(2), "it was proved before"
        behind = come(any_posts, uuid4().hex)
        with antipode.scope(behind), antipode.reading(after=behind if waits == "after" else None):
            with pytest.raises(BarrierError, match=PAST):
                cursor.fetchall()
    if client == "pymysql":
        with pytest.warns(UserWarning, match="unbuffered"):
            connection.rollback()
    else:
        connection.rollback()  # it throws the rest away
    with antipode.scope(behind), closing(connection.cursor()) as again:
        again.execute(SELECT)
        assert len(again.fetchall()) > 5


def test_a_result_that_is_not_read_to_its_end_is_marked(any_posts: Posts, client: str) -> None:
    """SHIM-13: what came of it depends on something, and the session is over before its position is known."""
    come(any_posts, uuid4().hex)
    connection = reader(any_posts, client)
    with antipode.reading() as seen:
        cursor = unbuffered(connection, client)
        cursor.execute(SELECT)
        assert cursor.fetchone()
        connection.close()
    if client == "pymysql":
        cursor._result.unbuffered_active = False  # it would read on when it is collected
    assert seen.lineage.incomplete == {STORE}


def test_the_first_read_of_a_transaction_proves_for_the_next(any_posts: Posts, client: str) -> None:
    """And costs the next ones nothing: nothing is asked."""
    connection = reader(any_posts, client, autocommit=False, wait_on_read=True, timeout=20.0)
    with antipode.scope(come(any_posts, uuid4().hex)):
        for _ in range(2):
            with closing(connection.cursor()) as cursor:
                cursor.execute(SELECT)
                assert cursor.fetchall()
    connection.rollback()


@pytest.mark.parametrize("begins", ["START TRANSACTION WITH CONSISTENT SNAPSHOT", "SELECT", "before it was wrapped"])
def test_a_snapshot(any_posts: Posts, client: str, begins: str) -> None:
    plain = any_posts.open(client, "b1", autocommit=False)
    connection = plain if begins == "before it was wrapped" else any_posts.wrap(plain, wait_on_read=True, timeout=20.0)
    with closing(connection.cursor()) as cursor:
        cursor.execute(begins if begins.startswith("START") else SELECT)
        if not begins.startswith("START"):
            cursor.fetchall()
    if connection is plain:
        connection = any_posts.wrap(plain, wait_on_read=True, timeout=20.0)
    key = uuid4().hex
    with antipode.scope(come(any_posts, key)):
        with pytest.raises(BarrierError, match="COMMIT or ROLLBACK"), closing(connection.cursor()) as cursor:
            cursor.execute(SELECT)
        connection.rollback()
        with closing(connection.cursor()) as cursor:
            cursor.execute("SELECT body FROM posts WHERE id = %s", (key,))
            assert cursor.fetchall()


def test_a_handler_reads_what_is_there_now(any_posts: Posts) -> None:
    connection = reader(any_posts, "pymysql", wait_on_read=True, timeout=20.0)
    any_posts.lab.lag("b1", "100ms")
    try:
        with closing(connection.cursor()) as cursor:
            cursor.execute("HANDLER posts OPEN")
            key = uuid4().hex
            with antipode.scope(any_posts.write(key)):
                cursor.execute(f"HANDLER posts READ `PRIMARY` = ('{key}')")
                assert cursor.fetchall()
    finally:
        any_posts.lab.lag("b1", "5ms")


def test_an_engine_that_streams(any_posts: Posts) -> None:
    engine = any_posts.wrap(
        create_engine("mysql+pymysql://", creator=lambda: any_posts.pymysql("b1")), wait_on_read=True, timeout=20.0
    )
    before = [come(any_posts, uuid4().hex) for _ in range(5)][-1]
    with antipode.scope(before), engine.connect().execution_options(stream_results=True, max_row_buffer=1) as there:
        rows = iter(there.execute(text(SELECT)))
        assert next(rows)
        with antipode.scope(come(any_posts, uuid4().hex)), pytest.raises(BarrierError, match=PAST):
            list(rows)
    engine.dispose()
