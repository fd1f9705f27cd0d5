"""`python -m antipode_benchmarks.workload`: plays random workloads and says whether histories and books agree."""

from __future__ import annotations

import asyncio
import tempfile
import time
from pathlib import Path
from typing import Annotated, cast, get_args

import typer
from rich.console import Console

from antipode_benchmarks.postnotification.hosts import RunFailed, command
from antipode_benchmarks.postnotification.interruption import heed_sigterm
from antipode_benchmarks.postnotification.options import Language
from antipode_benchmarks.workload.driver import Run
from antipode_benchmarks.workload.stage import Stage, stage

app = typer.Typer(add_completion=False, rich_markup_mode=None, pretty_exceptions_enable=False)


@app.command()
def main(
    seeds: Annotated[int, typer.Option(min=1, help="how many runs, each with and without barriers")] = 6,
    first: Annotated[int, typer.Option(min=0, help="the first seed")] = 0,
    languages: Annotated[str, typer.Option(help="of the workers of the three regions")] = "python,java,cpp",
    folder: Annotated[Path | None, typer.Option(help="where to keep the recorded histories")] = None,
    losses: Annotated[bool, typer.Option("--losses", help="a promotion loses writes, and requests go on")] = False,
) -> None:
    """Ends with 1 where a history and the driver's books disagree, 2 where a run failed."""
    heed_sigterm()
    console = Console(soft_wrap=True)
    named = languages.split(",")
    if unknown := set(named) - set(get_args(Language)):
        raise typer.BadParameter(f"{', '.join(unknown)}: want some of {', '.join(get_args(Language))}")
    try:
        for language in cast("list[Language]", named):
            command(language)
        with tempfile.TemporaryDirectory() as scratch, console.status("Starting the servers…"), stage() as servers:
            histories = folder or Path(scratch)
            runs = [(seed, barriers) for seed in range(first, first + seeds) for barriers in (True, False)]
            good = [
                _play(servers, cast("list[Language]", named), histories, console, *each, losses=losses) for each in runs
            ]
    except RunFailed as error:
        console.print(str(error), markup=False)
        raise typer.Exit(2) from None
    raise typer.Exit(0 if all(good) else 1)


def _play(
    servers: Stage,
    languages: list[Language],
    histories: Path,
    console: Console,
    seed: int,
    barriers: bool,
    *,
    losses: bool,
) -> bool:
    begun = time.monotonic()
    name = f"{seed}-{'with' if barriers else 'without'}{'-losses' if losses else ''}"
    judged = asyncio.run(Run(servers, seed, languages, histories / name, barriers=barriers, losses=losses).play())
    books, disagreements = judged.found.books, list(judged.disagreements())
    console.print(
        f"{name}: {len(books.before)} writes, {books.reads} reads, {books.stale} of them stale, "
        f"{judged.direct.total()} violations, {judged.decision.verdict}; {judged.losses}"
        f"{time.monotonic() - begun:.1f} s",
        *disagreements,
        sep="\n  ",
        markup=False,
    )
    return not disagreements


if __name__ == "__main__":
    app()
