"""docker/compose.yaml as the Compose Specification's own loader reads it, which holds it to that JSON schema."""

from __future__ import annotations

import functools
import json
import subprocess
from pathlib import Path
from typing import Any, Final

from antipode_lab.built import GoProgram

DOCKER: Final = Path(__file__).parents[2] / "docker"
FILE: Final = DOCKER / "compose.yaml"
VERSION: Final = "2.9.1"
LOADER: Final = GoProgram(
    name=f"compose-go {VERSION}",
    module="github.com/compose-spec/compose-go/v2/cmd",
    version=f"v{VERSION}",
    cost="about a minute, once",
    file=f"compose-go-{VERSION}",
)
"""The library that Docker Compose itself reads files by; its schema is the specification's."""


def load(file: Path) -> subprocess.CompletedProcess[str]:
    """Reads a file; its return code says whether it is valid."""
    command = [str(LOADER.install()), "-format", "json", file.name]
    return subprocess.run(command, cwd=file.parent, capture_output=True, text=True, check=False)


@functools.cache
def services() -> dict[str, Any]:
    """The services."""
    done = load(FILE)
    assert done.returncode == 0, done.stderr
    found: dict[str, Any] = json.loads(done.stdout)["services"]
    return found


@functools.cache
def proxies() -> dict[str, dict[str, Any]]:
    """Toxiproxy's proxies, by name."""
    return {proxy["name"]: proxy for proxy in json.loads((DOCKER / "toxiproxy.json").read_text())}
