"""What a recorded history is told of statements: that they read, and no more (spec HIST-36)."""

from __future__ import annotations

from typing import Any

from antipode.recorder import NotedRead, Seen, note_read, noting
from antipode.scope import current_scope
from antipode.writeid import WriteId

from antipode_postgresql.flow import Flow
from antipode_postgresql.reads import text_of
from antipode_postgresql.statements import is_noted


class NotedStatement:
    """One statement that reads, from before it is sent."""

    __slots__ = ("_noted",)

    def __init__(self, noted: NotedRead) -> None:
        self._noted = noted

    @noting
    def over(self, covers: WriteId | None = None) -> None:
        """Its result has come. covers: the position that goes into lineages with it."""
        self._noted.over([Seen(b"")], covers)

    def failed(self) -> None:
        """It has none, or that was told before."""
        self._noted.failed()


@noting
def begin(flow: Flow, query: Any) -> NotedStatement | None:
    """A statement is about to be sent; None where no history is recorded, or it reads no data."""
    flow.binding.refresh()
    is_told = flow.binding.notes and is_noted(text_of(query))
    noted = note_read(flow.binding.store, current_scope()) if is_told else None
    return None if noted is None else NotedStatement(noted)


@noting
def at_once(flow: Flow, query: Any) -> None:
    """Something is about to be read bit by bit: which writes that shows nobody knows, whenever it comes."""
    noted = begin(flow, query)
    if noted is not None:
        noted.over()
