"""Tables, procedures and statements for the tests of writes."""

from __future__ import annotations

from contextlib import closing
from typing import Any

from antipode_lab.stores._sql_store import SqlStore

INSERT = "INSERT INTO things (v) VALUES ('x')"


def make_things(lab: SqlStore) -> None:
    """What the statements of these tests write to, where it is not there yet."""
    lab.run(
        "a",
        "CREATE TABLE IF NOT EXISTS things (i INT AUTO_INCREMENT PRIMARY KEY, v VARCHAR(20))",
        "CREATE TABLE IF NOT EXISTS plain (i INT) ENGINE=MyISAM",
        "CREATE TABLE IF NOT EXISTS once (i INT PRIMARY KEY)",
        "CREATE PROCEDURE IF NOT EXISTS put_one() INSERT INTO things (v) VALUES ('p')",
        "CREATE PROCEDURE IF NOT EXISTS put_two() BEGIN INSERT INTO things (v) VALUES ('p'); SELECT 1; SELECT 2; END",
        "CREATE FUNCTION IF NOT EXISTS save_one() RETURNS INT NOT DETERMINISTIC MODIFIES SQL DATA BEGIN "
        "INSERT INTO things (v) VALUES ('f'); RETURN 1; END",
    )


def run(client: Any, *statements: str, words: Any = None) -> list[Any]:
    """Executes statements by one cursor; the last one's rows."""
    with closing(client.cursor()) as cursor:
        rows: list[Any] = []
        for statement in statements:
            cursor.execute(statement, words)
            rows = list(cursor.fetchall()) if cursor.description else []
        return rows
