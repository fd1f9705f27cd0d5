"""`antipode init`: the statements and grants that a store needs, printed or run (spec SHIM-3; API section 5)."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Annotated, Final

import typer
from rich.text import Text

from antipode.cli.asking import ask
from antipode.cli.output import Exit, fail, printable, say
from antipode.cli.place import At, Place, StoreName, Yes, confirm
from antipode.shim.administration import InitRequest, Step, StorePreparer

User = Annotated[str | None, typer.Option("--user", metavar="NAME", help="the login of your services, for the grants")]
Options = Annotated[
    list[str] | None,
    typer.Option("--set", metavar="WORD=VALUE", help="more, by the kind of store; repeat it for several"),
]
Run = Annotated[bool, typer.Option("--run", help="run the steps on the server, not only print them")]
_SHOWN: Final = 100
"""Characters of a step that was printed whole before."""
_SQL: Final = {"psql", "mysql", "mariadb"}


def init(
    store: StoreName, at: At = None, user: User = None, options: Options = None, run: Run = False, yes: Yes = False
) -> None:
    """Prints the statements and grants that a store needs before its clients are wrapped; with --run, runs them.

    Run it with an administrator's URL, your services' login in --user. Printing asks no server. Every step may be done
    again. Exit code 0: printed, or all run; 1: something is left for a person; 2: a step failed.
    """
    place = Place(store, at)
    shim = place.shim
    if not isinstance(shim, StorePreparer):
        say(f"{place}: nothing to prepare")
        return
    wanted = InitRequest(store, user, _words(options or (), shim.preparation_options))
    try:
        steps = shim.preparations(place.url, wanted)
    except ValueError as error:
        fail(f"{place}: {place.scrubbed(str(error))}")
    if not steps:
        say(f"{place}: nothing to prepare")
    elif run:
        _run(place, steps, yes)
    else:
        _print(place, steps)


def _words(given: Sequence[str], known: Mapping[str, str]) -> dict[str, str]:
    words = {}
    for each in given:
        word, separator, value = each.partition("=")
        if not separator or word not in known:
            told = "; ".join(f"{name}={known[name]}" for name in sorted(known)) or "nothing"
            fail(f"--set {printable(each)}: this kind of store knows {told}.")
        words[word] = value
    return words


def _print(place: Place, steps: Sequence[Step]) -> None:
    """A script for a person: what is typed where, behind comments that say why."""
    for step in steps:
        say(Text(f"{_comment(step)} {step.tool}: {_one_line(step.why)}", style="dim"))
        for line in _typed(step):
            say(line)
    runnable = sum(step.run is not None for step in steps)
    can = f"; --run does {'all' if runnable == len(steps) else runnable} of them" if runnable else ""
    say(f"{_comment(steps[-1])} {place}: {_steps(len(steps))}{can}")


def _comment(step: Step) -> str:
    return "--" if step.tool in _SQL else "#"


def _typed(step: Step) -> list[str]:
    """The lines as they are typed: a backslash is one here."""
    return [printable(line).replace(2 * "\\", "\\") for line in step.text.splitlines()]


def _steps(count: int) -> str:
    return f"{count} step{'s' * (count != 1)}"


def _run(place: Place, steps: Sequence[Step], yes: bool) -> None:
    runnable = [step for step in steps if step.run is not None]
    if runnable:
        for step in runnable:
            for line in _typed(step):
                say(f"  {line}")
        confirm(f"{place}: {_steps(len(runnable))} would be run.", yes)
    left = []
    for step in steps:
        if step.run is None:
            left.append(step)
            continue
        answer = ask(place.url, step.run)
        if answer.value is None:
            known = answer.error if answer.in_time else f"{answer.error}; nobody knows whether it was done"
            fail(f"{place}: {_begin(step.text)}: {known}. The steps before it were done; each may be done again.")
        say(f"{_one_line(answer.value) or 'done'}: {_begin(step.text)}")
    if left:
        say("left for you:")
        _print(place, left)
        raise typer.Exit(Exit.FOUND)
    say(f"{place} is prepared; see `antipode doctor`")


def _begin(text: str) -> str:
    line = _one_line(text)
    return line if len(line) <= _SHOWN else f"{line[:_SHOWN]}…"


def _one_line(text: str) -> str:
    return printable(" ".join(text.split()))
