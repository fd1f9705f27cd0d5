"""Records as rows of two tables: contexts (every combination of names that occurs, once) and facts (numbers).

A million records come from a few sites, so a fact is a number of its context, a time and a duration: some ten times
smaller than the lines were.
"""

from __future__ import annotations

import json
from array import array
from collections.abc import Iterable, Sequence
from math import isnan, nan
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
_LEAST_SAMPLE: Final = 1e-9
_MOST: Final = 2**62
"""More than this nobody has counted; more would not fit."""
_SUMMED: Final = frozenset({"barrier", "summary", "count"})
"""Kinds of rows of whose times nobody asks more than the first and the last."""
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
    barrier: str = ""
    """Of a read: where the barrier in dry-run before it was called (REC-27)."""


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
            if count.what == "followed_reads" and line.sample is not None and line.sample >= _LEAST_SAMPLE:
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
            return named._replace(store_kind=line.store_kind, reason=line.confirmed, barrier=line.barrier)
        case Behind():
            return named._replace(store_kind=line.store_kind, barrier=line.barrier)
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


class _Sum:
    """What facts of one context add up to, of whose times nobody asks more than the first and the last."""

    __slots__ = ("amount", "first", "last", "looks", "number")

    def __init__(self, number: int, time: float) -> None:
        self.number = number
        self.amount = 0
        self.first = self.last = time
        self.looks: dict[tuple[str, str, str], _Sum] = {}
        """Of a barrier: what it saw of its stores, by store, kind and verdict."""

    def add(self, amount: int, time: float) -> None:
        self.amount += amount
        if time > self.last:
            self.last = time
        elif time < self.first:
            self.first = time


class Rows:
    """Gathers records, and gives them in batches of facts; what needs no row of its own is summed up."""

    def __init__(self) -> None:
        self._contexts: dict[tuple[str, ...], int] = {}
        self._sums: dict[tuple[str, ...], _Sum] = {}
        self._barriers: dict[tuple[str, ...], _Sum] = {}
        self._facts = _Facts()

    def __len__(self) -> int:
        return len(self._facts.numbers)

    def add(self, line: Line) -> None:
        """Adds a record's rows."""
        time = line.time
        if line.__class__ is Barrier and line.satisfied:
            origin = line.origin
            place = (line.service, line.region, line.site, origin.scope, origin.opened_by, origin.store)
            barrier = self._barriers.get(place)
            if barrier is None:
                barrier = self._barriers[place] = self._sum(("barrier", *place), time)
            known = barrier.looks
            seen = [known.get((look.store, look.store_kind, look.verdict)) for look in line.stores]
            if None not in seen:
                barrier.add(1, time)
                for look in seen:
                    look.add(1, time)  # type: ignore[union-attr]
                return
        for context, late, amount, trace in rows_of(line):
            if context[0] in _SUMMED or (context[0] == "look" and context[9] in _NO_REASON):
                self._sum(context, time).add(amount, time)
                if context[0] == "look":
                    self._barriers[context[1:7]].looks[context[7], context[8], context[9]] = self._sum(context, time)
                elif context[0] == "barrier":
                    self._barriers[context[1:7]] = self._sum(context, time)
            else:
                self._facts.add(self._number(context), time, late, amount, trace)

    def _number(self, context: tuple[str, ...]) -> int:
        return self._contexts.setdefault(context, len(self._contexts))

    def _sum(self, context: tuple[str, ...], time: float) -> _Sum:
        found = self._sums.get(context)
        if found is None:
            found = self._sums[context] = _Sum(self._number(context), time)
        return found

    def take_facts(self, *, sums: bool = False) -> pa.Table:
        """The facts gathered since the last call; `sums`: those too that are summed up, which begin anew then."""
        if sums:
            for each in self._sums.values():
                self._facts.add(each.number, each.first, None, min(each.amount, _MOST), None)
                if each.last != each.first:
                    self._facts.add(each.number, each.last, None, 0, None)
            self._sums, self._barriers = {}, {}
        taken, self._facts = self._facts.table(), _Facts()
        return taken

    def contexts(self) -> pa.Table:
        """All contexts so far."""
        names = [Context(*found) for found in self._contexts]
        numbers = pa.Array.from_buffers(pa.int32(), len(names), [None, pa.py_buffer(array("i", range(len(names))))])
        texts = [_texts(column) for column in _transposed(names, len(Context._fields))]
        return pa.Table.from_arrays([numbers, *texts], schema=CONTEXT_SCHEMA)


class _Facts:
    """Columns of facts. They become Arrow's by their buffers: `pa.array` would import pandas, for nothing."""

    def __init__(self) -> None:
        self.numbers, self.times, self.lates, self.amounts = array("i"), array("d"), array("d"), array("q")
        self.traces: list[str | None] = []

    def add(self, number: int, time: float, late: float | None, amount: int, trace: str | None) -> None:
        self.numbers.append(number)
        self.times.append(time)
        self.lates.append(nan if late is None else late)
        self.amounts.append(amount)
        self.traces.append(trace)

    def table(self) -> pa.Table:
        count = len(self.numbers)
        bits = "".join("0" if isnan(late) else "1" for late in reversed(self.lates))
        valid = pa.py_buffer(int(bits or "0", 2).to_bytes(count // 8 + 1, "little"))
        columns = ((self.numbers, None), (self.times, None), (self.lates, valid), (self.amounts, None))
        arrays = [
            pa.Array.from_buffers(field.type, count, [known, pa.py_buffer(column)])
            for (column, known), field in zip(columns, FACT_SCHEMA, strict=False)
        ]
        return pa.Table.from_arrays([*arrays, _texts(self.traces)], schema=FACT_SCHEMA)


def _texts(column: Sequence[str | None]) -> pa.Array:
    builder = pa.lib.StringBuilder()
    builder.append_values(column)
    return builder.finish()


def flat_rows(lines: Iterable[Line]) -> pa.Table:
    """Records as rows of one table, contexts spelled out: for engines that read in many places at once."""
    rows = [(*Context(*names), line.time, *numbers) for line in lines for names, *numbers in rows_of(line)]
    return _table(_transposed(rows, len(ROW_SCHEMA)), ROW_SCHEMA)


def _transposed(rows: Sequence[Sequence[Any]], width: int) -> list[Sequence[Any]]:
    return list(zip(*rows, strict=True)) if rows else [()] * width


def _table(columns: Sequence[Sequence[Any]], schema: pa.Schema) -> pa.Table:
    arrays = [pa.array(column, field.type) for column, field in zip(columns, schema, strict=True)]
    return pa.Table.from_arrays(arrays, schema=schema)
