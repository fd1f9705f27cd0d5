"""The experiments' plots, by matplotlib."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any


def _axes(title: str, x: str, y: str) -> tuple[Any, Any]:
    import matplotlib as mpl

    mpl.use("Agg")  # a file, wherever it runs
    from matplotlib import pyplot

    figure, axes = pyplot.subplots(figsize=(7, 4), layout="constrained")
    axes.set_title(title)
    axes.set_xlabel(x)
    axes.set_ylabel(y)
    return figure, axes


def _saved(figure: Any, path: Path) -> Path:
    from matplotlib import pyplot

    figure.savefig(path, dpi=120)
    pyplot.close(figure)
    return path


def lines(path: Path, title: str, x: str, y: str, series: Mapping[str, Sequence[tuple[float, float]]]) -> Path:
    """A line a series; its points are x and y."""
    figure, axes = _axes(title, x, y)
    for name, points in series.items():
        axes.plot(*zip(*points, strict=True), marker="o", label=name)
    axes.legend()
    return _saved(figure, path)


def bars(
    path: Path, title: str, y: str, groups: Sequence[str], series: Mapping[str, Sequence[float]], shape: str = "{:.0f}"
) -> Path:
    """A group of bars a name, one a series; `shape`: how their figures are written."""
    figure, axes = _axes(title, "", y)
    width = 0.8 / len(series)
    for number, (name, values) in enumerate(series.items()):
        places = [group + width * (number - (len(series) - 1) / 2) for group in range(len(groups))]
        axes.bar_label(axes.bar(places, values, width, label=name), fmt=shape, fontsize=7)
    axes.set_xticks(range(len(groups)), groups)
    axes.legend()
    return _saved(figure, path)


def grid(
    path: Path, title: str, rows: Sequence[str], columns: Sequence[str], values: Mapping[tuple[str, str], float]
) -> Path:
    """Percentages by column and row, as colours with their figures."""
    figure, axes = _axes(title, "posts", "notifications")
    table = [[values.get((column, row), float("nan")) for column in columns] for row in rows]
    axes.imshow(table, vmin=0, vmax=100, cmap="Reds", aspect="auto")
    axes.set_xticks(range(len(columns)), columns)
    axes.set_yticks(range(len(rows)), rows)
    for row, cells in enumerate(table):
        for column, cell in enumerate(cells):
            axes.text(column, row, f"{cell:.0f} %" if cell == cell else "failed", ha="center", va="center", fontsize=8)  # noqa: PLR0124
    return _saved(figure, path)
