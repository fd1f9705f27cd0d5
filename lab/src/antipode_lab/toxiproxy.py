"""Toxiproxy: built once from its Go module, and spoken to over its HTTP interface.

Every replication link of the lab goes through one of its proxies, so that lag and partitions are commands.
"""

from __future__ import annotations

import http.client
import json
import os
import time
from pathlib import Path
from typing import Any
from urllib.parse import quote

from antipode_lab.built import GoProgram
from antipode_lab.errors import LabError
from antipode_lab.processes import Supervisor

VERSION = "2.12.0"
MODULE = "github.com/Shopify/toxiproxy/v2"
_HELD_MS = 3_500_000
_UPSTREAM = {"downstream": "lag-down", "upstream": "lag-up"}


PROGRAM = GoProgram(
    name=f"Toxiproxy {VERSION}",
    module=f"{MODULE}/cmd/server",
    version=f"v{VERSION}",
    cost="about a minute, once",
    flags=("-ldflags", f"-X {MODULE}.Version={VERSION}"),
    file=f"toxiproxy-server-{VERSION}-1",
    root=MODULE,
    changes=(
        # A link whose receiver went away removes itself, for which it wants a lock. Who changes a lag has it, and waits
        # for the link's toxic, which waits for somebody to take what it holds: all three hang for good.
        ("link.go", "\tdest.Close()\n", "\tdest.Close()\n\tgo io.Copy(io.Discard, link.output)\n"),
    ),
)


def binary() -> Path:
    """Where the built server is, or will be."""
    return PROGRAM.path


def install() -> Path:
    """Builds Toxiproxy unless it is in the cache; returns the binary. About a minute, once.

    Raises:
        InstallError: without Go, without a folder to write to, or if the build fails.
    """
    return PROGRAM.install()


class Toxiproxy:
    """One running Toxiproxy. Lags are one way, in whole milliseconds, and hold in each direction."""

    def __init__(self, port: int, supervisor: Supervisor | None = None) -> None:
        self.port = port
        self._supervisor = supervisor

    @classmethod
    def start(cls, supervisor: Supervisor) -> Toxiproxy:
        """Starts one under the supervisor, and waits until it answers."""
        (port,) = supervisor.ports(1)
        server = cls(port, supervisor)
        supervisor.spawn(
            "toxiproxy",
            [str(install()), "-host", "127.0.0.1", "-port", str(port)],
            # It logs every request at debug level otherwise.
            env={**os.environ, "LOG_LEVEL": "warn"},
        )
        supervisor.wait_ready("toxiproxy", server.answers, 15)
        return server

    def answers(self) -> bool:
        """Whether it takes requests."""
        try:
            self._call("GET", "/version")
        except (OSError, http.client.HTTPException):
            return False
        return True

    def _call(self, method: str, path: str, body: Any = None) -> Any:
        """Send a request; one that Toxiproxy puts off (503, a link that is stalled) is sent again for 30 s."""
        until = time.monotonic() + 30
        while True:
            status, text = self._ask(method, path, body)
            if status != 503 or time.monotonic() > until:
                break
            time.sleep(0.2)
        if status >= 300:
            raise LabError(f"Toxiproxy refused {method} {path}: {status} {text.decode(errors='replace')}")
        return json.loads(text) if text.startswith((b"{", b"[")) else None

    def _ask(self, method: str, path: str, body: Any) -> tuple[int, bytes]:
        connection = http.client.HTTPConnection("127.0.0.1", self.port, timeout=60)
        try:
            payload = None if body is None else json.dumps(body)
            connection.request(method, path, payload, {"Content-Type": "application/json"})
            answer = connection.getresponse()
            return answer.status, answer.read()
        finally:
            connection.close()

    def create(self, name: str, upstream_port: int) -> int:
        """A proxy on loopback with 0 ms; returns its port, which no connection takes while it is cut."""
        if self._supervisor is None:
            raise LabError("only the lab that runs Toxiproxy makes proxies")
        [port] = self._supervisor.ports(1)
        self._call(
            "POST",
            "/proxies",
            {
                "name": name,
                "listen": f"127.0.0.1:{port}",
                "upstream": f"127.0.0.1:{upstream_port}",
                "enabled": True,
            },
        )
        self.add_lags(name)
        return port

    def add_lags(self, name: str) -> None:
        """Gives a proxy its lags, of 0 ms, for `set_lag` to change."""
        for stream, toxic in _UPSTREAM.items():
            self._call(
                "POST",
                f"/proxies/{quote(name)}/toxics",
                {
                    "name": toxic,
                    "type": "latency",
                    "stream": stream,
                    "attributes": {"latency": 0, "jitter": 0},
                },
            )

    def proxies(self) -> dict[str, int]:
        """All proxies, with the ports that they listen on."""
        found = self._call("GET", "/proxies")
        return {name: int(proxy["listen"].rpartition(":")[2]) for name, proxy in found.items()}

    def set_lag(self, name: str, lag_ms: int) -> None:
        """Changes the lag of a proxy, of its open connections too; what was held longer goes out at once."""
        for toxic in _UPSTREAM.values():
            self._call(
                "POST",
                f"/proxies/{quote(name)}/toxics/{toxic}",
                {"attributes": {"latency": lag_ms, "jitter": 0}},
            )

    def hold_answers(self, name: str) -> None:
        """From now on what clients send arrives, and what they are answered does not; ``set_lag`` lets it go."""
        toxic = _UPSTREAM["downstream"]
        body = {"attributes": {"latency": _HELD_MS, "jitter": 0}}
        self._call("POST", f"/proxies/{quote(name)}/toxics/{toxic}", body)

    def set_enabled(self, name: str, enabled: bool) -> None:
        """Off: closes the proxy's connections and refuses new ones."""
        self._call("POST", f"/proxies/{quote(name)}", {"enabled": enabled})
