"""The questions that ride with a commit, and the libpq generators that send them. Sync and async drive them alike."""

from __future__ import annotations

import time
from collections.abc import Callable, Sequence
from contextlib import suppress
from functools import partial
from typing import Any, Final, NamedTuple

from psycopg import OperationalError, generators, pq
from psycopg.errors import error_from_result
from psycopg.waiting import Wait

from antipode_postgresql.positions import PAGE, number_of

# The timeline in force now: a connection lives on when its standby is promoted. Never the insert position: it may lie
# behind the next page's header, where no record ends, or behind what somebody else has not committed.
# It is asked for only as a bound for what was not flushed when it was read.
QUESTION: Final = b"SELECT pg_walfile_name('0/1000000'), pg_current_wal_flush_lsn(), pg_current_wal_insert_lsn()"
# The name of QUESTION as a prepared statement.
PREPARED_QUESTION: Final = b"_antipode_question"
_OURS: Final = b"_antipode_"
EXECUTE_QUESTION: Final = b"EXECUTE " + PREPARED_QUESTION
PREPARE_QUESTION: Final = b";PREPARE " + PREPARED_QUESTION + b" AS " + QUESTION
COMMIT_AND_EXECUTE: Final = b"COMMIT;" + EXECUTE_QUESTION
# Before the COMMIT: what SET LOCAL said is gone after it.
HOW: Final = b"SHOW synchronous_commit"
PREPARED_HOW: Final = b"_antipode_how"
# Behind a write that would commit at the end of its packet: a block that begins behind it takes it in, without a
# warning, and ends before the packet does. So the question's answer comes with the write's, in one go.
BEGIN: Final = b"BEGIN"
PREPARED_BEGIN: Final = b"_antipode_begin"
COMMIT: Final = b"COMMIT"
PREPARED_COMMIT: Final = b"_antipode_commit"
HOW_AND_WHETHER: Final = b"SELECT current_setting('synchronous_commit'), pg_current_xact_id_if_assigned() IS NOT NULL"
# A commit of nothing, flushed: everything before it in the log is flushed then. It waits for no standby: the commit of
# the application itself did, or was told not to (SHIM-2).
FLUSH: Final = b"SELECT set_config('synchronous_commit', 'local', true), pg_logical_emit_message(true, 'antipode', '')"
_READ: Final = Wait.R
_SYNC: Final = pq.ExecStatus.PIPELINE_SYNC
_BINARY: Final = pq.Format.BINARY
_OK: Final = pq.ConnStatus.OK
_REFUSED: Final = pq.ExecStatus.FATAL_ERROR
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
        return self.position % PAGE != 0 or self.position == record_end(self.inserted, segment)


def place_of(results: Sequence[Any]) -> Place | None:
    """The place in the last of these results; None where it is no answer."""
    if not results or results[-1].status != pq.ExecStatus.TUPLES_OK or results[-1].nfields != 3:
        return None
    value = results[-1].get_value
    name, lsn, inserted = value(0, 0), value(0, 1), value(0, 2)
    if name is None or lsn is None or inserted is None:
        return None
    if results[-1].fformat(1) == _BINARY:
        return Place(int(name[:8], 16), int.from_bytes(lsn), int.from_bytes(inserted))
    return Place(int(name[:8], 16), number_of(lsn), number_of(inserted))


def is_all_flushed(results: Sequence[Any]) -> bool:
    """Whether an answer to QUESTION says that nothing in the log waits to be flushed."""
    if not results or results[-1].status != pq.ExecStatus.TUPLES_OK:
        return False
    lsn = results[-1].get_value(0, 1)
    return lsn is not None and lsn == results[-1].get_value(0, 2)


def record_end(inserted: int, segment: int) -> int:
    """The end of the last record before an insert position, which may already lie behind the next page's header."""
    if segment and inserted % segment == _LONG_HEADER:
        return inserted - _LONG_HEADER
    return inserted - _HEADER if inserted % PAGE == _HEADER else inserted


def refusal_of(results: Sequence[Any]) -> str:
    """The server's words where it refused; empty where it did not."""
    for result in results:
        if result.status == pq.ExecStatus.FATAL_ERROR:
            return str(result.error_message.decode(errors="replace")).strip().splitlines()[0]
    return ""


def _has_state(results: Sequence[Any], state: bytes) -> bool:
    return any(
        result.status == _REFUSED and result.error_field(pq.DiagnosticField.SQLSTATE) == state for result in results
    )


def is_ours_unknown(results: Sequence[Any]) -> bool:
    """Whether the server refused because it has a prepared statement of ours no more (`DISCARD ALL` forgets them)."""
    return _has_state(results, b"26000") and any(_OURS in result.error_message for result in results)


