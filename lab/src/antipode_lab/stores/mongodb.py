"""MongoDB: a primary in region A ("a"), secondaries in region B ("b1", "b2", …), each behind a link of its own.

Each server is a FerretDB over a PostgreSQL 18 with DocumentDB: clients speak MongoDB's protocol to the one, and the
other's streaming replication is what the links carry. Where a mongod is at hand (``$MONGOD``, or on the PATH)
`mongod.py` starts a real replica set instead.
"""

from __future__ import annotations

import subprocess
import time
from collections.abc import Callable, Sequence
from contextlib import suppress
from pathlib import Path
from typing import Any, ClassVar, Final

import psycopg
import pymongo
from pymongo.errors import PyMongoError

from antipode_lab.built import Tool
from antipode_lab.store import Package, verb
from antipode_lab.stores import _documentdb
from antipode_lab.stores._postgresql_servers import SUPERUSER, PostgresqlOptions, unprivileged
from antipode_lab.stores.postgresql import PostgresqlStore

LOST_DATABASE: Final = "antipode_lab"
"""Its collection `lost` has the documents that ``promote(lose=N)`` writes at the old primary and that never arrive."""
MongoOptions = PostgresqlOptions


class MongoStore(PostgresqlStore):
    """The lab's servers of MongoDB's protocol."""

    kind: ClassVar[str] = "mongodb"
    packages: ClassVar[Sequence[Package]] = ()
    tools: ClassVar[Sequence[Tool]] = (_documentdb.POSTGRESQL, _documentdb.FERRETDB)
    template = "postgresql-18-documentdb"
    locale = "C.UTF-8"
    more_settings: ClassVar[dict[str, str]] = {
        "shared_preload_libraries": "pg_cron,pg_documentdb_core,pg_documentdb",
        "cron.database_name": "postgres",
        "max_connections": "200",
        "hot_standby_feedback": "on",  # FerretDB's open cursors would hold up what a standby has to apply
    }

    @staticmethod
    def bin() -> Path:
        return _documentdb.POSTGRESQL.path / _documentdb.BIN

    # -- start -------------------------------------------------------------------------------------

    def start(self, lags_ms: Sequence[int]) -> None:
        """Starts the primary and one secondary a lag."""
        self.state.details["postgresql_ports"] = {}
        super().start(lags_ms)

    def client_url(self, port: int) -> str:
        return f"mongodb://127.0.0.1:{port}/?directConnection=true"

    def replication_port(self, name: str) -> int:
        """PostgreSQL's own port."""
        ports: dict[str, int] = self.state.details["postgresql_ports"]
        if name not in ports:
            [ports[name]] = self.context.supervisor.ports(1)
        return ports[name]

    def _fill_template(self, data: Path) -> None:
        """DocumentDB's extension, by a server in single-user mode."""
        argv = [str(self.bin() / "postgres"), "--single", "-D", str(data), "-j"]
        for name, value in self.more_settings.items():
            argv += ["-c", f"{name}={value}"]
        done = subprocess.run(
            [*argv, "postgres"],
            input="CREATE EXTENSION documentdb CASCADE;\n\n",
            user=unprivileged(),
            cwd="/",
            capture_output=True,
            text=True,
            check=False,
            timeout=120,
        )
        if done.returncode or "ERROR" in done.stderr:
            raise RuntimeError(f"DocumentDB's extension cannot be made:\n{done.stderr[-2000:]}")

    def _make_database(self) -> None:
        """Collections come with their first documents."""

    def gateway(self, name: str) -> str:
        """The name of a server's FerretDB at the supervisor."""
        return f"{self.process(name)}-ferretdb"

    def _wait_answers(self, name: str) -> None:
        super()._wait_answers(name)
        folder = self.context.folder / f"ferretdb-{name}"
        folder.mkdir(exist_ok=True)
        supervisor = self.context.supervisor
        supervisor.spawn(
            self.gateway(name),
            [
                str(_documentdb.FERRETDB.path),
                f"-listen=127.0.0.1:{self.server(name).port}",
                f"-postgresql-url=postgres://{SUPERUSER}@127.0.0.1:{self.replication_port(name)}/postgres",
                f"-state={folder}",
            ],
        )

        def answers() -> bool:
            with suppress(PyMongoError), self.client(name, timeout=2.0) as client:
                client.admin.command("listDatabases")
                return True
            time.sleep(0.02)
            return False

        supervisor.wait_ready(self.gateway(name), answers, 60)

    # -- clients -----------------------------------------------------------------------------------

    def mongo_url(self, name: str) -> str:
        """The server's address for MongoDB's clients, straight, not through a link."""
        return self.client_url(self.server(name).port)

    def client(self, name: str, *, timeout: float = 30.0, **arguments: Any) -> pymongo.MongoClient[dict[str, Any]]:
        """A new client of one server."""
        given: dict[str, Any] = {
            "serverSelectionTimeoutMS": round(timeout * 1000),
            "connectTimeoutMS": round(timeout * 1000),
            "socketTimeoutMS": round(timeout * 1000),
            **arguments,
        }
        return pymongo.MongoClient(self.mongo_url(name), **given)

    def connect(self, name: str, *, database: str | None = None, **arguments: Any) -> psycopg.Connection[Any]:
        """A connection to a server's PostgreSQL, as the superuser."""
        return super().connect(name, **{**arguments, "user": SUPERUSER, "database": database or "postgres"})

    # -- verbs -------------------------------------------------------------------------------------

    @verb
    def promote(
        self,
        server: str,
        lose: int | Callable[[Any], object] | None = None,
        *,
        repoint: bool = True,
        wait: bool = True,
    ) -> None:
        """Makes a secondary the primary; as the lab's PostgreSQL does it.

        `lose`: a number inserts so many documents (collection ``lost`` of `LOST_DATABASE`); a function writes itself,
        with a client of the old primary.
        """
        old = self.primary

        def written(_: Any) -> None:
            with self.client(old) as client:
                if callable(lose):
                    lose(client)
                else:
                    client[LOST_DATABASE]["lost"].insert_many([{"number": index} for index in range(lose or 0)])

        losing = callable(lose) or bool(lose)
        super().promote(server, written if losing else (0 if lose == 0 else None), repoint=repoint, wait=wait)

    def _family(self, name: str) -> list[Any]:
        return [*super()._family(name), *self._gateway_process(name)]

    def _gateway_process(self, name: str) -> list[Any]:
        import psutil

        state = self.context.supervisor.state(self.gateway(name))
        if state.state == "stopped":
            return []
        try:
            return [psutil.Process(state.pid)]
        except psutil.NoSuchProcess:
            return []

    def _crash(self, name: str) -> None:
        super()._crash(name)
        self.context.supervisor.stop(self.gateway(name))

    def _stop(self, name: str) -> None:
        self.context.supervisor.stop(self.gateway(name))
        super()._stop(name)


STORE = MongoStore

__all__ = ["LOST_DATABASE", "STORE", "MongoOptions", "MongoStore"]
