"""Whether a MySQL server has a write: by the set of what it has executed (spec EPOCH-30).

`@@gtid_executed` names the writer of every transaction and grows after the commit can be seen, so another server's
numbers never pass for a lost write. A position stands for all of its epoch up to it: it is visible where the set has
all of that. A set has no order, though: that another server has gone on since is only known to who has seen it grow.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field

from antipode import Ordered, Verdict, WriteId
from antipode.shim import VISIBLE, UnprovenKind, Visibility, not_yet, unproven

from antipode_mysql.flavour import Look, WantedPosition
from antipode_mysql.gtid_sets import GREATEST, GtidSet, epoch_of, is_epoch, server_of


@dataclass(frozen=True, slots=True)
class Members(Look):
    """One look at a MySQL server."""

    executed: GtidSet
    server: str
    """Its own uuid, as epochs have it."""
    writer: str
    """Who was last seen to write, as far as that is known: a server, as epochs have it; else empty."""
    unfit: str = ""
    marks: Mapping[str, int] = field(default_factory=dict)
    """What operators have settled: epoch -> up to where it is there."""

    @property
    def epoch(self) -> str:
        return self.writer or f"{self.server}-unknown"

    def settled(self, epoch: str) -> int:
        """Up to where an operator has settled an epoch; -1 where that does not hold.

        That is where it is written now (EPOCH-22), and where the mark has no end: a server's uuid may come back with
        its server, and what it then writes is none of what was given up (EPOCH-24).
        """
        mark = self.marks.get(epoch, -1)
        return -1 if mark > GREATEST or server_of(epoch) in (self.server, self.writer) else mark

    def whole(self, epoch: str) -> int:
        """Up to where all of an epoch is here, or was settled."""
        return self.executed.whole(epoch, max(self.settled(epoch), 0))

    def proved(self) -> dict[str, int]:
        if self.unfit:
            return {}
        ambiguous = self.executed.ambiguous
        found = {epoch: self.whole(epoch) for epoch in {*self.executed, *self.marks} if epoch not in ambiguous}
        found |= {epoch: self.settled(epoch) for epoch in ambiguous & {*self.marks}}
        return {epoch: counter for epoch, counter in found.items() if counter > 0}

    def judge(self, write_id: WriteId, is_idle: Callable[[], bool]) -> Visibility:
        version = write_id.version
        if write_id.key or not isinstance(version, Ordered):
            return unproven(f"{write_id} is no position of MySQL")
        epoch, wanted = version
        if not is_epoch(epoch):
            return unproven(f"{epoch} is no epoch of MySQL: it is 16 digits of a server's uuid, and a tag")
        if wanted > GREATEST:
            return unproven(f"{wanted} is no number that MySQL gives")
        if wanted <= self.settled(epoch):
            return VISIBLE
        if self.unfit:
            return unproven(self.unfit, UnprovenKind.UNFIT)
        if epoch in self.executed.ambiguous:
            return unproven(f"two servers have written there whose uuids both begin with {server_of(epoch)}")
        whole = self.whole(epoch)
        if whole >= wanted:
            return VISIBLE
        if epoch not in self.executed:
            return not_yet(f"has nothing of {epoch}, wanted {wanted}", unknown_epoch=True)
        if self.executed.greatest(epoch) >= wanted:
            return not_yet(f"has {epoch} up to {whole} and past {wanted}, with a hole between", unknown_epoch=True)
        if self.writer and self.writer != server_of(epoch):
            return not_yet(
                f"has {epoch} up to {whole}, {self.writer} went on, and {wanted} was wanted: it may be lost",
                unknown_epoch=True,
            )
        return not_yet(f"has {epoch} up to {whole}, wanted {wanted}")

    def waited_for(self, ids: Sequence[WriteId], answers: Sequence[Visibility]) -> WantedPosition | None:
        """Of the server that writes now before any other: what is lost would be waited for in vain."""
        found: list[tuple[bool, WantedPosition]] = []
        for write_id, answer in zip(ids, answers, strict=True):
            version = write_id.version
            if answer.verdict is not Verdict.NOT_YET or not isinstance(version, Ordered):
                continue
            if version.epoch not in self.executed:
                continue
            found.append((answer.unknown_epoch, WantedPosition(self.executed.stream(version.epoch), version.counter)))
        return min(found)[1] if found else None


def look(row: Sequence[str], unfit: str, marks: Mapping[str, int], before: Look | None) -> Members:
    """From what the server says: its set, its uuid, whether it only reads."""
    text, uuid, read_only = row
    known = before if isinstance(before, Members) else None
    server = epoch_of(uuid)
    text = "".join(text.split())
    executed = known.executed if known is not None and known.executed.text == text else GtidSet(text)
    return Members(executed, server, _writer(executed, server, read_only == "1", known), unfit, marks)


def _writer(executed: GtidSet, server: str, read_only: bool, before: Members | None) -> str:
    """Who writes: the only one there is, else whoever was seen to go on, else the server itself where it may.

    That it may be written says little: it is MySQL's default, of replicas, too.
    """
    servers = {server_of(epoch) for epoch in executed}
    if len(servers) == 1:
        return servers.pop()
    last, had = ("", executed) if before is None or not before.executed else (before.writer, before.executed)
    grown = {server_of(epoch) for epoch in executed if executed[epoch] != had.get(epoch)}
    if not grown:
        return last or (server if not read_only and server in servers else "")
    grown = grown if grown == {last} else grown - {last}  # a failover between the two looks
    return grown.pop() if len(grown) == 1 else ""
