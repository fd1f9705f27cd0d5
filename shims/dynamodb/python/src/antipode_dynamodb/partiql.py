"""PartiQL: reads are reads; a statement that may write is recorded, and no version of it can be had."""

from __future__ import annotations

import re
from functools import partial
from typing import Any, Final

from antipode_dynamodb.binding import Binding
from antipode_dynamodb.hiding import read_items, write_and_read
from antipode_dynamodb.statements import BEFORE
from antipode_dynamodb.writing import native

_NO_VERSION: Final = (
    "a PartiQL statement that writes carries no version; use PutItem, UpdateItem, DeleteItem or TransactWriteItems"
)
_READS: Final = re.compile(BEFORE + r"(SELECT|EXISTS)\b", re.IGNORECASE)
_GIVES_NOTHING: Final = re.compile(BEFORE + r"INSERT\b", re.IGNORECASE)


def may_write(statement: str) -> bool:
    """Whether a statement may change data; what is not known may."""
    return _READS.match(statement) is None


def may_read(statement: str) -> bool:
    """Whether a statement may give values; what is not known may (SHIM-43)."""
    return _GIVES_NOTHING.match(statement) is None


def execute(binding: Binding, operation: str, params: dict[str, Any]) -> Any:
    """One statement, a batch of them, or a transaction."""
    word = "Statements" if operation == "BatchExecuteStatement" else "TransactStatements"
    parts = [params] if operation == "ExecuteStatement" else params.get(word, ())
    statements = [part.get("Statement", "") for part in parts]
    if not any(may_write(statement) for statement in statements):
        return read_items(binding, operation, params)
    write = partial(native, binding, operation, params, "partiql", _NO_VERSION)
    if any(may_read(statement) for statement in statements):
        return write_and_read(binding, operation, params, write)
    return write()
