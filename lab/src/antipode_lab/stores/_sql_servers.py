"""How the lab starts servers of MySQL's family, reaches them, attaches replicas, and waits for their links."""

from __future__ import annotations

import shutil
from abc import abstractmethod
from collections.abc import Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, ClassVar

import pymysql

from antipode_lab.errors import LabError
from antipode_lab.model import Server
from antipode_lab.processes import wait_until
from antipode_lab.stores._replicated import ReplicatedStore

DATABASE = "lab"
REPLICATION_USER = "lab_replication"
REPLICATION_PASSWORD = "lab"


@dataclass(frozen=True, slots=True)
class SqlOptions:
    """Options of MariaDB and MySQL.

    Attributes:
        config: settings for every server, as on its command line: ``{"sync-binlog": "0"}``.
        server_config: the same for single servers, by name: ``{"b1": {"sync-binlog": "0"}}``.
        fresh_server_ids: a server that rejoins or is rebuilt gets a server id (MySQL: a server uuid, if it is rebuilt)
        that nobody had before; false: it keeps its own, as careless operators do.
    """

    config: Mapping[str, str] = field(default_factory=dict)
    server_config: Mapping[str, Mapping[str, str]] = field(default_factory=dict)
    fresh_server_ids: bool = True


class SqlServers(ReplicatedStore[SqlOptions]):
    """Starting the servers, reaching them, and waiting for their links; the verbs are `SqlStore`'s.

    What differs between MariaDB and MySQL is said by their classes, in the order in which it stands here.
    """

    options_type: ClassVar[type[Any]] = SqlOptions
    attach_statement: ClassVar[str]
    """What makes a server a replica; with ``{port}``, ``{user}`` and ``{password}`` to fill in."""
    start_replica: ClassVar[str]
    stop_replica: ClassVar[str]
    stop_receiver: ClassVar[str]
    start_receiver: ClassVar[str]
    forget_source: ClassVar[str]

    @abstractmethod
    def _command(self) -> list[str]:
        """What starts the server."""

    @abstractmethod
    def _settings(self) -> dict[str, str]:
        """Settings that only this kind of server has."""

    @abstractmethod
    def _template(self) -> Path:
        """An empty data folder, made once and kept in the cache."""

    @abstractmethod
    def _user(self, name: str, password: str, grants: Sequence[str]) -> list[str]:
        """Statements that make a user; each on a line of its own, as an init file wants them."""

    @abstractmethod
    def _place(self, name: str) -> str:
        """All that a server has in its log now, as text."""

    @abstractmethod
    def _has(self, name: str, place: str) -> bool:
        """Whether a replica has applied all of this."""

    @abstractmethod
    def replication(self, name: str) -> dict[str, Any]:
        """How a replica's receiver and applier are, in the words of ``SHOW SLAVE STATUS``; empty where it is none."""

    # -- start -------------------------------------------------------------------------------------

    def start(self, lags_ms: Sequence[int]) -> None:
        """Starts the primary and one replica a lag."""
        names = ["a", *(f"b{index}" for index in range(1, len(lags_ms) + 1))]
        self.set_base_lags(dict(zip(names, [0, *lags_ms], strict=True)))
        self.state.details.update(users={}, server_ids={}, next_id=1)
        for name, port in zip(names, self.context.supervisor.ports(len(names)), strict=True):
            primary = name == "a"
            url = f"mysql://root@127.0.0.1:{port}/{DATABASE}"
            self.state.servers[name] = Server(
                name, "a" if primary else "b", "primary" if primary else "replica", "127.0.0.1", port, url
            )
            self.state.servers[name].source = None if primary else "a"
            self._fresh_id(name)
            self._fill(name)
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

    def _fill(self, name: str) -> None:
        """Gives a server an empty data folder."""
        folder = self._folder(name)
        shutil.rmtree(folder, ignore_errors=True)
        shutil.copytree(self._template(), folder)

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
            "log-bin-trust-function-creators": "ON",
            "sync-binlog": "1",
            "innodb-flush-log-at-trx-commit": "1",
            "read-only": "ON" if server.role == "replica" else "OFF",
            "init-file": str(self._init_file(name)),
            "max-connections": "256",
            "skip-name-resolve": "ON",
            "innodb-buffer-pool-size": "24M",
            "key-buffer-size": "1M",
            "performance-schema": "OFF",
            **self._settings(),
            **self.options.config,
            **self.options.server_config.get(name, {}),
        }
        argv = [*self._command(), *(f"--{setting}={value}" for setting, value in settings.items())]
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
            *self._user(REPLICATION_USER, REPLICATION_PASSWORD, ["REPLICATION SLAVE ON *.*"]),
            *self._user("root", "", ["ALL PRIVILEGES ON *.*"]),
        ]
        users: dict[str, list[Any]] = self.state.details["users"]
        for user, (password, grants) in users.items():
            lines += self._user(user, password, grants)
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
        settled = self.attach_statement.format(port=port, user=REPLICATION_USER, password=REPLICATION_PASSWORD)
        self.run(name, self.stop_replica, "SET GLOBAL read_only=1", settled, self.start_replica)

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

    def detail(self, server: Server) -> str:
        """Its place in the log, and whether its link is up."""
        try:
            place = self._place(server.name) or "nothing written"
            status = self.replication(server.name) if server.role == "replica" else {}
        except pymysql.MySQLError as error:
            return f"{type(error).__name__}: {error}"
        link = f", link {status['Slave_IO_Running']}, applier {status['Slave_SQL_Running']}" if status else ""
        return f"{place}, server id {self.server_id(server.name)}{link}"

    def wait_caught_up(self, name: str, timeout: float = 60.0) -> None:
        """Waits until ``name`` is connected, and has applied all that its primary has written by now.

        Raises:
            LabError: after ``timeout`` seconds, or with the server's words where replication has broken.
        """
        wanted: str | None = None

        def arrived() -> bool:
            nonlocal wanted
            with suppress(pymysql.MySQLError):
                if wanted is None:
                    wanted = self._place(self.root_of(name))
                status = self.replication(name)
                for thread in ("IO", "SQL"):  # an applier that has stopped with an error stays so
                    number = int(status.get(f"Last_{thread}_Errno", 0))
                    if (number in _FATAL or (number and thread == "SQL")) and status[f"Slave_{thread}_Running"] == "No":
                        raise LabError(f"{self.kind} {name} cannot replicate: {status[f'Last_{thread}_Error']}")
                if status.get("Slave_IO_Running") != "Yes":
                    if "Waiting to reconnect" in str(status.get("Slave_IO_State")):  # for up to a second
                        self.run(name, self.stop_receiver, self.start_receiver)
                    return False
                return status["Slave_SQL_Running"] == "Yes" and self._has(name, wanted)
            return False

        wait_until(f"{self.kind} {name} to receive what {self.root_of(name)} sends", arrived, timeout, 0.01)


_FATAL = {1236, 1593, 1950, 1062, 1032, 1677, 1944, 1945, 13114, 13117}
"""Replication does not go on by itself after these."""
