"""What a statement may do: whether it may write, whether it ends a transaction, whether a question may follow it.

Unsure means that it may write. A false alarm costs one question at the commit; a miss would lose a write.
"""

from __future__ import annotations

import re
from enum import Enum
from functools import lru_cache
from typing import Final, NamedTuple

from antipode.shim.sql_octets import may_hold_pairs


class Kind(Enum):
    """What a statement is, as far as a transaction is concerned."""

    READ = "read"
    """Changes nothing."""
    WRITE = "write"
    """Changes data, inside the transaction that it is part of."""
    ENDS = "ends"
    """Ends the transaction before it by committing it, and may write itself (DDL, BEGIN, SET autocommit)."""
    COMMIT = "commit"
    ROLLBACK = "rollback"
    SETS = "sets"
    """Changes the session only."""


class Statement(NamedTuple):
    """A statement, classified."""

    kind: Kind
    may_write: bool
    packs: bool
    """Whether the server answers it by one OK, so that a question may be sent behind it at once. Never where the
    server may ask for a file: it would take the question for the file's content."""
    may_read: bool = False
    """Whether what comes back may be data: then it waits where reads wait (SHIM-44)."""
    may_commit: bool = False
    """Whether it may commit the transaction that it is part of, and begin another one (SCOPE-25): a procedure may, a
    stored function may not."""
    comes_later: bool = False
    """Whether the server may do it some time behind its answer, so that nobody knows what became of it."""


_SINGLE: Final = rb"'(?:[^'\\]|\\.|'')*'"
_SINGLE_PLAIN: Final = rb"'(?:[^']|'')*'"
_DOUBLE: Final = rb'"(?:[^"\\]|\\.|"")*"'
_DOUBLE_PLAIN: Final = rb'"(?:[^"]|"")*"'
_REMARK: Final = rb"--(?=[\s\x00-\x1f\x7f]|$)[^\n]*|#[^\n]*|/\*(?!!|M!).*?\*/"


def _inert(single: bytes, double: bytes) -> re.Pattern[bytes]:
    return re.compile(b"|".join((single, double, rb"`(?:[^`]|``)*`", _REMARK)), re.S)


