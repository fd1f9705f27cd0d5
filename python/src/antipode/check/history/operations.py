"""One operation of a recorded history, and the history as arrays that the deciders run over (spec HIST-1 to HIST-8)."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field
from enum import Enum, StrEnum
from typing import Final

UNATTRIBUTED: Final = "unattributed"
"""In place of the write that a read returned: nobody knows which one it was."""
INITIAL: Final = -1
UNKNOWN_SOURCE: Final = -2
THIN_AIR: Final = -3


class HistoryError(ValueError):
    """A history that cannot be read: a sentence that says where and why."""


class Kind(StrEnum):
    """What an operation does."""

    WRITE = "write"
    READ = "read"
    SEND = "send"
    RECEIVE = "receive"
    BEGIN = "begin"
    """A process begins to record."""
    END = "end"
    """It has written all that it recorded."""
    GAP = "gap"
    """Something is missing from what it recorded."""


class Unsaid(Enum):
    """In place of a value's digest where nothing is said of it."""

    UNSAID = "unsaid"


UNSAID: Final = Unsaid.UNSAID


@dataclass(slots=True)
class RecordedEvent:
    """What a recorder says of a write or read, from which it is found out who read whom (HIST-29)."""

    value: str | Unsaid | None = UNSAID
    """The digest of what a write left under its key, or a read found there; None: nothing is there."""
    version: str = ""
    """The identifier of the write that the value which was read is, in the wire form."""
    covers: str = ""
    """The position that went into the reader's lineage."""
    expires: bool = False
    """Whether what was written may go by itself."""
    certain: bool = True
    """Whether the write is known to have happened."""
    there: bool = False
    """Whether the write left something under its key, though its digest is not said."""
    any_key: bool = False
    """Whether the write may have changed any key of its store."""
    late_version: bool = False
    """Whether the write may for a time have had the version of another one."""
    nothing: bool = False
    """Whether the write changed no key, and has a position all the same."""
    reason: str = ""
    """Of a gap: what is missing."""


@dataclass(slots=True)
class Operation:
    """One line of a history, as it stands there."""

    id: str
    kind: Kind
    process: str
    scope: str
    request: str = ""
    store: str = ""
    key: str = ""
    reads_from: str | None = None
    """A read's write, None for the initial value, or `UNATTRIBUTED`."""
    message: str = ""
    lineage: tuple[str, ...] | str | None = None
    """What was carried at that time: operations' ids, a text in the wire form, or None where nothing is said."""
    identifier: str = ""
    """A write's own identifier in the wire form, where it is known."""
    time: float | None = None
    place: str = ""
    """Where it was read from, `file:line`."""
    recorded: RecordedEvent | None = None
    """What a recorder said besides; None for what is complete in itself."""


@dataclass(frozen=True, slots=True)
class Gap:
    """Something that is not known, so that a violation could hide there (HIST-18)."""

    operation: int
    reason: str


@dataclass(slots=True)
class History:
    """Operations by number, in the order of the file, and how they hang together.

    A *thread* is what runs in order: one scope in one process.
    """

    operations: list[Operation]
    thread: list[int]
    """The thread of each operation."""
    threads: list[list[int]]
    """The operations of each thread, in order."""
    place: list[int]
    """Where each operation stands in its thread."""
    item: list[int]
    """The store and key of each read and write, as a number; -1 for messages."""
    items: list[tuple[str, str]]
    source: list[int]
    """The write that each read returned, or `INITIAL`, `UNKNOWN_SOURCE`, `THIN_AIR`."""
    carried: dict[int, list[int]]
    """The writes that an operation's lineage held, or that came with the message it received."""
    sent: dict[int, int]
    """For a receipt whose message carries all that its sender depended on: the sending."""
    sending: dict[int, int]
    """For every receipt of a recorded message: the sending."""
    request: list[int]
    """The request, the paper's lineage, that each operation belongs to."""
    requests: list[str]
    gaps: list[Gap] = field(default_factory=list)

    def __len__(self) -> int:
        return len(self.operations)

    def is_write(self, number: int) -> bool:
        """Whether the operation is a write."""
        return self.operations[number].kind is Kind.WRITE

    def before(self, number: int) -> int | None:
        """The operation before this one in its thread."""
        place = self.place[number]
        return self.threads[self.thread[number]][place - 1] if place else None

    def reads(self) -> Sequence[int]:
        """All reads."""
        return [number for number, each in enumerate(self.operations) if each.kind is Kind.READ]
