"""The lab as containers: the regions of `docker/compose.yaml`, driven by the same verbs where Docker is there.

Servers are what the file's labels say; links are the proxies of its Toxiproxy, named as the native lab names its own.
Docker Compose does what is done to servers, Toxiproxy what is done to links. Nothing here knows a store.
"""

from __future__ import annotations

import json
import os
import shutil
import subprocess
import uuid
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Final, Self

from antipode_lab.durations import Duration, lag_ms
from antipode_lab.errors import InstallError, LabError, NotSupportedError
from antipode_lab.model import LabState, Link, LinkState, Server, StoreState, write_atomically
from antipode_lab.store import SILENT_MS, PartitionMode, ServerStatus
from antipode_lab.toxiproxy import Toxiproxy

ENVIRONMENT: Final = "ANTIPODE_COMPOSE"
"""Names another Compose file."""
LABEL: Final = "dev.antipode."
_TOXIPROXY: Final = "toxiproxy"
_STATES: Final = {"running": "running", "paused": "frozen"}


def compose_file() -> Path:
    """The Compose file: the variable's, the one of this folder or of the repository that this package lies in."""
    if given := os.environ.get(ENVIRONMENT):
        return Path(given).absolute()
    for folder in (Path.cwd(), *Path(__file__).parents):
        found = folder / "docker" / "compose.yaml"
        if found.is_file():
            return found
    raise LabError(f"there is no docker/compose.yaml here; name it in {ENVIRONMENT}")


@dataclass(frozen=True, slots=True)
class Compose:
    """Docker Compose on one project."""

    file: Path
    project: str
    stores: tuple[str, ...]

    def run(self, *arguments: str, timeout: float = 900) -> str:
        """What a command of Compose prints.

        Raises:
            LabError: with its words, where it fails.
            InstallError: without Docker.
        """
        docker = shutil.which("docker")
        if docker is None:
            raise InstallError("there is no `docker` on the PATH; without --docker the lab needs none")
        profiles = [word for store in self.stores for word in ("--profile", store)]
        command = [docker, "compose", "--file", str(self.file), "--project-name", self.project, *profiles, *arguments]
        try:
            done = subprocess.run(
                command, stdin=subprocess.DEVNULL, capture_output=True, text=True, check=False, timeout=timeout
            )
        except subprocess.TimeoutExpired as error:
            raise LabError(f"docker compose {arguments[0]} did not end within {timeout:g} s") from error
        if done.returncode:
            raise LabError(f"docker compose {' '.join(arguments)} failed:\n{(done.stdout + done.stderr)[-2000:]}")
        return done.stdout

    def model(self) -> dict[str, Any]:
        """The services, as Compose itself reads the file."""
        return dict(json.loads(self.run("config", "--format", "json"))["services"])

    def port(self, service: str, port: int) -> int:
        """The port of loopback that leads to a container's."""
        return int(self.run("port", service, str(port)).strip().rpartition(":")[2])

    def states(self) -> dict[str, str]:
        """What each container of the project does now; one JSON object a line, or a list of them."""
        text = self.run("ps", "--all", "--format", "json").strip()
        rows = json.loads(text) if text.startswith("[") else [json.loads(line) for line in text.splitlines()]
        return {str(row["Service"]): str(row["State"]) for row in rows}


