"""One connection's transactions: a write is pending from its first statement that may write, until its end is known."""

from __future__ import annotations

from typing import Any, Final

from antipode import Ordered, WriteId
from antipode.shim import Write, current_context, current_reading, reading_in
from psycopg import Error, OperationalError, generators, pq

from antipode_postgresql.binding import Binding
from antipode_postgresql.column import RowLineages, set_local
from antipode_postgresql.known import KnownServer, learn_gen
from antipode_postgresql.packets import (
    BEGIN,
    COMMIT,
    COMMIT_AND_EXECUTE,
    EXECUTE_QUESTION,
    FLUSH,
    HOW,
    HOW_AND_WHETHER,
    PREPARE_QUESTION,
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
from antipode_postgresql.riding import ResultListener, Rider
from antipode_postgresql.statements import Kind, is_held, may_commit_within, may_prepare, prepared_name

IDLE: Final = pq.TransactionStatus.IDLE
INTRANS: Final = pq.TransactionStatus.INTRANS
_NO_WRITE: Final = (Kind.READ, Kind.SESSION, Kind.ROLLBACK, Kind.COMMIT, Kind.PREPARE)
ASK_HOW: Final = 256
"""How many commits ask how they are made, after one whose answer did not prove that it was flushed:
where several write at once, or with synchronous_commit=off, a question of its own would follow most of them."""
_MOST_PREPARED: Final = 100
OPEN: Final = (pq.TransactionStatus.INTRANS, pq.TransactionStatus.INERROR)
OK: Final = pq.ConnStatus.OK
_REFUSED: Final = pq.ExecStatus.FATAL_ERROR
_ROWS: Final = pq.ExecStatus.TUPLES_OK
_number: Final = int.from_bytes


class Flow(RowLineages):
    """The writes of one wrapped connection. Its generators are driven by psycopg's own waiting."""

    def __init__(self, binding: Binding, connection: Any, known: KnownServer) -> None:
        super().__init__(binding, connection.pgconn)
        self.connection = connection
        """The plain one."""
        self.known = known
        self.certain = False
        """Whether one of its statements was a plain write: then the server need not be asked whether it wrote."""
        self.committing = False
        self.alone = False
        """Whether the statement on its way is a transaction by itself."""
        self.may_have_committed = False
        """Whether a statement within the open transaction may have committed what came before it (SCOPE-25)."""
        self._may_be_prepared = False
        """Whether what was sent may have prepared the transaction, where nobody tells when that is done."""
        self._prepared: dict[bytes, tuple[Write, bool]] = {}
        """Writes of prepared transactions (two-phase commit) by their names, and whether a part may be committed."""
        self.unsettled: list[tuple[Write, bool]] = []
        """Commits of a pipeline whose position could not ride along."""
        self.announced = False
        """Whether one of our cursors is about to send; others are not seen through, and may write."""
        self._behind = behind(self.pgconn)
        self._behind_flushed = self._behind[1:]
        self._statements = connection._prepared
        self.has_snapshot = self.pgconn.transaction_status != IDLE
        """Whether the open transaction may have run a statement: a snapshot may be kept from then on."""

    # Before a statement

    def begins_alone(self) -> None:
        """`begins` for a plain write in autocommit mode, which is a transaction by itself."""
        if self.write is None:
            self.alone = True
            self.may_have_committed = False
            self.write = Write(self.binding.store, b"")
        else:
            self.write.join_scope()
        self.certain = True
        self.has_snapshot = False

    def begins(self, kind: Kind, text: bytes | None = b"") -> None:
        """A statement is about to be sent; of one with the text None nobody knows what it is."""
        if kind is not Kind.WRITE:
            self.may_set(kind)
            self.executes(kind)
            if kind is Kind.PREPARE:
                self._may_be_prepared = self.write is not None
            if kind in _NO_WRITE:
                return
        if self.write is None:
            self.alone = self.pgconn.transaction_status == IDLE
            self.write = Write(self.binding.store, b"")
            self.certain = self.may_have_committed = self._may_be_prepared = False
        else:
            self.write.join_scope()
        self._may_be_prepared |= kind is Kind.MAYBE and may_prepare(text or b"")
        if kind is Kind.WRITE or (text is not None and is_held(text)):
            self.certain = True  # what a cursor WITH HOLD writes it writes in the commit itself
        elif kind is Kind.MAYBE and (text is None or may_commit_within(text)):
            self.may_have_committed = True

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
            within = self.may_have_committed and not self.alone
            if kind not in (Kind.MAYBE, Kind.END_PREPARED) and not within:
                self._forget().abandon()
            else:
                self._forget().record_incomplete("pending", "it failed, and may have committed a part before")
        elif self.pgconn.transaction_status not in OPEN:
            self._forget().outcome_unknown()

    def _gone(self, write: Write, *, may_commit: bool = False) -> None:
        """The connection is lost. What had not been told to commit is rolled back by the server.

        `may_commit`: what was on its way may hold a COMMIT (several statements in one text).
        """
        told = self.committing or self.alone or may_commit or self.may_have_committed
        self._forget()
        if told:
            write.outcome_unknown()
        else:
            write.abandon()

    def keep_prepared(self, text: bytes) -> None:
        """The open transaction was prepared by this text: its write is pending until that name is ended."""
        write, self.write, self._may_be_prepared = self.write, None, False
        name = prepared_name(text)
        if write is None:
            return
        if not name:  # nobody here knows its end
            write.outcome_unknown()
            return
        if len(self._prepared) == _MOST_PREPARED:  # others end them
            oldest, _ = self._prepared.pop(next(iter(self._prepared)))
            oldest.outcome_unknown()
        self._prepared[name] = write, self.may_have_committed

    def take_prepared(self, text: bytes) -> None:
        """The transaction that this text names is being ended: its write goes on here, and no other one's."""
        if self.write is None and (found := self._prepared.pop(prepared_name(text), None)):
            self.write, self.may_have_committed = found

    def closed(self) -> None:
        """The application gives the connection up."""
        self.hears()
        if self.write is None:
            return
        if self.pgconn.status == OK and self.pgconn.transaction_status in OPEN and not self.may_have_committed:
            self._forget().abandon()
        else:  # lost behind the last of our commands, too: the plain connection's may have been a COMMIT (SCOPE-25)
            self._forget().outcome_unknown()

    def rolled_back(self) -> None:
        """The transaction is known not to have happened."""
        if self.write is not None:
            self._forget().abandon()

    def rolled_back_later(self) -> None:
        """`rolled_back_gen` in a pipeline, which asks at its end."""
        if self.write is not None and self.may_have_committed:
            self.unsettled.append((self._forget(), False))
        self.rolled_back()

    def rolled_back_gen(self) -> Any:
        """The transaction is known not to have happened; what was committed within it is covered (SCOPE-25)."""
        if self.write is not None and self.may_have_committed:
            yield from self.settle_apart_gen()
        else:
            self.rolled_back()

    def _forget(self) -> Write:
        write, self.write = self.write, None
        assert write is not None
        self.certain = self.committing = self.alone = self._may_be_prepared = False
        self.beside = None
        return write

    # Commits: the question is in the same message

    def commit_gen(self) -> Any:
        """Sends COMMIT with the questions around it; its own result."""
        pgconn, known = self.pgconn, self.known
        threshold, prepares = self._statements.prepare_threshold, b""
        asks_how = (  # otherwise the answer has to prove that the commit is flushed, as in `alone_gen`
            known.asks_how
            or not self.certain
            or not known.has_question
            or self.binding.async_commits == "incomplete"
            or threshold is None
        )
        if asks_how:
            question = EXECUTE_QUESTION
            if not known.has_question or threshold is None:
                question = QUESTION
                prepares = PREPARE_QUESTION if known.is_due(threshold) else b""
            packet = (HOW if self.certain else HOW_AND_WHETHER) + b";COMMIT;" + question + prepares
        else:
            packet = COMMIT_AND_EXECUTE
        self.committing = True
        try:
            pgconn.send_query(packet)
            results = yield from generators.execute(pgconn)
        except BaseException as error:
            if pgconn.status != OK or not isinstance(error, Error):
                self._lost(error)
            raise
        self.committing = False
        how = results.pop(0) if asks_how else None
        if not results:
            # The server refused before it came to the COMMIT (a cancelled statement): the transaction is in error.
            if pgconn.status != OK:
                self.committing = True
                self._lost(None)
            return how
        done = results[0]
        if done.status == _REFUSED:
            if pgconn.status != OK or ends_connection(done):
                self._lost(None)
            else:
                yield from self.rolled_back_gen()
            return done
        if prepares:
            known.has_question, known.questions = len(results) > 2 and is_prepared(results[2:]), 0
        if done.command_status == b"ROLLBACK" or (how and not self.certain and how.get_value(0, 1) == b"f"):
            yield from self.rolled_back_gen()  # it only read, or had failed before
            return done
        asynchronous = None
        if how:
            known.asks_how = max(0, known.asks_how - 1)
            asynchronous = how.get_value(0, 0) == b"off"
        answer = results[1:2]
        if not answer or not self._settles(answer[0], asynchronous):
            if asynchronous is None:
                asynchronous = self._asks_from_now(answer)
            if is_ours_unknown(answer):
                known.has_question, answer = False, []
            yield from self.settle_gen(answer, asynchronous=asynchronous)
        return done

    def _asks_from_now(self, answer: Results) -> bool:
        """Whether an answer proves too little to tell that what nobody asked about was flushed; the next ones ask."""
        if is_all_flushed(answer):
            return False
        self.known.asks_how = ASK_HOW
        return True

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
        known, pgconn, binding = self.known, self.pgconn, self.binding
        commands = [set_local(pgconn, self.text_beside()), send] if binding.rests else [send]
        own = len(commands) - 1
        groups = [commands]
        threshold = self._statements.prepare_threshold
        if known.prepared and threshold is not None:
            asks_how = known.asks_how or binding.async_commits == "incomplete"
            commands += self._behind if asks_how else self._behind_flushed
        else:
            asks_how = True
            commands += [asked(pgconn, text) for text in (HOW, BEGIN, COMMIT, QUESTION)]
            if known.is_due(threshold):
                # In groups of their own: should the server have them, the write before is not touched.
                groups += [[each] for each in preparing(pgconn, has_question=known.has_question)]
        try:
            answers = yield from piped(pgconn, groups, known)
        except BaseException as error:
            self._lost(error)
            raise
        results = answers.pop(0)
        if answers:
            known.prepared = known.has_question = all(map(is_prepared, answers))
            known.questions = 0
        last = len(commands) - 1
        if results[last - 1].command_status != b"COMMIT":
            return (yield from self._undone_gen(results, results[own], send))
        answer = results[last]
        asynchronous = None
        if asks_how:
            known.asks_how = max(0, known.asks_how - 1)
            asynchronous = results[own + 1].get_value(0, 0) == b"off"
        if not self._settles(answer, asynchronous):
            answers = [answer]
            if asynchronous is None:
                asynchronous = self._asks_from_now(answers)
            if is_ours_unknown(answers):
                known.forget_prepared()
                answers = []
            yield from self.settle_gen(answers, asynchronous=asynchronous)
        return [results[own]]

    def _undone_gen(self, results: Results, own: Any, send: Any) -> Any:
        """The packet of a write broke off before its COMMIT: its results, or those of a second try."""
        pgconn, known = self.pgconn, self.known
        refused = next((each for each in results if each.status == _REFUSED), None)
        if refused is None or pgconn.status != OK or ends_connection(refused):
            self._lost(None)
            return [refused or own]
        if pgconn.transaction_status in OPEN:  # it was stopped between BEGIN and COMMIT
            try:
                yield from simple(pgconn, b"ROLLBACK")
            except BaseException as error:
                self._lost(error)
                raise
        if own is not refused and is_ours_unknown([refused]):
            # The server was told to forget ours (DISCARD ALL): then the write is undone, and sent again.
            known.forget_prepared()
            return (yield from self.alone_gen(send))
        self.rolled_back()
        return [refused]

    def _settles(self, answer: Any, asynchronous: bool | None) -> bool:
        """`settle_gen` where nothing is left to ask for, which is the rule; whether it was so.

        `asynchronous`: whether it was committed so; None where nobody asked, and the answer has to prove that it is
        flushed: all of the log is.
        """
        known, write, binding = self.known, self.write, self.binding
        if asynchronous or answer.status != _ROWS or write is None or not self.certain or binding.unfit:
            return False
        value = answer.get_value
        name, lsn = value(0, 0), value(0, 1)
        if name is None or name[:8] != known.spelled or lsn is None:
            return False
        if asynchronous is None and lsn != value(0, 2):
            return False
        position = _number(lsn) if answer.fformat(1) else number_of(lsn)
        if not position % PAGE:
            return False
        self.write = self.beside = None
        self.certain = self.committing = self.alone = False
        epoch = known.epoch
        write.record_position((epoch, position))
        reading = reading_in(current_context())
        if reading is not None:
            reading.saw(WriteId(binding.store.name, b"", Ordered(epoch, position)))
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

    def ended_unseen_gen(self) -> Any:
        """The open transaction was ended by the plain connection: its write is covered, and not undone (SCOPE-25)."""
        self.certain = False
        yield from self.settle_apart_gen()
        if self.write is not None:
            self._forget().outcome_unknown()

    def _flush_gen(self) -> Any:
        pgconn, known = self.pgconn, self.known
        place: Place | None = None
        for _ in range(3):
            flushed, answer = yield from piped(pgconn, [[asked(pgconn, FLUSH)], [asked(pgconn, QUESTION)]], known)
            if refusal_of([*flushed, *answer[:1]]):
                self._refused([*flushed, *answer[:1]])
                return None
            place = place_of(answer[:1])
            if place is None or place.certain(self.known.segment):
                break
        return place

    # Pipeline mode: the questions are commands of the pipeline

    def rides(self, pipeline: Any, commit: Any) -> Any:
        """Queues COMMIT (what `commit` does) with the questions around it."""
        write, certain = self.write, self.certain
        if write is None or self.pgconn.transaction_status == pq.TransactionStatus.INERROR:
            self.rolled_back_later()
            return (yield from commit())
        rider = Rider(self, self._forget(), certain, within=self.may_have_committed)
        pipeline.command_queue.append(asked(self.pgconn, HOW_AND_WHETHER))
        pipeline.result_queue.append((ResultListener(rider.hear_how, self._raised), None))
        result = yield from commit()
        pipeline.command_queue.append(asked(self.pgconn, QUESTION))
        pipeline.result_queue.append((ResultListener(rider.hear_place), None))
        self.riding.append(rider.write)
        return result

    # What is recorded

    def _record(self, position: Ordered) -> None:
        if self.binding.unfit:
            self._incomplete("unfit", self.binding.unfit)
            return
        if self._may_be_prepared:
            self._forget().outcome_unknown()  # it is pending until somebody ends it, who knows where
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
        self.binding.say(
            "rights", f"a write to {self.binding.store.name} is recorded as incomplete: {words}", code="AP506"
        )
        self._incomplete("rights", words)
