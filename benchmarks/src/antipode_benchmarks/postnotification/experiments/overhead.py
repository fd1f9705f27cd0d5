"""`overhead`: what Antipode costs in throughput where nothing waits: dry-run, beside its other modes and none of it.

One fleet of services a way, all of them up on the same servers, and loaded by turns with as much as they take: whatever
else the machine does meets each. What is compared is the ratio within a round.
"""

from __future__ import annotations

import asyncio
import math
import tempfile
from collections.abc import Mapping, Sequence
from contextlib import AsyncExitStack
from dataclasses import replace
from pathlib import Path
from statistics import median
from typing import Any, Final, NamedTuple

from rich.console import Console
from rich.table import Table

from antipode_benchmarks.postnotification.experiments import plot
from antipode_benchmarks.postnotification.experiments.bench import Bench
from antipode_benchmarks.postnotification.experiments.report import Report
from antipode_benchmarks.postnotification.fleet import Fleet
from antipode_benchmarks.postnotification.hosts import RunFailed
from antipode_benchmarks.postnotification.load import Load
from antipode_benchmarks.postnotification.options import Options
from antipode_benchmarks.postnotification.servers import Servers, prepare_antipode

AS_FAST_AS_CAN_BE: Final = 10_000.0
"""Uploads a second that nobody takes: every user has one under way."""
TARGET_PERCENT: Final = 3.0
"""What dry-run may cost, of the throughput of the same services with Antipode switched off."""


class Way(NamedTuple):
    """One of the ways in which the services run."""

    wrapped: bool
    mode: str = ""


WAYS: Final[Mapping[str, Way]] = {
    "without Antipode": Way(wrapped=False),
    "off": Way(True, "off"),
    "enforce": Way(True, "enforce"),
    "dry-run": Way(True, "dry-run"),
}
"""In none of them a barrier is called: all of them do the same for their users."""


class Round(NamedTuple):
    """What one load of one way came to."""

    uploads_per_s: float
    processor_ms: float
    """An upload's time on processors, in the services alone."""


def run(
    console: Console, bench: Bench, store: str, notifier: str, *, rounds: int, sample: float, path: Path | None
) -> int:
    """Measures, shows and saves; the exit code."""
    report = Report("overhead", bench, path)
    bench.start([notifier], places=tuple(WAYS))
    options = replace(bench.scale.options(store, notifier, barrier="nowhere"), rate=AS_FAST_AS_CAN_BE)
    measured: dict[str, list[Round]] = {}
    with bench.store(store) as started:
        servers = bench.servers(started.servers, notifier)
        if servers is not None:
            try:
                measured = asyncio.run(_measure(console, options, servers, rounds, sample))
            except RunFailed as error:
                bench.failed(f"{store} + {notifier}", error)
    for name, found in measured.items():
        report.add(_row(name, found, measured, sample))
    saved = report.save()
    _show(console, report.rows)
    drawn = plot.bars(
        saved.with_suffix(".png"),
        f"Uploads a second, median; {store} + {notifier}",
        "uploads/s",
        [row["way"] for row in report.rows],
        {"uploads a second": [row["uploads_per_s"] for row in report.rows]},
    )
    console.print(f"plot: {drawn}")
    console.print(f"result: {saved}")
    return report.exit_code