_READINGS: Final = (_inert(_SINGLE, _DOUBLE), _inert(_SINGLE, _DOUBLE_PLAIN), _inert(_SINGLE_PLAIN, _DOUBLE_PLAIN))
"""What does nothing in a text: as the session is at first; with ANSI_QUOTES, and with NO_BACKSLASH_ESCAPES in its
`sql_mode`. They differ where there is a backslash."""
GAP: Final = rb"(?:\s|" + _REMARK + rb")"
_HEAD: Final = re.compile(rb"(?:" + GAP + rb"|\()*([A-Za-z_]\w*)", re.S)
_WORD: Final = re.compile(rb"[\s(]*([A-Za-z_]\w*)")
"""Of a text without remarks."""
_LATER: Final = re.compile(GAP + rb"+DELAYED\b", re.I | re.S)
_CALL: Final = re.compile(rb"([\w$\x80-\xff]+)(\s*)\(")
_CALL_OF_OTHERS: Final = re.compile(rb"['`]\s*\(|\.\s*[\w$\x80-\xff]+\s*\(")
"""Of a quoted name, or one in a database: a stored function, or a list of columns."""
_SEVERAL: Final = re.compile(rb";\s*\S", re.S)
_WRITES_IN_READ: Final = re.compile(rb"\bNEXT\s+VALUE\s+FOR\b|\.\s*NEXTVAL\b|\bINTO\s+(?:OUTFILE|DUMPFILE)\b", re.I)
_RETURNING: Final = re.compile(rb"\bRETURNING\b", re.I)
_CHANGES: Final = re.compile(rb"\b(?:UPDATE|DELETE|(?:INSERT|REPLACE)(?!\s*\())\b", re.I)
_NAMES_DATA: Final = re.compile(rb"\b(?:FROM|TABLE|JOIN)\b", re.I)
_BEGINS: Final = re.compile(rb"\s*(?:BEGIN(?:\s+WORK)?\s*;?\s*$|START\s+TRANSACTION\b)", re.I)
_READS: Final = frozenset({b"SELECT", b"WITH", b"VALUES", b"TABLE", b"DO"})
_HARMLESS: Final = frozenset({b"SHOW", b"DESCRIBE", b"DESC", b"EXPLAIN", b"HELP", b"CHECKSUM", b"KILL"})
_SHOWS_NO_DATA: Final = re.compile(
    rb"\s*(?:KILL\b|HELP\b|SHOW\s+(?:(?:GLOBAL|SESSION|LOCAL|FULL|COUNT\s*\(\s*\*\s*\))\s+)?"
    rb"(?:WARNINGS|ERRORS|VARIABLES|STATUS|PROCESSLIST|ENGINES|PLUGINS|CHARACTER\s+SET|CHARSET|COLLATION|PRIVILEGES|"
    rb"BINARY\s+LOG|MASTER|SLAVE|ALL\s+SLAVES|REPLICA)\b)(?!.*\b(?:SELECT|TABLE)\b)",
    re.I | re.S,
)
"""They say something of the session or the server alone. A wait before SHOW WARNINGS would also take the warnings."""
_SESSION: Final = frozenset(
    {b"USE", b"SAVEPOINT", b"RELEASE", b"PREPARE", b"DEALLOCATE", b"GET", b"SIGNAL", b"RESIGNAL"}
)
_DML: Final = frozenset({b"INSERT", b"UPDATE", b"DELETE", b"REPLACE"})
_DDL: Final = frozenset({b"CREATE", b"ALTER", b"DROP", b"TRUNCATE", b"RENAME", b"GRANT", b"REVOKE"})
_TELLS: Final = frozenset({b"ANALYZE", b"OPTIMIZE", b"REPAIR", b"CHECK"})
_ADMINISTRATION: Final = frozenset({b"CACHE", b"FLUSH", b"RESET", b"LOCK", b"UNLOCK"})
_SET_HARMLESS: Final = re.compile(
    rb"\s*SET\s+(?:NAMES\b|CHARACTER\s+SET\b|(?:(?:SESSION|LOCAL)\s+|@@(?:SESSION|LOCAL)\.)?"
    rb"(?:TRANSACTION\s+(?:ISOLATION|READ)\b|(?:sql_mode|time_zone|tx_isolation|transaction_isolation|"
    rb"innodb_lock_wait_timeout|lock_wait_timeout|net_\w+|wait_timeout|max_statement_time|character_set_\w+|"
    rb"collation_\w+|foreign_key_checks|unique_checks|sql_\w+|optimizer_\w+|group_concat_max_len)\s*:?=))[^(;]*;?\s*$",
    re.I,
)
_SET_VARIABLES: Final = re.compile(
    rb"\s*SET\s+(?:(?:GLOBAL|SESSION|LOCAL)\s+)?(?:@|[\w$.]+\s*:?=|TRANSACTION\b|ROLE\b)(?!.*\bPASSWORD\b)", re.I | re.S
)

# Functions that change nothing, of both kinds of server since their oldest release that is supported: the name of any
# other may be a stored function's. And words before a parenthesis that are no functions.
_KNOWN: Final = frozenset(
    b"""abs acos adddate addtime aes_decrypt aes_encrypt all and any as ascii asin atan atan2 avg benchmark between
    bin binary bit_and bit_count bit_length bit_or bit_xor by case cast ceil ceiling char char_length
    character_length charset coalesce coercibility collation compress concat concat_ws connection_id conv convert
    convert_tz cos cot count crc32 cume_dist curdate current_date current_time current_timestamp current_user
    curtime database date date_add date_format date_sub datediff day dayname dayofmonth dayofweek dayofyear decimal
    default degrees dense_rank distinct div else elt exists exp export_set extract extractvalue field find_in_set
    first_value floor for force format found_rows from from_base64 from_days from_unixtime geometrycollection
    get_format get_lock greatest group group_concat having hex hour if ifnull ignore in index inet6_aton inet6_ntoa
    inet_aton inet_ntoa insert instr int interval is_free_lock is_ipv4 is_ipv6 is_used_lock isnull join json_array
    json_array_append json_array_insert json_contains json_contains_path json_depth json_extract json_insert
    json_keys json_length json_merge json_merge_patch json_merge_preserve json_object json_quote json_remove
    json_replace json_search json_set json_type json_unquote json_valid key lag last_day last_insert_id last_value
    lcase lead least left length like limit linestring ln localtime localtimestamp locate log log10 log2 lower lpad
    ltrim make_set makedate maketime max mbrcontains mbrintersects mbrwithin microsecond mid min minute mod month
    monthname multipoint name_const not now nth_value ntile nullif numeric oct octet_length offset on or ord order
    over partition percent_rank period_add period_diff pi polygon position pow power quarter quote radians rand rank
    recursive regexp regexp_instr regexp_replace regexp_substr release_all_locks release_lock repeat replace reverse
    right rlike round row row_count row_number rpad rtrim schema sec_to_time second select session_user sha2 sign
    signed sin sleep some soundex space sqrt st_area st_asbinary st_asgeojson st_astext st_aswkb st_aswkt st_buffer
    st_centroid st_contains st_convexhull st_crosses st_difference st_dimension st_disjoint st_distance st_endpoint
    st_envelope st_equals st_geometrytype st_geomfromgeojson st_geomfromtext st_geomfromwkb st_intersection
    st_intersects st_isempty st_issimple st_length st_numpoints st_overlaps st_pointn st_srid st_startpoint
    st_symdifference st_touches st_union st_within st_x st_y std stddev stddev_pop stddev_samp str_to_date strcmp
    subdate substr substring substring_index subtime sum sysdate system_user table tan then time time_format
    time_to_sec timediff timestamp timestampadd timestampdiff to_base64 to_days to_seconds trim truncate ucase
    uncompress uncompressed_length unhex union unix_timestamp unsigned updatexml upper use user using utc_date
    utc_time utc_timestamp uuid uuid_short value values var_pop var_samp varchar variance version week weekday
    weekofyear weight_string when where window with xor year yearweek""".split()
)


