"""How the lab starts Redis servers, reaches them, and waits for their links."""

from __future__ import annotations

import shutil
import uuid
from collections.abc import Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass, field
from typing import Any, ClassVar

import redis as redis_py
from redis.backoff import NoBackoff
from redis.retry import Retry

from antipode_lab.model import Server
from antipode_lab.processes import wait_until
from antipode_lab.store import Package
from antipode_lab.stores import _redis_sentinel as sentinel
from antipode_lab.stores._replicated import ReplicatedStore

PROBE_CHANNEL = "antipode-lab:probe"


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


class RedisServers(ReplicatedStore[RedisOptions]):
    """Starting the servers, reaching them, and waiting for their links; the verbs are `RedisStore`'s."""

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
        if self.options.sentinels:
            self._start_router(names)
        for name in names[1:]:
            # One after the other: a second one that comes during the first one's sync waits for a cron.
            self._attach(name, "a")
            self.wait_caught_up(name)
        if self.options.sentinels:
            self.state.details["sentinels"] = [
                {"host": "127.0.0.1", "port": port}
                for port in sentinel.start_sentinels(
                    self.context.supervisor,
                    self.context.folder,
                    primary_port=self._router_ports["a"],
                    replicas=len(names) - 1,
                    down_after_ms=self.options.down_after_ms,
                )
            ]
            self.state.details["sentinel_name"] = sentinel.SERVICE

    def _start_router(self, names: Sequence[str]) -> None:
        """Sentinels give every replica one address of the primary: the router finds the link from there."""
        ports = dict(zip(names, self.context.supervisor.ports(len(names)), strict=True))
        self.state.details["router_ports"] = ports
        pairs = [(target, source) for target in names for source in names if target != source]
        sentinel.start_router(
            self.context.supervisor,
            self.context.folder,
            router_ports=ports,
            direct={name: self.server(name).port for name in names},
            links={f"{target}<-{source}": self.link(target, source).port for target, source in pairs},
        )
        for name in names:
            with self.client(name) as client:
                for setting, value in self._announced(name).items():
                    client.config_set(setting, value)

    @property
    def _router_ports(self) -> dict[str, int]:
        """The servers' ports at the router; empty without Sentinels."""
        return dict(self.state.details.get("router_ports", {}))

    def _announced(self, name: str) -> dict[str, str]:
        """Settings by which Sentinels learn the router's address of a server, and the router knows the
        server.
        """
        ports = self._router_ports
        if name not in ports:
            return {}
        return {
            "replica-announce-ip": "127.0.0.1",
            "replica-announce-port": str(ports[name]),
            "bind-source-addr": sentinel.source_address(list(ports).index(name)),
        }

    def _source_port(self, name: str, source: str) -> int:
        """The port at which ``name`` reaches ``source``: their link's, or the router's, which leads there."""
        link = self.link(name, source)
        return self._router_ports.get(source, link.port)

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
            **self._announced(name),
            **self.options.config,
        }
        argv = [shutil.which("redis-server") or "redis-server"]
        for setting, value in settings.items():
            argv += [f"--{setting}", value]
        # At the first start nothing to resume, and a replica that is told later connects at once.
        if server.source is not None and server.pid:
            argv += ["--replicaof", "127.0.0.1", str(self._source_port(name, server.source))]
        server.pid = self.context.supervisor.spawn(self.process(name), argv)

    def _wait_answers(self, name: str) -> None:
        with self.client(name, socket_timeout=1, retry=Retry(NoBackoff(), 0)) as client:

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
        port = self._source_port(name, source)
        server.role, server.source = "replica", source
        with self.client(name) as client:
            client.execute_command("REPLICAOF", "127.0.0.1", str(port))

    # -- clients and what they see -----------------------------------------------------------------

    def client(self, name: str, **arguments: Any) -> redis_py.Redis:
        """A new redis-py client of a server, straight, not through a link. The arguments are redis-py's."""
        server = self.server(name)
        return redis_py.Redis(**{"host": server.host, "port": server.port, "socket_timeout": 30, **arguments})

    def url(self, name: str) -> str:
        """The server's address as a URL."""
        return self.server(name).url

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

    def _apply_users(self, client: redis_py.Redis) -> None:
        users: dict[str, list[str]] = self.state.details["users"]
        for user, rules in users.items():
            client.execute_command("ACL", "SETUSER", user, *rules)  # type: ignore[no-untyped-call]
