"""`antipode check --history`: is a recorded history consistent, which reads are not, and why (spec HIST)."""

from __future__ import annotations

import json
import re
import sys
import time
from collections.abc import Iterable, Iterator, Sequence
from enum import StrEnum
from pathlib import Path
from typing import IO, Any, Final, NamedTuple

import typer
from rich.text import Text

from antipode.check.history.building import build
from antipode.check.history.clock import Deadline, OutOfTimeError
from antipode.check.history.deciding import Decision, Verdict, decide
from antipode.check.history.foreign import MAX_OCTETS, from_dbcop, from_plume, to_dbcop, to_plume
from antipode.check.history.operations import UNKNOWN_SOURCE, History, HistoryError, Kind, Operation
from antipode.check.history.picture import as_dot
from antipode.check.history.reading import files_of, read_files, read_operations
from antipode.check.history.words import tell
from antipode.check.history.writing import write_operations
from antipode.cli.output import Exit, columns, complain, fail, printable, say

_DURATION: Final = re.compile(r"(\d{1,9}(?:\.\d{1,6})?)(ms|s|m|min|h)?")
_UNITS: Final = {"ms": 0.001, "s": 1.0, "m": 60.0, "min": 60.0, "h": 3600.0}
_NAMED: Final = 20
"""So many reads, gaps and later writes are named; --json names all."""


class Form(StrEnum):
    """The forms of histories."""

    ANTIPODE = "antipode"
    DBCOP = "dbcop"
    PLUME = "plume"


class PictureTarget(NamedTuple):
    """Where pictures go."""

    dot: Path | None
    page: Path | None


def check_history(
    history: Sequence[str],
    drawn: PictureTarget,
    as_json: bool,
    deadline: str,
    memory: int,
    source: Form,
    target: Form | None,
) -> None:
    """Decides whether a recorded history is consistent, and says so.

    Raises:
        typer.Exit: with 1 where it is not, with 2 where nobody can tell.
    """
    seconds = _seconds(deadline)
    begun = time.monotonic()
    decision: Decision
    read: History | None = None
    try:
        read = _read(history, source, Deadline(seconds))
        if target is not None:
            _convert(read, target)
            return
        left = None if seconds is None else max(seconds - (time.monotonic() - begun), 0.0)
        decision = decide(read, left, memory=memory * 2**20)
    except HistoryError as error:
        fail(f"{printable(str(error))}.")
    except OutOfTimeError:
        decision = Decision(Verdict.UNKNOWN, [], 0, "the history was not read within the deadline")
    if read is not None and drawn.dot is not None:
        _write(drawn.dot, as_dot(read, decision.witnesses))
    if drawn.page is not None:
        from antipode.check.history.page import as_page  # what it needs may not be installed

        _write(drawn.page, as_page(read, decision, _headline(decision).plain))
    if as_json:
        say(json.dumps(_as_json(read, decision), indent=2))
    else:
        _show(read, decision)
    if decision.verdict is not Verdict.CONSISTENT:
        raise typer.Exit(Exit.FOUND if decision.verdict is Verdict.VIOLATED else Exit.CANNOT_TELL)


def _write(file: Path, text: str) -> None:
    try:
        file.write_text(text, "utf-8", "backslashreplace")
    except OSError as error:
        fail(f"{printable(str(file))}: {error.strerror or error}.")


def _seconds(text: str) -> float | None:
    if not text:
        return None
    match = _DURATION.fullmatch(text.strip())
    if match is None:
        fail(f"--deadline {printable(text[:40])} is no time, such as 30s or 2m.")
    return float(match[1]) * _UNITS[match[2] or "s"]


def _read(files: Sequence[str], form: Form, deadline: Deadline) -> History:
    if form is Form.ANTIPODE and "-" not in files:
        return build(_timed(read_files(files_of(files)), deadline))
    if len(files) != 1:
        raise HistoryError(f"{', '.join(files)}: only files and folders in Antipode's own form may be several")
    [file] = files
    if file == "-":
        return build(_operations(sys.stdin.buffer, "standard input", form, deadline))
    try:
        with Path(file).open("rb") as stream:
            return build(_operations(stream, file, form, deadline))
    except (OSError, ValueError) as error:
        if isinstance(error, HistoryError):
            raise
        raise HistoryError(f"{file}: {getattr(error, 'strerror', None) or error}") from None


def _operations(stream: IO[bytes], name: str, form: Form, deadline: Deadline) -> Iterator[Operation]:
    if form is Form.ANTIPODE:
        yield from _timed(read_operations(stream, name), deadline)
        return
    octets = stream.read(MAX_OCTETS + 1)
    if len(octets) > MAX_OCTETS:
        raise HistoryError(f"{name}: longer than {MAX_OCTETS} octets")
    try:
        text = octets.decode("utf-8")
    except UnicodeDecodeError:
        raise HistoryError(f"{name}: not UTF-8") from None
    yield from from_dbcop(text, name) if form is Form.DBCOP else from_plume(text, name)


def _timed(operations: Iterable[Operation], deadline: Deadline) -> Iterator[Operation]:
    for operation in operations:
        deadline.check()
        yield operation


def _convert(history: History, target: Form) -> None:
    if target is Form.ANTIPODE:
        write_operations(history.operations, sys.stdout)
        return
    written = to_dbcop(history) if target is Form.DBCOP else to_plume(history)
    sys.stdout.write(written.text)
    if written.lost:
        complain(
            f"{target} has no messages, lineages or reads of unknown writes: {written.lost} of them were left out."
        )