class DockerStore:
    """One store's verbs, those of `antipode_lab.store.Store`."""

    def __init__(self, lab: DockerLab, kind: str) -> None:
        self.kind = kind
        self._lab = lab

    @property
    def state(self) -> StoreState:
        """The store's part of the endpoints."""
        return self._lab.endpoints.stores[self.kind]

    def server(self, name: str) -> Server:
        """One server. Raises LabError if there is none of that name."""
        try:
            return self.state.servers[name]
        except KeyError:
            raise LabError(f"{self.kind} has no server {name!r}; it has {', '.join(self.state.servers)}") from None

    def status(self) -> list[ServerStatus]:
        """Every server, as it is now."""
        states, found = self._lab.compose.states(), []
        for server in self.state.servers.values():
            server.state = _STATES.get(states.get(f"{self.kind}-{server.name}", ""), "stopped")
            link = self.state.links.get(f"{server.name}<-{server.source}")
            found.append(
                ServerStatus(
                    server.name,
                    server.role,
                    server.port,
                    0,
                    server.state,
                    server.source,
                    server.lag_ms,
                    link.state if link else None,
                    "",
                )
            )
        return found

    # -- links -------------------------------------------------------------------------------------

    def _links(self, *names: str) -> list[Link]:
        return [link for link in self.state.links.values() if set(names) <= {link.target, link.source}]

    def lag(self, server: str, value: Duration, source: str | None = None) -> None:
        """Sets the one-way lag of the server's links, or only of the one from ``source``; acts at once."""
        self.server(server)
        if source is not None:
            self.server(source)
        milliseconds = lag_ms(value)
        for link in self._links(server):
            if source is None or (link.target, link.source) == (server, source):
                link.lag_ms = milliseconds
                if link.state == "up":
                    self._lab.toxiproxy.set_lag(link.proxy, milliseconds)
        self.server(server).lag_ms = milliseconds
        self._lab.save()

    def partition(self, server: str, peer: str | None = None, mode: PartitionMode = "cut") -> None:
        """Parts a server from all others, or from ``peer``: cut, or ``silent`` (what is on its way is held)."""
        self.server(server)
        if mode not in ("cut", "silent"):
            raise LabError(f"a partition is 'cut' or 'silent', not {mode!r}")
        if peer is not None:
            self.server(peer)
        for link in self._links(*(name for name in (server, peer) if name is not None)):
            self._set(link, mode)
        self._lab.save()

    def heal(self, server: str | None = None, peer: str | None = None, *, wait: bool = True) -> None:
        """Ends every partition, or those that name ``server`` (and ``peer``). Does not wait until data flow."""
        names = [name for name in (server, peer) if name is not None]
        for name in names:
            self.server(name)
        for link in self._links(*names):
            self._set(link, "up")
        self._lab.save()

    def _set(self, link: Link, state: LinkState) -> None:
        """Asks for what changes and nothing else: Toxiproxy may hang on a link whose connections are being closed."""
        if link.state == state:
            return
        toxiproxy = self._lab.toxiproxy
        if state == "cut":
            toxiproxy.set_enabled(link.proxy, False)
        else:
            toxiproxy.set_lag(link.proxy, SILENT_MS if state == "silent" else link.lag_ms)
            if link.state == "cut":
                toxiproxy.set_enabled(link.proxy, True)
        link.state = state

    # -- servers -----------------------------------------------------------------------------------

    def _do(self, server: str, *verb: str) -> None:
        self.server(server)
        self._lab.compose.run(*verb, f"{self.kind}-{server}")

    def freeze(self, server: str) -> None:
        """Stops a server's processes where they are; it neither answers nor closes its connections."""
        self._do(server, "pause")

    def thaw(self, server: str) -> None:
        """Lets a frozen server go on."""
        self._do(server, "unpause")

    def kill(self, server: str) -> None:
        """Ends a server with SIGKILL; ``restart`` brings it back."""
        self._do(server, "kill")

    def restart(self, server: str, source: str | None = None, *, crash: bool = False) -> None:
        """Ends a server and starts it again with what it had, at the port that it has then."""
        if source not in (None, "disk"):
            raise NotSupportedError(f"a container restarts with what it had, not from {source!r}")
        self._do(server, "kill" if crash else "stop")
        self._lab.compose.run("up", "--detach", "--wait", "--no-deps", "--no-recreate", f"{self.kind}-{server}")
        self._lab.find_port(self.kind, server)
        self._lab.save()

    def promote(self, server: str, lose: int | None = None) -> None:
        """Not with containers: which server is the primary is written in the Compose file."""
        raise NotSupportedError(f"{self.kind} has a fixed primary in containers; promote in a lab without --docker")

    def repoint(self, server: str, source: str) -> None:
        """Not with containers."""
        raise NotSupportedError(f"{self.kind} has fixed links in containers; re-point in a lab without --docker")


