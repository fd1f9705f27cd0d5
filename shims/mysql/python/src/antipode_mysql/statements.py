"""What a statement may do: whether it may write, whether it ends a transaction, whether a question may follow it.

Unsure means that it may write. A false alarm costs one question at the commit; a miss would lose a write.
"""

from __future__ import annotations

import re
from collections.abc import Iterator
from enum import Enum
from functools import lru_cache
from typing import Final, NamedTuple


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


_HEAD: Final = re.compile(rb"(?:\s+|--(?=\s)[^\n]*(?:\n|$)|#[^\n]*(?:\n|$)|/\*(?![!M])(?:.*?)\*/|\()*([A-Za-z]+)", re.S)
_INERT: Final = re.compile(
    rb"'(?:[^'\\]|\\.|'')*'|\"(?:[^\"\\]|\\.|\"\")*\"|`(?:[^`]|``)*`|--(?=\s)[^\n]*|#[^\n]*|/\*(?![!M]).*?\*/", re.S
)
_INERT_UNESCAPED: Final = re.compile(
    rb"'(?:[^']|'')*'|\"(?:[^\"]|\"\")*\"|`(?:[^`]|``)*`|--(?=\s)[^\n]*|#[^\n]*|/\*(?![!M]).*?\*/", re.S
)
"""With NO_BACKSLASH_ESCAPES in the session's `sql_mode`."""
_CALL: Final = re.compile(rb"([A-Za-z_][\w$]*)\s*\(")
_QUOTED_CALL: Final = re.compile(rb"`\s*\(|\.\s*[A-Za-z_][\w$]*\s*\(")
_SEVERAL: Final = re.compile(rb";\s*\S", re.S)
_WRITES_IN_READ: Final = re.compile(rb"\bNEXT\s+VALUE\s+FOR\b|\bINTO\s+(?:OUTFILE|DUMPFILE)\b|/\*[!M]", re.I)
_RETURNING: Final = re.compile(rb"\bRETURNING\b", re.I)
_CHANGES: Final = re.compile(rb"\b(?:INSERT|UPDATE|DELETE|REPLACE)\b", re.I)
_BEGINS: Final = re.compile(rb"\s*(?:BEGIN(?:\s+WORK)?\s*;?\s*$|START\s+TRANSACTION\b)", re.I)
_READS: Final = frozenset({b"SELECT", b"WITH", b"VALUES", b"TABLE"})
_HARMLESS: Final = frozenset({b"SHOW", b"DESCRIBE", b"DESC", b"EXPLAIN", b"HELP", b"CHECKSUM", b"KILL"})
_SESSION: Final = frozenset({b"USE", b"SAVEPOINT", b"RELEASE", b"DEALLOCATE", b"GET", b"SIGNAL", b"RESIGNAL"})
_DML: Final = frozenset({b"INSERT", b"UPDATE", b"DELETE", b"REPLACE"})
_DDL: Final = frozenset({b"CREATE", b"ALTER", b"DROP", b"TRUNCATE", b"RENAME", b"GRANT", b"REVOKE"})
_ADMINISTRATION: Final = frozenset(
    {b"ANALYZE", b"OPTIMIZE", b"REPAIR", b"CHECK", b"CACHE", b"FLUSH", b"RESET", b"LOCK"}
)
_SET_HARMLESS: Final = re.compile(
    rb"\s*SET\s+(?:NAMES\b|CHARACTER\s+SET\b|(?:(?:SESSION|LOCAL)\s+|@@(?:SESSION|LOCAL)\.)?"
    rb"(?:TRANSACTION\s+(?:ISOLATION|READ)\b|(?:sql_mode|time_zone|tx_isolation|transaction_isolation|"
    rb"innodb_lock_wait_timeout|lock_wait_timeout|net_\w+|wait_timeout|max_statement_time|character_set_\w+|"
    rb"collation_\w+|foreign_key_checks|unique_checks|sql_\w+|optimizer_\w+|group_concat_max_len)\s*:?=))[^(;]*;?\s*$",
    re.I,
)

