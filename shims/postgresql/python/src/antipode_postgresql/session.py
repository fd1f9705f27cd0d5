"""Our own connection to one server: raw libpq, every call bounded by a timeout."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, Final

from psycopg import OperationalError, generators, pq, waiting
from psycopg import errors as pg_errors

from antipode_postgresql.targets import Target

_GOOD: Final = (pq.ExecStatus.TUPLES_OK, pq.ExecStatus.COMMAND_OK)


class RefusedError(Exception):
    """The server's own answer to a question: an error. `code` is its SQLSTATE."""

    def __init__(self, words: str, code: str) -> None:
        super().__init__(words)
        self.code = code


class Session:
    """One connection, used by one thread at a time. Every call ends within `timeout` seconds, or raises."""

    def __init__(self, target: Target, timeout: float, **more: Any) -> None:
        """Connects; raises OperationalError. No server-side cursor, transaction or setting outlives a call."""
        self.timeout = timeout
        try:
            self._pgconn = waiting.wait_conn(generators.connect(target.conninfo(**more)), timeout=timeout)
        except pg_errors._WaitTimeout as error:
            raise OperationalError(f"no connection within {timeout:.1f} s") from error
        self._pgconn.nonblocking = 1

    @property
    def backend(self) -> int:
        """The process id that the server (or a pooler before it) gave for this connection."""
        return int(self._pgconn.backend_pid)

    def run(self, statement: str) -> list[list[list[str | None]]]:
        """Sends one or more statements in one message; the rows of each. Raises Refused for an error."""
        self._pgconn.send_query(statement.encode())
        return self._finish()

    def prepare(self, name: str, statement: str) -> None:
        """Prepares a statement: it is on our own connection, so nobody else meets it."""
        self._pgconn.send_prepare(name.encode(), statement.encode())
        self._finish()

    def prepared(self, name: str) -> list[str | None]:
        """The one row of a prepared statement without parameters."""
        self._pgconn.send_query_prepared(name.encode(), None)
        return self._finish()[0][0]

    def row(self, statement: str) -> list[str | None]:
        """The one row of the last statement."""
        return self.run(statement)[-1][0]

    def _finish(self) -> list[list[list[str | None]]]:
        try:
            results = waiting.wait(generators.execute(self._pgconn), self._pgconn.socket, timeout=self.timeout)
        except pg_errors._WaitTimeout as error:
            raise OperationalError(f"no answer within {self.timeout:.1f} s") from error
        found: list[list[list[str | None]]] = []
        for result in results:
            if result.status not in _GOOD:
                words = pg_errors.error_from_result(result)
                if isinstance(words, OperationalError) or self._pgconn.status != pq.ConnStatus.OK:
                    raise OperationalError(str(words)) from words
                raise RefusedError(str(words).splitlines()[0], words.sqlstate or "")
            found.append(_rows(result))
        return found

    def close(self) -> None:
        """Ends the connection; never raises."""
        self._pgconn.finish()


def _rows(result: Any) -> list[list[str | None]]:
    return [[_text(result.get_value(row, column)) for column in range(result.nfields)] for row in range(result.ntuples)]


def _text(value: bytes | None) -> str | None:
    return None if value is None else value.decode()


def words_of(rows: Sequence[Sequence[str | None]]) -> dict[str, str]:
    """Rows of two columns as a dictionary."""
    return {str(key): str(value) for key, value in rows}
