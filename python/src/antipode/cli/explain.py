"""`antipode explain`: what a message's code means, and what cures it (spec OBS-14)."""

from __future__ import annotations

import json
import textwrap
from difflib import get_close_matches
from importlib.resources import files
from typing import Annotated, Any

import typer

from antipode.cli.output import fail, printable, say

_WIDTH = 100


def explain(
    code: Annotated[str, typer.Argument(metavar="CODE", help="the code behind a message, such as AP104")],
) -> None:
    """Prints what the message with this code means, and what to do."""
    entries = {entry["code"]: entry for entry in _entries()}
    wanted = code.strip("[]() ").upper()
    entry = entries.get(wanted)
    if entry is None:
        near = get_close_matches(wanted, entries, n=1)
        fail(f"{printable(code)} is no code of a message.{f' Did you mean {near[0]}?' if near else ''}")
    say(f"{entry['code']}  {entry['words']}")
    _show(entry["meaning"])
    say("What to do:")
    for cure in entry["cure"]:
        _show(cure, "- ")
    if "check" in entry:
        say("How to see that it is cured:")
        _show(entry["check"], "- ")


def _show(text: str, bullet: str = "") -> None:
    blank = " " * (2 + len(bullet))
    for line in textwrap.wrap(text, _WIDTH, initial_indent="  " + bullet, subsequent_indent=blank):
        say(line)


def _entries() -> list[dict[str, Any]]:
    # A copy of spec/data/messages.json, which spec/messages.py keeps.
    entries: list[dict[str, Any]] = json.loads(files("antipode.cli").joinpath("messages.json").read_text())["codes"]
    return entries