class DockerLab:
    """A lab of containers, from `start` to `down`. It outlives the process that started it."""

    def __init__(self, compose: Compose, state: LabState) -> None:
        self.compose = compose
        self.endpoints = state
        self._stores = {name: DockerStore(self, name) for name in compose.stores}

    @property
    def toxiproxy(self) -> Toxiproxy:
        """The links' proxies."""
        return Toxiproxy(self.endpoints.toxiproxy_port)

    @classmethod
    def start(
        cls, stores: Sequence[str], lags: Mapping[str, Duration], path: Path, *, file: Path | None = None
    ) -> Self:
        """Starts the stores' containers, and returns when their health checks pass and the links have their lags.

        Raises:
            LabError: if a store is not in the Compose file, or Compose fails; nothing is left running then.
        """
        compose = Compose(file or compose_file(), f"antipode-{uuid.uuid4().hex[:8]}", tuple(dict.fromkeys(stores)))
        services = compose.model()
        state = LabState("", 0, 0, str(path), {name: _store(name, services) for name in compose.stores})
        state.docker = {"file": str(compose.file), "project": compose.project}
        lab = cls(compose, state)
        try:
            compose.run("up", "--detach", "--wait", "--build")
            state.toxiproxy_port = compose.port(_TOXIPROXY, 8474)
            proxies = lab.toxiproxy.proxies()
            for kind, store in state.stores.items():
                for name in store.servers:
                    lab.find_port(kind, name)
                store.links.update(_links(kind, store, proxies))
                for link in store.links.values():
                    lab.toxiproxy.add_lags(link.proxy)
                for name, server in store.servers.items():
                    if server.source is not None:
                        lab[kind].lag(name, lags[kind])
            lab.save()
        except BaseException:
            lab.down()
            raise
        return lab

    @classmethod
    def attach(cls, state: LabState) -> Self:
        """The lab that a file of endpoints describes."""
        assert state.docker is not None
        return cls(Compose(Path(state.docker["file"]), state.docker["project"], tuple(state.stores)), state)

    def __getitem__(self, name: str) -> DockerStore:
        try:
            return self._stores[name]
        except KeyError:
            raise LabError(f"this lab has no {name!r}; it has {', '.join(self._stores)}") from None

    def status(self) -> dict[str, list[ServerStatus]]:
        """Every server of every store, as it is now."""
        return {name: store.status() for name, store in self._stores.items()}

    def find_port(self, kind: str, name: str) -> None:
        """Notes which port leads to a server now."""
        server = self.endpoints.stores[kind].servers[name]
        details = self.endpoints.stores[kind].details
        server.port = self.compose.port(f"{kind}-{name}", details["ports"][name])
        server.url = details["urls"][name].format(port=server.port)

    def save(self) -> None:
        """Writes the file of endpoints."""
        if self.endpoints.json_path is not None:
            write_atomically(Path(self.endpoints.json_path), self.endpoints.to_json())

    def down(self) -> None:
        """Ends it: containers, networks, volumes and the file of endpoints."""
        self.compose.run("down", "--volumes", "--remove-orphans", "--timeout", "5")
        if self.endpoints.json_path is not None:
            Path(self.endpoints.json_path).unlink(missing_ok=True)


def _store(kind: str, services: Mapping[str, Any]) -> StoreState:
    """A store's servers, as the labels have them; without ports yet."""
    found = StoreState(kind, {}, details={"ports": {}, "urls": {}})
    for service in services.values():
        labels = service.get("labels") or {}
        if labels.get(f"{LABEL}store") != kind:
            continue
        name = labels[f"{LABEL}server"]
        region = next(iter(service["networks"])).removeprefix("region-")
        source = labels.get(f"{LABEL}source")
        found.servers[name] = Server(name, region, labels[f"{LABEL}role"], "127.0.0.1", 0, "", source=source)
        found.details["ports"][name] = int(labels[f"{LABEL}port"])
        found.details["urls"][name] = labels[f"{LABEL}url"]
    if not found.servers:
        raise LabError(f"the Compose file has no store {kind!r}")
    return found


def _links(kind: str, store: StoreState, proxies: Mapping[str, int]) -> dict[str, Link]:
    """The store's links: the proxies that are named so, `redis-b1-from-a`."""
    found = {}
    for target in store.servers:
        for source in store.servers:
            proxy = f"{kind}-{target}-from-{source}"
            if proxy in proxies:
                found[f"{target}<-{source}"] = Link(target, source, proxy, proxies[proxy], 0)
    return found
