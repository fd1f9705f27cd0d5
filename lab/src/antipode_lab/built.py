"""Programs that no system package has: built or fetched once into the cache, and found there from then on."""

from __future__ import annotations

import os
import shutil
import subprocess
from dataclasses import dataclass
from pathlib import Path
from typing import Protocol

from antipode_lab.cache import cache_folder, made_once
from antipode_lab.errors import InstallError


class Tool(Protocol):
    """Something that a store needs besides system packages (`BaseStore.tools`)."""

    @property
    def name(self) -> str:
        """For a person: ``MinIO 2026-02-12``."""

    @property
    def cost(self) -> str:
        """How long the first `install` takes: ``about five minutes, once``."""

    def ready(self) -> bool:
        """Whether it is here."""

    def install(self) -> Path:
        """Gets it unless it is here; returns where it is. Raises InstallError."""


@dataclass(frozen=True, slots=True)
class GoProgram:
    """A program that `go install` builds from its module."""

    name: str
    module: str
    """The package with `main`, such as ``github.com/minio/minio``."""
    version: str
    """The module's pinned version, such as ``v0.0.0-2026…``."""
    cost: str
    flags: tuple[str, ...] = ()
    file: str = ""
    """The name in the cache; without, the module's last part and the version."""

    @property
    def path(self) -> Path:
        """Where the program is, or will be."""
        return cache_folder() / (self.file or f"{self.module.rpartition('/')[2]}-{self.version}")

    def ready(self) -> bool:
        """Whether it was built."""
        return os.access(self.path, os.X_OK)

    def install(self) -> Path:
        """Builds it unless it is in the cache; returns the program.

        Raises:
            InstallError: without Go, without a folder to write to, or if the build fails.
        """
        if self.ready():
            return self.path
        go = self._find_go()
        return made_once(self.path, lambda build: self._build(go, build), self.ready)

    def _build(self, go: str, build: Path) -> Path:
        done = subprocess.run(
            [go, "install", *self.flags, f"{self.module}@{self.version}"],
            env={**os.environ, "GOBIN": str(build), "GOFLAGS": ""},
            cwd=build,
            stdin=subprocess.DEVNULL,
            capture_output=True,
            text=True,
            check=False,
        )
        if done.returncode:
            raise InstallError(f"building {self.name} failed:\n{done.stderr[-2000:]}")
        (made,) = build.iterdir()
        return made

    def _find_go(self) -> str:
        go = shutil.which("go") or shutil.which("go", path="/usr/local/go/bin:/usr/lib/go/bin")
        if go is None:
            raise InstallError(
                f"{self.name} is built with Go, and there is no `go` on the PATH. Install Go 1.24 or newer "
                "(https://go.dev/dl), then run: antipode-lab install"
            )
        return go
