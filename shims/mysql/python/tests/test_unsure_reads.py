"""What may return data waits, or is collected, however it is spelled (spec SHIM-43, SHIM-44)."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import closing
from typing import Any
from uuid import uuid4

import antipode
import mysql.connector
import pymysql
import pytest
from antipode import BarrierTimeout
from antipode_lab.stores._sql_store import SqlStore
from pymysql.constants import CLIENT
from sql_regions import Posts, position

READS = [
    "SELECT body FROM posts",
    "SELECT shout(body) FROM posts",
    "SELECT `shout`(body) FROM posts",
    "SELECT ST_AsText(POINT(1, 1)), body FROM posts",
    "SELECT COMPRESS(body) FROM posts",
    "SELECT /*! STRAIGHT_JOIN */ body FROM posts",
    "SELECT body /*Mine*/ FROM posts",
    "SELECT body INTO @x FROM posts LIMIT 1",
    "SELECT first_post()",
    "WITH x AS (SELECT REPLACE(body, 'z', 'y') AS v FROM posts) SELECT v FROM x",
    "CALL show_posts()",
    "EXECUTE s",
    "HANDLER posts OPEN",
    "SET @x = (SELECT body FROM posts LIMIT 1)",
    "DO (SELECT 1 FROM posts LIMIT 1)",
    "SHOW TABLES",
    "SHOW TABLE STATUS LIKE 'posts'",
    "SHOW VARIABLES WHERE EXISTS (SELECT 1 FROM posts)",
    "DESCRIBE posts",
    "EXPLAIN SELECT body FROM posts",
    "CHECKSUM TABLE posts",
    "CHECK TABLE posts",
    "SELECT 1; SELECT body FROM posts",
]
OF_ONE: dict[str, list[str]] = {
    "mariadb": [
        "SELECT CRC32C(body) FROM posts",
        "SELECT SFORMAT('{}', body) FROM posts",
        "EXECUTE IMMEDIATE 'SELECT body FROM posts'",
        "SET STATEMENT max_statement_time = 5 FOR SELECT body FROM posts",
        "ANALYZE SELECT body FROM posts",
        "BEGIN NOT ATOMIC SELECT body FROM posts; END",
    ],
    "mysql": ["TABLE posts", "VALUES ROW((SELECT body FROM posts LIMIT 1))", "EXPLAIN ANALYZE SELECT body FROM posts"],
}
NO_READS = [
    "SELECT 1",
    "SELECT @@version, @x, DATABASE()",
    "DO 1",
    "SHOW WARNINGS",
    "SHOW COUNT(*) WARNINGS",
    "SHOW VARIABLES LIKE 'version'",
    "SET NAMES utf8mb4",
    "SET @x = 1",
    "BEGIN",
    "SAVEPOINT x",
    "ROLLBACK",
]


@pytest.fixture(scope="module", autouse=True)
def _routines(any_lab: SqlStore) -> None:
    any_lab.run(
        "a",
        "CREATE FUNCTION IF NOT EXISTS shout(x TEXT) RETURNS TEXT DETERMINISTIC RETURN UPPER(x)",
        "CREATE FUNCTION IF NOT EXISTS first_post() RETURNS TEXT READS SQL DATA RETURN "
        "(SELECT body FROM posts ORDER BY id LIMIT 1)",
        "CREATE PROCEDURE IF NOT EXISTS show_posts() SELECT body FROM posts",
    )
    any_lab.wait_links()


@pytest.fixture(params=["pymysql", "connector", "aio"])
def plain(request: pytest.FixtureRequest, any_posts: Posts) -> Iterator[Any]:
    """A connection to the near replica, where a statement is prepared."""
    more = {"client_flag": CLIENT.MULTI_STATEMENTS} if request.param == "pymysql" else {}
    opened = any_posts.open(request.param, "b1", autocommit=True, **more)
    all_of(opened, "PREPARE s FROM 'SELECT body FROM posts'")
    yield opened
    opened.close()
    any_posts.lab.heal("b1")


def all_of(connection: Any, sql: str) -> None:
    """Executes a text, and reads all that comes."""
    with closing(connection.cursor()) as cursor:
        cursor.execute(sql)
        while True:
            if cursor.description:
                cursor.fetchall()
            if not cursor.nextset():
                return


def spellings(any_posts: Posts) -> list[str]:
    return [*READS, *OF_ONE[any_posts.lab.kind]]


def test_whatever_may_return_data_waits(any_posts: Posts, plain: Any) -> None:
    """Under `wait_on_read` and `reading(after=…)`; unsure waits (SHIM-44)."""
    any_posts.lab.partition("b1")
    lineage = any_posts.write(f"unsure-{uuid4().hex}")
    waits = any_posts.wrap(plain, wait_on_read=True, timeout=0.03)
    after = any_posts.wrap(plain, timeout=0.03)
    stale = []
    for sql in spellings(any_posts):
        for client, wanted in ((waits, None), (after, lineage)):
            with antipode.scope(antipode.Lineage() if wanted else lineage), antipode.reading(after=wanted):
                try:
                    all_of(client, sql)
                except BarrierTimeout:
                    continue
                except (pymysql.err.MySQLError, mysql.connector.Error) as error:
                    stale.append((sql, str(error)))
                stale.append((sql, "reading(after=…)" if wanted else "wait_on_read"))
    assert not stale
    with antipode.scope(lineage):
        for sql in NO_READS:
            all_of(waits, sql)


def test_whatever_may_return_data_is_covered(any_posts: Posts, plain: Any) -> None:
    """Inside `reading()` (SHIM-13, SHIM-44)."""
    lineage = any_posts.write("covered")
    assert any_posts.look(lineage, 60).satisfied
    client = any_posts.wrap(plain)
    uncovered = []
    for sql in spellings(any_posts):
        with antipode.scope(), antipode.reading() as seen:
            all_of(client, sql)
        found = seen.lineage.of_store("blog-posts")
        if seen.lineage.is_complete() and not (found and position(seen.lineage) >= position(lineage)):
            uncovered.append(sql)
        if sql.startswith("HANDLER"):
            all_of(plain, "HANDLER posts CLOSE")
    assert not uncovered
