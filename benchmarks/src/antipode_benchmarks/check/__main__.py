"""`python -m antipode_benchmarks.check`: the curves of `antipode check`, for records and for histories."""

from __future__ import annotations

import json
import os
import platform
from datetime import UTC, datetime
from importlib.metadata import version
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Annotated, Any

import typer
from rich.console import Console
from rich.table import Table

from antipode_benchmarks.check.measuring import KINDS, Point, measure
from antipode_benchmarks.check.plot import draw

MISSED = 1
"""Exit code: a target was missed, with --strict."""

app = typer.Typer(add_completion=False, rich_markup_mode=None, pretty_exceptions_enable=False)


@app.command()
def main(
    kind: Annotated[list[str] | None, typer.Option(help="records or history; may be repeated [default: both]")] = None,
    quick: Annotated[bool, typer.Option(help="a hundredth of the sizes: for a look, not for figures")] = False,
    strict: Annotated[bool, typer.Option(help="exit code 1 where a target is missed")] = False,
    json_file: Annotated[
        Path | None, typer.Option("--json", help="where the result goes, its plot beside it [default: results/check-…]")
    ] = None,
) -> None:
    """Generates records and histories of growing size, checks each by the command, in a process of its own.

    The last line names the JSON file with the result. Exit code 0; with --strict 1 where a target is missed.
    """
    wanted = kind or list(KINDS)
    for name in wanted:
        if name not in KINDS:
            raise typer.BadParameter(f"--kind {name}: want one of {', '.join(KINDS)}")
    started = datetime.now(UTC)
    console = Console(highlight=False)
    load = os.getloadavg()[0]
    points: list[Point] = []
    with TemporaryDirectory(prefix="antipode-check-") as folder:
        for name in wanted:
            for size in KINDS[name].sizes:
                with console.status(f"{name}, {size:,}"):
                    points.append(measure(name, max(size // 100, 1) if quick else size, Path(folder)))
    _show(console, points)
    found = _result(started, points, (load, os.getloadavg()[0]), quick)
    path = json_file or Path("results") / f"check-{started.strftime('%Y%m%dT%H%M%SZ')}.json"
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_text(json.dumps(found, indent=2) + "\n")
    draw(points, path.with_suffix(".png"))
    for missed in found["missed"]:
        console.print(f"missed: {missed}")
    print(f"result: {path}", flush=True)
    if strict and found["missed"]:
        raise typer.Exit(MISSED)


def _result(started: datetime, points: list[Point], load: tuple[float, float], quick: bool) -> dict[str, Any]:
    missed = []
    for point in points:
        target = KINDS[point.kind]
        if not quick and point.size == target.sizes[-1] and (point.wall > target.wall or point.mib > target.mib):
            missed.append(f"{point.kind}, {point.size:,}: {point.wall:.1f} s, {point.mib:,.0f} MiB")
    return {
        "benchmark": "check",
        "schema": 1,
        "started": started.isoformat(timespec="seconds"),
        "antipode_version": version("antipode-sdk"),
        "machine": {
            "cpus": os.cpu_count() or 0,
            "system": platform.platform(),
            "python": platform.python_version(),
            "load_before": round(load[0], 2),
            "load_after": round(load[1], 2),
        },
        "quick": quick,
        "targets": {name: {"seconds": each.wall, "mib": each.mib} for name, each in KINDS.items()},
        "points": [point._asdict() for point in points],
        "missed": missed,
    }


def _show(console: Console, points: list[Point]) -> None:
    table = Table(title="antipode check: what it takes", title_justify="left")
    for name in ("", "size", "octets", "seconds", "of processors", "MiB", "answer"):
        table.add_column(name, justify="left" if name in {"", "answer"} else "right")
    for point in points:
        numbers = (f"{point.size:,}", f"{point.octets:,}", f"{point.wall:.2f}", f"{point.cpu:.2f}", f"{point.mib:,.0f}")
        table.add_row(point.kind, *numbers, {0: "clean", 1: "violated"}.get(point.code, "cannot tell"))
    console.print(table)


if __name__ == "__main__":
    app()
