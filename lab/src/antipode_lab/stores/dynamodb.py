"""DynamoDB: DynamoDB Local in region A ("a") and in the others ("b1", "b2", …), every region takes writes."""

from __future__ import annotations

import functools
import json
import socket
import sys
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any, ClassVar, Final

from antipode_lab.built import Tool
from antipode_lab.errors import LabError
from antipode_lab.model import Link, Server
from antipode_lab.processes import wait_until
from antipode_lab.store import BaseStore, Package, verb
from antipode_lab.stores import _dynamodb_replicator as replicator
from antipode_lab.stores._dynamodb_local import LOCAL, command

ACCESS_KEY: Final = "antipode"
"""Of all clients, for DynamoDB Local keeps the data of each key apart; the secret is the same word."""
REGIONS: Final = ("eu-central-1", "us-east-1", "ap-northeast-1", "sa-east-1", "af-south-1")
TTL_ATTRIBUTE: Final = "_apx"


@dataclass(frozen=True, slots=True)
class DynamoDbOptions:
    """DynamoDB's options.

    Attributes:
        tables: made in every region, with the key "id" (a string), a stream, and time to live on.
        heap_mib: of each server.
    """

    tables: Sequence[str] = ("posts",)
    heap_mib: int = 192


class DynamoDbStore(BaseStore[DynamoDbOptions]):
    """The lab's DynamoDB: a server and a replicator a region."""

    kind: ClassVar[str] = "dynamodb"
    packages: ClassVar[Sequence[Package]] = (
        Package("openjdk-17-jdk-headless", "javac"),
        Package("maven", "mvn"),
    )
    tools: ClassVar[Sequence[Tool]] = (LOCAL,)
    options_type: ClassVar[type[Any]] = DynamoDbOptions

    # -- start -------------------------------------------------------------------------------------

    def start(self, lags_ms: Sequence[int]) -> None:
        """Starts a server for region A and one more a lag, their tables, and what replicates them."""
        names = ["a", *(f"b{index}" for index in range(1, len(lags_ms) + 1))]
        if len(names) > len(REGIONS):
            raise LabError(f"dynamodb has at most {len(REGIONS)} regions here")
        self.set_base_lags(dict(zip(names, [0, *lags_ms], strict=True)))
        details = self.state.details
        details["regions"] = dict(zip(names, REGIONS, strict=False))
        details["access_key"] = ACCESS_KEY
        details["clock_ms"] = dict.fromkeys(names, 0)
        ports = self.context.supervisor.ports(2 * len(names))
        details["replicators"] = dict(zip(names, ports[len(names) :], strict=True))
        for name, port in zip(names, ports, strict=False):
            role, source = ("primary", None) if name == "a" else ("replica", "a")
            url = f"http://127.0.0.1:{port}"
            self.state.servers[name] = Server(
                name, "a" if name == "a" else "b", role, "127.0.0.1", port, url, source=source
            )
            (self.context.folder / name).mkdir()
            self._spawn(name)
        for name in names:
            self._wait_answers(name)
            for table in self.options.tables:
                self._create_table(name, table)
        for name in names:
            self._spawn_replicator(name)
        self.wait_links()

    def _spawn(self, name: str) -> None:
        server = self.server(name)
        server.pid = self.context.supervisor.spawn(
            self.process(name),
            command(server.port, self.context.folder / name, self.options.heap_mib),
        )

    def _wait_answers(self, name: str) -> None:
        from botocore.exceptions import BotoCoreError, ClientError

        client = self.client(name, timeout=5, attempts=1)

        def answers() -> bool:
            try:
                client.list_tables()
            except (BotoCoreError, ClientError):
                return False
            return True

        self.context.supervisor.wait_ready(self.process(name), answers, 120)

    def _spawn_replicator(self, name: str) -> None:
        ports: dict[str, int] = self.state.details["replicators"]
        others = [other for other in self.state.servers if other != name]
        config = {
            "name": name,
            "endpoint": self.server(name).url,
            "region": self.region(name),
            "key": ACCESS_KEY,
            "listen": ports[name],
            "sources": {other: self.link(name, other).port for other in others},
            "clock_ms": 0,
        }
        path = self.context.folder / f"replicator-{name}.json"
        path.write_text(json.dumps(config))
        process = f"{self.process(name)}:replicator"
        self.context.supervisor.spawn(process, [sys.executable, str(Path(replicator.__file__)), str(path)])
        self.context.supervisor.wait_ready(process, lambda: self._answers(name), 60)

    def _answers(self, name: str) -> bool:
        try:
            return bool(self._ask(name, {"status": 1}))
        except (OSError, ValueError):
            return False

    def link(self, target: str, source: str) -> Link:
        """The link over which ``target`` takes what was written at ``source``."""
        key = self._key(target, source)
        if key not in self.state.links:
            proxy = f"{self.kind}-{target}-from-{source}"
            port = self.context.toxiproxy.create(proxy, self.state.details["replicators"][source])
            self.state.links[key] = Link(target, source, proxy, port, self.pair_lag(target, source))
            self._apply(self.state.links[key], anew=True)
        return self.state.links[key]

    # -- replication -------------------------------------------------------------------------------

    def _ask(self, name: str, what: Mapping[str, Any]) -> Any:
        """One question to a region's replicator."""
        port = self.state.details["replicators"][name]
        with socket.create_connection(("127.0.0.1", port), timeout=15) as connection:
            connection.sendall(json.dumps(what).encode() + b"\n")
            with connection.makefile("rb") as lines:
                return json.loads(lines.readline())

    def wait_links(self, timeout: float = 60.0) -> None:
        """Returns when every link between servers that run has carried a mark, and all that lay before it."""
        running = [name for name in self.state.servers if self.running(name)]
        for source in running:
            wanted = [
                target for target in running if target != source and self._wanted(self.link(target, source)) == "up"
            ]
            if wanted:
                self._wait_mark(source, wanted, timeout)

    def _wait_mark(self, source: str, targets: Sequence[str], timeout: float) -> None:
        number = self._ask(source, {"mark": 1})
        for target in targets:
            wait_until(
                f"what dynamodb {source} wrote to be at {target}",
                lambda target=target: self._ask(target, {"status": 1})["received"][source] >= number,  # type: ignore[misc]
                timeout,
                0.01,
            )

    @verb
    def wait_caught_up(self, server: str, source: str = "a", timeout: float = 60.0) -> None:
        """Returns when ``server`` has everything that has been written at ``source`` until now."""
        self.server(server)
        self.server(source)
        self._wait_mark(source, [server], timeout)

    def detail(self, server: Server) -> str:
        """How many changes a region has taken from each of the others."""
        try:
            received = self._ask(server.name, {"status": 1})["received"]
        except (OSError, ValueError):
            return ""
        return ", ".join(f"{count} changes from {source}" for source, count in received.items())

    # -- clients -----------------------------------------------------------------------------------

    def region(self, server: str) -> str:
        """The name of the AWS region that a server plays."""
        return str(self.state.details["regions"][server])

    def url(self, server: str) -> str:
        """A server's endpoint."""
        return self.server(server).url

    def client(self, server: str, service: str = "dynamodb", *, timeout: float = 60, attempts: int = 5) -> Any:
        """A boto3 client of one server."""
        return _client(self.url(server), self.region(server), service, timeout, attempts)

    def resource(self, server: str) -> Any:
        """A boto3 resource of one server."""
        return _session().resource("dynamodb", **_where(self.url(server), self.region(server)))

    # -- verbs -------------------------------------------------------------------------------------

    @verb
    def restart(self, server: str, source: str | None = None, *, crash: bool = False) -> None:
        """Ends a server and starts it again on the same port, with its data."""
        import signal

        self.server(server)
        if source not in (None, "disk"):
            raise LabError(f"dynamodb restarts from its disk, not from {source!r}")
        self.context.supervisor.stop(self.process(server), signal.SIGKILL if crash else signal.SIGTERM)
        self._spawn(server)
        self._wait_answers(server)

    @verb
    def clock(self, server: str, ahead_ms: int) -> None:
        """Makes a region's clock wrong by so much, the one that decides which of two regions was the last writer."""
        self.server(server)
        self._ask(server, {"clock_ms": ahead_ms})
        self.state.details["clock_ms"][server] = ahead_ms

    @verb
    def create_table(self, name: str, /, **definition: Any) -> None:
        """Makes a table in every region, with the key "id" unless a definition (as boto3 takes it) says more."""
        for server in self.state.servers:
            self._create_table(server, name, **definition)

    def _create_table(self, server: str, name: str, *, time_to_live: str | None = TTL_ATTRIBUTE, **more: Any) -> None:
        client = self.client(server)
        client.create_table(
            **{
                "TableName": name,
                "AttributeDefinitions": [{"AttributeName": "id", "AttributeType": "S"}],
                "KeySchema": [{"AttributeName": "id", "KeyType": "HASH"}],
                "BillingMode": "PAY_PER_REQUEST",
                "StreamSpecification": {"StreamEnabled": True, "StreamViewType": "NEW_AND_OLD_IMAGES"},
                **more,
            }
        )
        if time_to_live:
            specification = {"Enabled": True, "AttributeName": time_to_live}
            client.update_time_to_live(TableName=name, TimeToLiveSpecification=specification)


@functools.cache
def _session() -> Any:
    import boto3

    return boto3.session.Session()


def _where(url: str, region: str) -> dict[str, str]:
    return {
        "endpoint_url": url,
        "region_name": region,
        "aws_access_key_id": ACCESS_KEY,
        "aws_secret_access_key": ACCESS_KEY,
    }


@functools.lru_cache(maxsize=64)
def _client(url: str, region: str, service: str, timeout: float, attempts: int) -> Any:
    from botocore.config import Config

    config = Config(connect_timeout=timeout, read_timeout=timeout, retries={"total_max_attempts": attempts})
    return _session().client(service, config=config, **_where(url, region))


STORE = DynamoDbStore

__all__ = ["ACCESS_KEY", "STORE", "TTL_ATTRIBUTE", "DynamoDbOptions", "DynamoDbStore"]
