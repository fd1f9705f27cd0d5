"""One wrapped connection's writes, from their first statement to the position of the commit (spec SCOPE, SHIM, EPOCH).

It knows no driver. The driver's class tells it what is sent and what came of it.
"""

from __future__ import annotations

import re
from collections.abc import Hashable, Sequence
from typing import Any, Final

from antipode import Ordered, Scope, WriteId, current_scope
from antipode.shim import Write, current_reading, lineage_beside

from antipode_mysql import column
from antipode_mysql.binding import Binding
from antipode_mysql.flavour import Answer, Flavour, answer_of
from antipode_mysql.gtid_sets import GtidSet
from antipode_mysql.mariadb import MARIADB
from antipode_mysql.probe import MULTIPLEXED, flavour_of
from antipode_mysql.statements import GAP, Kind, Statement, classify
from antipode_mysql.waiting import Moment, StatementRead, fetch, read_of

IN_TRANSACTION: Final = 0x0001
AUTOCOMMIT: Final = 0x0002
_XA: Final = re.compile(
    GAP + rb"*XA" + GAP + rb"+(PREPARE|COMMIT|ROLLBACK)\b" + GAP + rb"*(.*?)\s*(?:ONE\s+PHASE\s*)?;?\s*$", re.I | re.S
)


class Call:
    """A statement on its way."""

    __slots__ = ("asks", "assigns", "began", "ends", "read", "sent", "sql", "statement")

    def __init__(
        self,
        statement: Statement,
        *,
        read: StatementRead | None,
        ends: bool = False,
        asks: bool = False,
        assigns: bytes | None = None,
        began: bool = False,
    ) -> None:
        self.statement = statement
        self.ends = ends
        """Whether it ends the transaction, as far as is known before."""
        self.asks = asks
        """Whether the question is sent behind it, in the same packet."""
        self.read = read
        self.assigns = assigns
        """A statement that has to be sent before it, in the same packet."""
        self.began = began
        """Whether it is the first one of the transaction that may write."""
        self.sent = False
        """Whether anything may have left for the server."""
        self.sql = b""


