"""The experiments' command line."""

from __future__ import annotations

import sys
from collections.abc import Callable, Iterable
from pathlib import Path
from typing import Annotated

import typer
from antipode_lab.durations import lag_ms, spread
from antipode_lab.errors import LabError
from rich.console import Console

from antipode_benchmarks.postnotification.experiments import delay as delays
from antipode_benchmarks.postnotification.experiments import latency as latencies
from antipode_benchmarks.postnotification.experiments import matrix as matrices
from antipode_benchmarks.postnotification.experiments import overhead as costs
from antipode_benchmarks.postnotification.experiments import size as sizes
from antipode_benchmarks.postnotification.experiments import window as windows
from antipode_benchmarks.postnotification.experiments.bench import Bench
from antipode_benchmarks.postnotification.experiments.scale import NOTIFIERS, STORES, Scale
from antipode_benchmarks.postnotification.interruption import heed_sigterm
from antipode_benchmarks.postnotification.report import INTERRUPTED

app = typer.Typer(add_completion=False, rich_markup_mode=None, pretty_exceptions_enable=False, help=__doc__)

ALL_STORES = ",".join(STORES)
ALL_NOTIFIERS = ",".join(NOTIFIERS)

Stores = Annotated[str, typer.Option(help=f"some of {', '.join(STORES)}")]
Requests = Annotated[int | None, typer.Option(min=1, help="uploads a run and phase [default: 60, --paper: 1000]")]
Rate = Annotated[float | None, typer.Option(min=0.1, help="uploads a second [default: 40, --paper: 10]")]
Size = Annotated[int | None, typer.Option(min=0, help="octets of a post [default: 1024, --paper: 1000000]")]
Lag = Annotated[str, typer.Option(help="one-way lag of the two replicas' links; one, or one each")]
QueueLag = Annotated[str, typer.Option(help="one-way lag of the queue's link")]
PaperScale = Annotated[
    bool, typer.Option("--paper", help="the paper's scale: 1,000 uploads of 1 MB, in DynamoDB of 400 KB (section 7.2)")
]
Notifier = Annotated[str, typer.Option(help=f"one of {', '.join(NOTIFIERS)}")]
Json = Annotated[Path | None, typer.Option("--json", help="where the result goes, and beside it the plot (.png)")]


def _scale(requests: int | None, rate: float | None, size: int | None, lag: str, queue_lag: str, paper: bool) -> Scale:
    try:
        return Scale(
            requests or (1000 if paper else 60),
            rate or (10.0 if paper else 40.0),
            size if size is not None else (1_000_000 if paper else 1024),
            tuple(spread(lag.split(","), 2)),
            lag_ms(queue_lag),
        )
    except LabError as error:
        raise typer.BadParameter(str(error)) from error


def _some(option: str, words: str, known: Iterable[str]) -> list[str]:
    chosen = [word.strip() for word in words.split(",")]
    for word in chosen:
        if word not in known:
            raise typer.BadParameter(f"{option} {word}: want some of {', '.join(known)}")
    return chosen


def _run(scale: Scale, experiment: Callable[[Console, Bench], int]) -> None:
    heed_sigterm()
    console = Console(highlight=False, width=None if sys.stdout.isatty() else 160)
    try:
        with Bench(console, scale) as bench:
            code = experiment(console, bench)
    except KeyboardInterrupt as error:
        Console(stderr=True).print("Interrupted: the result has the runs that had ended.")
        raise typer.Exit(INTERRUPTED) from error
    raise typer.Exit(code)


@app.command()
def matrix(
    stores: Stores = ALL_STORES,
    notifiers: Annotated[str, typer.Option(help=f"some of {', '.join(NOTIFIERS)}")] = ALL_NOTIFIERS,
    requests: Requests = None,
    rate: Rate = None,
    size: Size = None,
    lag: Lag = "400ms,500ms",
    queue_lag: QueueLag = "10ms",
    paper: PaperScale = False,
    json_file: Json = None,
) -> None:
    """Every store with every notifier, without and with Antipode (table 1).

    Exit code 0: violations without Antipode in each pair and none with it; 1: violations with it; 3: a pair with none
    without it; 4: a pair failed; 130: interrupted.
    """
    chosen = _some("--stores", stores, STORES), _some("--notifiers", notifiers, NOTIFIERS)
    scale = _scale(requests, rate, size, lag, queue_lag, paper)
    _run(scale, lambda console, bench: matrices.run(console, bench, *chosen, json_file))


