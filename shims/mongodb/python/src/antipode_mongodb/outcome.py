"""What an error of the client says of the writes that it ended."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from typing import Any, Final

from antipode import logs
from antipode.shim import Write
from bson.errors import BSONError
from pymongo.errors import (
    ConfigurationError,
    ExecutionTimeout,
    InvalidName,
    InvalidOperation,
    OperationFailure,
    PyMongoError,
    WriteConcernError,
)

NOT_SENT: Final = (TypeError, ValueError, OverflowError, BSONError, ConfigurationError, InvalidName, InvalidOperation)
_INTERNAL: Final = frozenset({1, 8, 91, 189, 11600, 11602})
"""Errors of a server in the middle of something: what it was asked may have been done."""


def settle(writes: Iterable[Write], error: BaseException) -> None:
    """Says of writes that failed whether they can have happened."""
    for write in writes:
        if isinstance(error, WriteConcernError):
            write.record_incomplete("concern", "it happened, and was not acknowledged as asked for")
        elif is_refusal(error):
            write.abandon()
        else:
            write.outcome_unknown()


def is_refusal(error: BaseException) -> bool:
    """Whether nothing can have been written."""
    if isinstance(error, OperationFailure):
        return not isinstance(error, ExecutionTimeout) and error.code not in _INTERNAL
    return isinstance(error, NOT_SENT)


def not_committed(error: OperationFailure) -> bool:
    """Whether the server has answered a commit by saying that it did not happen: the transaction may begin again.

    It is the server's word alone: the client puts the same label on errors of its own, before it has sent anything,
    whatever an earlier try has done.
    """
    if isinstance(error, WriteConcernError) or error.has_error_label("UnknownTransactionCommitResult"):
        return False
    return error.has_error_label("TransientTransactionError")


def failure_in(reply: Any) -> PyMongoError | None:
    """The error in a command's reply that was not raised: a write concern's never is, nor one that it may have."""
    if not isinstance(reply, Mapping):
        return PyMongoError("a reply that is no document")
    concern = reply.get("writeConcernError")
    if concern:
        return WriteConcernError(str(concern))
    return None if reply.get("ok") else OperationFailure(str(reply.get("errmsg", "")), reply.get("code"))


def incomplete(writes: Iterable[Write], store: str, reason: str, detail: str) -> None:
    """The writes happened, and no version of them can be had."""
    logs.warn(f"{reason} {store}", f"{store}: writes are recorded as incomplete: {detail}")
    for write in writes:
        write.record_incomplete(reason, detail)


def details_of(error: OperationFailure) -> dict[str, Any]:
    """The server's own words."""
    return dict(error.details or {})
