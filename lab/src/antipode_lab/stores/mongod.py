"""A replica set of real MongoDB servers, where a ``mongod`` is at hand: ``$MONGOD``, or on the PATH.

The primary is in region A ("a"), the secondaries in region B ("b1", "b2", …, two at least: a majority has to be left
when one is parted). Members reach one another through a router and a link for each pair.
"""

from __future__ import annotations

import json
import os
import shutil
import signal
import socket
import sys
import time
from collections.abc import Callable, Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass, field
from itertools import permutations
from pathlib import Path
from typing import Any, ClassVar, Final

import pymongo
from bson.timestamp import Timestamp
from pymongo.errors import PyMongoError

from antipode_lab.errors import LabError
from antipode_lab.model import Server
from antipode_lab.processes import wait_until
from antipode_lab.store import BaseStore, Package, verb
from antipode_lab.stores import _router

SET: Final = "antipode"
LOST_DATABASE: Final = "antipode_lab"
"""Its collection `lost` has what ``promote(lose=N)`` writes at the old primary, and what is rolled back."""
_PROGRAM: Final = os.environ.get("MONGOD") or "mongod"
_LEAST: Final = 2


@dataclass(frozen=True, slots=True)
class MongodOptions:
    """The replica set's options.

    Attributes:
        parameters: ``--setParameter`` of every server.
        election_ms: after so long without the primary the others elect another.
    """

    parameters: Mapping[str, str] = field(default_factory=dict)
    election_ms: int = 2000


