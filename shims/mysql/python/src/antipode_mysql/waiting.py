"""Reads that wait on their own connection, or that say what they depend on (spec BAR, SHIM-13; reach `session`)."""

from __future__ import annotations

import time
from collections.abc import Callable, Mapping, Sequence
from typing import Any, Final, Protocol

from antipode import Ordered, Verdict, WriteId
from antipode.shim import LOOK_S, Read, ReadValue, Visibility, lineage_at_rest, not_yet, unproven
from antipode.shim.both_ways import Steps

from antipode_mysql import column
from antipode_mysql.binding import Binding
from antipode_mysql.flavour import Flavour, Look, answer_of, texts
from antipode_mysql.probe import MULTIPLEXED
from antipode_mysql.shim import MySQLShim
from antipode_mysql.statements import is_noted

_SLICE_S: Final = 0.5
_LEAST_S: Final = 0.001
_PAUSE_S: Final = 0.01
AskUntil = Callable[[bytes, float], Any]
"""Asks a question on the read's own connection until a time (of `time.monotonic`), or raises Late; a step of rows."""
Pause = Callable[[float], Any]
"""Waits for so many seconds; a step."""
_ANY: Final = (ReadValue(b""),)
"""What is told of a statement: that it reads, and no more (HIST-36)."""
_PAST: Final = unproven(
    "the open transaction reads what was there when it began, and that is older than what the read depends on. COMMIT "
    "or ROLLBACK before reading"
)
_PAST_ROWS: Final = unproven(
    "what it fetches is of a moment that is past, when the server was not proved to have what the read depends on: "
    "send the query again, and take its rows at once or by a buffered cursor"
)


class LateAnswer(Exception):
    """The answer to a question of ours did not come by its deadline; the connection is closed."""


class Session(Protocol):
    """What is known of a connection's session."""

    @property
    def session(self) -> int:
        """Its number."""

    @property
    def in_transaction(self) -> bool:
        """Whether a transaction is open, as the server has said last."""


class Moment:
    """When data was taken that is read later: by the open transaction's snapshot, or in parts (SHIM-48)."""

    __slots__ = ("_ids", "_proved", "taken")

    def __init__(self, *, taken: bool = False) -> None:
        self.taken = taken
        self._proved: Mapping[str, int] = {}
        """What was known to be there just before it was taken."""
        self._ids: frozenset[WriteId] = frozenset()
        """What was proved by itself, as waited for."""

    def showed(self, seen: Look, ids: Sequence[WriteId] = ()) -> None:
        """Note what was there at a look before it was taken."""
        self._proved, self._ids = seen.proved(), frozenset(ids)

    def covers(self, ids: Sequence[WriteId]) -> bool:
        """Return whether these writes were there when it was taken."""
        return all(write_id in self._ids or self._reaches(write_id.version) for write_id in ids)

    def _reaches(self, version: Any) -> bool:
        return isinstance(version, Ordered) and self._proved.get(version.epoch, -1) >= version.counter


