"""One wrapped connection's writes, from their first statement to the position of the commit (spec SCOPE, SHIM, EPOCH).

It knows no driver. The driver's class tells it what is sent and what came of it.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Final

from antipode.lineage import Lineage
from antipode.reading import current_reading
from antipode.scope import Scope, current_scope
from antipode.store import Write
from antipode.writeid import WriteId

from antipode_mysql import column
from antipode_mysql.answer import Answer
from antipode_mysql.binding import Binding
from antipode_mysql.gtids import Gtid
from antipode_mysql.probe import MULTIPLEXED
from antipode_mysql.statements import Kind, Statement, classify
from antipode_mysql.waiting import ReadCall, Snapshot, read_call

IN_TRANSACTION: Final = 0x0001
AUTOCOMMIT: Final = 0x0002


class Call:
    """A statement on its way."""

    __slots__ = ("asks", "assigns", "began", "read", "sent", "statement")

    def __init__(
        self, statement: Statement, *, asks: bool, read: ReadCall | None, assigns: bytes | None, began: bool
    ) -> None:
        self.statement = statement
        self.asks = asks
        """Whether the question is sent behind it, in the same packet."""
        self.read = read
        self.assigns = assigns
        """A statement that has to be sent before it, in the same packet."""
        self.began = began
        """Whether it is the first one of the transaction that may write."""
        self.sent = False
        """Whether anything may have left for the server."""


class Recorder:
    """The open transaction of one connection, and the writes in it."""

    def __init__(self, binding: Binding) -> None:
        self.binding = binding
        self.flags = 0
        """The server's status flags as last seen: whether a transaction is open, and whether each statement is one."""
        self.session = 0
        """The connection's number, as the handshake gave it."""
        self.last: Gtid | None = None
        """`@@last_gtid` as last seen on this session."""
        self.last_known = False
        self.writes: list[tuple[Scope | None, Write]] = []
        """Of the open transaction: one for each scope that wrote in it."""
        self.snapshot: Snapshot | None = None
        """Of the open transaction, once something was read or written in it."""
        self.rests = ""
        """The lineage that the session's variable holds."""

    # Before a statement

    def before(self, sql: bytes, *, several: bool) -> Call | None:
        """A statement is about to be sent; None where nothing of it is ours."""
        binding = self.binding
        binding.refresh()
        if not binding.records:
            return None
        if not self.flags & IN_TRANSACTION:
            self.snapshot = None
        statement = classify(sql, several=several)
        kind, began = statement.kind, not self.writes
        reads = kind is Kind.READ and b"FROM" in sql.upper()  # without, it reads no data: variables, SHOW
        if statement.may_write:
            self._begin_write()
        elif not self.writes:
            read = read_call(binding) if reads else None
            if reads:
                self.snapshot = self.snapshot or Snapshot()
                self.snapshot.taken = self.snapshot.taken or read is None
            elif kind is Kind.ENDS and b"SNAPSHOT" in sql.upper():
                self.snapshot = Snapshot()
                self.snapshot.taken = True
            return None if read is None else Call(statement, asks=False, read=read, assigns=None, began=False)
        read = read_call(binding) if reads else None
        if self.snapshot is None:
            self.snapshot = Snapshot()
        asks = statement.packs and self._will_end(statement)
        return Call(statement, asks=asks, read=read, assigns=self._assignment(statement), began=began)

    def _begin_write(self) -> None:
        scope = current_scope()
        if not any(known is scope for known, _ in self.writes):
            self.writes.append((scope, Write(self.binding.store, b"")))

    def _will_end(self, statement: Statement) -> bool:
        """Whether the transaction ends with this statement, as far as is known before."""
        if statement.kind in (Kind.COMMIT, Kind.ENDS):
            return True
        return statement.kind is Kind.WRITE and self.flags & 3 == AUTOCOMMIT

    def _assignment(self, statement: Statement) -> bytes | None:
        """What gives the rows of this statement their lineage; None where nothing has to be said anew."""
        if not self.binding.rests or statement.kind is not Kind.WRITE:
            return None
        scope = current_scope()
        lineage = scope.lineage if scope is not None else Lineage()
        if scope is not None:
            own = {id(write) for _, write in self.writes}
            others = sorted({write.store for write in scope.pending if id(write) not in own})
            lineage = lineage.marked_incomplete(*others) if others else lineage
        text = column.text_of(lineage, self.binding.gives)
        if text == self.rests:
            return None
        self.rests = text
        return column.assignment(text)

    # After it

    def has_ended(self, call: Call, warnings: int) -> bool:
        """The statement was answered, and no question was sent with it: whether the question has to be asked now."""
        reads = call.statement.kind is Kind.READ or (call.statement.may_write and not call.statement.packs)
        if reads and self.snapshot is not None:  # changing data does not fix what is read later
            self.snapshot.taken = True
        if not self.writes:
            return False
        if call.statement.kind is Kind.ROLLBACK:
            if warnings == 0:
                self.roll_back()
                return False
            return True  # what is in tables without transactions stays, and the server warned of it
        return not self.flags & IN_TRANSACTION

    def roll_back(self) -> None:
        """The transaction left nothing."""
        for _, write in self._take():
            write.abandon()

    def unknown(self) -> None:
        """Nobody knows what became of the transaction: its writes stay pending for good."""
        for _, write in self._take():
            write.outcome_unknown()

    def _take(self) -> list[tuple[Scope | None, Write]]:
        writes, self.writes = self.writes, []
        self.snapshot = None
        return writes

    def refused(self, row: Sequence[bytes | None] | None) -> None:
        """The server refused a statement that was a transaction of its own: what came of it, by the question."""
        answer = Answer.of(row)
        if answer is not None and self.last_known and answer.last == self.last and answer.session == self.session:
            self.roll_back()
        else:
            self.committed(row)

    def committed(self, row: Sequence[bytes | None] | None, why: BaseException | None = None) -> None:
        """The transaction has ended, and this came of the question; records its writes."""
        writes = self._take()
        if not writes:
            return
        answer = Answer.of(row)
        if answer is None:
            for _, write in writes:
                write.record_incomplete("pending", f"its position could not be asked for: {why}")
            return
        reason, detail = self._unfit(answer)
        logged = self.last_known and answer.last is not None and answer.last != self.last
        self.last, self.last_known = answer.last, True
        for scope, write in writes:
            if reason:
                write.record_incomplete(reason, detail)
            else:
                self._record(scope, write, answer, logged)

    def _record(self, scope: Scope | None, write: Write, answer: Answer, logged: bool) -> None:
        found: tuple[Gtid, ...] = answer.log
        if logged and answer.last is not None:
            found = (answer.last,)
            write.record_position(answer.last.position)
        elif found:
            # Nothing of it was logged, or nobody knows: where the log is now covers it all the same.
            name = self.binding.store.name
            for gtid in found[1:]:
                if scope is not None:
                    scope.append(WriteId.position(name, *gtid.position))
            write.record_upper_bound(found[0].position)
        else:
            write.abandon()  # nothing has ever been logged there
        reading = current_reading()
        if reading is not None:
            reading.saw(*(WriteId.position(self.binding.store.name, *gtid.position) for gtid in found))

    def _unfit(self, answer: Answer) -> tuple[str, str]:
        """Why the answer is worth nothing: reason and detail."""
        if answer.session != self.session:
            self.binding.say("proxy", f"writes are recorded as incomplete: {MULTIPLEXED}")
            return "proxy", MULTIPLEXED
        if not answer.logs:
            return "unlogged", "the session has sql_log_bin=0, so no replica will ever have it"
        if self.binding.unfit:
            self.binding.say("unfit", f"writes are recorded as incomplete: {self.binding.unfit}")
            return "unfit", self.binding.unfit
        return "", ""

    def renewed(self) -> None:
        """The session has been reset: its variables, its transaction and its newest id are gone."""
        self.roll_back()
        self.last, self.last_known, self.rests, self.flags = None, False, "", 0
