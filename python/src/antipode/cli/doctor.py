"""`antipode doctor`: what would be unproven at these servers, why, and what cures it (spec EPOCH-26)."""

from __future__ import annotations

from collections.abc import Sequence
from functools import partial
from typing import Annotated, Final

import typer
from rich.text import Text

from antipode._model.errors import ConfigurationError, with_code
from antipode.cli.asking import ask_all
from antipode.cli.output import Exit, fail, printable, say
from antipode.shim.administration import Finding, Level, administration_of, without_credentials

_STYLE: Final = {Level.OK: "green", Level.WARNING: "yellow", Level.UNPROVEN: "bold red", Level.UNKNOWN: "bold magenta"}
_WIDTH: Final = max(len(level) for level in Level)


def doctor(
    urls: Annotated[list[str], typer.Argument(metavar="URL…", help="servers, such as redis://b1.redis:6379")],
) -> None:
    """Says of each server what would be unproven there, why, and what cures it.

    Exit code 0: nothing; 1: something would be unproven; 2: nothing was found, but not all could be looked at.
    """
    questions = []
    for url in urls:
        try:
            questions.append((url, partial(administration_of(url).diagnose, url)))
        except ConfigurationError as error:
            fail(f"{without_credentials(url)}: {error}")
    levels: list[Level] = []
    for answer in ask_all(questions):
        findings: Sequence[Finding] = answer.value or ()
        if answer.value is None:
            findings = [
                Finding(
                    Level.UNKNOWN,
                    f"not examined: {answer.error}",
                    "nobody knows what would be unproven here",
                    "see that the address, the user and the server's state are right, and ask again",
                    code="AP706",
                )
            ]
        say(printable(without_credentials(answer.url)))
        for finding in findings:
            _show(finding)
        levels += [finding.level for finding in findings]
    say(_summary(len(urls), levels))
    if Level.UNPROVEN in levels:
        raise typer.Exit(Exit.FOUND)
    if Level.UNKNOWN in levels:
        raise typer.Exit(Exit.CANNOT_TELL)


def _show(finding: Finding) -> None:
    line = Text("  ")
    line.append(f"{finding.level.value:{_WIDTH}}", style=_STYLE[finding.level])
    code = "" if finding.level is Level.OK else finding.code
    line.append(f"  {with_code(_one_line(finding.what), code)}")
    say(line)
    if finding.why:
        say(f"  {'':{_WIDTH}}  {_one_line(finding.why)}")
    if finding.cure:
        say(f"  {'':{_WIDTH}}  -> {_one_line(finding.cure)}")


def _one_line(text: str) -> str:
    return printable(" ".join(text.split()))


def _summary(servers: int, levels: Sequence[Level]) -> str:
    unproven, unknown, warnings = (levels.count(each) for each in (Level.UNPROVEN, Level.UNKNOWN, Level.WARNING))
    told = []
    if unproven:
        told.append(f"{unproven} thing{'s' * (unproven != 1)} would be unproven")
    if unknown:
        told.append(f"{unknown} could not be found out")
    if not told:
        told.append("everything that is written and waited for here can be proved")
    if warnings:
        told.append(f"{warnings} warning{'s' * (warnings != 1)}")
    return f"{servers} server{'s' * (servers != 1)}: {', '.join(told)}"
