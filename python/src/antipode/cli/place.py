"""Where a store is administered, for the commands that take a store's name and `--at URL`."""

from __future__ import annotations

from typing import Annotated, Final

import typer

from antipode._base.settings import store_settings
from antipode._model.errors import ConfigurationError
from antipode._model.write_id import WriteId
from antipode.cli.output import Exit, fail, printable, say
from antipode.shim.administration import Administration, administration_of, scrubbed, without_credentials

StoreName = Annotated[str, typer.Argument(metavar="STORE", help="the store's logical name, such as blog-posts")]
At = Annotated[
    str | None,
    typer.Option("--at", metavar="URL", help="the store's primary [default: ANTIPODE_STORE_<NAME>_PRIMARY]"),
]
Yes = Annotated[bool, typer.Option("--yes", help="do not ask")]

_VARIABLE: Final = "ANTIPODE_STORE_<NAME>_PRIMARY"


class Place:
    """Where a store is administered: the server's URL, and what answers for it."""

    def __init__(self, store: str, at: str | None) -> None:
        try:
            WriteId.position(store, "check", 0)
            url = at or store_settings(store).primary
            if url is None:
                fail(f"where is {printable(store)}? Give its primary with --at URL, or set {_VARIABLE}.")
            self.shim: Administration = administration_of(url)
        except (ValueError, ConfigurationError) as error:
            fail(printable(str(error)))
        self.store = printable(store)
        self.url = url
        self.shown = printable(without_credentials(url))

    def __str__(self) -> str:
        return f"{self.store} at {self.shown}"

    def scrubbed(self, text: str) -> str:
        """An error's text, as it may be printed."""
        return printable(scrubbed(" ".join(text.split()), self.url))


def confirm(what: str, yes: bool) -> None:
    """Asks a person; ends the command where they do not agree, or nobody answers."""
    if yes:
        return
    say(what)
    try:
        go_on = typer.confirm("Go on?")
    except typer.Abort:  # no terminal, or end of input
        say()
        go_on = False
    if not go_on:
        fail("nothing was changed (--yes does not ask).", Exit.FOUND)
