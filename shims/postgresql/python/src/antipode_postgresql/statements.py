"""What a statement may do, by its text: whether it writes, and whether it ends a transaction.

Where the text does not say, it may write (`MAYBE`), and the server is asked whether it did: a guess may cost a
question, but never a write.
"""

from __future__ import annotations

import re
from enum import Enum
from functools import lru_cache
from typing import Final

from antipode.shim.sql_octets import may_hold_pairs


class Kind(Enum):
    """What becomes of data by a statement."""

    READ = "read"
    SESSION = "session"
    """SET, RESET, DISCARD, ROLLBACK TO: no data, but what the transaction's settings are."""
    WRITE = "write"
    """One INSERT, UPDATE, DELETE or MERGE: in autocommit mode its position can be asked for in the same packet."""
    MAYBE = "maybe"
    """A function, a procedure, DDL, several statements: whatever it is, it may write."""
    COMMIT = "commit"
    ROLLBACK = "rollback"
    PREPARE = "prepare"
    """PREPARE TRANSACTION: the transaction is not over, though the connection is free."""
    END_PREPARED = "end prepared"
    """COMMIT PREPARED, ROLLBACK PREPARED."""


# What a text holds that is no word of it: comments, and literals, in which a comment's sign is none. Names in quotes
# are read with them, because a quote may stand in them, and stay.
_TOKENS: Final = (
    r"--[^\n\r]*|/\*.*?\*/|\"(?:[^\"]|\"\")*\"|\b[eE]'(?:[^'\\]|\\.|'')*'|{literal}"
    r"|(?<![\w$\x80-\xff])\$([A-Za-z_\x80-\xff][\w\x80-\xff]*|)\$.*?\$\1\$"
)
_INERT: Final = re.compile(_TOKENS.format(literal="'(?:[^']|'')*'").encode("latin-1"), re.DOTALL)
_INERT_ESCAPED: Final = re.compile(_TOKENS.format(literal=r"'(?:[^'\\]|\\.|'')*'").encode("latin-1"), re.DOTALL)
"""With `standard_conforming_strings = off`."""
_UNCLEAR_DOLLARS: Final = re.compile(rb"\d\$")
"""A word ends behind it, or a literal begins behind the number."""
_FIRST: Final = re.compile(rb"[\s(]*([A-Za-z]+)")
_CALLED: Final = re.compile(rb'(?<![A-Za-z_0-9$."\x80-\xff])([A-Za-z_0-9$."\x80-\xff]+)\s*\(')
_WORD: Final = re.compile(rb"[A-Za-z_]+")
_RETURNS: Final = re.compile(rb"(?i)returning|\bwith\b|\bselect\b")
_DATA: Final = re.compile(rb"(?i)(?<![a-z_])(?:from|table|copy)\b")
_MAY_SHOW: Final = re.compile(rb"(?i)(?<![a-z_])(?:select|values|call|execute|do|copy|from|with|table|explain)\b")
_COPIES_IN: Final = re.compile(rb"(?i)\s*copy\b[^(]*(?:\([^()]*\)[^()]*)?\bfrom\b")
_SHOWS_NONE: Final = frozenset(
    b"fetch move close create alter drop truncate lock grant revoke comment vacuum analyze reindex cluster refresh "
    b"insert update delete merge prepare import security reassign".split()
)
"""What gives no data of the tables that it names, or what the query of its cursor has said."""
_CHANGES: Final = frozenset({b"insert", b"update", b"delete", b"merge"})
_READS: Final = frozenset(
    b"show values table fetch move close declare listen unlisten deallocate prepare lock begin start savepoint release "
    b"checkpoint notify".split()
)
_SPELLED: Final = re.compile(rb"(?i)\bu&\"")
"""A name that is spelled by numbers of letters: nobody finds in it what may write."""
_SETS: Final = frozenset({b"set", b"reset", b"discard"})
_ROLLBACK_PART: Final = re.compile(rb"(?i)\s*(?:rollback|abort)\b.*\bto\b", re.DOTALL)
_PREPARED: Final = re.compile(rb"(?i)\s*(?:commit|rollback)\s+prepared\b")
_TWO_PHASE: Final = re.compile(rb"(?i)\s*prepare\s+transaction\b")
_TRANSACTION: Final = re.compile(
    rb"(?i)\s*(?:prepare\s+transaction|(?:commit|rollback)\s+prepared)\s+('(?:[^'\\]|'')*')[\s;]*\Z"
)
_PREPARES: Final = re.compile(rb"(?i)\bprepare\b.*\btransaction\b", re.DOTALL)
_COMMITS: Final = re.compile(rb"(?i)\b(?:commit|end|prepare)\b")
_HELD: Final = re.compile(rb"(?i)\bwith\s+hold\b")
_CHAIN: Final = re.compile(rb"(?i)\band\s+chain\b")
# What stands before a parenthesis in a plain query, and changes nothing.
HARMLESS: Final = frozenset(
    b"copy "
    b"select from where in and or not exists any all some as on using values with over by having when then else case "
    b"count sum min max avg coalesce nullif greatest least lower upper length substr substring trim left right replace "
    b"concat concat_ws now current_timestamp clock_timestamp date_trunc extract to_char to_date to_timestamp cast "
    b"array array_agg string_agg json_agg jsonb_agg json_build_object jsonb_build_object row_to_json to_json to_jsonb "
    b"jsonb_array_elements unnest generate_series row_number rank dense_rank lag lead abs round floor ceil ceiling mod "
    b"random md5 encode decode position strpos split_part regexp_replace regexp_matches bool_and bool_or exists "
    b"current_setting version current_database current_schema pg_is_in_recovery pg_sleep pg_backend_pid to_regclass "
    b"varchar numeric char decimal bit timestamp time interval union except intersect limit offset distinct filter "
    b"within group lateral join inner outer full cross format quote_literal quote_ident pg_typeof age date_part".split()
)


