"""Reads of our own, by which dry-run says whether a read was stale (spec REC-22, REC-23)."""

from __future__ import annotations

import re
import time
from collections.abc import Generator, Iterator, Sequence
from typing import Any, Final

from antipode.followed_reads import Again
from antipode.repeatable_sql import SIGNS, is_repeatable
from psycopg import OperationalError
from psycopg.client_cursor import ClientCursorMixin

from antipode_postgresql.session import Session
from antipode_postgresql.targets import Target

_PLAIN: Final = rb"'[^']*(?:''[^']*)*'(?!')"
_ESCAPED: Final = rb"'[^'\\]*(?:(?:\\.|'')[^'\\]*)*'(?!')"


def _reading(literal: bytes) -> re.Pattern[bytes]:
    return re.compile(
        rb"(?P<gap>\s+|--[^\n\r]*)|(?P<nested>/\*)"
        rb"|(?P<literal>[eE]" + _ESCAPED + rb"|" + literal + rb"|\"[^\"]*(?:\"\"[^\"]*)*\"(?!\")"
        rb"|\$(?P<tag>[A-Za-z_\x80-\xff][\w\x80-\xff]*|)\$.*?\$(?P=tag)\$)"
        rb"|(?P<word>[A-Za-z_\x80-\xff][\w$\x80-\xff]*)"
        rb"|(?P<number>(?:0[xX][0-9a-fA-F]+|\d[\d_]*(?:[eE]\d*)?|\$\d+)(?![\w$\x80-\xff]))|" + SIGNS,
        re.DOTALL,
    )


_READING: Final = _reading(_PLAIN)
_READING_ESCAPED: Final = _reading(_ESCAPED)
"""With `standard_conforming_strings = off`."""
_DECLARED: Final = re.compile(
    rb"DECLARE \"(?:[^\"]|\"\")+\" (?:SCROLL |NO SCROLL )?CURSOR (?:WITH HOLD )?FOR ", re.DOTALL
)
"""What psycopg puts before the statement of a server-side cursor."""
_MOST_OCTETS: Final = 65_536
"""Of a statement, and of its parameters, that are kept until it is repeated."""
_BEGIN: Final = (
    "BEGIN ISOLATION LEVEL READ COMMITTED READ ONLY; SET LOCAL statement_timeout = {0}; SET LOCAL lock_timeout = {0};"
    " SELECT pg_postmaster_start_time()::text, inet_server_addr()::text, inet_server_port()::text"
)


class NotRepeated(Exception):
    """This read is not sent once more."""


def may_be_repeated(statement: bytes) -> bool:
    """Whether a statement may be sent once more, by its text (REC-23)."""
    return is_repeatable(statement, (_READING, _READING_ESCAPED) if b"\\" in statement else (_READING,))


def own_reads(target: Target, cursor: Any, timeout: float) -> Again | None:
    """What sends again what a cursor has just sent, on a connection of our own to the same server.

    None where it is not known. Whether it may be sent is found out when it is to be, by our own thread. `timeout`: of
    each read, in seconds.
    """
    query = cursor._query
    if query is None or len(query.query) > _MOST_OCTETS:
        return None
    is_client = isinstance(cursor, ClientCursorMixin)  # its parameters are in its text already
    params = () if is_client or query.params is None else tuple(query.params)
    if sum(len(value) for value in params if value is not None) > _MOST_OCTETS:
        return None
    reads = _OwnReads(target, timeout, query.query, params)
    if params:
        reads.types, reads.formats = tuple(query.types), tuple(query.formats or ())
    return reads.read


class _OwnReads:
    """One statement with its parameters as they were, and where it is sent."""

    def __init__(self, target: Target, timeout: float, statement: bytes, params: Sequence[Any]) -> None:
        declared = _DECLARED.match(statement)
        self._statement = statement if declared is None else statement[declared.end() :]
        self._params = params
        self.types: Sequence[int] = ()
        self.formats: Sequence[Any] = ()
        self._target = target
        self._timeout = timeout
        self._life: Sequence[str | None] | None = None
        """Of the server that was read from at first: behind one address there may be several."""

    def read(self, times: int) -> Generator[Iterator[Sequence[bytes | None]], None, None]:
        """Each read in a transaction of its own, which may only read."""
        if self._life is None and not may_be_repeated(self._statement):
            raise NotRepeated
        session = Session(self._target, self._timeout, **self._target.session)
        try:
            for _ in range(times):
                until = time.monotonic() + self._timeout
                life = session.row(_BEGIN.format(max(int(self._timeout * 1000), 1)))
                if life != (self._life or life):
                    raise NotRepeated
                self._life = life
                session.timeout = max(until - time.monotonic(), 0.0)
                yield session.stream(self._statement, self._params, self.types, self.formats)
                session.timeout = self._timeout
                session.run("ROLLBACK")
        except OperationalError as error:
            raise NotRepeated from error
        finally:
            session.close()