class MongodStore(BaseStore[MongodOptions]):
    """The lab's replica set."""

    kind: ClassVar[str] = "mongod"
    packages: ClassVar[Sequence[Package]] = (Package("mongodb-org-server", _PROGRAM),)
    options_type: ClassVar[type[Any]] = MongodOptions

    # -- start -------------------------------------------------------------------------------------

    def start(self, lags_ms: Sequence[int]) -> None:
        """Starts the primary and one secondary a lag, and returns when the set has its primary."""
        if len(lags_ms) < _LEAST:
            raise LabError(f"mongod needs {_LEAST} replicas or more: a majority has to be left when one is parted")
        names = ["a", *(f"b{index}" for index in range(1, len(lags_ms) + 1))]
        self.set_base_lags(dict(zip(names, [0, *lags_ms], strict=True)))
        ports = self.context.supervisor.ports(2 * len(names))
        self.state.details["router"] = dict(zip(names, ports[len(names) :], strict=True))
        for name, port in zip(names, ports, strict=False):
            self.state.servers[name] = Server(
                name,
                "a" if name == "a" else "b",
                "primary" if name == "a" else "replica",
                "127.0.0.1",
                port,
                f"mongodb://127.0.0.1:{port}/?directConnection=true",
                source=None if name == "a" else "a",
            )
        for target, source in permutations(names, 2):
            self.link(target, source)
        for name in names:
            self._spawn(name)
        self._write_table()
        self._start_router()
        for name in names:
            self._wait_answers(name)
        self._initiate(names)
        self.wait_links()

    def _spawn(self, name: str) -> None:
        server, data = self.server(name), self.context.folder / name
        data.mkdir(exist_ok=True)
        argv = [shutil.which(_PROGRAM) or _PROGRAM, "--dbpath", str(data), "--port", str(server.port)]
        argv += ["--bind_ip", "127.0.0.1", "--replSet", SET, "--oplogSize", "64", "--wiredTigerCacheSizeGB", "0.25"]
        for word, value in self.options.parameters.items():
            argv += ["--setParameter", f"{word}={value}"]
        server.pid = self.context.supervisor.spawn(self.process(name), argv)

    @property
    def _table(self) -> Path:
        return self.context.folder / "router.json"

    def _write_table(self) -> None:
        servers = self.state.servers
        table = {
            "listen": {str(port): name for name, port in self.state.details["router"].items()},
            "direct": {name: server.port for name, server in servers.items()},
            "pids": {name: server.pid for name, server in servers.items()},
            "links": {key: link.port for key, link in self.state.links.items()},
        }
        fresh = self._table.with_suffix(".new")
        fresh.write_text(json.dumps(table))
        fresh.rename(self._table)

    def _start_router(self) -> None:
        argv = [sys.executable, "-I", "-S", _router.__file__, str(self._table)]
        self.context.supervisor.spawn(f"{self.kind}:router", argv)

        def listens() -> bool:
            for port in self.state.details["router"].values():
                with socket.socket() as connection:
                    if connection.connect_ex(("127.0.0.1", port)):
                        return False
            return True

        self.context.supervisor.wait_ready(f"{self.kind}:router", listens, 15)

    def _wait_answers(self, name: str) -> None:
        def answers() -> bool:
            with suppress(PyMongoError), self.client(name, timeout=2.0) as client:
                client.admin.command("ping")
                return True
            time.sleep(0.02)
            return False

        self.context.supervisor.wait_ready(self.process(name), answers, 60)

    def _initiate(self, names: Sequence[str]) -> None:
        members = [
            {
                "_id": index,
                "host": f"127.0.0.1:{self.state.details['router'][name]}",
                "priority": 2 if name == "a" else 1,
            }
            for index, name in enumerate(names)
        ]
        settings = {"electionTimeoutMillis": self.options.election_ms, "heartbeatIntervalMillis": 500}
        # A secondary that is nearer to another one would have its data from there, and not over its own link.
        settings["chainingAllowed"] = False
        with self.client("a") as client:
            client.admin.command("replSetInitiate", {"_id": SET, "members": members, "settings": settings})
        self._wait_primary("a")

    def _wait_primary(self, name: str, timeout: float = 60.0) -> None:
        def leads() -> bool:
            with suppress(PyMongoError), self.client(name, timeout=5.0) as client:
                return bool(client.admin.command("hello").get("isWritablePrimary"))
            return False

        wait_until(f"mongod {name} to be the primary", leads, timeout, 0.05)

    # -- clients and what they see -----------------------------------------------------------------

    def mongo_url(self, name: str) -> str:
        """One server's address, straight, not through a link."""
        return self.server(name).url

    @property
    def set_url(self) -> str:
        """The whole set's address."""
        hosts = ",".join(f"127.0.0.1:{port}" for port in self.state.details["router"].values())
        return f"mongodb://{hosts}/?replicaSet={SET}"

    def client(self, name: str, *, timeout: float = 30.0, **arguments: Any) -> pymongo.MongoClient[dict[str, Any]]:
        """A new client of one server."""
        words = ("serverSelectionTimeoutMS", "connectTimeoutMS", "socketTimeoutMS")
        return pymongo.MongoClient(self.mongo_url(name), **{**dict.fromkeys(words, round(timeout * 1000)), **arguments})

    @property
    def primary(self) -> str:
        """The server that was last made the primary."""
        return str(next(server.name for server in self.state.servers.values() if server.role == "primary"))

    @property
    def replicas(self) -> list[str]:
        """All others."""
        return [server.name for server in self.state.servers.values() if server.role != "primary"]

    def _applied(self, name: str) -> Timestamp:
        with self.client(name, timeout=5.0) as client:
            found: Timestamp = client.admin.command("replSetGetStatus")["optimes"]["appliedOpTime"]["ts"]
            return found

    def wait_caught_up(self, name: str, timeout: float = 60.0) -> None:
        """Waits until a note, and so everything written before it, has been applied at ``name``."""
        with self.client(self.primary) as client:
            noted: Timestamp = client.admin.command("appendOplogNote", 1, data={"lab": "probe"})["operationTime"]

        def arrived() -> bool:
            with suppress(PyMongoError):
                return self._applied(name) >= noted
            return False

        wait_until(f"mongod {name} to receive what {self.primary} sends", arrived, timeout, 0.01)

    def wait_links(self, timeout: float = 60.0) -> None:
        """Waits until data flow to every server that runs and is not parted from the primary."""
        for name in self.replicas:
            if self.running(name) and self.link(name, self.primary).state == "up":
                self.wait_caught_up(name, timeout)

    # -- verbs -------------------------------------------------------------------------------------

    @verb
    def promote(self, server: str, lose: int | Callable[[Any], object] | None = None, *, wait: bool = True) -> None:
        """Has the set elect ``server``.

        lose: writes of the old primary that are rolled back: it is parted first. A number inserts so many documents
        with w=1; a function writes itself, with a client of the old primary. 0: first waits until ``server`` has all.
        """
        old = self.primary
        if server == old:
            raise LabError(f"mongod {server} is the primary already")
        if lose is None or (lose == 0 and not callable(lose)):
            if lose == 0:
                self.wait_caught_up(server)
        else:
            self.state.details["cuts"][old] = "cut"
            self._apply_all()
            with self.client(old) as client:
                if callable(lose):
                    lose(client)
                else:
                    lost = client[LOST_DATABASE].get_collection("lost", write_concern=pymongo.WriteConcern(w=1))
                    lost.insert_many([{"number": index} for index in range(lose)])

        def elected() -> bool:
            with suppress(PyMongoError), self.client(server, timeout=5.0) as client:
                client.admin.command("replSetStepUp")
                return True
            return False

        wait_until(f"mongod {server} to be elected", elected, 60, 0.2)
        self._wait_primary(server)
        for each in self.state.servers.values():
            each.role, each.source = ("primary", None) if each.name == server else ("replica", server)
        if wait:
            self.wait_links()

    @verb
    def restart(self, server: str, source: str | None = None, *, crash: bool = False, wait: bool = True) -> None:
        """Ends a server and starts it again on the same port, with what its disk holds (``source``: ``disk``)."""
        self.server(server)
        if source not in (None, "disk"):
            raise LabError(f"mongod restarts from 'disk', not {source!r}")
        self.context.supervisor.stop(self.process(server), signal.SIGKILL if crash else signal.SIGTERM)
        self._spawn(server)
        self._write_table()
        self._wait_answers(server)
        if wait:
            self.wait_links()


STORE = MongodStore

__all__ = ["LOST_DATABASE", "STORE", "MongodOptions", "MongodStore"]
