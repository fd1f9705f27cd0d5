"""Reading a history: JSON lines, one operation a line, a sentence for whatever is wrong (HIST-1 to HIST-7)."""

from __future__ import annotations

import json
import math
from collections import Counter
from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import IO, Any, Final, NoReturn

from antipode.check.history.building import build
from antipode.check.history.operations import (
    UNATTRIBUTED,
    UNSAID,
    History,
    HistoryError,
    Kind,
    Operation,
    RecordedEvent,
    Unsaid,
)

FORMAT: Final = 1
MAX_LINE: Final = 2**20
"""Octets of one line, its end included."""
MAX_OPERATIONS: Final = 5_000_000
MAX_NAME: Final = 1024
MAX_LINEAGE: Final = 100_000
"""Entries of one lineage, though a line's octets bound them first."""
_KINDS: Final = tuple(Kind)
_IDENTIFIERS: Final = frozenset({"identifier", "version", "covers"})
_SAID_OF_WRITES: Final = frozenset({"value", "there", "expires", "late_version", "outcome", "any_key", "nothing"})
_SAID_OF_READS: Final = frozenset({"value", "version"})
MAX_CARRIED: Final = 20_000_000
"""Entries of all lineages together."""


def read_history(path: Path) -> History:
    """The history in a file.

    Raises:
        HistoryError: it cannot be read, with file and line.
    """
    return build(read_files(files_of([str(path)])))


def files_of(paths: Iterable[str]) -> list[Path]:
    """The files of a history: those that are named, and of a folder its `*.jsonl` by their names (HIST-32).

    Raises:
        HistoryError: a folder has none.
    """
    found: list[Path] = []
    for name in paths:
        path = Path(name)
        if path.is_dir():
            inside = sorted(path.glob("*.jsonl"))
            if not inside:
                raise HistoryError(f"{name}: there is no file of a history (*.jsonl) in this folder")
            found += inside
        else:
            found.append(path)
    return found


def read_files(paths: Iterable[Path]) -> Iterator[Operation]:
    """The operations of several files, which are one history.

    Raises:
        HistoryError: one cannot be read, with file and line.
    """
    bounds = Bounds()
    for path in paths:
        try:
            with path.open("rb") as stream:
                yield from read_operations(stream, str(path), bounds)
        except HistoryError:
            raise
        except (OSError, ValueError) as error:
            raise HistoryError(f"{path}: {getattr(error, 'strerror', None) or error}") from None


@dataclass(slots=True)
class Bounds:
    """How much was read of a history, of all its files."""

    operations: int = 0
    entries: int = 0
    """Of lineages."""


def read_operations(stream: IO[bytes], name: str, bounds: Bounds | None = None) -> Iterator[Operation]:
    """The operations of a stream of lines; `name` is what messages call it."""
    bounds = bounds or Bounds()
    number, before = 0, bounds.operations
    while line := stream.readline(MAX_LINE + 1):
        number += 1
        place = f"{name}:{number}"
        if len(line) > MAX_LINE:
            raise HistoryError(f"{place}: the line is longer than {MAX_LINE} octets")
        if not line.strip():
            continue
        bounds.operations += 1
        if bounds.operations > MAX_OPERATIONS:
            raise HistoryError(f"{place}: there are more than {MAX_OPERATIONS} operations")
        operation = _operation(_object(line, place), place)
        if operation.lineage is not None and not isinstance(operation.lineage, str):
            bounds.entries += len(operation.lineage)
            if bounds.entries > MAX_CARRIED:
                raise HistoryError(f"{place}: the lineages hold more than {MAX_CARRIED} entries together")
        yield operation
    if bounds.operations == before:
        raise HistoryError(f"{name}: there are no operations in it")


def _object(line: bytes, place: str) -> dict[str, Any]:
    try:
        text = line.decode("utf-8")
        value = json.loads(text, parse_constant=_no_constant, object_pairs_hook=_once)
    except UnicodeDecodeError:
        raise HistoryError(f"{place}: not UTF-8") from None
    except _Twice as error:
        raise HistoryError(f"{place}: the field {str(error)[:60]!r} stands twice") from None
    except (ValueError, RecursionError) as error:
        if not line.endswith(b"\n"):
            raise HistoryError(
                f"{place}: the last line breaks off; its writer was stopped. Without that line the rest can be judged"
            ) from None
        why = error.msg if isinstance(error, json.JSONDecodeError) else "it cannot be taken apart"
        raise HistoryError(f"{place}: not JSON: {why}") from None
    if not isinstance(value, dict):
        raise HistoryError(f"{place}: not a JSON object")
    return value


class _Twice(ValueError):
    pass


def _once(pairs: list[tuple[str, Any]]) -> dict[str, Any]:
    found = dict(pairs)
    if len(found) != len(pairs):
        [(most, _)] = Counter(name for name, _ in pairs).most_common(1)
        raise _Twice(most)
    return found


