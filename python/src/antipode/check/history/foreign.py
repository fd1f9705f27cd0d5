"""Histories of other checkers: dbcop's JSON and text, Plume's text (spec HIST-22).

Both know sessions of transactions, and neither messages nor lineages. Read here, a session is a scope and a
transaction's operations are taken one by one: that a transaction is seen whole is not judged. Written, every
operation is a transaction of its own.
"""

from __future__ import annotations

import json
import re
from collections.abc import Callable, Iterable, Iterator
from dataclasses import dataclass
from typing import Any, Final, NamedTuple

from antipode.check.history.operations import INITIAL, THIN_AIR, UNKNOWN_SOURCE, History, HistoryError, Kind, Operation

MAX_OCTETS: Final = 2**30
"""Of a whole file."""
_STORE: Final = "database"
_PLUME: Final = re.compile(r"([rw])\((\d{1,20}),(\d{1,20}),(\d{1,20}),(-?\d{1,20})\)")
_EVENT: Final = re.compile(r"([A-Za-z_][A-Za-z0-9_]*)(?::=(\d{1,20})|==(\d{1,20}|\?))")
_TRANSACTION: Final = re.compile(r"\[([^\[\]]*)\](!?)")


class _Event(NamedTuple):
    session: str
    transaction: str
    writes: bool
    key: str
    value: str | None
    place: str


def from_dbcop(text: str, name: str) -> list[Operation]:
    """The operations of dbcop's JSON (sessions, with or without their wrapping), or of its text form."""
    if text.lstrip()[:1] in ("[", "{") and not _TRANSACTION.match(text.lstrip()):
        return _operations(_dbcop_json(text, name))
    if text.lstrip()[:2] in ("[{", "[[") or not text.strip():
        return _operations(_dbcop_json(text, name))
    return _operations(_dbcop_text(text, name))


def from_plume(text: str, name: str) -> list[Operation]:
    """The operations of Plume's text: `r(key,value,session,transaction)`, one a line; transaction -1 did not commit.

    The value 0 is the initial one where nobody writes it.
    """
    events = []
    for number, line in enumerate(text.splitlines(), 1):
        if not line.strip():
            continue
        place = f"{name}:{number}"
        match = _PLUME.fullmatch(line.strip())
        if match is None:
            raise HistoryError(f"{place}: not in Plume's form, r(key,value,session,transaction) or w(…)")
        kind, key, value, session, transaction = match.groups()
        if transaction != "-1":
            events.append(_Event(session, transaction, kind == "w", key, value, place))
    written = {(each.key, each.value) for each in events if each.writes}
    return _operations(
        each._replace(value=None) if not each.writes and each.value == "0" and (each.key, "0") not in written else each
        for each in events
    )


def _dbcop_json(text: str, name: str) -> Iterator[_Event]:
    try:
        whole = json.loads(text)
    except (ValueError, RecursionError):
        raise HistoryError(f"{name}: not JSON") from None
    sessions = whole.get("data") if isinstance(whole, dict) else whole
    try:
        for session, transactions in enumerate(_listed(sessions), 1):
            for place, transaction in enumerate(_listed(transactions), 1):
                if not transaction["committed"]:
                    continue
                where = f"{name}: session {session}, transaction {place}"
                for event in _listed(transaction["events"]):
                    [(kind, fields)] = event.items()
                    if kind not in ("Read", "Write"):
                        raise HistoryError(f"{where}: an event is neither Read nor Write")
                    version = fields["version"]
                    if version is None and kind == "Write":
                        raise HistoryError(f"{where}: a write without a version")
                    value = None if version is None else _plain(version)
                    yield _Event(str(session), str(place), kind == "Write", _plain(fields["variable"]), value, where)
    except (KeyError, TypeError, AttributeError, ValueError) as error:
        if isinstance(error, HistoryError):
            raise
        raise HistoryError(
            f"{name}: not in dbcop's form, sessions of transactions of events with a variable and a version"
        ) from None


def _listed(value: Any) -> list[Any]:
    if not isinstance(value, list):
        raise TypeError
    return value


