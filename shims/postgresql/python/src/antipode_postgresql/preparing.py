"""What a PostgreSQL store needs before its clients are wrapped: `antipode init` (spec SHIM-3, SHIM-4)."""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence
from functools import partial
from typing import Final

from antipode.administration import Step, Wanted

from antipode_postgresql import branch_rows, schema
from antipode_postgresql.session import Session
from antipode_postgresql.targets import target_of

OPTIONS: Final[Mapping[str, str]] = {
    "branches": "yes: also the table of branches, for configure(branches=…)",
    "table": "also prepare this table for lineages beside its rows (rest='column'): a column and a trigger",
}
_TIMEOUT_S: Final = 10.0
_NAME: Final = re.compile(r"[A-Za-z_][A-Za-z_0-9$]*(\.[A-Za-z_][A-Za-z_0-9$]*)?")
_EPOCHS: Final = "without it two standbys promoted apart cannot be told apart: after a failover positions are unproven"
_MARK: Final = "it makes the row of a timeline; writers call it once, and need no right to the table"
_HISTORY: Final = (
    "without it only superusers and roles with REPLICATION can tell which timeline a standby follows; to be made "
    "by a superuser, or a role in pg_monitor and pg_read_server_files"
)
_BRANCHES: Final = "without it branches can be neither closed nor looked up"
_BESIDE: Final = "without it no lineage rests beside the rows of this table"


def preparations(url: str, wanted: Wanted) -> Sequence[Step]:
    """The schema, its rights, and the column of a table; at the primary, for it is replicated."""
    target_of(url)  # raises where it is no address
    steps = [
        _step(url, schema.CREATE_SCHEMA, "one schema holds all that is Antipode's"),
        _step(url, schema.CREATE_TABLE, _EPOCHS),
        _step(url, schema.CREATE_MARK, _MARK),
        _step(url, schema.CREATE_PLACE, _HISTORY),
        _step(url, schema.CREATE_HISTORIES, _HISTORY),
        _step(url, schema.CREATE_JOINED, _BESIDE),
        _step(url, schema.CREATE_KEEP, _BESIDE),
        _step(url, schema.REVOKE, "they run with their owner's rights: nobody else needs them"),
    ]
    user = wanted.user
    if user is not None and (not user or "\x00" in user):
        raise ValueError(f"{user!r} is no name of a role")
    quoted = "USER" if user is None else '"' + user.replace('"', '""') + '"'
    for statement in schema.grants(quoted):
        steps.append(
            _step(url, statement, "without it its writes are unproven after a failover", runs=user is not None)
        )
    if wanted.options.get("branches", "no") not in ("", "no"):
        steps += [_step(url, statement, _BRANCHES) for statement in (branch_rows.CREATE, branch_rows.CREATE_INDEX)]
        steps.append(_step(url, branch_rows.grant(quoted), _BRANCHES, runs=user is not None))
    table = wanted.options.get("table")
    if table is not None:
        if not _NAME.fullmatch(table):
            raise ValueError(f"{table!r} is no name of a table; write schema.table, without quotes")
        steps += [_step(url, statement, _BESIDE) for statement in schema.column(table)]
    return steps


def _step(url: str, statement: str, why: str, *, runs: bool = True) -> Step:
    return Step("psql", f"{statement};", why, partial(_run, url, statement) if runs else None)


def _run(url: str, statement: str) -> str:
    session = Session(target_of(url), _TIMEOUT_S)
    try:
        if session.row("SELECT pg_is_in_recovery()")[0] == "t":
            raise ValueError("it is a standby: prepare the primary, and it is replicated")
        session.run(statement)
        return "done"
    finally:
        session.close()
