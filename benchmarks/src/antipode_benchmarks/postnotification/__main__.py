"""`python -m antipode_benchmarks.postnotification`: runs the application with and without Antipode."""

from __future__ import annotations

import asyncio
import sys
from collections.abc import Sequence
from datetime import UTC, datetime
from pathlib import Path
from typing import Annotated, Any, get_args

import typer
from antipode_lab.durations import lag_ms, seconds, spread
from antipode_lab.errors import LabError
from rich.console import Console

from antipode_benchmarks.postnotification import queues, stores
from antipode_benchmarks.postnotification.hosts import RunFailed
from antipode_benchmarks.postnotification.interruption import heed_sigterm
from antipode_benchmarks.postnotification.options import (
    SERVICES,
    SHARED_NOTIFIERS,
    SHARED_STORES,
    BarrierPlace,
    Language,
    Options,
)
from antipode_benchmarks.postnotification.report import FAILED, INTERRUPTED, save, show
from antipode_benchmarks.postnotification.run import Run
from antipode_benchmarks.postnotification.servers import servers

LANGUAGES = ", ".join(get_args(Language))
app = typer.Typer(add_completion=False, rich_markup_mode=None, pretty_exceptions_enable=False)


@app.command()
def main(
    post_storage: Annotated[
        str | None, typer.Option(help=f"{', '.join(stores.names())} [default: memory, of several languages redis]")
    ] = None,
    notifier: Annotated[
        str | None, typer.Option(help=f"{', '.join(queues.names())} [default: memory, of several languages http]")
    ] = None,
    writer: Annotated[str, typer.Option(help=f"post-storage in region A: {LANGUAGES}")] = "python",
    relay: Annotated[str, typer.Option(help=f"post-upload and notifier: {LANGUAGES}")] = "python",
    reader: Annotated[str, typer.Option(help=f"follower-notify, and post-storage in region B: {LANGUAGES}")] = "python",
    requests: Annotated[
        int | None, typer.Option(min=1, help="uploads that are measured [default: 300, on real servers 2000]")
    ] = None,
    rate: Annotated[
        float, typer.Option(min=0.1, help="uploads a second, sent whether or not earlier ones are answered")
    ] = 40,
    lag: Annotated[str, typer.Option(help="one-way lag of the replicas' links; one, or one a replica")] = "80ms,120ms",
    queue_lag: Annotated[str, typer.Option(help="one-way lag of the queue's link")] = "10ms",
    replicas: Annotated[int, typer.Option(min=1, help="replicas of the posts in region B")] = 2,
    barrier: Annotated[
        str,
        typer.Option(
            help="follower: barrier() in follower-notify; wait-on-read: in post-storage; nowhere: for dry-run; none: "
            "baseline alone"
        ),
    ] = "follower",
    enforce: Annotated[
        list[str] | None,
        typer.Option(
            metavar="SERVICE", help="this service's process waits, whatever ANTIPODE_MODE says; may be repeated"
        ),
    ] = None,
    size: Annotated[int, typer.Option(min=0, help="octets of a post")] = 1024,
    warmup: Annotated[int, typer.Option(min=1, help="uploads before those that are measured")] = 20,
    timeout: Annotated[str, typer.Option(help="deadline of a barrier")] = "5s",
    consumers: Annotated[int, typer.Option(min=1, help="notifications that follower-notify handles at once")] = 32,
    one_broker: Annotated[
        bool, typer.Option(help="one RabbitMQ for both regions: less memory, a faster start")
    ] = False,
    json_file: Annotated[
        Path | None, typer.Option("--json", help="where the result goes [default: results/postnotification-….json]")
    ] = None,
) -> None:
    """The paper's post-notification application (section 2.2), without and with Antipode, on chosen stores.

    Prints violations, consistency window, latency, throughput and bytes. The last line names the JSON file with the
    result. Exit code 0: violations without Antipode and none with it; 1: violations with it; 3: none without it;
    4: the run failed; 130: it was interrupted.
    """
    errors = Console(stderr=True, highlight=False, markup=False, soft_wrap=True)
    several = {writer, relay, reader} != {"python"}
    post_storage = post_storage or ("redis" if several else "memory")
    notifier = notifier or ("http" if several else "memory")
    try:
        options = Options(
            post_storage=_choice("--post-storage", post_storage, stores.names()),
            notifier=_choice("--notifier", notifier, queues.names()),
            barrier=_choice("--barrier", barrier, get_args(BarrierPlace)),
            requests=requests or (300 if post_storage == notifier == "memory" else 2000),
            rate=rate,
            lags_ms=tuple(spread(lag.split(","), replicas)),
            queue_lag_ms=lag_ms(queue_lag),
            size=size,
            warmup=warmup,
            timeout=seconds(timeout),
            consumers=consumers,
            writer=_choice("--writer", writer, get_args(Language)),
            relay=_choice("--relay", relay, get_args(Language)),
            reader=_choice("--reader", reader, get_args(Language)),
        )
        if several:
            _choice("--post-storage", post_storage, SHARED_STORES)
            _choice("--notifier", notifier, SHARED_NOTIFIERS)
    except LabError as error:
        raise typer.BadParameter(str(error)) from error
    enforcing = [_choice("--enforce", service, SERVICES) for service in enforce or ()]
    if enforcing and options.embedded:
        raise typer.BadParameter("--enforce: with an embedded store all services are one process")
    heed_sigterm()
    console = Console(highlight=False, width=None if sys.stdout.isatty() else 120)
    path = json_file or _default_path(options)
    try:
        with servers(options, console, one_broker=one_broker) as started:
            found = asyncio.run(Run(options, console, started, enforcing=enforcing).both())
            save(found, path)  # before the servers end: that may fail, too
    except (RunFailed, LabError) as error:
        errors.print(f"The run failed: {error}")
        raise typer.Exit(FAILED) from error
    except KeyboardInterrupt as error:
        errors.print("Interrupted: there is no result.")
        raise typer.Exit(INTERRUPTED) from error
    show(console, options, found)
    print(f"result: {path}", flush=True)
    raise typer.Exit(found["exit_code"])


def _choice(option: str, word: str, words: Sequence[str]) -> Any:
    if word not in words:
        raise typer.BadParameter(f"{option} {word}: want one of {', '.join(words)}")
    return word


def _default_path(options: Options) -> Path:
    time = datetime.now(UTC).strftime("%Y%m%dT%H%M%SZ")
    return Path("results") / f"postnotification-{options.post_storage}-{options.notifier}-{options.barrier}-{time}.json"


if __name__ == "__main__":
    app()
