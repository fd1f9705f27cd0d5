"""MariaDB: a primary in region A ("a"), GTID replicas in region B ("b1", "b2", …), each behind a link of its own."""

from __future__ import annotations

import os
import shutil
import subprocess
from collections.abc import Sequence
from pathlib import Path
from typing import Any, ClassVar

import pymysql

from antipode_lab.cache import cache_folder, made_once
from antipode_lab.errors import LabError
from antipode_lab.store import Package
from antipode_lab.stores._sql_servers import DATABASE, SqlOptions
from antipode_lab.stores._sql_store import LOST_TABLE, SqlStore

Gtids = dict[tuple[int, int], int]
"""(domain, server id) -> greatest sequence."""
MariaDBOptions = SqlOptions


class MariaDBStore(SqlStore):
    """The lab's MariaDB servers."""

    kind: ClassVar[str] = "mariadb"
    packages: ClassVar[Sequence[Package]] = (
        Package("mariadb-server-core", "/usr/sbin/mariadbd"),
        Package("mariadb-client-core", "mariadb-install-db"),
    )
    attach_statement = (
        "CHANGE MASTER TO MASTER_HOST='127.0.0.1', MASTER_PORT={port}, MASTER_USER='{user}', "
        "MASTER_PASSWORD='{password}', MASTER_USE_GTID=slave_pos, MASTER_CONNECT_RETRY=1, MASTER_HEARTBEAT_PERIOD=1"
    )
    start_replica = "START SLAVE"
    stop_replica = "STOP ALL SLAVES"
    stop_receiver = "STOP SLAVE IO_THREAD"
    start_receiver = "START SLAVE IO_THREAD"
    forget_source = "RESET SLAVE ALL"

    # -- start -------------------------------------------------------------------------------------

    def _command(self) -> list[str]:
        as_root = ["--user=root"] if os.geteuid() == 0 else []
        return [shutil.which("mariadbd", path=_PATH) or "mariadbd", "--no-defaults", *as_root]

    def _settings(self) -> dict[str, str]:
        return {
            "gtid-strict-mode": "ON",
            "log-slave-updates": "ON",
            "innodb-log-file-size": _LOG_SIZE,
            "aria-pagecache-buffer-size": "1M",
        }

    def _template(self) -> Path:
        return _template()

    def _user(self, name: str, password: str, grants: Sequence[str]) -> list[str]:
        who = f"'{name}'@'%'"
        return [
            f"CREATE OR REPLACE USER {who} IDENTIFIED BY '{password}';",
            *(f"GRANT {grant} TO {who} WITH GRANT OPTION;" for grant in grants),
        ]

    # -- where servers are -------------------------------------------------------------------------

    def gtids(self, name: str) -> Gtids:
        """What the server has in its binary log: ``@@gtid_binlog_state``."""
        return parse_gtids(self._place(name))

    def _place(self, name: str) -> str:
        return str(self.run(name, "SELECT @@gtid_binlog_state")[0][0] or "")

    def _has(self, name: str, place: str) -> bool:
        """Its applier's position of each domain says so."""
        applied = parse_gtids(str(self.run(name, "SELECT @@gtid_slave_pos")[0][0] or ""))
        reached = {domain: sequence for (domain, _), sequence in applied.items()}
        return all(reached.get(domain, 0) >= sequence for (domain, _), sequence in parse_gtids(place).items())

    def replication(self, name: str) -> dict[str, Any]:
        """``SHOW SLAVE STATUS`` of a server; empty where it is no replica."""
        with self.client(name, cursorclass=pymysql.cursors.DictCursor) as client, client.cursor() as cursor:
            cursor.execute("SHOW SLAVE STATUS")
            row = cursor.fetchone()
            return dict(row) if row else {}

    def _diverged(self, server: str, source: str) -> bool:
        there = self.gtids(source)
        return any(there.get(key, 0) < sequence for key, sequence in self.gtids(server).items())

    # -- for the verbs -----------------------------------------------------------------------------

    def _demoted(self, name: str, *, fresh_id: bool) -> None:
        self.run(name, self.stop_replica, "SET GLOBAL gtid_slave_pos=@@GLOBAL.gtid_binlog_pos")
        if fresh_id:
            self.run(name, f"SET GLOBAL server_id={self._fresh_id(name)}")

    def _emptied(self, name: str, *, fresh_id: bool) -> None:
        """A server ignores events with its own id, so one that keeps its id has another one meanwhile."""
        own = self.server_id(name)
        self._fill(name)
        self._fresh_id(name)
        self.state.details["kept_ids"] = {**self.state.details.get("kept_ids", {}), name: own}

    def _complete(self, name: str, *, fresh_id: bool) -> None:
        own = self.state.details["kept_ids"].pop(name)
        if not fresh_id:
            self.state.details["server_ids"][name] = own
            self.run(name, self.stop_replica, f"SET GLOBAL server_id={own}", self.start_replica)

    def _before_start(self, name: str) -> None:
        """Its notes of the link may be torn; where it is, is in a table."""
        for pattern in ("master.info", "relay-log.info", "multi-master.info", "relaylog*"):
            for path in self._folder(name).glob(pattern):
                path.unlink()


def parse_gtids(text: str) -> Gtids:
    """What ``@@gtid_binlog_state`` says."""
    found: Gtids = {}
    for one in filter(None, text.replace("\n", "").split(",")):
        domain, server, sequence = one.strip().split("-")
        found[int(domain), int(server)] = int(sequence)
    return found


_PATH = os.environ.get("PATH", "") + ":/usr/sbin:/usr/local/sbin"
_LOG_SIZE = "8M"


def _template() -> Path:
    """An empty data folder, made once and kept in the cache; about a second."""
    installer = shutil.which("mariadb-install-db")
    server = shutil.which("mariadbd", path=_PATH)
    if installer is None or server is None:
        raise LabError("mariadbd and mariadb-install-db are not installed; run: antipode-lab install mariadb")
    version = subprocess.run([server, "--version"], capture_output=True, text=True, check=True).stdout.split()[2]
    target = cache_folder() / f"mariadb-{version.partition('-')[0]}"
    return made_once(target, lambda build: _made(build, installer))


def _made(build: Path, installer: str) -> Path:
    made = build / "data"
    done = subprocess.run(
        [
            installer,
            "--no-defaults",
            *(["--user=root"] if os.geteuid() == 0 else []),
            f"--datadir={made}",
            "--auth-root-authentication-method=normal",
            "--skip-test-db",
            f"--innodb-log-file-size={_LOG_SIZE}",
        ],
        stdin=subprocess.DEVNULL,
        capture_output=True,
        text=True,
        check=False,
    )
    if done.returncode:
        raise LabError(f"mariadb-install-db failed:\n{(done.stdout + done.stderr)[-2000:]}")
    return made


STORE = MariaDBStore

__all__ = ["DATABASE", "LOST_TABLE", "STORE", "MariaDBOptions", "MariaDBStore"]