class StatementRead(Read):
    """One statement that may read: what it waits for on its own connection, and who wants to know what it returns."""

    __slots__ = ("_last", "_was_open", "binding", "covers", "flavour", "ids", "shows", "trouble")

    def __init__(self, binding: Binding, flavour: Flavour, sql: bytes, *, several: bool) -> None:
        is_told = (binding.notes or binding.follows) and is_noted(sql, several=several)
        super().__init__(binding, None, is_told=is_told)
        self.binding = binding
        self.flavour = flavour
        self.ids: list[WriteId] = []
        self.trouble: Visibility | None = None
        """Why the read's writes are not visible, once it has given up."""
        self.shows = Moment()
        """The moment that its data is of."""
        self._was_open = False
        self._last: Look | None = None
        self.covers: list[WriteId] = []
        """The positions that go into lineages with what was read."""

    # Before the read

    def wait_on(self, ask: AskUntil, pause: Pause, session: Session, snapshot: Moment) -> Steps[None]:
        """Wait on this connection until the read's writes are visible there, or the deadline has passed.

        Args:
            ask: asks on the connection.
            pause: waits for the next look.
            session: what is known of the connection's.
            snapshot: that of the transaction that the read is part of, or begins.

        Raises what the policies say of a wait in vain, before anything is sent: what reads may also write.
        """
        if self.trouble is None:
            yield from self._look_until(ask, pause, session, snapshot)
        if self.trouble is not None:
            self.refuse(self.trouble, self.binding.target.address, is_past=self.trouble == _PAST)

    def _look_until(self, ask: AskUntil, pause: Pause, session: Session, snapshot: Moment) -> Steps[None]:
        self.shows = snapshot
        self._was_open = session.in_transaction
        if snapshot.taken and snapshot.covers(self.ids):
            return
        try:
            while self.ids and (yield from self._goes_on(ask, pause, session, snapshot)):
                pass
        except LateAnswer:
            self.late()

    def _goes_on(self, ask: AskUntil, pause: Pause, session: Session, snapshot: Moment) -> Steps[bool]:
        """Look once, and wait for the next look; return whether there is to be one."""
        seen, repeats = yield from self._look(ask, session.session)
        if session.in_transaction and not self._was_open:  # as the server says now: begun by what was not wrapped
            snapshot.taken = True
        answers = yield from self._judged(seen, ask)
        missing = [answer for answer in answers if answer.verdict is not Verdict.VISIBLE]
        if snapshot.taken and repeats and not snapshot.covers(self.ids):
            missing = [_PAST]
        if not missing:
            self.shows = Moment(taken=True)
            self.shows.showed(seen, self.ids)
            if not snapshot.taken:
                snapshot.showed(seen, self.ids)
            return False
        left = self.deadline - time.monotonic()
        final = [answer for answer in missing if answer.verdict is Verdict.UNPROVEN]
        if final or left <= 0:
            self.trouble = (final or missing)[0]
            return False
        wanted = seen.waited_for(self.ids, answers)
        if wanted is None:
            yield pause(min(left, _PAUSE_S))
        else:  # so long that the answer is here in time, and never 0: MySQL would wait for ever
            seconds = min(max(left - LOOK_S, left / 2, _LEAST_S), _SLICE_S)
            yield ask(self.flavour.wait(wanted, seconds).encode(), self.until)
        return True

    @property
    def until(self) -> float:
        """When a question of ours has to be answered, by `time.monotonic`."""
        return max(self.deadline, time.monotonic() + LOOK_S)

    def late(self) -> None:
        """A question of ours was not answered in time (SHIM-47)."""
        self.trouble = not_yet("the server did not answer on this connection, which is closed")

    def _judged(self, seen: Look, ask: AskUntil) -> Steps[list[Visibility]]:
        """What a look proves of each write. Whether the applier is at rest is asked behind it, where that decides."""
        decides = False

        def is_idle() -> bool:
            nonlocal decides
            decides = True
            return False

        answers = [seen.judge(write_id, is_idle) for write_id in self.ids]
        if not decides or texts((yield ask(self.flavour.is_idle.encode(), self.until))[0]) != ["0"]:
            return answers
        return [seen.judge(write_id, lambda: True) for write_id in self.ids]

    def _look(self, ask: AskUntil, session: int) -> Steps[tuple[Look, bool]]:
        """Where the connection's server is, and whether its transactions repeat what they have read."""
        question = f"{self.flavour.look}, {self.flavour.isolation}".encode()
        *where, answering, isolation = texts((yield ask(question, self.until))[0])
        binding = self.binding
        shim = binding.store.shim
        assert isinstance(shim, MySQLShim)
        unfit = MULTIPLEXED if int(answering) != session else binding.unfit
        unfit = unfit or ("" if shim.fresh_ids else self.flavour.reuse)
        self._last = self.flavour.seen(where, unfit, before=self._last)
        return self._last, isolation in ("REPEATABLE-READ", "SERIALIZABLE")

    # After it

    def stood(self, row: Sequence[bytes | None] | None, session: int) -> None:
        """Take where the server was behind the read: that covers what was read."""
        answer = answer_of(self.flavour, row)
        if answer is None or answer.session != session or not answer.log:
            self.mark()
        else:
            self.covers = [WriteId.position(self.binding.store.name, *position) for position in answer.log]

    def saw_rows(self, names: Sequence[str], rows: Sequence[Any]) -> None:
        """The lineages beside the rows that were read join."""
        if not self.collects or not self.binding.takes or column.NAME not in names:
            return
        places_ = column.places(names)
        name = self.binding.store.name
        for row in rows:
            values = [row[column.NAME]] if isinstance(row, Mapping) else [row[place] for place in places_]
            for value in values:
                self.saw(lineage=lineage_at_rest(value, name, True))

    def came(self) -> None:
        """Tell that its answer is there, unless that was told before."""
        self.returned(self._found, covers=self.covers)

    def _found(self) -> tuple[ReadValue, ...]:
        self.server = self.binding.server
        return _ANY

    def left(self) -> None:
        """Tell that nobody reads the rest of its answer: what was read of it, nobody can cover."""
        self.mark()
        self.came()
        self.end()


def fetch(binding: Binding, shows: Moment | None) -> None:
    """Raise what the policies say where something is to be seen by now that was not proved when data was taken that is
    read in parts (SHIM-48). `shows`: that moment; None where nobody waited."""
    if binding.reads_plainly():
        return
    read = Read(binding, None, is_told=False)
    ids = read.required()
    if ids and (shows is None or not shows.covers(ids)):
        read.refuse(_PAST_ROWS, binding.target.address, is_past=True)


def read_of(binding: Binding, flavour: Flavour, sql: bytes, *, several: bool) -> StatementRead | None:
    """Return a read that is about to be sent; None where it is a plain one."""
    if binding.reads_plainly():
        return None
    read = StatementRead(binding, flavour, sql, several=several)
    try:
        read.ids = read.required()
    except BaseException:
        read.end()
        raise
    return read