@app.command()
def delay(
    stores: Stores = ALL_STORES,
    notifier: Notifier = "sns",
    delays_of: Annotated[str, typer.Option("--delays", help="before the notification")] = "0ms,100ms,200ms,300ms,400ms",
    requests: Requests = None,
    rate: Rate = None,
    size: Size = None,
    lag: Lag = "200ms,300ms",
    queue_lag: QueueLag = "10ms",
    paper: PaperScale = False,
    json_file: Json = None,
) -> None:
    """Violations without Antipode when the notification is delayed (figure 6). Exit code 0, or 4 where a run failed."""
    [chosen] = _some("--notifier", notifier, NOTIFIERS)
    names = _some("--stores", stores, STORES)
    try:
        times = [lag_ms(each) for each in delays_of.split(",")]
    except LabError as error:
        raise typer.BadParameter(str(error)) from error
    scale = _scale(requests, rate, size, lag, queue_lag, paper)
    _run(scale, lambda console, bench: delays.run(console, bench, names, chosen, times, json_file))


@app.command()
def window(
    stores: Stores = ALL_STORES,
    notifier: Notifier = "sns",
    requests: Requests = None,
    rate: Rate = None,
    size: Size = None,
    lag: Lag = "200ms,300ms",
    queue_lag: QueueLag = "10ms",
    paper: PaperScale = False,
    json_file: Json = None,
) -> None:
    """The consistency window of each store, without and with Antipode (figure 7).

    Exit code 0; 1: violations with Antipode; 4: a run failed; 130: interrupted.
    """
    [chosen] = _some("--notifier", notifier, NOTIFIERS)
    names = _some("--stores", stores, STORES)
    scale = _scale(requests, rate, size, lag, queue_lag, paper)
    _run(scale, lambda console, bench: windows.run(console, bench, names, chosen, json_file))


@app.command("size")
def size_of(
    stores: Stores = ALL_STORES,
    notifiers: Annotated[str, typer.Option(help=f"some of {', '.join(NOTIFIERS)}")] = ALL_NOTIFIERS,
    requests: Annotated[int, typer.Option(min=1, help="objects and messages")] = 20,
    size: Annotated[int, typer.Option(min=0, help="octets of a post")] = 1024,
    json_file: Json = None,
) -> None:
    """By how much an object and a message grow (table 3), messages also with `track`.

    Exit code 0; 4: a run failed; 130: interrupted.
    """
    chosen = _some("--stores", stores, STORES), _some("--notifiers", notifiers, NOTIFIERS)
    scale = Scale(requests, 20.0, size, (20, 20), 10)
    _run(scale, lambda console, bench: sizes.run(console, bench, *chosen, json_file))


@app.command()
def latency(
    stores: Stores = ALL_STORES,
    notifiers: Annotated[str, typer.Option(help=f"some of {', '.join(NOTIFIERS)}")] = ALL_NOTIFIERS,
    requests: Annotated[int, typer.Option(min=2, help="writes of each way; half as many barriers")] = 200,
    size: Annotated[int, typer.Option(min=0, help="octets of a post")] = 1024,
    lag: Annotated[str, typer.Option(help="one-way lag of the replica's link")] = "50ms",
    json_file: Json = None,
) -> None:
    """What a write costs its writer, and how soon a barrier is over, on each store.

    Exit code 0; 4: a store failed; 130: interrupted.
    """
    chosen = _some("--stores", stores, STORES), _some("--notifiers", notifiers, NOTIFIERS)
    try:
        scale = Scale(requests, 0.0, size, (lag_ms(lag),), 10)
    except LabError as error:
        raise typer.BadParameter(str(error)) from error
    _run(scale, lambda console, bench: latencies.run(console, bench, *chosen, json_file))


@app.command()
def overhead(
    store: Annotated[str, typer.Option(help=f"one of {', '.join(STORES)}")] = "redis",
    notifier: Annotated[str, typer.Option(help="http or rabbitmq")] = "rabbitmq",
    rounds: Annotated[int, typer.Option(min=1, help="loads of each way")] = 20,
    requests: Annotated[int, typer.Option(min=1, help="uploads a load")] = 200,
    sample: Annotated[float, typer.Option(min=0, max=1, help="ANTIPODE_SAMPLE")] = 0.01,
    size: Annotated[int, typer.Option(min=0, help="octets of a post")] = 1024,
    lag: Lag = "80ms,120ms",
    queue_lag: QueueLag = "10ms",
    json_file: Json = None,
) -> None:
    """What dry-run costs in throughput, beside the other modes and the application without Antipode.

    Exit code 0; 4: a run failed; 130: interrupted.
    """
    [name] = _some("--store", store, STORES)
    [queue] = _some("--notifier", notifier, ("http", "rabbitmq"))
    scale = _scale(requests, None, size, lag, queue_lag, paper=False)
    _run(
        scale,
        lambda console, bench: costs.run(console, bench, name, queue, rounds=rounds, sample=sample, path=json_file),
    )


if __name__ == "__main__":
    app()