# Functions of the server that change nothing, and words before a parenthesis that are no functions.
_KNOWN: Final = frozenset(
    b"""abs acos adddate addtime aes_decrypt aes_encrypt all and any as ascii asin atan atan2 avg benchmark between bin
    bin_to_uuid binary bit_and bit_count bit_length bit_or bit_xor by case cast ceil ceiling char char_length
    character_length charset chr coalesce coercibility collation column_check column_get concat concat_ws connection_id
    conv convert convert_tz cos cot count crc32 cume_dist curdate current_date current_time current_timestamp
    current_user curtime database date date_add date_format date_sub datediff day dayname dayofmonth dayofweek dayofyear
    decimal decode default degrees dense_rank distinct div elt else encode encrypt exists exp export_set extract
    extractvalue field find_in_set first_value floor for force format format_bytes found_rows from from_base64 from_days
    from_unixtime get_format get_lock greatest group group_concat having hex hour if ifnull ignore in index inet6_aton
    inet6_ntoa inet_aton inet_ntoa insert instr int intersect interval isnull is_free_lock is_ipv4 is_ipv6 is_used_lock
    join json_array json_arrayagg json_array_append json_array_insert json_compact json_contains json_contains_path
    json_depth json_detailed json_equals json_exists json_extract json_insert json_keys json_length json_loose
    json_merge json_merge_patch json_merge_preserve json_normalize json_object json_objectagg json_overlaps json_pretty
    json_query json_quote json_remove json_replace json_search json_set json_table json_type json_unquote json_valid
    json_value key lag last_day last_insert_id last_value lastval lcase lead least left length like limit ln localtime
    localtimestamp locate log log10 log2 lower lpad ltrim makedate maketime make_set max md5 median microsecond mid min
    minute mod month monthname natural_sort_key not now nth_value ntile nullif numeric nvl nvl2 oct octet_length offset
    old_password on or ord order over partition password percent_rank percentile_cont percentile_disc period_add
    period_diff pi position pow power quarter quote radians rand random_bytes rank regexp regexp_instr regexp_replace
    regexp_substr release_all_locks release_lock repeat replace reverse right rlike round row row_count row_number rpad
    rtrim schema second sec_to_time select session_user sha sha1 sha2 sign signed sin sleep some soundex space sqrt std
    stddev stddev_pop stddev_samp strcmp str_to_date subdate substr substring substring_index subtime sum sysdate
    system_user table tan then time timediff timestamp timestampadd timestampdiff time_format time_to_sec to_base64
    to_char to_days to_seconds trim trunc truncate ucase uncompress uncompressed_length unhex union unix_timestamp
    unsigned updatexml upper use user using utc_date utc_time utc_timestamp uuid uuid_short value values var_pop
    var_samp varchar variance version week weekday weekofyear weight_string when where window with within xor year
    yearweek except recursive master_gtid_wait binlog_gtid_pos""".split()
)


def classify(sql: bytes, *, several: bool = True) -> Statement:
    """What a statement may do. `several`: the connection lets one text hold several of them."""
    head = sql[:400]
    match = _HEAD.match(head)
    if match is None:
        return _UNSURE if sql.strip() else _NOTHING
    word = match.group(1).upper()
    found = _short(word, bytes(head)) if len(sql) <= 400 else _of_word(word, sql)
    if several and b";" in sql and any(_SEVERAL.search(inert.sub(b"''", sql)) for inert in _inert(sql)):
        return _UNSURE
    return found


# Of which tables

