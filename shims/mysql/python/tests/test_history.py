"""Recorded histories of MariaDB and MySQL: that something was read (HIST-36)."""

from __future__ import annotations

from contextlib import closing
from pathlib import Path
from uuid import uuid4

import antipode
import pytest
from antipode._diagnostics.history import recorder
from antipode.check.history.deciding import Verdict, decide
from antipode.check.history.reading import read_history
from antipode.messages import outgoing_message
from antipode.testing.histories import lines
from antipode_mysql.statements import is_noted
from sql_regions import Posts

SELECT = "SELECT body FROM posts WHERE id = %s"


READS = [
    "SELECT * FROM posts WHERE id = 'is from secret'",
    "SELECT * FROM `Po sts` p JOIN blog.other o ON true",
    "WITH x AS (SELECT * FROM t) SELECT * FROM x",
    "SELECT a FROM (SELECT b FROM c) AS d",
    "SELECT * FROM posts /* from b */ -- from c",
    r"SELECT 'a\' from x' FROM posts",
    'SELECT * FROM "posts"',
    "SELECT my_function(1)",
    "CALL my_procedure()",
    "INSERT INTO a VALUES (1); SELECT i FROM b",
]
NO_READS = [
    "SELECT 1",
    "SELECT 1 -- from posts",
    "SELECT @@version",
    "SELECT 1 FROM DUAL",
    "SHOW TABLES FROM blog",
    "BEGIN",
    "COMMIT",
    "SET autocommit = 0",
    "INSERT INTO a SELECT * FROM b",
    "INSERT INTO a VALUES (1) RETURNING i",
    "CREATE TABLE a (i INT)",
]


@pytest.mark.parametrize("statement", READS + NO_READS)
def test_what_is_told_as_a_read(statement: str) -> None:
    """HIST-36."""
    assert is_noted(statement.encode()) is (statement in READS)


@pytest.mark.parametrize("client", ["pymysql", "connector", "aio"])
def test_each_read_is_said_to_be_of_unknown_writes(any_posts: Posts, client: str, tmp_path: Path) -> None:
    """HIST-31, HIST-36: a store that is only written leaves no gap; one read leaves its own."""
    reader = any_posts.wrap(any_posts.open(client, "b1", autocommit=True))
    antipode.configure(history=tmp_path / "only written")
    writer = any_posts.wrap(any_posts.open(client, "a", autocommit=True))
    with antipode.scope(), closing(writer.cursor()) as writing:
        writing.execute("INSERT INTO posts VALUES (%s, 'a secret from here')", (f"history-{uuid4().hex}",))
        text = outgoing_message()
    with antipode.message_scope(text):
        antipode.barrier(timeout=30)
    recorder.forget()
    assert decide(read_history(tmp_path / "only written")).verdict is Verdict.CONSISTENT
    assert [line["any_key"] for line in lines(tmp_path / "only written", "write")] == [True]
    antipode.configure(history=tmp_path / "read")
    with antipode.scope(), closing(reader.cursor()) as cursor:
        for query in (SELECT, "SELECT p.body FROM posts AS p JOIN posts AS q ON p.id = q.id WHERE p.id = %s"):
            cursor.execute(query, ("a secret",))
            assert not cursor.fetchall()
    assert [(line["key"], line["reads_from"]) for line in lines(tmp_path / "read", "read")] == [
        ("", "unattributed")
    ] * 2
    assert "secret" not in "".join(path.read_text() for path in tmp_path.rglob("*.jsonl"))


@pytest.mark.parametrize("client", ["pymysql", "connector", "aio"])
def test_a_merged_read_says_what_it_covers(any_posts: Posts, client: str, tmp_path: Path) -> None:
    """HIST-28, HIST-29: a position that no write has is that of the read."""
    reader = any_posts.wrap(any_posts.open(client, "a", autocommit=True))
    antipode.configure(history=tmp_path, auto_merge=True)
    with antipode.scope() as scope:
        with closing(reader.cursor()) as cursor:
            cursor.execute(SELECT, ("k",))
            cursor.fetchall()
        text = scope.lineage.serialize()
    assert text in [line.get("covers") for line in lines(tmp_path, "read")]
