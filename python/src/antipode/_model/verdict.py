"""What can be said of a write at a server, and what a barrier says of a store (spec BAR, EPOCH)."""

from __future__ import annotations

from enum import StrEnum
from typing import Final, NamedTuple


class Verdict(StrEnum):
    """What a barrier proved for one store."""

    VISIBLE = "visible"
    """Every write asked for is visible here, or superseded."""
    TIMED_OUT = "timed_out"
    """Not visible when the deadline passed."""
    UNPROVEN = "unproven"
    """No proof is possible: the epoch has ended, the store cannot tell, no server answers."""
    ELSEWHERE = "elsewhere"
    """No such store in this process: carried on, not judged."""
    NOT_YET = "not_yet"
    """Looked at and not visible; nobody waited (dry-run, `timeout=0`)."""


class UnprovenKind(StrEnum):
    """What kept a store from being proved (BAR-59): where writes differ, the first in this order counts."""

    HISTORY = "history"
    """The write belongs to a history that the server does not know, or that ended before it: it may be lost."""
    RIGHT = "right"
    """A right is missing."""
    CONNECTION = "connection"
    """Connecting or logging in failed."""
    NOT_OPENED = "not_opened"
    """No server is known yet: a client has not connected to its own (BAR-52)."""
    MISSPELT = "misspelt"
    """The lineage's name of the store is a registered one's but for case, `-` and `_` (BAR-6)."""
    DISCOVERY = "discovery"
    """What lists the servers does not list any, or fails (BAR-53)."""
    UNFIT = "unfit"
    """A setting or a topology in which nothing can be proved."""
    OWN_FAULT = "own_fault"
    """This process itself is in trouble: no thread, no descriptor, an exception of ours."""
    OTHER = "other"

    @property
    def rank(self) -> int:
        """Its place in the order."""
        return tuple(UnprovenKind).index(self)


class Reach(StrEnum):
    """How far a pass holds."""

    SESSION = "session"
    """This connection: `reading(after=…)` and wait on read."""
    REPLICA = "replica"
    """The server of the wrapped client."""
    REGION = "region"
    """Every server that readers here may use."""


class Visibility(NamedTuple):
    """A shim's answer about one write at one server: `visible`, `not_yet` or `unproven`, and why."""

    verdict: Verdict
    reason: str = ""
    unknown_epoch: bool = False
    """With `not_yet`: the server does not know the write's epoch, which may be newer than the server."""
    told: str = ""
    """With `visible` of a closed branch: the text of its row."""
    unanswered: bool = False
    """With `not_yet`: the server was in no state to answer (throttled, recovering), and said nothing of the write."""
    kind: UnprovenKind = UnprovenKind.OTHER
    """With `unproven`: what kept it from being proved."""
    overloaded: bool = False
    """With `not_yet`: so many wait, or in vain, that nobody waited to the deadline (BAR-39, BAR-40)."""


VISIBLE: Final = Visibility(Verdict.VISIBLE)
NOT_YET: Final = Visibility(Verdict.NOT_YET)


def not_yet(
    reason: str, *, unknown_epoch: bool = False, unanswered: bool = False, overloaded: bool = False
) -> Visibility:
    """Not visible at this server now; it may become so.

    `unanswered`: the question was put off, and nothing was said of the write: dry-run finds nothing there (REC-13).
    """
    return Visibility(Verdict.NOT_YET, reason, unknown_epoch, unanswered=unanswered, overloaded=overloaded)


def unproven(reason: str, kind: UnprovenKind = UnprovenKind.OTHER) -> Visibility:
    """Waiting proves nothing: the reason says what is missing, the kind which advice fits (BAR-59)."""
    return Visibility(Verdict.UNPROVEN, reason, kind=kind)
