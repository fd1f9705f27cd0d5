"""The result as tables for people, and as JSON for programs."""

from __future__ import annotations

import json
import os
import platform
from collections.abc import Mapping, Sequence
from datetime import UTC, datetime
from importlib.metadata import version
from pathlib import Path
from typing import Any

from rich.console import Console
from rich.table import Table

from antipode_benchmarks.micro.figures import Figure, rounded

SCHEMA_VERSION = 1
KEPT = Path(__file__).parents[3] / "micro.json"
"""The figures that others are compared with, beside micro.md; times as multiples of the loop of plain Python."""
_BY_WALL = ("release_", "set_", "requests_", "wake_up_")
_MOST_WORSE = 1.2


def result(
    started: datetime,
    figures: Mapping[str, Sequence[Figure]],
    skipped: Mapping[str, str],
    load: tuple[float, float],
    loop_us: float,
) -> dict[str, Any]:
    """The whole result; its fields are documented in benchmarks/micro.md and in the schema."""
    every = [figure for group in figures.values() for figure in group]
    cpus = os.cpu_count() or 1
    comparable = {
        figure.name: rounded(_comparable(figure, loop_us))
        for figure in every
        if load[0] <= cpus / 2 or not figure.name.startswith(_BY_WALL)
    }
    return {
        "comparable": comparable,
        "worsened": worsened(comparable, {figure.name: figure.at_least is not None for figure in every}),
        "benchmark": "micro",
        "schema": SCHEMA_VERSION,
        "started": started.astimezone(UTC).isoformat(timespec="seconds"),
        "antipode_version": version("antipode-sdk"),
        "machine": {
            "cpus": os.cpu_count() or 0,
            "system": platform.platform(),
            "python": platform.python_version(),
            "load_before": round(load[0], 2),
            "load_after": round(load[1], 2),
            "loop_us": rounded(loop_us),
        },
        "figures": {
            figure.name: {"group": group} | figure.to_json() for group, members in figures.items() for figure in members
        },
        "missed": [figure.name for figure in every if figure.met is False],
        "skipped": dict(skipped),
    }


def _comparable(figure: Figure, loop_us: float) -> float:
    return figure.value / loop_us * {"us": 1, "ms": 1000}[figure.unit] if figure.unit in ("us", "ms") else figure.value


def worsened(comparable: Mapping[str, float], more_is_better: Mapping[str, bool]) -> dict[str, float]:
    """Return by how many times each figure is worse than the one kept, for those that are so by more than a fifth."""
    kept: dict[str, float] = json.loads(KEPT.read_text())["figures"] if KEPT.exists() else {}
    times = {
        name: kept[name] / value if more_is_better[name] else value / kept[name]
        for name, value in comparable.items()
        if kept.get(name) and value > 0
    }
    return {name: rounded(each) for name, each in times.items() if each > _MOST_WORSE}


def keep(found: dict[str, Any]) -> None:
    """Keep these figures for others to be compared with; those that were not measured now stay as they were."""
    before = json.loads(KEPT.read_text())["figures"] if KEPT.exists() else {}
    kept = {"about": "kept by python -m antipode_benchmarks.micro --keep", "figures": before | found["comparable"]}
    save(kept, KEPT)


def save(found: dict[str, Any], path: Path) -> None:
    """Writes the result."""
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_text(json.dumps(found, indent=2) + "\n")


def show(console: Console, title: str, figures: Sequence[Figure]) -> None:
    """Prints one group's figures."""
    table = Table(title=title, title_justify="left")
    table.add_column("", overflow="fold")
    table.add_column("figure", justify="right", no_wrap=True)
    table.add_column("p10 to p90", justify="right")
    table.add_column("target", justify="right")
    table.add_column("beside", overflow="fold")
    for figure in figures:
        style = {True: "green", False: "bold red", None: None}[figure.met]
        table.add_row(
            figure.what,
            f"{_number(figure.value)} {figure.unit}",
            f"{_number(figure.spread['p10'])} … {_number(figure.spread['p90'])}" if figure.spread else "",
            figure.target,
            ", ".join(f"{name} {_number(value)}" for name, value in figure.beside.items()),
            style=style,
        )
    console.print(table)


def _number(value: float) -> str:
    return f"{rounded(value):,g}" if abs(value) < 1e6 else f"{value:,.0f}"


def close(console: Console, found: dict[str, Any]) -> None:
    """Prints what was missed or skipped, and whether the machine was busy."""
    for group, reason in found["skipped"].items():
        console.print(f"SKIPPED {group}: {reason}", style="bold yellow")
    for name in found["missed"]:
        figure = found["figures"][name]
        target = f"≥ {figure['at_least']:g}" if figure["at_least"] is not None else f"≤ {figure['at_most']:g}"
        console.print(f"MISSED: {name}: {figure['value']:g} {figure['unit']}, want {target}", style="bold red")
    for name, times in found["worsened"].items():
        console.print(f"WORSE: {name}: {times:g} times the figure in benchmarks/micro.json", style="bold red")
    machine = found["machine"]
    if machine["load_before"] > machine["cpus"] / 2:
        console.print(
            f"The machine was busy before it began (load {machine['load_before']:g} on {machine['cpus']} processors): "
            "figures by the wall clock (Redis, releases) say little.",
            style="yellow",
        )
