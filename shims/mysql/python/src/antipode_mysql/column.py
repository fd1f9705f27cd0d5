"""Lineages beside rows: a column that triggers fill from a variable of the session (mode `rest="native"`).

The application's statements stay as they are. Before a statement that may write, the shim sets the session's variable
to the scope's lineage, in the same packet; the row and its lineage are written by one statement. An update keeps what
rested there, too: the columns that it leaves alone still depend on that.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Final

from antipode import EMPTY, Lineage
from antipode.shim import text_at_rest

NAME: Final = "antipode_lineage"
"""The column's name, and the session variable's."""
THERE: Final = 1060
"""The error's number where the table has the column already; MySQL has no way to say that this is all right."""
_MOST: Final = 3000
"""A longer one is marked incomplete instead of growing on."""


def statements(table: str) -> list[str]:
    """What adds the column and its triggers to a table. May be run again: `THERE` is no trouble then."""
    database, _, plain = table.rpartition(".")
    place = f"`{database}`.`{plain}`" if database else f"`{plain}`"
    prefix = f"`{database}`." if database else ""
    return [
        f"ALTER TABLE {place} ADD COLUMN `{NAME}` VARCHAR(4087) CHARACTER SET ascii COLLATE ascii_bin "
        "NULL DEFAULT NULL",
        f"CREATE TRIGGER IF NOT EXISTS {prefix}`{plain}_{NAME}_insert` BEFORE INSERT ON {place} FOR EACH ROW\n"
        f"SET NEW.`{NAME}` = COALESCE(NEW.`{NAME}`, @{NAME})",
        f"CREATE TRIGGER IF NOT EXISTS {prefix}`{plain}_{NAME}_update` BEFORE UPDATE ON {place} FOR EACH ROW\n"
        f"SET NEW.`{NAME}` = CASE\n"
        f"  WHEN @{NAME} IS NULL OR @{NAME} = OLD.`{NAME}` THEN OLD.`{NAME}`\n"
        f"  WHEN OLD.`{NAME}` IS NULL THEN @{NAME}\n"
        # Both are one position of one epoch: the greater one is all.
        f"  WHEN @{NAME} REGEXP '^1~[^~ ]+[.][0-9]+$' AND OLD.`{NAME}` REGEXP '^1~[^~ ]+[.][0-9]+$'\n"
        f"    AND {_prefix(f'@{NAME}')} = {_prefix(f'OLD.`{NAME}`')}\n"
        f"    AND {_prefix(f'@{NAME}')} REGEXP '^1~[^.]+[.][.][^.]+[.]$'\n"
        f"    THEN CONCAT({_prefix(f'@{NAME}')}, GREATEST({_counter(f'@{NAME}')}, {_counter(f'OLD.`{NAME}`')}))\n"
        f"  WHEN LENGTH(OLD.`{NAME}`) + LENGTH(@{NAME}) > {_MOST} THEN CONCAT('1~_.i ', @{NAME})\n"
        f"  ELSE CONCAT(OLD.`{NAME}`, ' ', @{NAME}) END",
    ]


def _prefix(text: str) -> str:
    """SQL: all but the counter of a lineage that is one position."""
    return f"LEFT({text}, LENGTH({text}) - LENGTH(SUBSTRING_INDEX({text}, '.', -1)))"


def _counter(text: str) -> str:
    return f"CAST(SUBSTRING_INDEX({text}, '.', -1) AS UNSIGNED)"


def text_of(lineage: Lineage, lineage_out: bool) -> str:
    """What rests beside a row; empty for nothing."""
    text = text_at_rest(lineage, lineage_out)
    return text if len(text) <= _MOST else text_at_rest(EMPTY.marked_incomplete(), lineage_out)


def assignment(text: str) -> bytes:
    """The statement that sets the session's variable; a lineage's characters need no quoting."""
    value = f"'{text}'" if text else "NULL"
    return f"SET @{NAME}={value}".encode("ascii")


def places(names: Sequence[str]) -> list[int]:
    """Which columns of a result hold lineages."""
    return [place for place, name in enumerate(names) if name == NAME]
