"""What of an application's session a read of our own would have to share, to mean the same (spec REC-23)."""

from __future__ import annotations

import re
from typing import Any, Final

from antipode_mysql.targets import Target

_NAME: Final = "_antipode_settings"
_OPENED_WITH: Final = ("sql_mode", "init_command", "_sql_mode", "_init_command", "_time_zone")
"""Attributes of the clients' connections: what they set as soon as they are open."""
_HARMLESS: Final = re.compile(
    rb"(?i)\s*SET\s+(?:(?:SESSION\s+|LOCAL\s+)?TRANSACTION\b|NAMES\s+['\"]?utf8|CHARACTER\s+SET\s+['\"]?utf8"
    rb"|(?:SESSION\s+|LOCAL\s+|@@(?:SESSION\.|LOCAL\.)?)?(?:autocommit|(?:tx|transaction)_(?:isolation|read_only)"
    rb"|foreign_key_checks|unique_checks|\w+_timeout|net_\w+|max_statement_time|max_execution_time"
    rb"|session_track_\w+|sql_log_bin|sql_auto_is_null\s*=\s*0)\b)[^,;]*;?\s*$"
)
"""What changes a session so that no read means anything else by it."""
_CHANGES: Final = re.compile(rb"(?i)\b(?:SET|USE)\b")
_USES: Final = re.compile(rb"(?i)\s*USE\s+(?:`((?:[^`]|``)+)`|([\w$]+))\s*;?\s*$")
_DATA: Final = re.compile(rb"(?i)\s*(?:INSERT|UPDATE|DELETE|REPLACE|CREATE|ALTER|DROP)\b")


class SessionSettings:
    """What the application has changed of a connection's session, as far as we see that; shared by all its wraps."""

    __slots__ = ("_changed_at_first", "_database_at_first", "changed", "database")

    def __init__(self, database: str | None, *, changed: bool) -> None:
        self.database = self._database_at_first = database
        self.changed = self._changed_at_first = changed
        """Whether a read of our own might mean something else."""

    def said(self, sql: bytes, *, several: bool) -> None:
        """The application sends a statement that is neither a plain read nor a plain write."""
        if self.changed or not _CHANGES.search(sql) or _HARMLESS.match(sql):
            return
        uses = _USES.match(sql)
        if uses is not None:
            self.database = (uses[1] or uses[2]).replace(b"``", b"`").decode("utf-8", "replace")
        elif not _DATA.match(sql) or (several and b";" in sql):
            self.changed = True

    def renewed(self) -> None:
        """The session was reset: its database stays, and what it was opened with is set again."""
        self.changed = self._changed_at_first

    def reconnected(self) -> None:
        """It is another session, opened as the first one."""
        self.database, self.changed = self._database_at_first, self._changed_at_first


def settings_of(plain: Any, target: Target) -> SessionSettings:
    """The settings of a connection of either client."""
    found = plain.__dict__.get(_NAME)
    if found is None:
        changed = any(plain.__dict__.get(name) for name in _OPENED_WITH)
        found = plain.__dict__[_NAME] = SessionSettings(target.database, changed=changed)
    known: SessionSettings = found
    return known