# For a person


def _show(history: History | None, decision: Decision) -> None:
    say(_headline(decision))
    if history is None:
        return
    for place, witness in enumerate(decision.witnesses, 1):
        told = tell(history, witness)
        say()
        say(f"{place}. {witness.pattern}: {printable(told.headline)}")
        rows = []
        for line in told.lines:
            operation = history.operations[line.operation]
            rows.append([printable(operation.place), printable(operation.id), printable(line.sentence)])
        for row in columns(rows):
            say(row)
        for sentence in told.conclusion:
            say(f"  {printable(sentence)}")
    if len(decision.found) > len(decision.witnesses):
        say()
        rest = decision.found[len(decision.witnesses) :]
        shown = ", ".join(f"{history.operations[each.operation].id} ({each.pattern})" for each in rest[:_NAMED])
        say(f"and {len(rest)} more: {printable(shown)}{', …' * (len(rest) > _NAMED)}")
    if decision.unexplained:
        say(f"Not all is explained: {decision.unexplained}.")
    _show_gaps(history)
    _show_strict(history, decision)


def _headline(decision: Decision) -> Text:
    line = Text()
    if decision.verdict is Verdict.VIOLATED:
        count = len(decision.found)
        line.append("VIOLATED", style="bold red")
        line.append(f": {count} violation{'s' * (count != 1)} of XCY as propagated")
        if decision.judged:
            line.append(f", in {decision.judged} reads")
        if decision.unfinished:
            line.append(f"; there may be more, {decision.unfinished}")
    elif decision.verdict is Verdict.UNKNOWN:
        line.append("CANNOT TELL", style="bold magenta")
        why = decision.unfinished or "no violation was found, but not everything is known"
        line.append(f": {why} ({decision.judged} reads judged)")
    else:
        line.append("consistent", style="green")
        line.append(f": {decision.judged} reads are XCY as propagated")
    return line


def _show_gaps(history: History) -> None:
    if not history.gaps:
        return
    unattributed = sum(source == UNKNOWN_SOURCE for source in map(history.source.__getitem__, history.reads()))
    say()
    say(
        f"What is not known ({len(history.gaps)}), where a violation could hide; "
        f"reads without a known write: {unattributed}"
    )
    rows = []
    for gap in history.gaps[:_NAMED]:
        operation = history.operations[gap.operation]
        rows.append([printable(operation.place), printable(operation.id), printable(gap.reason)])
    for row in columns(rows):
        say(row)
    if len(history.gaps) > _NAMED:
        say("  …")


def _show_strict(history: History, decision: Decision) -> None:
    strict = decision.strict
    if strict is None:
        return
    say()
    reads, later = len(strict.reads), len(strict.later_writes)
    circles = f", {strict.circles} group{'s' * (strict.circles != 1)} of requests that depend on one another" * bool(
        strict.circles
    )
    say(
        f"strict XCY (no barrier can reach it): {reads} more read{'s' * (reads != 1)}{circles}"
        + f", by {later} later write{'s' * (later != 1)}" * bool(reads)
    )
    rows = []
    for each in strict.reads[:5]:
        operation = history.operations[each.read]
        missed = history.operations[each.missed].id
        because = (
            ""
            if each.later is None
            else f", as {history.operations[each.later].id} belongs to a request that it read from"
        )
        rows.append([printable(operation.place), printable(operation.id), printable(f"without {missed}{because}")])
    for row in columns(rows):
        say(row)


# For a program


def _as_json(history: History | None, decision: Decision) -> dict[str, Any]:
    shown: dict[str, Any] = {
        "verdict": str(decision.verdict),
        "reads": decision.judged,
        "unfinished": decision.unfinished or None,
        "violations": [],
        "gaps": [],
        "unattributed": [],
        "strict": None,
    }
    if history is None:
        return shown

    def name(number: int) -> str:
        return history.operations[number].id

    for place, found in enumerate(decision.found):
        one: dict[str, Any] = {"pattern": str(found.pattern), "operation": name(found.operation)}
        one["place"] = history.operations[found.operation].place
        if place < len(decision.witnesses):
            witness = decision.witnesses[place]
            told = tell(history, witness)
            one["operation"] = name(witness.read)
            one["place"] = history.operations[witness.read].place
            one["missed"] = None if witness.missed is None else name(witness.missed)
            one["witness"] = [name(number) for number in witness.operations]
            one["headline"] = told.headline
            one["steps"] = [{"operation": name(line.operation), "sentence": line.sentence} for line in told.lines]
            one["conclusion"] = " ".join(told.conclusion)
        shown["violations"].append(one)
    shown["gaps"] = [{"operation": name(gap.operation), "reason": gap.reason} for gap in history.gaps]
    reads = [number for number in range(len(history)) if history.operations[number].kind is Kind.READ]
    shown["unattributed"] = [name(number) for number in reads if history.source[number] == UNKNOWN_SOURCE]
    strict = decision.strict
    if strict is not None:
        shown["strict"] = {
            "reads": [
                {
                    "operation": name(each.read),
                    "missed": name(each.missed),
                    "later": None if each.later is None else name(each.later),
                }
                for each in strict.reads
            ],
            "circles": strict.circles,
            "later_writes": [name(number) for number in strict.later_writes],
        }
    return shown
