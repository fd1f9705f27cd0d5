"""How the lab starts MinIO servers, replicates their buckets, and waits for their links."""

from __future__ import annotations

import os
import subprocess
import threading
import time
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager, suppress
from dataclasses import dataclass, field
from functools import cache
from typing import Any, ClassVar, Final

from antipode_lab.built import GoProgram, Tool
from antipode_lab.errors import LabError
from antipode_lab.model import Link, Server
from antipode_lab.processes import wait_until
from antipode_lab.store import BaseStore, verb

MINIO: Final = GoProgram(
    name="MinIO 2026-02-12",
    module="github.com/minio/minio",
    version="v0.0.0-20260212201848-7aac2a2c5b7c",
    cost="about five minutes, once",
)
MC: Final = GoProgram(
    name="MinIO's client mc",
    module="github.com/minio/mc",
    version="v0.0.0-20250313080218-cf909e1063a9",
    cost="about a minute, once",
)
USER: Final = "antipode"
PASSWORD: Final = "antipode-lab"
_REQUEUE_S: Final = 0.5


@dataclass(frozen=True, slots=True)
class S3Options:
    """S3's options.

    Attributes:
        buckets: made in every region, with versioning, and replicated.
        region: the name of the AWS region that all servers say they are in.
        environment: settings of MinIO for every server, such as ``{"MINIO_API_REQUESTS_MAX": "10"}``.
    """

    buckets: Sequence[str] = ("posts",)
    region: str = "us-east-1"
    environment: Mapping[str, str] = field(default_factory=dict)


_making: Final = threading.Lock()
"""A boto3 session makes clients for one thread at a time; the clients are safe for all."""


@cache
def _session() -> Any:
    import boto3  # here: reading it takes a while, and most labs have no S3

    return boto3.session.Session()


