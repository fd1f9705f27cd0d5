"""`antipode check RECORDS…`: where a system is inconsistent, and where barriers belong (spec CHECK)."""

from __future__ import annotations

import sys
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Final

import typer
from rich.console import Console
from rich.text import Text

from antipode.check.records import words
from antipode.check.records.as_json import as_json
from antipode.check.records.baseline import BaselineError, compare
from antipode.check.records.engine import Engine
from antipode.check.records.findings import CONFIRMED, Finding, Report, Verdict, counted, report
from antipode.check.records.inputs import InputError, files_of, size_of, spelled
from antipode.check.records.junit import as_junit
from antipode.check.records.reading import ReadLines, read
from antipode.check.records.sarif import as_sarif
from antipode.check.records.suggesting import Suggestion, suggest
from antipode.cli.output import Exit, columns, fail, printable, say

_NAMED: Final = 20
"""So many findings of a kind, and lines that could not be read, are named; --json names all."""


@dataclass(frozen=True)
class Outputs:
    """Where the answer goes, beside the terminal."""

    as_json: bool = False
    page: Path | None = None
    junit: Path | None = None
    sarif: Path | None = None


def check_records(named: Sequence[str], outputs: Outputs, baseline: Path | None) -> None:
    """Reads, analyses and says.

    Raises:
        typer.Exit: with 1 where there are confirmed violations, with 2 where nobody can tell.
    """
    taken = ReadLines()
    try:
        files, passed = files_of(named)
    except InputError as error:
        fail(f"{printable(str(error))}.")
    for each in passed:
        taken.refuse(*spelled(each).rsplit(": ", 1))
    engine = Engine()
    with _progress(files) as advance:
        rows = engine.load(read(files, taken, advance))
    found = report(rows, taken, pictures=outputs.page is not None)
    engine.close()
    if baseline is not None:
        found.baseline = True
        try:
            compare(found.findings, baseline)
        except BaselineError as error:
            fail(f"{printable(str(error))}.")
    suggestions = suggest(found.findings, found.seconds)
    for path, made in (
        (outputs.junit, as_junit),
        (outputs.sarif, as_sarif),
    ):
        if path is not None:
            _write(path, made(found, suggestions))
    if outputs.page is not None:
        from antipode.check.records.page import as_page  # and with it templates, which nothing else needs

        _write(outputs.page, as_page(found, suggestions))
    if outputs.as_json:
        say(as_json(found, suggestions))
    else:
        _show(found, suggestions)
    if found.verdict is not Verdict.CLEAN:
        raise typer.Exit(Exit.FOUND if found.verdict is Verdict.VIOLATED else Exit.CANNOT_TELL)


def _write(path: Path, text: str) -> None:
    try:
        path.write_text(text, "utf-8")
    except OSError as error:
        fail(f"{printable(str(path))}: {error.strerror or error}.")


@contextmanager
def _progress(files: Sequence[str]) -> Iterator[Callable[[int], None]]:
    """How far the reading is; on a terminal alone."""
    console = Console(file=sys.stderr)
    if not console.is_terminal:
        yield lambda octets: None
        return
    from rich.progress import BarColumn, DownloadColumn, Progress, TextColumn, TimeRemainingColumn

    shown = (TextColumn("reading"), BarColumn(), DownloadColumn(), TimeRemainingColumn())
    with Progress(*shown, console=console, transient=True) as progress:
        task = progress.add_task("", total=size_of(files))
        yield lambda octets: progress.advance(task, octets)


# For a person


def _show(found: Report, suggestions: Sequence[Suggestion]) -> None:
    say(_headline(found))
    by_kind: dict[str, list[Finding]] = {}
    for finding in found.findings:
        by_kind.setdefault(finding.kind, []).append(finding)
    several = len({finding.region for finding in found.findings}) > 1
    for kind, findings in by_kind.items():
        if kind not in CONFIRMED or len(by_kind) > 1:
            say()
            say(f"{words.TITLES[findings[0].kind]}:")
        shown = findings[:_NAMED]
        for row in columns([_row(finding, several) for finding in shown]):
            say(row)
        if len(findings) > _NAMED:
            say(f"  … and {len(findings) - _NAMED} more")
    if suggestions:
        say()
        for suggestion in suggestions[:_NAMED]:
            say(f"  -> {printable(words.suggestion(suggestion))}")
    _show_rest(found)


def _headline(found: Report) -> Text:
    line = Text()
    name, style = {
        Verdict.VIOLATED: ("VIOLATED", "bold red"),
        Verdict.UNKNOWN: ("CANNOT TELL", "bold magenta"),
        Verdict.CLEAN: ("clean", "green"),
    }[found.verdict]
    line.append(name, style=style)
    line.append(f": {printable(words.headline(found))}")
    return line


def _row(finding: Finding, several: bool) -> list[str]:
    place = words.where(finding) + f" in {finding.region}" * bool(several and finding.region)
    cells = [place, words.what(finding), words.how_much(finding), words.more(finding)]
    if not finding.new:
        cells.append("in the baseline")
    return [printable(cell) for cell in cells]


def _show_rest(found: Report) -> None:
    taken = found.taken
    if taken.unread:
        say()
        say(f"could not be read ({taken.unread:,}), where a violation could hide:")
        for row in columns([[printable(place), printable(why)] for place, why in taken.unread_named]):
            say(row)
        if taken.unread > len(taken.unread_named):
            say("  …")
    if taken.passed_over:
        named = ", ".join(f"{printable(name)} ({count:,})" for name, count in sorted(taken.passed_over.items()))
        say(f"passed over: {named}")
    for note in found.notes:
        say(f"note: {printable(note)}.")
    of = f"{counted(taken.records, 'record', 'records')} of {counted(len(taken.processes), 'process', 'processes')}"
    say(
        f"read: {of} in {counted(taken.files, 'file', 'files')}"
        + f", over {words.duration(found.seconds)}" * bool(found.seconds)
    )
