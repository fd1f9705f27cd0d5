"""Reads of our own, by which dry-run says whether a read was stale (spec REC-22, REC-23)."""

from __future__ import annotations

import re
import time
from collections.abc import Generator, Iterator
from contextlib import suppress
from typing import Any, Final

from antipode.followed_reads import Again
from antipode.repeatable_sql import MOST_OCTETS, SIGNS, is_repeatable

from antipode_mysql.flavour import Flavour
from antipode_mysql.targets import Target

_SINGLE: Final = rb"'[^'\\]*(?:(?:\\.|'')[^'\\]*)*'(?!')"
_SINGLE_PLAIN: Final = rb"'[^']*(?:''[^']*)*'(?!')"
_DOUBLE: Final = rb'"[^"\\]*(?:(?:\\.|"")[^"\\]*)*"(?!")'
_DOUBLE_PLAIN: Final = rb'"[^"]*(?:""[^"]*)*"(?!")'


def _reading(single: bytes, double: bytes) -> re.Pattern[bytes]:
    return re.compile(
        rb"(?P<gap>\s+|--(?:(?=\s)[^\n]*|$)|#[^\n]*|/\*(?!!|M!).*?\*/)"
        rb"|(?P<literal>" + single + rb"|" + double + rb"|`[^`]*(?:``[^`]*)*`(?!`))"
        rb"|(?P<word>[A-Za-z_\x80-\xff][\w$\x80-\xff]*)"
        rb"|(?P<number>(?:0[xX][0-9a-fA-F]+|\d+(?:[eE]\d*)?)(?![\w$\x80-\xff]))|" + SIGNS,
        re.DOTALL,
    )


_READINGS: Final = (
    _reading(_SINGLE, _DOUBLE),
    _reading(_SINGLE, _DOUBLE_PLAIN),
    _reading(_SINGLE_PLAIN, _DOUBLE_PLAIN),
)
"""As the session is at first; with ANSI_QUOTES, and with NO_BACKSLASH_ESCAPES in its `sql_mode`."""
_LIMITS: Final = {
    "MariaDB": "SET SESSION max_statement_time = {seconds}, lock_wait_timeout = 1",
    "MySQL": "SET SESSION max_execution_time = {milliseconds}, lock_wait_timeout = 1",
}
_BEGIN: Final = "START TRANSACTION READ ONLY"
_WHERE: Final = "SELECT @@server_id, @@hostname, @@port"


class NotRepeated(Exception):
    """This read is not sent once more."""


def may_be_repeated(statement: bytes) -> bool:
    """Whether a statement may be sent once more, by its text (REC-23)."""
    return is_repeatable(statement, _READINGS if b"\\" in statement else _READINGS[:1])


def own_reads(target: Target, database: str | None, flavour: Flavour, statement: bytes, timeout: float) -> Again | None:
    """What sends a statement again, on a connection of our own to the same server, in the application's database.

    None for one that is too long to be kept. Whether it may be sent is found out when it is to be, by our own thread.
    A prepared one with parameters, which are not known here, is refused by the server then. `timeout`: of each read,
    in seconds.
    """
    if len(statement) > MOST_OCTETS:
        return None
    return _OwnReads(target, database, flavour, statement, timeout).read


class _OwnReads:
    """One statement, and where it is sent."""

    def __init__(
        self, target: Target, database: str | None, flavour: Flavour, statement: bytes, timeout: float
    ) -> None:
        self._target = target
        self._database = database
        self._flavour = flavour
        self._statement = statement
        self._timeout = timeout
        self._server: tuple[Any, ...] | None = None
        """That was read from at first: behind one address there may be several."""

    def read(self, times: int) -> Generator[Iterator[Any], None, None]:
        """Each read in a transaction of its own, which may only read."""
        if self._server is None and not may_be_repeated(self._statement):
            raise NotRepeated
        connection = self._target.connect(self._timeout)
        try:
            if self._database is not None:
                connection.select_db(self._database)
            limits = _LIMITS[self._flavour.name]
            _asked(connection, limits.format(seconds=self._timeout, milliseconds=max(int(self._timeout * 1000), 1)))
            for _ in range(times):
                until = time.monotonic() + self._timeout
                _asked(connection, _BEGIN)
                [server] = _asked(connection, _WHERE)
                if server != (self._server or server):
                    raise NotRepeated
                self._server = server
                yield self._rows(connection, until)
                _asked(connection, "ROLLBACK")
        finally:
            if connection._result is not None:
                connection._result.unbuffered_active = False  # else it would read on when it is freed
            with suppress(Exception):
                connection._force_close()

    def _rows(self, connection: Any, until: float) -> Iterator[Any]:
        """The rows as they come; who does not take them all closes the connection."""
        connection.query(self._statement, unbuffered=True)
        while (row := connection._result._read_rowdata_packet_unbuffered()) is not None:
            if time.monotonic() > until:
                raise TimeoutError
            yield row


def _asked(connection: Any, question: str) -> Any:
    with connection.cursor() as cursor:
        cursor.execute(question)
        return cursor.fetchall()
