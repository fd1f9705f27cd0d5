"""The shim for PostgreSQL with a rule taken out, each of which the adversary has to find (spec SHIM-49)."""

from __future__ import annotations

import sys
from collections.abc import Callable, Iterator
from typing import Any, Final, TypeAlias
from unittest.mock import patch

from antipode._store.store import Write
from antipode.shim.both_ways import Steps
from antipode.testing.adversary import Patch
from antipode_postgresql import connections, flow
from antipode_postgresql.engines import RecordingEngine
from antipode_postgresql.recording import RecordingBaseCursor

Patches: TypeAlias = Iterator[Patch]


def _one_scope() -> Patches:
    """A transaction is pending in the scope of its first write alone (C2, SCOPE-24)."""
    yield patch.object(Write, "join_scope", lambda self: None)


def _only_who_wrote() -> Patches:
    """A transaction is not pending in the scope that commits it, and wrote nothing (SCOPE-24)."""
    yield patch.object(Write, "join_committer", lambda self: None)


def _no_commit_within() -> Patches:
    """What a text of several statements has committed is thrown away by the next rollback (C9, SCOPE-25)."""
    yield patch.object(flow, "may_commit_within", lambda text: False)


def _nothing() -> Steps[None]:
    yield from ()


def _not_waiting(caller: str) -> Callable[[], Patches]:
    """Return what has a cursor's method not wait (C10, SHIM-44)."""

    def patches() -> Patches:
        for name in ("_antipode_uncovered", "_antipode_waits"):
            own = getattr(connections.RecordingSharedCursor, name)

            def waits(self: Any, *rest: Any, own: Any = own) -> Any:
                return _nothing() if sys._getframe(1).f_code.co_name == caller else own(self, *rest)

            yield patch.object(connections.RecordingSharedCursor, name, waits)

    return patches


def _copy_does_not_wait() -> Patches:
    """COPY neither waits nor looks at its data's moment (C10, SHIM-44, SHIM-48); either finds what the other misses."""
    yield from _not_waiting("copy")()
    yield patch.object(RecordingBaseCursor, "_antipode_copied", lambda self, copy: copy)


def _plain_options() -> Patches:
    """An engine by `execution_options` is the plain one (D1, SHIM-50)."""
    yield patch.object(
        RecordingEngine, "execution_options", lambda self, **options: self._antipode_plain.execution_options(**options)
    )


MUTANTS: Final[dict[str, Callable[[], Patches]]] = {
    "one scope": _one_scope,
    "only who wrote": _only_who_wrote,
    "no commit within": _no_commit_within,
    "stream does not wait": _not_waiting("stream"),
    "copy does not wait": _copy_does_not_wait,
    "executemany does not wait": _not_waiting("_antipode_execute_many"),
}
"""On connections of psycopg."""
ENGINE_MUTANTS: Final[dict[str, Callable[[], Patches]]] = {
    "one scope": _one_scope,
    "only who wrote": _only_who_wrote,
    "plain options": _plain_options,
}