def _plain(value: Any) -> str:
    if isinstance(value, bool) or not isinstance(value, (int, str)):
        raise TypeError
    return str(value)


def _dbcop_text(text: str, name: str) -> Iterator[_Event]:
    session = transaction = 1
    for number, line in enumerate(text.splitlines(), 1):
        place = f"{name}:{number}"
        shown = line.partition("//")[0].strip()
        if shown and not shown.strip("-"):
            session += 1
            continue
        rest = _TRANSACTION.sub("", shown).strip()
        if rest:
            raise HistoryError(f"{place}: not in dbcop's form, [x:=1 y==2 z==?] and --- between sessions")
        for match in _TRANSACTION.finditer(shown):
            transaction += 1
            for word in match[1].split():
                event = _EVENT.fullmatch(word)
                if event is None:
                    raise HistoryError(f"{place}: not in dbcop's form, x:=1 or x==1 or x==?")
                if not match[2]:
                    read = None if event[3] == "?" else event[3]
                    yield _Event(
                        str(session), str(transaction), event[2] is not None, event[1], event[2] or read, place
                    )


def _operations(events: Iterable[_Event]) -> list[Operation]:
    listed = list(events)
    writes: dict[tuple[str, str | None], str] = {}
    for number, each in enumerate(listed, 1):
        if each.writes and writes.setdefault((each.key, each.value), str(number)) != str(number):
            raise HistoryError(
                f"{each.place}: the value {each.value} of {each.key} is written twice, so reads cannot be told apart"
            )
    made = []
    for number, each in enumerate(listed, 1):
        kind = Kind.WRITE if each.writes else Kind.READ
        scope = f"session {each.session}"
        operation = Operation(str(number), kind, scope, scope, store=_STORE, key=each.key, place=each.place)
        if not each.writes and each.value is not None:
            operation.reads_from = writes.get((each.key, each.value), f"value {each.value} of {each.key}")
        made.append(operation)
    if not made:
        raise HistoryError("there are no operations in it")
    return made


@dataclass(frozen=True, slots=True)
class ForeignHistory:
    """A history in another checker's form, and what that form has no place for."""

    text: str
    lost: int
    """Messages, lineages, and reads of an unknown write."""


def to_dbcop(history: History) -> ForeignHistory:
    """dbcop's JSON, sessions without wrapping."""

    def event(number: int) -> Any:
        fields = {"variable": history.item[number], "version": _value(history, number)}
        return {"Write" if history.is_write(number) else "Read": fields}

    sessions, lost = _sessions(history, lambda number, _: {"events": [event(number)], "committed": True})
    return ForeignHistory(json.dumps(sessions, separators=(",", ":")) + "\n", lost)


def to_plume(history: History) -> ForeignHistory:
    """Plume's text."""
    transactions = iter(range(1, len(history) + 1))

    def line(number: int, session: int) -> str:
        kind = "w" if history.is_write(number) else "r"
        value = _value(history, number) or 0
        return f"{kind}({history.item[number]},{value},{session},{next(transactions)})"

    sessions, lost = _sessions(history, line)
    return ForeignHistory("".join(f"{each}\n" for session in sessions for each in session), lost)


def _sessions(history: History, shown: Callable[[int, int], Any]) -> tuple[list[list[Any]], int]:
    sessions = []
    lost = 0
    for session, members in enumerate(history.threads, 1):
        kept = []
        for number in members:
            each = history.operations[number]
            lost += each.lineage is not None
            if each.kind not in (Kind.WRITE, Kind.READ) or (
                each.kind is Kind.READ and history.source[number] == UNKNOWN_SOURCE
            ):
                lost += 1
                continue
            kept.append(shown(number, session))
        if kept:
            sessions.append(kept)
    return sessions, lost


def _value(history: History, number: int) -> int | None:
    """Each write's number from 1; a value that nobody wrote is greater than all."""
    if history.is_write(number):
        return number + 1
    source = history.source[number]
    if source == INITIAL:
        return None
    return len(history) + number + 1 if source == THIN_AIR else source + 1
