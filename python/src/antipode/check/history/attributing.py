"""Who read whom, in what recorders wrote: by a value's version, or by the digest of a unique value (HIST-29)."""

from __future__ import annotations

from collections.abc import Iterable, Sequence

from antipode._model.errors import MalformedLineageError
from antipode._model.lineage import Lineage
from antipode.check.history.operations import UNATTRIBUTED, UNSAID, HistoryError, Kind, Operation, RecordedEvent

Item = tuple[str, str]
_NOTHING: RecordedEvent = RecordedEvent()


def attributed(operations: Iterable[Operation]) -> list[Operation]:
    """The operations with each read's write, so far as it can be known; what is not one is left out (HIST-27).

    Left out are the ends of recordings that are whole, and writes of unknown outcome that nobody has read: these may
    not have happened. What stays of the kinds `begin` and `gap` says that something is missing.
    """
    found = list(operations)
    if all(each.recorded is None for each in found):
        return found
    return _Attribution(found).kept()


class _Attribution:
    def __init__(self, operations: Sequence[Operation]) -> None:
        self._operations = operations
        self._by_version: dict[tuple[Item, str], list[Operation]] = {}
        self._by_value: dict[tuple[Item, str], list[Operation]] = {}
        self._unclear: set[Item] = set()
        """Keys of which a write has an unknown value."""
        self._may_be_gone: set[Item] = set()
        """Keys where nothing may be for another reason than that nothing was written yet."""
        self._any_key: set[str] = set()
        self._versionless: set[str] = set()
        """Stores with a write of which neither the keys nor the version is known: it may have left a version there."""
        self._late: set[Item] = set()
        """Keys of which a write may have had another one's version for a time (HIST-35)."""
        self._last: dict[str, Kind] = {}
        self._lost = False
        for each in operations:
            if each.kind is Kind.WRITE:
                self._written(each, each.recorded or _NOTHING)
            elif each.kind is Kind.GAP:
                self._lost = True
            self._last[each.process] = each.kind
        self._ended = {process for process, kind in self._last.items() if kind is Kind.END}
        self._lost = self._lost or any(
            each.kind is Kind.BEGIN and each.process not in self._ended for each in operations
        )

    def _written(self, write: Operation, said: RecordedEvent) -> None:
        item = (write.store, write.key)
        if said.nothing:
            return
        if said.any_key:
            self._any_key.add(write.store)
            if not write.identifier:
                self._versionless.add(write.store)
            return
        if write.identifier:
            self._by_version.setdefault((item, _canonical(write, write.identifier)), []).append(write)
        if said.late_version:
            self._late.add(item)
        if said.value is UNSAID:
            self._unclear.add(item)
        elif isinstance(said.value, str):
            self._by_value.setdefault((item, said.value), []).append(write)
        if said.value is None or (said.value is UNSAID and not said.there) or said.expires:
            self._may_be_gone.add(item)

    def kept(self) -> list[Operation]:
        read: set[str] = set()
        for each in self._operations:
            said = each.recorded
            if each.kind is not Kind.READ:
                continue
            if said is not None and (said.version or said.value is not UNSAID):
                each.reads_from = self._source(each, said)
            if each.reads_from is not None:
                read.add(each.reads_from)
        return [each for each in self._operations if self._stays(each, read)]

    def _stays(self, each: Operation, read: set[str]) -> bool:
        if each.kind is Kind.END:
            return False
        if each.kind is Kind.BEGIN:
            return each.process not in self._ended
        return each.kind is not Kind.WRITE or each.recorded is None or each.recorded.certain or each.id in read

    def _source(self, read: Operation, said: RecordedEvent) -> str | None:
        item = (read.store, read.key)
        version = _canonical(read, said.version) if said.version else ""
        if version:
            writes = self._by_version.get((item, version), [])
            if len(writes) == 1:
                return UNATTRIBUTED if read.store in self._versionless or item in self._late else writes[0].id
        if isinstance(said.value, str):
            writes = self._by_value.get((item, said.value), [])
            if len(writes) == 1 and item not in self._unclear and read.store not in self._any_key:
                other = version and writes[0].identifier  # then it is another write, of the same value
                return UNATTRIBUTED if other else writes[0].id
            return UNATTRIBUTED
        anyhow = item in self._may_be_gone or read.store in self._any_key or self._lost
        return None if said.value is None and not said.version and not anyhow else UNATTRIBUTED


def _canonical(each: Operation, text: str) -> str:
    try:
        return Lineage(Lineage.deserialize(text)).serialize()
    except MalformedLineageError as error:
        raise HistoryError(f"{each.place}: {text[:60]!r} is no lineage in the wire form: {error}") from None
