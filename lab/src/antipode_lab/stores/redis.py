"""Redis: a primary in region A ("a"), replicas in region B ("b1", "b2", …), each behind a link of its own."""

from __future__ import annotations

import shutil
import time
from collections.abc import Callable
from contextlib import suppress
from typing import Literal

import redis as redis_py

from antipode_lab.errors import LabError
from antipode_lab.processes import wait_until
from antipode_lab.store import verb
from antipode_lab.stores import _redis_sentinel as sentinel
from antipode_lab.stores._redis_servers import PROBE_CHANNEL, RedisOptions, RedisServers

RestartSource = Literal["rdb", "aof", "nothing"]
LOST_KEY = "antipode-lab:lost:{}"
"""Keys of the writes that ``promote(lose=N)`` makes at the old primary and that never arrive."""


class RedisStore(RedisServers):
    """The lab's Redis servers."""

    # -- verbs -------------------------------------------------------------------------------------

    @verb
    def repoint(self, server: str, source: str, *, wait: bool = True) -> None:
        """Makes ``server`` a replica of ``source``, through a link of its own: an old primary rejoins this
        way.
        """
        self.server(server)
        if self.options.sentinels and source != self._agreed():
            self._refuse_with_sentinels("re-pointing to another than their primary")
        if server == source or server in self._chain(source):
            raise LabError(f"redis {source} replicates from {server}: that would be a circle")
        self._attach(server, source)
        if wait and self._can_flow(server):
            self.wait_caught_up(server)

    @verb
    def promote(
        self,
        server: str,
        lose: int | Callable[[redis_py.Redis], object] | None = None,
        *,
        repoint: bool = True,
        wait: bool = True,
    ) -> None:
        """Makes a replica the primary, and re-points the other replicas to it.

        Args:
            server: the replica.
            lose: writes of the old primary that never arrive. A number writes so many keys
                (``antipode-lab:lost:0`` …); a function writes itself, with a client of the old primary. 0:
                first waits until the replica has everything. None: whatever is on its way is lost or not.
            repoint: false leaves the other replicas where they are.
            wait: returns when data flow again.

        The old primary is not told: it takes writes until ``repoint`` makes it a replica. With lost writes
        it stays parted from the others, or they would fetch what must be lost.
        """
        self._refuse_with_sentinels("promotion")
        old = self.primary
        if server == old:
            raise LabError(f"redis {server} is the primary already")
        if lose == 0 and not callable(lose):
            self.wait_caught_up(server)
        elif lose is not None:
            self.state.details["cuts"][old] = "cut"
            self._apply_all()
            with self.client(old) as client:
                if callable(lose):
                    lose(client)
                else:
                    for index in range(lose):
                        client.set(LOST_KEY.format(index), f"lost at {time.time_ns()}")
        with self.client(server) as client:
            client.execute_command("REPLICAOF", "NO", "ONE")
        target = self.server(server)
        target.role, target.source = "primary", None
        self.server(old).role = "old primary"
        if repoint:
            for other in [s.name for s in self.state.servers.values() if s.role == "replica"]:
                process = self.context.supervisor.state(self.process(other)).state
                if process == "running":
                    self._attach(other, server)
                elif process == "stopped":  # told when it starts again; a frozen one follows its old source still
                    self.server(other).source = server
        if wait:
            self.wait_links()

    @verb
    def restart(self, server: str, source: str | None = None, *, crash: bool = False, wait: bool = True) -> None:
        """Ends a server and starts it again on the same port.

        Args:
            server: which.
            source: what it starts from: ``rdb`` (default, unless it keeps an append-only file), ``aof``, or
            ``nothing``.
            crash: SIGKILL without saving: it starts from what its disk happens to hold. Otherwise the RDB
            is written
                (or the append-only file switched on and complete) before.
            wait: returns when data flow again.
        """
        folder = self.context.folder / server
        aof: dict[str, bool] = self.state.details["aof"]
        self.server(server)
        chosen = source or ("aof" if aof[server] else "rdb")
        if chosen not in ("rdb", "aof", "nothing"):
            raise LabError(f"redis restarts from 'rdb', 'aof' or 'nothing', not {chosen!r}")
        if not crash and self.running(server):
            if chosen == "rdb":
                self.save(server)
            elif chosen == "aof":
                self._complete_aof(server)
        rdb, appended = folder / "dump.rdb", folder / "appendonlydir"
        if chosen == "rdb" and not rdb.exists():
            raise LabError(f"redis {server} has no RDB to start from; save it first")
        if chosen == "aof" and not appended.exists():
            raise LabError(f"redis {server} has no append-only file to start from")
        self.context.supervisor.stop(self.process(server))
        if chosen != "aof":  # it would be preferred
            shutil.rmtree(appended, ignore_errors=True)
        if chosen == "nothing":
            rdb.unlink(missing_ok=True)
        aof[server] = chosen == "aof" or (aof[server] and chosen == "nothing")
        self._spawn(server)
        self._wait_answers(server)
        if wait:
            self.wait_links()

    @verb
    def save(self, server: str) -> None:
        """Writes the server's RDB now (SAVE)."""
        with self.client(server) as client:

            def saved() -> bool:
                try:
                    return bool(client.save())
                except redis_py.ResponseError as error:
                    if "in progress" in str(error):  # a sync's or a rewrite's child is at work
                        return False
                    raise

            wait_until(f"the RDB of redis {server}", saved, 30)

    def _complete_aof(self, server: str) -> None:
        """Switches the append-only file on, and waits until it holds everything."""
        with self.client(server) as client:
            client.config_set("appendonly", "yes")

            def complete() -> bool:
                info = client.info("persistence")
                busy = info["aof_rewrite_in_progress"] or info["aof_rewrite_scheduled"]
                return not busy and info["aof_last_bgrewrite_status"] == "ok" and bool(info["aof_enabled"])

            wait_until(f"the append-only file of redis {server}", complete, 30)

    @verb
    def config(self, server: str, setting: str, value: str) -> None:
        """``CONFIG SET``: lasts until the server's next restart."""
        with self.client(server) as client:
            client.config_set(setting, value)

    # -- Sentinels

    @property
    def sentinels(self) -> list[tuple[str, int]]:
        """The Sentinels' addresses, as redis-py's ``Sentinel`` takes them; the service is `sentinel_name`."""
        return [(item["host"], item["port"]) for item in self.state.details.get("sentinels", [])]

    @property
    def sentinel_name(self) -> str:
        """The name under which Sentinels know the primary."""
        return sentinel.SERVICE

    def _refuse_with_sentinels(self, what: str) -> None:
        if self.options.sentinels:
            raise LabError(
                f"{what} is the Sentinels' business here, and they would undo it: "
                "kill or freeze the primary and wait_failover(), or failover()"
            )

    def refresh(self) -> None:
        """As every store's; with Sentinels also the roles, which they change without asking the lab."""
        super().refresh()
        if self._router_ports:
            self._refresh_roles()
            super().refresh()  # the lags are those of the sources

    def _refresh_roles(self) -> None:
        names = {port: name for name, port in self._router_ports.items()}
        for server in self.state.servers.values():
            if server.state != "running":
                continue
            with suppress(redis_py.RedisError):
                info = self.replication(server.name)
                if info["role"] == "master":
                    server.role, server.source = "primary", None
                else:
                    server.role, server.source = "replica", names.get(int(info["master_port"]))
        primaries = [server for server in self.state.servers.values() if server.role == "primary"]
        if len(primaries) > 1:
            # One that was frozen, killed, or not told yet believes itself the primary still.
            agreed = self._agreed()
            for server in primaries:
                if agreed is not None and server.name != agreed:
                    server.role = "old primary"

    def _agreed(self) -> str | None:
        """The server that most Sentinels name as the primary."""
        named: list[str] = []
        names = {port: name for name, port in self._router_ports.items()}
        for _, port in self.sentinels:
            with suppress(redis_py.RedisError):
                named.append(names[int(sentinel.ask(port)["port"])])
        majority = [name for name in named if named.count(name) * 2 > sentinel.COUNT]
        return majority[0] if majority else None

    @verb
    def wait_failover(self, old: str, timeout: float = 90.0) -> str:
        """Waits until all Sentinels name another primary than ``old``; returns its name.

        Raises:
            LabError: after ``timeout`` seconds.
        """
        ports = [port for _, port in self.sentinels]
        port = sentinel.wait_agreed(ports, self._router_ports[old], timeout)
        self.refresh()
        return next(name for name, own in self._router_ports.items() if own == port)

    @verb
    def failover(self, timeout: float = 90.0) -> str:
        """Has the Sentinels choose another primary (SENTINEL FAILOVER); returns its name."""
        self.refresh()
        old = self.primary
        with redis_py.Redis(port=self.sentinels[0][1], socket_timeout=5) as client:
            client.execute_command("SENTINEL", "FAILOVER", sentinel.SERVICE)
        return self.wait_failover(old, timeout)

    # -- users -------------------------------------------------------------------------------------

    @verb
    def create_user(self, name: str, password: str, *rules: str) -> None:
        """Makes a user on every server (ACLs are not replicated), also after a restart.

        Without rules it is hardened as managed services do it: every key and command, except the
        administrator's and the dangerous ones, which INFO is among.
        """
        chosen = rules or ("~*", "&*", "+@all", "-@admin", "-@dangerous")
        self.state.details["users"][name] = ["reset", "on", f">{password}", *chosen]
        for server in self.state.servers:
            if self.running(server):
                with self.client(server) as client:
                    self._apply_users(client)


STORE = RedisStore

__all__ = ["LOST_KEY", "PROBE_CHANNEL", "STORE", "RedisOptions", "RedisStore", "RestartSource"]