_TIGHT: Final = frozenset(
    b"""adddate bit_and bit_or bit_xor cast count cume_dist curdate curtime date_add date_sub dense_rank extract
    first_value group_concat lag lead max mid min now nth_value ntile percent_rank position rank session_user std
    stddev stddev_pop stddev_samp subdate substr substring sum sysdate system_user trim var_pop var_samp
    variance""".split()
)
"""With a gap before the parenthesis the name may be a stored function's."""


def classify(sql: bytes, *, several: bool = True) -> Statement:
    """Return what a statement may do. `several`: the connection lets one text hold several of them."""
    return _short(bytes(sql), several) if len(sql) <= 400 else _classified(sql, several)


def _bodies(sql: bytes) -> set[bytes]:
    """Return the text without literals and remarks, in each way that a server may read it."""
    return {reading.sub(_bare, sql) for reading in (_READINGS if b"\\" in sql else _READINGS[:1])}


def _bare(found: re.Match[bytes]) -> bytes:
    return {b"'": b"''", b'"': b"''", b"`": b"``"}.get(found[0][:1], b" ")


def _classified(sql: bytes, several: bool) -> Statement:
    head = _HEAD.match(sql[:400])
    if head is not None and head[1].upper() in _DML and not (several and b";" in sql):
        if _LATER.match(sql, head.end()):
            return _DELAYED
        return _RETURNS if _RETURNING.search(sql) else _WRITE
    if may_hold_pairs(sql):
        return _UNSURE
    found = {_of_body(body, several) for body in _bodies(sql)}
    return found.pop() if len(found) == 1 else _UNSURE


@lru_cache(maxsize=2048)
def _short(sql: bytes, several: bool) -> Statement:
    return _classified(sql, several)


def _of_body(body: bytes, several: bool) -> Statement:
    match = _WORD.match(body)
    if match is None:
        return _UNSURE if body.strip() else _ASKS
    if b"/*" in body or (several and _SEVERAL.search(body)):  # what the server may run, or several statements
        return _UNSURE
    word = match[1].upper()
    if word in _DML:
        if _LATER.match(body, match.end()):
            return _DELAYED
        return _RETURNS if _RETURNING.search(body) else _WRITE
    if word in (b"BEGIN", b"START"):
        return _BEGIN if _BEGINS.match(body) else _UNSURE
    if word == b"SET":
        return _of_set(body)
    if word in _WORDS:
        return _WORDS[word]
    if word in _READS or word in _HARMLESS or word in _SESSION:
        return _of_read(word, body)
    if word == b"COMMIT":
        return _COMMIT
    if word == b"ROLLBACK":
        return _ROLLBACK_TO if re.search(rb"\bTO\b", body, re.I) else _ROLLBACK
    if word in _DDL:
        return _TEMPORARY if re.search(rb"\bTEMPORARY\b", body[:200], re.I) else _DEFINES
    return _UNSURE


