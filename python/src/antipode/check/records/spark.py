"""The same analysis on Spark, for records that outgrow a machine: lines are read where they lie (CHECK-16).

    report = report_on(SparkSession.builder.getOrCreate(), ["hdfs:///records/*.jsonl"])
    print(as_json(report, suggest(report.findings, report.seconds)))

The workers need this package with its extra `check`, too.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import Any, Final

import ibis
import pyarrow as pa
from ibis.expr.types import Table

from antipode.check.records import analysis
from antipode.check.records.findings import Report, report
from antipode.check.records.reading import ReadLines, read_line
from antipode.check.records.rows import ROW_SCHEMA, Context, flat_rows

_VIEW: Final = "antipode_records"
_UNREAD: Final = "unread"
_PASSED: Final = "passed_over"
_TYPES: Final = {pa.string(): "string", pa.float64(): "double", pa.int64(): "bigint"}


def rows_on(session: Any, paths: Sequence[str]) -> Table:
    """The table of the records in text files, one a line, by any path that Spark reads."""
    schema = ", ".join(f"`{field.name}` {_TYPES[field.type]}" for field in ROW_SCHEMA)
    # As octets: a line that is no UTF-8 is counted, and does not end the job.
    octets = session.read.text(list(paths)).selectExpr("CAST(value AS BINARY) AS value")
    frame = octets.mapInArrow(_parsed, schema)
    frame.createOrReplaceTempView(_VIEW)
    table: Table = ibis.pyspark.connect(session).table(_VIEW)
    return table.cache()


def report_on(session: Any, paths: Sequence[str], *, pictures: bool = False) -> Report:
    """What the records come to; places of what could not be read are not known there, and processes not counted."""
    rows = rows_on(session, paths)
    taken = ReadLines()
    for row in analysis.unread(rows):
        if row["kind"] == _PASSED:
            taken.passed_over[row["reason"]] += row["count"]
        else:
            taken.unread += row["count"]
            taken.unread_named.append((f"{row['count']:,} times", row["reason"]))
    known = rows.filter(~rows.kind.isin((_UNREAD, _PASSED)))
    taken.records = sum(row["count"] for row in analysis.kinds(known))
    return report(known, taken, pictures=pictures)


def _parsed(batches: Iterator[pa.RecordBatch]) -> Iterator[pa.RecordBatch]:
    """Runs in Spark's workers: lines in, rows out."""
    for batch in batches:
        taken = _Counting()
        texts = batch.column(0).to_pylist()
        # One by one: a stream's first line may begin a document over many lines, a batch's may not.
        yield from flat_rows(
            line for text in texts for line in read_line((text or b"") + b"\n", "", taken)
        ).to_batches()
        told = [(_UNREAD, why, count) for why, count in taken.refused.items()]
        told += [(_PASSED, what, count) for what, count in taken.passed_over.items()]
        rows = [(*Context(kind, "", "", reason=words), 0.0, None, count, None) for kind, words, count in told]
        if rows:
            columns = list(zip(*rows, strict=True))
            arrays = [pa.array(column, field.type) for column, field in zip(columns, ROW_SCHEMA, strict=True)]
            yield from pa.Table.from_arrays(arrays, schema=ROW_SCHEMA).to_batches()


class _Counting(ReadLines):
    """Counts what could not be read by its reason: places mean nothing in a part of a file."""

    def __init__(self) -> None:
        super().__init__()
        self.refused: dict[str, int] = {}

    def refuse(self, place: str, why: str) -> None:
        self.refused[why] = self.refused.get(why, 0) + 1
