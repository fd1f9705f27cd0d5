"""The questions that ride with a commit, and the libpq generators that send them. Sync and async drive them alike."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from contextlib import suppress
from typing import Any, Final, NamedTuple

from psycopg import OperationalError, generators, pq

from antipode_postgresql.positions import number_of

# The timeline in force now: a connection lives on when its standby is promoted. Never the insert position: it may lie
# behind the next page's header, where no record ends, or behind what somebody else has not committed.
# It is asked for only as a bound for what was not flushed when it was read.
QUESTION: Final = b"SELECT pg_walfile_name('0/1000000'), pg_current_wal_flush_lsn(), pg_current_wal_insert_lsn()"
# The name of QUESTION as a prepared statement.
PREPARED: Final = b"_antipode_question"
# Before the COMMIT: what SET LOCAL said is gone after it.
HOW: Final = b"SHOW synchronous_commit"
HOW_AND_WHETHER: Final = b"SELECT current_setting('synchronous_commit'), pg_current_xact_id_if_assigned() IS NOT NULL"
# A commit of nothing, flushed: everything before it in the log is flushed then.
FLUSH: Final = (
    b"SELECT CASE WHEN current_setting('synchronous_commit') = 'off' THEN"
    b" set_config('synchronous_commit', 'local', true) END, pg_logical_emit_message(true, 'antipode', '')"
)
_PAGE: Final = 8192
_HEADER: Final = 24
_LONG_HEADER: Final = 40
"""Of the first page of a segment."""

Results = list[Any]


class Place(NamedTuple):
    """An answer to QUESTION."""

    timeline: int
    position: int
    """Flushed up to here."""
    inserted: int = 0
    """Written up to here, or to behind the next page's header."""

    def certain(self, segment: int) -> bool:
        """False at the start of a page: a record may only be flushed up to there, and be waited for in vain."""
        return self.position % _PAGE != 0 or self.position == record_end(self.inserted, segment)


def place_of(results: Sequence[Any]) -> Place | None:
    """The place in the last of these results; None where it is no answer."""
    if not results or results[-1].status != pq.ExecStatus.TUPLES_OK or results[-1].nfields != 3:
        return None
    name, lsn, inserted = (results[-1].get_value(0, column) for column in range(3))
    if name is None or lsn is None or inserted is None:
        return None
    return Place(int(name[:8], 16), number_of(lsn.decode()), number_of(inserted.decode()))


def record_end(inserted: int, segment: int) -> int:
    """The end of the last record before an insert position, which may already lie behind the next page's header."""
    if segment and inserted % segment == _LONG_HEADER:
        return inserted - _LONG_HEADER
    return inserted - _HEADER if inserted % _PAGE == _HEADER else inserted


def refusal_of(results: Sequence[Any]) -> str:
    """The server's words where it refused; empty where it did not."""
    for result in results:
        if result.status == pq.ExecStatus.FATAL_ERROR:
            return str(result.error_message.decode(errors="replace")).strip().splitlines()[0]
    return ""


def _has_state(results: Sequence[Any], state: bytes) -> bool:
    return any(result.error_field(pq.DiagnosticField.SQLSTATE) == state for result in results)


def is_unknown_statement(results: Sequence[Any]) -> bool:
    """Whether the server refused because it has no prepared statement of that name (`DISCARD ALL` forgets them)."""
    return _has_state(results, b"26000")


def is_prepared(results: Sequence[Any]) -> bool:
    """Whether the server has the statement now, or had it before."""
    return not refusal_of(results) or _has_state(results, b"42P05")


def ends_connection(result: Any) -> bool:
    """Whether this error is the last word of its server process: what it was told before may have happened."""
    severity = result.error_field(pq.DiagnosticField.SEVERITY_NONLOCALIZED)
    return result.status == pq.ExecStatus.FATAL_ERROR and severity in (b"FATAL", b"PANIC", None)


def simple(pgconn: Any, text: bytes) -> Any:
    """Sends one message of the simple protocol; the results of its statements."""
    pgconn.send_query(text)
    return (yield from generators.execute(pgconn))


def piped(pgconn: Any, groups: Sequence[Sequence[Callable[[], None]]]) -> Any:
    """Sends commands in one packet, each group a transaction of its own; the results of each command."""
    pgconn.enter_pipeline_mode()
    try:
        for group in groups:
            for send in group:
                send()
            pgconn.pipeline_sync()
        yield from generators.send(pgconn)
        found: list[Results] = []
        for group in groups:
            for _ in group:
                found.append((yield from generators.fetch_many(pgconn)))
            yield from generators.fetch_many(pgconn)  # the end of the group
        return found
    finally:
        with suppress(OperationalError):
            pgconn.exit_pipeline_mode()


def asked(pgconn: Any, text: bytes) -> Callable[[], None]:
    """A command of `piped`: a statement without parameters."""
    return lambda: pgconn.send_query_params(text, None)


def asked_prepared(pgconn: Any) -> Callable[[], None]:
    """QUESTION as the statement that `preparing` prepared."""
    return lambda: pgconn.send_query_prepared(PREPARED, None)


def preparing(pgconn: Any) -> Callable[[], None]:
    """Prepares QUESTION."""
    return lambda: pgconn.send_prepare(PREPARED, QUESTION)
