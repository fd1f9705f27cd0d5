"""Stale reads of a standby, confirmed by reads of the shim's own (REC-22), and which ones are sent (REC-23)."""

from __future__ import annotations

import asyncio
import json
import time
from collections.abc import Callable, Iterator
from contextlib import closing
from pathlib import Path
from typing import Any

import antipode
import antipode_postgresql
import psycopg
import pytest
import sqlalchemy
from antipode import records
from antipode.repeatable_sql import BEFORE_PARENTHESIS
from antipode.testing.recorded import Recorded
from antipode_lab.stores.postgresql import PostgresqlStore
from antipode_postgresql import repeating
from antipode_postgresql.repeating import may_be_repeated
from antipode_postgresql.session import Refused, Session
from antipode_postgresql.targets import target_of
from pg_regions import INSERT, STORE, Posts, until
from psycopg import sql
from psycopg_pool import ConnectionPool

VECTORS = Path(__file__).parents[4] / "spec" / "vectors" / "repeatable-statements.json"
SELECT = "SELECT value FROM posts WHERE key = %s"


def cases() -> list[Any]:
    found = json.loads(VECTORS.read_text("utf-8"))
    assert found["kind"] == "repeatable-statements"
    mine = [case for case in found["cases"] if "postgresql" in case["dialects"]]
    assert mine
    return [pytest.param(case, id=case["id"]) for case in mine]


@pytest.mark.parametrize("case", cases())
def test_which_statements_may_be_repeated(case: dict[str, Any]) -> None:
    """REC-23."""
    assert may_be_repeated(case["statement"].encode()) is case["repeatable"]


def test_no_other_word_may_stand_before_a_parenthesis() -> None:
    """REC-23: the cases `word-…` are all of them."""
    statements = [case.values[0]["statement"] for case in cases() if str(case.id).startswith("word-")]
    named = [statement.split()[2] for statement in statements if statement.startswith("SELECT a ")]
    assert {word.upper().encode() for word in named} == BEFORE_PARENTHESIS


@pytest.mark.parametrize(
    "part", ["/*", "(", "'a''", "E'a\\' ", "$a$", '"a""', "1", "$1", "a.", "/* */", "''", "-", "\\"], ids=repr
)
def test_a_long_statement_costs_what_its_length_does(part: str) -> None:
    """REC-23: whatever stands in it."""
    begun = time.thread_time()
    may_be_repeated(f"SELECT 1 + {part * (60_000 // len(part))} FOR".encode())
    assert time.thread_time() - begun < 5


def test_a_statement_in_another_encoding_is_not_repeated() -> None:
    """REC-23: an octet that looks like a quote may be a part of a letter."""
    assert may_be_repeated("SELECT a FROM posts WHERE b = 'ä'".encode())
    assert not may_be_repeated("SELECT a FROM posts WHERE b = 'ä'".encode("latin-1"))


@pytest.fixture
def recorded(quiet_posts: Posts, quiet_lab: PostgresqlStore, tmp_path: Path) -> Iterator[Recorded]:
    """The standby does not replay until `resume`."""
    quiet_lab.wait_caught_up("b1")
    with quiet_lab.connect("b1") as operator:
        operator.execute("SELECT pg_wal_replay_pause()")
        until(lambda: operator.execute("SELECT pg_get_wal_replay_pause_state()").fetchone() == ("paused",))
    yield Recorded(tmp_path)
    resume(quiet_lab)


def resume(lab: PostgresqlStore) -> None:
    with lab.connect("b1") as operator:
        operator.execute("SELECT pg_wal_replay_resume()")


def found(recorded: Recorded, lab: PostgresqlStore, reads: int = 1) -> list[tuple[str, str | None]]:
    """What the reads of a scope were, once the standby has replayed."""
    recorded.looked()
    resume(lab)
    records = recorded.findings(reads)
    recorded.ended()
    return [(record["kind"], record.get("confirmed")) for record in records]


STALE, BEHIND = ("stale", "repeat"), ("behind", None)


@pytest.fixture
def written(quiet_posts: Posts, recorded: Recorded) -> Iterator[str]:
    """A scope in which a post was written that the standby has not got."""
    with antipode.scope():
        quiet_posts.wrap("a").execute(INSERT, ("private-key",))
        yield "private-key"


def by_execute(reader: Any, key: str) -> Any:
    return reader.execute(SELECT, (key,)).fetchall()


def by_name(reader: Any, key: str) -> Any:
    return reader.execute("SELECT value FROM posts WHERE key = %(key)s", {"key": key}).fetchall()


