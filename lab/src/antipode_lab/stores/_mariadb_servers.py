"""How the lab starts MariaDB servers, reaches them, attaches replicas, and waits for their links."""

from __future__ import annotations

import os
import shutil
import subprocess
import tempfile
from collections.abc import Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, ClassVar

import pymysql

from antipode_lab.cache import cache_folder, locked
from antipode_lab.errors import LabError
from antipode_lab.model import Server
from antipode_lab.processes import wait_until
from antipode_lab.store import BaseStore, Package

DATABASE = "lab"
REPLICATION_USER = "lab_replication"
REPLICATION_PASSWORD = "lab"
_SMALL = {
    "innodb-buffer-pool-size": "24M",
    "innodb-log-file-size": "8M",
    "key-buffer-size": "1M",
    "aria-pagecache-buffer-size": "1M",
    "performance-schema": "OFF",
    "max-connections": "256",
    "skip-name-resolve": "ON",
}
Gtids = dict[tuple[int, int], int]
"""(domain, server id) -> greatest sequence."""


@dataclass(frozen=True, slots=True)
class MariaDBOptions:
    """MariaDB's options.

    Attributes:
        config: settings for every server, as on mariadbd's command line: ``{"sync-binlog": "0"}``.
        server_config: the same for single servers, by name: ``{"b1": {"log-slave-updates": "OFF"}}``.
        fresh_server_ids: a server that rejoins or is rebuilt gets a server id that nobody had before; false:
        it keeps its own, as careless operators do.
    """

    config: Mapping[str, str] = field(default_factory=dict)
    server_config: Mapping[str, Mapping[str, str]] = field(default_factory=dict)
    fresh_server_ids: bool = True


def parse_gtids(text: str) -> Gtids:
    """What ``@@gtid_binlog_state`` says."""
    found: Gtids = {}
    for one in filter(None, text.replace("\n", "").split(",")):
        domain, server, sequence = one.strip().split("-")
        found[int(domain), int(server)] = int(sequence)
    return found


