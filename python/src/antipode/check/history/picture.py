"""Witnesses as a picture for Graphviz: `antipode check --history FILE --dot OUT` (spec HIST-16)."""

from __future__ import annotations

from collections.abc import Sequence

from antipode.check.history.links import links
from antipode.check.history.operations import History, Kind
from antipode.check.history.witness import Witness


def as_dot(history: History, witnesses: Sequence[Witness]) -> str:
    """One graph with a box for each violation, and in it one for each process and scope."""
    lines = ["digraph history {", "  rankdir=LR; compound=true; fontname=Helvetica;"]
    lines.append("  node [shape=box, fontname=Helvetica, fontsize=10]; edge [fontname=Helvetica, fontsize=9];")
    for place, witness in enumerate(witnesses):
        lines += _one(history, place, witness)
    lines.append("}")
    return "\n".join(lines) + "\n"


def _one(history: History, place: int, witness: Witness) -> list[str]:
    lines = [f"  subgraph cluster_{place} {{", f"    label={_quoted(f'{place + 1}. {witness.pattern}')};"]
    threads: dict[int, list[int]] = {}
    for number in witness.operations:
        threads.setdefault(history.thread[number], []).append(number)
    for thread, members in threads.items():
        first = history.operations[members[0]]
        lines += [
            f"    subgraph cluster_{place}_{thread} {{",
            f"      label={_quoted(f'{first.process} ({first.scope})')}; style=dashed;",
        ]
        for number in members:
            color = (
                ", color=red, penwidth=2"
                if number == witness.read
                else ", color=blue"
                if number == witness.missed
                else ""
            )
            lines.append(f"      n{place}_{number} [label={_quoted(_label(history, number))}{color}];")
        lines.append("    }")
    for link in links(history, witness):
        how = ", style=dashed, color=red, constraint=false" if link.forced else ", color=red" if link.wrong else ""
        lines.append(f"    n{place}_{link.earlier} -> n{place}_{link.later} [label={_quoted(link.words)}{how}];")
    lines.append("  }")
    return lines


def _label(history: History, number: int) -> str:
    each = history.operations[number]
    if each.kind in (Kind.SEND, Kind.RECEIVE):
        return f"{each.id}\n{each.kind} {each.message}"
    return f"{each.id}\n{each.kind} {each.store}/{each.key}"


def _quoted(text: str) -> str:
    shown = "".join(char if char.isprintable() or char == "\n" else "?" for char in text)
    escaped = shown.replace("\\", "\\\\").replace('"', '\\"').replace("\n", "\\n")
    return f'"{escaped}"'
