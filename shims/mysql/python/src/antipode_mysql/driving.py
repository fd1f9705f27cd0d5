"""What the classes of all clients share: a statement with its question, and what follows from the answers.

It is written once, as steps (`antipode.shim.both_ways`).
"""

from __future__ import annotations

import time
from abc import abstractmethod
from collections.abc import Callable, Sequence
from typing import Any, Final, cast

from antipode.shim.both_ways import Steps, run

from antipode_mysql.recorder import IN_TRANSACTION, Call, Recorder
from antipode_mysql.statements import Kind
from antipode_mysql.waiting import LateAnswer, Moment, StatementRead

Row = Sequence[bytes | None]
_EARLY_S: Final = 0.01
"""A socket's clock may be so much early."""
_LEAVE_S: Final = 1
"""How long closing a connection with an open transaction may take longer, in seconds."""


class Driving:
    """A connection's class, mixed into the client's own. All of the connection's state stays in the client's."""

    _antipode: Recorder
    _antipode_plain: Any
    """The connection that was wrapped: it shares all state with this one, and closes it in the end."""
    _antipode_call: Call | None
    """The statement whose answer is not wholly read yet."""
    _antipode_drive: Any = staticmethod(run)

    # What a client's class says. Of what is sent or read, as a step

    @abstractmethod
    def _antipode_ask(self, question: bytes) -> Any:
        """Asks on this connection, in a round trip of its own; raises the client's errors."""

    @abstractmethod
    def _antipode_ask_until(self, question: bytes, until: float) -> Any:
        """`_antipode_ask` of what is to be answered by a time (of `time.monotonic`): else the connection is closed, as
        the question is open on it still, and Late raised (SHIM-47)."""

    @abstractmethod
    def _antipode_answer(self) -> Any:
        """Reads the answer to the question that was sent behind a statement."""

    @abstractmethod
    def _antipode_pause(self, seconds: float) -> Any:
        """Waits before the next look."""

    @abstractmethod
    def _antipode_open(self, error: BaseException) -> bool:
        """Whether the connection is in order after this error: the server's own refusal."""

    @abstractmethod
    def _antipode_left(self) -> bool:
        """Whether more of the statement's answer is to be read."""

    @abstractmethod
    def _antipode_drain(self) -> Any:
        """Does what the client does before its next statement with what is left; raises what it raises."""

    @abstractmethod
    def _antipode_warnings(self) -> int:
        """Return how many warnings the last answer spoke of."""

    # Around a statement

    def _antipode_do(
        self, sql: bytes, action: Callable[[], Any], several: bool = False, packs_reads: bool = False
    ) -> Any:
        """`_antipode_run`, as the client's method gives its result."""
        return self._antipode_drive(self._antipode_run(sql, several, packs_reads, action))

    def _antipode_run(self, sql: bytes, several: bool, packs_reads: bool, action: Callable[[], Any]) -> Steps[Any]:
        """Runs a statement of the application's by `action`."""
        recorder = self._antipode
        if self._antipode_call is not None:
            yield from self._antipode_settle()
        call = recorder.before(sql, several=several)
        if recorder.may_track and not self._antipode_left():
            try:
                yield from self._antipode_track(recorder, None if call is None else call.read)
            except BaseException:
                if call is not None and call.read is not None:
                    call.read.end()
                raise
            if call is not None and recorder.tracks:
                call.asks = False
        if call is None:
            result = yield action()
            recorder.unasked()
            return result
        read = call.read
        call.sql = sql
        self._antipode_call = call
        try:
            if read is not None:
                snapshot = recorder.snapshot or Moment()
                yield from read.wait_on(self._antipode_ask_until, self._antipode_pause, recorder, snapshot)
                recorder.shows = read.shows
                call.asks = call.asks or (read.collects and packs_reads)
            result = yield action()
        except BaseException as error:
            if read is not None:
                read.end()
            yield from self._antipode_failed(call, error)
            raise
        if read is not None and not read.collects:
            read.came()  # now: the rest of its rows may be read much later, if ever
        if self._antipode_call is call and not self._antipode_left():
            yield from self._antipode_finish(call)
        return result

    def _antipode_track(self, recorder: Recorder, read: StatementRead | None) -> Steps[None]:
        """Once a session: has the server tell the ids of commits in its own answers."""
        recorder.tracks = False
        try:
            if read is not None and read.ids:
                yield self._antipode_ask_until(recorder.flavour.track, read.until)
            else:
                yield self._antipode_ask(recorder.flavour.track)
            recorder.tracks = True
        except LateAnswer:
            if read is not None:
                read.late()
        except Exception as error:  # our own question: its errors are not the application's (SHIM-2)
            if not self._antipode_open(error):  # but a loss is one that the application's statement would meet
                raise

    def _antipode_settle(self) -> Steps[None]:
        """Whatever the application has left unread of the statement before is over.

        Raise what shows that the connection is lost: the next statement would have met it, and cannot now (SHIM-2).
        """
        if self._antipode_call is not None and self._antipode_call.sent and self._antipode_left():
            yield self._antipode_drain()
        call = self._antipode_call
        if call is not None and not call.asks and not self._antipode_left():
            error = yield from self._antipode_finish(call)
            if error is not None and not self._antipode_open(error):
                raise error

    def _antipode_finish(self, call: Call) -> Steps[Exception | None]:
        """The statement's answer has been read. Return what our own question failed with."""
        self._antipode_call = None
        recorder, read = self._antipode, call.read
        row: Row | None = None
        why: Exception | None = None
        warnings = self._antipode_warnings()
        try:
            if call.asks:
                row = _only((yield self._antipode_answer()))
            ends = recorder.has_ended(call, warnings) or call.ends
            wants = ends or (call.statement.may_commit and recorder.write is not None)
            if row is None and ((wants and not recorder.told) or (read is not None and read.collects)):
                row = _only((yield self._antipode_ask(recorder.flavour.question)))
        except Exception as error:  # our own question: its errors are not the application's (SHIM-2)
            why, ends = error, recorder.has_ended(call, 0)
        except BaseException as error:  # the application's task was cancelled while we asked
            self._antipode_written(call, None, recorder.has_ended(call, 0), error)
            if read is not None:
                read.left()
            raise
        self._antipode_written(call, row, ends, why)
        if read is not None:
            if read.collects:
                read.stood(row, recorder.session)
            read.came()
            read.end()
        return why

    def _antipode_written(self, call: Call, row: Row | None, ends: bool, why: BaseException | None) -> None:
        recorder = self._antipode
        if call.statement.comes_later:
            recorder.unknown()
        elif recorder.write is not None and ends:
            recorder.committed(row, why)
        elif recorder.write is not None and call.statement.may_commit and not recorder.prepared:
            recorder.goes_on(row)
        recorder.unasked()

    def _antipode_failed(self, call: Call, error: BaseException) -> Steps[None]:
        """The client raises this to the application."""
        self._antipode_call = None
        recorder = self._antipode
        if not call.sent:
            if call.began and call.statement.may_write:
                recorder.roll_back()
            return
        if not self._antipode_open(error):
            recorder.unknown()
            return
        row: Row | None = None
        try:
            if call.asks:
                row = _only((yield self._antipode_answer()))
            if recorder.write is None:
                return
            inside = recorder.flags & IN_TRANSACTION or not recorder.flags & 2
            if inside and call.statement.kind in (Kind.WRITE, Kind.SETS, Kind.READ) and not call.statement.may_commit:
                return  # part of a transaction: its end will tell
            if row is None:
                row = _only((yield self._antipode_ask(recorder.flavour.question)))
        except Exception:
            recorder.unknown()
            return
        except BaseException:
            recorder.unknown()
            raise
        if recorder.flags & IN_TRANSACTION:  # as the answer to the question says
            recorder.goes_on(row)
        else:
            recorder.refused(row)

    def _antipode_leave(self) -> Steps[Exception | None]:
        """The application ends the session, or resets it: what was committed inside of its open transaction, and what
        tables without transactions keep, is asked for before (SCOPE-25). Return what the question failed with."""
        recorder, connection = self._antipode, cast(Any, self)
        if recorder.write is None or recorder.prepared or recorder.tracks:  # then the server has told it already
            return None
        limit = connection._read_timeout
        connection._read_timeout = min(limit or _LEAVE_S, _LEAVE_S)
        try:
            if not self._antipode_left():
                yield from self._antipode_settle()
                recorder.over(_only((yield self._antipode_ask(recorder.flavour.question))))
        except Exception as error:
            recorder.unknown()
            return error
        finally:
            connection._read_timeout = limit
        return None

    def _antipode_over(self) -> None:
        """The session ends: its open transaction leaves nothing, but what was told to commit may have happened."""
        call, self._antipode_call = self._antipode_call, None
        if call is not None and call.read is not None:
            (call.read.left if call.sent else call.read.end)()
        if call is not None and call.sent and (call.statement.kind is not Kind.READ or call.statement.may_write):
            self._antipode.unknown()


class BlockingDriving(Driving):
    """Of a client that blocks."""

    @abstractmethod
    def _antipode_cut(self) -> None:
        """Closes the connection's socket; never waits for the server."""

    def _antipode_ask_until(self, question: bytes, until: float) -> Any:
        connection = cast(Any, self)
        limits = connection._read_timeout, connection._write_timeout
        left = max(until - time.monotonic(), 0.001)
        connection._read_timeout, connection._write_timeout = (min(limit or left, left) for limit in limits)
        try:
            return self._antipode_ask(question)
        except Exception as error:
            if time.monotonic() < until - _EARLY_S:
                raise
            self._antipode_cut()
            raise LateAnswer from error
        finally:
            connection._read_timeout, connection._write_timeout = limits

    def _antipode_pause(self, seconds: float) -> Any:
        time.sleep(seconds)


def _only(rows: list[Row]) -> Row | None:
    return rows[0] if len(rows) == 1 else None
