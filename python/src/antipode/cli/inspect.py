"""`antipode inspect`: a lineage, or the header lines that it came in, for a person or as JSON."""

from __future__ import annotations

import json
import re
import sys
import time
from collections.abc import Iterable
from datetime import UTC, datetime
from typing import Annotated, Any, Final, NamedTuple

import typer
from rich.text import Text

from antipode._model import wire
from antipode._model.errors import MalformedLineageError
from antipode._model.lineage import Lineage
from antipode._model.write_id import Opaque, WriteId
from antipode._propagation import carriers
from antipode.cli.output import Exit, columns, complain, fail, printable, say

_HEADER: Final = re.compile(r"[<>*\s]*([A-Za-z0-9][A-Za-z0-9_-]*)\s*:(.*)", re.DOTALL)
_SEAL: Final = re.compile(r"~_\.h\.([^.~]+)\.([0-9]+)\.[^.~]*\Z")
_HASHED_KEY: Final = re.compile(rb"\x00(h-[0-9a-f]{32})")
_MOST_INPUT: Final = 2**20


class _Seal(NamedTuple):
    key: str
    expires: int


class _Read(NamedTuple):
    """One lineage text, read: as it stood, with its seal, and unknown extensions."""

    text: str
    lineage: Lineage
    seal: _Seal | None
    extensions: tuple[str, ...]


def inspect(
    text: Annotated[
        str, typer.Argument(metavar="TEXT|-", help="a lineage, a header line that carries one, or - for standard input")
    ],
    as_json: Annotated[bool, typer.Option("--json", help="print JSON")] = False,
) -> None:
    """Shows what a lineage says: its writes, store by store, and whether anything is missing."""
    if text == "-":
        text = sys.stdin.buffer.read(_MOST_INPUT).decode("utf-8", "surrogateescape")
    texts = _lineage_texts(text)
    found: list[_Read] = []
    complaints: list[str] = []
    for one in dict.fromkeys(texts):
        try:
            found.append(_read(one))
        except MalformedLineageError as error:
            complaints.append(f"{_why(one, error)}.")
    joined = _join(found)
    if as_json:
        shown: dict[str, Any] = {"lineages": [_as_json(read) for read in found], "malformed": complaints}
        if joined is not None:
            shown["joined"] = _as_json(joined)
        say(json.dumps(shown, indent=2))
    else:
        for read in found:
            _show(read, "lineage")
        if joined is not None:
            _show(joined, "joined")
    for sentence in complaints:
        complain(sentence)
    if complaints:
        raise typer.Exit(Exit.CANNOT_TELL)


def _lineage_texts(given: str) -> list[str]:
    """The lineage texts in what was given: bare ones, baggage values, or header lines as `curl -v` prints them."""
    texts: list[str] = []
    headers: list[tuple[str, str]] = []
    for line in given.splitlines():
        match = _HEADER.fullmatch(line)
        if match is not None:
            # A person may paste a message's property, too, which no request carries (PROP-18).
            name = carriers.LINEAGE_HEADER if match[1].lower() == carriers.JMS_PROPERTY else match[1]
            headers.append((name, match[2].strip()))
        elif "=" in line.partition(";")[0].partition("~")[0]:  # baggage members, not the properties behind a lineage
            headers.append((carriers.BAGGAGE_HEADER, line.strip()))
        elif line.strip() and line[0] not in "<>*":  # what `curl -v` prints beside headers
            texts += wire.unwrap_header([line])
    texts += carriers.read(headers).texts
    if not texts:
        names = ", ".join(printable(name) for name, _ in headers[:5])
        fail(f"there is no lineage in {names or 'an empty text'}.")
    return texts


def _read(text: str) -> _Read:
    lineage = Lineage.deserialize(text)
    match = _SEAL.search(text)
    seal = None if match is None else _Seal(wire.unspell_name(match[1]), int(match[2]))
    return _Read(text, lineage, seal, wire.split(text).extensions)


def _join(found: list[_Read]) -> _Read | None:
    """What a service takes that receives all of them; None for a single one."""
    if len(found) < 2:
        return None
    lineage = found[0].lineage
    for read in found[1:]:
        lineage |= read.lineage
    text = lineage.serialize()
    return _Read(text, lineage, None, wire.split(text).extensions)


