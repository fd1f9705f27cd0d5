"""What an error of the client says of the writes that it ended."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from typing import Any, Final, TypeAlias

from antipode.shim import Write, logs
from bson.errors import BSONError
from pymongo.errors import (
    BulkWriteError,
    ClientBulkWriteException,
    ConfigurationError,
    ExecutionTimeout,
    InvalidName,
    InvalidOperation,
    OperationFailure,
    PyMongoError,
    WriteConcernError,
)

NOT_SENT: Final = (TypeError, ValueError, OverflowError, BSONError, ConfigurationError, InvalidName, InvalidOperation)
Parts: TypeAlias = tuple[type[Exception], ...]
"""Errors after which a part of an operation may have happened."""
ONE: Final[Parts] = (BulkWriteError, ClientBulkWriteException)
"""Of one document: it happened, or it did not."""
SEVERAL: Final[Parts] = (OperationFailure,)
"""Of several documents: outside a transaction a server keeps what it changed before it met the error."""
BATCHES: Final[Parts] = (OperationFailure, TypeError, ValueError, OverflowError, BSONError)
"""In several messages: what cannot be sent is found out when its own is made, and those before it have been sent."""
_INTERNAL: Final = frozenset({1, 8, 91, 189, 11600, 11602})
"""Errors of a server in the middle of something: what it was asked may have been done."""


def parts_of(name: str) -> Parts:
    """What an error of a collection's operation leaves open."""
    if name in ("insert_many", "bulk_write"):
        return BATCHES
    return SEVERAL if name in ("update_many", "delete_many") else ONE


def settle(writes: Iterable[Write], error: BaseException, parts: Parts = ONE) -> None:
    """Says of writes that failed whether they can have happened."""
    for write in writes:
        if write.noted is not None and isinstance(error, (WriteConcernError, *parts)):
            write.noted.changes(None)  # which part of it happened, nobody knows
        if isinstance(error, WriteConcernError):
            write.record_incomplete("concern", "it happened, and was not acknowledged as asked for")
        elif isinstance(error, parts) and (is_refusal(error) or isinstance(error, ONE)):
            write.record_incomplete("bulk", f"it failed, and a part of it may have happened ({type(error).__name__})")
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
    logs.warn(f"{reason} {store}", f"{store}: writes are recorded as incomplete: {detail}", code="AP517")
    for write in writes:
        write.record_incomplete(reason, detail)


def details_of(error: OperationFailure) -> dict[str, Any]:
    """The server's own words."""
    return dict(error.details or {})
