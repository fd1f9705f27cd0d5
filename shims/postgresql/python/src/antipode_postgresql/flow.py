"""One connection's transactions: a write is pending from its first statement that may write, until its end is known."""

from __future__ import annotations

from collections.abc import Callable
from itertools import chain
from typing import Any, Final

from antipode.at_rest import text_at_rest
from antipode.reading import current_reading
from antipode.scope import current_scope
from antipode.store import Write, note_marks
from antipode.writeid import Ordered, WriteId
from psycopg import Error, OperationalError, generators, pq
from psycopg.errors import error_from_result

from antipode_postgresql.binding import Binding
from antipode_postgresql.column import RESET, set_local, set_session
from antipode_postgresql.packets import (
    FLUSH,
    HOW,
    HOW_AND_WHETHER,
    PREPARED_HOW,
    PREPARED_QUESTION,
    QUESTION,
    Place,
    Results,
    asked,
    asked_prepared,
    ends_connection,
    is_cancelled,
    is_prepared,
    is_unknown_statement,
    piped,
    place_of,
    preparing,
    record_end,
    refusal_of,
    simple,
)
from antipode_postgresql.positions import Epoch
from antipode_postgresql.riding import Heard, Rider
from antipode_postgresql.schema import may_call
from antipode_postgresql.statements import Kind

IDLE: Final = pq.TransactionStatus.IDLE
INTRANS: Final = pq.TransactionStatus.INTRANS
_NO_WRITE: Final = (Kind.READ, Kind.SESSION, Kind.ROLLBACK, Kind.COMMIT, Kind.PREPARE)
OPEN: Final = (pq.TransactionStatus.INTRANS, pq.TransactionStatus.INERROR)
OK: Final = pq.ConnStatus.OK
_REFUSED: Final = pq.ExecStatus.FATAL_ERROR
_FACTS: Final = (
    f"SELECT system_identifier::text, {may_call('mark')},"
    " (SELECT setting::bigint FROM pg_settings WHERE name = 'wal_segment_size') FROM pg_control_system()"
).encode()
_MARK: Final = b"SELECT antipode.mark()"
NO_TABLE: Final = (
    "there is no table of epochs that its user may use: after a failover its positions are unproven. Run: "
    "antipode init {store} --at URL-OF-THE-PRIMARY --user {user} --run"
)


class Known:
    """What one connection has found out about its server; shared by all wraps of the connection."""

    __slots__ = ("epoch", "prepared", "questions", "segment", "system", "timeline")

    def __init__(self) -> None:
        self.system = 0
        self.segment = 0
        self.timeline = 0
        self.epoch = ""
        """Of `timeline`; empty until it was asked for."""
        self.questions = 0
        """How often the position was asked for by the extended protocol; as psycopg counts its statements."""
        self.prepared = False
        """Whether the server has the questions as prepared statements."""


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
        self.has_snapshot = False
        """Whether the open transaction has run a statement: a snapshot may be kept from then on."""

    # Before a statement

    def begins(self, kind: Kind) -> None:
        """A statement is about to be sent."""
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
        pgconn = self.pgconn
        before = HOW if self.certain else HOW_AND_WHETHER
        self.committing = True
        try:
            results = yield from simple(pgconn, before + b";COMMIT;" + QUESTION)
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
        if done.command_status == b"ROLLBACK" or (not self.certain and how.get_value(0, 1) == b"f"):
            self.rolled_back()  # it only read, or had failed before
            return done
        yield from self.settle_gen(results[2:], asynchronous=how.get_value(0, 0) == b"off")
        return done

    def _lost(self, error: BaseException | None) -> None:
        if self.write is not None:
            self._forget().outcome_unknown()

    def alone_gen(self, send: Any) -> Any:
        """One write in autocommit mode, with the questions in the same packet; its own results.

        It is committed where its group ends: an error there, or of our question before, is the write's own.
        """
        pgconn, known = self.pgconn, self.known
        first = [set_local(pgconn, self.text_beside()), send] if self.binding.rests else [send]
        is_prepared_here = known.prepared and self.connection.prepare_threshold is not None
        if is_prepared_here:
            groups = [[*first, asked_prepared(pgconn, PREPARED_HOW)], [asked_prepared(pgconn, PREPARED_QUESTION)]]
        else:
            groups = [[*first, asked(pgconn, HOW)], [asked(pgconn, QUESTION)], *self._prepares()]
        try:
            answers, ends = yield from piped(pgconn, groups)
        except BaseException as error:
            self._lost(error)
            raise
        own, how, answer = answers[len(first) - 1 : len(first) + 2]
        refused = next((each for each in chain(*answers[: len(first) + 1], ends[0]) if each.status == _REFUSED), None)
        if refused is not None:
            if is_prepared_here and is_unknown_statement(how):
                # The server was told to forget it (DISCARD ALL): then the write is undone, and sent again.
                known.prepared, known.questions = False, 0
                return (yield from self.alone_gen(send))
            if pgconn.status != OK or ends_connection(refused):
                self._lost(None)
            else:
                self.rolled_back()
            return own if own[-1] is refused else [refused]
        if len(groups) > 2:
            known.prepared, known.questions = all(map(is_prepared, answers[-2:])), 0
        elif is_prepared_here and is_unknown_statement(answer):
            known.prepared, known.questions, answer = False, 0, []
        asynchronous = how[0].get_value(0, 0) == b"off"
        if asynchronous or not self._settles(answer):
            yield from self.settle_gen(answer, asynchronous=asynchronous)
        return own

    def _prepares(self) -> list[list[Callable[[], None]]]:
        """What prepares the questions in the same packet: as often asked as psycopg asks before it prepares.

        In groups of their own: should the server have them, the write before is not touched.
        """
        known, threshold = self.known, self.connection.prepare_threshold
        if threshold is None:
            return []
        known.questions += 1
        return [[each] for each in preparing(self.pgconn)] if known.questions > threshold else []

    def _settles(self, answer: Results) -> bool:
        """`settle_gen` where nothing is left to ask for, which is the rule; whether it was so."""
        place, known = place_of(answer), self.known
        if place is None or place.timeline != known.timeline or not known.epoch or not place.certain(known.segment):
            return False
        self._record(Ordered(known.epoch, place.position))
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
                yield from self._learn_gen(place.timeline)
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

    def _learn_gen(self, timeline: int) -> Any:
        """Which system and branch this is; once a connection, and again after a promotion under it."""
        binding, known = self.binding, self.known
        facts = (yield from simple(self.pgconn, _FACTS))[-1]
        if facts.status != pq.ExecStatus.TUPLES_OK:
            return
        known.system = int(facts.get_value(0, 0))
        known.segment = int(facts.get_value(0, 2))
        word = ""
        if facts.get_value(0, 1) == b"t":
            marked = (yield from simple(self.pgconn, _MARK))[-1]
            if marked.status == pq.ExecStatus.TUPLES_OK:
                word = marked.get_value(0, 0).decode()
                note_marks(binding.store.name, None)
            else:
                note_marks(binding.store.name, refusal_of([marked]))
                binding.say("marks", f"the epochs of {binding.store.name} cannot be marked: {refusal_of([marked])}")
        else:
            words = NO_TABLE.format(store=binding.store.name, user=self.pgconn.user.decode())
            note_marks(binding.store.name, words)
            binding.say("marks", f"{binding.store.name}: {words}")
        known.timeline = timeline
        known.epoch = str(Epoch(known.system, timeline, word))

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
