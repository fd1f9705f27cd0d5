"""What a recorded history is told of statements: that they read, and which tables they name (spec HIST-36)."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from antipode.recorder import NotedRead, Seen, note_read, noting
from antipode.scope import current_scope
from antipode.writeid import WriteId

from antipode_postgresql.flow import Flow
from antipode_postgresql.reads import text_of
from antipode_postgresql.tables import tables_read


class NotedStatement:
    """One statement that reads, from before it is sent."""

    __slots__ = ("_noted", "_tables")

    def __init__(self, noted: NotedRead, tables: Sequence[str]) -> None:
        self._noted = noted
        self._tables = tables

    @noting
    def over(self, covers: WriteId | None = None) -> None:
        """Its result has come. covers: the position that goes into lineages with it."""
        self._noted.over([Seen(table.encode("utf-8", "surrogateescape")) for table in self._tables], covers)

    def failed(self) -> None:
        """It has none, or that was told before."""
        self._noted.failed()


@noting
def begin(flow: Flow, query: Any) -> NotedStatement | None:
    """A statement is about to be sent; None where no history is recorded, or it reads no data."""
    flow.binding.refresh()
    tables = tables_read(text_of(query)) if flow.binding.notes else ()
    noted = note_read(flow.binding.store, current_scope()) if tables else None
    return None if noted is None else NotedStatement(noted, tables)


@noting
def at_once(flow: Flow, query: Any) -> None:
    """Something is about to be read bit by bit: which writes that shows nobody knows, whenever it comes."""
    noted = begin(flow, query)
    if noted is not None:
        noted.over()