_NAME: Final = rb"(?:[\w$\x80-\xff]+|`(?:[^`]|``)+`)"
_TABLE: Final = rb"\s*(" + _NAME + rb"(?:\s*\.\s*" + _NAME + rb")*)"
_TABLES: Final = re.compile(
    rb"(?P<from>\bFROM\b)(?:"
    + _TABLE
    + rb")?|\b(?:JOIN|STRAIGHT_JOIN|TABLE|HANDLER)\b"
    + _TABLE
    + rb"|,(?="
    + _TABLE
    + rb")|[()]|`(?:[^`]|``)*`|\b(?P<end>SELECT|WHERE|GROUP|HAVING|WINDOW|ORDER|LIMIT|UNION|INTERSECT|EXCEPT|INTO"
    rb"|FOR\s+(?:UPDATE|SHARE))\b",
    re.I,
)
"""What names tables, and what begins and ends their list."""
_NO_TABLE: Final = re.compile(rb"\b(?:EXTRACT|SUBSTRING|SUBSTR|MID|TRIM)\s*\([^()]*\)", re.I)
_NAMED: Final = re.compile(rb"(?:\bWITH|\bRECURSIVE|,)\s+(" + _NAME + rb")\s*(?:\([^()]*\)\s*)?AS\s*\(", re.I)
_MAY_READ: Final = re.compile(rb"\b(?:SELECT|CALL|EXECUTE|TABLE|HANDLER|VALUES)\b", re.I)
_NO_READ: Final = _DML | _DDL | {b"SHOW", b"DESCRIBE", b"DESC", b"EXPLAIN", b"HELP", b"KILL", b"LOAD", b"LOCK"}
_NO_NAMES: Final = frozenset({b"dual", b"select", b"lateral", b"json_table"})
_UNNAMED: Final = ("",)
_MOST_TABLES: Final = 32


def tables_read(sql: bytes, *, several: bool = True) -> tuple[str, ...]:
    """The tables that a statement reads, by their names in it; an empty name where it has none, nothing where it reads
    no data; beyond 32 one empty name for the rest. What stands in literals is none of it. Of what writes, what it
    returns is no read."""
    match = _HEAD.match(sql[:400])
    if match is None:
        return ()
    statement, word = classify(sql, several=several), match.group(1).upper()
    if statement.kind is not Kind.READ and (statement.kind is not Kind.WRITE or statement.packs):
        return ()
    bodies = {inert.sub(_stand_in, sql) for inert in _inert(sql)}
    if len(bodies) > 1:  # it depends on a setting what is a literal
        return _UNNAMED
    [body] = bodies
    is_one = not (several and _SEVERAL.search(body))
    if (is_one and word in _NO_READ) or not _MAY_READ.search(body):
        return ()
    named = {name.lower() for name in _NAMED.findall(body)} | _NO_NAMES
    found = [name if b"`" in name else name.lower() for name in _tables(_NO_TABLE.sub(b" ", body))]
    tables = dict.fromkeys(name.replace(b"`", b"") for name in found if name.lower() not in named)
    if not tables:
        return _UNNAMED if statement.may_write or re.search(rb"\bFROM\s+(?!DUAL\b)", body, re.I) else ()
    told = tuple(name.decode("utf-8", "replace") for name in tables)
    return told if len(told) <= _MOST_TABLES else told[:_MOST_TABLES] + _UNNAMED


def _tables(body: bytes) -> Iterator[bytes]:
    lists = [False]  # between each two parentheses: whether FROM has begun a list of tables
    for found in _TABLES.finditer(body):
        if found[0] == b"(":
            lists.append(False)
        elif found[0] == b")" and len(lists) > 1:
            lists.pop()
        elif found["end"]:
            lists[-1] = False
        elif found["from"]:
            lists[-1] = True
        table = found[2] or found[3] or (lists[-1] and found[4])
        if table:
            yield table


def _stand_in(found: re.Match[bytes]) -> bytes:
    token = found[0]
    if token.startswith(b"`"):
        return token
    return b"''" if token.startswith((b"'", b'"')) else b" "


@lru_cache(maxsize=2048)
def _short(word: bytes, sql: bytes) -> Statement:
    return _of_word(word, sql)


