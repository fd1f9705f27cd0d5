"""The shim of MariaDB and MySQL: judges positions at a server, woken by the server's own wait (spec SHIM, EPOCH)."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from typing import Any, ClassVar

import pymysql
from antipode import Store, Verdict, WriteId
from antipode.shim import BranchTable, Capabilities, Server, Shim, UnprovenKind, Visibility
from antipode.shim.branch_writer import TIMEOUT_S

from antipode_mysql import branch_rows, doctor, preparing
from antipode_mysql.flavour import Look
from antipode_mysql.leading import Connections
from antipode_mysql.probe import Facts
from antipode_mysql.session import LoginRefusedError, Session, Waiter
from antipode_mysql.targets import SCHEMES, Target, leads_on, target_of


class MySQLShim(Shim, BranchTable):
    """What knows MariaDB and MySQL; which of them a server is, it says itself. Positions are of transactions' GTIDs."""

    kind: ClassVar[str] = "mysql"
    capabilities: ClassVar[Capabilities] = Capabilities(
        versions="position", push=True, tombstones=True, rest=("native",), marks="native"
    )
    unreachable: ClassVar[tuple[type[Exception], ...]] = (
        OSError,
        pymysql.err.OperationalError,
        pymysql.err.InterfaceError,
    )
    notes_reads: ClassVar[bool] = True
    renews: ClassVar[bool] = True
    schemes: ClassVar[tuple[str, ...]] = SCHEMES
    """URLs of these schemes are ours (`antipode epoch`, `antipode doctor`)."""
    preparation_options: ClassVar[Mapping[str, str]] = preparing.OPTIONS

    def __init__(self, store: Store) -> None:
        super().__init__(store)
        self.login: Target | None = None
        """That of the first wrapped connection, for replicas that were named without one."""
        self.facts: dict[str, tuple[float, Facts]] = {}
        """By server address: when it was asked for its settings, and what it said."""
        self.connections: dict[bool, Connections] = {}
        """The wrapped connections: those of wraps that list the region's servers, and the others."""
        self._rows = branch_rows.row_writer(store, lambda server: self._target(server).connect(TIMEOUT_S))

    @property
    def fresh_ids(self) -> bool:
        """The operator's statement that no server id, and no server uuid, is ever used for two lives of a server."""
        return bool(self.store.options.extra.get("fresh_server_ids", False))

    @property
    def relaxed_durability(self) -> bool:
        """Return the operator's statement that a server that crashed is rebuilt before it serves readers (SHIM-45)."""
        return bool(self.store.options.extra.get("relaxed_durability", False))

    def opened(self, plain: Any, target: Target, *, listed: bool, is_named: bool) -> Server:
        """Return the server to which a wrapped connection leads now; barriers look where it will lead, too (BAR-52)."""
        with self.store.lock:
            is_new = listed not in self.connections
            found = self.connections.setdefault(listed, Connections())
        found.opened(plain, target, is_named=is_named)
        if is_new:
            source = self.store.follow_client(found, found.look, found.targets, "a wrapped connection", listed=listed)
            source.found(found.targets())
        return self.store.reach(plain, target, leads_on, listed=listed)

    def _look(self, session: Session) -> Look:
        return session.look(fresh_ids=self.fresh_ids, relaxed_durability=self.relaxed_durability)

    def visible(self, ids: Sequence[WriteId], server: Server) -> Sequence[Visibility]:
        session = self._session(server)
        seen = self._look(session)
        answers = [seen.judge(write_id, session.is_idle) for write_id in ids]
        lost = any(answer.verdict is Verdict.UNPROVEN or answer.unknown_epoch for answer in answers)
        if lost and session.learn_marks():  # an operator may have settled it
            seen = self._look(session)
            answers = [seen.judge(write_id, session.is_idle) for write_id in ids]
        server.applied(session.instance, seen.epoch, seen.proved())
        self._wait_for_next(session, ids, answers, seen)
        return answers

    def _wait_for_next(
        self, session: Session, ids: Sequence[WriteId], answers: Sequence[Visibility], seen: Look
    ) -> None:
        if session.waiter is not None and not seen.unfit:
            wanted = seen.waited_for(ids, answers)
            if wanted is not None:
                session.waiter.wait_for(wanted)

    def check_branches(self) -> None:
        self._rows.each(lambda connection, server: branch_rows.check(connection, server, self.store.name))

    def find_branches(self, ids: Sequence[str], server: Server) -> Mapping[str, str]:
        return branch_rows.find(self._session(server).rows, ids)

    def close_branch(self, branch: str, text: str, life: float) -> bool:
        return self._rows.run(lambda connection: branch_rows.close(connection, branch, text, life))

    def forget(self) -> None:
        self._rows.end()

    def watch(self, server: Server, on_change: Callable[[], None]) -> Waiter:
        session = self._session(server)
        if session.waiter is None:
            session.waiter = Waiter(session, self._target(server), server.ask_timeout, on_change)
        return session.waiter

    def kind_of(self, error: Exception) -> UnprovenKind:
        return UnprovenKind.CONNECTION if isinstance(error, LoginRefusedError) else UnprovenKind.OTHER

    def renew(self, server: Server) -> Session:
        before, session = server.session, Session(self._target(server), server.ask_timeout)
        try:
            if isinstance(before, Session) and before.waiter is not None:
                session.waiter = Waiter(session, self._target(server), server.ask_timeout, server.on_change)
            self._look(session)  # its first one asks for the settings
        except BaseException:
            session.close()
            raise
        return session

    def close(self, server: Server) -> None:
        session, server.session = server.session, None
        if isinstance(session, Session):
            session.close()

    def address(self, target: Any) -> str:
        return target_of(target).address

    def _target(self, server: Server) -> Target:
        return target_of(server.target).with_login_of(self.login)

    def _session(self, server: Server) -> Session:
        session = server.session
        if not isinstance(session, Session):
            session = server.session = Session(self._target(server), server.ask_timeout)
        return session

    # What the command line asks for

    epochs = staticmethod(doctor.list_epochs)
    settle = staticmethod(doctor.settle)
    diagnose = staticmethod(doctor.diagnose)
    preparations = staticmethod(preparing.steps)
