"""The rows of closed branches: a small table beside that of the settled epochs (spec BRANCH-22)."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from typing import Any, Final

import pymysql
from antipode import Store, UnfitStoreError
from antipode.shim import Server
from antipode.shim.branch_writer import ReadOnlyError, RowWriter
from pymysql.constants import ER

TABLE: Final = "antipode.branches"
CREATE: Final = (
    f"CREATE TABLE IF NOT EXISTS {TABLE} (id CHAR(32) CHARACTER SET ascii NOT NULL PRIMARY KEY, "
    "lineage VARCHAR(4300) CHARACTER SET ascii NOT NULL, ends BIGINT NOT NULL, KEY branches_ends (ends))"
)
_FIND: Final = f"SELECT id, lineage FROM {TABLE} WHERE id IN "
_INSERT: Final = f"INSERT INTO {TABLE} (id, lineage, ends) VALUES (%s, %s, UNIX_TIMESTAMP() + %s)"
_OLD: Final = f"SELECT id FROM {TABLE} WHERE ends < UNIX_TIMESTAMP() ORDER BY ends LIMIT 10"
# By key, and not with a LIMIT: every replica deletes the same rows, however the log is written.
_DELETE: Final = f"DELETE FROM {TABLE} WHERE id IN "
_MISSING: Final = frozenset(
    {ER.NO_SUCH_TABLE, ER.BAD_DB_ERROR, ER.TABLEACCESS_DENIED_ERROR, ER.DBACCESS_DENIED_ERROR}
    | {ER.COLUMNACCESS_DENIED_ERROR}
)
_READ_ONLY: Final = frozenset({ER.OPTION_PREVENTS_STATEMENT, 1836})
_ENDING: Final = frozenset({ER.SERVER_SHUTDOWN, 1927})
BROKEN: Final = (OSError, pymysql.err.OperationalError, pymysql.err.InterfaceError)


class MissingError(Exception):
    """The table is not there, or may not be used; with the server's own words."""


def row_writer(store: Store, connect: Callable[[Server], Any]) -> RowWriter:
    """Where rows are written from: never the application's connection, in whose transaction they would be."""
    return RowWriter(store, connect, lambda connection: connection._force_close(), BROKEN)


def find(rows: Callable[..., Sequence[tuple[Any, ...]]], ids: Sequence[str]) -> Mapping[str, str]:
    """The rows that a server shows, by one statement; `rows` runs it."""
    try:
        return {str(name): str(text) for name, text in rows(_FIND + _marks(ids), *ids)}
    except pymysql.err.MySQLError as error:
        raise _understood(error) from error


def close(connection: Any, branch: str, text: str, life: float) -> bool:
    """Writes a row where there is none; raises ReadOnlyError at a replica.

    A user who may write there all the same (SUPER) does not: it would be a transaction that only the replica has.
    """
    try:
        with connection.cursor() as cursor:
            _refuse_replica(cursor)
            cursor.execute(_OLD)
            old = [str(name) for [name] in cursor.fetchall()]
            if old:
                cursor.execute(_DELETE + _marks(old), old)
            try:
                cursor.execute(_INSERT, (branch, text, int(life) + 1))
            except pymysql.err.IntegrityError as error:
                if error.args[0] == ER.DUP_ENTRY:
                    return False
                raise
    except pymysql.err.MySQLError as error:
        raise _understood(error) from error
    return True


def check(connection: Any, server: Server, store: str) -> None:
    """Asks for the table and the rights to it by using them, and takes it back."""
    try:
        with connection.cursor() as cursor:
            cursor.execute(_FIND + "('')")
            _refuse_replica(cursor)
            cursor.execute("BEGIN")
            cursor.execute(_INSERT, ("check", "1", 0))
            cursor.execute(_DELETE + "('check')")
            cursor.execute("ROLLBACK")
    except ReadOnlyError:
        return
    except pymysql.err.MySQLError as error:
        understood = _understood(error)
        if isinstance(understood, ReadOnlyError):
            return
        if _is_gone(error):
            raise
        cure = ""
        if isinstance(understood, MissingError):
            cure = f". Run: antipode init {store} --at URL-OF-THE-PRIMARY --user USER --set branches=yes --run"
        raise UnfitStoreError(
            f"{store} cannot hold branches at {server.address}: {error}{cure}", code="AP511"
        ) from error


def refusal(rows: Callable[..., Sequence[tuple[Any, ...]]]) -> tuple[bool, str]:
    """Whether the user may read the table, and why they may not close branches in it; empty where they may.

    Nothing is written: EXPLAIN asks for the rights of what it explains. `rows` runs a statement.
    """
    try:
        rows(_FIND + "('')")
    except pymysql.err.MySQLError as error:
        if isinstance(_understood(error), MissingError):
            return False, ""
        raise
    try:
        [(read_only,)] = rows("SELECT @@GLOBAL.read_only")
        if not int(read_only):
            rows(f"EXPLAIN {_INSERT}", "check", "1", 0)
            rows(f"EXPLAIN {_DELETE}('check')")
    except pymysql.err.MySQLError as error:
        if isinstance(_understood(error), MissingError):
            return True, str(error.args[-1])
        raise
    return True, ""


def _refuse_replica(cursor: Any) -> None:
    cursor.execute("SELECT @@GLOBAL.read_only")
    if int(cursor.fetchall()[0][0]):
        raise ReadOnlyError("it is read-only")


def _is_gone(error: pymysql.err.MySQLError) -> bool:
    """Whether the connection was lost, or the server is on its way down: it does not answer now."""
    code = error.args[0] if error.args else 0
    return isinstance(error, pymysql.err.InterfaceError) or 2000 <= code < 3000 or code in _ENDING


def _understood(error: pymysql.err.MySQLError) -> Exception:
    code = error.args[0] if error.args else 0
    if code in _MISSING:
        return MissingError(str(error))
    return ReadOnlyError(str(error)) if code in _READ_ONLY else error


def _marks(ids: Sequence[str]) -> str:
    return f"({', '.join(['%s'] * len(ids))})"
