"""The verbs of the lab's MariaDB and MySQL: how replicas are promoted, re-pointed, rebuilt and restarted."""

from __future__ import annotations

import signal
import time
from abc import abstractmethod
from collections.abc import Callable
from typing import Any

import pymysql

from antipode_lab.errors import LabError
from antipode_lab.processes import wait_until
from antipode_lab.store import verb
from antipode_lab.stores._sql_servers import DATABASE, SqlServers

LOST_TABLE = "antipode_lab_lost"
"""Table of the writes that ``promote(lose=N)`` makes at the old primary and that never arrive."""


class SqlStore(SqlServers):
    """Servers of one kind, and what may be done to them."""

    @abstractmethod
    def _diverged(self, server: str, source: str) -> bool:
        """Whether ``server`` has transactions in its log that ``source`` has not."""

    @abstractmethod
    def _demoted(self, name: str, *, fresh_id: bool) -> None:
        """What a primary needs to become a replica where it is, before it is attached."""

    @abstractmethod
    def _emptied(self, name: str, *, fresh_id: bool) -> None:
        """Gives a stopped server an empty data folder, to fetch everything anew."""

    @abstractmethod
    def _complete(self, name: str, *, fresh_id: bool) -> None:
        """A server that was emptied has everything now."""

    def _before_start(self, name: str) -> None:
        """A server was killed, and is about to be started."""

    @verb
    def repoint(
        self,
        server: str,
        source: str,
        *,
        rebuild: bool | None = None,
        fresh_id: bool | None = None,
        wait: bool = True,
    ) -> None:
        """Makes ``server`` a replica of ``source``: an old primary rejoins this way.

        Args:
            server: which.
            source: where it gets its data from.
            rebuild: throw its data away and fetch everything anew; None: if it has transactions that
            ``source`` has not, as a server that was parted at a failover.
            fresh_id: whether it gets a server id that nobody had before; None: as the option
            ``fresh_server_ids`` says, if it is rebuilt or was a primary.
            wait: returns when data flow.
        """
        self.server(server)
        if server == source or server in self._chain(source):
            raise LabError(f"{self.kind} {source} replicates from {server}: that would be a circle")
        was_primary = self.server(server).role != "replica"
        if rebuild is None:
            rebuild = self._diverged(server, source)
        renewed = (was_primary or rebuild) and (self.options.fresh_server_ids if fresh_id is None else fresh_id)
        if rebuild:
            self._rebuild(server, source, fresh_id=renewed)
        else:
            if was_primary:
                self._demoted(server, fresh_id=renewed)
            self._attach(server, source)
        if wait and self._can_flow(server):
            self.wait_caught_up(server)

    def _rebuild(self, name: str, source: str, *, fresh_id: bool) -> None:
        """An empty server fetches everything from ``source``, whose log goes back to the beginning."""
        link = self.link(name, source)
        if link.state != "up":
            raise LabError(f"{self.kind} {name} cannot be rebuilt from {source}: their link is {link.state}")
        self.context.supervisor.stop(self.process(name))
        self._emptied(name, fresh_id=fresh_id)
        self.server(name).role = "replica"
        self._spawn(name)
        self._wait_answers(name)
        self.context.toxiproxy.set_lag(link.proxy, 0)  # as from a backup: it takes part once it is complete
        try:
            self._attach(name, source)
            self.wait_caught_up(name)
        finally:
            self._apply(link, anew=True)
        self._complete(name, fresh_id=fresh_id)

    @verb
    def promote(
        self,
        server: str,
        lose: int | Callable[[pymysql.Connection[Any]], object] | None = None,
        *,
        repoint: bool = True,
        wait: bool = True,
    ) -> None:
        """Makes a replica the primary, and re-points the other replicas to it.

        Args:
            server: the replica.
            lose: writes of the old primary that never arrive. A number inserts so many rows into
                ``antipode_lab_lost``; a function writes itself, with a connection to the old primary. 0: first
                waits until the replica has everything. None: whatever is on its way is lost or not.
            repoint: false leaves the other replicas where they are. One that has more than the new primary is
                rebuilt.
            wait: returns when data flow again.

        The old primary is not told: it takes writes until ``repoint`` makes it a replica. With lost writes
        it stays parted from the others.
        """
        old = self.primary
        if server == old:
            raise LabError(f"{self.kind} {server} is the primary already")
        if lose == 0 and not callable(lose):
            self.wait_caught_up(server)
        elif lose is not None:
            self._lose(old, lose)
        self._drain(server)
        self.run(server, self.stop_replica, self.forget_source, "SET GLOBAL read_only=0")
        target = self.server(server)
        target.role, target.source = "primary", None
        self.server(old).role = "old primary"
        if repoint:
            self._follow(server)
        if wait:
            self.wait_links()

    def _lose(self, old: str, lose: int | Callable[[pymysql.Connection[Any]], object]) -> None:
        """Writes at the old primary that never arrive: it is parted from all others first."""
        self.state.details["cuts"][old] = "cut"
        self._apply_all()
        with self.client(old) as client:
            if callable(lose):
                lose(client)
                return
            with client.cursor() as cursor:
                # Parted already: had one replica the table and another not, one of them would have to be rebuilt.
                cursor.execute(f"CREATE TABLE IF NOT EXISTS {LOST_TABLE} (id BIGINT PRIMARY KEY, written DOUBLE)")
                for _ in range(lose):
                    cursor.execute(f"INSERT INTO {LOST_TABLE} VALUES (%s, %s)", (time.time_ns(), time.time()))

    def _drain(self, server: str) -> None:
        """Lets a replica apply what it has received, and receive no more."""
        self.run(server, self.stop_receiver)

        def applied() -> bool:
            status = self.replication(server)
            if status["Slave_SQL_Running"] != "Yes":
                return True
            return "has read all relay log" in str(status["Slave_SQL_Running_State"])

        wait_until(f"{self.kind} {server} to apply what it has received", applied, 30, 0.005)

    def _follow(self, primary: str) -> None:
        """Every other replica follows the new primary; one that does not run is told when it starts."""
        for other in [s.name for s in self.state.servers.values() if s.role == "replica"]:
            process = self.context.supervisor.state(self.process(other)).state
            if process == "running":
                self._drain(other)
                if self._diverged(other, primary):
                    self._rebuild(other, primary, fresh_id=self.options.fresh_server_ids)
                else:
                    self._attach(other, primary)

    @verb
    def restart(self, server: str, source: str | None = None, *, crash: bool = False, wait: bool = True) -> None:
        """Ends a server and starts it again on the same port with what its disk holds.

        Args:
            server: which.
            source: ``disk``, the only one.
            crash: SIGKILL; otherwise it ends in order.
            wait: returns when data flow again.
        """
        self.server(server)
        if source not in (None, "disk"):
            raise LabError(f"{self.kind} restarts from 'disk', not {source!r}")
        self.context.supervisor.stop(self.process(server), signal.SIGKILL if crash else signal.SIGTERM)
        if crash:
            self._before_start(server)
        self._spawn(server)
        self._wait_answers(server)
        if self.server(server).source is not None:
            self._attach(server, str(self.server(server).source))
        if wait:
            self.wait_links()

    @verb
    def config(self, server: str, setting: str, value: str) -> None:
        """``SET GLOBAL``: lasts until the server's next restart."""
        self.run(server, f"SET GLOBAL {setting}={value}")

    @verb
    def create_user(self, name: str, password: str, *grants: str) -> None:
        """Makes a user on every server, also after a restart; grants such as ``"SELECT ON lab.*"``.

        It is no part of replication. Without grants it may do everything with the lab's database, and nothing else.
        """
        self.state.details["users"][name] = [password, list(grants or (f"ALL PRIVILEGES ON {DATABASE}.*",))]
        for server in self.state.servers:
            if self.running(server):
                self.run(server, *self._init_statements())
