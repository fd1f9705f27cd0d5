"""Reading records: JSON lines and traces' exports; what cannot be read is counted, with place and reason (CHECK-2)."""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, field
from typing import IO, Any, Final

import msgspec

from antipode.check.records.exports import NotAnExportError, lines_of_export
from antipode.check.records.inputs import InputError, display, opened
from antipode.check.records.line import FORM, KINDS, Line, decode

MAX_LINE: Final = 16 * 2**20
"""Octets of a line, its end included."""
MAX_DOCUMENT: Final = 256 * 2**20
"""Octets of an export that is one JSON document over many lines."""
_NAMED: Final = 20
MORE: Final = "other kinds"
_CHUNK: Final = 2**20
_DOCUMENT: Final = re.compile(rb'\s*(\[|\{\s*$|\{\s*"(?:data|resourceSpans|resource_spans|batches)")')


@dataclass
class ReadLines:
    """What was read, and what not."""

    files: int = 0
    records: int = 0
    unread: int = 0
    """Lines, documents and files that could not be read: a violation could be in them."""
    unread_named: list[tuple[str, str]] = field(default_factory=list)
    """Place and reason of the first of them."""
    passed_over: Counter[str] = field(default_factory=Counter)
    """Kinds that this version does not know (REC-1), and spans' events that say too little."""
    processes: set[str] = field(default_factory=set)

    def refuse(self, place: str, why: str) -> None:
        """Counts what cannot be read."""
        self.unread += 1
        if len(self.unread_named) < _NAMED:
            self.unread_named.append((place, why))

    def pass_over(self, what: str) -> None:
        """Counts what is passed over; of very many names the later ones together."""
        self.passed_over[what if what in self.passed_over or len(self.passed_over) < _NAMED else MORE] += 1

    def note(self, line: Line) -> None:
        """Counts a record."""
        self.records += 1
        self.processes.add(line.process)


def read(
    files: Sequence[str], taken: ReadLines, advance: Callable[[int], None] = lambda octets: None
) -> Iterator[Line]:
    """The records of files, one after another; `advance` hears how many octets were read."""
    for name in files:
        shown = display(name)
        taken.files += 1
        try:
            with opened(name) as stream:
                yield from read_stream(stream, shown, taken, advance)
        except InputError as error:
            taken.refuse(shown, str(error).removeprefix(f"{name}: "))
        except OSError as error:
            taken.refuse(shown, error.strerror or str(error))


def read_stream(
    stream: IO[bytes], name: str, taken: ReadLines, advance: Callable[[int], None] = lambda octets: None
) -> Iterator[Line]:
    """The records of one stream."""
    number = told = octets = 0
    while text := stream.readline(MAX_LINE + 1):
        number += 1
        octets += len(text)
        if octets - told > _CHUNK:
            advance(octets - told)
            told = octets
        if number == 1 and _DOCUMENT.match(text) and not _is_whole(text):
            text += stream.read(MAX_DOCUMENT + 1 - len(text))
            advance(len(text))
            if len(text) > MAX_DOCUMENT:
                taken.refuse(name, f"one JSON document of more than {MAX_DOCUMENT >> 20} MiB")
                return
            yield from _other(text, name, taken, DOCUMENT_WORDS)
            return
        if len(text) > MAX_LINE:
            while not text.endswith(b"\n") and (text := stream.readline(_CHUNK)):
                octets += len(text)
            taken.refuse(f"{name}:{number}", f"a line of more than {MAX_LINE >> 20} MiB")
            continue
        try:
            line = decode(text)
        except (msgspec.MsgspecError, UnicodeDecodeError, RecursionError):
            if text.strip():
                yield from _other(text, f"{name}:{number}", taken, LINE_WORDS)
            continue
        taken.note(line)
        yield line
    advance(octets - told)


def read_line(text: bytes, place: str, taken: ReadLines) -> Iterator[Line]:
    """The records of one line, its end included: one, or those of an export."""
    if len(text) > MAX_LINE:
        taken.refuse(place, f"a line of more than {MAX_LINE >> 20} MiB")
        return
    try:
        line = decode(text)
    except (msgspec.MsgspecError, UnicodeDecodeError, RecursionError):
        if text.strip():
            yield from _other(text, place, taken, LINE_WORDS)
        return
    taken.note(line)
    yield line


LINE_WORDS: Final = "no record"
DOCUMENT_WORDS: Final = "neither records nor an export of traces"


def _is_whole(text: bytes) -> bool:
    try:
        msgspec.json.decode(text)
    except (msgspec.MsgspecError, ValueError, RecursionError):
        return False
    return True


def _other(text: bytes, place: str, taken: ReadLines, words: str) -> Iterator[Line]:
    """What was not read as a record by the quick way: an export, another form, or a reason."""
    try:
        value: Any = msgspec.json.decode(text)
    except UnicodeDecodeError:
        taken.refuse(place, "not UTF-8")
        return
    except RecursionError:
        taken.refuse(place, "nested too deep")
        return
    except msgspec.MsgspecError as error:
        broken = not text.endswith(b"\n")
        taken.refuse(place, "breaks off: its writer was stopped" if broken else f"not JSON: {_short(str(error))}")
        return
    if isinstance(value, dict) and "record" in value:
        _refuse_record(text, value, place, taken)
        return
    try:
        found = list(lines_of_export(value, place, taken.passed_over))
    except NotAnExportError as error:
        taken.refuse(place, str(error) or words)
        return
    for line in found:
        taken.note(line)
        yield line


def _refuse_record(text: bytes, value: dict[str, Any], place: str, taken: ReadLines) -> None:
    form = value["record"]
    if isinstance(form, bool) or form != FORM:
        taken.refuse(place, f"a record of form {_short(repr(form))}; this version reads form {FORM}")
        return
    kind = value.get("kind")
    if isinstance(kind, str) and kind not in KINDS:
        taken.pass_over(f"kind {_short(kind)}")
        return
    try:
        decode(text)
        taken.refuse(place, "no record")
    except RecursionError:
        taken.refuse(place, "nested too deep")
    except (msgspec.MsgspecError, ValueError) as error:
        taken.refuse(place, _short(str(error)))


def _short(text: str) -> str:
    return text if len(text) <= 100 else f"{text[:100]}…"
