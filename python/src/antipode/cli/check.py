"""`antipode check`: what dry-run recorded (spec CHECK), or with `--history` a recorded history (spec HIST)."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated, Final

import typer

from antipode.cli.check_history import Form, PictureTarget, check_history
from antipode.cli.output import fail

_OF_HISTORIES: Final = {
    "dot": "--dot",
    "deadline": "--deadline",
    "memory": "--memory",
    "source": "--from",
    "target": "--to",
}
_OF_RECORDS: Final = {"junit": "--junit", "sarif": "--sarif", "baseline": "--baseline"}


def check(
    context: typer.Context,
    records: Annotated[
        list[str] | None,
        typer.Argument(
            metavar="RECORDS…", help="files or folders of dry-run records, or exports of traces; - for standard input"
        ),
    ] = None,
    as_json: Annotated[bool, typer.Option("--json", help="print JSON")] = False,
    page: Annotated[
        Path | None,
        typer.Option("--html", metavar="OUT", help="write a page with plots, or of a history with pictures"),
    ] = None,
    junit: Annotated[Path | None, typer.Option("--junit", metavar="OUT", help="write JUnit's XML")] = None,
    sarif: Annotated[Path | None, typer.Option("--sarif", metavar="OUT", help="write SARIF 2.1.0")] = None,
    baseline: Annotated[
        Path | None, typer.Option("--baseline", metavar="OLD", help="an earlier --json: only what is new counts")
    ] = None,
    history: Annotated[
        list[str] | None,
        typer.Option(
            "--history",
            metavar="FILE",
            help="a recorded history instead: a file, a folder of a recorder's, or several; - for standard input",
        ),
    ] = None,
    dot: Annotated[
        Path | None,
        typer.Option("--dot", metavar="OUT", help="history: write the violations as a picture for Graphviz"),
    ] = None,
    deadline: Annotated[
        str, typer.Option("--deadline", metavar="TIME", help="history: such as 30s; then it is unknown")
    ] = "",
    memory: Annotated[
        int, typer.Option("--memory", metavar="MIB", min=1, help="history: for the decision; beyond it, it is unknown")
    ] = 1024,
    source: Annotated[Form, typer.Option("--from", help="history: the form of FILE")] = Form.ANTIPODE,
    target: Annotated[Form | None, typer.Option("--to", help="history: print it in this form, judge nothing")] = None,
) -> None:
    """Finds out where a system is inconsistent, from what it recorded in dry-run; or whether a recorded history is.

    Exit code 0: no violation; 1: confirmed violations; 2: cannot tell.
    """
    given = {
        name for name in context.params if getattr(context.get_parameter_source(name), "name", "") == "COMMANDLINE"
    }
    if history:
        if records or given & _OF_RECORDS.keys():
            other = next((_OF_RECORDS[name] for name in sorted(given & _OF_RECORDS.keys())), "RECORDS")
            fail(f"--history is judged by itself, without {other}.")
        check_history(history, PictureTarget(dot, page), as_json, deadline, memory, source, target)
        return
    if given & _OF_HISTORIES.keys():
        fail(f"{_OF_HISTORIES[min(given & _OF_HISTORIES.keys())]} goes with --history alone.")
    if not records:
        fail("nothing to check: give files or folders of dry-run records, or --history FILE.")
    from antipode.cli.check_records import Outputs, check_records  # and with it DuckDB, which nothing else needs

    check_records(records, Outputs(as_json, page, junit, sarif), baseline)
