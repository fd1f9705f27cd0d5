"""The shim for DynamoDB with a rule taken out, each of which the adversary has to find (spec SHIM-49)."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping
from typing import Final, TypeAlias
from unittest.mock import patch

from antipode._model.verdict import VISIBLE
from antipode.testing.adversary import Patch
from antipode_dynamodb import partiql, shim

Patches: TypeAlias = Iterator[Patch]


def _greater_versions_prove() -> Patches:
    """A greater version proves a lesser one, whatever chain it is of (D10, SHIM-52)."""
    yield patch.object(shim, "_passed", lambda there, counter, *, linked: VISIBLE)


def _statements_only_read() -> Patches:
    """A PartiQL statement changes nothing (SHIM-43)."""
    yield patch.object(partiql, "may_write", lambda statement: False)


MUTANTS: Final[Mapping[str, Callable[[], Patches]]] = {
    "greater versions prove": _greater_versions_prove,
    "statements only read": _statements_only_read,
}
