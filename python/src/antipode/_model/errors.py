"""What Antipode raises, as one tree.

The wire never raises: of these, only `deserialize` raises MalformedLineageError, and middlewares raise none.
An error of a datastore's own client stays that client's exception in a wrapped call; in a barrier it becomes
the verdict `unproven`, with the client's words as the reason.
"""

from __future__ import annotations

from typing import ClassVar


class AntipodeError(Exception):
    """The root of everything that Antipode raises itself.

    Args:
        message: What is wrong and what cures it.
        code: The message's code (spec OBS-14), where it is not the one of the class.
    """

    default_code: ClassVar[str] = ""

    def __init__(self, message: str = "", *, code: str = "") -> None:
        super().__init__(message)
        self.code = code or self.default_code

    def __str__(self) -> str:
        return with_code(super().__str__(), self.code)


def with_code(message: str, code: str) -> str:
    """Return the message with its code behind its first line; `antipode explain CODE` says more (spec OBS-14)."""
    if not code:
        return message
    first, newline, rest = message.partition("\n")
    return f"{first} [{code}]{newline}{rest}"


class ConfigurationError(AntipodeError, ValueError):
    """A setting, or the way in which a call was made, cannot be right; the message names what to change."""


class UnknownStoreError(ConfigurationError):
    """A barrier names a store that this process has not registered."""

    default_code = "AP106"


class UnfitStoreError(ConfigurationError):
    """A datastore's topology, settings or rights do not allow a proof; the message holds the cure."""

    default_code = "AP208"


class BlockingCallError(AntipodeError):
    """A blocking call on a running event loop, which would stop every task on it."""

    default_code = "AP105"


class PendingWriteError(AntipodeError):
    """A lineage was about to leave while a write had no position yet (`on_pending="raise"`, for tests)."""

    default_code = "AP115"


class MalformedLineageError(AntipodeError, ValueError):
    """A text is no lineage in the wire form (spec WIRE)."""

    default_code = "AP405"