def _why(text: str, error: MalformedLineageError) -> str:
    """Which part of a text is at fault, as a sentence without its full stop."""
    if not text:
        return "the header that should carry the lineage is empty: what it held is lost"
    if len(text) > wire.MAX_BYTES:
        return str(error)
    head, *sections = text.split("~")
    if head != "1":
        return f"not a lineage: it begins with {_quoted(head)}, and a lineage of wire form 1 begins with 1"
    for section in sections:
        try:
            wire.split(f"1~{section}")
        except MalformedLineageError:
            return f"not a lineage: the section {_quoted(section)} is no store with its writes"
    return printable(str(error))


def _quoted(text: str) -> str:
    shown = text if len(text) <= 60 else f"{text[:60]}…"
    return f"'{printable(shown)}'"


# For a person


def _show(read: _Read, word: str) -> None:
    size = len(read.text)
    line = Text(f"{word}, {size} byte{'s' * (size != 1)}, ")
    incomplete = read.lineage.incomplete
    if incomplete:
        line.append(f"INCOMPLETE ({_missing(incomplete)})", style="bold red")
    else:
        line.append("complete")
    if not read.lineage.stores:
        line.append(": no writes")
    say(line)
    rows = [[printable(write_id.store), *_cells(write_id)] for write_id in read.lineage]
    for row in columns(rows):
        say(row)
    if read.seal is not None:
        left = read.seal.expires - time.time()
        when = f"expires {_date(read.seal.expires)}" if left > 0 else f"expired {_date(read.seal.expires)}"
        say(f"  sealed with the key {printable(read.seal.key)}, {when}; not verified here")
    for extension in read.extensions:
        say(f"  extension {printable(extension.removeprefix('_.'))} (not known here; carried on)")


def _missing(stores: Iterable[str]) -> str:
    names = sorted(stores)
    where = "a store that is not known" if "" in names else ", ".join(printable(name) for name in names)
    return f"something that belonged here is missing, in {where}"


def _cells(write_id: WriteId) -> list[str]:
    version = write_id.version
    if isinstance(version, Opaque):
        return [_key(write_id.key), f"mark {printable(version.mark)}"]
    epoch = [f"epoch {printable(version.epoch)}"] * bool(version.epoch)
    if write_id.is_position:
        return [f"position {version.counter}", *epoch]
    return [_key(write_id.key), f"version {version.counter}", *epoch]


def _key(key: bytes) -> str:
    hashed = _HASHED_KEY.fullmatch(key)
    if hashed is not None:
        return f"hashed key {hashed[1].decode('ascii')}"
    return f"key {printable(key.decode('utf-8', 'surrogateescape'))}"


def _date(seconds: int) -> str:
    try:
        return datetime.fromtimestamp(seconds, UTC).strftime("%Y-%m-%d %H:%M:%S UTC")
    except (OverflowError, ValueError, OSError):
        return f"at {seconds} s"


# For a program


def _as_json(read: _Read) -> dict[str, Any]:
    incomplete = read.lineage.incomplete
    shown: dict[str, Any] = {
        "text": read.text,
        "bytes": len(read.text),
        "complete": not incomplete,
        "incomplete": sorted(_json_text(store) for store in incomplete if store),
        "incomplete_anywhere": "" in incomplete,
        "writes": [_write_as_json(write_id) for write_id in read.lineage],
    }
    if read.seal is not None:
        shown["seal"] = {"key": _json_text(read.seal.key), "expires": read.seal.expires}
    if read.extensions:
        shown["extensions"] = list(read.extensions)
    return shown


def _write_as_json(write_id: WriteId) -> dict[str, str]:
    """Counters are texts: many readers of JSON have no unsigned 64-bit numbers."""
    shown = {"store": _json_text(write_id.store)}
    if not write_id.is_position:
        shown["key"] = _json_text(write_id.key.decode("utf-8", "surrogateescape"))
        shown["key_hex"] = write_id.key.hex()
    version = write_id.version
    if isinstance(version, Opaque):
        return shown | {"kind": "opaque", "mark": _json_text(version.mark)}
    kind = "position" if write_id.is_position else "object"
    return shown | {"kind": kind, "epoch": _json_text(version.epoch), "counter": str(version.counter)}


def _json_text(text: str) -> str:
    """Text that every JSON reader takes: octets that are no UTF-8 become U+FFFD (`key_hex` has them)."""
    return text.encode("utf-8", "surrogateescape").decode("utf-8", "replace")
