"""MySQL 9: a primary in region A ("a"), GTID replicas in region B ("b1", "b2", …), each behind a link of its own."""

from __future__ import annotations

import re
import shutil
import subprocess
from collections.abc import Sequence
from functools import cache
from pathlib import Path
from typing import Any, ClassVar

import pymysql

from antipode_lab.built import Tool
from antipode_lab.cache import cache_folder, made_once
from antipode_lab.errors import LabError
from antipode_lab.stores._mysql_packages import UnpackedMySQL
from antipode_lab.stores._sql_servers import DATABASE, SqlOptions
from antipode_lab.stores._sql_store import LOST_TABLE, SqlStore

_PROGRAM = UnpackedMySQL()
MySQLOptions = SqlOptions


class MySQLStore(SqlStore):
    """The lab's MySQL servers."""

    kind: ClassVar[str] = "mysql"
    tools: ClassVar[Sequence[Tool]] = (_PROGRAM,)
    attach_statement = (
        "CHANGE REPLICATION SOURCE TO SOURCE_HOST='127.0.0.1', SOURCE_PORT={port}, SOURCE_USER='{user}', "
        "SOURCE_PASSWORD='{password}', SOURCE_AUTO_POSITION=1, SOURCE_CONNECT_RETRY=1, SOURCE_RETRY_COUNT=0, "
        "SOURCE_HEARTBEAT_PERIOD=1, GET_SOURCE_PUBLIC_KEY=1"
    )
    start_replica = "START REPLICA"
    stop_replica = "STOP REPLICA"
    stop_receiver = "STOP REPLICA IO_THREAD"
    start_receiver = "START REPLICA IO_THREAD"
    forget_source = "RESET REPLICA ALL"

    # -- start -------------------------------------------------------------------------------------

    def _command(self) -> list[str]:
        return _PROGRAM.command()

    def _settings(self) -> dict[str, str]:
        return {
            "gtid-mode": "ON",
            "enforce-gtid-consistency": "ON",
            "log-replica-updates": "ON",
            "skip-replica-start": "ON",
            "relay-log-recovery": "ON",
            "mysqlx": "OFF",
            "innodb-redo-log-capacity": _REDO_SIZE,
            "innodb-doublewrite": "OFF",  # nothing here takes the machine's power away
            "local-infile": "ON",
        }

    def _template(self) -> Path:
        return _template()

    def _user(self, name: str, password: str, grants: Sequence[str]) -> list[str]:
        who = f"'{name}'@'%'"
        return [
            f"CREATE USER IF NOT EXISTS {who};",
            f"ALTER USER {who} IDENTIFIED BY '{password}';",
            *(f"GRANT {grant} TO {who} WITH GRANT OPTION;" for grant in grants),
        ]

    # -- where servers are -------------------------------------------------------------------------

    def gtids(self, name: str) -> str:
        """What the server has: ``@@gtid_executed``."""
        return self._place(name)

    def server_uuid(self, name: str) -> str:
        """The server's uuid, which is part of the GTIDs that it makes."""
        return str(self.run(name, "SELECT @@server_uuid")[0][0])

    def _place(self, name: str) -> str:
        return str(self.run(name, "SELECT @@GLOBAL.gtid_executed")[0][0]).replace("\n", "")

    def _has(self, name: str, place: str) -> bool:
        return bool(self.run(name, f"SELECT GTID_SUBSET('{place}', @@GLOBAL.gtid_executed)")[0][0])

    def replication(self, name: str) -> dict[str, Any]:
        """``SHOW REPLICA STATUS`` of a server in MariaDB's words; empty where it is no replica."""
        with self.client(name, cursorclass=pymysql.cursors.DictCursor) as client, client.cursor() as cursor:
            cursor.execute("SHOW REPLICA STATUS")
            row = cursor.fetchone() or {}
        return {key.replace("Replica_", "Slave_").replace("Source_", "Master_"): row[key] for key in row}

    def _diverged(self, server: str, source: str) -> bool:
        return not self._has(source, self._place(server))

    # -- for the verbs -----------------------------------------------------------------------------

    def _demoted(self, name: str, *, fresh_id: bool) -> None:
        """It goes on under its uuid: whoever has all of its transactions needs no other name."""

    def _emptied(self, name: str, *, fresh_id: bool) -> None:
        """A server ignores events with its own number, so that is another one now; the uuid is in a file of its own."""
        identity = self._folder(name) / "auto.cnf"
        kept = None if fresh_id else identity.read_text()
        self._fill(name)
        if kept is not None:
            identity.write_text(kept)
        self._fresh_id(name)

    def _complete(self, name: str, *, fresh_id: bool) -> None:
        """Nothing to do."""


_REDO_SIZE = "8M"
_LONGEST_S = 120
"""How long the making of a data folder may take; other processes wait for it meanwhile."""


@cache
def _template() -> Path:
    """An empty data folder, made once and kept in the cache; some seconds."""
    if not _PROGRAM.ready():
        raise LabError("MySQL is not here; run: antipode-lab install mysql")
    target = cache_folder() / f"mysql-data-{re.sub('[^0-9.]', '', _PROGRAM.version().partition('-')[0])}"
    return made_once(target, _made)


def _made(build: Path) -> Path:
    """Initialises a data folder, and starts a server there once: that makes the keys that passwords are sent with."""
    data, ends = build / "data", build / "ends.sql"
    ends.write_text("SHUTDOWN;\n")
    settled = [f"--datadir={data}", "--mysqlx=OFF", "--performance-schema=OFF", "--innodb-doublewrite=OFF"]
    settled.append("--skip-log-bin")
    once = [f"--init-file={ends}", "--skip-networking", f"--socket={build / 's'}", f"--pid-file={build / 'pid'}"]
    for more in (
        ["--initialize-insecure", "--innodb-redo-log-capacity=64M"],
        [*once, f"--innodb-redo-log-capacity={_REDO_SIZE}"],
    ):
        try:
            done = subprocess.run(
                [*_PROGRAM.command(), *settled, *more],
                stdin=subprocess.DEVNULL,
                capture_output=True,
                text=True,
                check=False,
                timeout=_LONGEST_S,
            )
        except subprocess.TimeoutExpired as error:
            raise LabError(f"mysqld {more[0]} did not end within {_LONGEST_S} s") from error
        if done.returncode:
            raise LabError(f"mysqld {more[0]} failed:\n{(done.stdout + done.stderr)[-2000:]}")
    (data / "auto.cnf").unlink()  # each server gives itself a uuid
    shutil.rmtree(data / "#innodb_temp", ignore_errors=True)
    return data


STORE = MySQLStore

__all__ = ["DATABASE", "LOST_TABLE", "STORE", "MySQLOptions", "MySQLStore"]
