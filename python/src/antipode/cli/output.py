"""How the commands print: sentences and aligned columns, errors on standard error, nothing that a terminal obeys."""

from __future__ import annotations

import sys
from collections.abc import Sequence
from enum import IntEnum
from typing import NoReturn

import typer
from rich.cells import cell_len
from rich.console import Console
from rich.text import Text


class Exit(IntEnum):
    """The exit codes of all commands."""

    FINE = 0
    FOUND = 1
    CANNOT_TELL = 2


def say(line: str | Text = "") -> None:
    """One line on standard output, never wrapped and never cut."""
    _print(line, error=False)


def complain(sentence: str) -> None:
    """One sentence on standard error."""
    _print(f"antipode: {sentence}", error=True)


def fail(sentence: str, code: Exit = Exit.CANNOT_TELL) -> NoReturn:
    """Ends the command with a sentence on standard error."""
    complain(sentence)
    raise typer.Exit(code)


def _print(line: str | Text, *, error: bool) -> None:
    # Made at each call: tests and pagers exchange the streams.
    console = Console(file=sys.stderr if error else sys.stdout, highlight=False, markup=False, emoji=False)
    console.print(line, soft_wrap=True)


def columns(rows: Sequence[Sequence[str]], indent: str = "  ") -> list[str]:
    """Rows of cells as lines, each column as wide as its widest cell, two spaces between."""
    count = max((len(row) for row in rows), default=0)
    widths = [max((cell_len(row[place]) for row in rows if place < len(row)), default=0) for place in range(count)]
    lines = []
    for row in rows:
        cells = [cell + " " * (widths[place] - cell_len(cell)) for place, cell in enumerate(row)]
        lines.append(f"{indent}{'  '.join(cells)}".rstrip())
    return lines


def printable(text: str) -> str:
    """A name for a terminal: what is no printable character, and octets that are no UTF-8, as `\\xNN` or `\\uNNNN`."""
    shown = []
    for character in text:
        if character == "\\":
            shown.append("\\\\")
        elif character.isprintable():
            shown.append(character)
        elif "\udc80" <= character <= "\udcff":  # an octet that was no UTF-8
            shown.append(f"\\x{ord(character) - 0xDC00:02x}")
        else:
            shown.append(character.encode("unicode_escape").decode("ascii"))
    return "".join(shown)
