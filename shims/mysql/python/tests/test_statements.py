"""What statements may do: unsure means that they may write (spec SCOPE-14, SHIM-6)."""

from __future__ import annotations

import pytest
from antipode.shim.sql_octets import may_hold_pairs
from antipode_mysql.statements import Kind, classify
from hypothesis import assume, given
from hypothesis import strategies as st

READS = [
    "SELECT 1",
    "select body from posts where id = 'x;y'",
    "  -- a remark\n SELECT count(*), max(id) FROM posts",
    "(SELECT 1) UNION (SELECT 2)",
    "/* a remark */ SELECT coalesce(body, '') FROM posts WHERE id IN (1, 2) FOR UPDATE",
    "WITH x AS (SELECT 1) SELECT * FROM x",
    "SELECT 'write(me)' FROM posts WHERE note = \"INSERT INTO x; save(1)\"",
    "SHOW TABLES",
    "EXPLAIN SELECT 1",
    "DESCRIBE posts",
]
WRITES = [
    "INSERT INTO posts VALUES (1, 'x;y')",
    "insert into posts select * from drafts",
    "UPDATE posts SET body = 'x'",
    "DELETE FROM posts",
    "REPLACE INTO posts VALUES (1)",
    "INSERT INTO posts VALUES (1) RETURNING id",
    "CALL write_it()",
    "EXECUTE prepared",
    "LOAD DATA LOCAL INFILE 'x' INTO TABLE posts",
    "SELECT save_it(1)",
    "SELECT lab.save_it(1)",
    "SELECT `save_it`(1)",
    "SELECT NEXT VALUE FOR numbers",
    "SELECT nextval(numbers)",
    "SELECT 1; DELETE FROM posts",
    "/*! INSERT INTO posts VALUES (1) */",
    "BEGIN NOT ATOMIC INSERT INTO posts VALUES (1); END",
    "EXECUTE IMMEDIATE 'DELETE FROM posts'",
    "ANALYZE UPDATE posts SET body = 'x'",
    "CREATE TABLE x (i INT)",
    "CREATE TEMPORARY TABLE x (i INT)",
    "DROP TABLE x",
    "TRUNCATE posts",
    "XA COMMIT 'x'",
    "HANDLER posts OPEN",
    "DO save_it(1)",
    "SET @x = save_it(1)",
    "WITH x AS (SELECT 1) DELETE FROM posts",
]


def test_signs_that_are_halves_of_characters() -> None:
    """SHIM-6: in such a client's encoding a character's second octet may look like a backslash or a quote."""
    for text, encoding in (("表", "shift_jis"), ("チ", "shift_jis"), ("許", "big5"), ("乗", "gbk"), ("乗", "gb18030")):
        for statement in ("SELECT '{}', w('k')", "SELECT {}, w('k'), {} FROM posts", "SELECT {}('k')"):
            assert classify(statement.replace("{}", text).encode(encoding)).may_write
    assert not classify("SELECT `表`, 'チ' FROM `許` WHERE a = '[乗]'".encode()).may_write


@pytest.mark.parametrize("sql", READS)
def test_reads_change_nothing(sql: str) -> None:
    found = classify(sql.encode())
    assert found.kind is Kind.READ
    assert not found.may_write
    assert not found.packs


@pytest.mark.parametrize("sql", WRITES)
def test_what_may_write_is_held_to_do_so(sql: str) -> None:
    assert classify(sql.encode()).may_write


def test_a_compound_statement_may_write_where_a_text_holds_one_statement() -> None:
    assert classify(b"BEGIN NOT ATOMIC DELETE FROM posts; END", several=False).may_write


@pytest.mark.parametrize("sql", ["LOAD DATA LOCAL INFILE 'x' INTO TABLE t", "INSERT INTO t VALUES (1); LOAD DATA …"])
def test_no_question_goes_behind_what_may_ask_for_a_file(sql: str) -> None:
    assert not classify(sql.encode()).packs


@pytest.mark.parametrize(
    ("sql", "kind"),
    [
        ("COMMIT", Kind.COMMIT),
        ("commit and chain", Kind.COMMIT),
        ("ROLLBACK", Kind.ROLLBACK),
        ("ROLLBACK TO SAVEPOINT x", Kind.SETS),
        ("SAVEPOINT x", Kind.SETS),
        ("BEGIN", Kind.ENDS),
        ("START TRANSACTION READ ONLY", Kind.ENDS),
        ("SET autocommit = 1", Kind.ENDS),
        ("SET NAMES utf8mb4", Kind.SETS),
        ("USE lab", Kind.SETS),
    ],
)
def test_what_ends_a_transaction(sql: str, kind: Kind) -> None:
    assert classify(sql.encode()).kind is kind


@given(st.text(max_size=60))
def test_a_text_in_a_literal_decides_nothing(text: str) -> None:
    quoted = text.replace("\\", "\\\\").replace("'", "''")
    statement = f"SELECT '{quoted}' FROM posts".encode()
    assume(not may_hold_pairs(statement))  # a sign may be half of a character: such a text may write (SHIM-6)
    assert classify(statement).kind is Kind.READ
    found = classify(f"INSERT INTO posts VALUES ('{quoted}')".encode())
    assert found.kind is Kind.WRITE


@given(st.binary(max_size=80))
def test_anything_gets_an_answer(sql: bytes) -> None:
    classify(sql)