class S3Servers(BaseStore[S3Options]):
    """Starting the servers, reaching them, and waiting for their links; the verbs are `S3Store`'s."""

    kind: ClassVar[str] = "s3"
    tools: ClassVar[Sequence[Tool]] = (MINIO, MC)
    options_type: ClassVar[type[Any]] = S3Options

    # -- start -------------------------------------------------------------------------------------

    def start(self, lags_ms: Sequence[int]) -> None:
        """Starts the primary and one replica a lag, with their buckets."""
        names = ["a", *(f"b{index}" for index in range(1, len(lags_ms) + 1))]
        self.set_base_lags(dict(zip(names, [0, *lags_ms], strict=True)))
        self.state.details.update(buckets=list(self.options.buckets), user=USER, password=PASSWORD)
        for name, port in zip(names, self.context.supervisor.ports(len(names)), strict=True):
            self.state.servers[name] = Server(
                name,
                "a" if name == "a" else "b",
                "primary" if name == "a" else "replica",
                "127.0.0.1",
                port,
                f"http://127.0.0.1:{port}",
                source=None if name == "a" else "a",
            )
            (self.context.folder / name).mkdir()
            self._spawn(name)
        for name in names:
            self._wait_answers(name)
            for bucket in self.buckets:
                self._make_bucket(name, bucket)
        for name in names[1:]:
            self._replicate("a", name)
        self.wait_links()

    def _spawn(self, name: str) -> None:
        server = self.server(name)
        home = self.context.folder / name
        environment = {
            "PATH": os.environ.get("PATH", ""),
            "HOME": str(home),
            "MINIO_ROOT_USER": USER,
            "MINIO_ROOT_PASSWORD": PASSWORD,
            "MINIO_SITE_REGION": self.options.region,
            "MINIO_BROWSER": "off",
            "MINIO_UPDATE": "off",
            # The scanner is what sends again that which a partition kept back.
            "MINIO_SCANNER_SPEED": "fastest",
            "GOMEMLIMIT": "200MiB",
            **self.options.environment,
        }
        server.pid = self.context.supervisor.spawn(
            self.process(name),
            [
                str(MINIO.path),
                "server",
                "--quiet",
                "--anonymous",
                "--address",
                f"127.0.0.1:{server.port}",
                str(home / "data"),
            ],
            env=environment,
        )

    def _wait_answers(self, name: str) -> None:
        from botocore.exceptions import BotoCoreError, ClientError

        with self.client(name, timeout=2, attempts=1) as client:

            def answers() -> bool:
                try:
                    client.list_buckets()
                except (BotoCoreError, ClientError):  # refused, or "server not initialized yet"
                    return False
                return True

            self.context.supervisor.wait_ready(self.process(name), answers, 60)

    def _make_bucket(self, name: str, bucket: str) -> None:
        with self.client(name) as client:
            client.create_bucket(Bucket=bucket)
            client.put_bucket_versioning(Bucket=bucket, VersioningConfiguration={"Status": "Enabled"})

    # -- replication -------------------------------------------------------------------------------

    def link(self, target: str, source: str) -> Link:
        """The link over which ``source`` sends to ``target``: made when first asked for."""
        key = self._key(target, source)
        if key not in self.state.links:
            proxy = f"{self.kind}-{target}-from-{source}"
            port = self.context.toxiproxy.create(proxy, self.server(target).port)
            self.state.links[key] = Link(target, source, proxy, port, self.pair_lag(target, source))
            self._apply(self.state.links[key], anew=True)
        return self.state.links[key]

    def _mc(self, *arguments: str) -> str:
        """Runs MinIO's own client against the servers; it knows them by their names."""
        aliases = {
            f"MC_HOST_{name}": f"http://{USER}:{PASSWORD}@127.0.0.1:{server.port}"
            for name, server in self.servers.items()
        }
        folder = str(self.context.folder / "mc")
        done = subprocess.run(
            [str(MC.path), "--config-dir", folder, "--disable-pager", "--json", *arguments],
            env={"PATH": os.environ.get("PATH", ""), "HOME": folder, **aliases},
            stdin=subprocess.DEVNULL,
            capture_output=True,
            text=True,
            timeout=60,
            check=False,
        )
        if done.returncode:
            raise LabError(f"mc {' '.join(arguments[:2])} failed: {(done.stdout + done.stderr)[-1000:]}")
        return done.stdout

    def _replicate(self, source: str, target: str) -> None:
        """``source`` sends every version of its buckets to ``target``, those that it has already as well."""
        server = self.server(target)
        server.role, server.source = "replica", source
        self._send(source, target)

    def _send(self, source: str, target: str) -> None:
        """Gives each bucket of ``source`` a rule that sends to ``target``."""
        port = self.link(target, source).port
        for bucket in self.buckets:
            remote = f"http://{USER}:{PASSWORD}@127.0.0.1:{port}/{bucket}"
            what = "delete,delete-marker,existing-objects"
            place = 1 + len([s for s in self.servers.values() if s.source == source and s.name < target])
            self._mc(
                "replicate", "add", f"{source}/{bucket}", "--remote-bucket", remote, "--replicate", what,
                "--priority", str(place),
            )  # fmt: skip

    def _end_replication(self, source: str) -> None:
        """``source`` sends nothing any more."""
        for bucket in self.buckets:
            with suppress(LabError):  # there was none
                self._mc("replicate", "rm", f"{source}/{bucket}", "--all", "--force")

    # -- clients and what they see -----------------------------------------------------------------

    @contextmanager
    def client(self, name: str, **arguments: Any) -> Iterator[Any]:
        """A boto3 client of a server, straight, not through a link, for a ``with`` block."""
        made = self.new_client(name, **arguments)
        try:
            yield made
        finally:
            made.close()

    def new_client(self, name: str, **arguments: Any) -> Any:
        """A new boto3 client of a server, straight; `_arguments` says with what."""
        with _making:
            return _session().client("s3", **self._arguments(name, **arguments))

    def new_resource(self, name: str, **arguments: Any) -> Any:
        """A new boto3 resource of a server, straight."""
        with _making:
            return _session().resource("s3", **self._arguments(name, **arguments))

    def _arguments(
        self,
        name: str,
        *,
        timeout: float = 30.0,
        attempts: int = 3,
        port: int | None = None,
        user: str = USER,
        password: str = PASSWORD,
        region: str | None = None,
    ) -> dict[str, Any]:
        """What `boto3.client` takes. `port`: of a proxy before the server; `attempts`: the first one counts."""
        from botocore.config import Config

        return {
            "endpoint_url": self.url(name) if port is None else f"http://127.0.0.1:{port}",
            "aws_access_key_id": user,
            "aws_secret_access_key": password,
            "region_name": region or self.options.region,
            "config": Config(
                connect_timeout=timeout,
                read_timeout=timeout,
                retries={"total_max_attempts": attempts, "mode": "standard"},
                s3={"addressing_style": "path"},
                max_pool_connections=32,
            ),
        }

    def url(self, name: str) -> str:
        """The server's endpoint."""
        return self.server(name).url

    def replica_url(self, name: str, bucket: str | None = None) -> str:
        """The server's bucket as Antipode's shim takes it in ``replicas=``."""
        endpoint = f"127.0.0.1:{self.server(name).port}"
        return f"s3+http://{USER}:{PASSWORD}@{endpoint}/{bucket or self.buckets[0]}?region={self.options.region}"

    @property
    def buckets(self) -> list[str]:
        """The buckets that are replicated."""
        return list(self.state.details["buckets"])

    @property
    def primary(self) -> str:
        """The server that was last made the primary."""
        return next(s.name for s in self.state.servers.values() if s.role == "primary")

    @property
    def replicas(self) -> list[str]:
        """The servers that are replicas."""
        return [server.name for server in self.state.servers.values() if server.role == "replica"]

    def versions(self, name: str, bucket: str) -> dict[tuple[str, str], bool]:
        """Every version of every object at a server: (key, version id), and whether it is a delete marker."""
        found: dict[tuple[str, str], bool] = {}
        with self.client(name) as client:
            for page in client.get_paginator("list_object_versions").paginate(Bucket=bucket):
                for kind, marker in (("Versions", False), ("DeleteMarkers", True)):
                    found.update({(item["Key"], item["VersionId"]): marker for item in page.get(kind, [])})
        return found

    def detail(self, server: Server) -> str:
        """How many versions its buckets hold."""
        try:
            held = sum(len(self.versions(server.name, bucket)) for bucket in self.buckets)
        except Exception as error:
            return f"{type(error).__name__}: {error}"
        return f"{held} versions in {', '.join(self.buckets)}"

    # -- waiting -----------------------------------------------------------------------------------

    def wait_links(self, timeout: float = 90.0) -> None:
        """Waits until every replica that can be reached has all that its source has."""
        for name in self.replicas:
            source = self.server(name).source
            if source is None or not (self.running(name) and self.running(source)):
                continue
            if self.link(name, source).state == "up":
                self.wait_caught_up(name, timeout)

    def wait_caught_up(self, name: str, timeout: float = 90.0) -> None:
        """Waits until ``name`` has every version that its source has now.

        MinIO gives up on what it could not send, until its scanner comes by; a HEAD at the source has it try
        again at once.

        Raises:
            LabError: after ``timeout`` seconds.
        """
        source = self.server(name).source
        if source is None:
            raise LabError(f"s3 {name} is no replica")
        for bucket in self.buckets:
            wanted = self.versions(source, bucket)
            again = time.monotonic() + _REQUEUE_S

            def arrived(
                bucket: str = bucket, wanted: dict[tuple[str, str], bool] = wanted, source: str = source
            ) -> bool:
                nonlocal again
                missing = wanted.keys() - self.versions(name, bucket).keys()
                if missing and time.monotonic() > again:
                    self._send_again(source, bucket, {entry: wanted[entry] for entry in missing})
                    again = time.monotonic() + _REQUEUE_S
                return not missing

            wait_until(f"s3 {name} to receive what {source} sends of {bucket}", arrived, timeout, 0.02)

    def _send_again(self, source: str, bucket: str, versions: Mapping[tuple[str, str], bool]) -> None:
        from botocore.exceptions import ClientError

        with self.client(source) as client:
            for key, version in list(versions)[:200]:
                with suppress(ClientError):  # a delete marker's HEAD is an error, and does it too
                    client.head_object(Bucket=bucket, Key=key, VersionId=version)

    # -- for tests of bad settings -----------------------------------------------------------------

    @verb
    def make_bucket(self, bucket: str, *, versioning: bool = True, servers: Sequence[str] | None = None) -> None:
        """Makes a bucket that is not replicated."""
        for name in servers or list(self.servers):
            with self.client(name) as client:
                client.create_bucket(Bucket=bucket)
                if versioning:
                    client.put_bucket_versioning(Bucket=bucket, VersioningConfiguration={"Status": "Enabled"})

    @verb
    def create_user(self, name: str, user: str, password: str, policy: str) -> None:
        """Makes a user at one server with a policy (JSON, as AWS has it)."""
        path = self.context.folder / f"policy-{user}.json"
        path.write_text(policy)
        self._mc("admin", "user", "add", name, user, password)
        self._mc("admin", "policy", "create", name, user, str(path))
        self._mc("admin", "policy", "attach", name, user, "--user", user)
