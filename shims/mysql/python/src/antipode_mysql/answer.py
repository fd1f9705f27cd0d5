"""The question behind a commit or a read, and its answer."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Final

from antipode_mysql.gtids import Gtid, parse

QUESTION: Final = b"SELECT @@last_gtid,@@GLOBAL.gtid_binlog_pos,@@sql_log_bin,CONNECTION_ID()"


@dataclass(frozen=True, slots=True)
class Answer:
    """What the server says."""

    last: Gtid | None
    """The session's own newest transaction."""
    log: tuple[Gtid, ...]
    """Where the server's log is, one a domain."""
    logs: bool
    """Whether this session's writes are logged at all."""
    session: int
    """Whose answer it is."""

    @classmethod
    def of(cls, row: Sequence[bytes | None] | None) -> Answer | None:
        """From the row of the question; None for what is no such row."""
        if row is None:
            return None
        try:
            last, log, is_logged, session = ((value or b"").decode("ascii") for value in row)
            return cls(next(iter(parse(last)), None), tuple(parse(log)), is_logged == "1", int(session))
        except ValueError:
            return None
