"""Records as rows of two tables: contexts (every combination of names that occurs, once) and facts (numbers).

A million records come from a few sites, so a fact is a number of its context, a time and a duration: some ten times
smaller than the lines were.
"""

from __future__ import annotations

import json
from collections.abc import Iterable, Sequence
from typing import Any, Final, NamedTuple, TypeAlias

import pyarrow as pa

from antipode.check.records.line import (
    Barrier,
    Behind,
    ConcurrentWrite,
    Incomplete,
    LateWrite,
    Line,
    Orphan,
    PassedOn,
    PublishedBeforeCommit,
    Stale,
    Summary,
    Vacuous,
)

UNLOOKED: Final = "unlooked"
"""The verdict of a look at no server (CHECK-4)."""
ESTIMATED: Final = "estimated_reads"
"""What counts the reads of a site by its followed ones and the share of the sample (REC-19)."""
_NO_REASON: Final = frozenset({"visible", "elsewhere"})
"""Verdicts that say that nothing was missed."""


class Context(NamedTuple):
    """The names of a fact; what a kind has not got is empty."""

    kind: str
    """The record's, and `look`: what a barrier saw of one store; `count`: one number of a summary."""
    service: str
    region: str
    site: str = ""
    scope: str = ""
    opened_by: str = ""
    queue: str = ""
    store: str = ""
    store_kind: str = ""
    verdict: str = ""
    written_at: str = ""
    target: str = ""
    reason: str = ""
    """How it was confirmed, why it is incomplete; of a vacuous barrier its stores and the registered ones (JSON)."""
    what: str = ""


CONTEXT_SCHEMA: Final = pa.schema([("context", pa.int32()), *((name, pa.string()) for name in Context._fields)])
FACT_SCHEMA: Final = pa.schema(
    [
        ("context", pa.int32()),
        ("time", pa.float64()),
        ("late", pa.float64()),  # seconds until it was visible; null: nobody knows
        ("amount", pa.int64()),  # how many the row stands for
        ("trace", pa.string()),  # of findings alone
    ]
)
ROW_SCHEMA: Final = pa.schema([*list(CONTEXT_SCHEMA)[1:], *list(FACT_SCHEMA)[1:]])
"""Both tables joined: what the analysis reads."""

_Row: TypeAlias = tuple[tuple[str, ...], float | None, int, str | None]
"""The fields of a context (the last ones may be left out), late, amount, trace."""


def rows_of(line: Line) -> list[_Row]:
    """The rows that a record comes to."""
    head = line.service, line.region
    if isinstance(line, Barrier):
        origin = line.origin
        place = (*head, line.site, origin.scope, origin.opened_by, origin.store)
        rows: list[_Row] = [(("barrier", *place), None, 1, None)]
        if not line.satisfied and all(look.verdict in _NO_REASON for look in line.stores):
            # It was not satisfied, and no store says why: what the others say is no proof.
            unknown = {look.store: look.store_kind for look in line.stores if look.verdict == "visible"} or {"": ""}
            rows += [(("look", *place, *store, "unproven"), None, 1, None) for store in unknown.items()]
            return rows
        for look in line.stores:
            verdict: str = look.verdict
            if verdict in _NO_REASON:
                rows.append((("look", *place, look.store, look.store_kind, verdict), None, 1, None))
                continue
            if verdict != "unproven" and look.servers is not None and not look.servers:
                verdict = UNLOOKED
            names = ("look", *place, look.store, look.store_kind, verdict)
            rows.append((names, look.visible_after, 1, line.trace_id or None))
        return rows
    if isinstance(line, Summary):
        rows = [(("summary", *head), None, 1, None)]
        for count in line.counts:
            named = Context("count", *head, count.site, store=count.store, what=count.what)
            rows.append((named, None, count.count, None))
            if count.what == "followed_reads" and line.sample:
                rows.append((named._replace(what=ESTIMATED), None, round(count.count / line.sample), None))
        return rows
    late, amount = getattr(line, "visible_after", None), getattr(line, "count", 1)
    return [(_context(line, *head), late, amount, line.trace_id or None)]


def _context(line: Line, service: str, region: str) -> Context:
    kind = str(line.__struct_config__.tag)
    named = Context(kind, service, region, getattr(line, "site", ""), store=getattr(line, "store", ""))
    origin = getattr(line, "origin", None)
    if origin is not None:
        named = named._replace(scope=origin.scope, opened_by=origin.opened_by, queue=origin.store)
    match line:
        case Stale():
            return named._replace(store_kind=line.store_kind, reason=line.confirmed)
        case Behind():
            return named._replace(store_kind=line.store_kind)
        case PublishedBeforeCommit() | ConcurrentWrite():
            return named._replace(written_at=line.written_at, target=line.target)
        case Orphan() | LateWrite() | Incomplete():
            return named._replace(reason=line.reason)
        case PassedOn():
            return named._replace(target=line.target)
        case Vacuous():
            lists = [sorted(set(names)) for names in (line.lineage_stores, line.registered)]
            return named._replace(reason=json.dumps(lists))
    raise AssertionError(kind)


class Rows:
    """Gathers records, and gives them in batches of facts."""

    def __init__(self) -> None:
        self._contexts: dict[tuple[str, ...], int] = {}
        self._columns: list[list[Any]] = [[] for _ in FACT_SCHEMA]

    def __len__(self) -> int:
        return len(self._columns[0])

    def add(self, line: Line) -> None:
        """Adds a record's rows."""
        contexts = self._contexts
        numbers, times, lates, amounts, traces = self._columns
        for context, late, amount, trace in rows_of(line):
            number = contexts.get(context)
            if number is None:
                number = contexts[context] = len(contexts)
            numbers.append(number)
            times.append(line.time)
            lates.append(late)
            amounts.append(amount)
            traces.append(trace)

    def take_facts(self) -> pa.Table:
        """The facts gathered since the last call."""
        taken = _table(self._columns, FACT_SCHEMA)
        for column in self._columns:
            column.clear()
        return taken

    def contexts(self) -> pa.Table:
        """All contexts so far."""
        names = [Context(*found) for found in self._contexts]
        return _table([range(len(names)), *_transposed(names, len(Context._fields))], CONTEXT_SCHEMA)


def flat_rows(lines: Iterable[Line]) -> pa.Table:
    """Records as rows of one table, contexts spelled out: for engines that read in many places at once."""
    rows = [(*Context(*names), line.time, *numbers) for line in lines for names, *numbers in rows_of(line)]
    return _table(_transposed(rows, len(ROW_SCHEMA)), ROW_SCHEMA)


def _transposed(rows: Sequence[Sequence[Any]], width: int) -> list[Sequence[Any]]:
    return list(zip(*rows, strict=True)) if rows else [()] * width


def _table(columns: Sequence[Sequence[Any]], schema: pa.Schema) -> pa.Table:
    arrays = [pa.array(column, field.type) for column, field in zip(columns, schema, strict=True)]
    return pa.Table.from_arrays(arrays, schema=schema)
