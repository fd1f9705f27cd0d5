"""Which statements of SQL dry-run may send once more, by their text (spec REC-23).

A shim gives its dialect as patterns of which each matches one piece of a statement, with these groups by name:

    gap      white space and comments, which say nothing
    nested   the beginning of a comment in which comments may stand
    literal  a literal, or a name in quotes: nothing in it is a word
    word     a name or a keyword
    number   a number, or the place of a parameter
    sign     any other character

What no pattern matches (a quote that is not closed, a sign that is not allowed) makes the statement one that is not
repeated, as does all that is unsure.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator
from typing import Final

MOST_OCTETS: Final = 65_536
"""A longer statement is not repeated."""
SIGNS: Final = rb"(?P<sign>(?!/\*|:=)[-+*/%<>=!~^&|?.,;()\[\]#:])"
"""For patterns, behind the dialect's own pieces: no `@`, no `:=`, no backslash, no quote, no beginning of a comment."""

_FIRST: Final = frozenset({b"SELECT", b"WITH", b"TABLE"})
_FORBIDDEN: Final = frozenset(
    b"""INSERT UPDATE DELETE MERGE INTO FOR LOCK PROCEDURE TABLESAMPLE CURRENT_DATE CURRENT_TIME CURRENT_TIMESTAMP
    LOCALTIME LOCALTIMESTAMP UTC_DATE UTC_TIME UTC_TIMESTAMP CURRENT_USER SESSION_USER SYSTEM_USER USER CURRENT_ROLE
    CURRENT_SCHEMA CURRENT_CATALOG NEXTVAL NEXT""".split()
)
_PARTS: Final = frozenset({b"LIMIT", b"OFFSET", b"FETCH"})
BEFORE_PARENTHESIS: Final = frozenset(
    b"""ABS ALL AND ANY ARRAY AS ASC AVG BETWEEN BIGINT BIT_AND BIT_LENGTH BIT_OR BOOLEAN BOOL_AND BOOL_OR BTRIM BY CASE
    CAST CEIL CEILING CHAR CHARACTER_LENGTH CHAR_LENGTH COALESCE CONCAT CONCAT_WS COUNT CUME_DIST DATE_TRUNC DECIMAL
    DENSE_RANK DESC DISTINCT ELSE EVERY EXCEPT EXISTS EXTRACT FILTER FIRST_VALUE FLOOR FROM GREATEST GROUP HAVING IN
    INITCAP INNER INTERSECT INTERVAL IS JOIN JSONB_ARRAY_LENGTH LAG LAST_VALUE LATERAL LEAD LEAST LEFT LENGTH LIKE LN
    LOWER LPAD LTRIM MAX MD5 MIN MOD NOT NTH_VALUE NTILE NULLIF NUMERIC OCTET_LENGTH ON OR ORDER OVER PARTITION
    PERCENT_RANK POSITION POWER RANK REPEAT REPLACE REVERSE RIGHT ROUND ROW ROW_NUMBER RPAD RTRIM SELECT SIGN SOME
    SPLIT_PART SQRT SUBSTR SUBSTRING SUM THEN TO_CHAR TRIM TRUNC UNION UPPER USING VALUES VARCHAR WHEN WHERE
    WIDTH_BUCKET WITH WITHIN""".split()
)
"""Words before a parenthesis that call nothing, or a function that says the same of the same data."""
_COMMENT: Final = re.compile(rb"/\*|\*/")

Piece = tuple[str, bytes]


def is_repeatable(statement: bytes, readings: Iterable[re.Pattern[bytes]]) -> bool:
    """Whether a statement reads only, and says the same of the same data, however its dialect may be read.

    `readings`: the dialect's patterns; several where a setting decides what a literal is.
    """
    if len(statement) > MOST_OCTETS or b"\0" in statement:
        return False
    try:
        statement.decode()
    except UnicodeDecodeError:  # in another encoding an octet that looks like a quote may be a part of a letter
        return False
    return all(_may_be_repeated(statement, reading) for reading in readings)


class _Unclear(Exception):
    """There is a piece in the statement that may be anything."""


def _may_be_repeated(statement: bytes, reading: re.Pattern[bytes]) -> bool:
    words: set[bytes] = set()
    first, ended = b"", False
    before: Piece = ("", b"")
    before_that: Piece = ("", b"")
    try:
        for kind, text in _pieces(statement, reading):
            if ended and text != b";":
                return False  # another statement
            ended = ended or text == b";"
            word = text.upper() if kind == "word" else b""
            if word:
                words.add(word)
                if word in _FORBIDDEN or word.startswith(b"PG_"):
                    return False
            if text == b"(" and not _may_open(before, before_that):
                return False
            first = first or word or text
            before_that, before = before, (kind, text)
    except _Unclear:
        return False
    return first in _FIRST and (b"ORDER" in words or not words & _PARTS)


def _may_open(before: Piece, before_that: Piece) -> bool:
    """Whether a parenthesis behind these calls nothing that is not known."""
    kind, text = before
    if kind == "word":
        return text.upper() in BEFORE_PARENTHESIS and before_that[1] != b"."
    return kind in ("", "sign") and text != b"."


def _pieces(statement: bytes, reading: re.Pattern[bytes]) -> Iterator[Piece]:
    at, end = 0, len(statement)
    while at < end:
        found = reading.match(statement, at)
        if found is None:
            raise _Unclear
        at, kind = found.end(), found.lastgroup or ""
        if kind == "nested":
            at = _end_of_comment(statement, at)
        elif kind != "gap":
            yield kind, found[0]


def _end_of_comment(statement: bytes, at: int) -> int:
    depth = 1
    while depth:
        found = _COMMENT.search(statement, at)
        if found is None:
            raise _Unclear
        depth += 1 if found[0] == b"/*" else -1
        at = found.end()
    return at
