"""Our own connections to one server: one that asks, and one on which the server's own wait tells that it moved."""

from __future__ import annotations

import time
from collections.abc import Callable, Sequence
from contextlib import suppress
from typing import Any, Final

import pymysql
from antipode.wire import MAX_COUNTER
from pymysql.constants import COMMAND, ER

from antipode_mysql import probe
from antipode_mysql.gtids import State, places
from antipode_mysql.judging import FRESH_IDS, Seen
from antipode_mysql.targets import Target

ASK: Final = "SELECT @@GLOBAL.gtid_binlog_state, @@GLOBAL.gtid_slave_pos, @@GLOBAL.server_id, CONNECTION_ID()"
_IS_IDLE: Final = "SELECT VARIABLE_VALUE FROM information_schema.GLOBAL_STATUS WHERE VARIABLE_NAME = 'SLAVES_RUNNING'"
_SETTINGS_S: Final = 5.0
"""How long a server's settings are believed: some may be changed while it runs."""
_MARKS_S: Final = 1.0
_WAIT_S: Final = 1.0
"""How long one wait at the server lasts; then it is asked for anew. It holds up an operator's
`SET GLOBAL gtid_slave_pos` for as long, so it is short; it holds up nothing else, and no replication."""
MARKS: Final = "antipode.epochs"
"""The table of what operators have settled, if there is one."""


class Session:
    """The connection that asks. Used by one thread."""

    def __init__(self, target: Target, timeout: float) -> None:
        self._connection = target.connect(timeout)
        self._facts = probe.NOTHING
        self._asked_at = -1e9
        self._marks: dict[str, int] = {}
        self._marks_at = -1e9
        self.waiter: Waiter | None = None

    @property
    def instance(self) -> str:
        """Names the server's life, as long as this connection lives: it never outlives it."""
        return str(self._connection.thread_id())

    def rows(self, question: str, *words: Any) -> Sequence[tuple[Any, ...]]:
        """The answer to one statement; raises what PyMySQL raises."""
        with self._connection.cursor() as cursor:
            cursor.execute(question, words or None)
            rows: Sequence[tuple[Any, ...]] = cursor.fetchall()
            return rows

    def look(self, *, fresh_ids: bool) -> Seen:
        """One look at where the server is."""
        now = time.monotonic()
        if now - self._asked_at > _SETTINGS_S:
            self._facts = probe.ask(self._connection)
            self._asked_at = now
        unfit = self._facts.unfit or ("" if fresh_ids else FRESH_IDS)
        if "MariaDB" not in self._facts.settings["version"]:
            return Seen(State(""), {}, 0, unfit)
        [(state, place, server_id, answering)] = self.rows(ASK)
        if int(answering) != self._connection.thread_id():
            unfit = probe.MULTIPLEXED
        return Seen(State(state or ""), places(place or ""), int(server_id), unfit, self._marks)

    def is_idle(self) -> bool:
        """Whether nothing is being applied: asked after a look, all that was logged by then has been committed."""
        return [str(row[0]) for row in self.rows(_IS_IDLE)] == ["0"]

    def learn_marks(self) -> bool:
        """Reads what operators have settled, at most once a second; True if that has changed."""
        now = time.monotonic()
        if now - self._marks_at < _MARKS_S:
            return False
        self._marks_at = now
        before = self._marks
        self._marks = marks(self)
        return self._marks != before

    def kill_query(self, thread: int) -> None:
        """Ends what another connection of the same user waits for."""
        with suppress(pymysql.MySQLError):
            self.rows(f"KILL QUERY {thread}")

    def close(self) -> None:
        """Ends the connections; never raises."""
        if self.waiter is not None:
            self.waiter.close()
            self.waiter = None
        _close(self._connection)


def marks(session: Session) -> dict[str, int]:
    """What operators have settled at a server: epoch -> up to where it is there. Empty where there is no table."""
    try:
        return {str(epoch): min(int(counter), MAX_COUNTER) for epoch, counter in session.rows(f"SELECT * FROM {MARKS}")}
    except pymysql.err.MySQLError as error:
        if error.args and error.args[0] in _NO_MARKS:
            return {}
        raise


_NO_MARKS: Final = {
    ER.NO_SUCH_TABLE,
    ER.BAD_DB_ERROR,
    ER.TABLEACCESS_DENIED_ERROR,
    ER.DBACCESS_DENIED_ERROR,
    ER.COLUMNACCESS_DENIED_ERROR,
}


class Waiter:
    """A connection on which `MASTER_GTID_WAIT` hangs while somebody waits: its answer is the push of this store.

    It is a hint only, and whatever it lets us ask is judged anew (SHIM-19): the function passes what was lost.
    """

    def __init__(self, session: Session, target: Target, timeout: float, on_change: Callable[[], None]) -> None:
        self._session = session
        self._on_change = on_change
        self._connection: Any = target.connect(timeout)
        self._armed: tuple[int, int] | None = None
        self._killed = False

    def wait_for(self, domain: int, sequence: int) -> None:
        """Has the server tell when its applier has got so far. One that already waits for less goes on."""
        if self._armed is not None:
            armed_domain, armed_sequence = self._armed
            if (armed_domain, armed_sequence) > (domain, sequence) and not self._killed:
                self._killed = True
                self._session.kill_query(self._connection.thread_id())
            return
        question = f"SELECT MASTER_GTID_WAIT('{domain}-1-{sequence}', {_WAIT_S})"
        self._connection._execute_command(COMMAND.COM_QUERY, question)
        self._armed = (domain, sequence)
        self._killed = False

    def fileno(self) -> int | None:
        """The socket's descriptor."""
        number: int = self._connection._sock.fileno()
        return number

    def pump(self) -> None:
        """The server has answered: reads it, and tells the engine. Raises where the connection is broken."""
        try:
            self._connection._read_query_result()
        except pymysql.err.MySQLError as error:
            if not error.args or error.args[0] not in (ER.QUERY_INTERRUPTED, ER.STATEMENT_TIMEOUT):
                raise
        self._armed = None
        self._on_change()

    def close(self) -> None:
        """Ends the wait at the server, too; never raises."""
        if self._armed is not None:
            with suppress(Exception):
                self._session.kill_query(self._connection.thread_id())
        self._armed = None
        _close(self._connection)


def _close(connection: Any) -> None:
    with suppress(Exception):
        connection._force_close()
