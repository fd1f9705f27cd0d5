"""The curves, by matplotlib."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path

from antipode_benchmarks.check.measuring import KINDS, Point


def draw(points: Sequence[Point], path: Path) -> None:
    """Time and memory against size, one row a kind."""
    import matplotlib as mpl

    mpl.use("Agg")
    from matplotlib import pyplot

    kinds = list(dict.fromkeys(point.kind for point in points))
    figure, places = pyplot.subplots(len(kinds), 2, figsize=(10, 3.6 * len(kinds)), squeeze=False)
    for row, kind in zip(places, kinds, strict=True):
        own = [point for point in points if point.kind == kind]
        sizes = [point.size for point in own]
        what = "records" if kind == "records" else "operations of a history"
        row[0].plot(sizes, [point.wall for point in own], "o-", label="by the wall")
        row[0].plot(sizes, [point.cpu for point in own], "s--", label="of processors")
        row[0].axhline(KINDS[kind].wall, color="tab:red", linewidth=1, label="target for the greatest")
        row[0].set_ylabel("seconds")
        row[0].legend()
        row[1].plot(sizes, [point.mib for point in own], "o-")
        row[1].set_ylabel("MiB resident, at most")
        for place in row:
            place.set_xlabel(what)
            place.set_ylim(bottom=0)
            place.xaxis.set_major_formatter(lambda value, _: f"{value:,.0f}")
    figure.tight_layout()
    figure.savefig(path, dpi=110)
    pyplot.close(figure)
