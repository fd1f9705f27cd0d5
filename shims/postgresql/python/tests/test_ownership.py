"""Whoever can run SQL as the application must not get the rights of those who prepared its database (spec SHIM-46)."""

from __future__ import annotations

import itertools
from collections.abc import Iterator
from contextlib import suppress
from typing import Any

import psycopg
import pytest
from antipode.shim.administration import InitRequest, Level
from antipode_lab.fixtures import LabFactory
from antipode_lab.stores.postgresql import PostgresqlStore
from antipode_postgresql import PostgresqlShim, branch_rows, schema

# In the session's temporary schema, which everybody may use, and which a path that does not name it searches first.
ATTACK = """CREATE FUNCTION pg_temp.run(pg_catalog.text) RETURNS boolean LANGUAGE plpgsql AS $$ BEGIN
  IF (SELECT rolsuper FROM pg_catalog.pg_roles WHERE rolname = current_user) THEN
    EXECUTE 'ALTER ROLE app SUPERUSER';
  END IF;
  IF current_user <> 'app' THEN RAISE 'run as %', current_user; END IF;
  RETURN true;
END $$;
CREATE TEMPORARY TABLE warm();
CREATE DOMAIN pg_temp.text AS pg_catalog.text CHECK (pg_temp.run(value));
CREATE DOMAIN pg_temp.name AS pg_catalog.name CHECK (pg_temp.run(value::pg_catalog.text))"""
CALLS = ("SELECT antipode.mark()", "SELECT * FROM antipode.place()", "SELECT * FROM antipode.histories()")
numbers = itertools.count()


@pytest.fixture(scope="module")
def lab(module_lab_factory: LabFactory) -> PostgresqlStore:
    return module_lab_factory("postgresql", replicas=1, lag="1ms").get(PostgresqlStore)


@pytest.fixture
def database(lab: PostgresqlStore) -> Iterator[str]:
    """A database of its own, which belongs to the application's login, as is usual."""
    name = f"shop{next(numbers)}"
    with lab.connect("a") as connection:
        connection.execute(f"CREATE DATABASE {name} OWNER app")
        connection.execute("DROP ROLE IF EXISTS stranger")
        connection.execute("CREATE ROLE stranger LOGIN")
    yield name
    with lab.connect("a") as connection:
        connection.execute(f"DROP DATABASE {name}")
        connection.execute("ALTER ROLE app NOSUPERUSER")


def init(lab: PostgresqlStore, database: str, user: str = "postgres", **options: str) -> None:
    for step in PostgresqlShim.preparations(
        lab.url("a", database=database, user=user), InitRequest("shop", "app", options)
    ):
        assert step.run is not None
        assert step.run() == "done"


def init_of_an_earlier_release(lab: PostgresqlStore, database: str, user: str) -> None:
    """What `antipode init` made before: unqualified types, a path without pg_temp, whoever ran it as the owner."""
    made = ["CREATE SCHEMA antipode", schema.CREATE_TABLE, branch_rows.CREATE, schema.CREATE_MARK, schema.CREATE_PLACE]
    made += [schema.CREATE_HISTORIES, schema.CREATE_JOINED, schema.CREATE_KEEP, schema.REVOKE, *schema.grants("app")]
    with psycopg.connect(lab.url("a", database=database, user=user), autocommit=True) as connection:
        for statement in made:
            connection.execute(
                statement.replace("pg_catalog, pg_temp", "pg_catalog").replace("pg_catalog.text", "text")
            )


def unsafe(lab: PostgresqlStore, database: str) -> list[str]:
    found = PostgresqlShim.diagnose(lab.url("a", database=database, user="app"))
    return [finding.what for finding in found if finding.level is not Level.OK]


def attack(lab: PostgresqlStore, database: str) -> bool:
    """Whether the application's login is a superuser afterwards."""
    with psycopg.connect(lab.url("a", database=database, user="app"), autocommit=True) as connection:
        connection.execute(ATTACK)
        for call in CALLS:
            with suppress(psycopg.errors.InsufficientPrivilege, psycopg.errors.UndefinedFunction):
                connection.execute(call)
        [row] = connection.execute("SELECT rolsuper FROM pg_roles WHERE rolname = 'app'").fetchall()
        return bool(row[0])


def owners(connection: psycopg.Connection[Any]) -> set[str]:
    return {
        str(row[0])
        for row in connection.execute(
            "SELECT nspowner::regrole FROM pg_namespace WHERE nspname = 'antipode' UNION SELECT relowner::regrole"
            " FROM pg_class WHERE relnamespace = to_regnamespace('antipode') UNION SELECT proowner::regrole"
            " FROM pg_proc WHERE pronamespace = to_regnamespace('antipode')"
        )
    }


