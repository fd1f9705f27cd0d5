"""Writes the lines of a recorded history: as dry-run's records, but nothing is rotated away (spec HIST-24)."""

from __future__ import annotations

import json
from collections.abc import Callable
from pathlib import Path
from typing import Any, Final

from antipode._base import logs
from antipode._base.settings import settings
from antipode._diagnostics.dryrun.record_writer import FILES_KEPT, PrivateFile, RecordWriter
from antipode._model.branch_ids import BRANCHES
from antipode._model.lineage import Lineage

Line = dict[str, Any]
LINEAGE: Final = "lineage"


class HistoryWriter(RecordWriter):
    """One process's file in the folder of a history; what could not be written is said in it."""

    def __init__(self, folder: str, name: str, gap: Callable[[str, int], Line]) -> None:
        """`gap`: the line that says why so many lines are missing."""
        super().__init__()
        self._file = PrivateFile(Path(folder) / name)
        self._gap = gap
        self._told = 0
        self._full = False

    def _append(self, records: list[Line]) -> None:
        if self._full:
            self.dropped += len(records)
            return
        untold = self.dropped - self._told
        lines = [self._gap("not written", untold)] * bool(untold) + records
        if self._file.size > settings().records_max_mib * FILES_KEPT * 2**20:
            self._full = True
            lines = [self._gap(f"full: {self._file.path.name} has the size that it may have", untold + len(records))]
            logs.warn(
                "history",
                f"the history is full: {self._file.path} (ANTIPODE_RECORDS_MAX_MIB).",
                count_as="dropped",
                code="AP602",
            )
        self._file.write(json.dumps(_spelled(line), separators=(",", ":")) + "\n" for line in lines)
        self._told += untold

    def _drop(self, why: str, count: int = 1) -> None:
        self.dropped += count
        logs.warn("history", f"operations are missing from the history: {why}.", count_as="dropped", code="AP602")


def _spelled(line: Line) -> Line:
    """With its lineage as a text: of the application's writes, and without what belongs to one text alone."""
    lineage = line.get(LINEAGE)
    if not isinstance(lineage, Lineage):
        return line
    if lineage.extensions:
        lineage = lineage.with_extensions(())
    if lineage.section_text(BRANCHES) is not None:
        lineage = lineage.without(BRANCHES)
    return line | {LINEAGE: lineage.serialize()}
