"""The shim for FerretDB with a rule taken out, each of which the adversary has to find (spec SHIM-49)."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping
from typing import Any, Final, TypeAlias
from unittest.mock import patch

from antipode._model.write_id import Ordered, WriteId
from antipode.shim import VISIBLE, Visibility
from antipode.testing.adversary import Patch
from antipode_mongodb import commands, inserting, judging
from antipode_mongodb.fields import version_of

Patches: TypeAlias = Iterator[Patch]


def _greater_versions_prove() -> Patches:
    """A greater version proves a lesser one, whatever chain it is of (D10, SHIM-52)."""
    own = judging.judge

    def judge(write_id: WriteId, document: Mapping[str, Any] | None) -> Visibility:
        at, version = version_of(document), write_id.version
        is_greater = at is not None and isinstance(version, Ordered) and at > version.counter
        return VISIBLE if is_greater else own(write_id, document)

    yield patch.object(judging, "judge", judge)


def _failed_insertions_are_certain() -> Patches:
    """Insertions one of which failed have left nothing (SHIM-43)."""
    yield patch.object(inserting, "_done", lambda error, count, *, ordered: set())


def _commands_only_read() -> Patches:
    """A command of the application's own changes nothing (SHIM-43)."""
    yield patch.object(commands, "may_write", lambda command: False)


MUTANTS: Final[Mapping[str, Callable[[], Patches]]] = {
    "greater versions prove": _greater_versions_prove,
    "failed insertions are certain": _failed_insertions_are_certain,
    "commands only read": _commands_only_read,
}