def _of_word(word: bytes, sql: bytes) -> Statement:
    if word in _DML:
        return _RETURNS if _RETURNING.search(sql) else _WRITE
    if word in _READS:
        changes = word == b"WITH" and _CHANGES.search(sql)
        return _READ if not changes and _only_reads(sql) else _UNSURE
    if word == b"COMMIT":
        return _COMMIT
    if word == b"ROLLBACK":
        return _ROLLBACK_TO if re.search(rb"\bTO\b", sql, re.I) else _ROLLBACK
    if word in (b"BEGIN", b"START"):
        return _BEGIN if _BEGINS.match(sql) else _UNSURE
    if word in _DDL:
        return _TEMPORARY if re.search(rb"\bTEMPORARY\b", sql[:200], re.I) else _DEFINES
    if word == b"SET":
        if _SET_HARMLESS.match(sql):
            return _SETS
        return _SETS_UNSURE if _only_reads(sql) else _ENDS_UNSURE
    if word in _HARMLESS:
        return _READ if b"/*!" not in sql and word not in (b"EXPLAIN", b"DESC") else _explained(sql)
    if word in _SESSION:
        return _SETS
    if word in _ADMINISTRATION or word == b"UNLOCK":
        return _ENDS_UNSURE
    return _UNSURE


def _explained(sql: bytes) -> Statement:
    # EXPLAIN of an ANALYZE runs the statement; in MariaDB ANALYZE is a word of its own, FORMAT=JSON too.
    return _READ if not re.search(rb"\bANALYZE\b", sql, re.I) else _UNSURE


def _only_reads(sql: bytes) -> bool:
    if _WRITES_IN_READ.search(sql):
        return False
    if not (b"'" in sql or b'"' in sql or b"`" in sql or b"--" in sql or b"#" in sql or b"/*" in sql):
        return _bare_only_reads(sql)
    return all(_bare_only_reads(inert.sub(b"``", sql)) for inert in _inert(sql))


def _inert(sql: bytes) -> tuple[re.Pattern[bytes], ...]:
    """How literals may be read: what a backslash means in them is a setting."""
    return (_INERT, _INERT_UNESCAPED) if b"\\" in sql else (_INERT,)


def _bare_only_reads(bare: bytes) -> bool:
    if b"(" not in bare:
        return True
    if _QUOTED_CALL.search(bare):
        return _only_known(bare, quoted=True)
    return _only_known(bare, quoted=False)


def _only_known(bare: bytes, *, quoted: bool) -> bool:
    if quoted and re.search(rb"\.\s*[A-Za-z_][\w$]*\s*\(", bare):
        return False  # database.function( ): a stored one
    if quoted and re.search(rb"``\s*\(", bare) and not re.search(rb"\b(?:AS|WITH|RECURSIVE|,)\s*``\s*\(", bare, re.I):
        return False
    return all(name.lower() in _KNOWN for name in _CALL.findall(bare))


_NOTHING: Final = Statement(Kind.READ, False, False)
_READ: Final = Statement(Kind.READ, False, False)
_WRITE: Final = Statement(Kind.WRITE, True, True)
_RETURNS: Final = Statement(Kind.WRITE, True, False)
_UNSURE: Final = Statement(Kind.WRITE, True, False)
_COMMIT: Final = Statement(Kind.COMMIT, False, True)
_ROLLBACK: Final = Statement(Kind.ROLLBACK, False, True)
_ROLLBACK_TO: Final = Statement(Kind.SETS, False, True)
_BEGIN: Final = Statement(Kind.ENDS, False, True)
_DEFINES: Final = Statement(Kind.ENDS, True, True)
_TEMPORARY: Final = Statement(Kind.WRITE, True, True)
_SETS: Final = Statement(Kind.SETS, False, False)
_SETS_UNSURE: Final = Statement(Kind.ENDS, False, False)
_ENDS_UNSURE: Final = Statement(Kind.ENDS, True, False)
