"""PostgreSQL: a primary in region A ("a"), hot standbys in region B ("b1", "b2", …), each behind a link of its own."""

from __future__ import annotations

import shutil
import time
from collections.abc import Callable
from contextlib import suppress
from typing import Any

import psycopg

from antipode_lab.errors import LabError
from antipode_lab.processes import wait_until
from antipode_lab.store import verb
from antipode_lab.stores._postgresql_servers import (
    APP_USER,
    DATABASE,
    POOLER,
    SUPERUSER,
    PostgresqlOptions,
    PostgresqlServers,
    unprivileged,
)

LOST_TABLE = "antipode_lab_lost"
"""Rows of the writes that ``promote(lose=N)`` makes at the old primary and that never arrive."""


class PostgresqlStore(PostgresqlServers):
    """The lab's PostgreSQL servers."""

    @verb
    def repoint(self, server: str, source: str, *, wait: bool = True) -> None:
        """Makes ``server`` a standby of ``source``, through a link of its own.

        One that has what ``source`` has not (an old primary, a standby that got further than the fork) is
        built anew from a base backup.
        """
        self.server(server)
        if server == source or server in self._chain(source):
            raise LabError(f"postgresql {source} replicates from {server}: that would be a circle")
        self._attach(server, source)
        if wait and self._can_flow(server):
            self.wait_caught_up(server)

    @verb
    def rebuild(self, server: str, source: str, *, wait: bool = True) -> None:
        """Builds ``server`` anew as a standby of ``source``, from a base backup."""
        self.server(server)
        self._rebuild(server, source)
        if wait and self._can_flow(server):
            self.wait_caught_up(server)

    def _attach(self, name: str, source: str) -> None:
        with self.connect(name) as connection:
            row = connection.execute("SELECT pg_is_in_recovery()").fetchone()
            standby = row is not None and bool(row[0])
            if standby:
                self._follow(connection, name, source)
        if not standby or self._diverged(name, source):
            self._rebuild(name, source)

    def _follow(self, connection: psycopg.Connection[Any], name: str, source: str) -> None:
        """Returns when nothing more comes from the source before: only then how far this one got can be judged."""
        server = self.server(name)

        def receiver() -> object:
            return connection.execute("SELECT pid FROM pg_stat_wal_receiver").fetchone()

        before, moved = receiver(), server.source != source
        server.role, server.source = "replica", source
        self._write_source(name, source)
        connection.execute("SELECT pg_reload_conf()")
        if moved and before is not None:
            with suppress(LabError):  # where replay is paused, the receiver stays for as long
                wait_until("the old receiver to end", lambda: receiver() != before, 10, 0.005)

    def _diverged(self, name: str, source: str) -> bool:
        """Whether a standby has something that is no part of the source's history."""
        mine, ends = self.place(name), self.forks(source)
        current = self.place(source)
        if mine.timeline == current.timeline:
            return mine.position > current.position
        return mine.timeline not in ends or mine.position > ends[mine.timeline]

    def _rebuild(self, name: str, source: str) -> None:
        server = self.server(name)
        if self.context.supervisor.state(self.process(name)).state != "stopped":
            self._crash(name)
        shutil.rmtree(self.data(name))
        self.data(name).mkdir(mode=0o700)
        self._own(self.data(name))
        self.run_program(
            "pg_basebackup",
            *("-D", str(self.data(name)), "-X", "stream", "-c", "fast", "--no-sync"),
            *("-h", "127.0.0.1", "-p", str(self.replication_port(source)), "-U", SUPERUSER),
        )
        (self.data(name) / "standby.signal").touch()
        self._own(self.data(name) / "standby.signal")
        server.role, server.source = "replica", source
        self._write_source(name, source)
        self._spawn(name)
        self._wait_answers(name)

    @verb
    def promote(
        self,
        server: str,
        lose: int | Callable[[psycopg.Connection[Any]], object] | None = None,
        *,
        repoint: bool = True,
        wait: bool = True,
    ) -> None:
        """Makes a standby the primary, on a timeline of its own, and re-points the other standbys to it.

        Args:
            server: the standby.
            lose: writes of the old primary that never arrive. A number writes so many rows (table
                ``antipode_lab_lost``); a function writes itself, with a connection to the old primary. 0: first
                waits until the standby has everything. None: whatever is on its way is lost or not.
            repoint: false leaves the other standbys where they are.
            wait: returns when data flow again.

        The old primary is not told: it takes writes until ``repoint`` makes it a standby. With lost writes
        it stays parted from the others.
        """
        old = self.primary
        if server == old:
            raise LabError(f"postgresql {server} is the primary already")
        if lose == 0 and not callable(lose):
            self.wait_caught_up(server)
        elif lose is not None:
            self.state.details["cuts"][old] = "cut"
            self._apply_all()
            with self.connect(old, user=APP_USER) as connection:
                if callable(lose):
                    lose(connection)
                else:
                    connection.execute(f"CREATE TABLE IF NOT EXISTS {LOST_TABLE} (number int, at timestamptz)")
                    for index in range(lose):
                        connection.execute(f"INSERT INTO {LOST_TABLE} VALUES (%s, now())", (index,))
        self._promote(server)
        target = self.server(server)
        target.role, target.source = "primary", None
        self.server(old).role = "old primary"
        if repoint:
            for other in [s.name for s in self.state.servers.values() if s.role == "replica"]:
                process = self.context.supervisor.state(self.process(other)).state
                if process == "running":
                    self._attach(other, server)
                elif process == "stopped":  # told when it starts again
                    self.server(other).source = server
                    self._write_source(other, server)
        if wait:
            self.wait_links()

    @verb
    def pooler(self, server: str, mode: str = "transaction") -> int:
        """Starts a PgBouncer before a server; returns its port. `mode`: session, transaction or statement."""
        if mode not in ("session", "transaction", "statement"):
            raise LabError(f"a pooler's mode is session, transaction or statement, not {mode!r}")
        [port] = self.context.supervisor.ports(1)
        name = f"{self.process(server)}-pooler-{port}"
        settings = self.context.folder / f"pgbouncer-{port}.ini"
        settings.write_text(
            f"[databases]\n* = host=127.0.0.1 port={self.server(server).port}\n"
            f"[pgbouncer]\nlisten_addr = 127.0.0.1\nlisten_port = {port}\nunix_socket_dir =\nauth_type = trust\n"
            f"auth_file = {settings.with_suffix('.users')}\npool_mode = {mode}\n"
        )
        settings.with_suffix(".users").write_text(f'"{APP_USER}" ""\n"{SUPERUSER}" ""\n')
        for file in (settings, settings.with_suffix(".users")):
            file.chmod(0o644)
        self.context.supervisor.spawn(name, [POOLER, "-q", str(settings)], user=unprivileged())

        def answers() -> bool:
            try:
                url = f"postgresql://{APP_USER}@127.0.0.1:{port}/{DATABASE}"
                psycopg.connect(url, connect_timeout=2).close()
            except psycopg.Error:
                time.sleep(0.02)
                return False
            return True

        self.context.supervisor.wait_ready(name, answers, 30)
        return port

    @verb
    def promote_apart(self, server: str) -> None:
        """Makes a standby a primary of its own, beside the one that there is: a split brain."""
        self._promote(server)
        target = self.server(server)
        target.role, target.source = "old primary", None

    def _promote(self, name: str) -> None:
        with self.connect(name) as connection:
            row = connection.execute("SELECT pg_promote(true, 60)").fetchone()
            if row is None or not row[0]:
                raise LabError(f"postgresql {name} was not promoted within 60 s")

        def writes() -> bool:
            try:
                with self.connect(name, timeout=5) as connection:
                    connection.execute("SELECT pg_current_wal_flush_lsn()")
                return True
            except psycopg.Error:
                time.sleep(0.01)
                return False

        wait_until(f"postgresql {name} to take writes", writes, 30)

    @verb
    def restart(self, server: str, source: str | None = None, *, crash: bool = False, wait: bool = True) -> None:
        """Ends a server and starts it again on the same port, with what its disk holds.

        Args:
            server: which.
            source: ``disk``, the only one.
            crash: SIGKILL; otherwise an orderly end.
            wait: returns when data flow again.
        """
        self.server(server)
        if source not in (None, "disk"):
            raise LabError(f"postgresql restarts from 'disk', not {source!r}")
        if self.context.supervisor.state(self.process(server)).state != "stopped":
            if crash or not self.running(server):
                self._crash(server)
            else:
                self._stop(server)
        self._spawn(server)
        self._wait_answers(server)
        if wait:
            self.wait_links()

    @verb
    def config(self, server: str, setting: str, value: str) -> None:
        """``ALTER SYSTEM SET``, and reloads: lasts until the server is re-pointed or built anew."""
        with self.connect(server) as connection:
            connection.execute(f"ALTER SYSTEM SET {setting} = '{value}'")
            connection.execute("SELECT pg_reload_conf()")


STORE = PostgresqlStore

__all__ = ["APP_USER", "DATABASE", "LOST_TABLE", "STORE", "SUPERUSER", "PostgresqlOptions", "PostgresqlStore"]
