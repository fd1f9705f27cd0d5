"""`python -m antipode_benchmarks.micro`: every micro benchmark, as one table, and as JSON."""

from __future__ import annotations

import os
import sys
from collections.abc import Callable, Iterable
from datetime import UTC, datetime
from pathlib import Path
from typing import Annotated

import typer
from antipode_lab.errors import LabError
from rich.console import Console

from antipode_benchmarks.micro import barriers, lineages, report
from antipode_benchmarks.micro.figures import Figure, loop_us

GROUPS = {
    "lineages": "Lineages, beside a naive JSON list of write identifiers (processor time)",
    "barriers": "Barriers in one process, on the embedded store",
    "redis": "Redis: the shim's overhead, and waiting",
    "busy": "Waiting at replicas of Redis and PostgreSQL that take writes all the time",
}
MISSED, FAILED = 1, 4
"""Exit codes: a figure worsened by more than a fifth, or a target was missed, with --strict; a group could not run."""

app = typer.Typer(add_completion=False, rich_markup_mode=None, pretty_exceptions_enable=False)


@app.command()
def main(
    group: Annotated[
        list[str] | None, typer.Option(help="lineages, barriers, redis or busy; may be repeated [default: all]")
    ] = None,
    quick: Annotated[bool, typer.Option(help="a tenth of the rounds: for a look, not for figures")] = False,
    keep: Annotated[bool, typer.Option(help="keep the figures, for others to be compared with")] = False,
    strict: Annotated[bool, typer.Option(help="exit code 1 where a target is missed")] = False,
    json_file: Annotated[
        Path | None, typer.Option("--json", help="where the result goes [default: results/micro-….json]")
    ] = None,
) -> None:
    """What single operations of Antipode cost: lineage hops, sizes, barriers, the Redis shim, wake-up delays.

    Operations that have a naive counterpart are measured in turns with it, in one run, and given as ratios. The last
    line names the JSON file with the result. Exit code 0; 1 where a figure is worse by more than a fifth than the one
    kept in benchmarks/micro.json (not with --quick), with --strict also where a target is missed; 4: a group failed.
    """
    for name in group or ():
        if name not in GROUPS:
            raise typer.BadParameter(f"--group {name}: want one of {', '.join(GROUPS)}")
    started, load = datetime.now(UTC), os.getloadavg()[0]
    console = Console(highlight=False, width=None if sys.stdout.isatty() else 140)
    figures: dict[str, list[Figure]] = {}
    skipped: dict[str, str] = {}
    loops = [loop_us()]
    for name, title in GROUPS.items():
        if group and name not in group:
            continue
        try:
            with console.status(title):
                figures[name] = list(_RUNS[name](quick))
        except LabError as error:
            skipped[name] = str(error)
            continue
        report.show(console, title, figures[name])
    loops.append(loop_us())
    found = report.result(started, figures, skipped, (load, os.getloadavg()[0]), min(loops))
    if quick:
        found["worsened"] = {}
    if keep:
        report.keep(found)
    report.close(console, found)
    path = json_file or Path("results") / f"micro-{started.strftime('%Y%m%dT%H%M%SZ')}.json"
    report.save(found, path)
    print(f"result: {path}", flush=True)
    if skipped:
        raise typer.Exit(FAILED)
    if found["worsened"] or (strict and found["missed"]):
        raise typer.Exit(MISSED)


def _lineages(quick: bool) -> Iterable[Figure]:
    return lineages.figures(rounds=20 if quick else 200)


def _barriers(quick: bool) -> Iterable[Figure]:
    return barriers.figures(rounds=10 if quick else 60, tasks=1000 if quick else 10_000, threads=100 if quick else 1000)


def _redis(quick: bool) -> Iterable[Figure]:
    from antipode_lab import Lab

    from antipode_benchmarks.micro import redis_shim, redis_waits

    with Lab("redis", lag="0ms") as lab:
        yield from redis_shim.figures(lab, writes=400 if quick else 4000)
        yield from redis_waits.figures(lab, seconds=1.0 if quick else 10.0)


def _busy(quick: bool) -> Iterable[Figure]:
    from antipode_benchmarks.micro import busy, busy_stores

    for place_of in (busy_stores.redis_place, busy_stores.postgresql_place):
        with place_of() as place:
            yield from busy.figures(place, seconds=2.0 if quick else 15.0)


_RUNS: dict[str, Callable[[bool], Iterable[Figure]]] = {
    "lineages": _lineages,
    "barriers": _barriers,
    "redis": _redis,
    "busy": _busy,
}

if __name__ == "__main__":
    app()