def by_composed(reader: Any, key: str) -> Any:
    query = sql.SQL("SELECT {} FROM {} WHERE key = {}").format(
        sql.Identifier("value"), sql.Identifier("posts"), sql.Literal(key)
    )
    return reader.execute(query).fetchall()


def by_text(reader: Any, key: str) -> Any:
    return reader.execute(f"SELECT value FROM posts WHERE key = '{key}'; -- without parameters").fetchall()


def prepared(reader: Any, key: str) -> Any:
    return reader.execute(SELECT, (key,), prepare=True).fetchall()


def in_binary(reader: Any, key: str) -> Any:
    return reader.cursor(binary=True).execute("SELECT value, 1.5 FROM posts WHERE key = ANY(%b)", ([key],)).fetchall()


def wrapped_client_cursor(reader: Any, key: str) -> Any:
    reader.cursor_factory = psycopg.ClientCursor
    return reader.cursor().execute(SELECT, (key,)).fetchall()


def wrapped_raw_cursor(reader: Any, key: str) -> Any:
    reader.cursor_factory = psycopg.RawCursor
    return reader.cursor().execute("SELECT value FROM posts WHERE key = $1", (key,)).fetchall()


def by_server_cursor(reader: Any, key: str) -> Any:
    with reader.transaction(), reader.cursor('of "mine', scrollable=True) as cursor:
        return cursor.execute(SELECT, (key,)).fetchall()


def by_stream(reader: Any, key: str) -> Any:
    return list(reader.cursor().stream(SELECT, (key,)))


@pytest.mark.parametrize(
    "way",
    [
        by_execute,
        by_name,
        by_composed,
        by_text,
        prepared,
        in_binary,
        wrapped_client_cursor,
        wrapped_raw_cursor,
        by_server_cursor,
        by_stream,
    ],
    ids=lambda way: str(way.__name__),
)
def test_a_read_that_misses_a_row_is_stale(
    quiet_posts: Posts, quiet_lab: PostgresqlStore, recorded: Recorded, written: str, way: Callable[[Any, str], Any]
) -> None:
    """REC-6, REC-22: with its parameters as they were, by whatever way it was sent."""
    assert way(quiet_posts.wrap("b1"), written) == []
    assert found(recorded, quiet_lab) == [STALE]
    assert written not in str(recorded.lines())


@pytest.mark.parametrize(
    ("query", "params"),
    [
        (SELECT, ("another",)),
        ("SELECT value FROM posts WHERE key = %s FOR SHARE", ("private-key",)),
        ("SELECT key, now() FROM posts", None),
        ("SELECT key FROM posts LIMIT 1", None),
        ("SELECT 1 FROM pg_stat_activity", None),
    ],
    ids=["another row", "it locks", "a clock", "any row", "the catalog"],
)
def test_all_else_is_behind(
    quiet_posts: Posts, quiet_lab: PostgresqlStore, recorded: Recorded, written: str, query: str, params: Any
) -> None:
    """REC-22, REC-23: what did not change, and what is not repeated."""
    reader = quiet_posts.wrap("b1")
    if "SHARE" in query:
        with pytest.raises(psycopg.errors.ReadOnlySqlTransaction):
            reader.execute(query, params)
        assert reader.execute(SELECT, ("another",)).fetchone() is None
    else:
        reader.execute(query, params).fetchall()
    assert found(recorded, quiet_lab) == [BEHIND]


def test_a_view_over_a_clock_is_behind(
    quiet_posts: Posts, quiet_lab: PostgresqlStore, tmp_path: Path, request: pytest.FixtureRequest
) -> None:
    """REC-22: what differs by itself differs between the last two as well; a view over data does not."""
    with quiet_lab.connect("a", user="app") as owner:
        owner.execute("CREATE OR REPLACE VIEW clock AS SELECT key, clock_timestamp() FROM posts")
        owner.execute("CREATE OR REPLACE VIEW keys AS SELECT key FROM posts")
    recorded: Recorded = request.getfixturevalue("recorded")
    reader = quiet_posts.wrap("b1")
    with antipode.scope():
        quiet_posts.wrap("a").execute(INSERT, ("clock",))
        reader.execute("SELECT * FROM clock").fetchall()
        reader.execute("SELECT * FROM keys").fetchall()
    assert found(recorded, quiet_lab, 2) == [BEHIND, STALE]


