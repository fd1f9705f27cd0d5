"""The rows of closed branches: a small table beside that of the epochs (spec BRANCH-22)."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Final

from antipode import Store, UnfitStoreError
from antipode.shim import Server
from antipode.shim.branch_writer import TIMEOUT_S, ReadOnlyError, RowWriter
from psycopg import OperationalError

from antipode_postgresql.session import RefusedError, Session
from antipode_postgresql.targets import target_of

TABLE: Final = "antipode.branches"
CREATE: Final = """CREATE TABLE IF NOT EXISTS antipode.branches (
  id      pg_catalog.text PRIMARY KEY,
  lineage pg_catalog.text NOT NULL,
  ends    pg_catalog.timestamptz NOT NULL
)"""
CREATE_INDEX: Final = "CREATE INDEX IF NOT EXISTS branches_ends ON antipode.branches (ends)"
_CLOSE: Final = """WITH gone AS (
  DELETE FROM antipode.branches WHERE id IN
    (SELECT id FROM antipode.branches WHERE ends < now() ORDER BY ends LIMIT 10))
INSERT INTO antipode.branches (id, lineage, ends)
VALUES ('{id}', '{text}', now() + interval '{life} milliseconds') ON CONFLICT (id) DO NOTHING RETURNING id"""
_STATE: Final = """SELECT has_schema_privilege(place.oid, 'USAGE') AND has_table_privilege(rows.oid, 'SELECT')
 AND has_table_privilege(rows.oid, 'INSERT') AND has_table_privilege(rows.oid, 'DELETE')
 FROM pg_class AS rows JOIN pg_namespace AS place ON place.oid = rows.relnamespace
 WHERE place.nspname = 'antipode' AND rows.relname = 'branches'"""
_MISSING: Final = frozenset({"3F000", "42P01", "42501"})
"""No such schema, no such table, no right to it."""
_READ_ONLY: Final = "25006"
_NOT_NOW: Final = frozenset({"57P01", "57P02", "57P03", "57014", "40001"})
"""On its way down or up; or a standby's own recovery was in the way of the question."""


def grant(user: str) -> str:
    """What a login needs to close and look up branches; `user` is a quoted identifier."""
    return f"GRANT SELECT, INSERT, DELETE ON antipode.branches TO {user}"


def row_writer(store: Store) -> RowWriter:
    """Where rows are written from: never the application's connection, in whose transaction they would be."""
    return RowWriter(
        store,
        lambda server: Session(target_of(server.target), TIMEOUT_S),
        Session.close,
        (OSError, OperationalError),
    )


def find(session: Session, ids: Sequence[str]) -> Mapping[str, str]:
    """The rows that a server shows, by one statement."""
    wanted = ", ".join(f"'{name}'" for name in ids)  # hexadecimal digits
    [rows] = session.run(f"SELECT id, lineage FROM antipode.branches WHERE id IN ({wanted})")
    return {str(name): str(text) for name, text in rows}


def close(session: Session, branch: str, text: str, life: float) -> bool:
    """Writes a row where there is none; raises ReadOnlyError at a standby."""
    # A lineage's text has no character that would have to be quoted (WIRE-2).
    statement = _CLOSE.format(id=branch, text=text.replace("'", ""), life=max(int(life * 1000), 1))
    try:
        [rows] = session.run(statement)
    except RefusedError as error:
        if error.code == _READ_ONLY:
            raise ReadOnlyError(str(error)) from error
        raise
    return bool(rows)


def usable(session: Session) -> bool | None:
    """Whether the session's user may close and look up branches; None where there is no table."""
    [rows] = session.run(_STATE)
    return rows[0][0] == "t" if rows else None


def check(session: Session, server: Server, store: str) -> None:
    """Asks for the table and the rights to it by using them, and takes it back."""
    try:
        find(session, ["0" * 32])
        session.run(f"BEGIN; {_CLOSE.format(id='0' * 32, text='1', life=1)}; ROLLBACK")
    except RefusedError as error:
        if error.code == _READ_ONLY:
            return
        if error.code in _NOT_NOW:
            raise OSError(str(error)) from error
        cure = ""
        if error.code in _MISSING:
            cure = f". Run: antipode init {store} --at URL-OF-THE-PRIMARY --user USER --set branches=yes --run"
        raise UnfitStoreError(
            f"{store} cannot hold branches at {server.address}: {error}{cure}", code="AP511"
        ) from error
