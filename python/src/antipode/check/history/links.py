"""What joins the operations of a witness: the arrows of its pictures."""

from __future__ import annotations

from dataclasses import dataclass

from antipode.check.history.operations import History
from antipode.check.history.paths import Step
from antipode.check.history.witness import Forced, Witness


@dataclass(frozen=True, slots=True)
class Link:
    """An arrow from the earlier operation to the later one."""

    earlier: int
    later: int
    words: str
    wrong: bool = False
    """What the read returned, and what follows from what was seen: these do not fit the others."""
    forced: bool = False
    """Not a cause, but the order that a reader has seen."""


def links(history: History, witness: Witness) -> list[Link]:
    """One for each pair that is joined; what a reader has seen comes last."""
    found = {(step.earlier, step.later): Link(step.earlier, step.later, str(step.why)) for step in _steps(witness)}
    source = history.source[witness.read]
    if source in witness.operations and (source, witness.read) not in found:
        found[source, witness.read] = Link(source, witness.read, "read", wrong=True)
    for forced in witness.forced:
        words = f"seen so, by {history.operations[forced.read].id}"
        found[forced.earlier, forced.later] = Link(forced.earlier, forced.later, words, wrong=True, forced=True)
    return list(found.values())


def _steps(witness: Witness) -> list[Step]:
    steps = list(witness.chain)
    for forced in witness.forced:
        steps += [part for part in forced.reason if not isinstance(part, Forced)]
    return steps