@pytest.mark.parametrize(
    "change",
    [
        "SET search_path = public",
        "SET LOCAL search_path = public",
        "SET ROLE app",
        "SELECT set_config('app.tenant', '1', false)",
        "DO $$ BEGIN PERFORM set_config('app.tenant', '1', false); END $$",
        "RESET ALL",
    ],
)
def test_where_the_session_was_changed_it_is_not_repeated(
    quiet_posts: Posts, quiet_lab: PostgresqlStore, recorded: Recorded, written: str, change: str
) -> None:
    """REC-23: our own connection has not got these settings. Another wrap of the connection knows of it, too."""
    reader = quiet_posts.wrap("b1")
    reader.execute(change)
    reader = antipode_postgresql.wrap(reader, store=STORE)
    assert reader.execute(SELECT, (written,)).fetchone() is None
    assert found(recorded, quiet_lab) == [BEHIND]


@pytest.mark.parametrize("change", ["BEGIN; SET TRANSACTION READ ONLY; COMMIT", "SHOW search_path"])
def test_what_changes_no_setting_of_the_session(
    quiet_posts: Posts, quiet_lab: PostgresqlStore, recorded: Recorded, written: str, change: str
) -> None:
    reader = quiet_posts.wrap("b1")
    reader.execute(change)
    with reader.transaction():
        reader.execute("SAVEPOINT a")
        reader.execute("ROLLBACK TO a")
    assert reader.execute(SELECT, (written,)).fetchone() is None
    assert found(recorded, quiet_lab) == [STALE]


def test_settings_that_a_connection_was_opened_with_are_those_of_ours(
    quiet_posts: Posts, quiet_lab: PostgresqlStore, recorded: Recorded, written: str
) -> None:
    """REC-22: a search path, say: otherwise another table would be read."""
    url = quiet_lab.url("b1")
    other = f"{url}{'&' if '?' in url else '?'}options=-csearch_path%3Dpg_temp&client_encoding=LATIN1"
    with psycopg.connect(other, autocommit=True) as plain:
        target = target_of(plain)
        with closing(Session(target, 2.0, **target.session)) as session:
            assert session.row("SHOW search_path") == ["pg_temp"]
            assert session.row("SHOW client_encoding") == ["LATIN1"]
        reader = antipode_postgresql.wrap(plain, store=STORE)
        assert reader.execute("SELECT value FROM public.posts WHERE key = %s", (written,)).fetchone() is None
        assert found(recorded, quiet_lab) == [STALE]


def test_a_pipeline_is_not_followed(
    quiet_posts: Posts, quiet_lab: PostgresqlStore, recorded: Recorded, written: str
) -> None:
    reader = quiet_posts.wrap("b1")
    with reader.pipeline():
        reader.execute(SELECT, (written,))
    recorded.looked()
    resume(quiet_lab)
    recorded.ended()
    assert recorded.lines("behind", "stale") == []


def test_pools_and_engines(quiet_posts: Posts, quiet_lab: PostgresqlStore, recorded: Recorded, written: str) -> None:
    """REC-22."""
    with ConnectionPool(quiet_lab.url("b1"), min_size=1, open=True) as plain:
        with antipode_postgresql.wrap(plain, store=STORE).connection() as reader:
            assert reader.execute(SELECT, (written,)).fetchone() is None
    engine = sqlalchemy.create_engine(quiet_lab.url("b1").replace("postgresql:", "postgresql+psycopg:"))
    with antipode_postgresql.wrap(engine, store=STORE).connect() as alchemy:
        assert (
            alchemy.execute(sqlalchemy.text("SELECT value FROM posts WHERE key = :key"), {"key": written}).all() == []
        )
    engine.dispose()
    assert found(recorded, quiet_lab, 2) == [STALE, STALE]


def test_the_asyncio_connection(
    quiet_posts: Posts, quiet_lab: PostgresqlStore, recorded: Recorded, written: str
) -> None:
    """REC-22."""

    async def run() -> None:
        plain = await psycopg.AsyncConnection.connect(quiet_lab.url("b1"), autocommit=True)
        reader = antipode_postgresql.wrap(plain, store=STORE)
        assert await (await reader.execute(SELECT, (written,))).fetchone() is None
        assert [row async for row in reader.cursor().stream(SELECT, (written,))] == []
        async with reader.transaction(), reader.cursor("mine") as cursor:
            await cursor.execute(SELECT, (written,))
            assert await cursor.fetchall() == []
        await plain.close()

    asyncio.run(run())
    assert found(recorded, quiet_lab, 3) == [STALE] * 3


