"""The PostgreSQL shim: judges positions at a server, which it asks twice a millisecond while somebody waits."""

from __future__ import annotations

import time
from collections.abc import Mapping, Sequence
from typing import Any, ClassVar, Final

import psycopg
from antipode import Ordered, Store, UnprovenKind, Verdict, WriteId
from antipode.shim import BranchTable, Capabilities, Server, Shim, Visibility, unproven

from antipode_postgresql import branch_rows, doctor, operating, preparing
from antipode_postgresql.judging import ServerState, judge
from antipode_postgresql.looking import Look
from antipode_postgresql.positions import epoch_of
from antipode_postgresql.probe import NOT_DURABLE, Facts
from antipode_postgresql.session import RefusedError
from antipode_postgresql.targets import SCHEMES, names_several, target_of

POLL_S: Final = 0.001
"""Between two looks."""
_GLANCE_S: Final = 0.0005
"""Between two glances, which ask a standby only how far it has replayed: a third of a look's work."""
_NEAR_S: Final = 0.005
"""So long before a position is expected glances begin, and go on as long behind it."""
_LOOK_S: Final = 0.01
"""After so long it is looked at again in any case: it may be on another timeline, or somebody has settled an epoch."""


class PostgresqlShim(Shim, BranchTable):
    """What knows PostgreSQL. Positions: epoch = system, timeline and its word; counter = place in the log."""

    kind: ClassVar[str] = "postgresql"
    capabilities: ClassVar[Capabilities] = Capabilities(
        versions="position", blocking_wait=True, tombstones=True, rest=("native",), marks="native"
    )
    unreachable: ClassVar[tuple[type[Exception], ...]] = (OSError, psycopg.OperationalError)
    notes_reads: ClassVar[bool] = True
    renews: ClassVar[bool] = True
    schemes: ClassVar[tuple[str, ...]] = SCHEMES

    def __init__(self, store: Store) -> None:
        super().__init__(store)
        self.facts: dict[str, tuple[Facts, float]] = {}
        """By user and server address: what was found out when a client was wrapped, and when."""
        self._rows = branch_rows.row_writer(store)

    @property
    def relaxed_durability(self) -> bool:
        """Return whether the operator says that a server that crashed is rebuilt before it serves readers (SHIM-45)."""
        return bool(self.store.options.extra.get("relaxed_durability", False))

    def kind_of(self, error: Exception) -> UnprovenKind:
        """Return what kept a refused question from proving anything (BAR-59)."""
        is_right = isinstance(error, RefusedError) and error.code in ("42501", "42883", "3F000", "42P01", "")
        return UnprovenKind.RIGHT if is_right else UnprovenKind.OTHER

    def visible(self, ids: Sequence[WriteId], server: Server) -> Sequence[Visibility]:
        if names_several(server.address):
            words = f"{server.address} leads to several servers: name them one by one"
            return [unproven(words, UnprovenKind.UNFIT) for _ in ids]
        look = self._look(server)
        if look.relaxed and not self.relaxed_durability:
            words = f"{server.address} {NOT_DURABLE.format(setting=look.relaxed)}"
            return [unproven(words, UnprovenKind.UNFIT) for _ in ids]
        seen = look.look(_wanted(ids))
        answers = [_judge(write_id, seen) for write_id in ids]
        if any(one.verdict is Verdict.UNPROVEN or one.unknown_epoch for one in answers) and look.read_marks():
            # An operator may have settled its epoch since the rows were read.
            seen = look.look(_wanted(ids))
            answers = [_judge(write_id, seen) for write_id in ids]
        server.applied(look.instance, seen.epoch, seen.proved())
        return answers

    def wait(self, ids: Sequence[WriteId], server: Server, timeout: float) -> Sequence[Visibility]:
        """One poller a server: short statements, each with a snapshot of its own.

        A loop in one statement would hold its snapshot, and a standby does not replay what conflicts with one.
        """
        deadline = time.monotonic() + timeout
        while True:
            server.begin_question()
            answers = self.visible(ids, server)
            is_late = deadline - time.monotonic() <= POLL_S
            is_told = any(one.verdict is not Verdict.NOT_YET for one in answers)
            if is_late or is_told or server.interrupted or server.is_unhurried:
                return answers
            if not self._pause(ids, server):
                return answers

    def _pause(self, ids: Sequence[WriteId], server: Server) -> bool:
        """Wait until it is worth a look; return False where somebody new waits.

        What a glance sees is proof of nothing: only that a position is reached.
        """
        look = self._look(server)
        positions = [write_id.version.counter for write_id in ids if isinstance(write_id.version, Ordered)]
        least = min(positions, default=0)
        if not look.recovering or least <= look.reached:
            time.sleep(POLL_S)  # it waits for something else
            return True
        near = server.rest(_NEAR_S)
        until = time.monotonic() + (_LOOK_S if near is None else near)
        while time.monotonic() < until and not server.interrupted:
            time.sleep(_GLANCE_S)
            if look.glance() >= least:
                return True
        return not server.interrupted

    def check_branches(self) -> None:
        self._rows.each(lambda session, server: branch_rows.check(session, server, self.store.name))

    def find_branches(self, ids: Sequence[str], server: Server) -> Mapping[str, str]:
        return branch_rows.find(self._look(server).session, ids)

    def close_branch(self, branch: str, text: str, life: float) -> bool:
        return self._rows.run(lambda session: branch_rows.close(session, branch, text, life))

    def forget(self) -> None:
        self._rows.end()

    def renew(self, server: Server) -> Look:
        unique = bool(self.store.options.extra.get("unique_timelines", False))
        return Look(target_of(server.target), self.store.name, server.ask_timeout, unique_timelines=unique)

    def close(self, server: Server) -> None:
        look, server.session = server.session, None
        if isinstance(look, Look):
            look.close()

    def address(self, target: Any) -> str:
        return target_of(target).address

    def _look(self, server: Server) -> Look:
        look = server.session
        if not isinstance(look, Look):
            look = server.session = self.renew(server)
        look.set_timeout(server.ask_timeout)
        return look

    # What the command line asks for, of a URL

    epochs = staticmethod(operating.list_epochs)
    settle = staticmethod(operating.settle)
    diagnose = staticmethod(doctor.diagnose)
    preparation_options: ClassVar[Mapping[str, str]] = preparing.OPTIONS
    preparations = staticmethod(preparing.preparations)


def _judge(write_id: WriteId, seen: ServerState) -> Visibility:
    version = write_id.version
    if write_id.key or not isinstance(version, Ordered):
        return unproven(f"{write_id} is no PostgreSQL position")
    return judge(version.epoch, version.counter, seen)


def _wanted(ids: Sequence[WriteId]) -> list[tuple[int, int, str]]:
    found = []
    for write_id in ids:
        version = write_id.version
        if isinstance(version, Ordered) and (epoch := epoch_of(version.epoch)) is not None:
            found.append((epoch.timeline, version.counter, epoch.word))
    return found