def is_cancelled(results: Sequence[Any]) -> bool:
    """Whether the server stopped for a time limit, or because it was told to."""
    return _has_state(results, b"57014")


def is_prepared(results: Sequence[Any]) -> bool:
    """Whether the server has the statement now, or had it before."""
    return not refusal_of(results) or _has_state(results, b"42P05")


def ends_connection(result: Any) -> bool:
    """Whether this error is the last word of its server process: what it was told before may have happened."""
    severity = result.error_field(pq.DiagnosticField.SEVERITY_NONLOCALIZED)
    return result.status == pq.ExecStatus.FATAL_ERROR and severity in (b"FATAL", b"PANIC", None)


class LateAnswer(Exception):
    """The answer to a question of ours did not come by its deadline."""


def bounded(generator: Any, until: float) -> Any:
    """Do what a generator of psycopg's does, until a time (of `time.monotonic`); raise Late then.

    Whoever drives it, sync or asyncio, comes back now and then where nothing has come.
    """
    try:
        wanted = next(generator)
        while True:
            ready = yield wanted
            if not ready and time.monotonic() >= until:
                generator.close()
                raise LateAnswer
            wanted = generator.send(ready)
    except StopIteration as end:
        return end.value


def simple(pgconn: Any, text: bytes) -> Any:
    """Sends one message of the simple protocol; the results of its statements."""
    pgconn.send_query(text)
    return (yield from generators.execute(pgconn))


def piped(pgconn: Any, groups: Sequence[Sequence[Callable[[], None]]], known: Any) -> Any:
    """Sends commands in one packet, each group up to a synchronisation point of its own; the results of each group.

    They begin with one a command, in order; behind them is the error of the group's end, where its transaction is
    committed, which may fail (a deferred constraint). psycopg's `fetch_many` for each command would come to the same,
    and cost a generator each.
    """
    if known.row_by_row:  # behind a stream: the rows of the first command's answer would come one at a time
        yield from simple(pgconn, b"")
        known.row_by_row = False
    pgconn.enter_pipeline_mode()
    results: Results = []
    try:
        for group in groups:
            for send in group:
                send()
            pgconn.pipeline_sync()
        if pgconn.flush():
            yield from generators.send(pgconn)
        answers = []
        is_busy, get_result = pgconn.is_busy, pgconn.get_result
        for group in groups:
            results = []
            for _ in group:
                while is_busy():
                    while not (yield _READ):
                        pass
                    pgconn.consume_input()
                results.append(get_result())
                get_result()  # the null behind it, which is never waited for
            if None in results:
                raise OperationalError("the connection was lost")
            empty = 0
            while True:
                while is_busy():
                    while not (yield _READ):
                        pass
                    pgconn.consume_input()
                result = get_result()
                if result is None:  # behind an error of the group's end; again and again where nothing is to come
                    empty += 1
                    if empty > 2 or pgconn.status != _OK:
                        raise OperationalError("the connection was lost")
                elif result.status == _SYNC:
                    break
                else:
                    results.append(result)
            answers.append(results)
        while (heard := pgconn.notifies()) is not None:
            if pgconn.notify_handler is not None:
                pgconn.notify_handler(heard)
    except BaseException as error:
        with suppress(OperationalError):
            pgconn.exit_pipeline_mode()
        words = next((each for each in results if each is not None and ends_connection(each)), None)
        if words is not None and isinstance(error, OperationalError):
            raise error_from_result(words, encoding=pgconn._encoding) from error  # why it was lost, as psycopg says it
        raise
    pgconn.exit_pipeline_mode()
    return answers


def asked(pgconn: Any, text: bytes) -> Callable[[], None]:
    """A command of `piped`: a statement without parameters."""
    return partial(pgconn.send_query_params, text, None)


def behind(pgconn: Any) -> list[Callable[[], None]]:
    """What rides behind a write that is a transaction by itself, as `preparing` prepared it; numbers come in binary."""
    return [partial(pgconn.send_query_prepared, name, None, None, _BINARY) for name in _BEHIND]


def preparing(pgconn: Any, *, has_question: bool) -> list[Callable[[], None]]:
    """Prepares all of that which the server lacks."""
    missing = [name for name in _BEHIND if name != PREPARED_QUESTION or not has_question]
    return [partial(pgconn.send_prepare, name, _BEHIND[name]) for name in missing]


_BEHIND: Final = {
    PREPARED_HOW: b"SELECT current_setting('synchronous_commit')",  # prepared, it takes less than SHOW
    PREPARED_BEGIN: BEGIN,
    PREPARED_COMMIT: COMMIT,
    PREPARED_QUESTION: QUESTION,
}