def test_a_callers_own_types_are_not_found(lab: PostgresqlStore, database: str) -> None:
    init(lab, database)
    assert not attack(lab, database)
    assert unsafe(lab, database) == []
    with psycopg.connect(lab.url("a", database=database, user="postgres")) as connection:
        assert owners(connection) == {"antipode_owner"}
        row = connection.execute(
            "SELECT rolsuper, rolcanlogin, rolcreaterole, array(SELECT roleid::regrole::text FROM pg_auth_members"
            " WHERE member = pg_roles.oid) FROM pg_roles WHERE rolname = 'antipode_owner'"
        ).fetchone()
        assert row == (False, False, False, ["pg_monitor"])


@pytest.mark.parametrize("owner", ["postgres", "app"])
def test_what_an_earlier_release_made_is_found_and_mended(lab: PostgresqlStore, database: str, owner: str) -> None:
    init_of_an_earlier_release(lab, database, owner)
    assert any("mark() runs as" in line and "finds types" in line for line in unsafe(lab, database))
    init(lab, database, branches="yes")
    assert unsafe(lab, database) == []
    assert not attack(lab, database)
    with psycopg.connect(lab.url("a", database=database, user="app")) as connection:
        assert owners(connection) == {"antipode_owner"}
        assert connection.execute("SELECT count(*) > 0 FROM antipode.histories()").fetchone() == (True,)
        with pytest.raises(psycopg.errors.InsufficientPrivilege):
            connection.execute("DELETE FROM antipode.epochs")


def test_a_role_without_the_rights_is_refused_before_anything_is_made(lab: PostgresqlStore, database: str) -> None:
    with pytest.raises(ValueError, match="as an administrator"):
        init(lab, database, "app")
    with psycopg.connect(lab.url("a", database=database, user="app")) as connection:
        assert owners(connection) == set()


def test_an_administrator_need_not_be_a_superuser(lab: PostgresqlStore, database: str) -> None:
    with psycopg.connect(lab.url("a", database=database, user="postgres"), autocommit=True) as connection:
        connection.execute("CREATE ROLE administrator LOGIN CREATEROLE IN ROLE pg_monitor")
        connection.execute(f"GRANT CREATE ON DATABASE {database} TO administrator")
        connection.execute("GRANT EXECUTE ON FUNCTION pg_read_file(text) TO administrator WITH GRANT OPTION")
    init(lab, database, "administrator")
    init(lab, database, "administrator")
    assert unsafe(lab, database) == []


STRANGERS = {
    "schema": ("stranger", ["CREATE SCHEMA antipode"], "schema antipode belongs to stranger"),
    "table": (
        "stranger",
        ["CREATE SCHEMA antipode", schema.CREATE_TABLE],
        "antipode.epochs belongs to stranger",
    ),
    "function": (
        "app",
        [
            "CREATE SCHEMA antipode",
            "GRANT CREATE ON SCHEMA antipode TO stranger",
            schema.CREATE_PLACE,
            "ALTER FUNCTION antipode.place() OWNER TO stranger",
        ],
        "place.* belongs to stranger",
    ),
    "trigger": (
        "app",
        [
            "CREATE SCHEMA antipode",
            schema.CREATE_TABLE,
            "CREATE FUNCTION public.bend() RETURNS trigger LANGUAGE plpgsql AS 'BEGIN RETURN NEW; END'",
            "CREATE TRIGGER bend BEFORE INSERT ON antipode.epochs FOR EACH ROW EXECUTE FUNCTION public.bend()",
        ],
        "trigger bend on antipode.epochs",
    ),
    "default": (
        "app",
        [
            "CREATE SCHEMA antipode",
            "CREATE FUNCTION public.now() RETURNS timestamptz LANGUAGE sql AS 'SELECT pg_catalog.now()'",
            schema.CREATE_TABLE.replace("pg_catalog.now()", "public.now()"),
        ],
        "column made_at of antipode.epochs",
    ),
    "view": ("app", ["CREATE SCHEMA antipode", "CREATE VIEW antipode.epochs AS SELECT 1 AS system"], "no plain table"),
}


@pytest.mark.parametrize("what", STRANGERS)
def test_what_is_somebody_elses_is_refused(lab: PostgresqlStore, database: str, what: str) -> None:
    who, statements, told = STRANGERS[what]
    with psycopg.connect(lab.url("a", database=database, user="postgres"), autocommit=True) as connection:
        connection.execute(f"GRANT CREATE ON DATABASE {database} TO stranger")
        connection.execute("GRANT stranger TO app")
    with psycopg.connect(lab.url("a", database=database, user=who), autocommit=True) as connection:
        for statement in statements:
            connection.execute(statement)
        before = owners(connection)
    with pytest.raises(ValueError, match=told):
        init(lab, database)
    with psycopg.connect(lab.url("a", database=database, user="postgres")) as connection:
        assert owners(connection) == before, "nothing was changed"