class _NestedComment(Exception):
    """A comment begins in a comment: where the outer one ends is not looked for."""


def _stand_in(found: re.Match[bytes]) -> bytes:
    token = found[0]
    if token.startswith(b"/*") and b"/*" in token[2:]:
        raise _NestedComment
    if token.startswith(b'"'):
        return token
    return b" " if token.startswith((b"--", b"/*")) else b"''"


def bare(text: bytes, inert: re.Pattern[bytes] = _INERT) -> bytes | None:
    """Return a text without comments and with empty literals; None where a comment begins in a comment."""
    try:
        return inert.sub(_stand_in, text)
    except _NestedComment:
        return None


@lru_cache(maxsize=2048)
def _classify(text: bytes) -> Kind:
    if may_hold_pairs(text):
        return Kind.MAYBE
    try:
        kind = _kind_of(_INERT.sub(_stand_in, text))
        if b"\\" in text and _kind_of(_INERT_ESCAPED.sub(_stand_in, text)) is not kind:
            return Kind.MAYBE  # it depends on a setting
    except _NestedComment:
        return Kind.MAYBE
    return kind


def _kind_of(text: bytes) -> Kind:
    if b"$" in text and _UNCLEAR_DOLLARS.search(text):
        return Kind.MAYBE
    body = text.strip().rstrip(b";").rstrip()
    match = _FIRST.match(body)
    if match is None:
        return Kind.READ if not body else Kind.MAYBE
    first = match[1].lower()
    if b";" in body:
        return Kind.MAYBE
    if first in (b"commit", b"end", b"rollback", b"abort"):
        return _ending(first, body)
    if first in _CHANGES:
        return Kind.WRITE
    if first == b"prepare" and _TWO_PHASE.match(body):
        return Kind.PREPARE
    if first == b"copy":
        out = re.search(rb"(?i)\bto\b", body) and not re.search(rb"(?i)\bfrom\s+(stdin|program|')", body)
        return _query(first, body) if out else Kind.MAYBE
    if first in (b"select", b"with", b"explain", b"values", b"table", b"declare"):
        return _query(first, body)
    if first in _SETS:
        return Kind.SESSION
    return Kind.READ if first in _READS else Kind.MAYBE


def _ending(first: bytes, body: bytes) -> Kind:
    if _PREPARED.match(body):
        return Kind.END_PREPARED
    if _CHAIN.search(body):
        return Kind.MAYBE
    if first in (b"commit", b"end"):
        return Kind.COMMIT
    return Kind.SESSION if _ROLLBACK_PART.match(body) else Kind.ROLLBACK


def _query(first: bytes, body: bytes) -> Kind:
    if b"&" in body and _SPELLED.search(body):
        return Kind.MAYBE
    words = {word.lower() for word in _WORD.findall(body)}
    if words & _CHANGES and first != b"select":
        return Kind.WRITE if first == b"with" else Kind.MAYBE
    if words & {b"into", b"execute", b"analyze"} and first in (b"select", b"with", b"explain"):
        return Kind.MAYBE
    for called in _CALLED.findall(body):
        # A name with a schema, or in quotes, may be the application's own function of that name.
        if called.lower() not in HARMLESS:
            return Kind.MAYBE
    return Kind.READ


def may_read(text: bytes) -> bool:
    """Return whether a statement may return data, or depend on them; it may write, too (SHIM-43, SHIM-44)."""
    kind = classify(text)
    returns = kind is Kind.WRITE and _RETURNS.search(text) is not None
    return kind is Kind.READ or kind is Kind.MAYBE or returns


def is_noted(text: bytes) -> bool:
    """Return whether a recorded history is told of a statement as a read: it may show data (HIST-36).

    Of what writes, what it returns is no read.
    """
    kind = classify(text)
    if kind not in (Kind.READ, Kind.MAYBE):
        return False
    words = _DATA if kind is Kind.READ else _MAY_SHOW
    readings = (_INERT, _INERT_ESCAPED) if b"\\" in text else (_INERT,)
    return any(_shows_any(bare(text, inert), words) for inert in readings)


def _shows_any(body: bytes | None, words: re.Pattern[bytes]) -> bool:
    return body is None or any(_shows(each, words) for each in body.split(b";"))


def _shows(statement: bytes, words: re.Pattern[bytes]) -> bool:
    first = _FIRST.match(statement)
    if words.search(statement) is None or (first is not None and first[1].lower() in _SHOWS_NONE):
        return False
    return _COPIES_IN.match(statement) is None


def is_held(text: bytes) -> bool:
    """Return whether a text may declare a cursor whose query the commit runs."""
    return _HELD.search(text) is not None


def may_commit_within(text: bytes) -> bool:
    """Return whether a text that may write may commit, and leave a transaction open: several statements, AND CHAIN."""
    several = b";" in text.rstrip().rstrip(b";") or b"chain" in text.lower()
    return several and _COMMITS.search(text) is not None


def classify(text: bytes) -> Kind:
    """What a statement may do. Long ones are not remembered."""
    return _classify(text) if len(text) < 4096 else _classify.__wrapped__(text)


def may_prepare(text: bytes) -> bool:
    """Return whether a text of several statements may prepare a transaction, which is committed later, if ever."""
    return _PREPARES.search(text) is not None


def prepared_name(text: bytes) -> bytes:
    """Return the literal that names the transaction which this text prepares or ends; empty where that is unsure."""
    found = _TRANSACTION.match(text)
    return found[1] if found else b""
