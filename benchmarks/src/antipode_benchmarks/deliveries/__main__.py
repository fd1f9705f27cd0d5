"""`python -m antipode_benchmarks.deliveries`: messages through couriers that are killed (benchmarks/deliveries.md)."""

from __future__ import annotations

import sys
from typing import Annotated, Final

import typer

from antipode_benchmarks.deliveries.brokers import broker
from antipode_benchmarks.deliveries.driver import play
from antipode_benchmarks.postnotification import hosts
from antipode_benchmarks.postnotification.interruption import heed_sigterm

KINDS: Final = {
    "pika": "rabbitmq",
    "aio-pika": "rabbitmq",
    "java": "rabbitmq",
    "cpp": "rabbitmq",
    "sqs": "sns",
    "activemq": "activemq",
}
"""Each client, and the store of the lab that has its broker."""

app = typer.Typer(add_completion=False, rich_markup_mode=None, pretty_exceptions_enable=False)


def command(client: str) -> list[str]:
    """Return how a client's courier is started."""
    if client == "java":
        return [*hosts.command("java"), "courier"]
    if client == "cpp":
        return [*hosts.command("cpp"), "courier"]
    return [sys.executable, "-m", "antipode_benchmarks.deliveries.couriers", client]


@app.command()
def main(
    client: Annotated[list[str] | None, typer.Option(help=f"some of {', '.join(KINDS)} [default: all]")] = None,
    messages: Annotated[int, typer.Option(min=1, help="how many messages")] = 20_000,
    seed: Annotated[int, typer.Option(help="who is killed, and when")] = 1,
) -> None:
    """Send messages on by clients that are killed meanwhile; exit with 1 where one was lost, or its lineage."""
    heed_sigterm()
    if unknown := set(client or ()) - set(KINDS):
        raise typer.BadParameter(f"{', '.join(unknown)}: want some of {', '.join(KINDS)}")
    good = True
    for name in client or KINDS:
        with broker(KINDS[name]) as place:
            outcome = play(place, command(name), messages, seed)
        print(f"{name}: {outcome}", flush=True)
        good &= outcome.is_good
    raise typer.Exit(0 if good else 1)


if __name__ == "__main__":
    app()
