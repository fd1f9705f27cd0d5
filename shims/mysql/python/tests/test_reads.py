"""Reads that wait on their own connection, by every client (spec BAR, SHIM-12, SHIM-13)."""

from __future__ import annotations

import threading
from contextlib import closing
from typing import Any
from uuid import uuid4

import antipode
import pytest
from antipode import BarrierTimeout, BarrierUnproven
from sql_regions import Posts, position

SELECT = "SELECT body FROM posts WHERE id = %s"


@pytest.fixture(params=["pymysql", "connector", "aio"])
def client(request: pytest.FixtureRequest) -> str:
    return str(request.param)


def reader(any_posts: Posts, client: str, *, autocommit: bool = True, **options: Any) -> Any:
    return any_posts.wrap(any_posts.open(client, "b1", autocommit=autocommit), **options)


def read(connection: Any, key: str) -> Any:
    with closing(connection.cursor()) as cursor:
        cursor.execute(SELECT, (key,))
        rows = cursor.fetchall()
    return rows[0][0] if rows else None


def test_a_read_waits_for_what_its_scope_depends_on(any_posts: Posts, client: str) -> None:
    connection = reader(any_posts, client, wait_on_read=True, timeout=20.0)
    any_posts.lab.partition("b1")
    lineage = any_posts.write(f"waits-{client}")
    healer = threading.Timer(0.3, lambda: any_posts.lab.heal("b1"))
    healer.start()
    try:
        with antipode.scope(lineage):
            assert read(connection, f"waits-{client}") == "v"
    finally:
        healer.join()


def test_a_read_in_vain_says_so(any_posts: Posts, client: str) -> None:
    connection = reader(any_posts, client, wait_on_read=True, timeout=0.2)
    any_posts.lab.partition("b1")
    key = uuid4().hex  # MySQL logs nothing where a row stays as it is
    lineage = any_posts.write(key)
    with antipode.scope(lineage), pytest.raises(BarrierTimeout):
        read(connection, key)
    any_posts.lab.heal("b1")


def test_an_old_snapshot_is_not_read(any_posts: Posts, client: str) -> None:
    connection = reader(any_posts, client, autocommit=False, wait_on_read=True, timeout=20.0)
    key = uuid4().hex  # several kinds of clients share the table
    assert read(connection, key) is None  # the transaction reads what is there now
    lineage = any_posts.write(key)
    with antipode.scope(lineage):
        with pytest.raises(BarrierUnproven, match="COMMIT or ROLLBACK"):
            read(connection, key)
        connection.rollback()
        assert read(connection, key) == "v"


def test_what_was_read_is_covered(any_posts: Posts, client: str) -> None:
    lineage = any_posts.write(f"covered-{client}")
    assert any_posts.look(lineage, 20).satisfied
    with antipode.reading() as seen:
        assert read(reader(any_posts, client), f"covered-{client}") == "v"
    assert position(seen.lineage) >= position(lineage)


@pytest.mark.parametrize("prepared", ["connector", "aio"])
def test_what_a_prepared_statement_reads_is_covered(any_posts: Posts, prepared: str) -> None:
    lineage = any_posts.write(f"prepared-{prepared}")
    assert any_posts.look(lineage, 20).satisfied
    connection = reader(any_posts, prepared)
    with closing(connection.cursor(prepared=True)) as cursor, antipode.reading() as seen:
        cursor.execute(SELECT, (f"prepared-{prepared}",))
        assert [tuple(row) for row in cursor.fetchall()] == [("v",)]
        assert position(seen.lineage) >= position(lineage)
