"""`matrix`: every store with every notifier, without and with Antipode (paper table 1)."""

from __future__ import annotations

from collections.abc import Sequence
from itertools import product
from pathlib import Path
from typing import Any

from rich.console import Console
from rich.table import Table

from antipode_benchmarks.postnotification.experiments import plot
from antipode_benchmarks.postnotification.experiments.bench import Bench
from antipode_benchmarks.postnotification.experiments.paper import TABLE_1
from antipode_benchmarks.postnotification.experiments.report import Report, wrong
from antipode_benchmarks.postnotification.report import NO_EFFECT, OK

Pairs = dict[tuple[str, str], dict[str, Any]]


def run(console: Console, bench: Bench, stores: Sequence[str], notifiers: Sequence[str], path: Path | None) -> int:
    """Runs all pairs, shows them, and saves them; the exit code."""
    report = Report("matrix", bench, path)
    bench.start(notifiers)
    total, number = len(stores) * len(notifiers), 0
    for name in stores:
        with bench.store(name) as store:
            for notifier in notifiers:
                number += 1
                found = store.run(bench.scale.options(name, notifier), f"{number}/{total} {name} + {notifier}")
                if found is not None:
                    report.add(found)
                    console.print(f"{number}/{total} {name} + {notifier}: {_cell(found)}", markup=False)
    saved = report.save()
    pairs = {(row["post_storage"], row["notifier"]): row for row in report.rows}
    _show(console, stores, notifiers, pairs)
    drawn = plot.grid(
        saved.with_suffix(".png"),
        "Violations without Antipode; with it none" if report.exit_code == OK else "Violations without Antipode",
        notifiers,
        stores,
        {pair: row["baseline"]["violations_percent"] for pair, row in pairs.items()},
    )
    console.print(f"plot: {drawn}")
    console.print(f"result: {saved}")
    blind = [pair for pair, row in pairs.items() if row["baseline"]["violations"] == 0]
    if report.exit_code == OK and blind:
        console.print("no violation without Antipode: " + ", ".join(" + ".join(pair) for pair in blind))
        return NO_EFFECT
    return report.exit_code


def _show(console: Console, stores: Sequence[str], notifiers: Sequence[str], pairs: Pairs) -> None:
    table = Table(title="violations: without Antipode → with it (paper's table 1: without)")
    table.add_column("notifications \\ posts")
    for name in stores:
        table.add_column(name, justify="right")
    for notifier in notifiers:
        table.add_row(notifier, *(_with_papers(pairs, name, notifier) for name in stores))
    console.print(table)
    late = [pair for pair in product(stores, notifiers) if pair not in pairs]
    if late:
        console.print("failed: " + ", ".join(" + ".join(pair) for pair in late))


def _with_papers(pairs: Pairs, name: str, notifier: str) -> str:
    cell = _cell(pairs[name, notifier]) if (name, notifier) in pairs else "failed"
    told = TABLE_1.get((name, notifier))
    return cell if told is None else f"{cell} ({told} %)"


def _cell(found: dict[str, Any]) -> str:
    with_it = found["antipode"]
    words = f"{found['baseline']['violations_percent']:g} % → {with_it['violations_percent']:g} %"
    return f"{words} WRONG" if wrong(found) else words
