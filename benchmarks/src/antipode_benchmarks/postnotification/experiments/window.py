"""`window`: the consistency window of each store, without and with Antipode (paper figure 7)."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path

from rich.console import Console
from rich.table import Table

from antipode_benchmarks.postnotification.experiments import plot
from antipode_benchmarks.postnotification.experiments.bench import Bench
from antipode_benchmarks.postnotification.experiments.report import Report


def run(console: Console, bench: Bench, stores: Sequence[str], notifier: str, path: Path | None) -> int:
    """Runs each store, shows and saves it; the exit code."""
    report = Report("window", bench, path)
    bench.start([notifier])
    for number, name in enumerate(stores, 1):
        with bench.store(name) as store:
            title = f"{number}/{len(stores)} {name} + {notifier}"
            found = store.run(bench.scale.options(name, notifier), title)
            if found is not None:
                report.add(found)
                console.print(f"{title}: {found['antipode']['consistency_window_ms']['p50']:.1f} ms", markup=False)
    saved = report.save()
    table = Table(title=f"consistency window, ms, p50 / p90 / p99; notifier {notifier}")
    for column in ("posts", "violations without", "without Antipode", "with it", "beyond the slowest lag"):
        table.add_column(column, justify="left" if column == "posts" else "right")
    for row in report.rows:
        spreads = (
            row["baseline"]["consistency_window_ms"],
            row["antipode"]["consistency_window_ms"],
            row["antipode"]["window_over_lag_ms"],
        )
        cells = (" / ".join(f"{spread[name]:.1f}" for name in ("p50", "p90", "p99")) for spread in spreads)
        table.add_row(row["post_storage"], f"{row['baseline']['violations_percent']:g} %", *cells)
    console.print(table)
    names = [row["post_storage"] for row in report.rows]
    drawn = plot.bars(
        saved.with_suffix(".png"),
        f"Consistency window, median; replicas at {', '.join(map(str, bench.scale.lags_ms))} ms",
        "ms",
        names,
        {
            phase: [row[key]["consistency_window_ms"]["p50"] for row in report.rows]
            for phase, key in (("without Antipode", "baseline"), ("with Antipode", "antipode"))
        },
    )
    console.print(f"plot: {drawn}")
    console.print(f"result: {saved}")
    return report.exit_code
