"""Whether a MariaDB server has a write: by its applier's position and its binary log's state together (spec EPOCH).

Alone each lies. The applier's position (and `MASTER_GTID_WAIT`) knows a domain's numbers and not who wrote them, so it
passes a write that a failover lost, once another server has used its number. The log's state knows who, and moves
before the commit can be seen. A write is visible where the state has its server with a sequence at least as great, and
either the applier has committed up to there, or nothing is being applied that could be in the gap.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field

from antipode import Ordered, WriteId
from antipode.shim import VISIBLE, UnprovenKind, Visibility, not_yet, unproven

from antipode_mysql.flavour import Look, WantedPosition
from antipode_mysql.gtids import State, parse_epoch


@dataclass(frozen=True, slots=True)
class ServerState(Look):
    """One look at a MariaDB server."""

    state: State
    places: Mapping[int, int]
    """By domain, what its applier has committed."""
    server_id: int
    unfit: str = ""
    """Why nothing can be proved there; empty where it can."""
    marks: Mapping[str, int] = field(default_factory=dict)
    """What operators have settled: epoch -> up to where it is there."""

    def settled(self, epoch: str) -> int:
        """Up to where an operator has settled an epoch; -1 where that does not hold here.

        Only ended epochs can be settled. One that is written now is another server's that has the same id: the table
        came with a dump of another system (EPOCH-22).
        """
        named = parse_epoch(epoch)
        last = None if named is None else self.state.last(named[0])
        if named is None or named[1] == self.server_id or (last is not None and last.server == named[1]):
            return -1
        return self.marks.get(epoch, -1)

    def reached(self, domain: int, server: int, *, idle: bool = False) -> int:
        """Up to where everything that this server wrote in this domain can be read here; -1 for nothing.

        What was written here had been committed before anybody got its position. `idle`: nothing is being applied.
        """
        logged = self.state.get((domain, server), -1)
        if idle or server == self.server_id:
            return logged
        return min(logged, self.places.get(domain, -1))

    def proved(self) -> dict[str, int]:
        """Per epoch, up to where everything is here."""
        if self.unfit:
            return {}
        found = {f"{domain}-{server}": self.reached(domain, server) for domain, server in self.state}
        for epoch in self.marks:
            found[epoch] = max(self.settled(epoch), found.get(epoch, -1))
        return {epoch: counter for epoch, counter in found.items() if counter >= 0}

    @property
    def epoch(self) -> str:
        """The history that the server follows now."""
        newest = self.state.newest
        return newest.epoch if newest is not None else f"0-{self.server_id}"

    def judge(self, write_id: WriteId, is_idle: Callable[[], bool]) -> Visibility:
        return judge(write_id, self, is_idle)

    def waited_for(self, ids: Sequence[WriteId], answers: Sequence[Visibility]) -> WantedPosition | None:
        found = waited_for(ids, answers, self)
        return None if found is None else WantedPosition(str(found[0]), found[1])


def judge(write_id: WriteId, seen: ServerState, is_idle: Callable[[], bool]) -> Visibility:
    """What one look proves of one write. `is_idle` asks, after that look, whether the applier is at rest."""
    version = write_id.version
    if write_id.key or not isinstance(version, Ordered):
        return unproven(f"{write_id} is no position of MariaDB")
    epoch, wanted = version
    named = parse_epoch(epoch)
    if named is None:
        return unproven(f"{epoch} is no epoch of MariaDB: it is domain-server_id")
    if wanted <= seen.settled(epoch):
        return VISIBLE
    if seen.unfit:
        return unproven(seen.unfit, UnprovenKind.UNFIT)
    domain, server = named
    last = seen.state.last(domain)
    logged = seen.state.get(named, -1)
    if logged >= wanted:
        if seen.reached(domain, server) >= wanted or is_idle():
            return VISIBLE
        return not_yet(f"{domain}-{server}-{wanted} is in its log, and is being committed there")
    where = "nothing of this domain" if last is None else f"{last.epoch}-{last.sequence}"
    if logged < 0:
        return not_yet(f"has {where}, and nothing from server {server}", unknown_epoch=True)
    if last is not None and last.server != server:
        return unproven(
            f"server {server} ended there at {epoch}-{logged}, server {last.server} went on, and {wanted} was wanted: "
            "it may be lost",
            UnprovenKind.HISTORY,
        )
    return not_yet(f"at {where}, wanted {wanted}")


def waited_for(ids: Sequence[WriteId], answers: Sequence[Visibility], seen: ServerState) -> tuple[int, int] | None:
    """The domain and sequence that the applier has to reach next for any of these writes; None where none waits."""
    found: tuple[int, int] | None = None
    for write_id, answer in zip(ids, answers, strict=True):
        version = write_id.version
        if answer is VISIBLE or not isinstance(version, Ordered):
            continue
        named = parse_epoch(version.epoch)
        if named is None or seen.places.get(named[0], -1) >= version.counter:
            continue
        if found is None or named[0] < found[0] or (named[0] == found[0] and version.counter < found[1]):
            found = (named[0], version.counter)
    return found
