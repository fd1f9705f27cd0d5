"""What is asked of the records' table: expressions of Ibis, the same for DuckDB and for Spark.

Every answer is small: one row a site, store and origin, however many records there are.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, Final

import ibis
from ibis.expr.types import Table

PLACE: Final[tuple[str, ...]] = ("service", "region", "site", "scope", "opened_by", "queue", "store", "store_kind")
"""What tells findings about a store apart: where, of which store, and where the lineage came from."""
_OTHERS: Final = ("published_before_commit", "concurrent_write", "orphan", "late_write", "vacuous", "incomplete")
_LATE: Final = ("not_yet", "timed_out")
BUCKETS_A_DECADE: Final = 8
"""Of the histogram of lags: steps of a factor of about 1.33."""
_FASTEST: Final = 1e-4

Row = dict[str, Any]


def _answer(table: Table) -> list[Row]:
    backend = table.get_backend()
    if backend.name == "duckdb":  # asked directly: Ibis would import pandas to convert a few rows
        return [
            dict(zip(table.columns, row, strict=True)) for row in backend.con.execute(backend.compile(table)).fetchall()
        ]
    found: list[Row] = table.to_pyarrow().to_pylist()
    return found


def _lags(table: Table, where: Any) -> dict[str, Any]:
    """How long it took, over those that were seen; `unseen` were given up (REC-5)."""
    late = table.late
    return {
        "seen": ibis.coalesce(table.amount.sum(where=where & late.notnull()), 0),
        "unseen": ibis.coalesce(table.amount.sum(where=where & late.isnull()), 0),
        "p50": late.quantile(0.5, where=where),
        "p90": late.quantile(0.9, where=where),
        "p99": late.quantile(0.99, where=where),
        # Whole microseconds: their sum is the same in whatever order an engine adds.
        "micros": (late * 1e6).round().cast("int64").sum(where=where),
        "longest": late.max(where=where),
        "trace": table.trace.min(where=where),
        "first": table.time.min(where=where),
        "last": table.time.max(where=where),
    }


def looks(rows: Table) -> list[Row]:
    """What barriers saw, a place: how often they looked, and how often it was not there."""
    table = rows.filter(rows.kind == "look", rows.verdict != "elsewhere")
    late = table.verdict.isin(_LATE)
    return _answer(
        table.group_by(*PLACE)
        .agg(
            judged=ibis.coalesce(table.amount.sum(where=late | (table.verdict == "visible")), 0),
            late=ibis.coalesce(table.amount.sum(where=late), 0),
            unjudged=ibis.coalesce(table.amount.sum(where=table.verdict.isin(("unlooked", "unproven"))), 0),
            **_lags(table, late),
        )
        .order_by(*PLACE)
    )


def reads(rows: Table) -> list[Row]:
    """Reads that came too early, a place and the barrier before it: confirmed ones, and those of a server behind."""
    table = rows.filter(rows.kind.isin(("stale", "behind")))
    stale = table.kind == "stale"
    return _answer(
        table.group_by(*PLACE, "kind", "barrier")
        .agg(count=table.amount.sum(), **_lags(table, stale | ~stale))
        .order_by(*PLACE, "kind", "barrier")
    )


def kinds(rows: Table) -> list[Row]:
    """How many records there are of each kind, and from when to when."""
    table = rows.filter(~rows.kind.isin(("look", "count")))
    return _answer(
        table.group_by("kind")
        .agg(count=table.amount.sum(), first=table.time.min(), last=table.time.max())
        .order_by("kind")
    )


def barriers(rows: Table) -> list[Row]:
    """How many records of barriers there are, a service and region."""
    table = rows.filter(rows.kind == "barrier")
    keys = ("service", "region")
    return _answer(table.group_by(*keys).agg(count=table.amount.sum()).order_by(*keys))


def unread(rows: Table) -> list[Row]:
    """What a reader in many places could not read or passed over, by its reason."""
    table = rows.filter(rows.kind.isin(("unread", "passed_over")))
    return _answer(table.group_by("kind", "reason").agg(count=table.amount.sum()).order_by("kind", "reason"))


def entries(rows: Table) -> list[Row]:
    """Where in the same trace a message brought the lineage that another process then read by: a place of a read, the
    place of the message, and in how many traces (`passed_on` records)."""
    found = rows.filter(rows.kind.isin(("stale", "behind")), rows.trace.notnull()).select(*PLACE, "trace").distinct()
    passed = rows.filter(rows.kind == "passed_on", rows.scope == "message", rows.trace.notnull())
    passed = passed.select(
        "trace",
        entry_service=passed.service,
        entry_site=passed.site,
        entry_opened_by=passed.opened_by,
        entry_queue=passed.queue,
    ).distinct()
    # Services may share a process, and a name: another scope is another place.
    table = found.join(passed, "trace")
    table = table.filter((table.service != table.entry_service) | (table.opened_by != table.entry_opened_by))
    keys = (*PLACE, "entry_service", "entry_site", "entry_opened_by", "entry_queue")
    return _answer(table.group_by(*keys).agg(count=table.count()).order_by(*keys))


def counts(rows: Table) -> list[Row]:
    """The sums of the summaries' numbers."""
    table = rows.filter(rows.kind == "count")
    keys = ("service", "region", "site", "store", "what")
    return _answer(table.group_by(*keys).agg(count=table.amount.sum()).order_by(*keys))


