"""Our own connections to one server: one that asks, and one on which the server's own wait tells that it moved."""

from __future__ import annotations

import time
from collections.abc import Callable, Mapping, Sequence
from contextlib import suppress
from typing import Any, Final

import pymysql
from antipode.shim import MAX_COUNTER
from pymysql.constants import COMMAND, ER

from antipode_mysql import probe
from antipode_mysql.flavour import Flavour, Look, WantedPosition, texts
from antipode_mysql.targets import Target

_SETTINGS_S: Final = 5.0
"""How long a server's settings are believed: some may be changed while it runs."""
_MARKS_S: Final = 1.0
_WAIT_S: Final = 1.0
"""How long one wait at the server lasts; then it is asked for anew. It holds up an operator's
`SET GLOBAL gtid_slave_pos` for as long, so it is short; it holds up nothing else, and no replication."""
MARKS: Final = "antipode.epochs"
"""The table of what operators have settled, if there is one."""


_REFUSED: Final = {
    ER.DBACCESS_DENIED_ERROR,
    ER.ACCESS_DENIED_ERROR,
    ER.HOST_NOT_PRIVILEGED,
    1820,  # the password has to be changed first
    1698,  # without a password
    1862,  # the password has expired
    3118,  # the account is locked
    4151,  # the same of MariaDB
}


class LoginRefusedError(Exception):
    """The server answers, and does not let this login in: waiting cures nothing."""


def connect(target: Target, timeout: float) -> Any:
    """Return a new connection of our own. Raises LoginRefusedError, else what PyMySQL raises; `timeout` in seconds."""
    try:
        return target.connect(timeout)
    except pymysql.err.OperationalError as error:
        if error.args and error.args[0] in _REFUSED:
            raise LoginRefusedError(f"{target} does not let this login in: {error.args[-1]}") from error
        raise


class Session:
    """The connection that asks. Used by one thread."""

    def __init__(self, target: Target, timeout: float) -> None:
        self._connection = connect(target, timeout)
        self._facts = probe.NOTHING
        self._asked_at = -1e9
        self._marks: dict[str, int] = {}
        self._marks_at = -1e9
        self._last: Look | None = None
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

    def mappings(self, question: str) -> Sequence[Mapping[str, Any]]:
        """The answer to one statement, each row by its columns' names; raises what PyMySQL raises."""
        with self._connection.cursor(pymysql.cursors.DictCursor) as cursor:
            cursor.execute(question)
            rows: Sequence[Mapping[str, Any]] = cursor.fetchall()
            return rows

    @property
    def flavour(self) -> Flavour:
        """The kind of server, by its greeting."""
        return probe.flavour_of(str(self._connection.get_server_info()))

    def look(self, *, fresh_ids: bool, relaxed_durability: bool) -> Look:
        """Return where the server is. The arguments are the operator's statements, as `wrap` takes them."""
        now = time.monotonic()
        if now - self._asked_at > _SETTINGS_S:
            self._facts = probe.ask(self._connection)
            self._asked_at = now
        flavour = self._facts.flavour
        unfit = self._facts.unfit(relaxed_durability=relaxed_durability) or ("" if fresh_ids else flavour.reuse)
        [row] = self.rows(flavour.look)
        *where, answering = texts(row)
        if int(answering) != self._connection.thread_id():
            unfit = probe.MULTIPLEXED
        self._last = flavour.seen(where, unfit, self._marks, self._last)
        return self._last

    def is_idle(self) -> bool:
        """Whether nothing is being applied: asked after a look, all that was logged by then has been committed."""
        return [str(row[0]) for row in self.rows(self._facts.flavour.is_idle)] == ["0"]

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
    """A connection on which the server's own wait hangs while somebody waits: its answer is the push of this store.

    It is a hint only, and whatever it lets us ask is judged anew (SHIM-19): MariaDB's passes what was lost.
    """

    def __init__(self, session: Session, target: Target, timeout: float, on_change: Callable[[], None]) -> None:
        self._session = session
        self._on_change = on_change
        self._connection: Any = target.connect(timeout)
        self._armed: WantedPosition | None = None
        self._killed = False

    def wait_for(self, wanted: WantedPosition) -> None:
        """Has the server tell when it has got so far. One that already waits for less of the same goes on."""
        if self._armed is not None:
            goes_on = self._armed.stream == wanted.stream and self._armed.number <= wanted.number
            if not goes_on and not self._killed:
                self._killed = True
                self._session.kill_query(self._connection.thread_id())
            return
        self._connection._execute_command(COMMAND.COM_QUERY, self._session.flavour.wait(wanted, _WAIT_S))
        self._armed = wanted
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
