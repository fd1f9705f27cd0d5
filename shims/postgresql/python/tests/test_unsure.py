"""Statements that look like reads, and write by what the database has (SHIM-43)."""

from __future__ import annotations

from collections.abc import Iterator

import antipode
import antipode_postgresql
import psycopg
import pytest
from antipode.testing import isolated
from antipode_lab.fixtures import LabFactory
from antipode_lab.stores.postgresql import PostgresqlStore
from antipode_postgresql import PostgresqlShim
from pg_regions import STORE, prepare, proved, until

MADE = """
CREATE FUNCTION log_it() RETURNS int LANGUAGE sql AS $$ INSERT INTO posts VALUES (random()::text, 'v') RETURNING 1 $$;
CREATE VIEW logged AS SELECT log_it() AS id;
CREATE VIEW "Over it" AS SELECT * FROM logged;
CREATE SEQUENCE numbers;
CREATE VIEW counted AS SELECT setval('numbers', 7) AS id;
CREATE FUNCTION noted(a int, b int) RETURNS boolean LANGUAGE sql AS $$ SELECT log_it() = 1 $$;
CREATE OPERATOR === (LEFTARG = int, RIGHTARG = int, FUNCTION = noted);
CREATE FUNCTION touched(posts) RETURNS int LANGUAGE sql AS $$ SELECT log_it() $$;
CREATE FUNCTION replace(a int, b text) RETURNS int LANGUAGE sql AS $$ SELECT log_it() $$;
CREATE TABLE guarded (key text);
INSERT INTO guarded VALUES ('k');
ALTER TABLE guarded ENABLE ROW LEVEL SECURITY;
CREATE POLICY seen ON guarded USING (log_it() = 1)"""
TEXTS = [
    "SELECT * FROM logged",
    'SELECT * FROM "Over it"',
    "SELECT * FROM counted",
    "SELECT 1 === 2",
    "SELECT p.touched FROM posts AS p",
    "SELECT replace(1, 'x')",
    "SELECT * FROM guarded",
    'SELECT * FROM U&"\\006Cogged"',
    "DECLARE c CURSOR WITH HOLD FOR SELECT log_it()",
    "DECLARE c CURSOR WITH HOLD FOR SELECT * FROM logged",
]


@pytest.fixture(scope="module")
def lab(module_lab_factory: LabFactory) -> PostgresqlStore:
    lab = module_lab_factory("postgresql", replicas=1, lag="1ms").get(PostgresqlStore)
    prepare(lab)
    with lab.connect("a", database="app") as connection:
        connection.execute(MADE)
        connection.execute(
            "GRANT ALL ON ALL TABLES IN SCHEMA public TO app; GRANT ALL ON ALL SEQUENCES IN SCHEMA public TO app"
        )
        connection.execute("INSERT INTO posts VALUES ('1', 'v')")
    lab.wait_caught_up("b1")
    return lab


@pytest.fixture
def registry() -> Iterator[None]:
    with isolated():
        yield


@pytest.mark.parametrize("autocommit", [True, False])
@pytest.mark.parametrize("text", TEXTS)
def test_it_is_recorded(lab: PostgresqlStore, registry: None, text: str, autocommit: bool) -> None:
    with psycopg.connect(lab.url("a"), autocommit=autocommit) as plain:
        wrapped = antipode_postgresql.wrap(plain, STORE)
        with antipode.scope() as scope:
            wrapped.execute(text)
            wrapped.commit()
        assert proved(scope)


def test_a_cursor_of_the_client_that_is_held_is_recorded(lab: PostgresqlStore, registry: None) -> None:
    """SCOPE-25: its query runs in the commit."""
    with psycopg.connect(lab.url("a")) as plain:
        wrapped = antipode_postgresql.wrap(plain, STORE)
        with antipode.scope() as scope:
            wrapped.cursor("held", withhold=True).execute("SELECT log_it()")
            wrapped.commit()
        assert proved(scope)


def test_what_only_reads_is_not(lab: PostgresqlStore, registry: None) -> None:
    with psycopg.connect(lab.url("a"), autocommit=True) as plain:
        wrapped = antipode_postgresql.wrap(plain, STORE)
        with antipode.scope() as scope:
            wrapped.execute("SELECT value, upper(key) FROM posts WHERE value = 'v'")
        assert not scope.lineage


def test_doctor_names_them(lab: PostgresqlStore) -> None:
    [found] = [each for each in PostgresqlShim.diagnose(lab.url("a")) if "look like reads" in each.what]
    assert "logged" in found.what


@pytest.mark.parametrize("is_block", [False, True])
def test_a_call_behind_a_character_that_ends_like_an_escape(
    lab: PostgresqlStore, registry: None, is_block: bool
) -> None:
    """SHIM-6: in SJIS the second octet of the character is a backslash, and the server reads another text."""
    with psycopg.connect(lab.url("a"), client_encoding="SJIS", autocommit=not is_block) as plain:
        wrapped = antipode_postgresql.wrap(plain, STORE, replicas=[lab.url("b1")])
        with antipode.scope() as scope:
            assert wrapped.execute("SELECT E'表', log_it()").fetchone() == ("表", 1)
            wrapped.commit()
            assert proved(scope)


def test_what_is_made_between_two_wraps_counts_for_the_second(lab: PostgresqlStore, registry: None) -> None:
    """SHIM-43: the server is asked again, where that was ten seconds ago."""

    def record() -> bool:
        with psycopg.connect(lab.url("a"), autocommit=True) as plain, antipode.scope() as scope:
            antipode_postgresql.wrap(plain, STORE).execute("SELECT * FROM made_since")
            return bool(scope.lineage)

    with lab.connect("a", database="app") as connection:
        with psycopg.connect(lab.url("a")) as plain:
            antipode_postgresql.wrap(plain, STORE)
        connection.execute("CREATE VIEW made_since AS SELECT log_it() AS id")
        connection.execute("GRANT SELECT ON made_since TO PUBLIC")
        try:
            until(record, 60)
        finally:
            connection.execute("DROP VIEW made_since")
