"""What a PostgreSQL store needs before its clients are wrapped: `antipode init` (spec SHIM-3, SHIM-4)."""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence
from functools import partial
from typing import Final

from antipode import ConfigurationError
from antipode.shim.administration import InitRequest, Step

from antipode_postgresql import branch_rows, ownership, schema
from antipode_postgresql.session import RefusedError, Session
from antipode_postgresql.targets import target_of

OPTIONS: Final[Mapping[str, str]] = {
    "branches": "yes: also the table of branches, for configure(branches=…)",
    "table": "also prepare this table for lineages beside its rows (rest='column'): a column and a trigger",
}
_TIMEOUT_S: Final = 10.0
_TOLD: Final = 5
_NAME: Final = re.compile(r"[A-Za-z_][A-Za-z_0-9$]*(\.[A-Za-z_][A-Za-z_0-9$]*)?")
_WHY: Final = (
    "one schema, which belongs to a role of its own: without it two standbys promoted apart cannot be told apart, only "
    "superusers and roles with REPLICATION can tell which timeline a standby follows, and after a failover positions "
    "are unproven. To be run " + ownership.ADMINISTRATOR
)
_GRANTS: Final = "without it the writes of that login are unproven after a failover"


def preparations(url: str, wanted: InitRequest) -> Sequence[Step]:
    """Return the steps for the schema, its rights and a table's column: one transaction at the primary, replicated."""
    target_of(url)  # raises where it is no address
    user = wanted.user
    if user is not None and (not user or "\x00" in user):
        raise ConfigurationError(f"{user!r} is no name of a role", code="AP707")
    quoted = "" if user is None else '"' + user.replace('"', '""') + '"'
    branches = wanted.options.get("branches", "no") not in ("", "no")
    table = wanted.options.get("table", "")
    if "table" in wanted.options and not _NAME.fullmatch(table):
        words = f"{table!r} is no name of a table; write schema.table, without quotes"
        raise ConfigurationError(words, code="AP707")
    statements = schema.statements(quoted, branches=branches, table=table)
    steps = [Step("psql", _text(statements), _WHY, partial(_run, url, statements, user))]
    if user is None:
        rights = [*schema.grants("USER"), *([branch_rows.grant("USER")] if branches else [])]
        steps.append(Step("psql", _text(rights), _GRANTS))
    return steps


def _text(statements: Sequence[str]) -> str:
    return ";\n".join(statements) + ";"


def _run(url: str, statements: Sequence[str], user: str | None) -> str:
    session = Session(target_of(url), _TIMEOUT_S)
    try:
        recovering, allowed = session.run(f"SELECT pg_is_in_recovery(); {ownership.RIGHTS}")
        if recovering[0][0] == "t":
            raise ConfigurationError("it is a standby: prepare the primary, and it is replicated", code="AP512")
        if allowed[0][0] != "t":
            words = f"this role may not: run it {ownership.ADMINISTRATOR}. Nothing was changed"
            raise ConfigurationError(words, code="AP701")
        [me] = session.row("SELECT current_user::text")
        users = [name for name in (me, user) if name]
        # Once before anything is changed; and again when nobody else may change it any more.
        _refuse(session.run(f"{ownership.SEARCH_PATH}; {ownership.strange(users, superusers=True)}")[-1])
        *made, commit = statements
        session.run(_text(made))
        _refuse(session.run(f"{ownership.SEARCH_PATH}; {ownership.strange(superusers=False)}")[-1])
        session.run(commit)
        return "done"
    except RefusedError as error:
        words = f"{error}. Nothing was changed. Run it {ownership.ADMINISTRATOR}"
        raise ConfigurationError(words, code="AP701") from error
    finally:
        session.close()


def _refuse(strange: Sequence[Sequence[str | None]]) -> None:
    """Raise ConfigurationError where something in the schema is not as we make it."""
    if strange:
        told = "; ".join(str(line) for [line] in strange[:_TOLD])
        raise ConfigurationError(
            f"{told}: that is not of antipode init's making, and would meet more rights than its owner has. "
            "Look at it, drop it (DROP SCHEMA antipode CASCADE), and run this again. Nothing was changed",
            code="AP702",
        )
