"""From operations to a history: who read whom, which message carried what, and what is not known."""

from __future__ import annotations

from collections.abc import Iterable
from typing import Final

from antipode._model.errors import MalformedLineageError
from antipode._model.lineage import Lineage
from antipode._model.write_id import Ordered, WriteId
from antipode.check.history.attributing import attributed
from antipode.check.history.operations import (
    INITIAL,
    THIN_AIR,
    UNATTRIBUTED,
    UNKNOWN_SOURCE,
    Gap,
    History,
    HistoryError,
    Kind,
    Operation,
)

_MOST_GAPS: Final = 100_000


def build(operations: Iterable[Operation]) -> History:
    """The history of these operations.

    Raises:
        HistoryError: an id or a sending stands twice, or something refers to what cannot be meant (HIST-7).
    """
    return _Builder(attributed(operations)).history()


class _Builder:
    def __init__(self, operations: list[Operation]) -> None:
        self._operations = operations
        self._numbers: dict[str, int] = {}
        self._sendings: dict[str, int] = {}
        self._identified: dict[WriteId, list[int]] = {}
        self._covered: set[WriteId] = set()
        """Positions that reads put into lineages: they may stand for no write, or for another one's (HIST-29)."""
        self._unconnected: set[int] = set()
        """Operations with nothing before them in their thread with which a position may have come."""
        self._gaps: list[Gap] = []
        self._numbered()

    def _numbered(self) -> None:
        for number, each in enumerate(self._operations):
            first = self._numbers.setdefault(each.id, number)
            if first != number:
                raise HistoryError(
                    f"{each.place}: the id {each.id!r} stands twice, first at {self._operations[first].place}"
                )
            if each.kind is Kind.SEND:
                other = self._sendings.setdefault(each.message, number)
                if other != number:
                    place = self._operations[other].place
                    raise HistoryError(f"{each.place}: the message {each.message!r} is sent twice, first at {place}")
            if each.identifier:
                for entry in self._parsed(each, each.identifier):
                    self._identified.setdefault(entry, []).append(number)
        connected: set[tuple[str, str]] = set()
        for number, each in enumerate(self._operations):
            if (each.process, each.scope) not in connected:
                self._unconnected.add(number)
                if each.kind in (Kind.RECEIVE, Kind.READ, Kind.WRITE):
                    connected.add((each.process, each.scope))
            if each.recorded is not None and each.recorded.covers:
                self._covered.update(self._parsed(each, each.recorded.covers))

    def history(self) -> History:
        operations = self._operations
        threads: dict[tuple[str, str], int] = {}
        items: dict[tuple[str, str], int] = {}
        requests: dict[str, int] = {}
        made = History(operations, [], [], [], [], [], [], {}, {}, {}, [], [], self._gaps)
        for number, each in enumerate(operations):
            thread = threads.setdefault((each.process, each.scope), len(threads))
            if thread == len(made.threads):
                made.threads.append([])
            made.thread.append(thread)
            made.place.append(len(made.threads[thread]))
            made.threads[thread].append(number)
            made.request.append(requests.setdefault(each.request or each.scope, len(requests)))
            touches = each.kind in (Kind.WRITE, Kind.READ)
            made.item.append(items.setdefault((each.store, each.key), len(items)) if touches else -1)
            made.source.append(self._source(number, each) if each.kind is Kind.READ else UNKNOWN_SOURCE)
            self._carry(made, number, each)
            if each.kind in (Kind.BEGIN, Kind.GAP):
                self._gap(number, _missing(each))
        made.items = list(items)
        made.requests = list(requests)
        return made

    def _source(self, number: int, read: Operation) -> int:
        if read.reads_from is None:
            return INITIAL
        if read.reads_from == UNATTRIBUTED:
            self._gap(number, "nobody knows which write this read returned")
            return UNKNOWN_SOURCE
        source = self._numbers.get(read.reads_from)
        if source is None:
            return THIN_AIR
        write = self._operations[source]
        if write.kind is not Kind.WRITE:
            raise HistoryError(
                f"{read.place}: {read.id!r} reads from {write.id!r}, which is a {write.kind}, not a write"
            )
        if (write.store, write.key) != (read.store, read.key):
            raise HistoryError(
                f"{read.place}: {read.id!r} reads {read.key!r} of {read.store!r} from {write.id!r}, which wrote "
                f"{write.key!r} of {write.store!r}"
            )
        return source

    def _carry(self, made: History, number: int, each: Operation) -> None:
        """The edges of a lineage, and of a message (HIST-11, HIST-12)."""
        if each.kind is Kind.SEND:  # what it says is said of the message, and so of those that receive it
            return
        carried = self._resolved(number, each)[0]
        if each.kind is Kind.RECEIVE:
            sending = self._sendings.get(each.message)
            if sending is None:
                if each.lineage is None:
                    self._gap(
                        number, "the message that was received is not in the history, and what it carried is not said"
                    )
                elif self._resolved(number, each)[1]:
                    self._gap(
                        number,
                        "the message that was received is not in the history, and carried a version, which may stand "
                        "for more writes than its own",
                    )
            else:
                made.sending[number] = sending
                message = self._operations[sending]
                writes, whole = self._resolved(sending, message)
                carried = carried + writes
                if message.lineage is None or whole:
                    made.sent[number] = sending
        carried = [write for write in dict.fromkeys(carried) if write != number]
        if carried:
            made.carried[number] = carried

    def _resolved(self, number: int, each: Operation) -> tuple[list[int], bool]:
        """The writes that an operation's lineage names, and whether one may stand for more than itself."""
        lineage = each.lineage
        if lineage is None:
            return [], False
        found: list[int] = []
        if isinstance(lineage, str):
            parsed = self._parsed(each, lineage)
            if parsed.incomplete:
                self._gap(number, "the lineage is incomplete: something that belonged there is missing")
            for entry in parsed:
                if entry in self._covered:
                    if number in self._unconnected:
                        self._gap(number, "the lineage holds a position that came with nothing that was recorded")
                    continue
                writes = self._identified.get(entry)
                if writes is None:
                    self._gap(number, f"no write of the history has the identifier {Lineage([entry]).serialize()}")
                found += writes or ()
            return found, any(isinstance(entry.version, Ordered) for entry in parsed)
        for name in lineage:
            write = self._numbers.get(name)
            if write is None:
                self._gap(number, f"the lineage holds {name!r}, which is not in the history")
            elif self._operations[write].kind is not Kind.WRITE:
                kind = self._operations[write].kind
                raise HistoryError(
                    f"{each.place}: the lineage of {each.id!r} holds {name!r}, which is a {kind}, not a write"
                )
            else:
                found.append(write)
        return found, False

    def _parsed(self, each: Operation, text: str) -> Lineage:
        try:
            return Lineage.deserialize(text)
        except MalformedLineageError as error:
            raise HistoryError(f"{each.place}: {text[:60]!r} is no lineage in the wire form: {error}") from None

    def _gap(self, number: int, reason: str) -> None:
        if len(self._gaps) < _MOST_GAPS:
            self._gaps.append(Gap(number, reason))


def _missing(each: Operation) -> str:
    """What a recorder says is missing."""
    if each.kind is Kind.BEGIN:
        return f"the recording of {each.process} has no end: the process was killed, or goes on"
    return f"something was not recorded: {'' if each.recorded is None else each.recorded.reason}"