class MariaDBServers(BaseStore[MariaDBOptions]):
    """Starting the servers, reaching them, and waiting for their links; the verbs are `MariaDBStore`'s."""

    kind: ClassVar[str] = "mariadb"
    packages: ClassVar[Sequence[Package]] = (
        Package("mariadb-server-core", "/usr/sbin/mariadbd"),
        Package("mariadb-client-core", "mariadb-install-db"),
    )
    options_type: ClassVar[type[Any]] = MariaDBOptions

    # -- start -------------------------------------------------------------------------------------

    def start(self, lags_ms: Sequence[int]) -> None:
        """Starts the primary and one replica a lag."""
        names = ["a", *(f"b{index}" for index in range(1, len(lags_ms) + 1))]
        self.set_base_lags(dict(zip(names, [0, *lags_ms], strict=True)))
        self.state.details.update(users={}, server_ids={}, next_id=1)
        template = _template()
        for name, port in zip(names, self.context.supervisor.ports(len(names)), strict=True):
            primary = name == "a"
            url = f"mysql://root@127.0.0.1:{port}/{DATABASE}"
            self.state.servers[name] = Server(
                name, "a" if primary else "b", "primary" if primary else "replica", "127.0.0.1", port, url
            )
            self.state.servers[name].source = None if primary else "a"
            self._fresh_id(name)
            self._fill(name, template)
            self._spawn(name)
        for name in names:
            self._wait_answers(name)
        for name in names[1:]:
            self._attach(name, "a")
        self.wait_links()

    def _fresh_id(self, name: str) -> int:
        """Gives a server an id that nobody had before."""
        details = self.state.details
        chosen = int(details["next_id"])
        details["next_id"] = chosen + 1
        details["server_ids"][name] = chosen
        return chosen

    def server_id(self, name: str) -> int:
        """The server's id, which is part of the GTIDs that it makes."""
        return int(self.state.details["server_ids"][name])

    def _folder(self, name: str) -> Path:
        return self.context.folder / name

    def _fill(self, name: str, template: Path) -> None:
        """Gives a server an empty data folder."""
        folder = self._folder(name)
        shutil.rmtree(folder, ignore_errors=True)
        shutil.copytree(template, folder)

    def _spawn(self, name: str) -> None:
        """Starts a server's process with what is in its folder."""
        server, folder = self.server(name), self._folder(name)
        settings = {
            "datadir": str(folder),
            "port": str(server.port),
            "bind-address": "127.0.0.1",
            "socket": str(folder / "sock"),
            "pid-file": str(folder / "pid"),
            "server-id": str(self.server_id(name)),
            "log-bin": str(folder / "binlog"),
            "relay-log": str(folder / "relaylog"),
            "gtid-strict-mode": "ON",
            "log-bin-trust-function-creators": "ON",
            "log-slave-updates": "ON",
            "sync-binlog": "1",
            "innodb-flush-log-at-trx-commit": "1",
            "read-only": "ON" if server.role == "replica" else "OFF",
            "init-file": str(self._init_file(name)),
            **_SMALL,
            **self.options.config,
            **self.options.server_config.get(name, {}),
        }
        argv = [shutil.which("mariadbd", path=_PATH) or "mariadbd", "--no-defaults"]
        if os.geteuid() == 0:
            argv.append("--user=root")
        argv += [f"--{setting}={value}" for setting, value in settings.items()]
        server.pid = self.context.supervisor.spawn(self.process(name), argv)

    def _init_file(self, name: str) -> Path:
        """What a server runs when it starts. A file of its own: it may be read while the next server's is written."""
        path = self.context.folder / f"init-{name}.sql"
        path.write_text("\n".join(self._init_statements()) + "\n")
        return path

    def _init_statements(self) -> list[str]:
        """Users and the database, which are no part of replication."""
        lines = [
            "SET sql_log_bin=0;",
            f"CREATE DATABASE IF NOT EXISTS {DATABASE} DEFAULT CHARACTER SET utf8mb4;",
            *_user(REPLICATION_USER, REPLICATION_PASSWORD, ["REPLICATION SLAVE ON *.*"]),
            *_user("root", "", ["ALL PRIVILEGES ON *.*"]),
        ]
        users: dict[str, list[Any]] = self.state.details["users"]
        for user, (password, grants) in users.items():
            lines += _user(user, password, grants)
        return lines

    def _wait_answers(self, name: str) -> None:
        def answers() -> bool:
            try:
                self.client(name, connect_timeout=1).close()
            except pymysql.MySQLError:
                return False
            return True

        self.context.supervisor.wait_ready(self.process(name), answers, 60)

    def _attach(self, name: str, source: str) -> None:
        """Makes a server a replica of ``source``, through their link, from where it is."""
        server, port = self.server(name), self.link(name, source).port
        server.role, server.source = "replica", source
        self.run(
            name,
            "STOP ALL SLAVES",
            "SET GLOBAL read_only=1",
            f"CHANGE MASTER TO MASTER_HOST='127.0.0.1', MASTER_PORT={port}, MASTER_USER='{REPLICATION_USER}', "
            f"MASTER_PASSWORD='{REPLICATION_PASSWORD}', MASTER_USE_GTID=slave_pos, MASTER_CONNECT_RETRY=1, "
            "MASTER_HEARTBEAT_PERIOD=1",
            "START SLAVE",
        )

    # -- clients and what they see -----------------------------------------------------------------

    def client(self, name: str, **arguments: Any) -> pymysql.Connection[Any]:
        """A new PyMySQL connection of root's, straight to a server; the arguments are PyMySQL's."""
        server = self.server(name)
        settled = {
            "host": server.host,
            "port": server.port,
            "user": "root",
            "database": DATABASE,
            "autocommit": True,
            "charset": "utf8mb4",
            "read_timeout": 60,
            "ssl_disabled": True,
        }
        return pymysql.connect(**{**settled, **arguments})

    def run(self, name: str, *statements: str) -> list[tuple[Any, ...]]:
        """Runs statements at a server, as root; the rows of the last one."""
        with self.client(name) as client, client.cursor() as cursor:
            for statement in statements:
                cursor.execute(statement)
            return list(cursor.fetchall())

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

    def gtids(self, name: str) -> Gtids:
        """What the server has in its binary log: ``@@gtid_binlog_state``."""
        return parse_gtids(str(self.run(name, "SELECT @@gtid_binlog_state")[0][0] or ""))

    def replication(self, name: str) -> dict[str, Any]:
        """``SHOW SLAVE STATUS`` of a server; empty where it is no replica."""
        with self.client(name, cursorclass=pymysql.cursors.DictCursor) as client, client.cursor() as cursor:
            cursor.execute("SHOW SLAVE STATUS")
            row = cursor.fetchone()
            return dict(row) if row else {}

    def detail(self, server: Server) -> str:
        """Its place in the log, and whether its link is up."""
        try:
            place = str(self.run(server.name, "SELECT @@gtid_binlog_pos")[0][0] or "nothing written")
            status = self.replication(server.name) if server.role == "replica" else {}
        except pymysql.MySQLError as error:
            return f"{type(error).__name__}: {error}"
        link = f", link {status['Slave_IO_Running']}, applier {status['Slave_SQL_Running']}" if status else ""
        return f"{place}, server id {self.server_id(server.name)}{link}"

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

    def root_of(self, name: str) -> str:
        """The server at the head of the chain that ``name`` replicates from."""
        seen = {name}
        while (source := self.server(name).source) is not None:
            if source in seen:
                raise LabError(f"mariadb {name} replicates from itself, over {source}")
            seen.add(source)
            name = source
        return name

    def wait_caught_up(self, name: str, timeout: float = 60.0) -> None:
        """Waits until ``name`` is connected, and has applied all that its primary has written by now.

        Raises:
            LabError: after ``timeout`` seconds, or with the server's words where replication has broken.
        """
        wanted: Gtids | None = None

        def arrived() -> bool:
            nonlocal wanted
            with suppress(pymysql.MySQLError):
                if wanted is None:
                    wanted = self.gtids(self.root_of(name))
                status = self.replication(name)
                for thread in ("IO", "SQL"):  # an applier that has stopped with an error stays so
                    number = int(status.get(f"Last_{thread}_Errno", 0))
                    if (number in _FATAL or (number and thread == "SQL")) and status[f"Slave_{thread}_Running"] == "No":
                        raise LabError(f"mariadb {name} cannot replicate: {status[f'Last_{thread}_Error']}")
                if status.get("Slave_IO_Running") != "Yes":
                    if "Waiting to reconnect" in str(status.get("Slave_IO_State")):  # for up to a second
                        self.run(name, "STOP SLAVE IO_THREAD", "START SLAVE IO_THREAD")
                    return False
                return status["Slave_SQL_Running"] == "Yes" and self._has(name, wanted)
            return False

        wait_until(f"mariadb {name} to receive what {self.root_of(name)} sends", arrived, timeout, 0.01)

    def _has(self, name: str, wanted: Gtids) -> bool:
        """Whether a replica has applied all of this: its applier's position of each domain says so."""
        place = parse_gtids(str(self.run(name, "SELECT @@gtid_slave_pos")[0][0] or ""))
        reached = {domain: sequence for (domain, _), sequence in place.items()}
        return all(reached.get(domain, 0) >= sequence for (domain, _), sequence in wanted.items())