async def _measure(
    console: Console, options: Options, servers: Servers, rounds: int, sample: float
) -> dict[str, list[Round]]:
    await asyncio.to_thread(prepare_antipode, servers.posts)
    found: dict[str, list[Round]] = {name: [] for name in WAYS}
    fleets: dict[str, Fleet] = {}
    async with AsyncExitStack() as ends:
        records = ends.enter_context(tempfile.TemporaryDirectory(prefix="antipode-records-"))
        for name, way in WAYS.items():
            environment = {"ANTIPODE_MODE": way.mode or "enforce", "ANTIPODE_RECORDS": records}
            environment["ANTIPODE_SAMPLE"] = str(sample)
            posts, queues = servers
            fleet = Fleet(
                options, antipode=way.wrapped, posts=posts.urls, queues=queues, environment=environment, place=name
            )
            fleets[name] = await ends.enter_async_context(fleet)
        loads = {name: Load(options, fleet) for name, fleet in fleets.items()}
        for load in loads.values():
            ends.callback(load.close)
        for name, load in loads.items():
            await load.run(f"warmup {name}", max(options.requests // 4, options.warmup), lambda *_: None)
        with console.status("") as status:
            for number in range(rounds):
                names = list(WAYS)
                for place in range(len(names)):
                    name = names[(place + number) % len(names)]
                    status.update(f"round {number + 1} of {rounds}: {name}")
                    found[name].append(await _round(options, fleets[name], loads[name], f"{number} {name}"))
    return found


async def _round(options: Options, fleet: Fleet, load: Load, name: str) -> Round:
    before = fleet.processor_seconds
    try:
        batch = await load.run(name, options.requests, lambda *_: None)
    except RunFailed as error:
        raise RunFailed(f"{name}: {error}\n{fleet.words()}") from error
    ended = max(delivery.done_ns for delivery in batch.deliveries.values())
    seconds = (ended - batch.started_ns) / 1e9
    return Round(options.requests / seconds, (fleet.processor_seconds - before) * 1000 / options.requests)


def _row(name: str, found: Sequence[Round], measured: Mapping[str, Sequence[Round]], sample: float) -> dict[str, Any]:
    row: dict[str, Any] = {
        "way": name,
        "sample": sample,
        "rounds": len(found),
        "uploads_per_s": round(median(each.uploads_per_s for each in found), 2),
        "processor_ms": round(median(each.processor_ms for each in found), 3),
    }
    for key, other in (("without", "without Antipode"), ("off", "off")):
        if name != other:
            costs = [
                100 * (1 - one.uploads_per_s / two.uploads_per_s)
                for one, two in zip(found, measured[other], strict=True)
            ]
            work = [
                100 * (one.processor_ms / two.processor_ms - 1) for one, two in zip(found, measured[other], strict=True)
            ]
            row[f"throughput_lost_percent_to_{key}"] = estimate(costs)
            row[f"processor_more_percent_than_{key}"] = estimate(work)
    return row


def estimate(values: Sequence[float]) -> dict[str, float]:
    """The median, and between which values it lies with 95 % of confidence (order statistics)."""
    ordered, count = sorted(values), len(values)
    outside, rank = 0.0, 0
    while rank < count // 2 and (outside := outside + math.comb(count, rank) / 2**count) <= 0.025:
        rank += 1
    rank = max(rank - 1, 0)
    return {
        "median": round(median(ordered), 2),
        "from": round(ordered[rank], 2),
        "to": round(ordered[count - 1 - rank], 2),
    }


def _show(console: Console, rows: Sequence[Mapping[str, Any]]) -> None:
    table = Table(title="the same load, by turns; costs: median of the rounds (95 % of confidence)")
    for column in (
        "",
        "uploads/s",
        "lost to none",
        "lost to off",
        "processors, ms an upload",
        "more than none",
        "more than off",
    ):
        table.add_column(column, justify="right" if column else "left")
    for row in rows:

        def cell(key: str, row: Mapping[str, Any] = row) -> str:
            found = row.get(key)
            return "" if found is None else f"{found['median']:.1f} % ({found['from']:.1f} to {found['to']:.1f})"

        table.add_row(
            row["way"],
            f"{row['uploads_per_s']:.1f}",
            cell("throughput_lost_percent_to_without"),
            cell("throughput_lost_percent_to_off"),
            f"{row['processor_ms']:.2f}",
            cell("processor_more_percent_than_without"),
            cell("processor_more_percent_than_off"),
        )
    console.print(table)
