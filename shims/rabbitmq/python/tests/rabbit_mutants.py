"""The shim for RabbitMQ with a rule taken out, each of which the adversary has to find (spec SHIM-49)."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping
from typing import Any, Final, TypeAlias
from unittest.mock import patch

from antipode._model.write_id import Opaque
from antipode._store.store import Write
from antipode.testing.adversary import Patch
from antipode_rabbitmq import publishing
from antipode_rabbitmq.transaction import Transaction

Patches: TypeAlias = Iterator[Patch]


def _identifiers_are_marks() -> Patches:
    """A message that the application has given an identifier is known by that, which others may have, too (SHIM-17)."""
    own = publishing._with_mark

    def with_mark(properties: Any) -> tuple[str, Any]:
        given = getattr(properties, "message_id", None)
        return own(properties) if given is None else (given, publishing._copy(properties))

    yield patch.object(publishing, "_with_mark", with_mark)


def _published_is_there() -> Patches:
    """A message counts when it is handed to the broker, whatever becomes of its transaction (SHIM-11)."""

    def add(self: Transaction, write: Write, version: Opaque) -> None:
        write.record(version)

    yield patch.object(Transaction, "add", add)


def _ended_is_nothing() -> Patches:
    """A transaction leaves nothing, however it ends (SHIM-11)."""
    yield patch.object(Transaction, "committed", Transaction.rolled_back)


MUTANTS: Final[Mapping[str, Callable[[], Patches]]] = {
    "identifiers are marks": _identifiers_are_marks,
    "published is there": _published_is_there,
    "ended is nothing": _ended_is_nothing,
}
