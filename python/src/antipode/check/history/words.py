"""A violation in sentences that need no theory (spec HIST-16)."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass, field

from antipode.check.history.operations import History, Kind
from antipode.check.history.order import Why
from antipode.check.history.paths import Step
from antipode.check.history.patterns import Pattern
from antipode.check.history.witness import Forced, Witness


@dataclass(frozen=True, slots=True)
class Line:
    """One operation of a witness, and what it did."""

    operation: int
    sentence: str


@dataclass(slots=True)
class Explanation:
    """A violation: what happened in a sentence, each step, and what follows from them."""

    headline: str
    lines: list[Line] = field(default_factory=list)
    conclusion: list[str] = field(default_factory=list)


def tell(history: History, witness: Witness) -> Explanation:
    """The violation in words."""
    return _Telling(history).tell(witness)


def named(history: History, number: int) -> str:
    """An operation's id."""
    return history.operations[number].id


class _Telling:
    def __init__(self, history: History) -> None:
        self._history = history

    def tell(self, witness: Witness) -> Explanation:
        read = self._history.operations[witness.read]
        what = f"{read.key} of {read.store}"
        got = "nothing, as if it had never been written" if read.reads_from is None else f"what {read.reads_from} wrote"
        match witness.pattern:
            case Pattern.THIN_AIR_READ:
                told = Explanation(f"{self._who(witness.read)} read {what} and got what nobody wrote")
                told.lines.append(Line(witness.read, f"{self._did(witness.read)}, and there is no {read.reads_from}"))
                told.conclusion.append(
                    f"Either the write {read.reads_from} was not recorded, or the store made a value up."
                )
            case Pattern.CYCLIC_CO:
                told = Explanation(
                    "these operations each come before the other: something was read before it was written"
                )
                told.lines = self._chain(witness.chain, witness.read)
                told.conclusion.append(
                    "That cannot have happened: a reads-from, a lineage or a process's order in the history is wrong, "
                    "or the store returned a value that was yet to be written."
                )
            case Pattern.WRITE_CO_INIT_READ:
                told = Explanation(f"{self._who(witness.read)} read {what} and got {got}, though a write came before")
                told.lines = self._chain(witness.chain, witness.read)
                told.conclusion.append(self._should(witness))
            case Pattern.WRITE_CO_READ:
                told = Explanation(f"{self._who(witness.read)} read {what} and got an old value, {got}")
                told.lines = self._chain(witness.chain, witness.read)
                told.conclusion.append(self._should(witness))
            case _:
                told = self._seen(witness, what, got)
        return told

    def _should(self, witness: Witness) -> str:
        read, missed = named(self._history, witness.read), named(self._history, witness.missed or 0)
        return (
            f"So {read} should have returned what {missed} wrote, or something newer. A barrier before {read} "
            "waits until it is visible there."
        )

    def _seen(self, witness: Witness, what: str, got: str) -> Explanation:
        told = Explanation(f"what {self._who(witness.read)} read does not fit into any order of the writes")
        if witness.missed is not None:
            told.headline = (
                f"{self._who(witness.read)} read {what} and got {got}, though its other reads say it was there"
            )
        told.lines = [Line(number, self._did(number)) for number in witness.operations]
        for forced in witness.forced:
            told.conclusion.append(self._forced(forced))
        if witness.missed is not None:
            told.conclusion.append(
                f"With that, {named(self._history, witness.missed)} comes before {named(self._history, witness.read)}, "
                "which should have returned it, or something newer."
            )
        elif witness.forced:
            told.conclusion.append("These cannot all hold: the reader saw values go back and forth.")
        return told

    def _forced(self, forced: Forced) -> str:
        read, earlier, later = (named(self._history, each) for each in (forced.read, forced.earlier, forced.later))
        order = f"so for this reader {earlier} was written before {later}"
        return f"{read} returned {later} when {earlier} came before {read}: {order}."

    def _chain(self, chain: Iterable[Step], alone: int) -> list[Line]:
        lines: list[Line] = []
        for step in chain:
            if not lines:
                lines.append(Line(step.earlier, self._did(step.earlier)))
            lines.append(Line(step.later, self._step(step)))
        return lines or [Line(alone, self._did(alone))]

    def _step(self, step: Step) -> str:
        earlier = named(self._history, step.earlier)
        match step.why:
            case Why.SCOPE:
                return f"then, in the same scope, {self._did(step.later)}"
            case Why.LINEAGE:
                return f"{self._did(step.later)}, with {earlier} in the lineage that came with it"
            case Why.MESSAGE:
                return f"{self._did(step.later)}, which {earlier} had sent"
        return self._did(step.later)

    def _who(self, number: int) -> str:
        return self._history.operations[number].process

    def _did(self, number: int) -> str:
        each = self._history.operations[number]
        who = f"{each.process} ({each.scope})"
        match each.kind:
            case Kind.WRITE:
                return f"{who} wrote {each.key} of {each.store}"
            case Kind.SEND:
                return f"{who} sent the message {each.message}"
            case Kind.RECEIVE:
                return f"{who} received the message {each.message}"
        if each.reads_from is None:
            return f"{who} read {each.key} of {each.store} and found nothing"
        return f"{who} read {each.key} of {each.store} and got what {each.reads_from} wrote"