class Recorder:
    """The open transaction of one connection, and the writes in it."""

    def __init__(self, binding: Binding) -> None:
        self.binding = binding
        self.flavour: Flavour = MARIADB
        """The kind of server, by its greeting."""
        self.can_track = False
        """Whether the connection was opened for being told of ids (`CLIENT_SESSION_TRACK`)."""
        self.tracks: bool | None = None
        """Whether the server tells a commit's id in its answer; None where it has not been asked to."""
        self.told: dict[str, int] = {}
        """What it has told since the last record, by epoch."""
        self.flags = 0
        """The server's status flags as last seen: whether a transaction is open, and whether each statement is one."""
        self.session = 0
        """The connection's number, as the handshake gave it."""
        self.mark: Hashable = None
        """The answer's mark as last seen on this session."""
        self.mark_known = False
        self.write: Write | None = None
        """The open transaction's, in all scopes that wrote in it."""
        self.snapshot: Moment | None = None
        self.discards = True
        """Whether what is read from now on is no data, or thrown away."""
        self.shows: Moment | None = None
        """The moment of the data that is read in parts; None where nobody waited for anything."""
        """Of the open transaction, once something was read or written in it."""
        self.rests = ""
        """The lineage that the session's variable holds."""
        self.prepared = b""
        """The transaction of two phases to which the writes belong: whoever knows its name may commit it."""

    # Before a statement

    def before(self, sql: bytes, *, several: bool) -> Call | None:
        """A statement is about to be sent; None where nothing of it is ours."""
        binding = self.binding
        binding.refresh()
        if not binding.records:
            return None
        self.shows, self.discards = None, True
        if not self.flags & IN_TRANSACTION:
            self.snapshot = None
        statement = classify(sql, several=several)
        self.discards = not statement.may_read
        kind, began = statement.kind, self.write is None
        read = read_of(binding, self.flavour, sql, several=several) if statement.may_read else None
        if statement.may_write:
            if self.prepared and self._xa(sql)[1] != self.prepared:
                self.unknown()
            self._begin_write()
        elif self.write is None:
            if statement.may_read:
                self.snapshot = self.snapshot or Moment()
                self.snapshot.taken = self.snapshot.taken or read is None or not read.ids
            elif kind is Kind.ENDS and b"SNAPSHOT" in sql.upper():
                self.snapshot = Moment(taken=True)
            return None if read is None else Call(statement, read=read)
        elif kind in (Kind.COMMIT, Kind.ENDS):
            self.write.join_committer()  # whoever commits has a write in it, too (SCOPE-24)
        if self.snapshot is None:
            self.snapshot = Moment()
        ends = statement.packs and self._will_end(statement)
        assigns = self._assignment(statement)
        return Call(statement, read=read, ends=ends, asks=ends and not self.tracks, assigns=assigns, began=began)

    def _begin_write(self) -> None:
        if self.write is None:
            self.write = Write(self.binding.store, b"")
        else:
            self.write.join_scope()

    def _will_end(self, statement: Statement) -> bool:
        """Whether the transaction ends with this statement, as far as is known before."""
        if statement.kind in (Kind.COMMIT, Kind.ENDS):
            return True
        return statement.kind is Kind.WRITE and self.flags & 3 == AUTOCOMMIT

    def _assignment(self, statement: Statement) -> bytes | None:
        """What gives the rows of this statement their lineage; None where nothing has to be said anew."""
        if not self.binding.rests or statement.kind is not Kind.WRITE:
            return None
        lineage = lineage_beside(current_scope(), self.write, self.binding.gives)
        text = column.text_of(lineage, self.binding.gives)
        if text == self.rests:
            return None
        self.rests = text
        return column.assignment(text)

    @property
    def may_track(self) -> bool:
        """Whether the server has to be asked now to tell of ids: not within a transaction, which would forbid it."""
        wanted = self.tracks is None and self.can_track and self.flavour.track
        return bool(wanted) and self.binding.records and not self.flags & IN_TRANSACTION

    # After it

    @property
    def in_transaction(self) -> bool:
        """Whether a transaction is open, as the server has said last."""
        return bool(self.flags & IN_TRANSACTION)

    def fetches(self) -> None:
        """Data of the statement that was sent last is about to be read. Raises where it is too old (SHIM-48)."""
        if not self.discards and (self.binding.waits or current_reading() is not None):
            fetch(self.binding, self.shows)

    def heard(self, gtids: str) -> None:
        """The server has told, behind an OK, what was committed."""
        try:
            told = GtidSet(gtids)
        except ValueError:
            return
        known = dict(self.mark) if isinstance(self.mark, tuple) else {}
        for epoch in told:
            if told.greatest(epoch) > known.get(epoch, 0):  # else late, and what was asked meanwhile covers it
                self.told[epoch] = max(self.told.get(epoch, 0), told.greatest(epoch))

    @staticmethod
    def _xa(sql: bytes) -> tuple[bytes, bytes]:
        """Return what a statement does with a transaction of two phases, and with which; empty for nothing."""
        found = _XA.match(sql)
        return (b"", b"") if found is None else (found[1].upper(), found[2])

    def has_ended(self, call: Call, warnings: int) -> bool:
        """The statement was answered, and no question was sent with it: whether the question has to be asked now."""
        if call.statement.may_read and self.snapshot is not None:  # changing data does not fix what is read later
            self.snapshot.taken = True
        if self.write is None:
            return False
        if call.statement.kind is Kind.ROLLBACK:
            if warnings == 0 and not self.told:
                self.roll_back()
                return False
            return True  # what is in tables without transactions stays, and the server warned of it
        what, transaction = self._xa(call.sql)
        if what == b"PREPARE":
            self.prepared = transaction
        elif what:
            self.prepared = b""
        return not self.prepared and not self.flags & IN_TRANSACTION

    def roll_back(self) -> None:
        """The transaction left nothing."""
        if (write := self._take()) is not None:
            write.abandon()

    def over(self, row: Sequence[bytes | None] | None = None) -> None:
        """The session is over, and its open transaction with it; what was committed before stays (SCOPE-25).

        `row`: this came of the question, which was asked before; None where nobody asked.
        """
        if self.prepared:
            self.unknown()
        elif self.told or (row is not None and not self._is_as_before(row)):
            self.committed(row)
        else:
            self.roll_back()

    def unknown(self) -> None:
        """Nobody knows what became of the transaction: its writes stay pending for good."""
        if (write := self._take()) is not None:
            write.outcome_unknown()

    def _take(self) -> Write | None:
        write, self.write = self.write, None
        self.snapshot = None
        self.told, self.prepared = {}, b""
        return write

    def refused(self, row: Sequence[bytes | None] | None) -> None:
        """The server refused a statement, and no transaction is open: what came of it, by the question."""
        if self._is_as_before(row):
            self.roll_back()
        else:
            self.committed(row)

    def _is_as_before(self, row: Sequence[bytes | None] | None) -> bool:
        """Return whether the session has logged nothing since it was asked last, as far as the answer knows."""
        answer = answer_of(self.flavour, row)
        if answer is None or answer.session != self.session or not answer.logs or self.told:
            return False
        return answer.mark == (self.mark if self.mark_known else self.flavour.unwritten)

    def goes_on(self, row: Sequence[bytes | None] | None) -> None:
        """A statement is over that may have committed by itself, and a transaction is open (SCOPE-25).

        What may have been committed is recorded now, whatever becomes of that transaction; its writes stay pending.
        """
        if self._is_as_before(row):
            return
        answer = answer_of(self.flavour, row)
        told, self.told = [Ordered(*each) for each in self.told.items()], {}
        if answer is None and not told:
            self.unknown()
            return
        reason, detail = ("unfit", self.binding.unfit) if answer is None else self._unfit(answer)
        name = self.binding.store.name
        for scope in self._scopes(self.write):
            if detail:
                scope.mark_incomplete(reason, name, detail=detail)
            else:
                scope.append(*(WriteId.position(name, *each) for each in told or self._covers(answer)))
        if answer is not None:
            self.mark, self.mark_known = answer.mark, True

    @staticmethod
    def _scopes(write: Write | None) -> list[Scope]:
        return [] if write is None else [part.scope for part in write.parts if part.scope is not None]

    def _covers(self, answer: Answer | None) -> Sequence[Ordered]:
        """Return what covers all that this session has committed by now."""
        if answer is None:
            return ()
        return (answer.last,) if answer.last is not None else answer.own

    def unasked(self) -> None:
        """A statement is over. Where the server has told of a commit, something was written, whatever the text says."""
        if self.told and self.write is None and self.binding.records:
            self._begin_write()
            self.committed(None)

    def committed(self, row: Sequence[bytes | None] | None, why: BaseException | None = None) -> None:
        """The transaction has ended, and this came of the question; records its writes."""
        if self.write is not None:
            self.write.join_committer()  # who hears of it has it, too: by the rest of a text's results, say (SCOPE-24)
        told = [Ordered(*each) for each in self.told.items()]
        write = self._take()
        if write is None:
            return
        if told:
            self._committed_as(told, write)
            return
        answer = answer_of(self.flavour, row)
        if answer is None:
            write.record_incomplete("pending", f"its position could not be asked for: {why}")
            return
        reason, detail = self._unfit(answer)
        logged = self.mark_known and answer.mark != self.mark
        self.mark, self.mark_known = answer.mark, True
        if reason:
            write.record_incomplete(reason, detail)
        elif logged and answer.last is not None:
            self._record(write, [answer.last], exact=True)
        elif logged and not self.tracks:  # by this session or by another one of this server
            self._record(write, answer.own, exact=answer.own_is_top)
        else:  # nothing of it was logged, or nobody knows: what covers all that it may have seen covers it, too
            self._record(write, answer.log, exact=answer.own_is_top)

    def _committed_as(self, told: Sequence[Ordered], write: Write) -> None:
        """The server itself has told the ids of what was committed."""
        if not self.mark_known or isinstance(self.mark, tuple):
            known = dict(self.mark) if isinstance(self.mark, tuple) else {}
            self.mark, self.mark_known = tuple(sorted({**known, **dict(told)}.items())), True
        unfit = self.binding.unfit
        if unfit:
            self.binding.say("unfit", f"writes are recorded as incomplete: {unfit}", code="AP208")
            write.record_incomplete("unfit", unfit)
        else:
            self._record(write, told, exact=True)

    def _record(self, write: Write, found: Sequence[Ordered], *, exact: bool) -> None:
        ids = [WriteId.position(self.binding.store.name, *position) for position in found]
        for scope in self._scopes(write) if ids[1:] else ():
            scope.append(*ids[1:])
        if not found:
            write.abandon()  # nothing has ever been logged there
        elif exact:
            write.record_position(found[0])
        else:
            write.record_upper_bound(found[0])
        reading = current_reading()
        if reading is not None:
            reading.saw(*ids)

    def _unfit(self, answer: Answer) -> tuple[str, str]:
        """Why the answer is worth nothing: reason and detail."""
        if answer.session != self.session:
            self.binding.say("proxy", f"writes are recorded as incomplete: {MULTIPLEXED}", code="AP517")
            return "proxy", MULTIPLEXED
        if not answer.logs:
            return "unlogged", "the session has sql_log_bin=0, so no replica will ever have it"
        if self.binding.unfit:
            self.binding.say("unfit", f"writes are recorded as incomplete: {self.binding.unfit}", code="AP208")
            return "unfit", self.binding.unfit
        return "", ""

    def renewed(self) -> None:
        """The session has been reset: its variables, its transaction and its newest id are gone."""
        self.over()
        self.mark, self.mark_known, self.rests, self.flags, self.tracks = None, False, "", 0, None

    def opened(self, plain: Any) -> None:
        """The connection has been opened anew, perhaps at another server (BAR-52)."""
        self.binding = self.binding.opened(plain)

    def connected(self, session: int, flags: int, version: str, *, can_track: bool) -> None:
        """The connection is open: the session's number, the server's status and version as its greeting says them."""
        self.session, self.flags = session, flags & (IN_TRANSACTION | AUTOCOMMIT)
        self.snapshot = Moment(taken=True) if flags & IN_TRANSACTION else None  # nobody saw what it has read
        self.flavour, self.can_track = flavour_of(version), can_track