def _no_constant(word: str) -> NoReturn:
    raise ValueError(word)


def _operation(fields: dict[str, Any], place: str) -> Operation:
    form = fields.get("history")
    if isinstance(form, bool) or form != FORMAT:
        if "history" not in fields:
            raise HistoryError(f'{place}: no operation of a history: the field "history" is missing')
        raise HistoryError(
            f"{place}: a history of form {str(form)[:20]}; this version reads form {FORMAT}, and forms do not mix"
        )
    kind = fields.get("kind")
    if kind not in _KINDS:
        raise HistoryError(f"{place}: the kind is {_short(kind)}, not write, read, send or receive")
    made = Operation(
        _name(fields, "id", place),
        Kind(kind),
        _name(fields, "process", place),
        _name(fields, "scope", place),
        request=_name(fields, "request", place) if "request" in fields else "",
        lineage=_lineage(fields, place),
        time=_time(fields, place),
        place=place,
    )
    if made.id == UNATTRIBUTED:
        raise HistoryError(f"{place}: no operation may have the id {UNATTRIBUTED!r}")
    if made.kind in (Kind.SEND, Kind.RECEIVE):
        made.message = _name(fields, "message", place)
        return made
    if made.kind in (Kind.BEGIN, Kind.END, Kind.GAP):
        made.recorded = RecordedEvent(reason=_name(fields, "reason", place) if made.kind is Kind.GAP else "")
        return made
    made.store = _name(fields, "store", place)
    made.key = _name(fields, "key", place, empty=True)
    if made.kind is Kind.WRITE:
        made.identifier = _name(fields, "identifier", place) if "identifier" in fields else ""
        if not fields.keys().isdisjoint(_SAID_OF_WRITES):
            made.recorded = _said(fields, place)
    else:
        if "covers" in fields or ("reads_from" not in fields and not fields.keys().isdisjoint(_SAID_OF_READS)):
            made.recorded = _said(fields, place)
            if "reads_from" not in fields:
                return made
        if "reads_from" not in fields:
            raise HistoryError(f"{place}: a read says which write it returned: reads_from, null for the initial value")
        made.reads_from = None if fields["reads_from"] is None else _name(fields, "reads_from", place)
    return made


def _said(fields: dict[str, Any], place: str) -> RecordedEvent:
    """What a recorder said of a write or read besides (HIST-28)."""
    value: str | Unsaid | None = UNSAID
    if "value" in fields:
        value = None if fields["value"] is None else _name(fields, "value", place)
    return RecordedEvent(
        value,
        _name(fields, "version", place) if "version" in fields else "",
        _name(fields, "covers", place) if "covers" in fields else "",
        expires=_flag(fields, "expires", place),
        certain=_outcome(fields, place),
        there=_flag(fields, "there", place),
        any_key=_flag(fields, "any_key", place),
        late_version=_flag(fields, "late_version", place),
        nothing=_flag(fields, "nothing", place),
    )


def _flag(fields: dict[str, Any], field: str, place: str) -> bool:
    value = fields.get(field, False)
    if not isinstance(value, bool):
        raise HistoryError(f"{place}: {field} is {_short(value)}, not true or false")
    return value


def _outcome(fields: dict[str, Any], place: str) -> bool:
    """Whether a write is known to have happened."""
    if "outcome" in fields and fields["outcome"] != "unknown":
        raise HistoryError(f"{place}: the outcome is {_short(fields['outcome'])}, not unknown")
    return "outcome" not in fields


def _name(fields: dict[str, Any], field: str, place: str, *, empty: bool = False) -> str:
    value = fields.get(field)
    if not isinstance(value, str) or not (value or empty):
        raise HistoryError(f"{place}: {field} is {_short(value)}, not a text")
    if len(value) > (MAX_NAME if field not in _IDENTIFIERS else 4096):
        raise HistoryError(f"{place}: {field} is {len(value)} characters long")
    return value


def _lineage(fields: dict[str, Any], place: str) -> tuple[str, ...] | str | None:
    value = fields.get("lineage")
    if value is None or isinstance(value, str):
        return value
    if not isinstance(value, list) or not all(isinstance(name, str) for name in value):
        raise HistoryError(f"{place}: lineage is neither a list of ids nor a text")
    if len(value) > MAX_LINEAGE:
        raise HistoryError(f"{place}: the lineage has {len(value)} entries")
    return tuple(value)


def _time(fields: dict[str, Any], place: str) -> float | None:
    value = fields.get("time")
    if value is None:
        return None
    try:
        if not isinstance(value, bool) and isinstance(value, (int, float)) and math.isfinite(value):
            return float(value)
    except OverflowError:
        pass
    raise HistoryError(f"{place}: time is not a number of seconds")


def _short(value: object) -> str:
    if value is None:
        return "missing"
    text = repr(value)
    return text if len(text) <= 60 else f"{text[:60]}…"
