"""`antipode epoch`: what a store knows of its epochs, and the operator's word on an ended one (spec EPOCH-24)."""

from __future__ import annotations

from collections.abc import Sequence
from functools import partial
from typing import Annotated, NoReturn

import typer

from antipode._model.wire import MAX_EPOCH
from antipode._model.write_id import WriteId
from antipode.cli.asking import ask
from antipode.cli.output import columns, fail, printable, say
from antipode.cli.place import At, Place, StoreName, Yes, confirm
from antipode.shim.administration import EpochRecord, MarkAdopter

epoch = typer.Typer(
    help="The epochs of a store: what its marks prove, and your word on an ended one.",
    no_args_is_help=True,
    rich_markup_mode=None,
)

Position = Annotated[
    int | None,
    typer.Option(
        "--position", metavar="N", min=1, help="the last counter that is settled: the greatest that the store holds"
    ),
]
Fenced = Annotated[
    bool, typer.Option("--fenced", help="your word that no server can still write this epoch: all of it is settled")
]
EpochName = Annotated[str, typer.Argument(metavar="EPOCH", help="as a barrier or `antipode epoch list` names it")]


def _epochs(place: Place) -> Sequence[EpochRecord]:
    """What the server knows; ends the command where it does not say."""
    answer = ask(place.url, partial(place.shim.epochs, place.url))
    if answer.value is None:
        fail(f"{place}: {answer.error}")
    return answer.value


@epoch.command("list")
def list_epochs(store: StoreName, at: At = None) -> None:
    """Lists the epochs that the server's marks speak of, and up to where each of them is proved."""
    place = Place(store, at)
    records = _epochs(place)
    say(f"{place}: {len(records)} epoch{'s' * (len(records) != 1)}")
    for line in columns([_row(record) for record in records]):
        say(line)


def _row(record: EpochRecord) -> list[str]:
    end = "settled by hand" if record.settled else f"up to {record.counter}"
    told = ", ".join(filter(None, ["current" * record.current, record.detail]))
    return [printable(record.epoch), end, printable(told)]


@epoch.command()
def settle(
    store: StoreName,
    epoch_name: EpochName,
    at: At = None,
    position: Position = None,
    fenced: Fenced = False,
    yes: Yes = False,
) -> None:
    """Gives your word that an ended epoch is in the store, up to N or all of it, where no mark can prove it.

    From then on barriers pass for every such write of that epoch. It cannot be taken back.
    """
    place = Place(store, at)
    name = _checked(epoch_name)
    if (position is None) is not fenced:
        fail(
            f"say up to where {printable(name)} is settled: --position N, the greatest counter of it that the store "
            "holds; or --fenced, your word that no server can still write it. An old primary that is only cut off goes "
            "on writing, and barriers would pass for that, too."
        )
    known = next((record for record in _epochs(place) if record.epoch == name), None)
    if known is not None and known.current:
        fail(
            f"{printable(name)} is the epoch in which {place} is written now: settled, writes that are still to come "
            "would count as visible everywhere. Only an epoch that has ended can be settled."
        )
    if known is not None and known.settled:
        say(f"{printable(name)} is settled already at {place}")
        return
    if known is not None and position is not None and known.counter >= position:
        say(f"{place} proves {printable(name)} up to {known.counter} already")
        return
    proved = "knows no such epoch" if known is None else f"proves it up to {known.counter}"
    reach = "every write of it" if position is None else f"every write of it up to {position}"
    confirm(
        f"{place} {proved}. Settling {printable(name)} says that {reach} is there: barriers will pass for "
        "all of them, also for one that was lost. It cannot be taken back.",
        yes,
    )
    answer = ask(place.url, partial(place.shim.settle, place.url, name, *([] if position is None else [position])))
    if answer.error:
        _not_done("settled", name, place, answer.error, answer.in_time)
    upto = "" if position is None else f" up to {position}"
    say(f"settled {printable(name)}{upto} at {place}")


@epoch.command()
def adopt(store: StoreName, epoch_name: EpochName, at: At = None, yes: Yes = False) -> None:
    """Takes over the marks of an epoch that another system wrote, after the whole of its data was copied here."""
    place = Place(store, at)
    name = _checked(epoch_name)
    shim = place.shim
    if not isinstance(shim, MarkAdopter):
        fail(f"{place}: marks of this kind of store name no system, so that there is nothing to adopt.")
    confirm(
        f"Adopting {printable(name)} says that this copy holds all of what its marks speak of: barriers will pass for "
        f"those writes at {place}.",
        yes,
    )
    answer = ask(place.url, partial(shim.adopt, place.url, name))
    if answer.error:
        _not_done("adopted", name, place, answer.error, answer.in_time)
    say(f"adopted {printable(name)} at {place}")


def _checked(name: str) -> str:
    try:
        WriteId.position("check", name, 0)
    except ValueError:
        fail(f"{printable(name)!r} cannot be an epoch: it has 1 to {MAX_EPOCH} octets.")
    return name


def _not_done(word: str, name: str, place: Place, error: str, in_time: bool) -> NoReturn:
    if in_time:
        fail(f"{printable(name)} was not {word} at {place}: {error}")
    fail(f"nobody knows whether {printable(name)} was {word} at {place}: {error}. See `antipode epoch list`.")