def _of_read(word: bytes, body: bytes) -> Statement:
    changes = (word == b"WITH" and _CHANGES.search(body)) or (
        word in (b"EXPLAIN", b"DESC", b"DESCRIBE") and re.search(rb"\bANALYZE\b", body, re.I)  # which runs it
    )
    if changes or not _only_reads(body):
        return _CALLS
    if word in _SESSION:
        return _SETS
    if word in _READS:
        return _READ if word == b"TABLE" or _NAMES_DATA.search(body) else _ASKS
    return _ASKS if _SHOWS_NO_DATA.match(body) else _READ


def _of_set(body: bytes) -> Statement:
    if _SET_HARMLESS.match(body):
        return _SETS
    if not _SET_VARIABLES.match(body):  # SET STATEMENT … FOR, SET PASSWORD
        return _UNSURE
    if not _only_reads(body):
        return _SETS_WRITES
    return _SETS_READS if _NAMES_DATA.search(body) else _SETS_UNSURE


def _only_reads(body: bytes) -> bool:
    if _WRITES_IN_READ.search(body):
        return False
    if b"(" not in body:
        return True
    if _CALL_OF_OTHERS.search(body):
        return False
    return all(name.lower() in _KNOWN and not (gap and name.lower() in _TIGHT) for name, gap in _CALL.findall(body))


_ASKS: Final = Statement(Kind.READ, False, False)
_READ: Final = Statement(Kind.READ, False, False, may_read=True)
_WRITE: Final = Statement(Kind.WRITE, True, True)
_RETURNS: Final = Statement(Kind.WRITE, True, False, may_read=True)
_CALLS: Final = Statement(Kind.WRITE, True, False, may_read=True)
_UNSURE: Final = Statement(Kind.WRITE, True, False, may_read=True, may_commit=True)
_DELAYED: Final = Statement(Kind.WRITE, True, False, comes_later=True)
_LOADS: Final = Statement(Kind.WRITE, True, False)
_PART_OF_XA: Final = Statement(Kind.WRITE, True, False, may_commit=True)
_COMMIT: Final = Statement(Kind.COMMIT, False, True)
_ROLLBACK: Final = Statement(Kind.ROLLBACK, False, True)
_ROLLBACK_TO: Final = Statement(Kind.SETS, False, True)
_BEGIN: Final = Statement(Kind.ENDS, False, True)
_DEFINES: Final = Statement(Kind.ENDS, True, True)
_TEMPORARY: Final = Statement(Kind.WRITE, True, True)
_SETS: Final = Statement(Kind.SETS, False, False)
_SETS_UNSURE: Final = Statement(Kind.ENDS, False, False)
_SETS_READS: Final = Statement(Kind.ENDS, False, False, may_read=True)
_SETS_WRITES: Final = Statement(Kind.ENDS, True, False, may_read=True)
_ENDS_UNSURE: Final = Statement(Kind.ENDS, True, False)
_WORDS: Final = {
    b"LOAD": _LOADS,
    b"HANDLER": _CALLS,
    b"XA": _PART_OF_XA,
    **dict.fromkeys(_ADMINISTRATION, _ENDS_UNSURE),
    **dict.fromkeys(_TELLS, _SETS_WRITES),
}

_MAY_SHOW: Final = re.compile(rb"\b(?:SELECT|CALL|EXECUTE|TABLE|HANDLER|VALUES)\b", re.I)
_DATA: Final = re.compile(rb"\bFROM\b(?!\s+DUAL\b)|\b(?:TABLE|JOIN)\b", re.I)
_SHOWS_NONE: Final = _DML | _DDL | {b"SHOW", b"DESCRIBE", b"DESC", b"EXPLAIN", b"HELP", b"KILL", b"LOAD", b"LOCK"}


def is_noted(sql: bytes, *, several: bool = True) -> bool:
    """Return whether a recorded history is told of a statement as a read: it may show data (HIST-36).

    Of what writes, what it returns is no read.
    """
    match = _HEAD.match(sql[:400])
    statement = classify(sql, several=several)
    if match is None or not statement.may_read:
        return False
    found = _bodies(sql)
    if len(found) > 1:  # it depends on a setting what is a literal
        return True
    [body] = found
    is_one = not (several and _SEVERAL.search(body))
    if (is_one and match[1].upper() in _SHOWS_NONE) or not _MAY_SHOW.search(body):
        return False
    return statement.may_write or _DATA.search(body) is not None
