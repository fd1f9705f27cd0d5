"""A witness as a drawing: a column for each scope, its operations from top to bottom, an arrow for each cause."""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass, field
from graphlib import CycleError, TopologicalSorter
from itertools import pairwise
from typing import Final

from antipode.check.history.links import Link, links
from antipode.check.history.operations import History, Kind
from antipode.check.history.witness import Witness

COLUMN: Final = 226.0
ROW: Final = 86.0
WIDTH: Final = 164.0
HEIGHT: Final = 46.0
TOP: Final = 58.0
"""Room for the scopes' names above the first row."""
_BESIDE: Final = 60.0
"""How far an arrow within a column goes round the boxes that it passes."""
_LETTERS: Final = 23
"""So many of a name stand in a box; the whole of it in its title."""
_DID: Final = {Kind.WRITE: "wrote", Kind.READ: "read", Kind.SEND: "sent", Kind.RECEIVE: "received"}


@dataclass(frozen=True, slots=True)
class Box:
    """One operation."""

    x: float
    y: float
    words: str
    name: str
    title: str
    kind: str
    """`read`: the one that is wrong; `missed`: what it should have returned; else empty."""


@dataclass(frozen=True, slots=True)
class Arrow:
    """One cause."""

    path: str
    x: float
    y: float
    words: str
    kind: str
    """`cause`, `wrong` (what the read returned), or `forced` (an order that a reader has seen)."""


@dataclass(slots=True)
class Drawing:
    """All of it; places are those of boxes' upper left corners."""

    width: float
    height: float
    columns: list[tuple[float, str, str]]
    """The middle of each scope's column, the process, and the scope."""
    boxes: list[Box] = field(default_factory=list)
    arrows: list[Arrow] = field(default_factory=list)


def draw(history: History, witness: Witness) -> Drawing:
    """Where everything is."""
    joined = links(history, witness)
    rows = {number: row for row, number in enumerate(_in_order(history, witness.operations, joined))}
    columns: dict[int, int] = {}
    for number in rows:
        columns.setdefault(history.thread[number], len(columns))
    places = {
        number: (columns[history.thread[number]] * COLUMN + COLUMN / 2, TOP + row * ROW + HEIGHT / 2)
        for number, row in rows.items()
    }
    firsts = {history.thread[number]: history.operations[number] for number in reversed(list(rows))}
    names = [
        (place * COLUMN + COLUMN / 2, shortened(firsts[thread].process), shortened(firsts[thread].scope))
        for thread, place in columns.items()
    ]
    drawing = Drawing(len(columns) * COLUMN + _BESIDE, TOP + len(rows) * ROW, names)
    for number, (x, y) in places.items():
        drawing.boxes.append(_box(history, witness, number, x, y))
    for link in joined:
        drawing.arrows.append(_arrow(link, places))
    return drawing


def shortened(name: str) -> str:
    """A name as it fits into a box: its beginning and its end."""
    return name if len(name) <= _LETTERS else f"{name[: _LETTERS // 2]}…{name[-(_LETTERS // 2) :]}"


def _in_order(history: History, operations: Sequence[int], joined: Sequence[Link]) -> list[int]:
    """Causes before effects; as they stand in the history where they go round in a circle."""
    sorter: TopologicalSorter[int] = TopologicalSorter(dict.fromkeys(operations, ()))
    for link in joined:
        if not link.forced:
            sorter.add(link.later, link.earlier)
    threads: dict[int, list[int]] = {}
    for number in operations:
        threads.setdefault(history.thread[number], []).append(number)
    for members in threads.values():
        for earlier, later in pairwise(sorted(members, key=history.place.__getitem__)):
            sorter.add(later, earlier)
    try:
        return list(sorter.static_order())
    except CycleError:
        return list(operations)


def _box(history: History, witness: Witness, number: int, x: float, y: float) -> Box:
    each = history.operations[number]
    name = f"{each.key} of {each.store}" if each.store else each.message
    what = f"{each.id} {_DID[each.kind]}"
    if each.kind is Kind.READ:
        what += " nothing" if each.reads_from is None else f", got {each.reads_from}"
    kind = "read" if number == witness.read else "missed" if number == witness.missed else ""
    title = f"{each.process} ({each.scope}): {what}: {name}"
    return Box(x - WIDTH / 2, y - HEIGHT / 2, shortened(what), shortened(name), title, kind)


def _arrow(link: Link, places: dict[int, tuple[float, float]]) -> Arrow:
    (x1, y1), (x2, y2) = places[link.earlier], places[link.later]
    kind = "forced" if link.forced else "wrong" if link.wrong else "cause"
    if x1 == x2 and 0 < y2 - y1 <= ROW:
        y1, y2 = y1 + HEIGHT / 2, y2 - HEIGHT / 2
        return Arrow(f"M{x1:g} {y1:g}L{x2:g} {y2:g}", x1, (y1 + y2) / 2, link.words, kind)
    if x1 == x2:  # round what is between
        x = x1 + WIDTH / 2
        out = x + _BESIDE
        path = f"M{x:g} {y1:g}C{out:g} {y1:g} {out:g} {y2:g} {x:g} {y2:g}"
        return Arrow(path, x + _BESIDE * 0.75, (y1 + y2) / 2, link.words, kind)
    side, gap = math.copysign(1, x2 - x1), COLUMN - WIDTH
    between = abs(x2 - x1) > COLUMN  # boxes may stand there: the words stand before the arrow's end
    x1, x2 = x1 + side * WIDTH / 2, x2 - side * WIDTH / 2
    path = f"M{x1:g} {y1:g}C{x1 + side * gap:g} {y1:g} {x2 - side * gap:g} {y2:g} {x2:g} {y2:g}"
    middle = (x2 - side * gap / 2, y2 - math.copysign(10, y2 - y1)) if between else ((x1 + x2) / 2, (y1 + y2) / 2)
    return Arrow(path, *middle, link.words, kind)
