"""Recorded histories of PostgreSQL: that something was read, and what was written (HIST-36)."""

from __future__ import annotations

import asyncio
import json
from pathlib import Path
from typing import Any

import antipode
import antipode_postgresql
import psycopg
import pytest
from antipode._diagnostics.history import recorder
from antipode.check.history.deciding import Verdict, decide
from antipode.check.history.reading import read_history
from antipode.messages import outgoing_message
from antipode.testing.histories import lines
from antipode_lab.stores.postgresql import PostgresqlStore
from antipode_postgresql.statements import is_noted
from pg_regions import INSERT, STORE, Posts
from psycopg import sql

SELECT = "SELECT value FROM posts WHERE key = %s"
READ = {"key": "", "reads_from": "unattributed"}
STATEMENTS = json.loads((Path(__file__).parents[2] / "statements.json").read_text("utf-8"))


@pytest.fixture
def folder(quiet_posts: Posts, tmp_path: Path) -> Path:
    antipode.configure(history=tmp_path / "history")
    return tmp_path / "history"


def reads(folder: Path) -> list[dict[str, Any]]:
    return [{name: line[name] for name in ("key", "reads_from")} for line in lines(folder, "read")]


@pytest.mark.parametrize(
    ("text", "expected"), [(text, name) for name in ("noted", "not_noted") for text in STATEMENTS[name]]
)
def test_what_is_told_as_a_read(text: str, expected: str) -> None:
    """HIST-36."""
    assert is_noted(text.encode()) is (expected == "noted")


def test_each_read_is_said_to_be_of_unknown_writes(quiet_posts: Posts, folder: Path) -> None:
    """HIST-36: by whatever way it comes."""
    reader = quiet_posts.wrap("b1")
    queries: list[Any] = [
        SELECT,
        SELECT.encode(),
        sql.SQL("SELECT value FROM {} WHERE key = %s").format(sql.Identifier("posts")),
    ]
    with antipode.scope():
        for query in queries:
            reader.execute(query, ("k",)).fetchall()
        reader.execute("SELECT 1 FROM posts JOIN pg_class ON relname = key, pg_type").fetchall()
        with reader.transaction(), reader.cursor("named") as cursor:
            cursor.execute(SELECT, ("k",))
            cursor.fetchall()
        list(reader.cursor().stream(SELECT, ("k",)))
        with reader.cursor().copy("COPY posts TO STDOUT") as copy:
            list(copy)
        reader.cursor().executemany(SELECT, [("k",), ("l",)], returning=True)
        psycopg.Cursor(reader).execute(SELECT, ("k",))  # made by hand: its text is not seen
        with pytest.raises(psycopg.errors.UndefinedTable):
            reader.execute("SELECT * FROM nowhere")
    reader.execute(SELECT, ("k",))  # outside of scopes
    assert reads(folder) == [READ] * 9


def test_the_asyncio_connection(quiet_posts: Posts, quiet_lab: PostgresqlStore, folder: Path) -> None:
    async def run() -> None:
        plain = await psycopg.AsyncConnection.connect(quiet_lab.url("b1"), autocommit=True)
        reader = antipode_postgresql.wrap(plain, store=STORE)
        with antipode.scope():
            await (await reader.execute(SELECT, ("k",))).fetchall()
            assert [row async for row in reader.cursor().stream(SELECT, ("k",))] == []
            async with reader.cursor().copy("COPY posts TO STDOUT") as copy:
                assert [row async for row in copy] == []
            await reader.cursor().executemany(SELECT, [("k",)], returning=True)
        await plain.close()

    asyncio.run(run())
    assert reads(folder) == [READ] * 4


def test_where_nothing_is_read_the_history_is_whole(quiet_posts: Posts, folder: Path) -> None:
    """HIST-31: a store that is only written leaves no gap; one read leaves its own."""
    writer = quiet_posts.wrap("a")
    with antipode.scope():
        writer.execute(INSERT, ("whole",))
        text = outgoing_message()
    with antipode.message_scope(text):
        antipode.barrier(timeout=30)
    recorder.forget()
    assert decide(read_history(folder)).verdict is Verdict.CONSISTENT
    assert [line["any_key"] for line in lines(folder, "write")] == [True]
    with antipode.scope():
        writer.execute(SELECT, ("whole",))
    recorder.forget()
    history = read_history(folder)
    assert decide(history).verdict is Verdict.UNKNOWN
    assert [history.operations[gap.operation].key for gap in history.gaps] == [""]


def test_a_merged_read_says_what_it_covers(quiet_posts: Posts, folder: Path) -> None:
    """HIST-28, HIST-29: a position that no write has is that of the read."""
    antipode.configure(auto_merge=True)
    reader = quiet_posts.wrap("a")
    with antipode.scope() as scope:
        reader.execute(SELECT, ("k",))
        [position] = scope.lineage
    [read] = lines(folder, "read")
    assert read["covers"] == antipode.Lineage([position]).serialize()


def test_nothing_of_a_statement_is_in_a_history(quiet_posts: Posts, folder: Path) -> None:
    """HIST-36."""
    writer = quiet_posts.wrap("a")
    with antipode.scope():
        writer.execute("INSERT INTO posts VALUES ('a secret', 'from secret')")
        writer.execute("SELECT value FROM posts WHERE key = 'a secret' OR key = ' from secret '")
    recorder.forget()
    assert "secret" not in "".join(path.read_text() for path in folder.glob("*.jsonl"))