@pytest.mark.parametrize("how", ["no connection", "no right", "too many rows", "too slow", "another server", "broken"])
def test_what_fails_of_ours_is_behind(
    quiet_posts: Posts,
    quiet_lab: PostgresqlStore,
    recorded: Recorded,
    written: str,
    how: str,
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    """REC-13, REC-22: and the application sees nothing of it."""
    reader, query = quiet_posts.wrap("b1"), SELECT
    if how == "no connection":
        monkeypatch.setattr(repeating, "Session", refused)
    elif how == "no right":
        monkeypatch.setattr(repeating, "_BEGIN", "SET ROLE nobody_of_this_name -- {0}")
    elif how == "too many rows":
        query = "WITH RECURSIVE x AS (SELECT 1 AS a UNION ALL SELECT a + 1 FROM x WHERE a < 9999) SELECT a, %s FROM x"
    elif how == "too slow":
        monkeypatch.setattr(
            repeating, "_BEGIN", repeating._BEGIN.replace("statement_timeout = {0}", "statement_timeout = 1")
        )
        query = (
            "WITH RECURSIVE x AS (SELECT 1 AS a UNION ALL SELECT a + 1 FROM x WHERE a < 300000)"
            " SELECT count(*) FROM x WHERE %s <> ''"
        )
    elif how == "another server":
        monkeypatch.setattr(repeating, "_BEGIN", repeating._BEGIN.partition("SELECT")[0] + "SELECT pg_backend_pid()")
    else:
        monkeypatch.setattr(repeating, "own_reads", refused)
        monkeypatch.setattr("antipode_postgresql.reads.own_reads", refused)
    reader.execute(query, (written,)).fetchall()
    if how == "broken":
        assert reader.execute("SELECT 1 AS one").fetchone() == (1,)
        recorded.ended()
        assert recorded.lines("behind", "stale") == []
        return
    assert found(recorded, quiet_lab) == [BEHIND]


def refused(*_: Any, **__: Any) -> Any:
    raise psycopg.OperationalError("FATAL: sorry, too many clients already")


def test_a_server_that_has_no_connection_left(
    quiet_posts: Posts, quiet_lab: PostgresqlStore, recorded: Recorded, written: str
) -> None:
    """REC-22: the application's user may have no other connection."""
    reader = quiet_posts.wrap("b1")
    assert reader.execute(SELECT, (written,)).fetchone() is None
    recorded.looked()
    crowd: list[Any] = []

    def come() -> None:
        while True:
            crowd.append(psycopg.connect(quiet_lab.url("b1")))

    try:
        with pytest.raises(psycopg.OperationalError):
            come()
        resume(quiet_lab)
        [record] = recorded.findings(timeout=30)
    finally:
        for each in crowd:
            each.close()
    assert record["kind"] == "behind"
    assert reader.execute(SELECT, (written,)).fetchone() == ("v",)


def test_at_the_end_of_the_process_it_is_behind(
    quiet_posts: Posts, quiet_lab: PostgresqlStore, recorded: Recorded, written: str
) -> None:
    """REC-15."""
    assert quiet_posts.wrap("b1").execute(SELECT, (written,)).fetchone() is None
    recorded.looked()
    records.end()
    [record] = recorded.findings()
    assert (record["kind"], record["visible_after"]) == ("behind", None)


def test_what_is_sent_could_only_read(
    quiet_posts: Posts, quiet_lab: PostgresqlStore, monkeypatch: pytest.MonkeyPatch
) -> None:
    """REC-22: whatever a text might do after all; and it ends by a deadline."""
    monkeypatch.setattr(repeating, "may_be_repeated", lambda statement: True)
    with psycopg.connect(quiet_lab.url("a"), autocommit=True) as plain:
        target = target_of(plain)
        writing = repeating._OwnReads(target, 5.0, b"DELETE FROM posts", ())
        with closing(writing.read(1)) as reads, pytest.raises(Refused) as refusal:
            list(next(reads))
        assert refusal.value.code == "25006"
        sleeping = repeating._OwnReads(target, 0.5, b"SELECT pg_sleep(60)", ())
        with closing(sleeping.read(1)) as reads, pytest.raises((Refused, psycopg.OperationalError)):
            list(next(reads))
        asked = "SELECT 1 FROM pg_stat_activity WHERE query = 'SELECT pg_sleep(60)' AND state = 'active'"
        until(lambda: plain.execute(asked).fetchall() == [])


def test_nothing_of_ours_stays_at_the_server(
    quiet_posts: Posts, quiet_lab: PostgresqlStore, recorded: Recorded, written: str
) -> None:
    """REC-22: one connection at a time, closed behind it; what it sent could only read."""
    assert quiet_posts.wrap("b1").execute(SELECT, (written,)).fetchone() is None
    assert found(recorded, quiet_lab) == [STALE]
    with quiet_lab.connect("b1") as operator:
        asked = "SELECT query FROM pg_stat_activity WHERE application_name = 'antipode' AND query IN ('ROLLBACK', %s)"
        until(lambda: operator.execute(asked, (SELECT.replace("%s", "$1"),)).fetchall() == [])
