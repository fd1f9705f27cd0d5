"""Recorded histories of MariaDB and MySQL: that something was read, of which tables (HIST-36)."""

from __future__ import annotations

from contextlib import closing
from pathlib import Path
from uuid import uuid4

import antipode
import pytest
from antipode import recorder
from antipode.check.history.deciding import Verdict, decide
from antipode.check.history.reading import read_history
from antipode.messages import outgoing_message
from antipode.testing.histories import lines
from antipode_mysql.statements import tables_read
from sql_regions import Posts

SELECT = "SELECT body FROM posts WHERE id = %s"


READ: dict[str, tuple[str, ...]] = {
    "SELECT 1": (),
    "SELECT @@version": (),
    "SELECT 1 FROM DUAL": (),
    "SHOW TABLES FROM blog": (),
    "BEGIN": (),
    "COMMIT": (),
    "SET autocommit = 0": (),
    "SELECT * FROM posts WHERE id = 'is from secret'": ("posts",),
    "SELECT * FROM `Po sts` p JOIN blog.other o ON true": ("Po sts", "blog.other"),
    "WITH x AS (SELECT * FROM t) SELECT * FROM x": ("t",),
    "SELECT a, b FROM c, `d` x, blog.e AS y WHERE f IN (g, h) ORDER BY i, j": ("c", "d", "blog.e"),
    "SELECT * FROM a JOIN b ON a.i = b.i, (SELECT c, d FROM e, f GROUP BY g, h) AS i, j": ("a", "b", "e", "f", "j"),
    "SELECT * FROM a USE INDEX FOR JOIN (b, c), d FOR UPDATE": ("a", "d"),
    "SELECT `from`, `a from b` FROM c": ("c",),
    "SELECT * FROM " + ", ".join(f"t{i}" for i in range(40)): (*(f"t{i}" for i in range(32)), ""),
    "SELECT extract(year FROM at) FROM posts": ("posts",),
    "SELECT * FROM posts /* from b */ -- from c": ("posts",),
    r"SELECT 'a\' from x' FROM posts": ("",),
    'SELECT * FROM "posts"': ("",),
    "SELECT my_function(1)": ("",),
    "CALL my_procedure()": ("",),
    "INSERT INTO a SELECT * FROM b": (),
    "INSERT INTO a VALUES (1) RETURNING i": (),
    "CREATE TABLE a (i INT)": (),
    "INSERT INTO a VALUES (1); SELECT i FROM b": ("b",),
}


@pytest.mark.parametrize("statement", READ)
def test_which_tables_a_statement_reads(statement: str) -> None:
    assert tables_read(statement.encode()) == READ[statement]


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
        for query in (SELECT, "SELECT body FROM `posts` WHERE id = %s"):
            cursor.execute(query, ("a secret",))
            assert not cursor.fetchall()
    assert [(line["key"], line["reads_from"]) for line in lines(tmp_path / "read", "read")] == [
        ("posts", "unattributed")
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
