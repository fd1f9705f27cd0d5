"""What `antipode init` prints and runs for MariaDB and MySQL: the table of settled epochs, and lineages beside rows."""

from __future__ import annotations

import re
from collections.abc import Callable, Mapping, Sequence
from contextlib import closing
from typing import Any, Final

import pymysql
from antipode import ConfigurationError
from antipode.shim.administration import InitRequest, Step

from antipode_mysql import branch_rows, column
from antipode_mysql.session import MARKS
from antipode_mysql.targets import Target, target_of

OPTIONS: Final[Mapping[str, str]] = {
    "branches": "yes: also the table of branches, for configure(branches=…)",
    "table": "DATABASE.TABLE or TABLE: a column and two triggers that keep the lineage beside its rows (rest='native')",
}
_TIMEOUT_S: Final = 10.0
_NAME: Final = re.compile(r"[A-Za-z0-9_$\u0080-\uffff]+(\.[A-Za-z0-9_$\u0080-\uffff]+)?")
TABLE: Final = (
    f"CREATE TABLE IF NOT EXISTS {MARKS} (epoch VARCHAR(32) CHARACTER SET ascii NOT NULL PRIMARY KEY, "
    "counter BIGINT UNSIGNED NOT NULL)"
)


def steps(url: str, wanted: InitRequest) -> list[Step]:
    """The statements, in order. Nothing of it is needed for positions and waits."""
    target = target_of(url)
    found = [
        _step(target, "CREATE DATABASE IF NOT EXISTS antipode", "without it no epoch can be settled by hand"),
        _step(target, TABLE, "without it no epoch can be settled by hand"),
    ]
    name = wanted.user or "USER"
    if not re.fullmatch(r"[^'\\\x00]{1,80}", name):
        raise ConfigurationError(f"{name!r} is no user", code="AP707")
    grant = f"GRANT SELECT ON {MARKS} TO '{name}'@'%';"
    run = None if wanted.user is None else _runner(target, grant)
    found.append(Step("mysql", grant, "services cannot see what was settled", run))
    if wanted.options.get("branches", "no") not in ("", "no"):
        why = "branches can be neither closed nor looked up"
        found.append(_step(target, branch_rows.CREATE, why))
        grant = f"GRANT SELECT, INSERT, DELETE ON {branch_rows.TABLE} TO '{name}'@'%';"
        found.append(Step("mysql", grant, why, None if wanted.user is None else _runner(target, grant)))
    if "table" in wanted.options:
        table = wanted.options["table"]
        if not _NAME.fullmatch(table):
            raise ConfigurationError(f"{table!r} is no table's name", code="AP707")
        why = "lineages cannot rest beside the rows of this table"
        found += [_step(target, statement, why) for statement in column.statements(table)]
    return found


def _step(target: Target, statement: str, why: str) -> Step:
    text = statement if "\n" not in statement else f"DELIMITER //\n{statement}//\nDELIMITER ;"
    return Step("mysql", text if text.endswith(";") else f"{text};", why, _runner(target, statement))


def _runner(target: Target, statement: str) -> Callable[[], str]:
    def run() -> str:
        with closing(target.connect(_TIMEOUT_S)) as connection:
            if target.database:
                connection.select_db(target.database)
            with connection.cursor() as cursor:
                _refuse_replica(cursor)
                try:
                    cursor.execute(statement.removesuffix(";"))
                except pymysql.err.OperationalError as error:
                    if error.args[0] != column.THERE:  # it was run before
                        raise
            return "done"

    return run


def _refuse_replica(cursor: Any) -> None:
    cursor.execute("SELECT @@GLOBAL.read_only")
    rows: Sequence[tuple[Any, ...]] = cursor.fetchall()
    if int(rows[0][0]):
        raise ConfigurationError("it is read-only, so a replica: run this at the primary", code="AP512")
