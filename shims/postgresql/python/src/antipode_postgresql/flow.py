"""One connection's transactions: a write is pending from its first statement that may write, until its end is known."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from itertools import chain
from typing import Any, Final

from antipode.at_rest import text_at_rest
from antipode.otel_context import current_context
from antipode.reading import current_reading, reading_in
from antipode.scope import current_scope
from antipode.store import Write
from antipode.writeid import Ordered, WriteId
from psycopg import Error, OperationalError, generators, pq
from psycopg.errors import error_from_result

from antipode_postgresql.binding import Binding
from antipode_postgresql.column import RESET, set_local, set_session
from antipode_postgresql.known import Known, learn_gen
from antipode_postgresql.packets import (
    BEGIN,
    COMMIT,
    EXECUTE_QUESTION,
    FLUSH,
    HOW,
    HOW_AND_WHETHER,
    PREPARED_QUESTION,
    QUESTION,
    Place,
    Results,
    asked,
    behind,
    ends_connection,
    is_all_flushed,
    is_cancelled,
    is_ours_unknown,
    is_prepared,
    piped,
    place_of,
    preparing,
    record_end,
    refusal_of,
    simple,
)
from antipode_postgresql.positions import PAGE, number_of
from antipode_postgresql.riding import Heard, Rider
from antipode_postgresql.statements import Kind

IDLE: Final = pq.TransactionStatus.IDLE
INTRANS: Final = pq.TransactionStatus.INTRANS
_NO_WRITE: Final = (Kind.READ, Kind.SESSION, Kind.ROLLBACK, Kind.COMMIT, Kind.PREPARE)
ASK_HOW: Final = 256
"""How many writes by themselves ask how they are committed, after one whose answer did not prove that it was flushed:
where several write at once, or with synchronous_commit=off, a question of its own would follow most of them."""
OPEN: Final = (pq.TransactionStatus.INTRANS, pq.TransactionStatus.INERROR)
OK: Final = pq.ConnStatus.OK
_BINARY: Final = pq.Format.BINARY
_REFUSED: Final = pq.ExecStatus.FATAL_ERROR
_ROWS: Final = pq.ExecStatus.TUPLES_OK


class Flow:
    """The writes of one wrapped connection. Its generators are driven by psycopg's own waiting."""

    def __init__(self, binding: Binding, connection: Any, known: Known) -> None:
        self.binding = binding
        self.connection = connection
        """The plain one."""
        self.pgconn = connection.pgconn
        self.known = known
        self.write: Write | None = None
        self.certain = False
        """Whether one of its statements was a plain write: then the server need not be asked whether it wrote."""
        self.committing = False
        self.alone = False
        """Whether the statement on its way is a transaction by itself."""
        self.prepared: Write | None = None
        """A write of a prepared transaction (two-phase commit)."""
        self.unsettled: list[tuple[Write, bool]] = []
        """Commits of a pipeline whose position could not ride along."""
        self.announced = False
        """Whether one of our cursors is about to send; others are not seen through, and may write."""
        self.beside: str | None = None
        """What the server was told to put beside rows, in this transaction; None where that may hold no more."""
        self.in_session = False
        """Whether it was told so for longer than a transaction."""
        self._behind = behind(self.pgconn)
        self._statements = connection._prepared
        self.has_snapshot = False
        """Whether the open transaction has run a statement: a snapshot may be kept from then on."""

    # Before a statement

    def begins(self, kind: Kind) -> None:
        """A statement is about to be sent."""
        if kind is not Kind.WRITE:
            self.may_set(kind)
            if kind in _NO_WRITE:
                return
        if self.write is None:
            self.alone = self.pgconn.transaction_status == IDLE
            self.write = Write(self.binding.store, b"")
            self.certain = False
        if kind is Kind.WRITE:
            self.certain = True

    # Lineages beside rows

    def may_set(self, kind: Kind) -> None:
        """A statement was or will be sent that may change settings: ROLLBACK TO takes back what was set behind it."""
        if kind not in (Kind.READ, Kind.WRITE):
            self.beside = None

    def text_beside(self) -> str:
        """The lineage that may rest beside what is written now: other writes in flight are marked in it."""
        scope = current_scope()
        if scope is None:
            return ""
        lineage = scope.lineage
        stores = sorted({write.store for write in scope.pending if write is not self.write})
        if stores:
            lineage = lineage.marked_incomplete(*stores)
        return text_at_rest(lineage, self.binding.options.lineage_out)

    def beside_gen(self, pipeline: Any) -> Any:
        """Tells the server before a write; for one that commits by itself until `reset_gen`.

        Where the server refuses, that is the write's own error: it would rest without its lineage.
        """
        pgconn, text = self.pgconn, self.text_beside()
        if pipeline is not None:
            pipeline.command_queue.append(set_local(pgconn, text))
            pipeline.result_queue.append((Heard(lambda results: None, self._raised), None))
        elif pgconn.transaction_status == INTRANS:
            if text != self.beside:
                set_local(pgconn, text)()
                self._raised((yield from generators.execute(pgconn)))
                self.beside = text
        elif pgconn.transaction_status == IDLE:
            set_session(pgconn, text)()
            self._raised((yield from generators.execute(pgconn)))
            self.in_session = True

    def _raised(self, results: Results) -> None:
        """Raises the server's error, as psycopg does it for the application's own command."""
        for result in results:
            if result.status == _REFUSED:
                raise error_from_result(result, encoding=self.pgconn._encoding)

    def reset_gen(self) -> Any:
        """Takes the lineage back from the connection: nothing of ours stays on it (SHIM-5)."""
        if self.in_session and self.pgconn.status == OK and self.pgconn.transaction_status == IDLE:
            self.in_session = False
            yield from simple(self.pgconn, RESET)

    # After it

    def failed(self, kind: Kind, error: BaseException) -> None:
        """A statement ended with an error, or was given up."""
        self.beside = None
        write = self.write
        if write is None:
            return
        if self.pgconn.status != OK:
            self._gone(write, may_commit=kind is Kind.MAYBE)
        elif self.pgconn.transaction_status == IDLE:
            if kind not in (Kind.MAYBE, Kind.END_PREPARED):
                self._forget().abandon()
            else:
                self._forget().record_incomplete("pending", "it failed, and may have committed a part before")
        elif self.pgconn.transaction_status not in OPEN:
            self._forget().outcome_unknown()

    def _gone(self, write: Write, *, may_commit: bool = False) -> None:
        """The connection is lost. What had not been told to commit is rolled back by the server.

        `may_commit`: what was on its way may hold a COMMIT (several statements in one text).
        """
        told = self.committing or self.alone or may_commit
        self._forget()
        if told:
            write.outcome_unknown()
        else:
            write.abandon()

    def closed(self) -> None:
        """The application gives the connection up."""
        if self.write is None:
            return
        if self.pgconn.status == OK and self.pgconn.transaction_status in OPEN:
            self._forget().abandon()
        elif self.pgconn.status != OK:
            self._gone(self.write)
        else:
            self._forget().outcome_unknown()

    def rolled_back(self) -> None:
        """The transaction is known not to have happened."""
        if self.write is not None:
            self._forget().abandon()

    def _forget(self) -> Write:
        write, self.write = self.write, None
        assert write is not None
        self.certain = self.committing = self.alone = False
        self.beside = None
        return write

    # Commits: the question is in the same message

    def commit_gen(self) -> Any:
        """Sends COMMIT with the questions around it; its own result."""
        pgconn, known = self.pgconn, self.known
        before = HOW if self.certain else HOW_AND_WHETHER
        question, prepares = QUESTION, b""
        if self._statements.prepare_threshold is not None:
            if known.has_question:
                question = EXECUTE_QUESTION
            else:
                prepares = self._prepares_question()
        self.committing = True
        try:
            results = yield from simple(pgconn, before + b";COMMIT;" + question + prepares)
        except BaseException as error:
            if pgconn.status != OK or not isinstance(error, Error):
                self._lost(error)
            raise
        self.committing = False
        if len(results) < 2:
            # The server refused before it came to the COMMIT (a cancelled statement): the transaction is in error.
            if pgconn.status != OK:
                self.committing = True
                self._lost(None)
            return results[-1]
        how, done = results[0], results[1]
        if done.status == pq.ExecStatus.FATAL_ERROR:
            if pgconn.status != OK or ends_connection(done):
                self._lost(None)
            else:
                self.rolled_back()
            return done
        if prepares:
            known.has_question, known.questions = len(results) > 3 and is_prepared(results[3:]), 0
        if done.command_status == b"ROLLBACK" or (not self.certain and how.get_value(0, 1) == b"f"):
            self.rolled_back()  # it only read, or had failed before
            return done
        answer, asynchronous = results[2:3], how.get_value(0, 0) == b"off"
        if asynchronous or not self._settles(answer):
            if is_ours_unknown(answer):
                known.has_question, answer = False, []
            yield from self.settle_gen(answer, asynchronous=asynchronous)
        return done

    def _lost(self, error: BaseException | None) -> None:
        if self.write is not None:
            self._forget().outcome_unknown()

    def alone_gen(self, send: Any) -> Any:
        """One write in autocommit mode, with the questions in the same packet; its own results.

        The packet is INSERT …; SHOW …; BEGIN; COMMIT; SELECT …: until the BEGIN an error undoes the write and leaves
        nothing open, and the server answers once, behind the question. An error up to the COMMIT is the write's own.
        The SHOW is left out while the answers say that all of the log is flushed: then the commit is, however it was
        made.
        """
        known = self.known
        first = [set_local(self.pgconn, self.text_beside()), send] if self.binding.rests else [send]
        is_prepared_here = known.prepared and self._statements.prepare_threshold is not None
        asks_how = True
        if is_prepared_here:
            asks_how = known.asks_how > 0 or self.binding.async_commits == "incomplete"
            groups = [[*first, *(self._behind if asks_how else self._behind[1:])]]
        else:
            behind_it = [asked(self.pgconn, text) for text in (HOW, BEGIN, COMMIT, QUESTION)]
            groups = [[*first, *behind_it], *self._prepares()]
        try:
            answers, ends = yield from piped(self.pgconn, groups)
        except BaseException as error:
            self._lost(error)
            raise
        own = answers[len(first) - 1]
        done, answer = answers[len(groups[0]) - 2 : len(groups[0])]
        if len(groups) > 1:
            known.prepared = known.has_question = all(map(is_prepared, answers[len(groups[0]) :]))
            known.questions = 0
        if done[-1].command_status != b"COMMIT":
            return (yield from self._undone_gen([*answers[: len(groups[0])], ends[0]], own, send))
        if asks_how:
            known.asks_how = max(0, known.asks_how - 1)
            is_proved = answers[len(first)][0].get_value(0, 0) != b"off"
        else:
            is_proved = is_all_flushed(answer)
            if not is_proved:
                known.asks_how = ASK_HOW
        if not is_proved or not self._settles(answer):
            if is_ours_unknown(answer):
                known.forget_prepared()
                answer = []
            yield from self.settle_gen(answer, asynchronous=not is_proved)
        return own

    def _undone_gen(self, answers: Sequence[Results], own: Results, send: Any) -> Any:
        """The packet of a write broke off before its COMMIT: its results, or those of a second try."""
        pgconn, known = self.pgconn, self.known
        refused = next((each for each in chain(*answers) if each.status == _REFUSED), None)
        if refused is None or pgconn.status != OK or ends_connection(refused):
            self._lost(None)
            return [refused or own[-1]]
        if pgconn.transaction_status in OPEN:  # it was stopped between BEGIN and COMMIT
            try:
                yield from simple(pgconn, b"ROLLBACK")
            except BaseException as error:
                self._lost(error)
                raise
        if own[-1] is not refused and is_ours_unknown([refused]):
            # The server was told to forget ours (DISCARD ALL): then the write is undone, and sent again.
            known.forget_prepared()
            return (yield from self.alone_gen(send))
        self.rolled_back()
        return own if own[-1] is refused else [refused]

    def _prepares_question(self) -> bytes:
        """`_prepares` for what ends a message of the simple protocol: the question alone, which is what costs there."""
        known = self.known
        known.questions += 1
        due = known.questions > (self._statements.prepare_threshold or 0)
        return b";PREPARE " + PREPARED_QUESTION + b" AS " + QUESTION if due else b""

    def _prepares(self) -> list[list[Callable[[], None]]]:
        """What prepares the questions in the same packet: as often asked as psycopg asks before it prepares.

        In groups of their own: should the server have them, the write before is not touched.
        """
        known, threshold = self.known, self._statements.prepare_threshold
        if threshold is None:
            return []
        known.questions += 1
        if known.questions <= threshold:
            return []
        return [[each] for each in preparing(self.pgconn, has_question=known.has_question)]

    def _settles(self, answer: Results) -> bool:
        """`settle_gen` where nothing is left to ask for, which is the rule; whether it was so."""
        known, write = self.known, self.write
        if not answer or answer[-1].status != _ROWS or write is None or not self.certain or self.binding.unfit:
            return False
        value = answer[-1].get_value
        name, lsn = value(0, 0), value(0, 1)
        if name is None or lsn is None or name[:8] != known.spelled:
            return False
        position = int.from_bytes(lsn) if answer[-1].fformat(1) == _BINARY else number_of(lsn)
        if not position % PAGE:
            return False
        self.write = self.beside = None
        self.certain = self.committing = self.alone = False
        write.record_position((known.epoch, position))
        reading = reading_in(current_context())
        if reading is not None:
            reading.saw(WriteId(self.binding.store.name, b"", Ordered(known.epoch, position)))
        return True

    def settle_gen(self, answer: Results, *, asynchronous: bool) -> Any:
        """The commit is done: its position joins the scope. Errors of our own questions end here."""
        if self.write is None:
            return
        place = place_of(answer)
        if asynchronous and self.binding.async_commits == "incomplete":
            self._incomplete("asynchronous", "it was committed with synchronous_commit = off, so a crash may lose it")
            return
        try:
            if place is None and refusal_of(answer):
                self._refused(answer)
                return
            place = yield from self._bounded_gen(place, asynchronous=asynchronous)
            if place is not None and (place.timeline != self.known.timeline or not self.known.epoch):
                yield from learn_gen(self.binding, self.pgconn, self.known, place.timeline)
                place = yield from self._flush_gen()  # behind the row of the epoch
        except BaseException as error:
            self._incomplete("pending", f"the connection broke before its position came: {type(error).__name__}")
            if not isinstance(error, OperationalError):
                raise
            return
        if place is None:
            self._incomplete("pending", "its position did not come")
            return
        if place.timeline != self.known.timeline:
            self._incomplete("pending", "the server was promoted behind the commit")
            return
        self._record(Ordered(self.known.epoch, place.position))

    def _bounded_gen(self, place: Place | None, *, asynchronous: bool) -> Any:
        """The least position that covers the commit, and that is flushed."""
        segment = self.known.segment
        if place is None:
            return (yield from self._flush_gen())
        if not asynchronous and place.certain(segment):
            return place
        flushed = yield from self._flush_gen()
        if flushed is None or not segment or flushed.timeline != place.timeline:
            return flushed
        if not asynchronous:
            return place
        return place._replace(position=record_end(place.inserted, segment))

    def settle_apart_gen(self) -> Any:
        """After what could not carry the question: a flushed commit of nothing, then the question."""
        if self.pgconn.transaction_status != IDLE or self.pgconn.status != OK:
            return
        own, certain = self.write, self.certain
        waiting, self.unsettled = self.unsettled, []
        if own is not None:
            waiting.append((own, certain))
        for self.write, self.certain in waiting:
            yield from self.settle_gen([], asynchronous=False)

    def _flush_gen(self) -> Any:
        pgconn = self.pgconn
        place: Place | None = None
        for _ in range(3):
            answers, ends = yield from piped(pgconn, [[asked(pgconn, FLUSH)], [asked(pgconn, QUESTION)]])
            flushed, answer = answers
            if refusal_of([*flushed, *ends[0], *answer]):
                self._refused([*flushed, *ends[0], *answer])
                return None
            place = place_of(answer)
            if place is None or place.certain(self.known.segment):
                break
        return place

    # Pipeline mode: the questions are commands of the pipeline

    def rides(self, pipeline: Any, commit: Any) -> Any:
        """Queues COMMIT (what `commit` does) with the questions around it."""
        write, certain = self.write, self.certain
        if write is None or self.pgconn.transaction_status == pq.TransactionStatus.INERROR:
            self.rolled_back()
            return (yield from commit())
        rider = Rider(self, self._forget(), certain)
        pipeline.command_queue.append(asked(self.pgconn, HOW_AND_WHETHER))
        pipeline.result_queue.append((Heard(rider.hear_how, self._raised), None))
        result = yield from commit()
        pipeline.command_queue.append(asked(self.pgconn, QUESTION))
        pipeline.result_queue.append((Heard(rider.hear_place), None))
        return result

    # What is recorded

    def _record(self, position: Ordered) -> None:
        if self.binding.unfit:
            self._incomplete("unfit", self.binding.unfit)
            return
        certain = self.certain
        write = self._forget()
        if certain:
            write.record_position(position)
        else:
            write.record_upper_bound(position)
        reading = current_reading()
        if reading is not None:
            reading.saw(WriteId(self.binding.store.name, b"", position))

    def _incomplete(self, reason: str, detail: str) -> None:
        if self.write is not None:
            self._forget().record_incomplete(reason, detail)

    def _refused(self, results: Results) -> None:
        words = refusal_of(results)
        if "recovery" in words and not self.certain:
            self.rolled_back()  # a function that was called at a standby, which takes no writes
            return
        if is_cancelled(results):
            self._incomplete("pending", f"the question for its position was cancelled: {words}")
            return
        self.binding.say("rights", f"a write to {self.binding.store.name} is recorded as incomplete: {words}")
        self._incomplete("rights", words)
