"""`delay`: violations without Antipode when post-upload waits before it has the follower notified (paper figure 6)."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path

from rich.console import Console
from rich.table import Table

from antipode_benchmarks.postnotification.experiments import plot
from antipode_benchmarks.postnotification.experiments.bench import Bench
from antipode_benchmarks.postnotification.experiments.report import Report


def run(
    console: Console, bench: Bench, stores: Sequence[str], notifier: str, delays_ms: Sequence[int], path: Path | None
) -> int:
    """Runs the baseline at each delay, shows and saves it; the exit code."""
    report = Report("delay", bench, path)
    bench.start([notifier])
    series: dict[str, list[tuple[float, float]]] = {}
    for name in stores:
        with bench.store(name) as store:
            for delay in delays_ms:
                options = bench.scale.options(name, notifier, barrier="none", delay_ms=delay)
                found = store.run(options, f"{name} + {notifier}, {delay} ms")
                if found is not None:
                    report.add(found)
                    share = found["baseline"]["violations_percent"]
                    series.setdefault(name, []).append((delay, share))
                    console.print(f"{name}, {delay} ms before the notification: {share:g} % violations")
    saved = report.save()
    table = Table(title=f"violations without Antipode, by the delay before the notification; notifier {notifier}")
    table.add_column("posts")
    for delay in delays_ms:
        table.add_column(f"{delay} ms", justify="right")
    for name in stores:
        shares = dict(series.get(name, ()))
        table.add_row(name, *(f"{shares[delay]:g} %" if delay in shares else "failed" for delay in delays_ms))
    console.print(table)
    title = "Violations without Antipode"
    drawn = plot.lines(saved.with_suffix(".png"), title, "delay before the notification, ms", "%", series)
    console.print(f"plot: {drawn}")
    console.print(f"result: {saved}")
    return report.exit_code