_PATH = os.environ.get("PATH", "") + ":/usr/sbin:/usr/local/sbin"
_FATAL = {1236, 1593, 1950, 1062, 1032, 1677, 1944, 1945}
"""Replication does not go on by itself after these."""


def _user(name: str, password: str, grants: Sequence[str]) -> list[str]:
    """Statements that make a user; each on a line of its own, as an init file wants them."""
    who = f"'{name}'@'%'"
    return [
        f"CREATE OR REPLACE USER {who} IDENTIFIED BY '{password}';",
        *(f"GRANT {grant} TO {who} WITH GRANT OPTION;" for grant in grants),
    ]


def _template() -> Path:
    """An empty data folder, made once and kept in the cache; about a second."""
    installer = shutil.which("mariadb-install-db")
    server = shutil.which("mariadbd", path=_PATH)
    if installer is None or server is None:
        raise LabError("mariadbd and mariadb-install-db are not installed; run: antipode-lab install mariadb")
    version = subprocess.run([server, "--version"], capture_output=True, text=True, check=True).stdout.split()[2]
    target = cache_folder() / f"mariadb-{version.partition('-')[0]}"
    target.parent.mkdir(parents=True, exist_ok=True)
    with locked(target.with_name(target.name + ".lock")):
        if target.is_dir():
            return target
        with tempfile.TemporaryDirectory(prefix="build-", dir=target.parent) as build:
            made = Path(build) / "data"
            done = subprocess.run(
                [
                    installer,
                    "--no-defaults",
                    *(["--user=root"] if os.geteuid() == 0 else []),
                    f"--datadir={made}",
                    "--auth-root-authentication-method=normal",
                    "--skip-test-db",
                    f"--innodb-log-file-size={_SMALL['innodb-log-file-size']}",
                ],
                stdin=subprocess.DEVNULL,
                capture_output=True,
                text=True,
                check=False,
            )
            if done.returncode:
                raise LabError(f"mariadb-install-db failed:\n{(done.stdout + done.stderr)[-2000:]}")
            os.replace(made, target)
    return target
