"""The shim for S3 with a rule taken out, each of which the adversary has to find (spec SHIM-49)."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping
from typing import Final, TypeAlias
from unittest.mock import patch

from antipode._model.write_id import Ordered
from antipode.testing.adversary import Patch
from antipode_s3 import judging
from antipode_s3.client import RecordingS3

Patches: TypeAlias = Iterator[Patch]


def _greater_versions_prove() -> Patches:
    """A greater version proves a lesser one, whatever chain it is of (D10, SHIM-52)."""

    def is_after(there: Ordered | None, wanted: Ordered) -> bool:
        return there is not None and there.counter > wanted.counter

    yield patch.object(judging, "_is_after", is_after)


def _transfers_have_no_scope() -> Patches:
    """A managed transfer works in threads that know nothing of the caller's scope (D8, SHIM-50)."""
    yield patch.object(RecordingS3, "_antipode_carried", lambda self: self)


MUTANTS: Final[Mapping[str, Callable[[], Patches]]] = {
    "greater versions prove": _greater_versions_prove,
    "transfers have no scope": _transfers_have_no_scope,
}
