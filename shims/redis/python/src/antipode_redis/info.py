"""The question that rides behind a write, and what its answer says (`INFO replication`)."""

from __future__ import annotations

from typing import Any, Final, NamedTuple

from antipode import Ordered

EPOCH_DIGITS: Final = 16
"""So many hex digits of a replication id name an epoch."""
QUESTION: Final = b"*2\r\n$4\r\nINFO\r\n$11\r\nreplication\r\n"
"""`INFO replication`, packed by hand: it is appended to the bytes of the write itself."""

PRIMARY: Final = b"# Replication\r\nrole:master\r"
"""How a primary's answer begins."""
_REPLID: Final = b"\nmaster_replid:"
_REPLID_SIZE: Final = len(_REPLID)
_OFFSET: Final = b"\r\nmaster_repl_offset:"
_TO_OFFSET_NAME: Final = _REPLID_SIZE + 40 + len(b"\r\nmaster_replid2:") + 40
_TO_OFFSET: Final = _TO_OFFSET_NAME + len(_OFFSET)
_BACKLOG: Final = b"\nrepl_backlog_active:1"
_new: Final[Any] = tuple.__new__
_spelled: dict[bytes, str] = {}


class Replication(NamedTuple):
    """What a server says of its place in replication."""

    primary: bool
    epoch: str
    """Its own history: the first digits of its replication id."""
    offset: int
    """What it has executed (a primary) or applied (a replica) of that history."""
    before: str
    """The history that it continued, if it knows one; else empty."""
    before_end: int
    """Where it left that history (`second_repl_offset`): it has all below. At a replica not the fork."""
    backlog: bool
    """Whether its offsets count: without a backlog they stand still."""
    read_only: bool
    """Whether it refuses writes as a replica does."""
    link: bool
    """Whether a replica hears its primary; true for a primary."""

    @property
    def position(self) -> Ordered | None:
        """Where the data that it serves are; None where its offset says nothing about them."""
        if self.primary and not self.backlog:
            return None
        if not self.primary and self.offset <= 1:
            return None  # it has never followed anybody: what it holds came from a file
        return Ordered(self.epoch, self.offset)


def places_of(reply: bytes) -> tuple[int, int, int, int, str] | None:
    """Where a primary's answer has its ids, its offset's first digit and end, and the end of the word for a backlog;
    and the epoch. None where it gives no position, or a full look is needed."""
    if not reply.startswith(PRIMARY):
        return None
    at = reply.find(_REPLID)
    # Replication ids are 40 digits: from the first one, the offset's place is known.
    begin = at + _TO_OFFSET
    if at < 0 or reply[at + _TO_OFFSET_NAME : begin] != _OFFSET:
        return None
    stop = reply.find(b"\r", begin)
    backlog = reply.find(_BACKLOG, stop)
    if stop < 0 or backlog < 0:
        return None
    digits = reply[at + _REPLID_SIZE : at + _REPLID_SIZE + EPOCH_DIGITS]
    epoch = _spelled.get(digits)
    if epoch is None:
        if len(_spelled) > 1000:
            _spelled.clear()
        epoch = _spelled[digits] = digits.decode("ascii")
    return at, begin, stop, backlog + len(_BACKLOG), epoch


def position_of_primary(reply: bytes) -> Ordered | None:
    """The position after a write, sliced out of the reply; None where there is none or a full look is needed."""
    places = places_of(reply)
    if places is None:
        return None
    position: Ordered = _new(Ordered, (places[4], int(reply[places[1] : places[2]])))
    return position


def parse(reply: Any) -> Replication:
    """The whole answer; raises ValueError for what is no answer to the question."""
    text = reply.decode("utf-8", "replace") if isinstance(reply, bytes | bytearray) else str(reply)
    words = dict(line.split(":", 1) for line in text.splitlines() if ":" in line)
    try:
        primary = words["role"] == "master"
        backlog = words.get("repl_backlog_active") == "1"
        # Without a backlog its data may be another history's: a full copy that failed behind its flush (EPOCH-33).
        second = int(words.get("second_repl_offset", "-1")) if backlog else -1
        return Replication(
            primary=primary,
            epoch=words["master_replid"][:EPOCH_DIGITS],
            # A replica with its link down still says here what it has applied; ROLE would say -1.
            offset=int(words["master_repl_offset"] if primary else words["slave_repl_offset"]),
            before=words.get("master_replid2", "")[:EPOCH_DIGITS] if second > 0 else "",
            before_end=max(second, 0),
            backlog=backlog,
            read_only=not primary and words.get("slave_read_only", "1") == "1",
            link=primary or words.get("master_link_status") == "up",
        )
    except (KeyError, ValueError) as error:
        raise ValueError(f"INFO replication answered something else: {text[:80]!r}") from error
