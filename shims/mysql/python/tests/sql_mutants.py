"""The shim for MariaDB and MySQL with a rule taken out, each of which the adversary has to find (spec SHIM-49)."""

from __future__ import annotations

import re
from collections.abc import Callable, Iterator
from typing import Final, TypeAlias
from unittest.mock import patch

from antipode._store.store import Write
from antipode.testing.adversary import Patch
from antipode_mysql import recorder, statements
from antipode_mysql.recorder import Recorder
from antipode_mysql.statements import Kind, Statement

Patches: TypeAlias = Iterator[Patch]


def _classified(change: Callable[[bytes, Statement], Statement]) -> Patch:
    own = statements.classify
    return patch.object(recorder, "classify", lambda sql, **how: change(bytes(sql), own(sql, **how)))


def _unsure_do_not_wait() -> Patches:
    """What may write does not wait, whatever it returns (C1, SHIM-43, SHIM-44)."""
    yield _classified(lambda _, it: it._replace(may_read=it.may_read and it.kind is Kind.READ))


def _settings_do_not_write() -> Patches:
    """SET STATEMENT … FOR sets something for a statement, which nobody looks at (C7, SHIM-43)."""
    sets = re.compile(rb"\s*SET\s+STATEMENT\b", re.I)
    yield _classified(lambda sql, it: statements._SETS_UNSURE if sets.match(sql) else it)


def _no_commit_within() -> Patches:
    """What was committed within an open transaction is thrown away by the next rollback (C9, SCOPE-25)."""
    yield patch.object(Recorder, "goes_on", lambda self, row: self.told.clear())


def _only_who_wrote() -> Patches:
    """A transaction is not pending in the scope that commits it, and wrote nothing (SCOPE-24)."""
    yield patch.object(Write, "join_committer", lambda self: None)


def _anew(name: str, value: object) -> Patches:
    """Change the table of statements; what was classified by it before is forgotten."""
    yield patch.object(statements, name, value)
    yield patch.object(statements, "_short", statements._classified)


def _names_in_ascii() -> Patches:
    """A name that is not in ASCII calls nothing (D4, SHIM-43)."""
    return _anew("_CALL", re.compile(rb"(\w+)(\s*)\("))


def _no_quoted_calls() -> Patches:
    """A quoted name, and one in a database, calls nothing (D4, SHIM-43)."""
    return _anew("_CALL_OF_OTHERS", re.compile(rb"(?!)"))


def _names_of_mariadb() -> Patches:
    """A name of MariaDB's functions calls nothing on MySQL either, which does not have it (D4, SHIM-43)."""
    return _anew("_KNOWN", statements._KNOWN | {b"lastval"})


BOTH: Final[dict[str, Callable[[], Patches]]] = {
    "unsure do not wait": _unsure_do_not_wait,
    "no commit within": _no_commit_within,
    "only who wrote": _only_who_wrote,
    "names in ASCII": _names_in_ascii,
    "no quoted calls": _no_quoted_calls,
}
MUTANTS: Final[dict[str, dict[str, Callable[[], Patches]]]] = {
    "mariadb": {**BOTH, "settings do not write": _settings_do_not_write},
    "mysql": {**BOTH, "names of MariaDB": _names_of_mariadb},
}
"""Where the server is asked: one that tells of each commit tells of what no text shows, too."""