def others(rows: Table) -> list[Row]:
    """Findings that are no reads."""
    table = rows.filter(rows.kind.isin(_OTHERS))
    keys = (*PLACE, "kind", "written_at", "target", "reason")
    return _answer(
        table.group_by(*keys)
        .agg(count=table.amount.sum(), trace=table.trace.min(), first=table.time.min(), last=table.time.max())
        .order_by(*keys)
    )


def _of_lateness(rows: Table) -> Table:
    return rows.filter((rows.kind.isin(("stale", "behind"))) | ((rows.kind == "look") & rows.verdict.isin(_LATE)))


def histogram(rows: Table) -> list[Row]:
    """How many took how long, a place: buckets of the logarithm of the seconds."""
    table = _of_lateness(rows)
    table = table.filter(table.late.notnull())
    table = table.mutate(bucket=(ibis.greatest(table.late, _FASTEST).log10() * BUCKETS_A_DECADE).floor().cast("int64"))
    keys = (*PLACE, "kind", "barrier", "bucket")
    return _answer(table.group_by(*keys).agg(count=table.amount.sum()).order_by(*keys))


def span(rows: Table) -> tuple[float, float]:
    """Return when the first violation was, and the last."""
    look = (rows.kind == "look") & rows.verdict.isin(_LATE)
    table = rows.filter(look | rows.kind.isin(("stale", "published_before_commit")))
    (found,) = _answer(table.agg(first=table.time.min(), last=table.time.max()))
    return found["first"] or 0.0, found["last"] or 0.0


def timeline(rows: Table, first: float, seconds: float, buckets: int, met: Sequence[str]) -> list[Row]:
    """How many were too early when, a kind; `buckets` of equal length from `first` on. `met`: barriers that stand for
    the reads behind them."""
    early = rows.kind.isin(("stale", "published_before_commit")) & ~rows.barrier.isin(list(met))
    table = rows.filter(early | ((rows.kind == "look") & rows.verdict.isin(_LATE)))
    length = max(seconds, 1e-9) / buckets
    bucket = ibis.least(((table.time - first) / length).floor().cast("int64"), buckets - 1)
    table = table.mutate(bucket=bucket, name=ibis.ifelse(table.kind == "look", "late", table.kind))
    return _answer(table.group_by("name", "bucket").agg(count=table.amount.sum()).order_by("name", "bucket"))
