"""Redis: a primary in region A ("a"), replicas in region B ("b1", "b2", …), each behind a link of its own."""

from __future__ import annotations

import shutil
import time
import uuid
from collections.abc import Callable, Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass, field
from typing import Any, ClassVar, Literal

import redis as redis_py

from antipode_lab.errors import LabError
from antipode_lab.model import Server
from antipode_lab.processes import wait_until
from antipode_lab.store import BaseStore, Package, verb

RestartSource = Literal["rdb", "aof", "nothing"]
PROBE_CHANNEL = "antipode-lab:probe"
LOST_KEY = "antipode-lab:lost:{}"
"""Keys of the writes that ``promote(lose=N)`` makes at the old primary and that never arrive."""


@dataclass(frozen=True, slots=True)
class RedisOptions:
    """Redis' options.

    Attributes:
        config: settings of redis.conf for every server, such as ``{"repl-backlog-ttl": "1"}``.
        aof: every server keeps an append-only file from the start.
        sentinels: three Sentinels with a quick failover; clients find the primary through them.
        down_after_ms: silence after which a Sentinel thinks that the primary is down.
    """

    config: Mapping[str, str] = field(default_factory=dict)
    aof: bool = False
    sentinels: bool = False
    down_after_ms: int = 500


class RedisStore(BaseStore[RedisOptions]):
    """The lab's Redis servers."""

    kind: ClassVar[str] = "redis"
    packages: ClassVar[Sequence[Package]] = (Package("redis-server", "redis-server"),)
    options_type: ClassVar[type[Any]] = RedisOptions

    # -- start -------------------------------------------------------------------------------------

    def start(self, lags_ms: Sequence[int]) -> None:
        """Starts the primary and one replica a lag."""
        names = ["a", *(f"b{index}" for index in range(1, len(lags_ms) + 1))]
        self.set_base_lags(dict(zip(names, [0, *lags_ms], strict=True)))
        self.state.details["users"] = {}
        self.state.details["aof"] = dict.fromkeys(names, self.options.aof)
        for name, port in zip(names, self.context.supervisor.ports(len(names)), strict=True):
            region = "a" if name == "a" else "b"
            role = "primary" if name == "a" else "replica"
            self.state.servers[name] = Server(
                name,
                region,
                role,
                "127.0.0.1",
                port,
                f"redis://127.0.0.1:{port}",
                source=None if name == "a" else "a",
            )
            (self.context.folder / name).mkdir()
            self._spawn(name)
        for name in names:
            self._wait_answers(name)
        for name in names[1:]:
            # One after the other: a second one that comes during the first one's sync waits for a cron.
            self._attach(name, "a")
            self.wait_caught_up(name)

    def _spawn(self, name: str) -> None:
        """Starts a server's process with what is in its folder.

        A replica is started as one, so that the replication id in its RDB serves for a partial resync.
        """
        server = self.server(name)
        settings: dict[str, str] = {
            "port": str(server.port),
            "bind": "127.0.0.1",
            "dir": str(self.context.folder / name),
            "save": "",
            "appendonly": "yes" if self.state.details["aof"][name] else "no",
            # A diskless sync ends with an acknowledgement, and a primary that misses it waits a second.
            "repl-diskless-sync": "no",
            "repl-diskless-sync-delay": "0",  # for who switches it on: 5 s by default, to gather replicas
            "hz": "100",  # the end of a sync is noticed by a cron
            "repl-ping-replica-period": "10",
            "enable-debug-command": "local",
            **self.options.config,
        }
        argv = [shutil.which("redis-server") or "redis-server"]
        for setting, value in settings.items():
            argv += [f"--{setting}", value]
        # At the first start nothing to resume, and a replica that is told later connects at once.
        if server.source is not None and server.pid:
            argv += ["--replicaof", "127.0.0.1", str(self.link(name, server.source).port)]
        server.pid = self.context.supervisor.spawn(self.process(name), argv)

    def _wait_answers(self, name: str) -> None:
        with self.client(name, socket_timeout=1) as client:

            def answers() -> bool:
                try:
                    return bool(client.ping())
                except redis_py.BusyLoadingError:
                    return False
                except (redis_py.ConnectionError, redis_py.TimeoutError):
                    return False

            self.context.supervisor.wait_ready(self.process(name), answers, 30)
            self._apply_users(client)

    def _attach(self, name: str, source: str) -> None:
        """Makes a server a replica of ``source``, through their link."""
        server = self.server(name)
        link = self.link(name, source)
        server.role, server.source = "replica", source
        with self.client(name) as client:
            client.execute_command("REPLICAOF", "127.0.0.1", str(link.port))

    # -- clients and what they see -----------------------------------------------------------------

    def client(self, name: str, **arguments: Any) -> redis_py.Redis:
        """A new redis-py client of a server, straight, not through a link. The arguments are redis-py's."""
        server = self.server(name)
        return redis_py.Redis(**{"host": server.host, "port": server.port, "socket_timeout": 30, **arguments})

    def url(self, name: str) -> str:
        """The server's address as a URL."""
        return self.server(name).url

    @property
    def primary(self) -> str:
        """The server that was last made the primary."""
        return str(next(s.name for s in self.state.servers.values() if s.role == "primary"))

    @property
    def replicas(self) -> list[str]:
        """The servers that are replicas, directly or not, of the primary."""
        return [server.name for server in self.state.servers.values() if server.role == "replica"]

    def replication(self, name: str) -> dict[str, str]:
        """``INFO replication`` of a server, every value as text (redis-py would make a number of some
        replication ids).
        """
        with self.client(name, socket_timeout=5) as client:
            client.set_response_callback("INFO", lambda reply, **_: reply)
            raw = client.execute_command("INFO", "replication")
        text = raw.decode() if isinstance(raw, bytes) else str(raw)
        pairs = (line.partition(":") for line in text.splitlines() if ":" in line)
        return {key: value for key, _, value in pairs}

    def detail(self, server: Server) -> str:
        """Its offset, and whether its link is up."""
        try:
            info = self.replication(server.name)
        except redis_py.RedisError as error:
            return f"{type(error).__name__}: {error}"
        epoch = info["master_replid"][:8]
        if info["role"] == "master":
            return f"{epoch}:{info['master_repl_offset']}, {info['connected_slaves']} replica(s)"
        return f"{epoch}:{info['slave_repl_offset']}, link {info['master_link_status']}"

    def root_of(self, name: str) -> str:
        """The server at the head of the chain that ``name`` replicates from."""
        seen = {name}
        while (source := self.server(name).source) is not None:
            if source in seen:
                raise LabError(f"redis {name} replicates from itself, over {source}")
            seen.add(source)
            name = source
        return name

    def _can_flow(self, name: str) -> bool:
        """Whether nothing that the lab did keeps data from ``name``."""
        while True:
            if not self.running(name):
                return False
            source = self.server(name).source
            if source is None:
                return True
            if self.link(name, source).state != "up":
                return False
            name = source

    def wait_links(self, timeout: float = 60.0) -> None:
        """Waits until data flow over every link that is not parted, to every server that runs."""
        for name in [name for name in self.replicas if self._can_flow(name)]:
            self.wait_caught_up(name, timeout)

    def wait_caught_up(self, name: str, timeout: float = 60.0) -> None:
        """Waits until a probe, and so everything written before it, has been applied at ``name``.

        ``master_link_status:up`` does not mean that writes flow. The probe is a PUBLISH: it is in the
        replication stream, but it is no data.

        Raises:
            LabError: after ``timeout`` seconds.
        """
        root = self.root_of(name)
        probed: tuple[str, int] | None = None

        def arrived() -> bool:
            nonlocal probed
            with suppress(redis_py.ConnectionError, redis_py.TimeoutError):
                if probed is None:
                    info = self.replication(name)
                    if info.get("master_link_status") != "up":
                        return False
                    with self.client(root) as client:
                        client.publish(PROBE_CHANNEL, uuid.uuid4().hex)
                    head = self.replication(root)
                    probed = head["master_replid"], int(head["master_repl_offset"])
                info = self.replication(name)
                if info["master_replid"] != probed[0]:
                    probed = None  # the first replica gives a primary a new replid: probe again
                    return False
                return int(info.get("slave_repl_offset", -1)) >= probed[1]
            return False

        wait_until(f"redis {name} to receive what {root} sends", arrived, timeout, 0.003)

    # -- verbs -------------------------------------------------------------------------------------

    @verb
    def repoint(self, server: str, source: str, *, wait: bool = True) -> None:
        """Makes ``server`` a replica of ``source``, through a link of its own: an old primary rejoins this
        way.
        """
        self.server(server)
        if server == source or server in self._chain(source):
            raise LabError(f"redis {source} replicates from {server}: that would be a circle")
        self._attach(server, source)
        if wait and self._can_flow(server):
            self.wait_caught_up(server)

    def _chain(self, name: str) -> list[str]:
        """``name`` and every server that its data come through."""
        chain = [name]
        while (source := self.server(chain[-1]).source) is not None and source not in chain:
            chain.append(source)
        return chain

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
                if self.running(other):
                    self._attach(other, server)
                else:
                    self.server(other).source = server
        if wait:
            self.wait_links()

    @verb
    def restart(
        self, server: str, source: str | None = None, *, crash: bool = False, wait: bool = True
    ) -> None:
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

    def _apply_users(self, client: redis_py.Redis) -> None:
        users: dict[str, list[str]] = self.state.details["users"]
        for user, rules in users.items():
            client.execute_command("ACL", "SETUSER", user, *rules)  # type: ignore[no-untyped-call]


STORE = RedisStore

__all__ = ["LOST_KEY", "STORE", "RedisOptions", "RedisStore", "RestartSource"]
